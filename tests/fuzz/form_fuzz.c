/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored forms of bytes that claim to be a JPEG. The first byte of the input says what is done.
 *
 * Even: the rest is a form as somebody may have stored it, with the right checksum, and is decoded: any
 * outcome, no harm.
 *
 * Odd: a form is made of the file behind the next six bytes. With a crop index the quick decoder gives,
 * for the part and the scale that those choose, the rows it gives without, or none where that gives
 * none. Then one byte of the index is changed: any rows, no harm.
 *
 * Pictures of many pixels are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "pipeline/baseline.h"
#include "pipeline/decode.h"
#include "pipeline/form.h"

#define FUZZ_PIXELS (1 << 18)
#define FUZZ_CHOICE 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct baseline *fuzz_baseline;
static struct decode *fuzz_decode;

/* Once; handles are kept from input to input on purpose, as a worker keeps them. */
static void fuzz_init(void)
{
	if (!fuzz_baseline && (baseline_new(&fuzz_baseline) != 0 || decode_new(&fuzz_decode) != 0))
		abort();
}

static void fuzz_span(uint8_t first, uint8_t second, uint32_t size, uint32_t *ret_first,
		      uint32_t *ret_size)
{
	*ret_first = (uint32_t)((uint64_t)first * size / 256);
	*ret_size = 1 + (uint32_t)((uint64_t)second * (size - *ret_first) / 256);
}

/* A copy with the checksum of its first 32 bytes, the index and the file's first KiB made right. */
static uint8_t *fuzz_sum(const uint8_t *data, size_t size)
{
	uint8_t *form = malloc(size + 1);
	size_t end = size;
	uint64_t sum;

	if (!form)
		abort();
	memcpy(form, data, size);
	if (size < 32)
		return form;
	end = 32 + ((size_t)form[20] | (size_t)form[21] << 8 | (size_t)form[22] << 16) + 1024;
	sum = hash_checksum(form + 16, BASE_MIN(end, size) - 16);
	for (unsigned i = 0; i < 8; i++)
		form[8 + i] = (uint8_t)(sum >> 8 * i);
	return form;
}

static void fuzz_stored(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *form = fuzz_sum(data, size);
	struct pipeline_error error;
	struct picture_box box = {0};
	struct decode_band band;
	int r;

	if (decode_open(fuzz_decode, form, size, &box.height, &box.width, &error) != 0)
		return;
	if ((uint64_t)box.height * box.width <= FUZZ_PIXELS) {
		box.top = box.height / 2;
		box.height -= box.top;
		do {
			r = decode_band_start(fuzz_decode, &box, &error);
			for (uint32_t y = 0; r == 0 && y < box.height; y += band.rows)
				r = decode_band_next(fuzz_decode, &band, &error);
		} while (r == DECODE_E_AGAIN);
	}
	decode_close(fuzz_decode);
}

/* All rows of box into rgb; false: none. */
static bool fuzz_rows(const struct picture_box *box, uint8_t *rgb)
{
	struct decode_band band;

	if (baseline_start(fuzz_baseline, box) != 0)
		abort();
	for (uint32_t y = 0; y < box->height; y += band.rows) {
		if (baseline_next(fuzz_baseline, &band) != 0)
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

static void fuzz_index(const uint8_t *choice, const uint8_t *file, size_t size)
{
	static uint8_t rgb[2][FUZZ_PIXELS * 3];
	const unsigned shift = choice[0] >> 1 & 3;
	const uint32_t step = 1 + (choice[0] >> 3 & 7);
	_cleanup_free_ uint8_t *index = NULL;
	struct picture_box box;
	uint32_t height, width;
	size_t index_size;

	if (baseline_open(fuzz_baseline, file, size, &height, &width) != 0 ||
	    (uint64_t)height * width > FUZZ_PIXELS ||
	    baseline_index_make(fuzz_baseline, step, &index, &index_size) != 0 ||
	    baseline_reduce(fuzz_baseline, shift) != 0)
		return;
	height = (height + (1u << shift) - 1) >> shift;
	width = (width + (1u << shift) - 1) >> shift;
	fuzz_span(choice[1], choice[2], height, &box.top, &box.height);
	fuzz_span(choice[3], choice[4], width, &box.left, &box.width);
	if (!fuzz_rows(&box, rgb[0])) {
		/* Numbers that decoders differ on: the same with an index. */
		if (baseline_index_use(fuzz_baseline, index, index_size) != 0 ||
		    fuzz_rows(&box, rgb[1]))
			abort();
		return;
	}
	if (baseline_index_use(fuzz_baseline, index, index_size) != 0 || !fuzz_rows(&box, rgb[1]) ||
	    memcmp(rgb[0], rgb[1], (size_t)box.height * box.width * 3) != 0)
		abort();
	index[8 + choice[5] * (index_size - 8) / 256] ^= choice[6];
	if (baseline_index_use(fuzz_baseline, index, index_size) == 0)
		fuzz_rows(&box, rgb[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < FUZZ_CHOICE)
		return 0;
	fuzz_init();
	if (data[0] & 1)
		fuzz_index(data, data + FUZZ_CHOICE, size - FUZZ_CHOICE);
	else
		fuzz_stored(data + 1, size - 1);
	return 0;
}
