/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of bad samples, against a real accessd, of some hundred damaged files among good ones: each is listed once, in
 * order, under each policy, to jobs that share, to ranks, to one that came late, and after accessd was restarted;
 * and the counts of an epoch are whole at its end.
 */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenarios/trainee.h"

#define SAMPLES 400
#define CLASSES 4
#define BUDGET 1000
#define OTHER "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]}]"

static const char *dataset;

/* A good third, and the last ones: an epoch in order ends with them. */
static bool is_bad(int64_t id)
{
	return id % 8 == 1 || id % 8 == 4 || id % 16 == 7 || id >= SAMPLES - 3;
}

static unsigned count_bad(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (unsigned i = from; i < to; i++)
		n += is_bad(i);
	return n;
}

static void name_of(int64_t id, char ret[64])
{
	snprintf(ret, 64, "class_%04u/%06u.jpg", (unsigned)(id * CLASSES / SAMPLES), (unsigned)id);
}

static void spoil(const char *path, const char *text)
{
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void make_dataset(void)
{
	char name[64];

	dataset = strdup(rig_pictures("bad", SAMPLES, CLASSES, 32));
	for (int64_t i = 0; i < SAMPLES; i++) {
		name_of(i, name);
		if (is_bad(i))
			spoil(rig_path("bad/%s", name), i % 2 ? "no picture" : "");
	}
}

static struct oa_options options_of(enum oa_bad bad, enum oa_order order, uint64_t epochs)
{
	struct oa_options options = trainee_options(dataset, 16, epochs);

	options.bad = bad;
	options.bad_budget = BUDGET;
	options.order = order;
	return options;
}

/* ---- lists ---- */

struct listed {
	unsigned count, unknown;
	bool has[SAMPLES];
};

/* Checks that it is in order, has bad samples alone, and tells their names. */
static struct listed list_of(struct oa_stream *stream)
{
	struct oa_bad_sample sample = {.size = sizeof(sample)};
	struct listed listed = {.count = 0};
	struct oa_bad_list *list;
	int64_t before = -1;
	int r = oa_bad_samples(stream, 120000, &list);
	char name[64];

	ck_assert_msg(r == 0, "%s: %s", oa_error_name(r), oa_error_text(stream));
	for (uint64_t i = 0; oa_bad_samples_at(list, i, &sample) == 0; i++) {
		ck_assert_int_gt(sample.id, before);
		ck_assert_int_lt(sample.id, SAMPLES);
		ck_assert_msg(is_bad(sample.id), "sample %lld is good", (long long)sample.id);
		name_of(sample.id, name);
		ck_assert_str_eq(sample.name, name);
		ck_assert_uint_gt(strlen(sample.error), 0);
		before = sample.id;
		listed.has[sample.id] = true;
		listed.unknown += strcmp(sample.stage, "unknown") == 0;
		ck_assert_msg(strcmp(sample.stage, "unknown") == 0 ||
				  strcmp(sample.stage, "decode") == 0,
			      "stage %s", sample.stage);
		listed.count++;
	}
	ck_assert_uint_eq(oa_bad_samples_count(list), listed.count);
	oa_bad_samples_free(list);
	return listed;
}

static void assert_lists(struct oa_stream *stream, unsigned from, unsigned to)
{
	struct listed listed = list_of(stream);

	ck_assert_uint_eq(listed.count, count_bad(from, to));
	for (unsigned i = from; i < to; i++)
		ck_assert(listed.has[i] == is_bad(i));
	ck_assert_uint_eq(listed.unknown, 0);
}

static uint64_t skipped(struct oa_stream *stream)
{
	struct oa_stats stats = {.size = sizeof(stats)};

	oa_stream_stats(stream, &stats);
	return stats.skipped + stats.substituted;
}

/* Takes the rest of an epoch. Samples that came. */
static unsigned finish_epoch(struct oa_stream *stream)
{
	unsigned n = 0;
	bool more = true;

	while (more) {
		struct oa_batch *batch = trainee_next(stream);
		struct oa_batch_info info = trainee_info(batch);

		for (uint32_t i = 0; i < info.count; i++)
			ck_assert(!is_bad(info.ids[i]) || info.substituted > 0);
		n += info.count;
		more = !info.is_last;
		oa_release(batch);
	}
	return n;
}

/* ---- what a job sees ---- */

static const enum oa_order orders[] = {OA_ORDER_SEQUENTIAL, OA_ORDER_SEEDED, OA_ORDER_CAROUSEL};

/* In order the last batch is followed by holes; which count at once. */
START_TEST(skipped_are_listed_and_counted)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 3);
	struct oa_client *client;
	struct oa_stream *stream;

	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	for (unsigned epoch = 1; epoch <= 3; epoch++) {
		ck_assert_uint_eq(finish_epoch(stream), SAMPLES - count_bad(0, SAMPLES));
		ck_assert_uint_eq(skipped(stream), epoch * count_bad(0, SAMPLES));
		assert_lists(stream, 0, SAMPLES);
	}
	ck_assert_ptr_null(trainee_next(stream));
	ck_assert_uint_eq(skipped(stream), 3 * count_bad(0, SAMPLES));
	assert_lists(stream, 0, SAMPLES);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(substituted_are_listed)
{
	struct oa_options options = options_of(OA_BAD_SUBSTITUTE, OA_ORDER_SEEDED, 1);
	struct oa_client *client;
	struct oa_stream *stream;

	options.flags = _i ? OA_COPY : 0;
	options.batch = 7; /* some are copied together */
	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_uint_eq(finish_epoch(stream), SAMPLES);
	ck_assert_uint_eq(skipped(stream), count_bad(0, SAMPLES));
	assert_lists(stream, 0, SAMPLES);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* A stream that has failed still tells: the sample that ended it, and what accessd had met by then. */
START_TEST(failed_streams_tell)
{
	struct oa_options options = options_of(OA_BAD_ERROR, OA_ORDER_SEQUENTIAL, 1);
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch = NULL;
	int r;

	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	r = oa_next(stream, 120000, &batch);
	ck_assert_int_eq(r, OA_E_SAMPLE);
	ck_assert(list_of(stream).has[1]);
	oa_close(stream);
	options = options_of(OA_BAD_SKIP, OA_ORDER_SEQUENTIAL, 1);
	options.bad_budget = 5;
	stream = rig_open(client, &options);
	while ((r = oa_next(stream, 120000, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_SAMPLE);
	ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "Loader.bad_samples"));
	ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "access-ctl bad"));
	ck_assert_uint_ge(list_of(stream).count, 6);
	ck_assert(list_of(stream).has[1]);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Two pipelines, one stream; the other job comes when all is known, and is told before it has a batch. */
START_TEST(sharers_have_one_list)
{
	struct oa_options options = options_of(OA_BAD_SKIP, OA_ORDER_SEEDED, 1), other;
	struct oa_client *client;
	struct oa_stream *one, *two;

	rig_start("workers=2", "chunk=32", "slots=8", NULL);
	client = rig_connect();
	one = rig_open(client, &options);
	finish_epoch(one);
	other = options;
	other.pipeline = OTHER;
	two = rig_open(client, &other);
	ck_assert_double_eq(rig_status("streams.0.jobs"), 2); /* it is one stream */
	assert_lists(two, 0, SAMPLES);
	finish_epoch(two);
	assert_lists(one, 0, SAMPLES);
	assert_lists(two, 0, SAMPLES);
	ck_assert_double_eq(rig_status("streams.0.bad_samples"), count_bad(0, SAMPLES));
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* A job of a part is told of its part alone. */
START_TEST(parts_have_lists_of_their_own)
{
	int64_t ids[SAMPLES / 2];
	struct oa_sampler sampler = {
	    .size = sizeof(sampler), .ids = ids, .n_ids = BASE_ARRAY_LEN(ids)};
	struct oa_options all = options_of(OA_BAD_SKIP, orders[_i], 1), part = all;
	struct oa_client *client;
	struct oa_stream *one, *two;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(ids); i++)
		ids[i] = 100 + i;
	rig_start("workers=2", "chunk=32", "slots=8", NULL);
	client = rig_connect();
	one = rig_open(client, &all);
	part.sampler = &sampler;
	two = rig_open(client, &part);
	finish_epoch(one);
	finish_epoch(two);
	assert_lists(one, 0, SAMPLES);
	assert_lists(two, 100, 100 + BASE_ARRAY_LEN(ids));
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

START_TEST(ranks_have_one_list)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 1);
	struct oa_stream *stream[2];
	struct oa_client *client;
	unsigned ended = 0;

	options.ranks = 2;
	options.job = "ranks";
	options.flags = OA_COPY;
	rig_start("workers=2", "chunk=32", "slots=8", NULL);
	client = rig_connect();
	for (options.rank = 0; options.rank < 2; options.rank++)
		stream[options.rank] = rig_open(client, &options);
	while (ended == 0)
		for (unsigned rank = 0; rank < 2; rank++) {
			struct oa_batch *batch = trainee_next(stream[rank]);

			ended += !batch;
			oa_release(batch);
		}
	ck_assert_uint_eq(ended, 2);
	ck_assert_uint_eq(skipped(stream[0]) + skipped(stream[1]), count_bad(0, SAMPLES));
	for (unsigned rank = 0; rank < 2; rank++)
		assert_lists(stream[rank], 0, SAMPLES);
	oa_close(stream[0]);
	oa_close(stream[1]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- epochs without one good sample ---- */

static const char *spoilt(const char *name, unsigned good)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", rig_pictures(name, 24, 2, 32));
	for (unsigned i = good; i < 24; i++)
		spoil(rig_path("%s/class_%04u/%06u.jpg", name, i / 12, i), "no picture");
	return path;
}

static void assert_says(struct oa_stream *stream, const char *what)
{
	ck_assert_msg(strstr(oa_error_text(stream), what), "\"%s\" says no \"%s\"",
		      oa_error_text(stream), what);
}

/* The stream ends in that error, having given nothing. */
static void assert_gives_nothing(struct oa_stream *stream, int code)
{
	struct oa_batch *batch;
	int r;

	while ((r = oa_next(stream, 120000, &batch)) == 0) {
		ck_assert_uint_eq(trainee_info(batch).count, 0);
		oa_release(batch);
	}
	ck_assert_msg(r == code, "%s: %s", oa_error_name(r), oa_error_text(stream));
	ck_assert_int_eq(oa_next(stream, 0, &batch), code);
}

static void assert_all_bad(struct oa_stream *stream, const char *count)
{
	assert_gives_nothing(stream, OA_E_SAMPLE);
	assert_says(stream, "no sample of epoch 0 of ");
	assert_says(stream, count);
	assert_says(stream, "sample 0, class_0000/000000.jpg, stage decode");
	assert_says(stream, "access-ctl bad ");
	assert_says(stream, "Loader.bad_samples");
}

/* The one that came first, and another that comes when all is known. */
START_TEST(nothing_good_is_an_error)
{
	struct oa_options options =
	    options_of(_i % 2 ? OA_BAD_SUBSTITUTE : OA_BAD_SKIP, orders[_i / 2], 0);
	struct oa_client *client;
	struct oa_stream *one, *two;

	options.dataset = spoilt("all-bad", 0);
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	one = rig_open(client, &options);
	assert_all_bad(one, "24 bad");
	two = rig_open(client, &options);
	assert_all_bad(two, "24 bad");
	oa_close(one);
	oa_close(two);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Nobody fails for a share in which nothing is good, while there is something good in others. */
START_TEST(ranks_fail_where_nothing_is_good)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 0);
	struct oa_stream *stream[2];
	struct oa_client *client;
	unsigned n = 0;

	options.ranks = 2;
	options.batch = 12;
	options.flags = OA_COPY;
	rig_start("workers=2", "chunk=8", "slots=16", NULL);
	client = rig_connect();
	options.dataset = spoilt("all-bad", 0);
	options.job = "bad";
	for (options.rank = 0; options.rank < 2; options.rank++)
		stream[options.rank] = rig_open(client, &options);
	for (unsigned rank = 0; rank < 2; rank++) {
		assert_gives_nothing(stream[rank], OA_E_SAMPLE);
		assert_says(stream[rank], "is good");
		oa_close(stream[rank]);
	}
	options.dataset = spoilt("one-good", 1);
	options.job = "good";
	for (options.rank = 0; options.rank < 2; options.rank++)
		stream[options.rank] = rig_open(client, &options);
	for (unsigned epoch = 0; epoch < 3; epoch++)
		for (unsigned rank = 0; rank < 2; rank++)
			n += finish_epoch(stream[rank]);
	ck_assert_uint_eq(n, 3);
	oa_close(stream[0]);
	oa_close(stream[1]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Of two epochs none has one; of two ranks' one has one, each time, and both come to their end. */
START_TEST(nothing_good_in_all_epochs_is_an_error)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 2);
	struct oa_stream *stream[2];
	struct oa_client *client;
	struct oa_batch *batch;
	unsigned n = 0;

	options.dataset = spoilt("all-bad", 0);
	rig_start("workers=2", "chunk=8", "slots=16", NULL);
	client = rig_connect();
	stream[0] = rig_open(client, &options);
	assert_gives_nothing(stream[0], OA_E_SAMPLE);
	assert_says(stream[0], "no sample of epoch 1 of ");
	assert_says(stream[0], "24 bad");
	oa_close(stream[0]);
	options.ranks = 2;
	options.flags = OA_COPY;
	options.dataset = spoilt("one-good", 1);
	options.job = "good";
	for (options.rank = 0; options.rank < 2; options.rank++)
		stream[options.rank] = rig_open(client, &options);
	for (unsigned epoch = 0; epoch < 2; epoch++)
		for (unsigned rank = 0; rank < 2; rank++)
			n += finish_epoch(stream[rank]);
	ck_assert_uint_eq(n, 2);
	for (unsigned rank = 0; rank < 2; rank++) {
		ck_assert_int_eq(oa_next(stream[rank], 120000, &batch), OA_E_END);
		oa_close(stream[rank]);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* What a filter leaves out is nobody's fault, and comes to the same; as do good ones that make no batch. */
START_TEST(nothing_left_is_an_error)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 0);
	struct oa_client *client;
	struct oa_stream *stream;

	options.dataset = spoilt("few-good", 5);
	options.flags = OA_DROP_LAST;
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	assert_gives_nothing(stream, OA_E_SAMPLE);
	assert_says(stream, "no batch");
	assert_says(stream, "19 bad");
	assert_says(stream, "5 are good, fewer than the batch of 16");
	oa_close(stream);
	options.dataset = spoilt("all-small", 24);
	options.pipeline = "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]},"
			   "{\"op\":\"filter\",\"min_width\":64}]";
	options.flags = 0;
	stream = rig_open(client, &options);
	assert_gives_nothing(stream, OA_E_PIPELINE);
	assert_says(stream, "filter left out 24");
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Of the other epochs nothing is known here: it comes to its end, as one that goes on does. */
START_TEST(nothing_left_behind_a_token_is_none)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i], 2);
	struct oa_client *client;
	struct oa_stream *stream;
	void *token;
	size_t size;

	options.dataset = spoilt("all-good", 24);
	options.batch = 24;
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	oa_release(trainee_next(stream));
	ck_assert_int_eq(oa_state(stream, NULL, &size), -ENOBUFS);
	token = malloc(size);
	ck_assert_int_eq(oa_state(stream, token, &size), 0);
	oa_close(stream);
	options.pipeline = "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[8,8]},"
			   "{\"op\":\"filter\",\"min_width\":64}]";
	options.token = token;
	options.token_size = size;
	stream = rig_open(client, &options);
	assert_gives_nothing(stream, OA_E_END);
	oa_close(stream);
	free(token);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Takes what is ready, so that what is left of it lies half consumed in the stream. Samples that came. */
static unsigned take_all(struct oa_stream *stream)
{
	struct oa_batch *batch;
	unsigned n = 0;
	int r;

	kill(rig_host.pid, SIGSTOP); /* no more becomes ready */
	while ((r = oa_next(stream, 200, &batch)) == 0) {
		n += trainee_info(batch).count;
		oa_release(batch);
	}
	ck_assert_int_eq(r, OA_E_TIMEOUT);
	return n;
}

/* Which samples of an epoch come, and what is counted of the others, is whole whenever accessd dies. */
START_TEST(counts_outlive_accessd)
{
	struct oa_options options = options_of(OA_BAD_SKIP, orders[_i / 2], 2);
	struct oa_client *client;
	struct oa_stream *stream;
	unsigned n = 0;

	options.batch = 7; /* so that most are copied together */
	options.ranks = _i % 2 + 1;
	options.job = "counts";
	options.flags = OA_COPY;
	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	for (unsigned i = 0; i < 3; i++) {
		struct oa_batch *batch = trainee_next(stream);

		n += trainee_info(batch).count;
		oa_release(batch);
		n += take_all(stream);
		rig_restart("workers=2", "chunk=32", NULL);
	}
	n += finish_epoch(stream);
	if (options.ranks == 1) {
		ck_assert_uint_eq(n, SAMPLES - count_bad(0, SAMPLES));
		ck_assert_uint_eq(skipped(stream), count_bad(0, SAMPLES));
	} else {
		ck_assert_uint_eq(n + skipped(stream), (SAMPLES + 1) / 2); /* its half */
	}
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* What was skipped before stays, with its name; why is known again an epoch later. */
START_TEST(a_restart_loses_nothing)
{
	struct oa_options options = options_of(OA_BAD_SKIP, OA_ORDER_SEQUENTIAL, 2);
	struct oa_client *client;
	struct oa_stream *stream;
	struct listed listed;
	uint64_t met;

	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	for (unsigned i = 0; i < 8; i++)
		oa_release(trainee_next(stream));
	met = skipped(stream);
	ck_assert_uint_gt(met, 30);
	rig_restart("workers=2", "chunk=32", NULL);
	listed = list_of(stream); /* connects again by itself */
	ck_assert_uint_ge(listed.count, met);
	ck_assert_uint_ge(listed.unknown, 20);
	for (unsigned i = 0; i < 128; i++)
		ck_assert(listed.has[i] == is_bad(i));
	finish_epoch(stream);
	ck_assert_uint_eq(skipped(stream), count_bad(0, SAMPLES));
	listed = list_of(stream);
	ck_assert_uint_eq(listed.count, count_bad(0, SAMPLES));
	ck_assert_uint_ge(listed.unknown, 20);
	finish_epoch(stream);
	assert_lists(stream, 0, SAMPLES);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Neither stream nor accessd are needed any more. */
START_TEST(a_list_outlives_all)
{
	struct oa_options options = options_of(OA_BAD_SKIP, OA_ORDER_SEQUENTIAL, 1);
	struct oa_bad_sample sample = {.size = sizeof(sample)};
	struct oa_bad_list *list;
	struct oa_client *client;
	struct oa_stream *stream;

	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	finish_epoch(stream);
	ck_assert_int_eq(oa_bad_samples(stream, 0, NULL), OA_E_INVALID);
	ck_assert_int_eq(oa_bad_samples(NULL, 0, &list), OA_E_INVALID);
	ck_assert_int_eq(oa_bad_samples(stream, 0, &list), 0);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
	ck_assert_int_eq(oa_bad_samples_at(list, 0, &sample), 0);
	ck_assert_int_eq(sample.id, 1);
	ck_assert_int_eq(oa_bad_samples_at(list, oa_bad_samples_count(list), &sample),
			 OA_E_INVALID);
	oa_bad_samples_free(list);
	oa_bad_samples_free(NULL);
	ck_assert_uint_eq(oa_bad_samples_count(NULL), 0);
}
END_TEST

/* ---- access-ctl ---- */

/* What `access-ctl bad WHO` prints, of this option, at most 1 MiB; heap. */
static char *run_tool(const char *option, const char *who)
{
	const char *build = getenv("top_builddir");
	char *text = calloc(1, 1 << 20);
	char command[2 * PATH_MAX];
	size_t size;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s/tools/access-ctl' %s --socket '%s' bad '%s' 2>&1",
		 build ? build : ".", option, rig_host.socket, who);
	pipe = popen(command, "re");
	ck_assert(pipe && text);
	size = fread(text, 1, (1 << 20) - 1, pipe);
	text[size] = '\0';
	ck_assert_msg(pclose(pipe) == 0, "%s", text);
	return text;
}

/* Two jobs of one name and one stream: one list. */
START_TEST(the_tool_lists_them)
{
	struct oa_options options = options_of(OA_BAD_SKIP, OA_ORDER_SEEDED, 1);
	const struct json_in *samples, *sample;
	struct oa_stream *stream, *other;
	struct json_in *all = NULL;
	struct oa_client *client;
	struct diag diag;
	char *text, part[64], name[64];
	unsigned at = 0;

	options.job = "two words";
	rig_start("workers=2", "chunk=32", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	other = rig_open(client, &options);
	finish_epoch(stream);
	text = run_tool("--json", "two words");
	ck_assert_msg(json_in_parse(text, strlen(text), 4 << 20, &all, &diag) == 0, "%s", text);
	ck_assert_uint_eq(json_in_count(all), 1);
	samples = json_in_member(json_in_item(all, 0), "bad_samples");
	for (int64_t i = 0; i < SAMPLES; i++) {
		if (!is_bad(i))
			continue;
		sample = json_in_item(samples, at++);
		name_of(i, name);
		ck_assert_uint_eq(json_in_u64(json_in_member(sample, "id"), UINT64_MAX),
				  (uint64_t)i);
		ck_assert_str_eq(json_in_string(json_in_member(sample, "name"), ""), name);
		ck_assert_str_eq(json_in_string(json_in_member(sample, "stage"), ""), "decode");
	}
	ck_assert_uint_eq(json_in_count(samples), at);
	json_in_free(all);
	free(text);
	text = run_tool("", "two words");
	snprintf(part, sizeof(part), ": %u bad of %u samples\n", at, SAMPLES);
	ck_assert_msg(strstr(text, part) != NULL, "%s", text);
	ck_assert_msg(strstr(text, " 399  class_0003/000399.jpg  decode  ") != NULL, "%s", text);
	free(text);
	oa_close(stream);
	oa_close(other);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- long lists ---- */

#define LONG 1500
#define LONG_NAME 200

/* More than five pages, and names that are no text. */
START_TEST(long_lists_come_whole)
{
	struct oa_bad_sample sample = {.size = sizeof(sample)};
	struct oa_bad_list *list = NULL;
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int64_t before = -1;
	char name[LONG_NAME + 16], *folder;

	options = options_of(OA_BAD_SKIP, OA_ORDER_SEQUENTIAL, 1);
	options.dataset = folder = strdup(rig_pictures("long", 8, 1, 32));
	for (unsigned i = 0; i < LONG; i++) {
		snprintf(name, sizeof(name), "class_0000/%0*u\xff\n.jpg", LONG_NAME - 20, i + 8);
		spoil(rig_path("long/%s", name), "no picture");
	}
	options.bad_budget = 2 * LONG;
	rig_start("workers=2", "chunk=64", NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((batch = trainee_next(stream)))
		oa_release(batch);
	ck_assert_int_eq(oa_bad_samples(stream, 120000, &list), 0);
	ck_assert_uint_eq(oa_bad_samples_count(list), LONG);
	for (unsigned i = 0; i < LONG; i++) {
		ck_assert_int_eq(oa_bad_samples_at(list, i, &sample), 0);
		ck_assert_ptr_nonnull(strstr(sample.name, "\xff\n.jpg"));
		ck_assert_int_gt(sample.id, before);
		before = sample.id;
	}
	oa_bad_samples_free(list);
	free(folder);
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_unchecked_fixture(tcase, make_dataset, NULL);
	tcase_add_loop_test(tcase, skipped_are_listed_and_counted, 0, BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, substituted_are_listed, 0, 2);
	tcase_add_test(tcase, failed_streams_tell);
	tcase_add_test(tcase, sharers_have_one_list);
	tcase_add_loop_test(tcase, parts_have_lists_of_their_own, 0, BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, ranks_have_one_list, 0, BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, nothing_good_is_an_error, 0, 2 * BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, ranks_fail_where_nothing_is_good, 0, BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, nothing_good_in_all_epochs_is_an_error, 0,
			    (int)BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, nothing_left_is_an_error, 0, BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, nothing_left_behind_a_token_is_none, 0,
			    (int)BASE_ARRAY_LEN(orders));
	tcase_add_loop_test(tcase, counts_outlive_accessd, 0, 2 * BASE_ARRAY_LEN(orders));
	tcase_add_test(tcase, a_restart_loses_nothing);
	tcase_add_test(tcase, a_list_outlives_all);
	tcase_add_test(tcase, the_tool_lists_them);
	tcase_add_test(tcase, long_lists_come_whole);
}

int main(void)
{
	return rig_main("bad_samples", add);
}
