/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs with different pipelines over one dataset, against a real accessd: they share a stream and its
 * decoding, each gets what it gets alone, bit for bit; variants come and go, give their memory back, and
 * survive whatever dies.
 */

#include "tests/scenarios/runs.h"
#include "tests/scenarios/trainee.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DECODE "[{\"op\":\"decode\"},"
#define CROP(size) "{\"op\":\"random_resized_crop\",\"size\":" #size "}"
#define LAYOUT ",{\"op\":\"layout\"}]"

static const char *const specs[] = {
    DECODE CROP(24) LAYOUT,
    DECODE CROP(16) ",{\"op\":\"hflip\"},{\"op\":\"cast\"}" LAYOUT,
    DECODE "{\"op\":\"resize\",\"size\":32},{\"op\":\"center_crop\",\"size\":20}" LAYOUT,
    DECODE CROP(24) ",{\"op\":\"hflip\",\"p\":1}]",
};
#define N_SPECS 4
#define DEALT_EPOCHS 10

static const char *dataset;

static double decodes(void)
{
	return rig_status("node.samples_preprocessed");
}

static struct oa_options options_of(unsigned spec, enum oa_order order, uint64_t seed,
				    uint32_t batch)
{
	struct oa_options options = runs_options(dataset, order, seed, batch);

	options.pipeline = specs[spec % N_SPECS];
	return options;
}

/* ---- the same as alone ---- */

struct run { /* of a job, beside others */
	struct oa_stream *stream;
	struct hash *hash;
	char plan[PATH_MAX];
	bool has_ended;
};

static void run_begin(struct run *run, struct oa_client *client, const struct oa_options *options)
{
	run->has_ended = false;
	run->stream = rig_open(client, options);
	ck_assert_int_eq(hash_new(&run->hash), 0);
}

/* A batch each, until all have ended. */
static void take_turns(struct run *runs, unsigned n)
{
	for (unsigned ended = 0; ended < n;) {
		for (unsigned i = 0; i < n; i++) {
			struct oa_batch *batch =
			    runs[i].has_ended ? NULL : runs_next(runs[i].stream);

			if (batch)
				runs_digest_batch(runs[i].hash, batch);
			else
				ended += !runs[i].has_ended;
			runs[i].has_ended = !batch;
			oa_release(batch);
		}
	}
}

static struct hash_id run_end(struct run *run)
{
	struct hash_id id;

	hash_finish(run->hash, &id);
	hash_free(run->hash);
	oa_close(run->stream);
	return id;
}

/* A stream that everybody left ends in its own time. */
static void assert_one_stream(void)
{
	ck_assert(rig_wait_status("streams.1.id", -1, -1));
}

/* Dealt beside each other, decoded once; replayed each alone. */
START_TEST(a_dealt_plan_is_as_alone)
{
	struct run runs[N_SPECS];
	struct hash_id id[N_SPECS];
	struct oa_client *client;

	dataset = runs_photos("dealt");
	rig_start("workers=2", "chunk=12", "slots=16", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < N_SPECS; i++) {
		struct oa_options options = options_of(i, OA_ORDER_USUAL, 0, 6);

		snprintf(runs[i].plan, sizeof(runs[i].plan), "%s", rig_path("%u.plan", i));
		options.record = runs[i].plan;
		options.epochs = DEALT_EPOCHS;
		run_begin(&runs[i], client, &options);
	}
	ck_assert_double_eq(rig_status("streams.0.jobs"), N_SPECS);
	ck_assert_double_eq(rig_status("streams.0.variants.3.jobs"), 1);
	assert_one_stream();
	take_turns(runs, N_SPECS);
	/* Not four times, though it begins with one job alone, and how far that comes depends on the
	 * machine; and each of them four times. */
	ck_assert_double_ge(decodes(), DEALT_EPOCHS * RUNS_SAMPLES);
	ck_assert_double_le(decodes(), 2 * DEALT_EPOCHS * RUNS_SAMPLES);
	/* the third is not random: what is resident serves it again */
	ck_assert_double_ge(rig_status("node.outputs"),
			    (N_SPECS - 1) * DEALT_EPOCHS * RUNS_SAMPLES);
	for (unsigned i = 0; i < N_SPECS; i++)
		id[i] = run_end(&runs[i]);
	oa_disconnect(client);
	rig_end();
	rig_start("workers=1", "chunk=7", "variants=1", NULL);
	for (unsigned i = 0; i < N_SPECS; i++) {
		struct oa_options options = options_of(i, OA_ORDER_REPLAY, 0, 6);

		options.epochs = 0;
		options.replay = runs[i].plan;
		runs_assert_same(runs_digest(&options), id[i]);
	}
	rig_end();
}
END_TEST

/* A plan from a seed is what it is alone, whoever is beside it; with the same seed it is decoded once,
 * too. */
START_TEST(a_seeded_plan_is_as_alone)
{
	struct hash_id id[2 * N_SPECS];
	struct run runs[2 * N_SPECS];
	struct oa_client *client;

	dataset = runs_photos("seeded");
	rig_start("workers=2", "chunk=8", "variants=1", NULL);
	for (unsigned i = 0; i < 2 * N_SPECS; i++) {
		struct oa_options options =
		    options_of(i, OA_ORDER_SEEDED, 5 + i / N_SPECS, 4 + 3 * (i % 3));

		id[i] = runs_digest(&options);
	}
	rig_end();
	rig_start("workers=2", "chunk=12", "slots=24", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 2 * N_SPECS; i++) {
		struct oa_options options =
		    options_of(i, OA_ORDER_SEEDED, 5 + i / N_SPECS, 4 + 3 * (i % 3));

		run_begin(&runs[i], client, &options);
	}
	ck_assert_double_eq(rig_status("streams.0.jobs"), 2 * N_SPECS);
	take_turns(runs, 2 * N_SPECS);
	ck_assert_double_le(decodes(), 2 * 2 * RUNS_EPOCHS * RUNS_SAMPLES);
	for (unsigned i = 0; i < 2 * N_SPECS; i++)
		runs_assert_same(run_end(&runs[i]), id[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- coming and going ---- */

/* Waits until nothing of the variants but the first is left. */
static void assert_alone(double memory)
{
	ck_assert(rig_wait_status("streams.0.variants.1.number", -1, -1));
	ck_assert(rig_wait_status("streams.0.memory", memory, memory));
	assert_one_stream();
}

/* More variants one after the other than there are numbers, beside a job that never ends. */
START_TEST(numbers_are_used_again)
{
	struct oa_options options;
	struct trainee_seen seen;
	struct oa_client *client;
	struct oa_stream *lasting, *stream;
	char spec[256];
	double memory;

	dataset = rig_pictures("again", 60, 3, 32);
	rig_start("workers=2", "chunk=8", "slots=8", "linger_s=0", NULL);
	client = rig_connect();
	options = trainee_options(dataset, 4, 0);
	lasting = rig_open(client, &options);
	ck_assert(rig_wait_status("streams.0.memory", 1, 1e12));
	memory = rig_status("streams.0.memory");
	for (unsigned i = 0; i < 11; i++) {
		snprintf(spec, sizeof(spec), DECODE "{\"op\":\"resize\",\"size\":[%u,%u]}]", 8 + i,
			 30 - i);
		options = trainee_options(dataset, 5, 1);
		options.pipeline = spec;
		stream = rig_open(client, &options);
		ck_assert_double_gt(rig_status("streams.0.memory"), memory);
		seen = (struct trainee_seen){.count = {0}};
		for (struct oa_batch *batch; (batch = trainee_next(stream)); oa_release(batch)) {
			struct oa_field image;

			trainee_see(&seen, batch);
			trainee_field(batch, "image", &image);
			ck_assert_uint_eq(image.shape[1], 8 + i);
			for (uint32_t k = 0; k < trainee_info(batch).count; k++)
				ck_assert_int_eq(rig_number_of((const uint8_t *)image.data +
							       k * (size_t)image.strides[0]),
						 trainee_info(batch).ids[k]);
			trainee_train(lasting, 1, &seen);
		}
		oa_close(stream);
		assert_alone(memory);
	}
	oa_close(lasting);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- what people are told ---- */

static void assert_told(struct oa_stream *stream, const char *text)
{
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_stream_stats(stream, &stats);
	ck_assert_str_eq(stats.shares, text);
}

START_TEST(the_open_says_what_is_shared)
{
	static const unsigned order[] = {0, 0, 1, 3, 0};
	static const char *const told[] = {
	    "is alone on its stream",
	    "shares its stream with 1 other job",
	    "shares its stream with 2 other jobs: decode with 2 (random_resized_crop: size "
	    "differs)",
	    "shares its stream with 3 other jobs: decode and random_resized_crop with 2 (hflip "
	    "here, layout there), decode with 1 (random_resized_crop: size differs)",
	    "shares its stream with 4 other jobs: all of it with 2, decode with 1 "
	    "(random_resized_crop: size differs), decode and random_resized_crop with 1 (layout "
	    "here, hflip there)",
	};
	struct oa_stream *streams[BASE_ARRAY_LEN(order)];
	struct oa_client *client;

	dataset = rig_pictures("told", 20, 2, 32);
	rig_start("workers=1", "chunk=8", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(order); i++) {
		struct oa_options options = trainee_options(dataset, 4, 1);

		options.pipeline = specs[order[i]];
		streams[i] = rig_open(client, &options);
		assert_told(streams[i], told[i]);
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(order); i++)
		oa_close(streams[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* A sample that is bad is bad in all variants, by one policy, and told once to each job. */
START_TEST(a_bad_sample_is_bad_for_all)
{
	struct trainee_seen seen[3] = {0};
	struct oa_stream *streams[3];
	struct oa_client *client;
	unsigned ended = 0;

	dataset = rig_pictures("bad", 40, 2, 32);
	ck_assert_int_eq(truncate(rig_path("bad/class_0000/000007.jpg"), 200), 0);
	rig_start("workers=1", "chunk=8", "slots=8", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 3; i++) {
		struct oa_options options = trainee_options(dataset, 4, 2);

		options.pipeline = specs[i];
		options.bad = OA_BAD_SKIP;
		streams[i] = rig_open(client, &options);
	}
	while (ended < 3) {
		ended = 0;
		for (unsigned i = 0; i < 3; i++)
			ended += trainee_train(streams[i], 1, &seen[i]) == 0;
	}
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned id = 0; id < 40; id++)
			ck_assert_uint_eq(seen[i].count[id], id == 7 ? 0 : 2);
		oa_close(streams[i]);
	}
	ck_assert_double_eq(rig_status("node.bad_samples"), 1);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- memory ---- */

#define LARGE "{\"op\":\"resize\",\"size\":[256,256]},{\"op\":\"cast\"}]"

/* A variant that does not fit beside what is there is refused with the numbers; the others go on. */
START_TEST(too_large_a_variant_is_refused)
{
	struct oa_options options;
	struct trainee_seen seen = {.count = {0}};
	struct oa_client *client;
	struct oa_stream *stream;

	dataset = rig_pictures("refused", 60, 3, 32);
	rig_start("workers=1", "chunk=32", "memory=48M", "arena=1M", NULL);
	client = rig_connect();
	options = trainee_options(dataset, 4, 2);
	options.pipeline = specs[0];
	stream = rig_open(client, &options);
	trainee_train(stream, 3, &seen);
	options = trainee_options(dataset, 4, 1);
	options.pipeline = DECODE LARGE;
	runs_assert_refused(&options, OA_E_MEMORY, "is free: raise `memory`");
	ck_assert_double_eq(rig_status("streams.0.variants.1.number"), -1);
	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, 60, 2));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Where many slots of it do not fit, but few do, it gets a stream of its own. */
START_TEST(a_variant_without_room_has_its_own_stream)
{
	struct oa_options options;
	struct trainee_seen seen = {.count = {0}};
	struct oa_client *client;
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_stream *many[6], *apart;

	dataset = rig_pictures("apart", 60, 3, 32);
	/* a slot of it is 24 MiB: 4 fit, 12 do not */
	rig_start("workers=1", "chunk=32", "memory=160M", "arena=1M", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(many); i++) {
		options = trainee_options(dataset, 4, 1);
		options.pipeline = specs[0];
		many[i] = rig_open(client, &options);
	}
	options = trainee_options(dataset, 4, 1);
	options.pipeline = DECODE LARGE;
	apart = rig_open(client, &options);
	ck_assert_double_gt(rig_status("streams.1.id"), 0);
	ck_assert_double_eq(rig_status("streams.0.variants.1.number"), -1);
	ck_assert_double_eq(rig_status("streams.1.variants.1.number"), -1);
	oa_stream_stats(apart, &stats);
	ck_assert_msg(strstr(stats.shares, "is alone on its stream: to share decode with others it "
					   "would need") != NULL,
		      "%s", stats.shares);
	trainee_train(apart, 0, &seen);
	ck_assert(trainee_saw_all(&seen, 60, 1));
	oa_close(apart);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(many); i++)
		oa_close(many[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- deaths ---- */

#define SAMPLES 90

struct lifer { /* a job in a process that trains epoch after epoch until it is told to stop */
	pid_t pid;
	int stop_fd;
};

/* Is what the batch shows of each sample its own? Pictures are of one colour, so crops are, too. */
static bool shows_right(const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field image;

	trainee_field(batch, "image", &image);
	for (uint32_t i = 0; i < info.count; i++) {
		const uint8_t *at = (const uint8_t *)image.data + i * (size_t)image.strides[0];
		const size_t step = (size_t)image.strides[image.shape[1] == 3 ? 1 : 3];
		uint8_t rgb[3];

		for (unsigned c = 0; c < 3; c++)
			rgb[c] = image.dtype == OA_U8
				     ? at[c * step]
				     : (uint8_t)(*(const float *)(at + c * step) * 255 + 0.5f);
		if (rig_number_of(rgb) != info.ids[i])
			return false;
	}
	return true;
}

static bool is_told(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

/* Status 0: each sample once in each epoch, all of them right. */
_Noreturn static void live(unsigned spec, int stop_fd)
{
	struct oa_options options = trainee_options(dataset, 4 + 3 * (spec % 3), 0);
	struct oa_error error = {.size = sizeof(error)};
	struct trainee_seen seen = {.count = {0}};
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	options.pipeline = specs[spec % N_SPECS];
	if (oa_connect(rig_host.socket, &client, &error) ||
	    oa_open(client, &options, &stream, &error))
		_exit(10);
	while (oa_next(stream, PATIENCE_MS, &batch) == 0) {
		struct oa_batch_info info = trainee_info(batch);

		trainee_see(&seen, batch);
		if (!shows_right(batch))
			_exit(11);
		oa_release(batch);
		if (!info.is_last)
			continue;
		if (!trainee_saw_all(&seen, SAMPLES, (unsigned)info.epoch + 1))
			_exit(12);
		if (is_told(stop_fd))
			_exit(0);
	}
	fprintf(stderr, "a job: %s\n", oa_error_text(stream));
	_exit(13);
}

static struct lifer lifer_start(unsigned spec)
{
	struct lifer lifer;
	int pair[2];

	ck_assert_int_eq(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	lifer.pid = fork();
	ck_assert_int_ge(lifer.pid, 0);
	if (lifer.pid == 0) {
		close(pair[1]);
		live(spec, pair[0]);
	}
	close(pair[0]);
	lifer.stop_fd = pair[1];
	return lifer;
}

static void lifer_end(struct lifer *lifer)
{
	int status;

	ck_assert_int_eq(write(lifer->stop_fd, "", 1), 1); /* its siblings have the pipe, too */
	close(lifer->stop_fd);
	ck_assert_int_eq(waitpid(lifer->pid, &status, 0), lifer->pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

static void lifer_kill(struct lifer *lifer)
{
	kill(lifer->pid, SIGKILL);
	waitpid(lifer->pid, NULL, 0);
	close(lifer->stop_fd);
}

/* Until so many samples more were made for everybody who is there. */
static void let_run(unsigned n)
{
	ck_assert(rig_wait_status("node.outputs", rig_status("node.outputs") + n, 1e15));
}

static void all_are_there(unsigned n)
{
	ck_assert(rig_wait_status("streams.0.jobs", n, n));
	assert_one_stream();
	let_run(4 * SAMPLES);
}

#define N_LIFERS 5
#define SETTINGS "workers=2", "chunk=8", "linger_s=0"

static void disturb(unsigned how)
{
	static const struct {
		const char *pid, *restarts;
	} ours[] = {
	    {"workers.0.pid", "node.worker_restarts"},
	    {"node.parent_pid", "node.parent_restarts"},
	    {"node.reader_pid", "node.reader_restarts"},
	};
	double before;

	if (how == BASE_ARRAY_LEN(ours)) {
		rig_restart(SETTINGS, NULL);
		return;
	}
	before = rig_status(ours[how].restarts);
	rig_kill(ours[how].pid, SIGKILL);
	ck_assert(rig_wait_status(ours[how].restarts, before + 1, 1e9));
}

/* Whatever dies, each job has each sample once an epoch, and they share again. */
START_TEST(deaths_are_survived)
{
	struct lifer lifers[N_LIFERS];

	dataset = rig_pictures("deaths", SAMPLES, 3, 32);
	rig_start(SETTINGS, NULL);
	for (unsigned i = 0; i < N_LIFERS; i++)
		lifers[i] = lifer_start(i);
	all_are_there(N_LIFERS);
	for (unsigned round = 0; round < 3; round++) {
		disturb((unsigned)_i);
		all_are_there(N_LIFERS);
	}
	for (unsigned i = 0; i < N_LIFERS; i++)
		lifer_end(&lifers[i]);
	ck_assert(rig_wait_status("node.memory_used", 0, 0));
	rig_end();
}
END_TEST

/* Jobs are killed and others come, of any variant, at any moment. */
START_TEST(jobs_die_and_come)
{
	struct lifer lifers[N_LIFERS];

	dataset = rig_pictures("jobs", SAMPLES, 3, 32);
	rig_start(SETTINGS, NULL);
	for (unsigned i = 0; i < N_LIFERS; i++)
		lifers[i] = lifer_start(i);
	for (unsigned round = 0; round < 12; round++) {
		unsigned i = round * 3 % N_LIFERS;

		let_run(37 + 61 * (round % 4));
		lifer_kill(&lifers[i]);
		if (round % 2)
			let_run(SAMPLES);
		lifers[i] = lifer_start(round);
	}
	all_are_there(N_LIFERS);
	for (unsigned i = 0; i < N_LIFERS; i++)
		lifer_end(&lifers[i]);
	ck_assert(rig_wait_status("node.memory_used", 0, 0));
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_dealt_plan_is_as_alone);
	tcase_add_test(tcase, a_seeded_plan_is_as_alone);
	tcase_add_test(tcase, numbers_are_used_again);
	tcase_add_test(tcase, the_open_says_what_is_shared);
	tcase_add_test(tcase, a_bad_sample_is_bad_for_all);
	tcase_add_test(tcase, too_large_a_variant_is_refused);
	tcase_add_test(tcase, a_variant_without_room_has_its_own_stream);
	tcase_add_loop_test(tcase, deaths_are_survived, 0, 4);
	tcase_add_test(tcase, jobs_die_and_come);
}

int main(void)
{
	return rig_main("variants", add);
}
