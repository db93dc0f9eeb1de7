/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometric ops, apart from their pixels (golden_geometry.tsv, parity.py): the distributions of what
 * they draw (fixed seeds, so a test that passes passes always), frozen values, what they refuse, the
 * blur against its formula in double, noise.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/convolve.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/warp.h"
#include "pipeline/ops/warp_loops.h"
#include "pipeline/spec/spec.h"
#include "tests/suite.h"

#define SAMPLES 20000
#define BINS 16
#define CHI 50.0 /* of 15 degrees of freedom: one test in 100000 would exceed it by chance */

#define START "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[64,96]},"

/* The list that a spec's text makes; its ops' number 2 is the one under test. */
static struct op_list *geometry_ops(const char *op)
{
	struct op_list *ops = calloc(1, sizeof(*ops));
	char text[512];
	struct diag diag = {""};

	ck_assert_ptr_nonnull(ops);
	snprintf(text, sizeof(text), START "%s]", op);
	ck_assert_msg(spec_parse(text, strlen(text), ops, &diag) == 0, "%s", diag.text);
	return ops;
}

static void geometry_draw(const struct op_list *ops, uint64_t sample, uint32_t height,
			  uint32_t width, struct op_drawn *ret)
{
	struct pipeline_key key = {42, 7, sample};
	struct draw draw;

	draw_init(&draw, &key);
	op_draw(&ops->op[2], 2, &draw, height, width, ret);
}

/* ---- distributions ---- */

/* Number `at` of what the op draws is uniform from low to high; whole: of high - low + 1 numbers. */
static const struct {
	const char *op;
	unsigned at;
	double low, high;
	bool whole;
} uniforms[] = {
    {"{\"op\":\"rotate\",\"degrees\":30}", 0, -30, 30, false},
    {"{\"op\":\"rotate\",\"degrees\":[10,350]}", 0, 10, 350, false},
    {"{\"op\":\"affine\",\"degrees\":[-5,90]}", 0, -5, 90, false},
    {"{\"op\":\"affine\",\"degrees\":0,\"scale\":[0.5,3]}", 3, 0.5, 3, false},
    {"{\"op\":\"affine\",\"degrees\":0,\"shear\":20}", 4, -20, 20, false},
    {"{\"op\":\"affine\",\"degrees\":0,\"shear\":[1,2,-8,40]}", 4, 1, 2, false},
    {"{\"op\":\"affine\",\"degrees\":0,\"shear\":[1,2,-8,40]}", 5, -8, 40, false},
    {"{\"op\":\"random_crop\",\"size\":[300,85]}", 0, 0, 159, true},
    {"{\"op\":\"random_crop\",\"size\":[300,85]}", 1, 0, 15, true},
    {"{\"op\":\"random_crop\",\"size\":[300,85],\"padding\":[4,2,12,0]}", 1, -4, 27, true},
    {"{\"op\":\"random_crop\",\"size\":[300,116],\"pad_if_needed\":true}", 1, -16, 0, true},
    {"{\"op\":\"gaussian_blur\",\"kernel_size\":3}", 0, 0.1, 2, false},
    {"{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"p\":0.5}", 1, 0, 1, true},
    {"{\"op\":\"jpeg\",\"quality\":[10,90]}", 0, 10, 90, true},
    {"{\"op\":\"coarse_dropout\",\"p\":1,\"holes\":[2,9]}", 0, 2, 9, true},
    {"{\"op\":\"coarse_dropout\",\"p\":0.5,\"holes\":1}", 0, 0, 1, true},
    {"{\"op\":\"box_blur\",\"p\":0.5}", 0, 0, 1, true},
    {"{\"op\":\"motion_blur\"}", 2, 0, 360, false},
    {"{\"op\":\"motion_blur\"}", 3, -1, 1, false},
    {"{\"op\":\"motion_blur\"}", 4, -1, 1, false},
    {"{\"op\":\"motion_blur\"}", 5, -1, 1, false},
    {"{\"op\":\"sharpen\"}", 1, 0.2, 0.5, false},
    {"{\"op\":\"sharpen\",\"lightness\":[2,9]}", 2, 2, 9, false},
    {"{\"op\":\"hue_saturation_value\",\"p\":0.5}", 0, 0, 1, true},
    {"{\"op\":\"hue_saturation_value\"}", 1, -20, 20, false},
    {"{\"op\":\"hue_saturation_value\",\"saturation\":[-9,5]}", 2, -9, 5, false},
    {"{\"op\":\"hue_saturation_value\",\"value\":[1,255]}", 3, 1, 255, false},
    {"{\"op\":\"gaussian_noise\",\"sigma\":[0.2,0.7],\"p\":0.5}", 0, 0, 1, true},
    {"{\"op\":\"gaussian_noise\",\"sigma\":[0.2,0.7]}", 1, 0.2, 0.7, false},
    {"{\"op\":\"color_jitter\",\"hue\":0.1,\"p\":0.5}", 8, 0, 1, true},
    {"{\"op\":\"random_erasing\",\"p\":1,\"scale\":[0.1,0.1],\"ratio\":[1,1]}", 1, 0, 391,
     true}, /* squares of 68 in 459 x 100 */
    {"{\"op\":\"random_erasing\",\"p\":1,\"scale\":[0.1,0.1],\"ratio\":[1,1]}", 2, 0, 32, true},
    {"{\"op\":\"vflip\"}", 0, 0, 1, true},
    {"{\"op\":\"random_perspective\"}", 0, 0, 1, true},
    {"{\"op\":\"random_perspective\",\"p\":1}", 1, 0, 25, true}, /* the upper left corner */
    {"{\"op\":\"random_perspective\",\"p\":1}", 2, 0, 114, true},
    {"{\"op\":\"random_perspective\",\"p\":1}", 3, 74, 99, true},   /* the upper right one */
    {"{\"op\":\"random_perspective\",\"p\":1}", 6, 344, 458, true}, /* the lower right one */
    {"{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":1}", 7, 0, 50, true},
    {"{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":1}", 8, 229, 458, true},
    /* sizes, height and width */
    {"{\"op\":\"random_resize\",\"min_size\":40,\"max_size\":140}", 1, 40, 139, true},
    {"{\"op\":\"random_shortest_size\",\"min_size\":[8,9,10,11,12,13,14,15,16]}", 1, 8, 16, true},
    {"{\"op\":\"random_shortest_size\",\"min_size\":[8,9,10,11],\"max_size\":55}", 1, 8, 11, true},
    {"{\"op\":\"scale_jitter\",\"target_size\":100,\"scale_range\":[1,2]}", 0, 100, 199, true},
    {"{\"op\":\"scale_jitter\",\"target_size\":[100,918],\"scale_range\":[1,2]}", 1, 100, 199,
     true},
    {"{\"op\":\"random_zoom_out\",\"p\":1}", 1, 100, 399, true},
    {"{\"op\":\"random_zoom_out\",\"p\":1}", 0, 459, 1835, true},
    {"{\"op\":\"random_zoom_out\",\"p\":1,\"side_range\":[2,2]}", 2, 0, 458, true},
    {"{\"op\":\"random_zoom_out\",\"p\":1,\"side_range\":[2,2]}", 3, 0, 99, true},
    {"{\"op\":\"fixed_size_crop\",\"size\":[300,120]}", 0, 0, 158, true},
    {"{\"op\":\"fixed_size_crop\",\"size\":[500,85]}", 1, 0, 14, true},
};

START_TEST(uniform)
{
	struct op_list *ops = geometry_ops(uniforms[_i].op);
	double low = uniforms[_i].low, high = uniforms[_i].high, chi = 0;
	unsigned count[BINS] = {0}, bins = BINS;

	if (uniforms[_i].whole) {
		high += 1;
		bins = high - low < BINS ? (unsigned)(high - low) : BINS;
	}
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct op_drawn drawn;
		double value;

		geometry_draw(ops, i, 459, 100, &drawn);
		value = drawn.number[uniforms[_i].at];
		ck_assert(!uniforms[_i].whole || value == floor(value));
		ck_assert_msg(value >= low && value < high, "%s: %g", uniforms[_i].op, value);
		count[(unsigned)((value - low) / (high - low) * bins)]++;
	}
	for (unsigned b = 0; b < bins; b++) {
		double first = low + (high - low) * b / bins, last = first + (high - low) / bins;
		double share =
		    uniforms[_i].whole ? (ceil(last) - ceil(first)) / (high - low) : 1.0 / bins;
		double want = SAMPLES * share;

		chi += (count[b] - want) * (count[b] - want) / want;
	}
	ck_assert_msg(chi < CHI, "%s: chi square %g", uniforms[_i].op, chi);
	free(ops);
}
END_TEST

/* Shifts of affine are whole and uniform before rounding: the ends have half the chance. */
START_TEST(shift)
{
	struct op_list *ops =
	    geometry_ops("{\"op\":\"affine\",\"degrees\":0,\"translate\":[0.1,0.02]}");
	unsigned right[21] = {0}, down[21] = {0};

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct op_drawn drawn;

		geometry_draw(ops, i, 500, 100, &drawn);
		ck_assert(fabs(drawn.number[1]) <= 10 && fabs(drawn.number[2]) <= 10);
		right[(int)drawn.number[1] + 10]++;
		down[(int)drawn.number[2] + 10]++;
	}
	for (unsigned i = 0; i < 21; i++) {
		double want = SAMPLES / 20.0 * (i == 0 || i == 20 ? 0.5 : 1);

		ck_assert_double_le(fabs(right[i] - want), 5 * sqrt(want));
		ck_assert_double_le(fabs(down[i] - want), 5 * sqrt(want));
	}
	free(ops);
}
END_TEST

/* Of random_erasing: the rate, the share of the area and the logarithm of the ratio. All rectangles
 * fit here, so that none is drawn again. */
START_TEST(erased)
{
	struct op_list *ops = geometry_ops("{\"op\":\"random_erasing\",\"p\":0.25}");
	unsigned n = 0, areas[BINS] = {0}, ratios[BINS] = {0};
	double chi[2] = {0, 0};

	for (uint64_t i = 0; i < 4 * SAMPLES; i++) {
		struct op_drawn drawn;
		double area, ratio;

		geometry_draw(ops, i, 9000, 9000, &drawn);
		if (drawn.number[0] == 0)
			continue;
		n++;
		area = drawn.number[3] * drawn.number[4] / 81e6;
		ratio = log(drawn.number[3] / drawn.number[4]);
		area = (area - 0.02) / 0.31 * BINS;
		ratio = (ratio - log(0.3)) / log(3.3 / 0.3) * BINS;
		areas[BASE_MAX(0, BASE_MIN(BINS - 1, (int)area))]++;
		ratios[BASE_MAX(0, BASE_MIN(BINS - 1, (int)ratio))]++;
	}
	ck_assert_double_le(fabs(n - SAMPLES * 1.0), 5 * sqrt(SAMPLES * 0.75));
	for (unsigned b = 0; b < BINS; b++) {
		chi[0] += pow(areas[b] - n / 16.0, 2) / (n / 16.0);
		chi[1] += pow(ratios[b] - n / 16.0, 2) / (n / 16.0);
	}
	ck_assert_double_lt(chi[0], CHI);
	ck_assert_double_lt(chi[1], CHI);
	free(ops);
}
END_TEST

/* A rectangle that never fits erases nothing. */
START_TEST(never_fits)
{
	struct op_list *ops =
	    geometry_ops("{\"op\":\"random_erasing\",\"p\":1,\"scale\":[0.9,1],\"ratio\":[50,60]}");
	struct op_drawn drawn;

	for (uint64_t i = 0; i < 100; i++) {
		geometry_draw(ops, i, 100, 100, &drawn);
		for (unsigned k = 0; k < OP_MAX_DRAWN; k++)
			ck_assert(drawn.number[k] == 0);
	}
	free(ops);
}
END_TEST

/* One draw places both sides; and of how many pictures something is around. */
START_TEST(fixed_and_zoomed)
{
	struct op_list *fixed = geometry_ops("{\"op\":\"fixed_size_crop\",\"size\":[59,50]}");
	struct op_list *zoomed = geometry_ops("{\"op\":\"random_zoom_out\",\"p\":0.25}");
	unsigned n = 0;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct op_drawn drawn;

		geometry_draw(fixed, i, 459, 100, &drawn);
		ck_assert(drawn.number[1] == floor(drawn.number[0] / 8) && drawn.number[0] < 400);
		geometry_draw(zoomed, i, 459, 100, &drawn);
		n += drawn.number[0] != 0;
	}
	ck_assert_double_le(fabs(n - SAMPLES * 0.25), 5 * sqrt(SAMPLES * 0.1875));
	free(fixed);
	free(zoomed);
}
END_TEST

/* ---- random_iou_crop ---- */

#define IOU_SAMPLES 20000

/* Means, of top, left, height and width and of the boxes that stay, and their deviations: torchvision 0.23's, of 20,000 draws and of 3,000. */
static const struct {
	float box[3][4];
	unsigned n;
	double as_is, mean[5], deviation[5];
} iou_crops[] = {
    {{{30, 40, 120, 160}, {200, 50, 380, 280}, {10, 200, 60, 290}},
     3,
     0.18735,
     {40.82, 108.87, 222.34, 240.08, 1.447},
     {33.5, 73.9, 46.4, 73.5, 0.714}},
    {{{100, 100, 140, 150}},
     1,
     0.4377,
     {43.43, 47.44, 196.91, 240.19, 1},
     {32.4, 33.8, 62.2, 84.5, 0}},
};

static struct op_drawn iou_crop(const struct op_list *ops, uint64_t sample, struct follow *follow)
{
	const struct pipeline_key key = {42, 7, sample};
	const struct shape shape = {.pixel_ops = 2};
	static struct draw_choice choices[PIPELINE_MAX_OPS];
	struct op_drawn drawn;
	struct draw draw;

	draw_init(&draw, &key);
	follow->height = 300;
	follow->width = 400;
	follow->choices = choices;
	follow_ops(ops, &shape, &draw, follow);
	draw.choices = choices;
	op_draw(&ops->op[1], 1, &draw, 300, 400, &drawn);
	return drawn;
}

static struct op_list *iou_ops(const char *parameters)
{
	struct op_list *ops = calloc(1, sizeof(*ops));
	struct diag diag = {""};
	char text[256];

	ck_assert_ptr_nonnull(ops);
	snprintf(text, sizeof(text),
		 "[{\"op\":\"decode\"},{\"op\":\"random_iou_crop\"%s},"
		 "{\"op\":\"resize\",\"size\":[8,8]}]",
		 parameters);
	ck_assert_msg(spec_parse(text, strlen(text), ops, &diag) == 0, "%s", diag.text);
	return ops;
}

START_TEST(iou_crop_draws_as_torchvision)
{
	struct op_list *ops = iou_ops("");
	double sum[5] = {0};
	unsigned as_is = 0, n;

	for (uint64_t i = 0; i < IOU_SAMPLES; i++) {
		float box[3][4];
		struct follow follow = {.box = box, .n = iou_crops[_i].n};
		struct op_drawn drawn;

		memcpy(box, iou_crops[_i].box, sizeof(box));
		drawn = iou_crop(ops, i, &follow);
		if (drawn.number[2] == 0) {
			ck_assert_mem_eq(box, iou_crops[_i].box, sizeof(box));
			as_is++;
			continue;
		}
		ck_assert(drawn.number[0] + drawn.number[2] <= 300 && drawn.number[2] >= 90);
		ck_assert(drawn.number[1] + drawn.number[3] <= 400 && drawn.number[3] >= 120);
		ck_assert(drawn.number[3] >= drawn.number[2] / 2 &&
			  drawn.number[3] <= drawn.number[2] * 2);
		ck_assert(follow.height == drawn.number[2] && follow.width == drawn.number[3]);
		for (unsigned k = 0; k < 4; k++)
			sum[k] += drawn.number[k];
		for (unsigned k = 0; k < iou_crops[_i].n; k++) {
			const float *was = iou_crops[_i].box[k];
			const double x = (was[0] + was[2]) / 2.0 - drawn.number[1];
			const double y = (was[1] + was[3]) / 2.0 - drawn.number[0];
			const bool stays =
			    x > 0 && x < drawn.number[3] && y > 0 && y < drawn.number[2];

			ck_assert(stays == !follow_is_gone(box[k]));
			sum[4] += stays;
			ck_assert(!stays || box[k][0] == fmax(was[0] - drawn.number[1], 0));
		}
	}
	n = IOU_SAMPLES - as_is;
	ck_assert_double_le(fabs(as_is / (double)IOU_SAMPLES - iou_crops[_i].as_is),
			    5 * sqrt(2 * 0.25 / IOU_SAMPLES));
	for (unsigned k = 0; k < 5; k++)
		ck_assert_msg(fabs(sum[k] / n - iou_crops[_i].mean[k]) <=
				  5 * sqrt(2.0 / n) * iou_crops[_i].deviation[k],
			      "%u: mean %g", k, sum[k] / n);
	free(ops);
}
END_TEST

/* No boxes, none that a part can have, or 1 and above: as it is. */
START_TEST(iou_crop_leaves_as_it_is)
{
	static const char *const parameters[] = {
	    "", ",\"sampler_options\":[0.99],\"max_scale\":0.5,\"trials\":7",
	    ",\"sampler_options\":[1,2.5]",
	    ",\"max_scale\":0,\"min_scale\":0,\"sampler_options\":0"};
	struct op_list *ops = iou_ops(parameters[_i]);

	for (uint64_t i = 0; i < 20; i++) {
		float box[1][4] = {{0, 0, 400, 300}};
		struct follow follow = {.box = box, .n = _i > 0};

		ck_assert(iou_crop(ops, i, &follow).number[2] == 0);
		ck_assert(follow.width == 400 && box[0][2] == 400);
	}
	free(ops);
}
END_TEST

/* Mean, deviation, and shares within one and two deviations. */
START_TEST(normal)
{
	struct philox_seq seq;
	double sum = 0, squares = 0;
	float pair[2];
	unsigned one = 0, two = 0;

	philox_seq_init(&seq, 1, 2, 3);
	for (unsigned i = 0; i < SAMPLES; i++) {
		draw_normal_floats(&seq, pair);
		for (unsigned k = 0; k < 2; k++) {
			sum += pair[k];
			squares += pair[k] * pair[k];
			one += fabsf(pair[k]) < 1;
			two += fabsf(pair[k]) < 2;
		}
	}
	ck_assert_double_le(fabs(sum / (2 * SAMPLES)), 5 / sqrt(2.0 * SAMPLES));
	ck_assert_double_le(fabs(squares / (2 * SAMPLES) - 1), 5 * sqrt(1.0 / SAMPLES));
	ck_assert_double_le(fabs(one / (2.0 * SAMPLES) - 0.682689), 0.012);
	ck_assert_double_le(fabs(two / (2.0 * SAMPLES) - 0.954500), 0.006);
}
END_TEST

/* The same of the quicker one, further out, too; the probabilities of |value| above each number. */
START_TEST(normal_of_a_word)
{
	static const struct {
		double most, p;
	} parts[] = {{0.25, 0.802587}, {0.674490, 0.5}, {1, 0.317311}, {1.435, 0.151289},
		     {2, 0.045500},    {3, 0.002700},   {4, 0.0000633}};
	unsigned count[BASE_ARRAY_LEN(parts)] = {0};
	const unsigned n = 20 * SAMPLES;
	double sum = 0, squares = 0;
	struct philox_seq seq;

	philox_seq_init(&seq, 9, 8, 7);
	for (unsigned i = 0; i < n; i++) {
		const double value = draw_normal_float(&seq);

		sum += value;
		squares += value * value;
		for (unsigned k = 0; k < BASE_ARRAY_LEN(parts); k++)
			count[k] += fabs(value) > parts[k].most;
	}
	ck_assert_double_le(fabs(sum), 5 * sqrt(n));
	ck_assert_double_le(fabs(squares - n), 5 * sqrt(2.0 * n));
	for (unsigned k = 0; k < BASE_ARRAY_LEN(parts); k++)
		ck_assert_double_le(fabs(count[k] - n * parts[k].p),
				    5 * sqrt(n * parts[k].p * (1 - parts[k].p)));
}
END_TEST

/* Frozen: recordings depend on them. */
static const struct {
	const char *op;
	double number[9];
} frozen_draws[] = {
    {"{\"op\":\"rotate\",\"degrees\":30}", {28.6377043560578}},
    {"{\"op\":\"affine\",\"degrees\":30,\"translate\":[0.1,0.2],\"scale\":[0.5,2],\"shear\":[-5,5,-"
     "9,9]}",
     {28.6377043560578, -9, 52, 1.54819757137154, -1.0096067465553, -7.47486533205432}},
    {"{\"op\":\"random_crop\",\"size\":224}", {55, 270}},
    {"{\"op\":\"gaussian_blur\",\"kernel_size\":5}", {1.95686063794183, 1 /* done */}},
    {"{\"op\":\"random_erasing\",\"p\":1}", {1, 65, 273, 251, 110}},
    {"{\"op\":\"jpeg\",\"quality\":[1,100]}", {37}},
    {"{\"op\":\"coarse_dropout\",\"p\":1,\"holes\":[1,8]}",
     {5, 595840408, 804285206, 2656860075, 1707986801, 2, 3}},
    {"{\"op\":\"motion_blur\",\"p\":1}",
     {1, 5, 92.796335701681059, 0.049873640689763299, -0.65519667943064208, 0.4247248952272531}},
    {"{\"op\":\"sharpen\",\"p\":1}", {1, 0.3227979192451354, 0.92374709845261727}},
    {"{\"op\":\"median_blur\",\"p\":1,\"size\":[3,15]}", {1, 11}},
    {"{\"op\":\"hue_saturation_value\",\"p\":1}",
     {1, -3.6269441006486147, 20.849651814314079, 7.9519352365744922}},
    {"{\"op\":\"gaussian_noise\",\"sigma\":[0,1],\"p\":0.5}",
     {0, 0.40932639748378463, 595840408, 804285206, 2656860075, 1707986801, 2, 4}},
    {"{\"op\":\"elastic_transform\"}", {595840408, 804285206, 2656860075, 1707986801, 2}},
    {"{\"op\":\"vflip\"}", {0}},
    {"{\"op\":\"scale_jitter\",\"target_size\":1024}", {1502, 2003}},
    {"{\"op\":\"random_shortest_size\",\"min_size\":[480,512,544,576,608,640,672,704,736,768,800],"
     "\"max_size\":1333}",
     {576, 768}},
    {"{\"op\":\"random_shortest_size\",\"min_size\":300,\"max_size\":350}", {262, 350}},
    {"{\"op\":\"random_resize\",\"min_size\":200,\"max_size\":400}", {272, 362}},
    {"{\"op\":\"random_zoom_out\",\"p\":1}", {835, 1113, 321, 519}},
    {"{\"op\":\"fixed_size_crop\",\"size\":224}", {147, 269}},
    {"{\"op\":\"random_perspective\",\"p\":1}", {1, 73, 38, 406, 79, 440, 346, 21, 318}},
};

START_TEST(frozen)
{
	struct op_list *ops = geometry_ops(frozen_draws[_i].op);
	struct op_drawn drawn;
	char text[256];
	int at = 0, same = 0;

	geometry_draw(ops, 5, 375, 500, &drawn);
	for (unsigned k = 0; k < 9; k++) {
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%.17g, ", drawn.number[k]);
		same += fabs(drawn.number[k] - frozen_draws[_i].number[k]) < 1e-9;
	}
	ck_assert_msg(same == 9, "%s: it draws %s", frozen_draws[_i].op, text);
	free(ops);
}
END_TEST

/* ---- running ---- */

struct geometry {
	struct op_list *ops;
	struct steps_scratch *scratch;
	struct picture picture;
	struct pipeline_error error;
};

/* A picture of noise that is smooth enough to have all kinds of sums. */
static void geometry_init(struct geometry *g, const char *op, uint32_t height, uint32_t width)
{
	struct philox_seq seq;

	memset(g, 0, sizeof(*g));
	g->ops = geometry_ops(op);
	ck_assert_int_eq(steps_scratch_new(&g->scratch), 0);
	ck_assert_int_eq(picture_make(&g->scratch->buffer[0], height, width, &g->picture), 0);
	philox_seq_init(&seq, height, width, 0);
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < 4 * width; x++)
			picture_row(&g->picture, y)[x] = (uint8_t)philox_u32(&seq);
}

static int geometry_run(struct geometry *g, uint64_t sample, struct op_drawn *ret)
{
	geometry_draw(g->ops, sample, g->picture.height, g->picture.width, ret);
	return steps_op(g->scratch, &g->ops->op[2], ret, &g->picture, &g->error);
}

static void geometry_fini(struct geometry *g)
{
	steps_scratch_free(g->scratch);
	free(g->ops);
}

static const struct {
	const char *op;
	uint32_t height, width;
	enum pipeline_fail stage;
	const char *text;
} refusals[] = {
    {"{\"op\":\"random_crop\",\"size\":[10,12]}", 10, 11, PIPELINE_FAIL_OP,
     "random_crop: the picture is too small"},
    {"{\"op\":\"random_crop\",\"size\":[10,12],\"padding\":[0,9]}", 10, 11, PIPELINE_FAIL_OP,
     "random_crop: the picture is too small"},
    {"{\"op\":\"five_crop\",\"size\":[11,11]}", 10, 11, PIPELINE_FAIL_OP,
     "five_crop: the picture is too small"},
    {"{\"op\":\"ten_crop\",\"size\":[11,11]}", 10, 11, PIPELINE_FAIL_OP,
     "ten_crop: the picture is too small"},
    {"{\"op\":\"gaussian_blur\",\"kernel_size\":[21,1]}", 20, 10, PIPELINE_FAIL_OP,
     "gaussian_blur: the picture is too small"},
    {"{\"op\":\"elastic_transform\"}", 20, 30, PIPELINE_FAIL_OP,
     "elastic_transf: the picture is too small"},
    {"{\"op\":\"elastic_transform\",\"sigma\":[5,1]}", 30, 20, PIPELINE_FAIL_OP,
     "elastic_transf: the picture is too small"},
    {"{\"op\":\"jpeg\",\"quality\":50}", 1, 65501, PIPELINE_FAIL_OP, "jpeg: a side above 65500"},
    {"{\"op\":\"gaussian_blur\",\"kernel_size\":[1,21]}", 10, 20, PIPELINE_FAIL_OP,
     "gaussian_blur: the picture is too small"},
    {"{\"op\":\"resize\",\"size\":null,\"max_size\":8}", 100, 2, PIPELINE_FAIL_OP,
     "resize: nothing would be left"},
    {"{\"op\":\"scale_jitter\",\"target_size\":16384,\"scale_range\":[2,2]}", 10, 10,
     PIPELINE_FAIL_REFUSED, "scale_jitter: the picture would get too large"},
    {"{\"op\":\"pad\",\"padding\":16384}", 8, 8, PIPELINE_FAIL_REFUSED,
     "pad: the picture would get too large"},
    {"{\"op\":\"affine\",\"degrees\":0,\"scale\":[0.001,0.001],\"padding_mode\":\"edge\"}", 100,
     100, PIPELINE_FAIL_REFUSED, "affine: the picture would get too large"},
};

START_TEST(refused)
{
	struct geometry g;
	struct op_drawn drawn;

	geometry_init(&g, refusals[_i].op, refusals[_i].height, refusals[_i].width);
	ck_assert_int_eq(geometry_run(&g, 0, &drawn), PIPELINE_E_BAD);
	ck_assert_int_eq(g.error.stage, refusals[_i].stage);
	ck_assert_str_eq(g.error.text, refusals[_i].text);
	geometry_fini(&g);
}
END_TEST

/* Where no corner moves, and where none can: every pixel stays. */
static const struct {
	const char *op;
	uint32_t height, width;
} stays[] = {
    {"{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":0}", 20, 31},
    {"{\"op\":\"random_perspective\",\"p\":1}", 3, 3},
    /* one pixel, also where its border is far larger */
    {"{\"op\":\"box_blur\",\"p\":1,\"size\":99}", 1, 1},
    {"{\"op\":\"median_blur\",\"p\":1,\"size\":15}", 1, 1},
    {"{\"op\":\"motion_blur\",\"p\":1,\"size\":5,\"angle\":[0,0],\"direction\":[1,1],\"shift\":"
     "false}",
     1, 1},
    {"{\"op\":\"rotate\",\"degrees\":[30,60],\"padding_mode\":\"reflect\"}", 1, 1},
    {"{\"op\":\"affine\",\"degrees\":50,\"scale\":[0.1,0.1],\"padding_mode\":\"symmetric\"}", 1, 1},
    {"{\"op\":\"coarse_dropout\",\"p\":1,\"height\":[0.5,0.9],\"width\":[0.5,0.9]}", 1, 1},
    {"{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":1}", 50, 1},
    {"{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":1}", 1, 50},
    {"{\"op\":\"random_perspective\",\"p\":0,\"distortion_scale\":1}", 50, 50},
};

START_TEST(pixels_stay)
{
	const size_t row = (size_t)4 * stays[_i].width;
	uint8_t before[50][200];
	struct op_drawn drawn;
	struct geometry g;

	geometry_init(&g, stays[_i].op, stays[_i].height, stays[_i].width);
	for (uint32_t y = 0; y < stays[_i].height; y++)
		memcpy(before[y], picture_row(&g.picture, y), row);
	for (uint64_t sample = 0; sample < 20; sample++) {
		ck_assert_int_eq(geometry_run(&g, sample, &drawn), 0);
		for (uint32_t y = 0; y < stays[_i].height; y++)
			for (uint32_t x = 0; x < row; x++)
				ck_assert(x % 4 == 3 ||
					  picture_row(&g.picture, y)[x] == before[y][x]);
	}
	geometry_fini(&g);
}
END_TEST

/* Three corners on a line: each pixel is the one at (31, 31), and no box is left. */
START_TEST(boxes_of_a_line_are_gone)
{
	const double m[8] = {31, 62, 31, 31, 62, 31, 1, 2};
	float box[2][4] = {{0, 0, 40, 40}, {30, 30, 32, 32}};
	struct follow follow = {.height = 40, .width = 40, .box = box, .n = 2};

	follow_turn(&follow, m, 40, 40);
	ck_assert(follow_is_gone(box[0]) && follow_is_gone(box[1]));
	for (unsigned i = 0; i < 8; i++)
		ck_assert(box[i / 4][i % 4] == 0);
}
END_TEST

/* A point is where a box without extent is, unless that was cut off. */
START_TEST(points_turn_as_boxes)
{
	struct philox_seq seq;
	unsigned seen = 0;

	philox_seq_init(&seq, 9, 9, 10);
	for (unsigned i = 0; i < 2000; i++) {
		const double x = draw_between(&seq, 0, 40), y = draw_between(&seq, 0, 30);
		const double m[8] = {
		    draw_between(&seq, -2, 2),       draw_between(&seq, -2, 2),
		    draw_between(&seq, -40, 40),     draw_between(&seq, -2, 2),
		    draw_between(&seq, -2, 2),       draw_between(&seq, -40, 40),
		    draw_between(&seq, -0.01, 0.01), draw_between(&seq, -0.01, 0.01)};
		float box[1][4] = {{(float)x, (float)y, (float)x, (float)y}};
		float point[1][3] = {{(float)x, (float)y, 2}};
		struct follow follow = {.height = 30,
					.width = 40,
					.box = box,
					.n = 1,
					.point = point,
					.n_rows = 1,
					.n_points = 1};

		follow_turn(&follow, m, 33, 44);
		ck_assert(point[0][2] == 2 || point[0][2] == 0);
		if (point[0][2] == 0) {
			ck_assert(point[0][0] < 0 || point[0][0] > 44 || point[0][1] < 0 ||
				  point[0][1] > 33);
			continue;
		}
		ck_assert_mem_eq(point[0], box[0], 8);
		seen++;
	}
	ck_assert_uint_gt(seen, 100);
}
END_TEST

/* ---- convolve ---- */

/* The kernels against each other, also where sums are far beyond 0 and 255. */
START_TEST(convolutions_agree)
{
	const struct convolve_kernels *fast = convolve_avx2();
	uint8_t bytes[15][256], plain[96], quick[96];
	const uint8_t *row[15];
	struct philox_seq seq;

	if (!fast)
		return;
	philox_seq_init(&seq, 9, 9, 11);
	for (unsigned i = 0; i < 2000; i++) {
		const unsigned size = 3 + 2 * (unsigned)philox_below(&seq, 7);
		const size_t n = 4 * (1 + philox_below(&seq, 16));
		struct convolve_taps taps = {.n = 1 + (unsigned)philox_below(&seq, 30)};

		for (unsigned k = 0; k < taps.n; k++)
			taps.tap[k] = (struct convolve_tap){
			    (unsigned)philox_below(&seq, size), 4 * philox_below(&seq, size),
			    (float)(rint(draw_between(&seq, -2, 2) * 0x1p40) * 0x1p-40)};
		for (unsigned k = 0; k < size; k++) {
			for (unsigned x = 0; x < sizeof(bytes[k]); x++)
				bytes[k][x] = (uint8_t)philox_u32(&seq);
			row[k] = bytes[k];
		}
		memset(plain, 0xa5, sizeof(plain));
		memset(quick, 0xa5, sizeof(quick));
		convolve_plain.taps(&taps, row, plain, n);
		fast->taps(&taps, row, quick, n);
		ck_assert_mem_eq(plain, quick, n);
		convolve_plain.median(size, row, plain, n);
		fast->median(size, row, quick, n);
		ck_assert_mem_eq(plain, quick, n);
		for (size_t x = (n + 31) / 32 * 32; x < sizeof(plain); x++)
			ck_assert(plain[x] == 0xa5 && quick[x] == 0xa5);
	}
}
END_TEST

/* ---- warp ---- */

/* The kernels against each other, on small pictures: edges all around. */
START_TEST(kernels_agree)
{
	const struct warp_kernels *fast = warp_avx2();
	struct picture_buffer buffer[3] = {{0}};
	struct picture from, plain, quick;
	struct philox_seq seq;

	if (!fast)
		return;
	warp_fn *const pair[][2] = {
	    {warp_plain.bicubic, fast->bicubic},
	    {warp_plain.bilinear, fast->bilinear},
	    {warp_plain.perspective[WARP_NEAREST], fast->perspective[WARP_NEAREST]},
	    {warp_plain.perspective[WARP_BILINEAR], fast->perspective[WARP_BILINEAR]},
	    {warp_plain.perspective[WARP_BICUBIC], fast->perspective[WARP_BICUBIC]},
	};
	philox_seq_init(&seq, 9, 9, 9);
	for (unsigned i = 0; i < 5000; i++) {
		uint32_t height = 1 + (uint32_t)philox_below(&seq, 12);
		uint32_t width = 1 + (uint32_t)philox_below(&seq, 12);
		double m[8];

		for (unsigned k = 0; k < 8; k++)
			m[k] = draw_between(&seq, -2, 2) * (k % 3 == 2 ? 4 : 1);
		ck_assert_int_eq(picture_make(&buffer[0], height, width, &from), 0);
		ck_assert_int_eq(picture_make(&buffer[1], 9, 14, &plain), 0);
		ck_assert_int_eq(picture_make(&buffer[2], 9, 14, &quick), 0);
		for (uint32_t y = 0; y < height; y++)
			for (uint32_t x = 0; x < 4 * width; x++)
				picture_row(&from, y)[x] = (uint8_t)philox_u32(&seq);
		for (uint32_t y = 0; y < 9; y++) {
			memset(picture_row(&plain, y), 7, (size_t)4 * 14);
			memset(picture_row(&quick, y), 7, (size_t)4 * 14);
		}
		pair[i % BASE_ARRAY_LEN(pair)][0](&from, &plain, m);
		pair[i % BASE_ARRAY_LEN(pair)][1](&from, &quick, m);
		for (uint32_t y = 0; y < 9; y++)
			ck_assert_mem_eq(picture_row(&plain, y), picture_row(&quick, y), 4 * 14);
	}
	for (unsigned i = 0; i < 3; i++)
		picture_buffer_fini(&buffer[i]);
}
END_TEST

/* ---- blur ---- */

static double blur_weight(unsigned taps, double sigma, unsigned i)
{
	const double reach = (taps - 1) / (2 * sqrt(2.0));
	double sum = 0, mine = 0;

	for (unsigned k = 0; k < taps; k++) {
		double x = taps > 1 ? -reach + 2 * reach * k / (taps - 1) : 0;
		double value = exp(-(x / sigma) * (x / sigma));

		sum += value;
		mine = k == i ? value : mine;
	}
	return mine / sum;
}

static int blur_mirrored(int at, int size)
{
	return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
}

/* One value by the formula: the 2-d convolution of the reflected picture. */
static double blur_exact(const struct picture *from, const double *across, unsigned n_across,
			 const double *down, unsigned n_down, int y, int x, unsigned c)
{
	double sum = 0;

	for (unsigned i = 0; i < n_down; i++) {
		int at_y = blur_mirrored(y + (int)i - (int)n_down / 2, (int)from->height);

		for (unsigned k = 0; k < n_across; k++) {
			int at_x = blur_mirrored(x + (int)k - (int)n_across / 2, (int)from->width);

			sum += down[i] * across[k] *
			       picture_row(from, (uint32_t)at_y)[4 * at_x + (int)c];
		}
	}
	return sum;
}

static const struct {
	unsigned across, down;
	double sigma;
	uint32_t height, width;
} blurs[] = {
    {3, 3, 0.5, 40, 57}, {5, 7, 1.3, 31, 33}, {1, 9, 2, 5, 8},    {9, 1, 2, 8, 5},
    {23, 23, 2, 12, 12}, {1, 1, 1, 3, 4},     {3, 3, 0.01, 9, 9}, {21, 15, 40, 60, 50},
};

START_TEST(blurred)
{
	double across[64], down[64];
	struct geometry g;
	struct picture from;
	struct op_drawn drawn;
	char op[128];

	snprintf(op, sizeof(op), "{\"op\":\"gaussian_blur\",\"kernel_size\":[%u,%u],\"sigma\":%g}",
		 blurs[_i].across, blurs[_i].down, blurs[_i].sigma);
	geometry_init(&g, op, blurs[_i].height, blurs[_i].width);
	from = g.picture;
	for (unsigned i = 0; i < blurs[_i].across; i++)
		across[i] = blur_weight(blurs[_i].across, blurs[_i].sigma, i);
	for (unsigned i = 0; i < blurs[_i].down; i++)
		down[i] = blur_weight(blurs[_i].down, blurs[_i].sigma, i);
	ck_assert_int_eq(geometry_run(&g, 0, &drawn), 0);
	for (uint32_t y = 0; y < from.height; y++) {
		for (uint32_t x = 0; x < 4 * from.width; x++) {
			double exact = blur_exact(&from, across, blurs[_i].across, down,
						  blurs[_i].down, (int)y, (int)x / 4, x % 4);
			double ours = picture_row(&g.picture, y)[x];

			ck_assert_msg(fabs(ours - exact) < 0.5001, "%u, %u: %g, exactly %g", y, x,
				      ours, exact);
		}
	}
	geometry_fini(&g);
}
END_TEST

/* ---- noise ---- */

/* Noise fills the rectangle and nothing else, and is the same in every type and order. */
START_TEST(noise)
{
	struct geometry g;
	struct shape shape = {
	    .channels = 3, .height = 64, .width = 96, .dtype = PIPELINE_F32, .order = OP_CHW};
	float *planes = calloc(3 * 64 * 96, sizeof(*planes));
	float *pixels = calloc(3 * 64 * 96, sizeof(*pixels));
	uint16_t *half = calloc(3 * 64 * 96, sizeof(*half));
	struct op_drawn drawn;
	const struct op *op;

	ck_assert(planes && pixels && half);
	geometry_init(&g, "{\"op\":\"random_erasing\",\"p\":1,\"value\":\"random\"}", 64, 96);
	op = &g.ops->op[2];
	geometry_draw(g.ops, 3, 64, 96, &drawn);
	ck_assert_double_eq(drawn.number[0], 1);
	op_impl(op->id)->finished(&shape, op, &drawn, planes);
	shape.dtype = PIPELINE_F16;
	op_impl(op->id)->finished(&shape, op, &drawn, half);
	shape.dtype = PIPELINE_F32;
	shape.order = OP_HWC;
	op_impl(op->id)->finished(&shape, op, &drawn, pixels);
	for (unsigned c = 0; c < 3; c++) {
		for (unsigned i = 0; i < 64 * 96; i++) {
			float value = planes[c * 64 * 96 + i];
			bool inside = i / 96 >= drawn.number[1] &&
				      i / 96 < drawn.number[1] + drawn.number[3] &&
				      i % 96 >= drawn.number[2] &&
				      i % 96 < drawn.number[2] + drawn.number[4];

			ck_assert(inside ? value != 0 && fabsf(value) < 7 : value == 0);
			ck_assert(pixels[3 * i + c] == value);
			ck_assert_uint_eq(half[c * 64 * 96 + i], half_f16(value));
		}
	}
	geometry_fini(&g);
	free(planes);
	free(pixels);
	free(half);
}
END_TEST

/* On 8 bits: the same noise, cut to whole numbers. */
START_TEST(noise_of_bytes)
{
	struct geometry g;
	struct shape shape = {
	    .channels = 3, .height = 64, .width = 96, .dtype = PIPELINE_U8, .order = OP_HWC};
	uint8_t *pixels = malloc(64 * 96 * 3);
	struct op_drawn drawn;
	unsigned seen[256] = {0};

	ck_assert_ptr_nonnull(pixels);
	geometry_init(&g, "{\"op\":\"random_erasing\",\"p\":1,\"value\":\"random\"}", 64, 96);
	for (uint32_t y = 0; y < 64; y++)
		for (uint32_t x = 0; x < 96; x++)
			memcpy(pixels + 3 * (96 * y + x), picture_row(&g.picture, y) + 4 * x, 3);
	ck_assert_int_eq(geometry_run(&g, 3, &drawn), 0);
	op_impl(OP_RANDOM_ERASING)->finished(&shape, &g.ops->op[2], &drawn, pixels);
	for (uint32_t y = 0; y < 64; y++)
		for (uint32_t x = 0; x < 96; x++)
			ck_assert_mem_eq(pixels + 3 * (96 * y + x),
					 picture_row(&g.picture, y) + 4 * x, 3);
	for (uint32_t y = 0; y < drawn.number[3]; y++)
		for (uint32_t x = 0; x < drawn.number[4]; x++)
			seen[picture_row(&g.picture, (uint32_t)drawn.number[1] +
							 y)[4 * ((uint32_t)drawn.number[2] + x)]]++;
	/* 0: within one deviation; 1 and 255: between one and two */
	ck_assert_double_ge(seen[0], 0.6 * drawn.number[3] * drawn.number[4]);
	ck_assert(seen[1] > 0 && seen[255] > 0 && seen[100] == 0);
	geometry_fini(&g);
	free(pixels);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, uniform, 0, BASE_ARRAY_LEN(uniforms));
	tcase_add_test(tcase, shift);
	tcase_add_test(tcase, erased);
	tcase_add_test(tcase, never_fits);
	tcase_add_test(tcase, fixed_and_zoomed);
	tcase_add_loop_test(tcase, iou_crop_draws_as_torchvision, 0, BASE_ARRAY_LEN(iou_crops));
	tcase_add_loop_test(tcase, iou_crop_leaves_as_it_is, 0, 4);
	tcase_add_test(tcase, normal);
	tcase_add_test(tcase, normal_of_a_word);
	tcase_add_loop_test(tcase, frozen, 0, BASE_ARRAY_LEN(frozen_draws));
	tcase_add_loop_test(tcase, refused, 0, BASE_ARRAY_LEN(refusals));
	tcase_add_loop_test(tcase, pixels_stay, 0, BASE_ARRAY_LEN(stays));
	tcase_add_test(tcase, boxes_of_a_line_are_gone);
	tcase_add_test(tcase, points_turn_as_boxes);
	tcase_add_test(tcase, convolutions_agree);
	tcase_add_test(tcase, kernels_agree);
	tcase_add_loop_test(tcase, blurred, 0, BASE_ARRAY_LEN(blurs));
	tcase_add_test(tcase, noise);
	tcase_add_test(tcase, noise_of_bytes);
}

int main(void)
{
	return suite_run("geometry", add);
}
