/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored forms of bytes that claim to be a JPEG. The first byte of the input says what is done.
 *
 * Even: the rest is a form as somebody may have stored it, with the right checksum, and is decoded: any
 * outcome, no harm. Kept pixels are named as a pipeline names its own, too, and run through it.
 *
 * Odd: a form is made of the file behind the next six bytes. With a crop index, or packed coefficients, the
 * quick decoder gives, for the part and the scale that those choose, the rows it gives without, or none where that
 * gives none; and from packed coefficients a file comes that has those rows. Then one byte of the
 * index or the coefficients is changed: any rows, no harm.
 *
 * Pictures of many pixels are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "pipeline/formats/decode.h"
#include "pipeline/forms/cut.h"
#include "pipeline/forms/form.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/pipeline.h"

#define FUZZ_PIXELS (1 << 18)
#define FUZZ_CHOICE 7
#define FUZZ_OPS 5 /* of the pipeline, on pictures */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct baseline *fuzz_baseline;
static struct decode *fuzz_decode;
static struct picture_buffer fuzz_buffer;
static struct pipeline *fuzz_pipeline;
static struct pipeline_run *fuzz_run;

/* Once; handles are kept from input to input on purpose, as a worker keeps them. */
static void fuzz_init(void)
{
	static const char text[] =
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":24},{\"op\":\"hflip\",\"p\":1},"
	    "{\"op\":\"center_crop\",\"size\":[16,20]},{\"op\":\"hflip\"},{\"op\":\"cast\"}]";
	const struct pipeline *pipeline;
	struct diag diag;

	if (fuzz_baseline)
		return;
	if (baseline_new(&fuzz_baseline) != 0 || decode_new(&fuzz_decode) != 0 ||
	    pipeline_compile(text, strlen(text), &fuzz_pipeline, &diag) != 0)
		abort();
	pipeline = fuzz_pipeline;
	if (pipeline_run_new(&pipeline, 1, &fuzz_run) != 0)
		abort();
}

static void fuzz_span(uint8_t first, uint8_t second, uint32_t size, uint32_t *ret_first,
		      uint32_t *ret_size)
{
	*ret_first = (uint32_t)((uint64_t)first * size / 256);
	*ret_size = 1 + (uint32_t)((uint64_t)second * (size - *ret_first) / 256);
}

/* The checksum made right: of the head, the index and the file's first KiB; or in all else of its first. */
static void fuzz_sum(uint8_t *form, size_t size)
{
	size_t end = 32 + 1024;
	uint64_t sum;

	if (size < 32)
		return;
	if (form[18] == FORM_INDEXED)
		end += (size_t)form[20] | (size_t)form[21] << 8 | (size_t)form[22] << 16;
	sum = hash_checksum(form + 16, BASE_MIN(end, size) - 16);
	for (unsigned i = 0; i < 8; i++)
		form[8 + i] = (uint8_t)(sum >> 8 * i);
}

/* Kept pixels, from behind one of the pipeline's cuts or not. */
static void fuzz_kept(uint8_t *form, size_t size)
{
	const struct pipeline_key key = {1, 2, 3};
	_cleanup_free_ float *image = malloc(16 * 20 * 3 * sizeof(*image));
	struct pipeline_error error;
	struct hash_id id;
	int64_t label;
	struct pipeline_out out = {.field = {image, &label}};

	if (!image)
		abort();
	if (size < 128 || form[18] != FORM_PIXELS)
		return;
	pipeline_hash_cut(fuzz_pipeline, form[64], &id);
	if (form[64] == FUZZ_OPS) { /* behind all of them, some of which are random */
		pipeline_hash_cut(fuzz_pipeline, PIPELINE_CUT_AUGMENTED, &id);
		cut_instance(&id, &key, &id);
	}
	memcpy(form + 32, &id, sizeof(id));
	fuzz_sum(form, size);
	pipeline_run_sample(fuzz_run, 1, form, size, 0, &key, &out, &error);
}

static void fuzz_stored(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *form = malloc(size + 1);
	struct pipeline_error error;
	struct picture_box box = {0};
	struct decode_band band;
	struct picture picture;
	int r;

	if (!form)
		abort();
	memcpy(form, data, size);
	fuzz_sum(form, size);
	fuzz_kept(form, size);
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
		decode_whole(fuzz_decode, &fuzz_buffer, &picture, &error);
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

static int fuzz_use(bool is_packed, const uint8_t *part, size_t size)
{
	return is_packed ? baseline_packed_use(fuzz_baseline, part, size)
			 : baseline_index_use(fuzz_baseline, part, size);
}

/* The file that packed coefficients stand for, if it is one, has the rows of them. */
static void fuzz_restore(const struct picture_box *box, unsigned shift, uint8_t *rgb,
			 const uint8_t *right)
{
	_cleanup_free_ uint8_t *file = NULL;
	uint32_t height, width;
	size_t size;

	if (baseline_restore(fuzz_baseline, &file, &size) != 0) {
		if (right)
			abort();
		return;
	}
	if (baseline_open(fuzz_baseline, file, size, &height, &width) != 0 ||
	    baseline_reduce(fuzz_baseline, shift) != 0 || !fuzz_rows(box, rgb) ||
	    (right && memcmp(rgb, right, (size_t)box->height * box->width * 3) != 0)) {
		if (right)
			abort();
	}
}

static int fuzz_open(const uint8_t *file, size_t size, unsigned shift, struct picture_box *box)
{
	int r = baseline_open(fuzz_baseline, file, size, &box->height, &box->width);

	if (r == 0)
		r = baseline_reduce(fuzz_baseline, shift);
	box->height = (box->height + (1u << shift) - 1) >> shift;
	box->width = (box->width + (1u << shift) - 1) >> shift;
	return r;
}

static void fuzz_made(const uint8_t *choice, const uint8_t *file, size_t size)
{
	static uint8_t rgb[2][FUZZ_PIXELS * 3];
	const unsigned shift = choice[0] >> 1 & 3;
	const bool is_packed = choice[0] >> 7;
	_cleanup_free_ uint8_t *part = NULL;
	struct picture_box all = {0}, box;
	size_t part_size;
	bool came;
	int r;

	if (fuzz_open(file, size, 0, &all) != 0 || (uint64_t)all.height * all.width > FUZZ_PIXELS)
		return;
	r = is_packed
		? baseline_pack(fuzz_baseline, &part, &part_size)
		: baseline_index_make(fuzz_baseline, 1 + (choice[0] >> 3 & 7), &part, &part_size);
	if (r != 0 || fuzz_open(file, size, shift, &all) != 0)
		return;
	fuzz_span(choice[1], choice[2], all.height, &box.top, &box.height);
	fuzz_span(choice[3], choice[4], all.width, &box.left, &box.width);
	came = fuzz_rows(&box, rgb[0]);
	if (is_packed && fuzz_open(file, baseline_front(fuzz_baseline), shift, &all) != 0)
		abort();
	if (fuzz_use(is_packed, part, part_size) != 0 || fuzz_rows(&box, rgb[1]) != came ||
	    (came && memcmp(rgb[0], rgb[1], (size_t)box.height * box.width * 3) != 0))
		abort();
	part[choice[5] * part_size / 256] ^= choice[6];
	if (fuzz_use(is_packed, part, part_size) == 0)
		fuzz_rows(&box, rgb[1]);
	if (is_packed && fuzz_use(true, part, part_size) == 0)
		fuzz_restore(&box, shift, rgb[1], NULL);
	part[choice[5] * part_size / 256] ^= choice[6];
	if (is_packed && fuzz_open(file, size, shift, &all) == 0 &&
	    fuzz_use(true, part, part_size) == 0)
		fuzz_restore(&box, shift, rgb[1], came ? rgb[0] : NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < FUZZ_CHOICE)
		return 0;
	fuzz_init();
	if (data[0] & 1)
		fuzz_made(data, data + FUZZ_CHOICE, size - FUZZ_CHOICE);
	else
		fuzz_stored(data + 1, size - 1);
	return 0;
}
