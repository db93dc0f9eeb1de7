/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A decoder's picture as RGB, 8 bits, the same on all machines. */

#include "pipeline/video/module/video_codec.h"

struct video_rgb { /* all zeros is none */
	struct SwsContext *context;
	uint32_t height, width;
	int format, matrix, range; /* of what the context is made for */
	uint8_t *pixels, *turned;
	size_t pixels_room, turned_room;
};

/* *ret: height x width x 3, turned by so many quarters; the rgb's until the next call. */
int video_rgb_make(struct video_rgb *rgb, const struct video_picture *picture, unsigned quarters,
		   const uint8_t **ret, struct pipeline_error *ret_error);
void video_rgb_trim(struct video_rgb *rgb); /* what is large is not kept */
void video_rgb_fini(struct video_rgb *rgb);
