/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume through a pipeline, and the volumes of labels beside it, the first of which may decide what is taken of all. Further volumes
 * (a sample's other modalities) follow: of each the same part is taken, and the same is done to its numbers.
 */

#include "pipeline/pipeline_inner.h"

/* Of field f, in the sample's record. */
static int pipeline_volume_labels(struct pipeline_run *run, const struct pipeline *pipeline,
				  unsigned f, const struct packed *record,
				  const struct pipeline_key *key, bool *is_chosen, void *out,
				  struct pipeline_error *ret_error)
{
	const unsigned at = record->n - pipeline->packed.n + f - pipeline->packed.first;
	int r = volume_open_labels(run->medium_room, record->value[at], record->field[at].bytes,
				   ret_error);

	if (r == 0 && !*is_chosen)
		r = volume_choose(run->medium_room, &pipeline->first.volume, &pipeline->ops, key,
				  ret_error);
	*is_chosen = true;
	r = r ? r : volume_labels(run->medium_room, &pipeline->fields[f], out, ret_error);
	volume_close_labels(run->medium_room);
	return r;
}

/* The first one is done with. */
static int pipeline_volume_further(struct pipeline_run *run, const struct pipeline *pipeline,
				   unsigned f, const struct packed *record, void *out,
				   struct pipeline_error *ret_error)
{
	const unsigned at = record->n - pipeline->packed.n + f - pipeline->packed.first;
	int r = volume_open_further(run->medium_room, &pipeline->first.volume, run->decode,
				    record->value[at], record->field[at].bytes, ret_error);

	r = r ? r
	      : volume_image(run->medium_room, &pipeline->first.volume, &pipeline->shape,
			     run->decode, out, ret_error);
	volume_close(run->medium_room, run->decode);
	return r > 0 ? pipeline_companion_fail(pipeline->fields[f].name, ret_error) : r;
}

static int pipeline_run_volume(struct pipeline_run *run, unsigned v,
			       const struct pipeline_input *input, const struct pipeline_key *key,
			       const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const unsigned first = pipeline->packed.first;
	bool is_chosen = false;
	int r = volume_open(run->medium_room, &pipeline->first.volume, run->decode, input->data,
			    input->size, ret_error);

	for (unsigned f = first; r == 0 && f < first + pipeline->packed.n; f++)
		if (pipeline->fields[f].role == PIPELINE_MASK)
			r = pipeline_volume_labels(run, pipeline, f, &input->record, key,
						   &is_chosen, out->field[f], ret_error);
	if (r == 0 && !is_chosen)
		r = volume_choose(run->medium_room, &pipeline->first.volume, &pipeline->ops, key,
				  ret_error);
	r = r ? r
	      : volume_image(run->medium_room, &pipeline->first.volume, &pipeline->shape,
			     run->decode, out->field[0], ret_error);
	volume_close(run->medium_room, run->decode);
	for (unsigned f = first; r == 0 && f < first + pipeline->packed.n; f++)
		if (pipeline->fields[f].role == PIPELINE_IMAGE)
			r = pipeline_volume_further(run, pipeline, f, &input->record, out->field[f],
						    ret_error);
	return r;
}

static int pipeline_volumes_add(struct pipeline_run *run, unsigned v)
{
	struct volume_room *room = NULL;
	int r = run->medium_room ? 0 : volume_room_new(&room);

	(void)v;
	if (room)
		run->medium_room = room;
	return r;
}

static void pipeline_volumes_free(void *room)
{
	volume_room_free(room);
}

static int pipeline_run_volumes(struct pipeline_run *run, uint32_t who,
				const struct pipeline_input *input, const struct pipeline_key *key,
				const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned v = 0; r == 0 && v < run->n; v++)
		if (who >> v & 1)
			r = pipeline_run_volume(run, v, input, key, &out[v], ret_error);
	return r;
}

/* Volumes of labels, and further ones. */
static const char *pipeline_set_labels(struct pipeline *pipeline)
{
	const struct shape *shape = &pipeline->shape;
	const uint64_t sides[3] = {shape->depth, shape->height, shape->width};
	const unsigned end = pipeline->packed.first + pipeline->packed.n;
	bool are_there = false;

	for (unsigned f = pipeline->packed.first; f < end; f++) {
		struct pipeline_field *field = &pipeline->fields[f];

		if (field->role == PIPELINE_MASK)
			pipeline_set_field(field, field->dtype, 3, sides);
		else if (field->role == PIPELINE_IMAGE && field->times == 1)
			pipeline_set_image(field, shape);
		else if (field->role == PIPELINE_IMAGE)
			return "a volume beside another one has its size; give [1] of kind 8";
		are_there |= field->role == PIPELINE_MASK;
	}
	if (pipeline->first.volume.by_labels && !are_there)
		return "random_crop_by_label asks for a volume of labels beside it; give a field "
		       "of kind 5, or take random_crop_3d";
	return NULL;
}

static int pipeline_compile_volume(struct pipeline *pipeline, struct op_list *whole,
				   const struct views *views, struct diag *diag)
{
	const char *wrong;
	unsigned at = 0;
	int r = shape_infer(&pipeline->ops, &pipeline->shape, diag);

	if (r != 0)
		return r;
	wrong = volume_init(&pipeline->ops, &pipeline->shape, &pipeline->first.volume, &at);
	r = wrong ? 0 : tail_infer(&pipeline->ops, &pipeline->shape, &pipeline->tail, diag);
	if (r != 0)
		return r;
	if (!wrong) {
		at = 0;
		wrong = pipeline_check_tail(pipeline);
	}
	if (!wrong) {
		pipeline_add_image(pipeline, "image", &pipeline->shape);
		pipeline_add_label(pipeline);
		r = pipeline_set_fields(pipeline, diag);
		wrong = r ? NULL : pipeline_set_labels(pipeline);
	}
	if (r != 0)
		return r;
	if (!wrong)
		return pipeline_set_sides(pipeline, whole, views, diag);
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", at + 1,
			 op_name(pipeline->ops.op[at].id), wrong);
}

const struct pipeline_medium pipeline_volume = {
    .first = OP_VOLUME,
    .compile = pipeline_compile_volume,
    .add = pipeline_volumes_add,
    .free = pipeline_volumes_free,
    .run = pipeline_run_volumes,
};
