/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colour ops in specs: what is refused and how it is said, canonical texts, shapes, and the draws:
 * distributions (fixed seeds, bounds of five standard errors) and frozen values. Their pixels are
 * golden.tsv's and parity.py's.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/suite.h"

#define SAMPLES 48000
#define D "{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}"
#define C "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[8,8]},"

static const struct {
	const char *text, *parts[2];
} colour_op_bad[] = {
    {"[" D ",{\"op\":\"color_jitter\",\"brightness\":-0.1}]",
     {"op 3 (color_jitter): brightness is a number below 0", "(left out: null)"}},
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":[-0.5,1]}]",
     {"contrast is not from 0", "[1 - x"}},
    {"[" D ",{\"op\":\"color_jitter\",\"saturation\":[2,1]}]", {"begins with the larger", "null"}},
    {"[" D ",{\"op\":\"color_jitter\",\"hue\":0.6}]", {"hue is not from -0.5 to 0.5", "circle"}},
    {"[" D ",{\"op\":\"color_jitter\",\"hue\":\"red\"}]", {"hue is neither a number", "circle"}},
    {"[" D ",{\"op\":\"random_photometric_distort\",\"brightness\":0.5}]",
     {"brightness is no pair of numbers", "from 0 on"}},
    {"[" D ",{\"op\":\"random_photometric_distort\",\"hue\":[-0.6,0]}]",
     {"hue is not from -0.5 to 0.5", "circle"}},
    {"[" D ",{\"op\":\"grayscale\",\"num_output_channels\":2}]",
     {"(grayscale): two channels", "1 or 3"}},
    {"[" D ",{\"op\":\"grayscale\",\"num_output_channels\":4}]", {"is not from 1 to 3", "give 1"}},
    {"[" D ",{\"op\":\"grayscale\",\"p\":0.1}]", {"no parameter \"p\"", "num_output_channels"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"normalize\",\"mean\":[0,0,0],\"std\":1}]",
     {"op 4 (normalize): the picture has one channel", "give one number"}},
    {"[" D ",{\"op\":\"random_grayscale\",\"p\":2}]", {"p is not from 0 to 1", "probability"}},
    {"[" D ",{\"op\":\"autocontrast\",\"cutoff\":1}]", {"no parameter \"cutoff\"", "it has p"}},
    {"[" D ",{\"op\":\"posterize\"}]", {"(posterize): bits is missing", "1 to 8"}},
    {"[" D ",{\"op\":\"posterize\",\"bits\":0}]", {"bits is not from 1 to 8", "kept"}},
    {"[" D ",{\"op\":\"posterize\",\"bits\":2.5}]", {"bits is no whole number", "kept"}},
    {"[" D ",{\"op\":\"solarize\"}]", {"threshold is missing", "0 to 256"}},
    {"[" D ",{\"op\":\"solarize\",\"threshold\":-1}]", {"threshold is not from 0 to 256", "least"}},
    {"[" D ",{\"op\":\"sharpness\",\"sharpness_factor\":-1}]",
     {"sharpness_factor is not", "sharper"}},
    {"[" D ",{\"op\":\"random_channel_permutation\",\"p\":1}]",
     {"op 3 (random_channel_permutation)", "no parameter \"p\"; it has none"}},
    {"[" D ",{\"op\":\"levels\",\"gamma\":0}]", {"gamma is not from 0.01 to 100", "power"}},
    {"[" D ",{\"op\":\"levels\",\"brightness\":[0.2,-0.2]}]", {"begins with the larger", "parts"}},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"levels\",\"red\":[-1,1]}]",
     {"op 4 (levels): a picture of one channel has no red", "give brightness"}},
    {"[" D ",{\"op\":\"box_blur\",\"size\":[3,6]}]", {"op 3 (box_blur)", "give odd"}},
    {"[" D ",{\"op\":\"median_blur\",\"size\":17}]", {"size is not from 3 to 15", "odd"}},
    {"[" D ",{\"op\":\"motion_blur\",\"size\":4.5}]", {"op 3 (motion_blur)", "give odd"}},
    {"[" D ",{\"op\":\"sharpen\",\"alpha\":[0,2]}]", {"alpha is not from 0 to 1", "share"}},
    {"[" D ",{\"op\":\"hue_saturation_value\",\"hue\":361}]",
     {"hue is not from -360 to 360", "whole turn"}},
    {"[" D ",{\"op\":\"layout\"},{\"op\":\"invert\"}]",
     {"op 4 (invert) works on 8-bit", "before op 3"}},
};

START_TEST(bad)
{
	const char *text = colour_op_bad[_i].text;
	struct pipeline *pipeline;
	struct diag diag = {""};

	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), PIPELINE_E_BAD);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_msg(strstr(diag.text, colour_op_bad[_i].parts[i]), "no \"%s\" in: %s",
			      colour_op_bad[_i].parts[i], diag.text);
}
END_TEST

static const struct {
	const char *text, *canonical;
	unsigned channels;
	bool is_random;
} colour_op_good[] = {
    {"[" D ",{\"op\":\"color_jitter\"}]",
     C "{\"brightness\":null,\"contrast\":null,\"hue\":null,\"op\":\"color_jitter\",\"saturation\":"
       "null}]}",
     3, false},
    {"[" D ",{\"op\":\"random_photometric_distort\"}]",
     C "{\"brightness\":[0.875,1.125],\"contrast\":[0.5,1.5],\"hue\":[-0.05,0.05],\"op\":"
       "\"random_photometric_distort\",\"p\":0.5,\"saturation\":[0.5,1.5]}]}",
     3, true},
    {"[" D ",{\"op\":\"random_photometric_distort\",\"p\":0}]",
     C "{\"brightness\":[0.875,1.125],\"contrast\":[0.5,1.5],\"hue\":[-0.05,0.05],\"op\":"
       "\"random_photometric_distort\",\"p\":0,\"saturation\":[0.5,1.5]}]}",
     3, false},
    {"[" D ",{\"op\":\"color_jitter\",\"brightness\":0.25,\"contrast\":2,\"hue\":[-0.1,0.5]}]",
     C "{\"brightness\":[0.75,1.25],\"contrast\":[0,3],\"hue\":[-0.1,0.5],\"op\":\"color_jitter\","
       "\"saturation\":null}]}",
     3, true},
    /* nothing to draw; two whose order is drawn; one of the two changes nothing */
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":[2,2]}]",
     C "{\"brightness\":null,\"contrast\":[2,2],\"hue\":null,\"op\":\"color_jitter\","
       "\"saturation\":null}]}",
     3, false},
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":[2,2],\"hue\":[0.1,0.1]}]",
     C "{\"brightness\":null,\"contrast\":[2,2],\"hue\":[0.1,0.1],\"op\":\"color_jitter\","
       "\"saturation\":null}]}",
     3, true},
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":[2,2],\"hue\":0}]",
     C "{\"brightness\":null,\"contrast\":[2,2],\"hue\":[0,0],\"op\":\"color_jitter\","
       "\"saturation\":null}]}",
     3, false},
    /* done or not; never done */
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":[2,2],\"p\":0.25}]",
     C "{\"brightness\":null,\"contrast\":[2,2],\"hue\":null,\"op\":\"color_jitter\",\"p\":0.25,"
       "\"saturation\":null}]}",
     3, true},
    {"[" D ",{\"op\":\"color_jitter\",\"contrast\":2,\"p\":0}]",
     C "{\"brightness\":null,\"contrast\":[0,3],\"hue\":null,\"op\":\"color_jitter\",\"p\":0,"
       "\"saturation\":null}]}",
     3, false},
    {"[" D ",{\"op\":\"color_jitter\",\"p\":0.5}]",
     C "{\"brightness\":null,\"contrast\":null,\"hue\":null,\"op\":\"color_jitter\",\"p\":0.5,"
       "\"saturation\":null}]}",
     3, false},
    {"[" D ",{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"p\":0.5,\"sigma\":1}]",
     C "{\"kernel_size\":[3,3],\"op\":\"gaussian_blur\",\"p\":0.5,\"sigma\":[1,1]}]}", 3, true},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"normalize\",\"mean\":[0.5],\"std\":0.25}]",
     C "{\"num_output_channels\":1,\"op\":\"grayscale\"},{\"mean\":0.5,\"op\":\"normalize\","
       "\"std\":0.25}]}",
     1, false},
    {"[" D ",{\"op\":\"grayscale\"},{\"op\":\"grayscale\",\"num_output_channels\":3}]",
     C "{\"num_output_channels\":1,\"op\":\"grayscale\"},{\"num_output_channels\":3,\"op\":"
       "\"grayscale\"}]}",
     3, false},
    {"[" D ",{\"op\":\"random_grayscale\"}]", C "{\"op\":\"random_grayscale\",\"p\":0.1}]}", 3,
     true},
    {"[" D ",{\"op\":\"autocontrast\"},{\"op\":\"equalize\"},{\"op\":\"invert\"}]",
     C "{\"op\":\"autocontrast\",\"p\":0.5},{\"op\":\"equalize\",\"p\":0.5},{\"op\":\"invert\","
       "\"p\":0.5}]}",
     3, true},
    {"[" D
     ",{\"op\":\"posterize\",\"bits\":3,\"p\":1},{\"op\":\"solarize\",\"threshold\":76.5,\"p\":0}]",
     C
     "{\"bits\":3,\"op\":\"posterize\",\"p\":1},{\"op\":\"solarize\",\"p\":0,\"threshold\":76.5}]}",
     3, false},
    {"[" D ",{\"op\":\"sharpness\",\"sharpness_factor\":2}]",
     C "{\"op\":\"sharpness\",\"p\":0.5,\"sharpness_factor\":2}]}", 3, true},
    {"[" D ",{\"op\":\"levels\",\"contrast\":[0.8,1.2],\"brightness\":0.5}]",
     C "{\"blue\":[0,0],\"brightness\":[0.5,0.5],\"contrast\":[0.8,1.2],\"gamma\":[1,1],\"green\":["
       "0,0],"
       "\"op\":\"levels\",\"p\":0.5,\"red\":[0,0]}]}",
     3, true},
    {"[" D ",{\"op\":\"levels\",\"gamma\":2,\"p\":1}]",
     C "{\"blue\":[0,0],\"brightness\":[0,0],\"contrast\":[1,1],\"gamma\":[2,2],\"green\":[0,0],"
       "\"op\":"
       "\"levels\",\"p\":1,\"red\":[0,0]}]}",
     3, false},
    {"[" D ",{\"op\":\"levels\",\"gamma\":[1,2],\"p\":0}]",
     C "{\"blue\":[0,0],\"brightness\":[0,0],\"contrast\":[1,1],\"gamma\":[1,2],\"green\":[0,0],"
       "\"op\":"
       "\"levels\",\"p\":0,\"red\":[0,0]}]}",
     3, false},
    {"[" D ",{\"op\":\"hue_saturation_value\",\"hue\":9,\"saturation\":0,\"value\":-3,\"p\":1}]",
     C "{\"hue\":[9,9],\"op\":\"hue_saturation_value\",\"p\":1,\"saturation\":[0,0],\"value\":[-3,-"
       "3]}]}",
     3, false},
    {"[" D ",{\"op\":\"box_blur\",\"size\":5,\"p\":1}]",
     C "{\"op\":\"box_blur\",\"p\":1,\"size\":[5,5]}]}", 3, false},
    {"[" D ",{\"op\":\"median_blur\"}]", C "{\"op\":\"median_blur\",\"p\":0.5,\"size\":[3,7]}]}", 3,
     true},
    {"[" D ",{\"op\":\"motion_blur\",\"size\":5,\"angle\":0,\"direction\":1,\"p\":1}]",
     C "{\"angle\":[0,0],\"direction\":[1,1],\"op\":\"motion_blur\",\"p\":1,\"shift\":true,"
       "\"size\":[5,5]}]}",
     3, true},
    {"[" D
     ",{\"op\":\"motion_blur\",\"size\":5,\"angle\":0,\"direction\":1,\"shift\":false,\"p\":1}]",
     C "{\"angle\":[0,0],\"direction\":[1,1],\"op\":\"motion_blur\",\"p\":1,\"shift\":false,"
       "\"size\":[5,5]}]}",
     3, false},
    {"[" D ",{\"op\":\"sharpen\",\"alpha\":0.3,\"lightness\":1,\"p\":1}]",
     C "{\"alpha\":[0.3,0.3],\"lightness\":[1,1],\"op\":\"sharpen\",\"p\":1}]}", 3, false},
    {"[" D ",{\"op\":\"hue_saturation_value\"}]",
     C "{\"hue\":[-20,20],\"op\":\"hue_saturation_value\",\"p\":0.5,\"saturation\":[-30,30],"
       "\"value\":[-20,20]}]}",
     3, true},
    {"[" D ",{\"op\":\"random_channel_permutation\"}]",
     C "{\"op\":\"random_channel_permutation\"}]}", 3, true},
};

START_TEST(good)
{
	const struct pipeline_field *fields;
	struct pipeline *pipeline;
	struct diag diag = {""};
	const char *text = colour_op_good[_i].text;
	int r = pipeline_compile(text, strlen(text), &pipeline, &diag);

	ck_assert_msg(r == 0, "%s", diag.text);
	ck_assert_str_eq(pipeline_canonical(pipeline), colour_op_good[_i].canonical);
	ck_assert(pipeline_is_random(pipeline) == colour_op_good[_i].is_random);
	pipeline_fields(pipeline, &fields);
	ck_assert_uint_eq(fields[0].ndim, 3);
	ck_assert_uint_eq(fields[0].shape[2], colour_op_good[_i].channels);
	pipeline_free(pipeline);
}
END_TEST

/* ---- draws ---- */

static void colour_op_parse(const char *text, struct op_list *ret)
{
	struct diag diag = {""};

	ck_assert_msg(spec_parse(text, strlen(text), ret, &diag) == 0, "%s", diag.text);
}

static void colour_op_drawn(const struct op_list *ops, unsigned index, uint64_t sample,
			    struct op_drawn *ret)
{
	struct pipeline_key key = {11, 5, sample};
	struct draw draw;

	draw_init(&draw, &key);
	op_draw(&ops->op[index], index, &draw, 100, 200, ret);
}

/* All 24 orders alike often, and each factor uniform over its range, whatever the order. */
START_TEST(jitter)
{
	static const double range[4][2] = {{0.5, 1.5}, {0, 3}, {0.25, 0.75}, {-0.5, 0.25}};
	static struct op_list ops;
	unsigned orders[256] = {0}, bins[4][8] = {{0}}, met = 0;
	struct op_drawn drawn;

	colour_op_parse(
	    "[{\"op\":\"decode\"},{\"op\":\"color_jitter\",\"brightness\":0.5,\"contrast\":2,"
	    "\"saturation\":[0.25,0.75],\"hue\":[-0.5,0.25]}]",
	    &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		unsigned order = 0;

		colour_op_drawn(&ops, 1, i, &drawn);
		for (unsigned k = 0; k < 4; k++) {
			double share =
			    (drawn.number[4 + k] - range[k][0]) / (range[k][1] - range[k][0]);

			if (!(share >= 0 && share < 1))
				ck_abort_msg("%g is out of range", share);
			bins[k][(unsigned)(share * 8)]++;
			order = order * 4 + (unsigned)drawn.number[k];
		}
		orders[order]++;
	}
	for (unsigned order = 0; order < 256; order++) {
		if (orders[order] == 0)
			continue;
		met++;
		ck_assert_double_le(fabs(orders[order] - SAMPLES / 24.0), 5 * sqrt(SAMPLES / 24.0));
	}
	ck_assert_uint_eq(met, 24);
	for (unsigned k = 0; k < 32; k++)
		ck_assert_double_le(fabs(bins[k / 8][k % 8] - SAMPLES / 8.0),
				    5 * sqrt(SAMPLES / 8.0));
}
END_TEST

/* All six orders alike often. */
START_TEST(permuted)
{
	static struct op_list ops;
	unsigned orders[64] = {0}, met = 0;
	struct op_drawn drawn;

	colour_op_parse("[{\"op\":\"decode\"},{\"op\":\"random_channel_permutation\"}]", &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		const double *number = drawn.number;

		colour_op_drawn(&ops, 1, i, &drawn);
		ck_assert(number[0] != number[1] && number[1] != number[2] &&
			  number[2] != number[0]);
		orders[(unsigned)(16 * number[0] + 4 * number[1] + number[2])]++;
	}
	for (unsigned order = 0; order < BASE_ARRAY_LEN(orders); order++) {
		if (orders[order] == 0)
			continue;
		met++;
		ck_assert_double_le(fabs(orders[order] - SAMPLES / 6.0), 5 * sqrt(SAMPLES / 6.0));
	}
	ck_assert_uint_eq(met, 6);
}
END_TEST

/* Each of the five changes in p of all, each alone; all factors over their range, contrast late in half. */
START_TEST(distorted)
{
	static const double range[4][2] = {{0.875, 1.125}, {0.5, 1.5}, {0.5, 1.5}, {-0.05, 0.05}};
	static struct op_list ops;
	unsigned changes[32] = {0}, bins[4][8] = {{0}}, late = 0;
	struct op_drawn drawn;

	colour_op_parse("[{\"op\":\"decode\"},{\"op\":\"random_photometric_distort\"}]", &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		unsigned made = 0;

		colour_op_drawn(&ops, 1, i, &drawn);
		for (unsigned k = 0; k < 4; k++) {
			const double at =
			    (drawn.number[k] - range[k][0]) / (range[k][1] - range[k][0]);

			ck_assert(at >= 0 && at < 1);
			bins[k][(unsigned)(8 * at)]++;
			made = 2 * made + (drawn.number[4 + k] != 0);
		}
		changes[2 * made + (drawn.number[9] != 0)]++;
		late += drawn.number[8] != 0;
		ck_assert(drawn.number[10] + drawn.number[11] + drawn.number[12] == 3);
	}
	for (unsigned k = 0; k < 32; k++) {
		ck_assert_double_le(fabs(changes[k] - SAMPLES / 32.0), 5 * sqrt(SAMPLES / 32.0));
		ck_assert_double_le(fabs(bins[k / 8][k % 8] - SAMPLES / 8.0),
				    5 * sqrt(SAMPLES / 8.0));
	}
	ck_assert_double_le(fabs(late - SAMPLES / 2.0), 5 * sqrt(SAMPLES / 4.0));
}
END_TEST

START_TEST(rates)
{
	static struct op_list ops;
	static const double rate[] = {0.1, 0.2, 0.5, 0.75, 1, 0, 0.5};
	struct op_drawn drawn;

	colour_op_parse("[{\"op\":\"random_grayscale\"},{\"op\":\"autocontrast\",\"p\":0.2},"
			"{\"op\":\"equalize\"},{\"op\":\"invert\",\"p\":0.75},"
			"{\"op\":\"posterize\",\"bits\":4,\"p\":1},{\"op\":\"solarize\","
			"\"threshold\":3,\"p\":0},"
			"{\"op\":\"sharpness\",\"sharpness_factor\":0}]",
			&ops);
	for (unsigned op = 0; op < BASE_ARRAY_LEN(rate); op++) {
		double count = 0, wanted = rate[op] * SAMPLES;

		for (uint64_t i = 0; i < SAMPLES; i++) {
			colour_op_drawn(&ops, op, i, &drawn);
			count += drawn.number[0];
		}
		ck_assert_double_le(fabs(count - wanted), 5 * sqrt(wanted * (1 - rate[op])));
	}
}
END_TEST

/* Each of six numbers is uniform over its range, and it is done in p of all samples. */
START_TEST(levels)
{
	static const double range[6][2] = {{0.5, 2},  {0.8, 1.2}, {-0.2, 0.2},
					   {-20, 20}, {0, 30},    {-5, 0}};
	static struct op_list ops;
	unsigned bins[6][8] = {{0}};
	double done = 0;
	struct op_drawn drawn;

	colour_op_parse(
	    "[{\"op\":\"decode\"},{\"op\":\"levels\",\"p\":0.25,\"gamma\":[0.5,2],\"contrast\":"
	    "[0.8,1.2],\"brightness\":[-0.2,0.2],\"red\":[-20,20],\"green\":[0,30],\"blue\":[-5,0]}"
	    "]",
	    &ops);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		colour_op_drawn(&ops, 1, i, &drawn);
		done += drawn.number[0];
		for (unsigned k = 0; k < 6; k++) {
			const double share =
			    (drawn.number[1 + k] - range[k][0]) / (range[k][1] - range[k][0]);

			if (!(share >= 0 && share < 1))
				ck_abort_msg("%g is out of range", share);
			bins[k][(unsigned)(share * 8)]++;
		}
	}
	ck_assert_double_le(fabs(done - SAMPLES / 4.0), 5 * sqrt(SAMPLES * 0.25 * 0.75));
	for (unsigned k = 0; k < 48; k++)
		ck_assert_double_le(fabs(bins[k / 8][k % 8] - SAMPLES / 8.0),
				    5 * sqrt(SAMPLES / 8.0));
}
END_TEST

/* Recorded instances must come out the same for ever. */
START_TEST(frozen)
{
	static const double numbers[8] = {2,
					  0,
					  1,
					  3,
					  1.2215235223445862,
					  1.3903922412059362,
					  0.73868593088499235,
					  -0.02853673347190544};
	static struct op_list ops;
	struct op_drawn drawn;

	colour_op_parse(
	    "[{\"op\":\"decode\"},{\"op\":\"color_jitter\",\"brightness\":0.4,\"contrast\":0.4,"
	    "\"saturation\":0.4,\"hue\":0.1}]",
	    &ops);
	colour_op_drawn(&ops, 1, 12345, &drawn);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_msg(drawn.number[i] == numbers[i], "number %u is %.17g", i,
			      drawn.number[i]);
	colour_op_parse("[{\"op\":\"decode\"},{\"op\":\"random_channel_permutation\"}]", &ops);
	colour_op_drawn(&ops, 1, 12345, &drawn);
	ck_assert_msg(drawn.number[0] == 1 && drawn.number[1] == 0 && drawn.number[2] == 2,
		      "it draws %g, %g, %g", drawn.number[0], drawn.number[1], drawn.number[2]);
	colour_op_parse(
	    "[{\"op\":\"decode\"},{\"op\":\"levels\",\"gamma\":[0.5,2],\"blue\":[-20,20]}]", &ops);
	colour_op_drawn(&ops, 1, 12345, &drawn);
	ck_assert_msg(drawn.number[0] == 1 && drawn.number[1] == 1.558855368197718 &&
			  drawn.number[6] == -7.0596052051192224,
		      "it draws %g, %.17g, %.17g", drawn.number[0], drawn.number[1],
		      drawn.number[6]);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, bad, 0, BASE_ARRAY_LEN(colour_op_bad));
	tcase_add_loop_test(tcase, good, 0, BASE_ARRAY_LEN(colour_op_good));
	tcase_add_test(tcase, jitter);
	tcase_add_test(tcase, permuted);
	tcase_add_test(tcase, distorted);
	tcase_add_test(tcase, rates);
	tcase_add_test(tcase, levels);
	tcase_add_test(tcase, frozen);
}

int main(void)
{
	return suite_run("colour_op", add);
}
