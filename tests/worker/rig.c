/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"
#include "tests/data.h"
#include "tests/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIG_ARENA (UINT64_C(1) << 20)
#define RIG_READER 1
#define RIG_WORKER "worker/access-worker"
#define RIG_SEED 77

static struct rig_photo rig_photo;

static void rig_load_photo(void)
{
	if (rig_photo.data == NULL)
		rig_photo.data = data_load("worker", "photo.jpg", &rig_photo.size);
}

/* ---- the process ---- */

static const char *rig_program(const char *name)
{
	static char path[1024];
	const char *top = getenv("top_builddir");

	snprintf(path, sizeof(path), "%s/%s", top != NULL ? top : ".", name);
	return path;
}

static _Noreturn void rig_exec(int control, unsigned n_workers, const char *memory,
			       const char *fault)
{
	const char *program = rig_program(fault ? "tests/worker/faulty_worker" : RIG_WORKER);
	char workers[16];
	const char *argv[] = {"access-worker", "--workers", workers, "--memory", memory, NULL};

	snprintf(workers, sizeof(workers), "%u", n_workers);
	if (control == PARENT_CONTROL_FD)
		fcntl(control, F_SETFD, 0);
	else
		dup2(control, PARENT_CONTROL_FD);
	if (fault)
		setenv("FAULT", fault, 1);
	execv(program, (char *const *)(uintptr_t)argv);
	perror(program);
	_exit(127);
}

struct rig *rig_new(unsigned n_workers, const char *memory, const char *fault)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct wire_out out;
	int pair[2];

	ck_assert_ptr_nonnull(rig);
	rig_load_photo();
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig->pid = fork();
	ck_assert_int_ge(rig->pid, 0);
	if (rig->pid == 0)
		rig_exec(pair[1], n_workers, memory, fault);
	close(pair[1]);
	rig->control = pair[0];
	rig->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(rig->event, 0);
	ck_assert_int_eq(doorbell_new(&rig->doorbell, &rig->doorbell_fd), 0);
	wire_out_init(&out, PARENT_START);
	wire_put_fd(&out, rig->doorbell_fd);
	wire_put_fd(&out, rig->event);
	ck_assert_int_eq(wire_send(rig->control, &out, 0), 0);
	wire_out_fini(&out);
	return rig;
}

void rig_free(struct rig *rig)
{
	close(rig->control);
	if (rig->pid > 0)
		rig_reap(rig->pid);
	doorbell_detach(rig->doorbell);
	close(rig->doorbell_fd);
	close(rig->event);
	free(rig);
}

int rig_reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		ck_assert_int_eq(errno, EINTR);
	return status;
}

int rig_run_program(const char *const argv[8], char *ret, size_t size)
{
	const char *all[10] = {"access-worker"};
	int pair[2];
	size_t used = 0;
	ssize_t got;
	pid_t pid;

	for (unsigned i = 0; i < 8; i++)
		all[i + 1] = argv[i];
	ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(pair[1], STDERR_FILENO);
		close_range(PARENT_CONTROL_FD, ~0U, 0);
		execv(rig_program(RIG_WORKER), (char *const *)(uintptr_t)all);
		_exit(127);
	}
	close(pair[1]);
	while ((got = read(pair[0], ret + used, size - 1 - used)) > 0)
		used += (size_t)got;
	ret[used] = '\0';
	close(pair[0]);
	return rig_reap(pid);
}

static uint64_t rig_u64(const struct wire_in *message, uint16_t key)
{
	uint64_t value = 0;

	ck_assert_int_eq(wire_get_u64(message, key, &value), 0);
	return value;
}

static void rig_on_started(struct rig *rig, const struct wire_in *message)
{
	uint64_t owner = rig_u64(message, PARENT_KEY_WORKER);
	struct rig_worker *worker = &rig->worker[owner];

	ck_assert_uint_lt(owner, RIG_MAX_WORKERS);
	ck_assert_uint_eq(owner, rig->last_owner + 1);
	rig->last_owner = (uint32_t)owner;
	worker->is_started = true;
	worker->index = (unsigned)rig_u64(message, PARENT_KEY_INDEX);
	worker->pid = (pid_t)rig_u64(message, PARENT_KEY_PID);
	for (uint32_t other = 1; other < owner; other++)
		ck_assert(rig->worker[other].has_exited ||
			  rig->worker[other].index != worker->index);
	rig->n_alive++;
	rig->most_alive = BASE_MAX(rig->most_alive, rig->n_alive);
}

static void rig_on_exited(struct rig *rig, const struct wire_in *message)
{
	struct rig_worker *worker = &rig->worker[rig_u64(message, PARENT_KEY_WORKER)];

	ck_assert(worker->is_started && !worker->has_exited);
	ck_assert_uint_eq(rig_u64(message, PARENT_KEY_INDEX), worker->index);
	worker->has_exited = true;
	worker->status = (int)rig_u64(message, PARENT_KEY_STATUS);
	worker->cpu_ns = rig_u64(message, PARENT_KEY_CPU_NS);
	rig->n_alive--;
}

static void rig_on_message(struct rig *rig, const struct wire_in *message)
{
	const char *text;

	if (message->type < PARENT_STARTED) {
		rig->answer.variant = UINT64_MAX;
		wire_get_u64(message, PARENT_KEY_VARIANT, &rig->answer.variant);
	}
	switch (message->type) {
	case PARENT_ADDED:
		rig->answer.added = rig_u64(message, PARENT_KEY_QUEUE);
		break;
	case PARENT_REMOVED:
		rig->answer.removed = rig_u64(message, PARENT_KEY_QUEUE);
		break;
	case PARENT_REFUSED:
		rig->answer.refused = rig_u64(message, PARENT_KEY_QUEUE);
		ck_assert_int_eq(wire_get_string(message, PARENT_KEY_TEXT, &text), 0);
		snprintf(rig->answer.text, sizeof(rig->answer.text), "%s", text);
		break;
	case PARENT_STARTED:
		rig_on_started(rig, message);
		break;
	case PARENT_EXITED:
		rig_on_exited(rig, message);
		break;
	default:
		ck_abort_msg("message %u", message->type);
	}
}

void rig_pump(struct rig *rig, int timeout_ms)
{
	struct pollfd polled = {rig->control, POLLIN, 0};

	while (poll(&polled, 1, timeout_ms) > 0) {
		struct wire_in message;

		wire_in_init(&message);
		ck_assert_int_eq(wire_recv(rig->control, &message, 0), 0);
		rig_on_message(rig, &message);
		wire_in_fini(&message);
		timeout_ms = 0;
	}
}

void rig_await(struct rig *rig, bool (*is_done)(struct rig *rig, void *closure), void *closure)
{
	uint64_t until_ns = base_now_ns() + PATIENCE_NS;

	while (!is_done(rig, closure)) {
		ck_assert_msg(base_now_ns() < until_ns, "waited in vain");
		rig_pump(rig, 2);
	}
}

static bool rig_has_workers(struct rig *rig, void *closure)
{
	return rig->n_alive == *(unsigned *)closure;
}

void rig_await_workers(struct rig *rig, unsigned n_alive)
{
	rig_await(rig, rig_has_workers, &n_alive);
}

static void rig_send_u64(struct rig *rig, enum parent_message type, uint16_t key, uint64_t value)
{
	struct wire_out out;

	wire_out_init(&out, (uint16_t)type);
	wire_put_u64(&out, key, value);
	ck_assert_int_eq(wire_send(rig->control, &out, 0), 0);
	wire_out_fini(&out);
}

void rig_send_queue(struct rig *rig, enum parent_message type, uint32_t number)
{
	rig_send_u64(rig, type, PARENT_KEY_QUEUE, number);
}

void rig_send_kill(struct rig *rig, uint32_t owner)
{
	rig_send_u64(rig, PARENT_KILL, PARENT_KEY_WORKER, owner);
}

void rig_send_size(struct rig *rig, uint64_t n_workers)
{
	rig_send_u64(rig, PARENT_SIZE, PARENT_KEY_WORKERS, n_workers);
}

/* ---- a queue ---- */

static void rig_queue_plan(struct rig_queue *queue)
{
	struct slot_geometry *geometry = &queue->geometry;
	const struct pipeline_field *fields;

	geometry->max_slots = RIG_SLOTS;
	geometry->chunk = RIG_CHUNK;
	geometry->block = 1;
	geometry->n_samples = 1000;
	geometry->n_fields = pipeline_fields(queue->pipeline, &fields);
	for (uint32_t f = 0; f < geometry->n_fields; f++) {
		struct layout_field *field = &geometry->field[f];

		snprintf(field->name, sizeof(field->name), "%s", fields[f].name);
		field->dtype = fields[f].dtype;
		field->where = LAYOUT_IN_SLOT;
		field->ndim = fields[f].ndim;
		memcpy(field->shape, fields[f].shape, sizeof(field->shape));
		field->sample_bytes = fields[f].bytes;
	}
	ck_assert_int_eq(slot_table_plan(geometry), 0);
}

/* Slots, and what becomes of samples in them. */
static void rig_queue_make(struct rig_queue *queue, const char *spec)
{
	const struct pipeline *pipeline;
	struct diag diag;
	void *map;

	queue->spec = spec;
	ck_assert_int_eq(pipeline_compile(spec, strlen(spec), &queue->pipeline, &diag), 0);
	pipeline = queue->pipeline;
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &queue->run), 0);
	rig_queue_plan(queue);
	ck_assert_int_eq(slots_new(&queue->geometry, &queue->slots_fd), 0);
	for (uint32_t s = 0; s < RIG_SLOTS; s++)
		ck_assert_int_eq(slots_reserve(queue->slots_fd, &queue->geometry, s), 0);
	map = mmap(NULL, queue->geometry.slots_bytes, PROT_READ, MAP_SHARED, queue->slots_fd, 0);
	ck_assert(map != MAP_FAILED);
	queue->slots = map;
}

struct rig_queue *rig_queue_new(uint32_t number)
{
	struct rig_queue *queue = calloc(1, sizeof(*queue));

	ck_assert_ptr_nonnull(queue);
	queue->number = number;
	queue->variants = 1;
	rig_queue_make(queue, RIG_SPEC);
	ck_assert_int_eq(queue_new(number, 2, RIG_CHUNK, RIG_ARENA, &queue->queue, &queue->queue_fd,
				   &queue->arena_fd),
			 0);
	ck_assert_int_eq(queue_arena_attach(queue->arena_fd, &queue->queue, true, &queue->arena),
			 0);
	return queue;
}

struct rig_queue *rig_variant_new(const struct rig_queue *of, uint32_t variant, const char *spec)
{
	struct rig_queue *queue = calloc(1, sizeof(*queue));

	ck_assert_ptr_nonnull(queue);
	queue->number = of->number;
	queue->variant = variant;
	queue->is_further = true;
	queue->queue = of->queue;
	rig_queue_make(queue, spec);
	return queue;
}

void rig_queue_free(struct rig_queue *queue)
{
	munmap((void *)(uintptr_t)queue->slots, queue->geometry.slots_bytes);
	if (!queue->is_further) {
		queue_arena_detach(&queue->queue, queue->arena);
		queue_detach(&queue->queue);
		close(queue->queue_fd);
		close(queue->arena_fd);
	}
	close(queue->slots_fd);
	pipeline_run_free(queue->run);
	pipeline_free(queue->pipeline);
	free(queue);
}

static void rig_put_offsets(struct wire_out *out, const struct rig_queue *queue,
			    const struct rig_add *spoilt)
{
	uint64_t pairs[PIPELINE_MAX_FIELDS][2];

	for (uint32_t f = 0; f < queue->geometry.n_fields; f++) {
		const struct layout_field *field =
		    &queue->geometry.field[spoilt->same_offsets ? 0 : f];

		pairs[f][0] = field->offset + spoilt->offset_change;
		pairs[f][1] = queue->geometry.field[f].sample_bytes + spoilt->bytes_change;
	}
	wire_put_bytes(out, PARENT_KEY_OFFSETS, pairs, queue->geometry.n_fields * sizeof(pairs[0]));
}

static bool rig_is_answered(struct rig *rig, void *closure)
{
	(void)closure;
	return rig->answer.added != 0 || rig->answer.refused != 0;
}

bool rig_queue_add(struct rig *rig, const struct rig_queue *queue, const struct rig_add *spoilt)
{
	const int fds[] = {queue->slots_fd, queue->queue_fd, queue->arena_fd};
	struct wire_out out;

	wire_out_init(&out, PARENT_ADD);
	wire_put_u64(&out, PARENT_KEY_QUEUE, queue->number);
	wire_put_u64(&out, PARENT_KEY_VARIANT, queue->variant + spoilt->variant_change);
	wire_put_string(&out, PARENT_KEY_SPEC, spoilt->spec != NULL ? spoilt->spec : queue->spec);
	wire_put_u64(&out, PARENT_KEY_STRIDE, queue->geometry.slot_stride + spoilt->stride_change);
	wire_put_u64(&out, PARENT_KEY_SLOTS_BYTES,
		     queue->geometry.slots_bytes + spoilt->slots_change);
	rig_put_offsets(&out, queue, spoilt);
	for (unsigned i = 0;
	     i + spoilt->fds_left_out < (queue->is_further ? 1 : BASE_ARRAY_LEN(fds)); i++)
		wire_put_fd(&out, fds[i]);
	rig->answer.added = rig->answer.refused = 0;
	ck_assert_int_eq(wire_send(rig->control, &out, 0), 0);
	wire_out_fini(&out);
	rig_await(rig, rig_is_answered, NULL);
	ck_assert_uint_eq(rig->answer.added + rig->answer.refused, queue->number);
	ck_assert_uint_eq(rig->answer.variant, queue->variant + spoilt->variant_change);
	return rig->answer.added != 0;
}

void rig_queue_open(struct rig *rig, struct rig_queue *queue)
{
	ck_assert(rig_queue_add(rig, queue, &(struct rig_add){.spec = NULL}));
	ck_assert_int_eq(slots_seal(queue->slots_fd), 0);
	rig_send_queue(rig, PARENT_GO, queue->number);
}

/* Sample i of a chunk has id 100 * queue + i, label 1000 + i. */
uint32_t rig_queue_fill(struct rig *rig, struct rig_queue *queue, uint32_t slot, uint32_t count)
{
	struct queue_task task;
	uint32_t row;

	queue->order++;
	memcpy(queue->arena, rig_photo.data, rig_photo.size);
	ck_assert_int_eq(queue_row_begin(&queue->queue, queue->order, queue->order, RIG_SEED, slot,
					 queue->variants, count, &row),
			 0);
	queue_ring_at(&queue->queue, row, count);
	doorbell_arm_event(rig->doorbell);
	for (uint32_t i = 0; i < count; i++) {
		queue_task_keep(&queue->queue, row, i, &(struct queue_keep){.timed = rig_timed(i)});
		queue_task_put(&queue->queue, row, i, 100 * queue->number + i,
			       100 * queue->number + i, i, 1000 + i, 0, (uint32_t)rig_photo.size,
			       0);
	}
	for (uint32_t i = 0; i < count; i++) {
		ck_assert_int_eq(queue_claim_read(&queue->queue, RIG_READER, &task), 0);
		queue_read_done(&queue->queue, &task, LAYOUT_FAIL_NONE, 0, "", 1, 0);
		doorbell_ring_workers(rig->doorbell);
	}
	return row;
}

unsigned rig_queue_count(const struct rig_queue *queue, uint32_t row, enum layout_task_state state)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < RIG_CHUNK; i++)
		count += queue_task_state(&queue->queue, row, i, NULL) == state;
	return count;
}

struct rig_block {
	struct rig_queue *queue;
	uint32_t row;
};

static bool rig_is_block_done(struct rig *rig, void *closure)
{
	const struct rig_block *b = closure;

	(void)rig;
	return rig_queue_count(b->queue, b->row, LAYOUT_TASK_READY) == 0 &&
	       rig_queue_count(b->queue, b->row, LAYOUT_TASK_RUNNING) == 0;
}

void rig_queue_await(struct rig *rig, struct rig_queue *queue, uint32_t row)
{
	struct rig_block b = {queue, row};

	rig_await(rig, rig_is_block_done, &b);
}

static void rig_queue_check_sample(const struct rig_queue *queue, uint32_t slot, uint32_t i,
				   uint64_t nonce)
{
	const struct pipeline_key key = {RIG_SEED, nonce, 100 * queue->number + i};
	const struct slot_geometry *geometry = &queue->geometry;
	uint8_t expected[PIPELINE_MAX_FIELDS][8192] __attribute__((aligned(64)));
	struct pipeline_error error;
	struct pipeline_out out;

	for (uint32_t f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = expected[f];
	ck_assert_int_eq(pipeline_run_sample(queue->run, 1, rig_photo.data, rig_photo.size,
					     1000 + i, &key, &out, &error),
			 0);
	for (uint32_t f = 0; f < geometry->n_fields; f++) {
		const struct layout_field *field = &geometry->field[f];

		ck_assert_uint_le(field->sample_bytes, sizeof(expected[f]));
		ck_assert_mem_eq(queue->slots + slot * geometry->slot_stride + field->offset +
				     i * field->sample_bytes,
				 expected[f], field->sample_bytes);
	}
}

void rig_queue_check(const struct rig_queue *queue, uint32_t row, uint32_t slot, uint32_t count)
{
	uint64_t nonce = queue->queue.row[row].d_nonce;

	ck_assert_uint_gt(count, 0);
	for (uint32_t i = 0; i < count; i++)
		if (queue_task_state(&queue->queue, row, i, NULL) == LAYOUT_TASK_DONE)
			rig_queue_check_sample(queue, slot, i, nonce);
}

unsigned rig_queue_take_over(struct rig *rig, struct rig_queue *queue, uint32_t row,
			     enum layout_task_state to)
{
	unsigned taken = 0;

	for (uint32_t i = 0; i < RIG_CHUNK; i++) {
		uint32_t owner;

		if (queue_task_state(&queue->queue, row, i, &owner) != LAYOUT_TASK_RUNNING ||
		    !rig->worker[owner].has_exited)
			continue;
		ck_assert(queue_task_take_over(&queue->queue, row, i, owner, LAYOUT_TASK_RUNNING,
					       to, LAYOUT_FAIL_CRASH, rig->worker[owner].status));
		taken++;
	}
	if (taken > 0) {
		queue_recount(&queue->queue, row);
		doorbell_ring_all(rig->doorbell);
	}
	return taken;
}
