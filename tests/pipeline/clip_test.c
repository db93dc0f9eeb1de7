/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "video": which frames of a file make a clip, and that ops do to each of them, with the same draws, what they do to a
 * picture. What decodes is video_fake.c.
 */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar.h"
#include "pipeline/forms/packed.h"
#include "pipeline/pipeline.h"
#include "pipeline/spec/compare.h"
#include "pipeline/video/video_module.h"
#include "tests/suite.h"
#include "tests/pipeline/trial.h"
#include "tests/pipeline/video_fake.h"

#define MOST_FILE (256 << 10)
#define HEIGHT 37
#define WIDTH 50

static uint8_t file[MOST_FILE];

static struct pipeline *compiled(const char *text)
{
	struct pipeline *pipeline = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(pipeline_compile(text, strlen(text), &pipeline, &diag) == 0, "%s", diag.text);
	return pipeline;
}

/* ---- which frames ---- */

static const struct {
	struct video video;
	uint32_t has, gap_us, length, pick[8];
} picks[] = {
    {{4, 1, 0, VIDEO_BEGIN}, 9, 40000, 4, {0, 1, 2, 3}},
    {{4, 2, 0, VIDEO_BEGIN}, 9, 40000, 4, {0, 2, 4, 6}},
    {{4, 2, 0, VIDEO_CENTER}, 9, 40000, 4, {1, 3, 5, 7}},
    {{4, 2, 0, VIDEO_CENTER}, 7, 40000, 4, {0, 2, 4, 6}},
    {{4, 2, 0, VIDEO_CENTER}, 6, 40000, 3, {0, 2, 4, 5}},
    {{4, 2, 0, VIDEO_RANDOM}, 7, 40000, 4, {0, 2, 4, 6}},
    {{4, 2, 0, VIDEO_RANDOM}, 3, 40000, 2, {0, 2, 2, 2}},
    {{4, 65536, 0, VIDEO_RANDOM}, 2, 40000, 1, {0, 1, 1, 1}},
    {{3, 1, 0, VIDEO_CENTER}, 1, 40000, 1, {0, 0, 0}},
    {{1, 1, 0, VIDEO_CENTER}, 5, 40000, 1, {2}},
    {{1, 7, 0, VIDEO_BEGIN}, 1, 40000, 1, {0}},
    {{4, 1, 0, VIDEO_SPREAD}, 4, 40000, 4, {0, 1, 2, 3}},
    {{4, 1, 0, VIDEO_SPREAD}, 100, 40000, 4, {12, 37, 62, 87}},
    {{4, 1, 0, VIDEO_SPREAD}, 2, 40000, 4, {0, 0, 1, 1}},
    {{1, 1, 0, VIDEO_SPREAD}, 7, 40000, 1, {3}},
    {{8, 1, 0, VIDEO_SPREAD}, 1, 40000, 8, {0}},
    {{4, 1, 25, VIDEO_BEGIN}, 9, 40000, 4, {0, 1, 2, 3}},
    {{4, 1, 12.5, VIDEO_BEGIN}, 9, 40000, 4, {0, 2, 4, 6}},
    {{4, 1, 12.5, VIDEO_CENTER}, 9, 40000, 4, {1, 3, 5, 7}},
    {{4, 1, 12.5, VIDEO_CENTER}, 6, 40000, 3, {0, 2, 4, 5}},
    {{6, 1, 50, VIDEO_BEGIN}, 9, 40000, 6, {0, 0, 1, 1, 2, 2}},
    {{6, 1, 50, VIDEO_BEGIN}, 2, 40000, 4, {0, 0, 1, 1, 1, 1}},
    {{5, 1, 30, VIDEO_BEGIN}, 9, 33333, 5, {0, 1, 2, 3, 4}}, /* times rounded down */
    {{5, 1, 15, VIDEO_BEGIN}, 9, 33333, 5, {0, 2, 4, 6, 8}},
    {{3, 1, 10, VIDEO_BEGIN}, 1, 40000, 1, {0, 0, 0}},
    {{2, 1, 0.001, VIDEO_RANDOM}, 5, 40000, 1, {0, 4}},
};

static uint32_t picked(const struct video *video, uint32_t has, uint32_t gap_us, uint64_t sample,
		       uint32_t *ret)
{
	int64_t *time_us = calloc(has, sizeof(*time_us));
	const struct video_head head = {1, 1, has, time_us, 0};
	const struct pipeline_key key = {3, 4, sample};
	struct philox_seq seq;
	struct draw draw;
	uint32_t length;

	ck_assert_ptr_nonnull(time_us);
	for (uint32_t i = 0; i < has; i++)
		time_us[i] = (int64_t)i * gap_us;
	draw_init(&draw, &key);
	draw_seq(&draw, 0, &seq);
	length = video_pick(video, &head, &seq, ret);
	free(time_us);
	return length;
}

START_TEST(picks_are_these)
{
	uint32_t got[8];

	ck_assert_uint_eq(picked(&picks[_i].video, picks[_i].has, picks[_i].gap_us, 1, got),
			  picks[_i].length);
	for (uint32_t i = 0; i < picks[_i].video.frames; i++)
		ck_assert_msg(got[i] == picks[_i].pick[i], "%u: frame %u, not %u", i, got[i],
			      picks[_i].pick[i]);
}
END_TEST

/* Frames that are shown for unequal times. */
START_TEST(moments_have_the_frame_that_is_shown)
{
	static const int64_t times[] = {0, 100000, 110000, 500000, 900000};
	static const uint32_t want[] = {0, 2, 2, 3, 3, 4, 4, 4};
	const struct video video = {8, 1, 5, VIDEO_BEGIN};
	const struct video_head head = {1, 1, 5, times, 0};
	uint32_t got[8];

	/* The last one is shown until 1.125 s. */
	ck_assert_uint_eq(video_pick(&video, &head, NULL, got), 6);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(got[i], want[i]);
}
END_TEST

/* The frames that are shown first within a part, as if they were the file; at the end as with files. */
START_TEST(parts_are_as_files)
{
	static const int64_t times[] = {0, 100000, 110000, 500000, 900000};
	static const struct {
		double start, seconds;
		uint32_t first, frames;
	} table[] = {
	    {0, INFINITY, 0, 5}, {0, 0.5, 0, 3},        {0.1, 0.01, 1, 1},
	    {0.05, 0.5, 1, 3},   {0.500001, 9, 3, 2},   {0.500002, 9, 4, 1},
	    {0, 1e300, 0, 5},    {0.1, 0.399999, 1, 2}, {0.9, 1e-5, 4, 1},
	};
	static const struct {
		double start, seconds;
		const char *words;
	} wrong[] = {{0.900002, 1, "second 0.900002 of a video of 1.125"},
		     {1e300, 1, "of a video of 1.125"},
		     {0.2, 0.1, "a part of 0.1 s has no frame"}};
	const struct video_head head = {1, 1, 5, times, 0};
	struct pipeline_error error;
	struct video_head part;
	uint32_t first, got[2];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(table); i++) {
		const struct pipeline_part of = {true, table[i].start, table[i].seconds, 0};

		ck_assert_int_eq(video_part(&head, &of, &part, &first, &error), 0);
		ck_assert_uint_eq(first, table[i].first);
		ck_assert_uint_eq(part.frames, table[i].frames);
		ck_assert_int_eq(part.time_us[0], times[first]);
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(wrong); i++) {
		const struct pipeline_part of = {true, wrong[i].start, wrong[i].seconds, 0};

		ck_assert_int_eq(video_part(&head, &of, &part, &first, &error), PIPELINE_E_BAD);
		ck_assert_msg(strstr(error.text, wrong[i].words) != NULL, "%s", error.text);
	}
	/* Of moments, the first is when the part's first frame is shown. */
	ck_assert_int_eq(
	    video_part(&head, &(struct pipeline_part){true, 0.05, 9, 0}, &part, &first, &error), 0);
	ck_assert_uint_eq(video_pick(&(struct video){2, 1, 2.5, VIDEO_BEGIN}, &part, NULL, got), 2);
	ck_assert_uint_eq(first + got[0], 1);
	ck_assert_uint_eq(first + got[1], 3);
}
END_TEST

/* Each start that fits, and each about as often: of 4000 draws of 10, 400 and some six deviations. */
START_TEST(starts_are_uniform)
{
	static const struct video videos[] = {{4, 3, 0, VIDEO_RANDOM},
					      {4, 1, 25.0 / 3, VIDEO_RANDOM}};
	unsigned count[10] = {0};
	uint32_t got[4];

	for (uint64_t sample = 0; sample < 4000; sample++) {
		ck_assert_uint_eq(picked(&videos[_i], 19, 40000, sample, got), 4);
		ck_assert_uint_le(got[0], 9);
		for (unsigned i = 1; i < 4; i++)
			ck_assert_uint_eq(got[i], got[0] + 3 * i);
		count[got[0]]++;
	}
	for (unsigned i = 0; i < 10; i++)
		ck_assert_msg(count[i] > 280 && count[i] < 520, "%u: %u times", i, count[i]);
}
END_TEST

START_TEST(picks_are_of_the_file)
{
	static const double rates[] = {0, 0.001, 7.3, 29.97, 1000};
	static uint32_t got[VIDEO_MOST_FRAMES];
	struct philox_seq seq;

	philox_seq_init(&seq, 7, 8, 0);
	for (int trial = 0; trial < 3000; trial++) {
		struct video video = {.clip = (enum video_clip)philox_below(&seq, 4)};
		const uint32_t has = 1 + (uint32_t)philox_below(&seq, 500);
		const uint32_t gap = (uint32_t)philox_below(&seq, 3) * 20000;
		uint32_t length;

		video.frames = 1 + (uint32_t)philox_below(&seq, VIDEO_MOST_FRAMES);
		video.fps = rates[philox_below(&seq, 5)];
		video.step = video.fps > 0 ? 1 : 1 + (uint32_t)philox_below(&seq, 65536);
		length = picked(&video, has, gap, (uint64_t)trial, got);
		ck_assert(length >= 1 && length <= video.frames);
		for (uint32_t i = 0; i < video.frames; i++) {
			ck_assert_uint_lt(got[i], has);
			ck_assert(i == 0 || got[i] >= got[i - 1]);
			ck_assert(i < length || got[i] == has - 1);
		}
	}
}
END_TEST

/* ---- the text ---- */

#define VIDEO(rest) "[{\"op\":\"video\",\"frames\":4" rest "}"
#define CROP ",{\"op\":\"center_crop\",\"size\":[3,2]}"

static const struct {
	const char *text, *says;
} wrong[] = {
    {"[{\"op\":\"video\"}" CROP "]", "op 1 (video): frames is missing"},
    {"[{\"op\":\"video\",\"frames\":0}" CROP "]", "frames"},
    {"[{\"op\":\"video\",\"frames\":1025}" CROP "]", "1 to 1024"},
    {VIDEO(",\"step\":0") CROP "]", "step"},
    {VIDEO(",\"fps\":0") CROP "]", "fps"},
    {VIDEO(",\"fps\":1001") CROP "]", "fps"},
    {VIDEO(",\"clip\":\"end\"") CROP "]", "spread"},
    {VIDEO(",\"step\":2,\"fps\":5") CROP "]", "give one of them"},
    {VIDEO(",\"clip\":\"spread\",\"step\":2") CROP "]", "leave them out"},
    {VIDEO(",\"clip\":\"spread\",\"fps\":2") CROP "]", "leave them out"},
    {VIDEO("") "]", "size would differ"},
    {VIDEO("") ",{\"op\":\"decode\"}" CROP "]", "op 2 (decode)"},
    {"[{\"op\":\"decode\"},"
     "{\"op\":\"video\",\"frames\":4}" CROP "]",
     "takes the place of decode"},
    {VIDEO("") ",{\"op\":\"five_crop\",\"size\":2}]",
     "op 2 (five_crop): there are several pictures"},
    {VIDEO("") CROP ",{\"op\":\"mixup\",\"num_classes\":3}]", "these are clips"},
    {VIDEO("") CROP ",{\"op\":\"cutmix\",\"num_classes\":3}]", "these are clips"},
    {VIDEO(",\"source\":\"record\",\"fields\":[[3,2,4]],\"kinds\":[3]") CROP "]", "kinds"},
    {VIDEO(",\"fields\":[[1]]") CROP "]", "op 1 (video): fields come in"},
    {VIDEO(",\"source\":\"record\",\"fields\":[[1]],\"names\":[\"length\"]") CROP "]", "one name"},
    {VIDEO("") CROP ",{\"op\":\"view\",\"names\":[\"length\"]}" CROP "]", "another field has"},
};

START_TEST(wrong_texts_are_told)
{
	trial_refused(wrong[_i].text, wrong[_i].says);
}
END_TEST

START_TEST(fields_are_told)
{
	static const char *const texts[] = {VIDEO("") CROP ",{\"op\":\"layout\"}]",
					    VIDEO("") CROP "]",
					    "[{\"op\":\"video\",\"frames\":1}" CROP "]"};
	static const uint64_t shapes[][4] = {{4, 3, 3, 2}, {4, 3, 2, 3}, {1, 3, 2, 3}};
	struct pipeline *pipeline = compiled(texts[_i]);
	unsigned cuts[PIPELINE_MAX_OPS];
	const struct pipeline_field *field;
	struct hash_id id;

	ck_assert_uint_eq(pipeline_fields(pipeline, &field), 3);
	ck_assert_str_eq(field[0].name, "video");
	ck_assert_uint_eq(field[0].ndim, 4);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(field[0].shape[i], shapes[_i][i]);
	ck_assert_uint_eq(field[0].bytes, shapes[_i][0] * 18);
	ck_assert_str_eq(field[1].name, "label");
	ck_assert_str_eq(field[2].name, "length");
	ck_assert_int_eq(field[2].dtype, PIPELINE_I64);
	ck_assert_uint_eq(field[2].ndim, 0);
	ck_assert(pipeline_is_random(pipeline));
	/* Of videos the file is kept, and no pictures. */
	ck_assert_uint_eq(pipeline_cuts(pipeline, cuts), 0);
	pipeline_hash_cut(pipeline, 0, &id);
	ck_assert(memcmp(&id, &(struct hash_id){{0}}, sizeof(id)) != 0);
	pipeline_free(pipeline);
}
END_TEST

START_TEST(texts_are_canonical)
{
	struct pipeline *one = compiled(VIDEO(",\"clip\":\"center\"") CROP "]"), *again;

	ck_assert_ptr_nonnull(
	    strstr(pipeline_canonical(one),
		   "{\"clip\":\"center\",\"fps\":null,\"frames\":4,\"op\":\"video\","
		   "\"step\":1}"));
	again = compiled(pipeline_canonical(one));
	ck_assert_str_eq(pipeline_canonical(one), pipeline_canonical(again));
	ck_assert(!pipeline_is_random(one));
	ck_assert_ptr_null(pipeline_load(one));
	pipeline_free(one);
	pipeline_free(again);
}
END_TEST

START_TEST(alike_videos_meet)
{
	struct pipeline *one = compiled(VIDEO("") CROP "]");
	struct pipeline *same =
	    compiled(VIDEO(",\"step\":1") ",{\"op\":\"resize\",\"size\":[4,4]}]");
	struct pipeline *other = compiled(VIDEO(",\"step\":2") CROP "]");
	struct pipeline *picture = compiled("[{\"op\":\"decode\"}" CROP "]");
	char shared[64];
	const struct pipeline *pairs[][2] = {
	    {one, other}, {one, picture}, {picture, one}, {one, same}};

	for (unsigned i = 0; i < 4; i++) {
		struct pipeline_run *run = NULL;

		ck_assert(compare_can_meet(pairs[i][0], pairs[i][1]) == (i == 3));
		ck_assert_int_eq(pipeline_run_new(pairs[i], 2, &run), i == 3 ? 0 : -EINVAL);
		pipeline_run_free(run);
	}
	ck_assert_str_eq(compare_shared(one, same, shared, sizeof(shared)), "video");
	pipeline_free(one);
	pipeline_free(same);
	pipeline_free(other);
	pipeline_free(picture);
}
END_TEST

/* ---- samples ---- */

struct rig {
	struct pipeline *pipeline;
	struct pipeline_run *run;
	uint8_t *field[PIPELINE_MAX_FIELDS]; /* exactly as long: the sanitizer sees a byte more */
	const struct pipeline_field *is;
	unsigned n;
	struct pipeline_error error;
};

static void rig_init(struct rig *rig, const char *text)
{
	const struct pipeline *one;

	*rig = (struct rig){.pipeline = compiled(text)};
	one = rig->pipeline;
	rig->n = pipeline_fields(one, &rig->is);
	for (unsigned f = 0; f < rig->n; f++)
		rig->field[f] = malloc(rig->is[f].bytes);
	ck_assert_int_eq(pipeline_run_new(&one, 1, &rig->run), 0);
}

static void rig_fini(struct rig *rig)
{
	for (unsigned f = 0; f < rig->n; f++)
		free(rig->field[f]);
	pipeline_run_free(rig->run);
	pipeline_free(rig->pipeline);
}

static struct pipeline_out rig_out(const struct rig *rig)
{
	struct pipeline_out out = {.field = {NULL}};

	for (unsigned f = 0; f < rig->n; f++) {
		memset(rig->field[f], 0xee, rig->is[f].bytes);
		out.field[f] = rig->field[f];
	}
	return out;
}

/* Of a copy of exactly size bytes. */
static int rig_run(struct rig *rig, const uint8_t *data, size_t size, uint64_t sample)
{
	const struct pipeline_key key = {1, 2, sample};
	const struct pipeline_out out = rig_out(rig);
	_cleanup_free_ uint8_t *copy = malloc(size ? size : 1);
	int r;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, data, size);
	rig->error.text[0] = '\0';
	r = pipeline_run_sample(rig->run, 1, copy, size, 5, &key, &out, &rig->error);
	ck_assert_uint_eq(video_fake_open, 0);
	return r;
}

static int64_t number(const uint8_t *field)
{
	int64_t value;

	memcpy(&value, field, sizeof(value));
	return value;
}

/* A frame of `file` as a picture's file. */
static size_t ppm(uint8_t *to, uint32_t frame)
{
	const int head = sprintf((char *)to, "P6\n%d %d\n255\n", WIDTH, HEIGHT);

	memcpy(to + head, file + VIDEO_FAKE_HEAD + (size_t)frame * HEIGHT * WIDTH * 3,
	       HEIGHT * WIDTH * 3);
	return (size_t)head + HEIGHT * WIDTH * 3;
}

static const char *const op_lists[] = {
    "{\"op\":\"center_crop\",\"size\":[20,30]}",
    "{\"op\":\"random_resized_crop\",\"size\":24},{\"op\":\"hflip\"},{\"op\":\"normalize\","
    "\"mean\":[0.4,"
    "0.5,0.6],\"std\":[0.2,0.3,0.4]},{\"op\":\"layout\"}",
    "{\"op\":\"resize\",\"size\":[40,33]},{\"op\":\"random_crop\",\"size\":[31,29]},{\"op\":"
    "\"vflip\"}",
    "{\"op\":\"color_jitter\",\"brightness\":0.4,\"contrast\":0.3,\"saturation\":0.5,\"hue\":0.1},{"
    "\"op\":\"center_crop\",\"size\":32},{\"op\":\"cast\",\"dtype\":\"f16\"},{\"op\":\"layout\"}",
    "{\"op\":\"random_apply\",\"p\":0.5},{\"op\":\"gaussian_blur\",\"kernel_size\":5},{\"op\":"
    "\"random_resized_crop\",\"size\":[17,23],\"interpolation\":\"bicubic\"},{\"op\":\"normalize\","
    "\"mean\":0.5,\"std\":0.5},{\"op\":\"random_erasing\",\"p\":0.8},{\"op\":\"layout\"}",
    "{\"op\":\"affine\",\"degrees\":30,\"translate\":[0.1,0.1],\"scale\":[0.8,1.2]},{\"op\":"
    "\"random_perspective\"},{\"op\":\"center_crop\",\"size\":30}",
    "{\"op\":\"elastic_transform\",\"sigma\":[0.2,0.3]},{\"op\":\"jpeg\",\"quality\":[30,90]},"
    "{\"op\":\"aug_mix\"},{\"op\":\"center_crop\",\"size\":30}",
    "{\"op\":\"rand_augment\"},{\"op\":\"resize\",\"size\":[16,16]},{\"op\":\"random_grayscale\","
    "\"p\":"
    "0.5},{\"op\":\"layout\"}",
    "{\"op\":\"trivial_augment\"},{\"op\":\"random_resized_crop\",\"size\":16},{\"op\":"
    "\"grayscale\"},{"
    "\"op\":\"layout\"}",
};

/* Each frame of a clip is what it is as a picture, with the same key. */
START_TEST(frames_are_as_pictures)
{
	static uint8_t picture[HEIGHT * WIDTH * 3 + 64];
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 11, 40000, 1);
	struct rig clip, one;
	char text[1000];

	snprintf(text, sizeof(text),
		 "[{\"op\":\"video\",\"frames\":5,\"step\":2,\"clip\":\"begin\"},%s]",
		 op_lists[_i]);
	rig_init(&clip, text);
	snprintf(text, sizeof(text), "[{\"op\":\"decode\"},%s]", op_lists[_i]);
	rig_init(&one, text);
	ck_assert_uint_eq(clip.is[0].bytes, 5 * one.is[0].bytes);
	for (uint64_t sample = 0; sample < 12; sample++) {
		ck_assert_int_eq(rig_run(&clip, file, size, sample), 0);
		ck_assert_int_eq(number(clip.field[1]), 5);
		ck_assert_int_eq(number(clip.field[2]), 5);
		for (uint32_t i = 0; i < 5; i++) {
			ck_assert_int_eq(rig_run(&one, picture, ppm(picture, 2 * i), sample), 0);
			ck_assert_mem_eq(clip.field[0] + i * one.is[0].bytes, one.field[0],
					 one.is[0].bytes);
		}
	}
	rig_fini(&clip);
	rig_fini(&one);
}
END_TEST

/* A short video, whose last frame is repeated without being decoded again. */
START_TEST(last_frames_are_repeated)
{
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 3, 40000, 2);
	struct rig rig;
	size_t bytes;

	rig_init(&rig, VIDEO(",\"step\":2") ",{\"op\":\"random_resized_crop\",\"size\":[9,8]},{"
					    "\"op\":\"layout\"}]");
	bytes = rig.is[0].bytes / 4;
	video_fake_decoded = 0;
	ck_assert_int_eq(rig_run(&rig, file, size, 3), 0);
	ck_assert_uint_eq(video_fake_decoded, 2);
	ck_assert_int_eq(number(rig.field[2]), 2);
	ck_assert_mem_eq(rig.field[0] + 2 * bytes, rig.field[0] + bytes, bytes);
	ck_assert_mem_eq(rig.field[0] + 3 * bytes, rig.field[0] + bytes, bytes);
	ck_assert(memcmp(rig.field[0], rig.field[0] + bytes, bytes) != 0);
	rig_fini(&rig);
}
END_TEST

/* Draws of the clip are op 1's, of each sample its own. */
START_TEST(random_clips_follow_the_key)
{
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 40, 40000, 3), one = 3 * 2 * 3;
	bool seen[40] = {false};
	struct rig rig, whole;
	unsigned n = 0;

	rig_init(&rig, VIDEO("") CROP "]");
	rig_init(&whole, "[{\"op\":\"video\",\"frames\":40}" CROP "]");
	ck_assert_int_eq(rig_run(&whole, file, size, 0), 0);
	for (uint64_t sample = 0; sample < 60; sample++) {
		uint32_t start = 0;

		ck_assert_int_eq(rig_run(&rig, file, size, sample), 0);
		while (memcmp(rig.field[0], whole.field[0] + start * one, 4 * one) != 0)
			ck_assert_uint_lt(start++, 36);
		n += !seen[start];
		seen[start] = true;
	}
	ck_assert_uint_gt(n, 15);
	rig_fini(&rig);
	rig_fini(&whole);
}
END_TEST

START_TEST(variants_share_a_decode)
{
	static const char *const texts[] = {
	    VIDEO(
		",\"step\":3") ",{\"op\":\"random_resized_crop\",\"size\":24},{\"op\":\"hflip\"}]",
	    VIDEO(
		",\"step\":3") ",{\"op\":\"random_resized_crop\",\"size\":24},{\"op\":\"layout\"}]",
	    VIDEO(",\"step\":3") ",{\"op\":\"color_jitter\",\"hue\":0.2},{\"op\":\"resize\","
				 "\"size\":[12,"
				 "14]},{\"op\":\"cast\",\"dtype\":\"f32\"}]",
	};
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 20, 40000, 4);
	const struct pipeline *all[3];
	struct pipeline_out out[3];
	struct pipeline_run *run;
	struct pipeline_error error;
	struct rig rig[3];

	for (unsigned v = 0; v < 3; v++) {
		rig_init(&rig[v], texts[v]);
		all[v] = rig[v].pipeline;
	}
	ck_assert_int_eq(pipeline_run_new(all, 3, &run), 0);
	for (uint64_t sample = 0; sample < 8; sample++) {
		const struct pipeline_key key = {1, 2, sample};
		uint8_t *alone[3];

		for (unsigned v = 0; v < 3; v++) {
			ck_assert_int_eq(rig_run(&rig[v], file, size, sample), 0);
			alone[v] = malloc(rig[v].is[0].bytes);
			memcpy(alone[v], rig[v].field[0], rig[v].is[0].bytes);
			out[v] = rig_out(&rig[v]);
		}
		video_fake_decoded = 0;
		ck_assert_int_eq(pipeline_run_sample(run, 7, file, size, 5, &key, out, &error), 0);
		ck_assert_uint_eq(video_fake_decoded, 4);
		for (unsigned v = 0; v < 3; v++) {
			ck_assert_mem_eq(rig[v].field[0], alone[v], rig[v].is[0].bytes);
			ck_assert_int_eq(number(rig[v].field[1]), 5);
			ck_assert_int_eq(number(rig[v].field[2]), 4);
			free(alone[v]);
		}
	}
	pipeline_run_free(run);
	for (unsigned v = 0; v < 3; v++)
		rig_fini(&rig[v]);
}
END_TEST

/* Views are clips of the same frames. */
START_TEST(views_are_clips)
{
	static const char ops[] = ",{\"op\":\"random_resized_crop\",\"size\":8},{\"op\":\"hflip\"}";
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 20, 40000, 5);
	char text[600];
	struct rig rig, one;

	snprintf(text, sizeof(text), VIDEO("") "%s,{\"op\":\"view\",\"names\":[\"second\"]}%s]",
		 ops, ops);
	rig_init(&rig, text);
	snprintf(text, sizeof(text), VIDEO("") "%s]", ops);
	rig_init(&one, text);
	ck_assert_uint_eq(rig.n, 4);
	ck_assert_str_eq(rig.is[3].name, "second");
	ck_assert_uint_eq(rig.is[3].bytes, rig.is[0].bytes);
	video_fake_decoded = 0;
	ck_assert_int_eq(rig_run(&rig, file, size, 1), 0);
	ck_assert_uint_eq(video_fake_decoded, 4);
	ck_assert_int_eq(rig_run(&one, file, size, 1), 0);
	ck_assert_mem_eq(rig.field[0], one.field[0], one.is[0].bytes);
	ck_assert(memcmp(rig.field[3], one.field[0], one.is[0].bytes) != 0);
	rig_fini(&rig);
	rig_fini(&one);
}
END_TEST

struct told {
	unsigned times;
	uint32_t height, width;
};

static void tell(void *arg, uint32_t height, uint32_t width)
{
	struct told *told = arg;

	*told = (struct told){told->times + 1, height, width};
}

/* For the patience: all that is decoded, once, key frames before a clip too. */
START_TEST(pixels_are_told)
{
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 40, 40000, 6);
	struct told told = {0, 0, 0};
	struct rig rig;

	rig_init(&rig, VIDEO(",\"clip\":\"center\"") CROP "]");
	pipeline_run_watch(rig.run, tell, &told);
	ck_assert_int_eq(rig_run(&rig, file, size, 6), 0);
	ck_assert_uint_eq(told.times, 1);
	ck_assert_uint_eq(told.height, 12 * HEIGHT); /* 10 to 21 */
	ck_assert_uint_eq(told.width, WIDTH);
	rig_fini(&rig);
}
END_TEST

START_TEST(sizes_are_filtered_by_the_head)
{
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 10, 40000, 7);
	struct rig rig;

	rig_init(&rig, _i ? VIDEO("") CROP ",{\"op\":\"filter\",\"min_width\":51}]"
			  : VIDEO("") CROP ",{\"op\":\"filter\",\"min_width\":50}]");
	video_fake_decoded = 0;
	ck_assert_int_eq(rig_run(&rig, file, size, 1), _i ? PIPELINE_E_BAD : 0);
	ck_assert_uint_eq(video_fake_decoded, _i ? 0 : 4);
	if (_i)
		ck_assert_int_eq(rig.error.stage, PIPELINE_FAIL_FILTERED);
	rig_fini(&rig);
}
END_TEST

START_TEST(bad_files_are_bad)
{
	size_t size = video_fake_file(file, HEIGHT, WIDTH, 6, 40000, 8);
	const uint32_t huge[4] = {16384, 16384, 6, 40000}, none[4] = {HEIGHT, WIDTH, 0, 40000},
		       flat[4] = {0, WIDTH, 6, 40000};
	static const char picture[] = "P6\n2 1\n255\n\xff\x00\x00\x80\x80\x80";
	struct rig rig;

	rig_init(&rig, VIDEO(",\"clip\":\"begin\"") CROP "]");
	for (size_t cut = 0; cut < size; cut += 97)
		ck_assert_int_eq(rig_run(&rig, file, cut, 1),
				 cut < VIDEO_FAKE_HEAD + 4 * HEIGHT * WIDTH * 3 ? PIPELINE_E_BAD
										: 0);
	ck_assert_int_eq(rig_run(&rig, (const uint8_t *)picture, sizeof(picture) - 1, 1),
			 PIPELINE_E_BAD);
	ck_assert_str_eq(rig.error.text, "a picture, which the op decode decodes");
	ck_assert_int_eq(rig_run(&rig, (const uint8_t *)"no picture", 10, 1), PIPELINE_E_BAD);
	ck_assert_str_eq(rig.error.text, "no film");
	ck_assert_int_eq(rig_run(&rig, file, size, 1), 0);
	memcpy(file + 4, huge, sizeof(huge));
	ck_assert_int_eq(rig_run(&rig, file, size, 1), PIPELINE_E_BAD);
	ck_assert_int_eq(rig.error.stage, PIPELINE_FAIL_REFUSED);
	memcpy(file + 4, none, sizeof(none));
	ck_assert_int_eq(rig_run(&rig, file, size, 1), PIPELINE_E_BAD);
	ck_assert_str_eq(rig.error.text, "a video without frames");
	memcpy(file + 4, flat, sizeof(flat));
	ck_assert_int_eq(rig_run(&rig, file, size, 1), PIPELINE_E_BAD);
	rig_fini(&rig);
}
END_TEST

/* ---- beside a video ---- */

static size_t add(uint8_t *to, const char *path, const void *data, size_t size)
{
	struct tar_header header = {.type = '0', .magic = "ustar"};

	memcpy(header.name, path, strlen(path));
	snprintf(header.size, sizeof(header.size), "%011o", (unsigned)size & 07777777);
	snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_header_sum(&header));
	memcpy(to, &header, sizeof(header));
	memset(to + TAR_BLOCK, 0, base_align_up(size, TAR_BLOCK));
	memcpy(to + TAR_BLOCK, data, size);
	return TAR_BLOCK + base_align_up(size, TAR_BLOCK);
}

/* A video and its caption, which a shard of WebDataset has as two files. */
START_TEST(captions_come_beside)
{
	static uint8_t tar[MOST_FILE];
	const size_t size = video_fake_file(file, HEIGHT, WIDTH, 6, 40000, 9);
	size_t used = add(tar, "a.mp4", file, size);
	struct rig rig, one;

	used += add(tar + used, "a.txt", "a cat", 5);
	rig_init(&rig,
		 VIDEO(",\"clip\":\"begin\",\"members\":[\"webm;mp4\",\"txt\"],\"fields\":[[1,9]],"
		       "\"kinds\":[2],\"names\":[\"caption\"]") CROP "]");
	rig_init(&one, VIDEO(",\"clip\":\"begin\"") CROP "]");
	ck_assert_uint_eq(rig.n, 5);
	ck_assert_str_eq(rig.is[3].name, "caption");
	ck_assert_str_eq(rig.is[4].name, "caption.length");
	ck_assert_int_eq(rig_run(&rig, tar, used, 1), 0);
	ck_assert_int_eq(rig_run(&one, file, size, 1), 0);
	ck_assert_mem_eq(rig.field[0], one.field[0], one.is[0].bytes);
	ck_assert_int_eq(number(rig.field[2]), 4);
	ck_assert_mem_eq(rig.field[3], "a cat\0\0\0\0", 9);
	ck_assert_int_eq(number(rig.field[4]), 5);
	/* One that names no members is told so. */
	ck_assert_int_eq(rig_run(&one, tar, used, 1), PIPELINE_E_BAD);
	ck_assert_ptr_nonnull(strstr(one.error.text, "members"));
	rig_fini(&rig);
	rig_fini(&one);
}
END_TEST

/* A wrapped data set's sample: the video's bytes and its class. */
START_TEST(records_have_videos)
{
	static _Alignas(64) uint8_t record[MOST_FILE];
	struct packed_head *head = (struct packed_head *)(void *)record;
	const size_t size = video_fake_file(record + 320, HEIGHT, WIDTH, 6, 40000, 10);
	const int64_t label = 7;
	struct rig rig;

	*head = (struct packed_head){.magic = PACKED_MAGIC, .bytes = 320 + size, .n_fields = 2};
	head->field[0] = (struct packed_place){PIPELINE_U8, 1, {size}, 320, size};
	head->field[1] = (struct packed_place){PIPELINE_I64, 0, {0}, 256, 8};
	memcpy(record + 256, &label, sizeof(label));
	rig_init(&rig, VIDEO(",\"source\":\"record\"") CROP "]");
	ck_assert_int_eq(rig_run(&rig, record, 320 + size, 1), 0);
	ck_assert_int_eq(number(rig.field[1]), 7);
	ck_assert_int_eq(number(rig.field[2]), 4);
	rig_fini(&rig);
}
END_TEST

/* Of a part of its video the clip is as of a video of these frames alone, and the duration too. */
START_TEST(records_have_parts)
{
	static _Alignas(64) uint8_t record[MOST_FILE];
	static uint8_t alone[MOST_FILE];
	struct packed_wide_head *head = (struct packed_wide_head *)(void *)record;
	const size_t bytes = (size_t)HEIGHT * WIDTH * 3;
	const size_t size = video_fake_file(record + 128, HEIGHT, WIDTH, 9, 40000, 10);
	struct rig rig, one, measure;
	double seconds;

	memset(record, 0, 128);
	*head = (struct packed_wide_head){PACKED_WIDE_MAGIC, 128 + size, 1, 1, {0}};
	head->part[0] = 0.1;
	head->part[1] = 0.16;
	head->field[0].place = (struct packed_place){PIPELINE_U8, 1, {size}, 128, size};
	/* the same with frames 3 to 6 */
	video_fake_file(alone, HEIGHT, WIDTH, 4, 40000, 10);
	memcpy(alone + VIDEO_FAKE_HEAD, record + 128 + VIDEO_FAKE_HEAD + 3 * bytes, 4 * bytes);
	rig_init(&rig, VIDEO(",\"clip\":\"begin\",\"source\":\"record\"") CROP "]");
	rig_init(&one, VIDEO(",\"clip\":\"begin\"") CROP "]");
	ck_assert_int_eq(rig_run(&rig, record, 128 + size, 1), 0);
	ck_assert_int_eq(rig_run(&one, alone, VIDEO_FAKE_HEAD + 4 * bytes, 1), 0);
	ck_assert_mem_eq(rig.field[0], one.field[0], one.is[0].bytes);
	ck_assert_int_eq(number(rig.field[2]), number(one.field[2]));
	rig_init(&measure, "[{\"op\":\"duration\",\"of\":\"video\",\"source\":\"record\"}]");
	ck_assert_int_eq(rig_run(&measure, record, 128 + size, 1), 0);
	memcpy(&seconds, measure.field[0], sizeof(seconds));
	ck_assert_double_eq_tol(seconds, 0.16, 1e-9);
	ck_assert_int_eq(number(measure.field[2]), 4);
	head->part[0] = 7;
	ck_assert_int_eq(rig_run(&rig, record, 128 + size, 1), PIPELINE_E_BAD);
	ck_assert_str_eq(rig.error.text, "second 7 of a video of 0.36");
	ck_assert_int_eq(rig_run(&measure, record, 128 + size, 1), PIPELINE_E_BAD);
	ck_assert_uint_eq(video_fake_open, 0);
	rig_fini(&rig);
	rig_fini(&one);
	rig_fini(&measure);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, picks_are_these, 0, BASE_ARRAY_LEN(picks));
	tcase_add_test(tcase, moments_have_the_frame_that_is_shown);
	tcase_add_loop_test(tcase, starts_are_uniform, 0, 2);
	tcase_add_test(tcase, picks_are_of_the_file);
	tcase_add_loop_test(tcase, wrong_texts_are_told, 0, BASE_ARRAY_LEN(wrong));
	tcase_add_loop_test(tcase, fields_are_told, 0, 3);
	tcase_add_test(tcase, texts_are_canonical);
	tcase_add_test(tcase, alike_videos_meet);
	tcase_add_loop_test(tcase, frames_are_as_pictures, 0, BASE_ARRAY_LEN(op_lists));
	tcase_add_test(tcase, last_frames_are_repeated);
	tcase_add_test(tcase, random_clips_follow_the_key);
	tcase_add_test(tcase, variants_share_a_decode);
	tcase_add_test(tcase, views_are_clips);
	tcase_add_test(tcase, pixels_are_told);
	tcase_add_loop_test(tcase, sizes_are_filtered_by_the_head, 0, 2);
	tcase_add_test(tcase, bad_files_are_bad);
	tcase_add_test(tcase, captions_come_beside);
	tcase_add_test(tcase, records_have_videos);
	tcase_add_test(tcase, parts_are_as_files);
	tcase_add_test(tcase, records_have_parts);
}

int main(void)
{
	return suite_run("clip", add_tests);
}
