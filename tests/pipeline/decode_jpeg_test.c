/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of JPEGs by libjpeg-turbo with samples upsampled and made colours of here (pipeline/formats/decode_ycc.c),
 * against its own pixels: files of all samplings, of all small sizes, their parts, and damaged ones.
 * That it is done so with this library; and that the trial that decides it notices what is wrong.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/formats/decode_trial.h"
#include "tests/patience.h"
#include "tests/pipeline/parts.h"

static const int test_sampling[][2] = {{2, 2}, {2, 1}, {1, 1}, {0, 0}, {1, 2},
				       {4, 1}, {4, 2}, {2, 4}, {1, 4}};
#define TEST_PLANAR 4 /* so many of them come as planes */

static void *test_state;
static struct oracle_picture test_picture;
static struct picture_buffer test_buffer;
static unsigned test_bands[2]; /* as pixels, as planes */

static void test_setup(void)
{
	test_state = calloc(1, decode_jpeg.state_size);
	ck_assert_ptr_nonnull(test_state);
}

static void test_teardown(void)
{
	decode_jpeg.fini(test_state);
	free(test_state);
	picture_buffer_fini(&test_buffer);
	oracle_fini(&test_picture);
}

/* Rows from row y of box on are compared with the whole picture's, if there is one. */
static void test_compare(const struct decode_band *band, const struct picture *pixels,
			 const struct picture_box *box, uint32_t y)
{
	const uint32_t rows = band->rows > 0 ? band->rows : pixels->height;

	ck_assert(rows >= 1 && rows <= box->height - y);
	for (uint32_t i = 0; i < rows; i++) {
		const uint8_t *right =
		    test_picture.rgb +
		    ((size_t)(box->top + y + i) * test_picture.width + box->left) * 3;

		for (size_t x = 0; x < (size_t)box->width * 3; x++) {
			uint8_t got = band->rows > 0 ? band->plane[x % 3][i * band->stride + x / 3]
						     : picture_row(pixels, i)[x / 3 * 4 + x % 3];

			if (got != right[x])
				ck_abort_msg("row %u, column %zu of the part %u %u %u %u: %u, not "
					     "%u",
					     y + i, x / 3, box->top, box->left, box->height,
					     box->width, got, right[x]);
		}
	}
}

/* All rows of box. 0, or what ended them. */
static int test_rows(const uint8_t *data, size_t size, const struct picture_box *box,
		     bool is_compared, struct pipeline_error *ret_error)
{
	uint32_t height, width;
	int r = decode_jpeg.open(test_state, data, size, &height, &width, ret_error);

	if (r == 0)
		r = decode_jpeg.rows_start(test_state, box, ret_error);
	for (uint32_t y = 0, rows; r == 0 && y < box->height; y += rows) {
		struct decode_band band = {0};
		struct picture pixels = {0};

		r = decode_jpeg.rows_next(test_state, &pixels, &band, ret_error);
		rows = band.rows > 0 ? band.rows : pixels.height;
		if (r == 0 && is_compared)
			test_compare(&band, &pixels, box, y);
		test_bands[band.rows > 0] += r == 0;
	}
	return r;
}

static struct oracle_file test_file(int kind, uint32_t height, uint32_t width)
{
	return (struct oracle_file){
	    .height = height,
	    .width = width,
	    .across = test_sampling[kind][0],
	    .down = test_sampling[kind][1],
	    .quality = 90,
	    .noise = 80,
	    .seed = height * 100 + width,
	};
}

/* The whole picture by rows, and so many parts of it. */
static void test_parts(const struct oracle_file *file, unsigned count)
{
	struct picture_box box = {0, 0, file->height, file->width};
	struct pipeline_error error;
	struct philox_seq seq;
	size_t size;
	uint8_t *data = oracle_encode(file, &size);

	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
	philox_seq_init(&seq, file->seed, 0, 0);
	for (unsigned i = 0; i < count; i++) {
		parts_span(&seq, file->height, &box.top, &box.height);
		parts_span(&seq, file->width, &box.left, &box.width);
		ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
	}
	free(data);
}

START_TEST(every_size)
{
	for (uint32_t height = 1; height < 36; height += height < 18 ? 1 : 5) {
		for (uint32_t width = 1; width < 70; width += width < 18 ? 1 : 7) {
			struct oracle_file file = test_file(_i, height, width);

			test_parts(&file, 1);
		}
	}
	ck_assert((test_bands[1] > 1000) == (_i < TEST_PLANAR));
}
END_TEST

START_TEST(every_part)
{
	static const uint32_t sides[] = {31, 33, 48, 70, 129, 200};

	for (unsigned h = 0; h < BASE_ARRAY_LEN(sides); h++) {
		for (unsigned w = 0; w < BASE_ARRAY_LEN(sides); w++) {
			struct oracle_file file = test_file(_i, sides[h], sides[w]);

			file.interval = w % 2 ? 0 : 3;
			test_parts(&file, 15);
		}
	}
	ck_assert((test_bands[1] > 1000) == (_i < TEST_PLANAR));
	ck_assert((test_bands[0] > 1000) == (_i >= TEST_PLANAR));
}
END_TEST

/* Each first row and column, and each last. */
START_TEST(every_edge)
{
	struct oracle_file file = test_file(_i, 50, 70);
	struct pipeline_error error;
	size_t size;
	uint8_t *data = oracle_encode(&file, &size);

	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	for (uint32_t i = 0; i < 50; i++) {
		struct picture_box box = {i, i % 9, 50 - i, 61};

		ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
		box = (struct picture_box){i % 7, 0, i + 1 - i % 7 % (i + 1), 70};
		ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
	}
	for (uint32_t i = 0; i < 70; i++) {
		struct picture_box box = {i % 11, i, 30, 70 - i};

		ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
		box = (struct picture_box){i % 11, 0, 30, i + 1};
		ck_assert_int_eq(test_rows(data, size, &box, true, &error), 0);
	}
	free(data);
}
END_TEST

/* By rows and whole: the same pixels, or the same error. */
static void test_damaged(const uint8_t *data, size_t size, const struct picture_box *box)
{
	struct pipeline_error a = {0}, b = {0};
	struct picture whole, part;
	uint32_t height, width;
	int r = decode_jpeg.open(test_state, data, size, &height, &width, &a), s;

	if (r != 0 || height < box->top + box->height || width < box->left + box->width ||
	    height > 300 || width > 300)
		return;
	r = decode_jpeg.whole(test_state, &test_buffer, &whole, &a);
	if (r == 0) {
		part = picture_part(&whole, &(struct picture_box){0, 0, height, width});
		free(test_picture.rgb);
		test_picture.rgb = malloc((size_t)height * width * 3);
		ck_assert_ptr_nonnull(test_picture.rgb);
		test_picture.room = (size_t)height * width * 3;
		test_picture.width = width;
		for (size_t i = 0; i < test_picture.room; i++)
			test_picture.rgb[i] = picture_row(
			    &part, (uint32_t)(i / 3 / width))[i / 3 % width * 4 + i % 3];
	}
	s = test_rows(data, size, box, r == 0, &b);
	if (s != DECODE_E_AGAIN)
		ck_assert_msg(r == s && memcmp(&a, &b, sizeof(a)) == 0, "%d %s, by rows %d %s", r,
			      a.text, s, b.text);
}

START_TEST(damage)
{
	struct oracle_file file = test_file(_i, 60, 75);
	struct picture_box all = {0, 0, 60, 75}, low = {33, 17, 25, 40};
	struct philox_seq seq;
	size_t size;
	uint8_t *data;

	file.interval = _i % 2 ? 0 : 4;
	data = oracle_encode(&file, &size);
	philox_seq_init(&seq, 3, 0, 0);
	for (unsigned i = 0; i < 400; i++) {
		_cleanup_free_ uint8_t *bad = malloc(size);
		size_t length = i % 5 == 0 ? 1 + philox_below(&seq, size) : size;

		ck_assert_ptr_nonnull(bad);
		memcpy(bad, data, size);
		for (unsigned k = 0; k < 1 + i % 4; k++)
			bad[philox_below(&seq, size)] = (uint8_t)philox_u32(&seq);
		test_damaged(bad, length, &all);
		test_damaged(bad, length, &low);
	}
	free(data);
}
END_TEST

/* ---- the trial ---- */

static struct decode_format test_liar;
static unsigned test_lie; /* which band is changed, counted down */

static int test_lie_next(void *state, struct picture *ret, struct decode_band *ret_band,
			 struct pipeline_error *ret_error)
{
	int r = decode_jpeg.rows_next(state, ret, ret_band, ret_error);

	if (r == 0 && test_lie-- == 0)
		*(uint8_t *)(uintptr_t)ret_band->plane[2] ^= 1;
	return r;
}

static int test_pixels_next(void *state, struct picture *ret, struct decode_band *ret_band,
			    struct pipeline_error *ret_error)
{
	int r = decode_jpeg.rows_next(state, ret, ret_band, ret_error);

	ret_band->rows = 0;
	return r;
}

START_TEST(trial)
{
	unsigned bands = 0;

	ck_assert(decode_trial(&decode_jpeg, test_state));
	test_liar = decode_jpeg;
	test_liar.rows_next = test_lie_next;
	for (;; bands++) {
		test_lie = bands;
		if (decode_trial(&test_liar, test_state))
			break; /* it has no such band */
	}
	ck_assert_uint_ge(bands, 3 * (6 + 3)); /* three files, whole and a part */
	test_liar.rows_next = test_pixels_next;
	ck_assert(!decode_trial(&test_liar, test_state));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("decode_jpeg");
	TCase *tcase = tcase_create("decode_jpeg");
	SRunner *runner = srunner_create(suite);
	const int kinds = BASE_ARRAY_LEN(test_sampling);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_loop_test(tcase, every_size, 0, kinds);
	tcase_add_loop_test(tcase, every_part, 0, kinds);
	tcase_add_loop_test(tcase, every_edge, 0, kinds);
	tcase_add_loop_test(tcase, damage, 0, kinds);
	tcase_add_test(tcase, trial);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
