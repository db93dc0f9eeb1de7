/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Point clouds through pipelines that begin with the same op: the file is read once, and its points are chosen once. Each
 * pipeline's ops change a copy of these.
 */

#include "pipeline/pipeline_inner.h"

struct pipeline_clouds {
	struct cloud_room *room; /* owned */
	float *copy;             /* owned */
};

static void pipeline_clouds_free(void *room)
{
	struct pipeline_clouds *clouds = room;

	if (!clouds)
		return;
	cloud_room_free(clouds->room);
	free(clouds->copy);
	free(clouds);
}

static int pipeline_clouds_add(struct pipeline_run *run, unsigned v)
{
	const struct cloud *cloud =
	    &run->pipeline[v]->cloud; /* all have points and channels in common */
	struct pipeline_clouds *clouds = run->medium_room;

	if (!clouds)
		run->medium_room = clouds = calloc(1, sizeof(*clouds));
	if (!clouds || (!clouds->room && cloud_room_new(&clouds->room) != 0))
		return -ENOMEM;
	if (!clouds->copy)
		clouds->copy =
		    malloc((size_t)cloud->points * cloud->channels * sizeof(*clouds->copy));
	return clouds->copy ? 0 : -ENOMEM;
}

/* Where they are is there already, as the record has it. */
static int pipeline_find_boxes(const struct pipeline *pipeline, const struct pipeline_input *input,
			       const struct pipeline_out *out, struct cloud_boxes *ret,
			       struct pipeline_error *ret_error)
{
	const struct packed_fields *packed = &pipeline->packed;
	uint64_t n;
	int r;

	if (packed->boxes == 0)
		return 0;
	r = packed_boxes(&input->record, input->record.n - packed->n, pipeline->fields, packed, &n,
			 ret_error);
	if (r == 0)
		*ret = (struct cloud_boxes){out->field[packed->boxes], n,
					    (unsigned)pipeline->fields[packed->boxes].shape[1]};
	return r;
}

static int pipeline_run_cloud(const struct pipeline_run *run, unsigned v,
			      const struct cloud_part *points, const struct pipeline_input *input,
			      const struct pipeline_key *key, const struct pipeline_out *out,
			      struct pipeline_error *ret_error)
{
	const struct pipeline_clouds *clouds = run->medium_room;
	const struct pipeline *pipeline = run->pipeline[v];
	struct cloud_part part = {.cloud = &pipeline->cloud, .at = clouds->copy, .n = points->n};
	int64_t length;
	int r = pipeline_find_boxes(pipeline, input, out, &part.boxes, ret_error);

	if (r != 0)
		return r;
	memcpy(part.at, points->at, points->n * pipeline->cloud.channels * sizeof(*part.at));
	cloud_ops(&pipeline->ops, key, &part);
	cloud_fill(&part, out->field[0]);
	length = (int64_t)part.n;
	memcpy(out->field[2], &length, sizeof(length));
	if (pipeline->packed.boxes > 0) {
		cloud_boxes_end(&part.boxes);
		packed_keep(pipeline->fields, &pipeline->packed, part.boxes.n, cloud_boxes_is_gone,
			    out);
	}
	return 0;
}

static int pipeline_run_clouds(struct pipeline_run *run, uint32_t who,
			       const struct pipeline_input *input, const struct pipeline_key *key,
			       const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	const struct pipeline_clouds *clouds = run->medium_room;
	const struct cloud *cloud = &run->pipeline[__builtin_ctz(who)]->cloud;
	struct cloud_part points;
	struct philox_seq seq;
	struct draw draw;
	int r = cloud_read(cloud, clouds->room, run->watch.fn, run->watch.arg, input->data,
			   input->size, &points, ret_error);

	if (r != 0)
		return r;
	draw_init(&draw, key);
	draw_seq(&draw, 0, &seq);
	r = cloud_take(clouds->room, &seq, &points, ret_error);
	for (unsigned v = 0; r == 0 && v < run->n; v++)
		if (who >> v & 1)
			r = pipeline_run_cloud(run, v, &points, input, key, &out[v], ret_error);
	return r;
}

/* Points, their label, and how many are not of what is behind them. */
static int pipeline_compile_cloud(struct pipeline *pipeline, struct op_list *whole,
				  const struct views *views, struct diag *diag)
{
	static const struct shape none = {.dtype = PIPELINE_F32};
	struct cloud *cloud = &pipeline->cloud;
	int r = tail_infer(&pipeline->ops, &none, &pipeline->tail, diag);
	const char *wrong = r ? NULL : pipeline_check_tail(pipeline);

	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (cloud): %s", wrong);
	r = r ? r : cloud_init(&pipeline->ops, pipeline->tail.first, cloud, diag);
	if (r != 0)
		return r;
	pipeline_add_field(pipeline, "points", PIPELINE_F32, 2,
			   (uint64_t[2]){cloud->most, cloud->channels});
	pipeline_add_label(pipeline);
	if (cloud->padding == CLOUD_RAGGED) {
		pipeline->fields[0].kind = PIPELINE_RAGGED;
		pipeline->fields[0].lengths = pipeline->n_fields;
	}
	pipeline_add_field(pipeline, cloud->padding == CLOUD_RAGGED ? "points.length" : "length",
			   PIPELINE_I64, 0, NULL);
	shape_intake(&pipeline->ops.op[0], &pipeline->shape);
	r = pipeline_set_fields(pipeline, diag);
	if (r == 0 && pipeline->packed.boxes > 0)
		r = cloud_boxes_check(&pipeline->ops, &pipeline->cloud, diag);
	return r ? r : pipeline_set_sides(pipeline, whole, views, diag);
}

const struct pipeline_medium pipeline_cloud = {
    .first = OP_CLOUD,
    .is_shared = true,
    .compile = pipeline_compile_cloud,
    .add = pipeline_clouds_add,
    .free = pipeline_clouds_free,
    .run = pipeline_run_clouds,
};
