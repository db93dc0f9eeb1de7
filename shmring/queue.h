/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The task queue of a stream: accessd fills a row, reader threads claim QUEUED tasks and read
 * bytes into the arena, workers claim READY tasks and fill the slot. Claims are single
 * compare-and-swaps on a task's own word, so that a process that dies at any instruction leaves at
 * most its one task behind, marked with its number. Sleepers use the armed flags of the doorbell.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum { QUEUE_E_NONE = 1, QUEUE_E_BAD = 2, QUEUE_E_FULL = 3, QUEUE_E_STRANGE = 4 };

struct queue { /* a mapped queue; geometry is a private copy, checked */
	struct layout_queue *head;
	struct layout_row *row;
	struct layout_task *task; /* [n_rows][chunk] */
	uint64_t bytes, arena_bytes;
	uint32_t n_rows, chunk, number;
	_Atomic uint32_t claims; /* of this process, about */
};
struct queue_task { /* a claimed task: private copy of what is needed, checked against geometry */
	uint32_t row, index;
	uint64_t sample, random_id, arena_offset, nonce, seed;
	uint32_t bytes, label, position, slot, attempt;
	uint32_t variants;         /* a bit each: whose fields are to be made */
	uint32_t room;             /* bytes of the arena that are the task's, at least `bytes` */
	uint32_t came;             /* bytes that the reader brought there, or that lie in ... */
	uint64_t resident;         /* ... the resident memory: 1 + where; 0: in the arena */
	uint8_t form;              /* stored form that came, 0: the file */
	uint8_t want, make, probe; /* stored forms: to bring, to keep, to try out; 0: none */
	enum layout_timed timed;   /* what CPU time is asked for */
	uint32_t owner;            /* who claimed it */
};

/* ---- memory (queue_memory.c) ---- */
/* arena_bytes is rounded up to pages (ret->arena_bytes). The caller owns both fds. 0, QUEUE_E_BAD
 * (n_rows, chunk or arena_bytes out of range), negative errno. */
int queue_new(uint32_t number, uint32_t n_rows, uint32_t chunk, uint64_t arena_bytes,
	      struct queue *ret, int *ret_queue_fd,
	      int *ret_arena_fd); /* both sealed, the queue reserved */
int queue_attach(int fd,
		 struct queue *ret); /* QUEUE_E_BAD, negative errno; fd stays the caller's */
void queue_detach(struct queue *queue);
/* Who writes it reserves it. 0, QUEUE_E_BAD (seals, size), negative errno. */
int queue_arena_attach(int fd, const struct queue *queue, bool writable, uint8_t **ret);
void queue_arena_detach(const struct queue *queue, uint8_t *arena);
int doorbell_new(struct layout_doorbell **ret, int *ret_fd);
int doorbell_attach(int fd, struct layout_doorbell **ret); /* QUEUE_E_BAD, negative errno */
void doorbell_detach(struct layout_doorbell *doorbell);

/* ---- accessd (queue.c) ---- */
/* A free row for a chunk of count tasks, tasks HELD. QUEUE_E_FULL if none, QUEUE_E_BAD if order is 0,
 * count is not 1 .. chunk or variants names none. order: lowest is served first. */
int queue_row_begin(struct queue *queue, uint64_t order, uint64_t nonce, uint64_t seed,
		    uint32_t slot, uint32_t variants, uint32_t count, uint32_t *ret_row);
/* A HELD task's random ops have another key than its row's. */
void queue_task_key(struct queue *queue, uint32_t row, uint32_t index, uint64_t seed,
		    uint64_t nonce);
/* Fills a HELD task (or one that ended, for a retry) and makes it QUEUED. The caller rings
 * doorbell_ring_readers() once after a batch of them. */
void queue_task_put(struct queue *queue, uint32_t row, uint32_t index, uint64_t sample,
		    uint64_t random_id, uint32_t position, uint32_t label, uint64_t arena_offset,
		    uint32_t bytes, uint32_t attempt);
/* Before that, where a task has to do with stored forms: room (of the arena) is at least what may come.
 * Else: none, and room for the file. Holds until it is said anew or the row ends. */
struct queue_keep {
	uint32_t room;
	uint8_t want, make, probe; /* as in queue_task */
	enum layout_timed timed;
};
void queue_task_keep(struct queue *queue, uint32_t row, uint32_t index,
		     const struct queue_keep *keep);
/* What reader and worker say of stored forms, of a task that ended. Hostile numbers, but for forms, which
 * are below LAYOUT_FORMS. CPU times of what was not to be timed mean nothing. */
struct queue_kept {
	uint32_t read_us, read_cpu_us, came; /* elapsed, CPU time, bytes */
	uint8_t form;                        /* that came, 0: the file */
	enum layout_from from;
	enum layout_made made;
	/* CPU time: of the pipelines from what came, where d_make was made from that; to make it; from
	 * the form that was tried; bytes */
	uint32_t work_us, make_us, form_us, form_bytes;
};
void queue_task_kept(const struct queue *queue, uint32_t row, uint32_t index,
		     struct queue_kept *ret);
static inline bool queue_is_end(enum layout_task_state state)
{
	return state == LAYOUT_TASK_DONE || state == LAYOUT_TASK_FAILED;
}
/* State of a task and, when it ended, copies of its outcome (text terminated, 48 bytes). */
enum layout_task_state queue_task_state(const struct queue *queue, uint32_t row, uint32_t index,
					uint32_t *ret_owner);
void queue_task_outcome(const struct queue *queue, uint32_t row, uint32_t index,
			enum layout_fail *ret_stage, int *ret_code, char ret_text[48],
			uint32_t *ret_work_us);
/* Takes a task from a dead owner: state READING/RUNNING by owner -> FAILED (stage, code), QUEUED,
 * or READY (its bytes are still in the arena). false if the task was in another state by then.
 * After a death call queue_recount() for every row and doorbell_ring_all(): the owner may have died
 * between ending a task and saying so. */
bool queue_task_take_over(struct queue *queue, uint32_t row, uint32_t index, uint32_t owner,
			  enum layout_task_state from, enum layout_task_state to,
			  enum layout_fail stage, int code);
/* All its tasks are FREE from now on. None of them may be READING or RUNNING by a live owner. */
void queue_row_end(struct queue *queue, uint32_t row);
void queue_close(struct queue *queue); /* nothing is claimed any more */
/* Ring accessd (eventfd) when `ended` tasks of the row have ended. One ring an arm. Then look
 * once more (queue_ended()): what ended before the arm does not ring. */
void queue_ring_at(struct queue *queue, uint32_t row, uint32_t ended);
/* The same, when the task `last` and all before it have ended: what nobody can use before. */
void queue_ring_upto(struct queue *queue, uint32_t row, uint32_t last);
bool queue_have_ended(const struct queue *queue, uint32_t row, uint32_t last);
/* Ends counted since the row was begun, retries included: says when to look. What has ended is
 * said by the tasks' states alone: an owner's death may leave the count short (queue_recount()
 * mends that) or, with a recount beside live owners, too high. */
uint32_t queue_ended(const struct queue *queue, uint32_t row);
void queue_recount(struct queue *queue,
		   uint32_t row); /* raises the count to the tasks that ended */

/* ---- reader threads (queue.c) ---- */
/* Claims the oldest QUEUED task: QUEUE_E_NONE if none, QUEUE_E_BAD if its numbers are out of bounds
 * (the task is then FAILED: ring accessd). owner: 1 .. 2^24-1. */
int queue_claim_read(struct queue *queue, uint32_t owner, struct queue_task *ret);
/* Tasks that are QUEUED just now, about. */
uint32_t queue_length(const struct queue *queue);
/* What came, if it is not the file, and where it lies (as in queue_task): before queue_read_done(). */
void queue_read_came(struct queue *queue, const struct queue_task *task, uint8_t form,
		     enum layout_from from, uint32_t bytes, uint64_t resident);
/* READING -> READY, or FAILED when stage != LAYOUT_FAIL_NONE. Returns true when accessd must be
 * rung. The caller then rings workers (READY) with doorbell_ring_workers(). Changes nothing if the task
 * is no more this owner's. text: UTF-8 or not, cut to 47 bytes, NULL: none. */
bool queue_read_done(struct queue *queue, const struct queue_task *task, enum layout_fail stage,
		     int code, const char *text, uint64_t read_ns, uint64_t cpu_ns);

/* ---- workers (queue.c) ---- */
/* As queue_claim_read(), of READY tasks of chunks all of whose variants are among `known` (bits): what
 * somebody does not know is left to others. QUEUE_E_STRANGE: it had such a task for a moment and gave
 * it back: ring doorbell_ring_workers(). */
int queue_claim_run(struct queue *queue, uint32_t owner, uint32_t known, struct queue_task *ret);
/* CPU time of the pipelines, and what became of a form that was to be made: before queue_run_done(). */
struct queue_made {
	uint32_t work_us;
	enum layout_made made;
	uint32_t make_us, form_us, bytes;
};
void queue_run_made(struct queue *queue, const struct queue_task *task,
		    const struct queue_made *made);
/* As queue_read_done(): RUNNING -> DONE or FAILED. */
bool queue_run_done(struct queue *queue, const struct queue_task *task, enum layout_fail stage,
		    int code, const char *text, uint32_t work_us);

/* ---- doorbell (doorbell.c) ---- */
void doorbell_ring_workers(
    struct layout_doorbell *doorbell); /* one task became READY: wakes one sleeper */
void doorbell_ring_readers(
    struct layout_doorbell *doorbell); /* tasks became QUEUED: wakes all sleepers */
/* Wakes everybody, armed or not: after a death, as the dead may have taken a wake along;
 * closing. */
void doorbell_ring_all(struct layout_doorbell *doorbell);
uint32_t doorbell_work_seq(const struct layout_doorbell *doorbell); /* before looking for work */
uint32_t doorbell_read_seq(const struct layout_doorbell *doorbell);
/* Sleeps until the sequence moved on from seen or timeout_ns went by (UINT64_MAX: no limit). No
 * spurious-wake promise. */
void doorbell_sleep_worker(struct layout_doorbell *doorbell, uint32_t seen, uint64_t timeout_ns);
void doorbell_sleep_reader(struct layout_doorbell *doorbell, uint32_t seen, uint64_t timeout_ns);
/* Should the eventfd be written? Exchanges the armed flag: true once an arm. */
bool doorbell_take_event_arm(struct layout_doorbell *doorbell);
void doorbell_arm_event(struct layout_doorbell *doorbell); /* accessd, before it sleeps */
