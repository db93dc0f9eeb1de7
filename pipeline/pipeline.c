/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines: from a spec's text to an engine's program, and the samples that run through it.
 *
 * A compiled pipeline is immutable and may be shared by threads; whatever a sample needs to change
 * is in its run. The name of a pipeline (pipeline_hash) is its canonical text and the engine's word
 * for its pixels: two daemons whose pixels differ must never take each other's results.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline/decode.h"
#include "pipeline/drive.h"
#include "pipeline/op_run.h"
#include "pipeline/packed.h"
#include "pipeline/spec.h"
#include "pipeline/tail.h"

struct pipeline {
	struct op_list ops;
	struct shape shape;
	struct tail tail;
	char *canonical, *asked; /* owned; asked: with what is each job's own */
	struct pipeline_field fields[PIPELINE_MAX_FIELDS];
	unsigned n_fields;
	bool is_record; /* fields as they are, no program */
	const struct engine *engine;
	struct engine_program *program; /* owned */
};

struct pipeline_run {
	struct decode *decode; /* owned */
	bool by_record;        /* pictures come in records */
	unsigned n;
	const struct pipeline *pipeline[PIPELINE_MAX_VARIANTS]; /* borrowed, NULL: none */
	struct engine_part part[PIPELINE_MAX_VARIANTS];         /* their scratch is owned */
};

#define PIPELINE_IMAGENET                                                                  \
	"{\"op\":\"normalize\",\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}," \
	"{\"op\":\"cast\",\"dtype\":\"f32\"},"
#define PIPELINE_TRAIN \
	"{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":224},{\"op\":\"hflip\"},"
#define PIPELINE_EVAL                                                                            \
	"{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":256},{\"op\":\"center_crop\",\"size\":" \
	"224},"
#define PIPELINE_CHW "{\"op\":\"layout\",\"order\":\"CHW\"}"

/* names and texts, in the same order */
static const char *const pipeline_name_list[] = {
    "imagenet-train",
    "imagenet-train-u8",
    "imagenet-eval",
    "imagenet-eval-u8",
};
static const char *const pipeline_text_list[BASE_ARRAY_LEN(pipeline_name_list)] = {
    "{\"ops\":[" PIPELINE_TRAIN PIPELINE_IMAGENET PIPELINE_CHW "]}",
    "{\"ops\":[" PIPELINE_TRAIN PIPELINE_CHW "]}",
    "{\"ops\":[" PIPELINE_EVAL PIPELINE_IMAGENET PIPELINE_CHW "]}",
    "{\"ops\":[" PIPELINE_EVAL PIPELINE_CHW "]}",
};

const char *pipeline_named(const char *name)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(pipeline_name_list); i++) {
		if (strcmp(pipeline_name_list[i], name) == 0)
			return pipeline_text_list[i];
	}
	return NULL;
}

unsigned pipeline_names(const char *const **ret)
{
	*ret = pipeline_name_list;
	return BASE_ARRAY_LEN(pipeline_name_list);
}

/* ---- compiling ---- */

static void pipeline_add_field(struct pipeline *pipeline, const char *name,
			       enum pipeline_dtype dtype, unsigned ndim, const uint64_t *shape)
{
	struct pipeline_field *field = &pipeline->fields[pipeline->n_fields++];

	strncpy(field->name, name, sizeof(field->name) - 1);
	field->dtype = dtype;
	field->ndim = ndim;
	field->bytes = packed_dtype_bytes(dtype);
	for (unsigned i = 0; i < ndim; i++) {
		field->shape[i] = shape[i];
		field->bytes *= shape[i];
	}
}

static void pipeline_set_fields(struct pipeline *pipeline)
{
	const struct shape *shape = &pipeline->shape;
	const uint64_t chw[4] = {shape->views, shape->channels, shape->height, shape->width};
	const uint64_t hwc[4] = {shape->views, shape->height, shape->width, shape->channels};
	const uint64_t classes = pipeline->tail.label.classes;
	const unsigned skip = shape->views == 0; /* a dimension of one that nobody asked for */

	pipeline_add_field(pipeline, "image", shape->dtype, 4 - skip,
			   (shape->order == OP_CHW ? chw : hwc) + skip);
	if (classes)
		pipeline_add_field(pipeline, "label", PIPELINE_F32, 1, &classes);
	else
		pipeline_add_field(pipeline, "label", PIPELINE_I64, 0, NULL);
}

static void pipeline_freep(struct pipeline **pipeline)
{
	pipeline_free(*pipeline);
}

/* The canonical texts; afterwards engines see the picture's ops alone. */
static int pipeline_write(struct pipeline *pipeline, struct diag *diag)
{
	pipeline->asked = spec_canonical(&pipeline->ops);
	tail_strip(&pipeline->tail, &pipeline->ops);
	pipeline->canonical = spec_canonical(&pipeline->ops);
	pipeline->ops.count = pipeline->tail.first;
	if (!pipeline->asked || !pipeline->canonical)
		return -ENOMEM;
	if (strlen(pipeline->asked) <= PIPELINE_MAX_TEXT)
		return 0;
	diag_set(diag,
		 "pipeline: the spec has %zu bytes when every parameter is written out; give at "
		 "most %d",
		 strlen(pipeline->asked), PIPELINE_MAX_TEXT);
	return PIPELINE_E_BAD;
}

/* Records that go to the slot as they are: no picture, no program. */
static int pipeline_compile_record(struct pipeline *pipeline, struct diag *diag)
{
	const char *wrong = packed_fields(&pipeline->ops, pipeline->fields, &pipeline->n_fields);

	if (wrong) {
		diag_set(diag, "pipeline: op 1 (record): %s", wrong);
		return PIPELINE_E_BAD;
	}
	pipeline->is_record = true;
	pipeline->tail.first = 1;
	return pipeline_write(pipeline, diag);
}

static int pipeline_compile_picture(struct pipeline *pipeline, struct diag *diag)
{
	int r = shape_infer(&pipeline->ops, &pipeline->shape, diag);

	if (r == 0)
		r = tail_infer(&pipeline->ops, &pipeline->shape, &pipeline->tail, diag);
	if (r == 0 && pipeline->shape.by_record && pipeline->tail.sift.by_label) {
		diag_set(diag, "pipeline: filter: the classes of a wrapped data set are not known "
			       "before its samples are made; name the samples by number instead");
		r = PIPELINE_E_BAD;
	}
	if (r == 0)
		r = pipeline_write(pipeline, diag);
	if (r != 0)
		return r;
	pipeline_set_fields(pipeline);
	return pipeline->engine->compile(&pipeline->ops, &pipeline->shape, &pipeline->program);
}

int pipeline_compile(const char *text, size_t size, struct pipeline **ret, struct diag *diag)
{
	_cleanup_(pipeline_freep) struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	int r;

	if (!pipeline)
		return -ENOMEM;
	pipeline->engine = &engine_fused;
	r = spec_parse(text, size, &pipeline->ops, diag);
	if (r == 0 && pipeline->ops.op[0].id == OP_RECORD)
		r = pipeline_compile_record(pipeline, diag);
	else if (r == 0)
		r = pipeline_compile_picture(pipeline, diag);
	if (r != 0)
		return r;
	*ret = base_take_ptr(pipeline);
	return 0;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	if (pipeline->program)
		pipeline->engine->program_free(pipeline->program);
	free(pipeline->canonical);
	free(pipeline->asked);
	free(pipeline);
}

/* ---- what is known of a pipeline ---- */

const char *pipeline_canonical(const struct pipeline *pipeline)
{
	return pipeline->canonical;
}

static void pipeline_hash_text(const struct pipeline *pipeline, const char *canonical,
			       struct hash_id *ret)
{
	char text[PIPELINE_MAX_TEXT + 64];
	int size = snprintf(text, sizeof(text), "%s\n%s", canonical, pipeline->engine->pixels);

	hash_of(text, (size_t)size, ret);
}

void pipeline_hash(const struct pipeline *pipeline, struct hash_id *ret)
{
	pipeline_hash_text(pipeline, pipeline->canonical, ret);
}

void pipeline_hash_asked(const struct pipeline *pipeline, struct hash_id *ret)
{
	pipeline_hash_text(pipeline, pipeline->asked, ret);
}

void pipeline_hash_outcome(const struct pipeline *pipeline, struct hash_id *ret)
{
	struct hash *hash;

	memset(ret, 0, sizeof(*ret));
	if (hash_new(&hash) != 0)
		return;
	sift_hash(&pipeline->tail.sift, hash);
	label_hash(&pipeline->tail.label, &pipeline->ops, hash);
	hash_finish(hash, ret);
	hash_free(hash);
}

const struct pipeline_batch *pipeline_batch(const struct pipeline *pipeline)
{
	return &pipeline->tail.batch;
}

const int32_t *pipeline_filter_labels(const struct pipeline *pipeline, bool keep,
				      unsigned *ret_count)
{
	return sift_labels(&pipeline->tail.sift, &pipeline->ops, keep, ret_count);
}

bool pipeline_filters(const struct pipeline *pipeline)
{
	return pipeline->tail.sift.by_size;
}

unsigned pipeline_shared(const struct pipeline *a, const struct pipeline *b)
{
	return op_alike(&a->ops, &b->ops, BASE_MIN(a->shape.pixel_ops, b->shape.pixel_ops));
}

bool pipeline_is_random(const struct pipeline *pipeline)
{
	for (unsigned i = 0; i < pipeline->ops.count; i++) {
		if (op_is_random(&pipeline->ops.op[i]))
			return true;
	}
	return false;
}

unsigned pipeline_fields(const struct pipeline *pipeline, const struct pipeline_field **ret)
{
	*ret = pipeline->fields;
	return pipeline->n_fields;
}

/* ---- running ---- */

void pipeline_run_free(struct pipeline_run *run)
{
	if (!run)
		return;
	for (unsigned v = 0; v < run->n; v++)
		if (run->part[v].scratch)
			run->pipeline[v]->engine->scratch_free(run->part[v].scratch);
	decode_free(run->decode);
	free(run);
}

static void pipeline_run_freep(struct pipeline_run **run)
{
	pipeline_run_free(*run);
}

/* One decode serves all: is it theirs? *ret: one of them, or NULL. */
static bool pipeline_is_first_alike(const struct pipeline *const pipelines[], unsigned n,
				    const struct pipeline **ret)
{
	const struct pipeline *first = NULL;

	for (unsigned v = 0; v < n; v++) {
		if (first && pipelines[v] &&
		    (pipelines[v]->is_record != first->is_record ||
		     pipelines[v]->shape.by_exif != first->shape.by_exif ||
		     pipelines[v]->shape.by_record != first->shape.by_record))
			return false;
		first = first ? first : pipelines[v];
	}
	*ret = first;
	return true;
}

/* Who has how many of its first ops in common with whom. */
static void pipeline_run_compare(struct pipeline_run *run)
{
	for (unsigned v = 0; v < run->n; v++) {
		for (unsigned w = 0; w < run->n; w++) {
			unsigned k = 0;

			if (v != w && run->pipeline[v] && run->pipeline[w])
				k = pipeline_shared(run->pipeline[v], run->pipeline[w]);
			for (; k > 0; k--)
				run->part[v].alike[k] |= UINT32_C(1) << w;
		}
	}
}

static int pipeline_run_add(struct pipeline_run *run, unsigned v, const struct pipeline *pipeline)
{
	run->pipeline[v] = pipeline;
	if (!pipeline || pipeline->is_record)
		return 0;
	run->part[v].program = pipeline->program;
	return pipeline->engine->scratch_new(pipeline->program, &run->part[v].scratch);
}

int pipeline_run_new(const struct pipeline *const pipelines[], unsigned n,
		     struct pipeline_run **ret)
{
	_cleanup_(pipeline_run_freep) struct pipeline_run *run = calloc(1, sizeof(*run));
	const struct pipeline *first;

	if (!run)
		return -ENOMEM;
	if (!pipeline_is_first_alike(pipelines, n, &first))
		return -EINVAL;
	if (decode_new(&run->decode) != 0)
		return -ENOMEM;
	if (first && first->shape.by_exif)
		decode_by_exif(run->decode);
	run->n = n;
	run->by_record = first && first->shape.by_record;
	for (unsigned v = 0; v < n; v++) {
		int r = pipeline_run_add(run, v, pipelines[v]);

		if (r != 0)
			return r;
	}
	pipeline_run_compare(run);
	*ret = base_take_ptr(run);
	return 0;
}

void pipeline_run_work(const struct pipeline_run *run, struct pipeline_work *ret)
{
	*ret = (struct pipeline_work){0, 0, 0};
	for (unsigned v = 0; v < run->n; v++) {
		ret->passes += run->part[v].work.passes;
		ret->ops += run->part[v].work.ops;
		ret->copies += run->part[v].work.copies;
	}
}

/* What is known without the pixels: is it wanted, and what is its label? A head that cannot be read is
 * the engine's to refuse. */
static int pipeline_run_tail(struct pipeline_run *run, const struct pipeline *pipeline,
			     const void *data, size_t size, uint32_t label, void *out,
			     struct pipeline_error *ret_error)
{
	uint32_t height, width;
	bool fits = true;

	if (pipeline_filters(pipeline)) {
		if (decode_open(run->decode, data, size, &height, &width, ret_error) == 0)
			fits = sift_has_size(&pipeline->tail.sift, height, width);
		decode_close(run->decode);
	}
	if (!fits)
		return decode_fail(ret_error, PIPELINE_FAIL_FILTERED, 0, "%u x %u pixels", width,
				   height);
	return label_write(&pipeline->tail.label, &pipeline->ops, label, out, ret_error);
}

/* Who needs the picture; or PIPELINE_E_BAD with *ret_error. */
static int pipeline_run_first(struct pipeline_run *run, uint32_t variants, const void *data,
			      size_t size, uint32_t label, const struct pipeline_out out[],
			      uint32_t *ret, struct pipeline_error *ret_error)
{
	uint32_t who = 0;
	int r;

	for (unsigned v = 0; v < run->n; v++) {
		const struct pipeline *pipeline = run->pipeline[v];

		if (!(variants >> v & 1) || !pipeline)
			continue;
		if (pipeline->is_record)
			r = packed_write(data, size, pipeline->fields, pipeline->n_fields, &out[v],
					 ret_error);
		else
			r = pipeline_run_tail(run, pipeline, data, size, label, out[v].field[1],
					      ret_error);
		if (r != 0)
			return r;
		run->part[v].out = out[v].field[0];
		who |= (uint32_t)!pipeline->is_record << v;
	}
	*ret = who;
	return 0;
}

int pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data, size_t size,
			uint32_t label, const struct pipeline_key *key,
			const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	uint32_t who = 0;
	int r = 0;

	if (run->by_record)
		r = packed_picture(data, size, &data, &size, &label, ret_error);
	if (r == 0)
		r = pipeline_run_first(run, variants, data, size, label, out, &who, ret_error);
	if (r != 0 || who == 0)
		return r;
	return drive_sample(&engine_fused, run->decode, run->part, who, data, size, key, ret_error);
}
