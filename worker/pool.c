/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pool keeps N workers alive while there is a queue to work on. An entry of the doorbell belongs to
 * one worker at a time: it is given again only after its last holder was reaped, so a worker of an
 * old generation that is still busy with its last task keeps its successor waiting, and the pool
 * never has more than N processes. When N falls, those of the last places finish their task and exit. Owner numbers go up and are never given twice: a task's word
 * names one process for ever, and whoever finds a dead owner's number there may act on it.
 *
 * Memory. When the kernel runs out of it, a worker is the right process to die, and the parent the
 * wrong one (it would take the whole stream with it). oom_score_adj is inherited, and after
 * PR_SET_DUMPABLE 0 only root may open it, so the parent opened its own file while it could: it
 * raises itself, forks, and lowers itself again.
 */

#include "worker/pool.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_OOM_WORKER 1000

int pool_init(struct pool *pool, const struct pool_settings *settings,
	      struct layout_doorbell *doorbell, const struct rings *rings,
	      const struct resident *resident, const struct workset *workset)
{
	void *page =
	    mmap(NULL, base_page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	generation_keep_places(page, settings->n_workers);
	*pool = (struct pool){
	    .settings = *settings,
	    .doorbell = doorbell,
	    .rings = rings,
	    .resident = resident,
	    .workset = workset,
	    .current = page,
	};
	return 0;
}

void pool_fini(struct pool *pool)
{
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (pool->worker[i].pid > 0)
			kill(pool->worker[i].pid, SIGKILL);
	if (pool->current != NULL)
		munmap(pool->current, base_page_size());
	pool->current = NULL;
}

/* ---- starting ---- */

static void pool_set_oom(const struct pool *pool, int score)
{
	/* Best effort: where it is forbidden, all processes are alike to the kernel. */
	if (pool->settings.oom_fd >= 0)
		dprintf(pool->settings.oom_fd, "%d", score);
}

static bool pool_find_free(const struct pool *pool, unsigned *ret)
{
	for (unsigned i = 0; i < pool->settings.n_workers; i++) {
		if (pool->worker[i].pid != 0)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

static pid_t pool_fork(struct pool *pool, uint32_t owner, unsigned index)
{
	const struct worker_setup setup = {
	    .owner = owner,
	    .index = index,
	    .generation = pool->generation,
	    .memory = pool->settings.memory,
	    .nice = pool->settings.nice,
	    .parent = getpid(),
	    .current = pool->current,
	    .doorbell = pool->doorbell,
	    .rings = pool->rings,
	    .resident = pool->resident,
	    .workset = pool->workset,
	};
	pid_t pid;

	pool_set_oom(pool, POOL_OOM_WORKER);
	pid = fork();
	if (pid == 0)
		worker_main(&setup);
	pool_set_oom(pool, pool->settings.oom_parent);
	return pid;
}

int pool_start(struct pool *pool, uint64_t now_ns, struct pool_event *ret)
{
	unsigned index;
	pid_t pid;

	if (pool_wait_ns(pool, now_ns) != 0 || !pool_find_free(pool, &index))
		return POOL_E_NONE;
	if (pool->last_owner == POOL_LAST_OWNER)
		return POOL_E_SPENT;
	/* Its last writer is reaped and its next one not born: the fork orders this store. */
	atomic_store_explicit(&pool->doorbell->worker[index].w_task, 0, memory_order_relaxed);
	pid = pool_fork(pool, pool->last_owner + 1, index);
	if (pid < 0) {
		int rc = -errno;

		for (unsigned i = 0; i < BACKOFF_BURST; i++)
			backoff_death(&pool->backoff, now_ns, 0);
		return rc;
	}
	pool->worker[index] =
	    (struct pool_worker){pid, ++pool->last_owner, pool->generation, now_ns, false};
	*ret = (struct pool_event){.owner = pool->last_owner, .index = index, .pid = pid};
	return 0;
}

uint64_t pool_wait_ns(const struct pool *pool, uint64_t now_ns)
{
	unsigned index;

	if (workset_is_idle(pool->workset, pool->generation) || !pool_find_free(pool, &index))
		return UINT64_MAX;
	return backoff_wait_ns(&pool->backoff, now_ns);
}

/* ---- ending ---- */

static bool pool_find_pid(const struct pool *pool, pid_t pid, unsigned *ret)
{
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++) {
		if (pool->worker[i].pid != pid)
			continue;
		*ret = i;
		return true;
	}
	return false;
}

int pool_reap(struct pool *pool, uint64_t now_ns, struct pool_event *ret)
{
	struct rusage usage;
	int status;
	unsigned index;
	pid_t pid = wait4(-1, &status, WNOHANG, &usage);

	if (pid <= 0 || !pool_find_pid(pool, pid, &index))
		return POOL_E_NONE;
	*ret = (struct pool_event){.owner = pool->worker[index].owner,
				   .index = index,
				   .pid = pid,
				   .status = status,
				   .cpu_ns = base_usage_ns(&usage)};
	/* Nobody asked one of the current generation to end that has a place, whatever it says of itself. */
	if (status != 0 || (pool->worker[index].generation == pool->generation &&
			    !pool->worker[index].is_surplus)) {
		backoff_death(&pool->backoff, now_ns, now_ns - pool->worker[index].started_ns);
		doorbell_ring_all(pool->doorbell); /* it may have taken a wake along */
	}
	pool->worker[index] = (struct pool_worker){.pid = 0};
	return 0;
}

void pool_retire(struct pool *pool)
{
	pool->generation++;
	generation_move_to(pool->current, pool->generation);
	doorbell_ring_all(pool->doorbell);
}

void pool_resize(struct pool *pool, unsigned n_workers)
{
	pool->settings.n_workers = n_workers;
	for (unsigned i = n_workers; i < LAYOUT_MAX_WORKERS; i++)
		pool->worker[i].is_surplus = true;
	generation_keep_places(pool->current, n_workers);
	doorbell_ring_all(pool->doorbell);
}

bool pool_kill(struct pool *pool, uint64_t owner)
{
	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (pool->worker[i].pid > 0 && pool->worker[i].owner == owner)
			return kill(pool->worker[i].pid, SIGKILL) == 0;
	return false;
}

uint64_t pool_oldest(const struct pool *pool)
{
	uint64_t oldest = pool->generation;

	for (unsigned i = 0; i < LAYOUT_MAX_WORKERS; i++)
		if (pool->worker[i].pid > 0)
			oldest = BASE_MIN(oldest, pool->worker[i].generation);
	return oldest;
}
