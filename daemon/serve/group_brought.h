/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The log of a group that is to be founded, made step by step: a new one, or the one of a group under another
 * accessd, which was killed, brought by a rank or kept in a file (group_keep.c), which is read and checked.
 */

#include "daemon/serve/group_keep.h"
#include "plan/entry.h"
#include "plan/token.h"
#include "shmring/plan_log.h"

struct carousel_log;
struct conn;
struct stream;

enum brought_stage { BROUGHT_RESERVE, BROUGHT_READ, BROUGHT_CHECK, BROUGHT_LIST, BROUGHT_ADD };

struct brought {
	struct stream *stream;
	struct domain *payer; /* whose memory it is: group_pay() */
	bool is_new;          /* there is nothing to be read */
	const struct token *token;
	struct entry_set set;

	struct plan_log from; /* the one that is read */
	bool is_newest;       /* nobody has a longer one of it */
	uint64_t offset, end; /* of the next record; behind the last one */
	enum brought_stage stage;
	struct entry entry; /* the one that is being added */
	uint32_t at;        /* so far */
	int64_t *ids;       /* owned; its samples, if it had whole blocks, */
	uint32_t listed;    /* so many so far */
	struct entry last;  /* of those that were read; its arrays are gone */

	struct entry_rest rest;   /* what it leaves, and where it ends */
	uint64_t epoch, place;    /* where the rank that brings it is in it */
	struct carousel_log *log; /* what the group is founded with */
	struct plan_log plan_log;
	int plan_log_fd;
	struct keep keep;
};

enum { BROUGHT_E_MORE = 1, BROUGHT_E_BAD = 2, BROUGHT_E_PARTED = 3 };

struct brought_from { /* what the rank that brings it has; borrowed */
	const struct token *token;
	/* What the token leaves, counted; its positions need not be there */
	const struct entry_rest *rest;
	/* It is accessd's own, and nobody has a longer one; else the group is another version of the plan: group.c. */
	bool is_newest;
	/* It must be of the plan that the token names; else one that began with the token, */
	bool is_named;
	uint64_t origin; /* whose hash is this, or with none if that is 0 */
	/* Id of accessd's own, which lacks the token's place: what is brought must go on with it; NULL: there is none. */
	const uint8_t *beside;
};

/*
 * Begins to read the plan log behind fd. set is borrowed, and what is known of it. 0; BROUGHT_E_BAD: it is none, or there
 * is no memory; BROUGHT_E_PARTED: it is accessd's own, another version of the token's plan that lacks its place, or has parted from the
 * one beside it. The caller ends it by brought_fini() in any case.
 */
int brought_begin(struct brought *log, struct conn *conn, int fd, const struct brought_from *from,
		  const struct entry_set *set);
/* The same for a new log, of a group that begins with the token, whose hash is origin. */
int brought_begin_new(struct brought *log, const struct conn *conn, const struct token *token,
		      uint64_t origin);
/* One step: BROUGHT_STEP bytes of memory, or a record, at most. 0: that was all of it, and it fits; BROUGHT_E_MORE;
 * BROUGHT_E_BAD: it does not fit, or there is no memory. */
#define BROUGHT_STEP (UINT64_C(1) << 20)
int brought_step(struct brought *log);
/* What was added so far is kept. */
void brought_save(struct brought *log);
/* What the group did not take. */
void brought_fini(struct brought *log);
