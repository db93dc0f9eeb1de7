/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is kept behind random ops, against a real accessd: whatever comes and goes, each sample is delivered once an
 * epoch, no job gets the same instance of one (told by its pixels) in more epochs than it asked for, and one that came
 * kept is the one that comes from its file.
 */

#include "tests/scenarios/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_SAMPLES 96
#define AGAIN_EPOCHS 9
#define AGAIN_SPEC                                                                              \
	"[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":64},{\"op\":\"hflip\"}," \
	"{\"op\":\"color_jitter\",\"brightness\":0.4},{\"op\":\"normalize\",\"mean\":0.5,"      \
	"\"std\":0.25},{\"op\":\"random_erasing\"},{\"op\":\"cast\",\"dtype\":\"f32\"}]"
#define AGAIN_RIG "cache_force=1", "linger_s=0", "chunk=16", "slots=4", "workers=2"
#define AGAIN_SETTINGS "cache_point=augmented", AGAIN_RIG
#define KEEPS "cache_size=64M", AGAIN_SETTINGS

static const char *dataset;

static void make_dataset(void)
{
	static char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", rig_path("waves"));
	mkdir(folder, 0755);
	mkdir(rig_path("waves/class"), 0755);
	for (unsigned i = 0; i < AGAIN_SAMPLES; i++)
		ck_assert_int_eq(rig_write_waves(rig_path("waves/class/%04u.jpg", i), i, 128), 0);
	dataset = folder;
}

/* An accessd that keeps them, and a dataset. */
static struct oa_client *start(void)
{
	make_dataset();
	rig_start(KEEPS, NULL);
	return rig_connect();
}

static void finish(struct oa_client *client)
{
	oa_disconnect(client);
	rig_end();
}

/* ---- a job, and what it saw ---- */

struct sight {
	struct hash_id pixels;
	unsigned epochs;
};

struct seen {
	struct oa_stream *stream;
	unsigned most; /* epochs that may see an instance */
	bool delivered[AGAIN_EPOCHS][AGAIN_SAMPLES];
	struct sight sight[AGAIN_SAMPLES][AGAIN_EPOCHS];
	unsigned samples, repeated, full; /* full: instances in as many epochs as may be */
};

static struct seen *begin(struct oa_client *client, unsigned reuse)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_CAROUSEL, 0, 16);
	struct seen *seen = calloc(1, sizeof(*seen));

	ck_assert_ptr_nonnull(seen);
	options.pipeline = AGAIN_SPEC;
	options.epochs = AGAIN_EPOCHS;
	options.reuse = reuse;
	seen->most = reuse;
	seen->stream = rig_open(client, &options);
	return seen;
}

static void end(struct seen *seen)
{
	oa_close(seen->stream);
	free(seen);
}

static void see(struct seen *seen, uint64_t epoch, uint64_t id, struct hash_id pixels)
{
	struct sight *sight;

	ck_assert_uint_lt(id, AGAIN_SAMPLES);
	ck_assert_uint_lt(epoch, AGAIN_EPOCHS);
	ck_assert_msg(!seen->delivered[epoch][id], "a sample twice in an epoch");
	seen->delivered[epoch][id] = true;
	seen->samples++;
	sight = seen->sight[id];
	while (sight->epochs && memcmp(&sight->pixels, &pixels, sizeof(pixels)) != 0)
		sight++;
	sight->pixels = pixels;
	seen->repeated += sight->epochs > 0;
	seen->full += ++sight->epochs == seen->most && seen->most > 1;
	ck_assert_msg(sight->epochs <= seen->most, "sample %u in the same pixels in %u epochs",
		      (unsigned)id, sight->epochs);
}

/* Reads so many batches; false: it is over. */
static bool train(struct seen *seen, unsigned batches)
{
	for (unsigned b = 0; b < batches; b++) {
		struct oa_batch_info info = {.size = sizeof(info)};
		struct oa_batch *batch = runs_next(seen->stream);
		struct oa_field image = {.size = sizeof(image)};

		if (!batch)
			return false;
		oa_batch_info(batch, &info);
		ck_assert_int_eq(oa_batch_field(batch, 0, &image), 0);
		for (uint32_t i = 0; i < info.count; i++) {
			const uint8_t *at =
			    (const uint8_t *)image.data + i * (uint64_t)image.strides[0];
			struct hash_id pixels;

			hash_of(at, (size_t)(image.bytes / info.count), &pixels);
			see(seen, info.epoch, (uint64_t)info.ids[i], pixels);
		}
		oa_release(batch);
	}
	return true;
}

#define EPOCH (AGAIN_SAMPLES / 16)

static double hits(void)
{
	return rig_status("streams.0.cache.hits");
}

/* Is something made, and all that was made written, or given up? The points are in the order of their depth. */
static bool has_settled(void)
{
	struct json_in *status = rig_whole_status();
	double made = rig_number_at(status, "streams.0.cache.points.4.made");
	double gone = rig_number_at(status, "caches.0.kept") +
		      rig_number_at(status, "caches.0.not_taken") +
		      rig_number_at(status, "caches.0.full");
	bool is_idle = status && rig_number_at(status, "streams.0.producing") <= 0;

	json_in_free(status);
	return is_idle && made > 0 && gone >= made;
}

/* What is made is there when it is to be brought. What is lost on its way to the store is counted by nobody, so this
 * ends all the same, and what comes of it decides. */
static void let_settle(uint64_t most_ns)
{
	const uint64_t end = base_now_ns() + most_ns;

	while (!has_settled() && base_now_ns() < end)
		rig_sleep_ms(20);
}

/* Until half of them are written. Where they are to be kept may be known only when most chunks of the first epoch have
 * begun, and nothing is made while the job takes nothing: so it goes on, a batch in some seconds. */
static void train_until_kept(struct seen *seen)
{
	ck_assert(train(seen, EPOCH));
	for (;;) {
		let_settle(PATIENCE_NS / 100);
		if (rig_status("caches.0.values") >= AGAIN_SAMPLES / 2.0)
			return;
		ck_assert(train(seen, 1));
	}
}

static void train_out(struct seen *seen)
{
	while (train(seen, 1))
		;
	ck_assert_uint_eq(seen->samples, AGAIN_SAMPLES * AGAIN_EPOCHS);
}

/* In turns, so long between them. */
static void train_both_out(struct seen *a, struct seen *b, unsigned ms)
{
	bool goes_on = true;

	while (goes_on) {
		goes_on = train(a, 1);
		goes_on |= train(b, 1);
		rig_sleep_ms(ms);
	}
	ck_assert_uint_eq(a->samples, AGAIN_SAMPLES * AGAIN_EPOCHS);
	ck_assert_uint_eq(b->samples, AGAIN_SAMPLES * AGAIN_EPOCHS);
}

/* ---- as often as it may be ---- */

START_TEST(as_often_as_it_may)
{
	struct oa_client *client;
	struct seen *seen;

	client = start();
	seen = begin(client, 3);
	train_until_kept(seen);
	while (train(seen, EPOCH))
		let_settle(PATIENCE_NS / 10);
	ck_assert_uint_eq(seen->samples, AGAIN_SAMPLES * AGAIN_EPOCHS);
	ck_assert_double_gt(hits(), AGAIN_SAMPLES);
	/* Planned before their values were written, which is a matter of luck; not most of them. */
	ck_assert_double_le(rig_status("streams.0.cache.wrong"), 4 * AGAIN_SAMPLES);
	ck_assert_uint_gt(seen->repeated, AGAIN_SAMPLES);
	ck_assert_uint_gt(seen->full, AGAIN_SAMPLES / 4);
	end(seen);
	finish(client);
}
END_TEST

/* In the form of each value that is kept one byte is turned over. */
static unsigned damage_all(void)
{
	static const uint8_t mark[] = "\x8aOAform\n";
	char file[PATH_MAX];
	struct stat st;
	unsigned n = 0;
	uint8_t *map;
	int fd;

	snprintf(file, sizeof(file), "%s/store/own/cache.mdb", rig_host.dir);
	fd = open(file, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	for (size_t at = 0; at + 4096 < (size_t)st.st_size; at++) {
		if (map[at] != mark[0] || memcmp(map + at, mark, sizeof(mark) - 1) != 0)
			continue;
		map[at + 1000] ^= 0x55;
		n++;
	}
	munmap(map, (size_t)st.st_size);
	close(fd);
	return n;
}

/* The same instances, from the store and from their files, are the same pixels. */
START_TEST(from_the_file_it_is_the_same)
{
	struct oa_client *client;
	struct seen *seen;
	double came;
	unsigned before;

	client = start();
	seen = begin(client, 9);
	train_until_kept(seen);
	ck_assert(train(seen, EPOCH));
	ck_assert_uint_ge(damage_all(), AGAIN_SAMPLES / 2);
	came = hits();
	before = seen->repeated;
	ck_assert(train(seen, 2 * EPOCH));
	ck_assert(rig_wait_status("caches.0.damaged", 1, 1000000));
	/* but for chunks that are not delivered yet */
	ck_assert_double_ge(seen->repeated - before + 4 * 16,
			    hits() - came + rig_status("caches.0.damaged"));
	train_out(seen);
	end(seen);
	finish(client);
}
END_TEST

/* ---- who comes and goes ---- */

START_TEST(late_and_with_another_number)
{
	struct oa_client *client;
	struct seen *first, *second;

	client = start();
	first = begin(client, 4);
	train_until_kept(first);
	ck_assert(train(first, EPOCH));
	second = begin(client, 2);
	train_both_out(first, second, 50);
	ck_assert_double_gt(hits(), 0);
	end(first);
	end(second);
	finish(client);
}
END_TEST

/* Jobs that allow nothing of it: without reuse, in a fixed order, one that records, ranks. While one is there
 * nothing is brought in chunks that begin. */
static struct oa_stream *open_other(struct oa_client *client, int kind)
{
	struct oa_options options = runs_options(dataset, OA_ORDER_CAROUSEL, 0, 16);

	options.pipeline = AGAIN_SPEC;
	options.epochs = AGAIN_EPOCHS;
	if (kind == 1) {
		options.order = OA_ORDER_SEEDED;
		options.seed = 5;
	} else if (kind == 2) {
		options.record = rig_path("recording");
		options.reuse = 5;
	} else if (kind == 3) {
		options.job = "ranks";
		options.ranks = 2;
		options.reuse = 5;
	}
	return rig_open(client, &options);
}

START_TEST(who_allows_nothing)
{
	struct oa_client *client;
	struct oa_stream *other;
	struct seen *seen;
	double before;

	client = start();
	seen = begin(client, 9);
	train_until_kept(seen);
	ck_assert(train(seen, EPOCH));
	ck_assert_double_gt(hits(), 0);
	other = open_other(client, _i);
	ck_assert(train(seen, 4));
	ck_assert(rig_wait_status("streams.0.producing", 0, 0)); /* chunks that had begun */
	before = hits();
	ck_assert(train(seen, 2 * EPOCH));
	ck_assert_double_eq(hits(), before);
	oa_close(other);
	ck_assert(rig_wait_status("jobs.1.id", -1, -1));
	train_out(seen);
	if (_i != 3)                                 /* a group of ranks is waited for */
		ck_assert_double_gt(hits(), before); /* it is chosen again when he has left */
	end(seen);
	finish(client);
}
END_TEST

/* A job without reuse that joins: first productions alone. */
START_TEST(without_reuse)
{
	struct oa_client *client;
	struct seen *seen, *other;

	client = start();
	seen = begin(client, 5);
	train_until_kept(seen);
	ck_assert(train(seen, EPOCH));
	other = begin(client, 1);
	train_both_out(seen, other, 0);
	ck_assert_uint_eq(other->repeated, 0);
	end(seen);
	end(other);
	finish(client);
}
END_TEST

/* What a job recorded that has reuse is served again, pixel by pixel. */
START_TEST(a_recording_is_what_was_served)
{
	struct oa_options options = runs_options(NULL, OA_ORDER_CAROUSEL, 0, 16);
	struct hash_id served;
	char path[PATH_MAX];

	make_dataset();
	snprintf(path, sizeof(path), "%s", rig_path("recording"));
	options.dataset = dataset;
	options.pipeline = AGAIN_SPEC;
	options.epochs = 4;
	options.reuse = 4;
	options.record = path;
	rig_start(KEEPS, NULL);
	served = runs_digest(&options);
	options.reuse = 0;
	options.record = NULL;
	options.replay = path;
	options.order = OA_ORDER_REPLAY;
	runs_assert_same(runs_digest(&options), served);
	rig_end();
}
END_TEST

/* ---- whatever happens ---- */

START_TEST(processes_die)
{
	static const char *const victims[] = {"node.reader_pid", "workers.0.pid"};
	struct oa_client *client;
	struct seen *seen;

	client = start();
	seen = begin(client, 3);
	train_until_kept(seen);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert(train(seen, EPOCH / 2));
		rig_kill(victims[i % 2], SIGKILL);
		ck_assert(train(seen, EPOCH / 2));
	}
	train_out(seen);
	ck_assert_double_gt(hits(), 0);
	end(seen);
	finish(client);
}
END_TEST

/* The next accessd does not know who saw what is there: it brings nothing of it. The job goes on over its death. */
START_TEST(accessd_dies)
{
	struct oa_client *client;
	struct seen *seen;

	client = start();
	seen = begin(client, 3);
	train_until_kept(seen);
	ck_assert(train(seen, EPOCH));
	rig_restart(KEEPS, NULL);
	train_out(seen);
	end(seen);
	finish(client);
}
END_TEST

/* Whatever is chosen, and as often as it is chosen otherwise. */
START_TEST(by_measurement)
{
	struct oa_client *client;
	struct seen *first, *second;

	make_dataset();
	rig_start("cache_size=64M", "cache_point=auto", AGAIN_RIG, NULL);
	client = rig_connect();
	first = begin(client, 4);
	ck_assert(train(first, 2 * EPOCH));
	second = begin(client, 3);
	train_both_out(first, second, 0);
	end(first);
	end(second);
	finish(client);
}
END_TEST

/* No room for half of it; no store at all. */
START_TEST(little_room)
{
	struct oa_client *client;
	struct seen *seen;

	make_dataset();
	rig_start(_i ? "cache_size=0" : "cache_size=1M", AGAIN_SETTINGS, NULL);
	client = rig_connect();
	seen = begin(client, 3);
	while (train(seen, EPOCH))
		if (!_i)
			let_settle(PATIENCE_NS / 10);
	ck_assert_uint_eq(seen->samples, AGAIN_SAMPLES * AGAIN_EPOCHS);
	ck_assert(_i || hits() > 0);
	end(seen);
	finish(client);
}
END_TEST

/* Without a disk: forms are kept in memory then, but those of instances are not. */
START_TEST(in_memory_alone)
{
	char path[3 * PATH_MAX];
	struct oa_client *client;
	struct seen *seen;

	make_dataset();
	rig_start("cache_size=0", NULL);
	snprintf(path, sizeof(path), "rm -rf '%s/store' && echo no folder > '%s/store'",
		 rig_host.dir, rig_host.dir);
	ck_assert_int_eq(system(path), 0);
	rig_restart(KEEPS, NULL);
	client = rig_connect();
	seen = begin(client, 3);
	train_out(seen);
	ck_assert_double_eq(hits(), 0);
	end(seen);
	finish(client);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, as_often_as_it_may);
	tcase_add_test(tcase, from_the_file_it_is_the_same);
	tcase_add_test(tcase, late_and_with_another_number);
	tcase_add_loop_test(tcase, who_allows_nothing, 0, 4);
	tcase_add_test(tcase, without_reuse);
	tcase_add_test(tcase, a_recording_is_what_was_served);
	tcase_add_test(tcase, processes_die);
	tcase_add_test(tcase, accessd_dies);
	tcase_add_test(tcase, by_measurement);
	tcase_add_loop_test(tcase, little_room, 0, 2);
	tcase_add_test(tcase, in_memory_alone);
}

int main(void)
{
	return rig_main("again", add_tests);
}
