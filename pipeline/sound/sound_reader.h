/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What reads a kind of sound files: one of these for each library, all of them in the table of sound_file.c. */

#include "pipeline/sound/sound_file.h"

struct sound_reader {
	/* Whether data is of its kind, and where the file then begins in it. */
	bool (*begins)(const uint8_t *data, size_t size, size_t *ret_start);
	/* data, which begins so, is borrowed until it is closed. The head is what the file has: in no bounds, frames may be none. 0, or
	 * PIPELINE_E_BAD with *ret_error, or SOUND_E_NONE with it. */
	int (*open)(const uint8_t *data, size_t size, void **ret, struct sound_head *ret_head,
		    struct pipeline_error *ret_error);
	void (*close)(void *sound);
	/* Which frame sounds at that time of the container's clock; NULL: its first frame is at 0. */
	int64_t (*at)(const void *sound, int64_t time_us);
	/* Whether what is read next begins at this frame. */
	bool (*seek)(void *sound, int64_t frame);
	/* At most so many frames, the channels of each side by side. How many; 0 with *ret_error: there are no more, or what is there
	 * cannot be decoded. */
	size_t (*read)(void *sound, float *out, size_t frames, struct pipeline_error *ret_error);
};

extern const struct sound_reader sound_mp3_reader, sound_snd_reader, sound_video_reader;
/* Why a file that ends early is bad: always 0. */
size_t sound_ends(int code, struct pipeline_error *ret_error);
