/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Chunks that were taken, and the windows into them: which one the cursor is in, which ones only wait for their
 * last batch. With the stream's lock.
 */

#include "libaccess/met.h"
#include "libaccess/part.h"
#include "libaccess/schema.h"
#include "libaccess/connect/session.h"
#include "plan/entry.h"

enum { HELD_NONE = 300 }; /* nothing was granted */
/* A program that wrote to a batch gets so many copies, which it can write to for a quarter of what a page of
 * its own costs. Then it is looked again whether it still writes. */
enum { HELD_COPIES = 64 };

/* A chunk that was taken. Its pointers are into its session's mappings. */
struct held {
	struct held *next;       /* in chunks->all or chunks->pool */
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
	bool is_seen;       /* something of it was delivered or carried: its nonce is noted */
	bool has_substitutes;
	const struct part *part; /* it has samples of others; NULL: it has none */
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
	/* With OA_KEEP: room for ids, which a slot that has gone back does not keep */
	int64_t own_ids[];
};

/* ---- batch.c ---- */
/* The array of a field; without the lock. */
const void *batch_data(const struct oa_batch *batch, uint32_t index);

/* ---- held.c ---- */
struct chunks {
	struct held *now;   /* the cursor is in it */
	struct held *aside; /* overtaken: the cursor comes back to it; overtake.c */
	struct held *all, *pool;
	uint32_t copies_left; /* batches that are copied, as the program writes to them */
	bool is_pinned_out;   /* nothing overtakes until a pin is free */
	bool has_holes;       /* samples may be left out: bad ones, or by the pipeline's filter */
	uint32_t size;        /* C */
};

/* What the next chunk may be. */
struct held_want {
	uint64_t epoch, lacking; /* lacking: samples of the epoch, at most */
	uint64_t place;          /* of its first sample */
	const struct part *part; /* whose samples it has */
	uint64_t only;           /* the number of its grant; 0: any */
};

/* Takes the next grant: chunks->now. 0, HELD_NONE, OA_E_PINS, -ENOMEM; -EPROTO: the session contradicts itself
 * (diag says how). */
int held_take(struct chunks *chunks, struct session *session, const struct held_want *want,
	      struct diag *diag);
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
/* How many of the count samples at the cursor are substituted; notes that they are bad. */
uint32_t held_meet_substitutes(const struct held *held, uint32_t count, struct met *met);
/* The chunk's blocks leave what is left. NULL: nothing does. */
void held_take_blocks(const struct held *held, const struct entry_set *set,
		      struct entry_rest *rest);
/* A copy of the ids from the cursor on: held_rest() of them. */
uint32_t held_copy_rest(const struct held *held, int64_t *ret_ids);
/* Looks at the watermark again. true: it moved. */
bool held_look(struct held *held);
bool held_has_moved(const struct held *held);
/* The cursor has left the chunk: it goes back to accessd when no window is open. */
void held_spend(struct chunks *chunks, struct held *held);
void held_open_window(struct held *held, struct oa_batch *batch);
void held_close_window(struct chunks *chunks, struct held *held, const struct oa_batch *batch);
/* The slot's memory as the library reads it. */
const uint8_t *held_memory(const struct held *held);
/* Are batches of it to be private copies, because pages of its slot's view are? */
bool held_is_private(const struct held *held);
/* No pin of the session is free: the batches of the chunk that was taken first are made private, and it goes
 * back. 0, *ret_count says how many samples; or OA_E_PINS: it cannot be done. */
int held_keep(struct chunks *chunks, const struct session *session, const struct schema *schema,
	      uint64_t *ret_count);
/* Frees the pool. */
void held_fini(struct chunks *chunks);
