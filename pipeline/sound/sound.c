/* SPDX-License-Identifier: Apache-2.0 */

/* The op "audio", which takes the place of decode: its parameters, and which part of a sound is taken. */

#include "pipeline/sound/sound.h"

#include "pipeline/ops/op_run.h"

const char *sound_init(const struct op *op, struct sound *ret)
{
	*ret = (struct sound){
	    .rate = (uint32_t)op_number(op, OP_AUDIO_SAMPLE_RATE, 0),
	    .frames = (uint32_t)op_number(op, OP_AUDIO_FRAMES, 0),
	    .crop = (enum sound_crop)op_number(op, OP_AUDIO_CROP, 0),
	};
	if (!op_is_null(op, OP_AUDIO_CHANNELS))
		ret->channels = (unsigned)op_number(op, OP_AUDIO_CHANNELS, 0);
	return sound_missing();
}

int64_t sound_start(enum sound_crop crop, int64_t has, int64_t wanted, struct philox_seq *seq)
{
	if (has <= wanted || crop == SOUND_BEGIN)
		return 0;
	return crop == SOUND_CENTER ? (has - wanted) / 2 : draw_integer(seq, 0, has - wanted);
}

static bool sound_is_random(const struct op *op)
{
	return op_number(op, OP_AUDIO_CROP, 0) == SOUND_RANDOM;
}

const struct op_impl sound_op = {.stage = OP_STAGE_DECODE, .is_random = sound_is_random};
