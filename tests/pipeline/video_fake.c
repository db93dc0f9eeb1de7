/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/pipeline/video_fake.h"

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "pipeline/formats/decode.h"
#include "pipeline/video/video_module.h"

#define FAKE_MOST 4096 /* frames */

unsigned video_fake_decoded, video_fake_open;

struct video_room {
	const uint8_t *data; /* borrowed */
	size_t size;
	uint32_t number[4]; /* of the head */
	int64_t time_us[FAKE_MOST];
	uint8_t *frame; /* owned; exactly one */
};

size_t video_fake_file(uint8_t *to, uint32_t height, uint32_t width, uint32_t frames,
		       uint32_t gap_us, uint64_t seed)
{
	const uint32_t head[4] = {height, width, frames, gap_us};
	const size_t bytes = (size_t)height * width * frames * 3;
	struct philox_seq seq;

	memcpy(to, "FILM", 4);
	memcpy(to + 4, head, sizeof(head));
	philox_seq_init(&seq, seed, 0, 0);
	for (size_t i = 0; i < bytes; i++)
		to[VIDEO_FAKE_HEAD + i] = (uint8_t)philox_u32(&seq);
	return VIDEO_FAKE_HEAD + bytes;
}

static int fake_room_new(struct video_room **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void fake_room_free(struct video_room *room)
{
	free(room->frame);
	free(room);
}

static int fake_open(struct video_room *room, const void *data, size_t size, struct video_head *ret,
		     struct pipeline_error *ret_error)
{
	video_fake_open++;
	if (size < VIDEO_FAKE_HEAD || memcmp(data, "FILM", 4) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "no film");
	room->data = data;
	room->size = size;
	memcpy(room->number, room->data + 4, sizeof(room->number));
	for (uint32_t i = 0; i < BASE_MIN(room->number[2], FAKE_MOST); i++)
		room->time_us[i] = (int64_t)i * room->number[3];
	*ret = (struct video_head){room->number[0], room->number[1],
				   BASE_MIN(room->number[2], FAKE_MOST), room->time_us, 0};
	return 0;
}

static int fake_frame(struct video_room *room, uint32_t number, const uint8_t **ret,
		      struct pipeline_error *ret_error)
{
	const size_t bytes = (size_t)room->number[0] * room->number[1] * 3;

	video_fake_decoded++;
	if (VIDEO_FAKE_HEAD + (number + 1) * bytes > room->size)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "frame %u is not there",
				   number);
	free(room->frame);
	room->frame = malloc(bytes);
	if (!room->frame)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the video");
	memcpy(room->frame, room->data + VIDEO_FAKE_HEAD + number * bytes, bytes);
	*ret = room->frame;
	return 0;
}

/* A key frame is each tenth. */
static uint32_t fake_cost(const struct video_room *room, const uint32_t *number, uint32_t n)
{
	(void)room;
	return number[n - 1] - number[0] / 10 * 10 + 1;
}

static void fake_close(struct video_room *room)
{
	video_fake_open--;
	free(room->frame);
	room->frame = NULL;
	room->data = NULL;
}

static void fake_watch(struct video_room *room, const struct video_watch *watch)
{
	(void)room, (void)watch;
}

static const struct video_module fake = {
    .version = VIDEO_MODULE_VERSION,
    .room_new = fake_room_new,
    .room_free = fake_room_free,
    .open = fake_open,
    .frame = fake_frame,
    .cost = fake_cost,
    .close = fake_close,
    .watch = fake_watch,
};

const char *video_missing(void)
{
	return NULL;
}

const struct video_module *video_load(const char **ret_why)
{
	(void)ret_why;
	return &fake;
}

const struct video_module *video_loaded(void)
{
	return NULL;
}
