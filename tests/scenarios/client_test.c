/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A job as libaccess's user sees it, against a real accessd: pixels belong to their ids, held
 * batches keep their bytes, limits are errors that say what to do, waits can be interrupted, a job
 * ends though accessd is gone, opening again and again costs nothing, tokens resume at any point.
 */

#include "tests/scenarios/trainee.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dataset;

static struct oa_options options_of(uint32_t batch, uint64_t epochs)
{
	return trainee_options(dataset, batch, epochs);
}

START_TEST(pixels_belong_to_their_ids)
{
	struct oa_options options = options_of(13, 2);
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	unsigned samples = 0, wrong = 0;

	rig_start("workers=2", NULL);
	dataset = options.dataset = rig_pictures("pixels", 333, 9, 40);
	options.flags = _i ? OA_COPY : 0;
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream))) {
		wrong += trainee_count_wrong(batch, 333, 9);
		samples += trainee_info(batch).count;
		oa_release(batch);
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(samples, 666);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Case 4: a job that keeps its batches gets an error that helps, and disturbs nobody. */
START_TEST(keeping_batches_is_an_error_with_a_way_out)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream, *other;
	struct oa_batch *held[16] = {NULL}, *batch = NULL;
	unsigned n = 0, samples = 0;
	int r = 0;

	rig_start("workers=2", "chunk=8", NULL);
	dataset = rig_pictures("keep", 160, 2, 32);
	options = options_of(8, 1);
	client = rig_connect();
	stream = rig_open(client, &options);
	while (n < 16 && (r = oa_next(stream, PATIENCE_MS, &held[n])) == 0)
		n++;
	ck_assert_int_eq(r, OA_E_PINS);
	ck_assert_uint_eq(n, 2);
	ck_assert_ptr_nonnull(strcasestr(oa_error_text(stream), "copy"));
	ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "2"));
	/* a neighbour gets its whole epoch meanwhile */
	other = rig_open(client, &options);
	for (; (batch = trainee_next(other)); oa_release(batch))
		samples += trainee_info(batch).count;
	ck_assert_uint_eq(samples, 160);
	/* held bytes are what they were */
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(trainee_count_wrong(held[i], 160, 2), 0);
	oa_release(held[0]);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held[0]), 0);
	oa_release(held[0]);
	oa_release(held[1]);
	oa_close(other);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* A batch of more chunks than an inbox has room for comes though the one before it, an epoch's short
 * last one, is kept. With ranks, too. */
START_TEST(a_batch_of_many_chunks_comes_beside_a_kept_one)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *kept = NULL, *batch;
	unsigned samples = 0;

	rig_start("workers=2", "chunk=1", "slots=8", NULL);
	dataset = rig_pictures("many", 141, 1, 32);
	options = options_of(_i ? 70 : 140, 2);
	options.order = _i ? OA_ORDER_SEEDED : OA_ORDER_USUAL;
	options.ranks = _i ? 2 : 1; /* this one has the epoch's last sample, too */
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream))) {
		ck_assert_uint_eq(trainee_count_wrong(batch, 141, 1), 0);
		samples += trainee_info(batch).count;
		oa_release(kept);
		kept = batch;
	}
	oa_release(kept);
	ck_assert_uint_eq(samples, _i ? 142 : 282);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void on_alarm(int number)
{
	(void)number;
}

/* Cases 7, 23: a signal ends a wait for an accessd that does not answer; a time-out says that it does
 * not; streams can be closed meanwhile; ^C ends the process; and then everything goes on. */
START_TEST(waits_end_when_they_should)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval timer = {.it_value = {0, 200000}, .it_interval = {0, 200000}};
	static const struct itimerval off;
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream, *other;
	struct oa_batch *batch = NULL;
	struct trainee waiting;
	int r, status;

	sigaction(SIGALRM, &action, NULL);
	rig_start("workers=1", "chunk=4", NULL);
	dataset = rig_pictures("wait", 64, 2, 32);
	waiting = trainee_start(dataset, 64, 4, 0, TRAINEE_WAITS);
	options = options_of(4, 0);
	client = rig_connect();
	stream = rig_open(client, &options);
	other = rig_open(client, &options);
	oa_release(trainee_next(stream));
	kill(rig_host.pid, SIGSTOP);
	trainee_go(&waiting);
	/* what is granted already still comes */
	while ((r = oa_next(stream, 300, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_TIMEOUT);
	ck_assert_int_eq(oa_next(stream, 0, &batch), OA_E_TIMEOUT);
	/* without the signal it would not come back before the test's own end */
	setitimer(ITIMER_REAL, &timer, NULL);
	ck_assert_int_eq(oa_next(stream, -1, &batch), OA_E_INTERRUPTED);
	setitimer(ITIMER_REAL, &off, NULL);
	do { /* it must be silent for a while to be called so */
		r = oa_next(stream, 500, &batch);
		ck_assert_int_eq(r, OA_E_TIMEOUT);
	} while (!strstr(oa_error_text(stream), "has not answered"));
	ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "stopped?"));
	oa_close(other);
	kill(waiting.pid, SIGINT);
	status = trainee_end(&waiting);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	kill(rig_host.pid, SIGCONT);
	for (unsigned i = 0; i < 30; i++)
		oa_release(trainee_next(stream));
	ck_assert(rig_wait_status("jobs", 1, 1));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Case 8: a process that does not close anything ends with its own status though accessd is gone. */
START_TEST(a_process_ends_though_accessd_is_gone)
{
	struct trainee trainee;
	int status;

	rig_start("workers=1", "chunk=8", NULL);
	dataset = rig_pictures("exit", 64, 2, 32);
	trainee = trainee_start(dataset, 64, 8, 0, TRAINEE_EXITS);
	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
	rig_host.pid = 0;
	trainee_go(&trainee);
	status = trainee_end(&trainee);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	rig_end();
}
END_TEST

/* Case 8: accessd is gone; the job still ends at once and holds readable bytes until then. */
START_TEST(a_job_ends_though_accessd_is_gone)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch, *none = NULL;

	rig_start("workers=1", NULL);
	dataset = rig_pictures("gone", 64, 2, 32);
	options = options_of(8, 0);
	client = rig_connect();
	stream = rig_open(client, &options);
	batch = trainee_next(stream);
	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
	rig_host.pid = 0;
	ck_assert_uint_eq(trainee_count_wrong(batch, 64, 2), 0);
	for (int r = 0; r == 0; none = NULL) {
		r = oa_next(stream, 500, &none);
		oa_release(none);
		ck_assert_msg(r == 0 || r == OA_E_TIMEOUT || r == OA_E_UNREACHABLE, "%s",
			      oa_error_name(r));
	}
	ck_assert_uint_eq(trainee_count_wrong(batch, 64, 2), 0);
	oa_close(stream); /* before its last batch is released: the views stay */
	ck_assert_uint_eq(trainee_count_wrong(batch, 64, 2), 0);
	oa_release(batch);
	oa_disconnect(client); /* nobody was waited for */
	rig_end();
}
END_TEST

/* Where no new job is served, what a job opens besides is: its loader for evaluation may come after the first epoch. */
START_TEST(who_runs_may_open_more_of_a_closed_node)
{
	const char *const closed = "closed=maintenance";
	struct oa_client *client;
	struct oa_stream *train, *other;
	struct oa_options options;
	int status;
	pid_t child;

	rig_start("workers=1", NULL);
	dataset = rig_pictures("closed", 64, 2, 32);
	options = options_of(8, 0);
	client = rig_connect();
	train = rig_open(client, &options);
	oa_release(trainee_next(train));
	rig_restart("workers=1", closed, NULL);
	while (rig_status("jobs") != 1) /* it comes back when it needs more */
		oa_release(trainee_next(train));
	other = rig_open(client, &options);
	oa_release(trainee_next(other));
	oa_close(other);
	child = fork();
	if (child == 0) {
		struct oa_error error = {.size = sizeof(error)};
		struct oa_client *own = rig_connect();
		const int r = oa_open(own, &options, &other, &error);

		_exit(r == OA_E_REFUSED && strstr(error.text, "no new jobs") ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	oa_close(train);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* What may not grow, here and in accessd. */
struct footprint {
	unsigned fds, maps, their_fds, their_maps;
	double memory, rss, their_rss; /* bytes */
};

static double rss_of(int pid)
{
	char path[64], line[128];
	double kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtod(line + 8, NULL);
	fclose(file);
	return kib * 1024;
}

static struct footprint footprint(unsigned most_fds)
{
	ck_assert(rig_wait_status("jobs", 0, 0));
	return (struct footprint){
	    .fds = rig_count_fds(getpid()),
	    .maps = rig_count_maps(getpid()),
	    .their_fds = rig_settled_fds(most_fds),
	    .their_maps = rig_count_maps(rig_host.pid),
	    .memory = rig_status("node.memory_used"),
	    .rss = rss_of(getpid()),
	    .their_rss = rss_of(rig_host.pid),
	};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BREAKS 200 /* they take longer */
#define TRIALS 500
#define GROWTH (320 << 20) /* and keep up to 256 MiB of what was freed */
#define MAPS 1000
#define LIMITS 1 /* they cannot live in a small address space */
#else
#define BREAKS 1000
#define TRIALS 10000
#define GROWTH (256 << 10) /* 9,000 trials: no more than 29 bytes each */
#define MAPS 4
#define LIMITS 2
#endif

/* Takes up to two batches, and breaks off. */
static void try_shortly(struct oa_client *client, unsigned batches)
{
	const struct oa_options options = options_of(4, 1);
	struct oa_stream *stream = rig_open(client, &options);

	for (unsigned i = 0; i < batches; i++)
		oa_release(trainee_next(stream));
	oa_close(stream);
}

/* client: NULL: each trial has a connection of its own. */
static void try_often(struct oa_client *client, unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		struct oa_client *own = client ? client : rig_connect();

		try_shortly(own, round % 3);
		if (!client)
			oa_disconnect(own);
	}
}

/* Of memory itself it counts whether it grew more than by what so many opens may leave. */
static bool has_grown(const struct footprint *before, const struct footprint *after)
{
	return after->maps > before->maps + MAPS || after->their_maps > before->their_maps + MAPS ||
	       after->rss > before->rss + GROWTH || after->their_rss > before->their_rss + GROWTH;
}

/* Case 9: break and open again, each time a new stream of the same connection, or short trials, each
 * with a connection of its own to a stream that stays: nothing grows. What more jobs at once than
 * ever before took of memory once is no growth: that would be there in each stretch. */
START_TEST(opening_again_costs_nothing)
{
	static const struct {
		const char *linger;
		unsigned rounds;
		double streams;
		bool connects;
	} ways[] = {{"linger_s=0", BREAKS, 0, false}, {"linger_s=600", TRIALS, 1, true}};
	struct footprint before, after;
	struct oa_client *client;
	unsigned stretches = 0;

	rig_start("workers=1", "chunk=4", "slots=4", "arena=1M", ways[_i].linger, NULL);
	dataset = rig_pictures("again", 40, 2, 32);
	client = ways[_i].connects ? NULL : rig_connect();
	try_often(client, ways[_i].rounds / 10);
	ck_assert(rig_wait_status("streams", ways[_i].streams, ways[_i].streams));
	after = footprint(0);
	do {
		before = after;
		try_often(client, ways[_i].rounds);
		ck_assert(rig_wait_status("streams", ways[_i].streams, ways[_i].streams));
		ck_assert(rig_wait_status("node.memory_used", 0, before.memory));
		after = footprint(before.their_fds);
		ck_assert_uint_le(after.fds, before.fds + 1);
		ck_assert_uint_le(after.their_fds, before.their_fds + 2);
	} while (has_grown(&before, &after) && ++stretches < 5);
	ck_assert_msg(stretches < 5, "ours: %g bytes, %u maps, accessd's: %g bytes, %u maps",
		      after.rss, after.maps, after.their_rss, after.their_maps);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Cases 10, 11: limits of the job's own are named; accessd keeps nothing half open. */
START_TEST(limits_are_named)
{
	static const struct {
		int resource;
		rlim_t limit;
	} limits[] = {{RLIMIT_NOFILE, 0}, {RLIMIT_AS, 0}};
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream = NULL;
	struct oa_batch *batch;
	struct oa_options options;
	struct oa_client *client;
	struct rlimit old, low;
	int r;

	rig_start("workers=1", NULL);
	dataset = rig_pictures("limits", 64, 2, 32);
	options = options_of(8, 1);
	client = rig_connect();
	getrlimit((unsigned)limits[_i].resource, &old);
	low = old;
	if (limits[_i].resource == RLIMIT_NOFILE) {
		/* room for the connection and two of the four descriptors that come with it */
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		close(fd);
		low.rlim_cur = (rlim_t)fd + 3;
	} else {
		low.rlim_cur = 1 << 20; /* less than is mapped already: nothing can be added */
	}
	setrlimit((unsigned)limits[_i].resource, &low);
	r = oa_open(client, &options, &stream, &error);
	setrlimit((unsigned)limits[_i].resource, &old);
	ck_assert_msg(r == OA_E_LIMIT || r == -ENOMEM, "%s: %s", oa_error_name(r), error.text);
	if (limits[_i].resource == RLIMIT_NOFILE)
		ck_assert_msg(strstr(error.text, "NOFILE") || strstr(error.text, "ulimit"), "%s",
			      error.text);
	ck_assert(rig_wait_status("jobs", 0, 0));
	stream = rig_open(client, &options);
	batch = trainee_next(stream);
	ck_assert_ptr_nonnull(batch);
	ck_assert_uint_eq(trainee_count_wrong(batch, 64, 2), 0);
	oa_release(batch);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Case 10: whatever the number of descriptors that a process may still open, connecting and opening
 * work or say why not, and nothing stays behind. Locked memory is none of ours. */
START_TEST(any_number_of_descriptors)
{
	struct rlimit old, low, none = {0, 0};
	struct oa_options options;
	unsigned before, good = 0;
	int first;

	rig_start("workers=1", NULL);
	dataset = rig_pictures("few", 64, 2, 32);
	options = options_of(8, 1);
	setrlimit(RLIMIT_MEMLOCK, &none);
	first = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(first);
	before = rig_count_fds(getpid());
	getrlimit(RLIMIT_NOFILE, &old);
	for (rlim_t more = 0; more < 16; more++) {
		struct oa_error error = {.size = sizeof(error)};
		struct oa_client *client = NULL;
		struct oa_stream *stream = NULL;
		struct oa_batch *batch = NULL;
		int r;

		low = old;
		low.rlim_cur = (rlim_t)first + more;
		setrlimit(RLIMIT_NOFILE, &low);
		r = oa_connect(rig_host.socket, &client, &error);
		if (r == 0)
			r = oa_open(client, &options, &stream, &error);
		if (r == 0) {
			good++;
			ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
			ck_assert_uint_eq(trainee_count_wrong(batch, 64, 2), 0);
			oa_release(batch);
		} else {
			ck_assert_uint_eq(good, 0);
			ck_assert_msg(r == OA_E_LIMIT || r == -EMFILE, "%s: %s", oa_error_name(r),
				      error.text);
			ck_assert_msg(strstr(error.text, "NOFILE") || strstr(error.text, "ulimit"),
				      "%s", error.text);
		}
		oa_close(stream);
		oa_disconnect(client);
		setrlimit(RLIMIT_NOFILE, &old);
		ck_assert(rig_wait_status("jobs", 0, 0));
		ck_assert_uint_eq(rig_count_fds(getpid()), before);
	}
	ck_assert_uint_gt(good, 0);
	ck_assert_uint_lt(good, 16);
	rig_end();
}
END_TEST

struct run { /* one life of a job that resumes */
	enum oa_bad bad;
	uint8_t seen[256];
	void *token;
	size_t token_size;
};

/* Takes at most batches batches from where the token stands; counts ids; a new token. true: the
 * end. */
static bool run_on(struct run *run, uint32_t batch_size, unsigned batches, unsigned beyond)
{
	struct oa_options options = options_of(batch_size, 1);
	struct oa_client *client = rig_connect();
	struct oa_stream *stream;
	struct oa_batch *batch = NULL;
	bool ended = false;
	size_t size = 0;

	options.bad = run->bad;
	options.bad_budget = 20;
	options.token = run->token;
	options.token_size = run->token_size;
	stream = rig_open(client, &options);
	for (unsigned i = 0; i < batches && !ended; i++) {
		batch = trainee_next(stream);
		ended = !batch;
		for (uint32_t k = 0; batch && k < trainee_info(batch).count; k++)
			run->seen[trainee_info(batch).ids[k]]++;
		oa_release(batch);
	}
	free(run->token);
	ck_assert_int_eq(oa_state(stream, NULL, &size), -ENOBUFS);
	run->token = malloc(size);
	ck_assert_int_eq(oa_state(stream, run->token, &size), 0);
	run->token_size = size;
	for (unsigned i = 0; i < beyond && !ended;
	     i++) { /* after the token: not counted (case 20) */
		batch = trainee_next(stream);
		if (!batch)
			break;
		oa_release(batch);
	}
	oa_close(stream);
	oa_disconnect(client);
	return ended;
}

/* Cases 20, 53: resumed at the start, in the middle with another batch size, behind what was
 * delivered, at the last batch and after the end, also by a new accessd: each id exactly once. */
START_TEST(tokens_resume_anywhere)
{
	static const struct {
		uint32_t batch;
		unsigned batches, beyond;
		bool restart;
	} lives[] = {
	    {16, 0, 3, false}, {16, 3, 0, false}, {7, 2, 5, false},   {16, 0, 0, true},
	    {5, 4, 9, true},   {16, 1, 1, false}, {25, 4, 1, false},  {5, 0, 9, true},
	    {5, 1, 1, false},  {9, 0, 0, false},  {9, 1000, 0, true},
	}; /* 98 samples, 198 of 203, then the last batch, then the end */
	struct run run = {.token = NULL};
	bool ended = false;

	rig_start("workers=2", NULL);
	dataset = rig_pictures("tokens", 203, 2, 32);
	for (size_t i = 0; i < BASE_ARRAY_LEN(lives); i++) {
		ended = run_on(&run, lives[i].batch, lives[i].batches, lives[i].beyond);
		if (lives[i].restart) {
			rig_end();
			rig_start("workers=2", NULL);
		}
	}
	ck_assert(ended);
	for (unsigned i = 0; i < 203; i++)
		ck_assert_msg(run.seen[i] == 1, "sample %u came %u times", i, run.seen[i]);
	ck_assert(run_on(&run, 16, 1, 0)); /* after the end */
	for (unsigned i = 0; i < 203; i++)
		ck_assert_uint_eq(run.seen[i], 1);
	free(run.token);
	rig_end();
}
END_TEST

START_TEST(foreign_tokens_are_refused)
{
	struct oa_error error = {.size = sizeof(error)};
	struct run run = {.token = NULL};
	struct oa_stream *stream = NULL;
	struct oa_options options;
	struct oa_client *client;
	unsigned refused = 0;

	rig_start("workers=1", NULL);
	dataset = rig_pictures("foreign", 203, 2, 32);
	run_on(&run, 16, 3, 0);
	client = rig_connect();
	options = options_of(16, 1);
	options.token = run.token;
	for (size_t i = 0; i < run.token_size; i += 1 + run.token_size / 64) { /* damaged */
		((uint8_t *)run.token)[i] ^= 0x41;
		options.token_size = run.token_size;
		refused += oa_open(client, &options, &stream, &error) == OA_E_TOKEN;
		((uint8_t *)run.token)[i] ^= 0x41;
		options.token_size = i; /* truncated; without any there is no token */
		refused += i == 0 || oa_open(client, &options, &stream, &error) == OA_E_TOKEN;
		refused -= 2;
	}
	ck_assert_uint_eq(refused, 0);
	options.token_size = run.token_size; /* of another dataset */
	options.dataset = rig_pictures("another", 203, 3, 33);
	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_TOKEN);
	options.dataset = dataset;
	stream = rig_open(client, &options);
	oa_close(stream);
	oa_disconnect(client);
	free(run.token);
	rig_end();
}
END_TEST

/* Case 41: two jobs of one stream see the same substitute under the same id; a resume keeps ids. */
START_TEST(sharers_see_the_same_substitute)
{
	struct oa_stream *streams[2];
	struct oa_options options;
	struct oa_client *client;
	struct run run = {.bad = OA_BAD_SUBSTITUTE};
	int shown[2][120];
	unsigned substituted = 0;

	rig_start("workers=2", NULL);
	dataset = rig_pictures("same", 120, 2, 32);
	for (unsigned i = 10; i < 60; i += 10)
		ck_assert_int_eq(truncate(rig_path("same/class_0000/%06u.jpg", i), 100), 0);
	options = options_of(8, 1);
	options.pipeline = "imagenet-train-u8";
	options.bad = OA_BAD_SUBSTITUTE;
	options.bad_budget = 20;
	client = rig_connect();
	streams[0] = rig_open(client, &options);
	streams[1] = rig_open(client, &options);
	for (unsigned round = 0; round < 15; round++)
		for (unsigned s = 0; s < 2; s++) {
			struct oa_batch *batch = trainee_next(streams[s]);

			ck_assert_ptr_nonnull(batch);
			for (uint32_t i = 0; i < trainee_info(batch).count; i++)
				shown[s][trainee_info(batch).ids[i]] = trainee_shown(batch, i);
			oa_release(batch);
		}
	for (int i = 0; i < 120; i++) {
		ck_assert_int_ge(shown[0][i], 0);
		ck_assert_int_eq(shown[0][i], shown[1][i]);
		substituted += shown[0][i] != i;
	}
	ck_assert_uint_eq(substituted, 5);
	/* and over a resume each id comes once, the bad ones among them */
	ck_assert(!run_on(&run, 8, 6, 2));
	ck_assert(run_on(&run, 7, 1000, 0));
	for (unsigned i = 0; i < 120; i++)
		ck_assert_msg(run.seen[i] == 1, "sample %u came %u times", i, run.seen[i]);
	free(run.token);
	oa_close(streams[0]);
	oa_close(streams[1]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, pixels_belong_to_their_ids, 0, 2);
	tcase_add_test(tcase, keeping_batches_is_an_error_with_a_way_out);
	tcase_add_loop_test(tcase, a_batch_of_many_chunks_comes_beside_a_kept_one, 0, 2);
	tcase_add_test(tcase, waits_end_when_they_should);
	tcase_add_test(tcase, a_job_ends_though_accessd_is_gone);
	tcase_add_test(tcase, a_process_ends_though_accessd_is_gone);
	tcase_add_test(tcase, who_runs_may_open_more_of_a_closed_node);
	tcase_add_loop_test(tcase, opening_again_costs_nothing, 0, 2);
	tcase_add_loop_test(tcase, limits_are_named, 0, LIMITS);
	tcase_add_test(tcase, any_number_of_descriptors);
	tcase_add_test(tcase, tokens_resume_anywhere);
	tcase_add_test(tcase, foreign_tokens_are_refused);
	tcase_add_test(tcase, sharers_see_the_same_substitute);
}

int main(void)
{
	return rig_main("client", add);
}
