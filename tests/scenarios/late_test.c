/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample that takes long, and is good: while its file cannot be opened, jobs in any order get all other batches of the
 * epoch, of which none holds it; then it comes, and each sample has come once. A job with a fixed order waits for it, and so
 * do ranks; the status says for which sample, and the job's statistics for how long. And data sets whose folders hang, more of them than are opened at once, hold up no other.
 */

#include "tests/scenarios/runs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenarios/hold.h"

enum { N = 96, CHUNK = 8, BATCH = 4, LATE = 37, JOBS = 2, RANKS = 2, EPOCHS = 2 };

static const char plain[] = "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[16,16]}]";

struct reader {
	struct oa_stream *stream;
	unsigned batches, seen[N];
};

static struct oa_stream *open_job(struct oa_client *client, const char *folder, enum oa_order order)
{
	struct oa_options options = runs_options(folder, order, 0, BATCH);

	options.epochs = 1;
	if (order != OA_ORDER_CAROUSEL) /* its random ops are of no use there */
		options.pipeline = plain;
	return rig_open(client, &options);
}

/* false: there is none now. */
static bool read_one(struct reader *reader, int timeout_ms)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct oa_batch *batch;
	int r = oa_next(reader->stream, timeout_ms, &batch);

	if (r == OA_E_TIMEOUT && timeout_ms == 0)
		return false;
	ck_assert_msg(r == 0, "batch %u: %s: %s", reader->batches, oa_error_name(r),
		      oa_error_text(reader->stream));
	oa_batch_info(batch, &info);
	for (uint32_t i = 0; i < info.count; i++)
		reader->seen[info.ids[i]]++;
	reader->batches++;
	oa_release(batch);
	return true;
}

static void *read_in_thread(void *reader)
{
	read_one(reader, PATIENCE_MS);
	return NULL;
}

/* One who waits for the sample, and goes on with it: what is said of that. */
static void wait_for_late(struct reader *reader, int hold, unsigned sample)
{
	struct oa_stats stats = {.size = sizeof(stats)};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, read_in_thread, reader), 0);
	ck_assert(rig_wait_status("jobs.0.late.sample", sample, sample));
	ck_assert(rig_wait_status("jobs.0.late_seconds", 0.001, 1e9));
	hold_end(hold);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(rig_wait_status("jobs.0.late.sample", -1, -1));
	oa_stream_stats(reader->stream, &stats);
	ck_assert_uint_gt(stats.late_ns, 0);
	ck_assert_uint_le(stats.late_ns, stats.wait_ns);
}

static void finish(struct reader *reader)
{
	struct oa_batch *batch;

	while (reader->batches < N / BATCH)
		read_one(reader, PATIENCE_MS);
	ck_assert_int_eq(oa_next(reader->stream, PATIENCE_MS, &batch), OA_E_END);
	for (unsigned i = 0; i < N; i++)
		ck_assert_uint_eq(reader->seen[i], 1);
	oa_close(reader->stream);
}

/* A chunk has two batches: the late sample is in one of them, and the other one may be behind it. */
START_TEST(all_other_chunks_come_first)
{
	static const enum oa_order orders[] = {OA_ORDER_CAROUSEL, OA_ORDER_ANY};
	const char *folder = rig_pictures("late", N, 2, 24);
	struct reader reader[JOBS] = {{.stream = NULL}};
	struct oa_client *client;
	int hold;

	if (!hold_is_possible())
		return;
	rig_start("workers=2", "chunk=8", "slots=8", NULL);
	client = rig_connect();
	hold = hold_path(rig_path("late/class_0000/%06u.jpg", LATE));
	for (unsigned i = 0; i < JOBS; i++)
		reader[i].stream = open_job(client, folder, orders[_i]);
	for (unsigned batch = 0; batch < (N - CHUNK) / BATCH; batch++)
		for (unsigned i = 0; i < JOBS; i++)
			read_one(&reader[i], PATIENCE_MS);
	ck_assert(hold_is_met(hold));
	for (unsigned i = 0; i < JOBS; i++) {
		while (reader[i].batches < N / BATCH - 1 && read_one(&reader[i], 0))
			;
		ck_assert(!read_one(&reader[i], 0));
		ck_assert_uint_eq(reader[i].seen[LATE], 0);
	}
	hold_end(hold);
	for (unsigned i = 0; i < JOBS; i++)
		finish(&reader[i]);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* Its place is the third chunk's: two chunks come, and what lies before it in its own. */
START_TEST(a_fixed_order_is_kept)
{
	enum { PLACE = 18 };
	const char *folder = rig_pictures("late", N, 2, 24);
	struct reader reader = {.stream = NULL};
	struct oa_client *client;
	int hold;

	if (!hold_is_possible())
		return;
	rig_start("workers=2", "chunk=8", "slots=8", NULL);
	client = rig_connect();
	hold = hold_path(rig_path("late/class_0000/%06u.jpg", PLACE));
	reader.stream = open_job(client, folder, OA_ORDER_SEQUENTIAL);
	while (reader.batches < PLACE / BATCH)
		read_one(&reader, PATIENCE_MS);
	ck_assert(hold_is_met(hold));
	ck_assert(!read_one(&reader, 0));
	wait_for_late(&reader, hold, PLACE);
	finish(&reader);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void *read_all(void *reader)
{
	for (unsigned i = 0; i < EPOCHS * N / BATCH / RANKS; i++)
		read_one(reader, PATIENCE_MS);
	return NULL;
}

/* Each rank's next batch is where the plan has it, for all of them alike: who has the sample in it waits. It may be in the first
 * epoch's last chunk, and keeps them waiting as something of the second one is finished behind it. */
START_TEST(ranks_wait)
{
	const char *folder = rig_pictures("late", N, 2, 24);
	struct oa_options options = runs_options(folder, OA_ORDER_CAROUSEL, 0, BATCH);
	struct reader reader[RANKS] = {{.stream = NULL}};
	pthread_t thread[RANKS];
	struct oa_client *client;
	int hold;

	if (!hold_is_possible())
		return;
	rig_start("workers=2", "chunk=8", "slots=8", NULL);
	client = rig_connect();
	hold = hold_path(rig_path("late/class_0000/%06u.jpg", LATE));
	options.epochs = EPOCHS;
	options.ranks = RANKS;
	options.job = "late";
	for (unsigned i = 0; i < RANKS; i++) {
		options.rank = i;
		reader[i].stream = rig_open(client, &options);
	}
	for (unsigned i = 0; i < RANKS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, &reader[i]), 0);
	while (rig_status("jobs.0.late.sample") != LATE && rig_status("jobs.1.late.sample") != LATE)
		rig_sleep_ms(20);
	hold_end(hold);
	for (unsigned i = 0; i < RANKS; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		oa_close(reader[i].stream);
	}
	for (unsigned i = 0; i < N; i++)
		ck_assert_uint_eq(reader[0].seen[i] + reader[1].seen[i], EPOCHS);
	oa_disconnect(client);
	rig_end();
}
END_TEST

/* The child has no part in what is held: it would hold it, too. */
static pid_t open_in_child(const char *folder, const int *hold, unsigned n)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct oa_client *client = rig_connect();

		for (unsigned i = 0; i < n; i++)
			close(hold[i]);
		oa_close(open_job(client, folder, OA_ORDER_ANY));
		oa_disconnect(client);
		_exit(0);
	}
	return pid;
}

/* More of them than the reader opens at once, and all are met: none waits for another one either. */
START_TEST(folders_that_hang_hold_up_no_other)
{
	enum { HANG = 6 };
	struct reader reader = {.stream = NULL};
	struct oa_client *client;
	int hold[HANG], status;
	pid_t child[HANG];
	char name[16];

	if (!hold_is_possible())
		return;
	rig_start("workers=2", "chunk=8", NULL);
	client = rig_connect();
	for (unsigned i = 0; i < HANG; i++) {
		snprintf(name, sizeof(name), "hangs%u", i);
		hold[i] = hold_path(rig_pictures(name, 8, 1, 16));
		child[i] = open_in_child(rig_path("%s", name), hold, i + 1);
	}
	for (unsigned i = 0; i < HANG; i++)
		ck_assert(hold_is_met(hold[i]));
	reader.stream = open_job(client, rig_pictures("late", N, 2, 24), OA_ORDER_ANY);
	finish(&reader);
	for (unsigned i = 0; i < HANG; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, WNOHANG), 0);
		hold_end(hold[i]);
	}
	for (unsigned i = 0; i < HANG; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_int_eq(status, 0);
	}
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, folders_that_hang_hold_up_no_other);
	tcase_add_loop_test(tcase, all_other_chunks_come_first, 0, 2);
	tcase_add_test(tcase, a_fixed_order_is_kept);
	tcase_add_test(tcase, ranks_wait);
}

int main(void)
{
	return rig_main("late", add);
}
