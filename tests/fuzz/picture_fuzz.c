/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a picture, through a training pipeline by both engines: the same outcome,
 * text and pixels. The first byte of the input chooses the sample's draws, and with its highest bit
 * another pipeline, in which decode may be fast; the rest is the file.
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
	return 0;
}
