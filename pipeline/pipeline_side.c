/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sides: views of a sample that begin with a first op of their own, so that a sound, points or a volume stands beside a picture,
 * or a picture beside one of these. Each is a pipeline as any other, of one medium, compiled and run by what compiles and runs
 * those; all that is known here is where its bytes come from and where its fields go. Its bytes are a file of the
 * sample's record, a field of role PIPELINE_FILE that has the view's name; or, of a sound beside a clip, the clip's own file
 * from where the clip begins.
 *
 * A side's label is nobody's: the sample has one. Its draws are of a nonce of its own, by its number, so that two sides with the same
 * ops draw apart, and pipelines that have the same sides draw alike and share them: each is one run for all pipelines of a run.
 */

#include <stdio.h>

#include "pipeline/pipeline_inner.h"

#define PIPELINE_SIDE_NONCE (UINT64_C(1) << 63)
#define PIPELINE_SIDE_SHIFT \
	56 /* of its number; the first one's nonce is that of the only one that there once was */
#define PIPELINE_LABEL 1 /* of each pipeline's fields, and those behind it */

static void pipeline_side_freep(struct pipeline **pipeline)
{
	pipeline_free(*pipeline);
}

/* ---- compiling ---- */

/* The field of the record that is its file; 0: there is none. */
static unsigned pipeline_side_file(const struct pipeline *pipeline, const char *name)
{
	const unsigned end = pipeline->packed.first + pipeline->packed.n;

	for (unsigned f = pipeline->packed.first; f < end; f++)
		if (pipeline->fields[f].role == PIPELINE_FILE &&
		    strcmp(pipeline->fields[f].name, name) == 0)
			return f;
	return 0;
}

static bool pipeline_side_has(const struct pipeline *pipeline, unsigned f)
{
	for (unsigned i = 0; i < pipeline->sides.n; i++)
		if (pipeline->sides.one[i].field == f)
			return true;
	return false;
}

/* Why it cannot be the sound of the clip. */
static const char *pipeline_side_check_heard(const struct pipeline *pipeline,
					     const struct op *first)
{
	if (first->id != OP_AUDIO)
		return "it begins with an op on files, and no field is its file: give a field of "
		       "kind "
		       "10 and that name; or leave the op out, for a view of the first file";
	if (!pipeline->shape.frames)
		return "no field is its file, and only a clip has a sound: give a field of kind 10 "
		       "and "
		       "that name, or the first op must be video";
	if (pipeline->first.video.clip == VIDEO_SPREAD)
		return "clip spread is of the whole video, and the sound of a part: give another "
		       "clip";
	for (unsigned i = 0; i < pipeline->sides.n; i++)
		if (pipeline->sides.one[i].is_heard)
			return "there is a view of the sound already";
	if (op_number(first, OP_AUDIO_CROP, 0) != SOUND_RANDOM)
		return "the sound begins when the clip does; leave crop out";
	return NULL;
}

static const char *pipeline_side_check(const struct pipeline *pipeline, const struct op *first,
				       const char *name)
{
	const struct op_intake *intake = op_intake(first->id);
	const unsigned f = pipeline_side_file(pipeline, name);
	const char *wrong =
	    f > 0 && !pipeline_side_has(pipeline, f) ? NULL : pipeline_check_view(pipeline, name);

	if (wrong)
		return wrong;
	if (first->id == OP_RECORD)
		return "record is a sample as it is; give such fields to the first op";
	if (f == 0)
		wrong = pipeline_side_check_heard(pipeline, first);
	if (wrong)
		return wrong;
	if (op_number(first, intake->source, 0) != OP_FILE || !op_is_null(first, intake->fields) ||
	    !op_is_null(first, intake->members))
		return "what a sample is, the pipeline's first op says; leave source, fields and "
		       "members out";
	return NULL;
}

/* What stands behind its label: "length" is NAME_length, and "points.length" of ragged ones NAME.length. */
static const char *pipeline_side_add_rest(struct pipeline *pipeline, const struct pipeline *own,
					  const char *name, char why[96])
{
	for (unsigned i = PIPELINE_LABEL + 1; i < own->n_fields; i++) {
		struct pipeline_field field = own->fields[i];
		const char *dot = strchr(own->fields[i].name, '.');

		snprintf(field.name, sizeof(field.name), "%.23s%s%.7s", name, dot ? "" : "_",
			 dot ? dot : own->fields[i].name);
		if (pipeline->n_fields == PIPELINE_MAX_FIELDS)
			return pipeline_check_view(pipeline, field.name);
		if (pipeline_check_view(pipeline, field.name)) {
			snprintf(why, 96,
				 "another field has its name with %s behind it; rename one of them",
				 field.name + strlen(name));
			return why;
		}
		pipeline->fields[pipeline->n_fields++] = field;
	}
	return NULL;
}

/* Its fields: the first in its file's place, if it has one, all others behind those that there are. */
static const char *pipeline_side_place(struct pipeline *pipeline, struct pipeline_side *side,
				       const char *name, char why[96])
{
	const struct pipeline *own = side->pipeline;
	const unsigned f = pipeline_side_file(pipeline, name);
	struct pipeline_field *field;

	side->is_heard = f == 0;
	side->field = f > 0 ? f : pipeline->n_fields++;
	side->rest = pipeline->n_fields;
	field = &pipeline->fields[side->field];
	*field = own->fields[0];
	snprintf(field->name, sizeof(field->name), "%s", name);
	field->role = f > 0 ? PIPELINE_FILE : PIPELINE_ALONE;
	if (field->kind != PIPELINE_DENSE)
		field->lengths += side->rest - (PIPELINE_LABEL + 1);
	return pipeline_side_add_rest(pipeline, own, name, why);
}

static int pipeline_side_add(struct pipeline *pipeline, const struct op_list *whole,
			     const struct views_one *one, struct diag *diag)
{
	_cleanup_(pipeline_side_freep) struct pipeline *own = calloc(1, sizeof(*own));
	_cleanup_free_ struct op_list *ops = malloc(sizeof(*ops));
	struct pipeline_side *side = &pipeline->sides.one[pipeline->sides.n];
	char room[96];
	struct diag why;
	const char *wrong;
	int r = 0;

	if (!own || !ops)
		return -ENOMEM;
	own->engine = pipeline->engine;
	views_take(whole, one, &own->ops);
	wrong = pipeline_side_check(pipeline, &own->ops.op[0], one->name);
	if (!wrong && pipeline_side_file(pipeline, one->name) == 0)
		own->ops.op[0].value[OP_AUDIO_CROP].number[0] = SOUND_BEGIN;
	*ops = own->ops;
	r = wrong ? 0 : pipeline_compile_ops(own, ops, &why);
	if (r < 0)
		return r;
	if (r > 0)
		wrong = why.text;
	if (!wrong) {
		side->pipeline = base_take_ptr(own);
		wrong = pipeline_side_place(pipeline, side, one->name, room);
		pipeline->sides.n++;
	}
	if (!wrong)
		return 0;
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: view \"%s\": %s", one->name, wrong);
}

int pipeline_side_add_all(struct pipeline *pipeline, const struct op_list *whole,
			  const struct views *views, struct diag *diag)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < views->n; i++)
		if (views_is_own(whole, &views->one[i]))
			r = pipeline_side_add(pipeline, whole, &views->one[i], diag);
	for (unsigned f = 0; r == 0 && f < pipeline->n_fields; f++)
		if (pipeline->fields[f].role == PIPELINE_FILE && !pipeline_side_has(pipeline, f))
			return diag_fail(
			    diag, PIPELINE_E_BAD,
			    "pipeline: field \"%s\" is a file (kind 10), and no view has its name "
			    "and begins with the op for it; add such a view",
			    pipeline->fields[f].name);
	return r;
}

int pipeline_side_refuse_others(const struct pipeline *pipeline, const struct op_list *whole,
				const struct views *views, struct diag *diag)
{
	for (unsigned i = 0; i < views->n; i++)
		if (!views_is_own(whole, &views->one[i]))
			return diag_fail(
			    diag, PIPELINE_E_BAD,
			    "pipeline: view \"%s\": %s is decoded for one pipeline; begin the view "
			    "with an op on files, and give a field of kind 10 and its name",
			    views->one[i].name, op_name(pipeline->ops.op[0].id));
	return 0;
}

/* ---- which may meet ---- */

static unsigned pipeline_side_from(const struct pipeline *pipeline,
				   const struct pipeline_side *side)
{
	return side->is_heard ? 0 : 1 + side->field - pipeline->packed.first;
}

bool pipeline_sides_are_alike(const struct pipeline *a, const struct pipeline *b)
{
	if (a->sides.n != b->sides.n)
		return false;
	for (unsigned i = 0; i < a->sides.n; i++) {
		const struct pipeline_side *x = &a->sides.one[i], *y = &b->sides.one[i];

		if (pipeline_side_from(a, x) != pipeline_side_from(b, y) ||
		    op_alike(&x->pipeline->ops, &y->pipeline->ops, 1) != 1 ||
		    !pipeline_run_is_alike(x->pipeline, y->pipeline))
			return false;
	}
	return true;
}

/* ---- a run ---- */

static const struct pipeline *pipeline_side_any(const struct pipeline_run *run)
{
	for (unsigned v = 0; v < run->n; v++)
		if (run->pipeline[v])
			return run->pipeline[v];
	return NULL;
}

int pipeline_side_run_add(struct pipeline_run *run)
{
	const struct pipeline *any = pipeline_side_any(run);
	int r = 0;

	for (unsigned i = 0; r == 0 && any && i < any->sides.n; i++) {
		const struct pipeline *own[PIPELINE_MAX_VARIANTS] = {NULL};

		for (unsigned v = 0; v < run->n; v++)
			if (run->pipeline[v])
				own[v] = run->pipeline[v]->sides.one[i].pipeline;
		r = pipeline_run_new(own, run->n, &run->side[i]);
	}
	return r;
}

static void pipeline_side_out(const struct pipeline_side *side, const struct pipeline_out *out,
			      int64_t *label, struct pipeline_out *ret)
{
	ret->field[0] = out->field[side->field];
	ret->field[PIPELINE_LABEL] = label;
	for (unsigned f = PIPELINE_LABEL + 1; f < side->pipeline->n_fields; f++)
		ret->field[f] = out->field[side->rest + f - (PIPELINE_LABEL + 1)];
}

/* Number i; the record was checked when what is beside the first file was written. */
static int pipeline_side_run(struct pipeline_run *run, unsigned i, uint32_t variants,
			     const struct pipeline_input *input, const struct pipeline_key *key,
			     const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	const struct pipeline *any = pipeline_side_any(run);
	const struct pipeline_side *side = &any->sides.one[i];
	const unsigned at = input->record.n - any->packed.n + side->field - any->packed.first;
	const struct pipeline_key own = {
	    key->seed,
	    key->nonce ^ PIPELINE_SIDE_NONCE ^ ((uint64_t)i << PIPELINE_SIDE_SHIFT),
	    key->sample,
	};
	struct pipeline_input file = {.data = input->data, .size = input->size};
	int64_t time_us;
	struct pipeline_out to[PIPELINE_MAX_VARIANTS];
	int64_t label[PIPELINE_MAX_VARIANTS];
	int r;

	if (side->is_heard) {
		time_us = video_frames_time_us(run->frames);
		file.time_us = &time_us;
		file.record.part = video_frames_rest(run->frames);
	} else {
		file.data = input->record.value[at];
		file.size = input->record.field[at].bytes;
	}
	for (unsigned v = 0; v < run->n; v++)
		if ((variants >> v & 1) && run->pipeline[v])
			pipeline_side_out(&run->pipeline[v]->sides.one[i], &out[v], &label[v],
					  &to[v]);
	r = pipeline_run_input(run->side[i], variants, &file, &own, to, ret_error);
	return r > 0 ? pipeline_companion_fail(any->fields[side->field].name, ret_error) : r;
}

int pipeline_side_run_all(struct pipeline_run *run, uint32_t variants,
			  const struct pipeline_input *input, const struct pipeline_key *key,
			  const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEWS_MOST && run->side[i]; i++)
		r = pipeline_side_run(run, i, variants, input, key, out, ret_error);
	return r;
}
