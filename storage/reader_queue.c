/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Queues: what a thread of a mount (reader_mount.c) does for a task of theirs. DETACHED is said, and the memory
 * unmapped, when the last thread has put the queue back.
 */

#include "storage/reader_peers.h"

#include "base/little.h"
#include "base/log.h"
#include "cluster/promise.h"
#include "shmring/region.h"
#include "storage/source/source_kind.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define QUEUE_SLEEP_NS UINT64_C(1000000000)
#define QUEUE_AHEAD (4 * REGION_HUGE) /* of the arena, is in huge pages before it is used */

static struct { /* written by the main thread before any reading thread starts */
	struct layout_doorbell *doorbell; /* borrowed, for ever */
	int event_fd;                     /* borrowed, for ever */
	bool may_be_huge;                 /* arenas */
} queues;

static void kept_yield(const struct reader_kept *kept, bool yields)
{
	reader_resident_yield(kept->resident, yields);
	if (kept->group)
		store_group_yield(kept->group, yields);
}

/* The queue belongs to nobody any more. */
static void queue_finish(struct reader_queue *queue)
{
	const uint64_t number = queue->number;

	if (queue->kept[LAYOUT_FORM_AUGMENTED].group) /* nobody brings them any more */
		store_group_worth(queue->kept[LAYOUT_FORM_AUGMENTED].group, 0);
	for (unsigned form = 0; form < LAYOUT_FORMS; form++) {
		if (queue->yields[form])
			kept_yield(&queue->kept[form], false);
		reader_resident_close(queue->kept[form].resident);
		store_group_close(queue->kept[form].group);
		free(queue->kept[form].shared);
	}
	free(queue->expected);
	queue_arena_detach(&queue->queue, queue->arena);
	queue_detach(&queue->queue);
	reader_open_unref(queue->dataset);
	free(queue);
	reader_say_queue(READER_DETACHED, number);
}

struct reader_queue *reader_queue_hold(uint64_t number)
{
	return reader_mount_hold(number);
}

void reader_queue_keep(struct reader_queue *queue)
{
	reader_mount_keep(queue);
}

/* One busy thread less. */
void reader_queue_put(struct reader_queue *queue)
{
	if (reader_mount_put(queue))
		queue_finish(queue);
}

static void ring_accessd(void)
{
	const uint64_t one = 1;

	if (doorbell_take_event_arm(queues.doorbell) &&
	    write(queues.event_fd, &one, sizeof(one)) < 0)
		log_line(LOG_LEVEL_ERROR, "event-lost", "error=\"%s\"", strerror(errno));
}

/* A task is; it is FAILED, accessd must see that. */
void reader_queue_forged(uint32_t owner)
{
	log_line(LOG_LEVEL_ERROR, "task-bad", "owner=%u", owner);
	ring_accessd();
}

/* ---- threads ---- */

/* Do the numbers of the task, which are shared memory's, fit the index and the arena? */
bool reader_queue_fits(const struct reader_queue *queue, const struct queue_task *task)
{
	const struct dataset *index = queue->dataset->index;

	return task->sample < dataset_count(index) &&
	       task->bytes == dataset_size_of(index, task->sample) &&
	       task->arena_offset <= queue->queue.arena_bytes && task->bytes <= task->room &&
	       task->room <= queue->queue.arena_bytes - task->arena_offset;
}

/* ---- kept forms ---- */

bool reader_queue_is_made(const struct reader_queue *queue)
{
	return queue->dataset->ops->make != NULL;
}

uint64_t reader_queue_samples(const struct reader_queue *queue)
{
	return dataset_count(queue->dataset->index);
}

uint64_t reader_queue_key(const struct reader_queue *queue)
{
	return little_64(dataset_version(queue->dataset->index)->bytes);
}

const struct reader_kept *reader_queue_take(struct reader_queue *queue, unsigned form,
					    const struct reader_kept *kept)
{
	queue->kept[form] = *kept;
	/* K1: release of what is kept, pairs with K2. */
	atomic_store_explicit(&queue->has_kept[form], true, memory_order_release);
	return &queue->kept[form];
}

const struct reader_kept *reader_queue_kept(const struct reader_queue *queue, unsigned form)
{
	/* K2: acquire, pairs with K1. */
	return atomic_load_explicit(&queue->has_kept[form], memory_order_acquire)
		   ? &queue->kept[form]
		   : NULL;
}

void reader_queue_worth(uint64_t number, unsigned form, double us_per_mib)
{
	struct reader_queue *queue = reader_mount_hold(number);
	const struct reader_kept *kept = queue ? reader_queue_kept(queue, form) : NULL;

	if (kept && kept->group)
		store_group_worth(kept->group, us_per_mib);
	if (queue)
		reader_queue_put(queue);
}

void reader_queue_yield(uint64_t number, unsigned form, bool yields)
{
	struct reader_queue *queue = reader_mount_hold(number);
	const struct reader_kept *kept = queue ? reader_queue_kept(queue, form) : NULL;

	if (kept && queue->yields[form] != yields) {
		queue->yields[form] = yields;
		kept_yield(kept, yields);
	}
	if (queue)
		reader_queue_put(queue);
}

/* Its file is handed to the workers, and its form shall be kept. */
static void queue_expect(struct reader_queue *queue, uint64_t sample)
{
	atomic_fetch_or(&queue->expected[sample / 8], (uint8_t)(1 << sample % 8));
}

const struct reader_kept *reader_queue_expect(struct reader_queue *queue,
					      const struct rings_item *item)
{
	const uint8_t bit = (uint8_t)(1 << item->sample % 8);

	if (item->form >= LAYOUT_FORMS || item->sample >= reader_queue_samples(queue) ||
	    !(atomic_fetch_and(&queue->expected[item->sample / 8], (uint8_t)~bit) & bit))
		return NULL;
	return reader_queue_kept(queue, item->form);
}

void reader_queue_unmade(uint64_t number, unsigned form, uint64_t sample)
{
	const struct rings_item none = {.form = form, .sample = sample};
	struct reader_queue *queue = reader_mount_hold(number);
	const struct reader_kept *kept = queue ? reader_queue_expect(queue, &none) : NULL;

	if (kept && kept->shared)
		reader_peers_not_made(kept->shared, sample);
	if (queue)
		reader_queue_put(queue);
}

/* A form that lies in memory is read there; but a crop index must have its file behind it. */
static bool queue_get_resident(const struct queue_task *task, const struct reader_place *at,
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
static bool queue_get_stored(const struct reader_kept *kept, const struct queue_task *task,
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
static bool queue_get(const struct reader_queue *queue, const struct queue_task *task,
		      uint8_t *buffer, struct reader_came *ret)
{
	const struct reader_kept *kept = reader_queue_kept(queue, task->want);
	struct reader_came came;
	struct reader_place at;
	bool is_there = false;

	if (kept && reader_resident_find(kept->resident, task->sample, &at))
		is_there = queue_get_resident(task, &at, buffer, &came);
	else if (kept && kept->group)
		is_there = queue_get_stored(kept, task, buffer, &came);
	if (!is_there ||
	    (came.form == LAYOUT_FORM_INDEXED && task->room - came.bytes < task->bytes))
		return false;
	*ret = came;
	return true;
}

bool reader_queue_is_leaving(const struct reader_queue *queue)
{
	return atomic_load_explicit(&queue->leaving, memory_order_relaxed);
}

static bool queue_is_leaving(void *arg)
{
	return reader_queue_is_leaving(arg);
}

/* It has been asked of who may have what is to be made of it: the task is theirs. */
static bool queue_asks(struct reader_queue *queue, const struct queue_task *task)
{
	const struct reader_kept *kept = task->make ? reader_queue_kept(queue, task->make) : NULL;

	return kept && kept->shared && reader_peers_ask(queue, kept->shared, task);
}

/* Of a form that no job waits for: it is at another node, or being made. */
static bool queue_is_idle(const struct reader_queue *queue, const struct queue_task *task)
{
	const struct reader_kept *kept = reader_queue_kept(queue, task->make);

	return !kept || !kept->shared || !reader_peers_makes_ahead(kept->shared, task->sample);
}

enum reader_bring reader_queue_bring_kept(struct reader_queue *queue, const struct queue_task *task,
					  struct reader_came *came, struct reader_outcome *outcome)
{
	uint8_t *buffer = queue->arena + task->arena_offset;
	const bool is_again = came->is_again;

	if (!came->form)
		came->bytes = 0;
	if (!came->form && queue_get(queue, task, buffer, came) &&
	    came->form != LAYOUT_FORM_INDEXED) {
		reader_check_sample(queue->dataset, task->sample, outcome);
		return READER_BRING_DONE;
	}
	if (!came->form && task->slot == LAYOUT_NO_SLOT && queue_is_idle(queue, task)) {
		*came = (struct reader_came){.form = task->want};
		outcome->stage = LAYOUT_FAIL_NONE;
		return READER_BRING_DONE;
	}
	if (!came->form && !is_again && task->slot != LAYOUT_NO_SLOT && queue_asks(queue, task))
		return READER_BRING_WAITS;
	return READER_BRING_SAMPLE;
}

/* The form that is wanted if it is kept, else the file; behind a crop index both. false: it waits for peers. */
static bool queue_bring(struct reader_queue *queue, const struct queue_task *task,
			struct reader_came *came, struct reader_outcome *outcome)
{
	uint8_t *buffer = queue->arena + task->arena_offset;
	const enum reader_bring is = reader_queue_bring_kept(queue, task, came, outcome);

	if (is != READER_BRING_SAMPLE)
		return is == READER_BRING_DONE;
	reader_read_sample(queue->dataset, task->sample, buffer + came->bytes, outcome);
	came->bytes += task->bytes;
	return true;
}

/* false: it waits for peers. */
static bool queue_read(struct reader_thread *thread, struct reader_queue *queue,
		       const struct queue_task *task, struct reader_came *came,
		       struct reader_outcome *outcome)
{
	const struct source_ops *ops = queue->dataset->ops;
	uint8_t *buffer = queue->arena + task->arena_offset;
	const struct source_making making = {&thread->link, task, buffer, queue_is_leaving, queue};

	if (!reader_queue_fits(queue, task))
		snprintf(outcome->text, sizeof(outcome->text), "the task does not fit the index");
	else if (ops->make)
		ops->make(queue->dataset, &making, outcome);
	else
		return queue_bring(queue, task, came, outcome);
	return true;
}

/* The kernel looks up each page that a device writes to: of huge ones there are few. Those that come next go into
 * such: nobody reads into them yet. */
static void queue_gather(struct reader_queue *queue, uint64_t end)
{
	const uint64_t whole = queue->queue.arena_bytes - queue->queue.arena_bytes % REGION_HUGE;
	const uint64_t until = BASE_MIN(base_align_up(end, REGION_HUGE) + QUEUE_AHEAD, whole);
	uint64_t at = atomic_load_explicit(&queue->gathered, memory_order_relaxed);

	while (at < until) {
		int r;

		if (!atomic_compare_exchange_weak(&queue->gathered, &at, at + REGION_HUGE))
			continue;
		r = region_gather_one(queue->arena + at);
		if (r && r != -EAGAIN)
			atomic_store(&queue->gathered, UINT64_MAX);
		at = atomic_load(&queue->gathered);
	}
}

/* The first touch of a page takes longer than all else that is done for it, and the arena is a ring. What bringing a
 * sample takes is to be the same before it was gone through once as it is then: so this comes before it is timed. */
void reader_queue_touch(struct reader_queue *queue, const struct queue_task *task)
{
	const uint64_t end = task->arena_offset + task->room;

	if (!reader_queue_fits(queue, task) ||
	    end <= atomic_load_explicit(&queue->touched, memory_order_relaxed))
		return;
	queue_gather(queue, end);
	region_touch(queue->arena + task->arena_offset, task->room);
	/* If another thread's is lost, or this one, pages are touched once more. */
	atomic_store_explicit(&queue->touched, end, memory_order_relaxed);
}

/* What is to be made of it is not: others may wait for that. */
static void queue_gives_up(struct reader_queue *queue, const struct queue_task *task)
{
	const struct reader_kept *kept = task->make ? reader_queue_kept(queue, task->make) : NULL;

	if (kept && kept->shared)
		reader_peers_not_made(kept->shared, task->sample);
}

/* It was read, or not. */
void reader_queue_end(struct reader_queue *queue, const struct queue_task *task,
		      const struct reader_came *came, const struct reader_outcome *outcome,
		      uint64_t took_ns, uint64_t cpu_ns)
{
	bool ring;

	queue_read_came(&queue->queue, task, came->form, came->from, came->bytes, came->resident);
	if (task->make && !came->form && outcome->stage == LAYOUT_FAIL_NONE)
		queue_expect(queue, task->sample);
	if (outcome->stage != LAYOUT_FAIL_NONE) {
		reader_say_failed(queue->number, task);
		queue_gives_up(queue, task);
	}
	ring = queue_read_done(&queue->queue, task, outcome->stage, outcome->code,
			       outcome->stage ? outcome->text : "", took_ns, cpu_ns);
	if (outcome->stage == LAYOUT_FAIL_NONE)
		doorbell_ring_workers(queues.doorbell);
	if (ring)
		ring_accessd();
}

/* before: what has come already; zeros: nothing. */
static void queue_serve_rest(struct reader_thread *thread, struct reader_queue *queue,
			     const struct queue_task *task, const struct reader_came *before)
{
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_READ, .code = EINVAL};
	const bool is_timed = task->timed == LAYOUT_TIMED_ALL;
	struct reader_came came = *before;
	uint64_t begin_ns, cpu_ns;

	reader_queue_touch(queue, task);
	begin_ns = base_now_ns();
	cpu_ns = is_timed ? base_cpu_ns() : 0;
	if (queue_read(thread, queue, task, &came, &outcome))
		reader_queue_end(queue, task, &came, &outcome, base_now_ns() - begin_ns,
				 is_timed ? base_cpu_ns() - cpu_ns : 0);
}

void reader_queue_serve(struct reader_thread *thread, struct reader_queue *queue,
			const struct queue_task *task)
{
	queue_serve_rest(thread, queue, task, &(struct reader_came){.bytes = task->bytes});
}

void reader_queue_wake(void)
{
	doorbell_ring_readers(queues.doorbell);
}

/* ---- tasks that wait for peers ---- */

void reader_queue_again(struct reader_ask *ask)
{
	if (!reader_mount_again(ask)) {
		reader_queue_put(ask->queue); /* nobody asks for its tasks any more */
		reader_asks_free(ask);
	} else {
		doorbell_ring_readers(queues.doorbell);
	}
}

bool reader_queue_idles(uint32_t *seen)
{
	const uint32_t before = *seen;

	*seen = doorbell_work_seq(queues.doorbell);
	return *seen == before &&
	       atomic_load_explicit(&queues.doorbell->s_work_armed, memory_order_relaxed);
}

static void queue_serve_again(struct reader_thread *thread, struct reader_ask *ask)
{
	struct reader_queue *queue = ask->queue;
	const struct queue_task task = ask->task;
	const struct reader_came before = {.form = ask->came ? task.want : 0,
					   .from = ask->came ? LAYOUT_FROM_PEER : 0,
					   .is_again = true,
					   .bytes = ask->came};

	reader_asks_free(ask);
	if (!queue_is_leaving(queue))
		queue_serve_rest(thread, queue, &task, &before);
	reader_queue_put(queue);
}

bool reader_queue_shares(const struct reader_queue *queue, const struct hash_id *group)
{
	for (unsigned form = 0; form < LAYOUT_FORMS; form++) {
		const struct reader_kept *kept = reader_queue_kept(queue, form);

		if (kept && kept->shared && memcmp(&kept->shared->id, group, sizeof(*group)) == 0)
			return true;
	}
	return false;
}

int reader_queue_look(const struct value_head *get)
{
	const int r = reader_mount_look(get);

	if (r > 0)
		doorbell_ring_readers(queues.doorbell);
	return r;
}

static void queue_serve_look(struct reader_look *look)
{
	const bool is_leaving = queue_is_leaving(look->queue);
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_NONE};

	if (!is_leaving && look->get.sample < reader_queue_samples(look->queue))
		reader_check_sample(look->queue->dataset, look->get.sample, &outcome);
	reader_serve_looked(&look->get, !is_leaving && outcome.stage == LAYOUT_FAIL_NONE);
	reader_queue_put(look->queue);
	free(look);
}

static bool queue_is_same(const struct reader_queue *queue, uint64_t sample)
{
	struct reader_outcome outcome = {.stage = LAYOUT_FAIL_READ};

	if (sample < reader_queue_samples(queue))
		reader_check_sample(queue->dataset, sample, &outcome);
	return outcome.stage == LAYOUT_FAIL_NONE;
}

static void queue_serve_revisit(const struct reader_claim *claim)
{
	struct reader_revisit *revisit = claim->revisit;
	struct reader_queue *queue = revisit->queue;

	for (size_t i = claim->from;
	     i < claim->to && !atomic_load_explicit(&revisit->is_changed, memory_order_relaxed);
	     i++)
		if (queue_is_leaving(queue) || !queue_is_same(queue, revisit->sample[i]))
			atomic_store_explicit(&revisit->is_changed, true, memory_order_relaxed);
	if (!reader_mount_revisited(claim))
		return;
	reader_say_revisited(revisit->id, queue->number, !revisit->is_changed);
	reader_queue_put(queue);
	free(revisit);
}

void reader_queue_revisit(uint64_t number, uint64_t id, const void *samples, size_t n)
{
	struct reader_queue *queue = reader_mount_hold(number);
	struct reader_revisit *revisit =
	    queue && n > 0 ? malloc(sizeof(*revisit) + n * sizeof(*revisit->sample)) : NULL;

	if (!revisit) { /* what is not looked at is made anew */
		reader_say_revisited(id, number, false);
		if (queue)
			reader_queue_put(queue);
		return;
	}
	*revisit = (struct reader_revisit){.queue = queue, .id = id, .n = n};
	memcpy(revisit->sample, samples, n * sizeof(*revisit->sample));
	reader_mount_revisit(revisit);
	doorbell_ring_readers(queues.doorbell);
}

void reader_queue_store(struct reader_queue *queue, unsigned form, uint64_t sample,
			const uint8_t *value, uint32_t bytes)
{
	const struct reader_kept *kept = reader_queue_kept(queue, form);

	if (kept && kept->group)
		store_put(kept->group, sample, value, bytes);
}

/* The value is in memory from then on, if there is room; where it is, it need not be in the arena, too. */
void reader_queue_bring(struct reader_ask *ask, enum layout_from from, const uint8_t *value,
			uint32_t bytes)
{
	struct reader_queue *queue = ask->queue;
	const struct queue_task *task = &ask->task;
	const struct reader_kept *kept = reader_queue_kept(queue, task->want);
	const struct reader_outcome outcome = {.stage = LAYOUT_FAIL_NONE};
	const bool is_timed = task->timed == LAYOUT_TIMED_ALL;
	const uint64_t begin_ns = base_now_ns(), cpu_ns = is_timed ? base_cpu_ns() : 0;
	struct reader_came came = {.form = task->want, .from = from, .bytes = bytes};
	struct reader_place at;
	uint64_t took_ns;

	reader_resident_keep(kept->resident, task->sample, value, bytes);
	if (task->want != LAYOUT_FORM_INDEXED &&
	    reader_resident_find(kept->resident, task->sample, &at)) {
		came.resident = at.place;
		came.bytes = at.bytes;
	} else {
		memcpy(queue->arena + task->arena_offset, value, bytes);
	}
	if (task->want == LAYOUT_FORM_INDEXED) {
		ask->came = bytes;
		reader_queue_again(ask);
		return;
	}
	took_ns = base_now_ns() - (ask->peer == PROMISE_SELF ? begin_ns : ask->since_ns);
	if (ask->peer != PROMISE_SELF && ask->has_waited)
		took_ns = 0; /* it says nothing of the wire */
	reader_queue_end(queue, task, &came, &outcome, took_ns,
			 is_timed ? base_cpu_ns() - cpu_ns : 0);
	reader_asks_free(ask);
	reader_queue_put(queue);
}

void *reader_queue_thread(void *arg)
{
	struct reader_thread *thread = arg;
	char name[16];

	snprintf(name, sizeof(name), "reader-%u", thread->owner);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		const uint32_t seen = doorbell_read_seq(queues.doorbell);
		struct reader_claim claim;
		const int r = reader_mount_claim(thread, &claim);

		if (r == QUEUE_E_BAD)
			reader_queue_forged(thread->owner);
		if (claim.again) {
			queue_serve_again(thread, claim.again);
		} else if (claim.look) {
			queue_serve_look(claim.look);
		} else if (claim.revisit) {
			queue_serve_revisit(&claim);
		} else if (claim.queue) {
			if (claim.is_alone)
				reader_queue_serve(thread, claim.queue, &claim.task);
			else
				reader_many_serve(thread, claim.queue, &claim.task);
			reader_queue_put(claim.queue);
		} else {
			doorbell_sleep_reader(queues.doorbell, seen, QUEUE_SLEEP_NS);
		}
	}
	return NULL;
}

/* ---- attaching and detaching, in the main thread ---- */

/* Does the device write its samples right into the arena? */
static bool is_read_direct(const struct reader_dataset *dataset)
{
	return dataset_is_placed(dataset->index) && dataset->ops->most &&
	       dataset->ops->most(dataset, NULL) > 1;
}

static int queue_map(struct reader_queue *queue, const struct reader_dataset *dataset, int queue_fd,
		     int arena_fd)
{
	int r = queue_attach(queue_fd, &queue->queue);

	if (r)
		return r;
	if (!queues.may_be_huge || !is_read_direct(dataset))
		queue->gathered = UINT64_MAX;
	r = queue_arena_attach(arena_fd, &queue->queue, true, &queue->arena);
	if (r)
		queue_detach(&queue->queue);
	return r;
}

static int refuse_attach(int code, const char *what, struct diag *diag)
{
	diag_set(diag, "the reader cannot %s: %s", what,
		 code < 0 ? strerror(-code) : "their memory is damaged");
	return code;
}

/* Of one that is mapped. */
static int queue_refuse(struct reader_queue *queue, int code, const char *what, struct diag *diag)
{
	queue_arena_detach(&queue->queue, queue->arena);
	queue_detach(&queue->queue);
	free(queue->expected);
	free(queue);
	return refuse_attach(code, what, diag);
}

void reader_queue_init(unsigned threads, struct layout_doorbell *doorbell, int event_fd,
		       bool may_be_huge)
{
	reader_mount_init(threads);
	queues.doorbell = doorbell;
	queues.event_fd = event_fd;
	queues.may_be_huge = may_be_huge;
}

int reader_queue_attach(uint64_t number, struct reader_dataset *dataset, int queue_fd, int arena_fd,
			struct diag *diag)
{
	struct reader_queue *queue = calloc(1, sizeof(*queue));
	int r;

	if (!queue)
		return refuse_attach(-ENOMEM, "attach a queue", diag);
	r = queue_map(queue, dataset, queue_fd, arena_fd);
	if (r) {
		free(queue);
		return refuse_attach(r, "map a task queue and its arena", diag);
	}
	queue->expected = calloc(dataset_count(dataset->index) / 8 + 1, sizeof(*queue->expected));
	if (!queue->expected)
		return queue_refuse(queue, -ENOMEM, "attach a queue", diag);
	queue->number = number;
	queue->dataset = dataset;
	r = reader_mount_add(queue);
	if (r)
		return queue_refuse(queue, r, "start threads for one more file system", diag);
	doorbell_ring_readers(queues.doorbell); /* there may be tasks in it already */
	return 0;
}

bool reader_queue_detach(uint64_t number)
{
	bool is_idle;
	struct reader_queue *queue = reader_mount_remove(number, &is_idle);

	if (queue && is_idle)
		queue_finish(queue);
	return queue != NULL;
}
