/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is kept of samples, against a real accessd: whatever is kept, and whatever happens to it, a job gets
 * the bytes that it gets without (digests over ids, pixels and labels), and never waits for it.
 */

#include "tests/scenarios/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVAL_SPEC                                                                           \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":40},{\"op\":\"center_crop\","     \
	"\"size\":32},{\"op\":\"normalize\",\"mean\":[0.5,0.4,0.3],\"std\":[0.2,0.2,0.2]}," \
	"{\"op\":\"cast\",\"dtype\":\"f32\"}]"

static const char *dataset;

/* ---- means ---- */

static struct oa_options options_of(const char *pipeline)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_SEEDED, 7, 8);

	options.epochs = 8;

	if (pipeline)
		options.pipeline = pipeline;
	return options;
}

static double missed; /* samples of the last run that came as files */

static double hits(void)
{
	missed = rig_status("streams.0.cache.misses");
	return rig_status("streams.0.cache.hits");
}

/* A whole run, and how many samples came from what was kept. */
static struct hash_id run(const char *pipeline, double *ret_hits)
{
	const struct oa_options options = options_of(pipeline);
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);
	struct hash_id id = runs_digest_stream(stream);

	if (ret_hits)
		*ret_hits = hits();
	oa_close(stream);
	oa_disconnect(client);
	ck_assert(rig_wait_status("streams.0.id", -1, -1)); /* what is resident would be no news */
	return id;
}

/* Runs until all that can be kept is: how many that are. */
static void fill(const char *pipeline, double least)
{
	for (unsigned i = 0; i < 100; i++) {
		run(pipeline, NULL);
		for (unsigned look = 0; look < 15; look++, rig_sleep_ms(100))
			if (rig_status("caches.0.values") >= least)
				return;
	}
	ck_abort_msg("%g values are kept", rig_status("caches.0.values"));
}

static const char *cache_file(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/store/own/cache.mdb", rig_host.dir);
	return path;
}

#define KEEPS "cache_size=256M", "cache_force=1", "linger_s=0", "chunk=16", "workers=2"

#define SMALL "cache_size=2M", "cache_force=1", "linger_s=0", "chunk=16", "workers=2"

static struct hash_id digest_without(const char *pipeline)
{
	struct hash_id id;

	rig_start("cache_size=0", "linger_s=0", "chunk=16", "workers=2", NULL);
	id = run(pipeline, NULL);
	ck_assert(rig_status("streams.0.cache.hits") <= 0);
	rig_end();
	return id;
}

/* ---- whatever is kept ---- */

static const struct {
	const char *point, *pipeline;
} kept_cases[] = {
    {"cache_point=indexed", NULL},      {"cache_point=packed", NULL},
    {"cache_point=decoded", NULL},      {"cache_point=deepest", EVAL_SPEC},
    {"cache_point=indexed", EVAL_SPEC}, {"cache_point=auto", EVAL_SPEC},
};

START_TEST(the_same_bytes_from_each_form)
{
	const char *point = kept_cases[_i].point, *pipeline = kept_cases[_i].pipeline;
	struct hash_id without;
	double from_kept = 0;

	dataset = runs_waves("photos");
	without = digest_without(pipeline);
	rig_start(point, KEEPS, NULL);
	runs_assert_same(run(pipeline, NULL), without);
	if (strcmp(point, "cache_point=auto") != 0) {
		fill(pipeline, RUNS_SAMPLES);
		for (unsigned i = 0; from_kept < RUNS_SAMPLES; i++) {
			ck_assert_uint_lt(i, 50);
			runs_assert_same(run(pipeline, &from_kept), without);
		}
	}
	/* Another accessd in the same place finds what was kept. */
	rig_restart(point, KEEPS, NULL);
	runs_assert_same(run(pipeline, NULL), without);
	ck_assert(strcmp(point, "cache_point=auto") == 0 ||
		  rig_wait_status("caches.0.values", RUNS_SAMPLES, 1e9));
	ck_assert(rig_status("caches.0.damaged") <= 0);
	rig_end();
}
END_TEST

/* Behind a restart all comes from what is kept, once its writer has written all. */
static void find_all(const char *point)
{
	double from_kept = 0;
	unsigned i = 0;

	do {
		ck_assert_uint_lt(i++, 50);
		rig_restart(point, KEEPS, NULL);
		run(NULL, &from_kept);
	} while (missed != 0);
	ck_assert(from_kept >= RUNS_SAMPLES);
}

/* From its first sample on, as all is known when it begins; but on a machine that is busy for a tenth of a second
 * it does not wait for that. */
START_TEST(all_comes_from_what_an_accessd_before_kept)
{
	dataset = runs_waves("photos");
	rig_start("cache_point=decoded", KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	ck_assert(rig_wait_status("caches.0.write_us_per_mib", 1e-9, 1e12));
	ck_assert(rig_wait_status("caches.0.write_cpu_us_per_mib", 1e-9, 1e12));
	find_all("cache_point=decoded");
	rig_end();
}
END_TEST

/* Another process has the store: the job goes without. */
START_TEST(a_store_that_does_not_open_holds_nobody_up)
{
	_cleanup_close_ int fd = -1;
	struct hash_id without;
	char path[PATH_MAX];

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_size=0", NULL);
	snprintf(path, sizeof(path), "%s/store/own", rig_host.dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	rig_restart("cache_point=packed", KEEPS, NULL);
	for (unsigned i = 0; i < 2; i++) {
		runs_assert_same(run(NULL, NULL), without);
		ck_assert(rig_status("caches.0.values") <= 0);
	}
	rig_end();
}
END_TEST

/* Jobs of two pipelines that begin alike have what is kept in common. */
START_TEST(other_pipelines_do_not_meet)
{
	static const char *const other =
	    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":41},{\"op\":\"center_crop\","
	    "\"size\":32},{\"op\":\"cast\",\"dtype\":\"u8\"}]";
	struct hash_id without, other_without;

	dataset = runs_waves("photos");
	without = digest_without(EVAL_SPEC);
	other_without = digest_without(other);
	rig_start("cache_point=deepest", KEEPS, NULL);
	fill(EVAL_SPEC, RUNS_SAMPLES);
	runs_assert_same(run(other, NULL), other_without);
	fill(other, 2 * RUNS_SAMPLES);
	runs_assert_same(run(EVAL_SPEC, NULL), without);
	runs_assert_same(run(other, NULL), other_without);
	rig_end();
}
END_TEST

/* ---- jobs beside each other ---- */

/* One of several that take turns, each at a pace of its own: so many batches a turn, after some turns. */
struct beside {
	const char *pipeline;
	uint64_t seed;
	unsigned batches, late;
	struct hash_id alone;
	/* while they run */
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash *hash;
	bool is_over;
};

static struct oa_options beside_options(const struct beside *job)
{
	struct oa_options options = options_of(job->pipeline);

	options.seed = job->seed;
	options.epochs = 4;
	return options;
}

static void beside_open(struct beside *job)
{
	const struct oa_options options = beside_options(job);

	job->client = rig_connect();
	job->stream = rig_open(job->client, &options);
	ck_assert_int_eq(hash_new(&job->hash), 0);
	job->is_over = false;
}

static void beside_turn(struct beside *job)
{
	for (unsigned i = 0; i < job->batches && !job->is_over; i++) {
		struct oa_batch *batch = runs_next(job->stream);

		job->is_over = !batch;
		if (!batch)
			break;
		runs_digest_batch(job->hash, batch);
		oa_release(batch);
	}
}

/* To their ends, with all of them open still: each has what it has alone. */
static void run_beside(struct beside *jobs, unsigned n)
{
	unsigned n_over = 0;

	for (unsigned turn = 0; n_over < n; turn++) {
		n_over = 0;
		for (unsigned i = 0; i < n; i++) {
			if (turn == jobs[i].late)
				beside_open(&jobs[i]);
			if (turn >= jobs[i].late)
				beside_turn(&jobs[i]);
			n_over += turn >= jobs[i].late && jobs[i].is_over;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		struct hash_id id;

		hash_finish(jobs[i].hash, &id);
		hash_free(jobs[i].hash);
		runs_assert_same(id, jobs[i].alone);
	}
}

static void close_beside(struct beside *jobs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		oa_close(jobs[i].stream);
		oa_disconnect(jobs[i].client);
	}
	ck_assert(rig_wait_status("streams.0.id", -1, -1));
}

/* What each has alone, with nothing kept. */
static void run_alone(struct beside *jobs, unsigned n)
{
	rig_start("cache_size=0", "linger_s=0", "chunk=16", "workers=2", NULL);
	for (unsigned i = 0; i < n; i++) {
		const struct oa_options options = beside_options(&jobs[i]);

		jobs[i].alone = runs_digest(&options);
	}
	rig_end();
}

/* Sum of a number over all streams. */
static double sum_of_streams(const char *which)
{
	double sum = 0;

	for (unsigned i = 0; i < rig_status("streams"); i++) {
		char path[64];

		snprintf(path, sizeof(path), "streams.%u.%s", i, which);
		sum += rig_status(path);
	}
	return sum;
}

#define ONE_SPEC(size, crop, mean)                                                  \
	"[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":" size "},"               \
	"{\"op\":\"center_crop\",\"size\":" crop "},"                               \
	"{\"op\":\"normalize\",\"mean\":[0.5,0.4," mean "],\"std\":[0.2,0.2,0.2]}," \
	"{\"op\":\"cast\",\"dtype\":\"f32\"}]"

/* Case 47: one parameter is another one, both keep what they can, at the same time and over what both kept. */
START_TEST(one_parameter_keeps_two_jobs_apart)
{
	static const char *const others[] = {
	    ONE_SPEC("41", "32", "0.3"), ONE_SPEC("40", "31", "0.3"), ONE_SPEC("40", "32", "0.4")};
	struct beside jobs[] = {
	    {.pipeline = ONE_SPEC("40", "32", "0.3"), .seed = 7, .batches = 1},
	    {.pipeline = others[_i], .seed = 7, .batches = 1},
	};

	double from_kept = 0;

	dataset = runs_waves("photos");
	run_alone(jobs, 2);
	rig_start("cache_point=deepest", KEEPS, NULL);
	for (unsigned i = 0; rig_status("caches.0.values") < RUNS_SAMPLES || i < 3; i++) {
		ck_assert_uint_lt(i, 100);
		run_beside(jobs, 2);
		close_beside(jobs, 2);
	}
	rig_restart("cache_point=deepest", KEEPS, NULL);
	for (unsigned i = 0; from_kept <= 0; i++) {
		ck_assert_uint_lt(i, 100);
		run_beside(jobs, 2);
		from_kept = sum_of_streams("cache.hits");
		close_beside(jobs, 2);
	}
	rig_end();
}
END_TEST

/* So often the files of the dataset were opened since, which the kernel tells. */
static unsigned count_opened(int notify)
{
	_Alignas(struct inotify_event) char events[65536];
	unsigned n = 0;
	ssize_t size;

	while ((size = read(notify, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);

			ck_assert_int_eq(event->mask & IN_Q_OVERFLOW, 0);
			n += event->len > 0 && event->mask & IN_OPEN;
			at += (ssize_t)sizeof(*event) + event->len;
		}
	return n;
}

/* All that was asked for, hits and misses, is made, what is made ahead, too. */
static bool settled(double outputs_before, double *ret_hits, double *ret_misses)
{
	const double outputs = rig_status("node.outputs") - outputs_before;

	*ret_hits = sum_of_streams("cache.hits");
	*ret_misses = sum_of_streams("cache.misses");
	return *ret_hits + *ret_misses == outputs;
}

/* Case 50: four jobs, each with its own order, pace and beginning, over a store of a quarter of the data. */
START_TEST(four_jobs_over_a_quarter)
{
	struct beside jobs[] = {
	    {.seed = 1, .batches = 1},
	    {.seed = 2, .batches = 2, .late = 3},
	    {.seed = 3, .batches = 3, .late = 5},
	    {.seed = 4, .batches = 1, .late = 8},
	};
	const unsigned n = (unsigned)BASE_ARRAY_LEN(jobs), without_us = n * 4 * RUNS_SAMPLES;
	_cleanup_close_ int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char folder[PATH_MAX];
	double hit = 0;

	dataset = runs_waves("photos");
	run_alone(jobs, n);
	rig_start("cache_point=decoded", "cache_size=2750K", "cache_force=1", "linger_s=0",
		  "chunk=16", "workers=2", NULL);
	for (unsigned i = 0; rig_status("caches.0.full") <= 0; i++) {
		ck_assert_uint_lt(i, 100);
		run_beside(jobs, n);
		close_beside(jobs, n);
	}
	ck_assert(rig_status("caches.0.values") * 4 <= RUNS_SAMPLES + 4);
	snprintf(folder, sizeof(folder), "%s/class", dataset);
	ck_assert_int_ge(inotify_add_watch(notify, folder, IN_OPEN | IN_CLOSE), 0);
	for (unsigned i = 0; hit <= 0; i++) {
		const double read = rig_status("node.samples_read");
		const double outputs = rig_status("node.outputs");
		unsigned opened;

		ck_assert_uint_lt(i, 100);
		run_beside(jobs, n);
		for (unsigned look = 0; !settled(outputs, &hit, &missed); look++) {
			ck_assert_uint_lt(look, 3000);
			rig_sleep_ms(20);
		}
		opened = count_opened(notify);
		ck_assert_uint_le(opened, without_us);
		ck_assert_double_eq(opened, rig_status("node.samples_read") - read);
		ck_assert_double_eq(opened, missed); /* what is reported is what was */
		close_beside(jobs, n);
	}
	rig_end();
}
END_TEST

/* What cannot be kept is refused with what can. */
START_TEST(a_form_that_is_not_there)
{
	static const struct {
		const char *keep, *text;
		int error;
	} refusals[] = {
	    {"decoded+9", "there are indexed, packed, decoded", OA_E_REFUSED},
	    {"none", "there is no form \"none\"", OA_E_REFUSED},
	    {"decoded+1234567890123456789", "no form has a name of", OA_E_INVALID},
	};
	struct oa_options options;
	struct oa_client *client;

	dataset = runs_waves("photos");
	rig_start(KEEPS, NULL);
	client = rig_connect();
	options = options_of(NULL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(refusals); i++) {
		struct oa_error error = {.size = sizeof(error)};
		struct oa_stream *stream;

		options.keep = refusals[i].keep;
		ck_assert_int_eq(oa_open(client, &options, &stream, &error), refusals[i].error);
		ck_assert_msg(strstr(error.text, refusals[i].text), "%s", error.text);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* ---- whatever happens ---- */

/* A file that is written to is noticed, though all of it is kept. */
START_TEST(a_changed_file_is_noticed)
{
	char path[PATH_MAX];
	struct oa_options options;
	struct oa_client *client;
	struct oa_stream *stream;
	struct oa_batch *batch;
	int r;

	dataset = runs_waves("own");
	snprintf(path, sizeof(path), "%s/class/0011.jpg", dataset);
	rig_start("cache_point=packed", KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	ck_assert_int_eq(
	    utimensat(AT_FDCWD, path, (struct timespec[2]){{.tv_sec = 5}, {.tv_sec = 5}}, 0), 0);
	options = options_of(NULL);
	client = rig_connect();
	stream = rig_open(client, &options);
	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0)
		oa_release(batch);
	ck_assert_int_eq(r, OA_E_DATASET);
	ck_assert_ptr_nonnull(strstr(oa_error_text(stream), "0011.jpg"));
	oa_close(stream);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void flip(const char *path, off_t at)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 0x55;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
}

/* The libjpeg that this process has loaded; so has accessd. */
static bool find_libjpeg(char ret[PATH_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/libjpeg.so") &&
			sscanf(line, "%*s %*s %*s %*s %*s %4095s", ret) == 1;
	if (maps)
		fclose(maps);
	return found;
}

/* A copy of it in that folder that does the same and has another build id. */
static void make_other_libjpeg(const char *folder)
{
	static const char note[16] = "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU";
	static uint8_t bytes[4 << 20];
	char from[PATH_MAX], to[PATH_MAX + 16];
	const uint8_t *at;
	size_t size;
	FILE *file;

	ck_assert_msg(find_libjpeg(from), "libjpeg is not loaded as a library");
	ck_assert_ptr_nonnull(file = fopen(from, "re"));
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	ck_assert_uint_lt(size, sizeof(bytes));
	at = memmem(bytes, size, note, sizeof(note));
	ck_assert_msg(at != NULL, "%s has no build id", from);
	bytes[at - bytes + (ptrdiff_t)sizeof(note)] ^= 0xff;
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	snprintf(to, sizeof(to), "%s/libjpeg.so.62", folder);
	ck_assert_ptr_nonnull(file = fopen(to, "we"));
	ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* Pixels that another libjpeg made are others, also where text and file are the same; forms that are made without it
 * stay. */
START_TEST(another_library_is_another_form)
{
	static const char *const points[] = {"cache_point=decoded", "cache_point=packed"};
	const char *point = points[_i];
	char other[PATH_MAX];
	double from_kept = 0;

	snprintf(other, sizeof(other), "%s", rig_path("other%d", _i));
	make_other_libjpeg(other);
	dataset = runs_waves("photos");
	rig_start(point, KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	find_all(point);
	setenv("LD_LIBRARY_PATH", other, 1);
	if (_i == 1) {
		find_all(point);
	} else {
		rig_restart(point, KEEPS, NULL);
		run(NULL, &from_kept);
		ck_assert(missed >= RUNS_SAMPLES);
	}
	unsetenv("LD_LIBRARY_PATH");
	find_all(point);
	rig_end();
}
END_TEST

/* Bytes flipped all over the file, then half of it gone: rebuilt, never wrong bytes. */
START_TEST(damage_is_no_job_s_business)
{
	struct hash_id without;
	struct stat st;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=packed", KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	for (unsigned round = 0; round < 3; round++) {
		kill(rig_host.pid, SIGKILL);
		waitpid(rig_host.pid, NULL, 0);
		ck_assert_int_eq(stat(cache_file(), &st), 0);
		for (off_t at = 4096 * round + 7; round < 2 && at < st.st_size; at += 9001)
			flip(cache_file(), at);
		if (round == 2)
			ck_assert_int_eq(truncate(cache_file(), st.st_size / 2), 0);
		rig_restart("cache_point=packed", KEEPS, NULL);
		for (unsigned i = 0; i < 3; i++)
			runs_assert_same(run(NULL, NULL), without);
	}
	fill(NULL, RUNS_SAMPLES);
	runs_assert_same(run(NULL, NULL), without);
	rig_end();
}
END_TEST

/* Says of each page with the names of tables that it has so many of them that who looks for one reads behind
 * the file. */
static void overfill_names(const char *path)
{
	enum { PAGE = 4096, LOWER = 12 }; /* of LMDB's pages */
	_cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
	const uint16_t lower = UINT16_MAX;
	uint8_t page[PAGE];
	unsigned n = 0;

	ck_assert_int_ge(fd, 0);
	for (off_t at = 0; pread(fd, page, PAGE, at) == PAGE; at += PAGE) {
		if (!memmem(page, PAGE, "values", strlen("values")))
			continue;
		ck_assert_int_eq(pwrite(fd, &lower, sizeof(lower), at + LOWER), sizeof(lower));
		n++;
	}
	ck_assert_uint_gt(n, 0);
}

/* A store in which nothing is kept, so that its file has few pages. */
static void leave_empty_store(void)
{
	struct oa_options options = options_of(NULL);
	struct oa_client *client;

	options.epochs = 1; /* tries nothing */
	rig_start(KEEPS, NULL);
	client = rig_connect();
	oa_close(rig_open(client, &options));
	ck_assert(rig_wait_status("caches.0.file", 1, 10 * 4096));
	oa_disconnect(client);
	kill(rig_host.pid, SIGKILL);
	waitpid(rig_host.pid, NULL, 0);
}

/* A reader that dies before it could say how its store is costs that store, not the ones after it. */
START_TEST(damage_that_kills_at_the_opening)
{
	struct hash_id without;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	leave_empty_store();
	overfill_names(cache_file());
	rig_restart("cache_point=packed", KEEPS, NULL);
	runs_assert_same(run(NULL, NULL), without);
	ck_assert(rig_wait_status("node.reader_restarts", 1, 1));
	ck_assert(rig_wait_status("caches.0.set_aside", 1, 1));
	rig_end();
}
END_TEST

/* The file loses its half while it is read from: that costs a reader, and no job anything. */
START_TEST(truncated_beside_a_job)
{
	const struct oa_options options = options_of(NULL);
	struct hash_id without, with;
	struct oa_client *client;
	struct oa_stream *stream;
	struct hash *hash;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=packed", KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	ck_assert_int_eq(hash_new(&hash), 0);
	client = rig_connect();
	stream = rig_open(client, &(struct oa_options){.size = sizeof(options),
						       .dataset = dataset,
						       .pipeline = options.pipeline,
						       .batch = options.batch,
						       .epochs = options.epochs,
						       .order = options.order,
						       .seed = options.seed});
	for (unsigned i = 0; i < 2; i++) {
		struct oa_batch *batch = runs_next(stream);

		runs_digest_batch(hash, batch);
		oa_release(batch);
	}
	ck_assert_int_eq(truncate(cache_file(), 8192), 0);
	runs_digest_rest(hash, stream);
	hash_finish(hash, &with);
	hash_free(hash);
	oa_close(stream);
	oa_disconnect(client);
	runs_assert_same(with, without);
	runs_assert_same(run(NULL, NULL), without);
	rig_end();
}
END_TEST

/* His own file, cut under each reader: two of them die of it, then it is let be. The signal is what the kernel
 * sends for that. */
START_TEST(a_store_that_kills_is_given_up)
{
	struct hash_id without;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=packed", KEEPS, NULL);
	fill(NULL, RUNS_SAMPLES);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(rig_wait_status("caches.0.file", 1, 1e12));
		rig_kill("node.reader_pid", SIGBUS);
		ck_assert(rig_wait_status("node.reader_restarts", i + 1, i + 1));
		runs_assert_same(run(NULL, NULL), without);
	}
	ck_assert(rig_wait_status("caches.0.limit", 0, 0)); /* in memory alone */
	runs_assert_same(run(NULL, NULL), without);
	ck_assert(rig_wait_status("node.reader_restarts", 2, 2));
	rig_end();
}
END_TEST

/* Readers die while they keep things. */
START_TEST(readers_die_beside_it)
{
	struct hash_id without;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=decoded", KEEPS, NULL);
	for (unsigned i = 0; i < 3; i++) { /* six in a row would be hopeless */
		double reader = rig_status("node.reader_pid");

		if (reader > 1)
			kill((pid_t)reader, SIGKILL);
		runs_assert_same(run(NULL, NULL), without);
	}
	fill(NULL, RUNS_SAMPLES);
	runs_assert_same(run(NULL, NULL), without);
	rig_end();
}
END_TEST

/* A store that holds a part of the samples holds the same part, and the file stays below its limit. */
START_TEST(a_part_fits)
{
	struct hash_id without;
	double first, again = 0;
	struct stat st;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=decoded", SMALL, NULL);
	fill(NULL, 2);
	for (unsigned i = 0; i < 4; i++)
		runs_assert_same(run(NULL, NULL), without);
	first = rig_status("caches.0.values");
	for (unsigned i = 0; i < 4; i++)
		runs_assert_same(run(NULL, &again), without);
	ck_assert(again > 0);
	ck_assert(first < RUNS_SAMPLES);
	ck_assert(rig_status("caches.0.values") >= first);
	ck_assert(rig_status("caches.0.evicted") <= 0);
	ck_assert_int_eq(stat(cache_file(), &st), 0);
	ck_assert_int_le(st.st_size, 2 << 20);
	rig_end();
}
END_TEST

/* A full store changes to another form, whose job has the old one open, too. */
START_TEST(a_full_store_changes_its_form)
{
	struct hash_id without;
	double of_old, from_kept = 0;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_point=decoded", SMALL, NULL);
	fill(NULL, 2);
	while (rig_status("caches.0.full") <= 0)
		run(NULL, NULL);
	of_old = rig_status("caches.0.values");
	ck_assert(of_old < RUNS_SAMPLES);
	rig_restart("cache_point=packed", SMALL, NULL);
	for (unsigned i = 0; rig_status("caches.0.evicted") < of_old; i++) {
		ck_assert_uint_lt(i, 100);
		runs_assert_same(run(NULL, NULL), without);
	}
	fill(NULL, of_old + 1); /* smaller ones, so more of them */
	runs_assert_same(run(NULL, &from_kept), without);
	ck_assert(from_kept > of_old);
	rig_end();
}
END_TEST

/* No folder, or no store in it: small forms stay in memory, it is said, and no job's business. */
START_TEST(nowhere_but_in_memory)
{
	struct hash_id without;
	char path[3 * PATH_MAX];
	double from_kept = 0;

	dataset = runs_waves("photos");
	without = digest_without(NULL);
	rig_start("cache_size=0", NULL);
	snprintf(path, sizeof(path), "rm -rf '%s/store' && %s '%s/store%s'", rig_host.dir,
		 _i ? "mkdir -p" : "echo no folder >", rig_host.dir, _i ? "/own/cache.mdb" : "");
	ck_assert_int_eq(system(path), 0);
	rig_restart("cache_point=packed", KEEPS, NULL);
	for (unsigned i = 0; from_kept == 0 || missed > 0; i++) {
		ck_assert_uint_lt(i, 50);
		runs_assert_same(run(NULL, &from_kept), without);
	}
	ck_assert(rig_wait_status("caches.0.memory_values", RUNS_SAMPLES, RUNS_SAMPLES));
	ck_assert(rig_wait_status("caches.0.memory_hits", RUNS_SAMPLES, 1e9));
	ck_assert(rig_status("caches.0.values") <= 0);
	ck_assert(rig_status("caches.0.limit") <= 0);
	kill((pid_t)rig_status("node.reader_pid"), SIGKILL); /* and all is gone */
	for (unsigned i = 0; i < 2; i++)
		runs_assert_same(run(NULL, NULL), without);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_same_bytes_from_each_form, 0,
			    (int)BASE_ARRAY_LEN(kept_cases));
	tcase_add_test(tcase, all_comes_from_what_an_accessd_before_kept);
	tcase_add_test(tcase, a_store_that_does_not_open_holds_nobody_up);
	tcase_add_test(tcase, other_pipelines_do_not_meet);
	tcase_add_loop_test(tcase, one_parameter_keeps_two_jobs_apart, 0, 3);
	tcase_add_test(tcase, four_jobs_over_a_quarter);
	tcase_add_test(tcase, a_form_that_is_not_there);
	tcase_add_test(tcase, a_changed_file_is_noticed);
	tcase_add_loop_test(tcase, another_library_is_another_form, 0, 2);
	tcase_add_test(tcase, damage_is_no_job_s_business);
	tcase_add_test(tcase, damage_that_kills_at_the_opening);
	tcase_add_test(tcase, truncated_beside_a_job);
	tcase_add_test(tcase, a_store_that_kills_is_given_up);
	tcase_add_test(tcase, readers_die_beside_it);
	tcase_add_test(tcase, a_part_fits);
	tcase_add_test(tcase, a_full_store_changes_its_form);
	tcase_add_loop_test(tcase, nowhere_but_in_memory, 0, 2);
}

int main(void)
{
	return rig_main("cache", add);
}
