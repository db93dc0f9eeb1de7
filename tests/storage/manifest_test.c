/* SPDX-License-Identifier: Apache-2.0 */

/* Rows of CSV as Python's csv module reads them, words and their order, and what a scan finds in a manifest. */

#include "storage/source/scan/csv.h"
#include "storage/source/scan/scan_manifest.h"
#include "storage/source/scan/words.h"
#include "tests/storage/scan_run.h"

#include "base/base.h"
#include "tests/patience.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static const struct {
	const char *text;
	const char *fields; /* with | between them; NULL: it is wrong */
	unsigned lines;
} rows[] = {
    {"a,b,c\n", "a|b|c", 1},     {"a,b,c", "a|b|c", 0},
    {"a,,\r\n", "a||", 1},       {",", "|", 0},
    {"\"a,b\",c\n", "a,b|c", 1}, {"\"a \"\"b\"\"\",c\n", "a \"b\"|c", 1},
    {"\"\",\"\"\n", "|", 1},     {"\"a\r\nb\",c\r\n", "a\r\nb|c", 2},
    {"a\"b,c\n", "a\"b|c", 1},   {" a , b \n", " a | b ", 1},
    {"\"a\"b,c\n", NULL, 0},     {"\"a,c\n", NULL, 0},
    {"a\rb\n", NULL, 0},
};

START_TEST(fields_are_as_csv_says)
{
	const uint8_t *text = (const uint8_t *)rows[_i].text;
	const size_t size = strlen(rows[_i].text);
	struct csv_row row;
	char found[64] = "", field[32];
	int r = csv_row(text, size, true, ',', &row);

	if (!rows[_i].fields) {
		ck_assert_int_eq(r, CSV_E_BAD);
		return;
	}
	ck_assert_int_eq(r, 0);
	for (unsigned i = 0; i < row.n; i++) {
		ck_assert(csv_text(text, &row.field[i], field, sizeof(field)));
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i ? "|" : "",
			 field);
	}
	ck_assert_str_eq(found, rows[_i].fields);
	ck_assert_uint_eq(row.bytes, size);
	ck_assert_uint_eq(row.lines, rows[_i].lines);
	for (size_t cut = 1; cut < size; cut++) /* not before its end is there */
		ck_assert_int_eq(csv_row(text, cut, false, ',', &row), CSV_E_MORE);
}
END_TEST

START_TEST(a_text_has_its_room)
{
	const uint8_t *text = (const uint8_t *)"\"ab\"\"c\"";
	const struct csv_field field = {0, 7};
	char ret[8];

	ck_assert(!csv_text(text, &field, ret, 4));
	ck_assert(csv_text(text, &field, ret, 5));
	ck_assert_str_eq(ret, "ab\"c");
}
END_TEST

START_TEST(too_many_fields)
{
	static uint8_t text[2 * CSV_MOST_FIELDS];
	static struct csv_row row;

	memset(text, ',', sizeof(text));
	ck_assert_int_eq(csv_row(text, CSV_MOST_FIELDS - 1, true, ',', &row), 0);
	ck_assert_uint_eq(row.n, CSV_MOST_FIELDS);
	ck_assert_int_eq(csv_row(text, CSV_MOST_FIELDS, true, ',', &row), CSV_E_BAD);
}
END_TEST

/* ---- words ---- */

START_TEST(words_have_one_number_each)
{
	struct words words = {.n = 0};
	_cleanup_free_ uint32_t *order = NULL;
	uint32_t number;
	char word[16];

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < WORDS_MOST; i++) {
			snprintf(word, sizeof(word), "%u", WORDS_MOST - 1 - i);
			ck_assert_int_eq(words_add(&words, word, &number), 0);
			ck_assert_uint_eq(number, i);
		}
	ck_assert_int_eq(words_add(&words, "one more", &number), -E2BIG);
	ck_assert_uint_eq(words.n, WORDS_MOST);
	order = words_order(&words);
	ck_assert_ptr_nonnull(order);
	ck_assert_uint_eq(order[WORDS_MOST - 1], 0);  /* "0" */
	ck_assert_uint_eq(order[WORDS_MOST - 2], 1);  /* "1" */
	ck_assert_uint_eq(order[WORDS_MOST - 11], 2); /* "10" */
	words_fini(&words);
}
END_TEST

/* ---- the scan ---- */

static struct scan_run run;

static int scan(const char *name, const char *text, size_t size, const char *options)
{
	run.name = name;
	return scan_run(&scan_manifest, (const uint8_t *)text, size, options, &run);
}

START_TEST(rows_are_records)
{
	static const char csv[] =
	    "\xef\xbb\xbftext,label,file_name,path\r\n\"a\nb\",7,x.jpg,no\r\n\n"
	    "c,cat,y.jpg,no";
	static const char json[] = "{\"file_name\": \"x.jpg\", \"label\": 7}\n"
				   "{\"file_name\": \"y.jpg\", \"label\": \"cat\"}";

	ck_assert_int_eq(scan("x.csv", csv, sizeof(csv) - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_uint_eq(run.record[1].label, SCAN_NO_LABEL);
	ck_assert_uint_eq(run.record[0].at, 30);
	ck_assert_uint_eq(run.record[0].bytes, 18);
	ck_assert_int_eq(scan("x.ndjson", json, sizeof(json) - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_int_eq(scan("x.csv", csv, sizeof(csv) - 1, "path=path,label=text"), SCAN_E_END);
	ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);
}
END_TEST

/* Of NeMo, where an offset of 0 is none; elsewhere the word means nothing. */
START_TEST(parts_of_files_are_refused)
{
	static const struct {
		const char *row;
		int r;
	} table[] =
	    {
		{"{\"audio_filepath\": \"x.wav\", \"offset\": 0}", SCAN_E_END},
		{"{\"audio_filepath\": \"x.wav\", \"offset\": 0.0, \"duration\": 3}", SCAN_E_END},
		{"{\"audio_filepath\": \"x.wav\", \"offset\": null}", SCAN_E_END},
		{"{\"file_name\": \"x.jpg\", \"offset\": 7}", SCAN_E_END},
		{"{\"audio_filepath\": \"x.wav\", \"offset\": 1e-3}", SCAN_E_BAD},
		{"{\"audio_filepath\": \"x.wav\", \"offset\": 7}", SCAN_E_BAD},
		{"{\"audio_filepath\": \"x.wav\", \"offset\": \"7\"}", SCAN_E_BAD},
	    },
	  csv[] = {
	      {"audio_filepath,offset\nx.wav,0.00\ny.wav,\n", SCAN_E_END},
	      {"file_name,offset\nx.jpg,7\n", SCAN_E_END},
	      {"offset,audio_filepath\n0,x.wav\n1.5,y.wav\n", SCAN_E_BAD},
	      {"audio_filepath,offset\nx.wav,soon\n", SCAN_E_BAD},
	  };

	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		ck_assert_int_eq(scan("x.jsonl", table[i].row, strlen(table[i].row), ""),
				 table[i].r);
		if (table[i].r == SCAN_E_BAD)
			ck_assert_ptr_nonnull(strstr(run.why, "oneaccess.from_jsonl"));
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(csv); i++) {
		ck_assert_int_eq(scan("x.csv", csv[i].row, strlen(csv[i].row), ""), csv[i].r);
		if (csv[i].r == SCAN_E_BAD)
			ck_assert_ptr_nonnull(strstr(run.why, "oneaccess.from_csv(..., files"));
	}
}
END_TEST

START_TEST(pairs_are_records)
{
	static const char json[] = "\xef\xbb\xbf{ \"labels\" :\n[[\"00000/a\\\"]\\\\.png\", 7],"
				   "[ \"b.png\",\"cat\" ] , [\"c.png\", null]\n]\n}\n \n";
	_cleanup_free_ char *many = malloc(3000000);
	size_t size = 0;

	ck_assert_int_eq(scan("dataset.json", json, sizeof(json) - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 3);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_uint_eq(run.record[0].bytes, strlen("[\"00000/a\\\"]\\\\.png\", 7]"));
	ck_assert_uint_eq(run.record[1].label, SCAN_NO_LABEL);
	ck_assert_int_eq(scan("dataset.json", "{\"labels\":[]}", 13, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 0);
	ck_assert_int_eq(scan("dataset.json", json, sizeof(json) - 1, "label=x"), SCAN_E_BAD);
	/* Across the ends of windows. */
	ck_assert_ptr_nonnull(many);
	size += (size_t)sprintf(many, "{\"labels\": [");
	for (unsigned i = 0; i < 2500; i++)
		size += (size_t)sprintf(many + size, "%s[\"%0*u.png\",%u]", i ? "," : "",
					(int)(i * 7919 % 1500) + 1, i, i);
	size += (size_t)sprintf(many + size, "]}");
	ck_assert_int_eq(scan("dataset.json", many, size, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2500);
	ck_assert_uint_eq(run.record[2499].label, 2499);
	/* Nothing but the whole of it is a dataset.json, wherever it is cut. */
	for (size_t cut = 4; cut < sizeof(json) - 6; cut++)
		ck_assert_int_eq(scan("dataset.json", json, cut, ""), SCAN_E_BAD);
}
END_TEST

START_TEST(blanks_around_names_count_for_nothing)
{
	static const char csv[] = " file_name ,text, label \nx.jpg,t,7\n";
	static const char quoted[] = "file_name,\" label\"\nx.jpg,7\n";

	ck_assert_int_eq(scan("x.csv", csv, sizeof(csv) - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_int_eq(scan("x.csv", csv, sizeof(csv) - 1, "label=label"), SCAN_E_END);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_int_eq(scan("x.csv", quoted, sizeof(quoted) - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);
}
END_TEST

/* Rows lie across the ends of windows, and one is larger than a window. */
START_TEST(rows_of_any_length)
{
	const size_t room = 4000000;
	_cleanup_free_ char *text = malloc(room);
	size_t size;

	ck_assert_ptr_nonnull(text);
	size = (size_t)snprintf(text, room, "file_name,text\n");
	for (unsigned i = 0; i < 3000; i++) {
		const unsigned length = i == 1000 ? 1000000 : i * 7919 % 1500;

		size += (size_t)snprintf(text + size, room - size, "%u.jpg,\"", i);
		memset(text + size, i % 2 ? '\n' : 't', length);
		size += length;
		size += (size_t)snprintf(text + size, room - size, "\"\n");
	}
	ck_assert_int_eq(scan("x.csv", text, size, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 3000);
	memset(text + 15 + strlen("0.jpg,\""), 't',
	       size - 15 - strlen("0.jpg,\"")); /* a quote that is never closed */
	ck_assert_int_eq(scan("x.csv", text, size, ""), SCAN_E_BAD);
	ck_assert_uint_eq(run.bad_at, 2);
	ck_assert_ptr_nonnull(strstr(run.why, "more than 1 MiB"));
}
END_TEST

START_TEST(words_that_have_digits)
{
	static const char *const words[] = {"2024-01-05", "1-2", "3e", "1.2.3",
					    "0x7",        "007", "-",  "e5"};
	char csv[64];

	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++) {
		const int size = snprintf(csv, sizeof(csv), "file_name,label\na,%s\n", words[i]);

		ck_assert_int_eq(scan("x.csv", csv, (size_t)size, ""), SCAN_E_END);
		ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);
	}
}
END_TEST

static const struct {
	const char *name, *text, *why;
	uint64_t line;
} wrong[] = {
    {"x.csv", "file_name,label\na,1e5\n", "(label) is no class", 2},
    {"x.csv", "file_name,label\na, 7\n", "(label) is no class", 2},
    {"x.csv", "file_name,label\na,.5\n", "(label) is no class", 2},
    {"x.csv", "file_name,label\na,0\nb,1.5\n", "(label) is no class", 3},
    {"x.csv", "file_name,label\na,nan\n", "(label) is no class", 2},
    {"x.csv", "file_name,label\na,-3\n", "(label) is no class", 2},
    {"x.csv", "file_name,label\na,16777216\n", "beyond 16777215", 2},
    {"x.csv", "a,b\n", "there are: a, b", 1},
    {"x.tsv", "file_name,label\na,0\n", "there are: file_name,label", 1},
    {"x.csv", "file_name\n\"\"\n", "(file_name) is empty", 2},
    {"x.jsonl", "{\"file_name\": \"a\"}\n[]\n", "no JSON object", 2},
    {"x.jsonl", "{\"name\": \"a\"}\n", "no member is called", 1},
    {"x.jsonl", "{\"file_name\": \"a\", \"label\": true}\n", "(label) is no class", 1},
    {"x.jsonl", "{\"file_name\": \"a\", \"label\": 1.0}\n", "(label) is no class", 1},
    {"x.json", "{\"images\": []}", "COCO's annotations come by", 1},
    {"x.json", "{\"labels\": null}", "does not begin with {\"labels\"", 1},
    {"x.json", "{\"lab", "does not begin with", 1},
    {"x.json", "{\"labels\": [[\"a\", 1],\n[\"b\"]]}", "no pair of a file and its class", 1},
    {"x.json", "{\"labels\": [[1, 1]]}", "no pair of a file and its class", 1},
    {"x.json", "{\"labels\": [[\"\", 1]]}", "(file) is empty", 1},
    {"x.json", "{\"labels\": [[\"a\", [0.5, 1]]]}", "(class) is no class", 1},
    {"x.json", "{\"labels\": [[\"a\", 1e5]]}", "(class) is no class", 1},
    {"x.json", "{\"labels\": [[\"a\", 1}]]}", "", 1},
    {"x.json", "{\"labels\": [[\"a\", 1],,[\"b\", 1]]}", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1] [\"b\", 1]]}", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1]", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1],", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1]]", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1], [\"b", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1]], \"more\": 1}", "is cut off, or has more", 1},
    {"x.json", "{\"labels\": [[\"a\", 1]]} x", "is cut off, or has more", 1},
};

START_TEST(what_is_wrong_is_told_with_its_line)
{
	const char *text = wrong[_i].text;

	ck_assert_int_eq(scan(wrong[_i].name, text, strlen(text), ""), SCAN_E_BAD);
	ck_assert_uint_eq(run.bad_at, wrong[_i].line);
	ck_assert_msg(strstr(run.why, wrong[_i].why) != NULL, "%s", run.why);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("manifest");
	TCase *tcase = tcase_create("manifest");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_S);
	tcase_add_loop_test(tcase, fields_are_as_csv_says, 0, BASE_ARRAY_LEN(rows));
	tcase_add_test(tcase, a_text_has_its_room);
	tcase_add_test(tcase, too_many_fields);
	tcase_add_test(tcase, words_have_one_number_each);
	tcase_add_test(tcase, rows_are_records);
	tcase_add_test(tcase, parts_of_files_are_refused);
	tcase_add_test(tcase, pairs_are_records);
	tcase_add_test(tcase, blanks_around_names_count_for_nothing);
	tcase_add_test(tcase, rows_of_any_length);
	tcase_add_test(tcase, words_that_have_digits);
	tcase_add_loop_test(tcase, what_is_wrong_is_told_with_its_line, 0, BASE_ARRAY_LEN(wrong));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
