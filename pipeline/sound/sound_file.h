/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of sounds in memory. WAV, FLAC, Ogg (Vorbis, Opus) and MP3 are told by what they begin with, never by name. */

#include "pipeline/types.h"

struct sound_file;

struct sound_head { /* as the file has it, within the bounds of sound.h; frames > 0 */
	int64_t frames;
	uint32_t rate, channels;
};

#define SOUND_E_NONE 14 /* a file that has no sound, and is good for something else */

/* data is borrowed until the file is closed. 0, or PIPELINE_E_BAD or SOUND_E_NONE with *ret_error. */
int sound_file_open(const void *data, size_t size, struct sound_file **ret,
		    struct sound_head *ret_head, struct pipeline_error *ret_error);
void sound_file_close(struct sound_file *file);
/* What is read from then on is this channel alone, from 1 on. 0, or PIPELINE_E_BAD with *ret_error: the file has not so many. */
int sound_file_choose(struct sound_file *file, unsigned channel, struct pipeline_error *ret_error);
/* Which frame sounds at that time of the container's clock: below 0, or behind the last, where none does. */
int64_t sound_file_at(const struct sound_file *file, const struct sound_head *head,
		      int64_t time_us);
/* frames from start on, which the head says are there, behind `lead` zeros, to one plane of as many numbers for each of so many channels: 0 for
 * one plane, their mean; else as many as the file has, or the one that it has each time. 0, or PIPELINE_E_BAD with
 * *ret_error: also where they are not there. */
int sound_file_read(struct sound_file *file, int64_t start, size_t lead, size_t frames,
		    unsigned channels, float *out, struct pipeline_error *ret_error);
