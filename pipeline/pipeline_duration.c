/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "duration", which takes the place of decode: how long a sound or a video is. Sounds are measured by their heads; a video
 * needs the times of its frames, so its packets are looked at, and its first frame is decoded. What comes out is
 * what the ops audio and video would take a part of, so that lengths are the same.
 */

#include "pipeline/ops/op_run.h"
#include "pipeline/pipeline_inner.h"
#include "pipeline/video/video_module.h"

enum { DURATION_SOUND, DURATION_VIDEO }; /* as op_medium_words */

struct pipeline_durations {
	const struct video_module *module; /* NULL: of sounds */
	struct video_room *room;           /* owned; the module's */
	struct video_watch watch;
};

static bool duration_is_random(const struct op *op)
{
	return op_number(op, OP_DURATION_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl duration_op = {.stage = OP_STAGE_DECODE, .is_random = duration_is_random};

static bool duration_is_of_video(const struct op *op)
{
	return op_number(op, OP_DURATION_OF, 0) == DURATION_VIDEO;
}

static const char *duration_check(const struct op *op)
{
	return duration_is_of_video(op) ? video_missing() : sound_missing();
}

bool pipeline_duration_is_of_video(const struct pipeline *pipeline)
{
	return pipeline->medium == &pipeline_duration && duration_is_of_video(&pipeline->ops.op[0]);
}

static void pipeline_durations_free(void *own)
{
	struct pipeline_durations *durations = own;

	if (!durations)
		return;
	if (durations->room)
		durations->module->room_free(durations->room);
	free(durations);
}

static int pipeline_durations_add(struct pipeline_run *run, unsigned v)
{
	struct pipeline_durations *durations = run->medium_room;
	const char *why;

	if (!durations)
		run->medium_room = durations = calloc(1, sizeof(*durations));
	if (!durations)
		return -ENOMEM;
	if (durations->room || !pipeline_duration_is_of_video(run->pipeline[v]))
		return 0;
	durations->module = video_load(&why);
	if (!durations->module)
		return -ENOTSUP;
	return durations->module->room_new(&durations->room) == 0 ? 0 : -ENOMEM;
}

static int duration_of_sound(const struct pipeline_input *input, double ret[2], int64_t *ret_frames,
			     struct pipeline_error *ret_error)
{
	struct sound_head head;
	int r = sound_measure(input->data, input->size, &input->record.part, &head, ret_error);

	if (r != 0)
		return r;
	ret[0] = (double)head.frames / head.rate;
	ret[1] = head.rate;
	*ret_frames = head.frames;
	return 0;
}

static int duration_of_video(struct pipeline_run *run, const struct pipeline_input *input,
			     double ret[2], int64_t *ret_frames, struct pipeline_error *ret_error)
{
	struct pipeline_durations *durations = run->medium_room;
	const struct video_module *module = durations->module;
	struct video_head head;
	uint32_t first;
	int r;

	if (run->watch.fn) {
		durations->watch = (struct video_watch){run->watch.fn, run->watch.arg};
		module->watch(durations->room, &durations->watch);
	}
	r = module->open(durations->room, input->data, input->size, &head, ret_error);
	r = r ? r : video_frames_check(&head, ret_error);
	r = r ? r : video_part(&head, &input->record.part, &head, &first, ret_error);
	if (r == 0) {
		ret[0] = (double)video_length_us(&head) / 1e6;
		ret[1] = head.frames / ret[0];
		*ret_frames = head.frames;
	}
	module->close(durations->room);
	return r;
}

static int pipeline_run_durations(struct pipeline_run *run, uint32_t who,
				  const struct pipeline_input *input,
				  const struct pipeline_key *key, const struct pipeline_out out[],
				  struct pipeline_error *ret_error)
{
	const struct pipeline_durations *durations = run->medium_room;
	double duration[2];
	int64_t frames;
	int r = durations->room ? duration_of_video(run, input, duration, &frames, ret_error)
				: duration_of_sound(input, duration, &frames, ret_error);

	(void)key;
	for (unsigned v = 0; r == 0 && v < run->n; v++) {
		if (!(who >> v & 1))
			continue;
		memcpy(out[v].field[0], duration, sizeof(duration));
		memcpy(out[v].field[2], &frames, sizeof(frames));
	}
	return r;
}

/* How long what is in a file is, its label, and how many frames it has. */
static int pipeline_compile_duration(struct pipeline *pipeline, struct op_list *whole,
				     const struct views *views, struct diag *diag)
{
	static const struct shape none = {.dtype = PIPELINE_F64};
	int r = tail_infer(&pipeline->ops, &none, &pipeline->tail, diag);
	const char *wrong = duration_check(&pipeline->ops.op[0]);

	if (r != 0)
		return r;
	if (!wrong)
		wrong = pipeline->tail.first > 1 ? "nothing is decoded; leave out what stands "
						   "behind it, but for ops on the label"
						 : pipeline_check_tail(pipeline);
	if (wrong)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op 1 (duration): %s", wrong);
	pipeline_add_field(pipeline, "duration", PIPELINE_F64, 1, (uint64_t[1]){2});
	pipeline_add_label(pipeline);
	pipeline_add_field(pipeline, "length", PIPELINE_I64, 0, NULL);
	shape_intake(&pipeline->ops.op[0], &pipeline->shape);
	r = pipeline_set_fields(pipeline, diag);
	return r ? r : pipeline_set_sides(pipeline, whole, views, diag);
}

const struct pipeline_medium pipeline_duration = {
    .first = OP_DURATION,
    .is_shared = true,
    .is_timed = true,
    .compile = pipeline_compile_duration,
    .add = pipeline_durations_add,
    .free = pipeline_durations_free,
    .run = pipeline_run_durations,
};
