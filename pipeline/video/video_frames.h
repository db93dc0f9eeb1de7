/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A video's file, and the frames of it that make a clip, one after another, as the bytes of pictures' files. */

#include "pipeline/types.h"
#include "pipeline/video/video.h"

struct video_frames; /* of a run; not shared */

/* Is it one that frames can be picked of? 0, or PIPELINE_E_BAD with *ret_error. */
int video_frames_check(const struct video_head *head, struct pipeline_error *ret_error);
/* video is borrowed. 0, -ENOMEM, or -ENOTSUP: what decodes cannot be loaded (video_load). */
int video_frames_new(const struct video *video, struct video_frames **ret);
void video_frames_free(struct video_frames *frames);
/* From now on fn is told how many pixels are going to be decoded for a clip, before that; arg is the caller's. */
void video_frames_watch(struct video_frames *frames,
			void (*fn)(void *arg, uint32_t height, uint32_t width), void *arg);

/* The file's bytes (hostile), borrowed until close; which frames of the part make the clip is key's. 0, or PIPELINE_E_BAD with
 * *ret_error. */
int video_frames_open(struct video_frames *frames, const void *data, size_t size,
		      const struct pipeline_part *part, const struct pipeline_key *key,
		      struct pipeline_error *ret_error);
void video_frames_close(struct video_frames *frames); /* also of what did not open */
/* ---- of an open one ---- */
void video_frames_size(const struct video_frames *frames, uint32_t *ret_height,
		       uint32_t *ret_width);
/* When the clip's first frame is shown, by the container's clock. */
int64_t video_frames_time_us(const struct video_frames *frames);
/* What is left of its part of the file, from when it begins. */
struct pipeline_part video_frames_rest(const struct video_frames *frames);
/* How many of the clip's frames the file has, behind which its last one is repeated. */
int64_t video_frames_length(const struct video_frames *frames);
enum { VIDEO_FRAMES_END = -1, VIDEO_FRAMES_AGAIN = 2 };
/* The next one: 0 with *ret_data, a picture's file, the frames' until the next call; VIDEO_FRAMES_AGAIN: it is the one that was
 * given last; VIDEO_FRAMES_END: there are no more; or PIPELINE_E_BAD with *ret_error. */
int video_frames_next(struct video_frames *frames, const void **ret_data, size_t *ret_size,
		      struct pipeline_error *ret_error);
