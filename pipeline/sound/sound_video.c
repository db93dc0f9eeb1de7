/* SPDX-License-Identifier: Apache-2.0 */

/* The sound of videos, and of what else has their containers (M4A), by the module that decodes these, where it was loaded. */

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound_reader.h"
#include "pipeline/video/video_kind.h"
#include "pipeline/video/video_module.h"

#define OGG_HEADS 1024 /* bytes in which streams of Ogg say what they are */

/* Ogg without a video is libsndfile's. */
static bool video_begins(const uint8_t *data, size_t size, size_t *ret_start)
{
	const char *kind = video_kind(data, size);

	*ret_start = 0;
	return kind && (strcmp(kind, "ogg") != 0 ||
			memmem(data, BASE_MIN(size, OGG_HEADS), "\x80theora", 7));
}

static int video_open(const uint8_t *data, size_t size, void **ret, struct sound_head *ret_head,
		      struct pipeline_error *ret_error)
{
	const struct video_module *module = video_loaded();
	struct video_sound *sound;
	int r;

	if (!module)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a video, whose sound needs oneaccess-video");
	r = module->sound_open(data, size, &sound, ret_head, ret_error);
	if (r != 0)
		return r;
	*ret = sound;
	if (ret_head->frames > 0)
		return 0;
	decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "a video without sound");
	return SOUND_E_NONE;
}

static void video_close(void *sound)
{
	video_loaded()->sound_close(sound);
}

static int64_t video_at(const void *sound, int64_t time_us)
{
	return video_loaded()->sound_at(sound, time_us);
}

static bool video_seek(void *sound, int64_t frame)
{
	video_loaded()->sound_seek(sound, frame);
	return true;
}

static size_t video_read(void *sound, float *out, size_t frames, struct pipeline_error *ret_error)
{
	return video_loaded()->sound_read(sound, out, frames, ret_error) == 0 ? frames : 0;
}

const struct sound_reader sound_video_reader = {
    .begins = video_begins,
    .open = video_open,
    .close = video_close,
    .at = video_at,
    .seek = video_seek,
    .read = video_read,
};
