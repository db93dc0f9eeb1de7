/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs beside each other, one of which is killed, stopped, talks nonsense, or is much slower, late,
 * leaves or comes back: whatever it is, the others get every sample exactly once, and so does it.
 * Here each step is the test's own; chance has its turn in 11-kill-stop.sh.
 */

#include "tests/scenarios/trainee.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define N 240
#define BATCH 8

static const char *dataset;

/* A chunk is a batch, so that two batches are two slots, all that a rank may pin. */
static void setup(const char *slots)
{
	rig_start("workers=2", "chunk=8", "linger_s=0", slots, NULL);
	dataset = rig_pictures("neighbours", N, 2, 32);
}

static void teardown(void)
{
	ck_assert(rig_wait_status("jobs", 0, 0));
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("node.waits_on_dead", 0, 0));
	ck_assert(rig_wait_status("node.worker_restarts", 0, 0));
	rig_end();
}

/* Case 1: killed with all the pins it may have: they come back, three others do not notice. */
START_TEST(a_killed_job_gives_back_its_pins)
{
	static struct trainee_seen seen[3];
	struct oa_options options;
	struct oa_stream *stream[3];
	struct oa_client *client;
	struct trainee victim;
	double memory;
	unsigned fds;

	setup("slots=8");
	client = rig_connect();
	options = trainee_options(dataset, BATCH, 2);
	for (unsigned i = 0; i < 3; i++)
		stream[i] = rig_open(client, &options);
	for (unsigned i = 0; i < 3; i++)
		trainee_train(stream[i], N / BATCH, &seen[i]); /* an epoch, so no chunk is aside */
	ck_assert(rig_wait_status("jobs", 3, 3));
	ck_assert(rig_wait_status("streams.0.pinned", 0, 0));
	fds = rig_settled_fds(0);
	memory = rig_status("node.memory_used");
	for (unsigned round = 0; round < 5; round++) {
		victim = trainee_start(dataset, N, BATCH, 0, TRAINEE_HOLDS);
		ck_assert(rig_wait_status("streams.0.pinned", 2, 2));
		ck_assert(rig_wait_status("jobs", 4, 4));
		kill(victim.pid, SIGKILL);
		trainee_end(&victim);
		ck_assert(rig_wait_status("streams.0.pinned", 0, 0));
		ck_assert(rig_wait_status("jobs", 3, 3));
		ck_assert_uint_le(rig_settled_fds(fds), fds);
		ck_assert_double_le(rig_status("node.memory_used"), memory);
	}
	for (unsigned i = 0; i < 3; i++) {
		trainee_train(stream[i], 0, &seen[i]);
		ck_assert(trainee_saw_all(&seen[i], N, 2));
		oa_close(stream[i]);
	}
	oa_disconnect(client);
	teardown();
}
END_TEST

/* Case 3: stopped with all its pins, in as few slots as there may be: another job trains on for
 * epochs; then the stopped one goes on, what it held is what it was, and nothing is missing. */
START_TEST(a_stopped_job_starves_nobody)
{
	static struct trainee_seen seen;
	struct oa_options options;
	struct oa_stream *stream;
	struct oa_client *client;
	struct trainee stopped;

	setup("slots=4");
	stopped = trainee_start(dataset, N, BATCH, 2, TRAINEE_FINISHES);
	kill(stopped.pid, SIGSTOP);
	client = rig_connect();
	options = trainee_options(dataset, BATCH, 3);
	stream = rig_open(client, &options);
	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, N, 3));
	oa_close(stream);
	oa_disconnect(client);
	ck_assert(rig_wait_status("streams.0.pinned", 2, 2));
	kill(stopped.pid, SIGCONT);
	trainee_go(&stopped);
	ck_assert_int_eq(trainee_end(&stopped), 0);
	teardown();
}
END_TEST

/* Case 12: nonsense from a job with pins ends the conversation, not the pins: what it holds stays as
 * it is while others train, until its process ends. */
START_TEST(nonsense_does_not_move_what_is_held)
{
	static struct trainee_seen seen;
	struct oa_options options;
	struct oa_stream *stream;
	struct oa_client *client;
	struct trainee babbler;

	setup("slots=6");
	babbler = trainee_start(dataset, N, BATCH, 0,
				TRAINEE_BABBLES); /* first: it has no other sockets */
	client = rig_connect();
	options = trainee_options(dataset, BATCH, 4);
	stream = rig_open(client, &options);
	trainee_go(&babbler);
	ck_assert(rig_wait_status("node.refused", 1, 1));
	trainee_train(stream, 0, &seen);
	ck_assert(trainee_saw_all(&seen, N, 4));
	ck_assert(rig_wait_status("streams.0.pinned", 2, 2));
	trainee_go(&babbler);
	ck_assert_int_eq(trainee_end(&babbler), 0);
	ck_assert(rig_wait_status("streams.0.pinned", 0, 0));
	oa_close(stream);
	oa_disconnect(client);
	teardown();
}
END_TEST

static void save(struct oa_stream *stream, void **ret, size_t *ret_size)
{
	*ret_size = 0;
	ck_assert_int_eq(oa_state(stream, NULL, ret_size), -ENOBUFS);
	*ret = malloc(*ret_size);
	ck_assert_int_eq(oa_state(stream, *ret, ret_size), 0);
}

/* Case 48: a fast job, one ten times slower, one that comes when the fast one is half way, one that
 * leaves, and that one again. All but the leaver get their whole epochs; the leaver gets its epoch in
 * its two lives. */
START_TEST(fast_slow_late_leaving_and_back)
{
	enum { FAST, SLOW, LATE, LEAVER, BACK };
	static struct trainee_seen seen[5];
	struct oa_stream *stream[5] = {NULL};
	struct oa_options options;
	struct oa_client *client;
	size_t token_size = 0;
	unsigned ended = 0;
	void *token = NULL;

	setup("slots=12");
	client = rig_connect();
	options = trainee_options(dataset, BATCH, 2);
	stream[FAST] = rig_open(client, &options);
	stream[SLOW] = rig_open(client, &options);
	options.epochs = 1;
	stream[LEAVER] = rig_open(client, &options);
	for (unsigned step = 0; ended < 4; step++) { /* a step: ten batches of the fast one */
		if (step == 2) {
			options.batch = BATCH + 3; /* 15 of its 30 chunks are behind the fast one */
			stream[LATE] = rig_open(client, &options);
			options.batch = BATCH;
		}
		if (step == 1) {
			trainee_train(stream[LEAVER], 7, &seen[BACK]);
			save(stream[LEAVER], &token, &token_size);
			oa_close(stream[LEAVER]);
			stream[LEAVER] = NULL;
		}
		if (step == 4) {
			options.token = token;
			options.token_size = token_size;
			stream[BACK] = rig_open(client, &options);
			options.token = NULL;
			options.token_size = 0;
		}
		for (unsigned i = 0; i < 5; i++) {
			unsigned most = i == FAST ? 10 : i == SLOW ? 1 : 4;

			if (!stream[i] || trainee_train(stream[i], most, &seen[i]) == most)
				continue;
			oa_close(stream[i]);
			stream[i] = NULL;
			ended++;
		}
	}
	ck_assert(trainee_saw_all(&seen[FAST], N, 2));
	ck_assert(trainee_saw_all(&seen[SLOW], N, 2));
	ck_assert(trainee_saw_all(&seen[LATE], N, 1));
	for (unsigned i = 0; i < TRAINEE_MOST; i++)
		seen[BACK].count[i] += seen[LEAVER].count[i];
	ck_assert(trainee_saw_all(&seen[BACK], N, 1));
	free(token);
	oa_disconnect(client);
	teardown();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_killed_job_gives_back_its_pins);
	tcase_add_test(tcase, a_stopped_job_starves_nobody);
	tcase_add_test(tcase, nonsense_does_not_move_what_is_held);
	tcase_add_test(tcase, fast_slow_late_leaving_and_back);
}

int main(void)
{
	return rig_main("neighbours", add);
}
