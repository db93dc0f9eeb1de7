/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records from anywhere, in memory that ends where they do: as fields, ragged ones, too, and as a picture
 * that goes through a pipeline, alone and with fields, masks, further pictures and files of other media beside it, and as points with boxes. The first byte of the input is left out of the record, so that its begin is not aligned either.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "pipeline/forms/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const fuzz_spec[] = {
    "[{\"op\":\"record\",\"fields\":[[3,2,3],[4]]}]",
    "[{\"op\":\"decode\",\"source\":\"record\"},{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"record\",\"fields\":[[3,3,2],[1,5],[13,2]],\"kinds\":[1,2,0]}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1,5],[6,2]],\"kinds\":[2,1]},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[1,3]],\"kinds\":[3,4]},"
    "{\"op\":\"hflip\"},{\"op\":\"random_resized_crop\",\"size\":[4,6]},{\"op\":\"pad\","
    "\"padding\":1},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[1,9],[9]],\"kinds\":[3,5,6]},"
    "{\"op\":\"random_zoom_out\"},{\"op\":\"random_iou_crop\",\"trials\":3},{\"op\":\"hflip\"},"
    "{\"op\":\"affine\",\"degrees\":30,\"scale\":[0.5,2]},"
    "{\"op\":\"random_perspective\",\"distortion_scale\":1},"
    "{\"op\":\"random_resized_crop\",\"size\":[4,6]},{\"op\":\"rotate\",\"degrees\":9,\"expand\":"
    "true},"
    "{\"op\":\"center_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[3,3,3,3]],\"kinds\":[3,7],"
    "\"flip_"
    "indices\":[1,0,2]},"
    "{\"op\":\"hflip\",\"p\":1},{\"op\":\"affine\",\"degrees\":30,\"scale\":[0.5,2]},"
    "{\"op\":\"random_resized_crop\",\"size\":[4,6]},{\"op\":\"elastic_transform\",\"sigma\":[0.2,"
    "0.2]},"
    "{\"op\":\"random_perspective\",\"distortion_scale\":1},"
    "{\"op\":\"random_resized_crop\",\"size\":[4,6]}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1],[1,2],[1]],\"kinds\":[8,9,8],"
    "\"names\":[\"a\",\"b\",\"c\"]},{\"op\":\"gaussian_blur\",\"kernel_size\":3},"
    "{\"op\":\"random_crop\",\"size\":2,\"padding\":1},{\"op\":\"hflip\"},"
    "{\"op\":\"random_resized_crop\",\"size\":[4,6]},{\"op\":\"resize\",\"size\":5},"
    "{\"op\":\"center_crop\",\"size\":[3,7]},{\"op\":\"normalize\",\"mean\":0,\"std\":1},"
    "{\"op\":\"normalize\",\"mean\":0,\"std\":2,\"of\":[\"b\"]},{\"op\":\"view\",\"names\":[\"c\"]}"
    ","
    "{\"op\":\"random_crop\",\"size\":2}]",
    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1],[1]],\"kinds\":[10,10],"
    "\"names\":[\"a\",\"b\"]},{\"op\":\"center_crop\",\"size\":4},{\"op\":\"view\",\"names\":"
    "[\"a\"]},{\"op\":\"cloud\",\"points\":8},{\"op\":\"view\",\"names\":[\"b\"]},"
    "{\"op\":\"volume\"},{\"op\":\"random_crop_3d\",\"size\":3}]",
    "[{\"op\":\"cloud\",\"points\":8,\"source\":\"record\",\"fields\":[[3,2,9],[4,2]],"
    "\"kinds\":[11,4]},{\"op\":\"point_rotation\",\"axis\":\"z\"},{\"op\":\"point_flip\","
    "\"axis\":\"x\"},{\"op\":\"point_scale\"},{\"op\":\"point_translation\",\"translate\":1},"
    "{\"op\":\"point_range\",\"range\":[-9,-9,-9,9,9,9]},{\"op\":\"point_unit\"}]",
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

/* What is believed lies within the bytes. */
static void fuzz_parse(const uint8_t *data, size_t size)
{
	struct pipeline_error error;
	struct packed record;

	if (packed_parse(data, size, &record, &error) != 0)
		return;
	if (record.n < 1 || record.n > PIPELINE_MAX_FIELDS)
		abort();
	for (unsigned f = 0; f < record.n; f++)
		if (record.field[f].at > size || record.field[f].bytes > size - record.field[f].at)
			abort();
}

/* None is beyond its field's bound. */
static void fuzz_lengths(unsigned spec, const struct pipeline_out *out)
{
	static const unsigned field[FUZZ_SPECS] = {[2] = 3, [3] = 4, [4] = 4, [6] = 4, [9] = 5};
	static const int64_t most[FUZZ_SPECS][2] = {
	    [2] = {3, 5}, [3] = {5, 2}, [4] = {3, 3}, [6] = {3, 3}, [9] = {2, 2}};
	int64_t length;

	for (unsigned i = 0; i < 2 && field[spec]; i++) {
		memcpy(&length, out->field[field[spec] + i], sizeof(length));
		if (length < 0 || length > most[spec][i])
			abort();
	}
}

/* Places of key points are numbers, whatever they were. */
static void fuzz_points(const struct pipeline_out *out)
{
	const float(*point)[3] = out->field[3];

	for (unsigned i = 0; i < 9; i++)
		if (!isfinite(point[i][0]) || !isfinite(point[i][1]))
			abort();
}

/* Boxes in space have places, and those that are gone are zeros. */
static void fuzz_boxes(const struct pipeline_out *out)
{
	const float(*box)[9] = out->field[3];
	int64_t length;

	memcpy(&length, out->field[5], sizeof(length));
	for (int64_t i = 0; i < 2; i++)
		for (unsigned k = 0; k < 7; k++)
			if (i < length ? !isfinite(box[i][k]) : box[i][k] != 0)
				abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(64) uint8_t field[PIPELINE_MAX_FIELDS][128];
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	struct pipeline_out out;
	uint8_t *copy;

	if (size < 1 || size > 1 << 16)
		return 0;
	fuzz_init();
	copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	fuzz_parse(copy + 1, size - 1);
	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = field[f];
	for (unsigned i = 0; i < FUZZ_SPECS; i++)
		if (pipeline_run_sample(fuzz_run[i], 1, copy + 1, size - 1, 0, &key, &out,
					&error) == 0) {
			fuzz_lengths(i, &out);
			if (i == 6)
				fuzz_points(&out);
			if (i == 9)
				fuzz_boxes(&out);
		}
	free(copy);
	return 0;
}
