/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples through pipelines: whatever a sample changes is in the run.
 *
 * The fields that need no pixels come first, since they may be the reason to need none: a sample that
 * a filter leaves out, a label that is no class. Then the engine is driven over the picture, once for all
 * pipelines of the run. What comes may be kept from behind a cut (cut.h); it must then be from a cut that each
 * pipeline has, and its head stands in for the file's where a filter asks for the size, and for the
 * record's where the label was there: shards have labels of their own.
 */

#include "pipeline/engine/drive.h"
#include "pipeline/formats/decode.h"
#include "pipeline/forms/form.h"
#include "pipeline/ops/follow.h"
#include "pipeline/pipeline_inner.h"

#define PIPELINE_EXAMPLE_BEGIN 0x0a /* a tf.Example's first byte; no picture's */

void pipeline_run_free(struct pipeline_run *run)
{
	if (!run)
		return;
	for (unsigned p = 0; p < PIPELINE_MAX_PARTS; p++)
		if (run->part[p].scratch)
			engine_fused.scratch_free(run->part[p].scratch);
	decode_free(run->decode);
	steps_scratch_free(run->masks);
	if (run->companions)
		engine_fused.scratch_free(run->companions);
	bands_room_free(run->others);
	picked_room_free(run->room);
	zstandard_free(run->zstandard);
	zipped_free(run->zipped);
	unpacked_fini(&run->unpacked);
	if (run->medium)
		run->medium->free(run->medium_room);
	video_frames_free(run->frames);
	for (unsigned i = 0; i < VIEWS_MOST; i++)
		pipeline_run_free(run->side[i]);
	bands_room_free(run->numbers);
	cut_maker_free(run->maker);
	free(run);
}

static void pipeline_run_freep(struct pipeline_run **run)
{
	pipeline_run_free(*run);
}

/* Of videos one clip serves all, of sounds one waveform, of clouds one choice of points, and of numbers what is taken of them. */
static bool pipeline_run_is_alike_part(const struct pipeline *a, const struct pipeline *b)
{
	return a->shape.frames == b->shape.frames && a->shape.bands == b->shape.bands &&
	       a->shape.is_size == b->shape.is_size &&
	       ((!a->shape.frames && !a->shape.bands && !(a->medium && a->medium->is_shared)) ||
		op_alike(&a->ops, &b->ops, 1) == 1);
}

bool pipeline_run_is_alike(const struct pipeline *a, const struct pipeline *b)
{
	return a->is_record == b->is_record && a->medium == b->medium &&
	       pipeline_run_is_alike_part(a, b) && a->shape.by_exif == b->shape.by_exif &&
	       a->shape.by_record == b->shape.by_record &&
	       a->shape.by_members == b->shape.by_members && a->packed.n == b->packed.n &&
	       pipeline_views_are_alike(a, b);
}

/* One decode serves all: is it theirs? *ret: one of them, or NULL. */
static bool pipeline_run_are_alike(const struct pipeline *const pipelines[], unsigned n,
				   const struct pipeline **ret)
{
	const struct pipeline *first = NULL;

	for (unsigned v = 0; v < n; v++) {
		if (first && pipelines[v] && !pipeline_run_is_alike(pipelines[v], first))
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

static bool pipeline_has_files(const struct pipeline *pipeline)
{
	for (unsigned f = 0; f < pipeline->n_fields; f++)
		if (packed_follows(&pipeline->fields[f]))
			return true;
	return false;
}

/* Masks, and other pictures. */
static int pipeline_run_add_files(struct pipeline_run *run, const struct pipeline *pipeline)
{
	if (!pipeline_has_files(pipeline))
		return 0;
	if (!run->masks && steps_scratch_new(&run->masks) != 0)
		return -ENOMEM;
	return pipeline_companion_run_add(run, pipeline);
}

static int pipeline_run_add_numbers(struct pipeline_run *run, const struct pipeline *pipeline)
{
	int r = pipeline_run_add_files(run, pipeline);

	return r == 0 && !run->numbers ? bands_room_new(&run->numbers) : r;
}

static int pipeline_run_add(struct pipeline_run *run, unsigned v, const struct pipeline *pipeline)
{
	int r;

	run->pipeline[v] = pipeline;
	if (!pipeline || pipeline->is_record || pipeline->shape.is_size)
		return 0;
	run->medium = pipeline->medium; /* the same for all */
	if (run->medium)
		return run->medium->add(run, v);
	if (pipeline->shape.frames && !run->frames &&
	    video_frames_new(&pipeline->first.video, &run->frames) != 0)
		return -ENOMEM;
	if (pipeline->shape.bands)
		return pipeline_run_add_numbers(run, pipeline);
	run->part[v].program = pipeline->program;
	run->part[v].choices = run->choices[v];
	run->frame_bytes[v] = pipeline->fields[0].bytes / BASE_MAX(pipeline->shape.frames, 1u);
	if (pipeline_run_add_files(run, pipeline) != 0)
		return -ENOMEM;
	r = engine_fused.scratch_new(pipeline->program, &run->part[v].scratch);
	for (unsigned i = 0; r == 0 && i < pipeline->n_views; i++) {
		struct engine_part *part = &run->part[PIPELINE_MAX_VARIANTS + i];

		part->program = pipeline->view[i]->program;
		run->frame_bytes[PIPELINE_MAX_VARIANTS + i] =
		    pipeline->fields[pipeline->first_view + i].bytes /
		    BASE_MAX(pipeline->shape.frames, 1u);
		r = engine_fused.scratch_new(part->program, &part->scratch);
	}
	return r;
}

int pipeline_run_new(const struct pipeline *const pipelines[], unsigned n,
		     struct pipeline_run **ret)
{
	_cleanup_(pipeline_run_freep) struct pipeline_run *run = calloc(1, sizeof(*run));
	const struct pipeline *first;

	if (!run)
		return -ENOMEM;
	if (!pipeline_run_are_alike(pipelines, n, &first))
		return -EINVAL;
	if (decode_new(&run->decode) != 0)
		return -ENOMEM;
	if (first && first->shape.by_exif)
		decode_by_exif(run->decode);
	run->n = n;
	run->by_record = first && first->shape.by_record;
	run->beside = run->by_record ? first->packed.n : 0;
	run->members = first ? first->members : NULL;
	if (run->members && picked_room_new(run->members, &run->room) != 0)
		return -ENOMEM;
	for (unsigned v = 0; v < n; v++) {
		int r = pipeline_run_add(run, v, pipelines[v]);

		if (r != 0)
			return r;
	}
	if (pipeline_side_run_add(run) != 0)
		return -ENOMEM;
	pipeline_run_compare(run);
	*ret = base_take_ptr(run);
	return 0;
}

void pipeline_run_watch(struct pipeline_run *run,
			void (*fn)(void *arg, uint32_t height, uint32_t width), void *arg)
{
	run->watch = (struct sound_watch){fn, arg};
	for (unsigned i = 0; i < VIEWS_MOST && run->side[i]; i++)
		pipeline_run_watch(run->side[i], fn, arg);
	if (run->frames)
		video_frames_watch(run->frames, fn, arg);
	else
		decode_watch(run->decode, fn, arg);
}

void pipeline_run_work(const struct pipeline_run *run, struct pipeline_work *ret)
{
	*ret = (struct pipeline_work){0, 0, 0};
	for (unsigned p = 0; p < PIPELINE_MAX_PARTS; p++) {
		ret->passes += run->part[p].work.passes;
		ret->ops += run->part[p].work.ops;
		ret->copies += run->part[p].work.copies;
	}
	for (unsigned i = 0; i < VIEWS_MOST && run->side[i]; i++) {
		struct pipeline_work work;

		pipeline_run_work(run->side[i], &work);
		ret->passes += work.passes;
		ret->ops += work.ops;
		ret->copies += work.copies;
	}
}

/* What is in the sample's record, or in its files. */
static int pipeline_run_parse(const struct pipeline_run *run, struct pipeline_input *input,
			      struct pipeline_error *ret_error)
{
	int r = run->members ? picked_take(run->members, run->room, input->data, input->size,
					   &input->record, ret_error)
			     : packed_parse(input->data, input->size, &input->record, ret_error);

	if (r == 0 && input->record.part.is_there && !run->frames &&
	    !(run->medium && run->medium->is_timed))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "a part, which video and audio take alone");
	return r;
}

/* Records that come as such have a head of their own. */
int pipeline_run_unpack(struct pipeline_run *run, const void **data, size_t *size,
			struct pipeline_error *ret_error)
{
	int r;

	if (run->by_record && !run->members)
		return 0;
	if (zipped_is_file(*data, *size))
		return zipped_unpack(&run->zipped, &run->unpacked, data, size, ret_error);
	if (!zstandard_is_frame(*data, *size)) {
		unpacked_rest(&run->unpacked);
		return 0;
	}
	r = zstandard_unpack(&run->zstandard, &run->unpacked, data, size, ret_error);
	if (r == 0 && !run->members && **(const uint8_t *const *)data == PIPELINE_EXAMPLE_BEGIN)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a compressed tf.Example: decode needs members");
	return r;
}

int pipeline_run_look(struct pipeline_run *run, uint32_t variants, const struct pipeline_key *key,
		      struct pipeline_input *input, struct pipeline_error *ret_error)
{
	uint32_t none; /* shards have labels of their own */
	int r = pipeline_run_unpack(run, &input->data, &input->size, ret_error);

	input->kept.ops = 0;
	if (r != 0)
		return r;
	if (!form_probe(input->data, input->size)) {
		if (!run->by_record)
			return run->members ? 0
					    : picked_refuse(input->data, input->size, ret_error);
		r = pipeline_run_parse(run, input, ret_error);
		if (r != 0)
			return r;
		return packed_picture(&input->record, run->beside, &input->data, &input->size,
				      run->members ? &none : &input->label, ret_error);
	}
	if (run->beside > 0)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no record");
	r = cut_read(input->data, input->size, &input->kept);
	if (r != 0)
		return run->by_record ? decode_fail_form(r, ret_error) : 0;
	if (run->by_record && !run->members)
		input->label = input->kept.label;
	/* Kept pixels are from a cut of each of these pipelines? */
	for (unsigned v = 0; v < run->n; v++) {
		const struct pipeline *pipeline = run->pipeline[v];

		if ((variants >> v & 1) && pipeline &&
		    !cut_is_of(&input->kept, &pipeline->cuts, key))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "kept pixels of another pipeline's first %u ops",
					   input->kept.ops);
	}
	return 0;
}

/* The size of what the sample has to be seen, in its file. */
static int pipeline_run_size(struct pipeline_run *run, const struct pipeline_input *input,
			     uint32_t *ret_height, uint32_t *ret_width,
			     struct pipeline_error *ret_error)
{
	if (!run->numbers)
		return decode_open(run->decode, input->data, input->size, ret_height, ret_width,
				   ret_error);
	bands_size(run->numbers, ret_height, ret_width);
	return 0;
}

/* Is the picture of a size that the pipeline wants? One whose head cannot be read is the engine's to
 * refuse. */
static bool pipeline_run_fits(struct pipeline_run *run, const struct pipeline *pipeline,
			      const struct pipeline_input *input, uint32_t *ret_height,
			      uint32_t *ret_width)
{
	struct pipeline_error error;
	bool is_open;

	*ret_height = input->kept.source_height;
	*ret_width = input->kept.source_width;
	if (run->frames)
		video_frames_size(run->frames, ret_height, ret_width);
	is_open = run->frames || input->kept.ops > 0 ||
		  pipeline_run_size(run, input, ret_height, ret_width, &error) == 0;
	decode_close(run->decode);
	return !is_open ||
	       label_filter_has_size(&pipeline->tail.label_filter, *ret_height, *ret_width);
}

/* Masks go through the picture's ops, each for itself. */
static int pipeline_run_masks(struct pipeline_run *run, const struct pipeline *pipeline,
			      const struct packed *record, uint32_t height, uint32_t width,
			      const struct draw *draw, const struct pipeline_out *out,
			      struct pipeline_error *ret_error)
{
	const struct packed_fields *packed = &pipeline->packed;
	const unsigned before = record->n - packed->n;
	int r = 0;

	for (unsigned f = 0; r == 0 && f < packed->n; f++) {
		const struct packed_place *place = &record->field[before + f];
		const struct mask *mask = pipeline->mask[packed->first + f];

		if (mask)
			r = mask_run(mask, run->masks, record->value[before + f], place->bytes,
				     height, width, draw, out->field[packed->first + f], ret_error);
	}
	return r;
}

static void pipeline_run_points(const struct pipeline *pipeline, const struct packed *record,
				const struct pipeline_out *out, struct follow *follow)
{
	const struct packed_fields *packed = &pipeline->packed;
	const struct op *first = &pipeline->ops.op[0];
	const unsigned before = record->n - packed->n;
	const unsigned flips = op_intake(first->id)->flip_indices;

	if (packed->points == 0)
		return;
	follow->point = out->field[packed->points];
	follow->n_rows = record->field[before + packed->points - packed->first].shape[0];
	follow->n_points = packed->n_points;
	if (!op_is_null(first, flips))
		follow->flip = op_items(&pipeline->ops, first, flips);
}

/* What follows a picture whose head cannot be read is the engine's to refuse. */
static int pipeline_run_follow(struct pipeline_run *run, unsigned v,
			       const struct pipeline_input *input, const struct pipeline_key *key,
			       const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = run->pipeline[v];
	const struct packed_fields *packed = &pipeline->packed;
	struct follow follow = {.choices = run->choices[v]};
	struct companion_first first;
	struct pipeline_error error;
	uint32_t height = 0, width = 0;
	struct draw draw;
	bool is_there;
	int r = 0;

	if (packed->boxes > 0)
		r = packed_boxes(&input->record, input->record.n - packed->n, pipeline->fields,
				 packed, &follow.n, ret_error);
	if (r != 0)
		return r;
	is_there = pipeline_run_size(run, input, &height, &width, &error) == 0;
	if (is_there) {
		follow.height = height;
		follow.width = width;
		draw_init(&draw, key);
		/* Boxes and key points go where the picture's ops will put what is there; boxes that are gone then are
		 * left out, and their rows. */
		follow.box = out->field[packed->boxes];
		pipeline_run_points(pipeline, &input->record, out, &follow);
		if (packed->boxes > 0 || packed->points > 0 || packed->measures > 0)
			follow_ops(&pipeline->ops, &pipeline->shape, &draw, &follow);
		draw.choices = run->choices[v];
		if (packed->boxes > 0)
			packed_keep(pipeline->fields, packed, follow.n, follow_is_gone, out);
		r = pipeline_run_masks(run, pipeline, &input->record, height, width, &draw, out,
				       ret_error);
	}
	decode_close(run->decode);
	first = (struct companion_first){height, width, run->choices[v], follow.step};
	if (r == 0 && is_there)
		r = pipeline_companion_run_all(run, pipeline, &input->record, &first, key, out,
					       ret_error);
	return r;
}

/* In the place of pixels. */
static int pipeline_run_measure(struct pipeline_run *run, const struct pipeline_input *input,
				const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	uint32_t height = input->kept.source_height, width = input->kept.source_width;
	int64_t size[2];
	int r = 0;

	if (input->kept.ops == 0) {
		r = decode_open(run->decode, input->data, input->size, &height, &width, ret_error);
		decode_close(run->decode);
	}
	size[0] = height;
	size[1] = width;
	memcpy(out->field[0], size, sizeof(size));
	return r;
}

/* The label, and what comes beside the picture, clip or sound. */
static int pipeline_run_beside(const struct pipeline *pipeline, const struct pipeline_input *input,
			       const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	int r = label_write(&pipeline->tail.label, &pipeline->ops, input->label, out->field[1],
			    ret_error);

	if (r != 0 || pipeline->packed.n == 0)
		return r;
	return packed_write(&input->record, input->record.n - pipeline->packed.n, pipeline->fields,
			    &pipeline->packed, out, ret_error);
}

/* What is known without the pixels: is it wanted, and what is its label? */
static int pipeline_run_tail(struct pipeline_run *run, unsigned v,
			     const struct pipeline_input *input, const struct pipeline_key *key,
			     const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	const struct pipeline *pipeline = run->pipeline[v];
	uint32_t height, width;
	int64_t length;
	int r;

	if (pipeline_filters(pipeline) && !pipeline_run_fits(run, pipeline, input, &height, &width))
		return decode_fail(ret_error, PIPELINE_FAIL_FILTERED, 0, "%u x %u pixels", width,
				   height);
	r = pipeline_run_beside(pipeline, input, out, ret_error);
	if (run->frames) {
		length = video_frames_length(run->frames);
		memcpy(out->field[2], &length, sizeof(length));
	}
	if (r == 0 && pipeline->shape.is_size)
		r = pipeline_run_measure(run, input, out, ret_error);
	if (r != 0 || pipeline->shape.is_size ||
	    (pipeline->packed.boxes == 0 && pipeline->packed.points == 0 && !run->masks))
		return r;
	return pipeline_run_follow(run, v, input, key, out, ret_error);
}

/* Fields as they are. */
static int pipeline_run_record(const struct pipeline_run *run, const struct pipeline *pipeline,
			       struct pipeline_input *input, const struct pipeline_out *out,
			       struct pipeline_error *ret_error)
{
	int r = pipeline_run_parse(run, input, ret_error);

	if (r != 0)
		return r;
	return packed_write(&input->record, 0, pipeline->fields, &pipeline->packed, out, ret_error);
}

/* The open numbers through all of the pipelines, and their views. */
static int pipeline_run_numbers(struct pipeline_run *run, uint32_t variants,
				const struct pipeline_key *key, const struct pipeline_out out[],
				struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned v = 0; r == 0 && v < run->n; v++) {
		const struct pipeline *pipeline = run->pipeline[v];

		if (!(variants >> v & 1) || !pipeline)
			continue;
		r = bands_run(run->numbers, pipeline->numbers, key, out[v].field[0], ret_error);
		for (unsigned i = 0; r == 0 && i < pipeline->n_views; i++)
			r = bands_run(run->numbers, pipeline->view[i]->numbers, key,
				      out[v].field[pipeline->first_view + i], ret_error);
	}
	return r;
}

/* Where pictures of that pipeline go; whose they are. */
static uint32_t pipeline_run_parts(struct pipeline_run *run, unsigned v,
				   const struct pipeline_out *out)
{
	const struct pipeline *pipeline = run->pipeline[v];
	uint32_t who = UINT32_C(1) << v;

	run->part[v].out = out->field[0];
	for (unsigned i = 0; i < pipeline->n_views; i++) {
		run->part[PIPELINE_MAX_VARIANTS + i].out = out->field[pipeline->first_view + i];
		who |= UINT32_C(1) << (PIPELINE_MAX_VARIANTS + i);
	}
	return who;
}

/* Who needs the picture; or PIPELINE_E_BAD with *ret_error. */
static int pipeline_run_first(struct pipeline_run *run, uint32_t variants,
			      struct pipeline_input *input, const struct pipeline_key *key,
			      const struct pipeline_out out[], uint32_t *ret,
			      struct pipeline_error *ret_error)
{
	uint32_t who = 0, others = 0;
	int r;

	for (unsigned v = 0; v < run->n; v++) {
		const struct pipeline *pipeline = run->pipeline[v];

		if (!(variants >> v & 1) || !pipeline)
			continue;
		if (pipeline->is_record)
			r = pipeline_run_record(run, pipeline, input, &out[v], ret_error);
		else if (pipeline->medium)
			r = pipeline_run_beside(pipeline, input, &out[v], ret_error);
		else
			r = pipeline_run_tail(run, v, input, key, &out[v], ret_error);
		if (r != 0)
			return r;
		if (run->medium)
			others |= UINT32_C(1) << v;
		else if (!pipeline->is_record && !pipeline->shape.is_size)
			who |= pipeline_run_parts(run, v, &out[v]);
	}
	*ret = who;
	return others ? run->medium->run(run, others, input, key, out, ret_error) : 0;
}

/* How many patches there are, and of how many rows and columns. */
static void pipeline_run_grids(const struct pipeline_run *run, uint32_t who,
			       const struct pipeline_out out[])
{
	for (unsigned v = 0; v < run->n; v++) {
		const struct engine_part *part = &run->part[v];
		const struct shape_patches *patches;
		uint32_t rows, columns;
		int64_t grid[3] = {1}, length;

		if (!(who >> v & 1) || !run->pipeline[v]->shape.patches.most)
			continue;
		patches = &run->pipeline[v]->shape.patches;
		shape_patch_grid(patches, part->height, part->width, &rows, &columns);
		length = (int64_t)rows * columns;
		grid[patches->is_timed] = rows;
		grid[1 + patches->is_timed] = columns;
		memcpy(out[v].field[2], grid, run->pipeline[v]->fields[2].bytes);
		memcpy(out[v].field[3], &length, sizeof(length));
	}
}

/* The first op is the same for all of the run's pipelines. */
static int pipeline_run_open_numbers(struct pipeline_run *run, const struct pipeline_input *input,
				     struct pipeline_error *ret_error)
{
	const struct pipeline *first = NULL;

	for (unsigned v = 0; v < run->n && !first; v++)
		first = run->pipeline[v];
	return bands_open(run->numbers, &first->first.bands, run->decode, input->data, input->size,
			  ret_error);
}

int pipeline_run_input(struct pipeline_run *run, uint32_t variants, struct pipeline_input *input,
		       const struct pipeline_key *key, const struct pipeline_out out[],
		       struct pipeline_error *ret_error)
{
	uint32_t who = 0;
	int r = 0;

	if (run->frames)
		r = video_frames_open(run->frames, input->data, input->size, &input->record.part,
				      key, ret_error);
	if (r == 0 && run->numbers)
		r = pipeline_run_open_numbers(run, input, ret_error);
	r = r ? r : pipeline_run_first(run, variants, input, key, out, &who, ret_error);
	r = r ? r : pipeline_side_run_all(run, variants, input, key, out, ret_error);
	if (r == 0 && who != 0 && run->frames)
		r = pipeline_run_clip(run, who, key, ret_error);
	else if (r == 0 && who != 0 && run->numbers)
		r = pipeline_run_numbers(run, variants, key, out, ret_error);
	else if (r == 0 && who != 0)
		r = drive_sample(&engine_fused, run->decode, run->part, who, input->data,
				 input->size, key, ret_error);
	if (r == 0)
		pipeline_run_grids(run, who, out);
	if (run->frames)
		video_frames_close(run->frames);
	if (run->numbers)
		bands_close(run->numbers);
	return r;
}

int pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data, size_t size,
			uint32_t label, const struct pipeline_key *key,
			const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	struct pipeline_input input = {.data = data, .size = size, .label = label};
	int r = pipeline_run_look(run, variants, key, &input, ret_error);

	return r ? r : pipeline_run_input(run, variants, &input, key, out, ret_error);
}
