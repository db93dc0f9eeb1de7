/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of samples to rows of pixels.
 *
 * The planes hold one row of MCUs, and above it the last row of the one before. That is what 4:2:0
 * looks at: a row of pixels is made from the chroma row it lies in and the next one above (even
 * rows) or below (odd rows). So the last row of a MCU row is made with the next one.
 *
 * Beside the picture's first and last chroma samples stand copies of them, and above and below the
 * first and last rows those rows themselves, as libjpeg has it.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

struct band_plane {
	const uint8_t *first; /* the row above the MCU row, at the part's first sample */
	size_t stride;
	int64_t y, last; /* of the picture: that row, and the last one that there is */
};

static struct band_plane band_plane(const struct baseline *baseline, unsigned c)
{
	const struct baseline_plane *plane = &baseline->plane[c];
	const struct baseline_component *component = &baseline->head.component[c];
	uint32_t before = baseline->place.columns.first * component->across * plane->block_width;
	uint32_t column = baseline->box.left;

	if (baseline->is_half)
		column = c == 0 ? column & ~1u : column / 2;
	return (struct band_plane){
	    .first = plane->rows - plane->stride + (column - before),
	    .stride = plane->stride,
	    .y = ((int64_t)baseline->place.mcu_row - 1) * component->down * plane->side - 1,
	    .last = (int64_t)plane->height - 1,
	};
}

/* How far row y of the picture is from the first. */
static inline ptrdiff_t band_offset(const struct band_plane *plane, int64_t y)
{
	y = BASE_MAX(BASE_MIN(y, plane->last), 0);
	return (ptrdiff_t)(y - plane->y) * (ptrdiff_t)plane->stride;
}

/* Cb and Cr have planes of one size. */
static void band_pixels(const struct baseline *baseline,
			const struct band_plane planes[BASELINE_COMPONENTS], uint32_t y,
			size_t count, uint8_t *const to[3])
{
	const struct baseline_kernels *kernels = baseline->kernels;
	const uint8_t *row = planes[0].first + band_offset(&planes[0], y);
	const ptrdiff_t beside = band_offset(&planes[1], baseline->is_low ? y / 2 : y);
	const uint8_t *const near[2] = {planes[1].first + beside, planes[2].first + beside};

	if (!baseline->is_half) {
		kernels->h1v1(row, near, to, count);
	} else if (!baseline->is_low) {
		kernels->h2v1(row, near, to, count);
	} else {
		const ptrdiff_t next = band_offset(&planes[1], (int64_t)(y / 2) + (y % 2 ? 1 : -1));
		const uint8_t *const far[2] = {planes[1].first + next, planes[2].first + next};

		kernels->h2v2(row, near, far, to, count);
	}
}

void baseline_band_make(const struct baseline *baseline, uint32_t end, struct decode_band *ret)
{
	uint32_t odd = baseline->is_half ? baseline->box.left & 1 : 0;
	struct band_plane planes[BASELINE_COMPONENTS];
	size_t count = baseline->box.width;

	for (unsigned c = 0; c < baseline->head.n_components; c++)
		planes[c] = band_plane(baseline, c);
	ret->rows = end - baseline->place.y;
	if (baseline->head.n_components == 1) {
		for (unsigned i = 0; i < 3; i++)
			ret->plane[i] =
			    planes[0].first + band_offset(&planes[0], baseline->place.y);
		ret->stride = baseline->plane[0].stride;
		return;
	}
	ret->stride = baseline->out_stride;
	for (unsigned i = 0; i < 3; i++)
		ret->plane[i] = baseline->out[i] + odd;
	if (baseline->is_half)
		count = (count + odd + 1) / 2;
	for (uint32_t y = baseline->place.y; y < end; y++) {
		const size_t offset = (y - baseline->place.y) * baseline->out_stride;
		uint8_t *const to[3] = {baseline->out[0] + offset, baseline->out[1] + offset,
					baseline->out[2] + offset};

		band_pixels(baseline, planes, y, count, to);
	}
}
