/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A real access-worker process with the test in accessd's and the reader's place: the test makes
 * the memories, sends the messages, puts a photograph's bytes into the arena and checks the slots.
 */

#include <check.h>

#include "base/wire.h"
#include "pipeline/pipeline.h"
#include "shmring/slot_table.h"
#include "shmring/queue.h"
#include "tests/patience.h"
#include "worker/parent.h"

#define RIG_CHUNK 32
#define RIG_SLOTS 4
#define RIG_MAX_WORKERS 1024 /* that one test ever sees */
#define RIG_SPEC                                                                              \
	"{\"ops\":[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":24},{\"op\":" \
	"\"hflip\"},{\"op\":\"layout\",\"order\":\"CHW\"}]}"

struct rig_worker { /* what STARTED and EXITED said; place in the list: owner */
	bool is_started, has_exited;
	unsigned index;
	pid_t pid;
	int status;
	uint64_t cpu_ns;
};

struct rig {
	int control, event;
	pid_t pid;
	struct layout_doorbell *doorbell;
	int doorbell_fd;
	struct rig_worker worker[RIG_MAX_WORKERS];
	uint32_t last_owner;
	unsigned n_alive, most_alive;
	struct { /* the last answer of each kind */
		uint64_t added, removed, refused;
		uint64_t variant; /* of the last answer, UINT64_MAX: none */
		char text[768];
	} answer;
};

struct rig_queue { /* with one variant; or a further variant of another one */
	uint32_t number, variant;
	const char *spec;
	uint32_t variants; /* of the chunks that are filled, a bit each */
	bool is_further;   /* queue, arena and their descriptors are the other one's */
	struct queue queue;
	int queue_fd, arena_fd, slots_fd;
	uint8_t *arena;
	const uint8_t *slots;
	struct slot_geometry geometry;
	struct pipeline *pipeline;
	struct pipeline_run *run;
	uint64_t order;
};

struct rig_add { /* what to spoil in PARENT_ADD; zeroed: nothing */
	const char *spec;
	uint64_t offset_change, bytes_change, stride_change, slots_change;
	uint64_t variant_change;
	unsigned fds_left_out;
	bool same_offsets;
};

struct rig_photo {
	uint8_t *data;
	size_t size;
};

/* ---- the process ---- */
/* fault: of faulty_worker.c, which then stands in for access-worker; NULL: none. */
struct rig *rig_new(unsigned n_workers, const char *memory, const char *fault);
void rig_free(struct rig *rig);
/* Reads messages until `is_done` says so; fails the test after PATIENCE_MS. */
void rig_await(struct rig *rig, bool (*is_done)(struct rig *rig, void *closure), void *closure);
void rig_pump(struct rig *rig, int timeout_ms);
/* Until as many workers of the newest kind live. */
void rig_await_workers(struct rig *rig, unsigned n_alive);
void rig_send_queue(struct rig *rig, enum parent_message type, uint32_t number);
void rig_send_kill(struct rig *rig, uint32_t owner);
void rig_send_size(struct rig *rig, uint64_t n_workers);
/* Until pid, a descendant that this process adopts, is gone. */
int rig_reap(pid_t pid);
/* Runs access-worker with these arguments (NULL ends them); what it says on stderr goes to ret. Returns
 * its wait status. */
int rig_run_program(const char *const argv[8], char *ret, size_t size);

/* ---- a queue ---- */
struct rig_queue *rig_queue_new(uint32_t number);
/* A variant more of it, with slots of its own; to be added, checked and freed as a queue. */
struct rig_queue *rig_variant_new(const struct rig_queue *of, uint32_t variant, const char *spec);
void rig_queue_free(struct rig_queue *queue);
/* Sends ADD and waits for the answer: true if ADDED. */
bool rig_queue_add(struct rig *rig, const struct rig_queue *queue, const struct rig_add *spoilt);
/* ADD, seal, GO. */
void rig_queue_open(struct rig *rig, struct rig_queue *queue);
/* What CPU time of a chunk's tasks is asked for: each in turn. */
static inline enum layout_timed rig_timed(uint32_t task)
{
	return (enum layout_timed)(task % (LAYOUT_TIMED_WORK + 1));
}

/* Fills a chunk of count tasks, makes all READY and rings. Returns its row. */
uint32_t rig_queue_fill(struct rig *rig, struct rig_queue *queue, uint32_t slot, uint32_t count);
/* Until no task of the row is READY or RUNNING. */
void rig_queue_await(struct rig *rig, struct rig_queue *queue, uint32_t row);
/* Are the fields of the chunk's samples what the pipeline makes of the photograph? */
void rig_queue_check(const struct rig_queue *queue, uint32_t row, uint32_t slot, uint32_t count);
unsigned rig_queue_count(const struct rig_queue *queue, uint32_t row, enum layout_task_state state);
/* Gives tasks of dead workers to others. Returns how many. */
unsigned rig_queue_take_over(struct rig *rig, struct rig_queue *queue, uint32_t row,
			     enum layout_task_state to);
