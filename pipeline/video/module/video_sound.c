/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sound of a file: all that its packets give, one after another, as the program ffmpeg writes it. What stands before the first
 * sample that is to be heard (a coder's delay, what an edit list leaves out) and behind the last one is not there: the container
 * says so with the packets, and the decoder leaves it out.
 *
 * Where a packet's samples are is counted from the packets' heads, not decoded, but for those up to the first that gives some:
 * what a decoder leaves out on its own is seen there. So a part is found without what is before it.
 * A part is decoded from some packets before it, for codings remember what they heard, by a decoder of its own, for these remember
 * more than they say; so its samples do not depend on what was read before. They are those of a decoding from the beginning, but
 * where a coding makes noise (AAC's PNS and SBR, AC-3), or for the last bits of Opus.
 */

#include "pipeline/video/module/video_sound.h"

#include <math.h>

#include "pipeline/video/module/video_codec.h"

#define SOUND_BEFORE 32 /* packets: MP3 takes bits from as far back; all others remember less */

#define SOUND_ROUNDED_US 30000 /* that times are wrong by, as they are written */

struct video_sound {
	struct video_file file;
	struct video_codec *codec; /* owned; NULL: one is made for what is read next */
	int64_t *begin;            /* owned; of each packet's samples, and the end of all */
	uint32_t rate, channels;
	int64_t first_us; /* when the first sample sounds, by the container's clock */
	uint32_t next;    /* packet that the decoder gets next */
	uint32_t
	    needed; /* the first whose samples are asked for: what is wrong before it does not matter */
	int64_t at;                /* of what is read next */
	int64_t some_at;           /* of some.frame[0] */
	uint32_t of;               /* the packet that some is of */
	bool is_over;              /* nothing comes any more */
	struct video_samples some; /* n is 0: none */
};

static int sound_bad(const struct video_sound *sound, struct pipeline_error *ret_error)
{
	const char *words = video_codec_words(sound->codec);

	return video_fail(ret_error, PIPELINE_FAIL_DECODE, "sound: %.40s",
			  *words ? words : "damaged: encode it anew");
}

/* Hands the decoder packets until samples come. 0, VIDEO_CODEC_E_END, PIPELINE_E_BAD or -ENOMEM. */
static int sound_next(struct video_sound *sound)
{
	int rc;

	for (;;) {
		const uint32_t put = sound->next;

		rc = video_codec_take_sound(sound->codec, &sound->some);
		if (rc == VIDEO_CODEC_E_MORE) {
			rc = video_codec_put(sound->codec,
					     put < sound->file.packets ? put : UINT32_MAX, false);
			sound->next = put < sound->file.packets ? put + 1 : put;
		} else if (rc == 0 && sound->some.n > 0) {
			return 0;
		}
		if (rc == PIPELINE_E_BAD && sound->next <= sound->needed)
			rc = 0;
		if (rc != 0)
			return rc;
	}
}

/* Where the packets' samples begin. n: what the first that gives some gave. */
static int sound_place(struct video_sound *sound, uint32_t first, uint32_t n)
{
	const struct video_packet *packet = &sound->file.packet[first];
	const struct video_samples seen = {
	    .packet = first,
	    .n = n + packet->cut[0],
	    .rate = sound->rate,
	};
	_cleanup_free_ uint32_t *count = calloc(sound->file.packets, sizeof(*count));
	uint32_t whole = n;
	int64_t at = 0;
	int rc = count ? video_codec_count(sound->codec, &seen, count, &whole) : -ENOMEM;

	if (rc != 0)
		return rc;
	sound->begin = calloc(sound->file.packets + (size_t)1, sizeof(*sound->begin));
	if (!sound->begin)
		return -ENOMEM;
	for (uint32_t i = 0; i < sound->file.packets; i++) {
		sound->begin[i] = at;
		at += i < first ? 0 : i == first ? n : count[i];
	}
	sound->begin[sound->file.packets] = at;
	sound->first_us = packet->time == INT64_MIN ? 0 : packet->time;
	if (whole > n) /* what is not heard of it is its beginning */
		sound->first_us += (int64_t)(whole - n) * 1000000 / sound->rate;
	return 0;
}

/* The first samples, which say what the sound is. */
static int sound_start(struct video_sound *sound, struct pipeline_error *ret_error)
{
	uint32_t first, n;
	int rc = sound_next(sound);

	if (rc == VIDEO_CODEC_E_END)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE, "a sound without samples");
	if (rc != 0)
		return rc == PIPELINE_E_BAD ? sound_bad(sound, ret_error) : rc;
	first = BASE_MIN(sound->some.packet, sound->next - 1);
	sound->rate = sound->some.rate;
	sound->channels = sound->some.channels;
	n = sound->some.n;
	if (sound->rate == 0)
		return video_fail(ret_error, PIPELINE_FAIL_DECODE, "a sound without a rate");
	while ((rc = video_codec_take_sound(sound->codec, &sound->some)) == 0)
		n += sound->some.n;
	rc = sound_place(sound, first, n);
	if (rc == 0)
		video_sound_seek(sound, 0);
	return rc;
}

static int sound_begin(struct video_sound *sound, const void *data, size_t size,
		       struct pipeline_error *ret_error)
{
	int rc = video_file_open_sound(&sound->file, data, size, ret_error);

	if (rc != 0 || !sound->file.parameters)
		return rc;
	rc = sound->file.packets ? video_codec_new(&sound->file, &sound->codec, ret_error) : 0;
	return rc || !sound->codec ? rc : sound_start(sound, ret_error);
}

/* A file may ask for any memory. */
static int sound_end(int rc, struct pipeline_error *ret_error)
{
	return rc == -ENOMEM
		   ? video_fail(ret_error, PIPELINE_FAIL_MEMORY, "no memory for the sound")
		   : rc;
}

int video_sound_open(const void *data, size_t size, struct video_sound **ret,
		     struct sound_head *ret_head, struct pipeline_error *ret_error)
{
	struct video_sound *sound = calloc(1, sizeof(*sound));
	int rc = sound ? sound_begin(sound, data, size, ret_error) : -ENOMEM;

	if (rc != 0) {
		video_sound_close(sound);
		return sound_end(rc, ret_error);
	}
	*ret = sound;
	*ret_head = (struct sound_head){
	    .frames = sound->begin ? sound->begin[sound->file.packets] : 0,
	    .rate = sound->rate,
	    .channels = sound->channels,
	};
	return 0;
}

void video_sound_close(struct video_sound *sound)
{
	if (!sound)
		return;
	video_codec_free(sound->codec);
	video_file_fini(&sound->file);
	free(sound->begin);
	free(sound);
}

/* ---- reading ---- */

/* The last packet that begins there or before. */
static uint32_t sound_packet(const struct video_sound *sound, int64_t frame)
{
	uint32_t low = 0, high = sound->file.packets;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (sound->begin[middle] <= frame)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Frames of so long a time. */
static int64_t sound_frames(const struct video_sound *sound, int64_t us)
{
	return (int64_t)llrint((double)us * sound->rate / 1e6);
}

/* By counting from the first; where the container's times say otherwise, as behind a gap in a recording, from the last packet
 * before. Rounded times do not count as such. */
int64_t video_sound_at(const struct video_sound *sound, int64_t time_us)
{
	const int64_t counted = sound_frames(sound, time_us - sound->first_us);
	int64_t near = counted;

	for (uint32_t i = 0; i < sound->file.packets; i++) {
		const int64_t from = sound->file.packet[i].time;

		if (from == INT64_MIN || from < sound->first_us || from > time_us)
			continue;
		near = BASE_MIN(sound->begin[i] + sound_frames(sound, time_us - from),
				sound->begin[i + 1]);
	}
	return llabs(near - counted) > sound_frames(sound, SOUND_ROUNDED_US) ? near : counted;
}

void video_sound_seek(struct video_sound *sound, int64_t frame)
{
	const uint32_t packet = sound_packet(sound, frame);

	video_codec_free(sound->codec);
	sound->codec = NULL;
	sound->at = frame;
	sound->next = packet > SOUND_BEFORE ? packet - SOUND_BEFORE : 0;
	sound->needed = sound->next ? packet : 0;
	sound->is_over = false;
	sound->some.n = 0;
	sound->of = UINT32_MAX;
}

/* The next samples, and where they are. A packet that gives more than it should, as without what a decoder left out when it
 * began, gives its last ones. */
static int sound_fetch(struct video_sound *sound, struct pipeline_error *ret_error)
{
	const int64_t end = sound->some_at + sound->some.n;
	uint32_t packet;
	int rc = sound->codec ? 0 : video_codec_new(&sound->file, &sound->codec, ret_error);

	if (rc != 0)
		return rc;
	rc = sound_next(sound);

	if (rc == VIDEO_CODEC_E_END) {
		sound->is_over = true;
		sound->some.n = 0;
		return 0;
	}
	if (rc != 0)
		return rc == PIPELINE_E_BAD ? sound_bad(sound, ret_error) : rc;
	if (sound->some.rate != sound->rate || sound->some.channels != sound->channels)
		return video_fail(ret_error, PIPELINE_FAIL_REFUSED,
				  "the sound's rate or channels change midway");
	packet = sound->some.packet;
	if (packet == UINT32_MAX || packet == sound->of) {
		sound->some_at = end;
		return 0;
	}
	sound->of = packet;
	sound->some_at =
	    BASE_MIN(sound->begin[packet], sound->begin[packet + 1] - (int64_t)sound->some.n);
	return 0;
}

/* Of what is there, at most so many frames to out, with zeros where nothing is. How many; 0: the next must be fetched. */
static size_t sound_copy(struct video_sound *sound, float *out, size_t frames)
{
	const size_t each = sound->channels * sizeof(*out);
	const int64_t end = sound->some_at + sound->some.n;
	size_t n;

	if (sound->is_over || (sound->some.n > 0 && sound->at < sound->some_at)) {
		n = sound->is_over ? frames
				   : BASE_MIN(frames, (size_t)(sound->some_at - sound->at));
		memset(out, 0, n * each);
	} else if (sound->some.n > 0 && sound->at < end) {
		n = BASE_MIN(frames, (size_t)(end - sound->at));
		memcpy(out, sound->some.frame + (sound->at - sound->some_at) * sound->channels,
		       n * each);
	} else {
		return 0;
	}
	sound->at += (int64_t)n;
	return n;
}

int video_sound_read(struct video_sound *sound, float *out, size_t frames,
		     struct pipeline_error *ret_error)
{
	while (frames > 0) {
		const size_t n = sound_copy(sound, out, frames);
		const int rc = n ? 0 : sound_fetch(sound, ret_error);

		if (rc != 0)
			return sound_end(rc, ret_error);
		out += n * sound->channels;
		frames -= n;
	}
	return 0;
}
