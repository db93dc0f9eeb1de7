/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Going through a unit of packed coefficients (baseline_packed.c), pair by pair. Whatever its bytes are, no
 * more than BASELINE_PACKED_MOST of them are looked at. */

#include "base/little.h"
#include "pipeline/jpeg/baseline_inner.h"

#define BASELINE_PACKED_INLINE static inline __attribute__((always_inline))

struct baseline_packed_cursor {
	const uint8_t *head, *at; /* of the next pair: its head and its groups */
	uint32_t codes;           /* from the next pair on, two bits for each: how many widths */
	uint32_t dc_bytes;
};

struct baseline_packed_pair {
	const uint8_t *dc; /* four bytes are there */
	const uint8_t *at; /* the groups; 16 bytes behind them are there */
	uint32_t dc_bits;  /* of each block's */
	uint32_t widths;   /* of the groups, four bits each */
	/* the same, and their sums before each */
	uint8_t width[8], before[8];
};

/* Of a pair's code: the bytes of its widths, none, one, two or four. */
BASELINE_PACKED_INLINE uint32_t baseline_packed_bytes(uint32_t code)
{
	return code + (code & code >> 1);
}

BASELINE_PACKED_INLINE struct baseline_packed_cursor
baseline_packed_begin(const uint8_t *unit, unsigned n_pairs, unsigned dc_bytes)
{
	const uint32_t codes = *unit;
	const uint32_t bytes = baseline_packed_bytes(codes & 3) +
			       baseline_packed_bytes(codes >> 2 & 3) +
			       baseline_packed_bytes(codes >> 4 & 3);
	const uint8_t *head = unit + 1;

	return (struct baseline_packed_cursor){head, head + (size_t)dc_bytes * n_pairs + bytes,
					       codes, dc_bytes};
}

BASELINE_PACKED_INLINE void baseline_packed_next(struct baseline_packed_cursor *cursor,
						 struct baseline_packed_pair *ret)
{
	const uint32_t bytes = baseline_packed_bytes(cursor->codes & 3);
	uint64_t apart = little_32(cursor->head + cursor->dc_bytes), upto;

	ret->dc = cursor->head;
	ret->dc_bits = 4 * cursor->dc_bytes;
	ret->at = cursor->at;
	apart &= (UINT64_C(1) << 8 * bytes) - 1;
	ret->widths = (uint32_t)apart;
	/* a byte each, the first one lowest; then their sums up to each */
	apart = (apart | apart << 16) & 0x0000ffff0000ffff;
	apart = (apart | apart << 8) & 0x00ff00ff00ff00ff;
	apart = (apart | apart << 4) & 0x0f0f0f0f0f0f0f0f;
	upto = apart * 0x0101010101010101;
	little_put_64(ret->width, apart);
	little_put_64(ret->before, upto << 8);
	cursor->head += cursor->dc_bytes + bytes;
	cursor->at += 2 * (upto >> 56);
	cursor->codes >>= 2;
}

/* The pair's first or second DC, with its sign. */
BASELINE_PACKED_INLINE int16_t baseline_packed_dc(const struct baseline_packed_pair *pair,
						  unsigned side)
{
	const unsigned above = 32 - (side + 1) * pair->dc_bits;

	return (int16_t)((int32_t)(little_32(pair->dc) << above) >> (32 - pair->dc_bits));
}
