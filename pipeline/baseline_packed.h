/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_BASELINE_PACKED_H
#define PIPELINE_BASELINE_PACKED_H

/* Going through a unit of packed coefficients (baseline_packed.c), pair by pair. Whatever its bytes are, no
 * more than BASELINE_PACKED_MOST of them are looked at. */

#include "base/little.h"
#include "pipeline/baseline_inner.h"

#define BASELINE_PACKED_INLINE static inline __attribute__((always_inline))

struct baseline_packed_cursor {
	const uint8_t *head, *at; /* of the next pair: its head and its groups */
	uint32_t wide;            /* from the next pair on, a bit for each: it has all widths */
};

struct baseline_packed_pair {
	const uint8_t *dc; /* 24 bits, and five bytes more */
	const uint8_t *at; /* the groups; 16 bytes behind them are there */
	uint32_t widths;   /* of the groups, four bits each */
	/* the same, and their sums before each */
	uint8_t width[8], before[8];
};

BASELINE_PACKED_INLINE struct baseline_packed_cursor baseline_packed_begin(const uint8_t *unit,
									   unsigned n_pairs)
{
	const uint32_t wide = *unit;
	const uint32_t count = (wide & 1) + (wide >> 1 & 1) + (wide >> 2 & 1);
	const uint8_t *head = unit + 1;

	return (struct baseline_packed_cursor){
	    head, head + (size_t)BASELINE_PACKED_PAIR * n_pairs + (size_t)2 * count, wide};
}

BASELINE_PACKED_INLINE void baseline_packed_next(struct baseline_packed_cursor *cursor,
						 struct baseline_packed_pair *ret)
{
	const uint32_t is_wide = cursor->wide & 1;
	uint64_t apart = little_32(cursor->head + 3) & (UINT16_MAX | -is_wide), upto;

	ret->dc = cursor->head;
	ret->at = cursor->at;
	ret->widths = (uint32_t)apart;
	/* a byte each, the first one lowest; then their sums up to each */
	apart = (apart | apart << 16) & 0x0000ffff0000ffff;
	apart = (apart | apart << 8) & 0x00ff00ff00ff00ff;
	apart = (apart | apart << 4) & 0x0f0f0f0f0f0f0f0f;
	upto = apart * 0x0101010101010101;
	little_put_64(ret->width, apart);
	little_put_64(ret->before, upto << 8);
	cursor->head += BASELINE_PACKED_PAIR + 2 * is_wide;
	cursor->at += 2 * (upto >> 56);
	cursor->wide >>= 1;
}

/* The pair's first or second DC: 12 bits with a sign. */
BASELINE_PACKED_INLINE int16_t baseline_packed_dc(const struct baseline_packed_pair *pair,
						  unsigned side)
{
	return (int16_t)((int32_t)(little_32(pair->dc) << (side == 0 ? 20 : 8)) >> 20);
}

#endif
