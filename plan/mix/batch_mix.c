/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What mixup and cutmix draw for a batch.
 *
 * Lambda is of Beta(alpha, alpha): x / (x + y) of two draws of Gamma(alpha), by their logarithms.
 *
 * The box of cutmix is torchvision's: a middle drawn among all pixels, sides that are the root of 1 - lambda
 * of the picture's, cut off at its borders, and lambda afterwards what is left of the picture.
 */

#include "plan/mix/batch_mix.h"

#include <math.h>

#include "base/exact.h"
#include "base/philox.h"

#define BATCH_MIX_DOMAIN UINT64_C(0x6f616d696e676c65)

bool batch_mix_is_good(const struct batch_mix_op *ops, uint32_t n)
{
	double sum = 0;

	if (n > BATCH_MIX_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (ops[i].kind != BATCH_MIX_MIXUP && ops[i].kind != BATCH_MIX_CUTMIX)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (ops[k].kind == ops[i].kind)
				return false;
		if (!(ops[i].alpha >= BATCH_MIX_LEAST_ALPHA &&
		      ops[i].alpha <= BATCH_MIX_MOST_ALPHA) ||
		    !(ops[i].p >= 0 && ops[i].p <= 1))
			return false;
		sum += ops[i].p;
	}
	return sum <= 1;
}

static double batch_mix_beta(struct philox_seq *seq, double alpha)
{
	double x = philox_log_gamma(seq, alpha), y = philox_log_gamma(seq, alpha);

	return 1 / (1 + exact_exp(y - x));
}

static uint32_t batch_mix_edge(double middle, double half, uint32_t most)
{
	return (uint32_t)BASE_MIN(BASE_MAX(middle + half, 0.0), (double)most);
}

static void batch_mix_box(struct philox_seq *seq, uint32_t height, uint32_t width,
			  struct batch_mix *batch_mix)
{
	double x = (double)philox_below(seq, width), y = (double)philox_below(seq, height);
	double r = 0.5 * sqrt(1 - batch_mix->lambda);
	double across = floor(r * width), down = floor(r * height), area;

	batch_mix->left = batch_mix_edge(x, -across, width);
	batch_mix->right = batch_mix_edge(x, across, width);
	batch_mix->top = batch_mix_edge(y, -down, height);
	batch_mix->bottom = batch_mix_edge(y, down, height);
	area = (double)(batch_mix->right - batch_mix->left) * (batch_mix->bottom - batch_mix->top);
	batch_mix->lambda = 1 - area / ((double)width * height);
}

struct batch_mix batch_mix_draw(const struct batch_mix_op *ops, uint32_t n,
				const struct batch_mix_key *key, uint32_t height, uint32_t width)
{
	struct philox first =
	    philox_block(key->seed ^ BATCH_MIX_DOMAIN, key->nonce, (uint64_t)key->sample);
	struct batch_mix batch_mix = {.kind = BATCH_MIX_NONE, .lambda = 1};
	struct philox_seq seq;
	double u;

	philox_seq_init(&seq, philox_half(&first, 0), (philox_half(&first, 1)) + key->epoch, 0);
	u = philox_unit(&seq);
	for (uint32_t i = 0; i < n; i++) {
		if (u >= ops[i].p) {
			u -= ops[i].p;
			continue;
		}
		batch_mix.kind = ops[i].kind;
		batch_mix.lambda = batch_mix_beta(&seq, ops[i].alpha);
		if (batch_mix.kind == BATCH_MIX_CUTMIX)
			batch_mix_box(&seq, height, width, &batch_mix);
		break;
	}
	return batch_mix;
}
