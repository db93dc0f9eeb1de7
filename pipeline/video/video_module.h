/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What decodes videos: access-video.so, of libavformat, libavcodec and libswscale, loaded by whoever decodes (a worker's
 * parent; a test), never by accessd. The module is built with the rest and is of the same version, or is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"
#include "pipeline/sound/sound_file.h"
#include "pipeline/video/video.h"

#define VIDEO_MODULE_SYMBOL "access_video_module"
#define VIDEO_MODULE_VERSION 4

struct video_sound; /* of one file */
struct video_room;  /* memory that is kept from sample to sample, and what is open */

struct
    video_watch { /* who is told how many pixels are going to be decoded, for the patience with a sample */
	void (*fn)(void *arg, uint32_t height, uint32_t width);
	void *arg;
};

struct video_module {
	uint32_t version;
	void (*prepare)(void); /* by video_load(), once: what must be opened before a sandbox */
	int (*room_new)(struct video_room **ret); /* 0 or -ENOMEM */
	void (*room_free)(struct video_room *room);
	/* The file's bytes (hostile), which stay where they are until close. Reads heads and packets, decodes the first
	 * frame, for its size.
	 * 0, or PIPELINE_E_BAD with *ret_error. */
	int (*open)(struct video_room *room, const void *data, size_t size, struct video_head *ret,
		    struct pipeline_error *ret_error);
	/* That frame of head's, in RGB, 8 bits, height x width x 3 without gaps; the room's until the next call. Cheap in
	 * ascending order: decodes from the last key frame or from where it is. The same frame has the same bytes however
	 * it was come to. 0, or PIPELINE_E_BAD with *ret_error. */
	int (*frame)(struct video_room *room, uint32_t number, const uint8_t **ret,
		     struct pipeline_error *ret_error);
	/* How many frames must be decoded to have those (ascending), key frames before them too: for the patience. */
	uint32_t (*cost)(const struct video_room *room, const uint32_t *number, uint32_t n);
	void (*close)(struct video_room *room); /* also of one that failed to open */
	/* Of files to come: it is told where opening one decodes all of it. cost() has that, too. */
	void (*watch)(struct video_room *room, const struct video_watch *watch);
	/* The file's sound, as above, and what comes out: its head's frames are 0 where it has none. */
	int (*sound_open)(const void *data, size_t size, struct video_sound **ret,
			  struct sound_head *ret_head, struct pipeline_error *ret_error);
	void (*sound_close)(struct video_sound *sound);
	/* Which frame sounds at that time of the container's clock: below 0, or behind the last, where none does. */
	int64_t (*sound_at)(const struct video_sound *sound, int64_t time_us);
	/* The next read begins at this frame. */
	void (*sound_seek)(struct video_sound *sound, int64_t frame);
	/* So many frames, the channels of each side by side, with silence behind the last one. 0, or PIPELINE_E_BAD with *ret_error. */
	int (*sound_read)(struct video_sound *sound, float *out, size_t frames,
			  struct pipeline_error *ret_error);
};

/* ---- video_load.c ---- */

/* Is the module there, without loading it? Why not and what to do; NULL: it is. */
const char *video_missing(void);
/* Loads it, once a process; before a sandbox. NULL with *ret_why (for people, kept) where it cannot be. */
const struct video_module *video_load(const char **ret_why);
/* What that loaded; NULL: nothing yet. In a sandbox, too. */
const struct video_module *video_loaded(void);
