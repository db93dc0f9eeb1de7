/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sounds: which frames of a file come out, what is refused, and files of each format that are cut off or damaged. Against
 * libsndfile and libsoxr, called otherwise, tests/python/audio_test.py compares.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "tests/data.h"
#include "tests/patience.h"
#include "tests/pipeline/trial.h"

#define MOST_FRAMES 8000
#define MOST_BYTES 65536

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
/* libsndfile 1.2 forgets some of an Ogg file that is damaged in its head. */
const char *__lsan_default_suppressions(void)
{
	return "leak:vorbis_info_init\n";
}

/* ---- a pipeline, and samples through it ---- */

struct rig {
	struct trial trial;
	float audio[MOST_FRAMES];
	int64_t label, length;
};

static void rig_init(struct rig *rig, const char *spec)
{
	trial_init(&rig->trial, spec);
}

static void rig_fini(struct rig *rig)
{
	trial_fini(&rig->trial);
}

static int rig_run(struct rig *rig, const uint8_t *data, size_t size, uint64_t sample)
{
	const struct pipeline_out out = {.field = {rig->audio, &rig->label, &rig->length}};

	memset(rig->audio, 0xff, sizeof(rig->audio));
	rig->length = -1;
	return trial_run(&rig->trial, data, size, 5, sample, &out);
}

static void refuse(struct rig *rig, const uint8_t *data, size_t size, const char *words)
{
	ck_assert_int_eq(rig_run(rig, data, size, 0), PIPELINE_E_BAD);
	ck_assert_msg(strstr(rig->trial.error.text, words) != NULL, "%s", rig->trial.error.text);
}

/* ---- WAV files of 16 bits ---- */

static void put(uint8_t **to, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*(*to)++ = (uint8_t)(value >> (8 * i));
}

/* Frame i of channel c is the number i + 1000 c. */
static size_t wav(uint8_t *to, uint32_t rate, uint32_t channels, uint32_t frames)
{
	const uint32_t bytes = frames * channels * 2;
	uint8_t *at = to;

	memcpy(at, "RIFF", 4);
	at += 4;
	put(&at, 36 + bytes, 4);
	memcpy(at, "WAVEfmt ", 8);
	at += 8;
	put(&at, 16, 4);
	put(&at, 1, 2);
	put(&at, channels, 2);
	put(&at, rate, 4);
	put(&at, rate * channels * 2, 4);
	put(&at, channels * 2, 2);
	put(&at, 16, 2);
	memcpy(at, "data", 4);
	at += 4;
	put(&at, bytes, 4);
	for (uint32_t i = 0; i < frames; i++)
		for (uint32_t c = 0; c < channels; c++)
			put(&at, i + 1000 * c, 2);
	return (size_t)(at - to);
}

static float number(uint32_t value)
{
	return (float)value / 32768;
}

/* ---- which frames ---- */

START_TEST(frames)
{
	static const struct {
		const char *rest;
		uint32_t channels, has;
		uint32_t start,
		    length; /* of the first plane, and what its numbers are above their place */
		float above[2];
		unsigned planes;
	} table[] = {
	    {"\"crop\":\"begin\"", 1, 100, 0, 40, {0, 0}, 1},
	    {"\"crop\":\"center\"", 1, 101, 30, 40, {0, 0}, 1},
	    {"\"crop\":\"center\"", 2, 100, 30, 40, {500, 0}, 1},
	    {"\"crop\":\"begin\"", 1, 10, 0, 10, {0, 0}, 1},
	    {"\"crop\":\"random\"", 1, 40, 0, 40, {0, 0}, 1},
	    {"\"crop\":\"random\"", 1, 39, 0, 39, {0, 0}, 1},
	    {"\"crop\":\"begin\",\"channels\":1", 2, 50, 0, 40, {500, 0}, 1},
	    {"\"crop\":\"begin\",\"channels\":2", 2, 50, 0, 40, {0, 1000}, 2},
	    {"\"crop\":\"center\",\"channels\":2", 1, 50, 5, 40, {0, 0}, 2},
	};
	uint8_t data[MOST_BYTES];
	struct rig rig;
	char spec[200];
	size_t size;

	snprintf(spec, sizeof(spec), "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40,%s}]",
		 table[_i].rest);
	rig_init(&rig, spec);
	size = wav(data, 8000, table[_i].channels, table[_i].has);
	ck_assert_int_eq(rig_run(&rig, data, size, 3), 0);
	ck_assert_int_eq(rig.length, table[_i].length);
	ck_assert_int_eq(rig.label, 5);
	for (unsigned c = 0; c < table[_i].planes; c++) {
		for (uint32_t i = 0; i < 40; i++) {
			const float wanted =
			    number(table[_i].start + i) + table[_i].above[c] / 32768;

			ck_assert_float_eq(rig.audio[c * 40 + i],
					   i < table[_i].length ? wanted : 0);
		}
	}
	rig_fini(&rig);
}
END_TEST

/* Each start is as likely as another, both ends among them; the same key draws the same. */
START_TEST(starts)
{
	unsigned seen[11] = {0};
	uint8_t data[MOST_BYTES];
	const size_t size = wav(data, 8000, 1, 50);
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40}]");
	for (uint64_t sample = 0; sample < 1100; sample++) {
		float first;

		ck_assert_int_eq(rig_run(&rig, data, size, sample), 0);
		first = rig.audio[0];
		seen[(unsigned)(first * 32768)]++;
		ck_assert_int_eq(rig_run(&rig, data, size, sample), 0);
		ck_assert_float_eq(rig.audio[0], first);
	}
	for (unsigned i = 0; i < 11; i++)
		ck_assert_msg(seen[i] > 60 && seen[i] < 140, "%u: %u", i, seen[i]);
	rig_fini(&rig);
}
END_TEST

/* ---- parts of files ---- */

/* A record of a WAV file of 1000 frames at 8000 Hz, of which a part is the sample. */
static size_t part_of(uint8_t *to, double start, double seconds)
{
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)to;
	size_t size;

	memset(to, 0, 128);
	size = wav(to + 128, 8000, 1, 1000);
	*head = (struct packed_wide_head){PACKED_WIDE_MAGIC, 128 + size, 1, 1, {0}};
	head->part[0] = start;
	head->part[1] = seconds;
	head->field[0].place = (struct packed_place){PIPELINE_U8, 1, {size}, 128, size};
	return 128 + size;
}

#define PART(crop)                                                               \
	"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40,\"crop\":\"" crop \
	"\",\"source\":\"record\"}]"

/* As soundfile.read(start=, frames=) has it, each number of frames the nearest one. */
START_TEST(parts)
{
	static const struct {
		const char *spec;
		double start, seconds;
		uint32_t first, length;
	} table[] = {
	    {PART("begin"), 0.05, 0.01, 400, 40},        {PART("begin"), 0.05, 0.0025, 400, 20},
	    {PART("begin"), 0.05006, 0.0025, 400, 20},   {PART("begin"), 0.05007, 0.0025, 401, 20},
	    {PART("center"), 0.05, 0.01, 420, 40},       {PART("begin"), 0, INFINITY, 0, 40},
	    {PART("begin"), 0.1225, INFINITY, 980, 20},  {PART("begin"), 0.1225, 1e300, 980, 20},
	    {PART("begin"), 0.1225, 0.0025, 980, 20},    {PART("center"), 0.025, INFINITY, 580, 40},
	    {PART("begin"), 0.124875, 0.000125, 999, 1},
	};
	static _Alignas(64) uint8_t data[MOST_BYTES];
	const size_t size = part_of(data, table[_i].start, table[_i].seconds);
	struct rig rig;

	rig_init(&rig, table[_i].spec);
	ck_assert_msg(rig_run(&rig, data, size, 1) == 0, "%s", rig.trial.error.text);
	ck_assert_int_eq(rig.length, table[_i].length);
	for (uint32_t i = 0; i < 40; i++)
		ck_assert_float_eq(rig.audio[i],
				   i < table[_i].length ? number(table[_i].first + i) : 0);
	rig_fini(&rig);
}
END_TEST

/* Each start within the part, and no other. */
START_TEST(starts_in_parts)
{
	static _Alignas(64) uint8_t data[MOST_BYTES];
	const size_t size = part_of(data, 0.05, 50 / 8000.0);
	unsigned seen[11] = {0};
	struct rig rig;

	rig_init(&rig, PART("random"));
	for (uint64_t sample = 0; sample < 1100; sample++) {
		unsigned first;

		ck_assert_int_eq(rig_run(&rig, data, size, sample), 0);
		first = (unsigned)(rig.audio[0] * 32768);
		ck_assert(first >= 400 && first <= 410);
		seen[first - 400]++;
	}
	for (unsigned i = 0; i < 11; i++)
		ck_assert_msg(seen[i] > 60 && seen[i] < 140, "%u: %u", i, seen[i]);
	rig_fini(&rig);
}
END_TEST

/* What no file has, and what this one has not. */
START_TEST(parts_are_refused)
{
	static const struct {
		double start, seconds;
		const char *words;
	} table[] = {
	    {0.125, 0.01, "second 0.125 of a sound of 0.125"},
	    {1e300, 0.01, "second 1e+300 of a sound of 0.125"},
	    {0, 1e-9, "a part of 1e-09 s has no frame"},
	    {0, 0, "a part from second 0, 0 long"},
	    {0, -1, "a part from second 0, -1 long"},
	    {-0.01, 1, "a part from second -0.01, 1 long"},
	    {NAN, 1, "a part from second"},
	    {0, NAN, "a part from second"},
	    {INFINITY, 1, "a part from second inf"},
	};
	static const double channels[] = {-1, 64, NAN, INFINITY};
	static _Alignas(64) uint8_t data[MOST_BYTES];
	size_t size = part_of(data, 0, 1);
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)data;
	struct rig rig, other;

	rig_init(&rig, PART("begin"));
	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		size = part_of(data, table[i].start, table[i].seconds);
		refuse(&rig, data, size, table[i].words);
	}
	size = part_of(data, 0, 1);
	head->has_part = 3;
	refuse(&rig, data, size, "a part from second 0, 1 long");
	head->has_part = 2; /* with a channel */
	for (unsigned i = 0; i < BASE_ARRAY_LEN(channels); i++) {
		head->part[2] = channels[i];
		refuse(&rig, data, size, "a part from second 0, 1 long");
	}
	head->part[2] = 7;
	refuse(&rig, data, size, "channel 7 of ");
	head->part[2] = 0;
	ck_assert_int_eq(rig_run(&rig, data, size, 0), 0);
	rig_init(&other, "[{\"op\":\"decode\",\"source\":\"record\"},"
			 "{\"op\":\"resize\",\"size\":[2,2]}]");
	head->has_part = 1;
	refuse(&other, data, size, "a part, which video and audio take alone");
	rig_fini(&rig);
	rig_fini(&other);
}
END_TEST

/* The op duration: of all, and of parts. */
START_TEST(durations)
{
	static const struct {
		double start, seconds, want;
		int64_t frames;
	} table[] = {
	    {0, INFINITY, 0.125, 1000},
	    {0.1, 1, 0.025, 200},
	    {0.05, 0.0025, 0.0025, 20},
	};
	static _Alignas(64) uint8_t data[MOST_BYTES];
	struct rig rig;
	double found[2];

	rig_init(&rig, "[{\"op\":\"duration\",\"source\":\"record\"}]");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		const size_t size = part_of(data, table[i].start, table[i].seconds);

		ck_assert_int_eq(rig_run(&rig, data, size, 1), 0);
		memcpy(found, rig.audio, sizeof(found));
		ck_assert_double_eq(found[0], table[i].want);
		ck_assert_double_eq(found[1], 8000);
		ck_assert_int_eq(rig.length, table[i].frames);
	}
	refuse(&rig, data, part_of(data, 2, 1), "second 2 of a sound of 0.125");
	rig_fini(&rig);
	rig_init(&rig, "[{\"op\":\"duration\"},{\"op\":\"filter\",\"keep\":[1]}]");
	ck_assert_int_eq(rig_run(&rig, data, wav(data, 16000, 2, 320), 1), 0);
	memcpy(found, rig.audio, sizeof(found));
	ck_assert_double_eq(found[0], 0.02);
	ck_assert_double_eq(found[1], 16000);
	ck_assert_int_eq(rig.length, 320);
	refuse(&rig, (const uint8_t *)"no sound at all", 15, "no sound");
	rig_fini(&rig);
}
END_TEST

/* A constant stays one away from its ends; as long as it should be, within what a filter rounds. */
START_TEST(rates)
{
	static const uint32_t table[] = {4000, 7999, 11025, 22050, 44100, 96000, 768000, 1000};
	const uint32_t rate = table[_i], has = rate / 100;
	uint8_t data[MOST_BYTES];
	size_t size = wav(data, rate, 1, has);
	struct rig rig;

	for (uint32_t i = 0; i < has; i++)
		memcpy(data + 44 + (size_t)2 * i, "\0\x40", 2);
	rig_init(&rig,
		 "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":100,\"crop\":\"begin\"}]");
	ck_assert_int_eq(rig_run(&rig, data, size, 0), 0);
	ck_assert_int_ge(rig.length, 79);
	ck_assert_int_le(rig.length, 81);
	for (unsigned i = 30; i < 50 && rate > 4000; i++)
		ck_assert_float_eq_tol(rig.audio[i], 0.5f, 0.05f);
	for (int64_t i = rig.length; i < 100; i++)
		ck_assert_float_eq(rig.audio[i], 0);
	rig_fini(&rig);
}
END_TEST

/* ---- several pipelines of one sound ---- */

#define SHARED "{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":800,\"channels\":2}"
#define MEL ",{\"op\":\"mel_spectrogram\",\"n_fft\":100,\"n_mels\":6"

static const char *const shared[] = {
    "[" SHARED MEL "}]",
    "[" SHARED "]",
    "[" SHARED MEL ",\"log\":\"whisper\"},{\"op\":\"time_masking\",\"time_mask_param\":9}]",
    "[" SHARED ",{\"op\":\"filter\",\"keep\":[5]}]",
};
#define SHARES BASE_ARRAY_LEN(shared)

struct taken {
	float audio[1600];
	int64_t label, length;
};

static void tell(void *arg, uint32_t height, uint32_t width)
{
	unsigned *told = arg;

	if (height == 1000 && width == 2)
		(*told)++;
}

/* One decoding for all, of which each has what it has alone: whoever is asked. */
START_TEST(one_decoding)
{
	static struct taken taken[SHARES], alone;
	struct pipeline_out out[SHARES];
	struct pipeline *pipeline[SHARES];
	const struct pipeline_key key = {1, 2, 3};
	uint8_t data[MOST_BYTES];
	const size_t size = wav(data, 10000, 2, 5000);
	struct pipeline_error error;
	struct pipeline_run *run;
	unsigned told = 0;
	struct diag diag;

	for (unsigned v = 0; v < SHARES; v++) {
		ck_assert_int_eq(
		    pipeline_compile(shared[v], strlen(shared[v]), &pipeline[v], &diag), 0);
		out[v] = (struct pipeline_out){
		    .field = {taken[v].audio, &taken[v].label, &taken[v].length}};
	}
	ck_assert_int_eq(pipeline_run_new((const struct pipeline *const *)pipeline, SHARES, &run),
			 0);
	pipeline_run_watch(run, tell, &told);
	memset(taken, 0, sizeof(taken));
	ck_assert_int_eq(pipeline_run_sample(run, (uint32_t)_i, data, size, 5, &key, out, &error),
			 0);
	ck_assert_uint_eq(told, 1);
	pipeline_run_free(run);
	for (unsigned v = 0; v < SHARES; v++) {
		const struct pipeline_out to = {
		    .field = {alone.audio, &alone.label, &alone.length}};
		const struct pipeline *one = pipeline[v];

		memset(&alone, 0, sizeof(alone));
		ck_assert_int_eq(pipeline_run_new(&one, 1, &run), 0);
		if (_i >> v & 1)
			ck_assert_int_eq(
			    pipeline_run_sample(run, 1, data, size, 5, &key, &to, &error), 0);
		ck_assert_mem_eq(&taken[v], &alone, sizeof(alone));
		ck_assert_int_eq(alone.length, _i >> v & 1 ? (v % 2 ? 800 : 17 - (v == 2)) : 0);
		pipeline_run_free(run);
	}
	for (unsigned v = 0; v < SHARES; v++)
		pipeline_free(pipeline[v]);
}
END_TEST

START_TEST(who_meets)
{
	static const struct {
		const char *a, *b;
		bool can;
	} table[] = {
	    {"[" SHARED "]", "[" SHARED MEL "}]", true},
	    {"[" SHARED MEL "}]", "[" SHARED MEL ",\"hop_length\":9}]", true},
	    {"[" SHARED MEL "}]", "[" SHARED ",{\"op\":\"one_hot\",\"num_classes\":9}]", false},
	    {"[" SHARED "]", "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":800}]", false},
	    {"[" SHARED "]", "[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}]", false},
	};
	struct pipeline *a, *b;
	struct pipeline_run *run;
	struct diag diag;

	ck_assert_int_eq(pipeline_compile(table[_i].a, strlen(table[_i].a), &a, &diag), 0);
	ck_assert_int_eq(pipeline_compile(table[_i].b, strlen(table[_i].b), &b, &diag), 0);
	ck_assert(compare_can_meet(a, b) == table[_i].can);
	ck_assert(compare_can_meet(b, a) == table[_i].can);
	if (_i >= 3)
		ck_assert_int_eq(pipeline_run_new((const struct pipeline *const[]){a, b}, 2, &run),
				 -EINVAL);
	pipeline_free(a);
	pipeline_free(b);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(specs)
{
	static const struct {
		const char *spec, *words;
	} table[] = {
	    {"[{\"op\":\"audio\",\"frames\":5}]", "sample_rate is missing; give frames a second"},
	    {"[{\"op\":\"audio\",\"sample_rate\":999,\"frames\":5}]", "sample_rate"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000}]", "frames is missing"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":16777217}]", "frames is not"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5,\"channels\":17}]",
	     "channels is not"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5,\"crop\":\"end\"}]",
	     "random, center or begin"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5},{\"op\":\"hflip\"}]",
	     "op 2 (hflip) works on pictures"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5},{\"op\":\"mixup\",\"num_"
	     "classes\":3}]",
	     "mixup and cutmix are of pictures"},
	    {"[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5},{\"op\":\"filter\",\"min_"
	     "width\":3}]",
	     "are of pictures; give keep or drop"},
	    {"[{\"op\":\"decode\"},{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":5}]",
	     "takes the place of decode"},
	    {"[{\"op\":\"decode\"},{\"op\":\"mel_spectrogram\"}]",
	     "op 2 (mel_spectrogram): it works on sounds"},
	    {"[{\"op\":\"mel_spectrogram\"}]", "op 1 (mel_spectrogram): the first op must be"},
	    {"[{\"op\":\"decode\"},{\"op\":\"random_apply\"},{\"op\":\"time_masking\","
	     "\"time_mask_param\":3},{\"op\":\"center_crop\",\"size\":8}]",
	     "op 3 (time_masking) cannot be done at random"},
	};
	trial_refused(table[_i].spec, table[_i].words);
}
END_TEST

START_TEST(fields)
{
	const struct pipeline_field *field;
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40,\"channels\":2},"
		       "{\"op\":\"filter\",\"keep\":[1]},{\"op\":\"one_hot\",\"num_classes\":9}]");
	ck_assert_uint_eq(pipeline_fields(rig.trial.pipeline, &field), 3);
	ck_assert_str_eq(field[0].name, "audio");
	ck_assert_int_eq(field[0].dtype, PIPELINE_F32);
	ck_assert_uint_eq(field[0].ndim, 2);
	ck_assert_uint_eq(field[0].bytes, 2 * 40 * 4);
	ck_assert_str_eq(field[1].name, "label");
	ck_assert_uint_eq(field[1].shape[0], 9);
	ck_assert_str_eq(field[2].name, "length");
	ck_assert(pipeline_is_random(rig.trial.pipeline));
	rig_fini(&rig);
	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":800,\"channels\":2,"
		       "\"crop\":\"begin\"},{\"op\":\"mel_spectrogram\",\"n_fft\":100},"
		       "{\"op\":\"normalize\",\"mean\":-4.5,\"std\":9}]");
	pipeline_fields(rig.trial.pipeline, &field);
	ck_assert_str_eq(field[0].name, "audio");
	ck_assert_uint_eq(field[0].ndim, 3);
	ck_assert_uint_eq(field[0].shape[0], 2);
	ck_assert_uint_eq(field[0].shape[1], 128);
	ck_assert_uint_eq(field[0].shape[2], 17);
	ck_assert_uint_eq(field[0].bytes, 2 * 128 * 17 * 4);
	ck_assert(!pipeline_is_random(rig.trial.pipeline));
	rig_fini(&rig);
	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":800,\"crop\":\"begin\"},"
		       "{\"op\":\"mel_spectrogram\",\"n_fft\":100,\"n_mels\":6},"
		       "{\"op\":\"frequency_masking\",\"freq_mask_param\":3}]");
	pipeline_fields(rig.trial.pipeline, &field);
	ck_assert_uint_eq(field[0].ndim, 2);
	ck_assert_uint_eq(field[0].shape[0], 6);
	ck_assert(pipeline_is_random(rig.trial.pipeline));
	rig_fini(&rig);
	rig_init(&rig,
		 "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40,\"crop\":\"begin\"}]");
	ck_assert(!pipeline_is_random(rig.trial.pipeline));
	ck_assert_str_eq(
	    pipeline_canonical(rig.trial.pipeline),
	    "{\"ops\":[{\"channels\":null,\"crop\":\"begin\",\"frames\":40,\"op\":\"audio\","
	    "\"sample_rate\":8000}]}");
	rig_fini(&rig);
}
END_TEST

START_TEST(heads)
{
	uint8_t data[MOST_BYTES];
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":40,\"channels\":2}]");
	refuse(&rig, data, 0, "no WAV, FLAC or Ogg");
	refuse(&rig, (const uint8_t *)"\xff\xd8\xff\xe0\0\0JFIF\0\1", 12, "no WAV, FLAC");
	refuse(&rig,
	       (const uint8_t *)"FORM\0\0\0\x10"
				"AIFFCOMM",
	       16, "no WAV, FLAC");
	refuse(&rig, data, wav(data, 8000, 1, 0), "the sound is empty");
	refuse(&rig, data, wav(data, 999, 1, 10), "999 Hz, not 1000 to 768000");
	refuse(&rig, data, wav(data, 768001, 1, 10), "768001 Hz");
	refuse(&rig, data, wav(data, 8000, 65, 10), "65 channels, at most 64");
	refuse(&rig, data, wav(data, 8000, 3, 10), "3 channels, not 2");
	rig_fini(&rig);
}
END_TEST

/* ---- files of each format ---- */

static const struct sound_of {
	const char *name;
	int64_t length; /* at 8000 Hz */
} sounds[] = {
    {"pcm16.wav", 400},  {"float.wav", 160},   {"mulaw.wav", 400},   {"adpcm.wav", 1600},
    {"rf64.wav", 160},   {"stereo.flac", 160}, {"pcm24.flac", 400},  {"vorbis.ogg", 1600},
    {"opus.opus", 1600}, {"mono.mp3", 4000},   {"stereo.mp3", 2400},
};

static size_t load(const char *name, uint8_t *to)
{
	return data_read("pipeline/sounds", name, to, MOST_BYTES);
}

START_TEST(formats)
{
	uint8_t data[MOST_BYTES];
	const size_t size = load(sounds[_i].name, data);
	struct rig rig;
	double sum = 0;
	int r;

	rig_init(&rig,
		 "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":4096,\"crop\":\"begin\"}]");
	r = rig_run(&rig, data, size, 0);
	ck_assert_msg(r == 0, "%s", rig.trial.error.text);
	{
		ck_assert_int_ge(rig.length, sounds[_i].length - 1);
		ck_assert_int_le(rig.length, sounds[_i].length + 600); /* adpcm: whole blocks */
		for (int64_t i = 0; i < rig.length; i++)
			sum += (double)rig.audio[i] * (double)rig.audio[i];
		ck_assert_double_gt(sum / (double)rig.length, 0.001);
	}
	rig_fini(&rig);
}
END_TEST

/* ---- MP3 ---- */

/* Every part, from frame to frame of the codec, is what a decoding from the beginning has there, but for
 * the last bits of a number. */
static bool are_near(const float *one, const float *other, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(one[i] - other[i]) < 1e-6f))
			return false;
	return true;
}

START_TEST(parts_of_mp3)
{
	static const struct {
		const char *name;
		int rate;
		int64_t frames;
	} table[] = {
	    {"mono.mp3", 16000, 8000}, {"stereo.mp3", 44100, 13230}, {"low.mp3", 24000, 48000}};
	static float whole[1 << 16];
	uint8_t data[MOST_BYTES];
	const size_t size = load(table[_i].name, data);
	struct pipeline_out out = {.field = {whole}};
	struct rig rig;
	char spec[200];
	int64_t label, length;

	snprintf(spec, sizeof(spec),
		 "[{\"op\":\"audio\",\"sample_rate\":%d,\"frames\":%zu,\"crop\":\"begin\"}]",
		 table[_i].rate, BASE_ARRAY_LEN(whole));
	rig_init(&rig, spec);
	out.field[1] = &label;
	out.field[2] = &length;
	ck_assert_int_eq(pipeline_run_sample(rig.trial.run, 1, data, size, 5,
					     &(struct pipeline_key){1, 2, 0}, &out,
					     &rig.trial.error),
			 0);
	ck_assert_int_ge(length, table[_i].frames);
	ck_assert_int_le(length, table[_i].frames + 4000); /* without a LAME tag: whole frames */
	rig_fini(&rig);
	snprintf(spec, sizeof(spec), "[{\"op\":\"audio\",\"sample_rate\":%d,\"frames\":64}]",
		 table[_i].rate);
	rig_init(&rig, spec);
	for (uint64_t sample = 0; sample < 400; sample++) {
		int64_t at = 0;

		ck_assert_int_eq(rig_run(&rig, data, size, sample), 0);
		while (at + 64 <= length && !are_near(whole + at, rig.audio, 64))
			at++;
		ck_assert_msg(at + 64 <= length, "sample %d", (int)sample);
	}
	rig_fini(&rig);
}
END_TEST

/* Told by two frames, behind tags and zeros; never by less. */
START_TEST(heads_of_mp3)
{
	uint8_t data[MOST_BYTES], other[MOST_BYTES];
	const size_t size = load("stereo.mp3", data), tagged = load("mono.mp3", other);
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":44100,\"frames\":40}]");
	ck_assert_int_eq(rig_run(&rig, data, size, 0), 0);
	for (size_t cut = 0; cut < 500; cut++) /* the first frame, and less than a header more */
		refuse(&rig, data, BASE_MIN(cut, 210u), "no WAV, FLAC or Ogg, nor MP3");
	refuse(&rig, data + 1, size - 1, "nor MP3");
	refuse(&rig, other, 108, "nor MP3"); /* the tag alone */
	refuse(&rig, other, 60, "nor MP3");
	ck_assert_int_eq(rig_run(&rig, other + 108, tagged - 108, 0), 0);
	memset(other, 0, 1000);
	memcpy(other + 1000, data, size);
	ck_assert_int_eq(rig_run(&rig, other, 1000 + size, 0), 0);
	refuse(&rig, other, 1000, "nor MP3");
	rig_fini(&rig);
}
END_TEST

/* One with another rate behind it: up to there it is read. */
START_TEST(mp3_that_changes)
{
	uint8_t data[2 * MOST_BYTES];
	const size_t size = load("stereo.mp3", data), more = load("mono.mp3", data + size);
	int64_t length;
	struct rig rig;

	rig_init(&rig,
		 "[{\"op\":\"audio\",\"sample_rate\":44100,\"frames\":4000,\"crop\":\"begin\"}]");
	ck_assert_int_eq(rig_run(&rig, data, size + more, 0), 0);
	rig_fini(&rig);
	rig_init(&rig,
		 "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":4000,\"crop\":\"begin\"}]");
	ck_assert_int_eq(rig_run(&rig, data, size, 0), 0);
	length = rig.length;
	ck_assert_int_eq(rig_run(&rig, data, size + more, 0), 0);
	ck_assert_int_eq(rig.length, length);
	ck_assert_int_lt(length, 4000);
	rig_fini(&rig);
}
END_TEST

START_TEST(layer_ii_is_refused)
{
	static const uint8_t header[] = {0xff, 0xfd, 0x44,
					 0x60}; /* 64 kbit/s of 44.1 kHz: 208 bytes */
	uint8_t data[3 * 208] = {0};
	struct rig rig;

	for (unsigned i = 0; i < 3; i++)
		memcpy(data + (size_t)i * 208, header, sizeof(header));
	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":4000}]");
	refuse(&rig, data, sizeof(data), "no sound: no WAV, FLAC or Ogg, nor MP3");
	rig_fini(&rig);
}
END_TEST

/* Files that have a sound track are told from what is no sound, by a whole magic and never by less; without what reads them it is
 * named, with it the sound comes. */
START_TEST(tracks_of_videos)
{
	static const struct {
		const char *data;
		size_t size, least;
	} videos[] = {
	    {"\0\0\0\x1c"
	     "ftypM4A ",
	     12, 8},
	    {"\0\0\1\0moov\0\0\0l", 12, 8},
	    {"\x1a\x45\xdf\xa3\x9f\x42\x86\x81", 8, 4},
	    {"RIFF\1\1\1\1AVI LIST", 16, 12},
	};
	uint8_t data[MOST_BYTES], silent[MOST_BYTES];
	const size_t size = load("../video_sounds/mulaw.mov", data);
	const size_t silent_size = load("../video_sounds/silent.mp4", silent);
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":4000,\"channels\":2,"
		       "\"crop\":\"begin\"}]");
	for (unsigned i = 0; i < BASE_ARRAY_LEN(videos); i++)
		for (size_t cut = 1; cut <= videos[i].size; cut++) {
			uint8_t few[16];

			memcpy(few, videos[i].data, cut);
			refuse(&rig, few, cut,
			       cut < videos[i].least
				   ? "no WAV, FLAC or Ogg, nor MP3 or video"
				   : "a video, whose sound needs oneaccess-video");
		}
	ck_assert_ptr_null(pipeline_load(rig.trial.pipeline));
	if (rig_run(&rig, data, size, 0) == 0) {
		ck_assert_int_eq(rig.length, 3200);
		ck_assert_float_eq_tol(rig.audio[20], 0.4f * sinf(2764 * 20 / 8000.0f), 0.02f);
		ck_assert_float_eq(rig.audio[3200], 0);
		refuse(&rig, silent, silent_size, "a video without sound");
	} else {
		ck_assert_str_eq(rig.trial.error.text,
				 "a video, whose sound needs oneaccess-video");
	}
	rig_fini(&rig);
}
END_TEST

/* Cut off, and with bytes changed: whatever comes, there is a reason where it is bad. */
START_TEST(damage)
{
	uint8_t data[MOST_BYTES];
	const size_t size = load(sounds[_i].name, data);
	struct philox_seq seq;
	struct rig rig;

	rig_init(&rig, "[{\"op\":\"audio\",\"sample_rate\":8000,\"frames\":100}]");
	for (size_t cut = 0; cut < size; cut += cut < 200 ? 7 : size / 20)
		if (rig_run(&rig, data, cut, cut) != 0)
			ck_assert_uint_gt(strlen(rig.trial.error.text), 4);
	philox_seq_init(&seq, 7, (uint64_t)_i, 0);
	for (unsigned i = 0; i < 300; i++) {
		const size_t at = philox_below(&seq, BASE_MIN(size, i % 2 ? size : 128));
		const uint8_t was = data[at];

		data[at] = (uint8_t)philox_u32(&seq);
		if (rig_run(&rig, data, size, i) != 0)
			ck_assert_uint_gt(strlen(rig.trial.error.text), 4);
		else
			ck_assert(rig.length >= 0 && rig.length <= 100);
		if (i % 8)
			data[at] = was;
	}
	rig_fini(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sound");
	TCase *tcase = tcase_create("sound");
	SRunner *runner;
	int failed;

	if (!HAS_AUDIO)
		return 77;
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, frames, 0, 9);
	tcase_add_test(tcase, starts);
	tcase_add_loop_test(tcase, parts, 0, 11);
	tcase_add_test(tcase, starts_in_parts);
	tcase_add_test(tcase, parts_are_refused);
	tcase_add_test(tcase, durations);
	tcase_add_loop_test(tcase, rates, 0, 8);
	tcase_add_loop_test(tcase, specs, 0, 13);
	tcase_add_test(tcase, fields);
	tcase_add_loop_test(tcase, one_decoding, 1, 16);
	tcase_add_loop_test(tcase, who_meets, 0, 5);
	tcase_add_test(tcase, heads);
	tcase_add_loop_test(tcase, formats, 0, (int)BASE_ARRAY_LEN(sounds));
	tcase_add_loop_test(tcase, parts_of_mp3, 0, 3);
	tcase_add_test(tcase, heads_of_mp3);
	tcase_add_test(tcase, mp3_that_changes);
	tcase_add_test(tcase, layer_ii_is_refused);
	tcase_add_test(tcase, tracks_of_videos);
	tcase_add_loop_test(tcase, damage, 0, (int)BASE_ARRAY_LEN(sounds));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
