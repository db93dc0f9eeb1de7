/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample through several programs with one decode.
 *
 * Each program says what part of the picture it needs; the smallest box around all is decoded, once,
 * in bands, and each band's rows go to every program that wants some of them. Programs that need the
 * picture smaller have a decode of their own for each scale, since what shares a decode never
 * changes a pixel. The decoder may find
 * out late that it has to begin anew (DECODE_E_AGAIN); the programs then do, too.
 */

#include "pipeline/drive.h"

/* The smallest box around two. */
static struct picture_box drive_around(const struct picture_box *a, const struct picture_box *b)
{
	uint32_t bottom = BASE_MAX(a->top + a->height, b->top + b->height);
	uint32_t right = BASE_MAX(a->left + a->width, b->left + b->width);
	struct picture_box around = {BASE_MIN(a->top, b->top), BASE_MIN(a->left, b->left), 0, 0};

	around.height = bottom - around.top;
	around.width = right - around.left;
	return around;
}

static int drive_begin(const struct decode *decode, struct drive_part *part, unsigned n,
		       const struct pipeline_key *key, struct pipeline_error *ret_error)
{
	struct decode_about about;

	decode_tell(decode, &about);
	for (unsigned i = 0; i < n; i++) {
		int r = part[i].engine->begin(part[i].program, part[i].scratch, key, &about,
					      part[i].out, &part[i].need, ret_error);

		if (r != 0)
			return r;
		part[i].fed = 0;
	}
	return 0;
}

/* The smallest box around all that is needed at that scale; false: nothing is. */
static bool drive_box(const struct drive_part *part, unsigned n, unsigned shift,
		      struct picture_box *ret)
{
	bool is_needed = false;

	for (unsigned i = 0; i < n; i++) {
		if (part[i].need.shift != shift)
			continue;
		*ret = is_needed ? drive_around(ret, &part[i].need.box) : part[i].need.box;
		is_needed = true;
	}
	return is_needed;
}

/* What the part wants of a band whose first row is row y of box. */
static void drive_feed(struct drive_part *part, const struct picture_box *box, uint32_t y,
		       const struct decode_band *band)
{
	const struct picture_box *wanted = &part->need.box;
	const uint32_t next = wanted->top - box->top + part->fed;
	struct decode_band rows = *band;

	if (part->fed == wanted->height || y + band->rows <= next)
		return;
	for (unsigned c = 0; c < 3; c++)
		rows.plane[c] += (next - y) * band->stride + (wanted->left - box->left);
	rows.rows = BASE_MIN(y + band->rows - next, wanted->height - part->fed);
	part->engine->feed(part->scratch, &rows);
	part->fed += rows.rows;
}

/* What is needed at that scale, through the parts that need it. As decode_band_next. */
static int drive_rows(struct decode *decode, struct drive_part *part, unsigned n, unsigned shift,
		      struct pipeline_error *ret_error)
{
	struct decode_band band = {.rows = 0};
	struct picture_box box;
	int r;

	if (!drive_box(part, n, shift, &box))
		return 0;
	decode_reduce(decode, shift);
	r = decode_band_start(decode, &box, ret_error);
	for (uint32_t y = 0; r == 0 && y < box.height; y += band.rows) {
		r = decode_band_next(decode, &band, ret_error);
		for (unsigned i = 0; r == 0 && i < n; i++) {
			if (part[i].need.shift == shift)
				drive_feed(&part[i], &box, y, &band);
		}
	}
	return r;
}

static int drive_picture(struct decode *decode, struct drive_part *part, unsigned n,
			 const void *data, size_t size, const struct pipeline_key *key,
			 struct pipeline_error *ret_error)
{
	uint32_t height, width;
	int r = decode_open(decode, data, size, &height, &width, ret_error);

	if (r != 0)
		return r;
	do {
		r = drive_begin(decode, part, n, key, ret_error);
		for (unsigned shift = 0; r == 0 && shift <= DECODE_MAX_SHIFT; shift++)
			r = drive_rows(decode, part, n, shift, ret_error);
	} while (r == DECODE_E_AGAIN);
	for (unsigned i = 0; i < n && r == 0; i++)
		r = part[i].engine->end(part[i].program, part[i].scratch, ret_error);
	return r;
}

int drive_sample(struct decode *decode, struct drive_part *part, unsigned n, const void *data,
		 size_t size, const struct pipeline_key *key, struct pipeline_error *ret_error)
{
	int r = drive_picture(decode, part, n, data, size, key, ret_error);

	decode_close(decode);
	for (unsigned i = 0; i < n; i++)
		part[i].engine->trim(part[i].scratch);
	return r;
}
