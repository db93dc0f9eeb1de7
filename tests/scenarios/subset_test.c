/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parts of a dataset, against a real accessd: what is in it; splits, lists and classes, each sample of
 * a part once an epoch, beside jobs of the whole, through tokens and a kill -9; what they cost; and
 * how many epochs one augmentation serves.
 */

#include "tests/scenarios/trainee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 240
#define CLASSES 6

static const char *dataset;

static void make_dataset(void)
{
	dataset = rig_pictures("subset", SAMPLES, CLASSES, 32);
}

/* ---- what is in it ---- */

static struct oa_dataset *described(struct oa_client *client, const char *path)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_dataset *ret = NULL;
	int r = oa_dataset_open(client, path, PATIENCE_MS, &ret, &error);

	ck_assert_msg(r == 0, "oa_dataset_open: %d %s", r, error.text);
	return ret;
}

START_TEST(a_dataset_is_described)
{
	struct oa_client *client;
	struct oa_dataset *known;
	char name[32];

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	known = described(client, dataset);
	oa_disconnect(client);
	rig_end(); /* it needs nobody any more */
	ck_assert_uint_eq(oa_dataset_count(known), SAMPLES);
	ck_assert_uint_eq(oa_dataset_classes(known), CLASSES);
	for (int64_t id = 0; id < SAMPLES; id++)
		ck_assert_int_eq(oa_dataset_label(known, id), id * CLASSES / SAMPLES);
	for (unsigned i = 0; i < CLASSES; i++) {
		snprintf(name, sizeof(name), "class_%04u", i);
		ck_assert_str_eq(oa_dataset_class_name(known, i), name);
	}
	ck_assert_int_eq(oa_dataset_label(known, -1), -1);
	ck_assert_int_eq(oa_dataset_label(known, SAMPLES), -1);
	ck_assert_ptr_null(oa_dataset_class_name(known, CLASSES));
	ck_assert_ptr_null(oa_dataset_version(NULL));
	oa_dataset_close(known);
	oa_dataset_close(NULL);
}
END_TEST

START_TEST(what_cannot_be_described_says_why)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_dataset *known = NULL;
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	ck_assert_int_eq(oa_dataset_open(client, rig_path("nowhere"), PATIENCE_MS, &known, &error),
			 OA_E_DATASET);
	ck_assert_msg(strstr(error.text, "nowhere") != NULL, "%s", error.text);
	ck_assert_int_eq(oa_dataset_open(client, "", 0, &known, &error), OA_E_INVALID);
	ck_assert_int_eq(oa_dataset_open(client, NULL, 0, &known, &error), OA_E_INVALID);
	ck_assert_ptr_null(known);
	oa_dataset_close(described(client, dataset)); /* it goes on */
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Who asks and asks is given one memory, and leaves nothing behind. */
START_TEST(asking_again_costs_nothing)
{
	struct oa_client *client;
	unsigned before;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	oa_dataset_close(described(client, dataset));
	before = rig_settled_fds(0);
	for (unsigned i = 0; i < 50; i++)
		oa_dataset_close(described(client, dataset));
	ck_assert_uint_le(rig_settled_fds(before), before);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- parts ---- */

static struct oa_options options_of(const struct oa_sampler *sampler, uint32_t batch,
				    uint64_t epochs)
{
	struct oa_options options = trainee_options(dataset, batch, epochs);

	options.sampler = sampler;
	return options;
}

static struct oa_sampler split_of(double from, double to)
{
	return (struct oa_sampler){
	    .size = sizeof(struct oa_sampler), .from = from, .to = to, .split_seed = 7};
}

static const char *const two_classes[] = {"class_0001", "class_0004"};

static struct oa_sampler classes_of(void)
{
	return (struct oa_sampler){.size = sizeof(struct oa_sampler),
				   .classes = two_classes,
				   .n_classes = BASE_ARRAY_LEN(two_classes)};
}

static bool is_of_classes(int64_t id)
{
	return id * CLASSES / SAMPLES == 1 || id * CLASSES / SAMPLES == 4;
}

static void assert_classes(const struct trainee_seen *seen, unsigned times)
{
	for (unsigned id = 0; id < SAMPLES; id++)
		ck_assert_uint_eq(seen->count[id], is_of_classes(id) ? times : 0);
}

static uint64_t population(struct oa_stream *stream)
{
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_stream_stats(stream, &stats);
	return stats.n_samples;
}

static double decodes(void)
{
	return rig_status("node.samples_preprocessed");
}

/* Streams take turns, a batch each, until all have ended. */
static void take_turns(struct oa_stream *const *streams, struct trainee_seen *seen, unsigned n)
{
	unsigned ended = 0;

	while (ended < n) {
		ended = 0;
		for (unsigned i = 0; i < n; i++)
			ended += trainee_train(streams[i], 1, &seen[i]) == 0;
	}
}

START_TEST(folds_share_with_the_whole)
{
	struct oa_sampler sampler[] = {split_of(0, 1), split_of(0, .8), split_of(.8, 1)};
	struct trainee_seen seen[3] = {0};
	struct oa_stream *stream[3];
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", "chunk=8", "slots=16", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 3; i++) {
		struct oa_options options = options_of(i ? &sampler[i] : NULL, 8, 2);

		stream[i] = rig_open(client, &options);
	}
	ck_assert_uint_eq(population(stream[0]), SAMPLES);
	ck_assert_uint_eq(population(stream[1]), SAMPLES * 8 / 10);
	ck_assert_uint_eq(population(stream[2]), SAMPLES * 2 / 10);
	ck_assert(rig_status("jobs.0.population") + rig_status("jobs.1.population") +
		      rig_status("jobs.2.population") ==
		  2 * SAMPLES);
	take_turns(stream, seen, 3);
	ck_assert(trainee_saw_all(&seen[0], SAMPLES, 2));
	for (unsigned id = 0; id < SAMPLES; id++) {
		ck_assert_uint_eq(seen[1].count[id] + seen[2].count[id], 2);
		ck_assert_uint_eq(seen[1].count[id] % 2, 0);
	}
	/* Alone each they would have cost twice the whole's two epochs. */
	ck_assert_double_le(decodes(), 1.5 * 2 * SAMPLES);
	for (unsigned i = 0; i < 3; i++)
		oa_close(stream[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Each of four validates on the part that it does not train on. */
START_TEST(folds_have_each_sample_once)
{
	struct trainee_seen all = {0};
	struct oa_client *client;
	double before = 0;

	make_dataset();
	rig_start("workers=1", "linger_s=0", NULL);
	client = rig_connect();
	for (unsigned fold = 0; fold < 4; fold++) {
		struct oa_sampler sampler = split_of(fold / 4.0, (fold + 1) / 4.0);
		struct oa_options options = options_of(&sampler, 7, 1);
		struct oa_stream *stream = rig_open(client, &options);

		trainee_train(stream, 0, &all);
		oa_close(stream);
		/* a quarter costs a quarter */
		ck_assert_double_eq(decodes() - before, SAMPLES / 4);
		before = decodes();
	}
	ck_assert(trainee_saw_all(&all, SAMPLES, 1));
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(a_tenth_costs_a_tenth)
{
	int64_t ids[SAMPLES / 10];
	struct oa_sampler sampler = {
	    .size = sizeof(sampler), .ids = ids, .n_ids = BASE_ARRAY_LEN(ids)};
	struct oa_options options;
	struct trainee_seen seen = {0};
	struct oa_client *client;
	struct oa_stream *stream;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	for (int64_t i = 0; i < SAMPLES / 10; i++)
		ids[i] = (i * 77 + 5) % SAMPLES;
	options = options_of(&sampler, 5, 1);
	stream = rig_open(client, &options);
	ck_assert_uint_eq(trainee_train(stream, 0, &seen), 5);
	for (unsigned i = 0; i < SAMPLES / 10; i++)
		ck_assert_uint_eq(seen.count[ids[i]]--, 1);
	ck_assert(trainee_saw_all(&seen, 0, 0));
	ck_assert_double_eq(decodes(), SAMPLES / 10);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* A job of two classes beside one of everything: each its own, exactly once, the last batch marked,
 * and less work than for both apart. */
START_TEST(classes_beside_the_whole)
{
	struct oa_sampler sampler = classes_of();
	struct trainee_seen seen[2] = {0};
	struct oa_stream *stream[2];
	struct oa_client *client;
	struct oa_stats stats = {.size = sizeof(stats)};

	make_dataset();
	rig_start("workers=1", "chunk=32", "slots=8", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 2; i++) {
		struct oa_options options = options_of(i ? &sampler : NULL, 8, 1);

		stream[i] = rig_open(client, &options);
		if (i == 0) /* its first chunks are there: the other is granted them */
			ck_assert_uint_eq(trainee_train(stream[0], 1, &seen[0]), 1);
	}
	ck_assert_uint_eq(population(stream[1]), SAMPLES / 3);
	for (struct oa_batch *batch; (batch = trainee_next(stream[1]));) {
		struct oa_batch_info info = trainee_info(batch);

		ck_assert_uint_eq(trainee_count_wrong(batch, SAMPLES, CLASSES), 0);
		ck_assert_int_eq(info.is_last, info.step == SAMPLES / 3 / 8 - 1);
		trainee_see(&seen[1], batch);
		oa_release(batch);
	}
	assert_classes(&seen[1], 1);
	trainee_train(stream[0], 0, &seen[0]);
	ck_assert(trainee_saw_all(&seen[0], SAMPLES, 1));
	oa_stream_stats(stream[1], &stats);
	ck_assert_uint_gt(stats.copied, 0);
	ck_assert_uint_eq(stats.skipped, 0);
	ck_assert_double_lt(decodes(), SAMPLES + SAMPLES / 3);
	for (unsigned i = 0; i < 2; i++)
		oa_close(stream[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- coming back ---- */

/* Takes n batches from where the token stands; the token is replaced. false: the end. */
static bool run_on(struct oa_client *client, const struct oa_sampler *sampler, uint32_t batch,
		   unsigned n, struct trainee_seen *seen, void **token, size_t *size)
{
	struct oa_options options = options_of(sampler, batch, 2);
	struct oa_stream *stream;
	bool goes_on;

	options.token = *token;
	options.token_size = *size;
	stream = rig_open(client, &options);
	goes_on = trainee_train(stream, n, seen) == n;
	free(*token);
	*size = 0;
	oa_state(stream, NULL, size);
	*token = malloc(*size);
	ck_assert_int_eq(oa_state(stream, *token, size), 0);
	oa_close(stream);
	return goes_on;
}

START_TEST(parts_resume_anywhere)
{
	static const uint32_t batches[] = {8, 3, 11, 16, 1};
	struct oa_sampler sampler = _i ? split_of(.3, .6) : classes_of();
	struct trainee_seen seen[2] = {0};
	struct oa_options whole;
	struct oa_stream *beside;
	struct oa_client *client;
	void *token = NULL;
	size_t size = 0;
	unsigned life = 0;

	make_dataset();
	rig_start("workers=1", "chunk=16", NULL);
	client = rig_connect();
	whole = options_of(NULL, 16, 3);
	beside = rig_open(client, &whole);
	for (bool goes_on = true; goes_on; life++) {
		trainee_train(beside, 2, &seen[0]);
		goes_on = run_on(client, &sampler, batches[life % BASE_ARRAY_LEN(batches)],
				 1 + life % 3, &seen[1], &token, &size);
	}
	if (_i == 0)
		assert_classes(&seen[1], 2);
	for (unsigned id = 0; id < SAMPLES; id++)
		ck_assert_uint_eq(seen[1].count[id] % 2, 0);
	free(token);
	oa_close(beside);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(parts_survive_a_kill)
{
	struct oa_sampler sampler = _i ? split_of(.3, .6) : classes_of();
	struct trainee_seen seen[2] = {0};
	struct oa_stream *stream[2];
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", "chunk=16", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 2; i++) {
		struct oa_options options = options_of(i ? &sampler : NULL, 8, 1);

		stream[i] = rig_open(client, &options);
		trainee_train(stream[i], 3, &seen[i]);
	}
	rig_restart("workers=1", "chunk=24", NULL);
	take_turns(stream, seen, 2);
	ck_assert(trainee_saw_all(&seen[0], SAMPLES, 1));
	if (_i == 0)
		assert_classes(&seen[1], 1);
	for (unsigned i = 0; i < 2; i++)
		oa_close(stream[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- under fixed orders ---- */

START_TEST(fixed_orders_have_parts)
{
	struct oa_sampler sampler[] = {classes_of(), split_of(0, .25), split_of(.25, 1)};
	struct trainee_seen seen[3] = {0};
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", "chunk=16", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < 3; i++) {
		struct oa_options options = options_of(&sampler[i], 16, 2);
		struct oa_stream *stream;

		options.order = i ? OA_ORDER_SEEDED : OA_ORDER_SEQUENTIAL;
		options.seed = i ? 9 : 0;
		stream = rig_open(client, &options);
		trainee_train(stream, 0, &seen[i]);
		oa_close(stream);
	}
	assert_classes(&seen[0], 2);
	for (unsigned id = 0; id < SAMPLES; id++) {
		ck_assert_uint_eq(seen[1].count[id] + seen[2].count[id], 2);
		ck_assert_uint_eq(seen[1].count[id] % 2, 0);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- what is refused ---- */

static void assert_refused(struct oa_client *client, const struct oa_sampler *sampler,
			   const char *text)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = options_of(sampler, 8, 1);
	struct oa_stream *stream = NULL;

	ck_assert_int_eq(oa_open(client, &options, &stream, &error), OA_E_INVALID);
	ck_assert_msg(strstr(error.text, text) != NULL, "\"%s\" is not in: %s", text, error.text);
}

START_TEST(parts_that_cannot_be_are_refused)
{
	static const char *const typo[] = {"class_004"};
	const int64_t twice[] = {3, 9, 3}, far[] = {1, SAMPLES}, one[] = {0};
	struct oa_sampler sampler = classes_of();
	struct oa_client *client;

	make_dataset();
	rig_start("workers=1", NULL);
	client = rig_connect();
	sampler.classes = typo;
	sampler.n_classes = 1;
	assert_refused(client, &sampler, "class_0004");
	sampler = (struct oa_sampler){.size = sizeof(sampler), .ids = twice, .n_ids = 3};
	assert_refused(client, &sampler, "ids[2] is 3, for the second time");
	sampler = (struct oa_sampler){.size = sizeof(sampler), .ids = far, .n_ids = 2};
	assert_refused(client, &sampler, "ids[1] is 240");
	sampler = classes_of();
	sampler.ids = one;
	sampler.n_ids = 1;
	assert_refused(client, &sampler, "none of the dataset's 240 samples is left");
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- reuse ---- */

#define CROP_SPEC                                                                         \
	"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":[24,24]},{\"op\":" \
	"\"cast\",\"dtype\":\"u8\"}]"

/* Three epochs of random crops out of slots that hold all: each epoch is produced, or one for all. */
START_TEST(an_augmentation_serves_as_many_epochs_as_it_may)
{
	struct trainee_seen seen = {0};
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;

	make_dataset();
	rig_start("workers=1", "chunk=60", "slots=8", NULL);
	client = rig_connect();
	options = options_of(NULL, 20, 3);
	options.pipeline = CROP_SPEC;
	options.reuse = (uint32_t)_i;
	stream = rig_open(client, &options);
	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, SAMPLES, 3));
	ck_assert_double_eq(decodes(), SAMPLES * (_i <= 1 ? 3 : _i == 2 ? 2 : 1));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, a_dataset_is_described);
	tcase_add_test(tcase, what_cannot_be_described_says_why);
	tcase_add_test(tcase, asking_again_costs_nothing);
	tcase_add_test(tcase, folds_share_with_the_whole);
	tcase_add_test(tcase, folds_have_each_sample_once);
	tcase_add_test(tcase, a_tenth_costs_a_tenth);
	tcase_add_test(tcase, classes_beside_the_whole);
	tcase_add_loop_test(tcase, parts_resume_anywhere, 0, 2);
	tcase_add_loop_test(tcase, parts_survive_a_kill, 0, 2);
	tcase_add_test(tcase, fixed_orders_have_parts);
	tcase_add_test(tcase, parts_that_cannot_be_are_refused);
	tcase_add_loop_test(tcase, an_augmentation_serves_as_many_epochs_as_it_may, 0, 5);
}

int main(void)
{
	return rig_main("subset", add_tests);
}
