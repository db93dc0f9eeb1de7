/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A cluster in a bottle: nodes, each with its gate's cell, its carrier and its reader as they are, on one clock that goes as
 * fast as there is something to do. Sources, stores, workers, jobs and the net are made up, and what goes wrong is drawn from
 * a seed: the same seed is the same life, to the last byte.
 *
 *   tests/clock.c    the clock, what is to happen
 *   bottle.c         chance, planted faults
 *   bottle_net.c     connections: bytes that are late, stuck, damaged, left out, repeated or cut off
 *   bottle_node.c    a node's processes, their lives and deaths, and what accessd tells them
 *   bottle_job.c     tasks: read, waited for, made, delivered
 *   bottle_fault.c   what goes wrong
 *   bottle_reader.c  the reader's part, a module
 *   bottle_test.c    lives, and what must hold in them
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/philox.h"
#include "cluster/carrier_parts.h"
#include "cluster/cell.h"
#include "tests/clock.h"
#include "tests/cluster/bottle_reader.h"

#define BOTTLE_NODES 5
#define BOTTLE_GROUPS 2
#define BOTTLE_SAMPLES 96
#define BOTTLE_JOBS 2    /* a node */
#define BOTTLE_WINDOW 16 /* tasks of a job at a time */
#define BOTTLE_THREADS 2 /* a node reads its source with */
#define BOTTLE_VALUE (48u << 10)

struct bottle;
struct node;

/* ---- bottle.c ---- */

struct wire { /* from a node to another */
	bool is_hole;
	bool is_cut;
	uint64_t late_ns;
	unsigned harm;     /* of so many pieces one is not as it was sent; 0: none */
	uint64_t until_ns; /* it is healed then */
};

enum job_state { TASK_FREE, TASK_READS, TASK_ASKED, TASK_MAKES, TASK_PAUSES };

struct task {
	enum job_state state;
	unsigned sample;
	uint32_t serial;  /* of its attempt: what is said of another one is wrong */
	uint64_t late_ns; /* it must be delivered by then; moved where its node stands still */
};

struct job {
	struct node *node;
	unsigned number, group;
	struct reader_queue *queue;
	struct task task[BOTTLE_WINDOW];
	uint16_t order[BOTTLE_SAMPLES];
	unsigned next, delivered, epochs; /* epochs that are to come */
	bool has[BOTTLE_SAMPLES];
	uint64_t pace_ns;
};

struct kept {
	uint8_t *value; /* owned */
	uint32_t bytes;
	uint64_t from_ns; /* it can be found from then on */
};

struct row {
	struct row *next, *previous;
	uint64_t bytes;
	uint8_t data[];
};

struct blocks { /* memory of a process; all 0: none */
	struct row *first;
	uint64_t n, bytes;
};

struct shadow {            /* of a breaker: what must follow of what it was told */
	unsigned row, bad; /* bad ones: in a row; since it was closed */
	bool is_open, is_trying;
	uint64_t tried_ns;
};

struct node {
	struct bottle *bottle;
	unsigned number;
	char name[8];
	uint64_t id, incarnation, weight;
	bool is_up, is_listed;
	unsigned life;     /* how often it was started */
	uint64_t until_ns; /* it stands still, as all its processes do */
	/* reader */
	void *module; /* NULL: there is none */
	char module_path[64];
	const struct bottle_reader *reader;
	struct bottle_host host;
	struct blocks blocks;
	unsigned reader_life;
	bool has_rings; /* the reader was told of a carrier */
	uint64_t reader_at_ns;
	uint64_t reader_until_ns; /* it alone stands still */
	/* carrier */
	bool has_carrier;
	unsigned carrier_life;
	struct carrier carrier;
	struct shadow shadow[VALUE_MOST_PEERS];
	uint64_t carrier_at_ns;
	struct reader_member met[VALUE_MOST_PEERS]; /* as accessd knows; id 0: nobody */
	uint64_t met_incarnation[VALUE_MOST_PEERS];
	uint64_t members_at_ns;
	struct reader_member told[VALUE_MOST_PEERS]; /* as the reader knows */
	unsigned n_told;
	/* gate */
	struct cell *cell; /* NULL: there is none */
	uint64_t cell_at_ns, cell_serial;
	uint64_t called_ns[BOTTLE_NODES][16]; /* the last calls there */
	unsigned calls[BOTTLE_NODES];
	/* source, workers, store, jobs */
	uint64_t thread_ns[BOTTLE_THREADS], source_us, source_until_ns;
	unsigned busy; /* tasks that are read or made */
	struct kept kept[BOTTLE_GROUPS][BOTTLE_SAMPLES];
	struct job job[BOTTLE_JOBS];
	unsigned files, gots; /* tasks that came as such */
};

struct bottle {
	uint64_t seed, sum; /* sum: of all that happened */
	struct clock clock;
	enum bottle_mutant mutant;
	struct philox_seq chance;
	char broken[256]; /* the first rule that did not hold */
	unsigned n_nodes;
	bool is_sealed, has_names, is_wild; /* wild: faults are drawn */
	bool has_store, is_slow;            /* slow: what is kept is found later */
	bool is_busy;                       /* workers have other things to do, always */
	struct hash_id group[BOTTLE_GROUPS];
	struct wire wire[BOTTLE_NODES][BOTTLE_NODES];
	struct node node[BOTTLE_NODES];
	struct end *ends; /* of all connections */
	int n_ends;
	struct blocks blocks; /* of what is under way */
	unsigned faults;
};

void bottle_begin(struct bottle *bottle, uint64_t seed, enum bottle_mutant mutant);
void bottle_end(struct bottle *bottle);
struct bottle *bottle_now(void); /* the one that there is */
void bottle_at(struct bottle *bottle, uint64_t when_ns, clock_fn *fn, void *arg, uint64_t a,
	       uint64_t b);
/* Until then, or a rule is broken. */
void bottle_run(struct bottle *bottle, uint64_t until_ns);
uint64_t bottle_below(struct bottle *bottle, uint64_t bound);
/* Something happened. */
void bottle_note(struct bottle *bottle, uint64_t what, uint64_t a, uint64_t b);
void bottle_break(struct bottle *bottle, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Zeros. */
void *blocks_add(struct blocks *blocks, size_t bytes);
void blocks_free(struct blocks *blocks, void *data);
void blocks_end(struct blocks *blocks);
void bottle_value(unsigned group, unsigned sample, const uint8_t **ret_value, uint32_t *ret_bytes);

/* ---- bottle_net.c ---- */

/* Two ends, each as what transport_tcp_new() takes. */
void net_connect(struct node *a, struct node *b, int ret_fd[2]);
void net_close(struct bottle *bottle, int fd); /* one that nobody took */
void net_cut(struct bottle *bottle, unsigned a, unsigned b);
void net_healed(struct bottle *bottle, unsigned a, unsigned b);
/* The events that a channel's transport wakes for now. */
uint32_t net_events(struct transport *transport);
void net_end(struct bottle *bottle);
uint64_t net_late_ns(struct bottle *bottle, unsigned from, unsigned to);

/* ---- bottle_node.c ---- */

void node_begin(struct bottle *bottle, unsigned number, const char *folder);
void node_start(struct node *node);
void node_die(struct node *node);
void node_end(struct node *node);
void node_list(struct node *node); /* who is listed has changed */
void reader_wake(struct node *node, uint64_t when_ns);
void carrier_wake(struct node *node, uint64_t when_ns);
void carrier_die(struct node *node, uint64_t pause_ns);
void reader_die(struct node *node);
void gate_die(struct node *node, uint64_t pause_ns);
bool node_is_connected(const struct node *node, const struct node *other);
uint64_t node_awake_ns(const struct node *node, bool is_reader);

/* ---- bottle_fault.c ---- */

void fault_begin(struct bottle *bottle, uint64_t until_ns); /* by then all is well again */

/* ---- bottle_job.c ---- */

void job_begin(struct node *node, unsigned number, unsigned group);
void job_run(struct job *job, unsigned epochs, uint64_t pace_ns);
void job_go_on(struct node *node, bool is_new); /* its node, or its reader, has begun anew */
void job_again(void *node, uint64_t queue, const struct queue_task *task);
void job_bring(void *node, uint64_t queue, const struct queue_task *task, const uint8_t *value,
	       uint32_t bytes);
bool job_is_idle(void *node);
void job_look(void *node, const struct value_head *get);
void job_stood_still(struct node *node, uint64_t ns);
int kept_find(void *node, const struct hash_id *group, uint64_t sample, uint8_t *buffer,
	      size_t room, size_t *ret_bytes);
void kept_keep(void *node, const struct hash_id *group, uint64_t sample, const uint8_t *value,
	       size_t bytes);
void kept_lose(struct node *node);
