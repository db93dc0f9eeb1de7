/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan of tar shards: archives made here byte by byte, so that what other programs write does not decide what
 * is tested. (Against Python's tarfile and webdataset's grouping: tests/python/shards_test.py.)
 */

#include "storage/source/scan/scan_shard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/tar.h"
#include "storage/source/scan/scan_group.h"
#include "tests/suite.h"

#define ROOM (256 << 10)

static uint8_t tar[ROOM];
static size_t used;
static char found[8192]; /* "key@at+bytes=label " for each record */
static struct scan_sink sink;

static void begin(void)
{
	memset(tar, 0, sizeof(tar));
	used = 0;
}

static void sum_up(uint8_t *header)
{
	unsigned sum = 0;

	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += header[i];
	snprintf((char *)header + 148, 8, "%06o", sum);
}

static uint8_t *add(const char *path, char type, const void *data, size_t size)
{
	uint8_t *header = tar + used;

	memcpy(header, path, BASE_MIN(strlen(path), (size_t)100));
	snprintf((char *)header + 100, 8, "0000644");
	snprintf((char *)header + 124, 12, "%011o", (unsigned)size & 0777777777);
	header[156] = (uint8_t)type;
	memcpy(header + 257,
	       "ustar\0"
	       "00",
	       8);
	sum_up(header);
	memcpy(header + 512, data, size);
	used += 512 + (size_t)base_align_up(size, 512);
	return header;
}

static void add_text(const char *path, const char *text)
{
	add(path, '0', text, strlen(text));
}

static int on_record(void *arg, const struct scan_record *record)
{
	const size_t length = strlen(found);

	(void)arg;
	snprintf(found + length, sizeof(found) - length, "%s@%llu+%u=%d ", record->key,
		 (unsigned long long)record->at, record->bytes, (int)record->label);
	return 0;
}

static int read_tar(void *arg, uint64_t at, uint8_t *ret, uint32_t bytes)
{
	(void)arg;
	memcpy(ret, tar + at, bytes);
	return 0;
}

static const char *options = "";

static int scan_of(size_t bytes)
{
	const struct scan_shard shard = {.name = "x.tar", .bytes = bytes, .options = options};
	const struct scan_reader reader = {.read = read_tar};

	sink = (struct scan_sink){.record = on_record};
	found[0] = '\0';
	return scan_shard_run(&scan_tar, &shard, &reader, &sink);
}

/* With the two blocks of zeros at the end, if they are wanted. */
static void finds(const char *records)
{
	ck_assert_msg(scan_of(used + 1024) == 0, "%s", sink.why);
	ck_assert_str_eq(found, records);
	ck_assert_msg(scan_of(used) == 0, "%s", sink.why);
	ck_assert_str_eq(found, records);
}

static void refuses(size_t bytes, uint64_t at, const char *part)
{
	ck_assert_int_eq(scan_of(bytes), SCAN_E_BAD);
	ck_assert_msg(strstr(sink.why, part) != NULL, "\"%s\" has no \"%s\"", sink.why, part);
	ck_assert_uint_eq(sink.bad_at, at);
}

/* ---- samples ---- */

START_TEST(neighbours_with_one_key_are_a_sample)
{
	begin();
	add_text("0001.jpg", "first");
	add_text("0001.cls", "3");
	add_text("0001.json", "{}");
	add_text("0002.cls", " 12\n");
	add_text("0002.PNG", "second picture");
	add_text("0001.jpg", "again: no neighbour");
	add_text("0003.NII.GZ", "a volume");
	finds("0001@512+5=3 0002@4608+14=12 0001@5632+19=-1 0003@6656+8=-1 ");
}
END_TEST

START_TEST(all_of_its_files_are_a_sample)
{
	options = "members=all";
	begin();
	add_text("README", "no key");
	add_text("0001.txt", "no picture");
	add_text("0001.cls", "3");
	add_text("__meta__/x.txt", "none");
	add_text("0001.json", "{}");
	add("././@LongLink", 'L', "0002.jpg", 9);
	add_text("cut off", "a file of a long name");
	finds("0001@1024+3586=3 0002@5120+1557=-1 ");
	options = "members=none";
	refuses(used, 0, "the option members is all");
	options = "";
}
END_TEST

START_TEST(key_ends_at_the_first_dot_of_the_base_name)
{
	begin();
	add_text("a.b/c.d.jpg", "the field is d.jpg: no picture");
	add_text("a.b/c.jpg", "x");
	add_text("./e//f.webp", "y");
	finds("a.b/c@1536+1=-1 e/f@2560+1=-1 ");
}
END_TEST

START_TEST(what_has_no_key_is_passed_over)
{
	static const char *const paths[] = {"noDot",     ".hidden.jpg",    "d/.jpg",
					    "__index__", "__meta__/a.jpg", "__x__.json/1.jpg"};

	begin();
	for (size_t i = 0; i < BASE_ARRAY_LEN(paths) - 1; i++)
		add_text(paths[i], "x");
	add("folder.jpg", '5', "", 0);
	add("link.jpg", '2', "", 0);
	add("old.jpg/", '\0', "", 0);
	add_text(paths[5], "y");
	add_text("only.txt", "no picture");
	finds("__x__.json/1@7168+1=-1 ");
}
END_TEST

START_TEST(first_picture_counts)
{
	begin();
	add_text("1.seg.png", "of another name");
	add_text("1.jpeg", "p");
	add_text("1.png", "q");
	finds("1@1536+1=-1 ");
}
END_TEST

START_TEST(a_sound_counts_where_there_is_no_picture)
{
	begin();
	add_text("1.flac", "a sound beside");
	add_text("1.jpg", "p");
	add_text("2.txt", "words");
	add_text("2.wav", "w");
	add_text("2.ogg", "not the first");
	add_text("2.cls", "7");
	add_text("3.mid", "none that we read");
	add_text("4.OPUS", "o");
	add_text("5.mp3", "m");
	finds("1@1536+1=-1 2@3584+1=7 4@7680+1=-1 5@8704+1=-1 ");
}
END_TEST

START_TEST(a_video_counts_where_there_is_neither)
{
	begin();
	add_text("1.mp4", "v");
	add_text("1.txt", "words");
	add_text("2.mkv", "a video beside");
	add_text("2.jpg", "p");
	add_text("3.webm", "a video beside");
	add_text("3.wav", "w");
	add_text("3.MP4", "none either");
	add_text("4.ts", "a program");
	add_text("5.MKV", "v");
	add_text("5.avi", "not the first");
	add_text("5.cls", "4");
	finds("1@512+1=-1 2@3584+1=-1 3@5632+1=-1 5@8704+1=4 ");
}
END_TEST

/* 4 GiB and more, which a shard here has no room for. */
START_TEST(a_huge_sound_is_none_beside_a_picture)
{
	static struct scan_group group;
	const struct tar_file first = {.path = "3.wav", .at = 512, .bytes = UINT64_C(5) << 30};
	const struct tar_file videos[] = {
	    {.path = "4.mp4", .header = 512, .at = 1024, .bytes = UINT64_C(5) << 30},
	    {.path = "4.ogg", .header = 8192, .at = 8704, .bytes = 7},
	};
	const struct tar_file files[] = {
	    {.path = "1.wav", .header = 512, .at = 1024, .bytes = UINT64_C(5) << 30},
	    {.path = "1.webp", .header = 8192, .at = 8704, .bytes = 7},
	    {.path = "2.wav", .header = 9216, .at = 9728, .bytes = UINT64_C(5) << 30},
	};

	sink = (struct scan_sink){.record = on_record};
	found[0] = '\0';
	for (unsigned i = 0; i < BASE_ARRAY_LEN(files); i++)
		ck_assert_int_eq(scan_group_add(&group, &files[i], &sink), 0);
	ck_assert_str_eq(found, "1@8704+7=-1 ");
	ck_assert_int_eq(scan_group_end(&group, &sink), SCAN_E_BAD);
	ck_assert_uint_eq(sink.bad_at, 9216);
	ck_assert_str_eq(found, "1@8704+7=-1 ");
	ck_assert_int_eq(scan_group_add(&group, &first, &sink), 0);
	ck_assert_int_eq(scan_group_end(&group, &sink), SCAN_E_BAD);
	ck_assert_uint_eq(sink.bad_at, 0);
	found[0] = '\0';
	for (unsigned i = 0; i < BASE_ARRAY_LEN(videos); i++)
		ck_assert_int_eq(scan_group_add(&group, &videos[i], &sink), 0);
	ck_assert_int_eq(scan_group_end(&group, &sink), 0);
	ck_assert_str_eq(found, "4@8704+7=-1 ");
}
END_TEST

START_TEST(samples_that_are_wrong_are_told)
{
	static const struct {
		const char *path, *text, *part;
		uint64_t at;
	} cases[] = {
	    {"1.JPG", "x", "sample \"1\" has two files \".jpg\"", 1024},
	    {"1.cls", "", "\"1\" has a .cls that is no number", 1024},
	    {"1.cls", "cat", "\"1\" has a .cls that is no number", 1536},
	    {"1.cls", "3 4", "no number", 1536},
	    {"1.cls", "-1", "no number", 1536},
	    {"1.cls", "16777216", "no number", 1536},
	    {"1.cls", "99999999999999999999999", "no number", 1536},
	    {"1.cls", "1234567890123456789012345", "no number", 1024},
	    {"a/../2.jpg", "x", "leads upwards", 1024},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		begin();
		add_text("1.jpg", "x");
		add_text(cases[i].path, cases[i].text);
		refuses(used, cases[i].at, cases[i].part);
	}
}
END_TEST

START_TEST(largest_label)
{
	begin();
	add_text("1.jpg", "x");
	add_text("1.cls", "16777215");
	finds("1@512+1=16777215 ");
}
END_TEST

/* ---- headers ---- */

START_TEST(long_paths)
{
	char path[300], records[400];
	uint8_t *header;

	memset(path, 'p', sizeof(path));
	memcpy(path + 290, "/k.jpg", 7);
	begin();
	add("././@LongLink", 'L', path, 297);
	add("ppp", '0', "x", 1); /* cut */
	header = add("k.jpg", '0', "y", 1);
	memcpy(header + 345, "some/folder", 11); /* ustar's prefix */
	sum_up(header);
	path[292] = '\0';
	snprintf(records, sizeof(records), "%s@1536+1=-1 some/folder/k@2560+1=-1 ", path);
	finds(records);
}
END_TEST

START_TEST(gnu_magic_has_no_prefix)
{
	uint8_t *header;

	begin();
	header = add("k.jpg", '0', "y", 1);
	memcpy(header + 257, "ustar  ", 8);
	memcpy(header + 345, "00000000000", 11);
	sum_up(header);
	finds("k@512+1=-1 ");
}
END_TEST

START_TEST(pax_says_path_and_size)
{
	uint8_t *header;

	begin();
	add("pax", 'x', "19 path=real/k.jpg\n9 size=3\n12 other=xy\n", 40);
	header = add("k.jpg", '0', "abc", 3);
	snprintf((char *)header + 124, 12, "%011o", 0); /* as writers do for 8 GiB and more */
	sum_up(header);
	add_text("next.jpg", "z");
	add("global", 'g', "14 comment=xyz\n", 15);
	add_text("last.jpg", "z");
	finds("real/k@1536+3=-1 next@2560+1=-1 last@4608+1=-1 ");
}
END_TEST

START_TEST(base_256_sizes)
{
	uint8_t *header;

	begin();
	header = add("k.jpg", '0', "abc", 3);
	memset(header + 124, 0, 12);
	header[124] = 0x80;
	header[135] = 3;
	sum_up(header);
	finds("k@512+3=-1 ");
	memset(header + 125, 0xff, 11);
	sum_up(header);
	refuses(used, 0, "damaged");
	header[125] = header[126] = header[127] = 0; /* 2^64 - 1 */
	sum_up(header);
	refuses(used, 0, "damaged");
	memset(header + 128, 0, 8);
	header[129] = 0x7f;
	sum_up(header);
	refuses(used, 0, "beyond its end");
}
END_TEST

START_TEST(damage_has_its_place)
{
	begin();
	refuses(0, 0, "empty");
	add_text("1.jpg", "x");
	add_text("2.jpg", "x");
	refuses(1024 + 200, 1024, "within a header");
	refuses(1024 + 512, 1024, "beyond its end: it is cut");
	tar[1024 + 3] ^= 1;
	refuses(used, 1024, "damaged");
	tar[1024 + 3] ^= 1;
	memset(tar + 1024 + 124, '9', 11);
	sum_up(tar + 1024);
	refuses(used, 1024, "damaged");
}
END_TEST

START_TEST(headers_of_headers_are_hostile)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
	    {"x", "damaged"},
	    {"8 path=a\n", "damaged"},
	    {"99999999 path=a\n", "damaged"},
	    {"0 a=b\n", "damaged"},
	    {"9 pathab\n", "damaged"},
	    {"10 size=x\n", "no size"},
	    {"32 size=99999999999999999999999\n", "no size"},
	    {"22 GNU.sparse.major=1\n", "sparse"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		begin();
		add("pax", 'x', cases[i].text, strlen(cases[i].text));
		add_text("1.jpg", "x");
		ck_assert_int_eq(scan_of(used), SCAN_E_BAD);
		ck_assert_msg(strstr(sink.why, cases[i].part) != NULL, "%zu: \"%s\"", i, sink.why);
	}
	begin();
	add("1.jpg", 'S', "x", 1);
	refuses(used, 0, "sparse");
}
END_TEST

/* A path of any length: as far as it may go, and no further. */
START_TEST(longest_path)
{
	static char path[8192];

	memset(path, 'p', sizeof(path) - 1);
	memcpy(path + 4095 - 4, ".jpg", 5);
	begin();
	add("L", 'L', path, 4096);
	add_text("cut.jpg", "x");
	ck_assert_int_eq(scan_of(used), 0);
	ck_assert_str_eq(strchr(found, '@'), "@5120+1=-1 ");
	memset(path, 'p', sizeof(path) - 1);
	begin();
	add("L", 'L', path, 4097);
	add_text("cut.jpg", "x");
	refuses(used, 0, "longer than 4095");
}
END_TEST

START_TEST(too_many_fields)
{
	char path[64];

	begin();
	for (unsigned i = 0; i < 240 && used + 2048 < ROOM; i++) {
		snprintf(path, sizeof(path), "1.a_field_of_a_long_name_that_fills_room_%03u", i);
		add(path, '0', "", 0);
	}
	ck_assert_int_eq(scan_of(used), SCAN_E_BAD);
	ck_assert_msg(strstr(sink.why, "too many") != NULL, "%s", sink.why);
}
END_TEST

START_TEST(a_shard_is_told_by_its_first_block)
{
	begin();
	add_text("1.jpg", "x");
	ck_assert(tar_is_archive(tar, used));
	ck_assert(!tar_is_archive(tar, 511));
	tar[0] ^= 1;
	ck_assert(!tar_is_archive(tar, used));
	begin();
	ck_assert(!tar_is_archive(tar, 1024)); /* an archive of nothing is told by its name */
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, neighbours_with_one_key_are_a_sample);
	tcase_add_test(tcase, all_of_its_files_are_a_sample);
	tcase_add_test(tcase, key_ends_at_the_first_dot_of_the_base_name);
	tcase_add_test(tcase, what_has_no_key_is_passed_over);
	tcase_add_test(tcase, first_picture_counts);
	tcase_add_test(tcase, a_sound_counts_where_there_is_no_picture);
	tcase_add_test(tcase, a_video_counts_where_there_is_neither);
	tcase_add_test(tcase, a_huge_sound_is_none_beside_a_picture);
	tcase_add_test(tcase, samples_that_are_wrong_are_told);
	tcase_add_test(tcase, largest_label);
	tcase_add_test(tcase, long_paths);
	tcase_add_test(tcase, gnu_magic_has_no_prefix);
	tcase_add_test(tcase, pax_says_path_and_size);
	tcase_add_test(tcase, base_256_sizes);
	tcase_add_test(tcase, damage_has_its_place);
	tcase_add_test(tcase, headers_of_headers_are_hostile);
	tcase_add_test(tcase, longest_path);
	tcase_add_test(tcase, too_many_fields);
	tcase_add_test(tcase, a_shard_is_told_by_its_first_block);
}

int main(void)
{
	return suite_run("scan_tar", add_tests);
}
