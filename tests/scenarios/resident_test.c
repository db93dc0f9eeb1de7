/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What of the kept forms lies ready in memory, against a real accessd: a job gets the bytes that it gets without
 * (digests over ids, pixels and labels), whoever dies meanwhile, and never more memory is taken than allowed.
 */

#include "tests/scenarios/runs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVAL_SPEC                                                                        \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":120},{\"op\":\"center_crop\"," \
	"\"size\":100},{\"op\":\"cast\",\"dtype\":\"u8\"}]"
#define KEEPS "cache_size=256M", "cache_force=1", "linger_s=0", "chunk=16", "workers=2"
#define MIB 1048576.0

#define EPOCHS 8
static const char *dataset;
static double served; /* samples that jobs of this accessd had: at most so many came from memory */

/* ---- means ---- */

static struct oa_options options_of(const char *pipeline, uint32_t epochs)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 7, 8);

	options.epochs = epochs;
	if (pipeline)
		options.pipeline = pipeline;
	return options;
}

static void digest_one(struct hash *hash, struct oa_batch *batch)
{
	runs_digest_batch(hash, batch);
	oa_release(batch);
}

static struct hash_id run(const char *pipeline)
{
	const struct oa_options options = options_of(pipeline, EPOCHS);
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);
	struct hash_id id = runs_digest_stream(stream);

	served += EPOCHS * RUNS_SAMPLES;
	oa_close(stream);
	oa_disconnect(client);
	ck_assert(rig_wait_status("streams.0.id", -1, -1)); /* what is resident would be no news */
	return id;
}

static struct hash_id digest_without(const char *pipeline)
{
	struct hash_id id;

	rig_start("cache_size=0", "linger_s=0", "chunk=16", "workers=2", NULL);
	id = run(pipeline);
	ck_assert(rig_status("caches.0.memory_limit") <= 0);
	ck_assert(rig_status("caches.0.memory_used") <= 0);
	rig_end();
	served = 0;
	return id;
}

static double memory_of(const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "caches.0.memory_%s", what);
	return rig_status(path);
}

/* Runs until a whole run is served from memory, all samples of it: each gives the same bytes. */
static void fill(const char *pipeline, struct hash_id same, double values)
{
	for (unsigned i = 0; memory_of("values") < values || memory_of("hits") < values; i++) {
		ck_assert_msg(i < 100, "%g values are in memory, of %g on the disk, %g hits",
			      memory_of("values"), rig_status("caches.0.values"),
			      memory_of("hits"));
		runs_assert_same(run(pipeline), same);
		rig_sleep_ms(100);
	}
}

/* Its samples come from memory: more did than could have before. */
static void expect_hits(const char *pipeline, struct hash_id same)
{
	const double before = served;

	for (unsigned i = 0; memory_of("hits") <= before; i++) {
		ck_assert_uint_lt(i, 100);
		runs_assert_same(run(pipeline), same);
	}
}

/* ---- what is there ---- */

static const struct {
	const char *point, *pipeline;
} cases[] = {
    {"cache_point=indexed", NULL},
    {"cache_point=packed", NULL},
};

START_TEST(the_same_bytes_from_memory)
{
	const char *point = cases[_i].point, *pipeline = cases[_i].pipeline;
	struct hash_id without;

	dataset = runs_waves("photos");
	without = digest_without(pipeline);
	rig_start(point, "cache_memory=32M", KEEPS, NULL);
	fill(pipeline, without, RUNS_SAMPLES);
	ck_assert_double_eq(memory_of("limit"), 32 * MIB);
	ck_assert_double_eq(memory_of("values"), RUNS_SAMPLES);
	expect_hits(pipeline, without);
	rig_end();
}
END_TEST

START_TEST(from_the_disk_into_memory)
{
	struct hash_id without;

	dataset = runs_waves("photos");
	without = digest_without(EVAL_SPEC);
	rig_start("cache_point=deepest", "cache_memory=32M", KEEPS, NULL);
	fill(EVAL_SPEC, without, RUNS_SAMPLES);
	rig_restart("cache_point=deepest", "cache_memory=32M", KEEPS, NULL);
	fill(EVAL_SPEC, without, RUNS_SAMPLES);
	ck_assert(rig_status("caches.0.damaged") <= 0);
	rig_end();
}
END_TEST

/* Other pipelines that begin alike are other streams here: what is in memory is there once. */
START_TEST(streams_of_one_dataset_share)
{
	struct hash_id without, eval_without;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	eval_without = digest_without(EVAL_SPEC);
	rig_start("cache_point=packed", "variants=1", KEEPS, NULL);
	fill(NULL, without, RUNS_SAMPLES);
	expect_hits(EVAL_SPEC, eval_without);
	ck_assert_double_eq(memory_of("values"), RUNS_SAMPLES);
	rig_end();
}
END_TEST

/* Decoded pictures of 192 KiB in memory for ten of them: the same ones, and when another data set needs the
 * place it gets it. */
START_TEST(a_part_fits)
{
	struct hash_id without, other_without;
	const char *photos = runs_waves("photos"), *others = runs_waves("others");

	dataset = others;
	other_without = digest_without(NULL);
	dataset = photos;
	without = digest_without(NULL);
	rig_start("cache_point=decoded", "cache_memory=3M", KEEPS, NULL);
	fill(NULL, without, 10);
	for (unsigned i = 0; i < 3; i++)
		runs_assert_same(run(NULL), without);
	ck_assert_double_eq(memory_of("values"), 10);
	ck_assert_double_eq(memory_of("limit"), 2 * MIB);
	ck_assert_double_eq(memory_of("used"), 2 * MIB);
	dataset = others;
	for (double before = served; memory_of("hits") <= before * 10 / RUNS_SAMPLES;) {
		ck_assert_double_lt(served, 100 * before);
		runs_assert_same(run(NULL), other_without);
		ck_assert_double_le(memory_of("used"), 2 * MIB);
	}
	rig_end();
}
END_TEST

/* ---- whoever dies ---- */

/* Its tasks point into the memory while the next one begins to write to it. */
START_TEST(readers_die_beside_it)
{
	const uint32_t epochs = 90;
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash_id without, with;
	struct hash *hash;

	dataset = runs_waves("photos");
	options = options_of(NULL, epochs);
	rig_start("cache_size=0", "linger_s=0", "chunk=16", "workers=2", NULL);
	without = runs_digest(&options);
	rig_end();
	rig_start("cache_point=packed", "cache_memory=32M", KEEPS, NULL);
	fill(NULL, run(NULL), RUNS_SAMPLES);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (unsigned i = 0; i < 500; i++) {
		struct oa_batch *batch = runs_next(stream);

		if (i % 150 == 75)
			rig_kill("node.reader_pid", SIGKILL);
		digest_one(hash, batch);
	}
	runs_digest_rest(hash, stream);
	hash_finish(hash, &with);
	hash_free(hash);
	runs_assert_same(with, without);
	oa_close(stream);
	oa_disconnect(client);
	fill(NULL, run(NULL), RUNS_SAMPLES); /* it came back */
	rig_end();
}
END_TEST

static void stop_workers(pid_t ret[2])
{
	char path[32];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "workers.%u.pid", i);
		ret[i] = rig_kill(path, SIGSTOP);
	}
}

/* By what they were called: the first one that goes on may end at once, as the queues are others now. */
static void continue_workers(const pid_t pids[2])
{
	for (unsigned i = 0; i < 2; i++)
		kill(pids[i], SIGCONT);
}

/* Tasks that it told of the memory wait for workers, which stand still, while its successor has other tasks. All
 * values are of one size, so that a value that is written too soon is a whole value of another sample. */
START_TEST(tasks_outlive_their_reader)
{
	struct oa_options options, other_options;
	struct oa_client *client, *other_client;
	struct oa_stream *stream, *other;
	struct hash_id without, other_without, with;
	struct oa_batch *batch;
	struct hash *hash;
	pid_t workers[2];

	dataset = runs_waves("photos");
	options = options_of(NULL, EPOCHS);
	other_options = options_of(EVAL_SPEC, EPOCHS);
	other_options.seed++;
	rig_start("cache_size=0", "linger_s=0", "chunk=16", "workers=2", NULL);
	without = runs_digest(&options);
	other_without = runs_digest(&other_options);
	rig_end();
	rig_start("cache_point=decoded", "cache_memory=32M", "variants=1",
		  "sample_timeout_ms=60000", KEEPS, NULL);
	fill(NULL, without, RUNS_SAMPLES);
	client = rig_connect();
	other_client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	digest_one(hash, runs_next(stream));
	stop_workers(workers);
	while (oa_next(stream, 300, &batch) == 0) /* what comes after it is read, from memory */
		digest_one(hash, batch);
	rig_kill("node.reader_pid", SIGKILL);
	ck_assert(rig_wait_status("node.reader_restarts", 1, 1));
	other = rig_open(other_client, &other_options);
	rig_sleep_ms(500); /* as is the other's, but from the disk */
	continue_workers(workers);
	runs_digest_rest(hash, stream);
	hash_finish(hash, &with);
	hash_free(hash);
	runs_assert_same(with, without);
	runs_assert_same(runs_digest_stream(other), other_without);
	oa_close(stream);
	oa_close(other);
	oa_disconnect(client);
	oa_disconnect(other_client);
	rig_end();
}
END_TEST

/* Streams come first: one that needs the memory is admitted, and what is in memory gives way. */
START_TEST(streams_come_first)
{
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash_id without;
	double memory, kept;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=decoded", "cache_memory=16M", "memory=64M", "arena=8M", "slots=4",
		  KEEPS, NULL);
	fill(NULL, without, RUNS_SAMPLES);
	kept = rig_status("node.memory_kept");
	ck_assert_double_ge(kept, 8 * MIB);
	/* A stream that fits without it, and does not with it. */
	options = options_of("[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[512,512]},"
			     "{\"op\":\"cast\",\"dtype\":\"u8\"}]",
			     1);
	client = rig_connect();
	stream = rig_open(client, &options);
	memory = rig_status("node.memory_used");
	ck_assert_double_le(memory, 64 * MIB);
	ck_assert_double_gt(memory + kept, 64 * MIB);
	ck_assert_double_le(rig_status("node.memory_kept") + memory, 64 * MIB);
	ck_assert(rig_wait_status("caches.0.memory_used", 0, 64 * MIB - memory));
	runs_digest_stream(stream);
	oa_close(stream);
	oa_disconnect(client);
	ck_assert(rig_wait_status("streams.0.id", -1, -1));
	fill(NULL, without, RUNS_SAMPLES); /* and comes back */
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_same_bytes_from_memory, 0, (int)BASE_ARRAY_LEN(cases));
	tcase_add_test(tcase, from_the_disk_into_memory);
	tcase_add_test(tcase, streams_of_one_dataset_share);
	tcase_add_test(tcase, a_part_fits);
	tcase_add_test(tcase, readers_die_beside_it);
	tcase_add_test(tcase, tasks_outlive_their_reader);
	tcase_add_test(tcase, streams_come_first);
}

int main(void)
{
	return rig_main("resident", add);
}
