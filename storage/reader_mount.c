/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mounts, their queues, and the threads that read for them.
 *
 * Every mount (the device of a dataset's root) that has queues has its own N threads, so a file
 * system that hangs holds its own threads and nobody else's. The threads of a mount serve its queues
 * in turn: a queue that gave a task goes to the end of the list. They sleep on the doorbell while there
 * is no task, and on the mount's condition while it has no queue.
 *
 * A queue is busy while threads read for it. DETACH takes it from the list, so that no new task is
 * claimed.
 *
 * A data set whose samples processes make is a mount of its own, with as many threads as these are: what
 * hangs there holds nobody's files. So is one in an object store.
 *
 * A task that waits for a value of another node (reader_peers.c) keeps its queue busy, and no thread. Where none comes,
 * it is put before all others of its mount.
 *
 * What a thread claimed with others, and cannot be brought with them, it leaves to whichever thread has time: a read that hangs holds
 * up none but itself.
 *
 * What peers want looked at comes in turn with tasks, so that neither keeps the other from the mount's threads. Where the
 * first look waits for long, the mount hangs or is slow, and no more are taken: who asks is told at once. Looks of accessd's own,
 * at what jobs wait for (daemon/serve/revisit.h), go before those, some samples at a time.
 *
 * Owner numbers of claims count through all threads of the process from 1. They need no more than
 * that: a task that is READING when this process is gone was one of ours, for a trust domain has
 * one reader at a time.
 *
 * Rejected: one pool with a limit of reads in flight a queue. Two queues of one hung mount then take
 * all threads, or a healthy mount never gets more than its share of an idle pool.
 */

#include "storage/reader_peers.h"

#include "base/log.h"
#include "storage/source/source_bytes.h"

#define MOUNT_MOST 64
#define MOUNT_MOST_LOOKS 4096               /* of a mount, that wait */
#define MOUNT_LOOKS_NS UINT64_C(1000000000) /* then the mount hangs, as far as peers see */
#define MOUNT_REVISITS 16                   /* samples that a thread looks at in a row */
#define MOUNT_MADE (UINT64_C(1) << 63)      /* beside a root's inode: no device has such a number */

struct reader_left { /* a task that a thread had claimed with others */
	struct reader_left *next;
	struct reader_queue *queue; /* busy with it */
	struct queue_task task;
};

static struct {                   /* written by the main thread before any reading thread starts */
	unsigned threads, owners; /* of a mount; given out so far */
	struct reader_mount mount[MOUNT_MOST];
} mounts;

/* ---- queues of a mount ---- */

static void mount_append_locked(struct reader_mount *mount, struct reader_queue *queue)
{
	struct reader_queue **at = &mount->queues;

	while (*at)
		at = &(*at)->next;
	queue->next = NULL;
	*at = queue;
}

static struct reader_queue *mount_unlink_locked(struct reader_mount *mount, uint64_t number)
{
	struct reader_queue **at = &mount->queues, *queue;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	queue = *at;
	if (queue)
		*at = queue->next;
	return queue;
}

void reader_mount_keep(struct reader_queue *queue)
{
	BASE_HOLD(&queue->mount->lock);
	queue->busy++;
}

bool reader_mount_put(struct reader_queue *queue)
{
	struct reader_mount *mount = queue->mount;
	bool last;

	BASE_HOLD(&mount->lock);
	queue->busy--;
	last = queue->leaving && queue->busy == 0;
	if (last)
		mount->n_queues--;
	return last;
}

static struct reader_queue *mount_find_locked(struct reader_mount *mount, uint64_t number)
{
	struct reader_queue *queue = mount->queues;

	while (queue && queue->number != number)
		queue = queue->next;
	return queue;
}

struct reader_queue *reader_mount_hold(uint64_t number)
{
	struct reader_queue *queue = NULL;

	for (size_t i = 0; i < MOUNT_MOST && !queue; i++) {
		struct reader_mount *mount = &mounts.mount[i];

		if (!atomic_load_explicit(&mount->is_made, memory_order_acquire))
			continue;
		pthread_mutex_lock(&mount->lock);
		queue = mount_find_locked(mount, number);
		if (queue)
			queue->busy++;
		pthread_mutex_unlock(&mount->lock);
	}
	return queue;
}

static struct reader_ask *mount_take_again_locked(struct reader_mount *mount)
{
	struct reader_ask *ask = mount->again;

	if (ask)
		mount->again = ask->next;
	return ask;
}

/* Its task is the claim's. */
static struct reader_left *mount_take_left_locked(struct reader_mount *mount,
						  struct reader_claim *ret)
{
	struct reader_left *left = mount->left;

	if (left) {
		mount->left = left->next;
		ret->queue = left->queue;
		ret->task = left->task;
		ret->is_alone = true;
	}
	return left;
}

static struct reader_look *mount_take_look_locked(struct reader_mount *mount)
{
	struct reader_look *look = mount->looks;

	if (look) {
		mount->looks = look->next;
		mount->n_looks--;
	}
	return look;
}

static struct reader_revisit *mount_take_revisit_locked(struct reader_mount *mount,
							struct reader_claim *ret)
{
	struct reader_revisit *revisit = mount->revisits;

	if (!revisit)
		return NULL;
	ret->from = revisit->begun;
	ret->to = revisit->begun = BASE_MIN(revisit->begun + MOUNT_REVISITS, revisit->n);
	if (revisit->begun == revisit->n)
		mount->revisits = revisit->next;
	return revisit;
}

static int mount_claim_task_locked(struct reader_mount *mount, uint32_t owner,
				   struct reader_claim *ret)
{
	struct reader_queue *queue;
	int r = QUEUE_E_NONE;

	for (queue = mount->queues; queue; queue = queue->next) {
		r = queue_claim_read(&queue->queue, owner, &ret->task);
		if (r != QUEUE_E_NONE)
			break;
	}
	if (r)
		return r;
	queue->busy++;
	mount_unlink_locked(mount, queue->number);
	mount_append_locked(mount, queue);
	ret->queue = queue;
	return 0;
}

/* A look or a task, by turns, where there are both. */
static int mount_claim_turn_locked(struct reader_mount *mount, uint32_t owner,
				   struct reader_claim *ret)
{
	int r = QUEUE_E_NONE;
	bool is_look;

	if (mount->was_look)
		r = mount_claim_task_locked(mount, owner, ret);
	if (r == QUEUE_E_NONE)
		ret->revisit = mount_take_revisit_locked(mount, ret);
	if (r == QUEUE_E_NONE && !ret->revisit)
		ret->look = mount_take_look_locked(mount);
	is_look = ret->revisit || ret->look;
	if (r == QUEUE_E_NONE && !is_look && !mount->was_look)
		r = mount_claim_task_locked(mount, owner, ret);
	mount->was_look = is_look;
	return is_look ? 0 : r;
}

int reader_mount_claim(const struct reader_thread *thread, struct reader_claim *ret)
{
	struct reader_mount *mount = thread->mount;
	struct reader_left *left = NULL;
	int r = 0;

	*ret = (struct reader_claim){.again = NULL};
	pthread_mutex_lock(&mount->lock);
	while (!mount->queues && !mount->again && !mount->left && !mount->looks && !mount->revisits)
		pthread_cond_wait(&mount->filled, &mount->lock);
	ret->again = mount_take_again_locked(mount);
	if (!ret->again)
		left = mount_take_left_locked(mount, ret);
	if (!ret->again && !left)
		r = mount_claim_turn_locked(mount, thread->owner, ret);
	pthread_mutex_unlock(&mount->lock);
	free(left);
	return r;
}

bool reader_mount_leave(struct reader_queue *queue, const struct queue_task *task)
{
	struct reader_mount *mount = queue->mount;
	struct reader_left *left = malloc(sizeof(*left));

	if (!left)
		return false;
	*left = (struct reader_left){.queue = queue, .task = *task};
	BASE_HOLD(&mount->lock);
	queue->busy++;
	if (!mount->left)
		mount->left_end = &mount->left;
	*mount->left_end = left;
	mount->left_end = &left->next;
	pthread_cond_signal(&mount->filled);
	return true;
}

bool reader_mount_again(struct reader_ask *ask)
{
	struct reader_mount *mount = ask->queue->mount;
	bool leaving;

	BASE_HOLD(&mount->lock);
	leaving = ask->queue->leaving;
	if (!leaving) {
		if (!mount->again)
			mount->again_end = &mount->again;
		ask->next = NULL;
		*mount->again_end = ask;
		mount->again_end = &ask->next;
		pthread_cond_signal(&mount->filled);
	}
	return !leaving;
}

/* A queue that has the values of that group, busy once more; NULL: there is none. */
static struct reader_queue *mount_sharing_locked(struct reader_mount *mount,
						 const struct hash_id *group)
{
	struct reader_queue *queue = mount->queues;

	while (queue && !reader_queue_shares(queue, group))
		queue = queue->next;
	if (queue)
		queue->busy++;
	return queue;
}

static bool mount_takes_looks_locked(const struct reader_mount *mount, uint64_t now_ns)
{
	return !mount->looks || (mount->n_looks < MOUNT_MOST_LOOKS &&
				 now_ns - mount->looks->since_ns <= MOUNT_LOOKS_NS);
}

static int mount_look(struct reader_mount *mount, const struct value_head *get)
{
	const uint64_t now_ns = base_now_ns();
	struct reader_queue *queue;
	struct reader_look *look = NULL;

	pthread_mutex_lock(&mount->lock);
	queue = mount_sharing_locked(mount, &get->group);
	if (queue && mount_takes_looks_locked(mount, now_ns))
		look = malloc(sizeof(*look));
	if (look) {
		*look = (struct reader_look){.queue = queue, .get = *get, .since_ns = now_ns};
		if (!mount->looks)
			mount->looks_end = &mount->looks;
		*mount->looks_end = look;
		mount->looks_end = &look->next;
		mount->n_looks++;
		pthread_cond_signal(&mount->filled);
	}
	pthread_mutex_unlock(&mount->lock);
	if (queue && !look)
		reader_queue_put(queue);
	return look ? 1 : queue ? -1 : 0;
}

int reader_mount_look(const struct value_head *get)
{
	int r = 0;

	for (size_t i = 0; i < MOUNT_MOST && r == 0; i++)
		if (atomic_load_explicit(&mounts.mount[i].is_made, memory_order_acquire))
			r = mount_look(&mounts.mount[i], get);
	return r;
}

void reader_mount_revisit(struct reader_revisit *revisit)
{
	struct reader_mount *mount = revisit->queue->mount;

	BASE_HOLD(&mount->lock);
	if (!mount->revisits)
		mount->revisits_end = &mount->revisits;
	*mount->revisits_end = revisit;
	mount->revisits_end = &revisit->next;
	pthread_cond_signal(&mount->filled);
}

bool reader_mount_revisited(const struct reader_claim *claim)
{
	struct reader_revisit *revisit = claim->revisit;

	BASE_HOLD(&revisit->queue->mount->lock);
	revisit->ended += claim->to - claim->from;
	return revisit->ended == revisit->n;
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
	r = pthread_create(&handle, NULL, reader_queue_thread, thread);
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

static unsigned mount_queues(struct reader_mount *mount)
{
	BASE_HOLD(&mount->lock);
	return mount->n_queues;
}

/* The mount of the data set, with its threads; one without queues is used again. */
static int mount_of(const struct reader_dataset *dataset, struct reader_mount **ret)
{
	const unsigned own = source_sample_threads(dataset);
	const uint64_t device = own ? dataset->root.inode | MOUNT_MADE : dataset->root.device;
	const unsigned threads = own ? own : mounts.threads;
	struct reader_mount *unused = NULL;
	int r;

	for (size_t i = 0; i < MOUNT_MOST; i++) {
		struct reader_mount *mount = &mounts.mount[i];
		const bool in_use = mount->threads && mount_queues(mount);

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

static void want(const struct reader_queue *queue, bool wants)
{
	if (queue->dataset->bucket)
		source_bucket_want(queue->dataset->bucket, wants);
}

int reader_mount_add(struct reader_queue *queue)
{
	struct reader_mount *mount;
	int r = mount_of(queue->dataset, &mount);

	if (r)
		return r;
	queue->mount = mount;
	want(queue, true);
	BASE_HOLD(&mount->lock);
	mount->n_queues++;
	mount_append_locked(mount, queue);
	pthread_cond_broadcast(&mount->filled);
	return 0;
}

struct reader_queue *reader_mount_remove(uint64_t number, bool *ret_idle)
{
	struct reader_queue *queue = NULL;

	*ret_idle = false;
	for (size_t i = 0; i < MOUNT_MOST && !queue; i++) {
		struct reader_mount *mount = &mounts.mount[i];

		if (!mount->threads)
			continue;
		pthread_mutex_lock(&mount->lock);
		queue = mount_unlink_locked(mount, number);
		if (queue) {
			queue->leaving = true;
			want(queue, false);
			*ret_idle = queue->busy == 0;
			mount->n_queues -= *ret_idle;
		}
		pthread_mutex_unlock(&mount->lock);
	}
	return queue;
}
