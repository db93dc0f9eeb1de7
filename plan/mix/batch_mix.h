/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The arithmetic of mixup and cutmix, which join each sample of a batch with the one before it (the
 * first with the last), as torchvision.transforms.v2 does: what is drawn for a batch, and the sums.
 *
 * What is drawn is a function of the batch's first sample and its (seed, nonce), and of the epoch: of
 * nothing that a resumed, repeated or replayed run would have otherwise, and of no clock. With another
 * batch size the batches are others, and so is what is drawn. Frozen by known answers.
 */

#include "base/base.h"

#define BATCH_MIX_MAX 2 /* ops on one pipeline's batches: at most one of them is done to a batch */
#define BATCH_MIX_MAX_CLASSES 65536
#define BATCH_MIX_LEAST_ALPHA 0.001
#define BATCH_MIX_MOST_ALPHA 1000

enum batch_mix_kind { /* Frozen: in OPENED */
		      BATCH_MIX_NONE = 0,
		      BATCH_MIX_MIXUP = 1,
		      BATCH_MIX_CUTMIX = 2,
};

struct batch_mix_op {
	enum batch_mix_kind kind;
	double alpha; /* of the Beta distribution that lambda is of */
	double p;     /* the probability that this op is the batch's */
};

struct batch_mix_key { /* of the batch's first sample */
	uint64_t seed, nonce, epoch;
	int64_t sample;
};

struct batch_mix { /* of one batch */
	enum batch_mix_kind kind;
	double lambda;                     /* the sample's own share in its label */
	uint32_t top, left, bottom, right; /* cutmix: rows and columns of the other's pixels */
};

/* ---- batch_mix.c ---- */
/* Kinds that there are, at most once each, numbers in their ranges, probabilities up to 1 together. */
bool batch_mix_is_good(const struct batch_mix_op *ops, uint32_t n);
/* For good ops and pictures of height x width. */
struct batch_mix batch_mix_draw(const struct batch_mix_op *ops, uint32_t n,
				const struct batch_mix_key *key, uint32_t height, uint32_t width);

/* ---- batch_mix_sums.c: out = other (1 - lambda) + own lambda, rounded where torch rounds ---- */
/* After each product and after the sum; out is neither of the others. */
void batch_mix_f32(float *restrict out, const float *own, const float *other, size_t n,
		   double lambda);
void batch_mix_f16(uint16_t *restrict out, const uint16_t *own, const uint16_t *other, size_t n,
		   double lambda);
void batch_mix_bf16(uint16_t *restrict out, const uint16_t *own, const uint16_t *other, size_t n,
		    double lambda);
/* The same of two class numbers below n, as 0 and 1. */
void batch_mix_classes(float *restrict out, uint64_t own, uint64_t other, size_t n, double lambda);
