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
	int r =
	    volume_open_labels(run->volumes, record->value[at], record->field[at].bytes, ret_error);

	if (r == 0 && !*is_chosen)
		r = volume_choose(run->volumes, &pipeline->first.volume, &pipeline->ops, key,
				  ret_error);
	*is_chosen = true;
	r = r ? r : volume_labels(run->volumes, &pipeline->fields[f], out, ret_error);
	volume_close_labels(run->volumes);
	return r;
}

/* The first one is done with. */
static int pipeline_volume_further(struct pipeline_run *run, const struct pipeline *pipeline,
				   unsigned f, const struct packed *record, void *out,
				   struct pipeline_error *ret_error)
{
	const unsigned at = record->n - pipeline->packed.n + f - pipeline->packed.first;
	int r = volume_open_further(run->volumes, &pipeline->first.volume, run->decode,
				    record->value[at], record->field[at].bytes, ret_error);

	r = r ? r
	      : volume_image(run->volumes, &pipeline->first.volume, &pipeline->shape, run->decode,
			     out, ret_error);
	volume_close(run->volumes, run->decode);
	return r > 0 ? pipeline_companion_fail(pipeline->fields[f].name, ret_error) : r;
}

static int pipeline_run_volume(struct pipeline_run *run, unsigned v,
			       const struct pipeline_input *input, const struct pipeline_key *key,
			       const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const unsigned first = pipeline->packed.first;
	bool is_chosen = false;
	int r = volume_open(run->volumes, &pipeline->first.volume, run->decode, input->data,
			    input->size, ret_error);

	for (unsigned f = first; r == 0 && f < first + pipeline->packed.n; f++)
		if (pipeline->fields[f].role == PIPELINE_MASK)
			r = pipeline_volume_labels(run, pipeline, f, &input->record, key,
						   &is_chosen, out->field[f], ret_error);
	if (r == 0 && !is_chosen)
		r = volume_choose(run->volumes, &pipeline->first.volume, &pipeline->ops, key,
				  ret_error);
	r = r ? r
	      : volume_image(run->volumes, &pipeline->first.volume, &pipeline->shape, run->decode,
			     out->field[0], ret_error);
	volume_close(run->volumes, run->decode);
	for (unsigned f = first; r == 0 && f < first + pipeline->packed.n; f++)
		if (pipeline->fields[f].role == PIPELINE_IMAGE)
			r = pipeline_volume_further(run, pipeline, f, &input->record, out->field[f],
						    ret_error);
	return r;
}

static int pipeline_volumes_add(struct pipeline_run *run, unsigned v)
{
	(void)v;
	return run->volumes ? 0 : volume_room_new(&run->volumes);
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

const struct pipeline_medium pipeline_volume = {false, pipeline_volumes_add, pipeline_run_volumes};
