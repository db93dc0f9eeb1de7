/* SPDX-License-Identifier: Apache-2.0 */

/* Parameters: every row of the table at and past the ends of its range, units, texts, the file. */

#include "daemon/param.h"
#include "tests/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct limits {
	const char *name;
	size_t offset;
	uint64_t init, least, most;
};

static const struct limits numbers[] = {
#define PARAM_BYTES(n, i, l, m, w) {#n, offsetof(struct param, n), i, l, m},
#define PARAM_COUNT(n, i, l, m, w) {#n, offsetof(struct param, n), i, l, m},
#define PARAM_TEXT(n, i, w)
#define PARAM_PATH(n, i, w)
#define PARAM_CHOICE(n, i, c, w)
#include "daemon/param_tbl.h"
#undef PARAM_BYTES
#undef PARAM_COUNT
#undef PARAM_TEXT
#undef PARAM_PATH
#undef PARAM_CHOICE
};

static const size_t words = 0 /* texts and choices */
#define PARAM_BYTES(n, i, l, m, w)
#define PARAM_COUNT(n, i, l, m, w)
#define PARAM_TEXT(n, i, w) +1
#define PARAM_PATH(n, i, w) +1
#define PARAM_CHOICE(n, i, c, w) +1
#include "daemon/param_tbl.h"
#undef PARAM_BYTES
#undef PARAM_COUNT
#undef PARAM_TEXT
#undef PARAM_PATH
#undef PARAM_CHOICE
    ;

static uint64_t number_of(const struct param *param, const struct limits *row)
{
	return *(const uint64_t *)(const void *)((const char *)param + row->offset);
}

static int set(struct param *param, struct diag *diag, const char *name, uint64_t value)
{
	char text[96];

	snprintf(text, sizeof(text), "%s=%" PRIu64, name, value);
	return param_set(param, text, diag);
}

START_TEST(numbers_stay_in_their_ranges)
{
	const struct limits *row = &numbers[_i];
	struct diag diag = {""};
	struct param param;

	param_init(&param);
	ck_assert_uint_eq(number_of(&param, row), row->init);
	ck_assert_uint_ge(row->init, row->least);
	ck_assert_uint_le(row->init, row->most);
	ck_assert_int_eq(set(&param, &diag, row->name, row->least), 0);
	ck_assert_uint_eq(number_of(&param, row), row->least);
	ck_assert_int_eq(set(&param, &diag, row->name, row->most), 0);
	ck_assert_uint_eq(number_of(&param, row), row->most);
	if (row->most < UINT64_MAX)
		ck_assert_int_eq(set(&param, &diag, row->name, row->most + 1), PARAM_E_BAD);
	if (row->least > 0)
		ck_assert_int_eq(set(&param, &diag, row->name, row->least - 1), PARAM_E_BAD);
	ck_assert_uint_eq(number_of(&param, row), row->most); /* a refused value changes nothing */
	if (row->most < UINT64_MAX || row->least > 0)
		ck_assert_ptr_nonnull(strstr(diag.text, row->name));
}
END_TEST

static const struct {
	const char *text;
	size_t offset;
	uint64_t value;
} good[] = {
    {"memory=4096", offsetof(struct param, memory), 4096},
    {"memory=64M", offsetof(struct param, memory), UINT64_C(64) << 20},
    {"memory = 1.5G", offsetof(struct param, memory), UINT64_C(3) << 29},
    {"memory=2GiB", offsetof(struct param, memory), UINT64_C(2) << 30},
    {"memory=64M\t ", offsetof(struct param, memory), UINT64_C(64) << 20},
    {"memory_pressure=off", offsetof(struct param, memory_pressure), MEMORY_PRESSURE_OFF},
    {"huge_pages=auto", offsetof(struct param, huge_pages), HUGE_PAGES_AUTO},
    {"huge_pages=require", offsetof(struct param, huge_pages), HUGE_PAGES_REQUIRE},
    {"huge_pages = off", offsetof(struct param, huge_pages), HUGE_PAGES_OFF},
    {"workers  =\t7", offsetof(struct param, workers), 7},
    {"seed=18446744073709551615", offsetof(struct param, seed), UINT64_MAX},
};

START_TEST(good_assignments)
{
	struct diag diag = {""};
	struct param param;

	param_init(&param);
	ck_assert_msg(param_set(&param, good[_i].text, &diag) == 0, "%s", diag.text);
	ck_assert_uint_eq(*(uint64_t *)(void *)((char *)&param + good[_i].offset), good[_i].value);
}
END_TEST

static const char *const bad[][2] = {
    {"", "\"\" is no assignment: write name = value"},
    {"workers", "\"workers\" is no assignment: write name = value"},
    {"worker=1", "no parameter is called \"worker\": `accessd --help` lists them"},
    {"Workers=1", "no parameter is called \"Workers\": `accessd --help` lists them"},
    {"=1", "no parameter is called \"\": `accessd --help` lists them"},
    {"workers=", "parameter workers: \"\" is not a whole number"},
    {"workers=-1", "parameter workers: \"-1\" is not a whole number"},
    {"workers=+1", "parameter workers: \"+1\" is not a whole number"},
    {"workers=1.5", "parameter workers: \"1.5\" is not a whole number"},
    {"workers=0x10", "parameter workers: \"0x10\" is not a whole number"},
    {"workers=4M", "parameter workers: \"4M\" is not a whole number"},
    {"workers=257", "parameter workers: 257 is out of its range 0 .. 256"},
    {"seed=18446744073709551616", "parameter seed: \"18446744073709551616\" is not a whole number"},
    {"memory=-1", "parameter memory: \"-1\" is not a size (write 4096, 64M or 1.5G)"},
    {"memory=64X", "parameter memory: \"64X\" is not a size (write 4096, 64M or 1.5G)"},
    {"memory=99999999999G",
     "parameter memory: \"99999999999G\" is not a size (write 4096, 64M or 1.5G)"},
    {"cache_dir=cache", "parameter cache_dir: \"cache\" is no whole path: begin it with /"},
    {"peer_key=~/key", "parameter peer_key: \"~/key\" is no whole path: begin it with /"},
    {"worker_memory=1K", "parameter worker_memory: 1K is out of its range 16777216 .. "
			 "1099511627776"},
};

START_TEST(bad_assignments_are_named)
{
	struct diag diag = {""};
	struct param before, param;

	param_init(&before);
	param_init(&param);
	ck_assert_int_eq(param_set(&param, bad[_i][0], &diag), PARAM_E_BAD);
	ck_assert_str_eq(diag.text, bad[_i][1]);
	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		ck_assert_uint_eq(number_of(&param, &numbers[i]), number_of(&before, &numbers[i]));
}
END_TEST

START_TEST(texts_have_a_length)
{
	char text[3 * PARAM_TEXT_MAX];
	struct diag diag = {""};
	struct param param;

	param_init(&param);
	ck_assert_str_eq(param.socket, "");
	ck_assert_str_eq(param.log_level, "info");
	for (size_t n = PARAM_TEXT_MAX - 2; n < 2 * PARAM_TEXT_MAX; n++) {
		int used = sprintf(text, "socket=/");

		memset(text + used, 'x', n - 1);
		text[(size_t)used + n - 1] = '\0';
		ck_assert_int_eq(param_set(&param, text, &diag),
				 n < PARAM_TEXT_MAX ? 0 : PARAM_E_BAD);
		ck_assert_uint_eq(strlen(param.socket), BASE_MIN(n, (size_t)PARAM_TEXT_MAX - 1));
	}
	ck_assert_ptr_nonnull(strstr(diag.text, "parameter socket: longer than"));
	ck_assert_int_eq(param_set(&param, "socket=", &diag), 0);
	ck_assert_str_eq(param.socket, "");
}
END_TEST

static int read_text(struct param *param, const char *text, size_t size, struct diag *diag,
		     char path[static 32])
{
	int fd, r;

	strcpy(path, "/tmp/access-param-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, size), (ssize_t)size);
	close(fd);
	param_init(param);
	r = param_read(param, path, diag);
	unlink(path);
	return r;
}

START_TEST(a_file_is_read)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "  workers = 3\r\n"
				   "memory=1G\n"
				   "\t# another\n"
				   "log_level =\twarn \n"
				   "slots=8"; /* no end of line */
	struct diag diag = {""};
	struct param param;
	char path[32];

	ck_assert_msg(read_text(&param, text, sizeof(text) - 1, &diag, path) == 0, "%s", diag.text);
	ck_assert_uint_eq(param.workers, 3);
	ck_assert_uint_eq(param.memory, UINT64_C(1) << 30);
	ck_assert_str_eq(param.log_level, "warn");
	ck_assert_uint_eq(param.slots, 8);
}
END_TEST

START_TEST(a_file_s_mistake_has_its_line)
{
	static const char text[] = "workers = 3\n\n# x\nmemori = 1G\nslots=4\n";
	struct diag diag = {""};
	struct param param;
	char path[32], expected[160];

	ck_assert_int_eq(read_text(&param, text, sizeof(text) - 1, &diag, path), PARAM_E_BAD);
	snprintf(expected, sizeof(expected),
		 "%s:4: no parameter is called \"memori\": `accessd --help` lists them", path);
	ck_assert_str_eq(diag.text, expected);
}
END_TEST

START_TEST(a_comment_behind_a_value_is_told_of)
{
	static const char text[] = "\xef\xbb\xbfworkers = 3\nmemory = 1G # half\n";
	struct diag diag = {""};
	struct param param;
	char path[32], expected[160];

	ck_assert_int_eq(read_text(&param, text, sizeof(text) - 1, &diag, path), PARAM_E_BAD);
	ck_assert_uint_eq(param.workers, 3);
	snprintf(expected, sizeof(expected),
		 "%s:2: parameter memory: \"1G # half\" is not a size (write 4096, 64M or 1.5G); a "
		 "comment is a line of its own",
		 path);
	ck_assert_str_eq(diag.text, expected);
}
END_TEST

START_TEST(no_other_mistake_is_told_as_one_of_comments)
{
	static const char *const lines[] = {"memory # = 1G\n", "memory = 1G#\n"};
	struct diag diag = {""};
	struct param param;
	char path[32];

	ck_assert_int_eq(read_text(&param, lines[_i], strlen(lines[_i]), &diag, path), PARAM_E_BAD);
	ck_assert_msg(!strstr(diag.text, "comment"), "%s", diag.text);
}
END_TEST

START_TEST(strange_files)
{
	_cleanup_free_ char *text = malloc(1 << 20);
	struct diag diag = {""};
	struct param param;
	char path[32];

	memset(text, 'x', 1 << 20); /* one line of a megabyte */
	ck_assert_int_eq(read_text(&param, text, 1 << 20, &diag, path), PARAM_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, ":1: "));
	ck_assert_int_eq(read_text(&param, "", 0, &diag, path), 0);
	ck_assert_int_eq(param_read(&param, "/nonexistent/accessd.conf", &diag), -ENOENT);
	ck_assert_str_eq(diag.text, "cannot read /nonexistent/accessd.conf: "
				    "No such file or directory");
	ck_assert_int_eq(param_read(&param, "/", &diag), -EISDIR); /* opens, but cannot be read */
	ck_assert_str_eq(diag.text, "cannot read /: Is a directory");
}
END_TEST

START_TEST(help_lists_them_all)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0, lines = 0;
	FILE *out = open_memstream(&text, &size);

	param_print(out);
	fclose(out);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		ck_assert_ptr_nonnull(strstr(text, numbers[i].name));
	ck_assert_uint_eq(lines, BASE_ARRAY_LEN(numbers) + words + QUOTA_KINDS + NAMED_WORDS);
	ck_assert_ptr_nonnull(strstr(text, "tenant.USER.share"));
	ck_assert_ptr_nonnull(strstr(text, "worker_memory      1 GiB"));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, numbers_stay_in_their_ranges, 0, BASE_ARRAY_LEN(numbers));
	tcase_add_loop_test(tcase, good_assignments, 0, BASE_ARRAY_LEN(good));
	tcase_add_loop_test(tcase, bad_assignments_are_named, 0, BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, texts_have_a_length);
	tcase_add_test(tcase, a_file_is_read);
	tcase_add_test(tcase, a_file_s_mistake_has_its_line);
	tcase_add_test(tcase, a_comment_behind_a_value_is_told_of);
	tcase_add_loop_test(tcase, no_other_mistake_is_told_as_one_of_comments, 0, 2);
	tcase_add_test(tcase, strange_files);
	tcase_add_test(tcase, help_lists_them_all);
}

int main(void)
{
	return suite_run("param", add);
}
