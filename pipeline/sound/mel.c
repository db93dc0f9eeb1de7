/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops on sounds behind "audio" and those on waveforms: mel_spectrogram or spectrogram first, then amplitude_to_db, mfcc,
 * normalize and masks in any order. Names, defaults and what is drawn are torchaudio's. Bounds are looked at here, before anything is made: what a spec asks for is a client's word.
 */

#include "pipeline/sound/mel.h"

#include <math.h>

#include "pipeline/ops/op_run.h"

/* ---- mel_spectrogram ---- */

/* The transform knows these factors alone. */
static bool mel_is_smooth(uint32_t n)
{
	for (uint32_t factor = 2; factor <= 5; factor++)
		while (n % factor == 0)
			n /= factor;
	return n == 1;
}

static uint32_t mel_number(const struct op *op, unsigned param, uint32_t otherwise)
{
	return op_is_null(op, param) ? otherwise : (uint32_t)op_number(op, param, 0);
}

/* Parameters of both stand in the same places. */
_Static_assert((int)OP_SPECTROGRAM_N_FFT == (int)OP_MEL_SPECTROGRAM_N_FFT &&
		   (int)OP_SPECTROGRAM_WIN_LENGTH == (int)OP_MEL_SPECTROGRAM_WIN_LENGTH &&
		   (int)OP_SPECTROGRAM_HOP_LENGTH == (int)OP_MEL_SPECTROGRAM_HOP_LENGTH,
	       "spectrogram, mel_spectrogram");

static void mel_read_bands(const struct op *op, struct mel *ret)
{
	ret->n_mels = (uint32_t)op_number(op, OP_MEL_SPECTROGRAM_N_MELS, 0);
	ret->low = op_number(op, OP_MEL_SPECTROGRAM_F_MIN, 0);
	ret->is_power = op_number(op, OP_MEL_SPECTROGRAM_POWER, 0) == 2;
	ret->is_centered = op_number(op, OP_MEL_SPECTROGRAM_CENTER, 0) != 0;
	ret->by_area = !op_is_null(op, OP_MEL_SPECTROGRAM_NORM);
	ret->is_slaney = op_number(op, OP_MEL_SPECTROGRAM_MEL_SCALE, 0) != 0;
	if (!op_is_null(op, OP_MEL_SPECTROGRAM_F_MAX))
		ret->high = op_number(op, OP_MEL_SPECTROGRAM_F_MAX, 0);
	if (!op_is_null(op, OP_MEL_SPECTROGRAM_LOG))
		ret->log = MEL_LN + (enum mel_log)op_number(op, OP_MEL_SPECTROGRAM_LOG, 0);
}

static void mel_read_bins(const struct op *op, struct mel *ret)
{
	ret->are_bins = true;
	ret->n_mels = ret->n_fft / 2 + 1;
	ret->is_power = op_number(op, OP_SPECTROGRAM_POWER, 0) == 2;
	ret->is_centered = op_number(op, OP_SPECTROGRAM_CENTER, 0) != 0;
}

static void mel_read(const struct op *op, uint32_t rate, uint32_t wave, struct mel *ret)
{
	*ret = (struct mel){
	    .rate = rate,
	    .wave = wave,
	    .n_fft = (uint32_t)op_number(op, OP_MEL_SPECTROGRAM_N_FFT, 0),
	    .high = rate / 2,
	};
	ret->win = mel_number(op, OP_MEL_SPECTROGRAM_WIN_LENGTH, ret->n_fft);
	ret->hop = mel_number(op, OP_MEL_SPECTROGRAM_HOP_LENGTH, ret->win / 2);
	if (op->id == OP_MEL_SPECTROGRAM)
		mel_read_bands(op, ret);
	else
		mel_read_bins(op, ret);
}

static const char *mel_check(const struct mel *mel)
{
	if (mel->n_fft % 2 != 0 || !mel_is_smooth(mel->n_fft))
		return "n_fft is no even product of 2, 3 and 5; give one, such as 400, 480, 512 or "
		       "1024, and with it any win_length up to that";
	if (mel->win > mel->n_fft)
		return "win_length is above n_fft; give at most as much, or a larger n_fft";
	if (mel->low >= mel->high)
		return "f_min is not below f_max; give the lowest and the highest frequency in Hz";
	if (mel->high > mel->rate / 2)
		return "f_max is above half of audio's sample_rate, where a sound has nothing; "
		       "give less, or null";
	if (mel->is_centered && mel->wave <= mel->n_fft / 2)
		return "audio's frames are fewer than the padding of n_fft / 2 takes; give audio "
		       "more frames, or a smaller n_fft";
	if (!mel->is_centered && mel->wave < mel->n_fft)
		return "audio's frames are fewer than one window of n_fft; give audio more frames, "
		       "or a smaller n_fft";
	return NULL;
}

/* Frames of a sound of so many, which has at least a window's. */
static uint32_t mel_frames(const struct mel *mel, uint32_t wave)
{
	return mel->is_centered ? 1 + wave / mel->hop : 1 + (wave - mel->n_fft) / mel->hop;
}

static const char *mel_size(struct mel *mel, unsigned channels)
{
	mel->frames = mel_frames(mel, mel->wave) - (mel->log == MEL_WHISPER);
	if (mel->frames == 0)
		return "whisper leaves the last frame out, and there is but one; give audio more "
		       "frames, or a smaller hop_length";
	if ((uint64_t)mel->wave * channels > MEL_MOST_WAVE)
		return "audio has more than 16777216 frames in all of its channels; give fewer";
	if ((uint64_t)mel->frames * mel->n_fft * channels > MEL_MOST_WORK ||
	    (uint64_t)mel->frames * mel->n_mels * channels > MEL_MOST_OUT)
		return "there are too many spectra of a sound; give a larger hop_length, or audio "
		       "fewer frames";
	return NULL;
}

uint32_t mel_length(const struct mel *mel, int64_t frames)
{
	const uint32_t has = (uint32_t)BASE_MAX(BASE_MIN(frames, (int64_t)mel->wave), 0);

	if (!mel->is_centered && has < mel->n_fft)
		return 1;
	return BASE_MIN(mel_frames(mel, has), mel->frames);
}

uint32_t mel_rows(const struct mel *mel)
{
	return mel->n_mfcc ? mel->n_mfcc : mel->n_mels;
}

const struct op_impl mel_op = {.stage = OP_STAGE_SOUND};
const struct op_impl mel_bins_op = {.stage = OP_STAGE_SOUND};
const struct op_impl mel_decibels_op = {.stage = OP_STAGE_SOUND};
const struct op_impl mel_cepstra_op = {.stage = OP_STAGE_SOUND};

/* ---- masks ---- */

/* torchaudio's mask_along_axis(): a width from 0 up to `most`, then a place for it, both cut to whole numbers. */
static void mel_draw_mask(double most, uint32_t size, struct op_drawn *drawn)
{
	const double width = draw_between(&drawn->seq, 0, BASE_MIN(most, (double)size));
	const double start = draw_between(&drawn->seq, 0, size - width);

	drawn->number[0] = floor(start);
	drawn->number[1] = BASE_MIN(floor(start) + floor(width), (double)size);
}

static void mel_draw_times(const struct op *op, uint32_t height, uint32_t width,
			   struct op_drawn *drawn)
{
	const double share = floor(width * op_number(op, OP_TIME_MASKING_P, 0));

	(void)height;
	mel_draw_mask(BASE_MIN(op_number(op, OP_TIME_MASKING_TIME_MASK_PARAM, 0), share), width,
		      drawn);
}

static void mel_draw_frequencies(const struct op *op, uint32_t height, uint32_t width,
				 struct op_drawn *drawn)
{
	(void)width;
	mel_draw_mask(op_number(op, OP_FREQUENCY_MASKING_FREQ_MASK_PARAM, 0), height, drawn);
}

const struct op_impl mel_times_op = {.stage = OP_STAGE_SOUND, .draw = mel_draw_times};
const struct op_impl mel_frequencies_op = {.stage = OP_STAGE_SOUND, .draw = mel_draw_frequencies};

/* ---- all of them ---- */

static bool mel_is_transform(const struct op *op)
{
	return op->id == OP_MEL_SPECTROGRAM || op->id == OP_SPECTROGRAM;
}

static const char *mel_check_cepstra(const struct op *op, const struct mel *mel)
{
	if (mel->are_bins || mel->n_mfcc != 0)
		return "is of mel_spectrogram's bands; put it behind that, once";
	if (mel->log != MEL_LINEAR)
		return "takes the logarithm itself; leave mel_spectrogram's log out";
	if (op_number(op, OP_MFCC_N_MFCC, 0) > mel->n_mels)
		return "has an n_mfcc above mel_spectrogram's n_mels; give at most as many";
	return NULL;
}

static const char *mel_check_behind(const struct op *op, const struct mel *mel)
{
	const enum op_stage stage = op_impl(op->id)->stage;

	if (stage == OP_STAGE_WAVE)
		return "is of waveforms; put it before the spectrogram";
	if (stage != OP_STAGE_SOUND && op->id != OP_NORMALIZE)
		return "works on pictures, and audio makes none; leave it out";
	if (mel->n_mels == 0)
		return "is of spectrograms; put mel_spectrogram before it";
	if (mel_is_transform(op))
		return "makes a spectrogram, and there is one already; leave one out";
	if (op->id == OP_MFCC)
		return mel_check_cepstra(op, mel);
	if (op->id == OP_NORMALIZE && !op_is_null(op, OP_NORMALIZE_OF))
		return "\"of\" is of pictures; leave it out";
	if (op->id == OP_NORMALIZE &&
	    (op->value[OP_NORMALIZE_MEAN].count > 1 || op->value[OP_NORMALIZE_STD].count > 1))
		return "is of a spectrogram: give one number for mean and one for std";
	return NULL;
}

int mel_init(const struct op_list *ops, unsigned first, unsigned end, uint32_t rate, uint32_t wave,
	     unsigned channels, struct mel *ret, struct diag *diag)
{
	struct mel mel = {.n_mels = 0};

	for (unsigned i = first; i < end; i++) {
		const struct op *op = &ops->op[i];
		const bool is_first = mel_is_transform(op) && mel.n_mels == 0;
		const char *wrong = is_first ? NULL : mel_check_behind(op, &mel);

		if (wrong)
			return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s) %s", i + 1,
					 op_name(op->id), wrong);
		if (op->id == OP_MFCC)
			mel.n_mfcc = (uint32_t)op_number(op, OP_MFCC_N_MFCC, 0);
		if (!is_first)
			continue;
		mel_read(op, rate, wave, &mel);
		mel.channels = channels;
		mel.first = i;
		mel.end = end;
		wrong = mel_check(&mel);
		wrong = wrong ? wrong : mel_size(&mel, channels);
		if (wrong)
			return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", i + 1,
					 op_name(op->id), wrong);
	}
	*ret = mel;
	return 0;
}
