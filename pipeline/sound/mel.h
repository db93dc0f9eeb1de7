/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Spectrograms of sounds: what the ops "mel_spectrogram" and "spectrogram" and those behind them ask for (mel.c), and a
 * waveform to that (mel_run.c). No library: these are in every build.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/sound/mel_loops.h"
#include "pipeline/spec/op.h"

#define MEL_MOST_FFT 16384
#define MEL_MOST_MELS 1024
#define MEL_MOST_WAVE (1 << 24)          /* numbers of a sample's waveform, all channels together */
#define MEL_MOST_OUT (UINT64_C(1) << 28) /* numbers that come out */
#define MEL_MOST_WORK (UINT64_C(1) << 30) /* numbers that all windows of a sample have together */

enum mel_log {
	MEL_LINEAR,
	MEL_LN,
	MEL_LOG10,
	MEL_DB,
	MEL_WHISPER
}; /* behind the first as op_log_words */

struct mel {
	uint32_t rate, wave; /* of what goes in: frames a second, frames */
	uint32_t n_fft, hop, win;
	unsigned channels;
	uint32_t n_mels;     /* bands; of the op "spectrogram" its bins; 0: there is no such op */
	uint32_t n_mfcc;     /* 0: no mfcc */
	uint32_t frames;     /* of what comes out */
	unsigned first, end; /* the op's number, and that behind all that works on it */
	double low, high;    /* Hz */
	bool is_power, is_centered, by_area, is_slaney;
	bool are_bins; /* no bands */
	enum mel_log log;
};

/* ---- mel.c ---- */

/* Of the ops from number first up to number `end`, for sounds of so many frames, channels and frames a second; ret->n_mels is 0
 * where there are none. 0, or PIPELINE_E_BAD with diag. */
int mel_init(const struct op_list *ops, unsigned first, unsigned end, uint32_t rate, uint32_t wave,
	     unsigned channels, struct mel *ret, struct diag *diag);
/* How many rows come out. */
uint32_t mel_rows(const struct mel *mel);
/* Of a sound with so many frames before the zeros: how many frames its spectrogram has without them. */
uint32_t mel_length(const struct mel *mel, int64_t frames);

/* ---- mel_run.c ---- */

struct mel_room;        /* tables and memory of one spectrogram's kind, not shared by threads */
mel_fn *mel_best(void); /* of this machine */
int mel_room_new(const struct mel *mel, mel_fn *fn, struct mel_room **ret); /* 0 or -ENOMEM */
void mel_room_free(struct mel_room *room);
/* mel->wave numbers, zeros behind the first `has`, to n_mels rows of mel->frames each. */
void mel_run(struct mel_room *room, const float *wave, int64_t has, float *out);
/* Where mel_run() puts the channels' spectrograms, one behind another, so that mel_finish() finds them: out, or the room's. */
float *mel_room_at(struct mel_room *room, float *out);
/* What the ops behind do to them: to out, mel_rows() x mel->frames of each channel. */
void mel_finish(struct mel_room *room, const struct op_list *ops, const struct pipeline_key *key,
		float *out);
