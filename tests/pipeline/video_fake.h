/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A module of videos that needs no library, in place of access-video.so: whoever links video_fake.c has it from video_load().
 * A file of it is "FILM", then height, width, frames and the microseconds between them (u32 each), then the frames in RGB.
 */

#include <stddef.h>
#include <stdint.h>

#define VIDEO_FAKE_HEAD 20

extern unsigned video_fake_decoded; /* frames, so far */
extern unsigned video_fake_open;    /* files */

/* A file in `to`, which has room for it; its frames are noise of that seed. Its bytes. */
size_t video_fake_file(uint8_t *to, uint32_t height, uint32_t width, uint32_t frames,
		       uint32_t gap_us, uint64_t seed);
