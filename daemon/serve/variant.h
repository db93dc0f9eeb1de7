/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A variant: one of a stream's pipelines, with slots and a slot table of its own. All variants of a stream
 * have its chunks, blocks and slots in common: slot 3 holds the same samples in each that the chunk was
 * made in, and one task writes them all.
 *
 *   OPENING --mapped and sealed, slots reserved, the stream runs--> RUNS --no job for a while--> LEAVES
 *   LEAVES --in no chunk in production--> GONE (memory given back) --REMOVED--> freed, its number is free
 *
 * A variant that is refused while it opens leaves the others alone: LEAVES.
 */

#include "base/hash.h"
#include "daemon/loop.h"
#include "shmring/slot_table.h"

struct conn;
struct domain;
struct fill;
struct pipeline;
struct stream;
struct carousel_chunk;

enum variant_state { VARIANT_OPENING, VARIANT_RUNS, VARIANT_LEAVES, VARIANT_GONE };

/* Its slots' memory on the way (daemon/proc/reserve.h). */
struct reserve {
	pid_t pid; /* 0: nothing under way */
	uint32_t from, to;
	uint32_t reserved; /* slots, by now */
	bool is_growth;    /* those under way are more than jobs need */
	pid_t gatherer;    /* 0: none */
	uint32_t gathered; /* slots below it are, or were seen to */
	/* no gatherer could be started: none is before then, and so much later if that fails, too */
	uint64_t retry_ns, pause_ns;
	bool is_mixed;   /* some of those that were reserved last are in small pages */
	bool is_small;   /* and of those that were seen to */
	bool is_refused; /* huge pages are required, and the kernel did not give them */
};

struct variant {
	struct stream *stream;
	uint32_t number; /* its bit in masks, in the carousel and the queue */
	enum variant_state state;
	struct domain *payer; /* whose share its memory is; a reference */
	struct pipeline *pipeline;
	struct hash_id key; /* of path, version, policy and pipeline: whom it serves */
	struct slot_table table;
	int slots_fd, slots_read_fd, table_fd;
	bool is_mapped;         /* by the worker parent, and sealed */
	uint32_t slots;         /* reserved so far */
	uint64_t memory;        /* accounted to it */
	struct reserve reserve; /* more slots, under way */
	bool full;              /* the kernel gave no more memory for slots that a job needs */
	unsigned n_conns, n_jobs;
	struct loop_watch *linger_timer;
};

void variant_account(struct variant *variant, int64_t bytes);
/* The geometry of a further variant of the stream with these fields. As slot_table_plan(). */
int variant_plan(const struct stream *stream, const struct pipeline *pipeline,
		 struct slot_geometry *ret);
/* The fields of a batch: the pipeline's, and the samples' ids. */
void variant_describe_fields(const struct pipeline *pipeline, struct slot_geometry *geometry);

/* The variant of that number, NULL: there is none. */
struct variant *variant_of(const struct stream *stream, uint64_t number);
/* Is it there to be opened? */
bool variant_is_open(const struct variant *variant);
unsigned variant_numbers(const struct stream *stream); /* that are taken */
/* The first of the stream's from that number on, and the first of those that are open. NULL: there is none more. */
struct variant *variant_from(const struct stream *stream, uint32_t number);
struct variant *variant_open_from(const struct stream *stream, uint32_t number);
#define VARIANT_EACH(item, stream)                                 \
	for (struct variant *item = variant_from(stream, 0); item; \
	     item = variant_from(stream, item->number + 1))
#define VARIANT_EACH_OPEN(item, stream)                                 \
	for (struct variant *item = variant_open_from(stream, 0); item; \
	     item = variant_open_from(stream, item->number + 1))

/* ---- what ranks see of a chunk, in the slot tables of all its variants ---- */
void variant_show_begin(const struct stream *stream, uint32_t variants, uint32_t slot,
			const struct carousel_chunk *chunk);
void variant_show_status(const struct stream *stream, const struct fill *fill, uint32_t i,
			 uint8_t status);
void variant_show_watermark(const struct stream *stream, const struct fill *fill);
void variant_show_empty(const struct stream *stream, uint32_t slot);

/* What conn's new job shares with the others of its stream, for people. */
void variant_tell_shared(const struct conn *conn, char *ret, size_t size);
