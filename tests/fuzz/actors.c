/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/fuzz/actors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/proc/child.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/serve/variant.h"
#include "shmring/queue.h"
#include "storage/reader.h"
#include "storage/store.h"
#include "tests/daemon/role.h"
#include "worker/parent.h"

#define MOST_QUEUES 16
#define OWNER 7 /* of the one worker, in the words of its tasks */

#define RESERVES (-1) /* "pids" of processes that there are not */
#define GATHERS (-2)

int __wrap_child_start(const char *path, char *const argv[], enum cpu_priority priority,
		       struct child *ret);
int __wrap_reserve_begin(struct variant *variant, uint32_t to);

static struct {
	struct grammar_world *world;
	int index_fd;
	bool has_died;
	struct actor {
		int sock; /* our end */
		pid_t pid;
	} reader, parent;
	struct layout_doorbell *doorbell;
	int event_fd;
	struct actors_queue {
		bool is_used;
		uint64_t number;
		struct queue queue;
	} queues[MOST_QUEUES];
} actors = {.index_fd = -1, .event_fd = -1, .reader = {.sock = -1}, .parent = {.sock = -1}};

static void demand(bool truth)
{
	if (!truth)
		abort();
}

/* ---- starting ---- */

void actors_init(struct grammar_world *world)
{
	uint32_t sizes[256];

	demand(world->samples <= BASE_ARRAY_LEN(sizes));
	for (unsigned i = 0; i < world->samples; i++)
		sizes[i] = 100;
	actors.world = world;
	role_index(sizes, (unsigned)world->samples, &actors.index_fd, world->version);
}

/*
 * In a child: ends when the other end hangs up, or with us. It has our memory, since to copy what a sanitizer maps takes longer
 * than the rest of a session; so it calls nothing that has variables, or that a sanitizer watches.
 */
__attribute__((no_sanitize("address", "undefined"))) static int idle(void *arg)
{
	struct pollfd hangup = {.fd = (int)(intptr_t)arg};

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 0, hangup.fd - 1, 0);
	syscall(SYS_close_range, hangup.fd + 1, ~0U, 0);
	while (syscall(SYS_ppoll, &hangup, 1, NULL, NULL, 0) < 0)
		continue;
	return 0;
}

/* A stack is free again when the kernel has put 0 where the child's number is. */
static pid_t start_idle(int sock)
{
	static struct {
		_Atomic pid_t pid;
		uint8_t stack[8192] __attribute__((aligned(16)));
	} rooms[64];
	unsigned i = 0;

	while (i < BASE_ARRAY_LEN(rooms) && rooms[i].pid)
		i++;
	demand(i < BASE_ARRAY_LEN(rooms));
	return clone(idle, rooms[i].stack + sizeof(rooms[i].stack),
		     CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
		     (void *)(intptr_t)sock, &rooms[i].pid, NULL, &rooms[i].pid);
}

/* The real one, but for the exec. */
static int start_porter(struct child *ret)
{
	int pair[2];
	pid_t pid;

	demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	demand(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
	pid = fork();
	demand(pid >= 0);
	if (pid == 0) {
		if (dup2(pair[1], 3) != 3)
			_exit(1);
		close_range(4, ~0U, 0);
		_exit(porter_main());
	}
	close(pair[1]);
	*ret = (struct child){.pid = pid, .sock = pair[0]};
	return 0;
}

int __wrap_child_start(const char *path, char *const argv[], enum cpu_priority priority,
		       struct child *ret)
{
	struct actor *actor = strstr(path, "reader") ? &actors.reader : &actors.parent;
	int pair[2];

	(void)priority;
	if (strcmp(argv[0], PORTER_NAME) == 0)
		return start_porter(ret);
	demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	actors.has_died |= actor->pid > 0;
	base_close(&actor->sock);
	actor->sock = pair[1];
	actor->pid = start_idle(pair[1]);
	demand(actor->pid > 0);
	*ret = (struct child){.pid = actor->pid, .sock = pair[0]};
	return 0;
}

/* ---- reserving ---- */

int __wrap_reserve_begin(struct variant *variant, uint32_t to)
{
	if (role_reserve(variant, to, RESERVES))
		variant->reserve.gatherer = GATHERS;
	return 0;
}

static void reserve_all(struct node *node)
{
	int status;

	while ((status = role_reserved(node, RESERVES)) >= 0)
		stream_child_ended(node, RESERVES, status);
}

bool actors_died(void)
{
	return actors.has_died;
}

/* ---- queues ---- */

static void add_queue(uint64_t number, int fd)
{
	for (unsigned i = 0; i < MOST_QUEUES; i++) {
		struct actors_queue *queue = &actors.queues[i];

		if (queue->is_used)
			continue;
		queue->is_used = queue_attach(fd, &queue->queue) == 0;
		queue->number = number;
		return;
	}
}

static void drop_queue(struct actors_queue *queue)
{
	if (queue->is_used)
		queue_detach(&queue->queue);
	queue->is_used = false;
}

static void drop_queue_of(uint64_t number)
{
	for (unsigned i = 0; i < MOST_QUEUES; i++)
		if (actors.queues[i].number == number)
			drop_queue(&actors.queues[i]);
}

void actors_forget(void)
{
	for (unsigned i = 0; i < MOST_QUEUES; i++)
		drop_queue(&actors.queues[i]);
}

void actors_end(void)
{
	actors_forget();
	if (actors.doorbell)
		doorbell_detach(actors.doorbell);
	actors.doorbell = NULL;
	base_close(&actors.event_fd);
	base_close(&actors.reader.sock);
	base_close(&actors.parent.sock);
	actors.reader.pid = actors.parent.pid = 0;
	actors.has_died = false;
}

/* ---- the reader ---- */

static void take_start(struct wire_in *in)
{
	if (actors.doorbell)
		doorbell_detach(actors.doorbell);
	actors.doorbell = NULL;
	if (in->n_fds > 0)
		doorbell_attach(in->fds[0], &actors.doorbell);
	base_close(&actors.event_fd);
	actors.event_fd = wire_take_fd(in, 1);
}

static void say_state(void)
{
	struct reader_state state = {
	    .mode = STORE_ON, .limit = 1 << 24, .used = 4096, .file = 8192};
	struct wire_out out;

	wire_out_init(&out, READER_STATE);
	wire_put_bytes(&out, READER_KEY_STATE, &state, sizeof(state));
	wire_put_string(&out, READER_KEY_TEXT, "");
	role_send(actors.reader.sock, &out);
}

static void answer_open(const struct wire_in *in)
{
	const char *path = "";
	struct wire_out out;

	wire_get_string(in, READER_KEY_PATH, &path);
	if (strcmp(path, actors.world->dataset) != 0) {
		role_answer(&out, READER_REFUSED, in, READER_KEY_ID);
		wire_put_u64(&out, READER_KEY_CODE, 1);
		wire_put_string(&out, READER_KEY_TEXT, "there is no such folder");
	} else {
		role_opened(&out, in, false, actors.index_fd);
	}
	role_send(actors.reader.sock, &out);
}

/* A table in which some samples are kept. */
static void answer_form(const struct wire_in *in)
{
	_cleanup_close_ int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct wire_out out;
	uint32_t sizes[64];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(sizes); i++)
		sizes[i] = i % 3 ? 0 : 50;
	demand(fd >= 0 && write(fd, sizes, sizeof(sizes)) == (ssize_t)sizeof(sizes) &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
	role_answer(&out, READER_FORMED, in, READER_KEY_QUEUE);
	wire_put_u64(&out, READER_KEY_FORM, role_number(in, READER_KEY_FORM));
	role_put_fd(&out, READER_KEY_TABLE, fd);
	role_send(actors.reader.sock, &out);
}

static void answer_chore(const struct wire_in *in)
{
	struct wire_out out;

	role_answer(&out, READER_CHORE_DONE, in, READER_KEY_ID);
	wire_put_u64(&out, READER_KEY_CODE, 0);
	wire_put_string(&out, READER_KEY_TEXT, "done");
	if (role_number(in, READER_KEY_VERB) == READER_VERB_LIST)
		role_put_fd(&out, READER_KEY_LIST, actors.index_fd);
	role_send(actors.reader.sock, &out);
}

static void on_reader(struct wire_in *in)
{
	struct wire_out out;

	switch (in->type) {
	case READER_START:
		take_start(in);
		break;
	case READER_OPEN:
		answer_open(in);
		break;
	case READER_ATTACH:
		add_queue(role_number(in, READER_KEY_QUEUE), in->n_fds ? in->fds[0] : -1);
		role_answer(&out, READER_ATTACHED, in, READER_KEY_QUEUE);
		role_send(actors.reader.sock, &out);
		break;
	case READER_DETACH:
		drop_queue_of(role_number(in, READER_KEY_QUEUE));
		role_answer(&out, READER_DETACHED, in, READER_KEY_QUEUE);
		role_send(actors.reader.sock, &out);
		break;
	case READER_STORE:
		say_state();
		break;
	case READER_FORM:
		answer_form(in);
		break;
	case READER_CHORE:
		answer_chore(in);
		break;
	case READER_REVISIT: /* every other one has changed */
		role_answer(&out, READER_REVISITED, in, READER_KEY_QUEUE);
		wire_put_u64(&out, READER_KEY_ID, role_number(in, READER_KEY_ID));
		wire_put_u64(&out, READER_KEY_CODE, role_number(in, READER_KEY_ID) % 2);
		role_send(actors.reader.sock, &out);
		break;
	default:
		break;
	}
}

/* ---- the worker parent ---- */

static void say_worker(uint16_t type, uint16_t key, uint64_t number)
{
	struct wire_out out;

	role_worker(&out, type, OWNER, 0);
	wire_put_u64(&out, key, number);
	if (type == PARENT_EXITED)
		wire_put_u64(&out, PARENT_KEY_CPU_NS, 0);
	role_send(actors.parent.sock, &out);
}

static void answer_queue(uint16_t type, const struct wire_in *in)
{
	struct wire_out out;

	role_queue(&out, type, in);
	role_send(actors.parent.sock, &out);
}

static void on_parent(struct wire_in *in)
{
	switch (in->type) {
	case PARENT_ADD:
		answer_queue(PARENT_ADDED, in);
		break;
	case PARENT_GO:
		say_worker(PARENT_STARTED, PARENT_KEY_PID, (uint64_t)actors.parent.pid);
		break;
	case PARENT_REMOVE:
		answer_queue(PARENT_REMOVED, in);
		break;
	case PARENT_KILL:
		say_worker(PARENT_EXITED, PARENT_KEY_STATUS, SIGKILL);
		break;
	default:
		break;
	}
}

static void serve(struct actor *actor, void (*fn)(struct wire_in *in))
{
	if (role_hear(&actor->sock, fn) == WIRE_E_CLOSED) {
		actors.has_died = true;
		base_close(&actor->sock);
	}
}

void actors_serve(struct node *node)
{
	reserve_all(node);
	serve(&actors.reader, on_reader);
	serve(&actors.parent, on_parent);
}

/* ---- work ---- */

static void read_task(struct queue *queue, uint8_t mishap)
{
	struct queue_task task;
	bool fails = mishap & 1;

	if (queue_claim_read(queue, 1, &task) || mishap & 2) /* it stays READING */
		return;
	if (task.want && mishap & 4)
		queue_read_came(queue, &task, task.want, mishap & 3, 50, mishap & 8 ? 1 : 0);
	queue_read_done(queue, &task, fails ? LAYOUT_FAIL_READ : LAYOUT_FAIL_NONE, fails ? -EIO : 0,
			fails ? "a read that fails" : NULL, 1000, 1000);
}

static void run_task(struct queue *queue, uint8_t mishap)
{
	const struct queue_made made = {
	    .work_us = 5, .made = mishap & 3, .make_us = 1, .bytes = 40};
	enum layout_fail fail = mishap & 16 ? LAYOUT_FAIL_DECODE : LAYOUT_FAIL_NONE;
	struct queue_task task;

	if (queue_claim_run(queue, OWNER, UINT32_MAX, &task) || mishap & 32)
		return;
	if (mishap & 64)
		fail = LAYOUT_FAIL_FILTERED;
	queue_run_made(queue, &task, &made);
	queue_run_done(queue, &task, fail, 0, "what workers say", 10);
}

void actors_work(unsigned tasks, uint8_t mishap)
{
	const uint64_t one = 1;

	for (unsigned i = 0; i < MOST_QUEUES; i++)
		for (unsigned t = 0; actors.queues[i].is_used && t < tasks; t++) {
			/* the last one alone */
			const uint8_t its = t + 1 == tasks ? mishap : 0;

			read_task(&actors.queues[i].queue, its);
			run_task(&actors.queues[i].queue, its);
		}
	if (actors.event_fd >= 0 && write(actors.event_fd, &one, sizeof(one)) < 0)
		return; /* it is full: accessd looks anyway */
}

/* ---- captured ---- */

void actors_say(struct grammar *grammar)
{
	uint8_t choice = grammar_byte(grammar);
	const struct actor *actor = choice & 1 ? &actors.parent : &actors.reader;
	struct wire_out out;
	int fd = -1;

	grammar_any(grammar, 16 + (choice >> 1) % 13, &out);
	if (choice & 128)
		fd = grammar_fd(grammar, actors.world);
	if (fd >= 0)
		wire_put_fd(&out, fd);
	role_send(actor->sock, &out);
	base_close(&fd);
}

static void scribble_in(struct grammar *grammar, void *memory, uint64_t size)
{
	uint64_t at = (grammar_byte(grammar) | (uint64_t)grammar_byte(grammar) << 8) * 4;
	uint64_t number = grammar_number(grammar);

	if (memory && at + sizeof(number) <= size)
		memcpy((uint8_t *)memory + at, &number, sizeof(number));
}

void actors_scribble(struct grammar *grammar)
{
	struct actors_queue *queue = &actors.queues[grammar_below(grammar, MOST_QUEUES)];

	if (queue->is_used)
		scribble_in(grammar, queue->queue.head, queue->queue.bytes);
	else if (actors.doorbell)
		scribble_in(grammar, actors.doorbell, sizeof(*actors.doorbell));
}

void actors_die(bool is_reader)
{
	const struct actor *actor = is_reader ? &actors.reader : &actors.parent;

	actors.has_died = true;
	if (actor->sock >= 0)
		shutdown(actor->sock, SHUT_RDWR);
}
