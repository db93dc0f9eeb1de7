/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The threads that are in a stream's calls, and whose turn it is. One at a time is inside oa_next(); others wait
 * for theirs on a semaphore, as such a wait ends when a signal arrives. All of it with the stream's lock.
 */

#include <pthread.h>
#include <semaphore.h>
#include "libaccess/connect/dial.h"

struct callers {
	uint32_t n;            /* in calls that may wait, for their turn, too */
	uint32_t n_waiting;    /* of them, those that wait for a post of `turn` */
	bool is_taken;         /* the turn: a thread has it */
	struct dial_wait wait; /* of who has it */
	sem_t turn;            /* posted to hand it over to one who waits for it */
};

void callers_init(struct callers *callers);
void callers_fini(struct callers *callers);
/* Waits until the turn is handed over, for which `lock` is dropped. 0, OA_E_INTERRUPTED, OA_E_TIMEOUT. */
BASE_COLD int callers_wait(struct callers *callers, pthread_mutex_t *lock, uint64_t deadline);
/* The turn: at once, or by callers_wait(). */
static inline int callers_take_turn(struct callers *callers, pthread_mutex_t *lock,
				    uint64_t deadline)
{
	if (callers->is_taken)
		return callers_wait(callers, lock, deadline);
	callers->is_taken = true;
	return 0;
}
/* To the next one. *ret_wait is to be ended without the lock: handlers run then. */
void callers_pass_turn(struct callers *callers, struct dial_wait *ret_wait);
