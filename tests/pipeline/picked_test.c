/* SPDX-License-Identifier: Apache-2.0 */

/* Samples that are all files of a tar shard: the op's text, which file a field is made of, and what of it. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar.h"
#include "pipeline/pipeline.h"

#define ROOM (64 << 10)

static uint8_t tar[ROOM];
static size_t used;

static void add(const char *path, const void *data, size_t size)
{
	struct tar_header header = {.type = '0', .magic = "ustar"};

	ck_assert(used + 2 * TAR_BLOCK + size <= sizeof(tar));
	memcpy(header.name, path, strlen(path));
	snprintf(header.size, sizeof(header.size), "%011o", (unsigned)size & 07777777);
	snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
	memcpy(tar + used, &header, sizeof(header));
	memcpy(tar + used + TAR_BLOCK, data, size);
	used += TAR_BLOCK + base_align_up(size, TAR_BLOCK);
}

static void add_text(const char *path, const char *text)
{
	add(path, text, strlen(text));
}

static const char picture[] = "P6\n2 1\n255\n\xff\x00\x00\x80\x80\x80";
static const char mask[] = "P5\n2 1\n255\n\x07\x09";
#define NPY(bytes, text, values) "\x93NUMPY\x01\x00" bytes "\x00" text values

/* Of `more` behind the rest. */
static void begin(const char *json)
{
	used = 0;
	memset(tar, 0, sizeof(tar));
	add("a/1.PPM", picture, sizeof(picture) - 1);
	add_text("README", "no key: of no sample");
	add("a/1.mask.pgm", mask, sizeof(mask) - 1);
	add_text("a/1.txt", "gr\xc3\xbcn");
	add_text("a/1.cls", "17\n");
	add_text("a/1.json", json);
	add("a/1.ids.npy",
	    NPY("\x37", "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}",
		"\x05\x00\xfe\xff"),
	    69);
}

static struct pipeline *compiled(const char *text)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(text, strlen(text), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

static _Alignas(64) uint8_t field[PIPELINE_MAX_FIELDS][256];
static struct pipeline_error error;

/* The sample of these bytes, with label 5. */
static int run_of(const char *text, const uint8_t *data, size_t size)
{
	struct pipeline *pipeline = compiled(text);
	const struct pipeline *one = pipeline;
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_out out;
	struct pipeline_run *run;
	int r;

	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = field[f];
	memset(field, 0xee, sizeof(field));
	error.text[0] = '\0';
	ck_assert_int_eq(pipeline_run_new(&one, 1, &run), 0);
	r = pipeline_run_sample(run, 1, data, size, 5, &key, &out, &error);
	pipeline_run_free(run);
	pipeline_free(pipeline);
	return r;
}

static int run_text(const char *text)
{
	uint8_t *copy = malloc(used); /* that ends where the sample does */
	int r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, tar, used);
	r = run_of(text, copy, used);
	free(copy);
	return r;
}

/* ---- the text ---- */

#define DECODE(members, fields, kinds) \
	"[{\"op\":\"decode\",\"members\":" members ",\"fields\":" fields ",\"kinds\":" kinds "},"
#define CROP "{\"op\":\"center_crop\",\"size\":[1,2]}]"
#define RECORD(members, fields, kinds)                                                            \
	"[{\"op\":\"record\",\"members\":[" members "],\"fields\":[" fields "],\"kinds\":[" kinds \
	"]}]"

static const struct {
	const char *text, *says;
} wrong[] = {
    {"[{\"op\":\"decode\",\"members\":[]}," CROP, "is an empty list"},
    {"[{\"op\":\"decode\",\"members\":[\"\"]}," CROP, "ASCII"},
    {"[{\"op\":\"decode\",\"members\":[\"a\\\"b\"]}," CROP, "ASCII"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg;\"]}," CROP, "none of them empty"},
    {"[{\"op\":\"decode\",\"members\":[\":a\"]}," CROP, "none of them empty"},
    {"[{\"op\":\"decode\",\"members\":[\"txt:a\"]}," CROP, "of a JSON file"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg\",\"txt\"]}," CROP, "more members than fields"},
    {"[{\"op\":\"decode\",\"members\":[\"jpg\"],\"source\":\"record\"}," CROP, "leave source out"},
    {DECODE("[\"jpg\"]", "[[1,9]]", "[2]") CROP, "the picture's"},
    {RECORD("\"txt\"", "[1,9],[1,9]", "2,2"), "as many members as fields"},
    {RECORD("\"json;txt:a\"", "[1,9]", "2"), "of a JSON file"},
};

START_TEST(wrong_texts_are_told)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_int_eq(pipeline_compile(wrong[_i].text, strlen(wrong[_i].text), &pipeline, &diag),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(diag.text, wrong[_i].says) != NULL, "\"%s\" has no \"%s\"", diag.text,
		      wrong[_i].says);
}
END_TEST

START_TEST(the_canonical_text_is_read_again)
{
	struct pipeline *first =
	    compiled(DECODE("[\"jpg;png\",\"json:a/b\"]", "[[3,2,4]]", "[3]") CROP);
	struct pipeline *again = compiled(pipeline_canonical(first));

	ck_assert_ptr_nonnull(strstr(pipeline_canonical(first), "[\"jpg;png\",\"json:a/b\"]"));
	ck_assert_str_eq(pipeline_canonical(first), pipeline_canonical(again));
	ck_assert(!pipeline_is_random(first));
	pipeline_free(first);
	pipeline_free(again);
	first = compiled(RECORD("\"txt\"", "[1,9]", "2"));
	ck_assert(!pipeline_is_random(first)); /* files do not change */
	pipeline_free(first);
}
END_TEST

/* ---- samples ---- */

static int64_t whole(unsigned f)
{
	int64_t number;

	memcpy(&number, field[f], sizeof(number));
	return number;
}

START_TEST(a_picture_and_what_is_beside_it)
{
	const float boxes[2][4] = {{0, 0, 2, 1}, {0, 0, 0, 0}};

	begin("{\"of\": {\"boxes\": [[0, 0, 2, 1], [0.5, 0, 1, 0.5]]}, \"classes\": [3, 4]}");
	ck_assert_msg(
	    run_text(DECODE("[\"jpg;ppm\",\"mask.pgm\",\"json:of/boxes\",\"json:classes\",\"txt\"]",
			    "[[4],[3,2,4],[4,2],[1,8]]", "[5,3,4,2]") CROP) == 0,
	    "%s", error.text);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5); /* the index' */
	ck_assert_int_eq(whole(2), 7);
	ck_assert_int_eq(((const int64_t *)(const void *)field[2])[1], 9);
	ck_assert_int_eq(memcmp(field[3], boxes, sizeof(boxes)), 0); /* one is too small */
	ck_assert_int_eq(whole(4), 3);
	ck_assert_str_eq((const char *)field[5], "gr\xc3\xbcn");
	ck_assert_int_eq(whole(6), 1); /* lengths: boxes, classes, text */
	ck_assert_int_eq(whole(7), 1);
	ck_assert_int_eq(whole(8), 5);
}
END_TEST

#define ALONE "[{\"op\":\"decode\",\"members\":[\"ppm\"]}," CROP

/* What is kept behind all ops of it. */
static size_t kept_of_alone(uint8_t *form, size_t room)
{
	struct pipeline *pipeline = compiled(ALONE);
	const struct pipeline *one = pipeline;
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_run *run;
	size_t size = 0;

	ck_assert_int_eq(pipeline_run_new(&one, 1, &run), 0);
	ck_assert_int_eq(pipeline_cut_make(run, 0, 2, tar, used, &key, form, room, &size, &error),
			 0);
	pipeline_run_free(run);
	pipeline_free(pipeline);
	return size;
}

START_TEST(a_picture_alone)
{
	static _Alignas(64) uint8_t form[1024];

	begin("{}");
	ck_assert_int_eq(run_text(ALONE), 0);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5); /* the index' */
	ck_assert_int_eq(run_of(ALONE, form, kept_of_alone(form, sizeof(form))), 0);
	ck_assert_int_eq(memcmp(field[0], picture + 11, 6), 0);
	ck_assert_int_eq(whole(1), 5);
}
END_TEST

START_TEST(fields_without_a_picture)
{
	const int64_t ids[2] = {5, -2};

	begin("{\"name\": \"it\", \"all\": [[1, 2], [3, 4]], \"yes\": [true, false]}");
	ck_assert_msg(
	    run_text(RECORD("\"cls\",\"ids.npy\",\"json:name\",\"json:all/1\",\"json:yes\","
			    "\"json\",\"mask.pgm\"",
			    "[4],[4,2],[1,4],[6,2],[13,2],[1,90],[1,20]", "0,0,2,0,0,2,1")) == 0,
	    "%s", error.text);
	ck_assert_int_eq(whole(0), 17);
	ck_assert_int_eq(memcmp(field[1], ids, sizeof(ids)), 0);
	ck_assert_str_eq((const char *)field[2], "it");
	ck_assert_int_eq(memcmp(field[3], "\3\4", 2), 0);
	ck_assert_int_eq(memcmp(field[4], "\1\0", 2), 0);
	ck_assert_ptr_nonnull(strstr((const char *)field[5], "\"name\": \"it\""));
	ck_assert_int_eq(memcmp(field[6], mask, sizeof(mask) - 1), 0);
}
END_TEST

START_TEST(two_files_of_json)
{
	begin("{\"name\": \"the one that is read first\", \"n\": [1, 2]}");
	add_text("a/1.more.json", "{\"name\": \"another\", \"n\": [3]}");
	ck_assert_msg(run_text(RECORD("\"json:name\",\"more.json:n\",\"more.json:name\",\"json:n\"",
				      "[1,40],[4,1],[1,7],[4,2]", "2,0,2,0")) == 0,
		      "%s", error.text);
	ck_assert_str_eq((const char *)field[0], "the one that is read first");
	ck_assert_int_eq(whole(1), 3);
	ck_assert_int_eq(memcmp(field[2], "another", 7), 0);
	ck_assert_int_eq(whole(3), 1);
}
END_TEST

START_TEST(lists_of_nothing)
{
	begin("{\"boxes\": []}");
	ck_assert_int_eq(run_text(RECORD("\"json:boxes\"", "[3,2,4]", "1")), 0);
	ck_assert_int_eq(whole(1), 0);
}
END_TEST

static const struct {
	const char *text, *says;
} bad[] = {
    {RECORD("\"webp\"", "[1,9]", "1"), "no file for webp"},
    {RECORD("\"txt\"", "[1,2]", "2"), "5, at most 2"},
    {RECORD("\"ppm\"", "[1,90]", "2"), "ppm: no UTF-8 at byte 11"},
    {RECORD("\"cls\"", "[4,1]", "0"), "cls: its field is [4]"},
    {RECORD("\"ids.npy\"", "[4,3]", "0"), "ids.npy: of another shape"},
    {RECORD("\"ids.npy\"", "[3,2]", "0"), "ids.npy: of another type; it becomes [4]"},
    {RECORD("\"json:none/x\"", "[4]", "0"), "json:none/x: nothing is there"},
    {RECORD("\"json:all/7\"", "[4]", "0"), "json:all/7: nothing is there"},
    {RECORD("\"json:all\"", "[4,1]", "1"), "json:all: 2, at most 1"},
    {RECORD("\"json:all\"", "[4,2,3]", "0"), "json:all: of other shape or type"},
    {RECORD("\"json:all\"", "[9,2,2]", "0"), "json:all: of other shape or type"}, /* -1 */
    {RECORD("\"json:all\"", "[2,2,2]", "0"), "json:all: of other shape or type"}, /* float16 */
    {RECORD("\"json:half\"", "[4]", "0"), "json:half: of other shape or type"},
    {RECORD("\"json:half\"", "[1,9]", "2"), "json:half: it is no text"},
    {RECORD("\"json:name\"", "[1,3]", "2"), "json:name: 4, at most 3"},
    {DECODE("[\"ppm\",\"json:back\"]", "[[3,1,4]]", "[3]") CROP, "a box ends before it begins"},
    {DECODE("[\"ppm\",\"back.npy\"]", "[[3,1,4]]", "[3]") CROP, "a box ends before it begins"},
    {DECODE("[\"txt\",\"txt\"]", "[[1,9]]", "[2]") CROP, ""},
    {"[{\"op\":\"decode\"}," CROP, "decode needs \"members\""},
};

START_TEST(bad_samples_are_told)
{
	begin("{\"all\": [[1, 2], [3, -1]], \"half\": 0.5, \"name\": \"long\","
	      " \"back\": [[3, 0, 2, 1]]}");
	add("a/1.back.npy",
	    NPY("\x39", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4)}",
		"\0\0\x40\x40\0\0\0\0\0\0\0\x40\0\0\x80\x3f"),
	    83);
	ck_assert_int_eq(run_text(bad[_i].text), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, bad[_i].says) != NULL, "\"%s\" has no \"%s\"", error.text,
		      bad[_i].says);
}
END_TEST

START_TEST(what_is_no_sample_of_these)
{
	const uint8_t other[] = "P6\n2 1\n255\n......";

	ck_assert_int_eq(run_of(RECORD("\"txt\"", "[1,9]", "2"), other, sizeof(other)),
			 PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(error.text, "?members=all"));
	begin("{]");
	ck_assert_int_eq(run_text(RECORD("\"json:a\"", "[4]", "0")), PIPELINE_E_BAD);
	ck_assert_str_eq(error.text, "json:a: it is no JSON");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("picked");
	TCase *tcase = tcase_create("picked");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, wrong_texts_are_told, 0, (int)BASE_ARRAY_LEN(wrong));
	tcase_add_test(tcase, the_canonical_text_is_read_again);
	tcase_add_test(tcase, a_picture_and_what_is_beside_it);
	tcase_add_test(tcase, a_picture_alone);
	tcase_add_test(tcase, fields_without_a_picture);
	tcase_add_test(tcase, two_files_of_json);
	tcase_add_test(tcase, lists_of_nothing);
	tcase_add_loop_test(tcase, bad_samples_are_told, 0, (int)BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, what_is_no_sample_of_these);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
