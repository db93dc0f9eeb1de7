/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library as a guest in a program: streams that are closed under a waiting thread, calls that
 * must not wait, event loops and forks, the program's signals, its limits, and a daemon whose shared
 * memory changes at random.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static const struct fake_config plain = {.n = 100, .chunk = 10, .slots = 4};

static struct fake_conn *conn_of(struct fake *fake)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fake->conn); i++)
		if (fake->conn[i].has_stream)
			return &fake->conn[i];
	ck_abort_msg("nobody has opened a stream");
	return NULL;
}

/* ---- closing under a waiting thread ---- */

struct waiter {
	struct oa_stream *stream;
	_Atomic pid_t thread;
};

static void *wait_for_ever(void *argument)
{
	struct waiter *waiter = argument;
	struct oa_batch *batch;

	waiter->thread = gettid();
	return (void *)(intptr_t)oa_next(waiter->stream, -1, &batch);
}

enum close_case { CLOSE_IDLE, CLOSE_WITH_WINDOW, CLOSE_DIALLING, CLOSE_CASES };

/* Two threads are in oa_next(): one sleeps, one waits for its turn. Both must leave. */
START_TEST(closing_ends_waits)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(10, 1);
	struct oa_batch *held = NULL;
	struct waiter waiter[2] = {{.thread = 0}};
	struct oa_stream *stream;
	pthread_t thread[2];
	struct fake fake;
	void *result;

	config.most_chunks = 1;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held), 0);
	if (_i != CLOSE_WITH_WINDOW)
		oa_release(held);
	if (_i == CLOSE_DIALLING)
		fake_kill(&fake);
	for (unsigned i = 0; i < 2; i++) {
		waiter[i].stream = stream;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_for_ever, &waiter[i]), 0);
		fake_wait_asleep(&waiter[i].thread);
	}
	oa_close(stream);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(thread[i], &result);
		ck_assert_int_eq((int)(intptr_t)result, OA_E_INVALID);
	}
	if (_i == CLOSE_WITH_WINDOW) {
		fake_check_batch(held);
		oa_release(held);
	}
	fake_stop(&fake);
}
END_TEST

/* ---- a time-out of 0 ---- */

static uint8_t status_one_error(uint64_t id)
{
	return id == 33 ? LAYOUT_SAMPLE_ERROR : LAYOUT_SAMPLE_OK;
}

/* A program that polls is told of a bad sample without ever being kept waiting for the reason. */
START_TEST(asking_why_is_no_wait)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(1, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;
	bool was_asked = false;
	int r;

	config.status = status_one_error;
	config.is_mute = _i == 1;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	for (;;) {
		struct pollfd fd = {.fd = oa_fd(stream), .events = POLLIN};

		ck_assert_int_eq(poll(&fd, 1, PATIENCE_MS), 1);
		r = oa_next(stream, 0, &batch);
		if (r == 0)
			oa_release(batch);
		else if (r != OA_E_TIMEOUT)
			break;
		else
			was_asked |= strstr(oa_error_text(stream),
					    "sample 33 is bad, accessd is asked why") != NULL;
	}
	ck_assert_int_eq(r, OA_E_SAMPLE);
	ck_assert(was_asked || _i == 0); /* the answer may be quicker than the look */
	ck_assert_ptr_nonnull(
	    strstr(oa_error_text(stream), _i ? "did not say why within 2000 ms" : "truncated"));
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- oa_fd() ---- */

/* Who has armed by oa_fd() and then found a batch is not asleep: accessd must not believe so. */
START_TEST(a_batch_ends_the_arm)
{
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake fake;

	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_release(batch);
	ck_assert_int_ge(oa_fd(stream), 0);
	fake_lock(&fake);
	ck_assert(grant_is_waiting(&conn_of(&fake)->grants));
	fake_unlock(&fake);
	ck_assert_int_eq(oa_next(stream, 0, &batch), 0);
	fake_lock(&fake);
	ck_assert(!grant_is_waiting(&conn_of(&fake)->grants));
	fake_unlock(&fake);
	oa_release(batch);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* A child that was forked keeps the lost socket open: the descriptor must not report it for ever. */
START_TEST(children_do_not_keep_fds_readable)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(10, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	unsigned quiet = 0;
	struct fake fake;
	pid_t pid;

	config.most_chunks = 1;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	oa_release(batch);
	ck_assert_int_ge(oa_fd(stream), 0);
	pid = fork();
	if (pid == 0) { /* of the daemon's side it has nothing, or the socket would not hang up */
		for (unsigned i = 0; i < BASE_ARRAY_LEN(fake.conn); i++)
			close(fake.conn[i].sock);
		alarm(4 * PATIENCE_S);
		for (;;)
			pause();
	}
	fake_kill(&fake);
	for (unsigned i = 0; i < 1000 && quiet == 0; i++) {
		struct pollfd fd = {.fd = oa_fd(stream), .events = POLLIN};

		ck_assert_int_eq(oa_next(stream, 0, &batch), OA_E_TIMEOUT);
		fd.fd = oa_fd(stream); /* the next try is some time away */
		quiet += poll(&fd, 1, 0) == 0;
	}
	ck_assert_uint_gt(quiet, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* A daemon that takes a watermark back: we wait, we do not spin. */
START_TEST(fallen_watermarks_are_no_news)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(4, 1);
	struct oa_stream *stream;
	struct oa_batch *batch;
	struct fake_conn *conn;
	struct fake fake;
	uint64_t before_ns;

	config.stop_at = 7;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	ck_assert_int_eq(oa_next(stream, 0, &(struct oa_batch *){NULL}), OA_E_TIMEOUT);
	fake_lock(&fake);
	conn = conn_of(&fake);
	for (uint32_t slot = 0; slot < config.slots; slot++)
		slot_table_watermark(&conn->table, slot, 1);
	fake_unlock(&fake);
	before_ns = cpu_ns();
	ck_assert_int_eq(oa_next(stream, 400, &(struct oa_batch *){NULL}), OA_E_TIMEOUT);
	ck_assert_uint_lt(cpu_ns() - before_ns, 200000000); /* slept for most of its 400 ms */
	oa_release(batch);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- the program's signals ---- */

static void note_mask(void *arg, const char *text, uint64_t done, uint64_t total)
{
	(void)text;
	(void)done;
	(void)total;
	pthread_sigmask(SIG_BLOCK, NULL, arg);
}

START_TEST(faults_are_never_blocked)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	struct oa_options options = fake_options(5, 1);
	struct oa_stream *stream;
	struct fake fake;
	sigset_t mask, after;

	sigfillset(&mask);
	options.progress = note_mask;
	options.progress_arg = &mask;
	fake_start(&fake, &plain);
	stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(faults); i++)
		ck_assert_int_eq(sigismember(&mask, faults[i]), 0);
	ck_assert_int_eq(sigismember(&mask, SIGINT), 1); /* it was called, and in a wait */
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	ck_assert_int_eq(sigismember(&after, SIGINT), 0);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

/* ---- the program's limits ---- */

static unsigned count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* All that a job does, once. 0 or the first error; a text must come with it. */
static int live(const char *socket)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(7, 1);
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;
	struct oa_batch *batch = NULL;
	int r = oa_connect(socket, &client, &error);

	if (!r)
		r = oa_open(client, &options, &stream, &error);
	if (r && (error.code != r || strlen(error.text) < 10))
		_exit(10);
	if (!r)
		r = oa_next(stream, PATIENCE_MS, &batch);
	if (!r && oa_fd(stream) < 0)
		r = -EMFILE;
	if (r && stream && strlen(oa_error_text(stream)) < 10)
		_exit(11);
	oa_release(batch);
	oa_close(stream);
	oa_disconnect(client);
	return r;
}

static void run_in_child(void (*function)(const char *socket), const struct fake *fake)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		function(fake->socket);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "the child ended with status %#x", (unsigned)status);
}

/* With each number of free descriptors: success or the name of the limit; nothing leaks. */
static void live_with_few_descriptors(const char *socket)
{
	unsigned before = count_fds(), good = 0, bad = 0;
	struct rlimit all;

	getrlimit(RLIMIT_NOFILE, &all);
	for (unsigned room = 0; room < 10; room++) {
		struct rlimit limit = {.rlim_cur = 0, .rlim_max = all.rlim_max};
		int r, first = fcntl(0, F_DUPFD, 0); /* the lowest free one */

		close(first);
		limit.rlim_cur = (rlim_t)first + room;
		setrlimit(RLIMIT_NOFILE, &limit);
		r = live(socket);
		setrlimit(RLIMIT_NOFILE, &all);
		good += r == 0;
		bad += r != 0;
		if (r && r != OA_E_LIMIT && r != -EMFILE)
			_exit(1);
		if (count_fds() != before)
			_exit(2);
	}
	if (good == 0 || bad == 0)
		_exit(3);
}

/* With each amount of free address space. */
static void live_with_little_memory(const char *socket)
{
	unsigned before = count_fds(), good = 0, bad = 0;
	struct rlimit all;

	live(socket); /* what is loaded and cached once */
	getrlimit(RLIMIT_AS, &all);
	for (uint64_t room = 0; room <= 4096; room += room < 512 ? 32 : 512) {
		struct rlimit limit = {.rlim_max = all.rlim_max};
		unsigned long pages = 0;
		FILE *file = fopen("/proc/self/statm", "re");
		int r;

		if (!file || fscanf(file, "%lu", &pages) != 1)
			_exit(77);
		fclose(file);
		limit.rlim_cur = pages * base_page_size() + (room << 10);
		setrlimit(RLIMIT_AS, &limit);
		r = live(socket);
		setrlimit(RLIMIT_AS, &all);
		good += r == 0;
		bad += r != 0;
		if (r && r != OA_E_LIMIT && r != -ENOMEM)
			_exit(1);
		if (count_fds() != before)
			_exit(2);
	}
	if (good == 0 || bad == 0)
		_exit(3);
}

START_TEST(limits_are_named)
{
	struct fake_config config = plain;
	struct fake fake;

	config.n = 100000;
	config.chunk = 1000;
	fake_start(&fake, &config);
	run_in_child(live_with_few_descriptors, &fake);
	if (!IS_SANITIZED)
		run_in_child(live_with_little_memory, &fake);
	fake_stop(&fake);
}
END_TEST

/* ---- a daemon that has lost its mind ---- */

struct madness {
	struct fake *fake;
	uint64_t random;
	atomic_bool is_over;
};

static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 11;
}

/* Another value for a word: small, huge, one bit off, or that of a neighbour. */
static void spoil(uint64_t *state, void *memory, uint64_t bytes)
{
	volatile uint32_t *word = memory;
	uint64_t n = bytes / 4, at = draw(state) % n;
	uint32_t old = word[at];
	const uint32_t values[] = {(uint32_t)(draw(state) % 12), UINT32_MAX,
				   old ^ UINT32_C(1) << draw(state) % 32, word[draw(state) % n],
				   (uint32_t)draw(state)};

	word[at] = values[draw(state) % BASE_ARRAY_LEN(values)];
}

static void *go_mad(void *argument)
{
	struct madness *mad = argument;

	while (!atomic_load(&mad->is_over)) {
		fake_lock(mad->fake);
		for (unsigned i = 0; i < BASE_ARRAY_LEN(mad->fake->conn); i++) {
			struct fake_conn *conn = &mad->fake->conn[i];
			struct slot_geometry *g = &conn->table.geometry;
			uint8_t *table = conn->table.map;

			if (!conn->has_stream)
				continue;
			spoil(&mad->random, table + g->slot_offset,
			      g->max_slots * sizeof(struct layout_slot));
			if (draw(&mad->random) % 8 == 0)
				spoil(&mad->random, table, g->table_bytes);
			if (draw(&mad->random) % 8 == 0)
				spoil(&mad->random, conn->inbox, sizeof(*conn->inbox));
		}
		fake_unlock(mad->fake);
		usleep(300);
	}
	return NULL;
}

/* Nothing that stands in the daemon's memory can make us touch memory that is not ours. */
START_TEST(mad_daemons_do_no_harm)
{
	struct fake_config config = {.n = 300, .chunk = 16, .slots = 4, .drips = true};
	struct oa_options options = fake_options(_i ? 5 : 16, 0);
	struct madness mad = {.random = 0x853c49e6748fea9b + (uint64_t)_i};
	char token[4096];
	struct oa_stream *stream;
	struct oa_batch *batch;
	unsigned batches = 0;
	pthread_t thread;
	struct fake fake;

	options.bad = (enum oa_bad)_i;
	fake_start(&fake, &config);
	mad.fake = &fake;
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(pthread_create(&thread, NULL, go_mad, &mad), 0);
	for (unsigned i = 0; i < 2000 || batches <= 20; i++) {
		size_t size = sizeof(token);
		int r = oa_next(stream, 5, &batch);

		if (r == 0) {
			struct oa_batch_info info = {.size = sizeof(info)};
			struct oa_field image = {.size = sizeof(image)};

			oa_batch_info(batch, &info);
			ck_assert_uint_le(info.count, options.batch);
			ck_assert_int_eq(oa_batch_field(batch, 0, &image), 0);
			for (uint64_t k = 0; k < image.bytes; k++)
				(void)((volatile const uint8_t *)image.data)[k];
			oa_state(stream, token, &size);
			oa_release(batch);
			batches++;
		} else if (r != OA_E_TIMEOUT) { /* final: begin again */
			oa_close(stream);
			stream = fake_open(&fake, &options);
		}
	}
	atomic_store(&mad.is_over, true);
	pthread_join(thread, NULL);
	oa_close(stream);
	fake_stop(&fake);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, closing_ends_waits, 0, CLOSE_CASES);
	tcase_add_loop_test(tcase, asking_why_is_no_wait, 0, 2);
	tcase_add_test(tcase, a_batch_ends_the_arm);
	tcase_add_test(tcase, children_do_not_keep_fds_readable);
	tcase_add_test(tcase, fallen_watermarks_are_no_news);
	tcase_add_test(tcase, faults_are_never_blocked);
	tcase_add_test(tcase, limits_are_named);
	tcase_add_loop_test(tcase, mad_daemons_do_no_harm, 0, 3);
}

int main(void)
{
	return suite_run("guest", add);
}
