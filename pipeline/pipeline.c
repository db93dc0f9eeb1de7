/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines: from a spec's text to an engine's program. What runs through it is pipeline_run.c's.
 *
 * A compiled pipeline is immutable and may be shared by threads. The name of a pipeline (pipeline_hash)
 * is its canonical text and the engine's word for its pixels: two daemons whose pixels differ must never
 * take each other's results.
 */

#include <stdio.h>
#include "pipeline/pipeline.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/pipeline_inner.h"
#include "pipeline/spec/spec.h"
#include "pipeline/video/video_module.h"

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

void pipeline_set_field(struct pipeline_field *field, enum pipeline_dtype dtype, unsigned ndim,
			const uint64_t *shape)
{
	field->dtype = dtype;
	field->ndim = ndim;
	field->bytes = packed_dtype_bytes(dtype);
	for (unsigned i = 0; i < ndim; i++) {
		field->shape[i] = shape[i];
		field->bytes *= shape[i];
	}
}

void pipeline_add_field(struct pipeline *pipeline, const char *name, enum pipeline_dtype dtype,
			unsigned ndim, const uint64_t *shape)
{
	struct pipeline_field *field = &pipeline->fields[pipeline->n_fields++];

	strncpy(field->name, name, sizeof(field->name) - 1);
	pipeline_set_field(field, dtype, ndim, shape);
}

void pipeline_set_image(struct pipeline_field *field, const struct shape *shape)
{
	const unsigned pictures = BASE_MAX(shape->views, shape->frames); /* one of them is 0 */
	const uint64_t chw[4] = {pictures, shape->channels, shape->height, shape->width};
	const uint64_t volume[4] = {shape->channels, shape->depth, shape->height, shape->width};
	const uint64_t hwc[4] = {pictures, shape->height, shape->width, shape->channels};
	const uint64_t patches[2] = {shape->patches.most, shape_patch_values(shape)};
	const unsigned skip = pictures == 0; /* a dimension of one that nobody asked for */

	if (shape->patches.most > 0) {
		field->kind = PIPELINE_RAGGED;
		pipeline_set_field(field, shape->dtype, 2, patches);
		return;
	}
	if (shape->is_volume)
		return pipeline_set_field(field, shape->dtype, 4, volume);
	pipeline_set_field(field, shape->dtype, 4 - skip,
			   (shape->order == OP_CHW ? chw : hwc) + skip);
}

void pipeline_add_image(struct pipeline *pipeline, const char *name, const struct shape *shape)
{
	struct pipeline_field *field = &pipeline->fields[pipeline->n_fields++];

	strncpy(field->name, name, sizeof(field->name) - 1);
	pipeline_set_image(field, shape);
}

void pipeline_add_label(struct pipeline *pipeline)
{
	const uint64_t classes = pipeline->tail.label.classes;

	if (classes)
		pipeline_add_field(pipeline, "label", PIPELINE_F32, 1, &classes);
	else
		pipeline_add_field(pipeline, "label", PIPELINE_I64, 0, NULL);
}

static void pipeline_freep(struct pipeline **pipeline)
{
	pipeline_free(*pipeline);
}

/* Kept pixels would stand for the picture alone: such a pipeline has no cuts. */
static bool pipeline_has_beside(const struct pipeline *pipeline)
{
	const struct op *first = &pipeline->ops.op[0];

	return first->id != OP_RECORD && op_intake(first->id) &&
	       !op_is_null(first, op_intake(first->id)->fields);
}

/* What is kept serves all pictures of a sample: behind decode they differ, and each may ask for a
 * smaller decode. */
static int pipeline_list_cuts(struct pipeline *pipeline)
{
	static const struct shape
	    none; /* of a clip, numbers, a volume, a size the file is kept, and no picture */
	const bool is_picture = !pipeline->shape.frames && !pipeline->shape.bands &&
				!pipeline->shape.is_volume && !pipeline->shape.is_size;
	int r = cut_list_make(&pipeline->ops, is_picture ? &pipeline->shape : &none,
			      pipeline->engine->pixels, &pipeline->cuts);

	if (r == 0 && pipeline->n_views > 0) {
		pipeline->cuts.n = BASE_MIN(pipeline->cuts.n, 2);
		pipeline->cuts.augmented = 0;
	}
	for (unsigned i = 0; i < pipeline->n_views && pipeline->cuts.n > 1; i++)
		if (cut_is_joined(&pipeline->view[i]->ops, pipeline->view[i]->shape.pixel_ops))
			pipeline->cuts.place[1].is_cut = false;
	return r;
}

/* The canonical texts, of the whole list, which is changed; afterwards engines see the picture's ops alone. */
static int pipeline_write(struct pipeline *pipeline, struct op_list *whole, struct diag *diag)
{
	struct tail tail = pipeline->tail;

	tail.first += whole->count - pipeline->ops.count; /* views stand before it */
	pipeline->asked = spec_canonical(whole);
	tail_strip(&tail, whole);
	pipeline->canonical = spec_canonical(whole);
	pipeline->ops.count = pipeline->tail.first;
	if (!pipeline->asked || !pipeline->canonical)
		return -ENOMEM;
	if (strlen(pipeline->asked) <= PIPELINE_MAX_TEXT && !pipeline_has_beside(pipeline))
		return pipeline_list_cuts(pipeline);
	if (strlen(pipeline->asked) <= PIPELINE_MAX_TEXT)
		return 0;
	return diag_fail(
	    diag, PIPELINE_E_BAD,
	    "pipeline: the spec has %zu bytes when every parameter is written out; give at "
	    "most %d",
	    strlen(pipeline->asked), PIPELINE_MAX_TEXT);
}

/* Records that go to the slot as they are: no picture, no program. */
static int pipeline_compile_record(struct pipeline *pipeline, struct op_list *whole,
				   struct diag *diag)
{
	const char *wrong = packed_announce(&pipeline->ops, pipeline->fields, &pipeline->packed,
					    &pipeline->n_fields);

	if (!wrong)
		wrong = picked_new(&pipeline->ops, false, pipeline->fields, &pipeline->packed,
				   &pipeline->members);
	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (record): %s", wrong);
	pipeline->is_record = true;
	pipeline->tail.first = 1;
	return pipeline_write(pipeline, whole, diag);
}

const char *pipeline_check_tail(const struct pipeline *pipeline)
{
	const struct tail *tail = &pipeline->tail;

	if (tail->batch.n > 0)
		return "mosaic, mixup and cutmix are of pictures; leave them out";
	if (tail->label_filter.by_size)
		return "a filter's width and height are of pictures; give keep or drop";
	return NULL;
}

int pipeline_set_fields(struct pipeline *pipeline, struct diag *diag)
{
	const struct op *first = &pipeline->ops.op[0];
	const struct op_intake *intake = op_intake(first->id);
	const char *wrong = NULL;

	if (pipeline->shape.by_record && !pipeline->shape.by_members &&
	    pipeline->tail.label_filter.by_label)
		return diag_fail(
		    diag, PIPELINE_E_BAD,
		    "pipeline: filter: the classes of a wrapped data set are not known "
		    "before its samples are made; name the samples by number instead");
	pipeline->packed.first = pipeline->n_fields;
	if (!pipeline->shape.by_record && !op_is_null(first, intake->fields))
		wrong = "fields come in the records of a wrapped data set: give \"source\": "
			"\"record\"; or in members of shards: give \"members\"";
	if (pipeline->shape.by_members && op_number(first, intake->source, 0) != OP_FILE)
		wrong = "members are of shards, and no records: leave source out";
	if (!wrong && !op_is_null(first, intake->fields))
		wrong = packed_announce(&pipeline->ops, pipeline->fields, &pipeline->packed,
					&pipeline->n_fields);
	if (!wrong)
		wrong = mask_check_colors(&pipeline->ops);
	if (!wrong)
		wrong = picked_new(&pipeline->ops, true, pipeline->fields, &pipeline->packed,
				   &pipeline->members);
	if (!wrong)
		return 0;
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (%s): %s", op_name(first->id),
			 wrong);
}

int pipeline_set_sides(struct pipeline *pipeline, struct op_list *whole, const struct views *views,
		       struct diag *diag)
{
	int r = pipeline_side_refuse_others(pipeline, whole, views, diag);

	r = r ? r : pipeline_side_add_all(pipeline, whole, views, diag);
	return r ? r : pipeline_write(pipeline, whole, diag);
}

int pipeline_check_choices(const struct op_list *ops, const struct shape *shape, bool are_boxes,
			   struct diag *diag)
{
	for (unsigned i = 1; i < shape->pixel_ops && !are_boxes; i++)
		if (op_impl(ops->op[i].id)->choose)
			return diag_fail(
			    diag, PIPELINE_E_BAD,
			    "pipeline: op %u (%s): it chooses by the boxes on the first picture, "
			    "and "
			    "there are none here; give a field of boxes (kind 3), or leave it out",
			    i + 1, op_name(ops->op[i].id));
	return 0;
}

/* Of patches: where in the picture they were, and how many there are. */
static void pipeline_add_grid(struct pipeline *pipeline)
{
	const uint64_t numbers = pipeline->shape.patches.is_timed ? 3 : 2;

	pipeline_add_field(pipeline, "grid", PIPELINE_I64, 1, &numbers);
	pipeline->fields[0].lengths = pipeline->n_fields;
	pipeline_add_field(pipeline, "image.length", PIPELINE_I64, 0, NULL);
}

/* Boxes, key points and masks. */
static int pipeline_set_following(struct pipeline *pipeline, struct diag *diag)
{
	const unsigned end = pipeline->packed.first + pipeline->packed.n;
	const unsigned stop = follow_stop(&pipeline->ops, &pipeline->shape);
	const bool can_follow = stop == pipeline->ops.count;
	const bool has_size = !pipeline->shape.is_size && !pipeline->shape.patches.most;
	bool are_masks = false, are_files = false;
	int r = 0;

	for (unsigned f = pipeline->packed.first; r == 0 && can_follow && has_size && f < end; f++)
		if (pipeline->fields[f].role == PIPELINE_MASK)
			r = mask_new(&pipeline->ops, &pipeline->shape, &pipeline->fields[f],
				     &pipeline->mask[f]);
	for (unsigned f = pipeline->packed.first; f < end; f++) {
		are_masks |= pipeline->fields[f].role == PIPELINE_MASK;
		are_files |= packed_follows(&pipeline->fields[f]);
	}
	if (pipeline->shape.is_size && are_files)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: op 1 (decode): \"only_size\" decodes nothing, masks "
				 "and further pictures neither; leave them out");
	if (!has_size && are_files)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: masks and further pictures beside patches would have "
				 "sizes that differ; leave them out");
	if (can_follow ||
	    (pipeline->packed.boxes == 0 && pipeline->packed.points == 0 && !are_masks))
		return r;
	return diag_fail(
	    diag, PIPELINE_E_BAD,
	    "pipeline: op %u (%s): %s cannot follow it; leave it out, or give the %s as a "
	    "ragged field that follows nothing",
	    stop + 1, op_name(pipeline->ops.op[stop].id),
	    are_masks                    ? "masks"
	    : pipeline->packed.boxes > 0 ? "boxes"
					 : "key points",
	    are_masks                    ? "masks' files"
	    : pipeline->packed.boxes > 0 ? "boxes"
					 : "key points");
}

/* What a sample gives: the picture or clip, its label, and what comes beside them. */
static int pipeline_set_beside(struct pipeline *pipeline, struct diag *diag)
{
	int r;

	if (pipeline->shape.is_size)
		pipeline_add_field(pipeline, "size", PIPELINE_I64, 1, (uint64_t[1]){2});
	else
		pipeline_add_image(pipeline, pipeline->shape.frames ? "video" : "image",
				   &pipeline->shape);
	pipeline_add_label(pipeline);
	if (pipeline->shape.frames)
		pipeline_add_field(pipeline, "length", PIPELINE_I64, 0, NULL);
	if (pipeline->shape.patches.most > 0)
		pipeline_add_grid(pipeline);
	r = pipeline_set_fields(pipeline, diag);
	if (r == 0)
		r = pipeline_check_choices(&pipeline->ops, &pipeline->shape,
					   pipeline->packed.boxes > 0, diag);
	return r ? r : pipeline_set_following(pipeline, diag);
}

static bool pipeline_has_patches(const struct op_list *ops)
{
	for (unsigned i = 0; i < ops->count; i++)
		if (ops->op[i].id == OP_PATCHES)
			return true;
	return false;
}

/* Nothing that is about pixels is beside a size, nor what needs one size beside patches. */
static int pipeline_check_size(const struct pipeline *pipeline, const struct op_list *whole,
			       const struct views *views, struct diag *diag)
{
	if ((views->n > 0 || pipeline->tail.batch.n > 0) && pipeline_has_patches(whole))
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: patches are of one picture alone, and views, mosaic, "
				 "mixup and cutmix take pictures of one size; leave one of them "
				 "out");
	if (!pipeline->shape.is_size || (views->n == 0 && pipeline->tail.batch.n == 0))
		return 0;
	return diag_fail(
	    diag, PIPELINE_E_BAD,
	    "pipeline: op 1 (decode): mosaic, views, mixup and cutmix are of pixels, and "
	    "\"only_size\" gives none; leave one of them out");
}

int pipeline_check_bands(const struct op_list *ops, const struct shape *shape, struct diag *diag)
{
	unsigned at;
	const char *wrong = shape->bands ? bands_check(ops, shape, &at) : NULL;

	if (!wrong)
		return 0;
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", at + 1,
			 op_name(ops->op[at].id), wrong);
}

/* ---- views ---- */

const char *pipeline_check_view(const struct pipeline *pipeline, const char *name)
{
	if (pipeline->n_fields == PIPELINE_MAX_FIELDS)
		return "there are more fields than 23";
	for (unsigned f = 0; f < pipeline->n_fields; f++)
		if (strcmp(pipeline->fields[f].name, name) == 0)
			return "another field has that name (\"image\" or \"video\", and \"label\" "
			       "are there)";
	return strcmp(name, "index") == 0 ? "\"index\" is the name of the samples' numbers" : NULL;
}

static int pipeline_add_view(struct pipeline *pipeline, const struct op_list *whole,
			     const struct views_one *one, unsigned draws, struct diag *diag)
{
	struct pipeline_view *view = calloc(1, sizeof(*view));
	const char *wrong = pipeline_check_view(pipeline, one->name);
	struct diag why;

	if (!view)
		return -ENOMEM;
	pipeline->view[pipeline->n_views++] = view;
	views_take(whole, one, &view->ops);
	if (!wrong && (shape_infer(&view->ops, &view->shape, &why) != 0 ||
		       pipeline_check_bands(&view->ops, &view->shape, &why) != 0 ||
		       pipeline_check_choices(&view->ops, &view->shape, false, &why) != 0))
		wrong = why.text;
	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: view \"%s\": %s", one->name,
				 wrong);
	view->shape.draws = draws;
	pipeline_add_image(pipeline, one->name, &view->shape);
	if (view->shape.bands)
		return bands_program_new(&view->ops, &view->shape, &view->numbers);
	return pipeline->engine->compile(&view->ops, &view->shape, &view->program);
}

/* The field of another picture of the sample that has that name; 0: there is none. */
static unsigned pipeline_companion_of(const struct pipeline *pipeline, const char *name)
{
	for (unsigned f = 1; f < pipeline->n_fields; f++)
		if (pipeline->fields[f].role == PIPELINE_IMAGE &&
		    strcmp(pipeline->fields[f].name, name) == 0)
			return f;
	return 0;
}

/* Their fields stand behind all others, but for those of other pictures. */
static int pipeline_set_views(struct pipeline *pipeline, const struct op_list *whole,
			      const struct views *views, struct diag *diag)
{
	int r = 0;

	if (views->n > 0 && pipeline->tail.batch.n > 0)
		return diag_fail(
		    diag, PIPELINE_E_BAD,
		    "pipeline: mosaic, mixup and cutmix would change the first picture alone, and "
		    "there are views beside it; leave them out");
	pipeline->first_view = pipeline->n_fields;
	for (unsigned i = 0; r == 0 && i < views->n; i++) {
		const struct views_one *one = &views->one[i];
		const unsigned f = pipeline_companion_of(pipeline, one->name);
		const unsigned draws = (i + 1) * PIPELINE_MAX_OPS;

		if (views_is_own(whole, one))
			continue;
		r = f > 0 ? pipeline_companion_set_view(pipeline, f, whole, one, draws, diag)
			  : pipeline_add_view(pipeline, whole, one, draws, diag);
	}
	r = r ? r : pipeline_side_add_all(pipeline, whole, views, diag);
	return r ? r : pipeline_companion_set_all(pipeline, diag);
}

/* What stands in decode's place. */
static int pipeline_set_first(struct pipeline *pipeline, struct diag *diag)
{
	const struct op *first = &pipeline->ops.op[0];
	const char *wrong = NULL;

	if (first->id == OP_VIDEO)
		wrong = video_init(first, &pipeline->first.video);
	else if (first->id == OP_BANDS)
		wrong = bands_init(&pipeline->ops, &pipeline->first.bands);
	if (!wrong)
		return 0;
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (%s): %s", op_name(first->id),
			 wrong);
}

/* Or clips of them. */
static int pipeline_compile_picture(struct pipeline *pipeline, struct op_list *whole,
				    const struct views *views, struct diag *diag)
{
	int r = pipeline_companion_take_ends(&pipeline->ops, &pipeline->ends, diag);
	r = r ? r : pipeline_set_first(pipeline, diag);
	r = r ? r : shape_infer(&pipeline->ops, &pipeline->shape, diag);
	r = r ? r : pipeline_check_bands(&pipeline->ops, &pipeline->shape, diag);
	r = r ? r : tail_infer(&pipeline->ops, &pipeline->shape, &pipeline->tail, diag);
	r = r ? r : pipeline_check_size(pipeline, whole, views, diag);
	r = r ? r : pipeline_set_beside(pipeline, diag);
	r = r ? r : pipeline_set_views(pipeline, whole, views, diag);
	r = r ? r : pipeline_write(pipeline, whole, diag);
	if (r != 0 || pipeline->shape.is_size)
		return r;
	if (pipeline->shape.bands)
		return bands_program_new(&pipeline->ops, &pipeline->shape, &pipeline->numbers);
	return pipeline->engine->compile(&pipeline->ops, &pipeline->shape, &pipeline->program);
}

int pipeline_compile_ops(struct pipeline *pipeline, struct op_list *whole, struct diag *diag)
{
	static const struct pipeline_medium *const media[] = {&pipeline_sound, &pipeline_cloud,
							      &pipeline_volume, &pipeline_duration};
	const enum op_id first = pipeline->ops.op[0].id;
	struct views views;
	int r;

	if (first == OP_RECORD)
		return pipeline_compile_record(pipeline, whole, diag);
	r = views_find(whole, &views, diag);
	if (r != 0)
		return r;
	if (views.n > 0)
		views_first(whole, &views, &pipeline->ops);
	for (size_t i = 0; i < BASE_ARRAY_LEN(media); i++)
		if (media[i]->first == first)
			pipeline->medium = media[i];
	return pipeline->medium ? pipeline->medium->compile(pipeline, whole, &views, diag)
				: pipeline_compile_picture(pipeline, whole, &views, diag);
}

int pipeline_compile(const char *text, size_t size, struct pipeline **ret, struct diag *diag)
{
	_cleanup_(pipeline_freep) struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	_cleanup_free_ struct op_list *whole = malloc(sizeof(*whole));
	int r;

	if (!pipeline || !whole)
		return -ENOMEM;
	pipeline->engine = &engine_fused;
	r = spec_parse(text, size, &pipeline->ops, diag);
	if (r == 0)
		*whole = pipeline->ops;
	if (r == 0)
		r = pipeline_compile_ops(pipeline, whole, diag);
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
	bands_program_free(pipeline->numbers);
	for (unsigned i = 0; i < pipeline->n_views; i++) {
		if (pipeline->view[i]->program)
			pipeline->engine->program_free(pipeline->view[i]->program);
		bands_program_free(pipeline->view[i]->numbers);
		free(pipeline->view[i]);
	}
	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		mask_free(pipeline->mask[f]);
	for (unsigned f = 0; f < PIPELINE_MAX_FIELDS; f++)
		pipeline_companion_free(pipeline->companion[f]);
	for (unsigned i = 0; i < pipeline->sides.n; i++)
		pipeline_free(pipeline->sides.one[i].pipeline);
	picked_free(pipeline->members);
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
	label_filter_hash(&pipeline->tail.label_filter, hash);
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
	return label_filter_labels(&pipeline->tail.label_filter, &pipeline->ops, keep, ret_count);
}

bool pipeline_filters(const struct pipeline *pipeline)
{
	return pipeline->tail.label_filter.by_size;
}

unsigned pipeline_shared(const struct pipeline *a, const struct pipeline *b)
{
	return op_alike(&a->ops, &b->ops, BASE_MIN(a->shape.pixel_ops, b->shape.pixel_ops));
}

static bool pipeline_is_random_list(const struct op_list *ops)
{
	for (unsigned i = 0; i < ops->count; i++)
		if (op_is_random(&ops->op[i]))
			return true;
	return false;
}

const char *pipeline_columns(const struct pipeline *pipeline)
{
	return pipeline->members ? picked_columns(pipeline->members) : NULL;
}

bool pipeline_is_random(const struct pipeline *pipeline)
{
	bool is_random = pipeline_is_random_list(&pipeline->ops);

	for (unsigned i = 0; i < pipeline->n_views; i++)
		is_random |= pipeline_is_random_list(&pipeline->view[i]->ops);
	for (unsigned i = 0; i < pipeline->sides.n; i++)
		is_random |= pipeline_is_random(pipeline->sides.one[i].pipeline);
	for (unsigned f = 0; f < pipeline->n_fields; f++)
		is_random |=
		    pipeline->companion[f] && pipeline_companion_is_random(pipeline->companion[f]);
	return is_random;
}

const char *pipeline_load(const struct pipeline *pipeline)
{
	const bool is_needed = pipeline->shape.frames || pipeline_duration_is_of_video(pipeline);
	const char *why = NULL;

	if (is_needed || (pipeline->medium && pipeline->medium->is_timed))
		video_load(&why);
	why = is_needed ? why : NULL; /* sounds' files may be videos, or none */
	for (unsigned i = 0; i < pipeline->sides.n && !why; i++)
		why = pipeline_load(pipeline->sides.one[i].pipeline);
	return why;
}

unsigned pipeline_views(const struct pipeline *pipeline)
{
	return pipeline->n_views + pipeline->sides.n;
}

bool pipeline_views_are_alike(const struct pipeline *a, const struct pipeline *b)
{
	return a->n_views + b->n_views == 0 && pipeline_sides_are_alike(a, b);
}

unsigned pipeline_fields(const struct pipeline *pipeline, const struct pipeline_field **ret)
{
	*ret = pipeline->fields;
	return pipeline->n_fields;
}
