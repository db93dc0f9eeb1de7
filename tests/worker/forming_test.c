/* SPDX-License-Identifier: Apache-2.0 */

/* Forms that are set aside for trials, and bytes that leave the caches. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "pipeline/forms/form.h"
#include "tests/data.h"
#include "tests/suite.h"
#include "worker/evict.h"
#include "worker/forming.h"

#define FORMING_PHOTO_MOST 65536

static size_t load_photo(uint8_t *ret)
{
	return data_read("worker", "photo.jpg", ret, FORMING_PHOTO_MOST);
}

/* A worker has it for life. */
static void forget(struct forming *forming)
{
	form_maker_free(forming->maker);
	free(forming->buffer);
	for (size_t i = 0; i < BASE_ARRAY_LEN(forming->earlier); i++)
		free(forming->earlier[i].data);
}

/* Each is the earlier one of its kind until another is set aside; making the next does not touch it. */
START_TEST(earlier)
{
	const unsigned kind = LAYOUT_FORM_PACKED, other = LAYOUT_FORM_INDEXED;
	uint8_t photo[FORMING_PHOTO_MOST];
	struct forming forming = {0};
	struct forming_form first, next, found;
	size_t size = load_photo(photo);

	for (unsigned times = 0; times < 3; times++) {
		ck_assert_int_eq(forming_make(&forming, kind, NULL, 0, NULL, photo, size, &first),
				 0);
		forming_set_aside(&forming, kind, &first);
		ck_assert_int_eq(forming_make(&forming, kind, NULL, 0, NULL, photo, size, &next),
				 0);
		found = forming_earlier_of(&forming, kind, &next);
		ck_assert_ptr_ne(found.data, next.data);
		ck_assert_uint_eq(found.size, next.size);
		ck_assert_mem_eq(found.data, next.data, next.size);
		ck_assert_ptr_eq(forming_earlier_of(&forming, other, &next).data, next.data);
	}
	forget(&forming);
}
END_TEST

/* A file of a zip has the packed form of what is in it, and no crop index: that stands before the file's own bytes. */
START_TEST(of_a_zip)
{
	static const char spec[] = "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}]";
	/* deflated, of an unknown size; one block of bytes as they are, whose length follows */
	static const uint8_t head[] =
	    "PK\3\4\x14\0\x08\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0a\1";
	uint8_t file[sizeof(head) + 4 + FORMING_PHOTO_MOST], *photo = file + sizeof(head) - 1 + 4;
	struct forming forming = {0};
	struct forming_form form, of_file;
	struct pipeline *pipeline;
	struct pipeline_run *run;
	struct diag diag;
	size_t size;

	memcpy(file, head, sizeof(head) - 1);
	size = load_photo(photo);
	little_put(photo - 4, size, 2);
	little_put(photo - 2, size ^ 0xffff, 2);
	ck_assert_int_eq(pipeline_compile(spec, strlen(spec), &pipeline, &diag), 0);
	ck_assert_int_eq(pipeline_run_new((const struct pipeline *[]){pipeline}, 1, &run), 0);
	ck_assert_int_eq(
	    forming_make(&forming, LAYOUT_FORM_PACKED, run, 0, NULL, photo, size, &form), 0);
	forming_set_aside(&forming, LAYOUT_FORM_PACKED, &form);
	size += (size_t)(photo - file);
	ck_assert_int_eq(
	    forming_make(&forming, LAYOUT_FORM_PACKED, run, 0, NULL, file, size, &of_file), 0);
	form = forming_earlier_of(&forming, LAYOUT_FORM_PACKED, &of_file);
	ck_assert_uint_eq(form.size, of_file.size);
	ck_assert_mem_eq(form.data, of_file.data, form.size);
	ck_assert_int_eq(
	    forming_make(&forming, LAYOUT_FORM_INDEXED, run, 0, NULL, file, size, &of_file),
	    FORMING_E_UNFIT);
	ck_assert_int_eq(
	    forming_make(&forming, LAYOUT_FORM_PACKED, run, 0, NULL, file, size - 1, &of_file),
	    FORMING_E_UNFIT);
	pipeline_run_free(run);
	pipeline_free(pipeline);
	forget(&forming);
}
END_TEST

START_TEST(unfit)
{
	const uint8_t text[] = "no picture";
	struct forming forming = {0};
	struct forming_form form;

	ck_assert_int_eq(
	    forming_make(&forming, LAYOUT_FORM_PACKED, NULL, 0, NULL, text, sizeof(text), &form),
	    FORMING_E_UNFIT);
	forget(&forming);
}
END_TEST

/* Of pixels and of what is large none is set aside. */
START_TEST(not_set_aside)
{
	struct forming forming = {.buffer = malloc(1), .room = 1};
	const struct forming_form pixels = {.data = forming.buffer, .size = 1, .kept = 1};
	const struct forming_form large = {
	    .data = forming.buffer, .size = (size_t)64 << 20, .kept = 1};

	forming_set_aside(&forming, LAYOUT_FORM_PIXELS + 1, &pixels);
	forming_set_aside(&forming, LAYOUT_FORMS - 1, &pixels);
	forming_set_aside(&forming, LAYOUT_FORM_PACKED, &large);
	ck_assert_ptr_eq(forming.buffer, pixels.data);
	ck_assert_ptr_eq(forming_earlier_of(&forming, LAYOUT_FORM_PIXELS + 1, &pixels).data,
			 pixels.data);
	ck_assert_ptr_eq(forming_earlier_of(&forming, LAYOUT_FORM_PACKED, &large).data, large.data);
	free(forming.buffer);
}
END_TEST

START_TEST(evicted_bytes_stay)
{
	uint8_t bytes[1000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t at = 0; at < 130; at++)
		for (size_t size = 0; size < 200; size += 7)
			evict(bytes + at, size);
	for (size_t i = 0; i < sizeof(bytes); i++)
		ck_assert_uint_eq(bytes[i], (uint8_t)i);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, earlier);
	tcase_add_test(tcase, of_a_zip);
	tcase_add_test(tcase, unfit);
	tcase_add_test(tcase, not_set_aside);
	tcase_add_test(tcase, evicted_bytes_stay);
}

int main(void)
{
	return suite_run("forming", add);
}
