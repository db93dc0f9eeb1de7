/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Videos: golden_videos.tsv has what ffmpeg decodes of each clip from its beginning (make_videos.py says how); here each frame
 * must be that, however it is come to, in a sandbox too. And what is refused, damaged or cut off, and in which words.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include "base/philox.h"
#include "base/sandbox.h"
#include "pipeline/video/video_module.h"
#include "tests/data.h"
#include "tests/patience.h"

#define MOST_CLIPS 40
#define MOST_FRAMES 64

struct clip {
	char name[32];
	uint32_t width, height, frames;
	int64_t time_us[MOST_FRAMES];
	uint32_t sum[MOST_FRAMES];
	uint8_t *data;
	size_t size;
};

static struct clip clips[MOST_CLIPS];
static unsigned n_clips;
static const struct video_module *module;
static struct video_room *room;
static struct video_head head;
static struct pipeline_error error;

static void load_clip(char *line)
{
	struct clip *clip = &clips[n_clips++];
	char *times, *sums;

	snprintf(clip->name, sizeof(clip->name), "%s", strtok(line, "\t"));
	clip->width = (uint32_t)atoi(strtok(NULL, "\t"));
	clip->height = (uint32_t)atoi(strtok(NULL, "\t"));
	clip->frames = (uint32_t)atoi(strtok(NULL, "\t"));
	times = strtok(NULL, "\t");
	sums = strtok(NULL, "\t");
	for (uint32_t n = 0; n < clip->frames; n++) {
		clip->time_us[n] = strtoll(times, &times, 10);
		clip->sum[n] = (uint32_t)strtoul(sums, &sums, 16);
		times++;
		sums++;
	}
	clip->data = data_load("pipeline/videos", clip->name, &clip->size);
}

static void load_clips(void)
{
	FILE *file = data_open("pipeline", "golden_videos.tsv");
	char line[2048];

	while (n_clips < MOST_CLIPS && fgets(line, sizeof(line), file))
		load_clip(line);
	fclose(file);
}

static void open_clip(const struct clip *clip)
{
	ck_assert_msg(module->open(room, clip->data, clip->size, &head, &error) == 0, "%s: %s",
		      clip->name, error.text);
	ck_assert_uint_eq(head.frames, clip->frames);
	ck_assert_uint_eq(head.width, clip->width);
	ck_assert_uint_eq(head.height, clip->height);
}

static bool is_right(const struct clip *clip, uint32_t number)
{
	const uint8_t *pixels;

	return module->frame(room, number, &pixels, &error) == 0 &&
	       crc32(0, pixels, head.height * head.width * 3) == clip->sum[number];
}

static void check_frame(const struct clip *clip, uint32_t number)
{
	error.text[0] = '\0';
	ck_assert_msg(is_right(clip, number), "%s: frame %u %s", clip->name, number, error.text);
}

START_TEST(in_order)
{
	const struct clip *clip = &clips[_i];

	open_clip(clip);
	for (uint32_t n = 0; n < clip->frames; n++) {
		check_frame(clip, n);
		ck_assert_int_eq(head.time_us[n], clip->time_us[n]);
	}
}
END_TEST

START_TEST(anyhow)
{
	const struct clip *clip = &clips[_i];
	struct philox_seq seq;

	open_clip(clip);
	for (uint32_t n = clip->frames; n-- > 0;)
		check_frame(clip, n);
	for (uint32_t step = 2; step < 8; step++)
		for (uint32_t n = step / 2; n < clip->frames; n += step)
			check_frame(clip, n);
	philox_seq_init(&seq, 5, (uint64_t)_i, 0);
	for (unsigned i = 0; i < 100; i++)
		check_frame(clip, (uint32_t)philox_below(&seq, clip->frames));
	module->close(room);
	open_clip(clip);
	check_frame(clip, clip->frames - 1);
}
END_TEST

/* All of them cost no more than what there is, and some are decoded with the first. */
START_TEST(cost)
{
	const struct clip *clip = &clips[_i];
	uint32_t all[MOST_FRAMES];

	open_clip(clip);
	for (uint32_t n = 0; n < clip->frames; n++)
		all[n] = n;
	ck_assert_uint_ge(module->cost(room, all, clip->frames), clip->frames / 2); /* some are */
	ck_assert_uint_le(module->cost(room, all, clip->frames), 2 * clip->frames);
}
END_TEST

static void add_pixels(void *arg, uint32_t height, uint32_t width)
{
	*(uint64_t *)arg += (uint64_t)height * width;
}

/* Opening a file decodes all of it only where neither the container nor the pictures' heads tell their order, and says so before. */
START_TEST(watched)
{
	const struct clip *clip = &clips[_i];
	const bool is_still = strcmp(clip->name, "still.avi") == 0;
	const uint32_t last = clip->frames - 1;
	uint64_t told = 0;

	module->watch(room, &(struct video_watch){add_pixels, &told});
	open_clip(clip);
	module->watch(room, &(struct video_watch){NULL, NULL});
	ck_assert_uint_eq(told, is_still ? (uint64_t)clip->frames * 64 * 48 : 0);
	if (is_still)
		ck_assert_uint_gt(module->cost(room, &last, 1), clip->frames);
	else
		ck_assert_uint_le(module->cost(room, &last, 1), clip->frames);
}
END_TEST

/* The number of the first clip that is not right, from 1. */
static int decode_all(void)
{
	for (unsigned i = 0; i < n_clips; i++) {
		if (module->open(room, clips[i].data, clips[i].size, &head, &error) != 0)
			return (int)i + 1;
		for (uint32_t n = clips[i].frames; n-- > 0;)
			if (!is_right(&clips[i], n))
				return (int)i + 1;
	}
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
		_exit(decode_all());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	ck_assert_msg(WEXITSTATUS(status) == 0, "clip %d", WEXITSTATUS(status));
}
END_TEST

static void refuse(const void *data, size_t size, const char *words)
{
	error.text[0] = '\0';
	ck_assert_int_eq(module->open(room, data, size, &head, &error), PIPELINE_E_BAD);
	ck_assert_msg(strstr(error.text, words), "%s, not %s", error.text, words);
	module->close(room);
}

START_TEST(refused)
{
	static const struct {
		const char *name, *words;
	} table[] = {
	    {"encrypted.mp4", "encrypted"},
	    {"large.mkv", "packets larger than the file"},
	    {"sound.mp4", "no video in it"},
	    {"../data/420.jpg", "not MP4, Matroska, WebM, AVI, MPEG-TS or Ogg"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		size_t size;
		_cleanup_free_ uint8_t *data = data_load("pipeline/videos", table[i].name, &size);

		refuse(data, size, table[i].words);
	}
	refuse("", 0, "empty");
}
END_TEST

/* Says that it has 50 million frames. */
START_TEST(large_tables)
{
	size_t size;
	_cleanup_free_ uint8_t *data = data_load("pipeline/videos", "h264.mp4", &size);
	uint8_t *table = memmem(data, size, "stsz", 4);

	ck_assert_ptr_nonnull(table);
	memcpy(table + 12, "\3\0\0\0", 4);
	refuse(data, size, "tables larger than the file");
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* whose own memory counts */
/* 0: it is decoded; 1: it says that memory is short; else what is wrong. */
static int decode_within(const uint8_t *data, size_t size, uint64_t more)
{
	const uint8_t *pixels;
	struct rlimit limit;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "re");
	int rc;

	if (!file || fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return 2;
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
	if (setrlimit(RLIMIT_DATA, &limit) != 0)
		return 3;
	rc = module->open(room, data, size, &head, &error);
	if (rc == 0)
		rc = module->frame(room, head.frames - 1, &pixels, &error);
	if (rc == 0)
		return 0;
	return error.stage == PIPELINE_FAIL_MEMORY && strstr(error.text, "no memory") ? 1 : 4;
}

/* With so much memory too little, it is the memory that is named, and not the file. */
START_TEST(memory)
{
	size_t size;
	_cleanup_free_ uint8_t *data = data_load("pipeline/videos", "wide.mp4", &size);
	unsigned short_of = 0;

	for (uint64_t more = 1; more < 48; more += 3) {
		const pid_t child = fork();
		int status;

		if (child == 0)
			_exit(decode_within(data, size, more << 20));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFEXITED(status));
		ck_assert_int_le(WEXITSTATUS(status), 1);
		short_of += WEXITSTATUS(status);
	}
	ck_assert_uint_gt(short_of, 1);
}
END_TEST
#endif

START_TEST(truncated)
{
	size_t size;
	_cleanup_free_ uint8_t *data =
	    data_load("pipeline/videos", "open.mp4", &size); /* moov is its end */

	refuse(data, size / 2, "cut short or damaged: copy it anew");
}
END_TEST

START_TEST(size_that_changes)
{
	size_t size;
	_cleanup_free_ uint8_t *data = data_load("pipeline/videos", "sizes.ts", &size);
	const uint8_t *pixels;
	unsigned changed = 0;

	ck_assert_int_eq(module->open(room, data, size, &head, &error), 0);
	ck_assert_uint_eq(head.width, 64);
	for (uint32_t n = 0; n < head.frames; n++) {
		if (module->frame(room, n, &pixels, &error) != 0) {
			ck_assert_msg(strstr(error.text, "its size changes at frame"), "%s",
				      error.text);
			changed++;
		}
	}
	ck_assert_uint_gt(changed, 0);
	module->close(room);
}
END_TEST

/* Its packets are at the end: all frames but those cut off are there, and of a head that is cut off nothing is. */
START_TEST(cut_off)
{
	for (unsigned i = 0; i < n_clips; i++) {
		for (unsigned part = 1; part < 8; part++) {
			const size_t size = clips[i].size * part / 8;
			_cleanup_free_ uint8_t *data = malloc(size);
			const uint8_t *pixels;

			memcpy(data, clips[i].data, size);
			error.text[0] = '\0';
			if (module->open(room, data, size, &head, &error) != 0) {
				ck_assert_uint_gt(strlen(error.text), 4);
				continue;
			}
			for (uint32_t n = 0; n < head.frames; n++) {
				error.text[0] = '\0';
				if (module->frame(room, n, &pixels, &error) != 0)
					ck_assert_uint_gt(strlen(error.text), 4);
			}
			module->close(room);
		}
	}
}
END_TEST

/* Bytes changed: whatever comes, there is a reason where it is bad. What is seen is an error, and names its frame. */
START_TEST(damage)
{
	const struct clip *clip = &clips[_i];
	_cleanup_free_ uint8_t *data = malloc(clip->size);
	struct philox_seq seq;

	philox_seq_init(&seq, 7, (uint64_t)_i, 0);
	for (unsigned i = 0; i < 60; i++) {
		const uint8_t *pixels;

		memcpy(data, clip->data, clip->size);
		for (unsigned k = 0; k <= i % 8; k++)
			data[philox_below(&seq, clip->size)] = (uint8_t)philox_u32(&seq);
		error.text[0] = '\0';
		if (module->open(room, data, clip->size, &head, &error) != 0) {
			ck_assert_uint_gt(strlen(error.text), 4);
			continue;
		}
		ck_assert_uint_ge(head.frames, 1);
		for (uint32_t n = 1; n < head.frames; n += 1 + i % 3) {
			const int rc = module->frame(room, n, &pixels, &error);

			ck_assert(rc == 0 || rc == PIPELINE_E_BAD);
			ck_assert(n == 0 || head.time_us[n] >= head.time_us[n - 1]);
			if (rc != 0)
				ck_assert_msg(strstr(error.text, "frame "), "%s", error.text);
		}
		module->close(room);
	}
}
END_TEST

/* H.264's decoder says of nearly all damage that it is some. */
START_TEST(damage_is_no_picture)
{
	const struct clip *clip = clips;
	_cleanup_free_ uint8_t *data = NULL;
	unsigned bad = 0;
	const uint8_t *pixels;

	while (strcmp(clip->name, "h264.mp4") != 0)
		clip++;
	data = malloc(clip->size);
	memcpy(data, clip->data, clip->size);
	memset(data + clip->size * 3 / 4, 0, clip->size / 8);
	ck_assert_msg(module->open(room, data, clip->size, &head, &error) == 0, "%s", error.text);
	for (uint32_t n = 0; n < head.frames; n++) {
		if (module->frame(room, n, &pixels, &error) != 0)
			bad++;
		else if (n < 5)
			ck_assert_uint_eq(crc32(0, pixels, 64 * 48 * 3), clip->sum[n]);
	}
	ck_assert_uint_gt(bad, 2);
	module->close(room);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("video");
	TCase *tcase = tcase_create("video");
	const char *why = video_missing();
	SRunner *runner;
	int failed, clip_end;

	if (why) {
		puts(why);
		return 77;
	}
	module = video_load(&why);
	if (!module || module->room_new(&room) != 0) {
		puts(why);
		return EXIT_FAILURE;
	}
	load_clips();
	clip_end = (int)n_clips;
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(tcase, in_order, 0, clip_end);
	tcase_add_loop_test(tcase, anyhow, 0, clip_end);
	tcase_add_loop_test(tcase, cost, 0, clip_end);
	tcase_add_loop_test(tcase, watched, 0, clip_end);
	tcase_add_test(tcase, sandboxed);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, large_tables);
#ifndef __SANITIZE_ADDRESS__
	tcase_add_test(tcase, memory);
#endif
	tcase_add_test(tcase, truncated);
	tcase_add_test(tcase, size_that_changes);
	tcase_add_test(tcase, cut_off);
	tcase_add_loop_test(tcase, damage, 0, clip_end);
	tcase_add_test(tcase, damage_is_no_picture);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	module->room_free(room);
	for (unsigned i = 0; i < n_clips; i++)
		free(clips[i].data);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
