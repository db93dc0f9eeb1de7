/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws: their distributions (fixed seeds, so a test that passes passes always; the bounds are five
 * standard errors of the counts used), their independence of anything but the key, frozen values.
 */

#include <math.h>
#include <stdlib.h>
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "tests/suite.h"

#define SAMPLES 40000

static const struct op draw_rrc = {
    .id = OP_RANDOM_RESIZED_CROP,
    .value = {{2, {224, 224}}, {2, {0.08, 1}}, {2, {0.75, 4.0 / 3}}, {1, {2}}},
};

static struct op draw_hflip(double p)
{
	return (struct op){.id = OP_HFLIP, .value = {{1, {p}}}};
}

/* As the engines ask, op number index of the pipeline. */
static void draw_box(const struct draw *draw, unsigned index, uint32_t height, uint32_t width,
		     struct picture_box *ret)
{
	struct op_drawn drawn;

	op_draw(&draw_rrc, index, draw, height, width, &drawn);
	*ret = (struct picture_box){(uint32_t)drawn.number[0], (uint32_t)drawn.number[1],
				    (uint32_t)drawn.number[2], (uint32_t)drawn.number[3]};
}

static bool draw_flips(const struct draw *draw, unsigned index, const struct op *op)
{
	struct op_drawn drawn;

	op_draw(op, index, draw, 375, 500, &drawn);
	return drawn.number[0] != 0;
}

static void draw_one(uint64_t sample, uint32_t height, uint32_t width, struct picture_box *ret)
{
	struct pipeline_key key = {42, 7, sample};
	struct draw draw;

	draw_init(&draw, &key);
	draw_box(&draw, 1, height, width, ret);
}

START_TEST(flip_rate)
{
	static const double rates[] = {0, 0.1, 0.5, 0.9, 1};
	struct op op = draw_hflip(rates[_i]);
	unsigned flips = 0;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct pipeline_key key = {1, 2, i};
		struct draw draw;

		draw_init(&draw, &key);
		flips += draw_flips(&draw, 2, &op);
	}
	ck_assert_double_le(fabs(flips - rates[_i] * SAMPLES),
			    5 * sqrt(SAMPLES * rates[_i] * (1 - rates[_i])));
}
END_TEST

/*
 * On a large square every try whose part fits is taken; area (relative) and logarithm of the ratio
 * are uniform where nothing is turned away: areas below 0.75 always fit with these ratios.
 */
START_TEST(crop_area_and_ratio)
{
	unsigned areas[8] = {0}, ratios[8] = {0}, n = 0;
	double least = 0.08, most = 0.72, low = log(0.75), high = log(4.0 / 3);

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct picture_box box;
		double area, ratio;

		draw_one(i, 4000, 4000, &box);
		area = (double)box.height * box.width / 16e6;
		ratio = log((double)box.width / box.height);
		ck_assert_double_ge(area, least - 1e-3);
		ck_assert_double_ge(ratio, low - 1e-3);
		ck_assert_double_le(ratio, high + 1e-3);
		if (area >= most)
			continue;
		n++;
		areas[BASE_MAX(0, BASE_MIN(7, (int)((area - least) / (most - least) * 8)))]++;
		ratios[BASE_MAX(0, BASE_MIN(7, (int)((ratio - low) / (high - low) * 8)))]++;
	}
	ck_assert_uint_gt(n, SAMPLES / 2);
	for (unsigned i = 0; i < 8; i++) {
		double bound = 5 * sqrt(n / 8.0 * 7 / 8);

		ck_assert_double_le(fabs(areas[i] - n / 8.0), bound);
		ck_assert_double_le(fabs(ratios[i] - n / 8.0), bound);
	}
}
END_TEST

/* The part's place is uniform among those where it fits. */
START_TEST(crop_place)
{
	unsigned tops[4] = {0}, lefts[4] = {0};
	double bound = 5 * sqrt(SAMPLES / 4.0 * 3 / 4);

	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct picture_box box;

		draw_one(i, 2001, 3001, &box);
		ck_assert_uint_le(box.top + box.height, 2001);
		ck_assert_uint_le(box.left + box.width, 3001);
		tops[(uint64_t)box.top * 4 / (2001 - box.height + 1)]++;
		lefts[(uint64_t)box.left * 4 / (3001 - box.width + 1)]++;
	}
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_double_le(fabs(tops[i] - SAMPLES / 4.0), bound);
		ck_assert_double_le(fabs(lefts[i] - SAMPLES / 4.0), bound);
	}
}
END_TEST

/* No try can fit a picture far longer than wide: the middle, as torchvision computes it. */
static const struct {
	uint32_t height, width;
	struct picture_box box;
} draw_middles[] = {
    {1000, 10, {493, 0, 13, 10}}, {10, 1000, {0, 493, 10, 13}}, {1, 1, {0, 0, 1, 1}},
    {65500, 1, {32749, 0, 1, 1}}, {1, 65500, {0, 32749, 1, 1}},
};

START_TEST(crop_middle)
{
	for (uint64_t sample = 0; sample < 100; sample++) {
		struct picture_box box;

		draw_one(sample, draw_middles[_i].height, draw_middles[_i].width, &box);
		ck_assert_uint_eq(box.top, draw_middles[_i].box.top);
		ck_assert_uint_eq(box.left, draw_middles[_i].box.left);
		ck_assert_uint_eq(box.height, draw_middles[_i].box.height);
		ck_assert_uint_eq(box.width, draw_middles[_i].box.width);
	}
}
END_TEST

START_TEST(crop_within)
{
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint32_t height = 1 + (uint32_t)(i * 7919 % 41),
			 width = 1 + (uint32_t)(i * 104729 % 37);
		struct picture_box box;

		draw_one(i, height, width, &box);
		ck_assert(box.height >= 1 && box.width >= 1);
		ck_assert(box.top + box.height <= height && box.left + box.width <= width);
	}
}
END_TEST

/* Recorded instances must come out the same for ever. */
static const struct {
	struct pipeline_key key;
	unsigned index;
	struct picture_box box;
	bool flip;
} draw_frozen[] = {
    {{UINT64_C(0), UINT64_C(0), UINT64_C(0)}, 1, {3, 137, 279, 347}, false},
    {{UINT64_C(0), UINT64_C(0), UINT64_C(0)}, 2, {182, 196, 173, 202}, false},
    {{UINT64_C(0x1), UINT64_C(0x2), UINT64_C(0x3)}, 1, {2, 232, 331, 250}, true},
    {{UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff), UINT64_C(0xffffffffffffffff)},
     31,
     {72, 12, 261, 262},
     true},
    {{UINT64_C(0x123456789abcdef0), UINT64_C(0x5), UINT64_C(0x138c8e)},
     1,
     {117, 171, 256, 218},
     false},
};

START_TEST(frozen)
{
	struct op hflip = draw_hflip(0.5);
	struct picture_box box;
	struct draw draw;

	draw_init(&draw, &draw_frozen[_i].key);
	draw_box(&draw, draw_frozen[_i].index, 375, 500, &box);
	ck_assert_msg(box.top == draw_frozen[_i].box.top && box.left == draw_frozen[_i].box.left &&
			  box.height == draw_frozen[_i].box.height &&
			  box.width == draw_frozen[_i].box.width,
		      "{%u, %u, %u, %u}", box.top, box.left, box.height, box.width);
	ck_assert_int_eq(draw_flips(&draw, draw_frozen[_i].index, &hflip), draw_frozen[_i].flip);
}
END_TEST

/* Each of seed, nonce, sample and op changes the draws; the order of calls does not. */
START_TEST(key_decides)
{
	static const struct pipeline_key keys[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}};
	struct picture_box first[4], again[4], other;
	struct draw draw;

	for (unsigned i = 0; i < 4; i++) {
		draw_init(&draw, &keys[i]);
		draw_box(&draw, 1, 3750, 5000, &first[i]);
	}
	for (unsigned i = 4; i-- > 0;) {
		draw_init(&draw, &keys[i]);
		draw_box(&draw, 3, 3750, 5000, &other);
		draw_box(&draw, 1, 3750, 5000, &again[i]);
		ck_assert_mem_eq(&first[i], &again[i], sizeof(first[i]));
		ck_assert_mem_ne(&first[i], &other, sizeof(first[i]));
		for (unsigned k = 0; k < i; k++)
			ck_assert_mem_ne(&first[i], &first[k], sizeof(first[i]));
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, flip_rate, 0, 5);
	tcase_add_test(tcase, crop_area_and_ratio);
	tcase_add_test(tcase, crop_place);
	tcase_add_loop_test(tcase, crop_middle, 0, BASE_ARRAY_LEN(draw_middles));
	tcase_add_test(tcase, crop_within);
	tcase_add_loop_test(tcase, frozen, 0, BASE_ARRAY_LEN(draw_frozen));
	tcase_add_test(tcase, key_decides);
}

int main(void)
{
	return suite_run("draw", add);
}
