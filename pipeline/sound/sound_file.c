/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sounds by libsndfile, from memory by its virtual I/O; MP3 by libmpg123 (sound_mp3.c).
 *
 * libsndfile opens two dozen formats; only bytes that begin as one of those that sound data sets come in are let
 * through to it, all of which it knows by that: where it knows nothing it opens files beside, which a sandboxed
 * worker dies of. It would die of MP3 in it, too: called by libsndfile, libmpg123 writes warnings to stderr.
 *
 * Hostile files: what a head claims (frames, rate, channels) is checked before anything is made of it, and what is
 * read at a time is bounded, so a file that unpacks to hours costs no more than the part that is asked for.
 *
 * Samples are libsndfile's floats, integers divided by the power of two above the largest: what the Python package
 * soundfile gives.
 *
 * The only file that includes sndfile.h.
 */

#include "pipeline/sound/sound_file.h"

#include <sndfile.h>

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound.h"
#include "pipeline/sound/sound_mp3.h"

#define FILE_CHANNELS 64   /* the most that a file may have */
#define FILE_MPEG 0x80     /* SF_FORMAT_MPEG_LAYER_I, of libsndfile 1.1, and two more behind it */
#define FILE_AT_ONCE 16384 /* numbers that are read at a time */

struct sound_file {
	SNDFILE *handle;       /* owned; of an MP3 file NULL, and mp3 is not */
	struct sound_mp3 *mp3; /* owned */
	const uint8_t *data;
	sf_count_t size, at;
	unsigned channels;
	float some[FILE_AT_ONCE];
};

/* ---- the bytes, for libsndfile ---- */

static sf_count_t file_length(void *arg)
{
	const struct sound_file *file = arg;

	return file->size;
}

/* Nobody gets behind the end, or before the beginning. */
static sf_count_t file_seek(sf_count_t offset, int whence, void *arg)
{
	struct sound_file *file = arg;
	const sf_count_t from = whence == SEEK_CUR ? file->at : whence == SEEK_END ? file->size : 0;

	if (offset < -from || offset > file->size - from)
		return -1;
	file->at = from + offset;
	return file->at;
}

static sf_count_t file_read(void *to, sf_count_t bytes, void *arg)
{
	struct sound_file *file = arg;
	const sf_count_t n = BASE_MAX(BASE_MIN(bytes, file->size - file->at), 0);

	if (n > 0)
		memcpy(to, file->data + file->at, (size_t)n);
	file->at += n;
	return n;
}

static sf_count_t file_write(const void *from, sf_count_t bytes, void *arg)
{
	(void)from, (void)bytes, (void)arg;
	return 0;
}

static sf_count_t file_tell(void *arg)
{
	const struct sound_file *file = arg;

	return file->at;
}

static SF_VIRTUAL_IO file_calls = {file_length, file_seek, file_read, file_write, file_tell};

/* ---- opening ---- */

/* Whatever chunk says so: libsndfile would have its own libmpg123, which is not silent, look at it. */
static bool file_has_mpeg(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *at = data;

	if (memcmp(data, "fLaC", 4) == 0 || memcmp(data, "OggS", 4) == 0)
		return false;
	while ((at = memmem(at, (size_t)(end - at), "fmt ", 4)) != NULL && end - at >= 10) {
		if ((at[8] == 0x50 || at[8] == 0x55) && at[9] == 0)
			return true;
		at += 4;
	}
	return false;
}

static bool file_begins(const uint8_t *data, size_t size)
{
	if (size < 12)
		return false;
	if (memcmp(data, "RIFF", 4) == 0 || memcmp(data, "RF64", 4) == 0)
		return memcmp(data + 8, "WAVE", 4) == 0;
	return memcmp(data, "fLaC", 4) == 0 || memcmp(data, "OggS", 4) == 0;
}

/* What has a sound track that is not read here; else that it is no sound. Within 47 characters, as pipeline_error has. */
static const char *file_other(const uint8_t *data, size_t size)
{
	static const struct {
		unsigned at, size;
		const char *magic, *text;
	} others[] = {
	    {4, 4, "ftyp", "MP4 (video or M4A), whose sound is not read"},
	    {4, 4, "moov", "a video (MOV), whose sound is not read"},
	    {0, 4, "\x1a\x45\xdf\xa3", "a video (Matroska), whose sound is not read"},
	    {8, 4, "AVI ", "a video (AVI), whose sound is not read"},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(others); i++)
		if (size >= others[i].at + others[i].size &&
		    memcmp(data + others[i].at, others[i].magic, others[i].size) == 0)
			return others[i].text;
	return "no sound: no WAV, FLAC or Ogg, nor MP3";
}

static int file_check(const SF_INFO *info, struct pipeline_error *ret_error)
{
	const int packing = info->format & SF_FORMAT_SUBMASK;

	if (packing >= FILE_MPEG && packing <= FILE_MPEG + 2)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "MP3 in WAV is not decoded");
	if (info->channels < 1 || info->channels > FILE_CHANNELS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%d channels, at most %d",
				   info->channels, FILE_CHANNELS);
	if (info->samplerate < SOUND_LEAST_RATE || info->samplerate > SOUND_MOST_RATE)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%d Hz, not %d to %d",
				   info->samplerate, SOUND_LEAST_RATE, SOUND_MOST_RATE);
	if (info->frames == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "the sound is empty");
	if (info->frames < 0 || info->frames == SF_COUNT_MAX || !info->seekable)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "the file does not say how long it is");
	return 0;
}

static int file_open(struct sound_file *file, SF_INFO *info, struct pipeline_error *ret_error)
{
	file->handle = sf_open_virtual(&file_calls, SFM_READ, info, file);
	return file->handle ? 0
			    : decode_fail(ret_error, PIPELINE_FAIL_DECODE, sf_error(NULL), "%.47s",
					  sf_strerror(NULL));
}

static int file_open_mp3(struct sound_file *file, SF_INFO *info, struct pipeline_error *ret_error)
{
	struct sound_head head;
	const int r = sound_mp3_open(file->data, (size_t)file->size, &file->mp3, &head, ret_error);

	if (r == 0)
		*info = (SF_INFO){
		    .frames = head.frames,
		    .samplerate = (int)head.rate,
		    .channels = (int)head.channels,
		    .seekable = 1,
		};
	return r;
}

int sound_file_open(const void *data, size_t size, struct sound_file **ret,
		    struct sound_head *ret_head, struct pipeline_error *ret_error)
{
	struct sound_file *file;
	SF_INFO info = {.format = 0};
	size_t mp3_start = 0;
	const bool is_mp3 = sound_mp3_begins(data, size, &mp3_start);
	int r;

	if (!is_mp3 && !file_begins(data, size))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%s",
				   file_other(data, size));
	if (!is_mp3 && file_has_mpeg(data, size))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "MP3 in WAV is not decoded");
	file = malloc(sizeof(*file));
	if (!file)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the sound");
	file->data = (const uint8_t *)data + mp3_start;
	file->size = (sf_count_t)(size - mp3_start);
	file->at = 0;
	file->handle = NULL;
	file->mp3 = NULL;
	r = is_mp3 ? file_open_mp3(file, &info, ret_error) : file_open(file, &info, ret_error);
	if (r == 0)
		r = file_check(&info, ret_error);
	if (r != 0) {
		sound_file_close(file);
		return r;
	}
	file->channels = (unsigned)info.channels;
	*ret = file;
	*ret_head = (struct sound_head){
	    .frames = info.frames,
	    .rate = (uint32_t)info.samplerate,
	    .channels = (uint32_t)info.channels,
	};
	return 0;
}

void sound_file_close(struct sound_file *file)
{
	if (!file)
		return;
	if (file->handle)
		sf_close(file->handle);
	sound_mp3_close(file->mp3);
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

/* n frames of file->some to the place `at` of planes with `room` numbers each. */
static void file_put(const struct sound_file *file, size_t n, unsigned channels, size_t room,
		     size_t at, float *out)
{
	for (size_t i = 0; i < n; i++) {
		const float *frame = &file->some[i * file->channels];

		if (channels == 0)
			out[at + i] = file_mean(frame, file->channels);
		for (unsigned c = 0; c < channels; c++)
			out[c * room + at + i] = frame[file->channels == 1 ? 0 : c];
	}
}

static bool file_go(struct sound_file *file, int64_t start)
{
	return file->mp3 ? sound_mp3_seek(file->mp3, start)
			 : sf_seek(file->handle, start, SF_SEEK_SET) == start;
}

/* At most so many frames, to file->some; how many there were. */
static size_t file_some(struct sound_file *file, size_t most)
{
	sf_count_t n;

	if (file->mp3)
		return sound_mp3_read(file->mp3, file->some, most * file->channels) /
		       file->channels;
	n = sf_readf_float(file->handle, file->some, (sf_count_t)most);
	return (size_t)BASE_MAX(BASE_MIN(n, (sf_count_t)most), 0);
}

static int file_ends(struct sound_file *file, struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE,
			   file->handle ? sf_error(file->handle) : 0,
			   "the file ends before the sound does");
}

int sound_file_read(struct sound_file *file, int64_t start, size_t frames, unsigned channels,
		    float *out, struct pipeline_error *ret_error)
{
	const size_t at_once = FILE_AT_ONCE / file->channels;
	size_t done = 0;

	if (channels > 1 && file->channels != 1 && file->channels != channels)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%u channels, not %u",
				   file->channels, channels);
	if (start > 0 && !file_go(file, start))
		return file_ends(file, ret_error);
	while (done < frames) {
		const size_t n = file_some(file, BASE_MIN(frames - done, at_once));

		if (n == 0)
			return file_ends(file, ret_error);
		file_put(file, n, channels, frames, done, out);
		done += n;
	}
	return 0;
}
