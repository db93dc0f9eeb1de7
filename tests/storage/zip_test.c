/* SPDX-License-Identifier: Apache-2.0 */

/* Zip archives: which files are samples, where their bytes lie, Zip64, and archives that lie. */

#include "storage/source/scan/scan_zip.h"
#include "base/base.h"
#include "base/little.h"
#include "base/zip.h"
#include "storage/reader_parts.h"
#include "storage/source/source_indexer.h"
#include "storage/source/source_shards.h"
#include "tests/suite.h"
#include "tests/storage/scan_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16, LATER = 1 << 3 };
static struct scan_run run = {.any_order = true};
static struct shard_bytes file, directory;
static unsigned files, made_by;

static void begin(void)
{
	shard_bytes_init(&file, ROOM);
	shard_bytes_init(&directory, ROOM);
	files = 0;
	made_by = 3;
}

static void end(void)
{
	shard_bytes_fini(&file);
	shard_bytes_fini(&directory);
}

static void put_16(struct shard_bytes *bytes, unsigned value)
{
	uint8_t little[2];

	little_put(little, value, 2);
	shard_put(bytes, little, sizeof(little));
}

/* What header and directory have in common, with so many bytes of extra. */
static void put_both(struct shard_bytes *to, unsigned flags, unsigned method, uint32_t packed,
		     uint32_t size, const char *name, unsigned extra)
{
	put_16(to, 20);
	put_16(to, flags);
	put_16(to, method);
	shard_put_32(to, 0); /* time */
	shard_put_32(to, 0x12345678);
	shard_put_32(to, packed);
	shard_put_32(to, size);
	put_16(to, (unsigned)strlen(name));
	put_16(to, extra);
}

/* An entry of a file whose header is there; extra: of Zip64. */
static void put_entry(unsigned flags, unsigned method, uint32_t packed, uint32_t size,
		      const char *name, uint32_t header, const void *extra, size_t extra_bytes)
{
	shard_put_32(&directory, 0x02014b50);
	put_16(&directory, made_by << 8 | 30);
	put_both(&directory, flags, method, packed, size, name, (unsigned)extra_bytes);
	shard_put_fill(&directory, 0, 10);
	shard_put_32(&directory, header);
	shard_put(&directory, name, strlen(name));
	if (extra_bytes)
		shard_put(&directory, extra, extra_bytes);
	files++;
}

static void put_header(unsigned flags, unsigned method, uint32_t packed, uint32_t size,
		       const char *name)
{
	shard_put_32(&file, 0x04034b50);
	put_both(&file, flags, method, packed, size, name, 5);
	shard_put(&file, name, strlen(name));
	shard_put_fill(&file, 7, 5);
}

static void put_file(const char *name, unsigned method, const char *data)
{
	const uint32_t header = (uint32_t)file.size, size = (uint32_t)strlen(data);

	put_header(0, method, size, size, name);
	shard_put(&file, data, size);
	put_entry(0, method, size, size, name, header, NULL, 0);
}

static void put_end(const char *comment)
{
	const uint32_t at = (uint32_t)file.size, bytes = (uint32_t)directory.size;

	shard_put(&file, directory.data, directory.size);
	shard_put_32(&file, 0x06054b50);
	shard_put_32(&file, 0);
	put_16(&file, files);
	put_16(&file, files);
	shard_put_32(&file, bytes);
	shard_put_32(&file, at);
	put_16(&file, (unsigned)strlen(comment));
	shard_put(&file, comment, strlen(comment));
}

static void put_end_64(void)
{
	const uint64_t at = file.size, bytes = directory.size;

	shard_put(&file, directory.data, directory.size);
	shard_put_32(&file, 0x06064b50);
	shard_put_64(&file, 44);
	put_16(&file, 45);
	put_16(&file, 45);
	shard_put_64(&file, 0);
	shard_put_64(&file, files);
	shard_put_64(&file, files);
	shard_put_64(&file, bytes);
	shard_put_64(&file, at);
	shard_put_32(&file, 0x07064b50);
	shard_put_32(&file, 0);
	shard_put_64(&file, at + bytes);
	shard_put_32(&file, 1);
	shard_put_32(&file, 0x06054b50);
	shard_put_32(&file, 0);
	shard_put_fill(&file, 0xff, 12);
	put_16(&file, 0);
}

static int scan(const char *options)
{
	return scan_run(&scan_zip, file.data, file.size, options, &run);
}

static void says(const char *text)
{
	ck_assert_int_eq(scan(""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, text) != NULL, "%s", run.why);
}

static bool lies_there(unsigned i, const char *data)
{
	return run.record[i].bytes == strlen(data) &&
	       memcmp(file.data + run.record[i].at, data, strlen(data)) == 0;
}

START_TEST(which_are_samples)
{
	put_file("a/", 0, "");
	put_file("a/1.jpg", 0, "first picture");
	put_file("labels.csv", 0, "1,2");
	put_file("__MACOSX/a/._1.jpg", 0, "no picture");
	put_file("a/2.WAV", 0, "a sound");
	put_file("b/3.png", 8, "deflated");
	put_file("b/4.mp4", 0, "");
	put_end("PK\5\6 is where the end is not");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 4);
	ck_assert(lies_there(0, "first picture"));
	ck_assert(lies_there(1, "a sound"));
	/* from its header on */
	ck_assert_uint_eq(little_32(file.data + run.record[2].at), 0x04034b50);
	ck_assert_uint_eq(run.record[2].bytes,
			  ZIP_HEADER + strlen("b/3.png") + 5 + strlen("deflated"));
	ck_assert_uint_eq(run.record[3].bytes, ZIP_HEADER + strlen("b/4.mp4") + 5);
	ck_assert_int_eq(scan("folder=./b"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_int_eq(scan("folder=../b"), SCAN_E_BAD);
}
END_TEST

/* All numbers of an entry that have no room there; and the end. */
START_TEST(zip64)
{
	uint8_t extra[4 + 24] = {1, 0, 24, 0};

	put_header(LATER, 0, 0, 0, "a/1.jpg");
	shard_put(&file, "a picture", 9);
	little_put_64(extra + 4, 9);
	little_put_64(extra + 12, 9);
	little_put_64(extra + 20, 0);
	put_entry(LATER, 0, UINT32_MAX, UINT32_MAX, "a/1.jpg", UINT32_MAX, extra, sizeof(extra));
	put_end_64();
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert(lies_there(0, "a picture"));
}
END_TEST

START_TEST(zip64_that_lies)
{
	static const uint8_t extra[4 + 8] = {1, 0, 8, 0, 9};

	put_header(0, 0, 9, 9, "a/1.jpg");
	shard_put(&file, "a picture", 9);
	put_entry(0, 0, UINT32_MAX, UINT32_MAX, "a/1.jpg", 0, extra, sizeof(extra));
	put_end_64();
	says("its directory is damaged");
	little_put_64(file.data + file.size - ZIP_END - 12, file.size);
	says("the end of Zip64 is not where it should be");
	little_put_64(file.data + file.size - ZIP_END - 12, 0);
	says("the end of Zip64 is not where it should be");
}
END_TEST

/* More of it than is read at a time, and names as long as they may be. */
START_TEST(a_large_directory)
{
	enum { MANY = 3000, LONG = 4000 };
	char name[LONG + 8];

	end();
	shard_bytes_init(&file, 2 * MANY * 200 + 4 * LONG);
	shard_bytes_init(&directory, MANY * 200 + 2 * LONG);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "class %u/of a name that takes some bytes %u.jpg",
			 i % 7, i);
		put_file(name, 0, "x");
	}
	memset(name, 'n', LONG);
	strcpy(name + LONG, ".jpg");
	put_file(name, 0, "last");
	put_end("");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, MANY + 1);
	ck_assert(lies_there(MANY, "last"));
}
END_TEST

/* Two entries may be one file, or the directory be in another order. */
START_TEST(over_each_other)
{
	put_file("b.jpg", 0, "second");
	put_entry(0, 0, 6, 6, "b.jpg", 0, NULL, 0);
	put_end("");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_uint_eq(run.record[0].at, run.record[1].at);
}
END_TEST

static const struct {
	unsigned flags, method;
	uint32_t packed, size, header;
	const char *name, *says;
} lies[] = {
    {1, 0, 4, 4, 0, "a.jpg", "file a.jpg is encrypted"},
    {1 << 13, 0, 4, 4, 0, "a.jpg", "file a.jpg is encrypted"},
    {0, 93, 4, 4, 0, "a.jpg", "is compressed by Zstandard"},
    {0, 9, 4, 4, 0, "a.jpg", "is compressed by Deflate64"},
    {0, 77, 4, 4, 0, "a.jpg", "in a way that is not read"},
    {0, 0, 4, 5, 0, "a.jpg", "has two sizes"},
    {0, 8, UINT32_MAX - 1, 4, 0, "a.jpg", "has 4 GiB or more"},
    {0, 0, 1 << 20, 1 << 20, 0, "a.jpg", "ends behind the archive"},
    {0, 0, 4, 4, 1 << 20, "a.jpg", "is not in the archive"},
    {0, 0, 4, 4, 1, "a.jpg", "another header"},
    {0, 8, 4, 4, 0, "a.jpg", "another header"},
    {0, 0, 4, 4, 0, "b.jpg", "another header"},
    {0, 0, 4, 4, 0, "ab.jpg", "another header"},
    {0, 0, 4, 4, 0, "../a.jpg", "leads upwards"},
    {0, 0, 4, 4, 0, "a/..", "leads upwards"},
};

START_TEST(an_entry_that_lies)
{
	put_header(0, 0, 4, 4, "a.jpg");
	shard_put(&file, "data", 4);
	put_entry(lies[_i].flags, lies[_i].method, lies[_i].packed, lies[_i].size, lies[_i].name,
		  lies[_i].header, NULL, 0);
	put_end("");
	says(lies[_i].says);
}
END_TEST

START_TEST(names)
{
	put_file("a.jpg", 0, "data");
	directory.data[ZIP_ENTRY] = 0;
	put_end("");
	says("a zero byte");
}
END_TEST

/* As unzip does: of Windows, and where there is no slash. */
START_TEST(backslashes)
{
	made_by = 0;
	put_file("a\\1.jpg", 0, "of Windows");
	put_file("b/..\\1.jpg", 0, "with a slash");
	made_by = 3;
	put_file("c\\1.jpg", 0, "of Unix");
	put_end("");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 3);
	ck_assert_int_eq(scan("folder=a"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert(lies_there(0, "of Windows"));
	ck_assert_int_eq(scan("folder=b"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_int_eq(scan("folder=c"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 0);
}
END_TEST

/* In Shift-JIS, as Windows writes it in Japan, the second byte of a letter may be that of a backslash. */
START_TEST(backslashes_in_letters)
{
	made_by = 0;
	put_file("\x95\\1.jpg", 0, "a letter");
	put_end("");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_int_eq(scan("folder=\x95"), SCAN_E_END);
	ck_assert_uint_eq(run.n, 0);
}
END_TEST

START_TEST(backslashes_upwards)
{
	made_by = 0;
	put_file("..\\1.jpg", 0, "data");
	put_end("");
	says("leads upwards");
}
END_TEST

START_TEST(a_long_name)
{
	static char name[5000];

	memset(name, 'n', sizeof(name) - 1);
	put_file(name, 0, "data");
	put_end("");
	says("more than 4095 bytes");
}
END_TEST

/* Wherever it is cut, and whatever is in front of it. */
START_TEST(cut_or_moved)
{
	size_t whole;
	uint8_t *moved;

	put_file("a.jpg", 0, "data");
	put_end("");
	whole = file.size;
	for (file.size = 0; file.size < whole; file.size++)
		says("copy it anew");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	moved = malloc(whole);
	ck_assert_ptr_nonnull(moved);
	memcpy(moved, file.data, whole);
	file.size = 0;
	shard_put_fill(&file, 'x', 100);
	shard_put(&file, moved, whole);
	free(moved);
	ck_assert_int_eq(scan(""), SCAN_E_BAD);
	says("zip -A");
}
END_TEST

START_TEST(split)
{
	put_file("a.jpg", 0, "data");
	put_end("");
	file.data[file.size - ZIP_END + 4] = 2;
	says("split archive");
	file.data[file.size - ZIP_END + 6] = 2;
	says("split archive");
	file.data[file.size - ZIP_END + 4] = file.data[file.size - ZIP_END + 6] = 0;
	file.data[file.size - ZIP_END - directory.size + 34] = 1;
	says("split archive");
}
END_TEST

START_TEST(nothing)
{
	put_end("");
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 0);
}
END_TEST

static const struct {
	const char *path;
	bool is_key;
} keys[] = {
    {"a/1.jpg", true},   {"1.jpg", true},    {"a/b/1.jpg", true}, {"/1.jpg", false},
    {"a//1.jpg", false}, {"//a.jpg", false}, {"a/.jpg/", false},
};

/* The process that lists files may be taken over: it tells what no scan does. */
START_TEST(a_key_that_lies)
{
	static const char first[] = "a/0.jpg";
	struct shards shards = {.base_fd = -1};
	const struct reader_dataset dataset = {
	    .ops = &source_zip, .source = &shards, .shown = "x.zip", .options = ""};
	struct indexer_shard shard = {.name = "x.zip", .n_records = 2};
	struct diag diag = {.text = ""};

	shard.record = calloc(2, sizeof(*shard.record));
	shard.keys_bytes = sizeof(first) + strlen(keys[_i].path) + 1;
	shard.keys = malloc(shard.keys_bytes);
	ck_assert(shard.record && shard.keys);
	memcpy(shard.keys, first, sizeof(first));
	memcpy(shard.keys + sizeof(first), keys[_i].path, strlen(keys[_i].path) + 1);
	ck_assert_int_eq(source_zip.shards->arrange(&dataset, &shard, 1, NULL, &diag),
			 keys[_i].is_key ? 0 : DATASET_E_REFUSED);
	ck_assert_msg(keys[_i].is_key || strstr(diag.text, "a folder without a name"), "%s",
		      diag.text);
	words_fini(&shard.words);
	free(shard.record);
	free(shard.keys);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, which_are_samples);
	tcase_add_test(tcase, zip64);
	tcase_add_test(tcase, zip64_that_lies);
	tcase_add_test(tcase, a_large_directory);
	tcase_add_test(tcase, over_each_other);
	tcase_add_loop_test(tcase, an_entry_that_lies, 0, BASE_ARRAY_LEN(lies));
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, backslashes);
	tcase_add_test(tcase, backslashes_in_letters);
	tcase_add_test(tcase, backslashes_upwards);
	tcase_add_test(tcase, a_long_name);
	tcase_add_test(tcase, cut_or_moved);
	tcase_add_test(tcase, split);
	tcase_add_test(tcase, nothing);
	tcase_add_loop_test(tcase, a_key_that_lies, 0, BASE_ARRAY_LEN(keys));
}

int main(void)
{
	return suite_run("zip", add);
}
