/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a rank under the carousel knows of its job's plan (plan/entry.h, shmring/plan_log.h): the log
 * from its own steps on, and what the samples are that no rank has had after so many steps.
 */

#include "plan/entry.h"
#include "shmring/plan_log.h"

struct plan_reader {
	struct plan_log plan_log; /* map NULL: none yet */
	int fd;                   /* owned, -1: none; to be shown to another accessd */
	uint64_t offset;          /* of the first record that is not passed */
	uint64_t ahead_offset, ahead_epoch, ahead_place; /* so far it was looked at */
	bool is_short; /* plan_reader_look() did not find what it looked for */
};

enum { PLAN_READER_E_SHORT = 1, PLAN_READER_E_GONE = 2, PLAN_READER_E_BAD = 3 };

void plan_reader_fini(struct plan_reader *plan_reader);
/* Goes on with this plan log (taken, and *fd) at a place of its epoch, at which this is the rest. 0 or
 * PLAN_READER_E_BAD: it is of something else, or its place is none. */
int plan_reader_adopt(struct plan_reader *plan_reader, const struct entry_set *set,
		      struct entry_rest *rest, struct plan_log *plan_log, int *fd, uint64_t epoch,
		      uint64_t place);
/* Does the log reach to the place? 0, PLAN_READER_E_SHORT, others. */
int plan_reader_look(struct plan_reader *plan_reader, uint64_t epoch, uint64_t place);
/* Has it grown since plan_reader_look() looked in vain? */
bool plan_reader_has_grown(const struct plan_reader *plan_reader);
/* The rest goes on to the place, or, if whole, to the last entry that ends there or before. 0, PLAN_READER_E_...,
 * -ENOMEM. */
int plan_reader_pass(struct plan_reader *plan_reader, const struct entry_set *set,
		     struct entry_rest *rest, uint64_t place, bool whole);
/* A copy of what is left at the place: to be ended by entry_rest_fini(). */
int plan_reader_rest(struct plan_reader *plan_reader, const struct entry_set *set,
		     const struct entry_rest *rest, uint64_t place, struct entry_rest *ret);
