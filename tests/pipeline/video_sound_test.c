/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sound of videos: golden_video_sounds.tsv has what ffmpeg decodes of each clip (make_video_sounds.py says how); here it must be that,
 * in one piece, in parts from anywhere, in a sandbox, and beside clips of pictures. And what is refused, damaged or cut off, and in
 * which words.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/philox.h"
#include "base/sandbox.h"
#include "pipeline/forms/packed.h"
#include "pipeline/video/video_module.h"
#include "tests/data.h"
#include "tests/patience.h"

#define MOST_CLIPS 16
#define MOST_NUMBERS 40000
#define EACH 97        /* of the numbers is in the golden file */
#define NEAR 2e-5f     /* of what is written with five digits, by whichever processor's code */
#define NEAR_PART 2e-3 /* a coding's noise is drawn anew */

struct clip {
	char name[32];
	uint32_t rate, channels;
	int64_t frames, heard_us, seen_us; /* when the first of each begins */
	float number[MOST_NUMBERS / EACH + 1];
	uint8_t *data;
	size_t size;
};

static struct clip clips[MOST_CLIPS];
static unsigned n_clips;
static const struct video_module *module;
static struct sound_head head;
static struct pipeline_error error;
static float whole[MOST_NUMBERS], part[MOST_NUMBERS], again[2];

static void load_clip(char *line)
{
	struct clip *clip = &clips[n_clips++];
	char *numbers;

	snprintf(clip->name, sizeof(clip->name), "%s", strtok(line, "\t"));
	clip->rate = (uint32_t)atoi(strtok(NULL, "\t"));
	clip->channels = (uint32_t)atoi(strtok(NULL, "\t"));
	clip->frames = atoi(strtok(NULL, "\t"));
	clip->heard_us = atoi(strtok(NULL, "\t"));
	clip->seen_us = atoi(strtok(NULL, "\t"));
	numbers = strtok(NULL, "\t");
	for (int64_t i = 0; i < clip->frames * clip->channels; i += EACH) {
		clip->number[i / EACH] = strtof(numbers, &numbers);
		numbers++;
	}
	clip->data = data_load("pipeline/video_sounds", clip->name, &clip->size);
}

static void load_clips(void)
{
	FILE *file = data_open("pipeline", "golden_video_sounds.tsv");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (n_clips < MOST_CLIPS && getline(&line, &room, file) > 0)
		load_clip(line);
	fclose(file);
}

static struct video_sound *open_clip(const struct clip *clip)
{
	struct video_sound *sound = NULL;

	error.text[0] = '\0';
	if (module->sound_open(clip->data, clip->size, &sound, &head, &error) != 0)
		return NULL;
	return sound;
}

/* NULL, or what is wrong with all of it. */
static const char *look_at(const struct clip *clip)
{
	struct video_sound *sound = open_clip(clip);
	const char *wrong = NULL;

	if (!sound)
		return error.text;
	if (head.rate != clip->rate || head.channels != clip->channels)
		wrong = "rate or channels";
	else if (head.frames != clip->frames)
		wrong = "frames";
	else if (module->sound_read(sound, whole, (size_t)head.frames, &error) != 0)
		wrong = error.text;
	for (int64_t i = 0; !wrong && i < head.frames * head.channels; i += EACH)
		if (!(fabsf(whole[i] - clip->number[i / EACH]) <= NEAR))
			wrong = "numbers";
	module->sound_close(sound);
	return wrong;
}

START_TEST(in_order)
{
	const char *wrong = look_at(&clips[_i]);

	ck_assert_msg(!wrong, "%s: %s", clips[_i].name, wrong);
}
END_TEST

/* A part has the numbers that the whole has there; the same ones, whatever was read before. */
START_TEST(anyhow)
{
	const struct clip *clip = &clips[_i];
	struct video_sound *sound;
	struct philox_seq seq;

	ck_assert_ptr_null(look_at(clip));
	sound = open_clip(clip);
	philox_seq_init(&seq, 5, (uint64_t)_i, 0);
	for (unsigned t = 0; t < 60; t++) {
		const size_t at = philox_below(&seq, (uint64_t)clip->frames);
		const size_t n = philox_below(&seq, (uint64_t)clip->frames - at) + 1;
		const size_t first = philox_below(&seq, n);
		const float *there = whole + at * clip->channels;

		module->sound_seek(sound, (int64_t)at);
		ck_assert_int_eq(module->sound_read(sound, part, first, &error), 0);
		ck_assert_int_eq(
		    module->sound_read(sound, part + first * clip->channels, n - first, &error), 0);
		for (size_t i = 0; i < n * clip->channels; i++)
			ck_assert_msg(fabsf(part[i] - there[i]) < NEAR_PART, "%s: %zu + %zu: %g %g",
				      clip->name, at, i, part[i], there[i]);
		module->sound_seek(sound, (int64_t)at);
		ck_assert_int_eq(module->sound_read(sound, again, 1, &error), 0);
		ck_assert_mem_eq(part, again, sizeof(again));
	}
	module->sound_close(sound);
}
END_TEST

/* By the container's clock; of which Matroska has milliseconds. */
START_TEST(clock_of_both)
{
	const struct clip *clip = &clips[_i];
	struct video_sound *sound = open_clip(clip);
	struct video_head pictures;
	struct video_room *room;

	ck_assert_int_le(llabs(module->sound_at(sound, clip->heard_us)), clip->rate / 1000);
	for (int64_t n = clip->frames; n >= -clip->frames; n -= 77)
		ck_assert_int_le(
		    llabs(module->sound_at(sound, clip->heard_us + n * 1000000 / clip->rate) - n),
		    clip->rate / 1000 + 1);
	module->sound_close(sound);
	ck_assert_int_eq(module->room_new(&room), 0);
	if (module->open(room, clip->data, clip->size, &pictures, &error) == 0)
		ck_assert_int_eq(pictures.start_us, clip->seen_us);
	else
		ck_assert_str_eq(clip->name, "alac.m4a");
	module->close(room);
	module->room_free(room);
}
END_TEST

#define SEEN                                                                                       \
	"[{\"op\":\"video\",\"frames\":1,\"clip\":\"center\"},{\"op\":\"center_crop\",\"size\":8}" \
	","
#define HEARD                                                                              \
	"{\"op\":\"view\",\"names\":[\"audio\"]},{\"op\":\"audio\",\"sample_rate\":16000," \
	"\"frames\":"
#define BESIDE 6000 /* frames of the sound, at most */

struct beside {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	uint8_t video[8 * 8 * 3];
	int64_t label, length, heard;
	float audio[BESIDE];
};

static void beside_init(struct beside *beside, const char *spec)
{
	const struct pipeline *one;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(spec, strlen(spec), &beside->pipeline, &diag) == 0, "%s",
		      diag.text);
	one = beside->pipeline;
	ck_assert_int_eq(pipeline_run_new(&one, 1, &beside->run), 0);
}

static void beside_run(struct beside *beside, const uint8_t *data, size_t size)
{
	const struct pipeline_key key = {1, 2, 3};
	const struct pipeline_out out = {.field = {beside->video, &beside->label, &beside->length,
						   beside->audio, &beside->heard}};

	memset(beside->audio, 0xff, sizeof(beside->audio));
	ck_assert_msg(pipeline_run_sample(beside->run, 1, data, size, 5, &key, &out, &error) == 0,
		      "%s", error.text);
}

static void beside_fini(struct beside *beside)
{
	pipeline_run_free(beside->run);
	pipeline_free(beside->pipeline);
}

/* The fifth of ten pictures is shown after 0.16 s; the sound from there on, or silence before it. */
START_TEST(beside_a_clip)
{
	static const struct {
		const char *name;
		int64_t start; /* of the sound, where the window begins */
	} table[] = {{"aac.mp4", 2560}, {"late.mp4", 2560 - 576}, {"vorbis.ogg", 3200 - 256}};
	const struct clip *clip = clips;
	struct beside beside;

	while (strcmp(clip->name, table[_i].name) != 0)
		clip++;
	ck_assert_ptr_null(look_at(clip));
	beside_init(&beside, SEEN HEARD "6000}]");
	beside_run(&beside, clip->data, clip->size);
	ck_assert_int_eq(beside.length, 1);
	ck_assert_int_eq(beside.heard, BASE_MIN(clip->frames - table[_i].start, BESIDE));
	for (int64_t i = 0; i < BESIDE; i++) {
		const float *there = whole + 2 * (table[_i].start + i);

		ck_assert_float_eq_tol(beside.audio[i],
				       i < beside.heard ? (there[0] + there[1]) / 2 : 0, NEAR);
	}
	beside_fini(&beside);
}
END_TEST

/* From the first picture on, which is shown before anything sounds; and a file in which nothing does. */
START_TEST(silence_beside_a_clip)
{
	const struct clip *clip = clips;
	struct beside beside;
	struct clip silent = {.size = 0};

	while (strcmp(clip->name, "late.mp4") != 0)
		clip++;
	ck_assert_ptr_null(look_at(clip));
	beside_init(&beside,
		    "[{\"op\":\"video\",\"frames\":1,\"clip\":\"begin\"},{\"op\":\"center_crop\","
		    "\"size\":8}," HEARD "600}]");
	beside_run(&beside, clip->data, clip->size);
	ck_assert_int_eq(beside.heard, 600);
	for (int64_t i = 0; i < 600; i++)
		ck_assert_float_eq_tol(
		    beside.audio[i],
		    i < 576 ? 0 : (whole[2 * (i - 576)] + whole[2 * (i - 576) + 1]) / 2, NEAR);
	silent.data = data_load("pipeline/video_sounds", "silent.mp4", &silent.size);
	beside_run(&beside, silent.data, silent.size);
	ck_assert_int_eq(beside.heard, 0);
	for (int64_t i = 0; i < 600; i++)
		ck_assert_float_eq(beside.audio[i], 0);
	free(silent.data);
	beside_fini(&beside);
	beside_init(&beside,
		    "[{\"op\":\"video\",\"frames\":1,\"clip\":\"begin\"},{\"op\":\"center_crop\","
		    "\"size\":8}," HEARD "500}]"); /* ends before it */
	beside_run(&beside, clip->data, clip->size);
	ck_assert_int_eq(beside.heard, 0);
	beside_fini(&beside);
}
END_TEST

/* Of a part of the file: the sound from when the clip begins, and no more of it than what the part has. */
START_TEST(beside_a_clip_of_a_part)
{
	static const struct {
		const char *name;
		double start, seconds;
		int64_t first, heard; /* of the sound's frames */
	} table[] = {{"aac.mp4", 0.2, 0.08, 3200, 1280},
		     {"late.mp4", 0.2, 0.08, 3200 - 576, 1280},
		     {"late.mp4", 0.19, 0.09, 3200 - 576, 1280}, /* a frame begins at 0.2 */
		     {"late.mp4", 0, 0.02, 0, 0},                /* ends before it sounds */
		     {"late.mp4", 0.32, INFINITY, 5120 - 576, BESIDE}};
	static _Alignas(64) uint8_t data[1 << 17];
	struct packed_wide_head *wide = (struct packed_wide_head *)(void *)data;
	const struct clip *clip = clips;
	struct beside beside;
	int64_t heard;

	while (strcmp(clip->name, table[_i].name) != 0)
		clip++;
	ck_assert_ptr_null(look_at(clip));
	ck_assert_uint_le(128 + clip->size, sizeof(data));
	memset(data, 0, 128);
	*wide = (struct packed_wide_head){PACKED_WIDE_MAGIC, 128 + clip->size, 1, 1, {0}};
	wide->part[0] = table[_i].start;
	wide->part[1] = table[_i].seconds;
	wide->field[0].place = (struct packed_place){PIPELINE_U8, 1, {clip->size}, 128, clip->size};
	memcpy(data + 128, clip->data, clip->size);
	beside_init(&beside,
		    "[{\"op\":\"video\",\"frames\":1,\"clip\":\"begin\","
		    "\"source\":\"record\"},{\"op\":\"center_crop\",\"size\":8}," HEARD "6000}]");
	beside_run(&beside, data, 128 + clip->size);
	heard = BASE_MIN(table[_i].heard, clip->frames - table[_i].first);
	ck_assert_int_eq(beside.heard, heard);
	for (int64_t i = 0; i < BESIDE; i++) {
		const float *there = whole + 2 * (table[_i].first + i);

		ck_assert_float_eq_tol(beside.audio[i], i < heard ? (there[0] + there[1]) / 2 : 0,
				       NEAR_PART);
	}
	beside_fini(&beside);
}
END_TEST

START_TEST(fields_beside_a_clip)
{
	const struct pipeline_field *field;
	struct beside beside;

	beside_init(&beside,
		    SEEN HEARD "6000},{\"op\":\"mel_spectrogram\",\"n_fft\":400,\"n_mels\":8}]");
	ck_assert_uint_eq(pipeline_fields(beside.pipeline, &field), 5);
	ck_assert_str_eq(field[0].name, "video");
	ck_assert_str_eq(field[3].name, "audio");
	ck_assert_uint_eq(field[3].ndim, 2);
	ck_assert_uint_eq(field[3].shape[0], 8);
	ck_assert_str_eq(field[4].name, "audio_length");
	ck_assert(!pipeline_is_random(beside.pipeline));
	beside_run(&beside, clips[0].data, clips[0].size);
	ck_assert_int_gt(beside.heard, 0);
	beside_fini(&beside);
	beside_init(&beside, SEEN HEARD "60,\"speeds\":[1,2]}]");
	ck_assert(pipeline_is_random(beside.pipeline));
	beside_fini(&beside);
}
END_TEST

START_TEST(refused_beside_a_clip)
{
	static const struct {
		const char *spec, *words;
	} table[] = {
	    {SEEN HEARD "60,\"crop\":\"center\"}]",
	     "view \"audio\": the sound begins when the clip does"},
	    {SEEN HEARD "60,\"source\":\"record\"}]", "the pipeline's first op says"},
	    {SEEN HEARD "60}," HEARD "60}]", "another field has that name"},
	    {SEEN "{\"op\":\"view\",\"names\":[\"audio_length\"]},{\"op\":\"center_crop\",\"size\":"
		  "8}," HEARD "60}]",
	     "rename one of them"},
	    {SEEN HEARD "60},{\"op\":\"hflip\"}]", "hflip"},
	    {SEEN HEARD "60},{\"op\":\"fade\",\"fade_in_len\":70}]", "a fade is longer"},
	    {"[{\"op\":\"decode\"},{\"op\":\"center_crop\",\"size\":8}," HEARD "60}]",
	     "first op must be video"},
	    {"[{\"op\":\"video\",\"frames\":2,\"clip\":\"spread\"},{\"op\":\"center_crop\","
	     "\"size\":8}," HEARD "60}]",
	     "give another clip"},
	};
	struct pipeline *pipeline;
	struct diag diag;

	ck_assert_int_eq(pipeline_compile(table[_i].spec, strlen(table[_i].spec), &pipeline, &diag),
			 PIPELINE_E_BAD);
	ck_assert_msg(strstr(diag.text, table[_i].words), "%s", diag.text);
}
END_TEST

/* The number of the first clip that is not right, from 1. */
static int look_at_all(void)
{
	for (unsigned i = 0; i < n_clips; i++)
		if (look_at(&clips[i]))
			return (int)i + 1;
	return 0;
}

START_TEST(sandboxed)
{
	const struct sandbox_limits limits = {.memory = UINT64_C(1) << 30, .event_fd = 3};
	const pid_t child = fork();
	int status;

	if (child == 0) {
		if (dup2(eventfd(0, EFD_NONBLOCK), 3) != 3 || sandbox_enter(&limits) != 0)
			_exit(99);
		_exit(look_at_all());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	ck_assert_msg(WEXITSTATUS(status) == 0, "clip %d", WEXITSTATUS(status));
}
END_TEST

static void refuse(const char *name, const char *words)
{
	struct clip clip = {.size = 0};

	clip.data = data_load("pipeline", name, &clip.size);
	ck_assert_ptr_null(open_clip(&clip));
	ck_assert_msg(strstr(error.text, words), "%s, not %s", error.text, words);
	free(clip.data);
}

START_TEST(refused)
{
	refuse("data/420.jpg", "not MP4, Matroska, WebM, AVI, MPEG-TS or Ogg");
}
END_TEST

START_TEST(no_sound)
{
	struct clip clip = {.size = 0};
	struct video_sound *sound;

	clip.data = data_load("pipeline/video_sounds", "silent.mp4", &clip.size);
	sound = open_clip(&clip);
	ck_assert_ptr_nonnull(sound);
	ck_assert_int_eq(head.frames, 0);
	module->sound_close(sound);
	free(clip.data);
}
END_TEST

/* Whatever comes, there is a reason where it is bad. */
static void listen(struct clip *clip)
{
	struct video_sound *sound = open_clip(clip);
	int64_t middle;

	if (!sound) {
		ck_assert_uint_gt(strlen(error.text), 4);
		return;
	}
	ck_assert_int_ge(head.frames, 0);
	middle = head.frames / 2;
	for (unsigned i = 0; i < 2 && head.frames > 0 && head.channels <= 8; i++) {
		error.text[0] = '\0';
		if (i > 0)
			module->sound_seek(sound, middle);
		if (module->sound_read(sound, part, 4000, &error) != 0)
			ck_assert_uint_gt(strlen(error.text), 4);
	}
	module->sound_close(sound);
}

START_TEST(cut_off)
{
	for (unsigned i = 0; i < n_clips; i++) {
		for (unsigned of = 1; of < 12; of++) {
			struct clip clip = {.size = clips[i].size * of / 12};

			clip.data = malloc(clip.size);
			memcpy(clip.data, clips[i].data, clip.size);
			listen(&clip);
			free(clip.data);
		}
	}
}
END_TEST

START_TEST(damage)
{
	struct clip clip = clips[_i];
	struct philox_seq seq;

	clip.data = malloc(clip.size);
	philox_seq_init(&seq, 7, (uint64_t)_i, 0);
	for (unsigned i = 0; i < 100; i++) {
		memcpy(clip.data, clips[_i].data, clip.size);
		for (unsigned k = 0; k <= i % 8; k++)
			clip.data[philox_below(&seq, clip.size)] = (uint8_t)philox_u32(&seq);
		listen(&clip);
	}
	free(clip.data);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("video_sound");
	TCase *tcase = tcase_create("video_sound");
	const char *why = video_missing();
	SRunner *runner;
	int failed, clip_end;

	if (why) {
		puts(why);
		return 77;
	}
	module = video_load(&why);
	if (!module || video_loaded() != module) {
		puts(why);
		return EXIT_FAILURE;
	}
	load_clips();
	clip_end = (int)n_clips;
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, in_order, 0, clip_end);
	tcase_add_loop_test(tcase, anyhow, 0, clip_end);
	tcase_add_loop_test(tcase, clock_of_both, 0, clip_end);
	tcase_add_loop_test(tcase, beside_a_clip, 0, 3);
	tcase_add_test(tcase, silence_beside_a_clip);
	tcase_add_loop_test(tcase, beside_a_clip_of_a_part, 0, 5);
	tcase_add_test(tcase, fields_beside_a_clip);
	tcase_add_loop_test(tcase, refused_beside_a_clip, 0, 8);
	tcase_add_test(tcase, sandboxed);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, no_sound);
	tcase_add_test(tcase, cut_off);
	tcase_add_loop_test(tcase, damage, 0, clip_end);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	for (unsigned i = 0; i < n_clips; i++)
		free(clips[i].data);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
