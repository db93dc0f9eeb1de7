/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two nodes: real access-readers, each with a worker (a thread that makes a form of what came as a file, and looks at
 * what came as a form), and between them the test as both carriers: a thread that takes messages from one reader's ring
 * and puts them into the other's, or does to them what networks do. Every call asserts.
 */

#include "cluster/value.h"
#include "shmring/resident.h"
#include "shmring/rings.h"
#include "tests/storage/hold.h"
#include "tests/storage/reader_process.h"

#include <pthread.h>

enum { PEERS_SAMPLES = 300, PEERS_VALUE_MOST = 6000, PEERS_NODES = 2 };
#define PEERS_FORM LAYOUT_FORM_PACKED

struct peers_node {
	struct process process;
	unsigned number;
	uint64_t id; /* of the node, for who owns what */
	bool has_memory;
	struct tree *tree;
	struct dataset *dataset;
	struct hash_id group;
	struct hold hold;
	int rings_fd, resident_fd, to_fd, from_fd, queue_fd, arena_fd;
	struct rings rings, to, from;
	struct resident resident;
	struct queue queue;
	uint8_t *arena;
	uint32_t row;
	unsigned
	    unfit_every; /* of the samples one has no such form; 0: all have. Before its worker runs */
	unsigned
	    dies_every; /* of the samples one kills its worker, which another one takes the place of */
	unsigned recheck_s, compare_each; /* of READER_PEERS */
	const bool *lies; /* [PEERS_SAMPLES]: its worker makes another value; NULL: of none */
	const struct counter_cell *table; /* what is in its store */

	pthread_t worker;
	_Atomic bool stops;
	/* written by the worker */
	_Atomic unsigned files[PEERS_SAMPLES]; /* times that it came as its file */
	_Atomic unsigned runs[PEERS_SAMPLES];
	_Atomic unsigned from_where[4]; /* enum layout_from */
	_Atomic unsigned wrong;
	unsigned said_wrong; /* READER_WRONGs */
};

/* What becomes of a message from that node: it may be changed, copies of it are sent. */
struct peers_net {
	struct peers_node *node; /* [PEERS_NODES] */
	pthread_t thread;
	_Atomic bool stops;
	/* NULL: it arrives once. Returns how many times it does. */
	unsigned (*fate)(void *arg, unsigned node, struct value_head *head);
	void *arg;
	pthread_mutex_t lock;        /* held while a message is on its way */
	_Atomic unsigned carried[8]; /* by type */
};

/* Starts a reader over the tree, with a store and (has_memory) resident memory; nobody is connected yet. */
void peers_node_start(struct peers_node *node, unsigned number, struct tree *tree, bool has_memory);
void peers_node_stop(struct peers_node *node);
void peers_members(struct peers_node *node, const struct peers_node *other); /* NULL: nobody */
/* Its form's group is asked for, again after the start. */
void peers_form(struct peers_node *node);
/* A job of its has samples spread over so many nodes, of which it is that one. */
void peers_spread(struct peers_node *node, uint32_t number, uint32_t nodes);
/* accessd saw the death of who was to make that. */
void peers_unmade(struct peers_node *node, uint64_t sample);
/* Its reader is killed; another one gets its tasks. */
void peers_node_die(struct peers_node *node);

/* Each sample once, as accessd plans it: wanted if somebody has it, else to be made. */
void peers_queue(struct peers_node *node);
void peers_queue_ahead(struct peers_node *node);      /* each once, for no job of this node */
void peers_wait(struct peers_node *node, unsigned n); /* until all tasks of n nodes have ended */
void peers_end_round(struct peers_node *node);
unsigned peers_files(struct peers_node *node);
/* Until so many samples are in their stores, together. */
void peers_wait_kept(struct peers_node *node, unsigned n, unsigned samples);
uint32_t peers_number_of(const struct peers_node *node, uint64_t sample,
			 uint32_t nodes); /* whose it is there */
bool peers_owns(const struct peers_node *node, const struct peers_node *other, uint64_t sample);

void peers_net_start(struct peers_net *net, struct peers_node *node);
void peers_net_stop(struct peers_net *net);
/* Under net->lock: gives n nodes new rings, and tells them that the other one is connected. */
void peers_connect(struct peers_net *net, struct peers_node *node, unsigned n);
/* Until its reader has taken the rings, so that what is queued now is asked for. */
void peers_settle(struct peers_net *net, struct peers_node *node);
/* A message of a carrier of its own to that node's reader. */
void peers_say(struct peers_net *net, struct peers_node *node, const struct value_head *head,
	       const void *data);
/* Until it has taken all that was said to it. */
void peers_wait_taken(struct peers_net *net, struct peers_node *node);

/* The value that the test's workers make of a sample; its size. */
uint32_t peers_value(uint64_t sample, uint8_t ret[PEERS_VALUE_MOST]);
