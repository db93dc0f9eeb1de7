/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orientations: what each file of tests/pipeline/exif says, what it says when it is cut off or
 * damaged, and the directory's odd entries, as Pillow reads them (parity.py compares pixels).
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/formats/exif.h"
#include "tests/data.h"
#include "tests/suite.h"

/* A copy of exactly size bytes: the sanitizer sees one too many. */
static unsigned exif_of(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size ? size : 1);
	unsigned orientation;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	orientation = exif_orientation(copy, size);
	ck_assert_uint_ge(orientation, 1);
	ck_assert_uint_le(orientation, 8);
	return orientation;
}

static const struct exif_file {
	const char *name;
	unsigned orientation;
} exif_files[] = {
    {"turn-1.jpg", 1},
    {"turn-2.jpg", 2},
    {"turn-3.jpg", 3},
    {"turn-4.jpg", 4},
    {"turn-5.jpg", 5},
    {"turn-6.jpg", 6},
    {"turn-7.jpg", 7},
    {"turn-8.jpg", 8},
    {"progressive.jpg", 6},
    {"cmyk.jpg", 8},
    {"parts.jpg", 7},
    {"long.jpg", 5},
    {"byte.jpg", 1},
    {"nine.jpg", 1},
    {"none.jpg", 1},
    {"again.jpg", 3},
    {"cut.jpg", 6},
    {"cut-before.jpg", 1},
    {"lost-value.jpg", 1},
    {"large-value.jpg", 6},
    {"nowhere.jpg", 1},
    {"no-tiff.jpg", 1},
    {"empty.jpg", 1},
    {"bytes-between.jpg", 6},
    {"behind.jpg", 4},
    {"before.png", 5},
    {"late.png", 6},
    {"interlaced.png", 8},
    {"lossy.webp", 7},
    {"lossless.webp", 6},
    {"no-flag.webp", 1},
    {"outside.jpg", 5},
    {"xmp.jpg", 6},
    {"xmp-element.jpg", 3},
    {"xmp-nine.jpg", 1},
    {"xmp-last.jpg", 8},
    {"xmp-and-exif.jpg", 3},
    {"xmp-and-nine.jpg", 1},
    {"xmp-and-other.jpg", 6},
    {"xmp-and-empty.jpg", 5},
    {"xmp-and-no-tiff.jpg", 1},
    {"xmp.png", 7},
    {"xmp-late.png", 5},
    {"xmp.webp", 8},
};

/* As it is; cut off anywhere, where it may only say less, or what an earlier place says; with bytes changed. */
START_TEST(files)
{
	const struct exif_file *file = &exif_files[_i];
	const bool has_several =
	    strcmp(file->name, "late.png") == 0 || strncmp(file->name, "xmp-", 4) == 0;
	uint8_t data[8192];
	size_t size = data_read("pipeline/exif", file->name, data, sizeof(data));
	struct philox_seq seq;

	ck_assert_uint_eq(exif_of(data, size), file->orientation);
	for (size_t cut = 0; cut < size; cut++) {
		unsigned orientation = exif_of(data, cut);

		ck_assert(orientation == 1 || orientation == file->orientation || has_several);
	}
	philox_seq_init(&seq, 5, (uint64_t)_i, 0);
	for (unsigned i = 0; i < 2000; i++) {
		size_t at = philox_below(&seq, BASE_MIN(size, 256));
		uint8_t was = data[at];

		data[at] = (uint8_t)philox_u32(&seq);
		exif_of(data, size);
		if (i % 8)
			data[at] = was;
	}
}
END_TEST

/* Hostile lengths, in a JPEG of one segment. */
static const struct {
	unsigned size;
	const char *bytes;
	unsigned orientation;
} exif_bytes[] = {
    {0, "", 1},
    {2, "\xff\xd8", 1},
    {3, "\xff\xd8\xff", 1},
    {8, "\xff\xd8\xff\xe1\0\1\0\0", 1}, /* a length that is shorter than itself */
    {8,
     "\xff\xd8\xff\xe1\xff\xff"
     "Ex",
     1}, /* longer than the file */
    {8, "\xff\xd8\xff\xff\xff\xff\xff\xff", 1},
    {12, "\x89PNG\r\n\x1a\n\xff\xff\xff\xff", 1},
    {20,
     "\x89PNG\r\n\x1a\n\xff\xff\xff\xff"
     "eXIfabcd",
     1},
    {20,
     "\x89PNG\r\n\x1a\n\0\0\0\0"
     "eXIfabcd",
     1},
    {12, "RIFF\0\0\0\0WEBP", 1},
    {38,
     "RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\0\0\0\0\0\0"
     "EXIF\xff\xff\xff\xff",
     1},
    /* a directory of 65535 entries that has one */
    {40,
     "\xff\xd8\xff\xe1\0\x24"
     "Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0\0\0",
     6},
    /* one that begins in the head: its count is the magic, its entry's type not known */
    {40,
     "\xff\xd8\xff\xe1\0\x24"
     "Exif\0\0MM\0*\0\0\0\x02\xff\xff\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0\0\0",
     1},
};

START_TEST(bytes)
{
	ck_assert_uint_eq(exif_of((const uint8_t *)exif_bytes[_i].bytes, exif_bytes[_i].size),
			  exif_bytes[_i].orientation);
}
END_TEST

/* Parts of EXIF beyond the most that are joined. */
START_TEST(many_parts)
{
	uint8_t data[2 + 40 * 11] = "\xff\xd8";
	static const uint8_t tiff[] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0";

	for (unsigned i = 0; i < 40; i++) {
		uint8_t *segment = data + 2 + (size_t)i * 11;

		memcpy(segment,
		       "\xff\xe1\0\x09"
		       "Exif\0\0",
		       10);
		segment[10] = i < sizeof(tiff) ? tiff[i] : 0;
	}
	ck_assert_uint_eq(exif_of(data, sizeof(data)), EXIF_UPRIGHT);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, files, 0, BASE_ARRAY_LEN(exif_files));
	tcase_add_loop_test(tcase, bytes, 0, BASE_ARRAY_LEN(exif_bytes));
	tcase_add_test(tcase, many_parts);
}

int main(void)
{
	return suite_run("exif", add);
}
