/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sound of a file: what of it is asked for, as video_module.h has it. */

#include "pipeline/video/video_module.h"

int video_sound_open(const void *data, size_t size, struct video_sound **ret,
		     struct sound_head *ret_head, struct pipeline_error *ret_error);
void video_sound_close(struct video_sound *sound);
int64_t video_sound_at(const struct video_sound *sound, int64_t time_us);
void video_sound_seek(struct video_sound *sound, int64_t frame);
int video_sound_read(struct video_sound *sound, float *out, size_t frames,
		     struct pipeline_error *ret_error);
