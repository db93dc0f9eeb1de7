/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a file of numbers, in memory that ends where they do. The first byte of the input chooses the pipeline and the
 * sample's draws. What is clamped lies within, or is no number. Files of many numbers are left out: they are slow and nothing else.
 * A volume's file is its volume of labels, too, where the pipeline takes both of a record; and one of numbers what was measured of their pixels.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/decode.h"
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_NUMBERS (1 << 20)
#define FUZZ_VALUES (3 * 8 * 8)

#define FUZZ_ONE "[{\"op\":\"bands\",\"bands\":[0],\"clamp\":[0,900]},"
#define FUZZ_THREE "[{\"op\":\"bands\",\"channels\":3,\"scale\":0.5,\"clamp\":[0,900]},"
#define FUZZ_PICKED "[{\"op\":\"bands\",\"bands\":[5,0,12],\"clamp\":[0,900]},"

#define FUZZ_VOLUME "[{\"op\":\"volume\",\"clamp\":[0,900]"
#define FUZZ_LABELS ",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[5]"

#define FUZZ_MEASURED(field)                                                                   \
	"[{\"op\":\"bands\",\"bands\":[0],\"clamp\":[0,900],\"source\":\"record\",\"fields\":" \
	"[" field "],\"kinds\":[12]},"

static const char *const fuzz_spec[] = {
    (FUZZ_ONE "{\"op\":\"random_resized_crop\",\"size\":8},{\"op\":\"hflip\"}]"),
    (FUZZ_THREE "{\"op\":\"random_crop\",\"size\":8,\"pad_if_needed\":true}]"),
    (FUZZ_PICKED "{\"op\":\"resize\",\"size\":[8,8],\"interpolation\":\"nearest\"}]"),
    (FUZZ_VOLUME "},{\"op\":\"random_crop_3d\",\"size\":[3,8,8]},{\"op\":\"random_rotate90\"},"
		 "{\"op\":\"random_flip_3d\",\"axes\":[0,2]}]"),
    (FUZZ_VOLUME FUZZ_LABELS "},{\"op\":\"random_crop_by_label\",\"size\":[3,8,8]}]"),
    (FUZZ_MEASURED("[3,3,1]") "{\"op\":\"rotate\",\"degrees\":180},"
			      "{\"op\":\"random_resized_crop\",\"size\":8},{\"op\":\"hflip\"}]"),
    (FUZZ_MEASURED(
	"[3,2,1,3]") "{\"op\":\"resize\",\"size\":20},{\"op\":\"random_crop\",\"size\":8,"
		     "\"pad_if_needed\":true,\"padding\":2}]"),
};
#define FUZZ_SPECS BASE_ARRAY_LEN(fuzz_spec)
#define FUZZ_RECORDS 4 /* from this one on */

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

/* A record of the file, a label, and the file once more; the caller frees it. */
static uint8_t *fuzz_record(const uint8_t *data, size_t size, size_t *ret_size)
{
	const size_t padded = base_align_up(BASE_MAX(size, (size_t)1), PACKED_ALIGN);
	const size_t all = sizeof(struct packed_head) + 2 * padded + PACKED_ALIGN;
	uint8_t *record = calloc(1, all);
	struct packed_head *head = (struct packed_head *)(void *)record;
	size_t at = sizeof(*head);

	if (!record)
		abort();
	*head = (struct packed_head){.magic = PACKED_MAGIC, .bytes = all, .n_fields = 3};
	for (unsigned f = 0; f < 3; f++) {
		const bool is_file = f != 1;

		head->field[f] = (struct packed_place){
		    .dtype = is_file ? PIPELINE_U8 : PIPELINE_I64,
		    .ndim = is_file,
		    .shape = {is_file ? BASE_MAX(size, (size_t)1) : 0},
		    .at = at,
		    .bytes = is_file ? BASE_MAX(size, (size_t)1) : sizeof(int64_t)};
		if (is_file)
			memcpy(record + at, data, size);
		at += is_file ? padded : PACKED_ALIGN;
	}
	*ret_size = all;
	return record;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	float image[FUZZ_VALUES] = {0};
	float beside[FUZZ_VALUES] = {0}; /* labels, or what was measured */
	uint8_t valid[FUZZ_VALUES] = {0};
	int64_t label;
	const struct pipeline_out out = {.field = {image, &label, beside, valid}};
	unsigned spec;
	struct pipeline_key key = {1, 2, 3};
	struct pipeline_error error;
	uint8_t *copy, *whole;
	size_t bytes;

	if (size < 1 || size > 1 << 16)
		return 0;
	fuzz_init();
	spec = (data[0] & 7) % FUZZ_SPECS;
	key.sample = data[0] >> 3;
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	bytes = size - 1;
	whole = spec >= FUZZ_RECORDS ? fuzz_record(copy, bytes, &bytes) : copy;
	if (fuzz_is_small(copy, size - 1) &&
	    pipeline_run_sample(fuzz_run[spec], 1, whole, bytes, 7, &key, &out, &error) == 0)
		for (unsigned i = 0; i < FUZZ_VALUES; i++)
			if (image[i] < 0 || image[i] > 900 || valid[i] > 1 ||
			    (spec > FUZZ_RECORDS && !isfinite(beside[i])))
				abort();
	if (whole != copy)
		free(whole);
	free(copy);
	return 0;
}
