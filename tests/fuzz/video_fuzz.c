/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes that claim to be a video, in memory that ends where they do. The first byte of the input says which frames are asked
 * for. Times ascend from 0, and what is asked for again at once is the same; so is sound.
 */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "pipeline/video/video_module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_PIXELS (1 << 20) /* of a frame: more takes long, and nothing new comes of it */
#define FUZZ_FRAMES 8
#define FUZZ_SOUND 4096

static uint32_t fuzz_sum(const struct video_head *head, const uint8_t *pixels)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < (size_t)head->height * head->width * 3; i++)
		sum = sum * 31 + pixels[i];
	return sum;
}

static void fuzz_frames(const struct video_module *module, struct video_room *room,
			const struct video_head *head, unsigned how)
{
	struct pipeline_error error;
	const uint8_t *pixels;

	if (head->frames == 0 || head->time_us[0] != 0)
		abort();
	for (uint32_t n = 1; n < head->frames; n++)
		if (head->time_us[n] < head->time_us[n - 1])
			abort();
	if ((uint64_t)head->height * head->width > FUZZ_PIXELS)
		return;
	for (unsigned i = 0; i < FUZZ_FRAMES; i++) {
		const uint32_t number =
		    (how & 1 ? FUZZ_FRAMES - i : i) * (1 + (how >> 1 & 3)) % head->frames;
		uint32_t sum;

		if (module->cost(room, &number, 1) > 2 * VIDEO_MOST_HAS)
			abort();
		if (module->frame(room, number, &pixels, &error) != 0)
			continue;
		sum = fuzz_sum(head, pixels);
		if (module->frame(room, number, &pixels, &error) != 0 ||
		    fuzz_sum(head, pixels) != sum)
			abort();
	}
}

static void fuzz_sound(const struct video_module *module, const uint8_t *data, size_t size)
{
	float one[FUZZ_SOUND], other[FUZZ_SOUND];
	struct pipeline_error error = {.text = ""};
	struct video_sound *sound;
	struct sound_head head;

	if (module->sound_open(data, size, &sound, &head, &error) != 0) {
		if (!error.text[0])
			abort();
		return;
	}
	if (head.frames < 0)
		abort();
	for (int64_t i = 0; i < 3 && head.channels > 0 && head.channels <= FUZZ_SOUND; i++) {
		const size_t frames = FUZZ_SOUND / head.channels;

		module->sound_seek(sound, head.frames * i / 2);
		if (module->sound_read(sound, one, frames, &error) != 0)
			continue;
		module->sound_seek(sound, head.frames * i / 2);
		if (module->sound_read(sound, other, frames, &error) != 0 ||
		    memcmp(one, other, frames * head.channels * sizeof(*one)) != 0)
			abort();
	}
	module->sound_close(sound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct video_module *module;
	static struct video_room *room;
	struct pipeline_error error;
	struct video_head head;
	const char *why;
	uint8_t *copy;

	if (size < 1 || size > 1 << 16 || (!module && video_missing()))
		return 0;
	if (!module) {
		module = video_load(&why);
		if (!module || module->room_new(&room) != 0)
			abort();
	}
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (module->open(room, copy, size - 1, &head, &error) == 0)
		fuzz_frames(module, room, &head, data[0]);
	else if (!error.text[0])
		abort();
	module->close(room);
	fuzz_sound(module, copy, size - 1);
	free(copy);
	return 0;
}
