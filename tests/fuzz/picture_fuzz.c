/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a picture, through a training pipeline by both engines: the same outcome,
 * text and pixels. The first byte of the input chooses the sample's draws, the rest is the file.
 * Pictures of many pixels are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>
#include "pipeline/decode.h"
#include "pipeline/engine.h"
#include "pipeline/spec.h"

#define FUZZ_PIXELS (1 << 20)
#define FUZZ_BYTES (24 * 40 * 3)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char fuzz_spec[] = "[{\"op\":\"decode\",\"exif_transpose\":true},{\"op\":\"random_"
				"resized_crop\",\"size\":[24,40],\"scale\":[0.01,1],"
				"\"ratio\":[0.2,5]},{\"op\":\"hflip\"}]";
static struct op_list fuzz_ops;
static struct shape fuzz_shape;
static struct engine_program *fuzz_program[2];
static struct engine_scratch *fuzz_scratch[2];
static const struct engine *const fuzz_engine[2] = {&engine_plain, &engine_fused};

/* Once; scratch is kept from input to input on purpose, as a worker keeps it. */
static void fuzz_init(void)
{
	struct diag diag;

	if (fuzz_program[0])
		return;
	if (spec_parse(fuzz_spec, strlen(fuzz_spec), &fuzz_ops, &diag) != 0 ||
	    shape_infer(&fuzz_ops, &fuzz_shape, &diag) != 0)
		abort();
	for (unsigned i = 0; i < 2; i++) {
		if (fuzz_engine[i]->compile(&fuzz_ops, &fuzz_shape, &fuzz_program[i]) != 0 ||
		    fuzz_engine[i]->scratch_new(fuzz_program[i], &fuzz_scratch[i]) != 0)
			abort();
	}
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[2][FUZZ_BYTES];
	struct pipeline_error error[2];
	struct pipeline_key key = {1, 2, 0};
	int r[2];

	if (size < 1)
		return 0;
	fuzz_init();
	key.sample = data[0];
	if (!fuzz_is_small(data + 1, size - 1))
		return 0;
	memset(error, 0, sizeof(error));
	for (unsigned i = 0; i < 2; i++)
		r[i] = fuzz_engine[i]->run(fuzz_program[i], fuzz_scratch[i], data + 1, size - 1,
					   &key, out[i], &error[i]);
	if (r[0] != r[1] || memcmp(&error[0], &error[1], sizeof(error[0])) != 0)
		abort();
	if (r[0] == 0 && memcmp(out[0], out[1], FUZZ_BYTES) != 0)
		abort();
	return 0;
}
