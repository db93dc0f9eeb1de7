/* SPDX-License-Identifier: Apache-2.0 */

/* ArrayRecord: pictures, tf.Examples, compressed ones, heads of blocks within them, and files that lie. */

#include "storage/source/scan/highway.h"
#include "storage/source/scan/scan_shard.h"
#include "tests/suite.h"
#include "tests/storage/scan_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 };
static struct scan_run run;

/*
 * What array_record 0.8.6 writes: behind the 64 bytes with which each file begins, and from its second block on; all else are zeros. A
 * JPEG's begin and a PNG's with ArrayRecordWriter(name, "group_size:1,uncompressed"); the same as image/encoded of two tf.Examples with
 * image/class/label 3 and 1; and the pictures with ArrayRecordWriter(name, "").
 */
static const uint8_t pictures[] =
    "\x07"
    "Bku\x9d\x95\x1d+\x14\0\0\0\0\0\0\0\x1cX\xe1\x96\xc5G\x0esr\x01\0\0\0\0\0\0\x11"
    "\0\0\0\0\0\0\0\0\x01\x11\xff\xd8\xff\xe0"
    "first picture\xb9\xf9"
    "A[#D\x86@\x11\0\0\0"
    "\0\0\0\0\xd2\xfa\xcbxe\xf4\xc3\x16r\x01\0\0\0\0\0\0\x0e\0\0\0\0\0\0\0\0\x01\x0e\x89P"
    "NG\x0d\x0a\x1a\x0asecond\xf0\xc8\x02\xdb\x97#\xf7\xe0r\0\0\0\0\0\0\0\xf9\x9e\xd2\xa9"
    "\xe4\xc2\x13"
    "cr\x03\0\0\0\0\0\0m\0\0\0\0\0\0\0\0\x03"
    "a\x06\x06\x0a_\x08\x01\x10\x02"
    "\x18\x02\x22Wgroup_size:1,transpose:false,pad_to_block_boundary:false,uncompressed,m"
    "ax_parallelism:1\x08@\x10\x11\x18\x01\x08|\x10\x0e\x18\x01\xcdx\xd1"
    "dMz\x16\x0c\x89"
    "\xfe\0\0\0\0\0\0\x19\x9b-\xcf\xe3\xa6(\x83p";
static const uint8_t pictures_end[] =
    "\xbc\x81. \x8a\xd9Z\xea\0\0\0\0\0\0\0\0l\0\0\0\0\0\0\0#\x13"
    "a\x0a\xee#\xc4O,\0\0\0\0"
    "\0\0\0m \xdc+\x85\xe5^(r\x03\0\0\0\0\0\0'\0\0\0\0\0\0\0\0\x03\x0d\x0d\x0d\x08\xb5\x01"
    "\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x08\xb5\x01\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9"
    "q\x08\xb5\x01\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x1c~S.\x96"
    "F\xa1\x96l\xff\0\0\0\0"
    "\0\0"
    "01\x0dJ7\x80\x06\xe6p";

static const uint8_t examples[] =
    "\xa4\xff\xd8\x18q\x7f"
    "aQI\0\0\0\0\0\0\0\xecuU\x95\x9b\xa7{\xd8r\x01\0\0\0\0\0\0F\0\0"
    "\0\0\0\0\0\0\x01"
    "F\x0a"
    "D\x0a\x1a\x0a\x11image/class/label\x12\x05\x1a\x03\x0a\x01\x03"
    "\x0a&\x0a\x0dimage/encoded\x12\x15\x0a\x13\x0a\x11\xff\xd8\xff\xe0"
    "first picture\xe8"
    "\xe8\xba\xae\xee\xf2\xceoF\0\0\0\0\0\0\0+\xd6\0\xca\xbb\x89\xeb*r\x01\0\0\0\0\0\0C\0"
    "\0\0\0\0\0\0\0\x01"
    "C\x0a"
    "A\x0a\x1a\x0a\x11image/class/label\x12\x05\x1a\x03\x0a\x01"
    "\x01\x0a#\x0a\x0dimage/encoded\x12\x12\x0a\x10\x0a\x0e\x89PNG\x0d\x0a\x1a\x0asecondd"
    "\x5c\xc7%s\xea\x1ais\0\0\0\0\0\0\0\xd3\xc4\xd3\xc6\x03\xe3\x8b\xa4r\x03\0\0\0\0\0\0n"
    "\0\0\0\0\0\0\0\0\x03"
    "a\x06\x07\x0a_\x08\x01\x10\x02\x18\x02\x22Wgroup_size:1,transp"
    "ose:false,pad_to_block_boundary:false,uncompressed,max_parallelism:1\x08@\x10"
    "F\x18"
    "\x01\x08\xb1\x01\x10"
    "C\x18\x01{y>z`W\xb1\xc3\x1e\xfe\0\0\0\0\0\0F\xe9'K\x85N=\xcdp";
static const uint8_t examples_end[] =
    "\xbc\x81. \x8a\xd9Z\xea\0\0\0\0\0\0\0\0l\0\0\0\0\0\0\0B\xb1\xad\xff\xd0\xfdZ\x9d,\0\0"
    "\0\0\0\0\0\x97\x8a\x16\xc2\xaa"
    "D\xe5"
    "Dr\x03\0\0\0\0\0\0'\0\0\0\0\0\0\0\0\x03\x0d\x0d"
    "\x0d\x08\x9f\x02\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x08\x9f\x02\x10\xde\xc0\xeb\xfe"
    "\x84\xce\xc3\xc9q\x08\x9f\x02\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x1c~S.\x96"
    "F\xa1"
    "\x96l\xff\0\0\0\0\0\0"
    "01\x0dJ7\x80\x06\xe6p";

static const uint8_t compressed[] =
    "0MIc\xbdy\x5cZ(\0\0\0\0\0\0\0\x84\x97\xd0!\xda\xe1q_r\x01\0\0\0\0\0\0\x11\0\0\0\0\0\0"
    "\0z\x0b\x01(\xb5/\xfd \x01\x09\0\0\x11\x11(\xb5/\xfd \x11\x89\0\0\xff\xd8\xff\xe0"
    "f"
    "irst picture\xbd"
    "B\x98kr\xcd"
    "c\xad%\0\0\0\0\0\0\0\xce\x95\xe3\x8f%\xdbj3r\x01\0\0\0"
    "\0\0\0\x0e\0\0\0\0\0\0\0z\x0b\x01(\xb5/\xfd \x01\x09\0\0\x0e\x0e(\xb5/\xfd \x0eq\0\0"
    "\x89PNG\x0d\x0a\x1a\x0asecond'\xc5"
    "5A\xf6-\xbb\x0f\x86\0\0\0\0\0\0\0@\xb9\xe5\xd5j1"
    "\xc6\xd8r\x03\0\0\0\0\0\0v\0\0\0\0\0\0\0z\x0d\x03(\xb5/\xfd \x03\x19\0\0i\x06\x07v(\xb5"
    "/\xfd vm\x03\0\xf2\x06\x19\x1d\x80"
    "9\x0f"
    "3\x03\xc5\xbd\xb6\xcc\x92\xa4\x9f\x96 \xc5"
    "\xa4"
    "D6F\xa8\x80Sd3A`t\xb6KG\x05\xd2i\xa0\xa3\x04\xe9\x80\x10U\xfeu\xeb"
    "f\xc9q\x17"
    "\xac,BA\x9d\xf7"
    "2\xce\xe0"
    "c\x96"
    "A\xd9\xfc\x86!\x99\xc1\xc5\x93U \xbc\x93\xf5\xb9\x8c"
    "\xe3j\xdf\x9c\xd0\xf6\x1e\x1f\xb2\x9c\x0b\xd1\xd6\xbc\xdf\xb8\xb8t;8\xd4\x91\x0er\x80"
    "\x01\0\xfc\xd9\x84\x02\x11"
    "6\xa7\xf4\xa1\x91&\xb2M\xfe\0\0\0\0\0\0"
    "6\xff\x04\xfe\xf9"
    "\xcd\x08"
    "dp";
static const uint8_t compressed_end[] =
    "\xbc\x81. \x8a\xd9Z\xea\0\0\0\0\0\0\0\0l\0\0\0\0\0\0\0.\x83\xf9\x19\x17\xef(\xa2,\0\0"
    "\0\0\0\0\0\xc4\x90;\xf9\x84\xb6\x80gr\x03\0\0\0\0\0\0'\0\0\0\0\0\0\0\0\x03\x0d\x0d\x0d"
    "\x08\xdd\x01\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x08\xdd\x01\x10\xde\xc0\xeb\xfe\x84"
    "\xce\xc3\xc9q\x08\xdd\x01\x10\xde\xc0\xeb\xfe\x84\xce\xc3\xc9q\x1c~S.\x96"
    "F\xa1\x96"
    "l\xff\0\0\0\0\0\0"
    "01\x0dJ7\x80\x06\xe6p";

static uint8_t golden[2 * BLOCK];

static void make_golden(const uint8_t *begin, size_t size, const uint8_t *end, size_t end_size)
{
	static const uint8_t head[] =
	    "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0@\0\0\0\0\0\0\0"
	    "\x91\xba\xc2\x3c\x92\x87\xe1\xa9\0\0\0\0\0\0\0\0\xe1\x9f\x13\xc0\xe9\xb1\xc3\x72s";

	memset(golden, 0, sizeof(golden));
	memcpy(golden, head, sizeof(head));
	memcpy(golden + 64, begin, size - 1);
	memcpy(golden + BLOCK, end, end_size - 1);
}
#define GOLDEN(name) make_golden(name, sizeof(name), name##_end, sizeof(name##_end))

static int scan(const uint8_t *bytes, size_t size, const char *options)
{
	return scan_run(&scan_arrayrecord, bytes, size, options, &run);
}

static int scan_golden(const char *options)
{
	return scan(golden, sizeof(golden), options);
}

static void assert_record(const uint8_t *file, unsigned i, const void *bytes, size_t size)
{
	ck_assert_uint_eq(run.record[i].bytes, size);
	ck_assert_mem_eq(file + run.record[i].at, bytes, size);
}

START_TEST(files_of_array_record)
{
	GOLDEN(pictures);
	ck_assert(scan_arrayrecord.is_shard(golden, 64));
	ck_assert(!scan_arrayrecord.is_shard(golden, 63));
	ck_assert_int_eq(scan_golden(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	assert_record(golden, 0,
		      "\xff\xd8\xff\xe0"
		      "first picture",
		      17);
	assert_record(golden, 1, "\x89PNG\r\n\x1a\nsecond", 14);
	ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);

	GOLDEN(examples);
	ck_assert_int_eq(scan_golden(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	assert_record(golden, 0,
		      "\xff\xd8\xff\xe0"
		      "first picture",
		      17);
	assert_record(golden, 1, "\x89PNG\r\n\x1a\nsecond", 14);
	ck_assert_uint_eq(run.record[0].label, 3);
	ck_assert_uint_eq(run.record[1].label, 1);
	ck_assert_int_eq(scan_golden("members=all"), SCAN_E_END);
	ck_assert_uint_eq(run.record[0].bytes, 70);
	ck_assert_uint_eq(run.record[1].bytes, 67);
	ck_assert_uint_eq(golden[run.record[1].at], 0x0a);
	ck_assert_int_eq(scan_golden("label=kind"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "no feature of whole numbers is the label"));
	ck_assert_int_eq(scan_golden("members=some"), SCAN_E_BAD);

	GOLDEN(compressed);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(scan_golden(i ? "members=all" : ""), SCAN_E_END);
		ck_assert_uint_eq(run.n, 2);
		assert_record(golden, 0,
			      "\x28\xb5\x2f\xfd \x11\x89\0\0\xff\xd8\xff\xe0"
			      "first picture",
			      26);
		ck_assert_uint_eq(run.record[1].bytes, 23);
		ck_assert_uint_eq(run.record[1].label, SCAN_NO_LABEL);
	}
	ck_assert_int_eq(scan_golden("label=kind"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "from_array_record()"));
}
END_TEST

/* The hash that heads of blocks have of themselves, and of more and fewer bytes; in pieces, too. */
START_TEST(hashes)
{
	uint8_t bytes[100];
	struct highway hash;

	GOLDEN(pictures);
	ck_assert_uint_eq(highway(golden + 8, 16), UINT64_C(0x3f4a880dd170af83));
	ck_assert_uint_eq(highway(NULL, 0),
			  UINT64_C(0x72c3b1e9c0139fe1)); /* of a chunk of no data */
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(7 * i + 1);
	for (size_t size = 0; size <= sizeof(bytes); size++)
		for (size_t first = 0; first <= size; first++) {
			highway_begin(&hash);
			highway_add(&hash, bytes, first);
			highway_add(&hash, bytes + first, size - first);
			ck_assert_uint_eq(highway_end(&hash), highway(bytes, size));
		}
}
END_TEST

/* ---- files of ours ---- */

static struct shard_bytes stream, file;

static void setup(void)
{
	shard_bytes_init(&stream, 4 << 20);
	shard_bytes_init(&file, 5 << 20);
	shard_put_chunk(&stream, 's', 0, 0, NULL, 0);
}

static void teardown(void)
{
	shard_bytes_fini(&stream);
	shard_bytes_fini(&file);
}

static int scan_file(const char *options)
{
	file.size = 0;
	shard_put_array_file(&file, &stream);
	return scan(file.data, file.size, options);
}

/* Of a record the size and, from its number, what is in it. */
static void fill(uint8_t *bytes, size_t size, unsigned number)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(1 + (i * 31 + number * 7 + (i >> 9)) % 255);
	memcpy(bytes, "\xff\xd8\xff\xe0", 4);
}

/* Wherever blocks cut them: their lengths are such that each byte of a head is cut somewhere. */
START_TEST(records_over_blocks)
{
	enum { N = 200, MOST = 300000 };
	uint8_t *bytes = malloc(MOST), *joined = malloc(MOST + 1024);
	static size_t size[N];

	for (unsigned i = 0; i < N; i++) {
		size[i] = i == 100 ? MOST : 12 + (i * 9973) % 23000;
		fill(bytes, size[i], i);
		shard_put_array_record(&stream, bytes, size[i]);
		if (i % 20 == 0)
			shard_put_chunk(&stream, 'p', 0, 0, bytes, i);
		if (i % 50 == 0)
			shard_put_chunk(&stream, 'm', 0, 9, bytes, 30);
	}
	ck_assert_int_eq(scan_file(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, N);
	for (unsigned i = 0; i < N; i++) {
		const struct scan_record *record = &run.record[i];

		ck_assert_uint_le(record->bytes, MOST + 1024);
		memcpy(joined, file.data + record->at, record->bytes);
		scan_arrayrecord.join(joined, record->bytes, record->at);
		fill(bytes, size[i], i);
		ck_assert_uint_ge(record->bytes, size[i]);
		ck_assert_mem_eq(joined, bytes, size[i]);
		for (size_t at = size[i]; at < record->bytes; at++)
			ck_assert_uint_eq(joined[at], 0);
	}
	free(joined);
	free(bytes);
}
END_TEST

/* A picture of some windows, with the label behind it, and small ones around it. */
START_TEST(long_examples)
{
	enum { MOST = 1300000 };
	uint8_t *picture = malloc(MOST), *joined = malloc(MOST + 1024);
	struct shard_bytes features, example;

	shard_bytes_init(&features, MOST + 1024);
	shard_bytes_init(&example, MOST + 1024);
	for (unsigned i = 0; i < 5; i++) {
		const size_t size = i == 2 ? MOST : 5000;
		const int64_t label = i;

		features.size = example.size = 0;
		fill(picture, size, i);
		shard_put_bytes(&features, "image/encoded", picture, size);
		shard_put_ints(&features, "image/class/label", &label, 1, 1);
		shard_put_example(&example, &features);
		shard_put_array_record(&stream, example.data, example.size);
	}
	ck_assert_int_eq(scan_file(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 5);
	for (unsigned i = 0; i < 5; i++) {
		const size_t size = i == 2 ? MOST : 5000;

		fill(picture, size, i);
		ck_assert_uint_eq(run.record[i].label, i);
		memcpy(joined, file.data + run.record[i].at, run.record[i].bytes);
		scan_arrayrecord.join(joined, run.record[i].bytes, run.record[i].at);
		ck_assert_mem_eq(joined, picture, size);
	}
	shard_bytes_fini(&example);
	shard_bytes_fini(&features);
	free(joined);
	free(picture);
}
END_TEST

#define JPEG               \
	"\xff\xd8\xff\xe0" \
	"12345678"
#define FRAME              \
	"\x28\xb5\x2f\xfd" \
	"any"
static const struct one_chunk {
	char type;
	unsigned records, written;
	const char *data;
	size_t size;
	const char *why; /* NULL: nothing */
} chunks[] = {
    {'r', 1, 12, "\0\1\x0c" JPEG, 15, NULL},
    {'r', 1, 9, "z\1?\x09" FRAME, 11, NULL},
    {'r', 0, 0, "\0\0", 2, NULL},
    {'m', 0, 7, "anything", 8, NULL},
    {'r', 2, 24, "\0\2\x0c\x0c" JPEG JPEG, 28, "record 0: 2 records are in one chunk"},
    {'r', 2, 24, "\0\2\x0c\x0c" JPEG JPEG, 28, "with group_size:1"},
    {'t', 1, 12, "\0\1\x0c" JPEG, 15, "with transpose:false"},
    {'r', 1, 12, "b\1\x0c" JPEG, 15, "its compression is not read"},
    {'r', 1, 12, "s\1\x0c" JPEG, 15, "its compression is not read"},
    {'r', 1, 0, "\0\1\0", 3, "it is empty"},
    {'r', 1, 9, "\0\1\x09some text", 12, "it is neither a picture nor a tf.Example"},
    {'r', 1, 3, "\0\1\3\x0a\5\5", 6, "record 0: "},
    {'r', 1, 12, "", 0, "its chunk is damaged"},
    {'r', 1, 12, "\0", 1, "its chunk is damaged"},
    {'r', 1, 12, "\0\xff", 2, "its chunk is damaged"},
    {'r', 1, 12, "\0\xff\x7f" JPEG, 15, "its chunk is damaged"},
    {'r', 1, 12, "\0\x0d\x0c" JPEG, 15, "its chunk is damaged"},
    {'r', 1, 12, "\0\1\x0b" JPEG, 15, "its chunk is damaged"},
    {'r', 1, 13, "\0\1\x0d" JPEG, 15, "its chunk is damaged"},
    {'r', 1, 12, "\0\2\x0c\x0c" JPEG, 16, "its chunk is damaged"},
    {'r', 1, 9, "z\1?\x08" FRAME, 11, "its chunk is damaged"},
    {'r', 1, 9, "z\1?\x09\x28\xb5\x2f\xfe", 8, "its chunk is damaged"},
    {'r', 1, 9, "z\1?\x09\x28\xb5\x2f", 7, "its chunk is damaged"},
    {'r', 1, 9, "z\1?", 3, "its chunk is damaged"},
};

START_TEST(one_chunk)
{
	const struct one_chunk *chunk = &chunks[_i];

	shard_put_chunk(&stream, chunk->type, chunk->records, chunk->written, chunk->data,
			chunk->size);
	if (!chunk->why) {
		ck_assert_int_eq(scan_file(""), SCAN_E_END);
		ck_assert_uint_eq(run.n, chunk->type == 'r' ? chunk->records : 0);
		return;
	}
	ck_assert_int_eq(scan_file(""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, chunk->why), "%s", run.why);
}
END_TEST

/* A changed bit is noticed wherever it is, but in heads of blocks, padding and the index, which are not read. */
START_TEST(damaged)
{
	size_t begin, end;

	shard_put_array_record(&stream, JPEG, 12);
	shard_put_array_record(&stream, JPEG "and more", 20);
	end = 24 + stream.size;
	ck_assert_int_eq(scan_file(""), SCAN_E_END);
	for (size_t at = 0; at < end; at++) {
		file.data[at] ^= 4;
		ck_assert_int_eq(scan(file.data, file.size, ""), at < 24 ? SCAN_E_END : SCAN_E_BAD);
		file.data[at] ^= 4;
	}
	begin = file.size - BLOCK + 24;
	for (size_t at = begin; at < begin + 40 + 44; at++) {
		file.data[at] ^= 4;
		ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, "cut off"), "%s", run.why);
		file.data[at] ^= 4;
	}
	file.data[end - 1] ^= 4;
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, "record 1: its checksum is wrong"), "%s", run.why);
}
END_TEST

START_TEST(cut_off)
{
	static const size_t sizes[] = {0, 1, BLOCK - 1, BLOCK, 2 * BLOCK - 1};

	shard_put_array_record(&stream, JPEG, 12);
	ck_assert_int_eq(scan_file(""), SCAN_E_END);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		ck_assert_int_eq(scan(file.data, sizes[i], ""), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, "cut off"), "%s", run.why);
	}
	shard_put_fill(&file, 0, BLOCK);
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, "cut off"), "%s", run.why);
}
END_TEST

/* The index begins within a chunk, or where a head has no room. */
START_TEST(chunks_that_do_not_end_there)
{
	shard_put_array_record(&stream, JPEG, 12);
	for (unsigned cut = 1; cut < 55; cut++) {
		stream.size--;
		ck_assert_int_eq(scan_file(""), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, cut < 16 ? "ends behind all records"
						       : "where the index begins"),
			      "%s", run.why);
	}
	stream.size--;
	ck_assert_int_eq(scan_file(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 0);
}
END_TEST

static void add(TCase *all)
{
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, files_of_array_record);
	tcase_add_test(all, hashes);
	tcase_add_test(all, records_over_blocks);
	tcase_add_test(all, long_examples);
	tcase_add_loop_test(all, one_chunk, 0, sizeof(chunks) / sizeof(*chunks));
	tcase_add_test(all, damaged);
	tcase_add_test(all, cut_off);
	tcase_add_test(all, chunks_that_do_not_end_there);
}

int main(void)
{
	return suite_run("arrayrecord", add);
}
