/* SPDX-License-Identifier: Apache-2.0 */

/* Several pictures of one sample: decoded once, each with ops and draws of its own, and the first one as if it were alone. */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/engine.h"
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_inner.h"
#include "pipeline/spec/compare.h"
#include "tests/pipeline/engine_plain.h"

#define ROOM (3 << 14)
#define SIDE 96
#define OPS                                                                                \
	"{\"op\":\"random_resized_crop\",\"size\":32},{\"op\":\"hflip\"},{\"op\":"         \
	"\"random_apply\",\"p\":0.5},{\"op\":\"color_jitter\",\"brightness\":0.4,\"hue\":" \
	"0.1},{\"op\":\"gaussian_blur\",\"kernel_size\":5},{\"op\":\"layout\"}"
#define SMALL \
	"{\"op\":\"random_resized_crop\",\"size\":[16,20]},{\"op\":\"vflip\"},{\"op\":\"cast\"}"
#define LABEL ",{\"op\":\"one_hot\",\"num_classes\":9}"
#define ONE "[{\"op\":\"decode\"}," OPS LABEL "]"
#define FOUR                                                                         \
	"[{\"op\":\"decode\"}," OPS ",{\"op\":\"view\",\"names\":[\"second\"]}," OPS \
	",{\"op\":\"view\",\"names\":[\"small1\",\"small2\"]}," SMALL LABEL "]"

struct bench {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	unsigned sizes; /* that were told: a decode each */
	uint8_t *field[PIPELINE_MAX_FIELDS];
	struct pipeline_error error;
};

static void bench_size(void *arg, uint32_t height, uint32_t width)
{
	ck_assert_uint_eq(height, SIDE);
	ck_assert_uint_eq(width, SIDE);
	++*(unsigned *)arg;
}

static void bench_new(struct bench *bench, const char *text)
{
	struct diag diag = {.text = ""};
	const struct pipeline *one;

	memset(bench, 0, sizeof(*bench));
	ck_assert_msg(pipeline_compile(text, strlen(text), &bench->pipeline, &diag) == 0, "%s",
		      diag.text);
	one = bench->pipeline;
	ck_assert_int_eq(pipeline_run_new(&one, 1, &bench->run), 0);
	pipeline_run_watch(bench->run, bench_size, &bench->sizes);
	for (int f = 0; f < PIPELINE_MAX_FIELDS; f++)
		bench->field[f] = calloc(1, ROOM);
}

static void bench_free(struct bench *bench)
{
	pipeline_run_free(bench->run);
	pipeline_free(bench->pipeline);
	for (int f = 0; f < PIPELINE_MAX_FIELDS; f++)
		free(bench->field[f]);
}

/* A picture that no two crops of are alike. */
static size_t picture(uint8_t *data)
{
	size_t at = (size_t)sprintf((char *)data, "P6\n%d %d\n255\n", SIDE, SIDE);

	for (unsigned i = 0; i < SIDE * SIDE; i++, at += 3) {
		data[at] = (uint8_t)(i % SIDE * 2);
		data[at + 1] = (uint8_t)(i / SIDE * 2);
		data[at + 2] = (uint8_t)(i * 7);
	}
	return at;
}

static void bench_sample(struct bench *bench, uint64_t sample)
{
	static uint8_t data[SIDE * SIDE * 3 + 64];
	const struct pipeline_key key = {1, 2, sample};
	struct pipeline_out out;

	for (int f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = bench->field[f];
	ck_assert_msg(pipeline_run_sample(bench->run, 1, data, picture(data), 7, &key, &out,
					  &bench->error) == 0,
		      "%s", bench->error.text);
}

START_TEST(fields_are_named)
{
	static const char *const names[] = {"image", "label", "second", "small1", "small2"};
	static const uint64_t shapes[][4] = {
	    {3, 32, 32}, {9}, {3, 32, 32}, {16, 20, 3}, {16, 20, 3}};
	const struct pipeline_field *fields;
	struct bench bench;

	bench_new(&bench, FOUR);
	ck_assert_uint_eq(pipeline_fields(bench.pipeline, &fields), BASE_ARRAY_LEN(names));
	for (unsigned f = 0; f < BASE_ARRAY_LEN(names); f++) {
		ck_assert_str_eq(fields[f].name, names[f]);
		ck_assert_mem_eq(fields[f].shape, shapes[f], sizeof(shapes[f]));
	}
	ck_assert_int_eq(fields[3].dtype, PIPELINE_F32);
	ck_assert_uint_eq(pipeline_views(bench.pipeline), 3);
	bench_free(&bench);
}
END_TEST

START_TEST(a_picture_is_decoded_once)
{
	struct bench one, four;

	bench_new(&one, ONE);
	bench_new(&four, FOUR);
	for (uint64_t sample = 0; sample < 20; sample++) {
		bench_sample(&one, sample);
		bench_sample(&four, sample);
		ck_assert_uint_eq(four.sizes, sample + 1);
		ck_assert_mem_eq(one.field[0], four.field[0], 3 * 32 * 32);
		ck_assert_mem_eq(one.field[1], four.field[1], 9 * sizeof(float));
	}
	bench_free(&one);
	bench_free(&four);
}
END_TEST

/* Each view is what the plain engine makes of the whole file with the view's own draws. */
START_TEST(a_view_is_what_its_ops_make)
{
	static uint8_t data[SIDE * SIDE * 3 + 64], want[ROOM];
	const size_t size = picture(data);
	struct bench bench;

	bench_new(&bench, FOUR);
	for (unsigned i = 0; i < pipeline_views(bench.pipeline); i++) {
		const struct pipeline_view *view = bench.pipeline->view[i];
		struct engine_program *program;
		struct engine_scratch *scratch;

		ck_assert_int_eq(engine_plain.compile(&view->ops, &view->shape, &program), 0);
		ck_assert_int_eq(engine_plain.scratch_new(program, &scratch), 0);
		for (uint64_t sample = 0; sample < 20; sample++) {
			const struct pipeline_key key = {1, 2, sample};

			bench_sample(&bench, sample);
			ck_assert_int_eq(engine_plain.run(program, scratch, data, size, &key, want,
							  &bench.error),
					 0);
			ck_assert_mem_eq(bench.field[2 + i], want,
					 bench.pipeline->fields[2 + i].bytes);
		}
		engine_plain.scratch_free(scratch);
		engine_plain.program_free(program);
	}
	bench_free(&bench);
}
END_TEST

START_TEST(views_have_draws_of_their_own)
{
	unsigned same_as_first = 0, same_as_each_other = 0;
	uint8_t before[3 * 32 * 32];
	struct bench bench;

	bench_new(&bench, FOUR);
	for (uint64_t sample = 0; sample < 50; sample++) {
		bench_sample(&bench, sample);
		same_as_first += memcmp(bench.field[0], bench.field[2], 3 * 32 * 32) == 0;
		same_as_each_other += memcmp(bench.field[3], bench.field[4], 4 * 16 * 20 * 3) == 0;
		memcpy(before, bench.field[2], sizeof(before));
		bench_sample(&bench, sample);
		ck_assert_mem_eq(before, bench.field[2], sizeof(before));
	}
	ck_assert_uint_eq(same_as_first, 0);
	ck_assert_uint_eq(same_as_each_other, 0);
	bench_free(&bench);
}
END_TEST

/* Decoded pixels that were kept serve all of them. */
START_TEST(kept_pixels_are_the_files)
{
	static uint8_t data[SIDE * SIDE * 3 + 64], kept[SIDE * SIDE * 8];
	const struct pipeline_key key = {1, 2, 5};
	struct bench bench;
	struct pipeline_out out;
	uint8_t before[3 * 32 * 32], small[4 * 16 * 20 * 3];
	size_t size;

	bench_new(&bench, FOUR);
	ck_assert_int_eq(pipeline_cut_make(bench.run, 0, 1, data, picture(data), &key, kept,
					   sizeof(kept), &size, &bench.error),
			 0);
	ck_assert_int_eq(pipeline_cut_make(bench.run, 0, PIPELINE_CUT_AUGMENTED, data,
					   picture(data), &key, kept, sizeof(kept), &size,
					   &bench.error),
			 -EINVAL);
	bench_sample(&bench, 5);
	memcpy(before, bench.field[2], sizeof(before));
	memcpy(small, bench.field[4], sizeof(small));
	for (int f = 0; f < PIPELINE_MAX_FIELDS; f++) {
		memset(bench.field[f], 0xa5, ROOM);
		out.field[f] = bench.field[f];
	}
	ck_assert_int_eq(pipeline_run_sample(bench.run, 1, kept, size, 7, &key, &out, &bench.error),
			 0);
	ck_assert_mem_eq(before, bench.field[2], sizeof(before));
	ck_assert_mem_eq(small, bench.field[4], sizeof(small));
	bench_free(&bench);
}
END_TEST

START_TEST(its_text_is_its_name)
{
	struct pipeline *again, *one;
	struct hash_id id, other;
	struct bench bench;
	unsigned cuts[PIPELINE_MAX_OPS];
	const char *text;
	struct diag diag;

	bench_new(&bench, FOUR);
	text = pipeline_canonical(bench.pipeline);
	ck_assert_int_eq(pipeline_compile(text, strlen(text), &again, &diag), 0);
	ck_assert_str_eq(pipeline_canonical(again), text);
	ck_assert_int_eq(pipeline_compile(ONE, strlen(ONE), &one, &diag), 0);
	pipeline_hash(again, &id);
	pipeline_hash(one, &other);
	ck_assert_mem_ne(&id, &other, sizeof(id));
	ck_assert(pipeline_is_random(again));
	ck_assert(compare_can_meet(again, bench.pipeline));
	ck_assert(!compare_can_meet(again, one));
	ck_assert_uint_eq(pipeline_cuts(again, cuts), 1); /* decoded */
	pipeline_hash_cut(again, 1, &id);
	pipeline_hash_cut(one, 1, &other);
	ck_assert_mem_eq(&id, &other, sizeof(id));
	pipeline_free(one);
	pipeline_free(again);
	bench_free(&bench);
}
END_TEST

#define VIEW(names) ",{\"op\":\"view\",\"names\":[" names "]}"
#define CROP "{\"op\":\"center_crop\",\"size\":8}"
#define DECODE "{\"op\":\"decode\"}," CROP
#define FAST "[{\"op\":\"decode\",\"fast\":true},"
#define RESIZE "{\"op\":\"resize\",\"size\":[8,8]}"
#define FIVE(a) "\"" a "1\",\"" a "2\",\"" a "3\",\"" a "4\",\"" a "5\""

/* Where any of them may be decoded smaller there is no one picture to keep. */
START_TEST(decoded_is_kept_for_all_or_none)
{
	static const struct {
		const char *text;
		unsigned cuts;
	} one[] = {
	    {FAST CROP VIEW("\"a\"") "," CROP "]", 1},
	    {FAST RESIZE VIEW("\"a\"") "," CROP "]", 0},
	    {FAST CROP VIEW("\"a\"") "," RESIZE "]", 0},
	    {FAST CROP VIEW("\"a\"") "," RESIZE VIEW("\"b\"") "," CROP "]", 0},
	    {"[" DECODE VIEW("\"a\"") "," RESIZE "]", 1},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(one); i++) {
		unsigned cuts[PIPELINE_MAX_OPS];
		struct bench bench;

		bench_new(&bench, one[i].text);
		ck_assert_msg(pipeline_cuts(bench.pipeline, cuts) == one[i].cuts, "%s",
			      one[i].text);
		bench_free(&bench);
	}
}
END_TEST

static const struct {
	const char *text, *says;
} wrong[] = {
    {"[" DECODE VIEW("\"image\"") "," CROP "]", "another field has that name"},
    {"[" DECODE VIEW("\"a\",\"a\"") "," CROP "]", "another field has that name"},
    {"[" DECODE VIEW("\"index\"") "," CROP "]", "the samples' numbers"},
    {"[" DECODE VIEW("\"a\"") "]", "view \"a\": pipeline: the image's size would differ"},
    {"[" DECODE VIEW("\"a\"") "," DECODE "]", "view \"a\": it begins with an op on files"},
    {"[" DECODE LABEL VIEW("\"a\"") "," CROP "]", "op 4 (view): put it before the ops on labels"},
    {"[" DECODE VIEW(FIVE("a") "," FIVE("b") "," FIVE("c") ",\"d\"") "," CROP "]",
     "more than 15 beside"},
    {"[" DECODE VIEW("") "," CROP "]", "names"},
    {"[{\"op\":\"view\",\"names\":[\"a\"]}," DECODE "]", "the first op must be decode"},
    {"[" DECODE VIEW("\"a\"") "," CROP ",{\"op\":\"mixup\",\"num_classes\":3}]", "mixup"},
};

START_TEST(wrong_texts_are_told)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_int_eq(pipeline_compile(wrong[_i].text, strlen(wrong[_i].text), &pipeline, &diag),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(diag.text, wrong[_i].says) != NULL, "%s", diag.text);
}
END_TEST

START_TEST(fifteen_are_the_most)
{
	struct bench bench;

	bench_new(&bench, "[" DECODE VIEW(FIVE("a") "," FIVE("b") "," FIVE("c")) "," CROP "]");
	bench_sample(&bench, 3);
	for (unsigned i = 0; i < 15; i++)
		ck_assert_mem_eq(bench.field[2 + i], bench.field[0], 8 * 8 * 3);
	ck_assert_uint_eq(bench.sizes, 1);
	bench_free(&bench);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("views");
	TCase *text = tcase_create("text"), *pixels = tcase_create("pixels");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(text, fields_are_named);
	tcase_add_test(text, its_text_is_its_name);
	tcase_add_test(text, decoded_is_kept_for_all_or_none);
	tcase_add_loop_test(text, wrong_texts_are_told, 0, BASE_ARRAY_LEN(wrong));
	suite_add_tcase(suite, text);
	tcase_add_test(pixels, a_picture_is_decoded_once);
	tcase_add_test(pixels, a_view_is_what_its_ops_make);
	tcase_add_test(pixels, views_have_draws_of_their_own);
	tcase_add_test(pixels, fifteen_are_the_most);
	tcase_add_test(pixels, kept_pixels_are_the_files);
	suite_add_tcase(suite, pixels);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
