/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* MP3 (MPEG audio, layer III) in memory. */

#include "pipeline/sound/sound_file.h"

struct sound_mp3;

/* Whether two frames of MPEG audio stand at the beginning, behind tags and zeros. *ret_start: where the first one is. */
bool sound_mp3_begins(const uint8_t *data, size_t size, size_t *ret_start);
/* data, which begins with a frame, is borrowed until it is closed. The head is what the file has: in no bounds, frames may be
 * none. 0, or PIPELINE_E_BAD with *ret_error. */
int sound_mp3_open(const uint8_t *data, size_t size, struct sound_mp3 **ret,
		   struct sound_head *ret_head, struct pipeline_error *ret_error);
void sound_mp3_close(struct sound_mp3 *mp3);
/* Whether what is read next begins at this frame. */
bool sound_mp3_seek(struct sound_mp3 *mp3, int64_t frame);
/* The next n numbers, the channels of a frame side by side. How many there are: fewer only at the end, or where the file changes
 * its rate or its channels. */
size_t sound_mp3_read(struct sound_mp3 *mp3, float *out, size_t n);
