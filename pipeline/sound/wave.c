/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ops on waveforms do. Names, defaults and arithmetic are torchaudio's, but for standardize, which is that of
 * transformers' Wav2Vec2FeatureExtractor. Numbers that an op needs one of are computed in double, and what happens to each
 * frame in float32, as there.
 *
 * What is drawn is drawn once for all channels, but the noise. drawn->number[0] says whether the op is done at all.
 */

#include "pipeline/sound/wave.h"

#include <math.h>

#include "base/exact.h"
#include "pipeline/ops/op_run.h"

#define WAVE_PI 3.14159265358979323846
#define WAVE_LN_10 2.30258509299404568402
#define WAVE_MOST_DB 200

/* Of ops that are done by chance: that, and the parameter that a number is drawn from; -1: there is none. */
static const struct wave_chance {
	unsigned p;
	int span;
} wave_chances[OP_COUNT] = {
    [OP_VOL] = {OP_VOL_P, OP_VOL_GAIN},
    [OP_POLARITY_INVERSION] = {OP_POLARITY_INVERSION_P, -1},
    [OP_ADD_NOISE] = {OP_ADD_NOISE_P, OP_ADD_NOISE_SNR},
    [OP_LOW_PASS] = {OP_LOW_PASS_P, OP_LOW_PASS_CUTOFF_FREQ},
    [OP_HIGH_PASS] = {OP_HIGH_PASS_P, OP_HIGH_PASS_CUTOFF_FREQ},
};

static bool wave_varies(const struct op *op)
{
	const struct wave_chance *chance = &wave_chances[op->id];

	return op_varies(op, chance->p,
			 chance->span >= 0 && op_is_span(op, (unsigned)chance->span));
}

static void wave_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	const struct wave_chance *chance = &wave_chances[op->id];
	const double *span = op->value[BASE_MAX(chance->span, 0)].number;

	(void)height, (void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, chance->p, 0));
	if (chance->span >= 0)
		drawn->number[1] = draw_between(&drawn->seq, span[0], span[1]);
}

static double wave_of_db(double db)
{
	return exact_exp(db * WAVE_LN_10 / 20);
}

static float wave_cut(double x)
{
	return (float)(x < -1 ? -1 : x > 1 ? 1 : x);
}

/* ---- loudness and sign ---- */

enum wave_gain { WAVE_AMPLITUDE = 0, WAVE_POWER = 1, WAVE_DB = 2 }; /* as op_gain_words */

static double wave_factor(const struct op *op, double gain)
{
	switch ((enum wave_gain)op_number(op, OP_VOL_GAIN_TYPE, 0)) {
	case WAVE_POWER:
		return sqrt(BASE_MAX(gain, 1e-10));
	case WAVE_DB:
		return wave_of_db(gain);
	default:
		return gain;
	}
}

static void wave_vol(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	const float factor = (float)wave_factor(op, drawn->number[1]);
	const bool cuts = op_number(op, OP_VOL_CLAMP, 0) != 0;

	for (size_t i = 0; i < part->n; i++) {
		const float x = part->at[i] * factor;

		part->at[i] = cuts ? wave_cut((double)x) : x;
	}
}

const struct op_impl wave_vol_op = {
    .stage = OP_STAGE_WAVE, .draw = wave_draw, .is_random = wave_varies, .wave = wave_vol};

static void wave_invert(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	(void)op, (void)drawn;
	for (size_t i = 0; i < part->n; i++)
		part->at[i] = -part->at[i];
}

const struct op_impl wave_invert_op = {
    .stage = OP_STAGE_WAVE, .draw = wave_draw, .is_random = wave_varies, .wave = wave_invert};

enum wave_shape { /* as op_fade_words */
		  WAVE_LINEAR = 0,
		  WAVE_EXPONENTIAL = 1,
		  WAVE_LOGARITHMIC = 2,
		  WAVE_QUARTER_SINE = 3,
		  WAVE_HALF_SINE = 4
};

/* Of the sound's begin, x from 0 to 1; its end goes through the same numbers the other way. */
static float wave_fading(enum wave_shape shape, double x)
{
	switch (shape) {
	case WAVE_EXPONENTIAL:
		return (float)(exact_exp((x - 1) * 0.693147180559945309) * x);
	case WAVE_LOGARITHMIC:
		return wave_cut(exact_log(0.1 + x) / WAVE_LN_10 + 1);
	case WAVE_QUARTER_SINE:
		return (float)exact_sin(x * WAVE_PI / 2);
	case WAVE_HALF_SINE:
		return (float)(exact_sin(x * WAVE_PI - WAVE_PI / 2) / 2 + 0.5);
	default:
		return (float)x;
	}
}

static void wave_fade(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	const enum wave_shape shape = (enum wave_shape)op_number(op, OP_FADE_FADE_SHAPE, 0);

	(void)drawn;
	for (unsigned out = 0; out < 2; out++) {
		const double given =
		    op_number(op, out ? OP_FADE_FADE_OUT_LEN : OP_FADE_FADE_IN_LEN, 0);
		const size_t length = BASE_MIN((size_t)given, part->n);

		for (size_t i = 0; i < length; i++)
			part->at[out ? part->n - 1 - i : i] *=
			    wave_fading(shape, length > 1 ? (double)i / (double)(length - 1) : out);
	}
}

const struct op_impl wave_fade_op = {.stage = OP_STAGE_WAVE, .wave = wave_fade};

/* ---- noise ---- */

/* As of torchaudio's add_noise(): the ratio of both energies is the one drawn, and so it is exactly. Silence stays. */
static void wave_noise(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	double signal = 0, noise = 0;
	float scale, pair[2];

	(void)op;
	for (size_t i = 0; i < part->n; i++) {
		if (i % 2 == 0)
			draw_normal_floats(&drawn->seq, pair);
		part->spare[i] = pair[i % 2];
		noise += (double)pair[i % 2] * (double)pair[i % 2];
		signal += (double)part->at[i] * (double)part->at[i];
	}
	scale = (float)(noise > 0 ? sqrt(signal / noise) * wave_of_db(-drawn->number[1]) : 0);
	for (size_t i = 0; i < part->n; i++)
		part->at[i] += scale * part->spare[i];
}

static bool wave_noise_varies(const struct op *op)
{
	return op_number(op, OP_ADD_NOISE_P, 0) > 0;
}

const struct op_impl wave_noise_op = {
    .stage = OP_STAGE_WAVE, .draw = wave_draw, .is_random = wave_noise_varies, .wave = wave_noise};

/* ---- filters ---- */

static void wave_preemphasis(const struct op *op, struct op_drawn *drawn,
			     const struct wave_part *part)
{
	const float coeff = (float)op_number(op, OP_PREEMPHASIS_COEFF, 0);

	(void)drawn;
	for (size_t i = part->n; i-- > 1;)
		part->at[i] -= coeff * part->at[i - 1];
}

const struct op_impl wave_preemphasis_op = {.stage = OP_STAGE_WAVE, .wave = wave_preemphasis};

/* Two poles, two zeros; as there, what comes out is cut off at -1 and 1, and what goes back in is not. */
static void wave_biquad(const double b[3], const double a[3], const struct wave_part *part)
{
	double x[2] = {0}, y[2] = {0};

	for (size_t i = 0; i < part->n; i++) {
		const double now = (double)part->at[i];
		const double made =
		    (b[0] * now + b[1] * x[0] + b[2] * x[1] - a[1] * y[0] - a[2] * y[1]) / a[0];

		x[1] = x[0];
		x[0] = now;
		y[1] = y[0];
		y[0] = fabs(made) > 1e-30 || isnan(made) ? made : 0; /* what is subnormal is slow */
		part->at[i] = wave_cut(made);
	}
}

static void wave_pass(double q, double frequency, bool is_high, const struct wave_part *part)
{
	const double w = 2 * WAVE_PI * frequency / part->rate, cosine = exact_cos(w);
	const double alpha = exact_sin(w) / 2 / q, side = is_high ? 1 + cosine : 1 - cosine;
	const double b[3] = {side / 2, is_high ? -side : side, side / 2};
	const double a[3] = {1 + alpha, -2 * cosine, 1 - alpha};

	wave_biquad(b, a, part);
}

static void wave_low(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	wave_pass(op_number(op, OP_LOW_PASS_Q, 0), drawn->number[1], false, part);
}

const struct op_impl wave_low_op = {
    .stage = OP_STAGE_WAVE, .draw = wave_draw, .is_random = wave_varies, .wave = wave_low};

static void wave_high(const struct op *op, struct op_drawn *drawn, const struct wave_part *part)
{
	wave_pass(op_number(op, OP_HIGH_PASS_Q, 0), drawn->number[1], true, part);
}

const struct op_impl wave_high_op = {
    .stage = OP_STAGE_WAVE, .draw = wave_draw, .is_random = wave_varies, .wave = wave_high};

/* ---- what a model takes in ---- */

static void wave_standardize(const struct op *op, struct op_drawn *drawn,
			     const struct wave_part *part)
{
	double sum = 0, squares = 0, mean, deviation;

	(void)drawn;
	for (size_t i = 0; i < part->n; i++)
		sum += (double)part->at[i];
	mean = sum / (double)BASE_MAX(part->n, (size_t)1);
	for (size_t i = 0; i < part->n; i++)
		squares += ((double)part->at[i] - mean) * ((double)part->at[i] - mean);
	deviation = sqrt(squares / (double)BASE_MAX(part->n, (size_t)1) +
			 op_number(op, OP_STANDARDIZE_EPS, 0));
	deviation = deviation > 0 ? deviation : 1; /* silence, and eps is 0 */
	for (size_t i = 0; i < part->n; i++)
		part->at[i] = (float)(((double)part->at[i] - mean) / deviation);
}

const struct op_impl wave_standardize_op = {.stage = OP_STAGE_WAVE, .wave = wave_standardize};
const struct op_impl wave_mu_law_op = {.stage = OP_STAGE_WAVE};

/* A code's place between two others. NaN is silence. */
static double wave_code(double x, double mu, double whole)
{
	const double size = BASE_MIN(fabs(x), 1e6);

	return ((x < 0 ? -1 : 1) * log(1 + mu * size) / whole + 1) / 2 * mu + 0.5;
}

void wave_encode(const struct wave *wave, const float *at, size_t n, int64_t *out)
{
	const double mu = wave->codes - 1.0, whole = exact_log(1 + mu);

	for (size_t i = 0; i < n; i++) {
		const double x = isnan(at[i]) ? 0 : (double)at[i];
		double code = wave_code(x, mu, whole);

		if (!exact_is_sure(code - 0.5)) /* libm's logarithm would decide */
			code =
			    ((x < 0 ? -1 : 1) * exact_log(1 + mu * BASE_MIN(fabs(x), 1e6)) / whole +
			     1) /
				2 * mu +
			    0.5;
		out[i] = (int64_t)BASE_MAX(0, BASE_MIN(floor(code), mu));
	}
}

/* ---- all of them ---- */

static const char *wave_check_vol(const struct op *op)
{
	const double least = op_number(op, OP_VOL_GAIN, 0), most = op_number(op, OP_VOL_GAIN, 1);

	if ((enum wave_gain)op_number(op, OP_VOL_GAIN_TYPE, 0) != WAVE_DB)
		return least < 0 ? "gain is below 0, which only decibels may be: give "
				   "\"gain_type\": \"db\", or 0 or more"
				 : NULL;
	return most > WAVE_MOST_DB ? "gain is above 200 decibels; give less" : NULL;
}

/* What is wrong with an op on a waveform, how to mend it, too; else NULL. */
static const char *wave_check(const struct op *op, uint32_t rate, uint32_t frames)
{
	switch (op->id) {
	case OP_VOL:
		return wave_check_vol(op);
	case OP_FADE:
		return op_number(op, OP_FADE_FADE_IN_LEN, 0) > frames ||
			       op_number(op, OP_FADE_FADE_OUT_LEN, 0) > frames
			   ? "a fade is longer than audio's frames; give at most as many"
			   : NULL;
	case OP_LOW_PASS:
	case OP_HIGH_PASS:
		return op_number(op, OP_LOW_PASS_CUTOFF_FREQ, 1) * 2 > rate
			   ? "cutoff_freq is above half of audio's sample_rate, where a sound has "
			     "nothing; give less"
			   : NULL;
	default:
		return NULL;
	}
}

int wave_init(const struct op_list *ops, unsigned end, uint32_t rate, uint32_t frames,
	      struct wave *ret, struct diag *diag)
{
	struct wave wave = {.end = 1, .rate = rate};

	for (; wave.end < end && op_impl(ops->op[wave.end].id)->stage == OP_STAGE_WAVE;
	     wave.end++) {
		const struct op *op = &ops->op[wave.end];
		const char *wrong = wave_check(op, rate, frames);

		if (op->id == OP_MU_LAW_ENCODING && wave.end + 1 < end)
			wrong = "it makes codes, and nothing that works on sounds may stand behind "
				"it; put it last";
		if (wrong)
			return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s",
					 wave.end + 1, op_name(op->id), wrong);
		if (op->id == OP_MU_LAW_ENCODING)
			wave.codes =
			    (uint32_t)op_number(op, OP_MU_LAW_ENCODING_QUANTIZATION_CHANNELS, 0);
	}
	*ret = wave;
	return 0;
}

void wave_run(const struct wave *wave, const struct op_list *ops, const struct pipeline_key *key,
	      unsigned channels, size_t frames, int64_t has, float *at, float *spare)
{
	const size_t n = (size_t)BASE_MAX(0, BASE_MIN(has, (int64_t)frames));
	struct draw draw;

	draw_init(&draw, key);
	for (unsigned i = 1; i < wave->end; i++) {
		const struct op_impl *impl = op_impl(ops->op[i].id);
		struct op_drawn drawn;

		op_draw(&ops->op[i], i, &draw, 1, (uint32_t)frames, &drawn);
		if (!impl->wave || (impl->draw && drawn.number[0] == 0))
			continue;
		for (unsigned c = 0; c < channels; c++)
			impl->wave(&ops->op[i], &drawn,
				   &(struct wave_part){at + c * frames, n, wave->rate, spare});
	}
}
