/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a picture, through a training pipeline by both engines: the same outcome,
 * text and pixels. The first byte of the input chooses the sample's draws, and with its highest bit
 * another pipeline, in which decode may be fast; the rest is the file. Then, by libraries alone, a part
 * in bands against the whole picture.
 * Pictures of many pixels are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>
#include "pipeline/formats/decode.h"
#include "pipeline/spec/spec.h"
#include "tests/pipeline/engine_plain.h"

#define FUZZ_PIXELS (1 << 20)
#define FUZZ_BYTES (24 * 40 * 3)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ASan fills new memory as far as it is told; what libheif shows of damaged pictures is the same each time then. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_malloc_fill_size=16777216";
}

static const char *const fuzz_spec[] = {
    "[{\"op\":\"decode\",\"exif_transpose\":true},{\"op\":\"random_resized_crop\",\"size\":[24,40],"
    "\"scale\":[0.01,1],\"ratio\":[0.2,5]},{\"op\":\"hflip\"}]",
    "[{\"op\":\"decode\",\"exif_transpose\":true,\"fast\":true},{\"op\":\"random_resized_crop\","
    "\"size\":[4,6],\"scale\":[0.1,1],\"ratio\":[0.5,2]},{\"op\":\"hflip\"}]",
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)
static struct fuzz_case {
	struct op_list ops;
	struct shape shape;
	struct engine_program *program[2];
	struct engine_scratch *scratch[2];
} fuzz_cases[FUZZ_SPECS];
static const struct engine *const fuzz_engine[2] = {&engine_plain, &engine_fused};
static struct decode *fuzz_library;
static struct picture_buffer fuzz_buffer;

static void fuzz_case_init(struct fuzz_case *c, const char *spec)
{
	struct diag diag;

	if (spec_parse(spec, strlen(spec), &c->ops, &diag) != 0 ||
	    shape_infer(&c->ops, &c->shape, &diag) != 0)
		abort();
	for (unsigned i = 0; i < 2; i++) {
		if (fuzz_engine[i]->compile(&c->ops, &c->shape, &c->program[i]) != 0 ||
		    fuzz_engine[i]->scratch_new(c->program[i], &c->scratch[i]) != 0)
			abort();
	}
}

/* Once; scratch is kept from input to input on purpose, as a worker keeps it. */
static void fuzz_init(void)
{
	for (unsigned i = 0; i < FUZZ_SPECS && !fuzz_cases[i].program[0]; i++)
		fuzz_case_init(&fuzz_cases[i], fuzz_spec[i]);
	if (!fuzz_library && decode_new(&fuzz_library) != 0)
		abort();
	decode_by_library(fuzz_library);
}

static bool fuzz_is_small(const uint8_t *data, size_t size)
{
	struct pipeline_error error;
	struct decode *decode;
	uint32_t height = 0, width = 0;

	if (decode_new(&decode) != 0)
		abort();
	if (decode_open(decode, data, size, &height, &width, &error) != 0)
		height = width = 0;
	decode_free(decode);
	return (uint64_t)height * width <= FUZZ_PIXELS;
}

/* All bands of box, compared with part if it is given. */
static int fuzz_bands(const struct picture_box *box, const struct picture *part,
		      struct pipeline_error *ret_error)
{
	struct decode_band band = {.rows = 0};
	int r = decode_band_start(fuzz_library, box, ret_error);

	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = decode_band_next(fuzz_library, &band, ret_error);
		if (r == 0 && (band.rows == 0 || band.rows > box->height - y))
			abort();
		for (size_t i = 0; r == 0 && part && i < (size_t)band.rows * box->width * 3; i++) {
			const uint32_t row = (uint32_t)(i / 3 / box->width);
			const uint32_t x = (uint32_t)(i / 3 % box->width);

			if (band.plane[i % 3][row * band.stride + x] !=
			    picture_row(part, y + row)[4 * x + i % 3])
				abort();
		}
	}
	return r;
}

static void fuzz_by_library(const uint8_t *data, size_t size, uint8_t choice)
{
	struct pipeline_error a = {0}, b = {0};
	struct picture whole, part;
	struct picture_box box;
	uint32_t height, width;
	int r = decode_open(fuzz_library, data, size, &height, &width, &a), s;

	if (r != 0)
		return;
	r = decode_whole(fuzz_library, &fuzz_buffer, &whole, &a);
	box.top = height * (choice & 15u) / 20;
	box.left = width * (choice >> 4) / 20;
	box.height = height - box.top - (height - box.top) * (choice & 3u) / 5;
	box.width = width - box.left - (width - box.left) * (choice >> 6) / 5;
	if (r == 0)
		part = picture_part(&whole, &box);
	if (decode_open(fuzz_library, data, size, &height, &width, &b) != 0)
		abort();
	do {
		s = fuzz_bands(&box, r == 0 ? &part : NULL, &b);
	} while (s == DECODE_E_AGAIN);
	if (r != s || memcmp(&a, &b, sizeof(a)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[2][FUZZ_BYTES];
	struct pipeline_error error[2];
	struct pipeline_key key = {1, 2, 0};
	const struct fuzz_case *c;
	int r[2];

	if (size < 1)
		return 0;
	fuzz_init();
	key.sample = data[0] & 127;
	c = &fuzz_cases[data[0] >> 7];
	if (!fuzz_is_small(data + 1, size - 1))
		return 0;
	memset(error, 0, sizeof(error));
	for (unsigned i = 0; i < 2; i++)
		r[i] = fuzz_engine[i]->run(c->program[i], c->scratch[i], data + 1, size - 1, &key,
					   out[i], &error[i]);
	if (r[0] != r[1] || memcmp(&error[0], &error[1], sizeof(error[0])) != 0)
		abort();
	if (r[0] == 0 && memcmp(out[0], out[1], (size_t)c->shape.height * c->shape.width * 3) != 0)
		abort();
	fuzz_by_library(data + 1, size - 1, data[0]);
	return 0;
}
