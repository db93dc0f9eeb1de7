/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lanes, and the threads that read for them.
 *
 * Every mount (the device of a dataset's root) that has lanes has its own N threads, so a file
 * system that hangs holds its own threads and nobody else's. The threads of a mount serve its lanes
 * in turn: a lane that gave a task goes to the end of the list. They sleep on the doorbell while there
 * is no task, and on the mount's condition while it has no lane.
 *
 * A lane is busy while threads read for it. DETACH takes it from the list, so that no new task is
 * claimed; DETACHED is said, and the memory unmapped, when the last of them has put it back.
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
#include "storage/promise.h"
#include "storage/source/source_kind.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANE_MAX_MOUNTS 64
#define LANE_SLEEP_NS UINT64_C(1000000000)
#define LANE_MADE (UINT64_C(1) << 63) /* beside a root's inode: no device has such a number */

struct reader_lane {
	uint64_t number;
	struct lane lane;               /* mapping, owned */
	uint8_t *arena;                 /* mapping, owned */
	struct reader_dataset *dataset; /* a reference */
	struct reader_mount *mount;
	struct reader_kept kept[LAYOUT_FORMS]; /* owned; by the keeper, before has_kept */
	_Atomic bool has_kept[LAYOUT_FORMS];   /* for ever */
	bool yields[LAYOUT_FORMS];             /* of the main thread, until the lane is finished */
	_Atomic uint64_t touched;              /* bytes of the arena that were used so far, about */
	_Atomic uint8_t *expected; /* owned: a bit a sample whose form is to come from a worker */

	/* under the mount's lock */
	struct reader_lane *next;
	unsigned busy;        /* threads that read for it */
	_Atomic bool leaving; /* for eyes without it, too: reader_lane_is_leaving() */
};

struct reader_mount {
	/* of the main thread */
	uint64_t device;
	unsigned threads;     /* started */
	_Atomic bool is_made; /* lock and condition are there, for ever */

	pthread_mutex_t lock;
	pthread_cond_t filled;
	/* under the lock */
	struct reader_lane *lanes;
	unsigned n_lanes;                      /* with those that are leaving */
	struct reader_ask *again, **again_end; /* their tasks are read before others */
};

struct reader_came { /* a kept form, 0: the file */
	uint8_t form;
	enum layout_from from;
	bool is_again; /* peers were asked, and had nothing but what came */
	uint32_t bytes;
	uint64_t resident; /* as in lane_task */
};

struct reader_thread {
	struct reader_mount *mount;
	uint32_t owner;
	struct reader_link link;
};

static struct {                   /* written by the main thread before any reading thread starts */
	unsigned threads, owners; /* of a mount; given out so far */
	struct layout_doorbell *doorbell; /* borrowed, for ever */
	int event_fd;                     /* borrowed, for ever */
	struct reader_mount mount[LANE_MAX_MOUNTS];
} lanes;

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

static void kept_yield(const struct reader_kept *kept, bool yields)
{
	reader_resident_yield(kept->resident, yields);
	if (kept->group)
		store_group_yield(kept->group, yields);
}

/* The lane belongs to nobody any more. */
static void lane_finish(struct reader_lane *lane)
{
	const uint64_t number = lane->number;

	if (lane->kept[LAYOUT_FORM_AUGMENTED].group) /* nobody brings them any more */
		store_group_worth(lane->kept[LAYOUT_FORM_AUGMENTED].group, 0);
	for (unsigned form = 0; form < LAYOUT_FORMS; form++) {
		if (lane->yields[form])
			kept_yield(&lane->kept[form], false);
		reader_resident_close(lane->kept[form].resident);
		store_group_close(lane->kept[form].group);
		free(lane->kept[form].shared);
	}
	free(lane->expected);
	lane_arena_detach(&lane->lane, lane->arena);
	lane_detach(&lane->lane);
	reader_open_unref(lane->dataset);
	free(lane);
	reader_say_lane(READER_DETACHED, number);
}

void reader_lane_keep(struct reader_lane *lane)
{
	pthread_mutex_lock(&lane->mount->lock);
	lane->busy++;
	pthread_mutex_unlock(&lane->mount->lock);
}

/* One busy thread less. */
void reader_lane_put(struct reader_lane *lane)
{
	struct reader_mount *mount = lane->mount;
	bool last;

	pthread_mutex_lock(&mount->lock);
	lane->busy--;
	last = lane->leaving && lane->busy == 0;
	if (last)
		mount->n_lanes--;
	pthread_mutex_unlock(&mount->lock);
	if (last)
		lane_finish(lane);
}

static struct reader_lane *mount_find_locked(struct reader_mount *mount, uint64_t number)
{
	struct reader_lane *lane = mount->lanes;

	while (lane && lane->number != number)
		lane = lane->next;
	return lane;
}

struct reader_lane *reader_lane_hold(uint64_t number)
{
	struct reader_lane *lane = NULL;

	for (size_t i = 0; i < LANE_MAX_MOUNTS && !lane; i++) {
		struct reader_mount *mount = &lanes.mount[i];

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

static void ring_accessd(void)
{
	const uint64_t one = 1;

	if (doorbell_take_event_arm(lanes.doorbell) && write(lanes.event_fd, &one, sizeof(one)) < 0)
		log_line(LOG_LEVEL_ERROR, "event-lost", "error=\"%s\"", strerror(errno));
}

/* A task is; it is FAILED, accessd must see that. */
static void lane_is_forged(uint32_t owner)
{
	log_line(LOG_LEVEL_ERROR, "task-bad", "owner=%u", owner);
	ring_accessd();
}

static struct reader_ask *mount_take_again_locked(struct reader_mount *mount)
{
	struct reader_ask *ask = mount->again;

	if (ask)
		mount->again = ask->next;
	return ask;
}

/* A task of the next lane in turn that has one; the lane is busy then, put it back. Waits while
 * the mount has no lane. *ret_again: instead, one that came back from peers. */
static struct reader_lane *mount_claim(struct reader_mount *mount, uint32_t owner,
				       struct lane_task *ret, struct reader_ask **ret_again)
{
	struct reader_lane *lane;
	int r = LANE_E_NONE;

	pthread_mutex_lock(&mount->lock);
	while (!mount->lanes && !mount->again)
		pthread_cond_wait(&mount->filled, &mount->lock);
	*ret_again = mount_take_again_locked(mount);
	for (lane = *ret_again ? NULL : mount->lanes; lane; lane = lane->next) {
		r = lane_claim_read(&lane->lane, owner, ret);
		if (r != LANE_E_NONE)
			break;
	}
	if (lane && !r) {
		lane->busy++;
		mount_unlink_locked(mount, lane->number);
		mount_append_locked(mount, lane);
	}
	pthread_mutex_unlock(&mount->lock);
	if (r == LANE_E_BAD)
		lane_is_forged(owner);
	return r ? NULL : lane;
}

/* More of the lane's tasks, for one question about all: no more than the thread's share of those that wait. */
static unsigned lane_claim_more(const struct reader_thread *thread, struct reader_lane *lane,
				unsigned most, struct lane_task ret[])
{
	const struct reader_dataset *dataset = lane->dataset;
	const unsigned share = lane_queued(&lane->lane) / dataset->ops->threads(dataset);
	unsigned n = 0;
	int r = 0;

	while (n < BASE_MIN(most, share) && !r) {
		r = lane_claim_read(&lane->lane, thread->owner, &ret[n]);
		n += !r;
	}
	if (r == LANE_E_BAD)
		lane_is_forged(thread->owner);
	return n;
}

/* ---- threads ---- */

/* Do the numbers of the task, which are shared memory's, fit the index and the arena? */
static bool task_fits(const struct reader_lane *lane, const struct lane_task *task)
{
	const struct dataset *index = lane->dataset->index;

	return task->sample < dataset_count(index) &&
	       task->bytes == dataset_size_of(index, task->sample) &&
	       task->arena_offset <= lane->lane.arena_bytes && task->bytes <= task->room &&
	       task->room <= lane->lane.arena_bytes - task->arena_offset;
}

/* ---- kept forms ---- */

bool reader_lane_is_made(const struct reader_lane *lane)
{
	return lane->dataset->ops->make != NULL;
}

uint64_t reader_lane_samples(const struct reader_lane *lane)
{
	return dataset_count(lane->dataset->index);
}

bool reader_lane_take(struct reader_lane *lane, unsigned form, const struct reader_kept *kept)
{
	if (atomic_load_explicit(&lane->has_kept[form], memory_order_relaxed))
		return false;
	lane->kept[form] = *kept;
	/* K1: release of what is kept, pairs with K2. */
	atomic_store_explicit(&lane->has_kept[form], true, memory_order_release);
	return true;
}

static const struct reader_kept *lane_kept(const struct reader_lane *lane, unsigned form)
{
	/* K2: acquire, pairs with K1. */
	return atomic_load_explicit(&lane->has_kept[form], memory_order_acquire) ? &lane->kept[form]
										 : NULL;
}

void reader_lane_worth(uint64_t number, unsigned form, double us_per_mib)
{
	struct reader_lane *lane = reader_lane_hold(number);
	const struct reader_kept *kept = lane ? lane_kept(lane, form) : NULL;

	if (kept && kept->group)
		store_group_worth(kept->group, us_per_mib);
	if (lane)
		reader_lane_put(lane);
}

void reader_lane_yield(uint64_t number, unsigned form, bool yields)
{
	struct reader_lane *lane = reader_lane_hold(number);
	const struct reader_kept *kept = lane ? lane_kept(lane, form) : NULL;

	if (kept && lane->yields[form] != yields) {
		lane->yields[form] = yields;
		kept_yield(kept, yields);
	}
	if (lane)
		reader_lane_put(lane);
}

/* Its file is handed to the workers, and its form shall be kept. */
static void lane_expect(struct reader_lane *lane, uint64_t sample)
{
	atomic_fetch_or(&lane->expected[sample / 8], (uint8_t)(1 << sample % 8));
}

const struct reader_kept *reader_lane_expect(struct reader_lane *lane, const struct tray_item *item)
{
	const uint8_t bit = (uint8_t)(1 << item->sample % 8);

	if (item->form >= LAYOUT_FORMS || item->sample >= reader_lane_samples(lane) ||
	    !(atomic_fetch_and(&lane->expected[item->sample / 8], (uint8_t)~bit) & bit))
		return NULL;
	return lane_kept(lane, item->form);
}

/* A form that lies in memory is read there; but a crop index must have its file behind it. */
static bool lane_get_resident(const struct lane_task *task, const struct reader_place *at,
			      uint8_t *buffer, struct reader_came *ret)
{
	*ret = (struct reader_came){.form = task->want,
				    .from = LAYOUT_FROM_MEMORY,
				    .bytes = at->bytes,
				    .resident = at->place};
	if (task->want == LAYOUT_FORM_INDEXED) {
		if (at->bytes > task->room)
			return false;
		memcpy(buffer, at->data, at->bytes);
		ret->resident = 0;
	}
	reader_resident_hit();
	return true;
}

/* What comes from the store is in memory from then on. */
static bool lane_get_stored(const struct reader_kept *kept, const struct lane_task *task,
			    uint8_t *buffer, struct reader_came *ret)
{
	size_t bytes;

	if (store_get(kept->group, task->sample, buffer, task->room, &bytes))
		return false;
	reader_resident_keep(kept->resident, task->sample, buffer, bytes);
	*ret = (struct reader_came){
	    .form = task->want, .from = LAYOUT_FROM_STORE, .bytes = (uint32_t)bytes};
	return true;
}

/* Brings the form that is wanted, if it is kept. false: the file is to be read to *at. */
static bool lane_get(const struct reader_lane *lane, const struct lane_task *task, uint8_t *buffer,
		     struct reader_came *ret)
{
	const struct reader_kept *kept = lane_kept(lane, task->want);
	struct reader_came came;
	struct reader_place at;
	bool is_there = false;

	if (kept && reader_resident_find(kept->resident, task->sample, &at))
		is_there = lane_get_resident(task, &at, buffer, &came);
	else if (kept && kept->group)
		is_there = lane_get_stored(kept, task, buffer, &came);
	if (!is_there ||
	    (came.form == LAYOUT_FORM_INDEXED && task->room - came.bytes < task->bytes))
		return false;
	*ret = came;
	return true;
}

bool reader_lane_is_leaving(const struct reader_lane *lane)
{
	return atomic_load_explicit(&lane->leaving, memory_order_relaxed);
}

static bool lane_is_leaving(void *arg)
{
	return reader_lane_is_leaving(arg);
}

/* It has been asked of who may have what is to be made of it: the task is theirs. */
static bool lane_asks(struct reader_lane *lane, const struct lane_task *task)
{
	const struct reader_kept *kept = task->make ? lane_kept(lane, task->make) : NULL;

	return kept && kept->shared && reader_peers_ask(lane, kept->shared, task);
}

/* The form that is wanted if it is kept, else the file; behind a crop index both. false: it waits for peers. */
static bool lane_bring(struct reader_lane *lane, const struct lane_task *task, uint8_t *buffer,
		       struct reader_came *came, struct reader_outcome *outcome)
{
	const bool is_again = came->is_again;

	if (!came->form)
		came->bytes = 0;
	if (!came->form && lane_get(lane, task, buffer, came) &&
	    came->form != LAYOUT_FORM_INDEXED) {
		reader_check_sample(lane->dataset, task->sample, outcome);
		return true;
	}
	if (!came->form && !is_again && lane_asks(lane, task))
		return false;
	reader_read_sample(lane->dataset, task->sample, buffer + came->bytes, outcome);
	came->bytes += task->bytes;
	return true;
}

/* false: it waits for peers. */
static bool lane_read(struct reader_thread *thread, struct reader_lane *lane,
		      const struct lane_task *task, struct reader_came *came,
		      struct reader_outcome *outcome)
{
	const struct source_ops *ops = lane->dataset->ops;
	uint8_t *buffer = lane->arena + task->arena_offset;
	const struct source_making making = {&thread->link, task, buffer, lane_is_leaving, lane};

	if (!task_fits(lane, task))
		snprintf(outcome->text, sizeof(outcome->text), "the task does not fit the index");
	else if (ops->make)
		ops->make(lane->dataset, &making, outcome);
	else
		return lane_bring(lane, task, buffer, came, outcome);
	return true;
}

/* The first touch of a page takes longer than all else that is done for it, and the arena is a ring. What bringing a
 * sample takes is to be the same before it was gone through once as it is then: so this comes before it is timed. */
static void lane_touch(struct reader_lane *lane, const struct lane_task *task)
{
	const uint64_t end = task->arena_offset + task->room, page = base_page_size();

	if (!task_fits(lane, task) ||
	    end <= atomic_load_explicit(&lane->touched, memory_order_relaxed))
		return;
	for (uint64_t at = task->arena_offset; at < end; at = base_align_up(at + 1, page))
		(void)*(const volatile uint8_t *)(lane->arena + at);
	/* If another thread's is lost, or this one, pages are touched once more. */
	atomic_store_explicit(&lane->touched, end, memory_order_relaxed);
}

/* It was read, or not. */
static void lane_end(struct reader_lane *lane, const struct lane_task *task,
		     const struct reader_came *came, const struct reader_outcome *outcome,
		     uint64_t took_ns, uint64_t cpu_ns)
{
	bool ring;

	lane_read_came(&lane->lane, task, came->form, came->from, came->bytes, came->resident);
	if (task->make && !came->form && outcome->stage == LAYOUT_FAIL_NONE)
		lane_expect(lane, task->sample);
	if (outcome->stage != LAYOUT_FAIL_NONE)
		reader_say_failed(lane->number, task);
	ring = lane_read_done(&lane->lane, task, outcome->stage, outcome->code,
			      outcome->stage ? outcome->text : "", took_ns, cpu_ns);
	if (outcome->stage == LAYOUT_FAIL_NONE)
		doorbell_ring_workers(lanes.doorbell);
	if (ring)
		ring_accessd();
}

/* before: what has come already; zeros: nothing. */
static void lane_serve_rest(struct reader_thread *thread, struct reader_lane *lane,
			    const struct lane_task *task, const struct reader_came *before)
{
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_READ, .code = EINVAL};
	struct reader_came came = *before;
	uint64_t begin_ns, cpu_ns;

	lane_touch(lane, task);
	begin_ns = base_now_ns();
	cpu_ns = task->timed ? base_cpu_ns() : 0;
	if (lane_read(thread, lane, task, &came, &outcome))
		lane_end(lane, task, &came, &outcome, base_now_ns() - begin_ns,
			 task->timed ? base_cpu_ns() - cpu_ns : 0);
}

static void lane_serve(struct reader_thread *thread, struct reader_lane *lane,
		       const struct lane_task *task)
{
	lane_serve_rest(thread, lane, task, &(struct reader_came){.bytes = task->bytes});
}

/* ---- tasks that wait for peers ---- */

void reader_lane_again(struct reader_ask *ask)
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
	if (leaving) {
		reader_lane_put(ask->lane); /* nobody asks for its tasks any more */
		reader_asks_free(ask);
	} else {
		doorbell_ring_readers(lanes.doorbell);
	}
}

static void lane_serve_again(struct reader_thread *thread, struct reader_ask *ask)
{
	struct reader_lane *lane = ask->lane;
	const struct lane_task task = ask->task;
	const struct reader_came before = {.form = ask->came ? task.want : 0,
					   .from = ask->came ? LAYOUT_FROM_PEER : 0,
					   .is_again = true,
					   .bytes = ask->came};

	reader_asks_free(ask);
	if (!lane_is_leaving(lane))
		lane_serve_rest(thread, lane, &task, &before);
	reader_lane_put(lane);
}

void reader_lane_store(struct reader_lane *lane, unsigned form, uint64_t sample,
		       const uint8_t *value, uint32_t bytes)
{
	const struct reader_kept *kept = lane_kept(lane, form);

	if (kept && kept->group)
		store_put(kept->group, sample, value, bytes);
}

/* The value is in memory from then on, if there is room; where it is, it need not be in the arena, too. */
void reader_lane_bring(struct reader_ask *ask, enum layout_from from, const uint8_t *value,
		       uint32_t bytes)
{
	struct reader_lane *lane = ask->lane;
	const struct lane_task *task = &ask->task;
	const struct reader_kept *kept = lane_kept(lane, task->want);
	const struct reader_outcome outcome = {.stage = LAYOUT_FAIL_NONE};
	const uint64_t begin_ns = base_now_ns(), cpu_ns = task->timed ? base_cpu_ns() : 0;
	struct reader_came came = {.form = task->want, .from = from, .bytes = bytes};
	struct reader_place at;

	reader_resident_keep(kept->resident, task->sample, value, bytes);
	if (task->want != LAYOUT_FORM_INDEXED &&
	    reader_resident_find(kept->resident, task->sample, &at)) {
		came.resident = at.place;
		came.bytes = at.bytes;
	} else {
		memcpy(lane->arena + task->arena_offset, value, bytes);
	}
	if (task->want == LAYOUT_FORM_INDEXED) {
		ask->came = bytes;
		reader_lane_again(ask);
		return;
	}
	lane_end(lane, task, &came, &outcome,
		 base_now_ns() - (ask->peer == PROMISE_SELF ? begin_ns : ask->since_ns),
		 task->timed ? base_cpu_ns() - cpu_ns : 0);
	reader_asks_free(ask);
	reader_lane_put(lane);
}

/* Several in one question; each took its part of the time. */
static void lane_serve_many(struct reader_thread *thread, struct reader_lane *lane,
			    const struct lane_task task[], unsigned n)
{
	struct reader_wanted wanted[SOURCE_MOST_MADE];
	unsigned of[SOURCE_MOST_MADE], fit = 0;
	uint64_t took_ns, cpu_ns;

	for (unsigned i = 0; i < n; i++) {
		lane_touch(lane, &task[i]);
		if (!task_fits(lane, &task[i]))
			lane_serve(thread, lane, &task[i]);
		else
			of[fit++] = i;
	}
	for (unsigned i = 0; i < fit; i++)
		wanted[i] = (struct reader_wanted){
		    .task = &task[of[i]], .buffer = lane->arena + task[of[i]].arena_offset};
	took_ns = base_now_ns();
	cpu_ns = base_cpu_ns();
	lane->dataset->ops->make_many(lane->dataset, &thread->link, wanted, fit);
	took_ns = base_now_ns() - took_ns;
	cpu_ns = base_cpu_ns() - cpu_ns;
	for (unsigned i = 0; i < fit; i++)
		if (wanted[i].is_settled)
			lane_end(lane, wanted[i].task,
				 &(struct reader_came){.bytes = wanted[i].task->bytes},
				 &wanted[i].outcome, took_ns / fit, cpu_ns / fit);
	for (unsigned i = 0; i < fit; i++)
		if (!wanted[i].is_settled)
			lane_serve(thread, lane, wanted[i].task);
}

static void lane_serve_claimed(struct reader_thread *thread, struct reader_lane *lane,
			       const struct lane_task *first)
{
	const struct source_ops *ops = lane->dataset->ops;
	const unsigned most = ops->most ? ops->most(lane->dataset, &thread->link) : 1;
	struct lane_task task[SOURCE_MOST_MADE];
	unsigned n = 1;

	if (most > 1)
		n += lane_claim_more(thread, lane, most - 1, task + 1);
	if (n == 1) {
		lane_serve(thread, lane, first);
		return;
	}
	task[0] = *first;
	lane_serve_many(thread, lane, task, n);
}

static void *lane_thread(void *arg)
{
	struct reader_thread *thread = arg;
	char name[16];

	snprintf(name, sizeof(name), "reader-%u", thread->owner);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		const uint32_t seen = doorbell_read_seq(lanes.doorbell);
		struct lane_task task;
		struct reader_ask *again;
		struct reader_lane *lane = mount_claim(thread->mount, thread->owner, &task, &again);

		if (again) {
			lane_serve_again(thread, again);
		} else if (lane) {
			lane_serve_claimed(thread, lane, &task);
			reader_lane_put(lane);
		} else {
			doorbell_sleep_reader(lanes.doorbell, seen, LANE_SLEEP_NS);
		}
	}
	return NULL;
}

static int thread_start(struct reader_mount *mount)
{
	struct reader_thread *thread = calloc(1, sizeof(*thread)); /* the thread's, for ever */
	pthread_t handle;
	int r;

	if (!thread)
		return -ENOMEM;
	thread->mount = mount;
	thread->owner = ++lanes.owners;
	r = pthread_create(&handle, NULL, lane_thread, thread);
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

/* ---- attaching and detaching, in the main thread ---- */

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
	const uint64_t device = ops->make ? dataset->inode | LANE_MADE : dataset->device;
	const unsigned threads = ops->make ? ops->threads(dataset) : lanes.threads;
	struct reader_mount *unused = NULL;
	int r;

	for (size_t i = 0; i < LANE_MAX_MOUNTS; i++) {
		struct reader_mount *mount = &lanes.mount[i];
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

static int lane_map(struct reader_lane *lane, int lane_fd, int arena_fd)
{
	int r = lane_attach(lane_fd, &lane->lane);

	if (r)
		return r;
	r = lane_arena_attach(arena_fd, &lane->lane, true, &lane->arena);
	if (r)
		lane_detach(&lane->lane);
	return r;
}

static int refuse_attach(int code, const char *what, struct diag *diag)
{
	diag_set(diag, "the reader cannot %s: %s", what,
		 code < 0 ? strerror(-code) : "their memory is damaged");
	return code;
}

/* Of one that is mapped. */
static int lane_refuse(struct reader_lane *lane, int code, const char *what, struct diag *diag)
{
	lane_arena_detach(&lane->lane, lane->arena);
	lane_detach(&lane->lane);
	free(lane->expected);
	free(lane);
	return refuse_attach(code, what, diag);
}

void reader_lane_init(unsigned threads, struct layout_doorbell *doorbell, int event_fd)
{
	lanes.threads = threads;
	lanes.doorbell = doorbell;
	lanes.event_fd = event_fd;
}

int reader_lane_attach(uint64_t number, struct reader_dataset *dataset, int lane_fd, int arena_fd,
		       struct diag *diag)
{
	struct reader_lane *lane = calloc(1, sizeof(*lane));
	struct reader_mount *mount;
	int r;

	if (!lane)
		return refuse_attach(-ENOMEM, "attach a lane", diag);
	r = lane_map(lane, lane_fd, arena_fd);
	if (r) {
		free(lane);
		return refuse_attach(r, "map a lane and its arena", diag);
	}
	lane->expected = calloc(dataset_count(dataset->index) / 8 + 1, sizeof(*lane->expected));
	if (!lane->expected)
		return lane_refuse(lane, -ENOMEM, "attach a lane", diag);
	r = mount_of(dataset, &mount);
	if (r)
		return lane_refuse(lane, r, "start threads for one more file system", diag);
	lane->number = number;
	lane->dataset = dataset;
	lane->mount = mount;
	pthread_mutex_lock(&mount->lock);
	mount->n_lanes++;
	mount_append_locked(mount, lane);
	pthread_cond_broadcast(&mount->filled);
	pthread_mutex_unlock(&mount->lock);
	doorbell_ring_readers(lanes.doorbell); /* there may be tasks in it already */
	return 0;
}

bool reader_lane_detach(uint64_t number)
{
	for (size_t i = 0; i < LANE_MAX_MOUNTS; i++) {
		struct reader_mount *mount = &lanes.mount[i];
		struct reader_lane *lane;
		bool idle = false;

		if (!mount->threads)
			continue;
		pthread_mutex_lock(&mount->lock);
		lane = mount_unlink_locked(mount, number);
		if (lane) {
			lane->leaving = true;
			idle = lane->busy == 0;
			mount->n_lanes -= idle;
		}
		pthread_mutex_unlock(&mount->lock);
		if (idle)
			lane_finish(lane);
		if (lane)
			return true;
	}
	return false;
}
