/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The queues that a parent and the workers it forks have mapped: tasks, bytes (arena), where the
 * results go (slots) and what is to be done (pipeline). The parent adds and removes; a worker has
 * the copy that it was forked with.
 */

#include "pipeline/pipeline.h"
#include "shmring/queue.h"

#define WORKSET_MAX_QUEUES 1024

enum { WORKSET_E_REFUSED = 1 }; /* diag says what is wrong with the queue */

struct workset_field {
	uint64_t offset;       /* of the field's array in a slot */
	uint64_t sample_bytes; /* from sample to sample */
};

enum workset_state {
	WORKSET_UNUSED = 0,
	WORKSET_MAPPED,
	WORKSET_LEAVES, /* unmapped here; workers of a generation before `leaves` may have it */
};

struct workset_variant { /* a pipeline of a queue, and where its fields go */
	enum workset_state state;
	uint64_t known_from; /* workers of this generation and later know it */
	uint64_t leaves;
	/* while MAPPED: */
	uint8_t *slots;
	uint64_t stride, slots_bytes, n_slots;
	struct pipeline *pipeline;
	unsigned n_fields;
	struct workset_field field[PIPELINE_MAX_FIELDS];
};

struct workset_queue {
	uint32_t number;
	bool is_leaving; /* unmapped here; workers of a generation before `leaves` may have it */
	uint64_t leaves;
	/* mapped; gone when is_leaving: */
	struct queue queue;
	uint8_t *arena; /* read-only */
	struct workset_variant variant[LAYOUT_MAX_VARIANTS];
};

struct workset {
	struct workset_queue *queue[WORKSET_MAX_QUEUES]; /* owned */
	unsigned count;
};

struct workset_request { /* everything borrowed for the call */
	uint64_t number, variant, stride, slots_bytes;
	const char *spec;
	const void *offsets; /* uint64_t [fields of the pipeline][2], not aligned */
	size_t offsets_size;
	int slots_fd, queue_fd, arena_fd; /* -1: did not come */
};

/* Maps a variant's slots and compiles its pipeline; with the first one of a queue, maps the queue. 0,
 * WORKSET_E_REFUSED and *diag, or -ENOMEM. The descriptors stay the caller's, who closes them: the
 * mappings are all that is kept. */
int workset_add(struct workset *set, const struct workset_request *request, uint64_t known_from,
		struct diag *diag);
void workset_fini(struct workset *set); /* unmaps and frees everything */
/* The queue of that number, or NULL. */
struct workset_queue *workset_find(struct workset *set, uint64_t number);
/* Unmaps it; it stays in the set as leaving until workset_forget(). */
void workset_unmap(struct workset_queue *queue, uint64_t leaves);
/* As workset_unmap(), one variant. false: there is none of that number. */
bool workset_unmap_variant(struct workset_queue *queue, uint64_t number, uint64_t leaves);
/* Takes one leaving queue out of the set, or one leaving variant (*ret_variant, else WORKSET_ALL), that
 * no generation from `oldest` on knows. false if there is none. */
#define WORKSET_ALL UINT32_MAX
bool workset_forget(struct workset *set, uint64_t oldest, uint32_t *ret_number,
		    uint32_t *ret_variant);
/* Is there anything in the queue that workers of this generation do not know? */
bool workset_has_news(const struct workset_queue *queue, uint64_t generation);
/* Is there nothing that workers of this generation would work on? */
bool workset_is_idle(const struct workset *set, uint64_t generation);
/* The variants of the queue that a worker of this generation may use, a bit each; 0: none, nor the
 * queue. */
uint32_t workset_known(const struct workset_queue *queue, uint64_t generation);
/* Where a task's fields go, for each of its variants. false if slot or position is outside this queue,
 * or a variant is none. */
bool workset_outputs(const struct workset_queue *queue, const struct queue_task *task,
		     struct pipeline_out out[LAYOUT_MAX_VARIANTS]);
/* Has what the task will write to mapped, if it is not: out is from workset_outputs(). */
void workset_touch(const struct workset_queue *queue, const struct queue_task *task,
		   const struct pipeline_out out[LAYOUT_MAX_VARIANTS]);
/* Has none of that in the processor's caches, as slots are that were not written for some time. */
void workset_evict(const struct workset_queue *queue, const struct queue_task *task,
		   const struct pipeline_out out[LAYOUT_MAX_VARIANTS]);
