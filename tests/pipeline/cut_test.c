/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept behind a pipeline's first ops: from there the samples come out as from the file, byte for
 * byte, by both engines, with the same draws; or end as they do. Whatever else begins like such a form is
 * refused.
 *
 * Pipelines are put together at random of ops that can be kept and of some that draw, over all pictures of
 * the folders data, formats and exif.
 */

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/little.h"
#include "base/philox.h"
#include "pipeline/engine/finish.h"
#include "pipeline/forms/cut.h"
#include "pipeline/forms/form.h"
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/spec.h"
#include "tests/suite.h"
#include "tests/pipeline/engine_plain.h"

#define CUT_SPECS 80
#define CUT_AT_ONCE 8
#define CUT_MAX_FILES 256
#define CUT_LABEL 4711

struct cut_file {
	char name[256];
	uint8_t *data;
	size_t size;
};
static struct cut_file cut_files[CUT_MAX_FILES];
static unsigned cut_n_files;
static struct form_maker *cut_forms;

static void cut_load(const char *folder, const char *name)
{
	struct cut_file *file = &cut_files[cut_n_files++];
	char path[4096];
	FILE *in;

	ck_assert_uint_le(cut_n_files, CUT_MAX_FILES);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(file->name, sizeof(file->name), "%s", name);
	in = fopen(path, "rb");
	ck_assert_msg(in != NULL, "cannot open %s", path);
	fseek(in, 0, SEEK_END);
	file->size = (size_t)ftell(in);
	rewind(in);
	file->data = malloc(file->size ? file->size : 1);
	ck_assert_ptr_nonnull(file->data);
	ck_assert_uint_eq(fread(file->data, 1, file->size, in), file->size);
	fclose(in);
}

static void cut_setup(void)
{
	static const char *const folders[] = {"data", "formats", "exif"};
	const char *top = getenv("top_srcdir");
	const struct dirent *entry;
	char path[1024];

	cut_n_files = 0;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(folders); i++) {
		DIR *dir;

		snprintf(path, sizeof(path), "%s/tests/pipeline/%s", top ? top : ".", folders[i]);
		dir = opendir(path);
		ck_assert_msg(dir != NULL, "cannot open %s", path);
		while ((entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				cut_load(path, entry->d_name);
		closedir(dir);
	}
	ck_assert_int_eq(form_maker_new(&cut_forms), 0);
}

static void cut_teardown(void)
{
	form_maker_free(cut_forms);
	for (unsigned i = 0; i < cut_n_files; i++)
		free(cut_files[i].data);
}

static const struct cut_file *cut_find(const char *name)
{
	for (unsigned i = 0; i < cut_n_files; i++) {
		if (strcmp(cut_files[i].name, name) == 0)
			return &cut_files[i];
	}
	ck_abort_msg("no file %s", name);
	return NULL;
}

/* ---- a pipeline and its outcomes ---- */

struct cut_outcome {
	uint8_t *image; /* exactly as long: the sanitizer sees a byte too many */
	int64_t label;
	int r;
	struct pipeline_error error;
};

struct cut_case {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	unsigned cut[PIPELINE_MAX_OPS], n;
	bool is_augmented; /* there is a last picture behind random ops */
	size_t bytes;
	struct cut_outcome want, got;
	/* the other engine */
	struct op_list ops;
	struct shape shape;
	struct engine_program *program;
	struct engine_scratch *scratch;
};

static bool cut_has(const struct pipeline *pipeline, unsigned cut)
{
	struct hash_id id, none = {{0}};

	pipeline_hash_cut(pipeline, cut, &id);
	return memcmp(&id, &none, sizeof(id)) != 0;
}

/* False: these ops make no pipeline. */
static bool cut_case_init(struct cut_case *c, const char *text)
{
	const struct pipeline_field *fields;
	const struct pipeline *pipeline;
	struct diag diag;

	memset(c, 0, sizeof(*c));
	if (pipeline_compile(text, strlen(text), &c->pipeline, &diag) != 0)
		return false;
	pipeline = c->pipeline;
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &c->run), 0);
	c->n = pipeline_cuts(pipeline, c->cut);
	c->is_augmented = cut_has(pipeline, PIPELINE_CUT_AUGMENTED);
	pipeline_fields(pipeline, &fields);
	c->bytes = fields[0].bytes;
	c->want.image = malloc(c->bytes);
	c->got.image = malloc(c->bytes);
	ck_assert(c->want.image && c->got.image);
	ck_assert_int_eq(spec_parse(text, strlen(text), &c->ops, &diag), 0);
	ck_assert_int_eq(shape_infer(&c->ops, &c->shape, &diag), 0);
	ck_assert_int_eq(engine_plain.compile(&c->ops, &c->shape, &c->program), 0);
	ck_assert_int_eq(engine_plain.scratch_new(c->program, &c->scratch), 0);
	return true;
}

static void cut_case_fini(struct cut_case *c)
{
	if (!c->pipeline)
		return;
	engine_plain.scratch_free(c->scratch);
	engine_plain.program_free(c->program);
	pipeline_run_free(c->run);
	pipeline_free(c->pipeline);
	free(c->want.image);
	free(c->got.image);
}

static void cut_sample(struct cut_case *c, const void *data, size_t size, uint64_t nonce,
		       struct cut_outcome *ret)
{
	const struct pipeline_key key = {1, nonce, 2};
	const struct pipeline_out out = {.field = {ret->image, &ret->label}};

	memset(ret->image, 0xa5, c->bytes);
	ret->error = (struct pipeline_error){0};
	ret->r = pipeline_run_sample(c->run, 1, data, size, CUT_LABEL, &key, &out, &ret->error);
}

static void cut_sample_plain(struct cut_case *c, const void *data, size_t size, uint64_t nonce,
			     struct cut_outcome *ret)
{
	const struct pipeline_key key = {1, nonce, 2};

	memset(ret->image, 0xa5, c->bytes);
	ret->error = (struct pipeline_error){0};
	ret->r =
	    engine_plain.run(c->program, c->scratch, data, size, &key, ret->image, &ret->error);
}

static void cut_compare(const struct cut_case *c, const char *name, unsigned cut)
{
	const struct cut_outcome *a = &c->want, *b = &c->got;

	ck_assert_msg(a->r == b->r && a->error.stage == b->error.stage &&
			  strcmp(a->error.text, b->error.text) == 0,
		      "%s, cut %u: %d %s, not %d %s (%s)", name, cut, b->r, b->error.text, a->r,
		      a->error.text, pipeline_canonical(c->pipeline));
	ck_assert_msg(a->r != 0 || memcmp(a->image, b->image, c->bytes) == 0, "%s, cut %u (%s)",
		      name, cut, pipeline_canonical(c->pipeline));
}

/* In memory of exactly its size; NULL with the error in c->got: there is none. */
static uint8_t *cut_make_of(struct cut_case *c, unsigned cut, const void *data, size_t size,
			    uint64_t nonce, size_t *ret_size)
{
	const struct pipeline_key key = {1, nonce, 2};
	struct pipeline_error *error = &c->got.error;
	size_t needed = 0;
	uint8_t *form, *exact;

	*error = (struct pipeline_error){0};
	c->got.r = pipeline_cut_make(c->run, 0, cut, data, size, &key, NULL, 0, &needed, error);
	if (c->got.r == PIPELINE_E_BAD)
		return NULL;
	ck_assert_int_eq(c->got.r, PIPELINE_E_ROOM);
	form = malloc(needed);
	ck_assert_ptr_nonnull(form);
	c->got.r =
	    pipeline_cut_make(c->run, 0, cut, data, size, &key, form, needed, ret_size, error);
	if (c->got.r != 0) {
		ck_assert_int_eq(c->got.r, PIPELINE_E_BAD); /* an error behind the head */
		free(form);
		return NULL;
	}
	ck_assert_uint_le(*ret_size, needed);
	exact = malloc(*ret_size);
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, form, *ret_size);
	free(form);
	return exact;
}

static uint8_t *cut_make(struct cut_case *c, unsigned cut, const void *data, size_t size,
			 size_t *ret_size)
{
	return cut_make_of(c, cut, data, size, 0, ret_size);
}

/* ---- all that can be kept ---- */

static const char *const cut_decodes[] = {"", ",\"exif_transpose\":true", ",\"fast\":true"};

/* Of one picture always the same. */
static const char *const cut_kept_ops[] = {
    "{\"op\":\"resize\",\"size\":37}",
    "{\"op\":\"resize\",\"size\":41,\"max_size\":50,\"interpolation\":\"bicubic\"}",
    "{\"op\":\"resize\",\"size\":[29,61],\"interpolation\":\"lanczos\"}",
    "{\"op\":\"resize\",\"size\":90,\"interpolation\":\"nearest\"}",
    "{\"op\":\"center_crop\",\"size\":[45,33]}",
    "{\"op\":\"center_crop\",\"size\":120}",
    "{\"op\":\"center_crop\",\"size\":[119,90],\"fill\":9,\"half\":\"down\"}",
    "{\"op\":\"resize\",\"size\":[29,61],\"fit\":\"cover\"}",
    "{\"op\":\"hflip\",\"p\":1}",
    "{\"op\":\"vflip\",\"p\":1}",
    "{\"op\":\"hflip\",\"p\":0}",
    "{\"op\":\"grayscale\"}",
    "{\"op\":\"grayscale\",\"num_output_channels\":3}",
    "{\"op\":\"random_grayscale\",\"p\":1}",
    "{\"op\":\"autocontrast\",\"p\":1}",
    "{\"op\":\"equalize\",\"p\":1}",
    "{\"op\":\"invert\",\"p\":1}",
    "{\"op\":\"levels\",\"contrast\":[0.8,1.2],\"blue\":9,\"p\":1}",
    "{\"op\":\"hue_saturation_value\",\"hue\":[-20,20],\"saturation\":-9,\"p\":1}",
    "{\"op\":\"coarse_dropout\",\"p\":1,\"value\":\"random\"}",
    "{\"op\":\"motion_blur\",\"p\":1,\"size\":5}",
    "{\"op\":\"posterize\",\"p\":1,\"bits\":3}",
    "{\"op\":\"solarize\",\"p\":1,\"threshold\":99}",
    "{\"op\":\"sharpness\",\"p\":1,\"sharpness_factor\":1.5}",
    "{\"op\":\"color_jitter\",\"brightness\":[1.2,1.2]}",
    "{\"op\":\"rotate\",\"degrees\":[30,30],\"expand\":true}",
    "{\"op\":\"affine\",\"degrees\":[10,10],\"interpolation\":\"bilinear\"}",
    "{\"op\":\"pad\",\"padding\":[1,2,3,4],\"fill\":7}",
    "{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"sigma\":1}",
    "{\"op\":\"jpeg\",\"quality\":30}",
    "{\"op\":\"elastic_transform\",\"alpha\":[0,0],\"sigma\":[0,0]}",
    "{\"op\":\"rand_augment\",\"num_ops\":0}",
    "{\"op\":\"random_erasing\",\"p\":0}",
};

static const char *const cut_drawn_ops[] = {
    "{\"op\":\"random_resized_crop\",\"size\":[24,40],\"scale\":[0.05,1]}",
    "{\"op\":\"random_crop\",\"size\":[20,30],\"pad_if_needed\":true}",
    ("{\"op\":\"random_apply\",\"ops\":2,\"otherwise\":1},{\"op\":\"invert\",\"p\":1},"
     "{\"op\":\"resize\",\"size\":[33,31]},"
     "{\"op\":\"random_resized_crop\",\"size\":[33,31],\"or_interpolation\":\"bicubic\"}"),
    "{\"op\":\"hflip\"},{\"op\":\"center_crop\",\"size\":[35,25]}",
    "{\"op\":\"rotate\",\"degrees\":90},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"color_jitter\",\"contrast\":0.5},{\"op\":\"center_crop\",\"size\":32}",
    "{\"op\":\"random_channel_permutation\"},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"random_perspective\"},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"jpeg\",\"quality\":[1,100]},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"elastic_transform\",\"sigma\":[0.2,0.1]},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"aug_mix\"},{\"op\":\"timm_aug_mix\"},{\"op\":\"resize\",\"size\":[31,31]}",
    "{\"op\":\"scale_jitter\",\"target_size\":40},{\"op\":\"fixed_size_crop\",\"size\":[30,35]}",
    ("{\"op\":\"random_photometric_distort\"},{\"op\":\"random_zoom_out\",\"fill\":[123,117,104]},"
     "{\"op\":\"random_shortest_size\",\"min_size\":[20,30,40]},{\"op\":\"fixed_size_crop\","
     "\"size\":[30,35],\"padding_mode\":\"edge\"}"),
    "{\"op\":\"random_crop\",\"size\":[20,30]}", /* refuses smaller ones */
    "{\"op\":\"center_crop\",\"size\":[35,25]}",
    "{\"op\":\"five_crop\",\"size\":20}",
    "{\"op\":\"resize\",\"size\":[28,44]}",
};

static const char *const cut_ends[] = {
    "",
    ",{\"op\":\"layout\"}",
    ",{\"op\":\"cast\"},{\"op\":\"layout\"}",
    ",{\"op\":\"normalize\",\"mean\":[0.5],\"std\":[0.25]},{\"op\":\"cast\",\"dtype\":\"f16\"}",
    (",{\"op\":\"normalize\",\"mean\":0.5,\"std\":0.25},{\"op\":\"random_erasing\"},{\"op\":"
     "\"layout\"}"),
};

#define CUT_PICK(seq, list) (list)[philox_below(seq, BASE_ARRAY_LEN(list))]

static void cut_put_spec(struct philox_seq *seq, char *to, size_t size)
{
	const unsigned n = (unsigned)philox_below(seq, 5);
	int at = snprintf(to, size, "[{\"op\":\"decode\"%s}", CUT_PICK(seq, cut_decodes));

	for (unsigned i = 0; i < n; i++)
		at += snprintf(to + at, size - (size_t)at, ",%s", CUT_PICK(seq, cut_kept_ops));
	at += snprintf(to + at, size - (size_t)at, ",%s", CUT_PICK(seq, cut_drawn_ops));
	at += snprintf(to + at, size - (size_t)at, "%s]", CUT_PICK(seq, cut_ends));
	ck_assert_int_lt(at, (int)size);
}

/* The file's samples, and those from each cut of it. */
static void cut_check_file(struct cut_case *c, const struct cut_file *file)
{
	for (unsigned i = 0; i < c->n; i++) {
		size_t size;
		uint8_t *form = cut_make(c, c->cut[i], file->data, file->size, &size);

		for (uint64_t nonce = 0; nonce < 2; nonce++) {
			cut_sample(c, file->data, file->size, nonce, &c->want);
			if (form)
				cut_sample(c, form, size, nonce, &c->got);
			cut_compare(c, file->name, c->cut[i]);
			if (!form)
				continue;
			cut_sample_plain(c, form, size, nonce, &c->got);
			cut_compare(c, file->name, c->cut[i]);
		}
		free(form);
	}
}

/* The augmented picture of each of some nonces: that nonce's sample comes from it, and no other's. */
static void cut_check_augmented(struct cut_case *c, const struct cut_file *file)
{
	const unsigned cut = PIPELINE_CUT_AUGMENTED;

	for (uint64_t nonce = 0; nonce < 3; nonce++) {
		size_t size;
		uint8_t *form = cut_make_of(c, cut, file->data, file->size, nonce, &size);

		cut_sample(c, file->data, file->size, nonce, &c->want);
		if (form)
			cut_sample(c, form, size, nonce, &c->got);
		cut_compare(c, file->name, cut);
		if (!form)
			continue;
		cut_sample_plain(c, form, size, nonce, &c->got);
		cut_compare(c, file->name, cut);
		cut_sample(c, form, size, nonce + 1, &c->got);
		ck_assert_int_eq(c->got.r, PIPELINE_E_BAD);
		ck_assert_int_eq(c->got.error.stage, PIPELINE_FAIL_DECODE);
		free(form);
	}
}

static void cut_check_spec(unsigned number)
{
	struct philox_seq seq;
	struct cut_case c;
	char text[4096];

	philox_seq_init(&seq, 20261122, number, 0);
	do {
		cut_put_spec(&seq, text, sizeof(text));
	} while (!cut_case_init(&c, text));
	for (unsigned i = number % 7; i < cut_n_files; i += 7) {
		cut_check_file(&c, &cut_files[i]);
		if (c.is_augmented)
			cut_check_augmented(&c, &cut_files[i]);
	}
	cut_case_fini(&c);
}

START_TEST(from_cuts)
{
	for (unsigned i = 0; i < CUT_AT_ONCE; i++)
		cut_check_spec((unsigned)_i * CUT_AT_ONCE + i);
}
END_TEST

/* Each picture once, decoded: all formats, sizes and colours. */
START_TEST(decoded)
{
	static const char *const specs[] = {
	    "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":40},{\"op\":\"hflip\"},"
	    "{\"op\":\"layout\"}]",
	    "[{\"op\":\"decode\",\"exif_transpose\":true},{\"op\":\"resize\",\"size\":40},"
	    "{\"op\":\"center_crop\",\"size\":32},{\"op\":\"cast\"}]",
	};
	struct cut_case c;

	ck_assert(cut_case_init(&c, specs[_i]));
	ck_assert_uint_eq(c.n, _i == 0 ? 1 : 3);
	for (unsigned i = 0; i < cut_n_files; i++)
		cut_check_file(&c, &cut_files[i]);
	cut_case_fini(&c);
}
END_TEST

static const char *const cut_trainings[] = {
    "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":40},{\"op\":\"hflip\"},"
    "{\"op\":\"normalize\",\"mean\":0.5,\"std\":0.25},{\"op\":\"random_erasing\"},{\"op\":"
    "\"layout\"}]",
    "[{\"op\":\"decode\",\"fast\":true},{\"op\":\"random_resized_crop\",\"size\":40},"
    "{\"op\":\"hflip\"},{\"op\":\"rand_augment\"}]",
    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":50},{\"op\":\"random_crop\",\"size\":40},"
    "{\"op\":\"color_jitter\",\"brightness\":0.4,\"hue\":0.1},"
    "{\"op\":\"gaussian_blur\",\"kernel_size\":5},{\"op\":\"cast\"}]",
    "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":40},"
    "{\"op\":\"random_grayscale\"},{\"op\":\"trivial_augment\"}]",
    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[50,40]},{\"op\":\"hflip\"},"
    "{\"op\":\"gaussian_noise\"},{\"op\":\"normalize\",\"mean\":0.5,\"std\":0.25},{\"op\":"
    "\"layout\"}]",
};

/* What people train with, on all pictures. */
START_TEST(augmented)
{
	struct cut_case c;

	ck_assert(cut_case_init(&c, cut_trainings[_i]));
	ck_assert(c.is_augmented);
	for (unsigned i = 0; i < cut_n_files; i++)
		cut_check_augmented(&c, &cut_files[i]);
	cut_case_fini(&c);
}
END_TEST

/* The same pixels are kept whichever form they were made of, and from a cut before. */
START_TEST(of_forms)
{
	static const char text[] = "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":50},"
				   "{\"op\":\"gaussian_blur\",\"kernel_size\":3,\"sigma\":1},"
				   "{\"op\":\"center_crop\",\"size\":40}]";
	static const char *const names[] = {"420.jpg", "422.jpg", "444.jpg", "gray.jpg",
					    "tall.jpg"};
	const struct cut_file *file = cut_find(names[_i]);
	struct cut_case c;
	uint8_t *other[4] = {NULL}, *last = NULL;
	size_t other_size[4], last_size = 0;
	unsigned made = 0;

	ck_assert(cut_case_init(&c, text));
	ck_assert_uint_eq(c.n, 4);
	for (enum form_kind kind = FORM_INDEXED; kind <= FORM_PACKED; kind++)
		made += form_make(cut_forms, kind, file->data, file->size, &other[made],
				  &other_size[made]) == 0;
	ck_assert_uint_ge(made, 1);
	for (unsigned i = 0; i < c.n; i++) {
		size_t size, again_size;
		uint8_t *form = cut_make(&c, c.cut[i], file->data, file->size, &size);

		for (unsigned o = 0; o < made + (last != NULL); o++) {
			uint8_t *again =
			    o < made ? cut_make(&c, c.cut[i], other[o], other_size[o], &again_size)
				     : cut_make(&c, c.cut[i], last, last_size, &again_size);

			ck_assert_ptr_nonnull(again);
			ck_assert_uint_eq(again_size, size);
			ck_assert_mem_eq(again, form, size);
			free(again);
		}
		free(last);
		last = form;
		last_size = size;
	}
	free(last);
	for (unsigned o = 0; o < made; o++)
		free(other[o]);
	cut_case_fini(&c);
}
END_TEST

/* ---- which ---- */

static const struct {
	const char *ops, *cuts;
	bool is_augmented;
} cut_places[] = {
    {"{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":9}", "1", true},
    {"{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":9},{\"op\":\"center_crop\",\"size\":9},"
     "{\"op\":\"cast\"}",
     "123", false},
    {"{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":9},{\"op\":\"hflip\"},"
     "{\"op\":\"center_crop\",\"size\":9}",
     "12", true},
    {"{\"op\":\"decode\",\"fast\":true},{\"op\":\"resize\",\"size\":9},"
     "{\"op\":\"center_crop\",\"size\":9}",
     "23", false},
    {"{\"op\":\"decode\",\"fast\":true},{\"op\":\"random_resized_crop\",\"size\":9}", "", true},
    {"{\"op\":\"decode\",\"fast\":true},{\"op\":\"center_crop\",\"size\":9}", "12", false},
    {"{\"op\":\"decode\"},{\"op\":\"five_crop\",\"size\":9}", "1", false},
    {"{\"op\":\"decode\",\"source\":\"random_record\"},{\"op\":\"center_crop\",\"size\":9}", "",
     false},
    {"{\"op\":\"decode\",\"source\":\"record\"},{\"op\":\"center_crop\",\"size\":9}", "12", false},
    {"{\"op\":\"record\",\"fields\":[[1,4]],\"random\":false}", "", false},
};

START_TEST(places)
{
	struct pipeline *pipeline;
	unsigned cut[PIPELINE_MAX_OPS];
	char text[1024], got[PIPELINE_MAX_OPS + 1] = "";
	struct hash_id id, none = {{0}};
	struct diag diag;

	snprintf(text, sizeof(text), "[%s]", cut_places[_i].ops);
	ck_assert_int_eq(pipeline_compile(text, strlen(text), &pipeline, &diag), 0);
	for (unsigned n = pipeline_cuts(pipeline, cut), i = 0; i < n; i++)
		got[i] = (char)('0' + cut[i]);
	ck_assert_str_eq(got, cut_places[_i].cuts);
	for (unsigned i = 1; i < 5; i++)
		ck_assert_int_eq(cut_has(pipeline, i), strchr(got, (int)('0' + i)) != NULL);
	ck_assert_int_eq(cut_has(pipeline, PIPELINE_CUT_AUGMENTED), cut_places[_i].is_augmented);
	pipeline_hash_cut(pipeline, 0, &id);
	ck_assert_mem_ne(&id, &none, sizeof(id));
	pipeline_free(pipeline);
}
END_TEST

/* Equal for pipelines that begin alike, and the whole pipeline's where that is all. */
START_TEST(names)
{
	static const char *const texts[] = {
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[9,8]},{\"op\":\"hflip\"}]",
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[9,8]}]",
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[9,9]}]",
	};
	struct hash_id id[3][3], whole;

	for (unsigned i = 0; i < 3; i++) {
		struct pipeline *pipeline;
		struct diag diag;

		ck_assert_int_eq(pipeline_compile(texts[i], strlen(texts[i]), &pipeline, &diag), 0);
		for (unsigned cut = 0; cut < 3; cut++)
			pipeline_hash_cut(pipeline, cut, &id[i][cut]);
		if (i == 1) {
			pipeline_hash(pipeline, &whole);
			ck_assert_mem_eq(&whole, &id[1][2], sizeof(whole));
		}
		pipeline_free(pipeline);
	}
	ck_assert_mem_eq(id[0], id[1], sizeof(id[0]));
	ck_assert_mem_eq(id[0], id[2], 2 * sizeof(whole));
	ck_assert_mem_ne(&id[0][2], &id[2][2], sizeof(whole));
	for (unsigned cut = 1; cut < 3; cut++)
		ck_assert_mem_ne(&id[0][cut], &id[0][cut - 1], sizeof(whole));
}
END_TEST

/* ---- what is known of the source ---- */

/* A filter sees the size that was decoded. */
START_TEST(filtered)
{
	static const char text[] =
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[20,20]},{\"op\":\"filter\","
	    "\"min_width\":90}]";
	struct cut_case c = {0};
	const struct pipeline *pipeline;
	struct diag diag;
	unsigned left_out = 0, kept = 0;

	ck_assert_int_eq(pipeline_compile(text, strlen(text), &c.pipeline, &diag), 0);
	pipeline = c.pipeline;
	ck_assert_int_eq(pipeline_run_new(&pipeline, 1, &c.run), 0);
	c.bytes = 20 * 20 * 3;
	c.want.image = malloc(c.bytes);
	c.got.image = malloc(c.bytes);
	for (unsigned i = 0; i < cut_n_files; i++) {
		const struct cut_file *file = &cut_files[i];

		for (unsigned cut = 1; cut < 3; cut++) {
			size_t size;
			uint8_t *form = cut_make(&c, cut, file->data, file->size, &size);

			if (!form)
				continue;
			cut_sample(&c, file->data, file->size, 0, &c.want);
			cut_sample(&c, form, size, 0, &c.got);
			cut_compare(&c, file->name, cut);
			left_out += c.got.error.stage == PIPELINE_FAIL_FILTERED;
			kept += c.got.r == 0;
			free(form);
		}
	}
	ck_assert_uint_gt(left_out, 5);
	ck_assert_uint_gt(kept, 5);
	pipeline_run_free(c.run);
	pipeline_free(c.pipeline);
	free(c.want.image);
	free(c.got.image);
}
END_TEST

/* A file as the first field of a record, its class as the second. */
static uint8_t *cut_record(const struct cut_file *file, int64_t label, size_t *ret_size)
{
	const size_t at = 256 + base_align_up(file->size, PACKED_ALIGN);
	struct packed_head head = {
	    .magic = PACKED_MAGIC,
	    .bytes = at + sizeof(label),
	    .n_fields = 2,
	    .field = {{.dtype = PIPELINE_U8,
		       .ndim = 1,
		       .shape = {file->size},
		       .at = 256,
		       .bytes = file->size},
		      {.dtype = PIPELINE_I64, .at = at, .bytes = sizeof(label)}},
	};
	uint8_t *record = calloc(1, at + sizeof(label));

	ck_assert_ptr_nonnull(record);
	memcpy(record, &head, sizeof(head));
	memcpy(record + 256, file->data, file->size);
	memcpy(record + at, &label, sizeof(label));
	*ret_size = at + sizeof(label);
	return record;
}

/* Of a wrapped data set: the record's label comes back, too. */
START_TEST(recorded)
{
	size_t record_size, size;
	struct cut_case c;
	uint8_t *record = cut_record(cut_find("420.jpg"), 99, &record_size), *form;

	ck_assert(cut_case_init(&c, "[{\"op\":\"decode\",\"source\":\"record\"},"
				    "{\"op\":\"random_resized_crop\",\"size\":30}]"));
	form = cut_make(&c, 1, record, record_size, &size);
	ck_assert_ptr_nonnull(form);
	cut_sample(&c, record, record_size, 3, &c.want);
	cut_sample(&c, form, size, 3, &c.got);
	cut_compare(&c, "record", 1);
	ck_assert_int_eq(c.want.label, 99);
	ck_assert_int_eq(c.got.label, 99);
	form[size / 2] ^= 1; /* pixels have no checksum; the head has */
	form[40] ^= 1;
	cut_sample(&c, form, size, 3, &c.got);
	ck_assert_str_eq(c.got.error.text, "a damaged stored form");
	free(form);
	free(record);
	cut_case_fini(&c);
}
END_TEST

/* ---- what is none of theirs ---- */

/* The head's checksum made right again. */
static void cut_seal(uint8_t *form, size_t size)
{
	form_seal(form, FORM_PIXELS, 96, size - 128);
}

static void cut_refused(struct cut_case *c, const uint8_t *form, size_t size, const char *text)
{
	cut_sample(c, form, size, 0, &c->got);
	ck_assert_int_eq(c->got.r, PIPELINE_E_BAD);
	ck_assert_int_eq(c->got.error.stage, PIPELINE_FAIL_DECODE);
	ck_assert_str_eq(c->got.error.text, text);
}

/* Another pipeline's, and one of them only in a run of several. */
START_TEST(others)
{
	static const char *const texts[] = {
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[40,40]},{\"op\":\"hflip\"}]",
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[40,41]},{\"op\":\"hflip\"}]",
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[40,40]}]",
	    "[{\"op\":\"decode\"},{\"op\":\"hflip\"},{\"op\":\"center_crop\",\"size\":40}]",
	};
	static const char refused[] = "kept pixels of another pipeline's first 2 ops";
	const struct cut_file *file = cut_find("420.jpg");
	const struct pipeline *pipelines[4];
	struct cut_case c[4];
	struct pipeline_out out[4];
	struct pipeline_error error;
	struct pipeline_run *run;
	const struct pipeline_key key = {1, 0, 2};
	uint8_t *form;
	size_t size;

	for (unsigned i = 0; i < 4; i++) {
		ck_assert(cut_case_init(&c[i], texts[i]));
		pipelines[i] = c[i].pipeline;
		out[i] = (struct pipeline_out){.field = {c[i].got.image, &c[i].got.label}};
		cut_sample(&c[i], file->data, file->size, 0, &c[i].want);
	}
	form = cut_make(&c[0], 2, file->data, file->size, &size);
	ck_assert_ptr_nonnull(form);
	cut_refused(&c[1], form, size, refused);
	cut_refused(&c[3], form, size, refused);
	ck_assert_int_eq(pipeline_run_new(pipelines, 4, &run), 0);
	ck_assert_int_eq(pipeline_run_sample(run, 0x5, form, size, 7, &key, out, &error), 0);
	cut_compare(&c[0], "shared", 2);
	ck_assert_mem_eq(c[2].got.image, c[2].want.image, c[2].bytes);
	ck_assert_int_eq(pipeline_run_sample(run, 0x7, form, size, 7, &key, out, &error),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(error.text, refused);
	pipeline_run_free(run);
	free(form);
	for (unsigned i = 0; i < 4; i++)
		cut_case_fini(&c[i]);
}
END_TEST

/* Every byte of the heads is looked at; with a right checksum those that decide what is read. */
START_TEST(damaged)
{
	static const char text[] =
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[40,30]},{\"op\":\"hflip\"}]";
	static const char damage[] = "a damaged stored form";
	const struct cut_file *file = cut_find("420.jpg");
	struct cut_case c;
	uint8_t *form;
	size_t size;

	ck_assert(cut_case_init(&c, text));
	form = cut_make(&c, 2, file->data, file->size, &size);
	ck_assert_ptr_nonnull(form);
	ck_assert_uint_eq(size, 128 + 3 * 40 * 30 + 64);
	for (size_t at = 8; at < 128; at++) {
		form[at] ^= 0x10;
		cut_refused(&c, form, size, damage);
		form[at] ^= 0x10;
	}
	for (size_t cut = 8; cut < size; cut += 61)
		cut_refused(&c, form, cut, damage);
	for (size_t at = 34; at < 44; at++) { /* planes, height, width */
		form[32 + at] ^= 0x10;
		cut_seal(form, size);
		cut_refused(&c, form, size, damage);
		form[32 + at] ^= 0x10;
	}
	little_put(form + 32 + 36, 30, 4); /* as many pixels, but not the pipeline's */
	little_put(form + 32 + 40, 40, 4);
	cut_seal(form, size);
	cut_refused(&c, form, size, "kept pixels of another pipeline's first 2 ops");
	little_put(form + 32 + 32, 31, 2);
	cut_seal(form, size);
	cut_refused(&c, form, size, "kept pixels of another pipeline's first 31 ops");
	free(form);
	cut_case_fini(&c);
}
END_TEST

/* Cuts that a pipeline does not have, and input from behind the one that is asked for. */
START_TEST(none_such)
{
	static const char text[] =
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[40,30]},{\"op\":\"hflip\"}]";
	const struct pipeline_key key = {1, 0, 2};
	const struct cut_file *file = cut_find("420.jpg");
	struct pipeline_error error;
	struct cut_case c;
	uint8_t *form;
	size_t size, again;

	ck_assert(cut_case_init(&c, text));
	for (unsigned cut = 0; cut < 40; cut += cut == 0 ? 3 : 1) {
		if (cut == PIPELINE_CUT_AUGMENTED)
			continue;
		ck_assert_int_eq(pipeline_cut_make(c.run, 0, cut, file->data, file->size, &key,
						   NULL, 0, &size, &error),
				 -EINVAL);
	}
	ck_assert_int_eq(
	    pipeline_cut_make(c.run, 1, 1, file->data, file->size, &key, NULL, 0, &size, &error),
	    -EINVAL);
	form = cut_make(&c, 2, file->data, file->size, &size);
	ck_assert_ptr_nonnull(form);
	ck_assert_int_eq(pipeline_cut_make(c.run, 0, 1, form, size, &key, NULL, 0, &again, &error),
			 -EINVAL);
	free(form);
	cut_case_fini(&c);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, cut_setup, cut_teardown);
	tcase_add_loop_test(tcase, from_cuts, 0, CUT_SPECS / CUT_AT_ONCE);
	tcase_add_loop_test(tcase, decoded, 0, 2);
	tcase_add_loop_test(tcase, augmented, 0, BASE_ARRAY_LEN(cut_trainings));
	tcase_add_loop_test(tcase, of_forms, 0, 5);
	tcase_add_loop_test(tcase, places, 0, BASE_ARRAY_LEN(cut_places));
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, filtered);
	tcase_add_test(tcase, recorded);
	tcase_add_test(tcase, others);
	tcase_add_test(tcase, damaged);
	tcase_add_test(tcase, none_such);
}

int main(void)
{
	return suite_run("cut", add);
}
