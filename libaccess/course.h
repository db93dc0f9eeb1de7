/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The course of a job: in which order, which samples, how many epochs. Known when its stream is
 * open, and the same ever after; where the job stands in it is progress.h's.
 */

#include "libaccess/connect/dial.h"
#include "libaccess/part.h"
#include "libaccess/replay.h"
#include "libaccess/sampler.h"
#include "plan/entry.h"
#include "plan/permutation.h"
#include "plan/plan.h"
#include "plan/token.h"

struct course {
	bool is_ranked;              /* one of several ranks */
	bool is_logged;              /* and its plan is the job's log */
	bool is_listed;              /* a fixed plan that is a list */
	bool is_fixed;               /* batches are cut from the plan's order, none out of turn */
	bool is_placed;              /* fixed or ranked: where it stands is a place */
	uint32_t order;              /* enum plan_order */
	uint64_t seed;               /* of the fixed plan */
	uint64_t epochs;             /* 0: without end */
	uint64_t n_samples;          /* of an epoch, but of a list's */
	const struct dial_open *ask; /* borrowed: what else the job asked for */
	struct permutation permutation;
	uint8_t dataset[32], pipeline[32]; /* pipeline: hash of its canonical text */
	struct part part;                  /* which samples; bits NULL: all */
	struct sampler sampler;            /* the same, as it was asked for */
	struct replay replay;
};

void course_init(struct course *course, const struct dial_open *ask);
void course_fini(struct course *course);
/* The order and all that follows from it. */
void course_set_order(struct course *course, uint32_t order);
/* A token's, with the seed that belongs to it. */
void course_resume(struct course *course, const struct token *token);
/* Which samples an epoch has. */
struct entry_set course_set(const struct course *course);
/* What each token of the job says, whatever epoch it is of. */
struct token course_token(const struct course *course);
/* The step of the ranks that begins at or before the place. */
static inline uint64_t course_step_of(const struct course *course, uint64_t place)
{
	return place / ((uint64_t)course->ask->batch * course->ask->ranks);
}
