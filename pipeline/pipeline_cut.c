/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuts of pipelines, as the rest of the program asks for them.
 */

#include "pipeline/forms/form.h"
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline_inner.h"

unsigned pipeline_cuts(const struct pipeline *pipeline, unsigned ret[PIPELINE_MAX_OPS])
{
	unsigned n = 0;

	for (unsigned cut = 1; cut < pipeline->cuts.n; cut++) {
		if (pipeline->cuts.place[cut].is_cut)
			ret[n++] = cut;
	}
	return n;
}

/* How many ops that is; 0: the pipeline has no such cut. */
static unsigned pipeline_cut_ops(const struct pipeline *pipeline, unsigned cut)
{
	if (cut == PIPELINE_CUT_AUGMENTED)
		return pipeline->cuts.augmented;
	return cut < pipeline->cuts.n && pipeline->cuts.place[cut].is_cut ? cut : 0;
}

void pipeline_hash_cut(const struct pipeline *pipeline, unsigned cut, struct hash_id *ret)
{
	const unsigned ops = pipeline_cut_ops(pipeline, cut);

	if (ops > 0 || (cut == 0 && pipeline->cuts.n > 0))
		*ret = pipeline->cuts.place[ops].id;
	else
		memset(ret, 0, sizeof(*ret));
}

/* ---- making ---- */

static int pipeline_cut_of(struct pipeline_run *run, const struct pipeline *pipeline, unsigned ops,
			   const struct pipeline_input *input, const struct pipeline_key *key,
			   struct cut_room *room, struct pipeline_error *ret_error)
{
	struct cut kept = {
	    .id = pipeline->cuts.place[ops].id,
	    .ops = ops,
	    .label = run->by_record ? input->label : 0,
	};

	if (ops == pipeline->cuts.augmented)
		cut_instance(&pipeline->cuts.place[ops].id, key, &kept.id);
	if (!run->maker && cut_maker_new(pipeline->shape.by_exif, &run->maker) != 0)
		return -ENOMEM;
	return cut_maker_run(run->maker, &pipeline->ops, input->data, input->size, key, &kept, room,
			     ret_error);
}

int pipeline_cut_make(struct pipeline_run *run, unsigned number, unsigned cut, const void *data,
		      size_t size, const struct pipeline_key *key, uint8_t *buffer,
		      size_t room_size, size_t *ret_size, struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = number < run->n ? run->pipeline[number] : NULL;
	const unsigned ops = pipeline ? pipeline_cut_ops(pipeline, cut) : 0;
	struct pipeline_input input = {.data = data, .size = size};
	struct cut_room room = {.form = buffer, .size = room_size};
	int r;

	if (!ops)
		return -EINVAL;
	r = pipeline_run_look(run, UINT32_C(1) << number, key, &input, ret_error);
	if (r == 0 && input.kept.ops > ops)
		return -EINVAL;
	r = r ? r : pipeline_cut_of(run, pipeline, ops, &input, key, &room, ret_error);
	if (r == 0 || r == PIPELINE_E_ROOM)
		*ret_size = room.needed;
	return r;
}
