/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module: a file, its decoder, and which packets must be decoded for a frame.
 *
 * A frame is decoded from a key frame that is coded and shown before it: what is coded after a key frame and shown before it
 * may be made of pictures from before, so such a frame begins a key frame earlier. Hence its bytes do not depend on how it was
 * come to. Where the decoder still does not give it (a stream that heals itself over several pictures after a key frame, or
 * whose frames behind one refer to others before), more are gone back, each time twice as many, at last to the file's first.
 */

#include "pipeline/video/module/video_rgb.h"
#include "pipeline/video/module/video_sound.h"
#include "pipeline/video/video_module.h"

#define VIDEO_MOST_BACK \
	4 /* key frames at a time: met from 1, 2 and 4 further back, damage is believed */
#define VIDEO_LATE 64 /* packets after its own by which a picture must have come */

struct video_room {
	struct video_file file;
	struct video_codec *codec;
	struct video_rgb rgb;
	struct video_watch watch;
	uint32_t learned;          /* packets that opening decoded, for their order */
	uint32_t height, width;    /* as coded */
	uint32_t next;             /* packet that the decoder gets next */
	uint32_t start;            /* that it got first; NONE: none yet */
	bool is_over;              /* it was told that there are no more */
	bool is_tainted;           /* it met damage: nothing behind is decoded on from here */
	uint32_t late[VIDEO_LATE]; /* packets before next whose pictures have not come */
	unsigned n_late;
	uint32_t made; /* the frame that is in rgb; NONE */
	const uint8_t *pixels;
};

#define VIDEO_NONE UINT32_MAX

static void video_prepare(void)
{
	video_codec_prepare();
	video_file_prepare();
}

static int video_room_new(struct video_room **ret)
{
	struct video_room *room = calloc(1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	*ret = room;
	return 0;
}

static void video_room_close(struct video_room *room)
{
	video_codec_free(room->codec);
	room->codec = NULL;
	video_file_close(&room->file);
	video_rgb_trim(&room->rgb);
}

static void video_room_free(struct video_room *room)
{
	if (!room)
		return;
	video_room_close(room);
	video_file_fini(&room->file);
	video_rgb_fini(&room->rgb);
	free(room);
}

static void video_seek_to(struct video_room *room, uint32_t packet)
{
	if (room->start != VIDEO_NONE)
		video_codec_reset(room->codec);
	room->next = room->start = packet;
	room->is_over = room->is_tainted = false;
	room->n_late = 0;
}

/* The last packet before `before` from which that frame can be decoded; NONE: there is none. */
static uint32_t video_key(const struct video_room *room, uint32_t number, uint32_t before)
{
	const struct video_file *file = &room->file;
	const struct video_packet *wanted = &file->packet[file->shown[number]];

	while (before-- > 0) {
		const struct video_packet *packet = &file->packet[before];

		if (packet->is_key && (!file->is_reordered || packet->time <= wanted->time))
			return before;
	}
	return VIDEO_NONE;
}

/* So many more key frames back from there; the first of all, if they are fewer. NONE: there is none before. */
static uint32_t video_back(const struct video_room *room, uint32_t number, uint32_t from,
			   uint32_t back)
{
	uint32_t key = VIDEO_NONE, next = video_key(room, number, from);

	for (; next != VIDEO_NONE && back > 0; back--) {
		key = next;
		next = video_key(room, number, key);
	}
	return key;
}

static bool video_is_late(const struct video_room *room, uint32_t packet)
{
	for (unsigned i = 0; i < room->n_late; i++)
		if (room->late[i] == packet)
			return true;
	return false;
}

static void video_came(struct video_room *room, uint32_t packet)
{
	for (unsigned i = 0; i < room->n_late; i++)
		if (room->late[i] == packet)
			room->late[i] = room->late[--room->n_late];
}

static bool video_can_go_on(const struct video_room *room, uint32_t wanted)
{
	if (room->start == VIDEO_NONE || room->is_tainted || wanted < room->start)
		return false;
	return wanted >= room->next ? !room->is_over : video_is_late(room, wanted);
}

static int video_bad(const struct video_room *room, uint32_t number,
		     struct pipeline_error *ret_error)
{
	const char *words = video_codec_words(room->codec);

	return video_fail(ret_error, PIPELINE_FAIL_DECODE, "frame %u: %s", number,
			  *words ? words : "damaged: encode it anew");
}

/* That packet, or its picture, is damaged. 0: so what; else an error. A frame's fate is its own and that of what is decoded before
 * it: however it is come to, it is the same. What is shown before the first key frame need not be right. */
static int video_meet_damage(struct video_room *room, uint32_t packet, uint32_t number,
			     struct pipeline_error *ret_error)
{
	const struct video_file *file = &room->file;
	const struct video_packet *at;

	if (packet >= file->packets)
		return video_bad(room, number, ret_error);
	at = &file->packet[packet];
	if (packet < room->start ||
	    (file->is_reordered && at->time < file->packet[room->start].time))
		return 0;
	room->is_tainted = true;
	if (packet > file->shown[number])
		return 0;
	return video_bad(room, at->shown == VIDEO_NOT_SHOWN ? number : at->shown, ret_error);
}

/* The next packet to the decoder. */
static int video_put_next(struct video_room *room, uint32_t number,
			  struct pipeline_error *ret_error)
{
	const struct video_file *file = &room->file;
	const uint32_t wanted = file->shown[number], packet = room->next;
	const struct video_packet *at = &file->packet[packet];
	bool is_passed;
	int rc;

	if (packet == file->packets) {
		room->is_over = true;
		return video_codec_put(room->codec, VIDEO_NONE, false) == -ENOMEM ? -ENOMEM : 0;
	}
	is_passed = file->can_pass && packet < wanted &&
		    (at->shown == VIDEO_NOT_SHOWN || at->shown < number);
	room->next++;
	if (room->n_late == VIDEO_LATE)
		memmove(room->late, room->late + 1, --room->n_late * sizeof(*room->late));
	if (!is_passed)
		room->late[room->n_late++] = packet;
	rc = video_codec_put(room->codec, packet, is_passed);
	if (rc == PIPELINE_E_BAD)
		rc = video_meet_damage(room, packet, number, ret_error);
	return rc;
}

#define VIDEO_ROOM_E_NOT_COME 13 /* beside those of video_codec.h */

/* Decodes on until that frame's picture comes. */
static int video_go_on(struct video_room *room, uint32_t number, struct video_picture *ret,
		       struct pipeline_error *ret_error)
{
	const uint32_t wanted = room->file.shown[number];
	unsigned errors = 0; /* while nothing goes in: no decoder should have many */
	int rc = 0;

	while (rc == 0) {
		rc = room->start == room->next ? VIDEO_CODEC_E_MORE
					       : video_codec_take(room->codec, ret);
		if (rc == 0) {
			video_came(room, ret->packet);
			if (ret->is_damaged)
				rc = video_meet_damage(room, ret->packet, number, ret_error);
			if (ret->packet == wanted)
				break;
		} else if (rc == VIDEO_CODEC_E_END ||
			   (rc == VIDEO_CODEC_E_MORE && room->next > wanted &&
			    room->next - wanted > VIDEO_LATE)) {
			rc = VIDEO_ROOM_E_NOT_COME;
		} else if (rc == VIDEO_CODEC_E_MORE) {
			rc = video_put_next(room, number, ret_error);
			errors = 0;
		} else if (rc == PIPELINE_E_BAD) {
			rc = ++errors < VIDEO_LATE
				 ? video_meet_damage(room, room->next - 1, number, ret_error)
				 : VIDEO_ROOM_E_NOT_COME;
		}
	}
	return rc;
}

static int video_decode(struct video_room *room, uint32_t number, struct video_picture *ret,
			struct pipeline_error *ret_error)
{
	const uint32_t wanted = room->file.shown[number];
	uint32_t key = video_key(room, number, wanted + 1);
	struct pipeline_error error;
	uint32_t back = 0;
	bool is_damage;
	int rc;

	if (key == VIDEO_NONE)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE,
				  "frame %u: no key frame: encode it anew", number);
	if (!video_can_go_on(room, wanted) || (key > room->start && key >= room->next))
		video_seek_to(room, key);
	for (;;) {
		const uint32_t start = room->start;

		rc = video_go_on(room, number, ret, &error);
		if (rc == 0 || rc == -ENOMEM)
			break;
		is_damage = rc == PIPELINE_E_BAD;
		if (!is_damage)
			video_bad(room, number, &error);
		if (back == 0)
			*ret_error = error;
		back = back ? 2 * back : 1;
		key = is_damage && back > VIDEO_MOST_BACK ? VIDEO_NONE
							  : video_back(room, number, start, back);
		rc = PIPELINE_E_BAD;
		if (key == VIDEO_NONE)
			break;
		video_seek_to(room, key);
	}
	if (rc != 0) {
		video_seek_to(room, room->start); /* it is in no state to go on from */
		room->start = VIDEO_NONE;
	}
	return rc;
}

/* By its pictures' numbers. */
static int video_read_order(struct video_room *room)
{
	struct video_file *file = &room->file;
	_cleanup_free_ uint32_t *order = calloc(file->packets, sizeof(*order));
	_cleanup_free_ int64_t *time = calloc(file->packets, sizeof(*time));
	int rc = order && time ? video_codec_times(room->codec, time) : -ENOMEM;
	uint32_t first = 0, n = 0;

	if (rc != 0)
		return rc;
	while (!file->packet[first].is_key)
		first++;
	for (uint32_t i = first; i < file->packets; i++) {
		file->packet[i].time = time[i];
		if (time[i] >= time[first])
			order[n++] = i;
	}
	video_file_sort(file, order, n);
	video_file_order(file, order, n);
	return 0;
}

static void video_tell(struct video_room *room)
{
	const struct video_file *file = &room->file;
	uint32_t height, width;

	room->learned = file->packets;
	video_file_size(file, &height, &width);
	if (room->watch.fn)
		room->watch.fn(room->watch.arg,
			       (uint32_t)BASE_MIN((uint64_t)height * file->packets, UINT32_MAX),
			       width);
}

/* Decodes all of it, for the order in which pictures come. */
static int video_learn_order(struct video_room *room, struct pipeline_error *ret_error)
{
	struct video_file *file = &room->file;
	_cleanup_free_ uint32_t *order = calloc(file->packets, sizeof(*order));
	struct video_picture picture;
	uint32_t n = 0, next = 0;
	int rc = order ? VIDEO_CODEC_E_MORE : -ENOMEM;

	while (!file->packet[next].is_key)
		next++;
	video_tell(room);
	for (; rc != VIDEO_CODEC_E_END; rc = video_codec_take(room->codec, &picture)) {
		if (rc == VIDEO_CODEC_E_MORE)
			rc = video_codec_put(room->codec,
					     next < file->packets ? next++ : VIDEO_NONE, false);
		else if (rc == 0 && n < file->packets && picture.packet < file->packets)
			order[n++] = picture.packet;
		if (rc == PIPELINE_E_BAD)
			return video_bad(room, n, ret_error);
		if (rc < 0)
			return rc;
	}
	video_file_order(file, order, n);
	video_codec_reset(room->codec);
	return file->frames > 0 ? 0 : video_bad(room, n, ret_error);
}

static int video_check(const struct video_picture *picture, struct pipeline_error *ret_error)
{
	if (picture->height == 0 || picture->width == 0 || picture->height > VIDEO_MOST_SIDE ||
	    picture->width > VIDEO_MOST_SIDE ||
	    (uint64_t)picture->height * picture->width > VIDEO_MOST_PIXELS)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED, "%u x %u pixels are too many",
				  picture->width, picture->height);
	return 0;
}

/* A file may ask for any memory. */
static int video_end(int rc, struct pipeline_error *ret_error)
{
	return rc == -ENOMEM
		   ? video_fail(ret_error, PIPELINE_FAIL_MEMORY, "no memory for the video")
		   : rc;
}

static int video_begin(struct video_room *room, const void *data, size_t size,
		       struct video_head *ret, struct pipeline_error *ret_error)
{
	struct video_file *file = &room->file;
	struct video_picture picture;
	bool is_turned;
	int rc;

	video_room_close(room);
	room->start = room->made = VIDEO_NONE;
	room->learned = 0;
	rc = video_file_open(file, data, size, ret_error);
	if (rc == 0)
		rc = video_codec_new(file, &room->codec, ret_error);
	if (rc == 0 && file->is_order_open) {
		rc = video_read_order(room);
		if (rc == PIPELINE_E_BAD)
			rc = video_learn_order(room, ret_error);
	}
	/* Its size is what the decoder says, not what the container does. */
	if (rc == 0)
		rc = video_decode(room, 0, &picture, ret_error);
	if (rc == 0)
		rc = video_check(&picture, ret_error);
	if (rc != 0)
		return rc;
	room->height = picture.height;
	room->width = picture.width;
	rc = video_rgb_make(&room->rgb, &picture, file->quarters, &room->pixels, ret_error);
	if (rc != 0)
		return rc;
	room->made = 0;
	is_turned = file->quarters & 1;
	*ret = (struct video_head){
	    .height = is_turned ? room->width : room->height,
	    .width = is_turned ? room->height : room->width,
	    .frames = file->frames,
	    .time_us = file->time_us,
	    .start_us = file->start_us,
	};
	return 0;
}

static int video_room_open(struct video_room *room, const void *data, size_t size,
			   struct video_head *ret, struct pipeline_error *ret_error)
{
	return video_end(video_begin(room, data, size, ret, ret_error), ret_error);
}

static int video_room_frame(struct video_room *room, uint32_t number, const uint8_t **ret,
			    struct pipeline_error *ret_error)
{
	struct video_picture picture;
	int rc = 0;

	if (number >= room->file.frames)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE, "it has no frame %u", number);
	if (number != room->made) {
		room->made = VIDEO_NONE;
		rc = video_decode(room, number, &picture, ret_error);
		if (rc == 0 && (picture.height != room->height || picture.width != room->width))
			rc = video_fail(ret_error, PIPELINE_FAIL_REFUSED,
					"its size changes at frame %u: encode it anew", number);
		if (rc == 0)
			rc = video_rgb_make(&room->rgb, &picture, room->file.quarters,
					    &room->pixels, ret_error);
		if (rc == 0)
			room->made = number;
	}
	if (rc == 0)
		*ret = room->pixels;
	return video_end(rc, ret_error);
}

static uint32_t video_room_cost(const struct video_room *room, const uint32_t *number, uint32_t n)
{
	uint32_t next = room->next, cost = room->learned;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t wanted = room->file.shown[number[i]];
		const uint32_t key = video_key(room, number[i], wanted + 1);

		if (key != VIDEO_NONE && (key > next || (i == 0 && !video_can_go_on(room, wanted))))
			next = key;
		cost += wanted >= next ? wanted + 1 - next : 0;
		next = BASE_MAX(next, wanted + 1);
	}
	return cost;
}

static void video_room_watch(struct video_room *room, const struct video_watch *watch)
{
	room->watch = *watch;
}

__attribute__((visibility("default"))) extern const struct video_module access_video_module;
const struct video_module access_video_module = {
    .version = VIDEO_MODULE_VERSION,
    .prepare = video_prepare,
    .room_new = video_room_new,
    .room_free = video_room_free,
    .open = video_room_open,
    .frame = video_room_frame,
    .cost = video_room_cost,
    .close = video_room_close,
    .watch = video_room_watch,
    .sound_open = video_sound_open,
    .sound_close = video_sound_close,
    .sound_at = video_sound_at,
    .sound_seek = video_sound_seek,
    .sound_read = video_sound_read,
};
