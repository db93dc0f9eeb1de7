/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_FILL_H
#define DAEMON_SERVE_FILL_H

/*
 * A chunk in production: its tasks on their way through reader and workers into a slot, the
 * watermark, and what happens to bad samples.
 */

#include "base/base.h"
#include "shmring/lane.h"

struct budget;
struct job;
struct node;
struct stream;

struct fill_task {
	uint32_t extent; /* of the arena, valid while has_extent */
	uint8_t status;  /* enum layout_sample_status; PENDING: under way */
	uint8_t attempt; /* substitutes tried */
	bool has_extent;
	bool died;             /* a worker died on it once */
	bool queued;           /* given to the lane (again) */
	bool is_plain;         /* a kept form of it did not serve: the file is to be brought */
	bool is_again;         /* an instance that was made before, and kept */
	bool may_keep;         /* one that may be kept */
	bool told;             /* the reader said itself that it could not read it */
	struct lane_keep keep; /* as it was queued */
	uint32_t doubt;        /* tick at which its word said so alone; 0: never */
	uint64_t source;       /* sample whose bytes are read */
};

struct fill {
	bool used;
	bool is_watched; /* fill_watch() */
	uint32_t block, slot, count;
	uint32_t variants;      /* that it is made in, a bit each */
	uint32_t watermark;     /* samples finished, contiguous */
	uint32_t finished;      /* samples finished at all */
	uint32_t fed;           /* tasks below it were queued at least once */
	uint32_t again;         /* of those, that wait to be queued once more */
	uint32_t seen;          /* ended tasks of the block when it was looked at last */
	bool has_doubts;        /* some word is not believed yet */
	uint32_t after_hole;    /* first sample after the last hole below the watermark */
	struct fill_task *task; /* room for a full chunk, made once */
	uint64_t started_ns;
};

struct fill_death { /* of a worker */
	uint32_t owner;
	enum layout_fail stage;
	int status;
	uint64_t work_us; /* CPU time that it had used on its sample */
};

int fill_init(struct stream *stream); /* rooms for tasks; -ENOMEM */
void fill_fini(struct stream *stream);
/* Begins the chunk that the carousel put into slot. */
void fill_begin(struct stream *stream, uint32_t slot, uint64_t now_ns);
/* Looks at all chunks in production: outcomes, watermarks, finished chunks. true when anything
 * moved. */
bool fill_collect(struct stream *stream);
/* Queues tasks for which there is room in the arena, oldest chunk first, until the budget is spent. Returns when it
 * wants to be called again, 0: after the next event. */
uint64_t fill_feed(struct stream *stream, const struct budget *budget);
/* Sets when the workers ring next, after doorbell_arm_event(). true: that has come already, and nobody
 * rings for it. */
bool fill_arm(struct stream *stream);
/* Can a rank with batches of `batch` samples use what is finished of the chunk in slot? */
bool fill_is_of_use(const struct stream *stream, uint32_t slot, uint32_t batch);
unsigned fill_active(const struct stream *stream);
/* Marks the chunks that are in production now. Is one of those that were marked still? */
void fill_watch(struct stream *stream);
bool fill_is_watched(const struct stream *stream);
/* The variants of the chunk in that block of the lane; 0: there is none. */
uint32_t fill_variants(const struct stream *stream, uint32_t block);
/* Bytes of the file of a task of that block; 0: there is none. */
uint64_t fill_bytes_of(const struct stream *stream, uint32_t block, uint32_t task);
const struct fill *fill_of_slot(const struct stream *stream, uint32_t slot);
/* What the first unfinished sample of the chunk in slot waits for. */
enum layout_stage fill_stage(const struct stream *stream, uint32_t slot);
/* The reader says that it could not read a task's sample. */
void fill_read_failed(struct stream *stream, uint64_t block, uint64_t task, uint64_t sample);
/* Once a tick: what the work of all streams took since the last one, to jobs and users, and to who may go on (fill_fair.c). */
void fill_settle(struct node *node, uint64_t now_ns);
/* A job is about to leave: what it took since then is accounted for. */
void fill_leave(struct job *job);
/* A process is gone: what it had under way. */
void fill_worker_died(struct stream *stream, const struct fill_death *death);
void fill_reader_died(struct stream *stream);

#endif
