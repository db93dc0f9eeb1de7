/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plane of float32 in another size: the weights of pictures (filter.h), which are torchvision's of tensors with antialias, too, but for
 * the last bits. Sums are of doubles, and divided by the sum of their weights, so that what is constant stays so. Across first, then
 * down, as PyTorch; each result is rounded to float32.
 *
 * A number that is none (NaN) makes those none that it is a part of.
 */

#include "pipeline/bands/bands.h"

static float bands_at(const struct picture *picture, uint32_t y, uint32_t x)
{
	float value;

	memcpy(&value, picture_row(picture, y) + (size_t)x * 4, sizeof(value));
	return value;
}

static void bands_put(const struct picture *picture, uint32_t y, uint32_t x, double value)
{
	const float rounded = (float)value;

	memcpy(picture_row(picture, y) + (size_t)x * 4, &rounded, sizeof(rounded));
}

static bool bands_is_nearest(enum filter_id filter)
{
	return filter == FILTER_NEAREST || filter == FILTER_CORNER;
}

static void bands_pick(const struct bands_resize *resize, const struct picture *from,
		       const struct picture *to)
{
	for (uint32_t y = 0; y < to->height; y++) {
		const uint8_t *row = picture_row(from, resize->down.first[y]);

		for (uint32_t x = 0; x < to->width; x++)
			memcpy(picture_row(to, y) + (size_t)x * 4,
			       row + (size_t)resize->across.first[x] * 4, 4);
	}
}

static void bands_row_across(const struct filter_table *table, const struct picture *from,
			     uint32_t y, const struct picture *to)
{
	for (uint32_t x = 0; x < to->width; x++) {
		const int32_t *weight = table->weight + (size_t)x * table->taps;
		double sum = 0, weights = 0;

		for (uint32_t t = 0; t < table->count[x]; t++) {
			if (weight[t] == 0)
				continue; /* that of a pixel beyond the filter's end */
			sum += bands_at(from, y, table->first[x] + t) * (double)weight[t];
			weights += weight[t];
		}
		bands_put(to, y, x, sum / weights);
	}
}

static void bands_row_down(const struct filter_table *table, const struct picture *from, uint32_t y,
			   double *sums, const struct picture *to)
{
	const int32_t *weight = table->weight + (size_t)y * table->taps;
	double weights = 0;

	memset(sums, 0, to->width * sizeof(*sums));
	for (uint32_t t = 0; t < table->count[y]; t++) {
		if (weight[t] == 0)
			continue;
		for (uint32_t x = 0; x < to->width; x++)
			sums[x] += bands_at(from, table->first[y] + t, x) * (double)weight[t];
		weights += weight[t];
	}
	for (uint32_t x = 0; x < to->width; x++)
		bands_put(to, y, x, sums[x] / weights);
}

/* Across, then down: through a picture between, behind which there is room for the sums of a row. */
static int bands_filter(struct bands_resize *resize, const struct picture *from,
			const struct picture *to)
{
	struct picture between;
	double *sums;
	int r = picture_make(&resize->between, (uint64_t)from->height + 3, to->width, &between);

	if (r != 0)
		return r;
	sums =
	    (double *)base_align_up((uintptr_t)picture_row(&between, from->height), sizeof(*sums));
	for (uint32_t y = 0; y < from->height; y++)
		bands_row_across(&resize->across, from, y, &between);
	for (uint32_t y = 0; y < to->height; y++)
		bands_row_down(&resize->down, &between, y, sums, to);
	return 0;
}

/* The planes of a sample have the same tables. */
static bool bands_table(struct filter_table *table, enum filter_id filter, uint32_t in,
			uint32_t out)
{
	static const struct filter_cut none;

	return (table->id == filter && table->in == in && table->out == out) ||
	       filter_make(table, filter, in, out, none);
}

int bands_resize(struct bands_resize *resize, const struct picture *from, enum filter_id filter,
		 uint64_t height, uint64_t width, struct picture_buffer *buffer,
		 struct picture *ret)
{
	int r = picture_make(buffer, height, width, ret);

	if (r != 0)
		return r;
	if (!bands_table(&resize->down, filter, from->height, ret->height) ||
	    !bands_table(&resize->across, filter, from->width, ret->width))
		return PIPELINE_FAIL_MEMORY;
	if (!bands_is_nearest(filter))
		return bands_filter(resize, from, ret);
	bands_pick(resize, from, ret);
	return 0;
}

void bands_resize_trim(struct bands_resize *resize)
{
	picture_buffer_trim(&resize->between);
}

void bands_resize_fini(struct bands_resize *resize)
{
	filter_fini(&resize->down);
	filter_fini(&resize->across);
	picture_buffer_fini(&resize->between);
}
