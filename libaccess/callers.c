/* SPDX-License-Identifier: Apache-2.0 */

#include "libaccess/callers.h"

void callers_init(struct callers *callers)
{
	*callers = (struct callers){.n = 0};
	sem_init(&callers->turn, 0, 0);
}

void callers_fini(struct callers *callers)
{
	sem_destroy(&callers->turn);
}

/* It was not free: whoever ends his turn counts one off n_waiting and posts. */
int callers_wait(struct callers *callers, pthread_mutex_t *lock, uint64_t deadline)
{
	const struct timespec until = base_timespec(BASE_MIN(deadline, (uint64_t)INT64_MAX));
	int r;

	callers->n_waiting++;
	pthread_mutex_unlock(lock);
	r = sem_clockwait(&callers->turn, CLOCK_MONOTONIC, &until) == 0 ? 0 : errno;
	pthread_mutex_lock(lock);
	if (r == 0 || sem_trywait(&callers->turn) == 0) /* it may have come after all */
		return 0;
	callers->n_waiting--;
	return r == EINTR ? OA_E_INTERRUPTED : OA_E_TIMEOUT;
}

BASE_HOT void callers_pass_turn(struct callers *callers, struct dial_wait *ret_wait)
{
	ret_wait->has_begun = callers->wait.has_begun;
	if (ret_wait->has_begun)
		ret_wait->before = callers->wait.before;
	callers->wait.has_begun = false;
	if (callers->n_waiting == 0) {
		callers->is_taken = false;
		return;
	}
	callers->n_waiting--;
	sem_post(&callers->turn);
}
