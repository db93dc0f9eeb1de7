/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Orders, against a real accessd. With a fixed plan every byte of a run is a function of (dataset,
 * seed): a digest over ids, pixels and labels, in order of delivery, is the same alone, beside
 * others, with other batches and chunks, after a kill -9 of accessd, and resumed at any point.
 */

#include "tests/scenarios/runs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 67 /* blocks: more than a word of bits has */
#define EVAL_SPEC                                                                               \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[16,16]},{\"op\":\"cast\",\"dtype\":" \
	"\"u8\"}]"

static const char *dataset;

/* What every other run of this plan must give. */
static struct hash_id reference(uint64_t seed)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, seed, 8);
	struct hash_id id;

	rig_start("workers=2", NULL);
	id = runs_digest(&options);
	rig_end();
	return id;
}

START_TEST(a_plan_is_the_same_with_any_batches_and_chunks)
{
	static const struct {
		uint32_t batch;
		const char *chunk;
	} ways[] = {
	    {1, "chunk=1"}, {7, "chunk=16"}, {16, "chunk=7"}, {67, "chunk=5"}, {80, "chunk=80"}};
	struct hash_id id, other;

	dataset = runs_copies("plan", SAMPLES);
	id = reference(5);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		struct oa_options options =
		    runs_options(dataset, OA_ORDER_SEEDED, 5, ways[i].batch);

		rig_start("workers=1", ways[i].chunk, NULL);
		options.flags = i % 2 ? OA_COPY : 0;
		runs_assert_same(runs_digest(&options), id);
		rig_end();
	}
	other = reference(6);
	ck_assert_mem_ne(other.bytes, id.bytes, sizeof(id.bytes));
}
END_TEST

/* A sharer in a process of its own: any order, any seed, any batch. */
static int start_sharer(unsigned number)
{
	static const enum oa_order orders[] = {OA_ORDER_USUAL, OA_ORDER_SEEDED,
					       OA_ORDER_SEQUENTIAL};
	struct oa_options options = runs_options(dataset, orders[number % 3],
						 number % 3 ? 5 + number % 2 : 0, 3 + 4 * number);
	int pid = fork();

	if (pid == 0) {
		runs_digest(&options);
		_exit(0);
	}
	return pid;
}

/* 7 others at once, one of them with the same plan; then alone again: always the same bytes. */
START_TEST(a_plan_is_the_same_beside_others)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct hash_id id;
	int pids[7], status;

	dataset = options.dataset = runs_copies("beside", SAMPLES);
	id = reference(5);
	rig_start("workers=2", "chunk=8", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++)
		pids[i] = start_sharer(i);
	runs_assert_same(runs_digest(&options), id);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pids); i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	runs_assert_same(runs_digest(&options), id);
	rig_end();
}
END_TEST

/* accessd is killed and comes back in the same place, with other settings. */
static void kill_and_restart(void)
{
	rig_restart("chunk=6", "workers=1", NULL);
}

START_TEST(a_plan_is_the_same_after_a_kill)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash_id id, again;
	struct hash *hash;

	dataset = options.dataset = runs_copies("kill", SAMPLES);
	id = reference(5);
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (int i = 0; i < 9; i++) {
		struct oa_batch *batch = runs_next(stream);

		if (i == 4 || i == 8)
			kill_and_restart();
		runs_digest_batch(hash, batch); /* held through the kill */
		oa_release(batch);
	}
	runs_digest_rest(hash, stream);
	hash_finish(hash, &again);
	hash_free(hash);
	runs_assert_same(again, id);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Takes n batches of the stream that goes on from the token; the token is replaced. */
static bool run_part(const struct oa_options *usual, uint32_t batch, unsigned n, void **token,
		     size_t *size, struct hash *hash)
{
	struct oa_options options = *usual;
	struct oa_client *client = rig_connect();
	struct oa_stream *stream;
	struct oa_batch *got = NULL;

	options.batch = batch;
	options.token = *token;
	options.token_size = *size;
	stream = rig_open(client, &options);
	while (n-- && (got = runs_next(stream))) {
		runs_digest_batch(hash, got);
		oa_release(got);
	}
	free(*token);
	*size = 0;
	oa_state(stream, NULL, size);
	ck_assert_uint_le(*size, 256);
	*token = malloc(*size);
	ck_assert_int_eq(oa_state(stream, *token, size), 0);
	oa_close(stream);
	oa_disconnect(client);
	return got != NULL;
}

/* Cut after 1, 2, 3 ... batches, and resumed with another B each time. */
START_TEST(a_plan_resumes_at_any_point)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct hash_id id, again;
	struct hash *hash;

	dataset = options.dataset = runs_copies("resume", SAMPLES);
	id = reference(5);
	rig_start("workers=2", "chunk=8", NULL);
	for (unsigned step = 1; step < 8; step++) {
		void *token = NULL;
		size_t size = 0;
		unsigned part = 0;

		ck_assert_int_eq(hash_new(&hash), 0);
		while (run_part(&options, 1 + (part * 5 + step) % 13, step, &token, &size, hash))
			part++;
		hash_finish(hash, &again);
		hash_free(hash);
		free(token);
		runs_assert_same(again, id);
	}
	rig_end();
}
END_TEST

/* A job of any size, seed, pipeline and number of ranks. */
struct sharer {
	enum oa_order order;
	const char *pipeline;
	uint64_t seed;
	uint32_t batch, ranks;
	struct hash_id id;
};

static void world_digest(const struct oa_options *options, uint32_t ranks, struct hash *hash);

static void *be_sharer(void *arg)
{
	struct sharer *sharer = arg;
	struct oa_options options =
	    runs_options(dataset, sharer->order, sharer->seed, sharer->batch);
	struct hash *hash;

	options.pipeline = sharer->pipeline;
	ck_assert_int_eq(hash_new(&hash), 0);
	world_digest(&options, sharer->ranks, hash);
	hash_finish(hash, &sharer->id);
	hash_free(hash);
	return NULL;
}

/* Case 49: batches, seeds, pipelines and ranks of all kinds over one dataset, at once: each is given
 * what it is given alone. */
START_TEST(each_job_is_as_it_is_alone)
{
	static struct sharer sharers[] = {
	    {OA_ORDER_SEEDED, RUNS_SPEC, 5, 8, 1, {{0}}},
	    {OA_ORDER_SEEDED, RUNS_SPEC, 5, 3, 4, {{0}}},
	    {OA_ORDER_SEEDED, RUNS_SPEC, 6, 16, 2, {{0}}},
	    {OA_ORDER_SEEDED, EVAL_SPEC, 5, 7, 3, {{0}}},
	    {OA_ORDER_SEQUENTIAL, EVAL_SPEC, 1, 10, 1, {{0}}},
	    {OA_ORDER_SEQUENTIAL, RUNS_SPEC, 9, 5, 2, {{0}}},
	};
	struct hash_id alone[BASE_ARRAY_LEN(sharers)];
	pthread_t threads[BASE_ARRAY_LEN(sharers)];

	dataset = runs_copies("kinds", SAMPLES);
	for (size_t i = 0; i < BASE_ARRAY_LEN(sharers); i++) {
		rig_start("workers=2", "slots=40", NULL);
		be_sharer(&sharers[i]);
		rig_end();
		alone[i] = sharers[i].id;
	}
	rig_start("workers=2", "chunk=8", "slots=40", NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(sharers); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, be_sharer, &sharers[i]), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(sharers); i++) {
		pthread_join(threads[i], NULL);
		runs_assert_same(sharers[i].id, alone[i]);
	}
	runs_assert_same(alone[1], alone[0]); /* the same samples in the same order, shared out */
	ck_assert_mem_ne(alone[2].bytes, alone[0].bytes, sizeof(alone[0].bytes));
	rig_end();
}
END_TEST

START_TEST(a_sequence_is_a_sequence)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEQUENTIAL, 0, 7);
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int64_t expected = 0;

	dataset = options.dataset = runs_copies("sequence", SAMPLES);
	rig_start("workers=2", "chunk=9", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((batch = runs_next(stream))) {
		struct oa_batch_info info = {.size = sizeof(info)};

		oa_batch_info(batch, &info);
		ck_assert_uint_eq(info.count, BASE_MIN(7, SAMPLES - expected % SAMPLES));
		for (uint32_t i = 0; i < info.count; i++, expected++)
			ck_assert_int_eq(info.ids[i], expected % SAMPLES);
		ck_assert_int_eq(info.is_last, expected % SAMPLES == 0);
		oa_release(batch);
	}
	ck_assert_int_eq(expected, RUNS_EPOCHS * SAMPLES);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* The ranks of a job, in step, in one process. */
struct world {
	struct oa_client *client;
	struct oa_stream *stream[8];
	uint32_t ranks;
};

static void world_open(struct world *world, const struct oa_options *usual, uint32_t ranks,
		       const void *token, size_t size)
{
	struct oa_options options = *usual;

	world->client = rig_connect();
	world->ranks = options.ranks = ranks;
	options.token = token;
	options.token_size = size;
	for (options.rank = 0; options.rank < ranks; options.rank++)
		world->stream[options.rank] = rig_open(world->client, &options);
}

static void world_close(struct world *world)
{
	for (uint32_t rank = 0; rank < world->ranks; rank++)
		oa_close(world->stream[rank]);
	oa_disconnect(world->client);
}

/* A step of all ranks: adds their samples in order of rank. false: all are at the end. */
static bool world_step(struct world *world, struct hash *hash)
{
	unsigned ended = 0;

	for (uint32_t rank = 0; rank < world->ranks; rank++) {
		struct oa_batch *batch = runs_next(world->stream[rank]);

		ended += batch == NULL;
		if (batch)
			runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	ck_assert(ended == 0 || ended == world->ranks); /* equal batch counts */
	return ended == 0;
}

static void world_digest(const struct oa_options *options, uint32_t ranks, struct hash *hash)
{
	struct world world;

	world_open(&world, options, ranks, NULL, 0);
	while (world_step(&world, hash))
		;
	world_close(&world);
}

/* One epoch after the other by R ranks of B: the same samples in the same order as by one. From a
 * token of any rank, with other R and B, too. */
START_TEST(ranks_share_out_a_plan)
{
	static const struct {
		uint32_t ranks, batch;
	} worlds[] = {{2, 4}, {3, 5}, {4, 16}, {8, 1}, {8, 9}, {1, 8}};
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct hash_id id, again;

	dataset = options.dataset = runs_copies("ranks", SAMPLES);
	id = reference(5);
	rig_start("workers=2", "chunk=8", "slots=20", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(worlds); i++) {
		struct hash *hash;

		options.batch = worlds[i].batch;
		ck_assert_int_eq(hash_new(&hash), 0);
		world_digest(&options, worlds[i].ranks, hash);
		hash_finish(hash, &again);
		hash_free(hash);
		runs_assert_same(again, id);
	}
	rig_end();
}
END_TEST

START_TEST(ranks_resume_with_other_numbers)
{
	static const uint32_t ranks[] = {8, 4, 6, 1, 3, 2};
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct hash_id id, again;
	void *token = NULL;
	size_t size = 0;
	struct hash *hash;
	bool more = true;

	dataset = options.dataset = runs_copies("world", SAMPLES);
	id = reference(5);
	rig_start("workers=2", "chunk=8", "slots=20", NULL);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (unsigned part = 0; more; part++) {
		struct world world;

		options.batch = 1 + part % 3;
		world_open(&world, &options, ranks[part % BASE_ARRAY_LEN(ranks)], token, size);
		for (unsigned step = 0; step < 1 + part % 4 && more; step++) {
			more = world_step(&world, hash);
			if (part == 3 && step == 1)
				kill_and_restart();
		}
		free(token);
		size = 0;
		oa_state(world.stream[part % world.ranks], NULL, &size);
		token = malloc(size);
		ck_assert_int_eq(oa_state(world.stream[part % world.ranks], token, &size), 0);
		world_close(&world);
	}
	hash_finish(hash, &again);
	hash_free(hash);
	free(token);
	runs_assert_same(again, id);
	rig_end();
}
END_TEST

/* Counts the batch's samples; a step's batches come one rank after the other. */
static void count_batch(const struct oa_batch *batch, unsigned *seen)
{
	struct oa_batch_info info = {.size = sizeof(info)};

	oa_batch_info(batch, &info);
	for (uint32_t i = 0; i < info.count; i++)
		seen[info.ids[i]]++;
}

/* Bad samples that are skipped make batches of ranks shorter, never fewer: all ranks end together,
 * and each good sample comes once an epoch. */
START_TEST(ranks_end_together_whatever_is_bad)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 4);
	unsigned seen[SAMPLES] = {0}, steps = 0;
	struct world world;
	bool more = true;

	dataset = options.dataset = runs_copies("holes", SAMPLES);
	for (int i = 0; i < 7; i++) {
		const char *path = rig_path("holes/class/%04d.jpg", 3 + i * (i + 1));
		FILE *file;

		unlink(path);
		file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		fputs("no picture", file);
		fclose(file);
	}
	options.bad = OA_BAD_SKIP;
	options.flags = OA_COPY;
	rig_start("workers=2", "chunk=6", "slots=20", NULL);
	world_open(&world, &options, 3, NULL, 0);
	while (more) {
		struct oa_batch *batch[3];
		unsigned ended = 0;

		for (uint32_t rank = 0; rank < 3; rank++) {
			batch[rank] = runs_next(world.stream[rank]);
			ended += !batch[rank];
			if (batch[rank])
				count_batch(batch[rank], seen);
			oa_release(batch[rank]);
		}
		ck_assert(ended == 0 || ended == 3);
		more = ended == 0;
		steps += more;
	}
	ck_assert_uint_eq(steps, RUNS_EPOCHS * ((SAMPLES + 11) / 12));
	for (int i = 0; i < 7; i++) {
		ck_assert_uint_eq(seen[3 + i * (i + 1)], 0);
		seen[3 + i * (i + 1)] = RUNS_EPOCHS;
	}
	for (int i = 0; i < SAMPLES; i++)
		ck_assert_uint_eq(seen[i], RUNS_EPOCHS);
	world_close(&world);
	rig_end();
}
END_TEST

/* Samples preprocessed for two jobs with this order and pipeline that go in step. */
static double work_of_two(enum oa_order order, const char *pipeline)
{
	struct oa_options options = runs_options(dataset, order, 5, 4);
	struct oa_client *client;
	struct oa_stream *stream[2];
	struct oa_batch *batch;
	double work;
	bool more = true;

	rig_start("workers=2", "chunk=8", "slots=8", NULL);
	options.pipeline = pipeline;
	client = rig_connect();
	stream[0] = rig_open(client, &options);
	stream[1] = rig_open(client, &options);
	while (more)
		for (int i = 0; i < 2; i++) {
			batch = runs_next(stream[i]);
			more = batch != NULL;
			oa_release(batch);
		}
	work = rig_status("node.samples_preprocessed");
	oa_close(stream[0]);
	oa_close(stream[1]);
	oa_disconnect(client);
	rig_end();
	return work;
}

/* Two jobs with the same seed that start together cost one: redundancy at most 1.02. */
START_TEST(the_same_plan_is_made_once)
{
	dataset = runs_copies("twice", SAMPLES);
	ck_assert_double_le(work_of_two(OA_ORDER_SEEDED, RUNS_SPEC), 1.02 * RUNS_EPOCHS * SAMPLES);
	ck_assert_double_le(work_of_two(OA_ORDER_SEQUENTIAL, EVAL_SPEC),
			    1.02 * RUNS_EPOCHS * SAMPLES);
}
END_TEST

static void assert_refused(struct oa_options *options, int code, const char *says)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = NULL;
	int r = oa_open(client, options, &stream, &error);

	ck_assert_msg(r == code && strstr(error.text, says), "%s: %s", oa_error_name(r),
		      error.text);
	ck_assert_ptr_null(stream);
	oa_disconnect(client);
}

/* A plan cannot be left in the middle, nor taken for another one. */
START_TEST(what_does_not_fit_is_refused)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 5, 8);
	struct hash *hash;
	void *token = NULL;
	size_t size = 0;

	dataset = options.dataset = runs_copies("refused", SAMPLES);
	rig_start("workers=2", NULL);
	ck_assert_int_eq(hash_new(&hash), 0);
	run_part(&options, 8, 2, &token, &size, hash);
	hash_free(hash);
	options.token = token;
	options.token_size = size;
	options.order = OA_ORDER_SEQUENTIAL;
	assert_refused(&options, OA_E_TOKEN, "sequential");
	options.order = OA_ORDER_SEEDED;
	options.seed = 6;
	assert_refused(&options, OA_E_TOKEN, "seed 5");
	options.token = NULL;
	options.token_size = 0;
	options.order = OA_ORDER_ANY;
	assert_refused(&options, OA_E_INVALID, "carousel");
	options.order = OA_ORDER_CAROUSEL;
	assert_refused(&options, OA_E_INVALID, "seed 6");
	options.seed = 0;
	options.ranks = 2;
	assert_refused(&options, OA_E_INVALID, "options.job");
	options.ranks = 1;
	options.order = (enum oa_order)9;
	assert_refused(&options, OA_E_INVALID, "order");
	free(token);
	rig_end();
}
END_TEST

/* Carousel and any say the same in a token: each resumes the other's. */
START_TEST(tokens_of_dealt_orders_fit_each_other)
{
	static const enum oa_order orders[] = {OA_ORDER_USUAL, OA_ORDER_ANY, OA_ORDER_CAROUSEL,
					       OA_ORDER_USUAL};
	struct oa_options options = runs_options(dataset, OA_ORDER_USUAL, 0, 8);
	void *token = NULL;
	size_t size = 0;
	struct hash *hash;

	dataset = options.dataset = runs_copies("dealt", SAMPLES);
	options.pipeline = EVAL_SPEC;
	rig_start("workers=2", NULL);
	ck_assert_int_eq(hash_new(&hash), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(orders); i++) {
		options.order = orders[i];
		ck_assert(run_part(&options, 8, 2, &token, &size, hash));
	}
	hash_free(hash);
	free(token);
	rig_end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_plan_is_the_same_with_any_batches_and_chunks);
	tcase_add_test(t, a_plan_is_the_same_beside_others);
	tcase_add_test(t, a_plan_is_the_same_after_a_kill);
	tcase_add_test(t, a_plan_resumes_at_any_point);
	tcase_add_test(t, each_job_is_as_it_is_alone);
	tcase_add_test(t, a_sequence_is_a_sequence);
	tcase_add_test(t, ranks_share_out_a_plan);
	tcase_add_test(t, ranks_resume_with_other_numbers);
	tcase_add_test(t, ranks_end_together_whatever_is_bad);
	tcase_add_test(t, the_same_plan_is_made_once);
	tcase_add_test(t, what_does_not_fit_is_refused);
	tcase_add_test(t, tokens_of_dealt_orders_fit_each_other);
}

int main(void)
{
	return rig_main("order", add);
}
