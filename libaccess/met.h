/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Samples that a job came to and that were bad, whatever became of them: a bitmap over ids. */

#include "base/base.h"
#include "base/bits.h"

struct empty_epoch { /* the last one that had no sample, and why */
	uint64_t epoch, places, skipped, filtered, dropped;
	uint64_t skipped_before, filtered_before; /* the present one: as of stats */
};

struct met {
	uint64_t *bits;      /* owned; NULL: none */
	uint64_t n;          /* samples of the data set */
	uint64_t explain_ns; /* accessd was asked about the last one, until then; 0: was not */
	struct empty_epoch empty;
};

/* 0 or -ENOMEM. */
static inline int met_init(struct met *met, uint64_t n)
{
	*met = (struct met){.bits = calloc(bits_words(n) + 1, sizeof(*met->bits)), .n = n};
	return met->bits ? 0 : -ENOMEM;
}

static inline void met_note(struct met *met, int64_t id)
{
	if (met->bits && (uint64_t)id < met->n)
		bits_set(met->bits, (uint64_t)id);
}
