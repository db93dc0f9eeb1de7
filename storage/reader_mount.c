/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mounts, their lanes, and the threads that read for them.
 *
 * Every mount (the device of a dataset's root) that has lanes has its own N threads, so a file
 * system that hangs holds its own threads and nobody else's. The threads of a mount serve its lanes
 * in turn: a lane that gave a task goes to the end of the list. They sleep on the doorbell while there
 * is no task, and on the mount's condition while it has no lane.
 *
 * A lane is busy while threads read for it. DETACH takes it from the list, so that no new task is
 * claimed.
 *
 * A data set whose samples processes make is a mount of its own, with as many threads as these are: what
 * hangs there holds nobody's files.
 *
 * A task that waits for a value of another node (reader_peers.c) keeps its lane busy, and no thread. Where none comes,
 * it is put before all others of its mount.
 *
 * Owner numbers of claims count through all threads of the process from 1. They need no more than
 * that: a task that is READING when this process is gone was one of ours, for a trust domain has
 * one reader at a time.
 *
 * Rejected: one pool with a limit of reads in flight a lane. Two lanes of one hung mount then take
 * all threads, or a healthy mount never gets more than its share of an idle pool.
 */

#include "storage/reader_peers.h"

#include "base/log.h"
#include "storage/source/source_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOUNT_MOST 64
#define MOUNT_MADE (UINT64_C(1) << 63) /* beside a root's inode: no device has such a number */

static struct {                   /* written by the main thread before any reading thread starts */
	unsigned threads, owners; /* of a mount; given out so far */
	struct reader_mount mount[MOUNT_MOST];
} mounts;

/* ---- lanes of a mount ---- */

static void mount_append_locked(struct reader_mount *mount, struct reader_lane *lane)
{
	struct reader_lane **at = &mount->lanes;

	while (*at)
		at = &(*at)->next;
	lane->next = NULL;
	*at = lane;
}

static struct reader_lane *mount_unlink_locked(struct reader_mount *mount, uint64_t number)
{
	struct reader_lane **at = &mount->lanes, *lane;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	lane = *at;
	if (lane)
		*at = lane->next;
	return lane;
}

void reader_mount_keep(struct reader_lane *lane)
{
	pthread_mutex_lock(&lane->mount->lock);
	lane->busy++;
	pthread_mutex_unlock(&lane->mount->lock);
}

bool reader_mount_put(struct reader_lane *lane)
{
	struct reader_mount *mount = lane->mount;
	bool last;

	pthread_mutex_lock(&mount->lock);
	lane->busy--;
	last = lane->leaving && lane->busy == 0;
	if (last)
		mount->n_lanes--;
	pthread_mutex_unlock(&mount->lock);
	return last;
}

static struct reader_lane *mount_find_locked(struct reader_mount *mount, uint64_t number)
{
	struct reader_lane *lane = mount->lanes;

	while (lane && lane->number != number)
		lane = lane->next;
	return lane;
}

struct reader_lane *reader_mount_hold(uint64_t number)
{
	struct reader_lane *lane = NULL;

	for (size_t i = 0; i < MOUNT_MOST && !lane; i++) {
		struct reader_mount *mount = &mounts.mount[i];

		if (!atomic_load_explicit(&mount->is_made, memory_order_acquire))
			continue;
		pthread_mutex_lock(&mount->lock);
		lane = mount_find_locked(mount, number);
		if (lane)
			lane->busy++;
		pthread_mutex_unlock(&mount->lock);
	}
	return lane;
}

static struct reader_ask *mount_take_again_locked(struct reader_mount *mount)
{
	struct reader_ask *ask = mount->again;

	if (ask)
		mount->again = ask->next;
	return ask;
}

int reader_mount_claim(const struct reader_thread *thread, struct lane_task *ret,
		       struct reader_lane **ret_lane, struct reader_ask **ret_again)
{
	struct reader_mount *mount = thread->mount;
	struct reader_lane *lane;
	int r = LANE_E_NONE;

	pthread_mutex_lock(&mount->lock);
	while (!mount->lanes && !mount->again)
		pthread_cond_wait(&mount->filled, &mount->lock);
	*ret_again = mount_take_again_locked(mount);
	for (lane = *ret_again ? NULL : mount->lanes; lane; lane = lane->next) {
		r = lane_claim_read(&lane->lane, thread->owner, ret);
		if (r != LANE_E_NONE)
			break;
	}
	if (lane && !r) {
		lane->busy++;
		mount_unlink_locked(mount, lane->number);
		mount_append_locked(mount, lane);
	}
	pthread_mutex_unlock(&mount->lock);
	*ret_lane = r ? NULL : lane;
	return r;
}

bool reader_mount_again(struct reader_ask *ask)
{
	struct reader_mount *mount = ask->lane->mount;
	bool leaving;

	pthread_mutex_lock(&mount->lock);
	leaving = ask->lane->leaving;
	if (!leaving) {
		if (!mount->again)
			mount->again_end = &mount->again;
		ask->next = NULL;
		*mount->again_end = ask;
		mount->again_end = &ask->next;
		pthread_cond_signal(&mount->filled);
	}
	pthread_mutex_unlock(&mount->lock);
	return !leaving;
}

/* ---- threads ---- */

static int thread_start(struct reader_mount *mount)
{
	struct reader_thread *thread = calloc(1, sizeof(*thread)); /* the thread's, for ever */
	pthread_t handle;
	int r;

	if (!thread)
		return -ENOMEM;
	thread->mount = mount;
	thread->owner = ++mounts.owners;
	r = pthread_create(&handle, NULL, reader_lane_thread, thread);
	if (r) {
		free(thread);
		return -r;
	}
	pthread_detach(handle);
	return 0;
}

/* At least one thread, else negative errno: with fewer than asked for it is only slower. One that had
 * fewer until now gets more. */
static int mount_start(struct reader_mount *mount, unsigned threads)
{
	int r = 0;

	if (!mount->is_made) {
		pthread_mutex_init(&mount->lock, NULL);
		pthread_cond_init(&mount->filled, NULL);
		atomic_store_explicit(&mount->is_made, true, memory_order_release);
	}
	while (mount->threads < threads && !r) {
		r = thread_start(mount);
		mount->threads += !r;
	}
	if (!mount->threads)
		return r;
	if (r)
		log_line(LOG_LEVEL_WARN, "threads-few", "asked=%u started=%u error=\"%s\"", threads,
			 mount->threads, strerror(-r));
	return 0;
}

/* ---- adding and removing, in the main thread ---- */

void reader_mount_init(unsigned threads)
{
	mounts.threads = threads;
}

static unsigned mount_lanes(struct reader_mount *mount)
{
	unsigned n;

	pthread_mutex_lock(&mount->lock);
	n = mount->n_lanes;
	pthread_mutex_unlock(&mount->lock);
	return n;
}

/* The mount of the data set, with its threads; one without lanes is used again. */
static int mount_of(const struct reader_dataset *dataset, struct reader_mount **ret)
{
	const struct source_ops *ops = dataset->ops;
	const uint64_t device = ops->make ? dataset->inode | MOUNT_MADE : dataset->device;
	const unsigned threads = ops->make ? ops->threads(dataset) : mounts.threads;
	struct reader_mount *unused = NULL;
	int r;

	for (size_t i = 0; i < MOUNT_MOST; i++) {
		struct reader_mount *mount = &mounts.mount[i];
		const bool in_use = mount->threads && mount_lanes(mount);

		if (in_use && mount->device == device) {
			*ret = mount;
			return 0;
		}
		if (!in_use && (!unused || (mount->threads && !unused->threads)))
			unused = mount;
	}
	if (!unused)
		return -EUSERS;
	r = mount_start(unused, threads);
	if (r)
		return r;
	unused->device = device;
	*ret = unused;
	return 0;
}

int reader_mount_add(struct reader_lane *lane)
{
	struct reader_mount *mount;
	int r = mount_of(lane->dataset, &mount);

	if (r)
		return r;
	lane->mount = mount;
	pthread_mutex_lock(&mount->lock);
	mount->n_lanes++;
	mount_append_locked(mount, lane);
	pthread_cond_broadcast(&mount->filled);
	pthread_mutex_unlock(&mount->lock);
	return 0;
}

struct reader_lane *reader_mount_remove(uint64_t number, bool *ret_idle)
{
	struct reader_lane *lane = NULL;

	*ret_idle = false;
	for (size_t i = 0; i < MOUNT_MOST && !lane; i++) {
		struct reader_mount *mount = &mounts.mount[i];

		if (!mount->threads)
			continue;
		pthread_mutex_lock(&mount->lock);
		lane = mount_unlink_locked(mount, number);
		if (lane) {
			lane->leaving = true;
			*ret_idle = lane->busy == 0;
			mount->n_lanes -= *ret_idle;
		}
		pthread_mutex_unlock(&mount->lock);
	}
	return lane;
}
