/* SPDX-License-Identifier: Apache-2.0 */

/* A whole accessd, spoken to over raw sockets: what it does when jobs fail and its own processes
 * die, or cannot be started, at awkward moments. */

#include "daemon/proc/child.h"
#include "plan/ranks/spread.h"
#include "shmring/queue.h"
#include "tests/daemon/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct raw_open usual(const char *dataset)
{
	return (struct raw_open){.dataset = dataset, .pipeline = "imagenet-eval-u8", .batch = 8};
}

static void damage(const char *dataset, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++) {
		char path[512];
		FILE *file;

		snprintf(path, sizeof(path), "%s/class_0000/%06u.jpg", dataset, i);
		file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		fputs("no picture", file);
		fclose(file);
	}
}

/* ---- jobs ---- */

/* A job that spent its budget does not look at its messages before it needs one: what it finds in
 * its inbox until then must be withdrawn, for its slots go to others. */
START_TEST(a_failed_job_can_take_nothing)
{
	struct raw_open open = usual(rig_pictures("bad", 64, 1, 32));
	struct wire_in opened, failed;
	struct raw_rank rank;
	struct grant grant;
	int sock;

	damage(open.dataset, 0, 31);
	open.chunk = 8;
	open.policy = PROTO_POLICY_SKIP;
	open.has_budget = true;
	rig_start("workers=1", "linger_s=0", NULL);
	sock = raw_open(&open, &opened);
	raw_attach(&opened, &rank);
	ck_assert_int_eq(raw_hear(sock, PROTO_FAILED, &failed), 0);
	ck_assert_uint_gt(atomic_load(&rank.inbox->d_posted), 0);
	ck_assert_int_eq(grant_take(&rank.rank, &grant), GRANT_E_NONE);
	wire_in_fini(&failed);
	wire_in_fini(&opened);
	raw_detach(&rank);
	close(sock);
	rig_end();
}
END_TEST

/* Streams that nobody uses stand in nobody's way: not in a new stream's, not in a new job's. */
START_TEST(idle_streams_make_room)
{
	struct raw_open first = usual(rig_pictures("first", 64, 1, 32));
	struct raw_open idle = usual(rig_pictures("idle", 64, 1, 32));
	struct wire_in opened;
	int sock[3];

	first.chunk = idle.chunk = 8;
	rig_start("workers=1", "linger_s=1000", "memory=42M", NULL);
	sock[0] = raw_open(&first, &opened);
	wire_in_fini(&opened);
	close(raw_open(&idle, &opened));
	wire_in_fini(&opened);
	ck_assert(rig_wait_status("jobs", 1, 1));
	ck_assert_int_eq((int)rig_status("streams"), 2);
	for (unsigned i = 1; i < 3; i++) {
		sock[i] = raw_open(&first, &opened);
		wire_in_fini(&opened);
	}
	ck_assert(rig_wait_status("streams", 1, 1));
	for (unsigned i = 0; i < 3; i++)
		close(sock[i]);
	rig_end();
}
END_TEST

/* A rank that goes through its chunks in windows of `batch` samples and sleeps when there is none. */
struct sleeper {
	struct raw_rank rank;
	struct slot_table table;
	struct grant grant; /* number 0: no chunk */
	uint32_t at, batch, chunks;
	unsigned wakes, in_vain;
	int sock;
};

/* Goes as far as it can. false: not at all. */
static bool sleeper_goes_on(struct sleeper *sleeper)
{
	bool moved = false;

	for (;;) {
		uint32_t mark;

		if (!sleeper->grant.number) {
			if (grant_take(&sleeper->rank.rank, &sleeper->grant))
				return moved;
			sleeper->at = 0;
		}
		mark = slot_table_read_watermark(&sleeper->table, sleeper->grant.slot);
		if (mark == sleeper->grant.count) {
			grant_release(&sleeper->rank.rank, sleeper->grant.number);
			sleeper->grant.number = 0;
			sleeper->chunks++;
			if (grant_wants_kick(&sleeper->rank.rank))
				raw_say(sleeper->sock, PROTO_KICK);
		} else if (mark >= sleeper->at + sleeper->batch) {
			sleeper->at += sleeper->batch;
		} else {
			return moved;
		}
		moved = true;
	}
}

static void sleeper_turn(struct sleeper *sleeper)
{
	struct wire_in wake;

	grant_arm(&sleeper->rank.rank);
	if (!sleeper_goes_on(sleeper)) {
		if (grant_wants_sleep(&sleeper->rank.rank))
			raw_say(sleeper->sock, PROTO_KICK);
		ck_assert_int_eq(raw_hear(sleeper->sock, PROTO_WAKE, &wake), 0);
		wire_in_fini(&wake);
		sleeper->wakes++;
		sleeper->in_vain += !sleeper_goes_on(sleeper);
	}
	grant_disarm(&sleeper->rank.rank);
}

/* Chunks that the batch does not divide, batches larger than chunks, holes: a rank that can go on is
 * rung, and seldom when it cannot. */
static void sleep_through(uint64_t batch, uint64_t chunk, unsigned bad)
{
	struct raw_open open = usual(rig_pictures("sleep", 200, 1, 32));
	struct sleeper sleeper = {.batch = (uint32_t)batch};
	struct wire_in opened;

	if (bad)
		damage(open.dataset, 0, bad - 1);
	open.batch = batch;
	open.chunk = chunk;
	open.policy = PROTO_POLICY_SKIP;
	open.has_budget = true;
	open.budget = 1000;
	rig_start("workers=2", "linger_s=0", NULL);
	sleeper.sock = raw_open(&open, &opened);
	raw_attach(&opened, &sleeper.rank);
	ck_assert_int_eq(slot_table_attach(opened.fds[1], &sleeper.table), 0);
	while (sleeper.chunks < 60)
		sleeper_turn(&sleeper);
	fprintf(stderr, "batch %u chunk %u bad %u: %u wakes, %u in vain\n", (unsigned)batch,
		(unsigned)chunk, bad, sleeper.wakes, sleeper.in_vain);
	ck_assert_uint_le(sleeper.in_vain, sleeper.chunks);
	raw_detach(&sleeper.rank);
	slot_table_detach(&sleeper.table);
	wire_in_fini(&opened);
	close(sleeper.sock);
	rig_end();
}

START_TEST(a_rank_that_can_go_on_is_rung)
{
	sleep_through(8, 40, 0);
	sleep_through(12, 40, 0);
	sleep_through(64, 24, 0);
	sleep_through(12, 40, 20);
}
END_TEST

static void sleeper_open(struct sleeper *sleeper, const struct raw_open *open,
			 struct wire_in *opened)
{
	sleeper->sock = raw_open(open, opened);
	raw_attach(opened, &sleeper->rank);
	ck_assert_int_eq(slot_table_attach(opened->fds[1], &sleeper->table), 0);
}

static void sleeper_close(struct sleeper *sleeper, struct wire_in *opened)
{
	raw_detach(&sleeper->rank);
	slot_table_detach(&sleeper->table);
	wire_in_fini(opened);
	close(sleeper->sock);
}

/* Jobs that come to a chunk in production need not say that they sleep: they are woken when it gets on. The worker stands
 * meanwhile, so nothing can come. */
START_TEST(nobody_says_that_it_sleeps_for_production)
{
	struct raw_open open = usual(rig_pictures("two", 64, 1, 32));
	struct sleeper one = {.batch = 8}, other = {.batch = 8}, *const all[] = {&one, &other};
	struct wire_in opened[2], wake;
	int worker;

	open.pipeline = "imagenet-train-u8";
	open.chunk = 16;
	rig_start("workers=1", "linger_s=0", "sample_timeout_ms=100000", NULL);
	sleeper_open(&one, &open, &opened[0]);
	ck_assert(rig_wait_status("node.workers_alive", 1, 1));
	worker = rig_pid("workers.0.pid");
	kill(worker, SIGSTOP);
	sleeper_open(&other, &open, &opened[1]);
	do {
		grant_arm(&one.rank.rank);
		grant_arm(&other.rank.rank);
		rig_sleep_ms(10);
	} while (sleeper_goes_on(&one) || sleeper_goes_on(&other) ||
		 grant_wants_sleep(&one.rank.rank) || grant_wants_sleep(&other.rank.rank));
	grant_arm(&one.rank.rank);
	grant_arm(&other.rank.rank); /* and they say nothing */
	kill(worker, SIGCONT);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(all); i++) {
		while (!sleeper_goes_on(all[i])) {
			ck_assert_int_eq(raw_hear(all[i]->sock, PROTO_WAKE, &wake), 0);
			wire_in_fini(&wake);
			grant_arm(&all[i]->rank.rank);
		}
	}
	sleeper_close(&one, &opened[0]);
	sleeper_close(&other, &opened[1]);
	rig_end();
}
END_TEST

/* ---- nothing to do ---- */

static long read_stat(int pid, const char *name)
{
	char path[64], line[256];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			number = strtol(line + strlen(name), NULL, 10);
	fclose(file);
	return number;
}

/* Without jobs accessd sleeps; a process that wakes switches of its own will. */
START_TEST(nothing_to_do_no_wakes)
{
	struct raw_open open = usual(rig_pictures("quiet", 64, 1, 32));
	struct wire_in opened;
	long wakes = LONG_MAX;

	rig_start("workers=1", "linger_s=0", NULL);
	close(raw_open(&open, &opened));
	wire_in_fini(&opened);
	ck_assert(rig_wait_status("streams", 0, 0));
	for (unsigned i = 0; i < 60 && wakes > 1; i++) { /* until the last child has ended */
		wakes = -read_stat(rig_host.pid, "voluntary_ctxt_switches:");
		rig_sleep_ms(1000);
		wakes += read_stat(rig_host.pid, "voluntary_ctxt_switches:");
	}
	ck_assert_int_le(wakes, 1);
	rig_end();
}
END_TEST

/* Stops all three for longer than the limit, and lets them go on in the worst order: accessd looks at
 * the clock before the others run. Returns how long accessd ran without them. */
static uint64_t pause_all(int accessd, const int others[2])
{
	uint64_t began_ns;

	kill(accessd, SIGSTOP);
	for (unsigned i = 0; i < 2; i++)
		kill(others[i], SIGSTOP);
	rig_sleep_ms(2500);
	began_ns = base_now_ns();
	kill(accessd, SIGCONT);
	rig_sleep_ms(100);
	for (unsigned i = 0; i < 2; i++)
		kill(others[i], SIGCONT);
	began_ns = base_now_ns() - began_ns;
	rig_sleep_ms(50);
	return began_ns;
}

/* false: we were too slow ourselves, and a worker that accessd saw stopped for so long is replaced
 * with reason. */
static bool pause_node(const struct raw_open *open)
{
	uint64_t without_ns = 0;
	struct wire_in opened;
	int sock, others[2];

	rig_start("workers=1", "linger_s=0", "sample_timeout_ms=1000", NULL);
	sock = raw_open(open, &opened);
	ck_assert(rig_wait_status("node.workers_alive", 1, 1));
	others[0] = rig_pid("workers.0.pid");
	others[1] = rig_pid("node.parent_pid");
	for (unsigned round = 0; round < 2; round++)
		without_ns = BASE_MAX(without_ns, pause_all(rig_host.pid, others));
	ck_assert(rig_wait_status("node.samples_preprocessed", 16, 1e9));
	if (without_ns < UINT64_C(500000000)) {
		ck_assert_int_eq((int)rig_status("node.worker_restarts"), 0);
		ck_assert_int_eq((int)rig_status("node.bad_samples"), 0);
	}
	wire_in_fini(&opened);
	close(sock);
	rig_end();
	return without_ns < UINT64_C(500000000);
}

/* A machine that was paused has hung workers by the clock, but not in truth. */
START_TEST(a_pause_is_nobodys_fault)
{
	struct raw_open open = usual(rig_pictures("large", 30, 1, 3000));

	open.policy = PROTO_POLICY_SKIP;
	open.has_budget = true;
	open.budget = 1000;
	for (unsigned tries = 0; tries < 10 && !pause_node(&open); tries++)
		continue;
}
END_TEST

/* ---- workers that are late ---- */

static pid_t spin_on(int cpu)
{
	cpu_set_t set;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;;)
		;
}

static int first_cpu(void)
{
	cpu_set_t set;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

/* A worker that shares its CPU with many, and is polite, takes seconds over a picture that it needs
 * milliseconds for. No picture is called bad for that. */
START_TEST(a_worker_may_lack_cpu)
{
	struct raw_open open = usual(rig_pictures("crowded", 8, 1, 1000));
	pid_t spinner[12];
	struct wire_in opened;
	int sock, worker, cpu = first_cpu();
	cpu_set_t set;

	open.policy = PROTO_POLICY_SKIP;
	open.has_budget = true;
	open.budget = 1000;
	rig_start("workers=1", "linger_s=0", "sample_timeout_ms=250", "nice=10", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(spinner); i++)
		spinner[i] = spin_on(cpu);
	sock = raw_open(&open, &opened);
	ck_assert(rig_wait_status("workers.0.pid", 2, INT_MAX));
	worker = rig_pid("workers.0.pid");
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(worker, sizeof(set), &set), 0);
	rig_sleep_ms(5000);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(spinner); i++) {
		kill(spinner[i], SIGKILL);
		waitpid(spinner[i], NULL, 0);
	}
	ck_assert(rig_wait_status("node.samples_preprocessed", 8, 1e9));
	ck_assert_int_eq((int)rig_status("node.worker_restarts"), 0);
	ck_assert_int_eq((int)rig_status("node.bad_samples"), 0);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

/* Busy or idle: while there is work, a worker that was stopped is replaced. No sample is to blame. */
START_TEST(a_stopped_worker_is_replaced)
{
	struct raw_open open = usual(rig_pictures("stopped", 64, 1, 32));
	struct wire_in opened, again;
	int first, second;

	rig_start("workers=1", "linger_s=0", "sample_timeout_ms=300", NULL);
	first = raw_open(&open, &opened);
	ck_assert(rig_wait_status("streams.0.producing", 0, 0)); /* all that fits is there */
	ck_assert(rig_wait_status("workers.0.pid", 2, INT_MAX));
	rig_kill("workers.0.pid", SIGSTOP);
	close(first);
	open.chunk = 8;
	open.dataset = rig_pictures("others", 64, 1, 32);
	second = raw_open(&open, &again);
	ck_assert(rig_wait_status("node.worker_restarts", 1, 1e9));
	ck_assert(rig_wait_status("jobs.0.untaken", 1, 1e9));
	ck_assert_int_eq((int)rig_status("node.bad_samples"), 0);
	wire_in_fini(&opened);
	wire_in_fini(&again);
	close(second);
	rig_end();
}
END_TEST

/* accessd's own kill of one that was stopped is none from outside: a sample is not tried ten times for it, as long each time as
 * the limit. */
START_TEST(who_stops_each_worker_is_not_waited_for)
{
	struct raw_open open = usual(rig_pictures("stopped-again", 1, 1, 2000));
	struct wire_in opened;
	unsigned n = 0;
	int sock;

	rig_start("workers=1", "linger_s=0", "sample_timeout_ms=300", NULL);
	sock = raw_open(&open, &opened);
	while (n < 11 && !rig_status("node.bad_samples")) {
		const int pid = (int)rig_status("workers.0.pid");

		if (rig_status("workers.0.busy") != 1 || pid <= 0 || kill(pid, SIGSTOP))
			continue;
		n++;
		while (rig_status("workers.0.pid") == pid)
			rig_sleep_ms(10);
	}
	ck_assert_uint_lt(n, 11);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

/* ---- crowds ---- */

/* Who was refused, or is silent, holds no place for ever. */
START_TEST(a_refused_client_is_hung_up_on)
{
	struct raw_open open = usual("/nonexistent/folder");
	struct wire_in in;
	int sock;

	rig_start("workers=1", NULL);
	sock = raw_ask(&open);
	ck_assert_int_eq(raw_hear(sock, PROTO_REFUSED, &in), 0);
	wire_in_fini(&in);
	ck_assert(rig_wait_status("node.clients", 1, 1)); /* who asks for the status */
	close(sock);
	rig_end();
}
END_TEST

START_TEST(a_silent_crowd_makes_room)
{
	struct raw_open open = usual(rig_pictures("crowd", 64, 1, 32));
	struct wire_in in, opened;
	int silent[60], first, second;

	rig_start("workers=1", "max_clients=20", NULL);
	first = raw_open(&open, &opened);
	wire_in_fini(&opened);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(silent); i++) {
		silent[i] = i % 2 ? raw_dial() : raw_greeted(&in);
		if (i % 2 == 0)
			wire_in_fini(&in);
	}
	second = raw_open(&open, &opened);
	wire_in_fini(&opened);
	ck_assert_int_eq((int)rig_status("jobs"), 2);
	ck_assert(rig_wait_status("node.clients", 1, 20));
	for (unsigned i = 0; i < BASE_ARRAY_LEN(silent); i++)
		close(silent[i]);
	close(first);
	close(second);
	rig_end();
}
END_TEST

static char state_of(int pid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state;
}

/* accessd is found asleep again and again: who tries something all the time never is. */
static void must_sleep(void)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;

	for (unsigned asleep = 0; asleep < 20; asleep += state_of(rig_host.pid) == 'S') {
		ck_assert_uint_lt(base_now_ns(), end_ns);
		rig_sleep_ms(20);
	}
}

/* Without descriptors for one more client accessd waits, instead of trying all the time. */
START_TEST(no_descriptors_no_spinning)
{
	struct rlimit before, few;
	int sock[100];

	rig_start("workers=1", "max_clients=100", NULL);
	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){60, before.rlim_max};
	ck_assert_int_eq(prlimit(rig_host.pid, RLIMIT_NOFILE, &few, NULL), 0);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++)
		sock[i] = raw_try_dial();
	/* all but one: a client takes two */
	for (unsigned i = 0; i < 250 && rig_count_fds(rig_host.pid) < few.rlim_cur + 1; i++)
		rig_sleep_ms(20);
	must_sleep();
	ck_assert_int_eq(prlimit(rig_host.pid, RLIMIT_NOFILE, &before, NULL), 0);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++)
		base_close(&sock[i]);
	ck_assert(rig_wait_status("node.clients", 1, 1));
	rig_end();
}
END_TEST

/* The queue of the only stream, as a captured worker has it. false: we may not. */
static bool attach_queue(struct queue *ret)
{
	for (unsigned i = 3; i < 200; i++) {
		char path[64], target[128] = "";
		int fd, r;

		snprintf(path, sizeof(path), "/proc/%d/fd/%u", rig_host.pid, i);
		if (readlink(path, target, sizeof(target) - 1) < 0 ||
		    !strstr(target, "oneaccess-queue"))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC);
		r = fd < 0 ? -errno : queue_attach(fd, ret);
		base_close(&fd);
		return r == 0;
	}
	return false;
}

/* A chunk whose samples nobody reads, and a worker who says that very many have ended. */
START_TEST(a_lie_about_ends_is_no_spinning)
{
	struct raw_open open = usual(rig_pictures("lied", 64, 1, 32));
	struct wire_in opened;
	struct raw_rank rank;
	struct grant grant;
	struct queue queue;
	int sock, reader;

	open.chunk = 8;
	rig_start("workers=1", NULL);
	sock = raw_open(&open, &opened);
	raw_attach(&opened, &rank);
	if (!attach_queue(&queue)) {
		puts("skipped: needs root");
		rig_end();
		return;
	}
	ck_assert(rig_wait_status("streams.0.productions", 1, 1e9));
	ck_assert(rig_wait_status("streams.0.producing", 0, 0));
	reader = rig_pid("node.reader_pid");
	kill(reader, SIGSTOP);
	for (unsigned tries = 0; rig_status("streams.0.producing") < 1; tries++) {
		ck_assert_uint_lt(tries, 600); /* as many chunks as it takes until it wants more */
		if (grant_take(&rank.rank, &grant) == 0)
			grant_release(&rank.rank, grant.number);
		raw_say(sock, PROTO_KICK);
		rig_sleep_ms(100);
	}
	for (uint32_t b = 0; b < queue.n_rows; b++)
		atomic_store(&queue.row[b].s_ended, UINT32_MAX);
	must_sleep();
	kill(reader, SIGCONT);
	queue_detach(&queue);
	wire_in_fini(&opened);
	raw_detach(&rank);
	close(sock);
	rig_end();
}
END_TEST

/* Answers on their way are memory and descriptors: they end before they are many. */
START_TEST(unread_answers_are_few)
{
	struct wire_in in;
	unsigned answers = 0;
	int sock;

	rig_start("workers=1", NULL);
	sock = raw_greeted(&in);
	wire_in_fini(&in);
	for (unsigned i = 0; i < 2000; i++)
		raw_say(sock, PROTO_STATUS);
	ck_assert(rig_wait_status("node.clients", 1, 1));
	while (raw_hear(sock, PROTO_STATUS_REPLY, &in) == 0) {
		wire_in_fini(&in);
		answers++;
	}
	ck_assert_uint_le(answers, 32);
	close(sock);
	rig_end();
}
END_TEST

/* Who says a lot is heard 500 times in 50 ms at most; then his queue is full and he has to wait. */
START_TEST(a_flood_is_not_heard)
{
	struct raw_open open = usual(rig_pictures("flood", 64, 1, 32));
	struct wire_in opened;
	struct wire_out out;
	uint64_t begin_ns, took_ns, sent = 0;
	int sock;

	rig_start("workers=1", NULL);
	sock = raw_open(&open, &opened);
	begin_ns = base_now_ns();
	wire_out_init(&out, PROTO_KICK);
	do {
		if (wire_send(sock, &out, MSG_DONTWAIT))
			rig_sleep_ms(1);
		else
			sent++;
		took_ns = base_now_ns() - begin_ns;
	} while (took_ns < UINT64_C(2000000000));
	wire_out_fini(&out);
	ck_assert_uint_le(sent, (took_ns / 50000000 + 2) * 501 + 1000); /* 1000: in its queue */
	ck_assert_int_eq((int)rig_status("jobs"), 1);                   /* and it is still there */
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

/* One question and its answer at a time on each of them, for so long, and until each was answered. Returns how
 * many answers there were. */
static unsigned ask_in_turns(const int *sock, unsigned n, uint64_t for_ns)
{
	const uint64_t end_ns = base_now_ns() + for_ns;
	unsigned answers = 0, n_answered = 0;
	bool is_answered[32] = {false};
	struct pollfd some[32];

	for (unsigned i = 0; i < n; i++)
		some[i] = (struct pollfd){.fd = sock[i], .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		raw_say(sock[i], PROTO_STATUS);
	while (base_now_ns() < end_ns || n_answered < n) {
		poll(some, n, 1000);
		for (unsigned i = 0; i < n; i++) {
			struct wire_in in;

			if (!some[i].revents)
				continue;
			ck_assert_int_eq(raw_hear(sock[i], PROTO_STATUS_REPLY, &in), 0);
			wire_in_fini(&in);
			raw_say(sock[i], PROTO_STATUS);
			answers++;
			n_answered += !is_answered[i];
			is_answered[i] = true;
		}
	}
	return answers;
}

/* Many connections are no way around: together a user's are heard as one. */
START_TEST(a_crowd_of_one_user_is_heard_as_one)
{
	uint64_t begin_ns, took_ns;
	unsigned answers;
	struct wire_in in;
	int sock[32];

	rig_start("workers=1", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++) {
		sock[i] = raw_greeted(&in);
		wire_in_fini(&in);
	}
	begin_ns = base_now_ns();
	answers = ask_in_turns(sock, BASE_ARRAY_LEN(sock), UINT64_C(2000000000));
	took_ns = base_now_ns() - begin_ns;
	fprintf(stderr, "%u answers in %.1f s\n", answers, (double)took_ns / 1e9);
	ck_assert_uint_le(answers, (took_ns / 50000000 + 2) * 41);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++)
		close(sock[i]);
	ck_assert(rig_wait_status("node.clients", 1, 1));
	rig_end();
}
END_TEST

/* ---- our own processes ---- */

static void kill_our(const char *path)
{
	int pid = (int)rig_status(path);

	ck_assert_int_gt(pid, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	for (unsigned i = 0; i < PATIENCE_MS / 5 && (int)rig_status(path) == pid; i++)
		rig_sleep_ms(5);
}

/* Until one is not replaced at once. A machine that is so slow that each lived for a while, or that the pause is
 * over before we look, never comes to that. */
static void kill_until_pause(const char *path)
{
	for (unsigned i = 0; i + 1 < CHILD_HOPELESS; i++) {
		ck_assert(rig_wait_status(path, 2, INT_MAX));
		kill_our(path);
		if (rig_status(path) < 1)
			return;
	}
}

/* The first open that is not refused: whatever is to be mended for it, is a moment later. */
static int open_in_the_end(const struct raw_open *open)
{
	const uint64_t end_ns = base_now_ns() + PATIENCE_NS;
	struct wire_in in;
	uint16_t type;
	int sock;

	for (;;) {
		sock = raw_ask(open);
		ck_assert_int_eq(raw_hear(sock, 0, &in), 0);
		type = in.type;
		wire_in_fini(&in);
		if (type == PROTO_OPENED)
			return sock;
		close(sock);
		ck_assert_uint_lt(base_now_ns(), end_ns);
		rig_sleep_ms(20);
	}
}

/* Deaths in quick succession have a pause after them. Who opens in the pause gets his stream. */
START_TEST(an_open_while_no_parent_lives)
{
	struct raw_open open = usual(rig_pictures("paused", 64, 1, 32));
	struct wire_in opened;
	int sock;

	rig_start("workers=1", "linger_s=0", NULL);
	kill_until_pause("node.parent_pid");
	sock = raw_open(&open, &opened);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

START_TEST(an_open_while_no_reader_lives)
{
	struct raw_open open = usual(rig_pictures("unread", 64, 1, 32));
	struct wire_in opened;
	int sock;

	rig_start("workers=1", "linger_s=0", NULL);
	kill_until_pause("node.reader_pid");
	sock = raw_open(&open, &opened);
	wire_in_fini(&opened);
	close(sock);
	rig_end();
}
END_TEST

static void expect_text(int sock, uint16_t type, const char *part)
{
	const char *text = "";
	struct wire_in in;

	ck_assert_int_eq(raw_hear(sock, type, &in), 0);
	ck_assert_uint_eq(in.type, type);
	wire_get_string(&in, PROTO_KEY_TEXT, &text);
	ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in: %s", part, text);
	wire_in_fini(&in);
}

/* Which node gets which sample each reckons for itself: as another version does it, some would come twice. */
START_TEST(a_spread_of_another_version_is_refused)
{
	struct raw_open open = usual(rig_pictures("spread", 64, 1, 32));
	int sock;

	rig_start("workers=1", NULL);
	open.spread = SPREAD_ARITHMETIC + 1;
	sock = raw_ask(&open);
	expect_text(sock, PROTO_REFUSED, "install one version on all nodes of the job");
	close(sock);
	open.spread = SPREAD_ARITHMETIC;
	close(open_in_the_end(&open));
	rig_end();
}
END_TEST

/* A file system that does not answer, as seen from here: a reader that does not. */
START_TEST(a_silent_open_ends_with_its_stage)
{
	struct raw_open open = usual(rig_pictures("silent", 64, 1, 32));
	int sock, reader;

	rig_start("workers=1", "open_timeout_s=1", NULL);
	reader = rig_pid("node.reader_pid");
	kill(reader, SIGSTOP);
	sock = raw_ask(&open);
	expect_text(sock, PROTO_REFUSED, "stage opening it and looking at its folders");
	close(sock);
	kill(reader, SIGCONT);
	close(open_in_the_end(&open));
	rig_end();
}
END_TEST

/* A program in front of ours that fails when the file "broken" is there. */
static void write_wrapper(const char *folder, const char *program)
{
	const char *libexec = getenv("ACCESS_LIBEXEC");
	char path[512], real[PATH_MAX];
	FILE *file;

	ck_assert_ptr_nonnull(libexec);
	ck_assert_ptr_nonnull(realpath(libexec, real));
	snprintf(path, sizeof(path), "%s/%s", folder, program);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\n[ -e '%s/broken-%s' ] && exit 9\nexec '%s/%s' \"$@\"\n", folder,
		program, real, program);
	fclose(file);
	ck_assert_int_eq(chmod(path, 0755), 0);
}

static const char *wrap_programs(void)
{
	const char *folder = rig_path("wrapped");

	ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
	write_wrapper(folder, "access-reader");
	write_wrapper(folder, "access-worker");
	setenv("ACCESS_LIBEXEC", folder, 1);
	return folder;
}

static void break_program(const char *folder, const char *program)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/broken-%s", folder, program);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* Processes that die as soon as they are started: opens are refused with the reason, running jobs
 * are told, nobody waits for ever. */
static void hopeless(const char *program, const char *pid_path, const char *part)
{
	struct raw_open open = usual(rig_pictures("hopeless", 64, 1, 32));
	const char *folder = wrap_programs();
	struct wire_in opened;
	int running, asking;

	rig_start("workers=1", "linger_s=0", NULL);
	running = raw_open(&open, &opened);
	wire_in_fini(&opened);
	break_program(folder, program);
	kill_our(pid_path);
	asking = raw_ask(&open);
	expect_text(asking, PROTO_REFUSED, "");
	close(asking);
	expect_text(running, strcmp(program, "access-worker") == 0 ? PROTO_LOST : PROTO_FAILED, "");
	close(running);
	ck_assert(rig_wait_status(strcmp(program, "access-worker") == 0 ? "node.parent_restarts"
									: "node.reader_restarts",
				  6, 1e9));
	asking = raw_ask(&open);
	expect_text(asking, PROTO_REFUSED, part);
	close(asking);
	unlink(rig_path("wrapped/broken-%s", program));
	close(open_in_the_end(&open)); /* the last one that was broken may have to die first */
	rig_end();
}

START_TEST(a_reader_that_cannot_live)
{
	hopeless("access-reader", "node.reader_pid", "no reader: 6 in a row");
}
END_TEST

START_TEST(workers_that_cannot_live)
{
	hopeless("access-worker", "node.parent_pid", "no workers: 6 worker parents");
}
END_TEST

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

/* A copy of the eventfd by which its reader wakes accessd; -1 with errno. */
static int event_of_reader(void)
{
	pid_t reader = rig_pid("node.reader_pid");
	int process = (int)syscall(SYS_pidfd_open, reader, 0);
	char path[64], text[64] = "";

	for (int fd = 4; fd < 64 && process >= 0; fd++) {
		int copy;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)reader, fd);
		memset(text, 0, sizeof(text));
		if (readlink(path, text, sizeof(text) - 1) < 0 || !strstr(text, "eventfd"))
			continue;
		copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
		base_close(&process);
		return copy;
	}
	base_close(&process);
	return -1;
}

/* Whoever got hold of a reader makes the eventfd one that waits, and takes what accessd is about to read. */
START_TEST(a_stolen_ring)
{
	struct raw_open open = usual(rig_pictures("ring", 16, 1, 32));
	const uint64_t one = 1;
	struct wire_in opened;
	uint64_t count;
	struct iovec part = {.iov_base = &count, .iov_len = sizeof(count)};
	int event;

	rig_start("workers=1", NULL);
	close(raw_open(&open, &opened)); /* there is a reader */
	wire_in_fini(&opened);
	event = event_of_reader();
	if (event < 0) {
		fprintf(stderr, "skipped: may not look into the reader: %s\n", strerror(errno));
		rig_end();
		return;
	}
	ck_assert_int_eq(fcntl(event, F_SETFL, 0), 0);
	for (unsigned i = 0; i < 12000; i++) {
		uint64_t end_ns = base_now_ns() + i % 100 * 1000; /* soon after it was heard */

		ck_assert_int_eq(write(event, &one, sizeof(one)), sizeof(one));
		while (base_now_ns() < end_ns)
			continue;
		if (preadv2(event, &part, 1, -1, RWF_NOWAIT) < 0)
			ck_assert_int_eq(errno, EAGAIN);
		ck_assert_int_eq((int)rig_status("pid"), rig_host.pid);
	}
	close(event);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_failed_job_can_take_nothing);
	tcase_add_test(tcase, idle_streams_make_room);
	tcase_add_test(tcase, a_rank_that_can_go_on_is_rung);
	tcase_add_test(tcase, nobody_says_that_it_sleeps_for_production);
	tcase_add_test(tcase, nothing_to_do_no_wakes);
	tcase_add_test(tcase, a_pause_is_nobodys_fault);
	tcase_add_test(tcase, a_worker_may_lack_cpu);
	tcase_add_test(tcase, a_stopped_worker_is_replaced);
	tcase_add_test(tcase, who_stops_each_worker_is_not_waited_for);
	tcase_add_test(tcase, a_refused_client_is_hung_up_on);
	tcase_add_test(tcase, a_silent_crowd_makes_room);
	tcase_add_test(tcase, no_descriptors_no_spinning);
	tcase_add_test(tcase, a_lie_about_ends_is_no_spinning);
	tcase_add_test(tcase, unread_answers_are_few);
	tcase_add_test(tcase, a_flood_is_not_heard);
	tcase_add_test(tcase, a_crowd_of_one_user_is_heard_as_one);
	tcase_add_test(tcase, an_open_while_no_parent_lives);
	tcase_add_test(tcase, an_open_while_no_reader_lives);
	tcase_add_test(tcase, a_spread_of_another_version_is_refused);
	tcase_add_test(tcase, a_silent_open_ends_with_its_stage);
	tcase_add_test(tcase, a_reader_that_cannot_live);
	tcase_add_test(tcase, workers_that_cannot_live);
	tcase_add_test(tcase, a_stolen_ring);
}

int main(void)
{
	return rig_main("node", add);
}
