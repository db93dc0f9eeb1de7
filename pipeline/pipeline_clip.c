/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clip through pipelines: each of its frames is a picture as any other, to all of them, with the same key, so that ops draw
 * the same for each; all frames of a file have one size, which some draws follow. What a frame becomes stands behind
 * what the one before it became. A frame that comes again is copied from there.
 */

#include "pipeline/engine/drive.h"
#include "pipeline/pipeline_inner.h"

/* What the last frame became, once more. */
static int pipeline_clip_repeat(struct pipeline_run *run, uint32_t who)
{
	for (uint32_t left = who; left; left &= left - 1) {
		const unsigned p = (unsigned)__builtin_ctz(left);
		uint8_t *out = run->part[p].out;

		memcpy(out, out - run->frame_bytes[p], run->frame_bytes[p]);
	}
	return 0;
}

static void pipeline_clip_advance(struct pipeline_run *run, uint32_t who)
{
	for (uint32_t left = who; left; left &= left - 1) {
		const unsigned p = (unsigned)__builtin_ctz(left);

		run->part[p].out = (uint8_t *)run->part[p].out + run->frame_bytes[p];
	}
}

int pipeline_run_clip(struct pipeline_run *run, uint32_t who, const struct pipeline_key *key,
		      struct pipeline_error *ret_error)
{
	const void *data;
	size_t size;

	for (;;) {
		int r = video_frames_next(run->frames, &data, &size, ret_error);

		if (r == VIDEO_FRAMES_END)
			return 0;
		if (r == 0)
			r = drive_sample(&engine_fused, run->decode, run->part, who, data, size,
					 key, ret_error);
		else if (r == VIDEO_FRAMES_AGAIN)
			r = pipeline_clip_repeat(run, who);
		if (r != 0)
			return r;
		pipeline_clip_advance(run, who);
	}
}
