/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's bytes to the frames that a pipeline asks for: a part of the file that is as long as that at the file's rate, its
 * channels mixed, then resampled, with zeros behind. Only that part is decoded, so an hour's recording costs what a
 * second's does, and a little for finding the place.
 *
 * The part is what is resampled, and nothing around it: the same as torchaudio.load(frame_offset=..., num_frames=...) and
 * a resampler behind it. A speed is part of the ratio of both rates, so there is one resampling, and the place of the part
 * is drawn of what the sound then is.
 */

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound.h"
#include "pipeline/sound/sound_file.h"
#include "pipeline/sound/sound_rate.h"

#define SOUND_KEPT (4u << 20) /* numbers whose room stays from sound to sound */

struct sound_room {
	float *part; /* owned; planes of what was read */
	size_t size; /* numbers that it has room for */
};

const char *sound_missing(void)
{
	return NULL;
}

int sound_room_new(struct sound_room **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void sound_room_free(struct sound_room *room)
{
	if (!room)
		return;
	free(room->part);
	free(room);
}

static int sound_no_memory(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the sound");
}

static int sound_room_make(struct sound_room *room, size_t n, struct pipeline_error *ret_error)
{
	if (n <= room->size && (room->size <= SOUND_KEPT || n > SOUND_KEPT))
		return 0;
	free(room->part);
	room->part = calloc(n, sizeof(*room->part));
	room->size = room->part ? n : 0;
	return room->part ? 0 : sound_no_memory(ret_error);
}

/* n frames of a plane to one of sound->frames at its rate, with zeros behind *ret_n of them. */
static int sound_put(const struct sound *sound, struct sound_ratio ratio, const float *part,
		     size_t n, float *out, size_t *ret_n)
{
	size_t done = BASE_MIN(n, sound->frames);
	int r = 0;

	if (ratio.from == ratio.to)
		memcpy(out, part, done * sizeof(*out));
	else
		r = sound_rate_change((double)ratio.from, (double)ratio.to, part, n, out,
				      sound->frames, &done);
	if (r == 0) {
		memset(out + done, 0, (sound->frames - done) * sizeof(*out));
		*ret_n = done;
	}
	return r;
}

static int sound_silence(const struct sound *sound, float *out, int64_t *ret_length)
{
	memset(out, 0, (size_t)BASE_MAX(sound->channels, 1u) * sound->frames * sizeof(*out));
	*ret_length = 0;
	return 0;
}

/* Frames of the file: where the sound begins, perhaps before or behind all of them, and where what is taken of it ends. */
static int sound_find(const struct sound *sound, const struct sound_file *file,
		      const struct sound_head *head, struct philox_seq *seq,
		      const struct sound_place *place, int64_t wanted, int64_t *ret_start,
		      int64_t *ret_end, struct pipeline_error *ret_error)
{
	int64_t first, has;
	int r;

	if (place->time_us) {
		first = BASE_MAX(sound_file_at(file, head, *place->time_us), -wanted);
		*ret_start = BASE_MIN(first, head->frames);
		*ret_end = sound_end(head, &place->part, *ret_start);
		return 0;
	}
	r = sound_part(head, &place->part, &first, &has, ret_error);
	if (r != 0)
		return r;
	*ret_start = first + sound_start(sound->crop, has, wanted, seq);
	*ret_end = first + has;
	return 0;
}

/* All of it, of an open file. */
static int sound_take(const struct sound *sound, struct sound_room *room,
		      const struct sound_watch *watch, struct sound_file *file,
		      const struct sound_head *head, struct philox_seq *seq,
		      const struct sound_place *place, float *out, int64_t *ret_length,
		      struct pipeline_error *ret_error)
{
	const unsigned planes = BASE_MAX(sound->channels, 1u);
	const struct sound_ratio ratio = sound_ratio(sound, head->rate, seq);
	/* as long as what comes out, rounded up: at most 2^24 * 7680 */
	const int64_t wanted =
	    (int64_t)(((unsigned __int128)sound->frames * ratio.from + ratio.to - 1) / ratio.to);
	int64_t start, end, from, lead, has;
	size_t frames, done = 0;
	int r = sound_find(sound, file, head, seq, place, wanted, &start, &end, ret_error);

	r = r ? r : sound_file_choose(file, place->part.channel, ret_error);
	if (r != 0)
		return r;
	from = BASE_MAX(start, 0);
	lead = from - start;
	has = BASE_MIN(wanted - lead, BASE_MAX(end - from, 0));
	frames = (size_t)(lead + has);
	if (has == 0)
		return sound_silence(sound, out, ret_length);

	if (frames > SOUND_MOST_READ / BASE_MAX(planes, head->channels))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%zu frames of %u channels are too many", frames,
				   BASE_MAX(planes, head->channels));
	if (watch->fn)
		watch->fn(watch->arg, BASE_MAX((uint32_t)frames, sound->frames),
			  BASE_MAX(planes, head->channels));
	r = sound_room_make(room, frames * planes, ret_error);
	r = r ? r
	      : sound_file_read(file, from, (size_t)lead, (size_t)has,
				sound->channels == 1 ? 0 : sound->channels, room->part, ret_error);
	if (r != 0)
		return r;
	for (unsigned c = 0; c < planes; c++)
		if (sound_put(sound, ratio, room->part + c * frames, frames,
			      out + (size_t)c * sound->frames, &done) != 0)
			return sound_no_memory(ret_error);
	*ret_length = (int64_t)done;
	return 0;
}

int sound_run(const struct sound *sound, struct sound_room *room, const struct sound_watch *watch,
	      const void *data, size_t size, const struct pipeline_key *key,
	      const struct sound_place *place, float *out, int64_t *ret_length,
	      struct pipeline_error *ret_error)
{
	struct sound_file *file = NULL;
	struct sound_head head;
	struct philox_seq seq;
	struct draw draw;
	int r = sound_file_open(data, size, &file, &head, ret_error);

	if (r == SOUND_E_NONE)
		return place->time_us ? sound_silence(sound, out, ret_length) : PIPELINE_E_BAD;
	if (r != 0)
		return r;
	draw_init(&draw, key);
	draw_seq(&draw, 0, &seq);
	r = sound_take(sound, room, watch, file, &head, &seq, place, out, ret_length, ret_error);
	sound_file_close(file);
	return r;
}

int sound_measure(const void *data, size_t size, const struct pipeline_part *part,
		  struct sound_head *ret, struct pipeline_error *ret_error)
{
	struct sound_file *file = NULL;
	struct sound_head head;
	int64_t first, has;
	int r = sound_file_open(data, size, &file, &head, ret_error);

	if (r != 0)
		return PIPELINE_E_BAD;
	sound_file_close(file);
	r = sound_part(&head, part, &first, &has, ret_error);
	if (r == 0)
		*ret = (struct sound_head){has, head.rate, head.channels};
	return r;
}
