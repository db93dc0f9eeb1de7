/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A node in a bottle: accessd as it is, all of daemon/ but its loop's libevent and its children's fork(), and jobs that are
 * libaccess as it is, in one process, with the sockets and the shared memory that they have outside, on one clock that goes
 * as fast as there is something to do. Reader and workers are played, on the real task queues, arenas and slots. What goes
 * wrong is drawn from a seed: the same seed is the same life.
 *
 *   tests/clock.c      the clock
 *   fiber.c            stacks for jobs, which wait as they do outside
 *   bottle.c           a life: chance, what was broken, accessd's begin and end
 *   crash.c            its other end: kill -9
 *   loop.c             daemon/loop.h on that clock
 *   process.c          children that are no processes: starting, dying, reaping
 *   reader.c           access-reader, played
 *   store.c            what the reader keeps, played
 *   worker.c           access-worker, played
 *   training.c         training runs
 *   plan.c             what they want
 *   model.c            what each must be given
 *   client.c           libaccess, a module
 *   fault.c            what goes wrong
 *   mutant.c           faults that are planted, to see that they are found
 *   show.c             the node, for people
 *   bottle_test.c      lives, and what must hold in them
 */

#include <sys/types.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/wire.h"
#include "daemon/node.h"
#include "shmring/queue.h"
#include "shmring/rings.h"
#include "storage/reader.h"
#include "storage/store_table.h"
#include "tests/clock.h"
#include "tests/daemon/bottle/client.h"
#include "tests/daemon/bottle/fiber.h"
#include "tests/daemon/bottle/mutant.h"
#include "tests/daemon/role.h"

#define BOTTLE_JOBS 6
#define BOTTLE_SAMPLES 400         /* at most */
#define BOTTLE_LIST BOTTLE_SAMPLES /* places of a list, at most */
#define BOTTLE_EPOCHS 25
#define BOTTLE_RANKS 4
#define BOTTLE_PLANS 4 /* that ranks of one job have at a time, at most */
#define BOTTLE_QUEUES 8
#define BOTTLE_GROUPS 48 /* of values that are kept */
#define BOTTLE_WORKERS 4
#define BOTTLE_THREADS 3 /* of the reader */
#define BOTTLE_ZOMBIES 16
#define BOTTLE_PID 0x40000000 /* the kernel has none so large */
#define BOTTLE_MARK 16        /* bytes of a picture that say what it was made of */

struct kept_value {                   /* its first bytes */
	uint64_t sample, group, mark; /* mark: of its instance, 0: it is of none */
	uint32_t form, bytes;         /* 0 bytes: there is none */
	bool is_rotten;               /* no pipeline takes it */
};

struct kept_group {
	bool is_used;
	struct hash_id id;
	struct kept_value value[BOTTLE_SAMPLES];
	struct store_table table; /* of the reader that lives */
};

struct kept {
	struct kept_group group[BOTTLE_GROUPS];
	uint64_t limit, used;
	uint64_t until_ns; /* the disk takes nothing */
	/* of the reader that lives */
	bool is_open, is_due;
	struct rings rings;
	struct reader_state state, said;
};

struct bottle_queue { /* a stream's, as reader and workers have it */
	bool is_used, has_reader, has_workers;
	uint64_t number;
	struct queue queue;
	uint8_t *arena;
	unsigned life; /* each use of this place has another one */
	/* by form: what was asked for, and is had */
	bool wishes[LAYOUT_FORMS];
	struct hash_id wish[LAYOUT_FORMS];
	struct kept_group *kept[LAYOUT_FORMS];
	bool expected[BOTTLE_SAMPLES]; /* a form is made of its file */
	struct bottle_slots {
		uint8_t *map; /* NULL: there is no such variant */
		uint64_t bytes, stride, image, image_bytes, label, label_bytes;
	} slots[LAYOUT_MAX_VARIANTS];
};

struct hand {                       /* a reader's thread, or a worker */
	struct bottle_queue *queue; /* NULL: idle */
	unsigned queue_life;
	struct queue_task task;
	uint32_t serial; /* of its task: what is said of another one is too late */
	uint64_t begun_ns;
	/* workers alone */
	uint32_t owner;
	pid_t pid; /* 0: none */
	uint64_t cpu_ns;
	bool hangs, loops;
};

struct played {    /* a process that is none */
	pid_t pid; /* 0: it does not live */
	int sock;
	unsigned life;
	bool is_called;    /* it will look at its socket */
	uint64_t until_ns; /* it is stopped */
	struct layout_doorbell *doorbell;
	struct rings rings; /* of the parent */
	int event_fd;
	uint32_t seen; /* of its sequence in the doorbell */
};

struct zombie {
	pid_t pid;
	int status;
	bool is_forked; /* by accessd, to be waited for at large */
};

struct model { /* of a job: what it was given, and may be given */
	uint64_t epoch, steps;
	uint64_t step; /* of its epoch, that comes next */
	unsigned count, place;
	uint16_t times[BOTTLE_SAMPLES];
	uint64_t mark[BOTTLE_SAMPLES]; /* of the instance that it got last */
	uint8_t seen[BOTTLE_SAMPLES];  /* epochs in a row, that one */
};

struct picked {         /* which samples an epoch has */
	unsigned n;     /* of ids, or weights; 0: all of them, once each */
	unsigned total; /* samples of an epoch */
	bool has_weights, repeats;
	int64_t ids[BOTTLE_LIST];
	double weight[BOTTLE_SAMPLES];
	uint16_t times[BOTTLE_SAMPLES]; /* that it has each, at most */
};

struct job_plan {
	const char *pipeline;
	uint32_t batch, chunk, flags, reuse;
	enum oa_bad bad;
	enum oa_order order;
	uint64_t seed, epochs, pace_ns;
	unsigned holds; /* batches that it holds while it works */
	unsigned saves; /* steps from token to token */
	unsigned ahead; /* steps that it may be before the slowest of its ranks */
	struct picked picked;
	unsigned ranks, rank, leader, serial; /* leader: the number of rank 0 */
	uint32_t alone_of; /* it is the last of so many ranks, and the others never come; 0: no */
	uint64_t late_ns;  /* it begins so late */
};

struct troop { /* ranks of a job */
	/* 1 + rank + ranks * step; 0: nobody yet. Of each plan: they are several only where it parted. */
	uint32_t owner[BOTTLE_PLANS][BOTTLE_EPOCHS][BOTTLE_SAMPLES];
	uint8_t id[BOTTLE_PLANS][PLAN_LOG_ID];
	unsigned plans, of[BOTTLE_RANKS]; /* which of them a rank has */
	uint64_t parted;                  /* the first epoch in which they differ */
	unsigned ended[BOTTLE_EPOCHS];    /* a bit a rank */
	uint64_t with_ns;                 /* accessd had one of them then */
	/* The plan that it gave them, whether all had it, and in which era of accessd's. */
	uint64_t plan, era;
	bool is_whole;
	uint64_t over; /* of a run before this one, in this era: not theirs; 0: none */
};

struct training {
	struct bottle *bottle;
	unsigned number;
	struct job_plan plan;
	struct fiber *fiber; /* NULL: it is not there */
	bool waits, is_killed, is_due, is_done;
	uint64_t stopped_ns; /* it does nothing until then */
	int fd;
	uint32_t naps;               /* so that a wake belongs to its sleep */
	uint64_t until_ns, since_ns; /* it waits for a batch since then */
	uint64_t owed_ns;            /* something is finished for it since then, ... */
	unsigned owed_turns;
	struct oa_client *client;
	struct oa_stream *stream;
	struct model model, saved;
	uint16_t record[BOTTLE_EPOCHS][BOTTLE_LIST]; /* 1 + the sample at each place; 0: not yet */
	uint8_t token[4096];
	size_t token_bytes;
	unsigned deaths;
	uint64_t batches;
	unsigned life; /* of the accessd that had it last */
};

struct bottle {
	uint64_t seed, sum;
	enum mutant mutant;
	struct clock clock;
	struct philox_seq chance;
	char broken[512]; /* the first rule that did not hold */
	const char *folder;
	const struct client_calls *client;
	/* the data set */
	unsigned samples;
	int index_fd;
	uint8_t version[32];
	bool is_bad[BOTTLE_SAMPLES];
	bool is_excused[BOTTLE_SAMPLES]; /* something happened to it that may cost it */
	/* accessd */
	struct node *node; /* NULL: it is not there */
	bool is_poked;
	uint64_t until_ns; /* it is stopped */
	unsigned life;
	struct played reader, parent;
	struct bottle_queue queue[BOTTLE_QUEUES];
	unsigned queue_lives;
	struct hand thread[BOTTLE_THREADS], worker[BOTTLE_WORKERS];
	unsigned n_workers;
	uint32_t last_owner, last_pid;
	struct zombie zombie[BOTTLE_ZOMBIES];
	pid_t looks;               /* accessd's child that looks at the disk; 0: there is none */
	uint64_t read_us, work_us; /* a sample takes about so long */
	struct kept kept;
	unsigned permille[4]; /* of that work from a form, by its kind */
	unsigned hits;        /* of forms */
	struct training job[BOTTLE_JOBS];
	struct troop troop[BOTTLE_JOBS]; /* by leader */
	unsigned serials;
	unsigned joins[BOTTLE_JOBS]; /* training runs that are still to come */
	bool is_traced;              /* what happens is said */
	bool is_wild;                /* faults are drawn */
	bool may_part; /* ranks may have different plans, until one of them is refused for that */
	uint64_t calm_ns; /* when the last one was over */
	unsigned faults, turns;
};

/* ---- bottle.c ---- */

struct bottle *bottle_now(void); /* the one that there is */
void bottle_begin(struct bottle *bottle, uint64_t seed, enum mutant mutant,
		  const struct client_calls *client, const char *folder);
void bottle_end(struct bottle *bottle);
uint64_t bottle_below(uint64_t bound);
uint64_t bottle_between(uint64_t least, uint64_t most);
bool bottle_chance(unsigned one_in);
void bottle_after(uint64_t delay_ns, clock_fn *fn, void *arg, uint64_t a, uint64_t b);
void bottle_run(uint64_t until_ns); /* until then, or a rule is broken */
void bottle_note(uint64_t what, uint64_t a, uint64_t b);
void bottle_break(const char *fmt, ...) BASE_PRINTF(1, 2);
void bottle_check(void); /* the invariants that have a checker */
void bottle_show(void);  /* show.c: what the node has, for people */
void accessd_start(void);
void accessd_stop(void); /* it ends; what clients hold they keep */

/* ---- crash.c ---- */

void accessd_kill(void);

/* ---- loop.c ---- */

void loop_poke(void);        /* something may be readable */
void loop_child_ended(void); /* SIGCHLD */

/* ---- process.c ---- */

void process_ended(pid_t pid, int status, bool is_forked);
void process_end(void); /* of a life */

/* ---- reader.c, worker.c ---- */

void queue_forget(struct bottle_queue *queue, bool by_reader);
struct bottle_queue *queue_find(uint64_t number);
struct bottle_queue *queue_add(uint64_t number, int fd);
void reader_start(pid_t pid, int sock);
void reader_die(int status);
void reader_call(void); /* its socket is readable */
void reader_stir(void); /* tasks may be there */
void reader_say(struct wire_out *out);
void parent_start(pid_t pid, int sock, unsigned workers);
void parent_die(int status);
void parent_call(void);
void worker_stir(void);
void worker_die(unsigned index, int status);
void played_ring(struct played *played);
uint64_t mark_of(const struct queue_task *task);

/* ---- store.c ---- */

bool store_value(const struct bottle_queue *queue, unsigned form, const struct queue_task *task,
		 struct kept_value *ret);
uint32_t store_bring(struct bottle_queue *queue, const struct queue_task *task, uint8_t *buffer);
void store_start(struct wire_in *in);
void store_open_at(const struct wire_in *in);
void store_form(const struct wire_in *in);
void store_fail(void);
void store_stir(void); /* there may be something in the rings */
void store_close_down(void);

/* ---- plan.c ---- */

void plan_draw(struct job_plan *plan, enum oa_bad bad, bool may_have_ranks);

/* ---- model.c ---- */

void model_take(struct training *job, const struct oa_batch *batch);
void model_end_epoch(struct training *job);
bool model_may_fail(const struct training *job); /* for a bad sample */
bool model_may_be_empty(const struct training *job);
void model_join(struct training *job, const uint8_t plan[PLAN_LOG_ID]); /* accessd has it there */

/* ---- training.c ---- */

void training_begin(struct training *job, const struct job_plan *plan);
/* None of its ranks has had anything. */
void troop_begin(struct bottle *bottle, unsigned leader, unsigned ranks);
void training_kill(struct training *job);
void training_wake(void); /* those whose socket is readable */
int training_wait(int fd, uint64_t until_ns);
void training_pause(void);
void training_check(void);

/* ---- fault.c ---- */

void fault_begin(uint64_t until_ns);
void fault_kill_rank(struct training *job);                       /* it comes back */
void fault_kill_rank_for(struct training *job, uint64_t away_ns); /* so much later */
