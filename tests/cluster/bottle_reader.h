/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What of a reader has to do with other nodes, as a module that is loaded once a node: its state is in variables of its
 * own. Clock, chance, memory, store and queues are the bottle's (bottle.h). Unloading it is the death of that process.
 */

#include "storage/reader_peers.h"

/* Faults that are planted, to see that they are found. */
enum bottle_mutant {
	MUTANT_NONE,
	/* in the reader */
	MUTANT_PROMISE_FOR_EVER, /* no promise is ever over */
	MUTANT_WAITERS_LEAK,     /* who was answered keeps his place */
	MUTANT_OWNER_MODULO,     /* owners by a remainder, not by rendezvous */
	MUTANT_NO_PATIENCE,      /* a task waits for as long as it takes */
	MUTANT_NAMES_ONCE,       /* a new connection is not told the groups' names */
	MUTANT_TAKEN_TWICE,      /* a task that was answered can be answered again */
	/* in the carrier and the gate */
	MUTANT_NEVER_OPENS,  /* the breaker counts nothing */
	MUTANT_NEVER_CLOSES, /* the one that tries says nothing */
	MUTANT_NO_DEADLINE,  /* a GET is out for as long as it takes */
	MUTANT_NAMES_MIXED,  /* each group goes by the number of the first */
	MUTANT_BELIEVES_ALL, /* a frame's checksum is not looked at */
	MUTANT_CALLS_STORM,  /* who was not reached is called at once */
	MUTANTS
};

struct bottle_host { /* what the reader has of the bottle */
	void *node;
	enum bottle_mutant mutant;
	bool has_store; /* else memory is all there is */
	uint64_t (*now_ns)(void *node);
	uint64_t (*chance)(void *node);
	void *(*allocate)(void *node, size_t bytes);
	void (*release)(void *node, void *row);
	/* 0, STORE_E_NONE or STORE_E_ROOM */
	int (*find)(void *node, const struct hash_id *group, uint64_t sample, uint8_t *buffer,
		    size_t room, size_t *ret_bytes);
	void (*keep)(void *node, const struct hash_id *group, uint64_t sample, const uint8_t *value,
		     size_t bytes);
	bool (*is_idle)(void *node);
	void (*complain)(void *node, const char *event); /* what it would log */
	void (*look)(void *node, const struct value_head *get);
	/* of a queue, by its number */
	void (*again)(void *node, uint64_t queue, const struct queue_task *task);
	void (*bring)(void *node, uint64_t queue, const struct queue_task *task,
		      const uint8_t *value, uint32_t bytes);
};

struct bottle_reader {
	bool (*begin)(const struct bottle_host *host); /* which lives as long */
	struct reader_queue *(*open)(uint64_t number, const struct hash_id *group,
				     uint64_t samples);
	unsigned (*busy)(const struct reader_queue *queue);
	bool (*carrier)(uint64_t self, int to_fd, int from_fd);
	bool (*members)(uint32_t weight, const struct reader_member *members, unsigned n);
	bool (*turn)(void);
	uint64_t (*nap_ns)(void);
	bool (*ask)(struct reader_queue *queue, const struct queue_task *task);
	bool (*made)(struct reader_queue *queue, const struct rings_item *item);
	void (*not_made)(struct reader_queue *queue, uint64_t sample);
	void (*looked)(const struct value_head *get, bool is_same);
	uint64_t (*owner)(const struct hash_id *group,
			  uint64_t sample); /* a node's id; 0: this one */
	unsigned (*promises)(unsigned *ret_waiters);
	unsigned (*asks)(void);
};

#define BOTTLE_READER "bottle_reader" /* the symbol of a struct bottle_reader */
