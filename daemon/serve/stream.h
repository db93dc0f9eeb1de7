/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_STREAM_H
#define DAEMON_SERVE_STREAM_H

/*
 * A stream: lane, carousel and jobs of one (dataset version, policy), with one pipeline or several that
 * share their decoding, its variants (variant.h), each with slots of its own.
 *
 *   OPENING --a variant is mapped, sealed, reserved; reader ATTACHED--> RUNS --last job gone, linger--> freed
 *   any --its worker parent died, or the source changed, or a fault--> LOST or FAILED
 *
 * LOST and FAILED: jobs are told, the memory is counted until the last connection that maps it hangs
 * up, then freed.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "base/hash.h"
#include "daemon/serve/arena.h"
#include "daemon/serve/bad.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/group.h"
#include "daemon/cache/cache.h"
#include "daemon/loop.h"
#include "daemon/serve/variant.h"
#include "sched/carousel.h"
#include "sched/fair.h"
#include "shmring/board.h"
#include "shmring/lane.h"
#include "shmring/proto.h"

struct node;
struct domain;
struct source;
struct conn;
struct job;

enum stream_state { STREAM_OPENING, STREAM_RUNS, STREAM_LOST, STREAM_FAILED };

struct stream {
	LIST_ENTRY(stream) link;
	struct domain *domain;
	struct node *node;    /* the domain's */
	struct domain *payer; /* whose share lane and arena are; a reference */
	uint64_t number;      /* rises with each stream */
	enum stream_state state;
	struct source *source; /* a reference */
	enum proto_policy policy;
	struct hash_id
	    key; /* of path, version and policy; and of pipeline and keep, where that is set */
	char keep
	    [24]; /* form to be kept of all samples, whatever it is worth, or "auto"; "": none */
	bool reader_ready;

	struct board_geometry geometry; /* chunk, grain, most slots, ... of all its variants */
	struct variant *variant[LAYOUT_MAX_VARIANTS]; /* by number; NULL: none */
	struct lane lane;
	int lane_fd, arena_fd;
	int numa_node;                /* where its memory should lie; -1: anywhere */
	uint32_t slots;               /* that all variants have */
	uint64_t fixed_bytes, memory; /* lane, arena, bad; all that is accounted to it */

	uint64_t first_lap; /* of the carousel */
	struct carousel *carousel;
	struct job *job[CAROUSEL_MAX_JOBS];
	LIST_HEAD(, group) groups; /* of jobs with several ranks */
	unsigned n_jobs, n_conns;

	struct arena arena;
	struct fill fill[LAYOUT_MAX_BLOCKS];
	uint64_t orders;   /* productions started */
	uint32_t variants; /* of the chunk that was begun last, a bit each */
	double
	    median_us[1 << LAYOUT_MAX_VARIANTS]; /* of a sample's time in a worker, by variants */
	struct bad bad;
	uint64_t bad_bytes; /* of it, of fixed_bytes */
	struct cache cache;
	uint64_t samples_read, bytes_read, samples_done, samples_filtered;

	struct fair fair;
	uint64_t settled_samples,
	    settled_bytes;      /* of the above, when what they took was accounted for last */
	uint64_t work_us;       /* since then, as workers say */
	uint64_t looked_ns;     /* whether tasks wait for a processor */
	bool waits;             /* they did */
	uint64_t held;          /* times that others went first */
	uint64_t charged_bytes; /* of bytes_read, against limits of reading: fill_read.c */
	uint64_t read_held;     /* times that these let it begin nothing */
	bool is_read_limited;   /* they did the last time */

	struct loop_watch *pump_timer, *linger_timer;
	bool removing; /* parent and reader were told to let go */
};

/* The variant for conn's request over its (ready) source: an existing one, a new one of a stream that
 * decodes the same, or one of a new stream, as far as memory allows. Sets conn->stream and variant;
 * conn_stream_ready() follows, at once or later. Refuses the connection otherwise. */
void stream_request(struct conn *conn);
/* A connection leaves its stream. */
void stream_unref(struct conn *conn);
void stream_free(struct stream *stream);
/* Has the stream slots for one more job? 0; STREAM_E_LATER: they are being reserved, its connection
 * is told by conn_stream_ready(); STREAM_E_MEMORY with diag: refused with the numbers. Asks for the
 * slots that it would like to have, too. */
enum { STREAM_E_LATER = 1, STREAM_E_MEMORY = 2 };
int stream_make_room(struct stream *stream, struct diag *diag);
/* Has few slots free: reserves more, in which late and slow jobs find what others had, while there is memory to spare. */
void stream_grow(struct stream *stream);
/* From reserve.c: so many slots more; all_of_them: as many as were asked for. */
void stream_reserved(struct variant *variant, uint32_t slots, bool all_of_them);
/* Makes room for a further variant with this geometry. false: there is none, and why in ret. *ret_slots:
 * how many it must have. */
bool stream_make_room_for(struct stream *stream, const struct board_geometry *geometry,
			  const struct domain *payer, uint32_t *ret_slots, char *ret, size_t size);
/* What is left to the tenant: of the node's budget, and of his share of it; the limit that leaves him so
 * little, and its name. */
uint64_t stream_free_bytes(const struct domain *payer);
uint64_t stream_limit_of(const struct domain *payer, const char **ret_name);
/* Runs what can run, and lets those who wait for it try. */
void stream_settle(struct stream *stream);
/* No further work: jobs get FAILED (code, text), or LOST. */
void stream_fail(struct stream *stream, uint64_t code, const char *text);
/* The same for all that have it: its jobs open again, as after the death of its workers. */
void stream_lose(struct stream *stream, const char *text);
/* More or less memory is the stream's, of payer's share. */
void stream_account(struct stream *stream, struct domain *payer, int64_t bytes);
/* Frees a catalogue that nobody has, or the oldest stream that no connection has, or a variant, or has the forms that are kept in memory give
 * way, if that makes room for the tenant of domain. false: there is none. */
bool stream_free_idle(struct domain *domain);
/* The oldest stream or a variant that no connection has, whoever pays. false: there is none. */
bool stream_give_back(struct node *node);
/* The oldest such one that the tenant of domain pays for. */
bool stream_free_idle_of(struct domain *domain);
struct stream *stream_of_lane(struct domain *domain,
			      uint32_t lane); /* NULL: none, or it was let go */
/* How long a sample of the chunk in that block may take; own_ns: that it may take in any case, in one variant. */
uint64_t stream_patience_ns(struct domain *domain, uint32_t lane, uint32_t block, uint64_t own_ns);

/* from workers.c, reading.c, source.c */
void stream_workers_added(struct domain *domain, uint32_t lane, uint64_t variant);
void stream_variant_removed(struct domain *domain, uint32_t lane, uint64_t variant);
void stream_lane_attached(struct domain *domain, uint32_t lane);
void stream_read_failed(struct domain *domain, uint32_t lane, uint64_t block, uint64_t task,
			uint64_t sample); /* the reader says so */
void stream_lane_refused(struct domain *domain, uint32_t lane, const char *text);
void stream_variant_refused(struct domain *domain, uint32_t lane, uint64_t variant,
			    const char *text);
void stream_worker_died(struct domain *domain, const struct fill_death *death);
void stream_workers_died(struct domain *domain);    /* jobs are LOST: they open again */
void stream_workers_started(struct domain *domain); /* streams asked for meanwhile go on */
void stream_workers_failed(struct domain *domain, const char *text);
void stream_reader_died(struct domain *domain);
void stream_source_reopened(struct source *source);
void stream_source_failed(struct source *source, const char *text);

#endif
