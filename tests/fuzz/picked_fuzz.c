/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample's files, features or columns from anywhere, in memory that ends where they do: to fields, and a picture with a mask and
 * boxes beside it. Each input is tried as it is and once more with the checksum of each block made right.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const fuzz_spec[] = {
    "[{\"op\":\"record\",\"members\":[\"cls\",\"npy\",\"json:n\",\"txt\",\"json\"],"
    "\"fields\":[[4],[4,3],[3,2,2],[1,5],[1,30]],\"kinds\":[0,1,1,2,2]}]",
    "[{\"op\":\"decode\",\"members\":[\"jpg;ppm\",\"pgm\",\"json:b/boxes\",\"json:b/n\"],"
    "\"fields\":[[1],[3,3,4],[6,3]],\"kinds\":[5,3,4]},{\"op\":\"hflip\"},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"record\",\"members\":[\"a.json:text\",\"b.json:n\",\"a.json:n\",\"b.json:text\"],"
    "\"fields\":[[1,40],[3,2,2],[3,2,2],[1,5]],\"kinds\":[2,1,1,2]}]",
    "[{\"op\":\"decode\",\"members\":[\"p\",\"n\",\"f\",\"raw\",\"txt\",\"j:n\"],"
    "\"fields\":[[8,5],[3,3,4],[7,4],[1,9],[4,3]],\"kinds\":[1,3,1,2,1]},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"decode\",\"columns\":[\"n:int\",\"pair:ndarray:int16:2,2\",\"a:ndarray\",\"t:str\","
    "\"j:json\","
    "\"raw:bytes\",\"p:png\"],\"members\":[\"p\",\"a\",\"t\",\"j:n\",\"raw\",\"n\",\"pair\"],"
    "\"fields\":[[4,3],[1,9],[4,3],[9,4],[4],[4,2,2]],\"kinds\":[1,2,1,1,0,0]},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)

static struct pipeline_run *fuzz_run[FUZZ_SPECS];

static void fuzz_init(void)
{
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

/* Of ragged fields none is beyond its bound. */
static void fuzz_lengths(unsigned spec, const struct pipeline_out *out)
{
	static const unsigned first[FUZZ_SPECS] = {5, 5, 4, 7, 8};
	static const int64_t most[FUZZ_SPECS][5] = {
	    {3, 2, 5, 30}, {3, 3}, {40, 2, 2, 5}, {5, 3, 4, 9, 3}, {3, 9, 3, 4}};
	int64_t length;

	for (unsigned i = 0; i < 5 && most[spec][i] > 0; i++) {
		memcpy(&length, out->field[first[spec] + i], sizeof(length));
		if (length < 0 || length > most[spec][i])
			abort();
	}
}

static void fuzz_samples(const uint8_t *data, size_t size)
{
	static _Alignas(64) uint8_t field[PIPELINE_MAX_FIELDS][128];
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	struct pipeline_out out;

	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = field[f];
	for (unsigned i = 0; i < FUZZ_SPECS; i++)
		if (pipeline_run_sample(fuzz_run[i], 1, data, size, 0, &key, &out, &error) == 0)
			fuzz_lengths(i, &out);
}

static void make_sum_right(uint8_t *block)
{
	struct tar_header header;

	memcpy(&header, block, sizeof(header));
	if (header.magic[0] != 'u')
		return;
	snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
	memcpy(block, &header, sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < 1 || size > 1 << 16)
		return 0;
	fuzz_init();
	copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	fuzz_samples(copy, size);
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK)
		make_sum_right(copy + at);
	fuzz_samples(copy, size);
	free(copy);
	return 0;
}
