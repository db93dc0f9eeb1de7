/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Resizing planes of 8-bit values row by row, for an engine that works on rows while they are in
 * the cache. The values are those of resize.h. Rows may be read PLANE_PAD bytes beyond their ends,
 * and rows that are written may be written PLANE_PAD bytes beyond their end.
 */

#include "pipeline/ops/filter.h"

#define PLANE_PAD 64
#define PLANE_TAPS_ALIGN 8
#define PLANE_LOW_BITS 16 /* of a weight that is split in two 16-bit parts */

enum plane_form {
	PLANE_TAPS,   /* along a row, output by output */
	PLANE_BLOCKS, /* along a row, eight outputs at a time */
	PLANE_BYTES,  /* the same, with high parts of weights as bytes */
	PLANE_QUADS,  /* sixteen outputs at a time, and four taps, weights as three bytes */
	PLANE_DOWN,   /* along a column, two rows at a time */
};

struct plane_want {           /* which outputs of an axis that goes from `in` to `out` pixels */
	enum plane_form form; /* PLANE_QUADS may become PLANE_BYTES, that PLANE_BLOCKS, and that
			       * PLANE_TAPS */
	enum filter_id id;
	uint32_t in, out, first, count; /* first + count <= out */
	bool mirrored;                  /* the outputs stand in the other order */
	struct filter_cut cut;          /* of the inputs */
};

struct plane_table {            /* immutable once made */
	struct plane_want want; /* want.count 0: empty */
	enum plane_form form;
	uint32_t low, high; /* the inputs that they are made of: low .. high - 1 */
	uint32_t taps;      /* from one output's first weight to the next output's */
	bool overshoots;    /* weights may be negative */
	uint32_t *first, *count;
	/* PLANE_TAPS: output x is the sum over t < count[x] of in[low + first[x] + t] * weight[x *
	 * taps + t]; count is even, taps a multiple of PLANE_TAPS_ALIGN, weights of 0 fill up. */
	int32_t *weight;
	/* PLANE_DOWN: the same, but first is even, too, and split[2 * x * taps] on has count[x] / 2
	 * times four numbers: the high parts of two weights and the low parts of both; weight =
	 * high * 65536 + low, both signed.
	 * PLANE_BLOCKS, PLANE_BYTES, and PLANE_QUADS' digits: see plane_table.c. */
	int16_t *split;
	int8_t *digits;
	/* An even number of blocks of eight; pairs of taps of each output */
	uint32_t blocks, pairs;
	uint32_t quads;   /* PLANE_QUADS: fours of them; blocks have sixteen outputs */
	bool narrow;      /* the inputs of a block's pairs lie within 16 bytes */
	uint8_t *shuffle; /* 32 a block, or 64 */
	uint32_t *at;     /* 2 a block, or 1 */
	uint8_t *memory;  /* owns the arrays */
	size_t size;      /* of memory */
};

/* plane_table.c */
/* *table, all zero or made before, becomes the one wanted; filter is scratch. False: out of memory,
 * and the table is empty. */
bool plane_table_make(struct plane_table *table, struct filter_table *filter,
		      const struct plane_want *want);
void plane_table_fini(struct plane_table *table);

/* plane_cache.c */
#define PLANE_WAYS 4
#define PLANE_SETS 256
struct plane_cache { /* tables along one axis; all zero at the start */
	struct plane_table slot[PLANE_SETS][PLANE_WAYS]; /* of a set, the first was used last */
	struct plane_table large;
	struct filter_table filter;
};
/* The table wanted, made if it is not there. Valid until the next get on this cache. NULL: out of
 * memory. */
const struct plane_table *plane_cache_get(struct plane_cache *cache, const struct plane_want *want);
/* Gives memory back that only an unusual picture needed. */
void plane_cache_trim(struct plane_cache *cache);
void plane_cache_fini(struct plane_cache *cache);

/* ---- kernels: all makes give the same bytes, plane_plain is the reference ---- */

/* Two rows "in turn" are a, b, a, b ... in an order of the kernels' own, which only they read. */
struct plane_kernels {
	enum plane_form across_form; /* what `across` takes beside PLANE_TAPS */
	/* Two rows, which are at input low, to want.count outputs each, in turn. */
	void (*across)(const struct plane_table *table, const uint8_t *a, const uint8_t *b,
		       uint8_t *to);
	/* n values of each of two rows, in turn, as they are; and taken apart. */
	void (*zip)(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t *to);
	void (*unzip)(const uint8_t *from, uint32_t n, uint8_t *a, uint8_t *b);
	/* n outputs of a column: rows[i] has rows 2 i and 2 i + 1 in turn; split as in the table. */
	void (*down)(const uint8_t *const rows[], uint32_t pairs, const int16_t *split, uint32_t n,
		     uint8_t *to);
	/* n values in the other order. */
	void (*mirror)(const uint8_t *from, uint32_t n, uint8_t *to);
};
extern const struct plane_kernels plane_plain;
const struct plane_kernels *plane_avx2(void);   /* NULL where the machine lacks AVX2 */
const struct plane_kernels *plane_avx512(void); /* NULL where it lacks AVX-512's VBMI and VNNI */
const struct plane_kernels *plane_neon(void);   /* NULL where it is not an AArch64 one */

static inline const struct plane_kernels *plane_best(void)
{
	const struct plane_kernels *fast = plane_avx512();

	if (!fast)
		fast = plane_avx2();
	if (!fast)
		fast = plane_neon();
	return fast ? fast : &plane_plain;
}
