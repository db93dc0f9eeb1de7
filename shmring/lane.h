/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_LANE_H
#define SHMRING_LANE_H

/*
 * The way of a stream's tasks: accessd fills a block, reader threads claim QUEUED tasks and read
 * bytes into the arena, workers claim READY tasks and fill the slot. Claims are single
 * compare-and-swaps on a task's own word, so that a process that dies at any instruction leaves at
 * most its one task behind, marked with its number. Sleepers use the armed flags of the bell.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum { LANE_E_NONE = 1, LANE_E_BAD = 2, LANE_E_FULL = 3 };

struct lane { /* a mapped lane; geometry is a private copy, checked */
	struct layout_lane *head;
	struct layout_block *block;
	struct layout_task *task; /* [n_blocks][hand] */
	uint64_t bytes, arena_bytes;
	uint32_t n_blocks, hand, number;
};
struct lane_task { /* a claimed task: private copy of what is needed, checked against geometry */
	uint32_t block, index;
	uint64_t sample, random_id, arena_offset, lap, seed;
	uint32_t bytes, label, position, slot, attempt;
};

/* ---- memory (lane.c) ---- */
int lane_new(uint32_t number, uint32_t n_blocks, uint32_t hand, uint64_t arena_bytes,
	     struct lane *ret, int *ret_lane_fd, int *ret_arena_fd); /* both reserved and sealed */
int lane_attach(int fd, struct lane *ret); /* LANE_E_BAD, negative errno; fd stays the caller's */
void lane_detach(struct lane *lane);
int lane_arena_attach(int fd, const struct lane *lane, bool writable, uint8_t **ret);
void lane_arena_detach(const struct lane *lane, uint8_t *arena);
int bell_new(struct layout_bell **ret, int *ret_fd);
int bell_attach(int fd, struct layout_bell **ret);
void bell_detach(struct layout_bell *bell);

/* ---- accessd (lane.c) ---- */
/* A free block for a hand of count tasks, tasks HELD. LANE_E_FULL if none. */
int lane_block_begin(struct lane *lane, uint64_t order, uint64_t lap, uint64_t seed, uint32_t slot,
		     uint32_t count, uint32_t *ret_block);
/* Fills a HELD task (or one that ended, for a retry) and makes it QUEUED. The caller rings
 * bell_ring_readers() once after a batch of them. */
void lane_task_queue(struct lane *lane, uint32_t block, uint32_t index, uint64_t sample,
		     uint64_t random_id, uint32_t position, uint32_t label, uint64_t arena_offset,
		     uint32_t bytes, uint32_t attempt);
/* State of a task and, when it ended, copies of its outcome (text terminated, 48 bytes). */
enum layout_task_state lane_task_state(const struct lane *lane, uint32_t block, uint32_t index,
				       uint32_t *ret_owner);
void lane_task_outcome(const struct lane *lane, uint32_t block, uint32_t index,
		       enum layout_fail *ret_stage, int *ret_code, char ret_text[48],
		       uint32_t *ret_work_us);
/* Takes a task from a dead owner: state READING/RUNNING by owner -> FAILED (stage, code) or QUEUED.
 * false if the task was in another state by then. */
bool lane_task_take_over(struct lane *lane, uint32_t block, uint32_t index, uint32_t owner,
			 enum layout_task_state from, enum layout_task_state to,
			 enum layout_fail stage, int code);
void lane_block_end(struct lane *lane, uint32_t block); /* all its tasks are FREE from now on */
void lane_close(struct lane *lane);
/* Ring accessd (eventfd) when `ended` tasks of the block have ended. */
void lane_ring_at(struct lane *lane, uint32_t block, uint32_t ended);
uint32_t lane_ended(const struct lane *lane, uint32_t block);

/* ---- reader threads (lane.c) ---- */
/* Claims the oldest QUEUED task: LANE_E_NONE if none, LANE_E_BAD if its numbers are out of bounds
 * (the task is then FAILED). owner: 1 .. 2^24-1. */
int lane_claim_read(struct lane *lane, uint32_t owner, struct lane_task *ret);
/* READING -> READY, or FAILED when stage != LAYOUT_FAIL_NONE. Returns true when accessd must be
 * rung. The caller then rings workers (READY) with bell_ring_workers(). */
bool lane_read_done(struct lane *lane, const struct lane_task *task, enum layout_fail stage,
		    int code, const char *text, uint64_t read_ns);

/* ---- workers (lane.c) ---- */
int lane_claim_run(struct lane *lane, uint32_t owner, struct lane_task *ret); /* as lane_claim_read */
bool lane_run_done(struct lane *lane, const struct lane_task *task, enum layout_fail stage,
		   int code, const char *text, uint32_t work_us);

/* ---- bell (lane.c) ---- */
void bell_ring_workers(struct layout_bell *bell);
void bell_ring_readers(struct layout_bell *bell);
uint32_t bell_work_seq(const struct layout_bell *bell); /* before looking for work */
uint32_t bell_read_seq(const struct layout_bell *bell);
/* Sleeps until the sequence moved on from seen or timeout_ns went by. No spurious-wake promise. */
void bell_sleep_worker(struct layout_bell *bell, uint32_t seen, uint64_t timeout_ns);
void bell_sleep_reader(struct layout_bell *bell, uint32_t seen, uint64_t timeout_ns);
/* Should the eventfd be written? Exchanges the armed flag: true once an arm. */
bool bell_take_event_arm(struct layout_bell *bell);
void bell_arm_event(struct layout_bell *bell); /* accessd, before it sleeps */

const char *lane_check(const struct lane *lane); /* first broken rule, or NULL */

#endif
