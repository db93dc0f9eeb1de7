/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mel spectrograms: against what torchaudio and transformers made of the same waveform (golden_mel.tsv, by parity_mel.py), the
 * same bits by each machine's loops, silence, what masks draw, what is refused.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "pipeline/ops/op_run.h"
#include "pipeline/sound/mel.h"
#include "pipeline/spec/spec.h"
#include "tests/data.h"
#include "tests/suite.h"

#define MOST_WAVE 32000
#define TOLERANCE 1e-4 /* of the largest number */

static struct op_list ops;
static float wave[MOST_WAVE];

static int compile(const char *behind, unsigned rate, unsigned frames, struct mel *ret,
		   struct diag *diag)
{
	char text[2000];
	const int size =
	    snprintf(text, sizeof(text), "[{\"op\":\"audio\",\"sample_rate\":%u,\"frames\":%u},%s]",
		     rate, frames, behind);
	int r = spec_parse(text, (size_t)size, &ops, diag);

	return r ? r : mel_init(&ops, 1, ops.count, rate, frames, 1, ret, diag);
}

/* As parity_mel.py's. */
static void make_wave(unsigned frames, unsigned has)
{
	for (int64_t i = 0; i < frames; i++) {
		const int64_t whole = (i * (i % 977) * 31 + (i >> 3) * 7919) & 0xffff;

		wave[i] = i < has ? (float)(whole - 32768) / 65536 / (float)(1 + i / 4000) : 0;
	}
}

static float *run(const struct mel *mel, mel_fn *fn, unsigned has)
{
	float *out = malloc((size_t)mel->n_mels * mel->frames * sizeof(*out));
	struct mel_room *room;

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(mel_room_new(mel, fn, &room), 0);
	make_wave(mel->wave, has);
	mel_run(room, wave, has, out);
	mel_room_free(room);
	return out;
}

/* ---- the golden file ---- */

static FILE *golden(void)
{
	return data_open("pipeline", "golden_mel.tsv");
}

/* {"n_fft": 512} as an op; what it is of. */
static void read_line(char **at, struct mel *ret, unsigned *ret_has)
{
	const char *parameters = strsep(at, "\t");
	const unsigned rate = (unsigned)atoi(strsep(at, "\t"));
	const unsigned frames = (unsigned)atoi(strsep(at, "\t"));
	struct diag diag;
	char op[500];

	*ret_has = (unsigned)atoi(strsep(at, "\t"));
	snprintf(op, sizeof(op), "{\"op\":\"mel_spectrogram\"%s%s",
		 strlen(parameters) > 2 ? "," : "", parameters + 1);
	ck_assert_msg(compile(op, rate, frames, ret, &diag) == 0, "%s: %s", op, diag.text);
}

START_TEST(like_torchaudio)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0, lines = 0;
	FILE *file = golden();

	for (; getline(&line, &room, file) > 0; lines++) {
		char *at = line;
		double most;
		size_t n, of = 0;
		unsigned has;
		struct mel mel;
		float *out;

		read_line(&at, &mel, &has);
		ck_assert_uint_eq(mel.n_mels, (unsigned)atoi(strsep(&at, "\t")));
		ck_assert_uint_eq(mel.frames, (unsigned)atoi(strsep(&at, "\t")));
		most = atof(strsep(&at, "\t"));
		out = run(&mel, mel_best(), has);
		n = (size_t)mel.n_mels * mel.frames;
		for (; at; of++) {
			const size_t place = of * (n - 1) / 96;
			const double wanted = atof(strsep(&at, "\t"));

			ck_assert_msg(fabs((double)out[place] - wanted) <= TOLERANCE * most,
				      "line %zu, number %zu: %.9g, not %.9g of %g", lines + 1,
				      place, (double)out[place], wanted, most);
		}
		ck_assert_uint_eq(of, 97);
		free(out);
	}
	fclose(file);
	ck_assert_uint_eq(lines, 11);
}
END_TEST

/* Whatever loops there are. */
START_TEST(the_same_bits)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	FILE *file = golden();

	while (getline(&line, &room, file) > 0) {
		char *at = line;
		struct mel mel;
		unsigned has;
		float *plain, *best;

		read_line(&at, &mel, &has);
		plain = run(&mel, mel_plain, has);
		best = run(&mel, mel_best(), has);
		ck_assert_mem_eq(plain, best, (size_t)mel.n_mels * mel.frames * sizeof(*plain));
		free(plain);
		free(best);
	}
	fclose(file);
}
END_TEST

/* ---- silence ---- */

/* Frames that are not computed are what they would be, and a loud window next to them leaves nothing in them. */
START_TEST(silence)
{
	static const unsigned has[] = {0, 1, 399, 1000, 2359, 4000, 5800, 5999, 6000};
	struct diag diag;
	struct mel mel;
	float *one, *other;
	struct mel_room *room;

	ck_assert_int_eq(compile("{\"op\":\"mel_spectrogram\",\"hop_length\":160,\"n_mels\":40,"
				 "\"log\":\"ln\"}",
				 16000, 6000, &mel, &diag),
			 0);
	one = run(&mel, mel_best(), has[_i]);
	other = malloc((size_t)mel.n_mels * mel.frames * sizeof(*other));
	ck_assert_int_eq(mel_room_new(&mel, mel_best(), &room), 0);
	mel_run(room, wave, mel.wave, other);
	ck_assert_mem_eq(one, other, (size_t)mel.n_mels * mel.frames * sizeof(*one));
	for (uint32_t t = (has[_i] + 200 + 159) / 160; has[_i] < 5800 && t < mel.frames; t++)
		ck_assert_float_eq_tol(one[t], -23.02585f, 1e-4f);
	mel_room_free(room);
	free(one);
	free(other);
}
END_TEST

START_TEST(numbers_that_are_none)
{
	struct mel_room *room;
	struct diag diag;
	struct mel mel;
	float *out;

	ck_assert_int_eq(
	    compile("{\"op\":\"mel_spectrogram\",\"log\":\"ln\"}", 16000, 6000, &mel, &diag), 0);
	ck_assert_int_eq(mel_room_new(&mel, mel_best(), &room), 0);
	out = malloc((size_t)mel.n_mels * mel.frames * sizeof(*out));
	make_wave(6000, 6000);
	wave[3000] = NAN;
	mel_run(room, wave, 6000, out);
	ck_assert(isfinite(out[0]) && isnan(out[15 + 20 * mel.frames]));
	mel_room_free(room);
	free(out);
}
END_TEST

START_TEST(lengths)
{
	static const struct {
		const char *rest;
		int64_t has;
		uint32_t frames, length; /* of 6000 */
	} table[] = {
	    {"\"hop_length\":160", 6000, 38, 38},
	    {"\"hop_length\":160", 0, 38, 1},
	    {"\"hop_length\":160", 159, 38, 1},
	    {"\"hop_length\":160", 160, 38, 2},
	    {"\"hop_length\":160,\"center\":false", 6000, 36, 36},
	    {"\"hop_length\":160,\"center\":false", 399, 36, 1},
	    {"\"hop_length\":160,\"center\":false", 560, 36, 2},
	    {"\"hop_length\":160,\"log\":\"whisper\"", 6000, 37, 37},
	    {"\"hop_length\":160,\"log\":\"whisper\"", 3000, 37, 19},
	    {"\"win_length\":300", 6000, 41, 41},
	    {"\"n_mels\":3", 5999, 31, 30},
	};
	char op[200];
	struct diag diag;
	struct mel mel;

	snprintf(op, sizeof(op), "{\"op\":\"mel_spectrogram\",%s}", table[_i].rest);
	ck_assert_msg(compile(op, 16000, 6000, &mel, &diag) == 0, "%s", diag.text);
	ck_assert_uint_eq(mel.frames, table[_i].frames);
	ck_assert_uint_eq(mel_length(&mel, table[_i].has), table[_i].length);
}
END_TEST

/* ---- behind it ---- */

#define MEL "{\"op\":\"mel_spectrogram\",\"n_mels\":40},"

static const struct {
	const char *op;
	uint32_t size; /* of the axis */
	uint32_t least,
	    n; /* widths, from 0 up to below n, and how often the rarest comes at least, of 4000 */
} masks[] = {
    {"{\"op\":\"time_masking\",\"time_mask_param\":10}", 31, 320, 10},
    {"{\"op\":\"time_masking\",\"time_mask_param\":10,\"p\":0.2}", 31, 550, 6},
    {"{\"op\":\"time_masking\",\"time_mask_param\":9999}", 31, 80, 31},
    {"{\"op\":\"time_masking\",\"time_mask_param\":0}", 31, 4000, 1},
    {"{\"op\":\"time_masking\",\"time_mask_param\":1}", 31, 4000, 1},
    {"{\"op\":\"frequency_masking\",\"freq_mask_param\":8}", 40, 400, 8},
    {"{\"op\":\"frequency_masking\",\"freq_mask_param\":1024}", 40, 60, 40},
};

/* Widths are uniform; places, too, and both ends are among them; the same key draws the same. */
START_TEST(mask_draws)
{
	unsigned widths[64] = {0}, at_first = 0, at_last = 0;
	struct op_drawn drawn, again;
	char behind[300];
	struct draw draw;
	struct diag diag;
	struct mel mel;

	snprintf(behind, sizeof(behind), MEL "%s", masks[_i].op);
	ck_assert_msg(compile(behind, 16000, 6000, &mel, &diag) == 0, "%s", diag.text);
	ck_assert(op_is_random(&ops.op[2]));
	for (uint64_t sample = 0; sample < 4000; sample++) {
		double width;

		draw_init(&draw, &(struct pipeline_key){1, 2, sample});
		op_draw(&ops.op[2], 2, &draw, mel.n_mels, mel.frames, &drawn);
		op_draw(&ops.op[2], 2, &draw, mel.n_mels, mel.frames, &again);
		ck_assert_mem_eq(drawn.number, again.number, sizeof(drawn.number));
		width = drawn.number[1] - drawn.number[0];
		ck_assert(width >= 0 && width < masks[_i].n && drawn.number[0] >= 0 &&
			  drawn.number[1] <= masks[_i].size);
		widths[(unsigned)width]++;
		at_first += drawn.number[0] == 0;
		at_last += drawn.number[0] + width >= masks[_i].size - 1;
	}
	for (unsigned i = 0; i < masks[_i].n; i++)
		ck_assert_msg(widths[i] >= masks[_i].least, "%u: %u", i, widths[i]);
	ck_assert(at_first > 20 && at_last > 20);
}
END_TEST

/* Frozen: a change is another pipeline. */
START_TEST(frozen_masks)
{
	struct op_drawn drawn;
	struct draw draw;
	struct diag diag;
	struct mel mel;

	ck_assert_int_eq(compile(MEL "{\"op\":\"time_masking\",\"time_mask_param\":20},"
				     "{\"op\":\"frequency_masking\",\"freq_mask_param\":20}",
				 16000, 6000, &mel, &diag),
			 0);
	draw_init(&draw, &(struct pipeline_key){1, 2, 3});
	op_draw(&ops.op[2], 2, &draw, mel.n_mels, mel.frames, &drawn);
	ck_assert_msg(drawn.number[0] == 13 && drawn.number[1] == 21, "%g %g", drawn.number[0],
		      drawn.number[1]);
	op_draw(&ops.op[3], 3, &draw, mel.n_mels, mel.frames, &drawn);
	ck_assert_msg(drawn.number[0] == 12 && drawn.number[1] == 27, "%g %g", drawn.number[0],
		      drawn.number[1]);
}
END_TEST

/* In the order of the list, over all channels. */
START_TEST(finishing)
{
	const struct pipeline_key key = {1, 2, 3};
	struct op_drawn times, bands;
	struct draw draw;
	struct diag diag;
	struct mel mel;
	struct mel_room *room;
	float *out;

	ck_assert_int_eq(
	    compile(MEL "{\"op\":\"time_masking\",\"time_mask_param\":20,\"mask_value\":7},"
			"{\"op\":\"normalize\",\"mean\":1,\"std\":2},"
			"{\"op\":\"frequency_masking\",\"freq_mask_param\":20}",
		    16000, 6000, &mel, &diag),
	    0);
	out = malloc((size_t)2 * mel.n_mels * mel.frames * sizeof(*out));
	for (size_t i = 0; i < (size_t)2 * mel.n_mels * mel.frames; i++)
		out[i] = (float)i;
	mel.channels = 2;
	ck_assert_int_eq(mel_room_new(&mel, mel_best(), &room), 0);
	mel_finish(room, &ops, &key, out);
	mel_room_free(room);
	draw_init(&draw, &key);
	op_draw(&ops.op[2], 2, &draw, mel.n_mels, mel.frames, &times);
	op_draw(&ops.op[4], 4, &draw, mel.n_mels, mel.frames, &bands);
	for (uint32_t i = 0; i < 2 * mel.n_mels * mel.frames; i++) {
		const uint32_t t = i % mel.frames, band = i / mel.frames % mel.n_mels;
		float wanted = ((float)i - 1) / 2;

		if (t >= times.number[0] && t < times.number[1])
			wanted = 3;
		if (band >= bands.number[0] && band < bands.number[1])
			wanted = 0;
		ck_assert_float_eq(out[i], wanted);
	}
	free(out);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(refused)
{
	static const struct {
		const char *ops, *words;
		unsigned frames;
	} table[] = {
	    {"{\"op\":\"mel_spectrogram\",\"n_fft\":401}", "no even product of 2, 3 and 5", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"n_fft\":405}", "no even product of 2, 3 and 5", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"n_fft\":448}", "no even product of 2, 3 and 5", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"n_fft\":16386}", "n_fft is not from 16 to 16384", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"win_length\":401}", "win_length is above n_fft", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"hop_length\":0}", "hop_length is not from 1", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"f_min\":8000}", "f_min is not below f_max", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"f_min\":300,\"f_max\":300}", "f_min is not below",
	     6000},
	    {"{\"op\":\"mel_spectrogram\",\"f_max\":8001}", "above half of audio's sample_rate",
	     6000},
	    {"{\"op\":\"mel_spectrogram\",\"power\":3}", "power is not from 1 to 2", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"norm\":\"htk\"}",
	     "norm is none of its words; give slaney", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"log\":\"log2\"}", "ln, log10, db or whisper", 6000},
	    {"{\"op\":\"mel_spectrogram\"}", "fewer than the padding", 200},
	    {"{\"op\":\"mel_spectrogram\",\"center\":false}", "fewer than one window", 399},
	    {"{\"op\":\"mel_spectrogram\",\"log\":\"whisper\",\"hop_length\":6001}",
	     "there is but one", 6000},
	    {"{\"op\":\"mel_spectrogram\",\"hop_length\":1}", "give a larger hop_length", 1 << 24},
	    {"{\"op\":\"mel_spectrogram\",\"n_fft\":16,\"n_mels\":1024,\"hop_length\":1}",
	     "give a larger hop_length", 1 << 20},
	    {MEL "{\"op\":\"mel_spectrogram\"}",
	     "op 3 (mel_spectrogram) makes a spectrogram, and there is one already", 6000},
	    {"{\"op\":\"time_masking\",\"time_mask_param\":3}", "put mel_spectrogram before it",
	     6000},
	    {"{\"op\":\"normalize\",\"mean\":0,\"std\":1}", "put mel_spectrogram before it", 6000},
	    {MEL "{\"op\":\"normalize\",\"mean\":[1,2,3],\"std\":1}", "give one number for mean",
	     6000},
	    {MEL "{\"op\":\"hflip\"}", "op 3 (hflip) works on pictures", 6000},
	    {MEL "{\"op\":\"cast\",\"dtype\":\"f16\"}", "op 3 (cast) works on pictures", 6000},
	    {MEL "{\"op\":\"time_masking\"}", "time_mask_param is missing", 6000},
	};
	struct diag diag;
	struct mel mel;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		ck_assert_int_eq(compile(table[i].ops, 16000, table[i].frames, &mel, &diag),
				 PIPELINE_E_BAD);
		ck_assert_msg(strstr(diag.text, table[i].words) != NULL, "%s", diag.text);
	}
	ck_assert_int_eq(compile("{\"op\":\"mel_spectrogram\"}", 16000, 6000, &mel, &diag), 0);
	ck_assert_int_eq(mel_init(&ops, 1, ops.count, 16000, 1 << 21, 16, &mel, &diag),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(diag.text, "frames in all of its channels") != NULL, "%s", diag.text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, like_torchaudio);
	tcase_add_test(tcase, the_same_bits);
	tcase_add_loop_test(tcase, silence, 0, 9);
	tcase_add_test(tcase, numbers_that_are_none);
	tcase_add_loop_test(tcase, lengths, 0, 11);
	tcase_add_loop_test(tcase, mask_draws, 0, (int)BASE_ARRAY_LEN(masks));
	tcase_add_test(tcase, frozen_masks);
	tcase_add_test(tcase, finishing);
	tcase_add_test(tcase, refused);
}

int main(void)
{
	return suite_run("mel", add);
}
