/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A real access-reader and the part of accessd that talks to it, for tests. Every call asserts. */

#include "base/wire.h"
#include "shmring/queue.h"
#include "storage/reader.h"
#include "tests/patience.h"
#include "tests/storage/tree.h"

#include <sys/types.h>

struct process {
	pid_t pid;
	int sock;
	struct layout_doorbell *doorbell;
	int doorbell_fd, event_fd;
};
/* faults: for tests/storage/faults.c, NULL: without it. start: READER_START is sent, too. */
void process_start(struct process *process, const char *faults, bool start);
void process_again(struct process *process, const char *faults); /* after a death: same doorbell */
void process_spawn(struct process *process, const char *faults); /* as that, without START */
int process_wait(struct process *process);                       /* its wait status */
void process_kill(struct process *process);                      /* SIGKILL and wait */
void process_stop(struct process *process);                      /* hangs up; it must exit with 0 */

void process_send(struct process *process, struct wire_out *out); /* and frees it */
/* The next message that is no PROGRESS and no FAILED. */
void process_receive(struct process *process, struct wire_in *ret);
/* Is nothing but PROGRESS and FAILED there for 100 ms? Where something might come, it may come later: this finds
 * what must not, and is no way to wait for anything. */
bool process_is_silent(struct process *process);

void process_ask_open(struct process *process, uint64_t id, const char *path, int stored_fd);
/* The same, where it may take so many bytes of memory. */
void process_ask_open_within(struct process *process, uint64_t id, const char *path, uint64_t most);
/* Receives OPENED: the index descriptor, -1 when unchanged. */
int process_opened(struct process *process, uint64_t id);
/* Receives REFUSED: its code; text (768 bytes) filled. */
int process_refused(struct process *process, uint64_t id, char *ret_text);

struct work { /* a queue with one task a sample of a dataset */
	struct tree *tree;
	struct dataset *dataset;
	struct queue queue;
	uint8_t *arena;
	int queue_fd, arena_fd;
	uint32_t row, count;
	uint64_t *offset; /* of each task in the arena, as accessd lays them */
};
/* Takes the dataset. */
void work_new(struct work *work, struct tree *tree, struct dataset *dataset, uint32_t number);
void work_free(struct work *work);
/* Receives FAILED of that task, whose sample has the same number. */
void process_failed(struct process *process, const struct work *work, uint32_t task);
void work_ask_attach(struct process *process, const struct work *work, uint64_t id);
void work_attach(struct process *process, const struct work *work, uint64_t id);
void work_detach(struct process *process, const struct work *work);
void work_queue(struct process *process, struct work *work); /* every sample, and rings */
/* Waits on the eventfd until every task has ended. */
void work_wait(struct process *process, struct work *work);
uint32_t work_in_state(const struct work *work, enum layout_task_state state);
/* All tasks READY and every byte as tree_file() wrote it. */
void work_check(const struct work *work);
