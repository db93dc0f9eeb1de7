/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lanes: what a thread of a mount (reader_mount.c) does for a task of theirs. DETACHED is said, and the memory
 * unmapped, when the last thread has put the lane back.
 */

#include "storage/reader_peers.h"

#include "base/log.h"
#include "cluster/promise.h"
#include "shmring/region.h"
#include "storage/source/source_kind.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANE_SLEEP_NS UINT64_C(1000000000)

struct reader_came { /* a kept form, 0: the file */
	uint8_t form;
	enum layout_from from;
	bool is_again; /* peers were asked, and had nothing but what came */
	uint32_t bytes;
	uint64_t resident; /* as in lane_task */
};

static struct { /* written by the main thread before any reading thread starts */
	struct layout_doorbell *doorbell; /* borrowed, for ever */
	int event_fd;                     /* borrowed, for ever */
} lanes;

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

struct reader_lane *reader_lane_hold(uint64_t number)
{
	return reader_mount_hold(number);
}

void reader_lane_keep(struct reader_lane *lane)
{
	reader_mount_keep(lane);
}

/* One busy thread less. */
void reader_lane_put(struct reader_lane *lane)
{
	if (reader_mount_put(lane))
		lane_finish(lane);
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
	struct reader_lane *lane = reader_mount_hold(number);
	const struct reader_kept *kept = lane ? lane_kept(lane, form) : NULL;

	if (kept && kept->group)
		store_group_worth(kept->group, us_per_mib);
	if (lane)
		reader_lane_put(lane);
}

void reader_lane_yield(uint64_t number, unsigned form, bool yields)
{
	struct reader_lane *lane = reader_mount_hold(number);
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
	const uint64_t end = task->arena_offset + task->room;

	if (!task_fits(lane, task) ||
	    end <= atomic_load_explicit(&lane->touched, memory_order_relaxed))
		return;
	region_touch(lane->arena + task->arena_offset, task->room);
	/* If another thread's is lost, or this one, pages are touched once more. */
	atomic_store_explicit(&lane->touched, end, memory_order_relaxed);
}

/* What is to be made of it is not: others may wait for that. */
static void lane_gives_up(struct reader_lane *lane, const struct lane_task *task)
{
	const struct reader_kept *kept = task->make ? lane_kept(lane, task->make) : NULL;

	if (kept && kept->shared)
		reader_peers_not_made(kept->shared, task->sample);
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
	if (outcome->stage != LAYOUT_FAIL_NONE) {
		reader_say_failed(lane->number, task);
		lane_gives_up(lane, task);
	}
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
	if (!reader_mount_again(ask)) {
		reader_lane_put(ask->lane); /* nobody asks for its tasks any more */
		reader_asks_free(ask);
	} else {
		doorbell_ring_readers(lanes.doorbell);
	}
}

bool reader_lane_idles(uint32_t *seen)
{
	const uint32_t before = *seen;

	*seen = doorbell_work_seq(lanes.doorbell);
	return *seen == before &&
	       atomic_load_explicit(&lanes.doorbell->s_work_armed, memory_order_relaxed);
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

bool reader_lane_shares(const struct reader_lane *lane, const struct hash_id *group)
{
	for (unsigned form = 0; form < LAYOUT_FORMS; form++) {
		const struct reader_kept *kept = lane_kept(lane, form);

		if (kept && kept->shared && memcmp(&kept->shared->id, group, sizeof(*group)) == 0)
			return true;
	}
	return false;
}

int reader_lane_look(const struct value_head *get)
{
	const int r = reader_mount_look(get);

	if (r > 0)
		doorbell_ring_readers(lanes.doorbell);
	return r;
}

static void lane_serve_look(struct reader_look *look)
{
	const bool is_leaving = lane_is_leaving(look->lane);
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_NONE};

	if (!is_leaving && look->get.sample < reader_lane_samples(look->lane))
		reader_check_sample(look->lane->dataset, look->get.sample, &outcome);
	reader_serve_looked(&look->get, !is_leaving && outcome.stage == LAYOUT_FAIL_NONE);
	reader_lane_put(look->lane);
	free(look);
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
	uint64_t took_ns;

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
	took_ns = base_now_ns() - (ask->peer == PROMISE_SELF ? begin_ns : ask->since_ns);
	if (ask->peer != PROMISE_SELF && ask->has_waited)
		took_ns = 0; /* it says nothing of the wire */
	lane_end(lane, task, &came, &outcome, took_ns, task->timed ? base_cpu_ns() - cpu_ns : 0);
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

void *reader_lane_thread(void *arg)
{
	struct reader_thread *thread = arg;
	char name[16];

	snprintf(name, sizeof(name), "reader-%u", thread->owner);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		const uint32_t seen = doorbell_read_seq(lanes.doorbell);
		struct reader_claim claim;
		const int r = reader_mount_claim(thread, &claim);

		if (r == LANE_E_BAD)
			lane_is_forged(thread->owner);
		if (claim.again) {
			lane_serve_again(thread, claim.again);
		} else if (claim.look) {
			lane_serve_look(claim.look);
		} else if (claim.lane) {
			lane_serve_claimed(thread, claim.lane, &claim.task);
			reader_lane_put(claim.lane);
		} else {
			doorbell_sleep_reader(lanes.doorbell, seen, LANE_SLEEP_NS);
		}
	}
	return NULL;
}

/* ---- attaching and detaching, in the main thread ---- */

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
	reader_mount_init(threads);
	lanes.doorbell = doorbell;
	lanes.event_fd = event_fd;
}

int reader_lane_attach(uint64_t number, struct reader_dataset *dataset, int lane_fd, int arena_fd,
		       struct diag *diag)
{
	struct reader_lane *lane = calloc(1, sizeof(*lane));
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
	lane->number = number;
	lane->dataset = dataset;
	r = reader_mount_add(lane);
	if (r)
		return lane_refuse(lane, r, "start threads for one more file system", diag);
	doorbell_ring_readers(lanes.doorbell); /* there may be tasks in it already */
	return 0;
}

bool reader_lane_detach(uint64_t number)
{
	bool is_idle;
	struct reader_lane *lane = reader_mount_remove(number, &is_idle);

	if (lane && is_idle)
		lane_finish(lane);
	return lane != NULL;
}
