/* SPDX-License-Identifier: Apache-2.0 */

/* FFCV's files: pictures of both modes, labels, several runs of the table, damage. */

#include "storage/source/scan/scan_shard.h"
#include "base/base.h"
#include "base/little.h"
#include "tests/suite.h"
#include "tests/storage/scan_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 24, FIELD = 1041, ROOM = 8 << 20, MOST = 3000 };
enum { FLOAT, INT, PICTURE, BYTES, ARRAY, JSON, TENSOR, OTHER = 255 };

static struct scan_run run;
static struct shard_bytes file;

static void setup(void)
{
	memset(&run, 0, sizeof(run));
	run.any_order = true;
	shard_bytes_init(&file, ROOM);
}

static void teardown(void)
{
	shard_bytes_fini(&file);
}

static int scan(const char *options)
{
	return scan_run(&scan_beton, file.data, file.size, options, &run);
}

/* ---- files of FFCV's ---- */

/* As DatasetWriter of FFCV 1.0.2 writes them, of the least pages: what is no zero. Samples are of (i % 5 + 1) times (i % 3 + 1) pixels, whose bytes
 * count from i on, and of the label 3 * i. */
struct piece {
	uint32_t at, bytes;
	const char *data;
};

/* Four samples of two processes, write_mode proportion: this time all of them pixels. */
static const struct piece of_processes[] = {
    {0, 30, "\2\0\2\0\0\0 \0\4\0\0\0\0\0\0\0\0\0`\0\0\0\0\0\2image"},
    {1065, 6, "\1label"},
    {2106, 89,
     "\1\1\0\1\0\0\0 \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\0\2\0\3\0 \0\0\0\0\0\0\0\0"
     "\3\0\0\0\0\0\0\0\1\3\0\3\0\17\0 \0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\1\4\0\1\0\0\0"
     "@\0\0\0\0\0\0\0\0\11"},
    {2097153, 41,
     "\1\2\1\2\3\4\5\6\7\10\11\12\13\14\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22"
     "\23\24\25\26\27\30\31\32\33\34"},
    {4194304, 12, "\3\4\5\6\7\10\11\12\13\14\15\16"},
    {6291466, 79,
     " \0\0\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\2"
     "\0\0\0\0\0\0\0\17\0 \0\0\0\0\0\33\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0@\0\0\0\0\0"
     "\14"},
};

/* The same of one process, with a field of each kind behind them. */
static const struct piece of_fields[] = {
    {0, 30, "\2\0\7\0\0\0 \0\4\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\2image"},
    {1065, 6, "\1label"},
    {2107, 6, "weight"},
    {3147, 5, "\3text"},
    {4188, 26, "\4a_very_long_name\2\0\0\0\0\0\0\0\2"},
    {4461, 21, "\15\0\0\0\0\0\0\0[[\42\42, \42<i2\42]]"},
    {5229, 5, "\5json"},
    {6270, 18, "\6tensor\0\0\0\0\0\0\0\0\0\0\3"},
    {6543, 21, "\15\0\0\0\0\0\0\0[[\42\42, \42<f4\42]]"},
    {7311, 315,
     "\1\1\0\1\0\0\0 \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\340\77\3\0 \0\0\0"
     "\0\0\1\0\0\0\0\0\0\0\4\0 \0\0\0\0\0\14\0 \0\0\0\0\0\11\0\0\0\0\0\0\0\25\0 \0\0"
     "\0\0\0\1\2\0\2\0!\0 \0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\370\77-\0 \0"
     "\0\0\0\0\2\0\0\0\0\0\0\0/\0 \0\0\0\0\0007\0 \0\0\0\0\0\11\0\0\0\0\0\0\0@\0 \0"
     "\0\0\0\0\1\3\0\3\0L\0 \0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0\0\4@g\0 \0\0"
     "\0\0\0\3\0\0\0\0\0\0\0j\0 \0\0\0\0\0r\0 \0\0\0\0\0\11\0\0\0\0\0\0\0{\0 \0\0\0"
     "\0\0\1\4\0\1\0\207\0 \0\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0\0\0\0\0\0\0\14@\223\0 "
     "\0\0\0\0\0\4\0\0\0\0\0\0\0\227\0 \0\0\0\0\0\237\0 \0\0\0\0\0\11\0\0\0\0\0\0\0"
     "\250\0 "},
    {2097153, 179,
     "\1\2A\0\0\0\0\0\0\0\0{\42a\42: 0}\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\7\10"
     "\11\12\13\14AB\1\0\1\0\1\0\1\0{\42a\42: 1}\0\0\0\200\77\0\0\200\77\0\0\200\77"
     "\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34ABC"
     "\2\0\2\0\2\0\2\0{\42a\42: 2}\0\0\0\0@\0\0\0@\0\0\0@\3\4\5\6\7\10\11\12\13\14"
     "\15\16ABCD\3\0\3\0\3\0\3\0{\42a\42: 3}\0\0\0@@\0\0@@\0\0@@"},
    {4194314, 463,
     " \0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0 \0\0\0\0\0\1\0\0\0\0\0\0\0\0\0"
     "\0\0\0\0\0\0\4\0 \0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\14\0 \0\0\0\0\0"
     "\11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\25\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\1\0\0\0\0\0"
     "\0\0!\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0-\0 \0\0\0\0\0\2\0\0\0\0\0"
     "\0\0\1\0\0\0\0\0\0\0/\0 \0\0\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0007\0 \0\0"
     "\0\0\0\11\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0@\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\2\0\0\0"
     "\0\0\0\0L\0 \0\0\0\0\0\33\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0g\0 \0\0\0\0\0\3\0\0\0"
     "\0\0\0\0\2\0\0\0\0\0\0\0j\0 \0\0\0\0\0\10\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0r\0 \0"
     "\0\0\0\0\11\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0{\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\3\0\0"
     "\0\0\0\0\0\207\0 \0\0\0\0\0\14\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\223\0 \0\0\0\0\0"
     "\4\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\227\0 \0\0\0\0\0\10\0\0\0\0\0\0\0\3\0\0\0\0\0"
     "\0\0\237\0 \0\0\0\0\0\11\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\250\0 \0\0\0\0\0\14"},
};

/* Two of them as JPEGs; of their bytes the first four alone. */
static const struct piece of_jpegs[] = {
    {0, 30, "\2\0\2\0\0\0 \0\2\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\2image"},
    {1065, 6, "\1label"},
    {2107, 40, "\1\0\1\0\0\0 \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\2\0v\2 \0\0\0\0\0\0\0\0\3"},
    {2097152, 4, "\377\330\377\340"},
    {4194314, 32, " \0\0\0\0\0v\2\0\0\0\0\0\0\1\0\0\0\0\0\0\0v\2 \0\0\0\0\0v\2"},
};

static void put_pieces(const struct piece *piece, size_t n, size_t size)
{
	shard_put_fill(&file, 0, size);
	for (size_t i = 0; i < n; i++)
		memcpy(file.data + piece[i].at, piece[i].data, piece[i].bytes);
}

static void check_pixels(void)
{
	ck_assert_uint_eq(run.n, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct scan_record *record = &run.record[i];
		const uint8_t *pixels = file.data + record->at + SCAN_PIXELS_HEAD;

		ck_assert_uint_eq(record->label, 3 * i);
		ck_assert_uint_eq(record->width, i % 5 + 1);
		ck_assert_uint_eq(record->bytes, SCAN_PIXELS_HEAD + 3 * (i % 5 + 1) * (i % 3 + 1));
		for (unsigned k = 0; k < record->bytes - SCAN_PIXELS_HEAD; k++)
			ck_assert_uint_eq(pixels[k], i + k);
	}
}

START_TEST(files_of_ffcv)
{
	put_pieces(of_processes, BASE_ARRAY_LEN(of_processes), 6291552);
	ck_assert_int_eq(scan(""), SCAN_E_END);
	check_pixels();
	file.size = 0;
	put_pieces(of_fields, BASE_ARRAY_LEN(of_fields), 4194784);
	ck_assert_int_eq(scan(""), SCAN_E_END);
	check_pixels();
	ck_assert_int_eq(scan("label=weight"), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, "sample 0: its label"), "%s", run.why);
	file.size = 0;
	put_pieces(of_jpegs, BASE_ARRAY_LEN(of_jpegs), 4194352);
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(run.record[i].label, 3 * i);
		ck_assert_uint_eq(run.record[i].width, 0);
		ck_assert_uint_eq(run.record[i].at, 2097152 + 630 * i);
		ck_assert_uint_eq(run.record[i].bytes, 630);
	}
}
END_TEST

/* ---- files of ours ---- */

static void put_head(unsigned fields, uint64_t samples)
{
	shard_put_32(&file, 2 | fields << 16);
	shard_put_32(&file, 1 << 21);
	shard_put_64(&file, samples);
	shard_put_64(&file, 0); /* the table, not yet known */
}

static void put_field(unsigned type, const char *name)
{
	uint8_t field[FIELD] = {(uint8_t)type};

	memcpy(field + 1, name, BASE_MIN(strlen(name), (size_t)16));
	shard_put(&file, field, sizeof(field));
}

static void put_picture(unsigned mode, unsigned width, unsigned height, uint64_t at)
{
	uint8_t row[13] = {(uint8_t)mode};

	little_put(row + 1, width, 2);
	little_put(row + 3, height, 2);
	little_put(row + 5, at, 8);
	shard_put(&file, row, sizeof(row));
}

static void put_row(unsigned mode, unsigned width, unsigned height, uint64_t at, int64_t label)
{
	put_picture(mode, width, height, at);
	shard_put_fill(&file, 0, 3);
	shard_put_64(&file, (uint64_t)label);
}

static void put_entry(uint64_t sample, uint64_t at, uint64_t bytes)
{
	shard_put_64(&file, sample);
	shard_put_64(&file, at);
	shard_put_64(&file, bytes);
}

static void begin_table(void)
{
	little_put_64(file.data + 16, file.size);
}

/* Pictures and labels, so many samples, each picture of 10 bytes, its number and 'j'; the table is theirs of one process after the other,
 * that took `chunk` of them in turns. */
static void make(unsigned samples, unsigned processes, unsigned chunk)
{
	const uint64_t data_at = HEAD + 2 * FIELD + 24 * (uint64_t)samples;

	file.size = 0;
	put_head(2, samples);
	put_field(PICTURE, "image");
	put_field(INT, "label");
	for (unsigned i = 0; i < samples; i++)
		put_row(0, 1, 1, data_at + 10 * i, i);
	for (unsigned i = 0; i < samples; i++) {
		shard_put_32(&file, i);
		shard_put_fill(&file, 'j', 6);
	}
	begin_table();
	for (unsigned process = 0; process < processes; process++)
		for (unsigned i = 0; i < samples; i++)
			if (i / chunk % processes == process)
				put_entry(i, data_at + 10 * i, 10);
}

static void check_made(unsigned samples)
{
	ck_assert_uint_eq(run.n, samples);
	for (unsigned i = 0; i < samples; i++) {
		ck_assert_uint_eq(run.record[i].label, i);
		ck_assert_uint_eq(run.record[i].bytes, 10);
		ck_assert_uint_eq(run.record[i].width, 0);
		ck_assert_uint_eq(little_32(file.data + run.record[i].at), i);
	}
}

START_TEST(samples_in_their_order)
{
	static const struct {
		unsigned samples, processes, chunk;
	} sizes[] = {{1, 1, 1},    {2, 2, 1},       {MOST, 1, 1},     {MOST, 7, 100},
		     {MOST, 7, 1}, {MOST, 1024, 1}, {MOST, 16, MOST}, {MOST, 1024, 2}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
		make(sizes[i].samples, sizes[i].processes, sizes[i].chunk);
		ck_assert_int_eq(scan(""), SCAN_E_END);
		check_made(sizes[i].samples);
	}
	make(MOST, 1025, 1);
	ck_assert_int_eq(scan(""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, "num_workers"), "%s", run.why);
}
END_TEST

/* More than are in memory at once. */
START_TEST(many_rows_and_entries)
{
	const unsigned samples = 50000;

	make(samples, 3, 5000);
	ck_assert_int_eq(scan(""), SCAN_E_END);
	ck_assert_uint_eq(run.n, samples);
	ck_assert_uint_lt(run.wants, 20);
	for (unsigned i = 0; i < SCAN_RUN_MOST; i++)
		ck_assert_uint_eq(run.record[i].label, i);
}
END_TEST

START_TEST(pixels)
{
	static const struct {
		unsigned width, height;
		const char *head;
	} sizes[] = {{2, 3, "P6     2          3 255\n"},
		     {1, 65535, "P6     1      65535 255\n"},
		     {65535, 1, "P6 65535          1 255\n"}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
		const uint64_t at = HEAD + 2 * FIELD + 24;
		const size_t size = (size_t)sizes[i].width * sizes[i].height * 3;
		uint8_t *picture;

		file.size = 0;
		put_head(2, 1);
		put_field(PICTURE, "image");
		put_field(INT, "label");
		put_row(1, sizes[i].width, sizes[i].height, at, 5);
		shard_put_fill(&file, 'p', size);
		begin_table();
		put_entry(0, at, size);
		ck_assert_int_eq(scan(""), SCAN_E_END);
		ck_assert_uint_eq(run.record[0].at, at - SCAN_PIXELS_HEAD);
		ck_assert_uint_eq(run.record[0].bytes, size + SCAN_PIXELS_HEAD);
		ck_assert_uint_eq(run.record[0].width, sizes[i].width);
		picture = malloc(run.record[0].bytes);
		memcpy(picture, file.data + run.record[0].at, run.record[0].bytes);
		scan_beton.join(picture, run.record[0].bytes,
				run.record[0].at | (uint64_t)run.record[0].width
						       << SCAN_PLACE_BITS);
		ck_assert_mem_eq(picture, sizes[i].head, SCAN_PIXELS_HEAD);
		ck_assert_uint_eq(picture[SCAN_PIXELS_HEAD], 'p');
		free(picture);
	}
}
END_TEST

/* Whatever an index says, the head keeps within its bytes. */
START_TEST(heads_of_any_pixels)
{
	uint8_t bytes[SCAN_PIXELS_HEAD + 1];

	for (unsigned width = 0; width < 3; width++)
		for (size_t size = 0; size <= SCAN_PIXELS_HEAD; size++) {
			memset(bytes, 'x', sizeof(bytes));
			scan_beton.join(bytes, size, (uint64_t)width << SCAN_PLACE_BITS);
			ck_assert_uint_eq(bytes[0], width && size == SCAN_PIXELS_HEAD ? 'P' : 'x');
			ck_assert_uint_eq(bytes[size], 'x');
		}
}
END_TEST

/* ---- fields ---- */

/* bits of numbers */
#define SEVEN UINT64_C(0x401c000000000000)
#define SEVEN_AND_A_HALF UINT64_C(0x401e000000000000)
#define MINUS_ONE UINT64_C(0xbff0000000000000)
#define MINUS_A_HALF UINT64_C(0xbfe0000000000000)
#define HUGE UINT64_C(0x7e37e43c8800759c)
#define NO_NUMBER UINT64_C(0x7ff8000000000000)

static const struct one_file {
	struct {
		unsigned type;
		const char *name;
	} field[8];
	uint64_t value[8]; /* of numbers */
	const char *options;
	unsigned is;     /* the label */
	uint64_t row;    /* its bytes */
	unsigned at;     /* of which the picture is the field */
	const char *why; /* not NULL: it is refused, with these words */
} files[] = {
    {{{PICTURE, "image"}}, {0}, "", SCAN_NO_LABEL, 13, 0, NULL},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, 7}, "", 7, 24, 0, NULL},
    {{{INT, "label"}, {PICTURE, "image"}}, {7}, "", 7, 24, 1, NULL},
    {{{INT, "x"}, {PICTURE, "image"}}, {7}, "", 7, 24, 1, NULL},
    {{{INT, "x"}, {PICTURE, "image"}, {INT, "y"}}, {6, 0, 7}, "", 7, 32, 1, NULL},
    {{{INT, "x"}, {PICTURE, "image"}, {INT, "z"}}, {6, 0, 7}, "", SCAN_NO_LABEL, 32, 1, NULL},
    {{{INT, "x"}, {PICTURE, "image"}, {INT, "z"}}, {6, 0, 7}, "label=x", 6, 32, 1, NULL},
    {{{INT, "x"}, {PICTURE, "image"}, {INT, "z"}}, {6, 0, 7}, "label=q", 0, 0, 1, "option label"},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, 7}, "label=none", SCAN_NO_LABEL, 24, 0, NULL},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, 16777215}, "", 16777215, 24, 0, NULL},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, 16777216}, "", 0, 24, 0, "sample 0: its label"},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, -UINT64_C(1)}, "", SCAN_NO_LABEL, 24, 0, NULL},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, -UINT64_C(2)}, "", 0, 24, 0, "its label"},
    {{{PICTURE, "image"}, {INT, "label"}}, {0, UINT64_C(1) << 63}, "", 0, 24, 0, "its label"},
    {{{PICTURE, "image"}, {FLOAT, "label"}}, {0, 7}, "", SCAN_NO_LABEL, 24, 0, NULL},
    {{{PICTURE, "image"}, {FLOAT, "label"}}, {0, SEVEN}, "label=label", 7, 24, 0, NULL},
    {{{PICTURE, "image"}, {FLOAT, "x"}}, {0, MINUS_ONE}, "label=x", SCAN_NO_LABEL, 24, 0, NULL},
    {{{PICTURE, "image"}, {FLOAT, "x"}}, {0, SEVEN_AND_A_HALF}, "label=x", 0, 24, 0, "its label"},
    {{{PICTURE, "image"}, {FLOAT, "x"}}, {0, MINUS_A_HALF}, "label=x", 0, 24, 0, "its label"},
    {{{PICTURE, "image"}, {FLOAT, "x"}}, {0, HUGE}, "label=x", 0, 24, 0, "its label"},
    {{{PICTURE, "image"}, {FLOAT, "x"}}, {0, NO_NUMBER}, "label=x", 0, 24, 0, "its label"},
    {{{BYTES, "a"}, {PICTURE, "image"}, {JSON, "b"}, {ARRAY, "c"}, {TENSOR, "d"}, {INT, "label"}},
     {[5] = 9},
     "",
     9,
     72,
     1,
     NULL},
    {{{PICTURE, "a"}, {PICTURE, "b"}, {INT, "label"}}, {[2] = 9}, "image=b", 9, 40, 1, NULL},
    {{{PICTURE, "a"}, {PICTURE, "b"}}, {0}, "", 0, 26, 0, "the option image names one"},
    {{{PICTURE, "a"}, {PICTURE, "b"}}, {0}, "image=c", 0, 26, 0, "of the name"},
    {{{INT, "a"}, {BYTES, "b"}}, {0}, "", 0, 24, 0, "from_beton()"},
    {{{PICTURE, "0123456789abcdefghi"}, {PICTURE, "b"}},
     {0},
     "image=0123456789abcdefghi",
     SCAN_NO_LABEL,
     26,
     0,
     NULL},
    {{{OTHER, "photo"}, {INT, "label"}}, {0, 3}, "", 0, 24, 0, "derived from RGBImageField"},
    {{{OTHER, "photo"}, {INT, "label"}}, {0, 3}, "image=photo", 3, 24, 0, NULL},
    {{{PICTURE, "photo"}, {OTHER, "label"}}, {0, 3}, "image=photo", 0, 24, 0, "field 1"},
    {{{PICTURE, "photo"}, {7, "label"}}, {0, 3}, "", 0, 24, 0, "field 1"},
};

static const struct {
	unsigned bytes, align;
} layouts[] = {{8, 8}, {8, 8}, {13, 1}, {16, 1}, {8, 8}, {16, 1}, {8, 8}};

static void put_fields(const struct one_file *is, uint64_t data_at, unsigned n)
{
	const size_t begin = file.size;

	for (unsigned i = 0; i < n; i++) {
		const unsigned type = is->field[i].type < OTHER ? is->field[i].type % 7 : PICTURE;

		while ((file.size - begin) % layouts[type].align)
			shard_put_fill(&file, 0xee, 1);
		if (type == PICTURE)
			put_picture(0, 1, 1, data_at + 10 * i);
		else if (type == INT || type == FLOAT)
			shard_put_64(&file, is->value[i]);
		else
			shard_put_fill(&file, 0xee, layouts[type].bytes);
	}
	while (file.size - begin < is->row)
		shard_put_fill(&file, 0xee, 1);
}

START_TEST(fields_of_all_kinds)
{
	const struct one_file *is = &files[_i];
	unsigned n = 0;
	uint64_t data_at;

	while (n < 8 && is->field[n].name)
		n++;
	put_head(n, 1);
	for (unsigned i = 0; i < n; i++)
		put_field(is->field[i].type, is->field[i].name);
	data_at = HEAD + (uint64_t)n * FIELD + is->row;
	put_fields(is, data_at, n);
	for (unsigned i = 0; i < n; i++)
		shard_put_fill(&file, (int)i, 10);
	begin_table();
	for (unsigned i = 0; i < n; i++)
		put_entry(0, data_at + 10 * i, 10);
	ck_assert_int_eq(scan(is->options), is->why ? SCAN_E_BAD : SCAN_E_END);
	if (is->why) {
		ck_assert_msg(strstr(run.why, is->why), "%s", run.why);
		return;
	}
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].label, is->is);
	ck_assert_uint_eq(run.record[0].at, data_at + 10 * is->at);
	ck_assert_uint_eq(run.record[0].bytes, 10);
}
END_TEST

/* ---- damage ---- */

static const struct damage {
	unsigned at, bytes;
	uint64_t is;
	const char *why;
} damages[] = {
    {0, 2, 1, "version 2"},
    {2, 2, 0, "no field"},
    {2, 2, 65, "more than 64"},
    {2, 2, 64, "damaged"}, /* they lie behind the table */
    {8, 8, 5, "more samples than there are"},
    {8, 8, UINT64_MAX, "more samples than there are"},
    {8, 8, 2, "names a sample that is not there"},
    {16, 8, 0, "not written to its end"},
    {16, 8, 1 << 20, "cut off"},
    {16, 8, UINT64_MAX, "cut off"},
    {16, 8, 24, "damaged"},
    /* the first sample */
    {2106, 1, 2, "sample 0: its picture is no JPEG"},
    {2106, 1, 1, "sample 0: its picture is no JPEG"},
    {2111, 8, 0, "sample 0: the table of places"},
    {2111, 8, UINT64_MAX, "sample 0: the table of places"},
    {2178 + 30, 8, 1, "sample 0: the table of places"}, /* of whom it is */
    {2178 + 30 + 16, 8, 0, "sample 0: the table of places"},
    {2178 + 30 + 16, 8, 31, "sample 0: its picture is not where"},
    {2178 + 30 + 16, 8, UINT64_MAX, "sample 0: its picture is not where"},
};

START_TEST(damaged)
{
	const struct damage *is = &damages[_i];

	make(3, 1, 1);
	ck_assert_uint_eq(file.size, 2178 + 30 + 72);
	little_put(file.data + is->at, is->is, is->bytes);
	ck_assert_int_eq(scan(""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, is->why), "%s", run.why);
}
END_TEST

/* In a table that says the same. */
START_TEST(places_that_are_none)
{
	static const uint64_t places[] = {0, 23, 2177, 2208, UINT64_MAX - 3};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(places); i++) {
		make(3, 1, 1);
		little_put_64(file.data + 2111, places[i]);
		little_put_64(file.data + 2208 + 8, places[i]);
		ck_assert_int_eq(scan(""), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, "is not where pictures are"), "%s", run.why);
		ck_assert_uint_eq(run.bad_at, 2106);
	}
}
END_TEST

START_TEST(cut_off)
{
	make(3, 1, 1);
	for (size_t size = 0; size < file.size; size++) {
		ck_assert_int_eq(scan_run(&scan_beton, file.data, size, "", &run), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, size < HEAD + FIELD                 ? "too short"
					      : (size - 2208) % 24 || size < 2208 ? "cut off"
										  : "has none"),
			      "%zu: %s", size, run.why);
	}
}
END_TEST

START_TEST(told_by_its_begin)
{
	make(3, 1, 1);
	ck_assert(scan_beton.is_shard(file.data, file.size));
	ck_assert(!scan_beton.is_shard(file.data, HEAD + FIELD - 1));
	for (unsigned at = 0; at < 8; at++) {
		file.data[at] ^= 0x40;
		ck_assert(!scan_beton.is_shard(file.data, file.size) || at == 3);
		file.data[at] ^= 0x40;
	}
	file.data[HEAD] = 7;
	ck_assert(!scan_beton.is_shard(file.data, file.size));
	file.data[HEAD] = OTHER;
	ck_assert(scan_beton.is_shard(file.data, file.size));
}
END_TEST

static void add(TCase *all)
{
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, files_of_ffcv);
	tcase_add_test(all, samples_in_their_order);
	tcase_add_test(all, many_rows_and_entries);
	tcase_add_test(all, pixels);
	tcase_add_test(all, heads_of_any_pixels);
	tcase_add_loop_test(all, fields_of_all_kinds, 0, BASE_ARRAY_LEN(files));
	tcase_add_loop_test(all, damaged, 0, BASE_ARRAY_LEN(damages));
	tcase_add_test(all, places_that_are_none);
	tcase_add_test(all, cut_off);
	tcase_add_test(all, told_by_its_begin);
}

int main(void)
{
	return suite_run("beton", add);
}
