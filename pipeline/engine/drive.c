/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample through several programs with one decode.
 *
 * Each program says what part of the picture it needs; the smallest box around all is decoded, once,
 * in bands, and each band's rows go to every program that wants some of them. One that has its
 * picture from another's pass wants none. Programs that need the picture smaller have a decode of
 * their own for each scale, since what shares a decode never changes a pixel. The decoder may find
 * out late that it has to begin anew (DECODE_E_AGAIN); the programs then do, too.
 */

#include "pipeline/engine/drive.h"

struct drive {
	const struct engine *engine;
	struct decode *decode;
	struct engine_part *part;
	uint32_t who;
};

/* Who needs something at that scale, and the smallest box around it. */
static uint32_t drive_box(const struct drive *drive, unsigned shift, struct picture_box *ret)
{
	uint32_t who = 0;

	for (uint32_t left = drive->who; left; left &= left - 1) {
		const struct engine_need *need = &drive->part[__builtin_ctz(left)].need;

		if (need->shift != shift || need->box.height == 0)
			continue;
		*ret = who ? picture_around(ret, &need->box) : need->box;
		who |= left & -left;
	}
	return who;
}

/* What the part wants of a band whose first row is row y of box. */
static void drive_feed(const struct engine *engine, struct engine_part *part,
		       const struct picture_box *box, uint32_t y, const struct decode_band *band)
{
	const struct picture_box *wanted = &part->need.box;
	const uint32_t next = wanted->top - box->top + part->fed;
	struct decode_band rows = *band;

	if (part->fed == wanted->height || y + band->rows <= next)
		return;
	for (unsigned c = 0; c < 3; c++)
		rows.plane[c] += (next - y) * band->stride + (wanted->left - box->left);
	rows.rows = BASE_MIN(y + band->rows - next, wanted->height - part->fed);
	engine->feed(part, &rows);
	part->fed += rows.rows;
}

/* What is needed at that scale, through the parts that need it. As decode_band_next. */
static int drive_rows(const struct drive *drive, unsigned shift, struct pipeline_error *ret_error)
{
	struct decode_band band = {.rows = 0};
	struct picture_box box;
	const uint32_t who = drive_box(drive, shift, &box);
	int r;

	if (!who)
		return 0;
	decode_reduce(drive->decode, shift);
	r = decode_band_start(drive->decode, &box, ret_error);
	for (uint32_t y = 0; r == 0 && y < box.height; y += band.rows) {
		r = decode_band_next(drive->decode, &band, ret_error);
		for (uint32_t left = who; r == 0 && left; left &= left - 1)
			drive_feed(drive->engine, &drive->part[__builtin_ctz(left)], &box, y,
				   &band);
	}
	return r;
}

static int drive_picture(const struct drive *drive, const void *data, size_t size,
			 const struct pipeline_key *key, struct pipeline_error *ret_error)
{
	uint32_t height, width;
	int r = decode_open(drive->decode, data, size, &height, &width, ret_error);

	if (r != 0)
		return r;
	do {
		struct decode_about about;

		decode_tell(drive->decode, &about);
		for (uint32_t left = drive->who; left; left &= left - 1)
			drive->part[__builtin_ctz(left)].fed = 0;
		r = drive->engine->begin(drive->part, drive->who, key, &about, ret_error);
		for (unsigned shift = 0; r == 0 && shift <= DECODE_MAX_SHIFT; shift++)
			r = drive_rows(drive, shift, ret_error);
	} while (r == DECODE_E_AGAIN);
	return r == 0 ? drive->engine->end(drive->part, drive->who, ret_error) : r;
}

int drive_sample(const struct engine *engine, struct decode *decode, struct engine_part part[],
		 uint32_t who, const void *data, size_t size, const struct pipeline_key *key,
		 struct pipeline_error *ret_error)
{
	const struct drive drive = {engine, decode, part, who};
	int r = drive_picture(&drive, data, size, key, ret_error);

	decode_close(decode);
	for (uint32_t left = who; left; left &= left - 1)
		engine->trim(&part[__builtin_ctz(left)]);
	return r;
}
