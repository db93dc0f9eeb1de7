/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/storage/reader_process.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the process ---- */

static void exec_reader(int sock, const char *faults)
{
	const char *libexec = getenv("ACCESS_LIBEXEC"), *build = getenv("top_builddir");
	char program[4096], preload[4096];

	snprintf(program, sizeof(program), "%s/access-reader", libexec ? libexec : "libexec");
	snprintf(preload, sizeof(preload), "%s/tests/storage/.libs/faults.so", build ? build : ".");
	if (faults) {
		setenv("FAULTS", faults, 1);
		setenv("LD_PRELOAD", preload, 1);
		setenv("ASAN_OPTIONS", "verify_asan_link_order=0:abort_on_error=1", 1);
	}
	dup2(sock, READER_CONTROL_FD);
	dup2(READER_CONTROL_FD, 50); /* a descriptor too many, which it must close */
	execl(program, "access-reader", "--threads", "4", (char *)NULL);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

void process_spawn(struct process *process, const char *faults)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	process->pid = fork();
	if (process->pid == 0)
		exec_reader(pair[1], faults);
	ck_assert_int_gt(process->pid, 0);
	close(pair[1]);
	process->sock = pair[0];
}

static void send_start(struct process *process)
{
	struct wire_out out;

	wire_out_init(&out, READER_START);
	wire_put_fd(&out, process->doorbell_fd);
	wire_put_fd(&out, process->event_fd);
	process_send(process, &out);
}

void process_start(struct process *process, const char *faults, bool start)
{
	ck_assert_int_eq(doorbell_new(&process->doorbell, &process->doorbell_fd), 0);
	process->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	process_spawn(process, faults);
	if (start)
		send_start(process);
}

void process_again(struct process *process, const char *faults)
{
	process_spawn(process, faults);
	send_start(process);
}

int process_wait(struct process *process)
{
	int status;

	ck_assert_int_eq(waitpid(process->pid, &status, 0), process->pid);
	close(process->sock);
	return status;
}

void process_kill(struct process *process)
{
	int status;

	kill(process->pid, SIGKILL);
	status = process_wait(process);
	ck_assert(WIFSIGNALED(status));
}

void process_stop(struct process *process)
{
	int status;

	shutdown(process->sock, SHUT_RDWR);
	status = process_wait(process);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	doorbell_detach(process->doorbell);
	close(process->doorbell_fd);
	close(process->event_fd);
}

/* ---- messages ---- */

void process_send(struct process *process, struct wire_out *out)
{
	ck_assert_int_eq(wire_send(process->sock, out, 0), 0);
	wire_out_fini(out);
}

static bool receive_within(struct process *process, struct wire_in *ret, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = process->sock, .events = POLLIN};

	for (;;) {
		if (poll(&poll_fd, 1, timeout_ms) == 0)
			return false;
		wire_in_init(ret);
		ck_assert_int_eq(wire_recv(process->sock, ret, 0), 0);
		if (ret->type != READER_PROGRESS && ret->type != READER_FAILED)
			return true;
		wire_in_fini(ret);
	}
}

void process_receive(struct process *process, struct wire_in *ret)
{
	ck_assert(receive_within(process, ret, PATIENCE_MS));
}

static uint64_t get(const struct wire_in *in, uint16_t key)
{
	uint64_t value;

	ck_assert_int_eq(wire_get_u64(in, key, &value), 0);
	return value;
}

void process_failed(struct process *process, const struct work *work, uint32_t task)
{
	struct pollfd poll_fd = {.fd = process->sock, .events = POLLIN};
	struct wire_in in;

	ck_assert_int_eq(poll(&poll_fd, 1, PATIENCE_MS), 1);
	wire_in_init(&in);
	ck_assert_int_eq(wire_recv(process->sock, &in, 0), 0);
	ck_assert_int_eq(in.type, READER_FAILED);
	ck_assert_uint_eq(get(&in, READER_KEY_QUEUE), work->queue.number);
	ck_assert_uint_eq(get(&in, READER_KEY_ROW), work->row);
	ck_assert_uint_eq(get(&in, READER_KEY_TASK), task);
	ck_assert_uint_eq(get(&in, READER_KEY_SAMPLE), task);
	wire_in_fini(&in);
}

bool process_is_silent(struct process *process)
{
	struct wire_in in;

	if (!receive_within(process, &in, 100))
		return true;
	wire_in_fini(&in);
	return false;
}

void process_ask_open(struct process *process, uint64_t id, const char *path, int stored_fd)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_string(&out, READER_KEY_PATH, path);
	if (stored_fd >= 0)
		wire_put_fd(&out, stored_fd);
	process_send(process, &out);
}

void process_ask_open_within(struct process *process, uint64_t id, const char *path, uint64_t most)
{
	struct wire_out out;

	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_string(&out, READER_KEY_PATH, path);
	wire_put_u64(&out, READER_KEY_LIMIT, most);
	process_send(process, &out);
}

int process_opened(struct process *process, uint64_t id)
{
	struct wire_in in;
	uint64_t index;
	int fd;

	process_receive(process, &in);
	ck_assert_int_eq(in.type, READER_OPENED);
	ck_assert_uint_eq(get(&in, READER_KEY_ID), id);
	ck_assert_uint_ne(get(&in, READER_KEY_INODE), 0);
	fd = wire_take_fd(&in, 0);
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_INDEX, &index) == 0, fd >= 0);
	wire_in_fini(&in);
	return fd;
}

int process_refused(struct process *process, uint64_t id, char *ret_text)
{
	struct wire_in in;
	const char *text;
	int code;

	process_receive(process, &in);
	ck_assert_int_eq(in.type, READER_REFUSED);
	ck_assert_uint_eq(get(&in, READER_KEY_ID), id);
	code = (int)(int64_t)get(&in, READER_KEY_CODE);
	ck_assert_int_eq(wire_get_string(&in, READER_KEY_TEXT, &text), 0);
	snprintf(ret_text, 768, "%s", text);
	wire_in_fini(&in);
	return code;
}

/* ---- work ---- */

void work_new(struct work *work, struct tree *tree, struct dataset *dataset, uint32_t number)
{
	const bool is_placed = dataset_is_placed(dataset);
	uint64_t arena_bytes = 0;

	*work = (struct work){.tree = tree, .dataset = dataset};
	work->count = (uint32_t)dataset_count(dataset);
	work->offset = calloc(work->count, sizeof(*work->offset));
	for (uint32_t i = 0; i < work->count; i++) {
		work->offset[i] =
		    arena_bytes + (is_placed ? dataset_at_of(dataset, i) % DATASET_PLACE : 0);
		arena_bytes = base_align_up(work->offset[i] + dataset_size_of(dataset, i) + 1,
					    is_placed ? DATASET_PLACE : 64);
	}
	ck_assert_int_eq(queue_new(number, 1, work->count, arena_bytes, &work->queue,
				   &work->queue_fd, &work->arena_fd),
			 0);
	ck_assert_int_eq(queue_arena_attach(work->arena_fd, &work->queue, false, &work->arena), 0);
	ck_assert_int_eq(queue_row_begin(&work->queue, 1, 1, 1, 0, 1, work->count, &work->row), 0);
}

void work_free(struct work *work)
{
	queue_arena_detach(&work->queue, work->arena);
	queue_detach(&work->queue);
	close(work->queue_fd);
	close(work->arena_fd);
	free(work->offset);
	dataset_unmap(work->dataset);
}

void work_ask_attach(struct process *process, const struct work *work, uint64_t id)
{
	struct wire_out out;

	wire_out_init(&out, READER_ATTACH);
	wire_put_u64(&out, READER_KEY_ID, id);
	wire_put_u64(&out, READER_KEY_QUEUE, work->queue.number);
	wire_put_fd(&out, work->queue_fd);
	wire_put_fd(&out, work->arena_fd);
	process_send(process, &out);
}

static void expect_queue(struct process *process, const struct work *work, uint16_t type)
{
	struct wire_in in;

	process_receive(process, &in);
	ck_assert_int_eq(in.type, type);
	ck_assert_uint_eq(get(&in, READER_KEY_QUEUE), work->queue.number);
	wire_in_fini(&in);
}

void work_attach(struct process *process, const struct work *work, uint64_t id)
{
	work_ask_attach(process, work, id);
	expect_queue(process, work, READER_ATTACHED);
}

void work_detach(struct process *process, const struct work *work)
{
	struct wire_out out;

	wire_out_init(&out, READER_DETACH);
	wire_put_u64(&out, READER_KEY_QUEUE, work->queue.number);
	process_send(process, &out);
	expect_queue(process, work, READER_DETACHED);
}

void work_queue(struct process *process, struct work *work)
{
	for (uint32_t i = 0; i < work->count; i++)
		queue_task_put(&work->queue, work->row, i, i, i, i,
			       dataset_label_of(work->dataset, i), work->offset[i],
			       dataset_size_of(work->dataset, i), 0);
	doorbell_ring_readers(process->doorbell);
}

uint32_t work_in_state(const struct work *work, enum layout_task_state state)
{
	uint32_t n = 0, owner;

	for (uint32_t i = 0; i < work->count; i++)
		n += queue_task_state(&work->queue, work->row, i, &owner) == state;
	return n;
}

void work_wait(struct process *process, struct work *work)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	while (work_in_state(work, LAYOUT_TASK_READY) + work_in_state(work, LAYOUT_TASK_FAILED) <
	       work->count) {
		struct pollfd poll_fd = {.fd = process->event_fd, .events = POLLIN};
		uint64_t rings;

		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		poll(&poll_fd, 1, 5);
		if (read(process->event_fd, &rings, sizeof(rings)) < 0)
			ck_assert_int_eq(errno, EAGAIN);
	}
}

void work_check(const struct work *work)
{
	for (uint32_t i = 0; i < work->count; i++) {
		const char *name = dataset_name_of(work->dataset, i);
		const uint8_t *data = work->arena + work->offset[i];
		const uint32_t bytes = dataset_size_of(work->dataset, i);
		uint32_t k = 0;
		char text[48];
		enum layout_fail stage;
		uint32_t owner, us;
		int code;

		queue_task_outcome(&work->queue, work->row, i, &stage, &code, text, &us);
		ck_assert_msg(queue_task_state(&work->queue, work->row, i, &owner) ==
				  LAYOUT_TASK_READY,
			      "%s: stage %d code %d %s", name, stage, code, text);
		while (k < bytes && data[k] == tree_byte(name, k))
			k++;
		ck_assert_msg(k == bytes, "%s: byte %u", name, k);
	}
}
