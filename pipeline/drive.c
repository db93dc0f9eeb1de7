/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample through several programs with one decode.
 *
 * Each program says what part of the picture it needs; the smallest box around all is decoded, once,
 * in bands, and each band's rows go to every program that wants some of them. The decoder may find
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

static int drive_begin(struct drive_part *part, unsigned n, const struct pipeline_key *key,
		       uint32_t height, uint32_t width, struct picture_box *ret_box,
		       struct pipeline_error *ret_error)
{
	for (unsigned i = 0; i < n; i++) {
		int r = part[i].engine->begin(part[i].program, part[i].scratch, key, height, width,
					      part[i].out, &part[i].box, ret_error);

		if (r != 0)
			return r;
		part[i].fed = 0;
		*ret_box = i == 0 ? part[i].box : drive_around(ret_box, &part[i].box);
	}
	return 0;
}

/* What the part wants of a band whose first row is row y of box. */
static void drive_feed(struct drive_part *part, const struct picture_box *box, uint32_t y,
		       const struct decode_band *band)
{
	const uint32_t next = part->box.top - box->top + part->fed;
	struct decode_band rows = *band;

	if (part->fed == part->box.height || y + band->rows <= next)
		return;
	for (unsigned c = 0; c < 3; c++)
		rows.plane[c] += (next - y) * band->stride + (part->box.left - box->left);
	rows.rows = BASE_MIN(y + band->rows - next, part->box.height - part->fed);
	part->engine->feed(part->scratch, &rows);
	part->fed += rows.rows;
}

/* The rows of box through all parts. As decode_band_next. */
static int drive_rows(struct decode *decode, struct drive_part *part, unsigned n,
		      const struct picture_box *box, struct pipeline_error *ret_error)
{
	struct decode_band band;

	for (uint32_t y = 0; y < box->height; y += band.rows) {
		int r = decode_band_next(decode, &band, ret_error);

		if (r != 0)
			return r;
		for (unsigned i = 0; i < n; i++)
			drive_feed(&part[i], box, y, &band);
	}
	return 0;
}

static int drive_picture(struct decode *decode, struct drive_part *part, unsigned n,
			 const void *data, size_t size, const struct pipeline_key *key,
			 struct pipeline_error *ret_error)
{
	struct picture_box box;
	uint32_t height, width;
	int r = decode_open(decode, data, size, &height, &width, ret_error);

	if (r != 0)
		return r;
	do {
		r = drive_begin(part, n, key, height, width, &box, ret_error);
		if (r == 0)
			r = decode_band_start(decode, &box, ret_error);
		if (r == 0)
			r = drive_rows(decode, part, n, &box, ret_error);
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
