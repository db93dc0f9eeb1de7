/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a volume of labels has some: a number above 0 is one. The places of each slice are counted, some slices at a time; of one that is
 * asked for, its slice is decoded once more.
 *
 * The last slices come first: what a file in gzip has up to there is inflated then, and stays for all others.
 */

#include "pipeline/volume/volume_inner.h"

#define LABELS_AT_ONCE (1u << 22) /* places */

static bool labels_has(const struct picture *all, uint64_t y, uint32_t x)
{
	float number;

	memcpy(&number, picture_row(all, (uint32_t)y) + (size_t)x * 4, sizeof(number));
	return number > 0;
}

static int labels_read(struct volume_room *room, unsigned first, unsigned depth,
		       struct pipeline_error *ret_error)
{
	const struct picture_box whole = {0, 0, room->head.height, room->head.width};

	room->numbers.is_inverted = false;
	return volume_read(room, room->labels, 1, first, depth, &whole, ret_error);
}

static uint32_t labels_count(const struct volume_room *room, unsigned slice)
{
	const uint64_t height = room->head.height;
	uint32_t n = 0;

	for (uint64_t y = slice * height; y < (slice + 1) * height; y++)
		for (uint32_t x = 0; x < room->head.width; x++)
			n += labels_has(&room->numbers.all, y, x);
	return n;
}

int volume_count_labels(struct volume_room *room, struct pipeline_error *ret_error)
{
	const uint64_t places = (uint64_t)room->head.height * room->head.width;
	const unsigned most = (unsigned)BASE_MAX(LABELS_AT_ONCE / places, 1u);
	int r = 0;

	for (unsigned end = room->head.depth; r == 0 && end > 0;) {
		const unsigned n = BASE_MIN(most, end);

		end -= n;
		r = labels_read(room, end, n, ret_error);
		for (unsigned i = 0; r == 0 && i < n; i++)
			room->labelled[end + i] = labels_count(room, i);
	}
	return r;
}

static uint64_t labels_of(const struct volume_room *room, bool is_labelled, unsigned slice)
{
	const uint64_t places = (uint64_t)room->head.height * room->head.width;

	return is_labelled ? room->labelled[slice] : places - room->labelled[slice];
}

uint64_t volume_count(const struct volume_room *room, bool is_labelled)
{
	uint64_t n = 0;

	for (unsigned slice = 0; slice < room->head.depth; slice++)
		n += labels_of(room, is_labelled, slice);
	return n;
}

void volume_find(struct volume_room *room, bool is_labelled, uint64_t number,
		 int64_t ret[VOLUME_AXES])
{
	unsigned slice = 0;

	while (number >= labels_of(room, is_labelled, slice))
		number -= labels_of(room, is_labelled, slice++);
	memset(ret, 0, VOLUME_AXES * sizeof(*ret));
	ret[0] = slice;
	room->failed = labels_read(room, slice, 1, &room->error);
	for (uint32_t y = 0; !room->failed && y < room->head.height; y++)
		for (uint32_t x = 0; x < room->head.width; x++) {
			if (labels_has(&room->numbers.all, y, x) != is_labelled || number-- > 0)
				continue;
			ret[1] = y;
			ret[2] = x;
			return;
		}
}
