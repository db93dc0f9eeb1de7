/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The insides of a mix, shared by mix.c and mix_open.c. */

#include <pthread.h>
#include "libaccess/guard.h"
#include "libaccess/libaccess.h"
#include "libaccess/stream.h"
#include "plan/mix/blend.h"

struct mix_part {
	struct oa_stream *stream;  /* owned; endless, of one sample a batch with OA_MIX_SAMPLES */
	uint64_t units;            /* of one of its own epochs */
	struct progress_mark mark; /* before the batch under way */
};

struct oa_mix {
	struct guard guard; /* never changes */
	pthread_mutex_t lock;
	/* lock */
	bool is_busy; /* a thread is in a call */
	struct diag error;

	/* set by oa_mix_open(), never changes after */
	/* Owned; with OA_MIX_SAMPLES: that of the batches, served by nobody */
	struct oa_stream *own;
	struct blend blend;
	uint32_t batch, flags, n_parts;
	uint64_t epochs, seed, length; /* length: units of an epoch */
	enum oa_mix_end end;
	enum oa_mix_unit unit;

	/* whoever is in a call */
	uint64_t epoch, step, at;   /* of the next batch; at: units given in the epoch before it */
	struct blend_place place;   /* behind the batch under way */
	struct oa_batch *under_way; /* owned; NULL: none */
	uint32_t count, filled;     /* of it */
	uint32_t *turns;            /* in it: the part of each sample */
	bool *is_marked; /* owned; room for a batch: is the sample of its part's marked epoch? */
	int64_t *ids;    /* owned; scratch of as many */
	struct mix_part part[BLEND_MAX_PARTS];
};
