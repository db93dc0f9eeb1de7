/* SPDX-License-Identifier: Apache-2.0 */

/* LitData: index.json, which leaf is what, chunks. */

#include "base/json.h"
#include "storage/source/scan/litdata.h"
#include "storage/source/scan/scan_shard.h"
#include "tests/storage/scan_run.h"
#include "tests/suite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scan_run run;

static int parses = INT_MAX; /* that have memory, from now on; the next one has none */

int __real_json_in_parse(const char *text, size_t size, size_t limit, struct json_in **ret,
			 struct diag *diag);
int __wrap_json_in_parse(const char *text, size_t size, size_t limit, struct json_in **ret,
			 struct diag *diag);

int __wrap_json_in_parse(const char *text, size_t size, size_t limit, struct json_in **ret,
			 struct diag *diag)
{
	return parses-- != 0 ? __real_json_in_parse(text, size, limit, ret, diag) : -ENOMEM;
}

/* As litdata 0.2.76 writes samples of {"image": bytes, "meta": {"label": int, "score": float}, "a": numpy.zeros(1, "u1")}. */
static const uint8_t golden[] =
    "\2\0\0\0\x10\0\0\0\x38\0\0\0\x62\0\0\0\7\0\0\0\x08\0\0\0\x08\0\0\0\1\0\0\0\xff\xd8\xff\xe0"
    "EEE\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0?\0\t\0\0\0\x08\0\0\0\x08\0\0\0\1\0\0\0\xff\xd8\xff\xe0"
    "EEEEE\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0?";
static const char golden_index[] =
    "{\"chunks\": [{\"chunk_bytes\": 98, \"chunk_size\": 2, \"dim\": null, \"filename\": "
    "\"chunk-0-0.bin\"}], \"config\": {\"chunk_bytes\": null, \"chunk_size\": 5, \"compression\": "
    "null, \"compression_batch_size\": null, \"compression_level\": null, \"data_format\": "
    "[\"bytes\", \"int\", \"float\", \"no_header_numpy:4\"], \"data_spec\": \"[1, {\\\"type\\\": "
    "\\\"builtins.dict\\\", \\\"context\\\": \\\"[\\\\\\\"image\\\\\\\", \\\\\\\"meta\\\\\\\", "
    "\\\\\\\"a\\\\\\\"]\\\", \\\"children_spec\\\": [{\\\"type\\\": null, \\\"context\\\": null, "
    "\\\"children_spec\\\": []}, {\\\"type\\\": \\\"builtins.dict\\\", \\\"context\\\": "
    "\\\"[\\\\\\\"label\\\\\\\", \\\\\\\"score\\\\\\\"]\\\", \\\"children_spec\\\": "
    "[{\\\"type\\\": "
    "null, \\\"context\\\": null, \\\"children_spec\\\": []}, {\\\"type\\\": null, "
    "\\\"context\\\": "
    "null, \\\"children_spec\\\": []}]}, {\\\"type\\\": null, \\\"context\\\": null, "
    "\\\"children_spec\\\": []}]}]\", \"encryption\": null, \"ipc_compression\": null, "
    "\"item_loader\": \"PyTreeLoader\", \"types\": {\"a\": \"json\", \"image\": \"bytes\"}}, "
    "\"updated_at\": \"1795737279.3\"}";

static void replaced(const char *from, const char *to, char *ret, size_t size)
{
	const char *at = strstr(golden_index, from);

	ck_assert_ptr_nonnull(at);
	snprintf(ret, size, "%.*s%s%s", (int)(at - golden_index), golden_index, to,
		 at + strlen(from));
}

/* ---- index.json ---- */

START_TEST(index_of_litdata)
{
	const struct litdata_names usual = {NULL, NULL};
	struct index_json index;
	struct litdata leaves;
	struct diag diag;

	ck_assert_int_eq(
	    litdata_parse(golden_index, sizeof(golden_index) - 1, &usual, &index, &leaves, &diag),
	    0);
	ck_assert_uint_eq(index.n, 1);
	ck_assert_str_eq(index.shard[0].name, "chunk-0-0.bin");
	ck_assert_uint_eq(index.shard[0].bytes, 98);
	ck_assert_uint_eq(index.shard[0].samples, 2);
	ck_assert_uint_eq(leaves.leaves, 4);
	ck_assert_uint_eq(leaves.picture, 0);
	ck_assert(leaves.has_label);
	ck_assert_uint_eq(leaves.label, 1);
	index_json_fini(&index);
}
END_TEST

static const struct bad_index { /* what of the good one is replaced, by what, and what it is then */
	const char *from, *to;
	struct litdata_names names;
	int r;
	const char *why;
} bad_indexes[] = {
    {"{\"chunks\"", "{\"shards\"", {NULL, NULL}, INDEX_JSON_E_NONE, NULL},
    {"\"data_format\"", "\"format\"", {NULL, NULL}, INDEX_JSON_E_NONE, NULL},
    {"}", "", {NULL, NULL}, INDEX_JSON_E_NONE, NULL},
    {"\"compression\": null",
     "\"compression\": \"zstd\"",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "compressed"},
    {"\"ipc_compression\": null",
     "\"ipc_compression\": \"zstd\"",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "compressed"},
    {"\"encryption\": null", "\"encryption\": {}", {NULL, NULL}, INDEX_JSON_E_BAD, "encrypted"},
    {"PyTreeLoader", "TokensLoader", {NULL, NULL}, INDEX_JSON_E_BAD, "no samples of PyTreeLoader"},
    {"chunk-0-0.bin", "../chunk", {NULL, NULL}, INDEX_JSON_E_BAD, "without name or size"},
    {"\"chunk_bytes\": 98",
     "\"chunk_bytes\": 7",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "without name or size"},
    {"\"chunk_size\": 2",
     "\"chunk_size\": 0",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "without name or size"},
    {"\"bytes\", \"int\"",
     "\"int\"",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "none or more than 64 leaves"},
    {"\"data_spec\": \"[1,", "\"data_spec\": \"[", {NULL, NULL}, INDEX_JSON_E_BAD, "damaged"},
    {"\"bytes\", \"int\"",
     "\"str\", \"int\"",
     {NULL, NULL},
     INDEX_JSON_E_BAD,
     "no leaf that is a picture"},
    {"no_header_numpy:4", "bytes", {NULL, NULL}, INDEX_JSON_E_BAD, "several leaves"},
    {"no_header_numpy:4", "bytes", {"b", NULL}, INDEX_JSON_E_BAD, "no leaf that is a picture"},
    {"\"a\": \"json\"", "\"a\": \"json\"", {NULL, "label"}, INDEX_JSON_E_BAD, "the label's name"},
    {"\"a\": \"json\"",
     "\"a\": \"json\"",
     {NULL, "meta.score"},
     INDEX_JSON_E_BAD,
     "the label's name"},
};

START_TEST(bad_index_is_refused)
{
	const struct bad_index *bad = &bad_indexes[_i];
	struct diag diag = {.text = ""};
	struct index_json index;
	struct litdata leaves;
	char text[4096];

	replaced(bad->from, bad->to, text, sizeof(text));
	ck_assert_int_eq(litdata_parse(text, strlen(text), &bad->names, &index, &leaves, &diag),
			 bad->r);
	if (bad->why)
		ck_assert_msg(strstr(diag.text, bad->why), "%s", diag.text);
}
END_TEST

/* Its own text, data_spec, and the keys of either tree: of none is it damaged. */
START_TEST(index_without_memory)
{
	const struct litdata_names usual = {NULL, NULL};
	struct index_json index;
	struct litdata leaves;
	struct diag diag = {.text = ""};

	parses = _i;
	ck_assert_int_eq(
	    litdata_parse(golden_index, sizeof(golden_index) - 1, &usual, &index, &leaves, &diag),
	    -ENOMEM);
	ck_assert_str_eq(diag.text, "");
}
END_TEST

static const struct which { /* leaf is what, for the data formats that replace the golden ones */
	const char *formats;
	struct litdata_names names;
	unsigned picture;
	int label; /* -1: none */
} whiches[] = {
    {"\"jpeg\", \"int\", \"float\", \"bytes\"", {NULL, NULL}, 0, 1},
    {"\"bytes\", \"int\", \"int\", \"image:png\"", {NULL, NULL}, 3, 1},
    {"\"bytes\", \"float\", \"int\", \"file:jpg\"", {NULL, NULL}, 3, 2},
    {"\"bytes\", \"int\", \"int\", \"file:jpg\"", {"image", "meta.score"}, 0, 2},
    {"\"bytes\", \"bool\", \"float\", \"str\"", {NULL, NULL}, 0, -1},
    {"\"bytes\", \"int\", \"float\", \"bytes\"", {"a", "meta.label"}, 3, 1},
};

START_TEST(which_leaf_is_what)
{
	const struct which *which = &whiches[_i];
	struct index_json index;
	struct litdata leaves;
	struct diag diag;
	char text[4096];

	replaced("\"bytes\", \"int\", \"float\", \"no_header_numpy:4\"", which->formats, text,
		 sizeof(text));
	ck_assert_int_eq(litdata_parse(text, strlen(text), &which->names, &index, &leaves, &diag),
			 0);
	ck_assert_uint_eq(leaves.picture, which->picture);
	ck_assert_int_eq(leaves.has_label, which->label >= 0);
	if (leaves.has_label)
		ck_assert_int_eq((int)leaves.label, which->label);
	index_json_fini(&index);
}
END_TEST

/* ---- chunks ---- */

static int scan(const uint8_t *bytes, size_t size, const char *options)
{
	return scan_run(&scan_litdata, bytes, size, options, &run);
}

START_TEST(chunk_of_litdata)
{
	ck_assert_uint_eq(sizeof(golden), 98);
	ck_assert_int_eq(scan(golden, sizeof(golden), "layout=4;0;1"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_uint_eq(run.record[0].at, 32);
	ck_assert_uint_eq(run.record[0].bytes, 7);
	ck_assert_uint_eq(run.record[0].label, 15);
	ck_assert_uint_eq(run.record[1].bytes, 9);
	ck_assert_uint_eq(run.record[1].label, 17);
	ck_assert_int_eq(scan(golden, sizeof(golden), "layout=4;0;4"), SCAN_E_END);
	ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);
}
END_TEST

START_TEST(chunk_of_other_leaves)
{
	static const char *const layouts[] = {"",
					      "layout=",
					      "layout=0;0;0",
					      "layout=4;4;1",
					      "layout=4;1;1",
					      "layout=4;0;5",
					      "layout=4;0;1;",
					      "layout=65;0;1"};

	for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		ck_assert_int_eq(scan(golden, sizeof(golden), layouts[i]), SCAN_E_BAD);
		ck_assert_ptr_nonnull(strstr(run.why, "option layout"));
	}
	ck_assert_int_eq(scan(golden, sizeof(golden), "layout=3;0;1"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "do not fill it"));
	ck_assert_int_eq(scan(golden, sizeof(golden), "layout=4;0;3"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "eight bytes of an int"));
}
END_TEST

/* LitData writes rows of Arrow behind a head whose starts are all the same. */
START_TEST(chunk_of_arrow)
{
	uint8_t bytes[64] = {2, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 'A', 'R', 'R'};

	ck_assert_int_eq(scan(bytes, sizeof(bytes), "layout=4;0;1"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "rows of Arrow"));
}
END_TEST

START_TEST(damaged_chunks)
{
	uint8_t bytes[sizeof(golden)];

	for (size_t size = 0; size < sizeof(golden); size++)
		ck_assert_int_eq(scan(golden, size, "layout=4;0;1"), SCAN_E_BAD);
	memcpy(bytes, golden, sizeof(bytes));
	for (size_t at = 0; at < sizeof(bytes); at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[at] ^= (uint8_t)(1 << bit);
			if (scan(bytes, sizeof(bytes), "layout=4;0;1") == SCAN_E_END)
				ck_assert_uint_eq(run.n, 2);
			bytes[at] ^= (uint8_t)(1 << bit);
		}
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, index_of_litdata);
	tcase_add_loop_test(tc, bad_index_is_refused, 0,
			    sizeof(bad_indexes) / sizeof(bad_indexes[0]));
	tcase_add_loop_test(tc, index_without_memory, 0, 4);
	tcase_add_loop_test(tc, which_leaf_is_what, 0, sizeof(whiches) / sizeof(whiches[0]));
	tcase_add_test(tc, chunk_of_litdata);
	tcase_add_test(tc, chunk_of_other_leaves);
	tcase_add_test(tc, chunk_of_arrow);
	tcase_add_test(tc, damaged_chunks);
}

int main(void)
{
	return suite_run("litdata", add);
}
