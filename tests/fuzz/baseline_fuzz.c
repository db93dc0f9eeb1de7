/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a JPEG, through the quick decoder with every set of kernels and through
 * libjpeg-turbo. The quick decoder may leave a file to the other, from the head or later; if it gives
 * all rows of the part, libjpeg-turbo must take the file, too, and have the same pixels there, with
 * or without warnings. The first four bytes of the input choose the part, the fifth one the scale, the
 * rest is the file. Pictures of many pixels are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>
#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"
#include "tests/pipeline/jpeg_oracle.h"

#define FUZZ_PIXELS (1 << 18)
#define FUZZ_CHOICE 5
#define FUZZ_KERNELS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct baseline *fuzz_baseline[FUZZ_KERNELS];
static struct oracle_picture fuzz_picture;

/* Once; handles are kept from input to input on purpose, as a worker keeps them. */
static void fuzz_init(void)
{
	for (unsigned i = 0; i < FUZZ_KERNELS && !fuzz_baseline[i]; i++) {
		if (baseline_new(&fuzz_baseline[i]) != 0)
			abort();
		if (i == 1)
			fuzz_baseline[i]->kernels = &baseline_kernels_plain;
	}
}

static void fuzz_span(uint8_t first, uint8_t second, uint32_t size, uint32_t *ret_first,
		      uint32_t *ret_size)
{
	*ret_first = (uint32_t)((uint64_t)first * size / 256);
	*ret_size = 1 + (uint32_t)((uint64_t)second * (size - *ret_first) / 256);
}

/* Whether all rows of the part came; they are in rgb then. */
static bool fuzz_decode(struct baseline *baseline, const struct picture_box *box, uint8_t *rgb)
{
	struct decode_band band;

	if (baseline_start(baseline, box) != 0)
		abort();
	for (uint32_t y = 0; y < box->height; y += band.rows) {
		if (baseline_next(baseline, &band) != 0)
			return false;
		if (band.rows == 0 || band.rows > box->height - y)
			abort();
		for (uint32_t i = 0; i < band.rows; i++) {
			for (size_t x = 0; x < (size_t)box->width * 3; x++)
				*rgb++ = band.plane[x % 3][i * band.stride + x / 3];
		}
	}
	return true;
}

static void fuzz_compare(const struct picture_box *box, const uint8_t *rgb)
{
	for (uint32_t y = 0; y < box->height; y++) {
		size_t at = ((size_t)(box->top + y) * fuzz_picture.width + box->left) * 3;

		if (memcmp(fuzz_picture.rgb + at, rgb, (size_t)box->width * 3) != 0)
			abort();
		rgb += (size_t)box->width * 3;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t rgb[FUZZ_KERNELS][FUZZ_PIXELS * 3];
	const uint8_t *file = data + FUZZ_CHOICE;
	bool came[FUZZ_KERNELS];
	struct picture_box box;
	uint32_t height, width;

	if (size < FUZZ_CHOICE)
		return 0;
	fuzz_init();
	fuzz_picture.shift = data[FUZZ_CHOICE - 1] & 3;
	size -= FUZZ_CHOICE;
	for (unsigned i = 0; i < FUZZ_KERNELS; i++) {
		if (baseline_open(fuzz_baseline[i], file, size, &height, &width) != 0 ||
		    (uint64_t)height * width > FUZZ_PIXELS ||
		    baseline_reduce(fuzz_baseline[i], fuzz_picture.shift) != 0)
			return 0;
		height = fuzz_baseline[i]->height;
		width = fuzz_baseline[i]->width;
		fuzz_span(data[0], data[1], height, &box.top, &box.height);
		fuzz_span(data[2], data[3], width, &box.left, &box.width);
		came[i] = fuzz_decode(fuzz_baseline[i], &box, rgb[i]);
	}
	/* Numbers that decoders differ on are refused by the plain kernels more often. */
	if (came[1] && !came[0])
		abort();
	if (!came[0])
		return 0;
	if (oracle_decode(file, size, FUZZ_PIXELS, &fuzz_picture) != 0 ||
	    fuzz_picture.height != height || fuzz_picture.width != width)
		abort();
	for (unsigned i = 0; i < FUZZ_KERNELS; i++) {
		if (came[i])
			fuzz_compare(&box, rgb[i]);
	}
	return 0;
}
