/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Companions: further pictures of a sample, each of a file of its own, beside the one that the pipeline is of.
 *
 * One that follows goes through a copy of the pipeline's ops. Draws are functions of the sample's key, the op's number
 * and the picture's size, and it has the first picture's size; so it is cropped, turned and resized as that
 * one is, and nothing is remembered. Ops that it is not to have (of colours) are replaced by one that does nothing, since
 * those behind keep their numbers. One that is larger goes through the ops one after another (enlarge.h).
 *
 * One that a view of the pipeline has the name of has the view's ops and draws, and may have any size.
 *
 * What was measured of the first picture's pixels (measure.h) is a file of its own, too, and goes where that picture goes.
 */

#include <stdio.h>

#include "pipeline/engine/drive.h"
#include "pipeline/engine/enlarge.h"
#include "pipeline/ops/follow.h"
#include "pipeline/pipeline_inner.h"

struct companion {
	struct op_list ops;
	struct shape shape;
	struct engine_program *program; /* owned; one of these four is there */
	struct bands_program *numbers;  /* owned */
	struct steps *steps;            /* owned; of one that is larger */
	struct measure *measure;        /* owned; what was measured */
	unsigned times;                 /* as large as the first picture; 0: it follows nothing */
	char name[OP_MAX_NAME + 1];
};

void pipeline_companion_free(struct companion *companion)
{
	if (!companion)
		return;
	if (companion->program)
		engine_fused.program_free(companion->program);
	bands_program_free(companion->numbers);
	steps_free(companion->steps);
	measure_free(companion->measure);
	free(companion);
}

bool pipeline_companion_is_random(const struct companion *companion)
{
	for (unsigned i = 0; companion->times == 0 && i < companion->ops.count; i++)
		if (op_is_random(&companion->ops.op[i]))
			return true;
	return false;
}

/* ---- normalize of some of them ---- */

static bool pipeline_companion_is_own(const struct op *op)
{
	return op->id == OP_NORMALIZE && !op_is_null(op, OP_NORMALIZE_OF);
}

static bool pipeline_companion_is_named(const struct op_list *ops, const struct op *op,
					const char *name)
{
	const int32_t *item = op_items(ops, op, OP_NORMALIZE_OF);
	const int32_t *end = item + op->value[OP_NORMALIZE_OF].count;

	for (; item < end; item += 1 + *item) {
		int32_t i = 0;

		while (i < *item && (char)item[1 + i] == name[i])
			i++;
		if (i == *item && name[i] == '\0')
			return true;
	}
	return false;
}

int pipeline_companion_take_ends(struct op_list *ops, struct companion_ends *ret, struct diag *diag)
{
	unsigned kept = 0;

	ret->n = 0;
	for (unsigned i = 0; i < ops->count; i++) {
		if (!pipeline_companion_is_own(&ops->op[i])) {
			ops->op[kept++] = ops->op[i];
			continue;
		}
		if (i == 0 || op_impl(ops->op[i - 1].id)->stage >= OP_STAGE_FILTER)
			return diag_fail(diag, PIPELINE_E_BAD,
					 "pipeline: op %u (normalize): put it behind the normalize "
					 "of the first picture",
					 i + 1);
		ret->op[ret->n++] = ops->op[i];
	}
	ops->count = kept;
	op_set_gates(ops);
	return 0;
}

/* Those that `of` names are there, and no one twice. */
static int pipeline_companion_check_ends(const struct pipeline *pipeline, struct diag *diag)
{
	for (unsigned i = 0; i < pipeline->ends.n; i++) {
		const struct op *op = &pipeline->ends.op[i];
		const int32_t *item = op_items(&pipeline->ops, op, OP_NORMALIZE_OF);
		const int32_t *end = item + op->value[OP_NORMALIZE_OF].count;
		unsigned names = 0, found = 0;

		for (; item < end; item += 1 + *item)
			names++;
		for (unsigned f = 0; f < pipeline->n_fields; f++) {
			const struct companion *companion = pipeline->companion[f];
			unsigned times = 0;

			for (unsigned k = 0;
			     companion && !companion->measure && companion->times > 0 && k <= i;
			     k++)
				times += pipeline_companion_is_named(
				    &pipeline->ops, &pipeline->ends.op[k], companion->name);
			found += times == 1 &&
				 pipeline_companion_is_named(&pipeline->ops, op, companion->name);
		}
		if (found != names)
			return diag_fail(
			    diag, PIPELINE_E_BAD,
			    "pipeline: normalize: \"of\" names what is no picture that follows the "
			    "first one, or one twice; give names of fields of kind 8 or 9");
	}
	return 0;
}

/* ---- compiling ---- */

static int pipeline_companion_bad(const struct companion *companion, const char *what,
				  struct diag *diag)
{
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: picture \"%s\": %s", companion->name,
			 what);
}

/* The op cannot be done to it. */
static int pipeline_companion_bad_op(const struct companion *companion, unsigned i,
				     const char *what, struct diag *diag)
{
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): picture \"%s\" %s", i + 1,
			 op_name(companion->ops.op[i].id), companion->name, what);
}

static int pipeline_companion_compile(struct pipeline *pipeline, unsigned f,
				      struct companion *companion, struct diag *diag)
{
	struct shape *shape = &companion->shape;

	if (companion->times > 1) {
		shape->height *= companion->times;
		shape->width *= companion->times;
	}
	if ((uint64_t)shape->height * shape->width > OP_MAX_PIXELS)
		return pipeline_companion_bad(companion, "it gets too large; give smaller sizes",
					      diag);
	pipeline_set_image(&pipeline->fields[f], shape);
	if (shape->bands)
		return bands_program_new(&companion->ops, shape, &companion->numbers);
	if (companion->times > 1)
		return steps_new(&companion->ops, shape, &companion->steps);
	return engine_fused.compile(&companion->ops, shape, &companion->program);
}

/* 0 or -ENOMEM */
static int pipeline_companion_new(struct pipeline *pipeline, unsigned f, struct companion **ret)
{
	struct companion *companion = calloc(1, sizeof(*companion));

	if (!companion)
		return -ENOMEM;
	pipeline->companion[f] = *ret = companion;
	snprintf(companion->name, sizeof(companion->name), "%s", pipeline->fields[f].name);
	return 0;
}

int pipeline_companion_set_view(struct pipeline *pipeline, unsigned f, const struct op_list *whole,
				const struct views_one *one, unsigned draws, struct diag *diag)
{
	struct companion *companion;
	struct diag why;
	int r;

	if (pipeline->companion[f])
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: view \"%s\" is there twice",
				 one->name);
	r = pipeline_companion_new(pipeline, f, &companion);
	if (r != 0)
		return r;
	views_take(whole, one, &companion->ops);
	if (shape_infer(&companion->ops, &companion->shape, &why) != 0 ||
	    pipeline_check_bands(&companion->ops, &companion->shape, &why) != 0 ||
	    pipeline_check_choices(&companion->ops, &companion->shape, false, &why) != 0)
		return pipeline_companion_bad(companion, why.text, diag);
	if (pipeline->fields[f].times != 1 || pipeline->fields[f].no_colors)
		return pipeline_companion_bad(
		    companion,
		    "it has ops of its own, a view's, and follows nothing; give "
		    "its field as [1], of kind 8",
		    diag);
	companion->shape.draws = draws;
	return pipeline_companion_compile(pipeline, f, companion, diag);
}

/* Nothing is done there, and the ops behind keep their numbers. */
static void pipeline_companion_leave_out(struct op *op)
{
	*op = (struct op){.id = OP_HFLIP,
			  .value[OP_HFLIP_P] = {.count = 1},
			  .gate = op->gate,
			  .is_otherwise = op->is_otherwise};
}

static void pipeline_companion_leave_colors(struct companion *companion, unsigned pixel_ops)
{
	for (unsigned i = 1; i < pixel_ops; i++) {
		struct op *op = &companion->ops.op[i];

		if (op_impl(op->id)->stays && op->id != OP_RANDOM_APPLY)
			pipeline_companion_leave_out(op);
	}
}

/* Its own in the place of the first picture's. */
static int pipeline_companion_set_end(const struct pipeline *pipeline, struct companion *companion,
				      struct diag *diag)
{
	const struct op *own = NULL;

	for (unsigned i = 0; i < pipeline->ends.n; i++)
		if (pipeline_companion_is_named(&pipeline->ops, &pipeline->ends.op[i],
						companion->name))
			own = &pipeline->ends.op[i];
	for (unsigned i = 0; own && i < companion->ops.count; i++) {
		if (companion->ops.op[i].id != OP_NORMALIZE)
			continue;
		companion->ops.op[i] = *own;
		companion->ops.op[i].value[OP_NORMALIZE_OF].count = 0;
		return 0;
	}
	return own ? pipeline_companion_bad(
			 companion,
			 "it is normalized, and the first picture is not; normalize both", diag)
		   : 0;
}

static int pipeline_companion_check_ops(const struct pipeline *pipeline,
					const struct companion *companion, bool no_colors,
					struct diag *diag)
{
	const unsigned stop = follow_stop(&pipeline->ops, &pipeline->shape);

	if (no_colors && stop < pipeline->ops.count)
		return pipeline_companion_bad_op(
		    companion, stop,
		    "cannot follow it without its colours; leave the op out, or "
		    "give its field kind 8",
		    diag);
	if (companion->times == 1)
		return 0;
	if (companion->shape.bands)
		return pipeline_companion_bad(
		    companion,
		    "numbers of another size than the first ones' cannot follow; "
		    "give 1 in its field's place of the times",
		    diag);
	for (unsigned i = 1; i < pipeline->ops.count; i++)
		if ((i < companion->shape.pixel_ops || (companion->shape.finished >> i & 1)) &&
		    !enlarge_can(&companion->ops.op[i]))
			return pipeline_companion_bad_op(
			    companion, i,
			    "is larger than the first one and cannot follow it; leave the op out",
			    diag);
	return 0;
}

static int pipeline_companion_set_following(struct pipeline *pipeline, unsigned f,
					    struct diag *diag)
{
	const bool no_colors = pipeline->fields[f].no_colors;
	struct companion *companion;
	struct diag why;
	int r = pipeline_companion_new(pipeline, f, &companion);

	if (r != 0)
		return r;
	companion->ops = pipeline->ops;
	companion->times = pipeline->fields[f].times;
	if (no_colors)
		pipeline_companion_leave_colors(companion, pipeline->shape.pixel_ops);
	r = pipeline_companion_set_end(pipeline, companion, diag);
	if (r != 0)
		return r;
	if (shape_infer(&companion->ops, &companion->shape, &why) != 0)
		return pipeline_companion_bad(companion, why.text, diag);
	if (no_colors)
		companion->shape.finished = companion->shape.raw = 0;
	r = pipeline_companion_check_ops(pipeline, companion, no_colors, diag);
	return r ? r : pipeline_companion_compile(pipeline, f, companion, diag);
}

static int pipeline_companion_set_measure(struct pipeline *pipeline, unsigned f, struct diag *diag)
{
	struct pipeline_field *field = &pipeline->fields[f];
	struct companion *companion;
	unsigned at = 0;
	const char *wrong =
	    measure_check(&pipeline->ops, &pipeline->shape, field->measured.what, &at);
	int r;

	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): field \"%s\": %s",
				 at + 1, op_name(pipeline->ops.op[at].id), field->name, wrong);
	r = pipeline_companion_new(pipeline, f, &companion);
	if (r != 0)
		return r;
	companion->times = 1;
	return measure_new(&pipeline->ops, &pipeline->shape, field,
			   &pipeline->fields[field->measured.valid], &companion->measure);
}

int pipeline_companion_set_all(struct pipeline *pipeline, struct diag *diag)
{
	bool are_there = false;
	int r = 0;

	for (unsigned f = 0; r == 0 && f < pipeline->n_fields; f++) {
		const enum pipeline_role role = pipeline->fields[f].role;

		are_there |= role == PIPELINE_IMAGE || role == PIPELINE_MEASURE;
		if (role == PIPELINE_MEASURE)
			r = pipeline_companion_set_measure(pipeline, f, diag);
		else if (role == PIPELINE_IMAGE && !pipeline->companion[f])
			r = pipeline_companion_set_following(pipeline, f, diag);
	}
	if (r == 0 && are_there && pipeline->tail.batch.n > 0)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: mosaic, mixup and cutmix would change the first "
				 "picture alone, and there "
				 "are others, or what was measured of it, beside it; leave them "
				 "out");
	return r ? r : pipeline_companion_check_ends(pipeline, diag);
}

/* ---- one sample ---- */

struct companion_sample {
	const void *data;
	size_t size;
	const struct companion_first *first;
	const struct pipeline_key *key;
	void *out;
	void *valid; /* of what was measured */
};

/* In words of its own, as the first picture's errors have no name. */
int pipeline_companion_fail(const char *name, struct pipeline_error *error)
{
	const int length = (int)BASE_MIN(strlen(name), (size_t)12);
	char text[sizeof(error->text)];

	snprintf(text, sizeof(text), "%s", error->text);
	snprintf(error->text, sizeof(error->text), "%.*s: %.*s", length, name,
		 (int)sizeof(text) - 3 - length, text);
	return PIPELINE_E_BAD;
}

static int pipeline_companion_check_size(const struct companion *companion,
					 const struct companion_sample *sample, uint32_t height,
					 uint32_t width, struct pipeline_error *ret_error)
{
	const struct companion_first *first = sample->first;
	const uint64_t times = companion->times;

	if (times == 0 || (height == times * first->height && width == times * first->width))
		return 0;
	return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%u x %u, not %u x (%u x %u)", width,
			   height, companion->times, first->width, first->height);
}

static int pipeline_companion_run_numbers(struct pipeline_run *run,
					  const struct companion *companion,
					  const struct bands *bands,
					  const struct companion_sample *sample,
					  struct pipeline_error *ret_error)
{
	uint32_t height, width;
	int r = bands_open(run->others, bands, run->decode, sample->data, sample->size, ret_error);

	if (r == 0) {
		bands_size(run->others, &height, &width);
		r = pipeline_companion_check_size(companion, sample, height, width, ret_error);
	}
	r = r ? r : bands_run(run->others, companion->numbers, sample->key, sample->out, ret_error);
	bands_close(run->others);
	return r;
}

static int pipeline_companion_run_measure(struct pipeline_run *run,
					  const struct companion *companion,
					  const struct companion_sample *sample,
					  struct pipeline_error *ret_error)
{
	uint32_t height, width;
	struct draw draw;
	int r = measure_open(run->others, companion->measure, run->decode, sample->data,
			     sample->size, ret_error);

	draw_init(&draw, sample->key);
	draw.choices = sample->first->choices;
	if (r == 0) {
		bands_size(run->others, &height, &width);
		r = pipeline_companion_check_size(companion, sample, height, width, ret_error);
	}
	if (r == 0)
		r = measure_run(run->others, companion->measure, &draw, sample->first->step,
				sample->out, sample->valid, ret_error);
	bands_close(run->others);
	return r;
}

/* The open picture, whole. */
static int pipeline_companion_run_larger(struct pipeline_run *run,
					 const struct companion *companion,
					 const struct companion_sample *sample,
					 struct pipeline_error *ret_error)
{
	struct steps_scratch *scratch = run->masks;
	struct picture picture;
	struct draw draw;
	int r;

	scratch->at = 0;
	draw_init(&draw, sample->key);
	r = decode_whole(run->decode, &scratch->buffer[0], &picture, ret_error);
	for (unsigned i = 1; r == 0 && i < companion->shape.pixel_ops; i++)
		r = enlarge_one(&companion->ops, scratch, i, companion->times, &picture, &draw,
				ret_error);
	if (r == 0)
		steps_finish(companion->steps, scratch, &picture, &draw, sample->out);
	steps_trim(scratch);
	return r;
}

static int pipeline_companion_run(struct pipeline_run *run, const struct companion *companion,
				  const struct companion_sample *sample,
				  struct pipeline_error *ret_error)
{
	struct engine_part part = {.program = companion->program,
				   .scratch = run->companions,
				   .choices = companion->times > 0 ? sample->first->choices : NULL,
				   .out = sample->out};
	uint32_t height, width;
	int r = decode_open(run->decode, sample->data, sample->size, &height, &width, ret_error);

	r = r ? r : pipeline_companion_check_size(companion, sample, height, width, ret_error);
	if (r == 0 && companion->times > 1)
		r = pipeline_companion_run_larger(run, companion, sample, ret_error);
	decode_close(run->decode);
	if (r != 0 || companion->times > 1)
		return r;
	return drive_sample(&engine_fused, run->decode, &part, 1, sample->data, sample->size,
			    sample->key, ret_error);
}

int pipeline_companion_run_all(struct pipeline_run *run, const struct pipeline *pipeline,
			       const struct packed *record, const struct companion_first *first,
			       const struct pipeline_key *key, const struct pipeline_out *out,
			       struct pipeline_error *ret_error)
{
	const struct packed_fields *packed = &pipeline->packed;
	const unsigned before = record->n - packed->n;
	int r = 0;

	for (unsigned f = 0; r == 0 && f < packed->n; f++) {
		const struct pipeline_field *field = &pipeline->fields[packed->first + f];
		const struct companion *companion = pipeline->companion[packed->first + f];
		const struct companion_sample sample = {
		    record->value[before + f],     record->field[before + f].bytes,  first, key,
		    out->field[packed->first + f], out->field[field->measured.valid]};

		if (!companion)
			continue;
		if (companion->measure)
			r = pipeline_companion_run_measure(run, companion, &sample, ret_error);
		else if (companion->numbers)
			r = pipeline_companion_run_numbers(run, companion, &pipeline->first.bands,
							   &sample, ret_error);
		else
			r = pipeline_companion_run(run, companion, &sample, ret_error);
		if (r != 0)
			return pipeline_companion_fail(companion->name, ret_error);
	}
	return r;
}

/* ---- a run ---- */

int pipeline_companion_run_add(struct pipeline_run *run, const struct pipeline *pipeline)
{
	int r = 0;

	for (unsigned f = 0; r == 0 && f < pipeline->n_fields; f++) {
		const struct companion *companion = pipeline->companion[f];

		if (companion && companion->program && !run->companions)
			r = engine_fused.scratch_new(companion->program, &run->companions);
		else if (companion && (companion->numbers || companion->measure) && !run->others)
			r = bands_room_new(&run->others);
	}
	return r;
}
