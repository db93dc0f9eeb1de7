/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ArrayRecord files, which are files of Riegeli's with an index at their end. All numbers are little endian.
 *
 * Blocks of 64 KiB begin with a head of 24 bytes, which only helps who looks for a chunk in a damaged file. What lies between the heads
 * is one stream, of the chunks: places in it are "places" here, and those in the file are made of them.
 *
 *   chunk      u64 hash of the rest of this head | u64 bytes of the data | u64 hash of the data |
 *              u8 type, u56 records | u64 bytes of the records as they were written | the data
 *   data of r  u8 compression | varint bytes of the sizes | sizes of the records, varints | the records
 *              where sizes and records are each compressed, behind a varint that says of how many bytes
 *   file       chunk s, of no data | chunks r, others | the index, a chunk r at footer | the last block: a chunk r, thrice
 *              the message 1: footer, 2: RIEGELI_MAGIC
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/little.h"
#include "base/varint.h"
#include "storage/source/scan/highway.h"

#define RIEGELI_BLOCK UINT64_C(65536)
#define RIEGELI_BLOCK_HEAD 24
#define RIEGELI_ROOM (RIEGELI_BLOCK - RIEGELI_BLOCK_HEAD)
#define RIEGELI_HEAD 40
#define RIEGELI_MAGIC UINT64_C(0x71930e704fdae05e)

/* With which each file begins: the head of its first block, and the chunk s. */
static const uint8_t riegeli_first[RIEGELI_BLOCK_HEAD + RIEGELI_HEAD] = {
    0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f, 0,    0,    0, 0,    0,
    0,    0,    0,    0x40, 0,    0,    0,    0,    0,    0,    0, 0x91, 0xba,
    0xc2, 0x3c, 0x92, 0x87, 0xe1, 0xa9, 0,    0,    0,    0,    0, 0,    0,
    0,    0xe1, 0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72, 0x73,
};

struct riegeli_chunk {
	uint64_t bytes, hash; /* of the data */
	uint8_t type;
	uint64_t records, written;
};

static inline uint64_t riegeli_at(uint64_t place)
{
	return place / RIEGELI_ROOM * RIEGELI_BLOCK + RIEGELI_BLOCK_HEAD + place % RIEGELI_ROOM;
}

/* Of a place in the head of a block, the first behind it. */
static inline uint64_t riegeli_place(uint64_t at)
{
	const uint64_t within = at % RIEGELI_BLOCK;

	return at / RIEGELI_BLOCK * RIEGELI_ROOM +
	       (within < RIEGELI_BLOCK_HEAD ? 0 : within - RIEGELI_BLOCK_HEAD);
}

/* false: the head is damaged. */
static inline bool riegeli_head(const uint8_t *head, struct riegeli_chunk *ret)
{
	if (highway(head + 8, RIEGELI_HEAD - 8) != little_64(head))
		return false;
	*ret = (struct riegeli_chunk){
	    .bytes = little_64(head + 8),
	    .hash = little_64(head + 16),
	    .type = head[24],
	    .records = little_64(head + 24) >> 8,
	    .written = little_64(head + 32),
	};
	return true;
}

/* Of the last chunk's data, of which there is some: where the index begins. false: it is none. */
static inline bool riegeli_footer(const uint8_t *data, size_t size, uint64_t *ret)
{
	uint64_t sizes, of_first, magic;
	size_t at = 1, n;

	n = varint_read(data + at, size - at, &sizes);
	at += n;
	if (data[0] != 0 || n == 0 || sizes > size - at ||
	    !varint_read(data + at, size - at, &of_first))
		return false;
	at += sizes;
	if (at == size || data[at++] != (1 << 3 | PROTO_VARINT))
		return false;
	n = varint_read(data + at, size - at, ret);
	at += n;
	if (n == 0 || at == size || data[at++] != (2 << 3 | PROTO_VARINT))
		return false;
	return varint_read(data + at, size - at, &magic) && magic == RIEGELI_MAGIC;
}
