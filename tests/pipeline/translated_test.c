/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs are translated with: random_apply, timm_rand_augment and the late parameters of resize,
 * center_crop and random_resized_crop. What is refused, canonical texts, sizes that are known or not, how
 * often what is drawn (fixed seeds, bounds of five standard errors). Pixels are golden_translated.tsv's and
 * parity.py's.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/ops/apply.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/suite.h"

#define SAMPLES 45000
#define KINDS 15 /* AUGMENT_TIMM_... of augment_timm.c */
#define D "{\"op\":\"decode\"}"
#define CROP "{\"op\":\"center_crop\",\"size\":8}"
#define CROPPED "{\"op\":\"center_crop\",\"size\":[8,8]}"
#define APPLY "{\"op\":\"random_apply\""
#define INVERT "{\"op\":\"invert\"}"

static const struct {
	const char *text, *parts[2];
} translated_bad[] = {
    {"[" D "," CROP "," APPLY "}]", {"op 3 (random_apply): fewer ops", "\"otherwise\""}},
    {"[" D "," CROP "," APPLY ",\"ops\":2}," INVERT ",{\"op\":\"cast\"}]",
     {"op 5 (cast) cannot be done at random", "op 3 (random_apply)"}},
    {"[" D "," CROP "," APPLY ",\"otherwise\":1}," INVERT
     ",{\"op\":\"one_hot\",\"num_classes\":3}]",
     {"op 5 (one_hot) cannot be done at random", "fewer ops"}},
    {"[" D "," CROP "," APPLY "},{\"op\":\"five_crop\",\"size\":4}]",
     {"op 4 (five_crop) cannot be done at random", "op 3"}},
    {"[" D "," CROP "," APPLY "},{\"op\":\"ten_crop\",\"size\":4}]",
     {"op 4 (ten_crop) cannot be done at random", "op 3"}},
    {"[" D "," CROP "," APPLY "}," APPLY "}," INVERT "]",
     {"op 4 (random_apply): fewer ops", "add ops"}},
    {"[" D "," CROP "," APPLY ",\"ops\":0}," INVERT "]", {"ops is not from 1 to 32", "how many"}},
    {"[" D "," CROP "," APPLY ",\"p\":1.5}," INVERT "]", {"p is not from 0 to 1", "probability"}},
    {"[" D "," CROP "," APPLY "},{\"op\":\"grayscale\"}]",
     {"op 3 (random_apply): the picture would have one channel", "num_output_channels"}},
    {"[" D "," APPLY "}," CROP "]", {"op 3 (center_crop)", "sample to sample"}},
    {"[" D "," APPLY ",\"otherwise\":1}," CROP ",{\"op\":\"center_crop\",\"size\":9}]",
     {"op 4 (center_crop)", "sample to sample"}},
    {"[" D "," CROP ",{\"op\":\"layout\"}," APPLY "}," INVERT "]",
     {"op 4 (random_apply) works on 8-bit pictures", "before op 3 (layout)"}},
    {"[" D ",{\"op\":\"resize\",\"size\":8,\"fit\":\"cover\"}," CROP "]",
     {"op 2 (resize): \"fit\" needs", "a height and a width"}},
    {"[" D ",{\"op\":\"resize\",\"size\":[8,9],\"fit\":\"fill\"}," CROP "]",
     {"fit is none of its words", "contain"}},
    {"[" D ",{\"op\":\"resize\",\"size\":[8,9],\"fit\":\"contain\"}]",
     {"op 2 (resize)", "sample to sample"}},
    {"[" D ",{\"op\":\"center_crop\",\"size\":8,\"half\":\"up\"}]",
     {"half is none of its words", "Hugging Face"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"center_crop\",\"size\":8,\"fill\":[1,2,3]}]",
     {"op 3 (center_crop)", "one channel"}},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"or_interpolation\":\"random\"}]",
     {"or_interpolation is none of its words", "another filter"}},
    {"[" D "," CROP ",{\"op\":\"timm_rand_augment\",\"num_ops\":6}]",
     {"num_ops is not from 0 to 5", "changes"}},
    {"[" D ",{\"op\":\"grayscale\"}," CROP ",{\"op\":\"timm_rand_augment\",\"fill\":[1,2,3]}]",
     {"op 4 (timm_rand_augment)", "one channel"}},
};

START_TEST(bad)
{
	const char *text = translated_bad[_i].text;
	struct pipeline *pipeline;
	struct diag diag = {""};

	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_msg(strstr(diag.text, translated_bad[_i].parts[i]), "no \"%s\" in: %s",
			      translated_bad[_i].parts[i], diag.text);
}
END_TEST

static const struct {
	const char *text, *canonical; /* NULL: any */
	uint32_t height, width;
	bool is_random;
} translated_good[] = {
    {"[" D "," CROP "," APPLY "}," INVERT "]",
     "{\"ops\":[" D "," CROPPED ",{\"op\":\"random_apply\",\"ops\":1,\"otherwise\":0,\"p\":0.5},"
     "{\"op\":\"invert\",\"p\":0.5}]}",
     8, 8, true},
    /* whatever is drawn, the sizes agree; or what follows makes them agree */
    {"[" D "," APPLY ",\"otherwise\":1}," CROP ",{\"op\":\"random_resized_crop\",\"size\":8}]",
     NULL, 8, 8, true},
    {"[" D "," APPLY ",\"p\":0},{\"op\":\"resize\",\"size\":99}," CROP "]", NULL, 8, 8, true},
    {"[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"or_interpolation\":null}]",
     "{\"ops\":[" D ",{\"interpolation\":\"bilinear\",\"op\":\"random_resized_crop\",\"ratio\":"
     "[0.75,1.3333333333333333],\"scale\":[0.08,1],\"size\":[8,8]}]}",
     8, 8, true},
    {"[" D ",{\"op\":\"center_crop\",\"size\":8,\"fill\":0,\"half\":\"even\"}]",
     "{\"ops\":[" D "," CROPPED "]}", 8, 8, false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":8,\"fill\":9,\"half\":\"down\"}]",
     "{\"ops\":[" D ",{\"fill\":[9,9,9],\"half\":\"down\",\"op\":\"center_crop\",\"size\":[8,8]}]}",
     8, 8, false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[30,50]},{\"op\":\"resize\",\"size\":[10,10],\"fit\":"
     "\"cover\"}]",
     NULL, 10, 17, false},
    {"[" D ",{\"op\":\"center_crop\",\"size\":[30,50]},{\"op\":\"resize\",\"size\":[10,10],\"fit\":"
     "\"contain\"}]",
     NULL, 6, 10, false},
    {"[" D "," CROP ",{\"op\":\"timm_rand_augment\"}]",
     "{\"ops\":[" D "," CROPPED
     ",{\"fill\":[128,128,128],\"increasing\":false,\"interpolation\":\"random\",\"magnitude\":10,"
     "\"magnitude_max\":10,\"magnitude_std\":0,\"num_ops\":2,\"op\":\"timm_rand_augment\",\"p\":0."
     "5,"
     "\"translate\":0.45,\"uniform\":false}]}",
     8, 8, true},
    {"[" D "," CROP ",{\"op\":\"timm_rand_augment\",\"p\":0}]", NULL, 8, 8, false},
};

START_TEST(good)
{
	const char *text = translated_good[_i].text;
	const struct pipeline_field *fields;
	struct pipeline *pipeline;
	struct diag diag = {""};
	int r = pipeline_compile(text, strlen(text), &pipeline, &diag);

	ck_assert_msg(r == 0, "%s", diag.text);
	if (translated_good[_i].canonical)
		ck_assert_str_eq(pipeline_canonical(pipeline), translated_good[_i].canonical);
	pipeline_fields(pipeline, &fields);
	ck_assert_uint_eq(fields[0].shape[0], translated_good[_i].height);
	ck_assert_uint_eq(fields[0].shape[1], translated_good[_i].width);
	ck_assert(pipeline_is_random(pipeline) == translated_good[_i].is_random);
	pipeline_free(pipeline);
}
END_TEST

/* ---- draws ---- */

static void translated_parse(const char *text, struct op_list *ret)
{
	struct diag diag = {""};

	ck_assert_msg(spec_parse(text, strlen(text), ret, &diag) == 0, "%s", diag.text);
}

static void translated_draw(uint64_t sample, struct draw *ret)
{
	struct pipeline_key key = {3, 4, sample};

	draw_init(ret, &key);
}

static void translated_near(double count, double p)
{
	ck_assert_msg(fabs(count - SAMPLES * p) <= 5 * sqrt(SAMPLES * p * (1 - p)), "%g for %g",
		      count, SAMPLES * p);
}

/* A choice of one in three, as torchvision's RandomChoice is translated: exactly one is done. */
START_TEST(choice)
{
	static struct op_list ops;
	unsigned met[8] = {0};

	translated_parse("[" D "," APPLY ",\"p\":0.25,\"ops\":1,\"otherwise\":4}," INVERT "," APPLY
			 ",\"p\":0.5,\"ops\":1,\"otherwise\":2}," INVERT "," INVERT "," INVERT "]",
			 &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct draw draw;

		translated_draw(i, &draw);
		for (unsigned k = 0; k < ops.count; k++)
			met[k] += !apply_skips(&ops, k, &draw);
	}
	ck_assert_uint_eq(met[0], SAMPLES);
	ck_assert_uint_eq(met[1], SAMPLES);
	translated_near(met[2], 0.25);
	translated_near(met[3], 0.75);
	translated_near(met[4], 0.375);
	translated_near(met[5], 0.375);
	ck_assert_uint_eq(met[5], met[6]); /* two of one group: both or none */
	ck_assert_uint_eq(met[2] + met[4] + met[5], SAMPLES);
}
END_TEST

START_TEST(filters)
{
	static struct op_list ops;
	unsigned met[6] = {0};

	translated_parse("[" D ",{\"op\":\"random_resized_crop\",\"size\":8,\"or_interpolation\":"
			 "\"bicubic\"}]",
			 &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct op_drawn drawn;
		struct draw draw;

		translated_draw(i, &draw);
		op_draw(&ops.op[1], 1, &draw, 100, 100, &drawn);
		ck_assert_double_le(drawn.number[4], 5);
		met[(unsigned)drawn.number[4]]++;
	}
	translated_near(met[2], 0.5); /* bilinear; the rest is bicubic */
	ck_assert_uint_eq(met[2] + met[4], SAMPLES);
}
END_TEST

struct translated_sums {
	unsigned met[KINDS + 1], bicubic, negative;
	double sum, squares, least, most; /* of degrees of rotations */
};

static void translated_sum(const char *op, unsigned at, struct translated_sums *ret)
{
	static struct op_list ops;
	char text[256];

	snprintf(text, sizeof(text), "[" D ",%s]", op);
	translated_parse(text, &ops);
	*ret = (struct translated_sums){.least = INFINITY};
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct op_drawn drawn;
		const double *number = drawn.number + 3 * (size_t)at;
		struct draw draw;

		translated_draw(i, &draw);
		op_draw(&ops.op[1], 1, &draw, 100, 100, &drawn);
		ck_assert_double_le(number[0], KINDS);
		ret->met[(unsigned)number[0]]++;
		ret->bicubic += number[2] == 2;
		ck_assert(number[2] == 1 || number[2] == 2);
		if (number[0] != 4) /* Rotate */
			continue;
		ret->negative += number[1] < 0;
		ret->sum += fabs(number[1]);
		ret->squares += number[1] * number[1];
		ret->least = fmin(ret->least, fabs(number[1]));
		ret->most = fmax(ret->most, fabs(number[1]));
	}
}

/* Each change as often as any other, made with probability p, each sign and filter half of the time. */
START_TEST(timm_changes)
{
	struct translated_sums sums;

	translated_sum("{\"op\":\"timm_rand_augment\",\"p\":0.25,\"magnitude\":5}", (unsigned)_i,
		       &sums);
	translated_near(sums.met[0], 0.75);
	for (unsigned k = 1; k <= KINDS; k++)
		translated_near(sums.met[k], 0.25 / KINDS);
	translated_near(sums.bicubic, 0.5);
	translated_near(sums.negative, 0.25 / KINDS / 2);
	ck_assert_double_eq(sums.least, 15); /* no deviation: always half of 30 degrees */
	ck_assert_double_eq(sums.most, 15);
}
END_TEST

/* Around magnitude with the deviation asked for; or even, from 0 to magnitude; never above the most. */
START_TEST(timm_magnitudes)
{
	struct translated_sums sums;
	double n, mean, deviation;

	translated_sum(
	    "{\"op\":\"timm_rand_augment\",\"p\":1,\"magnitude\":5,\"magnitude_std\":0.5}", 1,
	    &sums);
	n = sums.met[4];
	mean = sums.sum / n;
	deviation = sqrt(sums.squares / n - mean * mean);
	ck_assert_double_le(fabs(mean - 15), 5 * 1.5 / sqrt(n));
	ck_assert_double_le(fabs(deviation - 1.5), 5 * 1.5 / sqrt(2 * n));
	translated_sum("{\"op\":\"timm_rand_augment\",\"p\":1,\"magnitude\":5,\"uniform\":true}", 0,
		       &sums);
	n = sums.met[4];
	ck_assert_double_le(fabs(sums.sum / n - 7.5), 5 * 15 / sqrt(12 * n));
	ck_assert(sums.least < 0.1 && sums.most > 14.9 && sums.most < 15);
	translated_sum("{\"op\":\"timm_rand_augment\",\"p\":1,\"magnitude\":9,\"magnitude_std\":5}",
		       0, &sums);
	ck_assert_double_eq(sums.least, 0);
	ck_assert_double_eq(sums.most, 30);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, bad, 0, BASE_ARRAY_LEN(translated_bad));
	tcase_add_loop_test(tcase, good, 0, BASE_ARRAY_LEN(translated_good));
	tcase_add_test(tcase, choice);
	tcase_add_test(tcase, filters);
	tcase_add_loop_test(tcase, timm_changes, 0, 2);
	tcase_add_test(tcase, timm_magnitudes);
}

int main(void)
{
	return suite_run("translated", add);
}
