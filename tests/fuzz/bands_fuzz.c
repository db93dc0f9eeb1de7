/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a file of numbers, in memory that ends where they do. The first byte of the input chooses the pipeline and the
 * sample's draws. What is clamped lies within, or is no number. Files of many numbers are left out: they are slow and nothing else.
 */

#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/decode.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_NUMBERS (1 << 20)
#define FUZZ_VALUES (3 * 8 * 8)

#define FUZZ_ONE "[{\"op\":\"bands\",\"bands\":[0],\"clamp\":[0,900]},"
#define FUZZ_THREE "[{\"op\":\"bands\",\"channels\":3,\"scale\":0.5,\"clamp\":[0,900]},"
#define FUZZ_PICKED "[{\"op\":\"bands\",\"bands\":[5,0,12],\"clamp\":[0,900]},"

static const char *const fuzz_spec[] = {
    (FUZZ_ONE "{\"op\":\"random_resized_crop\",\"size\":8},{\"op\":\"hflip\"}]"),
    (FUZZ_THREE "{\"op\":\"random_crop\",\"size\":8,\"pad_if_needed\":true}]"),
    (FUZZ_PICKED "{\"op\":\"resize\",\"size\":[8,8],\"interpolation\":\"nearest\"}]"),
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)

static struct pipeline_run *fuzz_run[FUZZ_SPECS];
static struct decode *fuzz_decode;

static void fuzz_init(void)
{
	if (!fuzz_decode && decode_new(&fuzz_decode) != 0)
		abort();
	for (unsigned i = 0; i < FUZZ_SPECS && !fuzz_run[i]; i++) {
		struct pipeline *pipeline; /* the run's, for ever */
		const struct pipeline *one;
		struct diag diag;

		if (pipeline_compile(fuzz_spec[i], strlen(fuzz_spec[i]), &pipeline, &diag) != 0)
			abort();
		one = pipeline;
		if (pipeline_run_new(&one, 1, &fuzz_run[i]) != 0)
			abort();
	}
}

static bool fuzz_is_small(const uint8_t *data, size_t size)
{
	struct decode_numbers_head head;
	struct pipeline_error error;
	bool is_small = decode_numbers_open(fuzz_decode, data, size, &head, &error) != 0 ||
			(uint64_t)head.height * head.width * head.channels <= FUZZ_NUMBERS;

	decode_close(fuzz_decode);
	return is_small;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	float image[FUZZ_VALUES] = {0};
	int64_t label;
	const struct pipeline_out out = {.field = {image, &label}};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	uint8_t *copy;

	if (size < 1 || size > 1 << 16)
		return 0;
	fuzz_init();
	key.sample = data[0] >> 3;
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (fuzz_is_small(copy, size - 1) &&
	    pipeline_run_sample(fuzz_run[(data[0] & 7) % FUZZ_SPECS], 1, copy, size - 1, 7, &key,
				&out, &error) == 0)
		for (unsigned i = 0; i < FUZZ_VALUES; i++)
			if (image[i] < 0 || image[i] > 900)
				abort();
	free(copy);
	return 0;
}
