/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Philox4x32-10 (see philox.h for the paper), and draws from a sequence of its blocks.
 *
 * Everything here is frozen: recorded nonces, tokens and the permutation depend on each value. What is drawn
 * how is therefore part of the contract:
 *   u32    the next word of the block; words 0, 1, 2, 3, then the next block
 *   u64    two u32, the low half first (it may cross a block)
 *   unit   the upper 53 bits of a u64
 *   below  bound <= 2^32: the upper half of u32 x bound, else of u64 x bound; a product whose lower
 *          half is below 2^32 (2^64) mod bound is drawn again (Lemire's method), so no bias
 *   gamma  Marsaglia's and Tsang's method ("A simple method for generating gamma variables", ACM TOMS 26, 2000). Below
 *          shape = 1 that is Gamma(shape + 1) u^(1 / shape), which underflows for small shapes, so all is logarithms
 */

#include "base/philox.h"

#include <math.h>

#include "base/exact.h"

enum { PHILOX_ROUNDS = 10, PHILOX_WORDS = 4 };

#define PHILOX_M0 0xd2511f53u
#define PHILOX_M1 0xcd9e8d57u
#define PHILOX_W0 0x9e3779b9u
#define PHILOX_W1 0xbb67ae85u

struct philox philox_block(uint64_t key, uint64_t a, uint64_t b)
{
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	struct philox x = {{(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)}};

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)PHILOX_M0 * x.word[0];
		uint64_t p1 = (uint64_t)PHILOX_M1 * x.word[2];

		x = (struct philox){{
		    (uint32_t)(p1 >> 32) ^ x.word[1] ^ k0,
		    (uint32_t)p1,
		    (uint32_t)(p0 >> 32) ^ x.word[3] ^ k1,
		    (uint32_t)p0,
		}};
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	return x;
}

void philox_seq_init(struct philox_seq *seq, uint64_t key, uint64_t a, uint32_t stream)
{
	*seq = (struct philox_seq){
	    .key = key,
	    .a = a,
	    .b = (uint64_t)stream << 32,
	    .used = PHILOX_WORDS,
	};
}

uint32_t philox_u32(struct philox_seq *seq)
{
	if (seq->used == PHILOX_WORDS) {
		seq->block = philox_block(seq->key, seq->a, seq->b);
		/* After 2^34 words a stream begins again; it never runs into the next one. */
		seq->b = (seq->b & ~(uint64_t)UINT32_MAX) | (uint32_t)(seq->b + 1);
		seq->used = 0;
	}
	return seq->block.word[seq->used++];
}

uint64_t philox_u64(struct philox_seq *seq)
{
	uint64_t low = philox_u32(seq);

	return low | (uint64_t)philox_u32(seq) << 32;
}

static uint32_t philox_below_32(struct philox_seq *seq, uint64_t bound)
{
	uint64_t product = philox_u32(seq) * bound;

	if ((uint32_t)product < bound) {
		uint32_t least = (uint32_t)((UINT64_C(1) << 32) % bound);

		while ((uint32_t)product < least)
			product = philox_u32(seq) * bound;
	}
	return (uint32_t)(product >> 32);
}

uint64_t philox_below(struct philox_seq *seq, uint64_t bound)
{
	unsigned __int128 product;

	if (bound <= UINT64_C(1) << 32)
		return philox_below_32(seq, bound);
	product = (unsigned __int128)philox_u64(seq) * bound;
	if ((uint64_t)product < bound) {
		uint64_t least = -bound % bound;

		while ((uint64_t)product < least)
			product = (unsigned __int128)philox_u64(seq) * bound;
	}
	return (uint64_t)(product >> 64);
}

double philox_unit(struct philox_seq *seq)
{
	return (double)(philox_u64(seq) >> 11) * 0x1p-53;
}

/* In (0, 1]. */
static double philox_above_0(struct philox_seq *seq)
{
	return 1 - philox_unit(seq);
}

static double philox_normal(struct philox_seq *seq)
{
	double radius = sqrt(-2 * exact_log(philox_above_0(seq)));

	return radius * exact_cos(2 * 3.14159265358979323846 * philox_unit(seq));
}

/* shape >= 1 */
static double philox_log_gamma_from_1(struct philox_seq *seq, double shape)
{
	double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = philox_normal(seq), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (exact_log(philox_above_0(seq)) < x * x / 2 + d - d * v + d * exact_log(v))
			return exact_log(d) + exact_log(v);
	}
}

double philox_log_gamma(struct philox_seq *seq, double shape)
{
	double above;

	if (shape >= 1)
		return philox_log_gamma_from_1(seq, shape);
	above = philox_log_gamma_from_1(seq, shape + 1);
	return above + exact_log(philox_above_0(seq)) / shape;
}
