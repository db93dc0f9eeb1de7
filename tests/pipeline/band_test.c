/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bands against whole pictures over tests/pipeline/data, formats and exif: the same pixels and the same outcome for
 * boxes of every kind, of whole files and of damaged ones, of JPEGs decoded smaller, too, and of JPEGs by
 * libjpeg-turbo alone.
 */

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/formats/decode.h"
#include "tests/patience.h"

#define BAND_MAX_BYTES 65536
#define BAND_MAX_PIXELS (1 << 20) /* larger pictures are slow and nothing else */

struct band_case {
	struct decode *decode;
	struct picture_buffer buffer;
	struct philox_seq seq;
	uint8_t *data; /* exactly size bytes: the sanitizer sees one too many */
	size_t size;
	char name[256];
	unsigned compared, again; /* boxes with pixels; starts that were told to begin again */
	unsigned reduced;         /* boxes with pixels of smaller pictures */
};

static const char *const band_folders[] = {"data", "formats", "exif"};
#define BAND_FOLDERS 3
#define BAND_EXIF 2 /* the one whose pictures are turned */

/* kind: a number of band_folders, + BAND_FOLDERS: by libraries alone. */
static void band_init(struct band_case *c, uint64_t seed, int kind)
{
	memset(c, 0, sizeof(*c));
	philox_seq_init(&c->seq, 99, seed, 0);
	ck_assert_int_eq(decode_new(&c->decode), 0);
	if (kind % BAND_FOLDERS == BAND_EXIF)
		decode_by_exif(c->decode);
	if (kind >= BAND_FOLDERS)
		decode_by_library(c->decode);
}

static void band_fini(struct band_case *c)
{
	decode_free(c->decode);
	picture_buffer_fini(&c->buffer);
	free(c->data);
}

static void band_load(struct band_case *c, const uint8_t *data, size_t size)
{
	free(c->data);
	c->data = malloc(size ? size : 1);
	ck_assert_ptr_nonnull(c->data);
	memcpy(c->data, data, size);
	c->size = size;
}

/* Some rows and columns of a side, the ends as often as the middle. */
static void band_range(struct philox_seq *seq, uint32_t side, uint32_t *ret_first,
		       uint32_t *ret_count)
{
	uint32_t kind = (uint32_t)philox_below(seq, 5),
		 count = 1 + (uint32_t)philox_below(seq, side);

	if (kind == 0)
		count = side;
	else if (kind == 1)
		count = 1;
	*ret_count = count;
	*ret_first = kind == 2   ? 0
		     : kind == 3 ? side - count
				 : (uint32_t)philox_below(seq, side - count + 1);
}

static bool band_is_same(const struct picture *picture, uint32_t top,
			 const struct decode_band *band)
{
	for (uint32_t y = 0; y < band->rows; y++) {
		const uint8_t *from = picture_row(picture, top + y);

		for (uint32_t x = 0; x < picture->width * 3; x++)
			if (band->plane[x % 3][y * band->stride + x / 3] != from[x / 3 * 4 + x % 3])
				return false;
	}
	return true;
}

/* All bands of box; the rows, or an error. Pixels are compared with those of whole if it is given. */
static int band_read(struct band_case *c, const struct picture_box *box, const struct picture *part,
		     struct pipeline_error *ret_error)
{
	struct decode_band band = {.rows = 0};
	int r = decode_band_start(c->decode, box, ret_error);

	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = decode_band_next(c->decode, &band, ret_error);
		if (r != 0)
			break;
		ck_assert_uint_ge(band.rows, 1);
		ck_assert_uint_le(band.rows, box->height - y);
		if (part)
			ck_assert_msg(band_is_same(part, y, &band),
				      "%s: row %u of %u x %u at %u, %u", c->name, y, box->height,
				      box->width, box->top, box->left);
	}
	return r;
}

/* Half of the JPEGs are decoded smaller; the open picture's sides then. */
static unsigned band_reduce(struct band_case *c, uint32_t *height, uint32_t *width)
{
	struct decode_about about;
	unsigned shift;

	decode_tell(c->decode, &about);
	ck_assert(about.height == *height && about.width == *width);
	if (!about.can_reduce || philox_below(&c->seq, 2))
		return 0;
	shift = 1 + (unsigned)philox_below(&c->seq, DECODE_MAX_SHIFT);
	*height = (*height + (1u << shift) - 1) >> shift;
	*width = (*width + (1u << shift) - 1) >> shift;
	return shift;
}

/* One box, by bands and of the whole picture. */
static void band_compare(struct band_case *c)
{
	struct pipeline_error a = {0}, b = {0};
	struct picture whole, part;
	struct picture_box box;
	uint32_t height, width;
	int r = decode_open(c->decode, c->data, c->size, &height, &width, &a), s, tries = 0;
	unsigned shift;

	if (r != 0 || (uint64_t)height * width > BAND_MAX_PIXELS)
		return;
	shift = band_reduce(c, &height, &width);
	decode_reduce(c->decode, shift);
	band_range(&c->seq, height, &box.top, &box.height);
	band_range(&c->seq, width, &box.left, &box.width);
	r = decode_whole(c->decode, &c->buffer, &whole, &a);
	ck_assert(r != 0 || (whole.height == height && whole.width == width));
	if (r == 0)
		part = picture_part(&whole, &box);
	ck_assert_int_eq(decode_open(c->decode, c->data, c->size, &height, &width, &b), 0);
	decode_reduce(c->decode, shift);
	while ((s = band_read(c, &box, r == 0 ? &part : NULL, &b)) == DECODE_E_AGAIN) {
		c->again++;
		ck_assert_int_lt(++tries, 3);
	}
	ck_assert_msg(r == s && memcmp(&a, &b, sizeof(a)) == 0, "%s: whole %d %s, bands %d %s",
		      c->name, r, a.text, s, b.text);
	c->compared += r == 0;
	c->reduced += r == 0 && shift > 0;
	if (philox_below(&c->seq, 2))
		decode_close(c->decode);
}

static DIR *band_open_data(int kind, char *ret_path, size_t size)
{
	const char *folder = band_folders[kind % BAND_FOLDERS], *top = getenv("top_srcdir");
	DIR *dir;

	snprintf(ret_path, size, "%s/tests/pipeline/%s", top ? top : ".", folder);
	dir = opendir(ret_path);
	ck_assert_msg(dir != NULL, "cannot open %s", ret_path);
	return dir;
}

/* The next file of the folder, into c; false behind the last. */
static bool band_next_file(struct band_case *c, DIR *dir, const char *path)
{
	static uint8_t bytes[BAND_MAX_BYTES];
	const struct dirent *entry;
	char name[4096 + 256];
	FILE *file;

	do {
		entry = readdir(dir);
	} while (entry && entry->d_name[0] == '.');
	if (!entry)
		return false;
	snprintf(c->name, sizeof(c->name), "%s", entry->d_name);
	snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
	file = fopen(name, "rb");
	ck_assert_msg(file != NULL, "cannot open %s", name);
	band_load(c, bytes, fread(bytes, 1, sizeof(bytes), file));
	ck_assert_uint_lt(c->size, sizeof(bytes));
	fclose(file);
	return true;
}

START_TEST(boxes)
{
	struct band_case c;
	char path[4096];
	DIR *dir = band_open_data(_i, path, sizeof(path));

	band_init(&c, 1, _i);
	while (band_next_file(&c, dir, path)) {
		for (unsigned i = 0; i < 150; i++)
			band_compare(&c);
	}
	ck_assert_uint_ge(c.compared, 1500);
	ck_assert(strcmp(band_folders[_i % BAND_FOLDERS], "formats") == 0 || c.reduced >= 500);
	closedir(dir);
	band_fini(&c);
}
END_TEST

/* Bytes changed or cut off anywhere; markers behind the picture, which only a whole decode judges. */
START_TEST(damage)
{
	struct band_case c;
	char path[4096];
	DIR *dir = band_open_data(_i, path, sizeof(path));

	band_init(&c, 2, _i);
	while (band_next_file(&c, dir, path)) {
		_cleanup_free_ uint8_t *good = malloc(c.size + 1);
		size_t size = c.size;

		ck_assert_ptr_nonnull(good);
		memcpy(good, c.data, size);
		for (unsigned i = 0; size > 2 && i < 120; i++) {
			band_load(&c, good, size);
			for (unsigned k = 0; k < 1 + i % 5; k++)
				c.data[philox_below(&c.seq, size)] = (uint8_t)philox_u32(&c.seq);
			if (i % 4 == 0)
				memcpy(c.data + size - 2, "\xff\xc4", 2);
			if (i % 4 == 1)
				c.size = philox_below(&c.seq, size);
			band_compare(&c);
		}
	}
	ck_assert_uint_ge(c.compared, 300);
	ck_assert_uint_ge(c.again, _i % BAND_FOLDERS == 0 ? 10 : 0);
	closedir(dir);
	band_fini(&c);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("band");
	TCase *tcase = tcase_create("band");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, boxes, 0, 2 * BAND_FOLDERS);
	tcase_add_loop_test(tcase, damage, 0, 2 * BAND_FOLDERS);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
