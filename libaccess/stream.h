/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The insides of a stream, shared by the files of libaccess/ that work on it.
 *
 * Two locks, in this order: the turn, which the one thread has that is inside oa_next() (others
 * wait for it on a semaphore, as such a wait ends when a signal arrives), and `lock`, which guards
 * what its comments say and is dropped while oa_next() sleeps. Functions here are called with
 * `lock` unless they say otherwise.
 */

#include <pthread.h>
#include "libaccess/callers.h"
#include "libaccess/guard.h"
#include "libaccess/libaccess.h"
#include "libaccess/batch_mixed.h"
#include "libaccess/pollable.h"
#include "libaccess/progress_token.h"
#include "libaccess/record.h"
#include "libaccess/connect/redial.h"
#include "shmring/bad_list.h"

enum { STREAM_NOTHING = HELD_NONE }; /* nothing to hand out now */

struct oa_stream {
	/*
	 * First, and together, what the path of a ready batch touches: after a training step none
	 * of it is in a cache, and each page of it costs a walk through the page tables.
	 */
	struct guard guard; /* never changes */
	pthread_mutex_t lock;
	/* lock */
	struct session *session; /* NULL: lost, dialling */
	struct chunks chunks;
	struct oa_batch *batch_pool;
	struct carries carries;
	uint32_t flags; /* never changes */
	bool
	    is_batch_mixed; /* by mixup, cutmix, mosaic or an objective: batches are private copies */
	bool is_idle;       /* the last look found nothing; see next_is_ready() */
	bool is_closed;
	bool has_slept, has_copied; /* in this call of oa_next() */
	struct oa_stats stats;
	struct progress progress;
	struct trouble trouble;
	struct callers callers;
	struct redial redial; /* turn */
	struct pollable pollable;

	/* set by oa_open(), never changes after */
	struct course course;
	uint32_t *parts; /* owned; of a mix: this part's number, once a sample of a batch */
	struct schema schema;
	const struct schema *shown;     /* what batches show: schema, or batch_mixed.schema */
	struct batch_mixed batch_mixed; /* but for its pool: that has the lock */

	/* lock */
	struct record record;
	struct met met;
};

/* ---- stream.c ---- */
/* An empty stream. 0 or negative errno; oa_close(). */
int stream_alloc(const struct dial_route *route, struct oa_stream **ret);
/* May its batches become private? */
bool stream_has_view(const struct oa_stream *stream);
/* What oa_open() was told of batches. */
void stream_set_flags(struct oa_stream *stream, uint32_t flags);
/* A stream that nobody serves, for batches with the fields of another one that are put together
 * elsewhere. 0 or negative errno; oa_close(). */
int stream_new_like(const struct oa_stream *other, uint32_t batch, uint32_t flags,
		    struct oa_stream **ret);
/* A closed stream that no thread is in gives back what only oa_next() needs. */
BASE_COLD void stream_shut(struct oa_stream *stream);
/* Closed, no batch is held, no thread is in it: the caller unlocks and frees it. */
bool stream_is_unused(const struct oa_stream *stream);
BASE_COLD void stream_free(struct oa_stream *stream); /* without the lock */

/* ---- stream_adopt.c ---- */
/* Makes session the stream's (consumed). The first one sets fields, sizes and deal; a later one
 * must agree with them. 0, or OA_E_DATASET, OA_E_PIPELINE, OA_E_TOKEN, OA_E_INVALID, -ENOMEM:
 * session is then unreferenced. */
int stream_adopt(struct oa_stream *stream, struct session *session, struct diag *diag);
/* The session is of no use any more: what was not delivered goes back into need and tail. */
BASE_COLD void stream_lose(struct oa_stream *stream, const char *why);

/* ---- stream_options.c ---- */
/* The caller's options, as far as his version of the struct has them. 0, OA_E_INVALID,
 * OA_E_VERSION. */
int stream_read_options(const struct oa_options *from, struct oa_options *ret, struct diag *diag);
/* Each by itself, and the sampler. 0, or OA_E_INVALID, OA_E_VERSION with diag naming the member. */
int stream_check_options(const struct oa_options *options, struct diag *diag);
/* Ranks find each other by their job's name: is there one where it is needed? 0 or OA_E_INVALID. */
int stream_check_job(const struct oa_options *options, struct diag *diag);
/* The request that is sent in OPEN, but for the data set: copies. 0 or -ENOMEM; dial_open_fini() in both cases. */
int stream_set_open(struct dial_open *open, const struct oa_options *options);

/* ---- stream_token.c ---- */
/* progress_token() of the stream. */
int stream_token(struct oa_stream *stream, const struct progress_mark *mark, void **ret,
		 size_t *ret_size);

/* ---- ranked.c: one rank of several ---- */
/* As next_try(), or NEXT_LOOP: look again. */
int ranked_step(struct oa_stream *stream, struct oa_batch **ret);

/* ---- next.c ---- */
enum {
	NEXT_LOOP = STREAM_NOTHING + 1, /* something was consumed: look again */
	NEXT_EMPTY,                     /* an epoch ended that had no sample: see empty_epoch.c */
};
/* The next chunk, or the one of that grant: NEXT_LOOP, STREAM_NOTHING, or the end of the call. */
int next_chunk(struct oa_stream *stream, uint64_t only);
int next_keep(struct oa_stream *stream);
/* All of the epoch is consumed, but for what makes no batch. NEXT_LOOP, NEXT_EMPTY. */
int next_epoch(struct oa_stream *stream, uint64_t dropped);
int next_window(struct oa_stream *stream, uint32_t count, bool is_last, struct oa_batch **ret);
int next_carried(struct oa_stream *stream, struct carry **from, bool is_last,
		 struct oa_batch **ret);
/* Copies count samples at the cursor into private buffers. 0 or -ENOMEM. */
int next_carry(struct oa_stream *stream, struct held *held, uint32_t count);
int next_contradiction(struct oa_stream *stream);
/* Counts the hole at the cursor. */
void next_count_hole(struct oa_stream *stream, const struct held *held);
/* The cursor has left the chunk. */
void next_spend(struct oa_stream *stream, struct held *held);
bool next_may_pin(const struct oa_stream *stream); /* may a short batch be a window? */
/* A batch if one is ready: 0, STREAM_NOTHING or what oa_next() returns. Never blocks. */
int next_try(struct oa_stream *stream, struct oa_batch **ret);
/* Would next_try() have something else to say than the last time? */
bool next_is_ready(const struct oa_stream *stream);

/* ---- overtake.c: the cursor's chunk waits for a sample ---- */
/* NEXT_LOOP: the cursor is in another one; STREAM_NOTHING, -ENOMEM. */
int overtake_step(struct oa_stream *stream);
/* Would it find one? */
bool overtake_is_ready(const struct oa_stream *stream);
/* No chunk has the cursor: it goes back to the one that was set aside. false: there is none. */
bool overtake_back(struct oa_stream *stream);

/* ---- wait.c ---- */
/* A call begins that may wait and is not oa_next(), and ends: it frees a stream that was closed
 * meanwhile. Without the lock. */
void wait_enter(struct oa_stream *stream);
void wait_leave(struct oa_stream *stream);
/* Finds out whether there still is a session, and connects again if there is none, as oa_next() would,
 * but for taking a batch. 0: there is one; else what oa_next() would return. */
int wait_session(struct oa_stream *stream, int timeout_ms, uint64_t deadline);

/* ---- samples/bad_samples.c ---- */
/* The list as of now, ordered by id, without dialling anew for the job. 0; else with diag. Without the lock. */
int bad_samples_look(struct oa_stream *stream, uint64_t deadline, struct bad_list *list,
		     struct diag *diag);

/* ---- empty_epoch.c ---- */
/* The epoch ends. Had it holes, and no sample? */
bool empty_epoch_note(struct oa_stream *stream, uint64_t dropped);
/* next_try() said NEXT_EMPTY: the stream fails, or 0: it goes on. Drops the lock. */
BASE_COLD int empty_epoch_fail(struct oa_stream *stream, uint64_t deadline);

/* ---- stall.c ---- */
/* The text of a time-out: which stage stalls. Returns OA_E_TIMEOUT. */
BASE_COLD int stall_diagnose(struct oa_stream *stream, int timeout_ms);

/* ---- batch.c ---- */
struct oa_batch *batch_new(struct oa_stream *stream); /* from the pool; NULL: no memory */
/* Gives back what the batch has of its stream. */
void batch_let_go(struct oa_stream *stream, struct oa_batch *batch);
/* The end of a batch. */
void batch_end(struct oa_stream *stream, struct oa_batch *batch);
