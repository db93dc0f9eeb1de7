/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBACCESS_PLANLOG_H
#define LIBACCESS_PLANLOG_H

/*
 * What a rank under the carousel knows of its job's plan (sched/entry.h, shmring/scroll.h): the log
 * from its own steps on, and what the samples are that no rank has had after so many steps.
 */

#include "base/base.h"
#include "sched/entry.h"
#include "sched/token.h"
#include "shmring/scroll.h"

struct planlog_at { /* a place in the log, and what is left there */
	struct entry_rest rest;
	uint64_t offset; /* of the first record that is not passed */
};

struct planlog {
	struct scroll scroll; /* map NULL: none yet */
	int fd;               /* owned, -1: none; to be shown to another accessd */
	struct planlog_at at; /* at or below what is delivered */
	uint64_t total;       /* places of the epoch it is in */
	uint64_t ahead_offset, ahead_epoch, ahead_place; /* so far it was looked at */
	bool is_short; /* planlog_look() did not find what it looked for */
};

enum { PLANLOG_E_SHORT = 1, PLANLOG_E_GONE = 2, PLANLOG_E_BAD = 3 };

/* From a token (NULL: the start of epoch 0); all of an epoch delivered is the start of the next. 0 or
 * -ENOMEM. */
int planlog_init(struct planlog *planlog, const struct entry_set *set, const struct token *token);
void planlog_fini(struct planlog *planlog);
/* Goes on with this scroll (taken, and *fd) at a place of its epoch. 0 or PLANLOG_E_BAD: it is of
 * something else, or its place is none. */
int planlog_adopt(struct planlog *planlog, const struct entry_set *set, struct scroll *scroll,
		  int *fd, uint64_t epoch, uint64_t place);
/* Does the log reach to the place? 0, PLANLOG_E_SHORT, others. */
int planlog_look(struct planlog *planlog, uint64_t epoch, uint64_t place);
/* Has it grown since planlog_look() looked in vain? */
bool planlog_has_grown(const struct planlog *planlog);
/* Up to the place, or, if whole, to the last entry that ends there or before. 0, PLANLOG_E_..., -ENOMEM. */
int planlog_pass(struct planlog *planlog, const struct entry_set *set, uint64_t place, bool whole);
/* A copy of what is left at the place: to be ended by entry_rest_fini(). */
int planlog_rest(struct planlog *planlog, const struct entry_set *set, uint64_t place,
		 struct entry_rest *ret);
/* The next epoch. false: something of this one is left. */
bool planlog_next_epoch(struct planlog *planlog, const struct entry_set *set);

#endif
