/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a picture's ops: filter, label ops, mixup, cutmix and mosaic. What is refused and how it is
 * said, what is part of a stream's name, what labels become, which pictures stay.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/pipeline.h"
#include "tests/data.h"
#include "tests/suite.h"

#define PIXELS "{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":4}"
#define CAST ",{\"op\":\"cast\"}"
#define ONE_HOT ",{\"op\":\"one_hot\",\"num_classes\":5}"
#define MIXUP ",{\"op\":\"mixup\",\"num_classes\":5}"
#define MOSAIC ",{\"op\":\"mosaic\"}"
#define KEEP ",{\"op\":\"filter\",\"keep\":[3,1]}"
#define SIZE ",{\"op\":\"filter\",\"min_width\":100,\"max_height\":900}"

static const struct {
	const char *text; /* behind PIXELS */
	const char *says[3];
} refused[] = {
    {ONE_HOT CAST, {"op 4 (cast)", "works on the picture", "before op 3 (one_hot)"}},
    {KEEP ",{\"op\":\"hflip\"}", {"op 4 (hflip)", "before op 3 (filter)"}},
    {ONE_HOT KEEP, {"op 4 (filter)", "behind op 3 (one_hot)", "put it before"}},
    {CAST MIXUP ONE_HOT, {"op 5 (one_hot)", "behind op 4 (mixup)"}},
    {KEEP SIZE, {"op 4 (filter)", "twice"}},
    {",{\"op\":\"filter\"}", {"op 3 (filter)", "leaves nothing out", "min_width"}},
    {",{\"op\":\"filter\",\"keep\":[]}", {"op 3 (filter)", "keep is an empty list"}},
    {",{\"op\":\"filter\",\"drop\":[-1]}", {"op 3 (filter)", "drop is not from 0"}},
    {",{\"op\":\"filter\",\"min_width\":9,\"max_width\":8}", {"op 3 (filter)", "exchange"}},
    {ONE_HOT ONE_HOT, {"op 4 (one_hot)", "twice"}},
    {",{\"op\":\"one_hot\"}", {"op 3 (one_hot)", "num_classes is missing", "how many"}},
    {",{\"op\":\"one_hot\",\"num_classes\":65537}", {"num_classes is not from 1 to 65536"}},
    {",{\"op\":\"smooth\"}", {"op 3 (smooth)", "num_classes", "one_hot"}},
    {",{\"op\":\"smooth\",\"num_classes\":5,\"epsilon\":1.5}", {"epsilon is not from 0 to 1"}},
    {ONE_HOT ",{\"op\":\"smooth\",\"num_classes\":6}", {"op 4 (smooth)", "not that of one_hot"}},
    {",{\"op\":\"smooth\",\"num_classes\":5}" ONE_HOT, {"op 4 (one_hot)", "before smooth"}},
    {ONE_HOT ",{\"op\":\"map\",\"labels\":[1]}", {"op 4 (map)", "before one_hot"}},
    {",{\"op\":\"map\"}", {"op 3 (map)", "labels", "table"}},
    {",{\"op\":\"map\",\"labels\":[1],\"table\":[[0,1]]}", {"op 3 (map)", "one of"}},
    {",{\"op\":\"map\",\"table\":[[0,1],[2]]}", {"op 3 (map)", "no pair"}},
    {",{\"op\":\"map\",\"table\":[[0,1],[0,2]]}", {"op 3 (map)", "twice"}},
    {",{\"op\":\"map\",\"table\":[[-1,2]]}", {"op 3 (map)", "below 0"}},
    {",{\"op\":\"map\",\"labels\":[3000000000]}", {"op 3 (map)", "labels is not from"}},
    {MIXUP, {"op 3 (mixup)", "uint8", "cutmix"}},
    {CAST ",{\"op\":\"mixup\"}", {"op 4 (mixup)", "num_classes", "one_hot"}},
    {CAST ONE_HOT ",{\"op\":\"mixup\",\"num_classes\":6}",
     {"op 5 (mixup)", "not that of the label"}},
    {CAST MIXUP MIXUP, {"op 5 (mixup)", "twice"}},
    {CAST MIXUP ",{\"op\":\"cutmix\",\"num_classes\":5}", {"op 5 (cutmix)", "0.5", "more than 1"}},
    {CAST ",{\"op\":\"mixup\",\"num_classes\":5,\"p\":0.5},{\"op\":\"cutmix\",\"num_classes\":6,"
	  "\"p\":0.5}",
     {"op 5 (cutmix)", "both the same"}},
    {MOSAIC MOSAIC, {"op 4 (mosaic)", "only op", "leave the others out"}},
    {CAST MIXUP MOSAIC, {"op 5 (mosaic)", "only op"}},
    {CAST MOSAIC MIXUP, {"op 5 (mixup)", "only op"}},
    {MOSAIC CAST, {"op 4 (cast)", "before op 3 (mosaic)"}},
    {",{\"op\":\"mosaic\",\"center\":[0.5,2.1]}", {"op 3 (mosaic)", "center is not from 0 to 2"}},
    {",{\"op\":\"mosaic\",\"scale\":0.01}", {"op 3 (mosaic)", "scale is not from 0.1 to 10"}},
    {CAST ",{\"op\":\"mixup\",\"num_classes\":5,\"alpha\":0}", {"alpha is not from 0.001 to 1000"}},
};

static int compiled(const char *text, struct pipeline **ret, struct diag *diag)
{
	char whole[4096];

	ck_assert_int_lt(snprintf(whole, sizeof(whole), "[" PIXELS "%s]", text),
			 (int)sizeof(whole));
	return pipeline_compile(whole, strlen(whole), ret, diag);
}

static struct pipeline *good(const char *text)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {""};

	ck_assert_msg(compiled(text, &pipeline, &diag) == 0, "%s: %s", text, diag.text);
	return pipeline;
}

START_TEST(refusals)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {""};

	ck_assert_int_eq(compiled(refused[_i].text, &pipeline, &diag), PIPELINE_E_BAD);
	for (unsigned i = 0; i < 3 && refused[_i].says[i]; i++)
		ck_assert_msg(strstr(diag.text, refused[_i].says[i]) != NULL, "no \"%s\" in: %s",
			      refused[_i].says[i], diag.text);
}
END_TEST

/* ---- names ---- */

/* Two texts: is it one stream, may they be variants of one, is it the same that was asked for? */
static const struct {
	const char *a, *b;
	bool one_stream, one_outcome, one_wish;
} pairs[] = {
    {"", KEEP, true, true, false},
    {KEEP, ",{\"op\":\"filter\",\"drop\":[0]}", true, true, false},
    {KEEP, ",{\"keep\":[3,1],\"op\":\"filter\",\"drop\":null}", true, true, true},
    {"", SIZE, false, false, false},
    {SIZE, ",{\"op\":\"filter\",\"min_width\":100,\"max_height\":900,\"keep\":[1]}", true, true,
     false},
    {CAST, CAST MIXUP, true, true, false},
    {CAST ONE_HOT, CAST ONE_HOT ",{\"op\":\"cutmix\"}", true, true, false},
    {CAST MIXUP, CAST ",{\"op\":\"mixup\",\"num_classes\":5,\"p\":0.5}", true, true, false},
    {CAST MIXUP, CAST MOSAIC, true, true, false},
    {MOSAIC, ",{\"op\":\"mosaic\",\"scale\":1}", true, true, false},
    {MOSAIC, ",{\"op\":\"mosaic\",\"scale\":[0.5,1.5],\"fill\":[114,114,114]}", true, true, true},
    {CAST, CAST ONE_HOT, false, false, false},
    {CAST ONE_HOT, ONE_HOT, false, true, false},
    {ONE_HOT, ONE_HOT ",{\"op\":\"smooth\"}", false, true, false},
    {"", ",{\"op\":\"map\",\"labels\":[1],\"default\":2}", false, true, false},
    {"", ",{\"op\":\"map\",\"labels\":[1]}", false, false, false},
    {KEEP ONE_HOT, ONE_HOT, true, true, false},
    {KEEP ",{\"op\":\"map\",\"labels\":[4,5]}", ",{\"op\":\"map\",\"labels\":[4,5]}", true, true,
     false},
};

static bool same(void (*hash)(const struct pipeline *, struct hash_id *), const struct pipeline *a,
		 const struct pipeline *b)
{
	struct hash_id of_a, of_b;

	hash(a, &of_a);
	hash(b, &of_b);
	return memcmp(&of_a, &of_b, sizeof(of_a)) == 0;
}

START_TEST(names)
{
	struct pipeline *a = good(pairs[_i].a), *b = good(pairs[_i].b);

	ck_assert_int_eq(same(pipeline_hash, a, b), pairs[_i].one_stream);
	ck_assert_int_eq(same(pipeline_hash_outcome, a, b), pairs[_i].one_outcome);
	ck_assert_int_eq(same(pipeline_hash_asked, a, b), pairs[_i].one_wish);
	pipeline_free(a);
	pipeline_free(b);
}
END_TEST

/* The canonical text is a spec, and compiles to the same. */
START_TEST(canonical)
{
	struct pipeline *pipeline = good(CAST SIZE ONE_HOT MIXUP), *again = NULL;
	const char *text = pipeline_canonical(pipeline);
	struct diag diag = {""};

	ck_assert_str_eq(
	    text,
	    "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":[4,4]},{\"dtype\":"
	    "\"f32\",\"op\":\"cast\"},{\"drop\":null,\"keep\":null,\"max_height\":900,"
	    "\"max_width\":null,\"min_height\":null,\"min_width\":100,\"op\":\"filter\"},"
	    "{\"num_classes\":5,\"op\":\"one_hot\"}]}");
	ck_assert_int_eq(pipeline_compile(text, strlen(text), &again, &diag), 0);
	ck_assert(same(pipeline_hash, pipeline, again));
	ck_assert(pipeline_filters(pipeline) && pipeline_filters(again));
	pipeline_free(pipeline);
	pipeline_free(again);
}
END_TEST

/* The numbers, and the colour as the image has it. */
START_TEST(mosaics)
{
	static const char *const texts[] = {
	    ",{\"op\":\"mosaic\",\"p\":0.5,\"center\":1,\"scale\":[0.5,2],\"fill\":[255,0,51],"
	    "\"min_size\":3,\"min_visibility\":0.25,\"epochs\":7}",
	    CAST ",{\"op\":\"layout\"},{\"op\":\"mosaic\",\"fill\":[255,0,51]}",
	    ",{\"op\":\"grayscale\"}" CAST ",{\"op\":\"mosaic\",\"fill\":255}",
	    ",{\"op\":\"gaussian_noise\"}" CAST ",{\"op\":\"mosaic\",\"fill\":[255,0,51]}",
	};
	static const uint8_t fills[][12] = {{255, 0, 51},
					    {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0xcd, 0xcc, 0x4c, 0x3e},
					    {0, 0, 0x80, 0x3f},
					    {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0xcd, 0xcc, 0x4c, 0x3e}};
	struct pipeline *pipeline = good(texts[_i]);
	const struct pipeline_batch *batch = pipeline_batch(pipeline);

	ck_assert_uint_eq(batch->n, 1);
	ck_assert_int_eq(batch->op[0].kind, PIPELINE_MOSAIC);
	ck_assert_int_eq(batch->is_planar, _i == 1);
	ck_assert_mem_eq(batch->mosaic.fill, fills[_i], sizeof(fills[_i]));
	ck_assert(batch->op[0].p == (_i ? 1 : 0.5) && batch->mosaic.epochs == (_i ? 0 : 7));
	ck_assert(batch->mosaic.center[0] == (_i ? 0.5 : 1) &&
		  batch->mosaic.center[1] == (_i ? 1.5 : 1));
	ck_assert(batch->mosaic.scale[0] == 0.5 && batch->mosaic.scale[1] == (_i ? 1.5 : 2));
	ck_assert(batch->mosaic.min_size == (_i ? 1 : 3) &&
		  batch->mosaic.min_visibility == (_i ? 0.1 : 0.25));
	pipeline_free(pipeline);
}
END_TEST

START_TEST(what_jobs_do_themselves)
{
	struct pipeline *pipeline = good(
	    CAST ",{\"op\":\"layout\"}" KEEP ",{\"op\":\"cutmix\",\"p\":0.25,\"num_classes\":7},"
		 "{\"op\":\"mixup\",\"p\":0.75,\"alpha\":0.2,\"num_classes\":7}");
	const struct pipeline_batch *batch = pipeline_batch(pipeline);
	unsigned count = 0;
	const int32_t *keep = pipeline_filter_labels(pipeline, true, &count);

	ck_assert_uint_eq(batch->n, 2);
	ck_assert_int_eq(batch->op[0].kind, PIPELINE_CUTMIX);
	ck_assert(batch->op[0].alpha == 1 && batch->op[0].p == 0.25);
	ck_assert_int_eq(batch->op[1].kind, PIPELINE_MIXUP);
	ck_assert(batch->op[1].alpha == 0.2 && batch->op[1].p == 0.75);
	ck_assert(batch->is_planar && batch->classes == 7);
	ck_assert_uint_eq(count, 2);
	ck_assert(keep[0] == 3 && keep[1] == 1);
	ck_assert_ptr_null(pipeline_filter_labels(pipeline, false, &count));
	ck_assert(!pipeline_filters(pipeline) && !pipeline_is_random(pipeline));
	pipeline_free(pipeline);
}
END_TEST

/* ---- samples ---- */

static uint8_t *picture;
static size_t picture_size;

static void load(void) /* 420.jpg */
{
	picture = data_load("pipeline/data", "420.jpg", &picture_size);
}

static void unload(void)
{
	free(picture);
}

static int sample(const struct pipeline *pipeline, const void *data, size_t size, uint32_t label,
		  void *ret_label, struct pipeline_error *ret_error)
{
	const struct pipeline_key key = {1, 2, 3};
	const struct pipeline_field *fields;
	struct pipeline_out out;
	struct pipeline_run *run;
	int r;

	ck_assert_uint_eq(pipeline_fields(pipeline, &fields), 2);
	out.field[0] = malloc(fields[0].bytes);
	out.field[1] = malloc(fields[1].bytes);
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &run), 0);
	r = pipeline_run_sample(run, 1, data, size, label, &key, &out, ret_error);
	if (r == 0)
		memcpy(ret_label, out.field[1], fields[1].bytes);
	pipeline_run_free(run);
	free(out.field[0]);
	free(out.field[1]);
	return r;
}

static const struct {
	const char *text;
	uint32_t label;
	int64_t number;     /* what it becomes, without a vector */
	unsigned classes;   /* of a vector */
	double own, others; /* by torch's definition */
	unsigned at;
	const char *error; /* NULL: none */
} labels[] = {
    {"", 7, 7, 0, 0, 0, 0, NULL},
    {",{\"op\":\"map\",\"labels\":[5,-100,2147483647]}", 1, -100, 0, 0, 0, 0, NULL},
    {",{\"op\":\"map\",\"labels\":[5,-100,2147483647]}", 2, 2147483647, 0, 0, 0, 0, NULL},
    {",{\"op\":\"map\",\"labels\":[5,6]}", 2, 0, 0, 0, 0, 0, "no entry for class 2"},
    {",{\"op\":\"map\",\"labels\":[5,6],\"default\":9}", 2, 9, 0, 0, 0, 0, NULL},
    {",{\"op\":\"map\",\"table\":[[9,1],[4,2],[0,3]]}", 4, 2, 0, 0, 0, 0, NULL},
    {",{\"op\":\"map\",\"table\":[[9,1],[4,2],[0,3]]}", 1, 0, 0, 0, 0, 0, "no entry for class 1"},
    {ONE_HOT, 0, 0, 5, 1, 0, 0, NULL},
    {ONE_HOT, 4, 0, 5, 1, 0, 4, NULL},
    {ONE_HOT, 5, 0, 5, 1, 0, 0, "label 5, but num_classes is 5"},
    {",{\"op\":\"map\",\"labels\":[-1]}" ONE_HOT, 0, 0, 5, 1, 0, 0, "label -1"},
    {",{\"op\":\"map\",\"labels\":[3,2]}" ONE_HOT, 1, 0, 5, 1, 0, 2, NULL},
    {ONE_HOT ",{\"op\":\"smooth\"}", 2, 0, 5, 0.9 + 0.1 / 5, 0.1 / 5, 2, NULL},
    {",{\"op\":\"smooth\",\"num_classes\":3,\"epsilon\":1}", 2, 0, 3, 1.0 / 3, 1.0 / 3, 2, NULL},
    {",{\"op\":\"smooth\",\"num_classes\":3,\"epsilon\":0}", 1, 0, 3, 1, 0, 1, NULL},
};

START_TEST(what_labels_become)
{
	struct pipeline *pipeline = good(labels[_i].text);
	const struct pipeline_field *fields;
	struct pipeline_error error = {.code = 0};
	float vector[5] = {0};
	int64_t number = 0;
	void *out = labels[_i].classes ? (void *)vector : (void *)&number;
	int r = sample(pipeline, picture, picture_size, labels[_i].label, out, &error);

	pipeline_fields(pipeline, &fields);
	ck_assert_str_eq(fields[1].name, "label");
	ck_assert_int_eq(fields[1].dtype, labels[_i].classes ? PIPELINE_F32 : PIPELINE_I64);
	ck_assert_uint_eq(fields[1].ndim, labels[_i].classes > 0);
	if (labels[_i].error) {
		ck_assert_int_eq(r, PIPELINE_E_BAD);
		ck_assert_int_eq(error.stage, PIPELINE_FAIL_OP);
		ck_assert_msg(strstr(error.text, labels[_i].error) != NULL, "%s", error.text);
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(number, labels[_i].number);
	}
	for (unsigned i = 0; r == 0 && i < labels[_i].classes; i++) {
		double is = i == labels[_i].at ? labels[_i].own : labels[_i].others;

		ck_assert_msg(fabs((double)vector[i] - is) < 1e-7, "%u: %g", i, (double)vector[i]);
	}
	pipeline_free(pipeline);
}
END_TEST

static const struct {
	const char *op;
	int wide, high; /* beyond the picture's size */
	bool stays;
} sizes[] = {
    {"min_width", 0, 0, true},   {"min_width", 1, 0, false},   {"max_width", 0, 0, true},
    {"max_width", -1, 0, false}, {"min_height", 0, 0, true},   {"min_height", 0, 1, false},
    {"max_height", 0, 0, true},  {"max_height", 0, -1, false},
};

/* The size of 420.jpg, out of its frame header. */
static void size_of_picture(int *ret_wide, int *ret_high)
{
	const uint8_t *p = picture + 2;

	while (p[1] != 0xc0)
		p += 2 + (p[2] << 8 | p[3]);
	*ret_high = p[5] << 8 | p[6];
	*ret_wide = p[7] << 8 | p[8];
}

START_TEST(which_sizes_stay)
{
	struct pipeline_error error = {.code = 0};
	struct pipeline *pipeline;
	int wide, high, r;
	int64_t label;
	char text[128];

	size_of_picture(&wide, &high);
	snprintf(text, sizeof(text), ",{\"op\":\"filter\",\"%s\":%d}", sizes[_i].op,
		 strstr(sizes[_i].op, "width") ? wide + sizes[_i].wide : high + sizes[_i].high);
	pipeline = good(text);
	ck_assert(pipeline_filters(pipeline));
	r = sample(pipeline, picture, picture_size, 1, &label, &error);
	ck_assert_int_eq(r, sizes[_i].stays ? 0 : PIPELINE_E_BAD);
	if (!sizes[_i].stays)
		ck_assert_int_eq(error.stage, PIPELINE_FAIL_FILTERED);
	ck_assert_int_eq(sample(pipeline, "no picture", 10, 1, &label, &error), PIPELINE_E_BAD);
	ck_assert_int_eq(error.stage, PIPELINE_FAIL_DECODE);
	pipeline_free(pipeline);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_unchecked_fixture(tcase, load, unload);
	tcase_add_loop_test(tcase, refusals, 0, BASE_ARRAY_LEN(refused));
	tcase_add_loop_test(tcase, names, 0, BASE_ARRAY_LEN(pairs));
	tcase_add_test(tcase, canonical);
	tcase_add_loop_test(tcase, mosaics, 0, 4);
	tcase_add_test(tcase, what_jobs_do_themselves);
	tcase_add_loop_test(tcase, what_labels_become, 0, BASE_ARRAY_LEN(labels));
	tcase_add_loop_test(tcase, which_sizes_stay, 0, BASE_ARRAY_LEN(sizes));
}

int main(void)
{
	return suite_run("tail", add);
}
