/* SPDX-License-Identifier: Apache-2.0 */

/* MDS: index.json, columns, shards. */

#include "storage/source/scan/mds.h"
#include "storage/source/scan/scan_shard.h"
#include "tests/storage/scan_run.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE "\xff\xd8\xff\xe0 a picture"
#define PICTURE_BYTES (sizeof(PICTURE) - 1)

static struct scan_run run;

/* ---- index.json ---- */

/* As MDSWriter of mosaicml-streaming 0.13 writes it. */
static const char good_index[] =
    "{\"shards\": [{\"column_encodings\": [\"jpeg\", \"int\"], \"column_names\": [\"image\", "
    "\"label\"], "
    "\"column_sizes\": [null, 8], \"compression\": null, \"format\": \"mds\", \"hashes\": [], "
    "\"raw_data\": {\"basename\": \"shard.00000.mds\", \"bytes\": 67099999, \"hashes\": {}}, "
    "\"samples\": 615, "
    "\"size_limit\": 67108864, \"version\": 2, \"zip_data\": null}], \"version\": 2}";

START_TEST(good_index_is_read)
{
	struct index_json index;
	struct diag diag;

	ck_assert_int_eq(mds_index_parse(good_index, sizeof(good_index) - 1, &index, &diag), 0);
	ck_assert_uint_eq(index.n, 1);
	ck_assert_str_eq(index.shard[0].name, "shard.00000.mds");
	ck_assert_uint_eq(index.shard[0].bytes, 67099999);
	ck_assert_uint_eq(index.shard[0].samples, 615);
	index_json_fini(&index);
}
END_TEST

static const struct bad_index { /* what of the good one is replaced, by what, and what it is then */
	const char *from, *to;
	int r;
	const char *why;
} bad_indexes[] = {
    {"{\"shards\"", "{\"parts\"", INDEX_JSON_E_NONE, NULL},
    {"}", "", INDEX_JSON_E_NONE, NULL},
    {"}], \"version\": 2", "}], \"version\": 1", INDEX_JSON_E_BAD, "not of version 2"},
    {"\"mds\"", "\"json\"", INDEX_JSON_E_BAD, "not of the format mds"},
    {"\"compression\": null", "\"compression\": \"zstd:7\"", INDEX_JSON_E_BAD, "compressed"},
    {"\"zip_data\": null", "\"zip_data\": {\"bytes\": 7}", INDEX_JSON_E_BAD, "compressed"},
    {"shard.00000.mds", "../shard.mds", INDEX_JSON_E_BAD, "without name or size"},
    {"shard.00000.mds", "", INDEX_JSON_E_BAD, "without name or size"},
    {"67099999", "7", INDEX_JSON_E_BAD, "without name or size"},
    {"67099999", "-67099999", INDEX_JSON_E_BAD, "without name or size"},
    {": 615", ": 0", INDEX_JSON_E_BAD, "without name or size"},
    {": 615", ": 67099999", INDEX_JSON_E_BAD, "without name or size"},
};

static void replaced(const char *text, const char *from, const char *to, char *ret, size_t size)
{
	const char *at = strstr(text, from);

	ck_assert_ptr_nonnull(at);
	snprintf(ret, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

START_TEST(bad_index_is_refused)
{
	const struct bad_index *bad = &bad_indexes[_i];
	struct index_json index;
	struct diag diag = {.text = ""};
	char text[1024];

	replaced(good_index, bad->from, bad->to, text, sizeof(text));
	ck_assert_int_eq(mds_index_parse(text, strlen(text), &index, &diag), bad->r);
	if (bad->why)
		ck_assert_msg(strstr(diag.text, bad->why), "%s", diag.text);
}
END_TEST

/* ---- columns ---- */

static const struct columns_case {
	const char *encodings, *names, *sizes;
	struct mds_names named;
	int picture, label; /* -1: refused, none */
} columns_cases[] = {
    {"\"jpeg\",\"int\"", "\"image\",\"label\"", "null,8", {NULL, NULL, NULL}, 0, 1},
    {"\"int\",\"png\"", "\"class\",\"x\"", "8,null", {NULL, NULL, NULL}, 1, 0},
    {"\"bytes\",\"uint16\",\"str\"", "\"a\",\"b\",\"c\"", "null,2,null", {NULL, NULL, NULL}, 0, 1},
    {"\"bytes\",\"jpeg\"", "\"a\",\"b\"", "null,null", {NULL, NULL, NULL}, 1, -1},
    {"\"bytes\",\"jpeg\"", "\"a\",\"b\"", "null,null", {"a", NULL, NULL}, 0, -1},
    {"\"bytes\",\"bytes\"", "\"a\",\"b\"", "null,null", {NULL, NULL, NULL}, -1, -1},
    {"\"jpeg\",\"int8\",\"int16\"", "\"a\",\"b\",\"c\"", "null,1,2", {NULL, NULL, NULL}, 0, -1},
    {"\"jpeg\",\"int8\",\"int16\"", "\"a\",\"b\",\"y\"", "null,1,2", {NULL, NULL, NULL}, 0, 2},
    {"\"jpeg\",\"int8\",\"int16\"", "\"a\",\"y\",\"label\"", "null,1,2", {NULL, "y", NULL}, 0, 1},
    {"\"jpeg\",\"int8\"", "\"a\",\"b\"", "null,1", {NULL, "c", NULL}, -1, -1},
    {"\"jpeg\",\"int\"", "\"a\",\"b\"", "null,4", {NULL, NULL, NULL}, -1, -1},
    {"\"jpeg\",\"int\"", "\"a\"", "null,4", {NULL, NULL, NULL}, -1, -1},
    {"\"ndarray:float32:2\",\"png\"", "\"a\",\"b\"", "8,null", {NULL, NULL, NULL}, 1, -1},
    {"\"ndarray:float32:2\",\"png\"", "\"a\",\"b\"", "9,null", {NULL, NULL, NULL}, -1, -1},
    {"\"int\",\"str\"", "\"n\",\"b\"", "8,null", {NULL, NULL, "n:int;b:str"}, 0, -1},
    {"\"int\",\"str\"", "\"n\",\"y\"", "8,null", {NULL, "n", "n:int;y:str"}, 0, 0},
    {"\"int\",\"str\"", "\"n\",\"b\"", "8,null", {NULL, NULL, "b:str;n:int"}, -1, -1},
    {"\"int\",\"str\"", "\"n\",\"b\"", "8,null", {NULL, NULL, "n:int"}, -1, -1},
    {"\"ndarray:int8:2,3\"", "\"n\"", "6", {NULL, NULL, "n:ndarray:int8:2x3"}, 0, -1},
    {"\"pkl\",\"int\"", "\"n\",\"y\"", "null,8", {NULL, NULL, "n:pkl;y:int"}, 0, 1},
    {"\"complex\",\"int\"", "\"n\",\"y\"", "16,8", {NULL, NULL, "n:complex;y:int"}, -1, -1},
};

START_TEST(columns_of_shards)
{
	const struct columns_case *is = &columns_cases[_i];
	struct mds_columns columns;
	struct diag diag;
	char text[512];
	int r;

	snprintf(text, sizeof(text),
		 "{\"column_encodings\": [%s], \"column_names\": [%s], \"column_sizes\": [%s]}",
		 is->encodings, is->names, is->sizes);
	r = mds_columns_parse(text, strlen(text), &is->named, &columns, &diag);
	ck_assert_int_eq(r, is->picture < 0 ? INDEX_JSON_E_BAD : 0);
	if (r)
		return;
	ck_assert_uint_eq(columns.picture, (unsigned)is->picture);
	ck_assert_int_eq(columns.has_label, is->label >= 0);
	if (columns.has_label)
		ck_assert_uint_eq(columns.label, (unsigned)is->label);
}
END_TEST

START_TEST(numbers_of_labels)
{
	const uint8_t bytes[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const struct mds_columns signs = {.is_signed = true}, none = {.is_signed = false};

	for (unsigned n = 1; n <= 8; n *= 2)
		ck_assert_int_eq(mds_label(&signs, bytes, n), -2);
	ck_assert_int_eq(mds_label(&none, bytes, 1), 254);
	ck_assert_int_eq(mds_label(&none, bytes, 4), 4294967294);
}
END_TEST

/* ---- shards ---- */

/* As MDSWriter of mosaicml-streaming 0.13 writes it: image bytes, k uint8, label int, text str. */
static const uint8_t golden_shard[] =
    "\x01\x00\x00\x00\xec\x00\x00\x00\x13\x01\x00\x00{\"column_encodings\": [\"bytes\", \"uin"
    "t8\", \"int\", \"str\"], \"column_names\": [\"image\", \"k\", \"label\", \"text\"], \"co"
    "lumn_sizes\": [null, 1, 8, null], \"compression\": null, \"format\": \"mds\", \"hashes\""
    ": [], \"size_limit\": 400, \"version\": 2}\x12\x00\x00\x00\x04\x00\x00\x00\xff\xd8\xff"
    "\xe0"
    "EEEEEEEEEEEEEE\x04\x0c\x00\x00\x00\x00\x00\x00\x00tttt";
#define GOLDEN_SHARD_BYTES (sizeof(golden_shard) - 1)

START_TEST(shard_of_mosaicml)
{
	ck_assert_int_eq(scan_run(&scan_mds, golden_shard, GOLDEN_SHARD_BYTES, "label=label", &run),
			 SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].at, 244);
	ck_assert_uint_eq(run.record[0].bytes, 18);
	ck_assert_uint_eq(run.record[0].label, 12);
	ck_assert_int_eq(scan_run(&scan_mds, golden_shard, GOLDEN_SHARD_BYTES, "label=k", &run),
			 SCAN_E_END);
	ck_assert_uint_eq(run.record[0].label, 4);
}
END_TEST

START_TEST(whole_samples_of_mosaicml)
{
	ck_assert_int_eq(scan_run(&scan_mds, golden_shard, GOLDEN_SHARD_BYTES,
				  "columns=image:bytes;k:uint8;label:int;text:str", &run),
			 SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].at, 236);
	ck_assert_uint_eq(run.record[0].bytes, GOLDEN_SHARD_BYTES - 236);
	ck_assert_uint_eq(run.record[0].label, 12);
	ck_assert_int_eq(scan_run(&scan_mds, golden_shard, GOLDEN_SHARD_BYTES,
				  "columns=image:bytes;k:uint8;text:str;label:int", &run),
			 SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "columns=image:bytes;k:uint8;label:int;text:str"));
}
END_TEST

/* One sample of n columns of text, called by prefix and number; without a prefix by nothing. */
static int scan_named(const char *prefix, unsigned n, const char *options)
{
	struct shard_bytes shard;
	char text[4096], name[64] = "";
	int used = snprintf(text, sizeof(text), "{\"column_names\": [");
	int r;

	for (unsigned i = 0; i < n; i++) {
		if (*prefix)
			snprintf(name, sizeof(name), "%s%02u", prefix, i);
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s\"%s\"",
				 i ? ", " : "", name);
	}
	for (unsigned list = 0; list < 2; list++) {
		used += snprintf(text + used, sizeof(text) - (size_t)used, "], \"column_%s\": [",
				 list ? "sizes" : "encodings");
		for (unsigned i = 0; i < n; i++)
			used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s",
					 i ? ", " : "", list ? "null" : "\"str\"");
	}
	used += snprintf(text + used, sizeof(text) - (size_t)used, "]}");
	ck_assert_uint_lt((size_t)used, sizeof(text));
	shard_bytes_init(&shard, sizeof(text) + 512);
	shard_put_32(&shard, 1);
	shard_put_32(&shard, 12 + (uint32_t)used);
	shard_put_32(&shard, 12 + (uint32_t)used + 4 * n + 1);
	shard_put(&shard, text, (size_t)used);
	for (unsigned i = 0; i < n; i++)
		shard_put_32(&shard, i == 0);
	shard_put(&shard, "x", 1);
	r = scan_run(&scan_mds, shard.data, shard.size, options, &run);
	shard_bytes_fini(&shard);
	return r;
}

START_TEST(many_columns_are_refused_by_the_first_that_differs)
{
	ck_assert_int_eq(scan_named("a_column_", 40, "columns=a_column_00:str;other:int"),
			 SCAN_E_BAD);
	ck_assert_str_eq(run.why, "its columns are not those of the option: number 2 is "
				  "\"a_column_01:str\", and \"other:int\" in the option; "
				  "index.json names all of them");
	ck_assert_int_eq(scan_named("a_column_", 40, "columns=a_column_00:str"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "number 2 is \"a_column_01:str\", and \"\" in"));
	ck_assert_int_eq(scan_named("c", 2, "columns=c00:str;c01:str"), SCAN_E_END);
}
END_TEST

START_TEST(names_that_the_option_cannot_have_are_refused)
{
	static const char *const names[] = {"a:b", "a;b", "a,b", ""};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		ck_assert_int_eq(scan_named(names[i], 1, "columns=a"), SCAN_E_BAD);
		ck_assert_ptr_nonnull(strstr(run.why, "a colon, a semicolon or a comma"));
	}
}
END_TEST

static const char shard_columns[] =
    "{\"column_encodings\": [\"str\", \"jpeg\", \"int\"], \"column_names\": [\"a\", \"image\", "
    "\"label\"], \"column_sizes\": [null, null, 8], \"compression\": null, \"format\": \"mds\", "
    "\"hashes\": [], \"size_limit\": 67108864, \"version\": 2}";

/* Sample i has a text of i bytes, a picture of 20 + i % 3000 bytes and the label i. */
static void put_shard(struct shard_bytes *shard, unsigned n)
{
	uint32_t at = 4 + 4 * (n + 1) + (uint32_t)sizeof(shard_columns) - 1;

	shard_put_32(shard, n);
	for (unsigned i = 0; i <= n; i++) {
		shard_put_32(shard, at);
		at += 8 + i + 20 + i % 3000 + 8;
	}
	shard_put(shard, shard_columns, sizeof(shard_columns) - 1);
	for (unsigned i = 0; i < n; i++) {
		shard_put_32(shard, i);
		shard_put_32(shard, 20 + i % 3000);
		shard_put_fill(shard, 't', i);
		shard_put(shard, PICTURE, PICTURE_BYTES);
		shard_put_fill(shard, 'x', 20 + i % 3000 - PICTURE_BYTES);
		shard_put_64(shard, i);
	}
}

START_TEST(samples_of_a_shard)
{
	static const unsigned counts[] = {1, 1022, 1023, 1024, 1025, 2047, 3000};
	const unsigned n = counts[_i];
	struct shard_bytes shard;

	shard_bytes_init(&shard, 16 << 20);
	put_shard(&shard, n);
	ck_assert_int_eq(scan_run(&scan_mds, shard.data, shard.size, "", &run), SCAN_E_END);
	ck_assert_uint_eq(run.n, n);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_eq(run.record[i].bytes, 20 + i % 3000);
		ck_assert_mem_eq(shard.data + run.record[i].at, PICTURE, PICTURE_BYTES);
		ck_assert_uint_eq(run.record[i].label, i);
	}
	ck_assert_int_eq(
	    scan_run(&scan_mds, shard.data, shard.size, "image=image,label=other", &run),
	    SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "no column of whole numbers"));
	shard_bytes_fini(&shard);
}
END_TEST

START_TEST(cut_shards)
{
	struct shard_bytes shard;

	shard_bytes_init(&shard, 65536);
	put_shard(&shard, 5);
	for (size_t size = 0; size < shard.size; size++)
		ck_assert_int_eq(scan_run(&scan_mds, shard.data, size, "", &run), SCAN_E_BAD);
	shard_put_fill(&shard, 0, 1);
	ck_assert_int_eq(scan_run(&scan_mds, shard.data, shard.size, "", &run), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "its samples end here"));
	ck_assert_uint_eq(run.bad_at, shard.size - 1);
	shard_bytes_fini(&shard);
}
END_TEST

/* Of a byte that is changed at most one sample is another one, unless it is refused. */
START_TEST(damaged_shards)
{
	struct shard_bytes shard;

	shard_bytes_init(&shard, 65536);
	put_shard(&shard, 3);
	for (size_t at = 0; at < shard.size; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			shard.data[at] ^= (uint8_t)(1 << bit);
			if (scan_run(&scan_mds, shard.data, shard.size, "", &run) == SCAN_E_END)
				ck_assert_uint_eq(run.n, 3);
			shard.data[at] ^= (uint8_t)(1 << bit);
		}
	shard_bytes_fini(&shard);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, good_index_is_read);
	tcase_add_loop_test(tcase, bad_index_is_refused, 0, BASE_ARRAY_LEN(bad_indexes));
	tcase_add_loop_test(tcase, columns_of_shards, 0, BASE_ARRAY_LEN(columns_cases));
	tcase_add_test(tcase, numbers_of_labels);
	tcase_add_test(tcase, shard_of_mosaicml);
	tcase_add_test(tcase, whole_samples_of_mosaicml);
	tcase_add_test(tcase, many_columns_are_refused_by_the_first_that_differs);
	tcase_add_test(tcase, names_that_the_option_cannot_have_are_refused);
	tcase_add_loop_test(tcase, samples_of_a_shard, 0, 7);
	tcase_add_test(tcase, cut_shards);
	tcase_add_test(tcase, damaged_shards);
}

int main(void)
{
	return suite_run("mds", add);
}
