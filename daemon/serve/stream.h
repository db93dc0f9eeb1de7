/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stream: queue, carousel and jobs of one (dataset version, policy), with one pipeline or several that
 * share their decoding, its variants (variant.h), each with slots of its own.
 *
 *   OPENING --a variant is mapped, sealed, reserved; reader ATTACHED--> RUNS --last job gone, linger--> freed
 *   any --its worker parent died, or the source changed, or a fault--> LOST or FAILED
 *
 * This is its state alone: streams.h says who makes it, turns it and ends it.
 *
 * LOST and FAILED: jobs are told, the memory is counted until the last connection that maps it hangs
 * up, then freed.
 */

#include <sys/queue.h>
#include "base/hash.h"
#include "daemon/serve/arena.h"
#include "daemon/serve/bad.h"
#include "daemon/serve/fill_state.h"
#include "daemon/serve/revisit_state.h"
#include "daemon/cache/cache_state.h"
#include "daemon/loop.h"
#include "sched/ahead.h"
#include "sched/carousel.h"
#include "sched/fair_read.h"
#include "shmring/slot_table.h"
#include "shmring/queue.h"
#include "shmring/proto.h"

struct node;
struct domain;
struct source;
struct conn;
struct group;
struct job;
struct variant;

enum stream_state { STREAM_OPENING, STREAM_RUNS, STREAM_LOST, STREAM_FAILED };

/* The memory that it has in common with reader and workers, beside its variants' slots. */
struct stream_shared {
	struct queue queue;
	int queue_fd, arena_fd;
	struct arena arena;
	int numa_node;    /* where it should lie; -1: anywhere */
	bool is_attached; /* by the reader that is there */
	bool is_leaving;  /* parent and reader were told to let go */
};

struct stream_asked { /* what all its jobs ask for alike */
	enum proto_policy policy;
	/* Of path, version and policy; and of pipeline and keep, where that is set */
	struct hash_id key;
	char keep
	    [24]; /* form to be kept of all samples, whatever it is worth, or "auto"; "": none */
};

struct stream_users {
	struct job *job[CAROUSEL_MAX_JOBS];
	LIST_HEAD(, group) groups; /* of jobs with several ranks */
	unsigned n_jobs, n_conns;
	struct revisit revisit; /* what was made before some of them came */
	uint64_t mark;          /* of the view that was told last whose it is: status.c */
};

struct stream_bytes {
	uint64_t all;   /* that are accounted to it */
	uint64_t fixed; /* of these: queue, arena, bad */
	uint64_t bad;   /* of these: what is known of bad samples */
};

struct stream_made {          /* chunks, since the start */
	uint64_t first_nonce; /* of the carousel */
	uint64_t orders;      /* productions started */
	uint32_t variants;    /* of the chunk that was begun last, a bit each */
	double
	    median_us[1 << LAYOUT_MAX_VARIANTS]; /* of a sample's time in a worker, by variants */
};

struct stream_figures { /* since the start */
	uint64_t samples_read, bytes_read, samples_done, samples_filtered;
	uint64_t samples_ahead, made_ahead; /* gone through by fill_ahead(); of these, forms made */
};

struct stream_share { /* among others: fill_fair.c, fill_disk.c, fill_read.c */
	struct fair fair;
	/* Of its figures, when what they took was accounted for last */
	uint64_t settled_samples, settled_bytes;
	uint64_t work_us;                  /* since then, as workers say */
	struct fair_read reading;          /* fill_disk.c */
	uint64_t disk_samples, disk_bytes; /* of its figures, that are settled there */
	uint64_t disk_weighed_ns;
	uint64_t looked_ns;     /* what its tasks wait for */
	bool waits;             /* some did for a processor */
	uint64_t held;          /* times that others went first */
	uint64_t charged_bytes; /* of bytes_read, against limits of reading */
	uint64_t read_held;     /* times that these let it begin nothing */
	bool is_read_limited;   /* they, or others who read, did the last time */
};

struct stream {
	LIST_ENTRY(stream) link;
	struct domain *domain;
	struct node *node;    /* the domain's */
	struct domain *payer; /* whose share queue and arena are; a reference */
	uint64_t number;      /* rises with each stream */
	enum stream_state state;
	struct source *source; /* a reference */
	struct stream_asked asked;
	struct stream_shared shared;
	struct stream_users users;
	struct stream_bytes bytes;

	struct slot_geometry geometry; /* chunk, block, most slots, ... of all its variants */
	struct variant *variant[LAYOUT_MAX_VARIANTS]; /* by number; NULL: none */
	uint32_t slots;                               /* that all variants have */
	bool cannot_grow; /* beyond what jobs need, until another one comes: that was refused */

	struct carousel *carousel;
	struct fill fill[LAYOUT_MAX_ROWS];
	struct stream_made made;
	struct bad bad;
	struct cache cache;
	struct ahead ahead;
	struct stream_figures figures;
	struct stream_share share;

	struct loop_watch *pump_timer, *linger_timer;
};

/* More or less memory is the stream's, of payer's share. */
void stream_account(struct stream *stream, struct domain *payer, int64_t bytes);
struct stream *stream_of_queue(struct domain *domain,
			       uint32_t queue); /* NULL: none, or it was let go */
/* It has a turn at the next one of the loop, once however often asked. */
void stream_turn_soon(struct stream *stream);
