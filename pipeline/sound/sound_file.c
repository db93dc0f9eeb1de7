/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of sounds: by what they begin with one of the readers is chosen, whatever they are named.
 *
 * Hostile files: what a head claims (frames, rate, channels) is checked before anything is made of it, and what is
 * read at a time is bounded, so a file that unpacks to hours costs no more than the part that is asked for.
 */

#include "pipeline/sound/sound_file.h"

#include <math.h>

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound.h"
#include "pipeline/sound/sound_reader.h"

#define FILE_CHANNELS 64   /* the most that a file may have */
#define FILE_AT_ONCE 16384 /* numbers that are read at a time */

/* In the order in which they are asked. */
static const struct sound_reader *const file_readers[] = {
    &sound_mp3_reader,
    &sound_video_reader,
    &sound_snd_reader,
};

struct sound_file {
	const struct sound_reader *reader;
	void *sound;             /* owned; the reader's */
	unsigned channels, only; /* only: of these, the one that is read, from 1 on; 0: all */
	float some[FILE_AT_ONCE];
};

/* ---- opening ---- */

static int file_check(const struct sound_head *head, struct pipeline_error *ret_error)
{
	if (head->channels < 1 || head->channels > FILE_CHANNELS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%u channels, at most %d",
				   head->channels, FILE_CHANNELS);
	if (head->rate < SOUND_LEAST_RATE || head->rate > SOUND_MOST_RATE)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%u Hz, not %d to %d",
				   head->rate, SOUND_LEAST_RATE, SOUND_MOST_RATE);
	if (head->frames == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "the sound is empty");
	if (head->frames < 0)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "the file does not say how long it is");
	return 0;
}

int sound_file_open(const void *data, size_t size, struct sound_file **ret,
		    struct sound_head *ret_head, struct pipeline_error *ret_error)
{
	const struct sound_reader *reader = NULL;
	struct sound_file *file;
	size_t start = 0;
	int r;

	for (unsigned i = 0; !reader && i < BASE_ARRAY_LEN(file_readers); i++)
		if (file_readers[i]->begins(data, size, &start))
			reader = file_readers[i];
	if (!reader)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "no sound: no WAV, FLAC or Ogg, nor MP3 or video");
	file = malloc(sizeof(*file));
	if (!file)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the sound");
	file->reader = reader;
	file->sound = NULL;
	r = reader->open((const uint8_t *)data + start, size - start, &file->sound, ret_head,
			 ret_error);
	r = r ? r : file_check(ret_head, ret_error);
	if (r != 0) {
		sound_file_close(file);
		return r;
	}
	file->channels = ret_head->channels;
	file->only = 0;
	*ret = file;
	return 0;
}

void sound_file_close(struct sound_file *file)
{
	if (!file)
		return;
	if (file->sound)
		file->reader->close(file->sound);
	free(file);
}

/* ---- reading ---- */

static float file_mean(const float *frame, unsigned channels)
{
	float sum = frame[0];

	for (unsigned c = 1; c < channels; c++)
		sum += frame[c];
	return sum / (float)channels;
}

int sound_file_choose(struct sound_file *file, unsigned channel, struct pipeline_error *ret_error)
{
	if (channel > file->channels)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "channel %u of %u",
				   channel - 1, file->channels);
	file->only = channel;
	return 0;
}

/* n frames of file->some to the place `at` of planes with `room` numbers each. */
static void file_put(const struct sound_file *file, size_t n, unsigned channels, size_t room,
		     size_t at, float *out)
{
	const unsigned has = file->only ? 1 : file->channels,
		       first = file->only ? file->only - 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const float *frame = &file->some[i * file->channels + first];

		if (channels == 0)
			out[at + i] = file_mean(frame, has);
		for (unsigned c = 0; c < channels; c++)
			out[c * room + at + i] = frame[has == 1 ? 0 : c];
	}
}

size_t sound_ends(int code, struct pipeline_error *ret_error)
{
	decode_fail(ret_error, PIPELINE_FAIL_DECODE, code, "the file ends before the sound does");
	return 0;
}

int64_t sound_file_at(const struct sound_file *file, const struct sound_head *head, int64_t time_us)
{
	return file->reader->at ? file->reader->at(file->sound, time_us)
				: llrint((double)time_us * head->rate / 1e6);
}

int sound_file_read(struct sound_file *file, int64_t start, size_t lead, size_t frames,
		    unsigned channels, float *out, struct pipeline_error *ret_error)
{
	const size_t at_once = FILE_AT_ONCE / file->channels;
	size_t done = 0;

	if (channels > 1 && !file->only && file->channels != 1 && file->channels != channels)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%u channels, not %u",
				   file->channels, channels);
	if (start > 0 && !file->reader->seek(file->sound, start)) {
		sound_ends(0, ret_error);
		return PIPELINE_E_BAD;
	}
	for (unsigned c = 0; c < BASE_MAX(channels, 1u); c++)
		memset(out + c * (lead + frames), 0, lead * sizeof(*out));
	while (done < frames) {
		const size_t n = file->reader->read(file->sound, file->some,
						    BASE_MIN(frames - done, at_once), ret_error);

		if (n == 0)
			return PIPELINE_E_BAD;
		file_put(file, n, channels, lead + frames, lead + done, out);
		done += n;
	}
	return 0;
}
