/* SPDX-License-Identifier: Apache-2.0 */

/* The op "audio", which takes the place of decode: its parameters, and which part of a sound is taken. */

#include "pipeline/sound/sound.h"

#include <math.h>

#include "pipeline/formats/decode.h"
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
	ret->n_speeds = op->value[OP_AUDIO_SPEEDS].count;
	memcpy(ret->speed, op->value[OP_AUDIO_SPEEDS].number, sizeof(ret->speed));
	return sound_missing();
}

/* A sound that is played faster is one of a higher rate: torchaudio's Speed, which cuts that to a whole number, too. */
struct sound_ratio sound_ratio(const struct sound *sound, uint32_t rate, struct philox_seq *seq)
{
	const int64_t last = (int64_t)sound->n_speeds - 1;
	const double speed = last < 0 ? 1 : sound->speed[last ? draw_integer(seq, 0, last) : 0];
	const uint64_t played = (uint64_t)(sound->rate * speed);

	if (played == sound->rate)
		return (struct sound_ratio){rate, sound->rate};
	return (struct sound_ratio){rate * played, (uint64_t)sound->rate * sound->rate};
}

int64_t sound_start(enum sound_crop crop, int64_t has, int64_t wanted, struct philox_seq *seq)
{
	if (has <= wanted || crop == SOUND_BEGIN)
		return 0;
	return crop == SOUND_CENTER ? (has - wanted) / 2 : draw_integer(seq, 0, has - wanted);
}

/* Seconds in frames, the nearest one; as many as anything has, of more. */
static int64_t sound_nearest(double seconds, uint32_t rate)
{
	const double frames = seconds * rate;

	return frames < (double)(INT64_C(1) << 62) ? llrint(frames) : INT64_C(1) << 62;
}

int sound_part(const struct sound_head *head, const struct pipeline_part *part, int64_t *ret_first,
	       int64_t *ret_has, struct pipeline_error *ret_error)
{
	int64_t first, has;

	*ret_first = 0;
	*ret_has = head->frames;
	if (!part->is_there)
		return 0;
	first = sound_nearest(part->start, head->rate);
	if (first >= head->frames)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "second %.6g of a sound of %.6g",
				   part->start, (double)head->frames / head->rate);
	has = BASE_MIN(sound_nearest(part->seconds, head->rate), head->frames - first);
	if (has == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "a part of %.6g s has no frame",
				   part->seconds);
	*ret_first = first;
	*ret_has = has;
	return 0;
}

int64_t sound_end(const struct sound_head *head, const struct pipeline_part *part, int64_t start)
{
	const int64_t left = head->frames - start;

	return part->is_there ? start + BASE_MIN(left, sound_nearest(part->seconds, head->rate))
			      : head->frames;
}

static bool sound_is_random(const struct op *op)
{
	return op_number(op, OP_AUDIO_CROP, 0) == SOUND_RANDOM ||
	       op->value[OP_AUDIO_SPEEDS].count > 1;
}

const struct op_impl sound_op = {.stage = OP_STAGE_DECODE, .is_random = sound_is_random};
