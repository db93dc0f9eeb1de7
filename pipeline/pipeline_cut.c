/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuts of pipelines, as the rest of the program asks for them.
 */

#include <errno.h>
#include <string.h>
#include "pipeline/form.h"
#include "pipeline/packed.h"
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

void pipeline_hash_cut(const struct pipeline *pipeline, unsigned cut, struct hash_id *ret)
{
	if (cut < pipeline->cuts.n && (cut == 0 || pipeline->cuts.place[cut].is_cut))
		*ret = pipeline->cuts.place[cut].id;
	else
		memset(ret, 0, sizeof(*ret));
}

/* ---- making ---- */

static int pipeline_cut_of(struct pipeline_run *run, const struct pipeline *pipeline, unsigned cut,
			   const struct pipeline_input *input, struct cut_room *room,
			   struct pipeline_error *ret_error)
{
	struct cut kept = {
	    .id = pipeline->cuts.place[cut].id,
	    .ops = cut,
	    .label = run->by_record ? input->label : 0,
	};

	if (!run->maker && cut_maker_new(pipeline->shape.by_exif, &run->maker) != 0)
		return -ENOMEM;
	return cut_maker_run(run->maker, &pipeline->ops, input->data, input->size, &kept, room,
			     ret_error);
}

int pipeline_cut_make(struct pipeline_run *run, unsigned number, unsigned cut, const void *data,
		      size_t size, uint8_t *buffer, size_t room_size, size_t *ret_size,
		      struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = number < run->n ? run->pipeline[number] : NULL;
	struct pipeline_input input = {.data = data, .size = size};
	struct cut_room room = {.form = buffer, .size = room_size};
	int r;

	if (!pipeline || cut >= pipeline->cuts.n || !pipeline->cuts.place[cut].is_cut)
		return -EINVAL;
	r = pipeline_run_look(run, UINT32_C(1) << number, &input, ret_error);
	if (r == 0 && input.kept.ops > cut)
		return -EINVAL;
	if (r == 0)
		r = pipeline_cut_of(run, pipeline, cut, &input, &room, ret_error);
	if (r == 0 || r == PIPELINE_E_ROOM)
		*ret_size = room.needed;
	return r;
}
