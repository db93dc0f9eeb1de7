/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in for access-reader or access-worker as one that a hostile file made its own, and says to accessd what
 * no honest one says: liar LIE. liar_test.c starts it. It ends when accessd kills it, or is gone.
 */

#include "base/base.h"
#include "base/wire.h"
#include "storage/reader.h"
#include "worker/parent.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void say(struct wire_out *out)
{
	if (wire_send(READER_CONTROL_FD, out, 0))
		_exit(0);
	wire_out_fini(out);
}

static void say_started(uint64_t owner, uint64_t index, uint64_t pid)
{
	struct wire_out out;

	wire_out_init(&out, PARENT_STARTED);
	wire_put_u64(&out, PARENT_KEY_WORKER, owner);
	wire_put_u64(&out, PARENT_KEY_INDEX, index);
	wire_put_u64(&out, PARENT_KEY_PID, pid);
	say(&out);
}

static void say_exited(uint64_t owner, uint64_t index, uint64_t status, uint64_t cpu_ns)
{
	struct wire_out out;

	wire_out_init(&out, PARENT_EXITED);
	wire_put_u64(&out, PARENT_KEY_WORKER, owner);
	wire_put_u64(&out, PARENT_KEY_INDEX, index);
	wire_put_u64(&out, PARENT_KEY_STATUS, status);
	wire_put_u64(&out, PARENT_KEY_CPU_NS, cpu_ns);
	say(&out);
}

static void say_queue(uint16_t type, uint16_t key, uint64_t queue)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_u64(&out, key, queue);
	say(&out);
}

static uint64_t make_child(void)
{
	pid_t liar = getpid(), pid = fork();

	if (pid > 0)
		return (uint64_t)pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != liar)
		_exit(0); /* accessd killed it before that */
	for (;;)
		pause();
}

static void lie_honest(void)
{
	say_started(1, 0, make_child());
}

static void lie_old(void)
{
	lie_honest();
	say_exited(1, 0, 0, UINT64_MAX);
	say_started(2, 0, make_child());
}

static void lie_zero(void)
{
	say_started(1, 0, 0);
}

static void lie_large(void)
{
	say_started(1, 0, (UINT64_C(1) << 32) + make_child());
}

static void lie_init(void)
{
	say_started(1, 0, 1);
}

static void lie_daemon(void)
{
	say_started(1, 0, (uint64_t)getppid());
}

static void lie_twice(void)
{
	uint64_t child = make_child();

	say_started(1, 0, child);
	say_started(2, 1, child);
}

static void lie_place(void)
{
	say_started(1, 0, make_child());
	say_started(2, 0, make_child());
}

static void lie_stranger(void)
{
	say_exited(7, 0, SIGKILL, 0);
}

static void lie_status(void)
{
	lie_honest();
	say_exited(1, 0, UINT64_C(1) << 40, 0);
}

static void lie_queue(void)
{
	say_queue(PARENT_ADDED, PARENT_KEY_QUEUE, UINT64_C(1) << 32 | 1);
}

static void lie_reader_queue(void)
{
	say_queue(READER_ATTACHED, READER_KEY_QUEUE, UINT64_C(1) << 32 | 1);
}

static void lie_type(void)
{
	say_queue(4711, 1, 1);
}

/* Without its place, which is not the first one therefore. */
static void lie_short(void)
{
	struct wire_out out;

	wire_out_init(&out, PARENT_STARTED);
	wire_put_u64(&out, PARENT_KEY_WORKER, 1);
	wire_put_u64(&out, PARENT_KEY_PID, make_child());
	say(&out);
}

static void lie_reader_kind(void)
{
	struct wire_out out;

	wire_out_init(&out, READER_ATTACHED);
	wire_put_string(&out, READER_KEY_QUEUE, "the first one");
	say(&out);
}

/* A descriptor that no item brings. */
static void lie_reader_gift(void)
{
	struct wire_out out;

	wire_out_init(&out, READER_ATTACHED);
	wire_put_u64(&out, READER_KEY_QUEUE, 1);
	wire_put_fd(&out, READER_CONTROL_FD);
	say(&out);
}

/* As many as there can be on their way, from several. */
static void lie_flood(void)
{
	for (unsigned i = 0; i < 3 && fork() > 0; i++)
		continue;
	for (;;)
		say_queue(READER_DETACHED, READER_KEY_QUEUE, 1);
}

static const struct {
	const char *name;
	void (*tell)(void);
} lies[] = {
    {"honest", lie_honest},
    {"old", lie_old},
    {"zero", lie_zero},
    {"large", lie_large},
    {"init", lie_init},
    {"daemon", lie_daemon},
    {"twice", lie_twice},
    {"place", lie_place},
    {"stranger", lie_stranger},
    {"status", lie_status},
    {"queue", lie_queue},
    {"reader-queue", lie_reader_queue},
    {"type", lie_type},
    {"short", lie_short},
    {"reader-kind", lie_reader_kind},
    {"reader-gift", lie_reader_gift},
    {"reader-type", lie_type},
    {"flood", lie_flood},
};

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; argc > 1 && i < BASE_ARRAY_LEN(lies); i++)
		if (strcmp(argv[1], lies[i].name) == 0)
			lies[i].tell();
	for (;;)
		pause();
}
