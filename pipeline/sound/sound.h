/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sounds: what the op "audio" asks for, and a file's bytes to that many frames of it. sound.c knows no library and is
 * in every build; the rest is sound_decode.c's, or sound_none.c's in a build without libsndfile, libmpg123 and libsoxr.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/sound/mel.h"
#include "pipeline/sound/sound_file.h"
#include "pipeline/sound/wave.h"
#include "pipeline/spec/op.h"

#define SOUND_LEAST_RATE 1000 /* frames a second, of a file and of what comes out */
#define SOUND_MOST_RATE 768000
#define SOUND_MOST_FRAMES (1 << 24) /* that come out; 17 minutes of 16 kHz */
#define SOUND_MOST_CHANNELS 16      /* that come out */
#define SOUND_MOST_READ (1 << 27)   /* numbers that are decoded for one sample */

enum sound_crop { SOUND_RANDOM = 0, SOUND_CENTER = 1, SOUND_BEGIN = 2 }; /* as op_crop_words */

struct sound {
	uint32_t rate, frames;
	unsigned channels; /* 1: their mean; 0: that, too, and no dimension for it */
	enum sound_crop crop;
	unsigned n_speeds;            /* 0: as they are */
	double speed[OP_MAX_NUMBERS]; /* one is drawn */
	struct wave wave;             /* what is done to it then */
	struct mel mel;               /* what is made of it then */
};

struct sound_ratio { /* frames of the file for frames that come out */
	uint64_t from, to;
};

struct sound_place {            /* of a file */
	const int64_t *time_us; /* of the container's clock, when the sound begins; NULL: drawn */
	struct pipeline_part
	    part; /* of the file; of one that begins then, what is taken from then on: start is 0 */
};

struct sound_watch { /* who is told how many numbers are going to be decoded */
	void (*fn)(void *arg, uint32_t frames, uint32_t channels);
	void *arg;
};

/* ---- sound.c ---- */

/* Of that op. What is wrong with it, how to mend it too; else NULL. */
const char *sound_init(const struct op *op, struct sound *ret);
/* Of a file of that rate, at a speed that is drawn. */
struct sound_ratio sound_ratio(const struct sound *sound, uint32_t rate, struct philox_seq *seq);
/* Of a file with `has` frames, `wanted` are taken: the first one. */
int64_t sound_start(enum sound_crop crop, int64_t has, int64_t wanted, struct philox_seq *seq);
/* The frames of the file that are a part of it: of one that goes beyond the end, those before that. 0, or PIPELINE_E_BAD with *ret_error:
 * there are none. */
int sound_part(const struct sound_head *head, const struct pipeline_part *part, int64_t *ret_first,
	       int64_t *ret_has, struct pipeline_error *ret_error);

/* Of a sound that begins at that frame, the end of what is taken of it, at most the file's. */
int64_t sound_end(const struct sound_head *head, const struct pipeline_part *part, int64_t start);

/* ---- sound_decode.c, sound_none.c ---- */

/* Why this build decodes no sounds, and what to do; NULL: it does. */
const char *sound_missing(void);

/* How long that part of the file's sound is, by its head. 0, or PIPELINE_E_BAD with *ret_error. */
int sound_measure(const void *data, size_t size, const struct pipeline_part *part,
		  struct sound_head *ret, struct pipeline_error *ret_error);

struct sound_room;                           /* memory that is kept from sample to sample */
int sound_room_new(struct sound_room **ret); /* 0 or -ENOMEM */
void sound_room_free(struct sound_room *room);
/* The file's bytes (hostile) to out, which has channels x frames numbers, zeros behind the *ret_length frames
 * that the file has. Where place->time_us says when they begin, zeros are also where nothing sounds, and *ret_length is 0 where
 * nothing does at all. 0, or PIPELINE_E_BAD with *ret_error; out may be partly written then. */
int sound_run(const struct sound *sound, struct sound_room *room, const struct sound_watch *watch,
	      const void *data, size_t size, const struct pipeline_key *key,
	      const struct sound_place *place, float *out, int64_t *ret_length,
	      struct pipeline_error *ret_error);
