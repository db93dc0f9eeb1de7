/* SPDX-License-Identifier: Apache-2.0 */

/* access-reader, played: it answers as that does, and its threads claim tasks of the real queues and bring bytes that say whose
 * they are. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/reader.h"
#include "tests/daemon/bottle/bottle.h"

/* ---- queues, as both processes have them ---- */

struct bottle_queue *queue_find(uint64_t number)
{
	struct bottle *bottle = bottle_now();

	for (unsigned i = 0; i < BOTTLE_QUEUES; i++)
		if (bottle->queue[i].is_used && bottle->queue[i].number == number)
			return &bottle->queue[i];
	return NULL;
}

struct bottle_queue *queue_add(uint64_t number, int fd)
{
	struct bottle *bottle = bottle_now();
	struct bottle_queue *queue = queue_find(number);

	for (unsigned i = 0; i < BOTTLE_QUEUES && !queue; i++)
		if (!bottle->queue[i].is_used)
			queue = &bottle->queue[i];
	if (!queue)
		abort();
	if (queue->is_used)
		return queue;
	*queue =
	    (struct bottle_queue){.is_used = true, .number = number, .life = ++bottle->queue_lives};
	if (queue_attach(fd, &queue->queue))
		abort();
	return queue;
}

void queue_forget(struct bottle_queue *queue, bool by_reader)
{
	if (by_reader) {
		queue->has_reader = false;
		memset(queue->wishes, 0, sizeof(queue->wishes));
		memset(queue->kept, 0, sizeof(queue->kept));
		memset(queue->expected, 0, sizeof(queue->expected));
	} else
		queue->has_workers = false;
	for (unsigned v = 0; v < LAYOUT_MAX_VARIANTS && !by_reader; v++)
		if (queue->slots[v].map) {
			munmap(queue->slots[v].map, queue->slots[v].bytes);
			queue->slots[v].map = NULL;
		}
	if (queue->has_reader || queue->has_workers)
		return;
	if (queue->arena)
		queue_arena_detach(&queue->queue, queue->arena);
	queue_detach(&queue->queue);
	*queue = (struct bottle_queue){0};
}

uint64_t mark_of(const struct queue_task *task)
{
	const struct philox row =
	    philox_block(task->seed, task->nonce, task->sample << 32 | task->random_id);

	return (uint64_t)row.word[0] << 32 | row.word[1];
}

void played_ring(struct played *played)
{
	const uint64_t one = 1;

	if (!doorbell_take_event_arm(played->doorbell))
		return;
	if (write(played->event_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		loop_poke();
}

/* ---- threads ---- */

static void on_read(void *arg, uint64_t index, uint64_t serial);

static bool claim(struct hand *thread)
{
	struct bottle *bottle = bottle_now();

	for (unsigned i = 0; i < BOTTLE_QUEUES; i++) {
		struct bottle_queue *queue = &bottle->queue[i];

		if (!queue->is_used || !queue->has_reader ||
		    queue_claim_read(&queue->queue, bottle->reader.life, &thread->task))
			continue;
		thread->queue = queue;
		thread->queue_life = queue->life;
		return true;
	}
	return false;
}

static void look(unsigned index)
{
	struct bottle *bottle = bottle_now();
	struct hand *thread = &bottle->thread[index];
	uint64_t us = bottle->read_us / 2 + bottle_below(bottle->read_us + 1);

	thread->queue = NULL;
	thread->serial++;
	if (!bottle->reader.pid || !claim(thread))
		return;
	if (bottle->is_wild && bottle_chance(500)) /* a disk that is slow */
		us += bottle_below(2000000);
	bottle_after(us * US, on_read, bottle, index, thread->serial);
}

static void say_failed(const struct hand *thread)
{
	struct wire_out out;

	wire_out_init(&out, READER_FAILED);
	wire_put_u64(&out, READER_KEY_QUEUE, thread->queue->number);
	wire_put_u64(&out, READER_KEY_ROW, thread->task.row);
	wire_put_u64(&out, READER_KEY_TASK, thread->task.index);
	wire_put_u64(&out, READER_KEY_SAMPLE, thread->task.sample);
	reader_say(&out);
}

/* The form that is wanted, if it is kept, else the file; behind a crop index both. */
static void bring(struct bottle_queue *queue, const struct queue_task *task, bool *ret_fails)
{
	uint8_t *buffer = queue->arena + task->arena_offset;
	const uint32_t came = store_bring(queue, task, buffer);
	const bool has_file = !came || task->want == LAYOUT_FORM_INDEXED;

	*ret_fails = has_file && bottle_now()->is_bad[task->sample] && task->sample % 2;
	if (has_file) {
		memset(buffer + came, (int)task->sample, task->bytes);
		memcpy(buffer + came, &task->sample, sizeof(task->sample));
	}
	if (!came && task->make)
		queue->expected[task->sample] = true;
	if (came)
		queue_read_came(&queue->queue, task, task->want, LAYOUT_FROM_STORE,
				came + (has_file ? task->bytes : 0), 0);
	else
		queue_read_came(&queue->queue, task, 0, LAYOUT_FROM_SOURCE, task->bytes, 0);
}

static void on_read(void *arg, uint64_t index, uint64_t serial)
{
	struct bottle *bottle = arg;
	struct hand *thread = &bottle->thread[index];
	const struct queue_task *task = &thread->task;
	bool fails;

	if (!thread->queue || thread->serial != serial)
		return;
	if (bottle->clock.now_ns < bottle->reader.until_ns) {
		clock_at(&bottle->clock, bottle->reader.until_ns, on_read, bottle, index, serial);
		return;
	}
	if (thread->queue->life != thread->queue_life || !thread->queue->is_used) {
		look((unsigned)index);
		return;
	}
	bring(thread->queue, task, &fails);
	if (fails)
		say_failed(thread);
	if (queue_read_done(&thread->queue->queue, task,
			    fails ? LAYOUT_FAIL_READ : LAYOUT_FAIL_NONE, fails ? -EIO : 0,
			    fails ? "no such sector" : NULL, 1000, 1000))
		played_ring(&bottle->reader);
	doorbell_ring_workers(bottle->reader.doorbell);
	look((unsigned)index);
	worker_stir();
}

void reader_stir(void)
{
	struct bottle *bottle = bottle_now();
	struct played *reader = &bottle->reader;

	if (!reader->pid || !reader->doorbell ||
	    doorbell_read_seq(reader->doorbell) == reader->seen)
		return;
	reader->seen = doorbell_read_seq(reader->doorbell);
	for (unsigned i = 0; i < BOTTLE_THREADS; i++)
		if (!bottle->thread[i].queue)
			look(i);
}

/* ---- answers ---- */

void reader_say(struct wire_out *out)
{
	role_send(bottle_now()->reader.sock, out);
	loop_poke();
}

static void answer_open(const struct wire_in *in)
{
	const char *path = "";
	struct wire_out out;

	wire_get_string(in, READER_KEY_PATH, &path);
	if (strcmp(path, "/data") != 0)
		bottle_break("accessd opens %s", path);
	role_opened(&out, in, true, bottle_now()->index_fd); /* nobody forks to store it */
	reader_say(&out);
}

static void attach(struct wire_in *in)
{
	struct bottle_queue *queue =
	    queue_add(role_number(in, READER_KEY_QUEUE), in->n_fds > 1 ? in->fds[0] : -1);
	struct wire_out out;

	queue->has_reader = true;
	if (!queue->arena && queue_arena_attach(in->fds[1], &queue->queue, true, &queue->arena))
		abort();
	role_answer(&out, READER_ATTACHED, in, READER_KEY_QUEUE);
	reader_say(&out);
	bottle_now()->reader.seen--; /* there may be tasks already */
	reader_stir();
}

static void start(struct wire_in *in)
{
	struct played *reader = &bottle_now()->reader;

	if (in->n_fds < 2 || doorbell_attach(in->fds[0], &reader->doorbell))
		abort();
	reader->event_fd = wire_take_fd(in, 1);
	store_start(in);
}

/* Sources change only as it is drawn here: then what was made of them is made anew, and nobody is the worse for it. */
static void revisit(const struct wire_in *in)
{
	struct bottle *bottle = bottle_now();
	struct wire_out out;

	role_answer(&out, READER_REVISITED, in, READER_KEY_QUEUE);
	wire_put_u64(&out, READER_KEY_ID, role_number(in, READER_KEY_ID));
	wire_put_u64(&out, READER_KEY_CODE, bottle->is_wild && bottle_chance(8));
	reader_say(&out);
}

static void hear(struct wire_in *in)
{
	struct bottle_queue *queue;
	struct wire_out out;

	switch (in->type) {
	case READER_START:
		start(in);
		break;
	case READER_OPEN:
		answer_open(in);
		break;
	case READER_ATTACH:
		attach(in);
		break;
	case READER_DETACH:
		queue = queue_find(role_number(in, READER_KEY_QUEUE));
		if (queue)
			queue_forget(queue, true);
		role_answer(&out, READER_DETACHED, in, READER_KEY_QUEUE);
		reader_say(&out);
		break;
	case READER_STORE:
		store_open_at(in);
		break;
	case READER_FORM:
		store_form(in);
		break;
	case READER_REVISIT:
		revisit(in);
		break;
	default:
		break;
	}
}

static void on_called(void *arg, uint64_t life, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct played *reader = &bottle->reader;

	(void)unused;
	if (!reader->pid || reader->life != life)
		return;
	if (bottle->clock.now_ns < reader->until_ns) {
		clock_at(&bottle->clock, reader->until_ns, on_called, bottle, life, 0);
		return;
	}
	reader->is_called = false;
	role_hear(&reader->sock, hear);
}

void reader_call(void)
{
	struct bottle *bottle = bottle_now();

	if (bottle->reader.is_called || !bottle->reader.pid)
		return;
	bottle->reader.is_called = true;
	bottle_after(bottle_between(10 * US, 3 * MS), on_called, bottle, bottle->reader.life, 0);
}

/* ---- its life ---- */

void reader_start(pid_t pid, int sock)
{
	struct played *reader = &bottle_now()->reader;

	*reader =
	    (struct played){.pid = pid, .sock = sock, .life = reader->life + 1, .event_fd = -1};
}

void reader_die(int status)
{
	struct bottle *bottle = bottle_now();
	struct played *reader = &bottle->reader;

	if (!reader->pid)
		return;
	for (unsigned i = 0; i < BOTTLE_QUEUES; i++)
		if (bottle->queue[i].is_used && bottle->queue[i].has_reader)
			queue_forget(&bottle->queue[i], true);
	for (unsigned i = 0; i < BOTTLE_THREADS; i++)
		bottle->thread[i].queue = NULL;
	if (reader->doorbell)
		doorbell_detach(reader->doorbell);
	reader->doorbell = NULL;
	store_close_down();
	base_close(&reader->event_fd);
	base_close(&reader->sock);
	process_ended(reader->pid, status, false);
	reader->pid = 0;
	loop_poke();
}
