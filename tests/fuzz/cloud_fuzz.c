/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a point cloud, in memory that ends where they do. The first byte of the input chooses the pipeline and
 * the sample's draws. What comes out is as long as it says, with coordinates that are finite where no op made them large, and
 * the same points or zeros behind; on meshes there are as many as were asked for.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_POINTS 64
#define FUZZ_CHANNELS 7

static const struct {
	const char *text;
	unsigned channels;
	bool repeats;
} fuzz_spec[] = {
    {"[{\"op\":\"cloud\",\"points\":64}]", 3, true},
    {"[{\"op\":\"cloud\",\"points\":64,\"channels\":4,\"raw_columns\":5,\"padding\":\"zero\"},"
     "{\"op\":\"point_range\",\"range\":[-50,-50,-50,50,50,50]},{\"op\":\"point_rotation\","
     "\"axis\":\"any\"},"
     "{\"op\":\"point_dropout\"},{\"op\":\"point_jitter\"},{\"op\":\"point_unit\"}]",
     4, false},
    {"[{\"op\":\"cloud\",\"points\":64,\"padding\":\"zero\",\"pick\":\"even\",\"properties\":["
     "\"x\",\"y\",\"z\",\"red\"]}]",
     4, false},
    {"[{\"op\":\"cloud\",\"points\":64,\"channels\":7,\"raw_columns\":7,\"normals\":4},{\"op\":"
     "\"point_sample\",\"points\":32},"
     "{\"op\":\"point_flip\",\"axis\":\"x\"},{\"op\":\"point_scale\"},{\"op\":\"point_"
     "translation\",\"translate\":1},"
     "{\"op\":\"point_shuffle\"},{\"op\":\"point_center\",\"by\":\"box\"}]",
     7, false},
    {"[{\"op\":\"cloud\",\"points\":64,\"surface\":true,\"channels\":6,\"normals\":3}]", 6, true},
    {"[{\"op\":\"cloud\",\"points\":64,\"surface\":true,\"pick\":\"even\"}]", 3, true},
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)

static struct pipeline_run *fuzz_run[FUZZ_SPECS];

static void fuzz_init(void)
{
	for (unsigned i = 0; i < FUZZ_SPECS && !fuzz_run[i]; i++) {
		struct pipeline *pipeline; /* the run's, for ever */
		const struct pipeline *one;
		struct diag diag;

		if (pipeline_compile(fuzz_spec[i].text, strlen(fuzz_spec[i].text), &pipeline,
				     &diag) != 0)
			abort();
		one = pipeline;
		if (pipeline_run_new(&one, 1, &fuzz_run[i]) != 0)
			abort();
	}
}

static void fuzz_check(unsigned spec, const float *points, int64_t length)
{
	const int64_t channels = fuzz_spec[spec].channels, most = spec == 3 ? 32 : FUZZ_POINTS;

	if (length < 0 || length > most)
		abort();
	for (int64_t i = 0; i < length && (spec == 0 || spec == 2 || spec > 3); i++)
		for (unsigned k = 0; k < 3; k++)
			if (!isfinite(points[i * channels + k]))
				abort();
	for (int64_t i = length * channels; spec != 3 && i < most * channels; i++) {
		const float wanted =
		    fuzz_spec[spec].repeats && length > 0 ? points[i - length * channels] : 0;

		if (points[i] != wanted)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	float points[FUZZ_POINTS * FUZZ_CHANNELS];
	int64_t label, length = -1;
	const struct pipeline_out out = {.field = {points, &label, &length}};
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	uint8_t *copy;
	unsigned spec;

	if (size < 1 || size > 1 << 16)
		return 0;
	fuzz_init();
	spec = data[0] % FUZZ_SPECS;
	key.sample = data[0] >> 2;
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (pipeline_run_sample(fuzz_run[spec], 1, copy, size - 1, 7, &key, &out, &error) == 0)
		fuzz_check(spec, points, length);
	free(copy);
	return 0;
}
