/* SPDX-License-Identifier: Apache-2.0 */
/* Stored forms, as decode_open takes them: pixels and outcomes of the file; what has no form, and forms
 * that are damaged. */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/little.h"
#include "pipeline/formats/decode.h"
#include "pipeline/forms/form.h"
#include "pipeline/forms/unpacked.h"
#include "tests/patience.h"
#include "tests/pipeline/jpeg_oracle.h"

static struct form_maker *test_maker;
static struct decode *test_decode;
static struct picture_buffer test_buffer;
static struct oracle_picture test_picture;

static void test_setup(void)
{
	ck_assert_int_eq(form_maker_new(&test_maker), 0);
	ck_assert_int_eq(decode_new(&test_decode), 0);
}

static void test_teardown(void)
{
	form_maker_free(test_maker);
	decode_free(test_decode);
	picture_buffer_fini(&test_buffer);
	oracle_fini(&test_picture);
}

static const enum form_kind test_kinds[] = {FORM_INDEXED, FORM_PACKED};
#define TEST_KINDS ((int)BASE_ARRAY_LEN(test_kinds))

static const struct oracle_file test_photo = {300, 400, 2, 2, 90, 0, false, false, 90, 1};

static uint8_t *test_form(const uint8_t *file, size_t size, enum form_kind kind, size_t *ret_size)
{
	uint8_t *form = NULL;

	ck_assert_int_eq(form_make(test_maker, kind, file, size, &form, ret_size), 0);
	ck_assert(form_probe(form, *ret_size));
	return form;
}

static int test_open(const void *data, size_t size, struct pipeline_error *ret_error)
{
	uint32_t height, width;

	return decode_open(test_decode, data, size, &height, &width, ret_error);
}

/* The bands of box, of what is open, with test_picture's. */
static void test_bands(const struct picture_box *box)
{
	struct pipeline_error error;
	struct decode_band band = {0};

	ck_assert_int_eq(decode_band_start(test_decode, box, &error), 0);
	for (uint32_t y = 0; y < box->height; y += band.rows) {
		int r = decode_band_next(test_decode, &band, &error);

		if (r == DECODE_E_AGAIN) {
			ck_assert_int_eq(decode_band_start(test_decode, box, &error), 0);
			band.rows = 0;
			y = 0;
			continue;
		}
		ck_assert_int_eq(r, 0);
		for (uint32_t i = 0; i < band.rows; i++) {
			const uint8_t *right =
			    test_picture.rgb +
			    ((size_t)(box->top + y + i) * test_picture.width + box->left) * 3;

			for (size_t x = 0; x < (size_t)box->width * 3; x++) {
				if (band.plane[x % 3][i * band.stride + x / 3] != right[x])
					ck_abort_msg("row %u, byte %zu", y + i, x);
			}
		}
	}
}

static const struct picture_box test_boxes[] = {
    {0, 0, 300, 400}, {100, 150, 90, 120}, {299, 399, 1, 1}, {17, 0, 200, 33}};

START_TEST(pixels)
{
	struct oracle_file file = test_photo;
	struct pipeline_error error;
	size_t size, form_size;
	uint8_t *data, *form;

	file.interval = _i / TEST_KINDS * 7;
	data = oracle_encode(&file, &size);
	form = test_form(data, size, test_kinds[_i % TEST_KINDS], &form_size);
	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	free(data);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(test_boxes); i++)
		test_bands(&test_boxes[i]);
	free(form);
}
END_TEST

/* Another way to the pixels than bands: by the format. */
START_TEST(whole)
{
	struct pipeline_error error;
	struct picture picture;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, test_kinds[_i], &form_size);

	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	free(data);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	ck_assert_int_eq(decode_whole(test_decode, &test_buffer, &picture, &error), 0);
	ck_assert_uint_eq(picture.height, 300);
	ck_assert_uint_eq(picture.width, 400);
	for (size_t i = 0; i < (size_t)300 * 400; i++) {
		const uint8_t *pixel = picture_row(&picture, (uint32_t)(i / 400)) + i % 400 * 4;

		if (memcmp(pixel, test_picture.rgb + 3 * i, 3) != 0)
			ck_abort_msg("pixel %zu", i);
	}
	free(form);
}
END_TEST

/* Files that have no form. */
START_TEST(unfit)
{
	struct oracle_file tiny = test_photo;
	uint8_t *data, *form;
	size_t size, form_size;

	tiny.height = tiny.width = 16; /* the index would be as large as what it is of */
	data = oracle_encode(&tiny, &size);
	ck_assert_int_eq(form_make(test_maker, FORM_INDEXED, data, size, &form, &form_size),
			 FORM_E_UNFIT);
	free(data);
	data = oracle_encode(&test_photo, &size);
	ck_assert_int_eq(form_make(test_maker, test_kinds[_i], data, size - 2, &form, &form_size),
			 FORM_E_UNFIT); /* without an end marker */
	ck_assert_int_eq(form_make(test_maker, test_kinds[_i], data, 0, &form, &form_size),
			 FORM_E_UNFIT);
	for (size_t at = 2; data[at + 1] != 0xda; at += 2 + (data[at + 2] << 8 | data[at + 3])) {
		if (data[at + 1] == 0xc0)
			data[at + 1] = 0xc2; /* progressive */
	}
	ck_assert_int_eq(form_make(test_maker, test_kinds[_i], data, size, &form, &form_size),
			 FORM_E_UNFIT);
	ck_assert_int_eq(form_make(test_maker, test_kinds[_i], (const uint8_t *)"P5 1 1 255 a", 12,
				   &form, &form_size),
			 FORM_E_UNFIT);
	free(data);
}
END_TEST

/* A sound form of another version is not called damaged. */
START_TEST(other_version)
{
	struct pipeline_error error;
	struct form parts;
	size_t size, form_size, summed;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, test_kinds[_i], &form_size);
	uint64_t sum;

	ck_assert_int_eq(form_read(form, form_size, &parts), 0);
	summed = parts.kind == FORM_INDEXED ? parts.index_size + BASE_MIN(parts.file_size, 1024)
					    : BASE_MIN(parts.index_size + parts.file_size, 1024);
	form[16]++;
	sum = hash_checksum(form + 16, FORM_HEAD - 16 + summed);
	little_put(form + 8, sum, 8);
	ck_assert_int_eq(form_read(form, form_size, &parts), FORM_E_VERSION);
	ck_assert_int_eq(test_open(form, form_size, &error), PIPELINE_E_BAD);
	ck_assert_str_eq(error.text, "made by another version: convert again");
	ck_assert_uint_eq(form_kept(form, form_size), 0);
	form[20] ^= 1;
	ck_assert_int_eq(form_read(form, form_size, &parts), FORM_E_OTHER);
	free(form);
	free(data);
}
END_TEST

/* Sizes that do not add up, other versions and kinds, and a form that ends early. */
START_TEST(damaged_head)
{
	struct pipeline_error error;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, test_kinds[_i], &form_size);

	for (size_t at = 16; at < 32; at++) {
		form[at] ^= 0x40;
		ck_assert_int_eq(test_open(form, form_size, &error), PIPELINE_E_BAD);
		ck_assert_str_eq(error.text, "a damaged stored form");
		ck_assert_int_eq(error.stage, PIPELINE_FAIL_DECODE);
		form[at] ^= 0x40;
	}
	for (size_t cut = 8; cut < form_size; cut += cut < 100 ? 1 : 997)
		ck_assert_int_eq(test_open(form, cut, &error), PIPELINE_E_BAD);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	free(form);
	free(data);
}
END_TEST

/* The index of an indexed file says nothing right: the file's pixels all the same. */
START_TEST(damaged_index)
{
	struct pipeline_error error;
	struct form parts;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, FORM_INDEXED, &form_size);

	ck_assert_int_eq(form_read(form, form_size, &parts), 0);
	ck_assert_uint_eq(parts.file_size, size);
	ck_assert_mem_eq(parts.file, data, size);
	ck_assert_uint_le(parts.index_size, size / 50);
	for (size_t at = 8; at < 32 + parts.index_size; at += at == 15 ? 17 : 1) {
		struct form damaged;

		form[at] ^= 0x20;
		ck_assert_int_eq(form_read(form, form_size, &damaged), 0);
		ck_assert_ptr_null(damaged.index);
		form[at] ^= 0x20;
	}
	form[40] ^= 0x20;
	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(test_boxes); i++)
		test_bands(&test_boxes[i]);
	free(form);
	free(data);
}
END_TEST

/* The scan was damaged under its index: what libjpeg-turbo makes of it. */
START_TEST(damaged_scan)
{
	uint64_t sound;
	struct pipeline_error error;
	struct form parts;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, FORM_INDEXED, &form_size);

	ck_assert_int_eq(form_read(form, form_size, &parts), 0);
	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	sound = hash_checksum(test_picture.rgb, (size_t)300 * 400 * 3);
	for (unsigned i = 0; i < 64; i++) {
		data[size / 2 + i] = 0x55;
		form[form_size - size + size / 2 + i] = 0x55;
	}
	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	ck_assert_uint_ne(hash_checksum(test_picture.rgb, (size_t)300 * 400 * 3), sound);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	test_bands(&test_boxes[0]);
	free(form);
	free(data);
}
END_TEST

/* Behind the checksum packed coefficients are as a file: damage ends as an error or as other pixels. */
START_TEST(damaged_packed)
{
	struct pipeline_error error;
	struct picture picture;
	unsigned refused = 0;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, FORM_PACKED, &form_size);

	for (size_t at = 32; at < form_size; at += at < 1056 ? 50 : 2503) {
		form[at] ^= 0x11;
		if (test_open(form, form_size, &error) != 0 ||
		    decode_whole(test_decode, &test_buffer, &picture, &error) != 0) {
			ck_assert_str_eq(error.text, "a damaged stored form");
			refused++;
		}
		form[at] ^= 0x11;
	}
	ck_assert_uint_gt(refused, 20);
	free(form);
	free(data);
}
END_TEST

/* The library alone decodes what is packed, too. */
START_TEST(by_library)
{
	struct pipeline_error error;
	size_t size, form_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, test_kinds[_i], &form_size);

	ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &test_picture), 0);
	decode_by_library(test_decode);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	test_bands(&test_boxes[1]);
	free(form);
	free(data);
}
END_TEST

/* Another file under the same index, of the same size. */
START_TEST(another_file)
{
	struct oracle_file file = test_photo;
	struct pipeline_error error;
	struct form parts;
	size_t size, other_size, form_size;
	uint8_t *data = oracle_encode(&file, &size), *other, *form;

	form = test_form(data, size, FORM_INDEXED, &form_size);
	file.noise--; /* fewer bytes, which end before the room does */
	other = oracle_encode(&file, &other_size);
	ck_assert_uint_ge(other_size, 1024);
	ck_assert_uint_le(other_size, size);
	memcpy(form + form_size - size, other, other_size);
	ck_assert_int_eq(form_read(form, form_size, &parts), 0);
	ck_assert_ptr_null(parts.index);
	ck_assert_int_eq(oracle_decode(parts.file, size, UINT64_MAX, &test_picture), 0);
	ck_assert_int_eq(test_open(form, form_size, &error), 0);
	test_bands(&test_boxes[1]);
	free(form);
	free(other);
	free(data);
}
END_TEST

/* What is stored of an indexed file is all but the file, and the file makes it whole again. */
START_TEST(kept)
{
	struct form parts;
	size_t size, form_size, kept_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, test_kinds[_i], &form_size);

	ck_assert_uint_le(form_size, form_bound(test_kinds[_i], size));
	ck_assert_int_eq(form_read(form, form_size, &parts), 0);
	kept_size = form_kept(form, form_size);
	ck_assert_uint_eq(kept_size,
			  parts.kind == FORM_INDEXED ? 32 + parts.index_size : form_size);
	ck_assert_uint_eq(form_kept(form, form_size - 1), 0);
	ck_assert_uint_eq(form_kept(data, size), 0);
	if (parts.kind == FORM_INDEXED) {
		memcpy(form + kept_size, data, size);
		ck_assert_int_eq(form_read(form, kept_size + size, &parts), 0);
		ck_assert_ptr_nonnull(parts.index);
		form[kept_size + 500] ^= 1; /* another file of that size */
		ck_assert_int_eq(form_read(form, kept_size + size, &parts), 0);
		ck_assert_ptr_null(parts.index);
	}
	free(form);
	free(data);
}
END_TEST

/* A form of a form is none, and is not taken for one. */
START_TEST(nested)
{
	struct pipeline_error error;
	size_t size, form_size, other_size;
	uint8_t *data = oracle_encode(&test_photo, &size);
	uint8_t *form = test_form(data, size, FORM_INDEXED, &form_size), *other;

	ck_assert_int_eq(form_make(test_maker, FORM_INDEXED, form, form_size, &other, &other_size),
			 FORM_E_UNFIT);
	other = calloc(1, 32 + form_size);
	ck_assert_ptr_nonnull(other);
	memcpy(other, form, 20);
	for (unsigned i = 0; i < 8; i++)
		other[24 + i] = (uint8_t)(form_size >> 8 * i);
	memcpy(other + 32, form, form_size);
	ck_assert_int_eq(test_open(other, 32 + form_size, &error), PIPELINE_E_BAD);
	free(other);
	free(form);
	free(data);
}
END_TEST

/* Large memory goes with the next small sample, and with the next one that is not packed. */
START_TEST(unpacked_rests)
{
	const size_t large = 64 << 20, small = 1 << 20;
	struct unpacked unpacked = {.bytes = NULL};

	ck_assert(unpacked_reserve(&unpacked, large) && unpacked.room == large);
	ck_assert(unpacked_reserve(&unpacked, large / 2) && unpacked.room == large);
	unpacked_rest(&unpacked);
	ck_assert(!unpacked.room && !unpacked.bytes);
	ck_assert(unpacked_reserve(&unpacked, large));
	ck_assert(unpacked_reserve(&unpacked, small) && unpacked.room == small);
	unpacked_rest(&unpacked);
	ck_assert(unpacked.room == small && unpacked.bytes);
	unpacked_fini(&unpacked);
}
END_TEST

/* Never for more than is to be seen of a sample that is too large. */
START_TEST(unpacked_grows)
{
	struct unpacked unpacked = {.bytes = NULL};

	ck_assert(unpacked_reserve(&unpacked, UNPACKED_FIRST));
	unpacked.bytes[UNPACKED_FIRST - 1] = 7;
	ck_assert(unpacked_grow(&unpacked) && unpacked.room == 2 * UNPACKED_FIRST);
	ck_assert_uint_eq(unpacked.bytes[UNPACKED_FIRST - 1], 7);
	unpacked.room = UNPACKED_MOST; /* as if it were: nothing that large is copied here */
	ck_assert(unpacked_grow(&unpacked) && unpacked.room == (size_t)UNPACKED_MOST + 1);
	unpacked_fini(&unpacked);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("form");
	TCase *tcase = tcase_create("form");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_loop_test(tcase, pixels, 0, 2 * TEST_KINDS);
	tcase_add_loop_test(tcase, whole, 0, TEST_KINDS);
	tcase_add_loop_test(tcase, unfit, 0, TEST_KINDS);
	tcase_add_loop_test(tcase, other_version, 0, TEST_KINDS);
	tcase_add_loop_test(tcase, damaged_head, 0, TEST_KINDS);
	tcase_add_test(tcase, damaged_index);
	tcase_add_test(tcase, damaged_scan);
	tcase_add_test(tcase, damaged_packed);
	tcase_add_loop_test(tcase, by_library, 0, TEST_KINDS);
	tcase_add_test(tcase, another_file);
	tcase_add_loop_test(tcase, kept, 0, TEST_KINDS);
	tcase_add_test(tcase, nested);
	tcase_add_test(tcase, unpacked_rests);
	tcase_add_test(tcase, unpacked_grows);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
