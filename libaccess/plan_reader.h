/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a rank under the carousel knows of its job's plan (sched/entry.h, shmring/plan_log.h): the log
 * from its own steps on, and what the samples are that no rank has had after so many steps.
 */

#include "base/base.h"
#include "sched/entry.h"
#include "sched/token.h"
#include "shmring/plan_log.h"

struct plan_reader_at { /* a place in the log, and what is left there */
	struct entry_rest rest;
	uint64_t offset; /* of the first record that is not passed */
};

struct plan_reader {
	struct plan_log plan_log; /* map NULL: none yet */
	int fd;                   /* owned, -1: none; to be shown to another accessd */
	struct plan_reader_at at; /* at or below what is delivered */
	uint64_t total;           /* places of the epoch it is in */
	uint64_t ahead_offset, ahead_epoch, ahead_place; /* so far it was looked at */
	bool is_short; /* plan_reader_look() did not find what it looked for */
};

enum { PLAN_READER_E_SHORT = 1, PLAN_READER_E_GONE = 2, PLAN_READER_E_BAD = 3 };

/* From a token (NULL: the start of epoch 0); all of an epoch delivered is the start of the next. 0 or
 * -ENOMEM. */
int plan_reader_init(struct plan_reader *plan_reader, const struct entry_set *set,
		     const struct token *token);
void plan_reader_fini(struct plan_reader *plan_reader);
/* Goes on with this plan log (taken, and *fd) at a place of its epoch. 0 or PLAN_READER_E_BAD: it is of
 * something else, or its place is none. */
int plan_reader_adopt(struct plan_reader *plan_reader, const struct entry_set *set,
		      struct plan_log *plan_log, int *fd, uint64_t epoch, uint64_t place);
/* Does the log reach to the place? 0, PLAN_READER_E_SHORT, others. */
int plan_reader_look(struct plan_reader *plan_reader, uint64_t epoch, uint64_t place);
/* Has it grown since plan_reader_look() looked in vain? */
bool plan_reader_has_grown(const struct plan_reader *plan_reader);
/* Up to the place, or, if whole, to the last entry that ends there or before. 0, PLAN_READER_E_..., -ENOMEM. */
int plan_reader_pass(struct plan_reader *plan_reader, const struct entry_set *set, uint64_t place,
		     bool whole);
/* A copy of what is left at the place: to be ended by entry_rest_fini(). */
int plan_reader_rest(struct plan_reader *plan_reader, const struct entry_set *set, uint64_t place,
		     struct entry_rest *ret);
/* The next epoch. false: something of this one is left. */
bool plan_reader_next_epoch(struct plan_reader *plan_reader, const struct entry_set *set);
