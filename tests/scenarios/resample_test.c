/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Another sampler from an epoch on (OA_RESAMPLE): a job goes on exactly as one does that had that
 * sampler all the time, in every order and between samplers of each kind.
 */

#include "tests/scenarios/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t ids[] = {5, 3, 52, 0, 7, 11, 12, 13, 14, 40, 41, 42, 50};
static double weights[RUNS_SAMPLES];
static const char *const names[] = {"class"};
static const struct oa_sampler own = {
    .size = sizeof(own), .ids = ids, .n_ids = BASE_ARRAY_LEN(ids)};
static const struct oa_sampler other = {.size = sizeof(other), .ids = ids + 4, .n_ids = 5};
static const struct oa_sampler parted = {.size = sizeof(parted), .from = .2, .to = .7};
static const struct oa_sampler classy = {.size = sizeof(classy), .classes = names, .n_classes = 1};
static const struct oa_sampler drawn = {.size = sizeof(drawn),
					.weights = weights,
					.n_weights = RUNS_SAMPLES,
					.samples = 70,
					.flags = OA_REPLACEMENT};

/* Of a job with that sampler: epoch 1's token; with `into` one of the middle of epoch 0. Heap. */
static void *token_of(struct oa_options options, const struct oa_sampler *sampler, bool into,
		      size_t *ret_size)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream;
	void *token;

	options.sampler = sampler;
	stream = rig_open(client, &options);
	oa_release(runs_next(stream));
	if (into) {
		token = runs_token(stream, ret_size);
	} else {
		*ret_size = 0;
		ck_assert_int_eq(oa_state_epoch(stream, 1, NULL, ret_size), -ENOBUFS);
		token = malloc(*ret_size);
		ck_assert_int_eq(oa_state_epoch(stream, 1, token, ret_size), 0);
	}
	oa_close(stream);
	oa_disconnect(client);
	return token;
}

/* What a fixed order delivers from there on, and the token of its opening. */
static struct hash_id go_on(struct oa_options options, const void *token, size_t size,
			    void **ret_token, size_t *ret_size)
{
	struct oa_client *client = rig_connect();
	struct oa_stream *stream;
	struct hash_id id;

	options.token = token;
	options.token_size = size;
	stream = rig_open(client, &options);
	*ret_token = runs_token(stream, ret_size);
	id = runs_digest_stream(stream);
	oa_close(stream);
	oa_disconnect(client);
	return id;
}

static void assert_goes_on(struct oa_options options, const struct oa_sampler *before,
			   const struct oa_sampler *after)
{
	size_t old_size, new_size, got_size, want_size;
	void *old = token_of(options, before, false, &old_size);
	void *new = token_of(options, after, false, &new_size);
	void *got, *want;
	struct hash_id id;

	options.sampler = after;
	id = go_on(options, new, new_size, &want, &want_size);
	options.flags = OA_RESAMPLE;
	runs_assert_same(go_on(options, old, old_size, &got, &got_size), id);
	ck_assert_uint_eq(got_size, want_size);
	ck_assert_mem_eq(got, want, want_size);
	free(old);
	free(new);
	free(got);
	free(want);
}

START_TEST(a_fixed_order_goes_on_as_of_the_new_sampler)
{
	static const struct oa_sampler *const samplers[] = {NULL, &own, &drawn, &parted, &classy};
	const uint32_t n = BASE_ARRAY_LEN(samplers);
	struct oa_options options = runs_options(runs_photos("fixed"), OA_ORDER_SEEDED, 5, 4);

	for (int i = 0; i < RUNS_SAMPLES; i++)
		weights[i] = i % 5;
	options.epochs = 3;
	rig_start("workers=2", "chunk=8", NULL);
	for (uint32_t i = 0; i < n; i++)
		assert_goes_on(options, samplers[i], samplers[(i + 1) % n]);
	assert_goes_on(options, &drawn, NULL);
	options.order = OA_ORDER_SEQUENTIAL;
	assert_goes_on(options, &own, &other);
	assert_goes_on(options, NULL, &own);
	rig_end();
}
END_TEST

/* Each of the ids once in each epoch. */
static void assert_ids(struct oa_stream *stream, uint64_t epochs, const int64_t *wanted,
		       uint64_t n_wanted)
{
	unsigned seen[RUNS_SAMPLES] = {0}, want[RUNS_SAMPLES] = {0};
	struct oa_batch *batch;

	for (uint64_t i = 0; i < n_wanted; i++)
		want[wanted ? (uint64_t)wanted[i] : i] = (unsigned)epochs;
	while ((batch = runs_next(stream))) {
		struct oa_batch_info info = {.size = sizeof(info)};

		oa_batch_info(batch, &info);
		ck_assert_uint_ge(info.epoch, 1);
		for (uint32_t i = 0; i < info.count; i++)
			seen[info.ids[i]]++;
		oa_release(batch);
	}
	ck_assert_mem_eq(seen, want, sizeof(seen));
}

START_TEST(the_usual_order_has_each_new_sample_once)
{
	static const struct {
		const struct oa_sampler *before, *after;
		const int64_t *ids;
		uint64_t n;
	} ways[] = {
	    {NULL, &own, ids, BASE_ARRAY_LEN(ids)},
	    {&own, NULL, NULL, RUNS_SAMPLES},
	    {&own, &other, ids + 4, 5},
	    {&parted, &own, ids, BASE_ARRAY_LEN(ids)},
	    {&other, &classy, NULL, RUNS_SAMPLES},
	    {&own, &own, ids, BASE_ARRAY_LEN(ids)},
	};
	struct oa_options options = runs_options(runs_photos("usual"), 0, 0, 4);

	options.epochs = 3;
	rig_start("workers=2", "chunk=8", NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		struct oa_client *client = rig_connect();
		struct oa_options again = options;
		struct oa_stream *stream;
		void *token = token_of(options, ways[i].before, false, &again.token_size);

		again.token = token;
		again.sampler = ways[i].after;
		again.flags = OA_RESAMPLE;
		stream = rig_open(client, &again);
		assert_ids(stream, 2, ways[i].ids, ways[i].n);
		oa_close(stream);
		oa_disconnect(client);
		free(token);
	}
	rig_end();
}
END_TEST

START_TEST(a_middle_and_no_flag_are_refused)
{
	static const enum oa_order orders[] = {OA_ORDER_USUAL, OA_ORDER_SEEDED};
	const char *dataset = runs_photos("refused");

	rig_start("workers=2", "chunk=8", NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(orders); i++) {
		struct oa_options options = runs_options(dataset, orders[i], orders[i] ? 5 : 0, 4);
		size_t begin_size, into_size;
		void *begin = token_of(options, &own, false, &begin_size);
		void *into = token_of(options, &own, true, &into_size);

		options.sampler = &other;
		options.token = begin;
		options.token_size = begin_size;
		runs_assert_refused(&options, OA_E_TOKEN, "another sampler");
		options.flags = OA_RESAMPLE;
		options.token = into;
		options.token_size = into_size;
		runs_assert_refused(&options, OA_E_TOKEN, "another sampler");
		options.sampler = NULL;
		runs_assert_refused(&options, OA_E_TOKEN, "with a sampler");
		free(begin);
		free(into);
	}
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_fixed_order_goes_on_as_of_the_new_sampler);
	tcase_add_test(tcase, the_usual_order_has_each_new_sample_once);
	tcase_add_test(tcase, a_middle_and_no_flag_are_refused);
}

int main(void)
{
	return rig_main("resample", add);
}
