/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "video": its parameters, and which frames of a file make a clip.
 *
 * By step a clip is of frames as the file has them, each so many-th. By fps it is of moments: the frame that is shown
 * then is taken, so files of any rate, or of none that stays, give clips of the same speed. Times are whole
 * microseconds here and in the file's head, each rounded somehow, so a frame that begins one later than the moment
 * is still the one that is shown. Spread, it is the middles of equal parts of the whole file, as of TSN's segments.
 */

#include <math.h>

#include "pipeline/formats/decode.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/video/video.h"
#include "pipeline/video/video_module.h"

#define VIDEO_SLACK_US 1

const char *video_init(const struct op *op, struct video *ret)
{
	*ret = (struct video){
	    .frames = (uint32_t)op_number(op, OP_VIDEO_FRAMES, 0),
	    .step = (uint32_t)op_number(op, OP_VIDEO_STEP, 0),
	    .clip = (enum video_clip)op_number(op, OP_VIDEO_CLIP, 0),
	};
	if (!op_is_null(op, OP_VIDEO_FPS))
		ret->fps = op_number(op, OP_VIDEO_FPS, 0);
	if (ret->fps > 0 && ret->step > 1)
		return "step counts the file's frames, and fps its time; give one of them";
	if (ret->clip == VIDEO_SPREAD && (ret->fps > 0 || ret->step > 1))
		return "clip spread is of the whole video, so that step and fps follow from its "
		       "length; "
		       "leave them out";
	return video_missing();
}

/* ---- which frames ---- */

/* Where a clip of that length begins in a file of that length, both in frames or microseconds; the last place is one
 * that the clip still fits at. */
static int64_t video_start(enum video_clip clip, int64_t has, int64_t wanted,
			   struct philox_seq *seq)
{
	if (has <= wanted || clip == VIDEO_BEGIN)
		return 0;
	return clip == VIDEO_CENTER ? (has - wanted) / 2 : draw_integer(seq, 0, has - wanted);
}

/* The middles of equal parts, which a file that has fewer frames has several times. */
static uint32_t video_pick_spread(const struct video *video, uint32_t has, uint32_t *ret)
{
	for (uint32_t i = 0; i < video->frames; i++)
		ret[i] = (uint32_t)((2 * (uint64_t)i + 1) * has / (2 * video->frames));
	return video->frames;
}

static uint32_t video_pick_steps(const struct video *video, uint32_t has, struct philox_seq *seq,
				 uint32_t *ret)
{
	const uint64_t wanted = (uint64_t)(video->frames - 1) * video->step + 1;
	const uint64_t start = (uint64_t)video_start(video->clip, has, (int64_t)wanted, seq);
	uint32_t length = 0;

	for (uint32_t i = 0; i < video->frames; i++) {
		const uint64_t at = start + (uint64_t)i * video->step;

		length += at < has;
		ret[i] = (uint32_t)BASE_MIN(at, (uint64_t)has - 1);
	}
	return length;
}

int64_t video_length_us(const struct video_head *head)
{
	const int64_t last = head->time_us[head->frames - 1] - head->time_us[0];

	return BASE_MAX(head->frames > 1 ? last + last / (head->frames - 1) : last, last + 1);
}

static uint32_t video_pick_moments(const struct video *video, const struct video_head *head,
				   struct philox_seq *seq, uint32_t *ret)
{
	const double gap_us = 1e6 / video->fps;
	const int64_t begin = head->time_us[0], end = video_length_us(head);
	const int64_t wanted = llround((video->frames - 1) * gap_us) + 1;
	const int64_t start = video_start(video->clip, end, wanted, seq);
	uint32_t at = 0, length = 0;

	for (uint32_t i = 0; i < video->frames; i++) {
		const int64_t moment = start + llround(i * gap_us);

		while (at + 1 < head->frames &&
		       head->time_us[at + 1] - begin <= moment + VIDEO_SLACK_US)
			at++;
		length += moment < end;
		ret[i] = at;
	}
	return length;
}

/* The first frame that is shown from then on, but for rounding. */
static uint32_t video_first_from(const struct video_head *head, double time_us)
{
	uint32_t low = 0, high = head->frames;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if ((double)head->time_us[middle] + VIDEO_SLACK_US < time_us)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int video_part(const struct video_head *head, const struct pipeline_part *part,
	       struct video_head *ret, uint32_t *ret_first, struct pipeline_error *ret_error)
{
	uint32_t first, end;

	*ret = *head;
	*ret_first = 0;
	if (!part->is_there)
		return 0;
	first = video_first_from(head, part->start * 1e6);
	end = video_first_from(head, (part->start + part->seconds) * 1e6);
	if (first == head->frames)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "second %.6g of a video of %.6g",
				   part->start,
				   (double)(head->time_us[0] + video_length_us(head)) / 1e6);
	if (first == end)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "a part of %.6g s has no frame",
				   part->seconds);
	ret->frames = end - first;
	ret->time_us = head->time_us + first;
	*ret_first = first;
	return 0;
}

uint32_t video_pick(const struct video *video, const struct video_head *head,
		    struct philox_seq *seq, uint32_t *ret)
{
	if (video->clip == VIDEO_SPREAD)
		return video_pick_spread(video, head->frames, ret);
	if (video->fps > 0)
		return video_pick_moments(video, head, seq, ret);
	return video_pick_steps(video, head->frames, seq, ret);
}

static bool video_is_random(const struct op *op)
{
	return op_number(op, OP_VIDEO_CLIP, 0) == VIDEO_RANDOM ||
	       op_number(op, OP_VIDEO_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl video_op = {.stage = OP_STAGE_DECODE, .is_random = video_is_random};
