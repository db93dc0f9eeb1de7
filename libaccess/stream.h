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
#include "base/base.h"
#include "libaccess/callers.h"
#include "libaccess/course.h"
#include "libaccess/connect/dial.h"
#include "libaccess/guard.h"
#include "libaccess/libaccess.h"
#include "libaccess/listed.h"
#include "libaccess/batch_mixed.h"
#include "libaccess/plan_reader.h"
#include "libaccess/pollable.h"
#include "libaccess/record.h"
#include "libaccess/schema.h"
#include "libaccess/connect/session.h"
#include "libaccess/trouble.h"
#include "sched/ranks/slice.h"
#include "sched/token.h"

enum { STREAM_NOTHING = 300 }; /* nothing to hand out now */
/* A program that wrote to a batch gets so many copies, which it can write to for a quarter of what a page of
 * its own costs. Then it is looked again whether it still writes. */
enum { STREAM_COPIES = 64 };

/* A chunk that was taken. Its pointers are into its session's mappings. */
struct held {
	struct held *next;       /* in stream->chunks or stream->chunk_pool */
	struct session *session; /* one reference; NULL: it is kept */
	struct view *view;       /* one reference; NULL: batches are in slot */
	struct oa_batch *open;   /* with a view: the windows, by next */
	uint64_t number, instance, nonce, epoch;
	const uint8_t *slot, *status;
	const int64_t *ids;
	const uint32_t *blocks;
	uint64_t place; /* of its first sample, with a fixed plan; a local one */
	uint32_t slot_number, n_blocks;
	uint32_t at, end;   /* the cursor: [at, end) is not consumed yet */
	uint32_t clean;     /* [at, clean) has been looked at and has no hole */
	uint32_t watermark; /* as of the last look */
	uint32_t windows;   /* batches that lie in it and are not released */
	bool is_spent;      /* the cursor has left it */
	bool is_folded;     /* its blocks have left stream->need */
	bool is_seen;       /* something of it was delivered or carried: its nonce is noted */
	bool has_substitutes;
	const struct part *part; /* it has samples of others; NULL: it has none */
};

/* Room for one batch in private memory. */
struct carry {
	struct carry *next; /* in stream->full or stream->carry_pool */
	uint8_t *memory;    /* ids, then the fields' arrays */
	int64_t *ids;
	struct listing_key *keys; /* for a recording, or mixup and cutmix, else NULL */
	uint32_t count, substituted;
};

struct oa_batch {
	struct oa_batch *next; /* in stream->batch_pool or held->open */
	struct oa_stream *stream;
	struct held *held;   /* the window's chunk, or NULL: in carry */
	struct carry *carry; /* owned */
	/* Owned: everything is in it, and nothing elsewhere */
	struct batch_mixed_buffer *batch_mixed;
	const int64_t *ids;
	const uint32_t *parts; /* of a mix: the part that each sample is of */
	uint64_t epoch, step, kept;
	uint32_t first, count, substituted, copied;
	bool is_last, is_live;
	int64_t own_ids
	    []; /* with OA_KEEP: room for ids, which a slot that has gone back does not keep */
};

/* Where the job stands: what the token says. */
struct progress {
	uint64_t epoch;
	uint64_t step;      /* batches of this epoch */
	uint64_t delivered; /* samples of this epoch that oa_next() returned */
	uint64_t left;      /* of this epoch, not delivered, skipped or dropped; carried ones too */
	uint64_t *need;     /* bitmap of blocks not taken, but for chunks not yet folded */
	int64_t *tail;      /* other samples that were not taken: of begun blocks */
	uint32_t n_tail;
	uint64_t seed, nonces[TOKEN_MAX_NONCES];
	uint32_t n_nonces;
	/* Fixed plans have these instead of need and tail: in the epoch's order, the place up to which
	 * all was delivered (or skipped), and the cursor's, a local one; between them lies what is carried.
	 * So have ranks, in the order of their log. */
	uint64_t place, cursor;
	/* Holes that were counted and are passed again after a loss of the session, as they are behind the
	 * place, or the steps that are done. */
	uint64_t skipped, filtered;
	/* With several ranks place is not kept: it follows from where they began in this epoch. */
	uint64_t base, base_step;
};

/* Where a job stood a while ago. What it was given since may not have been passed on. */
struct progress_mark {
	uint64_t epoch, delivered; /* as a token says it */
	const int64_t *ids;        /* delivered since then, of that epoch; borrowed */
	uint32_t n_ids;
};

struct oa_stream {
	/*
	 * First, and together, what the path of a ready batch touches: after a training step none
	 * of it is in a cache, and each page of it costs a walk through the page tables.
	 */
	struct guard guard; /* never changes */
	pthread_mutex_t lock;
	/* lock */
	struct session *session; /* NULL: lost, dialling */
	uint64_t n_sessions;     /* so far */
	struct held *held;       /* the cursor is in it */
	struct held *aside;      /* overtaken: the cursor comes back to it; overtake.c */
	bool is_pinned_out;      /* nothing overtakes until a pin is free */
	struct held *chunks, *chunk_pool;
	struct oa_batch *batch_pool;
	struct carry *carry; /* being filled: fewer than a batch */
	struct carry *full, **full_end;
	uint64_t n_carried;   /* samples in carry and full */
	uint32_t flags;       /* never changes */
	uint32_t copies_left; /* batches that are copied, as the program writes to them */
	bool has_holes;       /* samples may be left out: bad ones, or by the pipeline's filter */
	bool is_batch_mixed;  /* by mixup or cutmix: batches are private copies */
	bool is_idle;         /* the last look found nothing; see next_is_ready() */
	bool has_ended;       /* all epochs are delivered */
	bool is_closed;
	bool has_slept, has_copied; /* in this call of oa_next() */
	uint64_t backoff_ns;        /* turn: between two tries to connect */
	struct oa_stats stats;
	struct progress progress;
	struct trouble trouble;
	struct callers callers;
	struct pollable pollable;

	/* set by oa_open(), never changes after */
	struct dial_route route;
	struct course course;
	uint32_t *parts; /* owned; of a mix: this part's number, once a sample of a batch */
	struct schema schema;
	const struct schema *shown;     /* what batches show: schema, or batch_mixed.schema */
	struct batch_mixed batch_mixed; /* but for its pool: that has the lock */

	/* lock: with is_logged, instead of progress.need and tail */
	struct plan_reader log;

	/* turn: its wait, and the way to a session */
	struct dial dial;
	struct dial_open open;
	uint64_t lost_ns; /* since when there is no session */
	uint64_t retry_ns;
	struct diag dial_error; /* why the last try failed */

	/* lock */
	struct carry *carry_pool;
	uint32_t n_carry_pool;
	uint32_t chunk;  /* C */
	uint64_t places; /* of the epoch, with a fixed plan or ranks */
	/* Of these, what this node's ranks read: chunks are ones of its local places, and so is the cursor's
	 * place. On one node they are the plan's. */
	struct slice slice;
	uint64_t local_places;
	struct record record;
	struct listed listed; /* of a list */
	uint64_t *met;        /* bitmap over ids: samples that it came to and were bad */
	uint64_t explain_ns;  /* accessd was asked about a bad sample, until then; 0: was not */
};

/* ---- stream.c ---- */
/* An empty stream. 0 or negative errno; oa_close(). */
int stream_alloc(const struct dial_route *route, struct oa_stream **ret);
/* May its batches become private? */
bool stream_has_view(const struct oa_stream *stream);
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
/* The request that is sent in OPEN: copies. 0 or -ENOMEM; dial_open_fini() in both cases. */
int stream_set_open(struct dial_open *open, const struct oa_options *options);

/* ---- held.c ---- */
/* Takes the next grant into stream->held; only: 0, or the number of the one that it may be. 0, STREAM_NOTHING, OA_E_PINS,
 * -ENOMEM; -EPROTO: the session contradicts itself (diag says how). */
int held_take(struct oa_stream *stream, uint64_t only, struct diag *diag);
/* Samples from the cursor on that are finished and no holes, at most want. -EPROTO: a status that
 * cannot be. */
int held_run(struct held *held, uint32_t want);
/* Samples of ours from .. to - 1 of the chunk. */
uint32_t held_count_own(const struct held *held, uint32_t from, uint32_t to);
/* What the cursor has not come to in the chunk, and of that ours; NULL: nothing. */
static inline uint32_t held_rest(const struct held *held)
{
	return held ? held->end - held->at : 0;
}
static inline uint32_t held_rest_own(const struct held *held)
{
	return held ? held_count_own(held, held->at, held->end) : 0;
}
/* Is the sample at the cursor + offset another job's? */
bool held_is_others(const struct held *held, uint32_t offset);
/* Status of the sample at the cursor + offset; only below the watermark. */
uint8_t held_status(const struct held *held, uint32_t offset);
/* Is a sample of that status left out, for whatever reason? */
static inline bool held_is_hole(uint8_t status)
{
	return status == LAYOUT_SAMPLE_SKIPPED || status == LAYOUT_SAMPLE_FILTERED;
}
/* Counts the hole at the cursor. */
void held_count_hole(struct oa_stream *stream, const struct held *held);
/* How many of the count samples at the cursor are substituted; notes that they are bad. */
uint32_t held_meet_substitutes(struct oa_stream *stream, const struct held *held, uint32_t count);
/* Looks at the watermark again. true: it moved. */
bool held_look(struct held *held);
bool held_has_moved(const struct held *held);
/* Notes the nonce, once. */
void held_note_seen(struct oa_stream *stream, struct held *held);
/* The cursor has left the chunk: it goes back to accessd when no window is open. */
void held_spend(struct oa_stream *stream, struct held *held);
void held_open_window(struct held *held, struct oa_batch *batch);
void held_close_window(struct oa_stream *stream, struct held *held, const struct oa_batch *batch);
/* The slot's memory as the library reads it. */
const uint8_t *held_memory(const struct held *held);
/* Are batches of it to be private copies, because pages of its slot's view are? */
bool held_is_private(const struct held *held);
/* No pin is free: the batches of the chunk that was taken first are made private, and it goes back. 0, or
 * OA_E_PINS: it cannot be done. */
int held_keep(struct oa_stream *stream);

/* ---- carry.c ---- */
struct carry *carry_new(struct oa_stream *stream); /* from the pool; NULL: no memory */
void carry_free(struct oa_stream *stream, struct carry *carry);
void carry_destroy(struct carry *carry); /* not into the pool */
/* Copies count samples at first of held behind what is there: all fields. */
void carry_copy(const struct oa_stream *stream, struct carry *carry, const struct held *held,
		uint32_t first, uint32_t count);
/* Moves count samples at the cursor into the carry (full ones go to stream->full). 0 or -ENOMEM. */
int carry_add(struct oa_stream *stream, struct held *held, uint32_t count);
void carry_clear(struct oa_stream *stream);           /* all that is carried, full ones too */
uint32_t carry_count(const struct oa_stream *stream); /* in the buffer being filled */

/* ---- progress.c ---- */
int progress_init(struct oa_stream *stream, const struct token *token); /* token NULL: the start */
void progress_fini(struct progress *progress);
/* A tail chunk was taken: its samples are not in the tail any more. */
void progress_take_tail(struct progress *progress, const int64_t *ids, uint32_t count);
/* The slice of the epoch, as of where its ranks begin in it; the cursor goes to the place. */
void progress_set_slice(struct oa_stream *stream);
/* Samples of the epoch that were not delivered. */
uint64_t progress_left(const struct oa_stream *stream);
/* The chunk's blocks leave need, which may be a copy. */
void progress_clear_blocks(const struct permutation *permutation, uint64_t *need,
			   const struct held *held);
/* The chunk's blocks leave the stream's need, if it is of this epoch. */
void progress_fold(struct oa_stream *stream, struct held *held);
/* So do those of all chunks that the cursor has left. */
void progress_fold_spent(struct oa_stream *stream);
/* The cursor went over count samples: they are delivered, carried or holes. */
void progress_pass(struct oa_stream *stream, uint32_t count);
/* What was carried was delivered. */
void progress_settle(struct oa_stream *stream);
/* The epoch is delivered. false: need says that something is missing (nothing was changed). */
bool progress_next_epoch(struct oa_stream *stream);

/* ---- progress_token.c ---- */
/* Takes everything back that was taken and not delivered. 0 or -ENOMEM. */
int progress_rewind(struct oa_stream *stream);
/* What a token says of how far the epoch is. */
uint64_t progress_after(const struct oa_stream *stream);
/* The token as it is sent in OPEN: heap, caller owns. 0 or -ENOMEM. */
int progress_token(struct oa_stream *stream, void **ret, size_t *ret_size);
void progress_mark(const struct oa_stream *stream, struct progress_mark *ret);
/* The token as of the mark (NULL: of now): what came since has not been delivered. */
int progress_token_as_of(struct oa_stream *stream, const struct progress_mark *mark, void **ret,
			 size_t *ret_size);
/* Copies token to data if it fits: 0, else -ENOBUFS. *size: in room, out the token's. */
int progress_copy_token(const void *token, size_t token_size, void *data, size_t *size);

/* ---- ranked.c: one rank of several ---- */
/* Of the epoch, from where they began in it. */
struct ranks ranked_ranks(const struct oa_stream *stream);
/* The place in the epoch at which all ranks go on when they have done our steps. */
uint64_t ranked_place(const struct oa_stream *stream);
/* Goes on where accessd says that the rank is in its job's log. */
int ranked_adopt(struct oa_stream *stream, struct session *session, struct diag *diag);
/* 0; else the log cannot be followed, and the stream has failed. */
int ranked_follow(struct oa_stream *stream, uint64_t place, bool whole);
/* As next_try(), or NEXT_LOOP: look again. */
int ranked_step(struct oa_stream *stream, struct oa_batch **ret);

/* ---- next.c ---- */
enum { NEXT_LOOP = STREAM_NOTHING + 1 }; /* something was consumed: look again */
int next_chunk(struct oa_stream *stream, uint64_t only);
int next_epoch(struct oa_stream *stream);
int next_window(struct oa_stream *stream, uint32_t count, bool is_last, struct oa_batch **ret);
int next_carried(struct oa_stream *stream, struct carry **from, bool is_last,
		 struct oa_batch **ret);
int next_contradiction(struct oa_stream *stream);
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
/* Reads what accessd has sent. Returns true if an explanation came (in *ret_text). */
bool wait_read_news(struct oa_stream *stream, struct diag *ret_text);
/* A call begins that may wait and is not oa_next(), and ends: it frees a stream that was closed
 * meanwhile. Without the lock. */
void wait_enter(struct oa_stream *stream);
void wait_leave(struct oa_stream *stream);
/* Finds out whether there still is a session, and connects again if there is none, as oa_next() would,
 * but for taking a batch. 0: there is one; else what oa_next() would return. */
int wait_session(struct oa_stream *stream, int timeout_ms, uint64_t deadline);

/* ---- stall.c ---- */
/* The text of a time-out: which stage stalls. Returns OA_E_TIMEOUT. */
BASE_COLD int stall_diagnose(struct oa_stream *stream, int timeout_ms);

/* ---- batch.c ---- */
struct oa_batch *batch_new(struct oa_stream *stream); /* from the pool; NULL: no memory */
/* The array of a field; without the lock. */
const void *batch_data(const struct oa_batch *batch, uint32_t index);
/* Gives back what the batch has of its stream. */
void batch_let_go(struct oa_stream *stream, struct oa_batch *batch);
/* The end of a batch. */
void batch_end(struct oa_stream *stream, struct oa_batch *batch);
