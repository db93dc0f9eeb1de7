/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sounds by libsndfile, from memory by its virtual I/O.
 *
 * libsndfile opens two dozen formats; only bytes that begin as one of those that sound data sets come in are let
 * through to it, all of which it knows by that: where it knows nothing it opens files beside, which a sandboxed
 * worker dies of. It would die of MP3 in it, too: called by libsndfile, libmpg123 writes warnings to stderr.
 *
 * Samples are libsndfile's floats, integers divided by the power of two above the largest: what the Python package
 * soundfile gives.
 *
 * The only file that includes sndfile.h.
 */

#include <sndfile.h>

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound_reader.h"

#define SND_MPEG 0x80 /* SF_FORMAT_MPEG_LAYER_I, of libsndfile 1.1, and two more behind it */

struct sound_snd {
	SNDFILE *handle; /* owned */
	const uint8_t *data;
	sf_count_t size, at;
};

/* ---- the bytes, for libsndfile ---- */

static sf_count_t snd_length(void *arg)
{
	const struct sound_snd *snd = arg;

	return snd->size;
}

/* Nobody gets behind the end, or before the beginning. */
static sf_count_t snd_seek(sf_count_t offset, int whence, void *arg)
{
	struct sound_snd *snd = arg;
	const sf_count_t from = whence == SEEK_CUR ? snd->at : whence == SEEK_END ? snd->size : 0;

	if (offset < -from || offset > snd->size - from)
		return -1;
	snd->at = from + offset;
	return snd->at;
}

static sf_count_t snd_read(void *to, sf_count_t bytes, void *arg)
{
	struct sound_snd *snd = arg;
	const sf_count_t n = BASE_MAX(BASE_MIN(bytes, snd->size - snd->at), 0);

	if (n > 0)
		memcpy(to, snd->data + snd->at, (size_t)n);
	snd->at += n;
	return n;
}

static sf_count_t snd_write(const void *from, sf_count_t bytes, void *arg)
{
	(void)from, (void)bytes, (void)arg;
	return 0;
}

static sf_count_t snd_tell(void *arg)
{
	const struct sound_snd *snd = arg;

	return snd->at;
}

static SF_VIRTUAL_IO snd_calls = {snd_length, snd_seek, snd_read, snd_write, snd_tell};

/* ---- opening, reading ---- */

/* Whatever chunk says so: libsndfile would have its own libmpg123, which is not silent, look at it. */
static bool snd_has_mpeg(const uint8_t *data, size_t size)
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

static bool snd_begins(const uint8_t *data, size_t size, size_t *ret_start)
{
	*ret_start = 0;
	if (size < 12)
		return false;
	if (memcmp(data, "RIFF", 4) == 0 || memcmp(data, "RF64", 4) == 0)
		return memcmp(data + 8, "WAVE", 4) == 0;
	return memcmp(data, "fLaC", 4) == 0 || memcmp(data, "OggS", 4) == 0;
}

static void snd_close(void *sound)
{
	struct sound_snd *snd = sound;

	if (snd->handle)
		sf_close(snd->handle);
	free(snd);
}

static int snd_start(struct sound_snd *snd, struct sound_head *ret_head,
		     struct pipeline_error *ret_error)
{
	SF_INFO info = {.format = 0};
	int packing;

	snd->handle = sf_open_virtual(&snd_calls, SFM_READ, &info, snd);
	if (!snd->handle)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, sf_error(NULL), "%.47s",
				   sf_strerror(NULL));
	packing = info.format & SF_FORMAT_SUBMASK;
	if (packing >= SND_MPEG && packing <= SND_MPEG + 2)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "MP3 in WAV is not decoded");
	*ret_head = (struct sound_head){
	    .frames = info.seekable && info.frames != SF_COUNT_MAX ? info.frames : -1,
	    .rate = (uint32_t)BASE_MAX(info.samplerate, 0),
	    .channels = (uint32_t)BASE_MAX(info.channels, 0),
	};
	return 0;
}

static int snd_open(const uint8_t *data, size_t size, void **ret, struct sound_head *ret_head,
		    struct pipeline_error *ret_error)
{
	struct sound_snd *snd;
	int r;

	if (snd_has_mpeg(data, size))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "MP3 in WAV is not decoded");
	snd = calloc(1, sizeof(*snd));
	if (!snd)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the sound");
	snd->data = data;
	snd->size = (sf_count_t)size;
	r = snd_start(snd, ret_head, ret_error);
	if (r == 0)
		*ret = snd;
	else
		snd_close(snd);
	return r;
}

static bool snd_go(void *sound, int64_t frame)
{
	struct sound_snd *snd = sound;

	return sf_seek(snd->handle, frame, SF_SEEK_SET) == frame;
}

static size_t snd_take(void *sound, float *out, size_t frames, struct pipeline_error *ret_error)
{
	struct sound_snd *snd = sound;
	const sf_count_t n = sf_readf_float(snd->handle, out, (sf_count_t)frames);

	return n > 0 ? (size_t)BASE_MIN(n, (sf_count_t)frames)
		     : sound_ends(sf_error(snd->handle), ret_error);
}

const struct sound_reader sound_snd_reader = {
    .begins = snd_begins,
    .open = snd_open,
    .close = snd_close,
    .seek = snd_go,
    .read = snd_take,
};
