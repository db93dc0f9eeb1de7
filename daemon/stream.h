/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STREAM_H
#define DAEMON_STREAM_H

/*
 * A stream: slots, lane, carousel and jobs of one (dataset version, pipeline, policy).
 *
 *   OPENING --parent ADDED (then sealed) and reader ATTACHED--> RUNS --last job gone, linger--> freed
 *   any --its worker parent died, or the source changed, or a fault--> LOST or FAILED
 *
 * LOST and FAILED: jobs are told, the memory is counted until the last connection that maps it hangs
 * up, then freed.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "base/hash.h"
#include "daemon/arena.h"
#include "daemon/bad.h"
#include "daemon/fill.h"
#include "daemon/group.h"
#include "daemon/loop.h"
#include "daemon/reserve.h"
#include "sched/carousel.h"
#include "shmring/board.h"
#include "shmring/lane.h"
#include "shmring/proto.h"

struct node;
struct domain;
struct source;
struct conn;
struct job;
struct pipeline;

enum stream_state { STREAM_OPENING, STREAM_RUNS, STREAM_LOST, STREAM_FAILED };

struct stream {
	LIST_ENTRY(stream) link;
	struct domain *domain;
	struct node *node;    /* the domain's */
	struct domain *payer; /* whose share its memory is; a reference */
	uint64_t number;      /* rises with each stream */
	enum stream_state state;
	struct source *source; /* a reference */
	struct pipeline *pipeline;
	enum proto_policy policy;
	struct hash_id key;
	bool workers_ready, reader_ready;

	struct board board;
	struct lane lane;
	int slots_fd, slots_read_fd, board_fd, lane_fd, arena_fd;
	uint32_t slots;               /* reserved so far */
	uint64_t fixed_bytes, memory; /* board + lane + arena; all that is accounted to it */

	struct reserve reserve; /* more slots, under way */

	struct carousel *carousel;
	struct job *job[CAROUSEL_MAX_JOBS];
	LIST_HEAD(, group) groups; /* of jobs with several ranks */
	unsigned n_jobs, n_conns;

	struct arena arena;
	struct fill fill[LAYOUT_MAX_BLOCKS];
	uint64_t orders;  /* productions started */
	double median_us; /* of a sample's time in a worker */
	struct bad bad;
	uint64_t samples_read, bytes_read, samples_done;

	struct loop_watch *pump_timer, *linger_timer;
	bool full;     /* the kernel gave no more memory for slots */
	bool removing; /* parent and reader were told to let go */
};

/* The stream for conn's request over its (ready) source: an existing one or a new one, as far as
 * memory allows. Sets conn->stream; conn_stream_ready() follows, at once or later. Refuses the
 * connection otherwise. */
void stream_request(struct conn *conn);
/* A connection of the stream is gone. */
void stream_unref(struct stream *stream);
void stream_free(struct stream *stream);
/* Has the stream slots for one more job? 0; STREAM_E_LATER: they are being reserved, its connection
 * is told by conn_stream_ready(); STREAM_E_MEMORY with diag: refused with the numbers. Asks for the
 * slots that it would like to have, too. */
enum { STREAM_E_LATER = 1, STREAM_E_MEMORY = 2 };
int stream_make_room(struct stream *stream, struct diag *diag);
/* From reserve.c: so many slots more; all_of_them: as many as were asked for. */
void stream_reserved(struct stream *stream, uint32_t slots, bool all_of_them);
/* No further work: jobs get FAILED (code, text), or LOST. */
void stream_fail(struct stream *stream, uint64_t code, const char *text);
/* More or less memory is the stream's. */
void stream_account(struct stream *stream, int64_t bytes);
/* Frees the oldest stream that no connection has, if that makes room for the tenant of domain. false:
 * there is none. */
bool stream_free_idle(struct domain *domain);
/* The oldest such one that the tenant of domain pays for. */
bool stream_free_idle_of(struct domain *domain);
struct stream *stream_of_lane(struct domain *domain,
			      uint32_t lane); /* NULL: none, or it was let go */
uint64_t stream_patience_ns(struct domain *domain, uint32_t lane); /* how long a sample may take */

/* from workers.c, reading.c, source.c */
void stream_workers_added(struct domain *domain, uint32_t lane);
void stream_lane_attached(struct domain *domain, uint32_t lane);
void stream_read_failed(struct domain *domain, uint32_t lane, uint64_t block, uint64_t task,
			uint64_t sample); /* the reader says so */
void stream_lane_refused(struct domain *domain, uint32_t lane, const char *text);
void stream_worker_died(struct domain *domain, uint32_t owner, enum layout_fail stage, int status);
void stream_workers_died(struct domain *domain);    /* jobs are LOST: they open again */
void stream_workers_started(struct domain *domain); /* streams asked for meanwhile go on */
void stream_workers_failed(struct domain *domain, const char *text);
void stream_reader_died(struct domain *domain);
void stream_source_reopened(struct source *source);
void stream_source_failed(struct source *source, const char *text);

#endif
