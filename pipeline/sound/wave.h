/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ops on waveforms, which stand between "audio" and a spectrogram: what they ask for, what they draw, and what they do
 * (wave.c). No library: these are in every build.
 *
 * They work on the frames that a sound has. The zeros behind it stay zeros, as if it were padded afterwards.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/spec/op.h"

struct wave {
	unsigned end;   /* ops from number 1 up to this one are on waveforms */
	uint32_t rate;  /* frames a second */
	uint32_t codes; /* of mu_law_encoding, how many: whole numbers come out; 0: floats */
};

struct wave_part { /* what an op works on: a channel */
	float *at;
	size_t n;
	uint32_t rate;
	float *spare; /* n more numbers, for whatever */
};

/* Of the ops behind audio, up to number `end`, for sounds of so many frames and frames a second. 0, or PIPELINE_E_BAD with diag. */
int wave_init(const struct op_list *ops, unsigned end, uint32_t rate, uint32_t frames,
	      struct wave *ret, struct diag *diag);
/* Of so many channels of `frames` numbers each, the first `has` of each. spare: memory for as many numbers. */
void wave_run(const struct wave *wave, const struct op_list *ops, const struct pipeline_key *key,
	      unsigned channels, size_t frames, int64_t has, float *at, float *spare);
/* The codes of n numbers. */
void wave_encode(const struct wave *wave, const float *at, size_t n, int64_t *out);
