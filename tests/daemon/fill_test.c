/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tasks of a chunk are queued within a budget: what is left is queued when it is asked again.
 */

#include "daemon/serve/fill.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/budget.h"
#include "daemon/node.h"
#include "daemon/serve/fill_parts.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "storage/index.h"
#include "storage/reader.h"
#include "tests/suite.h"

#define N 1000
#define CHUNK 64
#define BYTES 1000 /* of a sample */

static struct node node;
static struct domain domain;
static struct source source;
static struct stream stream;
static int doorbell_fd;

static struct dataset *make_dataset(void)
{
	struct index_head head = {.n_samples = N, .names_bytes = N * 5, .n_folders = 1};
	const struct index_record record = {.mtime_ns = 1, .size = BYTES};
	const struct index_folder folder = {.mtime_ns = 1};
	struct index_writer writer;
	struct dataset *dataset;
	char name[8];
	int fd;

	head.folders_bytes = 1;
	ck_assert_int_eq(index_new(&writer, &head), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%04u", i);
		index_add_sample(&writer, "", name, &record);
	}
	index_add_folder(&writer, "", &folder);
	ck_assert_int_eq(index_seal(&writer, &fd), 0);
	index_drop(&writer);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	return dataset;
}

/* A chunk that nothing is queued of yet. */
static void begin_chunk(void)
{
	const struct carousel_join join = {.batch = 8, .ranks = 1};
	struct carousel_action action;
	struct fill *fill = &stream.fill[0];
	const struct carousel_chunk *chunk;
	uint32_t job;

	ck_assert_int_eq(carousel_join(stream.carousel, &join, 1, &job), 0);
	carousel_step(stream.carousel, 1, &action);
	ck_assert_int_eq(action.kind, CAROUSEL_PRODUCE);
	chunk = carousel_chunk_of(stream.carousel, action.slot);
	ck_assert_uint_eq(chunk->count, CHUNK);
	ck_assert_int_eq(queue_row_begin(&stream.shared.queue, 1, chunk->nonce, chunk->seed,
					 action.slot, 1, CHUNK, &fill->row),
			 0);
	for (uint32_t i = 0; i < CHUNK; i++)
		fill->task[i].source = (uint64_t)chunk->ids[i];
	fill->used = true;
	fill->slot = action.slot;
	fill->variants = 1;
	fill->count = CHUNK;
	fill->started_ns = 1;
}

static void begin(uint64_t arena_bytes)
{
	const struct carousel_config config = {
	    .n = N, .chunk = CHUNK, .slots = 2, .max_slots = 2, .producing = 1, .seed = 1};

	domain.node = &node;
	source.dataset = make_dataset();
	ck_assert_int_eq(doorbell_new(&domain.doorbell, &doorbell_fd), 0);
	stream = (struct stream){.node = &node, .domain = &domain, .source = &source};
	stream.state = STREAM_RUNS;
	ck_assert_int_eq(carousel_new(&config, &stream.carousel), 0);
	ck_assert_int_eq(queue_new(1, 1, CHUNK, arena_bytes, &stream.shared.queue,
				   &stream.shared.queue_fd, &stream.shared.arena_fd),
			 0);
	ck_assert_int_eq(arena_init(&stream.shared.arena, arena_bytes, CHUNK + 1, ARENA_ALIGN), 0);
	ck_assert_int_eq(fill_init(&stream), 0);
	begin_chunk();
}

static void end(void)
{
	fill_fini(&stream);
	arena_fini(&stream.shared.arena);
	queue_detach(&stream.shared.queue);
	close(stream.shared.queue_fd);
	close(stream.shared.arena_fd);
	carousel_free(stream.carousel);
	doorbell_detach(domain.doorbell);
	close(doorbell_fd);
	dataset_unmap(source.dataset);
}

static unsigned queued(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < CHUNK; i++)
		n += queue_task_state(&stream.shared.queue, stream.fill[0].row, i, NULL) ==
		     LAYOUT_TASK_QUEUED;
	return n;
}

/* One that is spent from the beginning: a task a time, and it is asked again at once. */
START_TEST(a_budget_ends_feeding)
{
	const struct budget spent = {.begun_ns = 1};

	begin(UINT64_C(4) << 20);
	for (unsigned i = 1; i <= CHUNK; i++) {
		ck_assert_uint_eq(fill_feed(&stream, &spent), spent.begun_ns);
		ck_assert_uint_eq(queued(), i);
	}
	ck_assert_uint_eq(fill_feed(&stream, &spent), 0);
	end();
}
END_TEST

/* It is not asked again before there is room. */
START_TEST(a_full_arena_ends_feeding)
{
	const struct budget spent = {.begun_ns = 1};
	unsigned n = 0;

	begin(8 * 4096);
	while (fill_feed(&stream, &spent))
		ck_assert_uint_eq(queued(), ++n);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, CHUNK);
	ck_assert_uint_eq(fill_feed(&stream, &spent), 0);
	ck_assert_uint_eq(queued(), n);
	end();
}
END_TEST

/* One task, until a worker has it. */
static void take(uint32_t owner)
{
	struct queue_task task;

	ck_assert_int_eq(queue_claim_read(&stream.shared.queue, 1, &task), 0);
	queue_read_came(&stream.shared.queue, &task, 0, LAYOUT_FROM_SOURCE, BYTES, 0);
	queue_read_done(&stream.shared.queue, &task, LAYOUT_FAIL_NONE, 0, NULL, 0, 0);
	ck_assert_int_eq(queue_claim_run(&stream.shared.queue, owner, UINT32_MAX, &task), 0);
}

/* The reader was told, once, of the task that has failed. */
static void check_unmade(int sock)
{
	uint64_t sample, form;
	struct wire_in in;
	unsigned failed = 0;

	wire_in_init(&in);
	ck_assert_int_eq(wire_recv(sock, &in, MSG_DONTWAIT), 0);
	ck_assert_uint_eq(in.type, READER_UNMADE);
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_SAMPLE, &sample), 0);
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_FORM, &form), 0);
	ck_assert_uint_eq(form, LAYOUT_FORM_PACKED);
	wire_in_fini(&in);
	for (uint32_t i = 0; i < CHUNK; i++)
		if (queue_task_state(&stream.shared.queue, stream.fill[0].row, i, NULL) ==
		    LAYOUT_TASK_FAILED) {
			ck_assert_uint_eq(stream.fill[0].task[i].source, sample);
			failed++;
		}
	ck_assert_uint_eq(failed, 1);
	ck_assert_int_lt(recv(sock, &failed, sizeof(failed), MSG_DONTWAIT), 0);
}

/* As the kernel does where memory is short, for longer than one death: the sample is not bad for it, until it was for ten;
 * where there is memory as soon as its worker is dead, for two. */
START_TEST(who_was_killed_says_nothing_of_its_sample)
{
	const struct budget spent = {.begun_ns = 1};
	static const unsigned tries[] = {1, 10, 2};
	struct fill_death death = {
	    .stage = LAYOUT_FAIL_CRASH, .status = _i ? SIGKILL : SIGSEGV, .left_room = _i == 2};
	const unsigned most = tries[_i];
	struct queue_task task;

	begin(UINT64_C(4) << 20);
	fill_feed(&stream, &spent);
	take(1);
	for (death.owner = 1; death.owner <= most + 1; death.owner++) {
		if (death.owner > 1)
			ck_assert_int_eq(
			    queue_claim_run(&stream.shared.queue, death.owner, UINT32_MAX, &task),
			    0);
		fill_worker_died(&stream, &death);
		ck_assert_int_eq(
		    queue_task_state(&stream.shared.queue, stream.fill[0].row, 0, NULL),
		    death.owner <= most ? LAYOUT_TASK_READY : LAYOUT_TASK_FAILED);
	}
	end();
}
END_TEST

/* The second time it is the sample's fault, a hang is it at once; each time it was the stream's work. */
START_TEST(what_a_dead_worker_used_is_its_streams)
{
	int pair[2];

	const struct budget spent = {.begun_ns = 1};
	struct fill_death death = {
	    .owner = 7, .stage = LAYOUT_FAIL_CRASH, .status = 9, .work_us = 400000};

	begin(UINT64_C(4) << 20);
	fill_feed(&stream, &spent);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	domain.reading.keeper.child.sock = pair[0];
	domain.reading.peers = 1;
	for (uint32_t i = 0; i < CHUNK; i++)
		stream.fill[0].task[i].keep.make = LAYOUT_FORM_PACKED;
	take(7);
	death.owner = 8;
	fill_worker_died(&stream, &death);
	ck_assert_uint_eq(stream.share.work_us, 0); /* it had another's */
	death.owner = 7;
	fill_worker_died(&stream, &death);
	ck_assert_uint_eq(stream.share.work_us, 400000);
	ck_assert_int_eq(queue_task_state(&stream.shared.queue, stream.fill[0].row, 0, NULL),
			 LAYOUT_TASK_READY);
	fill_worker_died(&stream, &death);
	ck_assert_uint_eq(stream.share.work_us, 400000); /* it has none any more */
	fill_feed(&stream, &spent);
	take(9);
	death = (struct fill_death){.owner = 9, .stage = LAYOUT_FAIL_HANG, .work_us = 1000000};
	fill_worker_died(&stream, &death);
	ck_assert_uint_eq(stream.share.work_us, 1400000);
	check_unmade(pair[1]);
	close(pair[0]);
	close(pair[1]);
	end();
}
END_TEST

/* What is to be read once more is under way only when it is queued again: it takes no room from itself. */
START_TEST(what_is_queued_again_takes_no_room_from_itself)
{
	const struct budget spent = {.begun_ns = 1};
	struct queue_task task;

	begin(UINT64_C(4) << 20);
	for (unsigned i = 0; i < 4; i++)
		fill_feed(&stream, &spent);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(queue_claim_read(&stream.shared.queue, 1, &task), 0);
		queue_read_done(&stream.shared.queue, &task, LAYOUT_FAIL_READ, 5, NULL, 0, 0);
	}
	ck_assert_uint_eq(fill_under_way(stream.fill), 4);
	fill_reader_died(&stream);
	ck_assert_uint_eq(fill_under_way(stream.fill), 0);
	for (unsigned i = 1; i <= 6; i++) {
		fill_feed(&stream, &spent);
		ck_assert_uint_eq(queued(), i);
		ck_assert_uint_eq(fill_under_way(stream.fill), i);
	}
	end();
}
END_TEST

/* A domain that settled last at 1 s, with what its processes have used in their lives. */
static double settled(double cpu_s, uint64_t at_s)
{
	domain.reading.cpu_ns = (uint64_t)(cpu_s * 1e9);
	fill_settle(&node, at_s * UINT64_C(1000000000));
	return domain.had.account.cpu_ns / 1e9;
}

START_TEST(no_more_is_charged_than_processors_had)
{
	const struct budget spent = {.begun_ns = 1};

	begin(UINT64_C(4) << 20);
	node.machine.limits.mask = 2;
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	LIST_INSERT_HEAD(&domain.streams, &stream, link);
	domain.share.settled_at_ns = 1000000000;
	stream.payer = &domain;
	stream.share.fair.weight = 1;
	ck_assert_double_eq(settled(100, 2), 0); /* of the listing: there is no work yet */
	stream.share.work_us = 1000;
	ck_assert_double_eq_tol(settled(100, 3), 4, 1e-6);
	stream.share.work_us = 1000;
	ck_assert_double_eq_tol(settled(60, 4), 4, 1e-6); /* one ended, and is not counted yet */
	ck_assert_uint_eq(stream.share.work_us, 1000);
	ck_assert_double_eq_tol(settled(100.5, 5), 4.5, 1e-6);
	ck_assert_uint_eq(stream.share.work_us, 0);
	ck_assert_double_eq_tol(settled(101, 6), 4.5, 1e-6);
	fill_feed(&stream, &spent);
	ck_assert_double_eq_tol(settled(102, 7), 6,
				1e-6); /* nothing is finished: what is under way */
	ck_assert_double_eq_tol(stream.share.fair.done, 6e9, 6e6);
	LIST_REMOVE(&stream, link);
	LIST_REMOVE(&domain, link);
	end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_budget_ends_feeding);
	tcase_add_test(tcase, a_full_arena_ends_feeding);
	tcase_add_loop_test(tcase, who_was_killed_says_nothing_of_its_sample, 0, 3);
	tcase_add_test(tcase, what_a_dead_worker_used_is_its_streams);
	tcase_add_test(tcase, what_is_queued_again_takes_no_room_from_itself);
	tcase_add_test(tcase, no_more_is_charged_than_processors_had);
}

int main(void)
{
	return suite_run("fill", add);
}
