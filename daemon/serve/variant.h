/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_VARIANT_H
#define DAEMON_SERVE_VARIANT_H

/*
 * A variant: one of a stream's pipelines, with slots and a board of its own. All variants of a stream
 * have its chunks, grains and slots in common: slot 3 holds the same samples in each that the chunk was
 * made in, and one task writes them all.
 *
 *   OPENING --mapped and sealed, slots reserved, the stream runs--> RUNS --no job for a while--> LEAVES
 *   LEAVES --in no chunk in production--> GONE (memory given back) --REMOVED--> freed, its number is free
 *
 * A variant that is refused while it opens leaves the others alone: LEAVES.
 */

#include "base/base.h"
#include "base/hash.h"
#include "daemon/loop.h"
#include "daemon/proc/reserve.h"
#include "shmring/board.h"

struct conn;
struct domain;
struct fill;
struct pipeline;
struct stream;
struct carousel_chunk;

enum variant_state { VARIANT_OPENING, VARIANT_RUNS, VARIANT_LEAVES, VARIANT_GONE };

struct variant {
	struct stream *stream;
	uint32_t number; /* its bit in masks, in the carousel and the lane */
	enum variant_state state;
	struct domain *payer; /* whose share its memory is; a reference */
	struct pipeline *pipeline;
	struct hash_id key; /* of path, version, policy and pipeline: whom it serves */
	struct board board;
	int slots_fd, slots_read_fd, board_fd;
	bool is_mapped;         /* by the worker parent, and sealed */
	uint32_t slots;         /* reserved so far */
	uint64_t memory;        /* accounted to it */
	struct reserve reserve; /* more slots, under way */
	bool full;              /* the kernel gave no more memory for slots */
	unsigned n_conns, n_jobs;
	struct loop_watch *linger_timer;
};

/* Takes pipeline, where it succeeds. geometry is planned; payer pays. Its slots are not reserved yet,
 * and the worker parent does not know it. 0 or negative errno. */
int variant_new(struct stream *stream, struct pipeline *pipeline, const struct hash_id *key,
		const struct board_geometry *geometry, struct domain *payer, struct variant **ret);
/* Closes its slots: nobody is given them any more. Before others are told to let go, so that the last to hold
 * that memory, who frees it, is not accessd. */
void variant_let_go(struct variant *variant);
/* At once, with its stream or when nobody maps it. */
void variant_free(struct variant *variant);
void variant_account(struct variant *variant, int64_t bytes);
/* The geometry of a further variant of the stream with these fields. As board_plan(). */
int variant_plan(const struct stream *stream, const struct pipeline *pipeline,
		 struct board_geometry *ret);
/* The fields of a batch: the pipeline's, and the samples' ids. */
void variant_describe_fields(const struct pipeline *pipeline, struct board_geometry *geometry);

/* The variant of that number, NULL: there is none. */
struct variant *variant_of(const struct stream *stream, uint64_t number);
/* Is it there to be opened? */
bool variant_is_open(const struct variant *variant);
unsigned variant_numbers(const struct stream *stream); /* that are taken */

/* A connection comes, or is gone. */
void variant_ref(struct variant *variant);
void variant_unref(struct variant *variant);
/* Makes those that can run run, and counts the slots that all of them have. */
void variant_settle(struct stream *stream);
/* It will never run: who waits for it is refused. */
void variant_fail(struct variant *variant, uint64_t code, const char *text);
/* Gives back the memory of those that leave and are in no chunk any more. */
void variant_sweep(struct stream *stream);
/* From the worker parent: nobody maps it any more. */
void variant_removed(struct variant *variant);
/* Gives back the memory of one that no connection has; payer: whose, NULL: anybody's. false: there is
 * none. */
bool variant_free_idle(struct stream *stream, const struct domain *payer);

/* ---- what ranks see of a chunk, on the boards of all its variants ---- */
void variant_show_begin(const struct stream *stream, uint32_t variants, uint32_t slot,
			const struct carousel_chunk *chunk);
void variant_show_status(const struct stream *stream, const struct fill *fill, uint32_t i,
			 uint8_t status);
void variant_show_watermark(const struct stream *stream, const struct fill *fill);
void variant_show_empty(const struct stream *stream, uint32_t slot);

/* What conn's new job shares with the others of its stream, for people. */
void variant_tell_shared(const struct conn *conn, char *ret, size_t size);

#endif
