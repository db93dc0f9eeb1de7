/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a job stands in its course: what its token says. With the stream's lock. */

#include "libaccess/course.h"
#include "libaccess/held.h"
#include "libaccess/listed.h"
#include "libaccess/plan_reader.h"
#include "libaccess/trouble.h"
#include "plan/ranks/ranks.h"
#include "plan/ranks/slice.h"

/* The instances that the job has seen, so that it is not given them again: the newest last. */
struct progress_seen {
	uint64_t seed; /* of the stream that made them */
	uint64_t nonces[TOKEN_MAX_NONCES];
	uint32_t n;
};

struct progress {
	const struct course *course; /* borrowed */
	struct trouble *trouble;     /* borrowed: the stream's */
	uint64_t epoch;
	uint64_t step;      /* batches of this epoch */
	uint64_t delivered; /* samples of this epoch that oa_next() returned */
	uint64_t left;      /* of this epoch, not delivered, skipped or dropped; carried ones too */
	uint64_t n_carried; /* taken, and not delivered: they lie in private buffers */
	/* What was not taken, but for the cursor's chunk; of ranks, what their steps leave. A fixed plan has none. */
	struct entry_rest rest;
	bool has_begun;
	bool is_whole;    /* it began where the job does, without a token */
	uint64_t n_ended; /* epochs that ended since the stream was opened */
	bool has_ended;   /* all of them are delivered */
	/* Fixed plans have these instead of a rest: in the epoch's order, the place up to which
	 * all was delivered (or skipped), and the cursor's, a local one; between them lies what is carried.
	 * So have ranks, in the order of their log. */
	uint64_t place, cursor;
	/* With several ranks place is not kept: it follows from where they began in this epoch. */
	uint64_t base, base_step;
	uint64_t places; /* of the epoch, with a fixed plan or ranks */
	/* Of these, what this node's ranks read: chunks are ones of its local places, and so is the cursor's
	 * place. On one node they are the plan's. */
	struct slice slice;
	uint64_t local_places;
	/* Holes that were counted and are passed again after a loss of the session, as they are behind the
	 * place, or the steps that are done. */
	uint64_t skipped, filtered;
	struct plan_reader log; /* of ranks under the carousel */
	struct listed listed;   /* of a list */
	struct progress_seen seen;
};

void progress_init(struct progress *progress, const struct course *course, struct trouble *trouble);
void progress_fini(struct progress *progress);
/* The job begins, or goes on with a token (NULL: at the start). 0 or -ENOMEM. */
int progress_begin(struct progress *progress, const struct token *token);
/* A tail chunk was taken: its samples are not left any more. 0 or -ENOMEM. */
int progress_take_tail(struct progress *progress, const struct held *held);
/* The slice of the epoch, as of where its ranks begin in it; the cursor goes to the place. */
void progress_set_slice(struct progress *progress);
/* Samples of the epoch that were not delivered. */
uint64_t progress_left(const struct progress *progress);
/* Samples that the next chunk may have; aside: of the one that was set aside. */
uint64_t progress_lacking(const struct progress *progress, uint32_t aside);
/* The cursor leaves the chunk: its blocks leave the rest, if it is of this epoch. */
void progress_fold(struct progress *progress, const struct held *held);
/* Notes the chunk's nonce, once. */
void progress_note_seen(struct progress *progress, struct held *held);
/* The cursor went over count samples: they are delivered, carried or holes. */
void progress_pass(struct progress *progress, uint32_t count);
/* What was carried was delivered. */
void progress_settle(struct progress *progress);
/* The keys of count samples of a chunk of this epoch, from its first on. */
void progress_keys(const struct progress *progress, const struct held *held, uint32_t first,
		   uint32_t count, struct listing_key *ret);
/* Sends accessd the lists that are due; a failure is the stream's. */
void progress_feed(struct progress *progress, int sock);
/* The epoch is delivered. false: something of it is left (nothing was changed). */
bool progress_next_epoch(struct progress *progress);

/* ---- several ranks ---- */
/* Of the epoch, from where they began in it. */
struct ranks progress_ranks(const struct progress *progress);
/* Steps done since then. */
static inline uint64_t progress_done(const struct progress *progress)
{
	return progress->step - progress->base_step;
}
/* The place in the epoch at which all ranks go on when they have done our steps. */
uint64_t progress_place(const struct progress *progress);
/* Goes on where accessd says that the rank is in its job's log. 0, or OA_E_VERSION, -EPROTO with diag. */
int progress_adopt(struct progress *progress, struct session *session, struct diag *diag);
/* 0; else the log cannot be followed, and the stream has failed, or -ENOMEM. */
int progress_follow(struct progress *progress, uint64_t place, bool whole);
