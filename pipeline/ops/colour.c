/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colour ops on whole pictures.
 *
 * Rows are computed by the machine's kernels (colour_kernels.h); what is here are the ops that look
 * at a picture before they change it. The tables of autocontrast and equalize are ImageOps.py's, in
 * Python's arithmetic: doubles, and whole numbers that do not overflow.
 */

#include "pipeline/ops/colour.h"
#include "pipeline/ops/colour_kernels.h"

static const struct colour_kernels *colour_kernels(void)
{
	const struct colour_kernels *fast = colour_avx2();

	return fast ? fast : &colour_plain;
}

/* ---- blends ---- */

void colour_brightness(const struct picture *picture, float factor)
{
	const struct colour_kernels *kernels = colour_kernels();

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->blend_flat(picture_row(picture, y), picture->width, 0, factor);
}

void colour_contrast(const struct picture *picture, float factor)
{
	const struct colour_kernels *kernels = colour_kernels();
	uint64_t sum = 0;
	double mean;

	for (uint32_t y = 0; y < picture->height; y++)
		sum += kernels->luma_sum(picture_row(picture, y), picture->width);
	mean = (double)sum / ((double)picture->height * picture->width);
	for (uint32_t y = 0; y < picture->height; y++)
		kernels->blend_flat(picture_row(picture, y), picture->width, (uint8_t)(mean + 0.5),
				    factor);
}

void colour_saturation(const struct picture *picture, float factor)
{
	const struct colour_kernels *kernels = colour_kernels();

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->blend_luma(picture_row(picture, y), picture->width, factor);
}

/* Where the kernel has no neighbours, and in pictures smaller than it, Pillow copies. */
static void colour_sharpen_row(const struct colour_kernels *kernels, const struct picture *from,
			       uint32_t y, float factor, uint8_t *to)
{
	const uint8_t *pixel = picture_row(from, y);
	const uint32_t width = from->width;

	if (y == 0 || y + 1 >= from->height || width < 3) {
		memcpy(to, pixel, (size_t)width * 4);
		return;
	}
	kernels->smooth(pixel - from->stride + 4, pixel + 4, pixel + from->stride + 4, width - 2,
			to + 4);
	kernels->blend_row(to + 4, pixel + 4, width - 2, factor, to + 4);
	memcpy(to, pixel, 4);
	memcpy(to + (size_t)(width - 1) * 4, pixel + (size_t)(width - 1) * 4, 4);
}

void colour_sharpness(const struct picture *from, float factor, const struct picture *to)
{
	const struct colour_kernels *kernels = colour_kernels();

	for (uint32_t y = 0; y < from->height; y++)
		colour_sharpen_row(kernels, from, y, factor, picture_row(to, y));
}

/* ---- pixel by pixel ---- */

void colour_hue(const struct picture *picture, double factor)
{
	const struct colour_kernels *kernels = colour_kernels();
	uint8_t turn = (uint8_t)(int)(factor * 255);

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->turn(picture_row(picture, y), picture->width, turn);
}

void colour_grayscale(const struct picture *picture)
{
	const struct colour_kernels *kernels = colour_kernels();

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->gray(picture_row(picture, y), picture->width);
}

static void colour_invert_from(const struct picture *picture, unsigned threshold, unsigned mask)
{
	const struct colour_kernels *kernels = colour_kernels();

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->invert(picture_row(picture, y), picture->width, threshold, (uint8_t)mask);
}

void colour_invert(const struct picture *picture)
{
	colour_invert_from(picture, 0, 0xff);
}

void colour_posterize(const struct picture *picture, unsigned bits)
{
	colour_invert_from(picture, 256, 0xff00u >> bits);
}

void colour_solarize(const struct picture *picture, double threshold)
{
	unsigned first = 0;

	while (first < 256 && first < threshold)
		first++;
	colour_invert_from(picture, first, 0xff);
}

/* ---- tables ---- */

static void colour_map(const struct picture *picture, uint8_t table[3][256])
{
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *pixel = picture_row(picture, y);

		for (uint32_t x = 0; x < picture->width; x++, pixel += 4) {
			pixel[0] = table[0][pixel[0]];
			pixel[1] = table[1][pixel[1]];
			pixel[2] = table[2][pixel[2]];
		}
	}
}

static void colour_stretch(uint8_t table[256], uint8_t low, uint8_t high)
{
	double scale = 255.0 / (high - low), offset = -low * scale;

	for (unsigned i = 0; i < 256; i++) {
		double value = i * scale + offset;

		table[i] = (uint8_t)BASE_MAX(0.0, BASE_MIN(value, 255.0));
	}
}

static void colour_same(uint8_t table[256])
{
	for (unsigned i = 0; i < 256; i++)
		table[i] = (uint8_t)i;
}

void colour_solarize_add(const struct picture *picture, unsigned more)
{
	uint8_t table[3][256];

	for (unsigned i = 0; i < 256; i++)
		table[0][i] = (uint8_t)(i < 128 ? BASE_MIN(i + more, 255u) : i);
	memcpy(table[1], table[0], sizeof(table[0]));
	memcpy(table[2], table[0], sizeof(table[0]));
	colour_map(picture, table);
}

void colour_autocontrast(const struct picture *picture)
{
	const struct colour_kernels *kernels = colour_kernels();
	uint8_t low[4] = {255, 255, 255, 255}, high[4] = {0}, table[3][256];

	for (uint32_t y = 0; y < picture->height; y++)
		kernels->extremes(picture_row(picture, y), picture->width, low, high);
	for (unsigned c = 0; c < 3; c++) {
		if (high[c] > low[c])
			colour_stretch(table[c], low[c], high[c]);
		else
			colour_same(table[c]);
	}
	colour_map(picture, table);
}

/* How often each value is there. Neighbours are alike, and a counter that was just written takes
 * long to be read again: so two sets of counters take turns. */
static void colour_count(const struct picture *picture, uint32_t count[3][256])
{
	uint32_t odd[3][256] = {0};

	for (uint32_t y = 0; y < picture->height; y++) {
		const uint8_t *pixel = picture_row(picture, y);
		uint32_t x = 0;

		for (; x + 2 <= picture->width; x += 2, pixel += 8) {
			for (unsigned c = 0; c < 3; c++) {
				count[c][pixel[c]]++;
				odd[c][pixel[c + 4]]++;
			}
		}
		for (unsigned c = 0; x < picture->width && c < 3; c++)
			count[c][pixel[c]]++;
	}
	for (unsigned c = 0; c < 3; c++) {
		for (unsigned i = 0; i < 256; i++)
			count[c][i] += odd[c][i];
	}
}

static void colour_level(const uint32_t count[256], uint8_t table[256])
{
	uint32_t sum = 0, last = 0, step;

	for (unsigned i = 0; i < 256; i++) {
		sum += count[i];
		last = count[i] > 0 ? count[i] : last;
	}
	step = (sum - last) / 255;
	if (step == 0) {
		colour_same(table);
		return;
	}
	sum = step / 2;
	for (unsigned i = 0; i < 256; i++) {
		table[i] = (uint8_t)BASE_MIN(sum / step, 255u);
		sum += count[i];
	}
}

void colour_equalize(const struct picture *picture)
{
	uint32_t count[3][256] = {0};
	uint8_t table[3][256];

	colour_count(picture, count);
	for (unsigned c = 0; c < 3; c++)
		colour_level(count[c], table[c]);
	colour_map(picture, table);
}
