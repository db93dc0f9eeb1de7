/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of chunks in production, and what that says: numbers alone. `fills` are a stream's, LAYOUT_MAX_ROWS of
 * them. Who makes them is fill.c.
 */

#include "sched/throttle.h"
#include "sched/fair.h"
#include "shmring/queue.h"

struct fill_task {
	uint32_t extent; /* of the arena, valid while has_extent */
	uint8_t status;  /* enum layout_sample_status; PENDING: under way */
	uint8_t attempt; /* substitutes tried */
	bool has_extent;
	bool died;              /* a worker died on it once */
	uint8_t kills;          /* workers that were killed on it: fill_bad.c counts */
	bool queued;            /* given to the queue (again) */
	bool is_plain;          /* a kept form of it did not serve: the file is to be brought */
	bool is_again;          /* an instance that was made before, and kept */
	bool may_keep;          /* one that may be kept */
	bool told;              /* the reader said itself that it could not read it */
	struct queue_keep keep; /* as it was queued */
	uint32_t doubt;         /* tick at which its word said so alone; 0: never */
	uint32_t bytes;         /* of its source, as it was queued */
	uint64_t source;        /* sample whose bytes are read */
};

struct fill {
	bool used;
	bool
	    is_ahead; /* no chunk: forms that no job waits for (fill_ahead.c); what follows counts chunks, unless it says so */
	bool is_watched; /* fill_watch() */
	uint32_t row, slot, count;
	uint32_t variants;      /* that it is made in, a bit each */
	uint32_t watermark;     /* samples finished, contiguous */
	uint32_t finished;      /* samples finished at all */
	uint32_t fed;           /* tasks below it were queued at least once */
	uint32_t again;         /* of those, that wait to be queued once more */
	uint32_t seen;          /* ended tasks of the row when it was looked at last */
	bool has_doubts;        /* some word is not believed yet */
	uint32_t after_hole;    /* first sample after the last hole below the watermark */
	struct fill_task *task; /* room for a full chunk, made once */
	uint64_t started_ns;
	double elapsed_us, cpu_us; /* is_ahead: of workers, for what has ended */
};

struct fill_shares { /* of all streams: fill_fair.c */
	struct fair_node fair;
	unsigned n_busy; /* streams with chunks in production, at weighed_ns */
	uint64_t weighed_ns, settled_ns;
};

struct fill_share {               /* a domain's, and its tenant's */
	uint64_t settled_ns;      /* CPU time of its processes that is accounted for */
	uint64_t settled_at_ns;   /* when it was */
	uint64_t looked_ns;       /* fill_fair.c: whether its workers want a processor */
	bool competes;            /* they did */
	struct throttle throttle; /* fill_read.c: what its tenant may read now */
	unsigned busy;            /* fill_count(): streams of its tenant that were counted */
};

struct fill_death { /* of a worker */
	uint32_t owner;
	enum layout_fail stage;
	int status;
	uint64_t work_us; /* CPU time that it had used on its sample */
	bool left_room;   /* where it was killed: now that it is gone there is memory again */
};

unsigned fill_active(const struct fill *fills);
/* Tasks that are queued and have not ended. */
uint32_t fill_under_way(const struct fill *fills);
/* The chunk in production that was begun first of those behind `after`; NULL: of all. */
struct fill *fill_next(struct fill *fills, const struct fill *after);
const struct fill *fill_of_slot(const struct fill *fills, uint32_t slot);
/* Can a rank with batches of `batch` samples use what is finished of the chunk in slot? */
bool fill_is_of_use(const struct fill *fills, uint32_t slot, uint32_t batch);
/* Marks the chunks that are in production now. Is one of those that were marked still? */
void fill_watch(struct fill *fills);
bool fill_is_watched(const struct fill *fills);
/* The variants of what is in that row of the queue, chunk or not; 0: there is nothing. */
uint32_t fill_variants(const struct fill *fills, uint32_t row);
