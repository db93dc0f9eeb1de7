/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-worker, played: a parent that answers as that does, and workers that claim tasks of the real queues, look whether
 * the bytes in the arena are the sample's, and write into the real slots whose picture it is and what it was made with.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "shmring/slot_table.h"
#include "tests/daemon/bottle/bottle.h"
#include "worker/parent.h"

/* ---- a task ---- */

static void on_made(void *arg, uint64_t index, uint64_t serial);

static uint32_t known(const struct bottle_queue *queue)
{
	uint32_t bits = 0;

	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++)
		bits |= (uint32_t)(queue->slots[v].map != NULL) << v;
	return bits;
}

static bool claim(struct hand *worker)
{
	struct bottle *bottle = bottle_now();
	const unsigned first = (unsigned)bottle_below(BOTTLE_QUEUES);

	for (unsigned i = 0; i < BOTTLE_QUEUES; i++) {
		struct bottle_queue *queue = &bottle->queue[(first + i) % BOTTLE_QUEUES];
		int r;

		if (!queue->is_used || !queue->has_workers)
			continue;
		r = queue_claim_run(&queue->queue, worker->owner, known(queue), &worker->task);
		if (r == QUEUE_E_BAD)
			bottle_break("a task's numbers are out of bounds");
		if (r)
			continue;
		worker->queue = queue;
		worker->queue_life = queue->life;
		worker->begun_ns = bottle->clock.now_ns;
		return true;
	}
	return false;
}

static uint32_t form_us(unsigned form)
{
	const struct bottle *bottle = bottle_now();
	const unsigned kind = form == LAYOUT_FORM_AUGMENTED
				  ? 3
				  : BASE_MIN(form, (unsigned)LAYOUT_FORM_PIXELS + 1) - 1;

	return form ? (uint32_t)(bottle->work_us * bottle->permille[kind] / 1000 + 1)
		    : (uint32_t)bottle->work_us;
}

static void look(unsigned index)
{
	struct bottle *bottle = bottle_now();
	struct hand *worker = &bottle->worker[index];
	const uint64_t chance = bottle_below(1024);
	uint64_t us;

	worker->queue = NULL;
	worker->serial++;
	if (!bottle->parent.pid || !worker->pid || !claim(worker))
		return;
	us = form_us(worker->task.form);
	us = us / 2 + us * chance / 1024;
	worker->hangs = worker->loops = false;
	if (bottle->is_wild && bottle_chance(2000)) {
		bottle->is_excused[worker->task.sample] = true;
		worker->hangs = bottle_chance(2);
		worker->loops = !worker->hangs;
		bottle_note('h', worker->task.sample, worker->hangs);
		return; /* until somebody notices */
	}
	bottle_after(us * US, on_made, bottle, index, worker->serial);
}

static void write_slot(const struct bottle_queue *queue, const struct queue_task *task)
{
	const uint64_t mark[] = {task->sample, mark_of(task)};

	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS; v++) {
		const struct bottle_slots *slots = &queue->slots[v];
		uint8_t *slot = slots->map + task->slot * slots->stride;
		const uint64_t label = task->label;

		if (!(task->variants >> v & 1))
			continue;
		memcpy(slot + slots->image + task->position * slots->image_bytes, mark,
		       sizeof(mark));
		memcpy(slot + slots->label + task->position * slots->label_bytes, &label,
		       BASE_MIN(slots->label_bytes, sizeof(label)));
	}
}

/* Of what lies in the arena; what no pipeline takes is said to fail. */
static bool look_at_bytes(const struct bottle_queue *queue, const struct queue_task *task)
{
	const uint8_t *data = queue->arena + task->arena_offset;
	struct kept_value value, expected;
	uint64_t sample;

	memcpy(&sample, data, sizeof(sample));
	if (sample != task->sample)
		bottle_break("a worker finds sample %llu in the arena, where %llu should be",
			     (unsigned long long)sample, (unsigned long long)task->sample);
	if (!task->form)
		return true;
	memcpy(&value, data, sizeof(value));
	store_value(queue, task->form, task, &expected);
	if (task->form != task->want || value.form != task->form ||
	    (expected.group && value.group != expected.group))
		bottle_break("a worker is brought form %u of another group", task->form);
	if (value.form == LAYOUT_FORM_INDEXED) {
		memcpy(&sample, data + value.bytes, sizeof(sample));
		if (sample != task->sample || task->came != value.bytes + task->bytes)
			bottle_break("a worker finds no file behind its index");
	}
	return !value.is_rotten && value.mark == expected.mark;
}

static void hand_over(unsigned index, const struct hand *worker, const struct kept_value *value,
		      struct queue_made *ret)
{
	const struct rings *rings = &bottle_now()->parent.rings;
	const struct rings_item item = {.queue = (uint32_t)worker->queue->number,
					.row = worker->task.row,
					.task = worker->task.index,
					.form = worker->task.make,
					.bytes = value ? value->bytes : 0,
					.sample = worker->task.sample};
	uint8_t *at = rings_begin(rings, index, item.bytes);

	ret->made = !at ? LAYOUT_MADE_FULL : value ? LAYOUT_MADE_YES : LAYOUT_MADE_UNFIT;
	if (!at)
		return;
	if (value)
		memcpy(at, value, sizeof(*value));
	rings_end(rings, index, &item);
	store_stir();
}

/* What is to be kept of a file, or tried. */
static void make_form(unsigned index, const struct hand *worker, struct queue_made *ret)
{
	const struct queue_task *task = &worker->task;
	const unsigned form = task->make ? task->make : task->probe;
	struct kept_value value;
	const bool has_form = store_value(worker->queue, form, task, &value);

	ret->made = has_form ? LAYOUT_MADE_YES : LAYOUT_MADE_UNFIT;
	if (has_form) {
		ret->make_us = form_us(0) / 4;
		ret->form_us = form_us(form);
		ret->bytes = value.bytes;
	}
	if (task->make)
		hand_over(index, worker, has_form ? &value : NULL, ret);
}

static void make(unsigned index, struct hand *worker)
{
	struct bottle *bottle = bottle_now();
	const struct queue_task *task = &worker->task;
	const bool fails = !look_at_bytes(worker->queue, task) ||
			   (bottle->is_bad[task->sample] && (!task->form || task->sample % 2 == 0));
	struct queue_made made = {.work_us = form_us(task->form)};

	if (!fails)
		write_slot(worker->queue, task);
	if (!fails && !task->form && (task->make || task->probe) && bottle->parent.rings.head)
		make_form(index, worker, &made);
	queue_run_made(&worker->queue->queue, task, &made);
	if (queue_run_done(&worker->queue->queue, task,
			   fails ? LAYOUT_FAIL_DECODE : LAYOUT_FAIL_NONE, 0,
			   fails ? "no picture" : "", (uint32_t)bottle->work_us))
		played_ring(&bottle->parent);
	worker->cpu_ns += bottle->clock.now_ns - worker->begun_ns;
}

static void on_made(void *arg, uint64_t index, uint64_t serial)
{
	struct bottle *bottle = arg;
	struct hand *worker = &bottle->worker[index];

	if (!worker->queue || worker->serial != serial)
		return;
	if (bottle->clock.now_ns < bottle->parent.until_ns) {
		clock_at(&bottle->clock, bottle->parent.until_ns, on_made, bottle, index, serial);
		return;
	}
	if (worker->queue->life == worker->queue_life && worker->queue->is_used &&
	    worker->queue->has_workers)
		make((unsigned)index, worker);
	look((unsigned)index);
}

void worker_stir(void)
{
	struct bottle *bottle = bottle_now();
	struct played *parent = &bottle->parent;

	if (!parent->pid || !parent->doorbell || bottle->clock.now_ns < parent->until_ns ||
	    doorbell_work_seq(parent->doorbell) == parent->seen)
		return;
	parent->seen = doorbell_work_seq(parent->doorbell);
	for (unsigned i = 0; i < bottle->n_workers; i++)
		if (!bottle->worker[i].queue)
			look(i);
}

/* ---- workers come and go ---- */

static void say(struct wire_out *out)
{
	role_send(bottle_now()->parent.sock, out);
	loop_poke();
}

static void on_birth(void *arg, uint64_t index, uint64_t life)
{
	struct bottle *bottle = arg;
	struct hand *worker = &bottle->worker[index];
	struct wire_out out;

	if (!bottle->parent.pid || bottle->parent.life != life || worker->pid)
		return;
	*worker = (struct hand){.serial = worker->serial,
				.owner = ++bottle->last_owner,
				.pid = (pid_t)(BOTTLE_PID + ++bottle->last_pid)};
	role_worker(&out, PARENT_STARTED, worker->owner, index);
	wire_put_u64(&out, PARENT_KEY_PID, (uint64_t)worker->pid);
	say(&out);
	look((unsigned)index);
}

static void bear(unsigned index)
{
	bottle_after(bottle_between(MS, 20 * MS), on_birth, bottle_now(), index,
		     bottle_now()->parent.life);
}

void worker_die(unsigned index, int status)
{
	struct bottle *bottle = bottle_now();
	struct hand *worker = &bottle->worker[index];
	struct wire_out out;

	if (!worker->pid)
		return;
	if (worker->queue)
		bottle->is_excused[worker->task.sample] = true;
	role_worker(&out, PARENT_EXITED, worker->owner, index);
	wire_put_u64(&out, PARENT_KEY_STATUS, (uint64_t)status);
	wire_put_u64(&out, PARENT_KEY_CPU_NS, worker->cpu_ns);
	worker->pid = 0;
	worker->queue = NULL;
	worker->serial++;
	say(&out);
	bear(index);
}

/* ---- the parent's answers ---- */

static void answer(uint16_t type, const struct wire_in *in)
{
	struct wire_out out;

	role_queue(&out, type, in);
	say(&out);
}

static void add(struct wire_in *in)
{
	struct bottle_queue *queue =
	    queue_add(role_number(in, PARENT_KEY_QUEUE), in->n_fds > 1 ? in->fds[1] : -1);
	struct bottle_slots *slots = &queue->slots[role_number(in, PARENT_KEY_VARIANT)];
	const void *offsets;
	uint64_t field[2][2];
	size_t size;
	void *map;

	queue->has_workers = true;
	slots->bytes = role_number(in, PARENT_KEY_SLOTS_BYTES);
	slots->stride = role_number(in, PARENT_KEY_STRIDE);
	if (wire_get_bytes(in, PARENT_KEY_OFFSETS, &offsets, &size) || size < sizeof(field) ||
	    slots_map(in->fds[0], slots->bytes, &map))
		abort();
	memcpy(field, offsets, sizeof(field));
	slots->map = map;
	slots->image = field[0][0];
	slots->image_bytes = field[0][1];
	slots->label = field[1][0];
	slots->label_bytes = field[1][1];
	if (!queue->arena && queue_arena_attach(in->fds[2], &queue->queue, true, &queue->arena))
		abort();
	answer(PARENT_ADDED, in);
}

/* Where a stream has ended accessd finds who hangs in it by the doorbell, which these do not write. */
static void end_hung(const struct bottle_queue *queue)
{
	for (unsigned i = 0; i < BOTTLE_WORKERS; i++) {
		const struct hand *worker = &bottle_now()->worker[i];

		if (worker->pid && worker->queue == queue && (worker->hangs || worker->loops))
			worker_die(i, SIGKILL);
	}
}

static void drop(const struct wire_in *in)
{
	const uint64_t variant = role_number(in, PARENT_KEY_VARIANT);
	struct bottle_queue *queue = queue_find(role_number(in, PARENT_KEY_QUEUE));
	struct bottle_slots *slots =
	    queue && variant < LAYOUT_MAX_VARIANTS ? &queue->slots[variant] : NULL;

	if (slots && slots->map) {
		munmap(slots->map, slots->bytes);
		slots->map = NULL;
	} else if (queue && variant == UINT64_MAX) {
		end_hung(queue);
		queue_forget(queue, false);
	}
	answer(PARENT_REMOVED, in);
}

static void kill_owner(uint64_t owner)
{
	struct bottle *bottle = bottle_now();

	for (unsigned i = 0; i < BOTTLE_WORKERS; i++)
		if (bottle->worker[i].pid && bottle->worker[i].owner == owner)
			worker_die(i, SIGKILL);
}

static void start(struct wire_in *in)
{
	struct played *parent = &bottle_now()->parent;

	if (in->n_fds < 2 || doorbell_attach(in->fds[0], &parent->doorbell))
		abort();
	parent->event_fd = wire_take_fd(in, 1);
	if (in->n_fds > 2 && rings_attach(in->fds[2], &parent->rings))
		abort();
}

static void hear(struct wire_in *in)
{
	struct bottle *bottle = bottle_now();

	switch (in->type) {
	case PARENT_START:
		start(in);
		break;
	case PARENT_ADD:
		add(in);
		break;
	case PARENT_GO:
		for (unsigned i = 0; i < bottle->n_workers; i++)
			if (!bottle->worker[i].pid)
				bear(i);
		bottle->parent.seen--; /* there may be tasks already */
		worker_stir();
		break;
	case PARENT_REMOVE:
		drop(in);
		break;
	case PARENT_KILL:
		kill_owner(role_number(in, PARENT_KEY_WORKER));
		break;
	default:
		break;
	}
}

static void on_called(void *arg, uint64_t life, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct played *parent = &bottle->parent;

	(void)unused;
	if (!parent->pid || parent->life != life)
		return;
	if (bottle->clock.now_ns < parent->until_ns) {
		clock_at(&bottle->clock, parent->until_ns, on_called, bottle, life, 0);
		return;
	}
	parent->is_called = false;
	role_hear(&parent->sock, hear);
}

void parent_call(void)
{
	struct bottle *bottle = bottle_now();

	if (bottle->parent.is_called || !bottle->parent.pid)
		return;
	bottle->parent.is_called = true;
	bottle_after(bottle_between(10 * US, 3 * MS), on_called, bottle, bottle->parent.life, 0);
}

/* ---- its life ---- */

void parent_start(pid_t pid, int sock, unsigned workers)
{
	struct bottle *bottle = bottle_now();

	bottle->parent = (struct played){
	    .pid = pid, .sock = sock, .life = bottle->parent.life + 1, .event_fd = -1};
	bottle->n_workers = BASE_MIN(workers, (unsigned)BOTTLE_WORKERS);
}

void parent_die(int status)
{
	struct bottle *bottle = bottle_now();
	struct played *parent = &bottle->parent;

	if (!parent->pid)
		return;
	for (unsigned i = 0; i < BOTTLE_QUEUES; i++)
		if (bottle->queue[i].is_used && bottle->queue[i].has_workers)
			queue_forget(&bottle->queue[i], false);
	for (unsigned i = 0; i < BOTTLE_WORKERS; i++)
		bottle->worker[i] = (struct hand){.serial = bottle->worker[i].serial + 1};
	if (parent->doorbell)
		doorbell_detach(parent->doorbell);
	parent->doorbell = NULL;
	if (parent->rings.head)
		rings_detach(&parent->rings);
	base_close(&parent->event_fd);
	base_close(&parent->sock);
	process_ended(parent->pid, status, false);
	parent->pid = 0;
	loop_poke();
}
