/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What access-bench finds out must be believed, so here it is given what must not be: a sample that
 * comes twice, one that never comes, one in the wrong epoch, ids that are no sample's, floats that
 * are no numbers, index fields that contradict the ids. Each must end as not exactly once. And its
 * JSON has every key, of the right type, with the figures that accessd's two answers give.
 */

#include "tools/bench.h"

#include "base/json.h"
#include "libaccess/libaccess.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N 12
#define BATCH 4

/* ---- batches, made up: what libaccess would say of them ---- */

struct oa_batch {
	struct oa_batch_info info;
	struct oa_field field[2];
};

void oa_batch_info(const struct oa_batch *batch, struct oa_batch_info *ret)
{
	*ret = batch->info;
}

int oa_batch_field(const struct oa_batch *batch, uint32_t index, struct oa_field *ret)
{
	*ret = batch->field[index];
	return 0;
}

static const struct {
	enum oa_dtype dtype;
	double value; /* in the last place of the image; the others are 1 */
	bool index_lies, is_empty, is_short, good;
} batches[] = {
    {OA_F32, 1, false, false, false, true},
    {OA_F16, 1, false, false, false, true},
    {OA_U8, 255, false, false, false, true},
    {OA_F32, NAN, false, false, false, false},
    {OA_F32, INFINITY, false, false, false, false},
    {OA_F32, -INFINITY, false, false, false, false},
    {OA_F16, NAN, false, false, false, false},
    {OA_F16, INFINITY, false, false, false, false},
    {OA_BF16, 1, false, false, false, true},
    {OA_BF16, 65536, false, false, false, true},
    {OA_BF16, NAN, false, false, false, false},
    {OA_BF16, -INFINITY, false, false, false, false},
    {OA_F32, 1, true, false, false, false},
    {OA_F32, 1, false, true, false, false},
    {OA_F32, 1, false, false, true, false},
};

/* Writes value as the dtype; the size of one. */
static size_t put(enum oa_dtype dtype, double value, unsigned char *at)
{
	uint16_t half = isnan(value) ? 0x7e00 : isinf(value) ? 0x7c00 : 0x3c00;
	float single = (float)value;
	uint32_t bits;

	switch (dtype) {
	case OA_F32:
		memcpy(at, &single, sizeof(single));
		return sizeof(single);
	case OA_F16:
		memcpy(at, &half, sizeof(half));
		return sizeof(half);
	case OA_BF16:
		memcpy(&bits, &single, sizeof(bits));
		half = (uint16_t)(bits >> 16);
		memcpy(at, &half, sizeof(half));
		return sizeof(half);
	default:
		*at = (unsigned char)value;
		return 1;
	}
}

START_TEST(values_that_cannot_be_are_seen)
{
	static unsigned char image[64];
	int64_t ids[3] = {7, 0, 11}, index[3] = {7, 0, 11};
	size_t bytes = 0, last = 0;
	struct oa_batch batch = {.info = {.n_fields = 2, .count = 3, .ids = ids}};
	uint64_t digest = 0;

	for (unsigned i = 0; i < 9; i++) {
		last = bytes;
		bytes += put(batches[_i].dtype, 1, image + bytes);
	}
	put(batches[_i].dtype, batches[_i].value, image + last);
	index[1] += batches[_i].index_lies;
	batch.field[0] = (struct oa_field){.name = "image",
					   .dtype = batches[_i].dtype,
					   .ndim = 2,
					   .shape = {batches[_i].is_short ? 2 : 3, 3},
					   .data = image,
					   .bytes = bytes};
	batch.field[1] = (struct oa_field){.name = "index",
					   .dtype = OA_I64,
					   .ndim = 1,
					   .shape = {3},
					   .data = index,
					   .bytes = sizeof(index)};
	if (batches[_i].is_empty) {
		batch.info.count = 0;
		for (unsigned i = 0; i < 2; i++)
			batch.field[i].shape[0] = batch.field[i].bytes = 0;
	}
	ck_assert_int_eq(bench_verify(&batch, &digest), batches[_i].good);
}
END_TEST

/* Three samples of two bytes, in batches as they come. */
static uint64_t digest_of(const int64_t *ids, const unsigned char (*image)[2], uint32_t first)
{
	const uint32_t counts[] = {first, 3 - first};
	uint64_t digest = 0;

	for (unsigned i = 0, at = 0; i < 2; at += counts[i++]) {
		struct oa_batch batch = {
		    .info = {.n_fields = 1, .count = counts[i], .ids = ids + at},
		    .field = {{.name = "image",
			       .dtype = OA_U8,
			       .ndim = 2,
			       .shape = {counts[i], 2},
			       .data = image[at],
			       .bytes = 2 * counts[i]}}};

		ck_assert(bench_verify(&batch, &digest));
	}
	return digest;
}

START_TEST(a_digest_is_of_samples)
{
	static const unsigned char image[3][2] = {{1, 2}, {3, 4}, {5, 6}};
	static const unsigned char turned[3][2] = {{5, 6}, {1, 2}, {3, 4}};
	static const unsigned char other[3][2] = {{1, 2}, {3, 4}, {5, 7}};
	const uint64_t digest = digest_of((int64_t[]){7, 8, 9}, image, 1);

	ck_assert_uint_eq(digest_of((int64_t[]){9, 7, 8}, turned, 2), digest);
	ck_assert_uint_ne(digest_of((int64_t[]){7, 8, 9}, turned, 1), digest);
	ck_assert_uint_ne(digest_of((int64_t[]){7, 8, 9}, other, 1), digest);
}
END_TEST

/* ---- ledgers, made up: what a job was delivered ---- */

static const struct {
	const char *what;
	int64_t ids[2][N]; /* of two epochs */
	unsigned epochs;   /* that the job completed */
	uint64_t bad_values, skipped;
	const char *error;
	uint64_t missing, duplicates, strange;
	bool good;
} deliveries[] = {
    {"as it must be",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
     2,
     0,
     0,
     "",
     0,
     0,
     0,
     true},
    {"a duplicate",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10}},
     2,
     0,
     0,
     "",
     1,
     1,
     0,
     false},
    {"a duplicate in one batch",
     {{0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
     2,
     0,
     0,
     "",
     1,
     1,
     0,
     false},
    {"a sample in the wrong epoch",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 11}},
     2,
     0,
     0,
     "",
     2,
     2,
     0,
     false},
    {"one that is missing",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -5}},
     2,
     0,
     0,
     "",
     1,
     0,
     1,
     false},
    {"one that was skipped, and was said to be",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, INT64_MIN}},
     2,
     0,
     1,
     "",
     0,
     0,
     0,
     true},
    {"no such sample",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}},
     2,
     0,
     0,
     "",
     1,
     0,
     1,
     false},
    {"bad values",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
     2,
     1,
     0,
     "",
     0,
     0,
     0,
     false},
    {"an epoch without an end",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
     1,
     0,
     0,
     "",
     0,
     0,
     0,
     false},
    {"an error",
     {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
     2,
     0,
     0,
     "it \"failed\"",
     0,
     0,
     0,
     false},
};

/* One job's deliveries, batch by batch, into a new ledger. INT64_MIN: no sample there. */
static int fill_ledger(unsigned row)
{
	int fd = ledger_memory();
	struct ledger ledger;
	struct ledger_totals totals = {.samples = 0};

	ck_assert_int_eq(ledger_open(fd, &ledger), LEDGER_E_EMPTY);
	ck_assert_int_eq(ledger_make(fd, N, BATCH, 8, &ledger), 0);
	for (unsigned epoch = 0; epoch < 2; epoch++)
		for (unsigned i = 0; i < N; i += BATCH) {
			const int64_t *ids = &deliveries[row].ids[epoch][i];
			uint32_t count = ids[BATCH - 1] == INT64_MIN ? BATCH - 1 : BATCH;

			ledger_count(&ledger, epoch, ids, count, &totals);
			totals.samples += count;
			totals.batches++;
			totals.wait_ns += 250000000;
			totals.epochs = i + BATCH == N ? epoch + 1 : epoch;
			totals.epochs = BASE_MIN(totals.epochs, (uint64_t)deliveries[row].epochs);
			totals.bad_values = deliveries[row].bad_values;
			totals.skipped = deliveries[row].skipped;
			ledger_commit(&ledger, epoch, ids, count, &totals, 0);
		}
	ledger_close(&ledger);
	return fd;
}

static const char *const status[3] = {
    "{\"pid\": 7, \"uptime_s\": 1.5, \"node\": {\"samples_read\": 100, \"bytes_read\": 1000, "
    "\"samples_preprocessed\": 100, \"reference\": 90, \"worker_cpu_seconds\": 1.0, "
    "\"reader_cpu_seconds\": 0.5, \"loop_cpu_seconds\": 0.25, \"rss_bytes\": 1, \"waits_on_dead\": "
    "0, "
    "\"bad_samples\": 0, \"worker_restarts\": 2, \"reader_restarts\": 0, \"parent_restarts\": 0}, "
    "\"streams\": [{\"id\": 4, \"cache\": {\"hits\": 10, \"misses\": 10, \"bytes\": 100}}]}",
    "{\"pid\": 7, \"uptime_s\": 9.5, \"node\": {\"samples_read\": 148, \"bytes_read\": 5000, "
    "\"samples_preprocessed\": 148, \"reference\": 114, \"worker_cpu_seconds\": 3.5, "
    "\"reader_cpu_seconds\": 0.75, \"loop_cpu_seconds\": 0.5, \"rss_bytes\": 4096, "
    "\"waits_on_dead\": 0, \"bad_samples\": 1, \"worker_restarts\": 5, \"reader_restarts\": 1, "
    "\"parent_restarts\": 0}, \"streams\": [{\"id\": 3, \"slots\": 6}, {\"id\": 4, \"slots\": 4, "
    "\"cache\": "
    "{\"point\": \"packed\", \"hits\": 40, \"misses\": 12, \"bytes\": 700}}, {\"id\": 5, "
    "\"cache\": {\"point\": \"indexed\", \"hits\": 1, \"misses\": 2, \"bytes\": 30}}]}",
    "{\"pid\": 8, \"uptime_s\": 2, \"node\": {\"samples_preprocessed\": 40, \"reference\": 20}}"};

static struct bench_config config;
static struct bench_crew crew;
static struct bench_result result;

/* As many jobs as rows are named, each with the deliveries of its row. */
static struct json_in *collect(unsigned n_jobs, const unsigned *rows, bool interrupted)
{
	_cleanup_free_ char *text = NULL;
	struct json_in *json = NULL;
	struct diag diag = {.text = ""};

	config = (struct bench_config){.dataset = "a folder",
				       .dealt.pipeline = {.n = 1, .text = {"imagenet-eval"}},
				       .jobs = n_jobs,
				       .epochs = 2,
				       .order = OA_ORDER_SEEDED,
				       .dealt.plan_seed = {.n = 2, .value = {5, 1e15}},
				       .verify = true};
	crew = (struct bench_crew){.config = &config, .shared = bench_shared_new(n_jobs)};
	for (unsigned i = 0; i < n_jobs; i++) {
		struct bench_seat *seat = &crew.shared->seat[i];

		crew.member[i] = (struct bench_member){
		    .ledger_fd = fill_ledger(rows[i]), .kills = 1, .stops = 2, .lives = 3};
		counter_set(&seat->n, N);
		counter_set(&seat->chunk, 5);
		counter_set(&seat->started_ns, 1000000000);
		counter_set(&seat->first_ns, 1250000000);
		counter_set(&seat->ended_ns, 3000000000);
		histogram_add(&seat->handover, 2000);
		snprintf(seat->error, sizeof(seat->error), "%s", deliveries[rows[i]].error);
	}
	bench_result_collect(&crew, interrupted, status[0], status[1], &result);
	ck_assert_int_eq(bench_result_json(&config, &result, &text), 0);
	ck_assert_msg(json_in_parse(text, strlen(text), 1 << 20, &json, &diag) == 0, "%s",
		      diag.text);
	for (unsigned i = 0; i < n_jobs; i++)
		base_close(&crew.member[i].ledger_fd);
	bench_shared_free(crew.shared);
	return json;
}

static const struct json_in *job_of(const struct json_in *json, unsigned job)
{
	return json_in_item(json_in_member(json, "jobs"), job);
}

static char *report(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	bench_report(&config, &result, out);
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

/* Between the moment when all have their first batch and that when one ends; which need not come in this order. */
START_TEST(the_rate_of_all_is_said_or_why_there_is_none)
{
	static const char none[] = "not measured: one had ended before all had their first batch";
	_cleanup_free_ char *text = NULL;

	config = (struct bench_config){.jobs = 2, .epochs = 2};
	crew = (struct bench_crew){.config = &config, .shared = bench_shared_new(2)};
	for (unsigned i = 0; i < 2; i++) {
		struct bench_seat *seat = &crew.shared->seat[i];

		crew.member[i].ledger_fd = fill_ledger(0);
		counter_set(&seat->n, N);
		counter_set(&seat->first_ns, 1000);
		counter_set(&seat->samples, 10);
		if (i == 0 && _i) {
			counter_set(&seat->stage, BENCH_ENDED);
			bench_shared_mark(crew.shared);
		}
	}
	bench_shared_mark(crew.shared);
	counter_set(&crew.shared->seat[0].samples, 20);
	counter_set(&crew.shared->seat[0].stage, BENCH_ENDED);
	bench_shared_mark(crew.shared);
	bench_result_collect(&crew, false, status[0], status[1], &result);
	ck_assert_int_eq(result.node.rate_all > 0, _i == 0);
	text = report();
	ck_assert_int_eq(strstr(text, none) != NULL, _i == 1);
	ck_assert_int_eq(strstr(text, "samples/s while all of them ran") != NULL, _i == 0);
	for (unsigned i = 0; i < 2; i++)
		base_close(&crew.member[i].ledger_fd);
	bench_shared_free(crew.shared);
}
END_TEST

/* Of jobs that were given none. */
START_TEST(the_usual_pipeline_is_named)
{
	static const char after[] =
	    "{\"datasets\":[{\"name\":\"dogs\",\"pipeline\":\"imagenet-eval\"},"
	    "{\"name\":\"pets\",\"pipeline\":\"imagenet-train\"}]}";
	static const struct {
		const char *dataset, *status, *pipeline;
	} cases[] = {{"name:pets", after, "imagenet-train"},
		     {"name:cats", after, ""},
		     {"name:pets", NULL, ""},
		     {"/pets", after, ""}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		_cleanup_free_ char *text = NULL;
		char expected[64];

		config = (struct bench_config){.dataset = cases[i].dataset, .jobs = 1, .epochs = 1};
		crew = (struct bench_crew){.config = &config, .shared = bench_shared_new(1)};
		crew.member[0].ledger_fd = ledger_memory();
		bench_result_collect(&crew, false, NULL, cases[i].status, &result);
		ck_assert_str_eq(result.job[0].pipeline, cases[i].pipeline);
		ck_assert_int_eq(bench_result_json(&config, &result, &text), 0);
		snprintf(expected, sizeof(expected), "\"pipeline\": \"%s\"", cases[i].pipeline);
		ck_assert_ptr_nonnull(strstr(text, expected));
		base_close(&crew.member[0].ledger_fd);
		bench_shared_free(crew.shared);
	}
}
END_TEST

START_TEST(deliveries_are_judged)
{
	const unsigned rows[2] = {0, (unsigned)_i};
	struct json_in *json = collect(2, rows, false);
	const struct json_in *job = job_of(json, 1);

	ck_assert_uint_eq(json_in_u64(json_in_member(job, "missing"), 99), deliveries[_i].missing);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "duplicates"), 99),
			  deliveries[_i].duplicates);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "strange"), 99), deliveries[_i].strange);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "bad_values"), 99),
			  deliveries[_i].bad_values);
	ck_assert_msg(json_in_bool(json_in_member(job, "exactly_once"), !deliveries[_i].good) ==
			  deliveries[_i].good,
		      "%s", deliveries[_i].what);
	/* one bad job is enough, and the good one beside it is good */
	ck_assert_int_eq(json_in_bool(json_in_member(json, "exactly_once"), !deliveries[_i].good),
			 deliveries[_i].good);
	ck_assert(json_in_bool(json_in_member(job_of(json, 0), "exactly_once"), false));
	json_in_free(json);
}
END_TEST

/* A job whose process never got so far that it had a ledger. */
START_TEST(nothing_is_not_everything)
{
	config = (struct bench_config){.jobs = 1, .epochs = 1};
	crew = (struct bench_crew){.config = &config, .shared = bench_shared_new(1)};
	crew.member[0].ledger_fd = ledger_memory();
	bench_result_collect(&crew, false, NULL, NULL, &result);
	ck_assert(!result.all_exactly_once);
	ck_assert(!result.node.known);
	base_close(&crew.member[0].ledger_fd);
	bench_shared_free(crew.shared);
}
END_TEST

/* ---- the JSON ---- */

enum kind { COUNT, REAL, BOOL, TEXT, TEXT_OR_NULL };
struct key {
	const char *name;
	enum kind kind;
};
static const struct key top_keys[] = {
    {"dataset", TEXT}, {"pipeline", TEXT},     {"verify", BOOL},
    {"seconds", REAL}, {"exactly_once", BOOL}, {"interrupted", BOOL},
};
static const struct key job_keys[] = {
    {"samples", COUNT},
    {"seconds", REAL},
    {"wait_seconds", REAL},
    {"late_seconds", REAL},
    {"epochs", COUNT},
    {"missing", COUNT},
    {"duplicates", COUNT},
    {"copied_share", REAL},
    {"first_batch_ms", REAL},
    {"exactly_once", BOOL},
    {"error", TEXT_OR_NULL},
    {"epochs_asked", COUNT},
    {"dataset_samples", COUNT},
    {"population", COUNT},
    {"batch", COUNT},
    {"step_ms", REAL},
    {"start_s", REAL},
    {"batches", COUNT},
    {"strange", COUNT},
    {"bad_values", COUNT},
    {"skipped", COUNT},
    {"substituted", COUNT},
    {"filtered", COUNT},
    {"batch_mixed", COUNT},
    {"batch_mixed_seconds", REAL},
    {"bytes_verified", COUNT},
    {"reconnects", COUNT},
    {"kills", COUNT},
    {"stops", COUNT},
    {"lives", COUNT},
    {"order", TEXT},
    {"seed", COUNT},
    {"pipeline", TEXT},
    {"shares", TEXT},
    {"digest", TEXT},
};
static const struct key handover_keys[] = {{"count", COUNT}, {"p50", REAL}, {"p99", REAL}};
static const struct key node_keys[] = {
    {"samples_read", COUNT},
    {"bytes_read", COUNT},
    {"samples_preprocessed", COUNT},
    {"reference", COUNT},
    {"floor", COUNT},
    {"redundancy", REAL},
    {"chunks_per_epoch", COUNT},
    {"slots", COUNT},
    {"worker_cpu_seconds", REAL},
    {"reader_cpu_seconds", REAL},
    {"loop_cpu_seconds", REAL},
    {"job_cpu_seconds", REAL},
    {"rss_bytes", COUNT},
    {"rate_all", REAL},
    {"separate", COUNT},
    {"waits_on_dead", COUNT},
    {"bad_samples", COUNT},
    {"worker_restarts", COUNT},
    {"reader_restarts", COUNT},
    {"parent_restarts", COUNT},
    {"uptime_s", REAL},
    {"known", BOOL},
};
static const struct key cache_keys[] = {{"point", TEXT_OR_NULL},
					{"why_off", TEXT_OR_NULL},
					{"hits", COUNT},
					{"misses", COUNT},
					{"bytes", COUNT}};

static bool is_kind(const struct json_in *value, enum kind kind)
{
	enum json_in_kind is = json_in_kind_of(value);

	switch (kind) {
	case COUNT:
		return is == JSON_IN_INTEGER && json_in_i64(value, -1) >= 0;
	case REAL:
		return (is == JSON_IN_REAL || is == JSON_IN_INTEGER) &&
		       json_in_double(value, -1) >= 0;
	case BOOL:
		return is == JSON_IN_BOOL;
	case TEXT:
		return is == JSON_IN_STRING;
	case TEXT_OR_NULL:
		return is == JSON_IN_STRING || is == JSON_IN_NULL;
	}
	return false;
}

/* The object has all keys, of their kinds, and no others but so many. */
static void check_keys(const struct json_in *object, const struct key *keys, size_t n, size_t more)
{
	ck_assert_int_eq(json_in_kind_of(object), JSON_IN_OBJECT);
	for (size_t i = 0; i < n; i++) {
		const struct json_in *value = json_in_member(object, keys[i].name);

		ck_assert_msg(value != NULL, "no key %s", keys[i].name);
		ck_assert_msg(is_kind(value, keys[i].kind), "%s is of another kind", keys[i].name);
	}
	ck_assert_uint_eq(json_in_count(object), n + more);
}

START_TEST(the_json_is_whole)
{
	static const unsigned rows[] = {0, 9};
	struct json_in *json = collect(2, rows, false);
	const struct json_in *job = job_of(json, 1);

	check_keys(json, top_keys, BASE_ARRAY_LEN(top_keys), 3);
	ck_assert_uint_eq(json_in_count(json_in_member(json, "jobs")), 2);
	for (unsigned i = 0; i < 2; i++) {
		check_keys(job_of(json, i), job_keys, BASE_ARRAY_LEN(job_keys), 1);
		check_keys(json_in_member(job_of(json, i), "handover_us"), handover_keys,
			   BASE_ARRAY_LEN(handover_keys), 0);
	}
	check_keys(json_in_member(json, "node"), node_keys, BASE_ARRAY_LEN(node_keys), 0);
	check_keys(json_in_member(json, "cache"), cache_keys, BASE_ARRAY_LEN(cache_keys), 0);
	ck_assert_int_eq(json_in_kind_of(json_in_member(job_of(json, 0), "error")), JSON_IN_NULL);
	ck_assert_str_eq(json_in_string(json_in_member(job, "error"), ""), "it \"failed\"");
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "samples"), 0), 2 * N);
	ck_assert_double_eq(json_in_double(json_in_member(job, "seconds"), 0), 2);
	ck_assert_double_eq(json_in_double(json_in_member(job, "wait_seconds"), 0), 1.5);
	ck_assert_double_eq(json_in_double(json_in_member(job, "first_batch_ms"), 0), 250);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "kills"), 0), 1);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "stops"), 0), 2);
	ck_assert_str_eq(json_in_string(json_in_member(job, "order"), ""), "seeded");
	ck_assert_uint_eq(json_in_u64(json_in_member(job_of(json, 0), "seed"), 0), 5);
	ck_assert_uint_eq(json_in_u64(json_in_member(job, "seed"), 0), 1000000000000000);
	json_in_free(json);
}
END_TEST

/* accessd's counters run since its start: what the run cost is the difference. */
START_TEST(the_node_s_figures_are_differences)
{
	static const unsigned rows[] = {0, 0};
	struct json_in *json = collect(2, rows, false);
	const struct json_in *node = json_in_member(json, "node");

	ck_assert(json_in_bool(json_in_member(node, "known"), false));
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "samples_preprocessed"), 0), 48);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "bytes_read"), 0), 4000);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "reference"), 0), 24);
	ck_assert_double_eq(json_in_double(json_in_member(node, "redundancy"), 0), 2); /* 48 / 24 */
	ck_assert_double_eq(json_in_double(json_in_member(node, "worker_cpu_seconds"), 0), 2.5);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "rss_bytes"), 0), 4096);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "worker_restarts"), 0), 3);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "slots"), 0), 6);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "floor"), 0), 2 * N);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "separate"), 0), 4 * N);
	ck_assert_uint_eq(json_in_u64(json_in_member(node, "chunks_per_epoch"), 0), 3); /* 12 / 5 */
	json_in_free(json);
}
END_TEST

/* What was kept: since the run began, and the point of the stream that it mattered to. */
START_TEST(kept)
{
	const unsigned rows[1] = {0};
	struct json_in *json = collect(1, rows, false);
	const struct json_in *cache = json_in_member(json, "cache");

	ck_assert_str_eq(json_in_string(json_in_member(cache, "point"), ""), "packed");
	ck_assert_uint_eq(json_in_u64(json_in_member(cache, "hits"), 0), 31);
	ck_assert_uint_eq(json_in_u64(json_in_member(cache, "misses"), 0), 4);
	ck_assert_uint_eq(json_in_u64(json_in_member(cache, "bytes"), 0), 630);
	json_in_free(json);
}
END_TEST

/* Unless it is another accessd that answers: then its counters are all there is. */
START_TEST(a_restarted_node_s_figures_are_its_own)
{
	config = (struct bench_config){.jobs = 1, .epochs = 2};
	crew = (struct bench_crew){.config = &config, .shared = bench_shared_new(1)};
	crew.member[0].ledger_fd = fill_ledger(0);
	bench_result_collect(&crew, false, status[0], status[2], &result);
	ck_assert(result.node.known);
	ck_assert_uint_eq(result.node.samples_preprocessed, 40);
	ck_assert_double_eq(result.node.redundancy, 2);
	bench_result_collect(&crew, false, status[0], "no JSON", &result);
	ck_assert(!result.node.known);
	base_close(&crew.member[0].ledger_fd);
	bench_shared_free(crew.shared);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, values_that_cannot_be_are_seen, 0, BASE_ARRAY_LEN(batches));
	tcase_add_test(tcase, a_digest_is_of_samples);
	tcase_add_loop_test(tcase, deliveries_are_judged, 0, BASE_ARRAY_LEN(deliveries));
	tcase_add_test(tcase, nothing_is_not_everything);
	tcase_add_loop_test(tcase, the_rate_of_all_is_said_or_why_there_is_none, 0, 2);
	tcase_add_test(tcase, the_usual_pipeline_is_named);
	tcase_add_test(tcase, the_json_is_whole);
	tcase_add_test(tcase, the_node_s_figures_are_differences);
	tcase_add_test(tcase, kept);
	tcase_add_test(tcase, a_restarted_node_s_figures_are_its_own);
}

int main(void)
{
	return suite_run("bench", add);
}
