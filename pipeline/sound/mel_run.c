/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waveform's spectrogram, as torchaudio.transforms.MelSpectrogram and Spectrogram have it, and what stands behind it. Bins
 * are bands of one filter each, with a weight of 1.
 *
 * Tables are computed in double and kept in float32. They are made by a run and not with the pipeline, which accessd compiles,
 * too, and has no use for them. Filters are sparse: a bin is in two of them.
 *
 * Windows that lie in the zeros behind a sound all have the same spectrum, so only the first of them is computed.
 */

#include <math.h>

#include "base/exact.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/sound/mel.h"

#define MEL_PI 3.14159265358979323846
#define MEL_LN_10 2.30258509299404568402

struct mel_room {
	struct mel mel;
	mel_fn *fn;
	struct mel_tables tables;
	struct mel_work work;
	struct mel_turn *turns; /* owned; of all passes */
	float *weights;         /* owned; of all filters */
	float *padded;          /* owned; the wave with its padding, where it is centred */
	float *bands;           /* owned; of all channels, for mfcc; NULL: there is none */
};

/* ---- tables ---- */

static struct mel_turn mel_turned(uint64_t part, uint64_t of)
{
	const double angle = 2 * MEL_PI * (double)(part % of) / (double)of;

	return (struct mel_turn){(float)exact_cos(angle), -(float)exact_sin(angle)};
}

static void mel_plan(struct mel_tables *tables, struct mel_turn *turn)
{
	static const unsigned factors[] = {4, 2, 3, 5};
	uint32_t left = tables->n_fft / 2, taken = 1;

	for (unsigned f = 0; f < BASE_ARRAY_LEN(factors); f++) {
		const unsigned factor = factors[f];

		for (; left % factor == 0; left /= factor, taken *= factor) {
			tables->pass[tables->passes++] =
			    (struct mel_pass){factor, left, taken, turn};
			for (uint32_t p = 0; p < left / factor; p++)
				for (unsigned k = 1; k < factor; k++)
					*turn++ = mel_turned((uint64_t)p * k, left);
		}
	}
}

/* Hann's, in the middle of n_fft. */
static void mel_window(const struct mel *mel, float *window)
{
	const uint32_t before = (mel->n_fft - mel->win) / 2;

	for (uint32_t i = 0; i < mel->win; i++)
		window[before + i] =
		    (float)(0.25 - 0.25 * exact_cos(2 * MEL_PI * i / (double)mel->win));
}

/* ---- filters ---- */

static double mel_of_hz(const struct mel *mel, double hz)
{
	if (!mel->is_slaney)
		return 2595 / MEL_LN_10 * exact_log(1 + hz / 700);
	if (hz < 1000)
		return hz * 3 / 200;
	return 15 + exact_log(hz / 1000) * 27 / exact_log(6.4);
}

static double mel_to_hz(const struct mel *mel, double mels)
{
	if (!mel->is_slaney)
		return 700 * (exact_exp(mels * MEL_LN_10 / 2595) - 1);
	if (mels < 15)
		return mels * 200 / 3;
	return 1000 * exact_exp((mels - 15) * exact_log(6.4) / 27);
}

static double mel_point(const struct mel *mel, uint32_t i)
{
	const double low = mel_of_hz(mel, mel->low), high = mel_of_hz(mel, mel->high);

	return mel_to_hz(mel, low + (high - low) * i / (mel->n_mels + 1));
}

/* A triangle over [left, right] with its top at middle. Returns how many weights it has. */
static uint32_t mel_triangle(const struct mel *mel, double left, double middle, double right,
			     struct mel_filter *filter, float *weight)
{
	const double top = mel->by_area ? 2 / (right - left) : 1;
	const uint32_t bins = mel->n_fft / 2 + 1;
	uint32_t n = 0;

	for (uint32_t k = 0; k < bins; k++) {
		const double hz = (double)(mel->rate / 2) * k / (bins - 1);
		const double up = (hz - left) / (middle - left);
		const double down = (right - hz) / (right - middle);
		const float value = (float)(BASE_MIN(up, down) * top);

		if (!(value > 0))
			continue;
		filter->first = n ? filter->first : k;
		weight[n++] = value;
	}
	filter->n = n;
	filter->weight = weight;
	return n;
}

static void mel_filters(const struct mel *mel, struct mel_filter *filter, float *weights)
{
	double point[3] = {mel_point(mel, 0), mel_point(mel, 1), 0};

	for (uint32_t j = 0; mel->are_bins && j < mel->n_mels; j++) {
		weights[j] = 1;
		filter[j] = (struct mel_filter){j, 1, &weights[j]};
	}
	for (uint32_t j = 0; !mel->are_bins && j < mel->n_mels; j++) {
		point[2] = mel_point(mel, j + 2);
		weights += mel_triangle(mel, point[0], point[1], point[2], &filter[j], weights);
		point[0] = point[1];
		point[1] = point[2];
	}
}

static float mel_log_scale(const struct mel *mel)
{
	switch (mel->log) {
	case MEL_LINEAR:
		return 0;
	case MEL_LN:
		return 1;
	case MEL_DB: /* of the power, whatever is given */
		return (float)((mel->is_power ? 10 : 20) / MEL_LN_10);
	default:
		return (float)(1 / MEL_LN_10);
	}
}

/* ---- rooms ---- */

static void *mel_lanes_new(size_t n)
{
	return aligned_alloc(64, (n * sizeof(mel_lanes) + 63) / 64 * 64);
}

/* Each bin is in two filters at most, and their ends may be of three. */
static bool mel_room_make(struct mel_room *room, const struct mel *mel)
{
	const size_t half = mel->n_fft / 2;
	struct mel_tables *tables = &room->tables;
	struct mel_work *work = &room->work;

	work->half[0] = mel_lanes_new(2 * half);
	work->half[1] = mel_lanes_new(2 * half);
	work->bin = mel_lanes_new(half + 1);
	work->band = mel_lanes_new(mel->n_mels);
	room->turns = calloc(half, sizeof(*room->turns));
	room->weights = calloc(3 * (half + 1), sizeof(*room->weights));
	room->padded = calloc((size_t)mel->wave + mel->n_fft, sizeof(*room->padded));
	if (mel->n_mfcc != 0)
		room->bands =
		    calloc((size_t)mel->n_mels * mel->frames * mel->channels, sizeof(*room->bands));
	tables->window = calloc(mel->n_fft, sizeof(*tables->window));
	tables->turn = calloc(half / 2 + 1, sizeof(*tables->turn));
	tables->filter = calloc(mel->n_mels, sizeof(*tables->filter));
	return work->half[0] && work->half[1] && work->bin && work->band && room->turns &&
	       room->weights && room->padded && tables->window && tables->turn && tables->filter &&
	       (mel->n_mfcc == 0 || room->bands);
}

void mel_room_free(struct mel_room *room)
{
	if (!room)
		return;
	free(room->work.half[0]);
	free(room->work.half[1]);
	free(room->work.bin);
	free(room->work.band);
	free(room->turns);
	free(room->weights);
	free(room->padded);
	free(room->bands);
	free(room->tables.window);
	free(room->tables.turn);
	free(room->tables.filter);
	free(room);
}

mel_fn *mel_best(void)
{
	mel_fn *fn = mel_avx2();

	return fn ? fn : mel_plain;
}

int mel_room_new(const struct mel *mel, mel_fn *fn, struct mel_room **ret)
{
	struct mel_room *room = calloc(1, sizeof(*room));
	struct mel_tables *tables;

	if (!room || !mel_room_make(room, mel)) {
		mel_room_free(room);
		return -ENOMEM;
	}
	tables = &room->tables;
	room->mel = *mel;
	room->fn = fn;
	tables->n_fft = mel->n_fft;
	tables->n_mels = mel->n_mels;
	tables->is_power = mel->is_power;
	tables->log_scale = mel_log_scale(mel);
	mel_plan(tables, room->turns);
	mel_window(mel, tables->window);
	for (uint32_t k = 0; k <= mel->n_fft / 4; k++)
		tables->turn[k] = mel_turned(k, mel->n_fft);
	mel_filters(mel, tables->filter, room->weights);
	*ret = room;
	return 0;
}

/* ---- a waveform ---- */

MEL_LOOPS(mel_plain, )

/* Reflected at its ends, which are not repeated. */
static const float *mel_pad(struct mel_room *room, const float *wave)
{
	const size_t half = room->mel.n_fft / 2, n = room->mel.wave;

	if (!room->mel.is_centered)
		return wave;
	for (size_t i = 0; i < half; i++) {
		room->padded[i] = wave[half - i];
		room->padded[half + n + i] = wave[n - 2 - i];
	}
	memcpy(room->padded + half, wave, n * sizeof(*wave));
	return room->padded;
}

/* From this frame on all windows lie in zeros. */
static uint32_t mel_silent(const struct mel *mel, int64_t has)
{
	const int64_t half = mel->is_centered ? mel->n_fft / 2 : 0;

	if (has + half + 1 > mel->wave) /* what is reflected at the end is none */
		return mel->frames;
	return (uint32_t)BASE_MIN((has + half + mel->hop - 1) / mel->hop, (int64_t)mel->frames);
}

/* openai-whisper's: no more than 80 dB below the loudest, around 0. */
static void mel_whisper(float *out, size_t n)
{
	float most = out[0];

	for (size_t i = 1; i < n; i++)
		most = BASE_MAX(most, out[i]);
	for (size_t i = 0; i < n; i++)
		out[i] = (BASE_MAX(out[i], most - 8) + 4) / 4;
}

void mel_run(struct mel_room *room, const float *wave, int64_t has, float *out)
{
	const struct mel *mel = &room->mel;
	const float *from = mel_pad(room, wave);
	const uint32_t silent = mel_silent(mel, has);
	uint32_t t = 0;

	for (; t < mel->frames && t < silent + MEL_LANES; t += MEL_LANES) {
		const uint32_t n = BASE_MIN((uint32_t)MEL_LANES, mel->frames - t);
		const float *at[MEL_LANES];

		for (uint32_t l = 0; l < MEL_LANES; l++)
			at[l] = from + (size_t)BASE_MIN(t + l, mel->frames - 1) * mel->hop;
		room->fn(&room->tables, &room->work, at);
		for (uint32_t j = 0; j < mel->n_mels; j++)
			memcpy(out + (size_t)j * mel->frames + t, &room->work.band[j],
			       n * sizeof(*out));
	}
	for (uint32_t j = 0; j < mel->n_mels && t < mel->frames; j++)
		for (size_t i = t; i < mel->frames; i++)
			out[(size_t)j * mel->frames + i] = out[(size_t)j * mel->frames + t - 1];
	if (mel->log == MEL_WHISPER)
		mel_whisper(out, (size_t)mel->n_mels * mel->frames);
}

/* ---- what stands behind it ---- */

static void mel_normalize(const struct op *op, size_t n, float *out)
{
	const float mean = (float)op_number(op, OP_NORMALIZE_MEAN, 0);
	const float std = (float)op_number(op, OP_NORMALIZE_STD, 0);

	for (size_t i = 0; i < n; i++)
		out[i] = (out[i] - mean) / std;
}

/* max(number, 1e-10) in place, its logarithm times scale. */
static void mel_to_log(float *out, size_t n, float scale)
{
	for (size_t i = 0; i < n; i += MEL_LANES) {
		const size_t some = BASE_MIN(n - i, (size_t)MEL_LANES);
		mel_lanes lanes = {0};

		memcpy(&lanes, out + i, some * sizeof(*out));
		mel_logarithm(&lanes, scale);
		memcpy(out + i, &lanes, some * sizeof(*out));
	}
}

/* No less than so far below the largest. */
static void mel_raise(float *out, size_t n, float below)
{
	float most = out[0];

	for (size_t i = 1; i < n; i++)
		most = BASE_MAX(most, out[i]);
	for (size_t i = 0; i < n; i++)
		out[i] = BASE_MAX(out[i], most - below);
}

static void mel_decibels(const struct op *op, size_t n, float *out)
{
	const bool is_power = op_number(op, OP_AMPLITUDE_TO_DB_STYPE, 0) == 0;

	mel_to_log(out, n, (float)((is_power ? 10 : 20) / MEL_LN_10));
	if (!op_is_null(op, OP_AMPLITUDE_TO_DB_TOP_DB))
		mel_raise(out, n, (float)op_number(op, OP_AMPLITUDE_TO_DB_TOP_DB, 0));
}

/* The cosine transform of type 2, over the bands of each frame. */
static void mel_cosines(const struct mel *mel, bool is_ortho, const float *bands, float *out)
{
	for (uint32_t k = 0; k < mel->n_mfcc; k++, out += mel->frames) {
		const double scale =
		    is_ortho ? sqrt((k == 0 ? 1.0 : 2.0) / (double)mel->n_mels) : 2;

		memset(out, 0, mel->frames * sizeof(*out));
		for (uint32_t j = 0; j < mel->n_mels; j++) {
			const float *band = bands + (size_t)j * mel->frames;
			const uint64_t part =
			    (2 * (uint64_t)j + 1) * k % (4 * (uint64_t)mel->n_mels);
			const float weight =
			    (float)(scale * exact_cos(MEL_PI * (double)part / (2.0 * mel->n_mels)));

			for (size_t t = 0; t < mel->frames; t++)
				out[t] += weight * band[t];
		}
	}
}

/* Decibels are no less than 80 below the loudest, as of torchaudio's MFCC. */
static void mel_cepstra(const struct mel *mel, const struct op *op, float *bands, float *out)
{
	const size_t one = (size_t)mel->n_mels * mel->frames, n = one * mel->channels;

	if (op_number(op, OP_MFCC_LOG_MELS, 0) != 0) {
		for (size_t i = 0; i < n; i++)
			bands[i] += 1e-6f;
		mel_to_log(bands, n, 1);
	} else {
		mel_to_log(bands, n, (float)(10 / MEL_LN_10));
		mel_raise(bands, n, 80);
	}
	for (unsigned c = 0; c < mel->channels; c++)
		mel_cosines(mel, !op_is_null(op, OP_MFCC_NORM), bands + c * one,
			    out + (size_t)c * mel->n_mfcc * mel->frames);
}

static void mel_fill(float *out, size_t n, float value)
{
	for (size_t i = 0; i < n; i++)
		out[i] = value;
}

/* rows: of each channel */
static void mel_mask(const struct mel *mel, const struct op *op, const struct op_drawn *drawn,
		     uint32_t rows, float *out)
{
	const bool is_time = op->id == OP_TIME_MASKING;
	const float value = (float)op_number(
	    op, is_time ? OP_TIME_MASKING_MASK_VALUE : OP_FREQUENCY_MASKING_MASK_VALUE, 0);
	const size_t begin = (size_t)drawn->number[0], end = (size_t)drawn->number[1];

	for (size_t row = 0; row < (size_t)rows * mel->channels; row++) {
		const size_t band = row % rows;

		if (is_time)
			mel_fill(out + row * mel->frames + begin, end - begin, value);
		else if (band >= begin && band < end)
			mel_fill(out + row * mel->frames, mel->frames, value);
	}
}

float *mel_room_at(struct mel_room *room, float *out)
{
	return room->bands ? room->bands : out;
}

void mel_finish(struct mel_room *room, const struct op_list *ops, const struct pipeline_key *key,
		float *out)
{
	const struct mel *mel = &room->mel;
	float *at = mel_room_at(room, out);
	uint32_t rows = mel->n_mels;
	struct draw draw;

	draw_init(&draw, key);
	for (unsigned i = mel->first + 1; i < mel->end; i++) {
		const struct op *op = &ops->op[i];
		const size_t n = (size_t)rows * mel->frames * mel->channels;
		struct op_drawn drawn;

		switch (op->id) {
		case OP_NORMALIZE:
			mel_normalize(op, n, at);
			break;
		case OP_AMPLITUDE_TO_DB:
			mel_decibels(op, n, at);
			break;
		case OP_MFCC:
			mel_cepstra(mel, op, at, out);
			at = out;
			rows = mel->n_mfcc;
			break;
		default:
			op_draw(op, i, &draw, rows, mel->frames, &drawn);
			mel_mask(mel, op, &drawn, rows, at);
		}
	}
}
