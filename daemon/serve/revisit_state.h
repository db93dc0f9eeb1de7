/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a stream has of looks at resident chunks (daemon/serve/revisit.h). */

#include "base/base.h"

struct revisit {
	uint64_t opened; /* jobs that came so far: all ranks of one are one */
	/* Owned; of each slot: how many had come when its files were as listed. NULL: all are taken as they are. */
	uint64_t *as_of;
	/* What the reader is asked about */
	bool is_asked;
	uint64_t id, instance, as_of_asked;
	uint32_t slot, next; /* next: the first sample of the chunk that it is not asked about */
};

/* Have a slot's files been looked at since a job came, of which revisit_opened() said that? */
static inline bool revisit_is_known(const struct revisit *revisit, uint32_t slot, uint64_t since)
{
	return !revisit->as_of || revisit->as_of[slot] >= since;
}

/* One more job came, with all its ranks. */
static inline uint64_t revisit_opened(struct revisit *revisit)
{
	return ++revisit->opened;
}

/* A chunk, whose files are read now. */
static inline void revisit_begun(struct revisit *revisit, uint32_t slot)
{
	if (revisit->as_of)
		revisit->as_of[slot] = revisit->opened;
}
