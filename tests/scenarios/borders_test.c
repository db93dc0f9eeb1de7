/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job ends and somebody else begins, against a real accessd: forked children, threads,
 * another user, an accessd that is gone for a while or is another one when it comes back.
 */

#include "tests/scenarios/trainee.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A stream that a thread reads to its end. */
struct reader {
	struct oa_stream *stream;
	struct trainee_seen seen;
	pthread_t thread;
};

static void *read_all(void *arg)
{
	struct reader *reader = arg;

	trainee_train(reader->stream, 0, &reader->seen);
	return NULL;
}

static void reader_start(struct reader *reader, struct oa_stream *stream)
{
	*reader = (struct reader){.stream = stream};
	ck_assert_int_eq(pthread_create(&reader->thread, NULL, read_all, reader), 0);
}

/* ---- case 5: forks ---- */

struct parent {
	struct oa_client *client;
	struct oa_stream *stream, *read_by_thread;
	struct oa_batch *held;
	const char *dataset;
};

/* What a child may do with what it inherits. Each ends with status 0. */
static void use_handles(const struct parent *parent)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = trainee_options(parent->dataset, 8, 1);
	struct oa_stream *stream = NULL;
	struct oa_batch *batch = NULL;

	if (oa_next(parent->stream, -1, &batch) != OA_E_FORKED ||
	    oa_next(parent->read_by_thread, -1, &batch) != OA_E_FORKED ||
	    oa_open(parent->client, &options, &stream, &error) != OA_E_FORKED ||
	    !strstr(error.text, "before a fork"))
		_exit(1);
	oa_release(parent->held);
	oa_close(parent->stream);
	oa_close(parent->read_by_thread);
	oa_disconnect(parent->client);
	_exit(0);
}

static void only_exit(const struct parent *parent)
{
	(void)parent;
	exit(0);
}

static void become_another_program(const struct parent *parent)
{
	(void)parent;
	execlp("true", "true", (char *)NULL);
	_exit(127);
}

/* Its own client and stream: the way that the messages name. */
static void open_again(const struct parent *parent)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = trainee_options(parent->dataset, 16, 1);
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;
	struct trainee_seen seen = {{0}};
	struct oa_batch *batch;

	if (oa_connect(rig_host.socket, &client, &error) ||
	    oa_open(client, &options, &stream, &error))
		_exit(1);
	while (oa_next(stream, PATIENCE_MS, &batch) == 0) {
		trainee_see(&seen, batch);
		oa_release(batch);
	}
	_exit(trainee_saw_all(&seen, 160, 1) ? 0 : 2);
}

static void end_well(const int *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status = -1;

		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_msg(status == 0, "child %zu: status %x", i, (unsigned)status);
	}
}

static void fork_all(const struct parent *parent, int *pids)
{
	static void (*const ways[])(const struct parent *) = {use_handles, only_exit,
							      become_another_program, open_again};

	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			ways[i](parent);
	}
}

/* Forked while a thread sleeps in oa_next() and a batch is held: children cost their parent nothing,
 * and what it held stays its own. */
START_TEST(children_cost_their_parent_nothing)
{
	struct oa_options options;
	struct parent parent;
	struct reader reader;
	int pids[4];

	rig_start("workers=2", "chunk=8", NULL);
	parent.dataset = rig_pictures("forks", 160, 2, 32);
	parent.client = rig_connect();
	options = trainee_options(parent.dataset, 8, 2);
	parent.stream = rig_open(parent.client, &options);
	parent.held = trainee_next(parent.stream);
	options = trainee_options(parent.dataset, 10, 6);
	parent.read_by_thread = rig_open(parent.client, &options);
	kill(rig_host.pid, SIGSTOP); /* so that the thread runs out of batches, and sleeps */
	reader_start(&reader, parent.read_by_thread);
	for (struct oa_stats stats = {.size = sizeof(stats)}; stats.wait_ns == 0;
	     oa_stream_stats(parent.read_by_thread, &stats))
		rig_sleep_ms(5);
	fork_all(&parent, pids);
	kill(rig_host.pid, SIGCONT);
	end_well(pids, BASE_ARRAY_LEN(pids));
	ck_assert(rig_status("jobs.0.pins") > 0 || rig_status("jobs.1.pins") > 0);
	pthread_join(reader.thread, NULL);
	ck_assert(trainee_saw_all(&reader.seen, 160, 6));
	ck_assert_uint_eq(trainee_count_wrong(parent.held, 160, 2), 0);
	memset(&reader.seen, 0, sizeof(reader.seen));
	trainee_see(&reader.seen, parent.held);
	oa_release(parent.held);
	trainee_train(parent.stream, 0, &reader.seen);
	ck_assert(trainee_saw_all(&reader.seen, 160, 2));
	oa_close(parent.stream);
	oa_close(parent.read_by_thread);
	oa_disconnect(parent.client);
	rig_end();
}
END_TEST

/* ---- case 16: streams and threads of one process ---- */

/* Four threads on the training stream, three on the validation one, at once: each sample once. */
START_TEST(threads_and_streams_of_one_process)
{
	enum { THREADS = 7, TRAIN = 4 };
	struct reader readers[THREADS];
	struct trainee_seen train = {{0}}, valid = {{0}};
	struct oa_options options;
	struct oa_stream *streams[2];
	struct oa_client *client;

	rig_start("workers=2", "chunk=16", NULL);
	options = trainee_options(rig_pictures("train", 203, 2, 32), 8, 3);
	options.pipeline = "imagenet-train-u8";
	options.flags = OA_COPY; /* threads hold more batches at once than a job may pin slots */
	client = rig_connect();
	streams[0] = rig_open(client, &options);
	options.dataset = rig_pictures("valid", 90, 2, 32);
	options.pipeline = "imagenet-eval-u8";
	streams[1] = rig_open(client, &options);
	for (unsigned i = 0; i < THREADS; i++)
		reader_start(&readers[i], streams[i >= TRAIN]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(readers[i].thread, NULL);
		for (unsigned k = 0; k < TRAINEE_MOST; k++)
			(i < TRAIN ? &train : &valid)->count[k] += readers[i].seen.count[k];
	}
	ck_assert(trainee_saw_all(&train, 203, 3));
	ck_assert(trainee_saw_all(&valid, 90, 3));
	oa_close(streams[0]);
	oa_close(streams[1]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- case 14: another user ---- */

/* In a child of another uid, with a folder that it may enter: 0 when all is refused, with a text. */
static int try_as_another(const struct trainee *victim)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = NULL;
	char path[64];
	int r;

	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	r = oa_connect(rig_host.socket, &client, &error);
	if (r != OA_E_PERMISSION || !strstr(error.text, rig_host.socket))
		return 2;
	snprintf(path, sizeof(path), "/proc/%d/fd", rig_host.pid);
	if (access(path, R_OK) == 0)
		return 3;
	snprintf(path, sizeof(path), "/proc/%d/fd", victim->pid);
	if (access(path, R_OK) == 0)
		return 4;
	snprintf(path, sizeof(path), "/proc/%d/mem", victim->pid);
	return open(path, O_RDONLY | O_CLOEXEC) >= 0 ? 5 : 0;
}

START_TEST(another_user_gets_nothing)
{
	struct trainee victim;
	int pid, status;

	if (geteuid() != 0) {
		printf("not tested, another_user_gets_nothing: only root can be another user\n");
		return;
	}
	rig_start("workers=1", "chunk=8", NULL);
	victim = trainee_start(rig_pictures("mine", 64, 2, 32), 64, 8, 0, TRAINEE_HOLDS);
	ck_assert_int_eq(chmod(rig_path("."), 0711), 0);
	pid = fork();
	if (pid == 0)
		_exit(try_as_another(&victim));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_double_eq(rig_status("node.nonsense"), 0);
	kill(victim.pid, SIGKILL);
	trainee_end(&victim);
	rig_end();
}
END_TEST

/* ---- case 19: another configuration ---- */

#define JOBS 4

struct seat { /* a job that stops and holds a batch whenever accessd is replaced */
	uint32_t batch;
	const char *dataset;
	struct trainee_seen seen;
	unsigned wrong, reconnects;
};
static pthread_barrier_t gate;

static void *sit(void *arg)
{
	struct seat *seat = arg;
	struct oa_options options = trainee_options(seat->dataset, seat->batch, 3);
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);

	for (unsigned round = 0; round < 3; round++) {
		struct oa_batch *held;

		trainee_train(stream, 1 + seat->batch % 5, &seat->seen);
		held = trainee_next(stream);
		pthread_barrier_wait(&gate); /* accessd goes */
		pthread_barrier_wait(&gate); /* and another one is there */
		seat->wrong += trainee_count_wrong(held, 203, 2);
		trainee_see(&seat->seen, held);
		oa_release(held);
	}
	trainee_train(stream, 0, &seat->seen);
	oa_stream_stats(stream, &stats);
	seat->reconnects = (unsigned)stats.reconnects;
	oa_close(stream);
	oa_disconnect(client);
	return NULL;
}

START_TEST(another_configuration_goes_on)
{
	static const char *const settings[][3] = {
	    {"chunk=6", "workers=1", "slots=12"},
	    {"chunk=64", "workers=3", "producing=1"},
	    {"chunk=25", "slots=40", "readers=1"},
	};
	static struct seat seats[JOBS];
	pthread_t threads[JOBS];
	const char *dataset;

	rig_start("workers=2", "chunk=16", NULL);
	dataset = rig_pictures("config", 203, 2, 32);
	ck_assert_int_eq(pthread_barrier_init(&gate, NULL, JOBS + 1), 0);
	for (unsigned i = 0; i < JOBS; i++) {
		seats[i] = (struct seat){.batch = 5 + 4 * i, .dataset = dataset};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, sit, &seats[i]), 0);
	}
	for (unsigned round = 0; round < BASE_ARRAY_LEN(settings); round++) {
		pthread_barrier_wait(&gate);
		rig_restart(settings[round][0], settings[round][1], settings[round][2], NULL);
		pthread_barrier_wait(&gate);
	}
	for (unsigned i = 0; i < JOBS; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_uint_eq(seats[i].wrong, 0);
		ck_assert_uint_ge(seats[i].reconnects, 1);
		ck_assert(trainee_saw_all(&seats[i].seen, 203, 3));
	}
	pthread_barrier_destroy(&gate);
	rig_end();
}
END_TEST

/* ---- case 24: nobody there for a while ---- */

/*
 * Five minutes pass at once: while the clock is wound it stands still but for those who sleep for a while, who
 * wind it on by that and do not sleep. Who waits for somebody's answer waits for it.
 */
#define BORDERS_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))
#define MS UINT64_C(1000000)
#define ABSENCE_NS (300000 * MS)

int borders_clock_gettime(clockid_t id, struct timespec *ret) BORDERS_REPLACES("clock_gettime");
int borders_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		  const sigset_t *mask) BORDERS_REPLACES("ppoll");
int borders_connect(int fd, const struct sockaddr *address, socklen_t size)
    BORDERS_REPLACES("connect");

static atomic_bool is_wound;
static _Atomic uint64_t stood_at_ns, wound_ns; /* by all that was slept so far */
static uint64_t tries_ns[128];                 /* when accessd was called meanwhile */
static atomic_uint n_tries;

int borders_clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);
	uint64_t ns;

	if (r || id != CLOCK_MONOTONIC)
		return r;
	ns = (uint64_t)ret->tv_sec * 1000 * MS + (uint64_t)ret->tv_nsec;
	ns = (is_wound ? stood_at_ns : ns) + wound_ns;
	*ret = (struct timespec){(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};
	return 0;
}

int borders_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		  const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec){0, 0};

	if (is_wound && timeout && (n == 0 || fds[0].fd < 0)) {
		wound_ns += (uint64_t)left.tv_sec * 1000 * MS + (uint64_t)left.tv_nsec;
		return 0;
	}
	return (int)syscall(SYS_ppoll, fds, n, timeout && !is_wound ? &left : NULL, mask,
			    _NSIG / 8);
}

int borders_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	if (is_wound && n_tries < BASE_ARRAY_LEN(tries_ns)) {
		tries_ns[n_tries] = base_now_ns();
		n_tries++; /* it is read by then */
	}
	return (int)syscall(SYS_connect, fd, address, size);
}

static void wind(void)
{
	stood_at_ns = base_now_ns();
	is_wound = true;
}

/* Somebody who takes calls at accessd's socket and hangs up, until so many came. */
static void hang_up_on_callers(unsigned calls)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_uint_lt(strlen(rig_host.socket), sizeof(address.sun_path));
	strcpy(address.sun_path, rig_host.socket);
	unlink(rig_host.socket);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(sock, 8), 0);
	while (calls--)
		close(accept4(sock, NULL, NULL, SOCK_CLOEXEC));
	close(sock);
}

static void *read_however_long(void *arg)
{
	struct reader *reader = arg;
	struct oa_batch *batch;
	int r;

	while ((r = oa_next(reader->stream, -1, &batch)) == 0) {
		trainee_see(&reader->seen, batch);
		oa_release(batch);
	}
	ck_assert_int_eq(r, OA_E_END);
	return NULL;
}

/* The first try comes after 50 ms, each other one after an eighth more than the one before, up to 5 s: so late comes who waited, an
 * eighth of the absence at most, and that little. Nothing is printed. */
START_TEST(an_absence_is_waited_for_in_silence)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct reader reader = {0};
	struct stat printed;
	int err = dup(STDERR_FILENO), file;
	uint64_t pause_ns = 50 * MS;
	unsigned n;

	rig_start("workers=1", "chunk=8", NULL);
	options = trainee_options(rig_pictures("absent", 64, 2, 32), 8, 40);
	client = rig_connect();
	stream = rig_open(client, &options);
	oa_release(trainee_next(stream));
	wind();
	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
	file = open(rig_path("stderr"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
	reader.stream = stream;
	ck_assert_int_eq(pthread_create(&reader.thread, NULL, read_however_long, &reader), 0);
	while (wound_ns < ABSENCE_NS / 2) /* nobody is there */
		rig_sleep_ms(1);
	hang_up_on_callers(4);
	while (wound_ns < ABSENCE_NS)
		rig_sleep_ms(1);
	n = n_tries; /* those behind it may be of the other clock */
	is_wound = false;
	ck_assert_int_eq(fstat(file, &printed), 0);
	ck_assert_int_eq(dup2(err, STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_eq(printed.st_size, 0);
	ck_assert_uint_ge(n, 60);
	for (unsigned i = 1; i < n; i++) {
		ck_assert_msg(tries_ns[i] - tries_ns[i - 1] == pause_ns, "try %u after %g s", i,
			      (double)(tries_ns[i] - tries_ns[i - 1]) / 1e9);
		ck_assert_uint_le(pause_ns, 50 * MS + (tries_ns[i - 1] - tries_ns[0]) / 8);
		pause_ns = BASE_MIN(pause_ns + pause_ns / 8, 5000 * MS);
	}
	rig_host.pid = fork(); /* rig_restart() kills and reaps this one */
	if (rig_host.pid == 0)
		_exit(0);
	rig_restart("workers=1", NULL);
	pthread_join(reader.thread, NULL);
	close(file);
	close(err);
	for (unsigned i = 0; i < 64; i++) /* but for the batch before */
		ck_assert(reader.seen.count[i] == 40 || reader.seen.count[i] == 39);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, children_cost_their_parent_nothing);
	tcase_add_test(tcase, threads_and_streams_of_one_process);
	tcase_add_test(tcase, another_user_gets_nothing);
	tcase_add_test(tcase, another_configuration_goes_on);
	tcase_add_test(tcase, an_absence_is_waited_for_in_silence);
}

int main(void)
{
	return rig_main("borders", add);
}
