/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops on waveforms, and what stands behind spectrograms: against what torchaudio and transformers made of the same waveform
 * (golden_wave.tsv, by parity_wave.py), what is drawn, what the noise is, zeros behind a sound, what is refused.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "pipeline/ops/op_run.h"
#include "pipeline/sound/mel.h"
#include "pipeline/sound/sound.h"
#include "pipeline/sound/wave.h"
#include "pipeline/spec/spec.h"
#include "tests/data.h"
#include "tests/suite.h"

#define MOST_WAVE 64000
#define LINES 27

static struct op_list ops;
static struct wave wave;
static struct mel mel;
static float sound[MOST_WAVE], spare[MOST_WAVE];

/* behind: ops, without brackets */
static int compile(const char *behind, unsigned rate, unsigned channels, unsigned frames,
		   struct diag *diag)
{
	char text[2000];
	const int size =
	    snprintf(text, sizeof(text), "[{\"op\":\"audio\",\"sample_rate\":%u,\"frames\":%u},%s]",
		     rate, frames, behind);
	int r = spec_parse(text, (size_t)size, &ops, diag);

	r = r ? r : wave_init(&ops, ops.count, rate, frames, &wave, diag);
	return r ? r : mel_init(&ops, wave.end, ops.count, rate, frames, channels, &mel, diag);
}

static void must_compile(const char *behind, unsigned rate, unsigned channels, unsigned frames)
{
	struct diag diag;

	ck_assert_msg(compile(behind, rate, channels, frames, &diag) == 0, "%s: %s", behind,
		      diag.text);
}

/* As parity_mel.py's; channel c is divided by c + 1. */
static void make_sound(unsigned channels, unsigned frames, unsigned has)
{
	for (int64_t i = 0; i < (int64_t)frames * channels; i++) {
		const int64_t at = i % frames;
		const int64_t whole = (at * (at % 977) * 31 + (at >> 3) * 7919) & 0xffff;
		const float value = (float)(whole - 32768) / 65536 / (float)(1 + at / 4000);

		sound[i] = at < has ? value / (float)(1 + i / frames) : 0;
	}
}

/* ---- the golden file ---- */

/* The line's ops on its waveform; *ret_n numbers, of which the caller has them. */
static double *made(unsigned channels, unsigned frames, unsigned has, size_t *ret_n)
{
	const struct pipeline_key key = {1, 2, 3};
	const size_t n =
	    mel.n_mels ? (size_t)mel_rows(&mel) * mel.frames * channels : (size_t)frames * channels;
	_cleanup_free_ float *out = malloc(n * sizeof(*out));
	_cleanup_free_ int64_t *codes = malloc(n * sizeof(*codes));
	double *ret = malloc(n * sizeof(*ret));
	struct mel_room *room = NULL;

	make_sound(channels, frames, has);
	wave_run(&wave, &ops, &key, channels, frames, has, sound, spare);
	if (wave.codes)
		wave_encode(&wave, sound, n, codes);
	if (mel.n_mels) {
		ck_assert_int_eq(mel_room_new(&mel, mel_best(), &room), 0);
		for (unsigned c = 0; c < channels; c++)
			mel_run(room, sound + (size_t)c * frames, has,
				mel_room_at(room, out) + (size_t)c * mel.n_mels * mel.frames);
		mel_finish(room, &ops, &key, out);
		mel_room_free(room);
	} else {
		memcpy(out, sound, n * sizeof(*out));
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = wave.codes ? (double)codes[i] : (double)out[i];
	*ret_n = n;
	return ret;
}

static void check_line(char *at, size_t line)
{
	char *list = strsep(&at, "\t");
	const unsigned rate = (unsigned)atoi(strsep(&at, "\t"));
	const unsigned channels = (unsigned)atoi(strsep(&at, "\t"));
	const unsigned frames = (unsigned)atoi(strsep(&at, "\t"));
	const unsigned has = (unsigned)atoi(strsep(&at, "\t"));
	const double most = atof(strsep(&at, "\t")), tolerance = atof(strsep(&at, "\t")) * most;
	_cleanup_free_ double *out = NULL;
	size_t n, of = 0;

	list[strlen(list) - 1] = '\0';
	must_compile(list + 1, rate, channels, frames);
	out = made(channels, frames, has, &n);
	ck_assert_uint_eq(n, (unsigned)atoi(strsep(&at, "\t")));
	for (; at; of++) {
		const size_t place = of * (n - 1) / 96;
		const double wanted = atof(strsep(&at, "\t"));

		ck_assert_msg(fabs(out[place] - wanted) <= tolerance,
			      "line %zu, number %zu: %.9g, not %.9g within %g", line, of,
			      out[place], wanted, tolerance);
	}
	ck_assert_uint_eq(of, 97);
}

START_TEST(like_torchaudio)
{
	FILE *file = data_open("pipeline", "golden_wave.tsv");
	_cleanup_free_ char *line = NULL;
	size_t room = 0, lines = 0;

	while (getline(&line, &room, file) > 0)
		check_line(line, ++lines);
	fclose(file);
	ck_assert_uint_eq(lines, LINES);
}
END_TEST

/* ---- what is drawn ---- */

static const struct {
	const char *op;
	double least, most; /* of the second number; equal: not looked at */
	double share;       /* of samples that it is done to */
	bool is_random;
} draws[] = {
    {"{\"op\":\"vol\",\"gain\":[-6,12],\"gain_type\":\"db\",\"p\":0.25}", -6, 12, 0.25, true},
    {"{\"op\":\"vol\",\"gain\":[0.5,1.5]}", 0.5, 1.5, 1, true},
    {"{\"op\":\"vol\",\"gain\":2}", 2, 2, 1, false},
    {"{\"op\":\"vol\",\"gain\":2,\"p\":0.5}", 2, 2, 0.5, true},
    {"{\"op\":\"vol\",\"gain\":[1,2],\"p\":0}", 1, 1, 0, false},
    {"{\"op\":\"polarity_inversion\"}", 0, 0, 0.5, true},
    {"{\"op\":\"polarity_inversion\",\"p\":1}", 0, 0, 1, false},
    {"{\"op\":\"add_noise\",\"snr\":[5,30],\"p\":0.75}", 5, 30, 0.75, true},
    {"{\"op\":\"add_noise\",\"snr\":10}", 10, 10, 1, true},
    {"{\"op\":\"add_noise\",\"snr\":10,\"p\":0}", 10, 10, 0, false},
    {"{\"op\":\"low_pass\",\"cutoff_freq\":[500,4000]}", 500, 4000, 1, true},
    {"{\"op\":\"high_pass\",\"cutoff_freq\":[20,400],\"p\":0.5}", 20, 400, 0.5, true},
    {"{\"op\":\"high_pass\",\"cutoff_freq\":200}", 200, 200, 1, false},
    {"{\"op\":\"preemphasis\"}", 0, 0, -1, false},
    {"{\"op\":\"fade\",\"fade_in_len\":5}", 0, 0, -1, false},
    {"{\"op\":\"standardize\"}", 0, 0, -1, false},
    {"{\"op\":\"mu_law_encoding\"}", 0, 0, -1, false},
};

/* Uniform, in as many samples as was asked for, and the same again of the same key. */
START_TEST(drawn)
{
	const double least = draws[_i].least, most = draws[_i].most;
	unsigned done = 0, tenths[10] = {0};
	struct op_drawn one, again;
	struct draw draw;

	must_compile(draws[_i].op, 16000, 1, 6000);
	ck_assert(op_is_random(&ops.op[1]) == draws[_i].is_random);
	for (uint64_t sample = 0; sample < 10000 && draws[_i].share >= 0; sample++) {
		draw_init(&draw, &(struct pipeline_key){1, 2, sample});
		op_draw(&ops.op[1], 1, &draw, 1, 6000, &one);
		op_draw(&ops.op[1], 1, &draw, 1, 6000, &again);
		ck_assert_mem_eq(one.number, again.number, sizeof(one.number));
		done += one.number[0] != 0;
		if (least == most)
			continue;
		ck_assert(one.number[1] >= least && one.number[1] < most);
		tenths[(unsigned)((one.number[1] - least) / (most - least) * 10)]++;
	}
	if (draws[_i].share >= 0) /* five deviations */
		ck_assert(fabs(done / 10000.0 - draws[_i].share) <= 0.025 &&
			  (done == 0 || draws[_i].share > 0) &&
			  (done == 10000 || draws[_i].share < 1));
	for (unsigned i = 0; i < 10 && least != most; i++)
		ck_assert_msg(tenths[i] > 850 && tenths[i] < 1150, "%u: %u", i, tenths[i]);
}
END_TEST

/* Frozen: a change is another pipeline. */
START_TEST(frozen)
{
	struct op_drawn numbers;
	struct draw draw;

	must_compile("{\"op\":\"vol\",\"gain\":[0,100]},{\"op\":\"add_noise\",\"snr\":[0,100]}",
		     16000, 1, 6000);
	draw_init(&draw, &(struct pipeline_key){1, 2, 3});
	op_draw(&ops.op[1], 1, &draw, 1, 6000, &numbers);
	ck_assert_msg(fabs(numbers.number[1] - 1.60498808868) < 1e-9, "%.12g", numbers.number[1]);
	op_draw(&ops.op[2], 2, &draw, 1, 6000, &numbers);
	ck_assert_msg(fabs(numbers.number[1] - 59.6247582738) < 1e-9, "%.12g", numbers.number[1]);
}
END_TEST

/* ---- noise ---- */

/* Added to both channels: of the energy that was drawn, normal, white, and another one in each and for each sample. */
START_TEST(noise)
{
	static float was[MOST_WAVE], other[MOST_WAVE];
	const unsigned frames = MOST_WAVE / 2, has = frames - 3001;
	double moment[5] = {0}, signal[2] = {0}, energy[2] = {0}, with[3] = {0};

	must_compile("{\"op\":\"add_noise\",\"snr\":12}", 16000, 2, frames);
	make_sound(2, frames, has);
	memcpy(was, sound, sizeof(was));
	wave_run(&wave, &ops, &(struct pipeline_key){1, 2, 4}, 2, frames, has, sound, spare);
	memcpy(other, sound, sizeof(other));
	memcpy(sound, was, sizeof(was));
	wave_run(&wave, &ops, &(struct pipeline_key){1, 2, 3}, 2, frames, has, sound, spare);
	for (unsigned i = 0; i < 2 * frames; i++) {
		const double value = (double)sound[i] - (double)was[i];

		signal[i / frames] += (double)was[i] * (double)was[i];
		energy[i / frames] += value * value;
		if (i % frames >= has)
			ck_assert_float_eq(sound[i], 0);
	}
	for (unsigned c = 0; c < 2; c++)
		ck_assert_double_eq_tol(10 * log10(signal[c] / energy[c]), 12, 1e-4);
	for (unsigned i = 0; i < has; i++) {
		const double scale = sqrt(energy[0] / has);
		const double value = (double)(sound[i] - was[i]) / scale;

		for (unsigned power = 1; power < 5; power++)
			moment[power] += pow(value, power) / has;
		with[0] += value * (double)(sound[i + 1] - was[i + 1]) / scale / has;
		with[1] += value * (double)(sound[frames + i] - was[frames + i]) / scale / has;
		with[2] += value * (double)(other[i] - was[i]) / scale / has;
	}
	ck_assert_double_lt(fabs(moment[1]), 0.03); /* five deviations are 0.03, 0.07, 0.14 */
	ck_assert_double_lt(fabs(moment[3]), 0.07);
	ck_assert_double_lt(fabs(moment[4] - 3), 0.15);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_double_lt(fabs(with[i]), 0.03);
}
END_TEST

/* Silence has no energy, so it gets no noise; a sound without a frame stays nothing, whatever is done to it. */
START_TEST(silence)
{
	const struct pipeline_key key = {1, 2, 3};

	must_compile("{\"op\":\"add_noise\",\"snr\":0},{\"op\":\"low_pass\",\"cutoff_freq\":500},"
		     "{\"op\":\"fade\",\"fade_in_len\":9,\"fade_out_len\":9},{\"op\":"
		     "\"preemphasis\"},{\"op\":\"standardize\"}",
		     16000, 1, 1000);
	for (unsigned has = 0; has <= 1000; has = has * 10 + 1) {
		memset(sound, 0, sizeof(sound));
		wave_run(&wave, &ops, &key, 1, 1000, has, sound, spare);
		for (unsigned i = 0; i < 1000; i++)
			ck_assert_float_eq(sound[i], 0);
	}
	make_sound(1, 1000, 1000);
	wave_run(&wave, &ops, &key, 1, 1000, 1, sound + 1, spare);
	ck_assert(isfinite(sound[1]));
	must_compile("{\"op\":\"standardize\",\"eps\":0}", 16000, 1, 1000);
	wave_run(&wave, &ops, &key, 1, 1000, 1, sound + 1, spare);
	ck_assert_float_eq(sound[1], 0);
}
END_TEST

/* Codes of what is louder than 1, of infinities and of what is no number. */
START_TEST(codes)
{
	static const float numbers[] = {-2, -1, -0.0f, 0, 1, 2, INFINITY, -INFINITY, NAN};
	static const int64_t wanted[] = {0, 0, 128, 128, 255, 255, 255, 0, 128};
	int64_t out[BASE_ARRAY_LEN(numbers)];

	must_compile("{\"op\":\"mu_law_encoding\"}", 16000, 1, 100);
	wave_encode(&wave, numbers, BASE_ARRAY_LEN(numbers), out);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(numbers); i++)
		ck_assert_msg(out[i] == wanted[i], "%u: %lld", i, (long long)out[i]);
}
END_TEST

/* ---- speeds ---- */

START_TEST(speeds)
{
	struct sound of = {.rate = 16000, .frames = 100, .n_speeds = 3, .speed = {0.9, 1, 1.1}};
	unsigned count[3] = {0};
	struct philox_seq seq;

	for (uint64_t sample = 0; sample < 3000; sample++) {
		struct sound_ratio ratio;

		philox_seq_init(&seq, 1, sample, 0);
		ratio = sound_ratio(&of, 44100, &seq);
		count[ratio.to == 16000 ? 1 : ratio.from > 44100 * UINT64_C(16000) ? 2 : 0]++;
		if (ratio.to != 16000)
			ck_assert(ratio.to == UINT64_C(16000) * 16000 &&
				  (ratio.from == UINT64_C(44100) * 14400 ||
				   ratio.from == UINT64_C(44100) * 17600));
		else
			ck_assert_uint_eq(ratio.from, 44100);
	}
	for (unsigned i = 0; i < 3; i++)
		ck_assert(count[i] > 850 && count[i] < 1150);
	of.n_speeds = 0;
	ck_assert_uint_eq(sound_ratio(&of, 8000, &seq).from, 8000);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(refused)
{
	static const struct {
		const char *behind, *words;
	} table[] = {
	    {"{\"op\":\"vol\"}", "gain is missing"},
	    {"{\"op\":\"vol\",\"gain\":-1}", "gain is below 0"},
	    {"{\"op\":\"vol\",\"gain\":[-1,1],\"gain_type\":\"power\"}", "gain is below 0"},
	    {"{\"op\":\"vol\",\"gain\":201,\"gain_type\":\"db\"}", "above 200 decibels"},
	    {"{\"op\":\"vol\",\"gain\":1,\"gain_type\":\"dB\"}", "amplitude, power or db"},
	    {"{\"op\":\"vol\",\"gain\":[2,1]}", "gain"},
	    {"{\"op\":\"fade\",\"fade_in_len\":6001}", "a fade is longer than audio's frames"},
	    {"{\"op\":\"fade\",\"fade_out_len\":6001}", "a fade is longer"},
	    {"{\"op\":\"low_pass\",\"cutoff_freq\":8001}", "above half of audio's sample_rate"},
	    {"{\"op\":\"high_pass\",\"cutoff_freq\":[1,9000]}", "above half"},
	    {"{\"op\":\"add_noise\"}", "snr is missing"},
	    {"{\"op\":\"mu_law_encoding\"},{\"op\":\"vol\",\"gain\":1}", "put it last"},
	    {"{\"op\":\"mu_law_encoding\"},{\"op\":\"spectrogram\"}", "put it last"},
	    {"{\"op\":\"mu_law_encoding\",\"quantization_channels\":1}", "from 2 to 65536"},
	    {"{\"op\":\"spectrogram\"},{\"op\":\"standardize\"}",
	     "op 3 (standardize) is of waveforms; put it before the spectrogram"},
	    {"{\"op\":\"spectrogram\"},{\"op\":\"mel_spectrogram\"}", "there is one already"},
	    {"{\"op\":\"spectrogram\",\"n_fft\":401}", "no even product of 2, 3 and 5"},
	    {"{\"op\":\"spectrogram\"},{\"op\":\"mfcc\"}", "is of mel_spectrogram's bands"},
	    {"{\"op\":\"mfcc\"}", "put mel_spectrogram before it"},
	    {"{\"op\":\"mel_spectrogram\"},{\"op\":\"mfcc\"},{\"op\":\"mfcc\"}", "once"},
	    {"{\"op\":\"mel_spectrogram\",\"log\":\"ln\"},{\"op\":\"mfcc\"}",
	     "takes the logarithm"},
	    {"{\"op\":\"mel_spectrogram\",\"n_mels\":30},{\"op\":\"mfcc\"}", "above"},
	    {"{\"op\":\"amplitude_to_db\"}", "put mel_spectrogram before it"},
	    {"{\"op\":\"vol\",\"gain\":1},{\"op\":\"hflip\"}", "op 3 (hflip) works on pictures"},
	};
	struct diag diag;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		ck_assert_int_eq(compile(table[i].behind, 16000, 1, 6000, &diag), PIPELINE_E_BAD);
		ck_assert_msg(strstr(diag.text, table[i].words) != NULL, "%s: %s", table[i].behind,
			      diag.text);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, like_torchaudio);
	tcase_add_loop_test(tcase, drawn, 0, (int)BASE_ARRAY_LEN(draws));
	tcase_add_test(tcase, frozen);
	tcase_add_test(tcase, noise);
	tcase_add_test(tcase, silence);
	tcase_add_test(tcase, codes);
	tcase_add_test(tcase, speeds);
	tcase_add_test(tcase, refused);
}

int main(void)
{
	return suite_run("wave", add);
}
