/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Videos: the op "video" takes the place of decode. A video's bytes become a clip: a fixed number of its frames, each of
 * them a picture to the ops behind it, which draw once for the whole clip. video.c knows no library and is in every
 * build; what decodes is a module (video_module.h) that a worker's parent loads before it forks, so that who has no
 * videos pays nothing for a library of this size, and a package brings it.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/spec/op.h"

#define VIDEO_MOST_FRAMES 1024    /* of a clip */
#define VIDEO_MOST_HAS (1u << 20) /* of a file; nine hours at 30 frames a second */
#define VIDEO_MOST_US \
	(INT64_C(1) << 50)    /* of a file, some 35 years: what follows does not overflow */
#define VIDEO_MOST_SIDE 16384 /* pixels, of a file's frame */
#define VIDEO_MOST_PIXELS (UINT32_C(1) << 26) /* of a file's frame */

enum video_clip { VIDEO_RANDOM = 0, VIDEO_CENTER = 1, VIDEO_BEGIN = 2, VIDEO_SPREAD = 3 };

struct video {
	uint32_t frames; /* of a clip, 1 to VIDEO_MOST_FRAMES */
	uint32_t step; /* every step-th frame of the file, where fps is 0 and clip is not spread */
	double
	    fps; /* or so many a second of its time, the last frame shown by then; 0: as they are */
	enum video_clip clip;
};

struct video_head {
	uint32_t height, width; /* of a frame as it is shown: turned, if the file says so */
	uint32_t frames;        /* that can be shown */
	const int64_t
	    *time_us; /* when each is shown, ascending, from the file's first one on; the room's */
	int64_t start_us; /* when the first is, by the container's clock */
};

/* ---- video.c ---- */

/* Of that op. What is wrong with it, how to mend it too; else NULL. */
const char *video_init(const struct op *op, struct video *ret);
/* How long it is: its last frame is shown as long as the others are on the average. */
int64_t video_length_us(const struct video_head *head);
/* Of a part of a file the head, as if it were a file, whose times begin where the part does: the frames that are shown first within it.
 * *ret_first: the number in the file of its frame 0. Of what has none: PIPELINE_E_BAD with *ret_error. */
int video_part(const struct video_head *head, const struct pipeline_part *part,
	       struct video_head *ret, uint32_t *ret_first, struct pipeline_error *ret_error);
/* Which frames of the file make the clip, ascending; where the file is too short, its last one again and again.
 * Returns how many of them lie in the file, at least 1: those behind are repetitions of its end. Among them a frame may
 * be there several times: of a file with fewer than are spread over it, which has them all, or by fps above the file's
 * rate. head->frames is at least 1. */
uint32_t video_pick(const struct video *video, const struct video_head *head,
		    struct philox_seq *seq, uint32_t *ret);
