/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mosaic: draws are frozen, spread as they say, and of nothing but the key and the number; what is drawn puts pixels,
 * boxes and points where a canvas written out here has them. The same against NumPy, for whole batches:
 * tests/python/mosaic_test.py.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "plan/mix/mosaic.h"
#include "tests/suite.h"

#define DRAWS 20000
#define HEIGHT 60
#define WIDTH 40

static const struct mosaic_ask usual = {1, {0.5, 1.5}, {0.5, 1.5}, 1, 0.1, 0};

static struct mosaic draw(const struct mosaic_ask *ask, uint64_t number, uint32_t count)
{
	const struct batch_mix_key key = {7, number / 1000, number % 3, (int64_t)(number % 1000)};

	return mosaic_draw(ask, &key, (uint32_t)(number % count), count, HEIGHT, WIDTH);
}

/* Resumed and repeated jobs of other versions draw the same. */
START_TEST(draws_are_frozen)
{
	static const struct {
		struct batch_mix_key key;
		uint32_t number, from[MOSAIC_TILES], y, x;
		double scale;
	} known[] = {
	    {{1u, 2u, 3, 4}, 0, {0, 1, 3, 7}, 69, 29, 0x1.e3f61e9bf6a27p-1},
	    {{1u, 2u, 3, 4}, 5, {5, 6, 2, 1}, 70, 44, 0x1.55e121e29dac2p+0},
	    {{1u, 2u, 4, 4}, 0, {0, 3, 4, 7}, 43, 38, 0x1.707e48b873e64p+0},
	    {{18446744073709551615u, 18446744073709551615u, 0, 9223372036854775807},
	     7,
	     {7, 2, 0, 6},
	     78,
	     36,
	     0x1.aa9ec73712818p-1},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(known); i++) {
		const struct mosaic mosaic =
		    mosaic_draw(&usual, &known[i].key, known[i].number, 8, HEIGHT, WIDTH);

		ck_assert(mosaic.is_done);
		ck_assert_mem_eq(mosaic.from, known[i].from, sizeof(mosaic.from));
		ck_assert_uint_eq(mosaic.center_y, known[i].y);
		ck_assert_uint_eq(mosaic.center_x, known[i].x);
		ck_assert(mosaic.scale == known[i].scale);
	}
}
END_TEST

/* Pearson's chi-squared of n classes that are alike is below what one in a thousand is above, for many classes. */
static void is_even(const unsigned *seen, unsigned n)
{
	const double freedom = n - 1;
	double sum = 0, mean = 0, spread = 2 / (9 * freedom);

	for (unsigned i = 0; i < n; i++)
		mean += (double)seen[i] / n;
	for (unsigned i = 0; i < n; i++)
		sum += (seen[i] - mean) * (seen[i] - mean) / mean;
	ck_assert_msg(cbrt(sum / freedom) < 1 - spread + 3.09 * sqrt(spread), "%g of %u", sum, n);
}

START_TEST(draws_are_spread)
{
	unsigned rows[2 * HEIGHT] = {0}, columns[2 * WIDTH] = {0}, scales[50] = {0},
			  others[3][11] = {{0}};

	for (unsigned i = 0; i < DRAWS; i++) {
		const struct mosaic mosaic = draw(&usual, i, 12);

		rows[mosaic.center_y]++;
		columns[mosaic.center_x]++;
		ck_assert(mosaic.scale >= 0.5 && mosaic.scale < 1.5);
		scales[(unsigned)((mosaic.scale - 0.5) * 50)]++;
		ck_assert_uint_eq(mosaic.from[0], i % 12);
		for (unsigned k = 1; k < MOSAIC_TILES; k++) {
			ck_assert_uint_lt(mosaic.from[k], 12);
			others[k - 1][(mosaic.from[k] + 11 - i % 12) % 12]++;
			for (unsigned before = 0; before < k; before++)
				ck_assert_uint_ne(mosaic.from[k], mosaic.from[before]);
		}
	}
	is_even(rows + HEIGHT / 2, HEIGHT); /* none elsewhere, or these were too few */
	is_even(columns + WIDTH / 2, WIDTH);
	is_even(scales, 50);
	for (unsigned k = 0; k < 3; k++)
		is_even(others[k], 11);
	for (unsigned y = 0; y < HEIGHT / 2; y++)
		ck_assert_uint_eq(rows[y] + rows[2 * HEIGHT - 1 - y], 0);
}
END_TEST

START_TEST(done_as_often_as_said)
{
	struct mosaic_ask ask = usual;
	unsigned done = 0;

	ask.p = 0.25;
	for (unsigned i = 0; i < DRAWS; i++)
		done += draw(&ask, i, 8).is_done;
	ck_assert(fabs(done - DRAWS * 0.25) < 3.3 * sqrt(DRAWS * 0.25 * 0.75));
	ask.p = 0;
	ck_assert(!draw(&ask, 0, 8).is_done);
	ask.p = 1;
	ask.epochs = 2; /* draw() has epochs 0, 1 and 2 */
	for (unsigned i = 0; i < 30; i++)
		ck_assert_int_eq(draw(&ask, i, 8).is_done, i % 3 < 2);
}
END_TEST

/* The last batch of an epoch. */
START_TEST(few_pictures)
{
	for (uint32_t count = 1; count < 6; count++) {
		unsigned seen[5] = {0};

		for (unsigned i = 0; i < 1000; i++) {
			const struct mosaic mosaic = draw(&usual, i, count);

			for (unsigned k = 1; k < MOSAIC_TILES; k++) {
				ck_assert_uint_lt(mosaic.from[k], count);
				seen[mosaic.from[k]]++;
			}
		}
		for (unsigned k = 0; k < count; k++)
			ck_assert_uint_gt(seen[k], 0);
	}
}
END_TEST

static const struct mosaic_ask bad_asks[] = {
    {1.5, {0.5, 1.5}, {1, 1}, 1, 0, 0},  {NAN, {0.5, 1.5}, {1, 1}, 1, 0, 0},
    {1, {-0.1, 1.5}, {1, 1}, 1, 0, 0},   {1, {0.5, 2.1}, {1, 1}, 1, 0, 0},
    {1, {1.5, 0.5}, {1, 1}, 1, 0, 0},    {1, {NAN, 1}, {1, 1}, 1, 0, 0},
    {1, {0.5, 1.5}, {0.05, 1}, 1, 0, 0}, {1, {0.5, 1.5}, {1, 11}, 1, 0, 0},
    {1, {0.5, 1.5}, {1, NAN}, 1, 0, 0},  {1, {0.5, 1.5}, {1, 1}, -1, 0, 0},
    {1, {0.5, 1.5}, {1, 1}, NAN, 0, 0},  {1, {0.5, 1.5}, {1, 1}, 1, 1.1, 0},
    {1, {0.5, 1.5}, {1, 1}, 1, -0.1, 0},
};

START_TEST(bad_numbers)
{
	ck_assert(mosaic_is_good(&usual));
	ck_assert(!mosaic_is_good(&bad_asks[_i]));
}
END_TEST

/* ---- pixels ---- */

enum { SIDES = 11, MOST_VALUES = SIDES * SIDES * 3 };

static const struct {
	enum mosaic_type type;
	uint32_t bytes;
} types[] = {{MOSAIC_U8, 1}, {MOSAIC_F16, 2}, {MOSAIC_F32, 4}, {MOSAIC_BF16, 2}};

static void put(enum mosaic_type type, float value, uint8_t *to)
{
	const uint16_t half = type == MOSAIC_F16 ? half_f16(value) : half_bf16(value);

	if (type == MOSAIC_U8)
		*to = (uint8_t)value;
	else if (type == MOSAIC_F32)
		memcpy(to, &value, sizeof(value));
	else
		memcpy(to, &half, sizeof(half));
}

static float get(enum mosaic_type type, const uint8_t *from)
{
	uint16_t half;
	float value;

	if (type == MOSAIC_U8)
		return *from;
	memcpy(&value, from, type == MOSAIC_F32 ? 4 : 0);
	memcpy(&half, from, 2);
	return type == MOSAIC_F32   ? value
	       : type == MOSAIC_F16 ? half_f16_value(half)
				    : half_float((uint32_t)half << 16);
}

struct four {
	const struct mosaic_picture *picture;
	const struct mosaic *mosaic;
	uint8_t *tile[MOSAIC_TILES];
};

/* Which value of a picture: channel c of pixel (y, x). */
static size_t value_at(const struct mosaic_picture *picture, unsigned c, int64_t y, int64_t x)
{
	const size_t at = (size_t)(y * picture->width + x);

	return picture->planes > 1 ? c * (size_t)picture->height * picture->width + at
				   : at * picture->channels + c;
}

/* The canvas, as the header says it. */
static float canvas(const struct four *four, unsigned c, int64_t y, int64_t x)
{
	const struct mosaic_picture *picture = four->picture;
	const struct mosaic *mosaic = four->mosaic;
	const unsigned tile = (y >= mosaic->center_y) * 2u + (x >= mosaic->center_x);
	const int64_t top = (int64_t)mosaic->center_y - (tile & 2 ? 0 : picture->height);
	const int64_t left = (int64_t)mosaic->center_x - (tile & 1 ? 0 : picture->width);

	if (y < 0 || x < 0 || y >= 2 * (int64_t)picture->height ||
	    x >= 2 * (int64_t)picture->width || y < top || y >= top + picture->height || x < left ||
	    x >= left + picture->width)
		return get(picture->type, picture->fill + c * picture->value_bytes);
	return get(picture->type, four->tile[tile] + picture->value_bytes *
							 value_at(picture, c, y - top, x - left));
}

static float pixel(const struct four *four, unsigned c, uint32_t y, uint32_t x)
{
	const struct mosaic_picture *picture = four->picture;
	const double down =
	    (y + 0.5 - picture->height / 2) / four->mosaic->scale + picture->height - 0.5;
	const double across =
	    (x + 0.5 - picture->width / 2) / four->mosaic->scale + picture->width - 0.5;
	const int64_t row = (int64_t)floor(down), column = (int64_t)floor(across);
	const float to_below = (float)(down - floor(down)),
		    to_right = (float)(across - floor(across));
	float line[2];

	for (unsigned i = 0; i < 2; i++) {
		const float above = canvas(four, c, row, column + i),
			    below = canvas(four, c, row + 1, column + i);
		volatile float part = (below - above) * to_below; /* no fused sum */

		line[i] = above + part;
	}
	{
		volatile float part = (line[1] - line[0]) * to_right;

		return line[0] + part;
	}
}

START_TEST(pictures)
{
	const unsigned type = (unsigned)_i % 4;
	const bool is_planar = _i / 4 % 2;
	const struct mosaic_picture picture = {
	    .height = (unsigned)_i / 8 ? SIDES : 8,
	    .width = SIDES - 1 + (unsigned)_i % 2,
	    .planes = is_planar ? 3 : 1,
	    .channels = is_planar ? 1 : 3,
	    .value_bytes = types[type].bytes,
	    .type = types[type].type,
	    .fill = {0x3f, 0x3e, 0x3d, 0x3c, 0x3b, 0x3a, 0x39, 0x38, 0x37, 0x36, 0x35, 0x34},
	};
	const size_t values = (size_t)picture.height * picture.width * 3;
	static const double scales[] = {1, 0.5, 1.7, 0.1, 1, 10, 0.77};
	uint8_t *out = malloc(MOST_VALUES * 4),
		*scratch = aligned_alloc(64, mosaic_scratch_bytes(&picture));
	struct mosaic mosaic = {.is_done = true, .height = picture.height, .width = picture.width};
	struct four four = {&picture, &mosaic, {NULL}};

	for (unsigned k = 0; k < MOSAIC_TILES; k++) {
		four.tile[k] = malloc(MOST_VALUES * 4);
		for (size_t i = 0; i < values; i++)
			put(picture.type, (float)(60 * k + i % 59) + 0.25f,
			    four.tile[k] + i * picture.value_bytes);
	}
	for (unsigned i = 0; i < 7 * 9; i++) {
		mosaic.scale = scales[i % 7];
		mosaic.center_y = i / 7 % 3 * picture.height - (i == 7);
		mosaic.center_x = i / 21 * picture.width + (i < 21) * 3;
		mosaic_picture(&picture, &mosaic,
			       (const uint8_t *const[]){four.tile[0], four.tile[1], four.tile[2],
							four.tile[3]},
			       scratch, out);
		for (uint32_t y = 0; y < picture.height; y++)
			for (uint32_t x = 0; x < picture.width; x++)
				for (unsigned c = 0; c < 3; c++) {
					uint8_t want[4] = {0};
					const float value = pixel(&four, c, y, x);

					put(picture.type,
					    picture.type == MOSAIC_U8 ? value + 0.5f : value, want);
					ck_assert_mem_eq(out + value_at(&picture, c, y, x) *
								   picture.value_bytes,
							 want, picture.value_bytes);
				}
	}
	for (unsigned k = 0; k < MOSAIC_TILES; k++)
		free(four.tile[k]);
	free(scratch);
	free(out);
}
END_TEST

/* ---- boxes and points ---- */

static const struct {
	unsigned tile;
	double scale;
	float box[4], ret[4];
	bool is_kept;
} boxes[] = {
    /* the centre is at (30, 50) of a canvas of 80 x 120: in the result, with scale 1, at (10, 20) */
    {0, 1, {35, 50, 40, 60}, {5, 10, 10, 20}, true},
    {3, 1, {0, 0, 8, 4}, {10, 20, 18, 24}, true},
    {1, 1, {2, 30, 6, 55}, {12, 0, 16, 15}, true},
    {2, 1, {0, 0, 29, 40}, {0, 20, 0, 60}, false},       /* left of what is seen */
    {3, 1, {30, 10, 40, 20}, {40, 30, 40, 40}, false},   /* right of it: the picture ends at 50 */
    {1, 1, {0, 10, 5, 40.5f}, {10, 0, 15, 0.5f}, false}, /* half a pixel high */
    {1, 1, {0, 0, 5, 41}, {10, 0, 15, 1}, false},        /* a 41st of it is left */
    {1, 1, {0, 36, 5, 46}, {10, 0, 15, 6}, true},
    {0, 0.5, {20, 20, 40, 60}, {5, 5, 15, 25}, true},
    {2, 0.5, {10, 0, 30, 20}, {0, 25, 10, 35}, true},
    {2,
     0.5,
     {6, 0, 30, 60},
     {0, 25, 10, 55},
     true}, /* the picture's part that is not on the canvas */
    {3, 2, {0, 0, 8, 4}, {0, 10, 16, 18}, true},
    {3, 1, {NAN, 0, 8, 4}, {NAN, 20, 18, 24}, false},
};

START_TEST(boxes_follow)
{
	const struct mosaic mosaic = {true, {0}, HEIGHT, WIDTH, 50, 30, boxes[_i].scale};
	float ret[4];

	ck_assert_int_eq(mosaic_box(&usual, &mosaic, boxes[_i].tile, boxes[_i].box, ret),
			 boxes[_i].is_kept);
	for (unsigned k = 0; k < 4; k++)
		ck_assert_msg(isnan(boxes[_i].ret[k]) || ret[k] == boxes[_i].ret[k], "%u: %g", k,
			      ret[k]);
}
END_TEST

START_TEST(points_follow)
{
	const struct mosaic mosaic = {true, {0}, HEIGHT, WIDTH, 50, 30, 1};
	static const struct {
		unsigned tile;
		float point[3], ret[3];
	} points[] = {
	    {0, {35, 50, 2}, {5, 10, 2}},  {0, {29, 50, 2}, {-1, 10, 0}},
	    {0, {30, 40, 1}, {0, 0, 1}},   {3, {0, 0, 1}, {10, 20, 1}},
	    {1, {0, 60, 2}, {10, 20, 2}},  {1, {5, 61, 0}, {15, 21, 0}},
	    {3, {31, 10, 2}, {41, 30, 0}}, {1, {-1, 50, 2}, {9, 10, 0}},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(points); i++) {
		float ret[3];

		mosaic_point(&mosaic, points[i].tile, points[i].point, ret);
		ck_assert_mem_eq(ret, points[i].ret, sizeof(ret));
	}
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, draws_are_frozen);
	tcase_add_test(tests, draws_are_spread);
	tcase_add_test(tests, done_as_often_as_said);
	tcase_add_test(tests, few_pictures);
	tcase_add_loop_test(tests, bad_numbers, 0, BASE_ARRAY_LEN(bad_asks));
	tcase_add_loop_test(tests, pictures, 0, 16);
	tcase_add_loop_test(tests, boxes_follow, 0, BASE_ARRAY_LEN(boxes));
	tcase_add_test(tests, points_follow);
}

int main(void)
{
	return suite_run("mosaic", add);
}
