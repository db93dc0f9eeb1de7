/* SPDX-License-Identifier: Apache-2.0 */

/* Records of wrapped data sets: the op's text, what is believed of a record, and pictures in one. */

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "pipeline/forms/packed.h"

#define ROOM 1024

static struct packed_head *head_of(uint8_t *data)
{
	return (struct packed_head *)(void *)data;
}

/* Two fields: six floats 0 .. 5 of shape [2, 3], and a whole number. */
static size_t make(uint8_t *data, int64_t number)
{
	struct packed_head *head = head_of(data);
	float *value = (float *)(void *)(data + 256);

	memset(data, 0, ROOM);
	*head = (struct packed_head){
	    .magic = PACKED_MAGIC,
	    .bytes = 328,
	    .n_fields = 2,
	    .field = {{PIPELINE_F32, 2, {2, 3}, 256, 24}, {PIPELINE_I64, 0, {0}, 320, 8}},
	};
	for (int i = 0; i < 6; i++)
		value[i] = (float)i;
	memcpy(data + 320, &number, sizeof(number));
	return 328;
}

/* A picture of two pixels, red and grey, and its class. */
static size_t make_picture(uint8_t *data, int64_t number)
{
	static const char file[] = "P6\n2 1\n255\n\xff\x00\x00\x80\x80\x80";

	make(data, number);
	head_of(data)->field[0] =
	    (struct packed_place){PIPELINE_U8, 1, {sizeof(file) - 1}, 256, sizeof(file) - 1};
	memcpy(data + 256, file, sizeof(file) - 1);
	return 328;
}

static struct pipeline *compiled(const char *text)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(text, strlen(text), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

/* ---- the text ---- */

#define TWO "{\"op\":\"record\",\"fields\":[[3,2,3],[4]]}"
#define TEN "[1],[1],[1],[1],[1],[1],[1],[1],[1],[1]"
#define TWENTY TEN "," TEN
#define BESIDE(fields, kinds) \
	"{\"op\":\"decode\",\"source\":\"record\",\"fields\":" fields ",\"kinds\":" kinds "},"
#define CROP "{\"op\":\"center_crop\",\"size\":[1,2]}"
#define FLIPPED(kind, indices)                                                              \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,2,3,3]],\"kinds\":[" kind \
	"],\"flip_indices\":[" indices "]}"

static const struct {
	const char *text, *says[2];
} wrong[] = {
    {"[{\"op\":\"record\"}]", {"op 1 (record)", "fields is missing"}},
    {"[{\"op\":\"record\",\"fields\":[]}]", {"op 1 (record)", "empty"}},
    {"[{\"op\":\"record\",\"fields\":[[]]}]", {"op 1 (record)", "[dtype]"}},
    {"[{\"op\":\"record\",\"fields\":[[14,1]]}]", {"unknown dtype", "bfloat16"}},
    {"[{\"op\":\"record\",\"fields\":[[1,0]]}]", {"fields", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1,2,2,2,2,2]]}]", {"four dimensions", ""}},
    {"[{\"op\":\"record\",\"fields\":[[3,65536,65536]]}]", {"1 GiB", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1,2147483647,2147483647,2147483647,2147483647]]}]",
     {"1 GiB", ""}},
    {"[{\"op\":\"record\",\"fields\":[" TWENTY ",[1],[1],[1],[1]]}]", {"more fields than 23", ""}},
    {"[{\"op\":\"record\",\"fields\":[" TWENTY "],\"kinds\":[1]}]", {"as many kinds", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1]],\"kinds\":[1]}]", {"ragged along", ""}},
    {"[{\"op\":\"record\",\"fields\":[[3,4]],\"kinds\":[2]}]", {"a text is of uint8", ""}},
    {"[{\"op\":\"record\",\"fields\":[[3,4]],\"kinds\":[3]}]", {"kinds", "from 0 to 2"}},
    {"[{\"op\":\"record\",\"fields\":[[1],[1]],\"names\":[\"a\"]}]", {"fewer names", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1]],\"names\":[\"a\",\"b\"]}]", {"more names", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1],[1]],\"names\":[\"a\",\"a\"]}]", {"one name", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1]],\"names\":[\"index\"]}]", {"another one", ""}},
    {"[{\"op\":\"record\",\"fields\":[[1]],\"names\":[\"a\\\"b\"]}]", {"names", "letters"}},
    {"[{\"op\":\"record\",\"fields\":[[1]],\"names\":[\"a23456789b23456789c23456\"]}]",
     {"names", "1 to 23"}},
    {"[" BESIDE("[[3,2,3]]", "[3]") CROP "]", {"op 1 (decode)", "shape [most, 4]"}},
    {"[" BESIDE("[[3,2,4],[3,2,4]]", "[3,3]") CROP "]", {"op 1 (decode)", "one can be"}},
    {"[" BESIDE("[[3,2,4]]", "[4]") CROP "]", {"op 1 (decode)", "none is boxes"}},
    {"[" BESIDE("[[3,2,4]]", "[7]") CROP "]", {"op 1 (decode)", "shape [most, n, 3]"}},
    {"[" BESIDE("[[3,2,2,2]]", "[7]") CROP "]", {"op 1 (decode)", "shape [most, n, 3]"}},
    {"[" BESIDE("[[3,2,1,1,3]]", "[7]") CROP "]", {"op 1 (decode)", "shape [most, n, 3]"}},
    {"[" BESIDE("[[12,2,3]]", "[7]") CROP "]", {"op 1 (decode)", "shape [most, n, 3]"}},
    {"[" BESIDE("[[3,2,3],[3,2,3]]", "[7,7]") CROP "]", {"op 1 (decode)", "one can be"}},
    {"[" BESIDE("[[3,2,3]]", "[7]") "{\"op\":\"rand_augment\"}," CROP "]",
     {"op 2 (rand_augment)", "key points cannot follow"}},
    {FLIPPED("7", "0,1") "," CROP "]", {"op 1 (decode)", "not one number for each"}},
    {FLIPPED("7", "0,1,3") "," CROP "]", {"op 1 (decode)", "does not become it"}},
    {FLIPPED("7", "1,2,0") "," CROP "]", {"op 1 (decode)", "does not become it"}},
    {FLIPPED("1", "0,1,2") "," CROP "]", {"op 1 (decode)", "no field is (kind 7)"}},
    {"[{\"op\":\"bands\",\"channels\":1,\"source\":\"record\",\"fields\":[[3,2,3,3]],\"kinds\":[7],"
     "\"flip_indices\":[1,0]}," CROP "]",
     {"op 1 (bands)", "not one number for each"}},
    {"[" BESIDE("[[3,2,4]]", "[3]") "{\"op\":\"rand_augment\"}," CROP "]",
     {"op 2 (rand_augment)", "boxes cannot follow"}},
    {"[" BESIDE("[[1]]", "[5]") "{\"op\":\"rand_augment\"}," CROP "]",
     {"op 2 (rand_augment)", "masks cannot follow"}},
    {"[" BESIDE("[[1]]", "[6]") "{\"op\":\"five_crop\",\"size\":1}]",
     {"op 2 (five_crop)", "masks cannot follow"}},
    {"[" BESIDE("[[3]]", "[5]") CROP "]", {"op 1 (decode)", "a mask is [dtype]"}},
    {"[" BESIDE("[[3]]", "[8]") CROP "]", {"op 1 (decode)", "another picture is [1]"}},
    {"[" BESIDE("[[1,17]]", "[9]") CROP "]", {"op 1 (decode)", "at most 16 times"}},
    {"[" BESIDE("[[1,2]]", "[8]") "{\"op\":\"rotate\",\"degrees\":9}," CROP "]",
     {"op 2 (rotate)", "is larger than the first one"}},
    {"[" BESIDE("[[1]]", "[9]") "{\"op\":\"rand_augment\"}," CROP "]",
     {"op 2 (rand_augment)", "without its colours"}},
    {"[" BESIDE("[[1,16]]", "[8]") "{\"op\":\"center_crop\",\"size\":9000}]",
     {"picture \"field2\"", "too large"}},
    {"[" BESIDE("[[1]]", "[8]") CROP ",{\"op\":\"normalize\",\"mean\":0,\"std\":1,\"of\":["
				     "\"field2\"]}]",
     {"picture \"field2\"", "normalize both"}},
    {"[" BESIDE("[[1]]", "[8]") CROP
     ",{\"op\":\"normalize\",\"mean\":0,\"std\":1},"
     "{\"op\":\"normalize\",\"mean\":0,\"std\":1,\"of\":[\"field3\"]}]",
     {"normalize", "kind 8 or 9"}},
    {"[" BESIDE("[[1]]", "[8]") CROP
     ",{\"op\":\"normalize\",\"mean\":0,\"std\":1},"
     "{\"op\":\"normalize\",\"mean\":0,\"std\":1,\"of\":[\"field2\"]},"
     "{\"op\":\"normalize\",\"mean\":0,\"std\":2,\"of\":[\"field2\"]}]",
     {"normalize", "one twice"}},
    {"[" BESIDE("[[1]]", "[8]") CROP ",{\"op\":\"filter\",\"min_width\":2},{\"op\":\"normalize\","
				     "\"mean\":0,\"std\":1,\"of\":[\"field2\"]}]",
     {"op 4 (normalize)", "behind the normalize"}},
    {"[" BESIDE("[[1,2]]", "[8]") CROP ",{\"op\":\"view\",\"names\":[\"field2\"]}," CROP "]",
     {"picture \"field2\"", "ops of its own"}},
    {"[" BESIDE("[[1]]", "[8]") CROP ",{\"op\":\"view\",\"names\":[\"field2\"]}," CROP
				     ",{\"op\":\"view\",\"names\":[\"field2\"]}," CROP "]",
     {"view \"field2\"", "twice"}},
    {"[" BESIDE("[[1]]", "[8]") CROP ",{\"op\":\"cutmix\",\"num_classes\":2}]",
     {"mixup and cutmix", "first picture alone"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[5],\"colors\":[[1,2]]}"
     "," CROP "]",
     {"op 1 (decode)", "a colour is"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1]],\"kinds\":[5],\"colors\":[[1,2,3],"
     "[1,2,3,9]]}," CROP "]",
     {"op 1 (decode)", "twice"}},
    {"[" BESIDE("[[1,256]]", "[5]") CROP "]", {"op 1 (decode)", "a mask is [dtype]"}},
    {"[" BESIDE("[[3,3]]", "[12]") CROP "]", {"op 1 (decode)", "what was measured is [3"}},
    {"[" BESIDE("[[3,5,1]]", "[12]") CROP "]", {"op 1 (decode)", "what was measured is [3"}},
    {"[" BESIDE("[[3,4,3]]", "[12]") CROP "]", {"op 1 (decode)", "what was measured is [3"}},
    {"[" BESIDE("[[1,3,1]]", "[12]") CROP "]", {"op 1 (decode)", "what was measured is [3"}},
    {"[" BESIDE("[[3,3,1]]", "[12]") "{\"op\":\"five_crop\",\"size\":1}]",
     {"op 2 (five_crop)", "what was measured of pixels cannot follow"}},
    {"[" BESIDE("[[3,3,1]]", "[12]") CROP ",{\"op\":\"cutmix\",\"num_classes\":2}]",
     {"mixup and cutmix", "first picture alone"}},
    {"[" BESIDE("[[3,3,1]]", "[12]") CROP
     ",{\"op\":\"normalize\",\"mean\":0,\"std\":1},"
     "{\"op\":\"normalize\",\"mean\":0,\"std\":1,\"of\":[\"field2\"]}]",
     {"normalize", "kind 8 or 9"}},
    {"[" BESIDE("[[3,3,7]]", "[11]") CROP "]", {"op 1 (decode)", "(kind 11) follow points"}},
    {"[" BESIDE("[[4,1,1]]", "[6]") CROP "]", {"op 1 (decode)", "a mask is [dtype]"}},
    {"[{\"op\":\"decode\",\"fields\":[[1]]}," CROP "]", {"op 1 (decode)", "source"}},
    {"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1]],\"names\":[\"label\"]}," CROP "]",
     {"op 1 (decode)", "one name"}},
    {"[" TWO ",{\"op\":\"hflip\"}]", {"op 1 (record)", "source"}},
    {"[{\"op\":\"decode\"}," TWO "]", {"op 2 (record)", "stands alone"}},
    {"[{\"op\":\"decode\",\"source\":\"pool\"}," CROP "]", {"source", "random_record"}},
    {"[{\"op\":\"decode\",\"source\":\"record\"}," CROP ",{\"op\":\"filter\",\"keep\":[1]}]",
     {"filter", "by number"}},
};

START_TEST(wrong_texts_are_told)
{
	struct pipeline *pipeline;
	struct diag diag = {.text = ""};

	ck_assert_int_eq(pipeline_compile(wrong[_i].text, strlen(wrong[_i].text), &pipeline, &diag),
			 PIPELINE_E_BAD);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(strstr(diag.text, wrong[_i].says[i]) != NULL, "%s", diag.text);
}
END_TEST

START_TEST(fields_are_those_of_the_text)
{
	struct pipeline *pipeline = compiled("[" TWO "]");
	struct pipeline *still =
	    compiled("[{\"op\":\"record\",\"random\":false,\"fields\":[[3,2,3],[4]]}]");
	const struct pipeline_field *field;

	ck_assert_str_eq(pipeline_canonical(pipeline), "{\"ops\":[{\"fields\":[[3,2,3],[4]],\"op\":"
						       "\"record\",\"random\":true}]}");
	ck_assert_uint_eq(pipeline_fields(pipeline, &field), 2);
	ck_assert_str_eq(field[0].name, "image");
	ck_assert_uint_eq(field[0].ndim, 2);
	ck_assert_uint_eq(field[0].shape[1], 3);
	ck_assert_uint_eq(field[0].bytes, 24);
	ck_assert_str_eq(field[1].name, "label");
	ck_assert_uint_eq(field[1].bytes, 8);
	ck_assert(pipeline_is_random(pipeline));
	ck_assert(!pipeline_is_random(still));
	pipeline_free(pipeline);
	pipeline_free(still);
}
END_TEST

START_TEST(pictures_of_records_are_another_pipeline)
{
	struct pipeline *file = compiled("[{\"op\":\"decode\",\"source\":\"file\"}," CROP "]");
	struct pipeline *same = compiled("[{\"op\":\"decode\",\"source\":\"record\"}," CROP "]");
	struct pipeline *anew =
	    compiled("[{\"op\":\"decode\",\"source\":\"random_record\"}," CROP "]");
	const struct pipeline *pair[2] = {file, same};
	struct pipeline_run *run;

	ck_assert_ptr_null(strstr(pipeline_canonical(file), "source"));
	ck_assert_ptr_nonnull(strstr(pipeline_canonical(anew), "random_record"));
	ck_assert(!pipeline_is_random(same));
	ck_assert(pipeline_is_random(anew));
	ck_assert_int_eq(pipeline_run_new(pair, 2, &run), -EINVAL);
	pipeline_free(file);
	pipeline_free(same);
	pipeline_free(anew);
}
END_TEST

/* ---- the bytes ---- */

struct bench { /* one pipeline, one sample's fields */
	struct pipeline *pipeline;
	struct pipeline_run *run;
	_Alignas(64) uint8_t field[PIPELINE_MAX_FIELDS][64];
	struct pipeline_error error;
};

static void bench_new(struct bench *bench, const char *text)
{
	const struct pipeline *one;

	memset(bench, 0, sizeof(*bench));
	one = bench->pipeline = compiled(text);
	ck_assert_int_eq(pipeline_run_new(&one, 1, &bench->run), 0);
}

static void bench_free(struct bench *bench)
{
	pipeline_run_free(bench->run);
	pipeline_free(bench->pipeline);
}

/* From memory that ends where the record does. */
static int bench_run(struct bench *bench, const uint8_t *data, size_t size)
{
	const struct pipeline_key key = {1, 2, 3};
	struct pipeline_out out;
	uint8_t *copy = aligned_alloc(64, base_align_up(size ? size : 1, 64));
	uint8_t *end = copy + base_align_up(size ? size : 1, 64) - size;
	int r;

	for (int f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = bench->field[f];
	memcpy(end, data, size);
	r = pipeline_run_sample(bench->run, 1, end, size, 7, &key, &out, &bench->error);
	free(copy);
	return r;
}

START_TEST(a_record_goes_to_its_fields)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;
	size_t size = make(data, -9);
	int64_t number;

	bench_new(&bench, "[" TWO "]");
	ck_assert_int_eq(bench_run(&bench, data, size), 0);
	ck_assert_mem_eq(bench.field[0], data + 256, 24);
	memcpy(&number, bench.field[1], sizeof(number));
	ck_assert_int_eq(number, -9);
	ck_assert_int_eq(bench_run(&bench, data, ROOM), 0); /* room behind it */
	bench_free(&bench);
}
END_TEST

static void wide_magic(struct packed_head *head)
{
	head->magic = PACKED_WIDE_MAGIC;
}
static void no_value(struct packed_head *head)
{
	head->field[0].shape[0] = head->field[0].bytes = 0;
}
static void no_magic(struct packed_head *head)
{
	head->magic ^= 1;
}
static void too_long(struct packed_head *head)
{
	head->bytes = ROOM + 1;
}
static void no_field(struct packed_head *head)
{
	head->n_fields = 0;
}
static void five_fields(struct packed_head *head)
{
	head->n_fields = PACKED_FIRST_FIELDS + 1;
}
static void one_field(struct packed_head *head)
{
	head->n_fields = 1;
}
static void other_dtype(struct packed_head *head)
{
	head->field[0].dtype = 9;
}
static void other_ndim(struct packed_head *head)
{
	head->field[0].ndim = 5;
}
static void other_shape(struct packed_head *head)
{
	head->field[0].shape[0] = 3;
}
static void wide_shape(struct packed_head *head)
{
	head->field[0].shape[0] = UINT64_MAX / 12 + 1;
}
static void turned_shape(struct packed_head *head)
{
	head->field[0].shape[0] = 3;
	head->field[0].shape[1] = 2;
}
static void wide_field(struct packed_head *head)
{
	head->field[0].bytes = UINT64_MAX;
}
static void in_head(struct packed_head *head)
{
	head->field[0].at = 0;
}
static void crooked(struct packed_head *head)
{
	head->field[0].at = 257;
}
static void behind(struct packed_head *head)
{
	head->field[1].at = 384;
}
static void far(struct packed_head *head)
{
	head->field[1].at = UINT64_MAX - 63;
}

static const struct {
	void (*change)(struct packed_head *head);
	const char *says;
} damages[] = {
    {wide_magic, "field 0"},
    {no_value, "field 0"},
    {no_magic, "no record"},
    {too_long, "no record"},
    {no_field, "no record"},
    {five_fields, "no record"},
    {one_field, "1 fields, not 2"},
    {other_dtype, "field 0"},
    {other_ndim, "field 0"},
    {other_shape, "field 0"},
    {wide_shape, "field 0"},
    {turned_shape, "other type or shape"},
    {wide_field, "field 0"},
    {in_head, "field 0"},
    {crooked, "field 0"},
    {behind, "field 1"},
    {far, "field 1"},
};

START_TEST(a_damaged_record_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	make(data, 1);
	damages[_i].change(head_of(data));
	bench_new(&bench, "[" TWO "]");
	ck_assert_int_eq(bench_run(&bench, data, 328), PIPELINE_E_BAD);
	ck_assert_msg(strstr(bench.error.text, damages[_i].says) != NULL, "%s", bench.error.text);
	bench_free(&bench);
}
END_TEST

START_TEST(a_short_record_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	make(data, 1);
	bench_new(&bench, "[" TWO "]");
	for (size_t size = 0; size < 328; size++)
		ck_assert_int_eq(bench_run(&bench, data, size), PIPELINE_E_BAD);
	bench_free(&bench);
}
END_TEST

/* ---- ragged fields ---- */

#define RAGGED                                                                               \
	"{\"op\":\"record\",\"fields\":[[3,3,2],[1,5],[13,2]],\"kinds\":[1,2,0],\"names\":[" \
	"\"boxes\",\"text\",\"flags\"]}"

static struct packed_place *place_of(uint8_t *data, unsigned number)
{
	return &((struct packed_wide_head *)(void *)data)->field[number].place;
}

/* So many boxes and letters, and two flags of bytes that are not 0 or 1. */
static size_t make_ragged(uint8_t *data, uint64_t boxes, uint64_t letters)
{
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;

	memset(data, 0, ROOM);
	head->magic = PACKED_WIDE_MAGIC;
	head->bytes = 450;
	head->n_fields = 3;
	*place_of(data, 0) = (struct packed_place){PIPELINE_F32, 2, {boxes, 2}, 256, boxes * 8};
	*place_of(data, 1) = (struct packed_place){PIPELINE_U8, 1, {letters}, 384, letters};
	*place_of(data, 2) = (struct packed_place){PIPELINE_BOOL, 1, {2}, 448, 2};
	for (unsigned i = 0; i < 8; i++)
		((float *)(void *)(data + 256))[i] = (float)(i + 1);
	memcpy(data + 384, "abcdef", 6);
	memcpy(data + 448, "\x80\0", 2);
	return 450;
}

START_TEST(ragged_fields_are_those_of_the_text)
{
	struct pipeline *pipeline = compiled("[" RAGGED "]");
	const struct pipeline_field *field;

	ck_assert_str_eq(
	    pipeline_canonical(pipeline),
	    "{\"ops\":[{\"fields\":[[3,3,2],[1,5],[13,2]],\"kinds\":[1,2,0],\"names\":[\"boxes\","
	    "\"text\",\"flags\"],\"op\":\"record\",\"random\":true}]}");
	ck_assert_uint_eq(pipeline_fields(pipeline, &field), 5);
	ck_assert_str_eq(field[0].name, "boxes");
	ck_assert_int_eq(field[0].kind, PIPELINE_RAGGED);
	ck_assert_uint_eq(field[0].lengths, 3);
	ck_assert_int_eq(field[1].kind, PIPELINE_TEXT);
	ck_assert_uint_eq(field[1].lengths, 4);
	ck_assert_int_eq(field[2].kind, PIPELINE_DENSE);
	ck_assert_str_eq(field[3].name, "boxes.length");
	ck_assert_str_eq(field[4].name, "text.length");
	ck_assert_int_eq(field[4].dtype, PIPELINE_I64);
	ck_assert_uint_eq(field[4].bytes, 8);
	pipeline_free(pipeline);
}
END_TEST

/* boxes, letters, and what is said of it; NULL: it is good. */
static const struct {
	uint64_t boxes, letters;
	const char *says;
} ragged[] = {
    {0, 0, NULL},
    {1, 5, NULL},
    {3, 0, NULL},
    {3, 5, NULL},
    {4, 1, "field 0: 4, at most 3"},
    {1, 6, "field 1: 6, at most 5"},
};

START_TEST(a_ragged_sample_is_as_long_as_it_is)
{
	static const uint8_t zeros[64];
	_Alignas(64) uint8_t data[ROOM];
	const uint64_t boxes = ragged[_i].boxes, letters = ragged[_i].letters;
	size_t size = make_ragged(data, boxes, letters);
	struct bench bench;
	int64_t length[2];

	bench_new(&bench, "[" RAGGED "]");
	memset(bench.field, 0xa5, sizeof(bench.field)); /* of who was there before */
	ck_assert_int_eq(bench_run(&bench, data, size), ragged[_i].says ? PIPELINE_E_BAD : 0);
	if (ragged[_i].says) {
		ck_assert_str_eq(bench.error.text, ragged[_i].says);
	} else {
		memcpy(&length[0], bench.field[3], 8);
		memcpy(&length[1], bench.field[4], 8);
		ck_assert_int_eq(length[0], (int64_t)boxes);
		ck_assert_int_eq(length[1], (int64_t)letters);
		ck_assert_mem_eq(bench.field[0], data + 256, boxes * 8);
		ck_assert_mem_eq(bench.field[0] + boxes * 8, zeros, 24 - boxes * 8);
		ck_assert_int_eq(bench.field[0][24], 0xa5);
		ck_assert_mem_eq(bench.field[1], data + 384, letters);
		ck_assert_mem_eq(bench.field[1] + letters, zeros, 5 - letters);
		ck_assert_int_eq(bench.field[1][5], 0xa5);
		ck_assert_mem_eq(bench.field[2], "\1\0", 2);
	}
	bench_free(&bench);
}
END_TEST

static void another_length(uint8_t *data)
{
	place_of(data, 0)->shape[0] = 2;
}
static void another_width(uint8_t *data)
{
	place_of(data, 0)->shape[1] = 1;
	place_of(data, 0)->bytes = 4;
}
static void a_width_of_nothing(uint8_t *data)
{
	place_of(data, 0)->shape[1] = place_of(data, 0)->bytes = 0;
}
static void nothing_of_a_dense_one(uint8_t *data)
{
	place_of(data, 2)->shape[0] = place_of(data, 2)->bytes = 0;
}
static void a_long_length(uint8_t *data)
{
	place_of(data, 1)->shape[0] = UINT64_MAX;
}
static void in_the_places(uint8_t *data)
{
	place_of(data, 1)->at = 192;
}
static void many_fields(uint8_t *data)
{
	((struct packed_wide_head *)(void *)data)->n_fields = UINT32_MAX;
}
static void more_fields(uint8_t *data)
{
	((struct packed_wide_head *)(void *)data)->n_fields = 4;
}

static const struct {
	void (*change)(uint8_t *data);
	const char *says;
} ragged_damages[] = {
    {another_length, "field 0 of the record is damaged"},
    {another_width, "field 0: other type or shape"},
    {a_width_of_nothing, "field 0 of the record is damaged"},
    {nothing_of_a_dense_one, "field 2: other type or shape"},
    {a_long_length, "field 1 of the record is damaged"},
    {in_the_places, "field 1 of the record is damaged"},
    {many_fields, "no record"},
    {more_fields, "field 0 of the record is damaged"},
};

START_TEST(a_damaged_ragged_record_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	make_ragged(data, 1, 1);
	ragged_damages[_i].change(data);
	bench_new(&bench, "[" RAGGED "]");
	ck_assert_int_eq(bench_run(&bench, data, 450), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, ragged_damages[_i].says);
	for (size_t size = 0; size < 450; size++) {
		make_ragged(data, 1, 1);
		ck_assert_int_eq(bench_run(&bench, data, size), PIPELINE_E_BAD);
	}
	bench_free(&bench);
}
END_TEST

/* ---- pictures ---- */

#define PICTURE "[{\"op\":\"decode\",\"source\":\"record\"}," CROP "]"

START_TEST(a_picture_goes_through_the_pipeline)
{
	static const uint8_t pixels[] = {255, 0, 0, 128, 128, 128};
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;
	size_t size = make_picture(data, 41);
	int64_t number;

	bench_new(&bench, PICTURE);
	ck_assert_int_eq(bench_run(&bench, data, size), 0);
	ck_assert_mem_eq(bench.field[0], pixels, sizeof(pixels));
	memcpy(&number, bench.field[1], sizeof(number));
	ck_assert_int_eq(number, 41);
	head_of(data)->n_fields = 1;
	ck_assert_int_eq(bench_run(&bench, data, size), 0);
	memcpy(&number, bench.field[1], sizeof(number));
	ck_assert_int_eq(number, 0);
	bench_free(&bench);
}
END_TEST

#define CAPTION                                                                                  \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[1,5]],\"kinds\":[2],\"names\":[" \
	"\"caption\"]}," CROP "]"

/* A picture, its class and a caption; without the class, the caption is the second field. */
START_TEST(other_fields_stand_beside_a_picture)
{
	static const char file[] = "P6\n2 1\n255\n\xff\x00\x00\x80\x80\x80";
	static const uint8_t pixels[] = {255, 0, 0, 128, 128, 128};
	_Alignas(64) uint8_t data[ROOM];
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;
	struct bench bench;
	unsigned cuts[PIPELINE_MAX_OPS];
	int64_t number = 41, length;

	bench_new(&bench, CAPTION);
	ck_assert_uint_eq(pipeline_cuts(bench.pipeline, cuts), 0);
	for (unsigned has_class = 0; has_class < 2; has_class++) {
		memset(data, 0, ROOM);
		*head = (struct packed_wide_head){PACKED_WIDE_MAGIC, 451, 2 + has_class, 0, {0}};
		*place_of(data, 0) = (struct packed_place){
		    PIPELINE_U8, 1, {sizeof(file) - 1}, 256, sizeof(file) - 1};
		memcpy(data + 256, file, sizeof(file) - 1);
		*place_of(data, 1) = (struct packed_place){PIPELINE_I64, 0, {0}, 384, 8};
		memcpy(data + 384, &number, sizeof(number));
		*place_of(data, 1 + has_class) = (struct packed_place){PIPELINE_U8, 1, {3}, 448, 3};
		memcpy(data + 448, "abc", 3);
		ck_assert_msg(bench_run(&bench, data, 451) == 0, "%s", bench.error.text);
		ck_assert_mem_eq(bench.field[0], pixels, sizeof(pixels));
		ck_assert_mem_eq(bench.field[1], has_class ? "\x29\0\0\0" : "\0\0\0\0", 4);
		ck_assert_mem_eq(bench.field[2], "abc\0\0", 5);
		memcpy(&length, bench.field[3], sizeof(length));
		ck_assert_int_eq(length, 3);
	}
	ck_assert_int_eq(bench_run(&bench, data, make_picture(data, 1)), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "field 1: other type or shape");
	head->n_fields = 1;
	ck_assert_int_eq(bench_run(&bench, data, 328), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "it is no picture and label with others");
	bench_free(&bench);
}
END_TEST

#define FOLLOWING(ops)                                                                          \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[1,3]],\"kinds\":[3,4]," \
	"\"names\":[\"boxes\",\"classes\"]}," ops "]"

/* A picture of four columns and two rows, two boxes, and so many classes. */
static size_t make_boxes(uint8_t *data, const float (*box)[4], unsigned classes)
{
	static const char file[] = "P5\n4 2\n255\nabcdefgh";
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;

	memset(data, 0, ROOM);
	*head = (struct packed_wide_head){PACKED_WIDE_MAGIC, 451, 3, 0, {0}};
	*place_of(data, 0) =
	    (struct packed_place){PIPELINE_U8, 1, {sizeof(file) - 1}, 256, sizeof(file) - 1};
	memcpy(data + 256, file, sizeof(file) - 1);
	*place_of(data, 1) = (struct packed_place){PIPELINE_F32, 2, {2, 4}, 384, 32};
	memcpy(data + 384, box, 32);
	*place_of(data, 2) = (struct packed_place){PIPELINE_U8, 1, {classes}, 448, classes};
	memcpy(data + 448, "\7\10\11", 3);
	return 451;
}

static const struct {
	const char *text;
	float box[2][4], want[2][4];
	unsigned n;
	uint8_t classes[3];
} following[] = {
    {FOLLOWING("{\"op\":\"resize\",\"size\":[4,2]}"),
     {{0, 0, 4, 2}, {1, 0.5f, 3, 1.5f}},
     {{0, 0, 2, 4}, {0.5f, 1, 1.5f, 3}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"hflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 1, 1}, {1, 0, 4, 2}},
     {{3, 0, 4, 1}, {0, 0, 3, 2}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"vflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 1, 1}, {1, 0, 4, 2}},
     {{0, 1, 1, 2}, {1, 0, 4, 2}},
     2,
     {7, 8, 0}},
    /* the first one is outside of the middle, the second one is cut off */
    {FOLLOWING("{\"op\":\"center_crop\",\"size\":2}"),
     {{0, 0, 1.5f, 2}, {2, 0, 4, 2}},
     {{1, 0, 2, 2}},
     1,
     {8, 0, 0}},
    {FOLLOWING("{\"op\":\"center_crop\",\"size\":[2,6]}"),
     {{-9, -9, 99, 99}, {1, 0, 2, 1}},
     {{1, 0, 5, 2}, {2, 0, 3, 1}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"pad\",\"padding\":[1,2,3,4]},{\"op\":\"resize\",\"size\":[4,4]}"),
     {{0, 0, 4, 2}, {3, 3, 3, 3}},
     {{0.5f, 1, 2.5f, 2}},
     1,
     {7, 0, 0}},
    {FOLLOWING("{\"op\":\"rotate\",\"degrees\":[90,90],\"expand\":true},"
	       "{\"op\":\"resize\",\"size\":[4,2]}"),
     {{0, 0, 1, 1}, {1, 0, 4, 2}},
     {{0, 3, 1, 4}, {0, 0, 2, 3}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"affine\",\"degrees\":0,\"scale\":[2,2]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{1, 0.5f, 3, 1.5f}, {3, 0, 4, 1}},
     {{0, 0, 4, 2}},
     1,
     {7, 0, 0}},
    /* the upper corners are one pixel further in, the lower right one, too; torchvision's boxes */
    {FOLLOWING("{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":0.9},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 3, 1}, {1, 0.5f, 2, 1.5f}},
     {{0, 0, 2, 1}, {0, 0.33333334f, 1.5555556f, 2}},
     2,
     {7, 8, 0}},
    /* All of the lower row of pixels is hidden; then all of both, but one column. */
    {FOLLOWING("{\"op\":\"coarse_dropout\",\"p\":1,\"holes\":1,\"height\":[1,1],\"width\":[4,4]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 3, 2}, {0.5f, 0.2f, 2.5f, 1.9f}},
     {{0, 0, 3, 1}, {0.5f, 0.2f, 2.5f, 1.9f}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"coarse_dropout\",\"p\":1,\"holes\":1,\"height\":[2,2],\"width\":[3,3]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0.5f, 0, 4, 1.5f}, {1, 0, 3, 2}},
     {{3, 0, 4, 1.5f}},
     1,
     {7, 0, 0}},
    /* Hidden but for fractions; far outside, where no loop goes. */
    {FOLLOWING("{\"op\":\"coarse_dropout\",\"p\":1,\"holes\":1,\"height\":[2,2],\"width\":[4,4]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0.5f, 0, 2.5f, 1.5f}, {-1e18f, 1e30f, 1e18f, 1e38f}},
     {{0}},
     0,
     {0, 0, 0}},
    /* torchvision's boxes with the same displacement */
    {FOLLOWING("{\"op\":\"elastic_transform\",\"alpha\":[1,0],\"sigma\":[0.2,0.2]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 3, 1}, {1, 0, 2, 1}},
     {{0.9080935716629028f, 0, 3.967883586883545f, 1},
      {0.14608359336853027f, 0, 2.4234611988067627f, 1}},
     2,
     {7, 8, 0}},
    /* to the picture's end; and fractions go up */
    {FOLLOWING("{\"op\":\"elastic_transform\",\"alpha\":[0,0],\"sigma\":[0,0]},"
	       "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{0, 0, 4, 2}, {0.5f, 0.25f, 2.5f, 2}},
     {{0, 0, 4, 2}, {1, 1, 3, 2}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"random_resize\",\"min_size\":4,\"max_size\":5},"
	       "{\"op\":\"fixed_size_crop\",\"size\":[4,9]}"),
     {{0, 0, 4, 2}, {1, 0.5f, 3, 1.5f}},
     {{0, 0, 8, 4}, {2, 1, 6, 3}},
     2,
     {7, 8, 0}},
    {FOLLOWING("{\"op\":\"random_zoom_out\",\"p\":1,\"side_range\":[1.25,1.25]},"
	       "{\"op\":\"fixed_size_crop\",\"size\":[3,8]}"),
     {{0, 0, 4, 2}, {1, 0, 2, 1}},
     {{0, 0, 4, 2}, {1, 0, 2, 1}},
     2,
     {7, 8, 0}},
    /* nearly all of the picture, which has one box' middle */
    {FOLLOWING(
	 "{\"op\":\"random_iou_crop\",\"sampler_options\":0,\"min_scale\":0.5,\"max_scale\":0.5},"
	 "{\"op\":\"fixed_size_crop\",\"size\":[2,4]}"),
     {{0, 0, 4, 2}, {0, 0, 1, 1}},
     {{0, 0, 1, 1}},
     1,
     {8, 0, 0}},
    {FOLLOWING("{\"op\":\"resize\",\"size\":[2,4]}"),
     {{NAN, NAN, NAN, NAN}, {INFINITY, -INFINITY, -INFINITY, INFINITY}},
     {{0}},
     0,
     {0, 0, 0}},
};

START_TEST(boxes_follow_the_picture)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;
	int64_t length[2];

	bench_new(&bench, following[_i].text);
	memset(bench.field, 0xa5, sizeof(bench.field));
	ck_assert_msg(bench_run(&bench, data, make_boxes(data, following[_i].box, 2)) == 0, "%s",
		      bench.error.text);
	memcpy(&length[0], bench.field[4], 8);
	memcpy(&length[1], bench.field[5], 8);
	ck_assert_int_eq(length[0], following[_i].n);
	ck_assert_int_eq(length[1], following[_i].n);
	ck_assert_mem_eq(bench.field[2], following[_i].want, sizeof(following[_i].want));
	ck_assert_mem_eq(bench.field[3], following[_i].classes, 3);
	ck_assert_int_eq(bench_run(&bench, data, make_boxes(data, following[_i].box, 1)),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "field 2: 1 for 2 boxes");
	bench_free(&bench);
}
END_TEST

#define DARKER "{\"op\":\"color_jitter\",\"brightness\":[0.5,0.5]},"
#define CROPPED(parameters)                                                                    \
	"{\"op\":\"random_iou_crop\",\"sampler_options\":0" parameters "},{\"op\":\"hflip\"}," \
	"{\"op\":\"fixed_size_crop\",\"size\":[2,4]}"

/* Pipelines that have the picture in common up to what is chosen, or beyond, crop it as each would alone. */
START_TEST(a_shared_picture_is_cropped_for_each)
{
	static const char *const texts[] = {
	    FOLLOWING(
		DARKER CROPPED(",\"min_scale\":0.5,\"max_scale\":0.6,\"max_aspect_ratio\":4")),
	    FOLLOWING(DARKER CROPPED(",\"min_scale\":0.8,\"max_aspect_ratio\":4")),
	    FOLLOWING(
		DARKER CROPPED(",\"min_scale\":0.8,\"max_aspect_ratio\":4") ",{\"op\":\"cast\"}"),
	    FOLLOWING(CROPPED("")),
	};
	static const float box[2][4] = {{0, 0, 2, 1}, {1, 0, 4, 1}};
	enum { N = BASE_ARRAY_LEN(texts) };
	static _Alignas(64) uint8_t field[2][N][PIPELINE_MAX_FIELDS][128];
	_Alignas(64) uint8_t data[ROOM];
	const size_t size = make_boxes(data, box, 2);
	struct pipeline *pipeline[N];
	struct pipeline_run *all, *alone[N];
	struct pipeline_error error;
	unsigned cropped = 0;

	for (unsigned v = 0; v < N; v++) {
		const struct pipeline *one = pipeline[v] = compiled(texts[v]);

		ck_assert_int_eq(pipeline_run_new(&one, 1, &alone[v]), 0);
	}
	ck_assert_int_eq(pipeline_run_new((const struct pipeline *const *)pipeline, N, &all), 0);
	for (uint64_t sample = 0; sample < 200; sample++) {
		const struct pipeline_key key = {1, 2, sample};
		struct pipeline_out out[2][N];

		for (unsigned v = 0; v < N; v++) {
			for (unsigned i = 0; i < 2 * PIPELINE_MAX_FIELDS; i++)
				out[i & 1][v].field[i / 2] = field[i & 1][v][i / 2];
			ck_assert_int_eq(pipeline_run_sample(alone[v], 1, data, size, 7, &key,
							     &out[0][v], &error),
					 0);
		}
		ck_assert_int_eq(
		    pipeline_run_sample(all, (1u << N) - 1, data, size, 7, &key, out[1], &error),
		    0);
		ck_assert_mem_eq(field[0], field[1], sizeof(field[0]));
		cropped += memcmp(field[0][0][0], field[0][1][0], 24) != 0;
	}
	ck_assert_uint_gt(cropped, 100);
	pipeline_run_free(all);
	for (unsigned v = 0; v < N; v++) {
		pipeline_run_free(alone[v]);
		pipeline_free(pipeline[v]);
	}
}
END_TEST

#define POINTS(kinds, ops)                                                                       \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[3,2,2,3]],\"kinds\":[3," \
	"7],\"names\":[\"boxes\",\"points\"]" kinds "}," ops "]"
#define POINTS_FLIP ",\"flip_indices\":[1,0]"

/* Two boxes that are never gone but by the crop, and so many rows of two points; or points alone. */
static size_t make_points(uint8_t *data, const float (*point)[3], bool are_boxes, unsigned rows)
{
	static const float box[2][4] = {{0, 0, 2, 2}, {3, 0, 4, 2}};
	const size_t size = make_boxes(data, box, 3);
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;

	head->bytes = size + 61;
	*place_of(data, 2) = (struct packed_place){PIPELINE_F32, 3, {rows, 2, 3}, 448, rows * 24};
	memcpy(data + 448, point, 48);
	if (!are_boxes) {
		head->n_fields = 2;
		*place_of(data, 1) =
		    (struct packed_place){PIPELINE_F32, 2, {rows, 6}, 448, rows * 24};
	}
	return size + 61;
}

static const struct {
	const char *text;
	float point[2][2][3], want[2][2][3];
	unsigned n;
} pointed[] = {
    {POINTS(POINTS_FLIP, "{\"op\":\"resize\",\"size\":[4,2]}"),
     {{{0, 0, 1}, {4, 2, 2}}, {{1, 1, 2}, {0, 0, 0}}},
     {{{0, 0, 1}, {2, 4, 2}}},
     1},
    /* left is right now */
    {POINTS(POINTS_FLIP, "{\"op\":\"hflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{0, 0, 1}, {3, 2, 2}}, {{1, 1, 2}, {0, 0, 0}}},
     {{{1, 2, 2}, {4, 0, 1}}, {{4, 0, 0}, {3, 1, 2}}},
     2},
    {POINTS("", "{\"op\":\"hflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{0, 0, 1}, {3, 2, 2}}, {{1, 1, 2}, {0, 0, 0}}},
     {{{4, 0, 1}, {1, 2, 2}}, {{3, 1, 2}, {4, 0, 0}}},
     2},
    {POINTS(POINTS_FLIP, "{\"op\":\"vflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{0, 0, 1}, {3, 2, 2}}, {{1, 1, 2}, {0, 0, 0}}},
     {{{3, 0, 2}, {0, 2, 1}}, {{0, 2, 0}, {1, 1, 2}}},
     2},
    /* twice mirrored is turned */
    {POINTS(POINTS_FLIP, "{\"op\":\"hflip\",\"p\":1},{\"op\":\"vflip\",\"p\":1},"
			 "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{0, 0, 1}, {3, 2, 2}}, {{1, 1, 2}, {0, 0, 0}}},
     {{{4, 2, 1}, {1, 0, 2}}, {{3, 1, 2}, {4, 2, 0}}},
     2},
    /* the second box is gone with its points; of the first one a point keeps its place and is seen no more */
    {POINTS(POINTS_FLIP, "{\"op\":\"center_crop\",\"size\":2}"),
     {{{0.5f, 1, 2}, {1.5f, 1, 2}}, {{3, 1, 2}, {3, 2, 2}}},
     {{{-0.5f, 1, 0}, {0.5f, 1, 2}}},
     1},
    /* nor when there is a picture again */
    {POINTS("", "{\"op\":\"center_crop\",\"size\":2},{\"op\":\"pad\",\"padding\":1},"
		"{\"op\":\"resize\",\"size\":[4,4]}"),
     {{{0.5f, 1, 2}, {1, 1, 2}}, {{3, 2, 1}, {3.5f, 1, 2}}},
     {{{0.5f, 2, 0}, {1, 2, 2}}},
     1},
    {POINTS("", "{\"op\":\"rotate\",\"degrees\":[90,90],\"expand\":true},"
		"{\"op\":\"resize\",\"size\":[4,2]}"),
     {{{0.5f, 0.25f, 1}, {4, 0, 2}}, {{1, 2, 2}, {-1, 0, 2}}},
     {{{0.25f, 3.5f, 1}, {0, 0, 2}}, {{2, 3, 2}, {0, 5, 0}}},
     2},
    {POINTS("", "{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{NAN, 1, 2}, {INFINITY, 0, 2}}, {{1, -INFINITY, 1}, {1e30f, 0, 2}}},
     {{{0, 0, 0}, {0, 0, 0}}, {{0, 0, 0}, {1e30f, 0, 0}}},
     2},
    /* torchvision's points with the same displacement, but that it has none beyond the last pixel's middle; what is not seen stays */
    {POINTS("", "{\"op\":\"elastic_transform\",\"alpha\":[0.4,0.4],\"sigma\":[0.2,0.2]},"
		"{\"op\":\"resize\",\"size\":[2,4]}"),
     {{{0.5f, 0.25f, 1}, {3, 1, 2}}, {{1, 1.75f, 2}, {2, 0, 0}}},
     {{{0.38093388080596924f, 0.0504986047744751f, 1},
       {2.8958308696746826f, 0.9099937677383423f, 2}},
      {{0.6584334373474121f, 1.0299017429351807f, 2}, {2, 0, 0}}},
     2},
    /* too far away for a float, once the picture is larger */
    {POINTS("", "{\"op\":\"resize\",\"size\":[1,20]},{\"op\":\"hflip\",\"p\":1}"),
     {{{3e38f, 1, 2}, {1, -3e38f, 0}}, {{1, 1, 1}, {4, 2, 2}}},
     {{{20, 0, 0}, {15, -1.5e38f, 0}}, {{15, 0.5f, 1}, {0, 1, 2}}},
     2},
};

START_TEST(points_follow_the_picture)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;
	int64_t length[2];

	bench_new(&bench, pointed[_i].text);
	memset(bench.field, 0xa5, sizeof(bench.field));
	ck_assert_msg(bench_run(&bench, data, make_points(data, pointed[_i].point[0], true, 2)) ==
			  0,
		      "%s", bench.error.text);
	memcpy(&length[0], bench.field[4], 8);
	memcpy(&length[1], bench.field[5], 8);
	ck_assert_int_eq(length[0], pointed[_i].n);
	ck_assert_int_eq(length[1], pointed[_i].n);
	for (unsigned i = 0; i < 12; i++) {
		float made;

		memcpy(&made, bench.field[3] + 4 * i, 4);
		ck_assert_msg(fabsf(made - pointed[_i].want[i / 6][i / 3 % 2][i % 3]) <= 1e-5f,
			      "%u: %g, not %g", i, (double)made,
			      (double)pointed[_i].want[i / 6][i / 3 % 2][i % 3]);
	}
	ck_assert_int_eq(bench_run(&bench, data, make_points(data, pointed[_i].point[0], true, 1)),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "field 2: 1 for 2 boxes");
	bench_free(&bench);
}
END_TEST

/* They are never removed, and a row may be as COCO has it. */
START_TEST(points_need_no_boxes)
{
	static const float point[2][2][3] = {{{0.5f, 1, 2}, {1.5f, 1, 2}}, {{3, 1, 2}, {3, 2, 2}}};
	static const float want[2][2][3] = {{{1.5f, 1, 2}, {2.5f, 1, 0}}, {{0, 2, 2}, {0, 1, 2}}};
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;
	int64_t length;

	bench_new(
	    &bench,
	    "[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,2,6]],\"kinds\":[7],"
	    "\"names\":[\"points\"],\"flip_indices\":[1,0]},{\"op\":\"center_crop\",\"size\":2},"
	    "{\"op\":\"hflip\",\"p\":1}]");
	memset(bench.field, 0xa5, sizeof(bench.field));
	ck_assert_msg(bench_run(&bench, data, make_points(data, point[0], false, 2)) == 0, "%s",
		      bench.error.text);
	memcpy(&length, bench.field[3], 8);
	ck_assert_int_eq(length, 2);
	ck_assert_mem_eq(bench.field[2], want, sizeof(want));
	bench_free(&bench);
}
END_TEST

/* ---- masks ---- */

#define MASKED(fields, kind, ops)                                                                 \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[" fields "],\"kinds\":[" kind "]," \
	"\"names\":[\"mask\"]}," ops "]"

/* A picture of four columns and two rows, and its mask, of so many bytes. */
static size_t make_mask(uint8_t *data, const void *mask, size_t size)
{
	static const char file[] = "P5\n4 2\n255\nabcdefgh";
	struct packed_head *head = head_of(data);

	memset(data, 0, ROOM);
	*head = (struct packed_head){
	    .magic = PACKED_MAGIC,
	    .bytes = 384 + size,
	    .n_fields = 2,
	    .field = {{PIPELINE_U8, 1, {sizeof(file) - 1}, 256, sizeof(file) - 1},
		      {PIPELINE_U8, 1, {size}, 384, size}},
	};
	memcpy(data + 256, file, sizeof(file) - 1);
	memcpy(data + 384, mask, size);
	return 384 + size;
}

#define LABELS "P5\n4 2\n255\n\1\2\3\4\5\6\7\10"

static const struct {
	const char *text, *mask;
	uint64_t shape[2];
	uint8_t want[16];
} masked[] = {
    {MASKED("[1]", "5", "{\"op\":\"hflip\",\"p\":1},{\"op\":\"resize\",\"size\":[2,4]}"),
     LABELS,
     {2, 4},
     {4, 3, 2, 1, 8, 7, 6, 5}},
    /* the same pixels of Pillow's nearest and PyTorch's, but where a side shrinks */
    {MASKED("[1]", "6", "{\"op\":\"resize\",\"size\":[1,2]}"), LABELS, {1, 2}, {6, 8}},
    {MASKED("[1]", "5", "{\"op\":\"resize\",\"size\":[1,2]}"), LABELS, {1, 2}, {1, 3}},
    {MASKED("[1,9]", "5", "{\"op\":\"center_crop\",\"size\":[2,6]}"),
     LABELS,
     {2, 6},
     {9, 1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9}},
    {MASKED("[9,258]", "5",
	    "{\"op\":\"color_jitter\",\"hue\":0.1},{\"op\":\"center_crop\",\"size\":[4,2]}"),
     "P5\n4 2\n999\n\0\1\1\2\1\3\0\4\0\5\0\6\0\7\0\10",
     {4, 2},
     {2, 1, 2, 1, 2, 1, 3, 1, 6, 0, 7, 0, 2, 1, 2, 1}},
    {MASKED("[1]", "5",
	    "{\"op\":\"rotate\",\"degrees\":[90,90],\"expand\":true},{\"op\":\"resize\",\"size\":["
	    "4,2]}"),
     LABELS,
     {4, 2},
     {4, 8, 3, 7, 2, 6, 1, 5}},
    {MASKED("[1,9]", "5",
	    "{\"op\":\"random_resize\",\"min_size\":1,\"max_size\":2},"
	    "{\"op\":\"fixed_size_crop\",\"size\":[2,3],\"fill\":77}"),
     LABELS,
     {2, 3},
     {1, 3, 9, 9, 9, 9}},
    {MASKED("[1,9]", "5",
	    "{\"op\":\"random_zoom_out\",\"p\":1,\"side_range\":[1.25,1.25],\"fill\":77},"
	    "{\"op\":\"fixed_size_crop\",\"size\":[2,5]}"),
     LABELS,
     {2, 5},
     {1, 2, 3, 4, 9, 5, 6, 7, 8, 9}},
    {MASKED("[1,9]", "5",
	    "{\"op\":\"random_perspective\",\"p\":1,\"distortion_scale\":0.9},"
	    "{\"op\":\"resize\",\"size\":[2,4]}"),
     LABELS,
     {2, 4},
     {1, 3, 9, 9, 6, 7, 8, 9}},
    /* torchvision's mask with the same displacement */
    {MASKED("[1,9]", "5",
	    "{\"op\":\"elastic_transform\",\"alpha\":[3,2],\"sigma\":[0.2,0.2]},"
	    "{\"op\":\"resize\",\"size\":[2,4]}"),
     LABELS,
     {2, 4},
     {9, 1, 3, 1, 9, 9, 6, 9}},
};

static size_t mask_size(const char *mask)
{
	return memcmp(mask, "P5\n4 2\n999", 10) == 0 ? 11 + 16 : 11 + 8;
}

START_TEST(masks_follow_the_picture)
{
	_Alignas(64) uint8_t data[ROOM];
	const struct pipeline_field *fields;
	struct bench bench;
	const char *mask = masked[_i].mask;

	bench_new(&bench, masked[_i].text);
	ck_assert_uint_eq(pipeline_fields(bench.pipeline, &fields), 3);
	ck_assert_str_eq(fields[2].name, "mask");
	ck_assert_uint_eq(fields[2].ndim, 2);
	ck_assert_mem_eq(fields[2].shape, masked[_i].shape, sizeof(masked[_i].shape));
	memset(bench.field, 0xa5, sizeof(bench.field));
	ck_assert_msg(bench_run(&bench, data, make_mask(data, mask, mask_size(mask))) == 0, "%s",
		      bench.error.text);
	ck_assert_mem_eq(bench.field[2], masked[_i].want, fields[2].bytes);
	ck_assert_uint_eq(((const uint8_t *)bench.field[2])[fields[2].bytes], 0xa5);
	bench_free(&bench);
}
END_TEST

static const struct {
	const char *mask;
	size_t size;
	const char *says;
} no_masks[] = {
    {"P5\n2 4\n255\nabcdefgh", 19, "mask 2 x 4, picture 4 x 2"},
    {"P5\n4 2\n255\nabcdefgh", 18, "the file ends before the picture does"},
    {"P5\n4 2\n999\n\0\1\1\2\1\3\0\4\0\5\0\6\0\7\0\10", 27, "label 259 of a uint8 mask"},
    {"P6\n4 2\n255\nabcdefghabcdefghabcdefgh", 35, "PNM: a mask is raw PGM (P5)"},
    {"BM\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18, "a mask is PNG, PGM or TIFF, this one BMP"},
    {"nothing", 7, "not JPEG, PNG or another format of pictures"},
};

START_TEST(what_is_no_mask_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	bench_new(&bench, masked[0].text);
	ck_assert_int_eq(
	    bench_run(&bench, data, make_mask(data, no_masks[_i].mask, no_masks[_i].size)),
	    PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, no_masks[_i].says);
	make_mask(data, LABELS, 19);
	head_of(data)->field[1].dtype = PIPELINE_I8;
	ck_assert_int_eq(bench_run(&bench, data, 403), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "field 1: other type or shape");
	bench_free(&bench);
}
END_TEST

/* ---- further pictures ---- */

static const struct {
	const char *text, *file;
	size_t size;
	uint64_t shape[3];
	uint8_t want[36]; /* each of three equal bytes once */
} companions[] = {
    {MASKED("[1]", "8", "{\"op\":\"hflip\",\"p\":1},{\"op\":\"center_crop\",\"size\":[2,4]}"),
     LABELS,
     19,
     {2, 4, 3},
     {4, 3, 2, 1, 8, 7, 6, 5}},
    {MASKED("[1]", "8", "{\"op\":\"invert\",\"p\":1},{\"op\":\"center_crop\",\"size\":[1,2]}"),
     LABELS,
     19,
     {1, 2, 3},
     {253, 252}},
    {MASKED("[1]", "9", "{\"op\":\"invert\",\"p\":1},{\"op\":\"center_crop\",\"size\":[1,2]}"),
     LABELS,
     19,
     {1, 2, 3},
     {2, 3}},
    /* The middle of three columns of four begins at none (half to even), and not at one of eight. */
    {MASKED("[1,2]", "8", "{\"op\":\"center_crop\",\"size\":[1,3]}"),
     "P5\n8 4\n255\nabcdefghijklmnopqrstuvwxyzABCDEF",
     43,
     {2, 6, 3},
     "abcdefijklmn"},
    {MASKED("[1,2]", "8",
	    "{\"op\":\"pad\",\"padding\":[0,1,0,0]},{\"op\":\"vflip\",\"p\":1},"
	    "{\"op\":\"center_crop\",\"size\":[1,2]}"),
     "P5\n8 4\n255\nabcdefghijklmnopqrstuvwxyzABCDEF",
     43,
     {2, 4, 3},
     "klmncdef"},
    /* Of a view's own ops, of any size. */
    {MASKED("[1]", "8",
	    "{\"op\":\"center_crop\",\"size\":2},{\"op\":\"view\",\"names\":[\"mask\"]},"
	    "{\"op\":\"center_crop\",\"size\":[1,3]}"),
     "P5\n3 1\n255\nxyz",
     14,
     {1, 3, 3},
     "xyz"},
};

START_TEST(pictures_follow_the_first)
{
	_Alignas(64) uint8_t data[ROOM];
	const struct pipeline_field *fields;
	const uint8_t *got;
	struct bench bench;

	bench_new(&bench, companions[_i].text);
	ck_assert_uint_eq(pipeline_fields(bench.pipeline, &fields), 3);
	ck_assert_str_eq(fields[2].name, "mask");
	ck_assert_uint_eq(fields[2].ndim, 3);
	ck_assert_mem_eq(fields[2].shape, companions[_i].shape, sizeof(companions[_i].shape));
	memset(bench.field, 0xa5, sizeof(bench.field));
	ck_assert_msg(
	    bench_run(&bench, data, make_mask(data, companions[_i].file, companions[_i].size)) == 0,
	    "%s", bench.error.text);
	got = (const uint8_t *)bench.field[2];
	for (uint64_t i = 0; i < fields[2].bytes; i++)
		ck_assert_uint_eq(got[i], companions[_i].want[i / 3]);
	ck_assert_uint_eq(got[fields[2].bytes], 0xa5);
	bench_free(&bench);
}
END_TEST

#define OTHER                                                                                 \
	"[{\"op\":\"decode\",\"source\":\"record\",\"fields\":[[3,3,4],[1]],\"kinds\":[3,8]," \
	"\"names\":[\"boxes\",\"other\"]}," CROPPED(",\"min_scale\":0.5,\"max_scale\":0.6,"   \
						    "\"max_aspect_ratio\":4") "]"

/* It has the part that was chosen by the boxes on the first one. */
START_TEST(a_picture_follows_what_boxes_chose)
{
	static const float box[2][4] = {{0, 0, 2, 1}, {1, 0, 4, 1}};
	_Alignas(64) uint8_t data[ROOM];
	const size_t size = make_boxes(data, box, 3);
	struct pipeline_out out;
	struct bench bench;
	unsigned cropped = 0;

	*place_of(data, 2) = *place_of(data, 0);
	place_of(data, 2)->at = 320;
	memcpy(data + 320, data + 256, 19);
	bench_new(&bench, OTHER);
	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		out.field[f] = bench.field[f];
	for (uint64_t sample = 0; sample < 100; sample++) {
		const struct pipeline_key key = {1, 2, sample};

		ck_assert_int_eq(
		    pipeline_run_sample(bench.run, 1, data, size, 7, &key, &out, &bench.error), 0);
		ck_assert_mem_eq(bench.field[0], bench.field[3], 24);
		cropped += ((const uint8_t *)bench.field[0])[23] == 0;
	}
	ck_assert_uint_gt(cropped, 50);
	bench_free(&bench);
}
END_TEST

static const struct {
	const char *file;
	size_t size;
	const char *says;
} no_companions[] = {
    {"P5\n2 4\n255\nabcdefgh", 19, "mask: 2 x 4, not 1 x (4 x 2)"},
    {"P5\n4 2\n255\nabcdefgh", 18, "mask: the file ends before the picture does"},
    {"nothing", 7, "mask: not JPEG, PNG or another format of pictur"},
};

START_TEST(what_does_not_follow_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	bench_new(&bench, companions[0].text);
	ck_assert_int_eq(bench_run(&bench, data,
				   make_mask(data, no_companions[_i].file, no_companions[_i].size)),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, no_companions[_i].says);
	bench_free(&bench);
	bench_new(&bench, companions[3].text);
	ck_assert_int_eq(bench_run(&bench, data, make_mask(data, LABELS, 19)), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "mask: 4 x 2, not 2 x (4 x 2)");
	bench_free(&bench);
}
END_TEST

START_TEST(what_is_no_picture_is_refused)
{
	_Alignas(64) uint8_t data[ROOM];
	struct bench bench;

	bench_new(&bench, PICTURE);
	ck_assert_int_eq(bench_run(&bench, data, make(data, 1)), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "it is no picture and label");
	make_picture(data, -1);
	ck_assert_int_eq(bench_run(&bench, data, 328), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "label -1, classes count from 0");
	make_picture(data, 1);
	head_of(data)->field[1] = (struct packed_place){PIPELINE_U8, 0, {0}, 320, 1};
	ck_assert_int_eq(bench_run(&bench, data, 328), PIPELINE_E_BAD);
	ck_assert_str_eq(bench.error.text, "the label is no whole number");
	make_picture(data, 1);
	data[256] = 'x';
	ck_assert_int_eq(bench_run(&bench, data, 328), PIPELINE_E_BAD);
	ck_assert_int_eq(bench.error.stage, PIPELINE_FAIL_DECODE);
	bench_free(&bench);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("packed");
	TCase *text = tcase_create("text"), *bytes = tcase_create("bytes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(text, wrong_texts_are_told, 0, BASE_ARRAY_LEN(wrong));
	tcase_add_test(text, fields_are_those_of_the_text);
	tcase_add_test(text, pictures_of_records_are_another_pipeline);
	suite_add_tcase(suite, text);
	tcase_add_test(bytes, a_record_goes_to_its_fields);
	tcase_add_loop_test(bytes, a_damaged_record_is_refused, 0, BASE_ARRAY_LEN(damages));
	tcase_add_test(bytes, a_short_record_is_refused);
	tcase_add_test(text, ragged_fields_are_those_of_the_text);
	tcase_add_loop_test(bytes, a_ragged_sample_is_as_long_as_it_is, 0, BASE_ARRAY_LEN(ragged));
	tcase_add_loop_test(bytes, a_damaged_ragged_record_is_refused, 0,
			    BASE_ARRAY_LEN(ragged_damages));
	tcase_add_loop_test(bytes, boxes_follow_the_picture, 0, BASE_ARRAY_LEN(following));
	tcase_add_test(bytes, a_shared_picture_is_cropped_for_each);
	tcase_add_loop_test(bytes, points_follow_the_picture, 0, BASE_ARRAY_LEN(pointed));
	tcase_add_test(bytes, points_need_no_boxes);
	tcase_add_loop_test(bytes, masks_follow_the_picture, 0, BASE_ARRAY_LEN(masked));
	tcase_add_loop_test(bytes, what_is_no_mask_is_refused, 0, BASE_ARRAY_LEN(no_masks));
	tcase_add_loop_test(bytes, pictures_follow_the_first, 0, BASE_ARRAY_LEN(companions));
	tcase_add_test(bytes, a_picture_follows_what_boxes_chose);
	tcase_add_loop_test(bytes, what_does_not_follow_is_refused, 0,
			    BASE_ARRAY_LEN(no_companions));
	tcase_add_test(bytes, other_fields_stand_beside_a_picture);
	tcase_add_test(bytes, a_picture_goes_through_the_pipeline);
	tcase_add_test(bytes, what_is_no_picture_is_refused);
	suite_add_tcase(suite, bytes);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
