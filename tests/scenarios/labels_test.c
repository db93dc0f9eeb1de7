/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What stands behind a pipeline's picture, against a real accessd: labels of other shapes; mixup, cutmix and
 * mosaic of jobs that share everything with jobs without; filters by class, which make a part of the data set,
 * and by size, which make holes. Each sample that is left comes once an epoch.
 */

#include "tests/scenarios/trainee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SAMPLES 240
#define CLASSES 6
#define SIDE 8

#define PICTURE "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]},{\"op\":\"hflip\"}"
#define CHW ",{\"op\":\"layout\"}"
#define F32 ",{\"op\":\"cast\"}" CHW
#define MIXUP ",{\"op\":\"mixup\",\"num_classes\":6}"

static const char *dataset;

static void make_dataset(void)
{
	dataset = rig_pictures("labels", SAMPLES, CLASSES, 32);
}

static double decodes(void)
{
	return rig_status("node.samples_preprocessed");
}

static struct oa_options options_of(const char *pipeline, uint32_t batch, uint64_t epochs)
{
	struct oa_options options;

	if (!dataset)
		make_dataset();
	options = trainee_options(dataset, batch, epochs);
	options.pipeline = pipeline;
	return options;
}

static struct oa_options seeded(const char *pipeline, uint32_t batch, uint64_t epochs)
{
	struct oa_options options = options_of(pipeline, batch, epochs);

	options.order = OA_ORDER_SEEDED;
	options.seed = 5;
	return options;
}

static unsigned class_of(int64_t id)
{
	return (unsigned)(id * CLASSES / SAMPLES);
}

/* ---- what pictures are without any of it ---- */

static float colour[SAMPLES][3];

static void learn_colours(struct oa_client *client)
{
	struct oa_options options = options_of(PICTURE F32 "]", 16, 1);
	struct oa_stream *stream = rig_open(client, &options);
	struct oa_batch *batch;
	struct oa_field image;

	while ((batch = trainee_next(stream))) {
		struct oa_batch_info info = trainee_info(batch);

		trainee_field(batch, "image", &image);
		for (uint32_t i = 0; i < info.count; i++)
			for (unsigned c = 0; c < 3; c++)
				colour[info.ids[i]][c] =
				    ((const float *)image.data)[(i * 3 + c) * SIDE * SIDE];
		oa_release(batch);
	}
	oa_close(stream);
}

/* ---- mixup ---- */

static struct oa_field label_of(const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field label;

	trainee_field(batch, "label", &label);
	ck_assert_int_eq(label.dtype, OA_F32);
	ck_assert_uint_eq(label.ndim, 2);
	ck_assert_uint_eq(label.shape[0], info.count);
	ck_assert_uint_eq(label.shape[1], CLASSES);
	ck_assert_int_eq(label.strides[0], CLASSES * sizeof(float));
	ck_assert_int_eq(label.strides[1], sizeof(float));
	ck_assert_uint_eq(label.bytes, info.count * CLASSES * sizeof(float));
	return label;
}

/* The shares of a sample and of the one before it in its label; what other classes have, which is
 * nothing. false: both are of one class. */
static bool shares_of(const float *row, int64_t own, int64_t other, float *ret_own,
		      float *ret_other)
{
	float rest = 0;

	for (unsigned c = 0; c < CLASSES; c++)
		if (c != class_of(own) && c != class_of(other))
			rest += fabsf(row[c]);
	ck_assert(rest == 0);
	*ret_own = row[class_of(own)];
	*ret_other = row[class_of(other)];
	if (class_of(own) == class_of(other)) {
		ck_assert(fabsf(*ret_own - 1) < 1e-6f);
		return false;
	}
	ck_assert(fabsf(*ret_own + *ret_other - 1) < 1e-6f);
	return true;
}

/* torch's other.mul(1 - lambda).add(own.mul(lambda)), for every value of a sample of one colour. */
static void check_sum(const float *image, const float *own, const float *other, float own_share,
		      float other_share)
{
	for (unsigned c = 0; c < 3; c++) {
		volatile float a = other[c] * other_share, b = own[c] * own_share, sum = a + b;

		for (unsigned i = 0; i < SIDE * SIDE; i++)
			ck_assert_msg(image[c * SIDE * SIDE + i] == sum, "%.9g is not %.9g",
				      (double)image[c * SIDE * SIDE + i], (double)sum);
	}
}

/* Returns the batch's lambda; -1: all of its samples are of one class. */
static double check_mixup(const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field image, label = label_of(batch), index;
	double lambda = -1;

	trainee_field(batch, "image", &image);
	trainee_field(batch, "index", &index);
	ck_assert_mem_eq(index.data, info.ids, info.count * sizeof(*info.ids));
	for (uint32_t i = 0; i < info.count; i++) {
		int64_t own = info.ids[i], other = info.ids[i ? i - 1 : info.count - 1];
		float own_share, other_share;

		if (!shares_of((const float *)label.data + i * CLASSES, own, other, &own_share,
			       &other_share))
			continue;
		ck_assert(lambda < 0 || lambda == (double)own_share); /* one for the batch */
		lambda = (double)own_share;
		check_sum((const float *)image.data + i * 3 * SIDE * SIDE, colour[own],
			  colour[other], own_share, other_share);
	}
	return lambda;
}

/* A batch size that does not divide chunks, so that batches are carried, too, and a short last one. */
START_TEST(mixup_shares_with_who_has_none)
{
	struct oa_options plain = seeded(PICTURE F32 "]", 7, 2),
			  mixed = seeded(PICTURE F32 MIXUP "]", 7, 2);
	struct trainee_seen seen = {0};
	struct oa_batch *a, *b;
	struct oa_stream *one, *two;
	struct oa_client *client;
	double before, least = 1, most = 0;
	struct oa_stats stats = {.size = sizeof(stats)};

	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	learn_colours(client);
	before = decodes();
	mixed.flags = _i ? OA_COPY : 0;
	one = rig_open(client, &plain);
	two = rig_open(client, &mixed);
	ck_assert(rig_wait_status("streams.0.jobs", 2, 2)); /* it is one stream */
	while ((a = trainee_next(one))) {
		b = trainee_next(two);
		ck_assert_ptr_nonnull(b);
		ck_assert_uint_eq(trainee_info(a).count, trainee_info(b).count);
		ck_assert_mem_eq(trainee_info(a).ids, trainee_info(b).ids,
				 trainee_info(a).count * sizeof(int64_t));
		ck_assert_uint_eq(trainee_info(a).epoch, trainee_info(b).epoch);
		trainee_see(&seen, b);
		oa_release(a);
		if (trainee_info(b).count > 1) {
			double share = check_mixup(b);

			least = fmin(least, share < 0 ? 1 : share);
			most = fmax(most, share);
		}
		oa_release(b);
	}
	ck_assert_ptr_null(trainee_next(two));
	ck_assert(trainee_saw_all(&seen, SAMPLES, 2));
	ck_assert_double_eq(decodes() - before, 2 * SAMPLES); /* made once for both */
	ck_assert(least < 0.3 && most > 0.7);
	oa_stream_stats(two, &stats);
	ck_assert_uint_eq(stats.batch_mixed, stats.batches);
	ck_assert_uint_eq(stats.pins, 0);
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Every byte of every batch, one after the other. */
static void sum_batches(struct oa_stream *stream, unsigned most, struct hash *hash)
{
	struct oa_batch *batch;
	struct oa_field field = {.size = sizeof(field)};

	for (unsigned n = 0; (most == 0 || n < most) && (batch = trainee_next(stream)); n++) {
		for (uint32_t i = 0; oa_batch_field(batch, i, &field) == 0; i++)
			hash_add(hash, field.data, field.bytes);
		oa_release(batch);
	}
}

static struct hash_id sum_of(struct oa_client *client, const struct oa_options *options,
			     unsigned stop_at)
{
	struct oa_options again = *options;
	struct oa_stream *stream = rig_open(client, options);
	uint8_t token[8192];
	size_t size = sizeof(token);
	struct hash_id id;
	struct hash *hash;

	ck_assert_int_eq(hash_new(&hash), 0);
	sum_batches(stream, stop_at, hash);
	if (stop_at) {
		ck_assert_int_eq(oa_state(stream, token, &size), 0);
		oa_close(stream);
		again.token = token;
		again.token_size = size;
		stream = rig_open(client, &again);
		sum_batches(stream, 0, hash);
	}
	hash_finish(hash, &id);
	hash_free(hash);
	oa_close(stream);
	return id;
}

#define BOTH                                                                                \
	",{\"op\":\"mixup\",\"num_classes\":6,\"p\":0.5,\"alpha\":0.2},{\"op\":\"cutmix\"," \
	"\"num_classes\":6,\"p\":0.3}"

static const char *const drawn[] = {
    PICTURE F32 BOTH "]",
    PICTURE F32 ",{\"op\":\"mosaic\"}]",
};

/* The same batches again, resumed, copied, and from a recording of a dealt plan. */
START_TEST(draws_are_the_batchs)
{
	struct oa_options options = seeded(drawn[_i], 7, 2), copied = options;
	struct oa_options dealt = options_of(drawn[_i], 7, 2), replayed = dealt;
	struct oa_options other = options;
	struct hash_id first, second;
	struct oa_client *client;

	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	first = sum_of(client, &options, 0);
	second = sum_of(client, &options, 19);
	ck_assert_mem_eq(&first, &second, sizeof(first));
	copied.flags = OA_COPY | OA_POISON;
	second = sum_of(client, &copied, 40);
	ck_assert_mem_eq(&first, &second, sizeof(first));
	other.seed = 6;
	second = sum_of(client, &other, 0);
	ck_assert_mem_ne(&first, &second, sizeof(first));
	dealt.record = replayed.replay = rig_path("dealt.plan");
	first = sum_of(client, &dealt, 0);
	replayed.order = OA_ORDER_REPLAY;
	second = sum_of(client, &replayed, 0);
	ck_assert_mem_eq(&first, &second, sizeof(first));
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- cutmix ---- */

/* Each value is the sample's own or the other's, and as many are as the label says. */
static void check_cutmix(const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field image, label = label_of(batch);
	bool is_planar;

	trainee_field(batch, "image", &image);
	is_planar = image.shape[1] == 3;
	ck_assert_int_eq(image.dtype, OA_U8);
	for (uint32_t i = 0; i < info.count; i++) {
		int64_t own = info.ids[i], other = info.ids[i ? i - 1 : info.count - 1];
		const uint8_t *at = (const uint8_t *)image.data + i * (size_t)image.strides[0];
		unsigned owned = 0, foreign = 0;
		float own_share, other_share;
		uint8_t rgb[3];

		for (unsigned k = 0; k < SIDE * SIDE; k++) {
			for (unsigned c = 0; c < 3; c++)
				rgb[c] = at[is_planar ? c * SIDE * SIDE + k : k * 3 + c];
			owned += rig_number_of(rgb) == own;
			foreign += rig_number_of(rgb) == other;
		}
		ck_assert_uint_eq(owned + foreign, SIDE * SIDE);
		if (shares_of((const float *)label.data + i * CLASSES, own, other, &own_share,
			      &other_share))
			ck_assert(fabsf(own_share - (float)owned / (SIDE * SIDE)) < 1e-6f);
	}
}

/* ---- mosaic ---- */

/* All pixels are of four of the batch at most, which meet at a point, and the label is the first one's. */
static unsigned check_mosaic(const struct oa_batch *batch)
{
	struct oa_batch_info info = trainee_info(batch);
	struct oa_field image, label;
	unsigned several = 0;

	trainee_field(batch, "image", &image);
	trainee_field(batch, "label", &label);
	ck_assert_int_eq(label.dtype, OA_I64);
	for (uint32_t i = 0; i < info.count; i++) {
		const uint8_t *at = (const uint8_t *)image.data + i * (size_t)image.strides[0];
		int64_t number[SIDE * SIDE];
		bool is_there;

		ck_assert_int_eq(((const int64_t *)label.data)[i], class_of(info.ids[i]));
		for (unsigned k = 0; k < SIDE * SIDE; k++) {
			number[k] = rig_number_of(at + k * 3);
			is_there = false;
			for (uint32_t n = 0; n < info.count; n++)
				is_there |= info.ids[n] == number[k];
			ck_assert(is_there);
		}
		for (unsigned k = 1; k < SIDE;
		     k++) /* down, and across, one edge at most in each row */
			several += number[k] != number[k - 1] ||
				   number[k * SIDE] != number[(k - 1) * SIDE];
	}
	return several;
}

START_TEST(mosaic_of_bytes)
{
	struct oa_options options =
	    options_of(PICTURE ",{\"op\":\"mosaic\",\"scale\":1,\"epochs\":2}]", 16, 3);
	struct oa_options plain = options_of(PICTURE "]", 16, 3);
	struct oa_stream *one, *two;
	struct oa_batch *a, *b;
	struct oa_stats stats = {.size = sizeof(stats)};
	unsigned several[3] = {0};
	struct oa_client *client;

	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	one = rig_open(client, &options);
	two = rig_open(client, &plain);
	while ((a = trainee_next(one)) && (b = trainee_next(two))) {
		several[trainee_info(a).epoch] += check_mosaic(a);
		oa_release(a);
		oa_release(b);
	}
	ck_assert(!trainee_next(two));
	ck_assert_uint_gt(several[0], 240);
	ck_assert_uint_gt(several[1], 240);
	ck_assert_uint_eq(several[2], 0);
	ck_assert_double_eq(decodes(), 3 * SAMPLES); /* for both */
	oa_stream_stats(one, &stats);
	ck_assert_uint_eq(stats.batch_mixed, stats.batches);
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- cutmix ---- */

static const char *const cutmixes[] = {
    PICTURE ",{\"op\":\"cutmix\",\"num_classes\":6}]",
    PICTURE CHW ",{\"op\":\"one_hot\",\"num_classes\":6},{\"op\":\"cutmix\"}]",
};

START_TEST(cutmix_of_bytes)
{
	struct oa_options options = options_of(cutmixes[_i], 16, 3);
	struct trainee_seen seen = {0};
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;

	rig_start("workers=1", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream))) {
		check_cutmix(batch);
		trainee_see(&seen, batch);
		oa_release(batch);
	}
	ck_assert(trainee_saw_all(&seen, SAMPLES, 3));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- how many may be held ---- */

START_TEST(as_many_are_held_as_windows_could_be)
{
	struct oa_options options = options_of(PICTURE F32 MIXUP "]", 8, 2);
	struct oa_batch *held[16] = {NULL}, *one;
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_client *client;
	struct oa_stream *stream;
	unsigned n = 0;
	int r;

	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	learn_colours(client);
	stream = rig_open(client, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &held[n])) == 0)
		n++;
	ck_assert_int_eq(r, OA_E_PINS);
	ck_assert_msg(strstr(oa_error_text(stream), "OA_COPY") != NULL, "%s",
		      oa_error_text(stream));
	ck_assert_uint_eq(n, 6); /* two chunks' */
	oa_stream_stats(stream, &stats);
	ck_assert_uint_eq(stats.pins, 0); /* no slot waits for them */
	oa_release(held[0]);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &one), 0);
	for (unsigned i = 1; i < n; i++) {
		check_mixup(held[i]);
		memset((void *)(uintptr_t)trainee_info(held[i]).ids, 0,
		       8); /* they are the job's own */
		oa_release(held[i]);
	}
	oa_release(one);
	oa_close(stream);
	options.flags = OA_COPY;
	stream = rig_open(client, &options);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(held); i++)
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held[i]), 0);
	oa_close(stream); /* they stay */
	for (unsigned i = 0; i < BASE_ARRAY_LEN(held); i++) {
		check_mixup(held[i]);
		oa_release(held[i]);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- labels ---- */

static const struct {
	const char *tail;
	float own, others; /* of a vector */
} vectors[] = {
    {",{\"op\":\"one_hot\",\"num_classes\":6}", 1, 0},
    {",{\"op\":\"smooth\",\"num_classes\":6,\"epsilon\":0.3}", (float)(0.7 + 0.3 / 6),
     (float)(0.3 / 6)},
};

START_TEST(labels_are_vectors)
{
	char text[512];
	struct oa_options options;
	struct trainee_seen seen = {0};
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;

	rig_start("workers=1", "chunk=24", NULL);
	client = rig_connect();
	snprintf(text, sizeof(text), PICTURE "%s]", vectors[_i].tail);
	options = options_of(text, 7, 1);
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream))) {
		struct oa_batch_info info = trainee_info(batch);
		struct oa_field label = label_of(batch);

		for (uint32_t i = 0; i < info.count * CLASSES; i++)
			ck_assert(((const float *)label.data)[i] ==
				  (i % CLASSES == class_of(info.ids[i / CLASSES])
				       ? vectors[_i].own
				       : vectors[_i].others));
		trainee_see(&seen, batch);
		oa_release(batch);
	}
	ck_assert(trainee_saw_all(&seen, SAMPLES, 1));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Labels 4 and 5 have no entry: the policy, with the reason. */
START_TEST(labels_without_a_place_are_bad_samples)
{
	struct oa_options options =
	    options_of(PICTURE ",{\"op\":\"map\",\"labels\":[9,8,7,6]}]", 8, 1);
	struct trainee_seen seen = {0};
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch = NULL;
	struct oa_field label;
	int r;

	rig_start("workers=1", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_SAMPLE);
	ck_assert_msg(strstr(oa_error_text(stream), "map: no entry for class") != NULL, "%s",
		      oa_error_text(stream));
	oa_close(stream);
	options.bad = OA_BAD_SKIP;
	options.bad_budget = SAMPLES;
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream))) {
		struct oa_batch_info info = trainee_info(batch);

		trainee_field(batch, "label", &label);
		for (uint32_t i = 0; i < info.count; i++)
			ck_assert_int_eq(((const int64_t *)label.data)[i],
					 9 - class_of(info.ids[i]));
		trainee_see(&seen, batch);
		oa_release(batch);
	}
	for (unsigned id = 0; id < SAMPLES; id++)
		ck_assert_uint_eq(seen.count[id], class_of(id) < 4);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- filters by class ---- */

#define KEEP ",{\"op\":\"filter\",\"keep\":[1,4,5],\"drop\":[5]}"

static bool is_kept(int64_t id)
{
	return class_of(id) == 1 || class_of(id) == 4;
}

static void assert_kept(const struct trainee_seen *seen, unsigned times)
{
	for (unsigned id = 0; id < SAMPLES; id++)
		ck_assert_uint_eq(seen->count[id], is_kept(id) ? times : 0);
}

/* Beside a job of the whole, under the order of the case; resumed in the middle. */
static const enum oa_order orders[] = {OA_ORDER_USUAL, OA_ORDER_SEEDED, OA_ORDER_SEQUENTIAL};

START_TEST(classes_are_filtered)
{
	struct oa_options whole = options_of(PICTURE "]", 8, 2),
			  some = options_of(PICTURE KEEP "]", 7, 2);
	struct trainee_seen all = {0}, kept = {0};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_stream *one, *two;
	struct oa_client *client;
	uint8_t token[8192];
	size_t size = sizeof(token);

	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	some.order = orders[_i];
	one = rig_open(client, &whole);
	two = rig_open(client, &some);
	ck_assert(rig_wait_status("streams.0.jobs", 2, 2)); /* it is one stream */
	oa_stream_stats(two, &stats);
	if (_i == 0)
		ck_assert_uint_eq(stats.n_samples, SAMPLES / 3);
	trainee_train(one, 9, &all);
	trainee_train(two, 5, &kept);
	ck_assert_int_eq(oa_state(two, token, &size), 0);
	oa_close(two);
	trainee_train(one, 0, &all);
	some.token = token;
	some.token_size = size;
	two = rig_open(client, &some);
	trainee_train(two, 0, &kept);
	ck_assert(trainee_saw_all(&all, SAMPLES, 2));
	assert_kept(&kept, 2);
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static int refused(struct oa_client *client, const struct oa_options *options, const char *part)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_stream *stream = NULL;
	int r = oa_open(client, options, &stream, &error);

	ck_assert_int_ne(r, 0);
	ck_assert_msg(strstr(error.text, part) != NULL, "%s", error.text);
	return r;
}

/* A sampler and a filter leave what both leave; a token is of both; what is in neither is refused. */
START_TEST(filters_meet_samplers)
{
	const char *const classes[] = {"class_0001", "class_0002"};
	struct oa_sampler sampler = {.size = sizeof(sampler), .classes = classes, .n_classes = 2};
	struct oa_options options = options_of(PICTURE KEEP "]", 8, 1);
	struct trainee_seen seen = {0};
	struct oa_client *client;
	struct oa_stream *stream;
	uint8_t token[8192];
	size_t size = sizeof(token);

	rig_start("workers=1", NULL);
	client = rig_connect();
	options.sampler = &sampler;
	stream = rig_open(client, &options);
	trainee_train(stream, 1, &seen);
	ck_assert_int_eq(oa_state(stream, token, &size), 0);
	trainee_train(stream, 0, &seen);
	oa_close(stream);
	for (unsigned id = 0; id < SAMPLES; id++)
		ck_assert_uint_eq(seen.count[id], class_of(id) == 1);
	options.token = token;
	options.token_size = size;
	options.pipeline = PICTURE ",{\"op\":\"filter\",\"keep\":[1,2]}]";
	ck_assert_int_eq(refused(client, &options, "token"), OA_E_TOKEN);
	options.token = NULL;
	options.token_size = 0;
	options.pipeline = PICTURE ",{\"op\":\"filter\",\"drop\":[1,2]}]";
	ck_assert_int_eq(refused(client, &options, "filter"), OA_E_INVALID);
	options.pipeline = PICTURE ",{\"op\":\"filter\",\"keep\":[6]}]";
	ck_assert_int_eq(refused(client, &options, "the dataset's are 0 to 5"), OA_E_PIPELINE);
	options.pipeline = PICTURE ",{\"op\":\"\\u0066ilter\",\"keep\":[1]}]";
	ck_assert_int_eq(refused(client, &options, "plainly"), OA_E_VERSION);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- filters by size ---- */

/* Each third picture is larger. */
static void make_sizes(void)
{
	const char *larger = rig_pictures("larger", SAMPLES, CLASSES, 64);
	char from[512], to[512];

	dataset = rig_pictures("sizes", SAMPLES, CLASSES, 32);
	for (unsigned id = 0; id < SAMPLES; id += 3) {
		snprintf(from, sizeof(from), "%s/class_%04u/%06u.jpg", larger, class_of(id), id);
		snprintf(to, sizeof(to), "%s/class_%04u/%06u.jpg", dataset, class_of(id), id);
		ck_assert_int_eq(rename(from, to), 0);
	}
}

static const struct {
	const char *filter;
	bool larger; /* stay */
	uint32_t flags;
	enum oa_order order;
} sizes[] = {
    {",{\"op\":\"filter\",\"max_width\":63}", false, 0, OA_ORDER_USUAL},
    {",{\"op\":\"filter\",\"min_height\":33}", true, OA_COPY, OA_ORDER_SEEDED},
    {",{\"op\":\"filter\",\"max_height\":40,\"max_width\":32}", false, OA_DROP_LAST,
     OA_ORDER_SEQUENTIAL},
};

/* Two jobs share; not one sample is charged as bad, though no bad one is allowed. */
START_TEST(sizes_are_filtered)
{
	unsigned left = sizes[_i].larger ? SAMPLES / 3 : SAMPLES / 3 * 2, wrong = 0;
	struct trainee_seen seen[2] = {{{0}}};
	struct oa_stats stats = {.size = sizeof(stats)};
	struct oa_stream *stream[2];
	struct oa_client *client;
	struct oa_options options;
	char text[512];

	make_sizes();
	rig_start("workers=1", "chunk=24", "slots=8", NULL);
	client = rig_connect();
	snprintf(text, sizeof(text), PICTURE "%s]", sizes[_i].filter);
	options = options_of(text, 8, 2);
	options.order = sizes[_i].order;
	options.flags = sizes[_i].flags;
	options.bad_budget = -1;
	for (unsigned i = 0; i < 2; i++)
		stream[i] = rig_open(client, &options);
	ck_assert(rig_wait_status("streams.0.jobs", 2, 2));
	trainee_train(stream[0], 3, &seen[0]);
	trainee_train(stream[1], 0, &seen[1]);
	trainee_train(stream[0], 0, &seen[0]);
	for (unsigned i = 0; i < 2 * SAMPLES; i++) {
		unsigned id = i % SAMPLES;

		wrong += seen[i / SAMPLES].count[id] != ((id % 3 == 0) == sizes[_i].larger ? 2 : 0);
	}
	ck_assert_uint_eq(wrong, 0);
	oa_stream_stats(stream[1], &stats);
	ck_assert_uint_eq(stats.samples, 2 * left);
	ck_assert_uint_eq(stats.batches, 2 * left / 8);
	ck_assert_uint_eq(stats.filtered, 2 * (SAMPLES - left));
	ck_assert_uint_eq(stats.skipped, 0);
	ck_assert_double_eq(rig_status("node.bad_samples"), 0);
	ck_assert_double_ge(rig_status("streams.0.samples_filtered"), 2 * (SAMPLES - left));
	for (unsigned i = 0; i < 2; i++)
		oa_close(stream[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, mixup_shares_with_who_has_none, 0, 2);
	tcase_add_loop_test(tcase, draws_are_the_batchs, 0, BASE_ARRAY_LEN(drawn));
	tcase_add_loop_test(tcase, cutmix_of_bytes, 0, BASE_ARRAY_LEN(cutmixes));
	tcase_add_test(tcase, mosaic_of_bytes);
	tcase_add_test(tcase, as_many_are_held_as_windows_could_be);
	tcase_add_loop_test(tcase, labels_are_vectors, 0, BASE_ARRAY_LEN(vectors));
	tcase_add_test(tcase, labels_without_a_place_are_bad_samples);
	tcase_add_loop_test(tcase, classes_are_filtered, 0, BASE_ARRAY_LEN(orders));
	tcase_add_test(tcase, filters_meet_samplers);
	tcase_add_loop_test(tcase, sizes_are_filtered, 0, BASE_ARRAY_LEN(sizes));
}

int main(void)
{
	return rig_main("labels", add_tests);
}
