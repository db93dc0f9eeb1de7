/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the module that decodes a video and ops that know pictures: a frame becomes a PPM file in memory, which decode
 * takes as any other picture's. So nothing behind decode knows of videos, at the price of a copy of the frame, a few
 * percent of what its decoding costs.
 */

#include "pipeline/video/video_frames.h"

#include <stdio.h>

#include "pipeline/formats/decode.h"
#include "pipeline/video/video_module.h"

#define VIDEO_FRAMES_HEAD 32 /* bytes of a PPM's head, at most */

struct video_frames {
	const struct video *video; /* borrowed */
	const struct video_module *module;
	struct video_room *room; /* owned */
	struct video_watch watch;
	struct video_head head;        /* of the open file */
	struct pipeline_part part;     /* of it, of which the clip is */
	struct picture_buffer picture; /* a PPM */
	uint32_t *number;              /* owned; of the clip's frames in the file */
	uint32_t length, next;
	bool is_open; /* the module has the file, be it good or bad */
};

int video_frames_new(const struct video *video, struct video_frames **ret)
{
	struct video_frames *frames;
	const char *why;
	const struct video_module *module = video_load(&why);

	if (!module)
		return -ENOTSUP;
	frames = calloc(1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	frames->video = video;
	frames->module = module;
	frames->number = calloc(video->frames, sizeof(*frames->number));
	if (!frames->number || module->room_new(&frames->room) != 0) {
		video_frames_free(frames);
		return -ENOMEM;
	}
	*ret = frames;
	return 0;
}

void video_frames_free(struct video_frames *frames)
{
	if (!frames)
		return;
	if (frames->room)
		frames->module->room_free(frames->room);
	picture_buffer_fini(&frames->picture);
	free(frames->number);
	free(frames);
}

void video_frames_watch(struct video_frames *frames,
			void (*fn)(void *arg, uint32_t height, uint32_t width), void *arg)
{
	frames->watch = (struct video_watch){fn, arg};
	frames->module->watch(frames->room, &frames->watch);
}

int video_frames_check(const struct video_head *head, struct pipeline_error *ret_error)
{
	if (head->frames == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "a video without frames");
	if (head->height > VIDEO_MOST_SIDE || head->width > VIDEO_MOST_SIDE ||
	    (uint64_t)head->height * head->width > VIDEO_MOST_PIXELS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "frames of %u x %u pixels are too large", head->width,
				   head->height);
	if (head->frames > VIDEO_MOST_HAS || head->time_us[head->frames - 1] > VIDEO_MOST_US)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "the video is too long");
	return 0;
}

int video_frames_open(struct video_frames *frames, const void *data, size_t size,
		      const struct pipeline_part *part, const struct pipeline_key *key,
		      struct pipeline_error *ret_error)
{
	const struct video_module *module = frames->module;
	const uint32_t n = frames->video->frames;
	struct video_head head;
	uint32_t first;
	struct philox_seq seq;
	struct draw draw;
	uint64_t rows;
	int r;

	frames->is_open = true;
	frames->part = *part;
	r = module->open(frames->room, data, size, &frames->head, ret_error);
	if (r == PIPELINE_E_BAD && decode_is_picture(data, size))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "a picture, which the op decode decodes");
	r = r ? r : video_frames_check(&frames->head, ret_error);
	r = r ? r : video_part(&frames->head, part, &head, &first, ret_error);
	if (r != 0)
		return r;
	draw_init(&draw, key);
	draw_seq(&draw, 0, &seq);
	frames->length = video_pick(frames->video, &head, &seq, frames->number);
	for (uint32_t i = 0; i < n; i++)
		frames->number[i] += first;
	frames->next = 0;
	rows = (uint64_t)frames->head.height * module->cost(frames->room, frames->number, n);
	if (frames->watch.fn)
		frames->watch.fn(frames->watch.arg, (uint32_t)BASE_MIN(rows, UINT32_MAX),
				 frames->head.width);
	return 0;
}

void video_frames_close(struct video_frames *frames)
{
	if (frames->is_open)
		frames->module->close(frames->room);
	frames->is_open = false;
	picture_buffer_trim(&frames->picture);
	frames->head = (struct video_head){.frames = 0};
}

void video_frames_size(const struct video_frames *frames, uint32_t *ret_height, uint32_t *ret_width)
{
	*ret_height = frames->head.height;
	*ret_width = frames->head.width;
}

int64_t video_frames_time_us(const struct video_frames *frames)
{
	return frames->head.start_us + frames->head.time_us[frames->number[0]];
}

struct pipeline_part video_frames_rest(const struct video_frames *frames)
{
	const struct pipeline_part *part = &frames->part;
	const double time = (double)frames->head.time_us[frames->number[0]] / 1e6;

	return (struct pipeline_part){
	    part->is_there, 0, BASE_MAX(part->start + part->seconds - time, 0), part->channel};
}

int64_t video_frames_length(const struct video_frames *frames)
{
	return frames->length;
}

/* A picture's file of the frame's pixels. */
static int video_frames_wrap(struct video_frames *frames, const uint8_t *pixels,
			     const void **ret_data, size_t *ret_size,
			     struct pipeline_error *ret_error)
{
	const size_t bytes = (size_t)frames->head.height * frames->head.width * 3;
	uint8_t *ppm = picture_bytes(&frames->picture, VIDEO_FRAMES_HEAD + bytes);
	int head;

	if (!ppm)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the video");
	head = snprintf((char *)ppm, VIDEO_FRAMES_HEAD, "P6 %u %u 255\n", frames->head.width,
			frames->head.height);
	memcpy(ppm + head, pixels, bytes);
	*ret_data = ppm;
	*ret_size = (size_t)head + bytes;
	return 0;
}

int video_frames_next(struct video_frames *frames, const void **ret_data, size_t *ret_size,
		      struct pipeline_error *ret_error)
{
	const uint32_t *number = &frames->number[frames->next];
	const uint8_t *pixels;
	int r;

	if (frames->next == frames->video->frames)
		return VIDEO_FRAMES_END;
	if (frames->next++ > 0 && number[0] == number[-1])
		return VIDEO_FRAMES_AGAIN;
	r = frames->module->frame(frames->room, *number, &pixels, ret_error);
	if (r != 0)
		return r;
	return video_frames_wrap(frames, pixels, ret_data, ret_size, ret_error);
}
