/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plan log that comes from elsewhere: read in steps whose number its size decides and whose length
 * does not, into memory that a group's log has.
 */

#include "daemon/serve/group_pay.h"
#include "daemon/serve/group_brought.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/tenant/domain.h"
#include "sched/carousel_log_state.h"
#include "tests/suite.h"

#define N (UINT64_C(1) << 17) /* blocks of one */
#define CHUNK 64
#define MOST_BYTES (UINT64_C(64) << 20)

static const uint8_t id[PLAN_LOG_ID] = {5, 6, 7};

static struct node node;
static struct stream stream;
static struct variant variant;
static struct domain domain; /* whose memory it is; the node has no other */
static struct conn conn;
static struct token token;
static struct entry_set set;
static struct plan_log writer;
static int fd;
static struct entry_rest all;
static const struct brought_from from = {.token = &token, .rest = &all, .is_named = true};

static void never(void *arg)
{
	(void)arg;
	ck_abort_msg("the domain is in use");
}

static void begin(uint64_t bytes)
{
	struct carousel_config config = {
	    .n = N, .chunk = CHUNK, .slots = 4, .max_slots = 4, .producing = 1, .seed = 1};

	node = (struct node){.kept = {.fd = -1}, .memory = {.budget = UINT64_MAX / 2}};
	domain = (struct domain){.node = &node, .kind = DOMAIN_OWN, .users = {.n = 1}};
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	ck_assert_int_eq(loop_new(&node.loop), 0);
	node.endings.loop = node.loop;
	ck_assert_int_eq(loop_timer_new(node.loop, never, NULL, &domain.users.idle), 0);
	stream = (struct stream){.node = &node, .geometry = {.n_samples = N, .chunk = CHUNK}};
	ck_assert_int_eq(carousel_new(&config, &stream.carousel), 0);
	conn =
	    (struct conn){.node = &node, .domain = &domain, .stream = &stream, .variant = &variant};
	conn.request.job = (char *)(uintptr_t) "job";
	set = (struct entry_set){.permutation = carousel_permutation(stream.carousel)};
	ck_assert_uint_eq(set.permutation->block, 1);
	token = (struct token){.has_log = true};
	memcpy(token.log, id, sizeof(id));
	ck_assert_int_eq(plan_log_new(bytes, N, id, &writer, &fd), 0);
	ck_assert_int_eq(plan_log_reserve(&writer, fd, UINT64_MAX), 0);
}

static void end(void)
{
	ck_assert_uint_eq(stream.bytes.all, 0);
	ck_assert_uint_eq(node.memory.used, 0);
	ck_assert_uint_eq(domain.memory.used, 0);
	ck_assert_uint_eq(domain.users.n, 1);
	endings_fini(&node.endings);
	loop_unwatch(&domain.users.idle);
	loop_free(node.loop);
	carousel_free(stream.carousel);
	plan_log_detach(&writer);
	close(fd);
}

/* The blocks from `place` on, in the permutation's order: as whole blocks, or as a list of samples. */
static void append(uint64_t epoch, uint64_t place, uint32_t count, bool is_listed)
{
	static uint32_t blocks[65536];
	static int64_t ids[65536];
	struct entry entry = {.epoch = epoch, .place = place, .seed = 1, .nonce = place};

	for (uint32_t i = 0; i < count; i++) {
		blocks[i] = (uint32_t)(place + i);
		ids[i] = (int64_t)permutation_sample(set.permutation, place + i);
	}
	entry.count = count;
	entry.n_blocks = is_listed ? 0 : count;
	entry.blocks = is_listed ? NULL : blocks;
	entry.ids = is_listed ? ids : NULL;
	plan_log_append(&writer, &entry);
	plan_log_publish(&writer);
}

/* As long as memory is being reserved: 0 when that is all of a new log. */
static int reserve(struct brought *log)
{
	int r = BROUGHT_E_MORE;

	while (r == BROUGHT_E_MORE && log->stage == BROUGHT_RESERVE)
		r = brought_step(log);
	return r;
}

static void start(struct brought *log)
{
	ck_assert_int_eq(brought_begin(log, &conn, fd, &from, &set), 0);
	ck_assert_int_eq(reserve(log), BROUGHT_E_MORE);
}

/* To the end: 0 or BROUGHT_E_BAD. */
static int run(struct brought *log, unsigned *ret_steps)
{
	const uint64_t most = plan_log_bytes(carousel_log_bytes(stream.carousel));
	int r;

	for (*ret_steps = 0; (r = brought_step(log)) == BROUGHT_E_MORE; ++*ret_steps) {
		ck_assert_uint_lt(*ret_steps, 1000000);
		ck_assert_uint_le(stream.bytes.all, most);
		ck_assert_uint_le(log->rest.n_tail, 65536);
	}
	return r;
}

START_TEST(each_record_is_a_step)
{
	struct brought log;
	unsigned steps;

	begin(MOST_BYTES / 64);
	for (uint64_t i = 0; i < 1000; i++)
		append(0, i * CHUNK, CHUNK, false);
	start(&log);
	ck_assert_uint_gt(stream.bytes.all, 0);
	ck_assert_int_eq(run(&log, &steps), 0);
	ck_assert_uint_eq(steps, 2000); /* read, added */
	ck_assert_uint_eq(log.rest.place, UINT64_C(1000) * CHUNK);
	ck_assert_uint_eq(entry_rest_count(&log.rest), N - UINT64_C(1000) * CHUNK);
	brought_fini(&log);
	end();
}
END_TEST

/* The largest record there is, of samples or of blocks; its chunk is larger than ours. */
START_TEST(a_large_record_has_many_steps)
{
	struct brought log;
	unsigned steps;

	begin(MOST_BYTES / 64);
	append(0, 0, 65536, _i);
	append(0, 65536, 65536, !_i);
	append(1, 0, CHUNK, false);
	start(&log);
	ck_assert_int_eq(run(&log, &steps), 0);
	/* read; 2,048 samples checked; 64 blocks listed; as many parts as it takes chunks */
	ck_assert_uint_eq(steps, 3 + 65536 / 2048 + 65536 / 64 + 2 * 65536 / CHUNK + 1);
	ck_assert_uint_eq(log.rest.epoch, 1);
	ck_assert_uint_eq(log.rest.place, CHUNK);
	brought_fini(&log);
	end();
}
END_TEST

/* A log in chunks of one, two epochs long: what is kept of it is what a group of ours would keep. */
START_TEST(a_long_log_takes_what_a_log_takes)
{
	struct brought log;
	uint32_t group;
	struct carousel_join join = {.batch = 8, .ranks = 2};
	unsigned steps;

	begin(MOST_BYTES / 2);
	for (uint64_t i = 0; i < 2 * N; i++)
		append(i / N, i % N, 1, false);
	start(&log);
	ck_assert_int_eq(run(&log, &steps), 0);
	ck_assert_uint_eq(steps, 4 * N);
	ck_assert_uint_eq(log.rest.place, N);
	join.need = log.rest.need;
	join.epoch = 1;
	join.place = N;
	ck_assert_int_eq(
	    carousel_found(stream.carousel, &join, carousel_log_bytes(stream.carousel), 1, &group),
	    0);
	carousel_adopt(stream.carousel, group, log.log);
	log.log = NULL;
	ck_assert(carousel_has_place(stream.carousel, group, 1, N - 1));
	ck_assert(!carousel_has_place(stream.carousel, group, 0, 0));
	brought_fini(&log);
	end();
}
END_TEST

static const struct {
	uint64_t epoch, place;
	int r;
} ends[] = {{1, 0, 0}, {1, 1, BROUGHT_E_BAD}, {2, 0, BROUGHT_E_BAD}};

/* Of the ranks whose log goes to an epoch's end the first one to come back may be in the next epoch; others are not yet. */
START_TEST(a_log_ends_with_an_epoch)
{
	struct carousel_join join = {.batch = 8, .ranks = 2, .epoch = 1};
	struct brought log;
	unsigned steps;
	uint32_t group;

	begin(MOST_BYTES / 64);
	append(0, 0, N / 2, false);
	append(0, N / 2, N / 2, false);
	token.epoch = ends[_i].epoch;
	token.place = ends[_i].place;
	start(&log);
	ck_assert_int_eq(run(&log, &steps), ends[_i].r);
	if (!ends[_i].r) {
		ck_assert_uint_eq(entry_rest_count(&log.rest), N);
		join.need = log.rest.need;
		ck_assert_int_eq(carousel_found(stream.carousel, &join,
						carousel_log_bytes(stream.carousel), 1, &group),
				 0);
		carousel_adopt(stream.carousel, group, base_take_ptr(log.log));
		ck_assert(carousel_has_place(stream.carousel, group, 0, N - 1));
		ck_assert(carousel_has_place(stream.carousel, group, 1, 0));
	}
	brought_fini(&log);
	end();
}
END_TEST

/* Of what a rank brings there may be a longer one: the group is another version of the plan, and knows where that one ended. Of
 * accessd's own there is none. */
START_TEST(what_is_brought_is_a_version)
{
	const struct brought_from its = {
	    .token = &token, .rest = &all, .is_newest = _i % 2, .is_named = true};
	struct brought log;
	unsigned steps;

	begin(MOST_BYTES / 64);
	append(0, 0, 10, false);
	append(0, 10, _i < 2 ? 10 : N / 2 - 10, false);
	if (_i >= 2) /* to the epoch's end */
		append(0, N / 2, N / 2, false);
	ck_assert_int_eq(brought_begin(&log, &conn, fd, &its, &set), 0);
	ck_assert_int_eq(reserve(&log), BROUGHT_E_MORE);
	ck_assert_int_eq(run(&log, &steps), 0);
	ck_assert_mem_eq(log.plan_log.id, id, PLAN_LOG_PLAN);
	ck_assert_int_eq(memcmp(log.plan_log.id, id, sizeof(id)) == 0, its.is_newest);
	ck_assert(plan_log_has(&log.plan_log, id, 0, 20));
	ck_assert(plan_log_has(&log.plan_log, id, 0, 21) == (its.is_newest || _i >= 2));
	ck_assert(plan_log_has(&log.plan_log, id, 1, 0) == (its.is_newest || _i >= 2));
	ck_assert(plan_log_has(&log.plan_log, id, 1, 1) == its.is_newest);
	brought_fini(&log);
	end();
}
END_TEST

/* A plan that parted: the log goes on with version 8 of it, up to place 10. */
static const struct parted {
	const char *what;
	uint8_t plan, version; /* that the token names */
	uint64_t place;
	bool is_newest;
	uint8_t beside; /* version; 0: none */
	int r;
} parted[] = {
    {"its own", 5, 7, 20, true, 0, 0},
    {"one that it goes on with", 5, 8, 10, true, 0, 0},
    {"more of that one", 5, 8, 11, true, 0, BROUGHT_E_PARTED},
    {"one that it knows nothing of", 5, 9, 0, true, 0, BROUGHT_E_PARTED},
    {"another plan", 6, 7, 0, true, 0, BROUGHT_E_BAD},
    {"a rank's own log has what its token says, or it is forged", 5, 9, 0, false, 0, BROUGHT_E_BAD},
    {"brought, and accessd has a part of it", 5, 7, 20, false, 7, 0},
    {"brought, and accessd has one that it goes on with", 5, 7, 20, false, 8, 0},
    {"brought, and accessd has another one", 5, 7, 20, false, 9, BROUGHT_E_PARTED},
};

static void name_version(uint8_t ret[PLAN_LOG_ID], uint8_t plan, uint8_t version)
{
	memset(ret, 0, PLAN_LOG_ID);
	ret[0] = plan;
	ret[PLAN_LOG_PLAN] = version;
}

START_TEST(a_version_that_has_parted_is_told)
{
	const struct parted *its = &parted[_i];
	uint8_t beside[PLAN_LOG_ID];
	const struct brought_from asked = {.token = &token,
					   .rest = &all,
					   .is_newest = its->is_newest,
					   .is_named = true,
					   .beside = its->beside ? beside : NULL};
	struct brought log;

	begin(MOST_BYTES / 64);
	name_version(writer.map->id, 5, 7);
	name_version(writer.map->before[0].id, 5, 8);
	writer.map->before[0].place = 10;
	append(0, 0, 20, false);
	name_version(token.log, its->plan, its->version);
	name_version(beside, 5, its->beside);
	token.place = its->place;
	ck_assert_msg(brought_begin(&log, &conn, fd, &asked, &set) == its->r, "%s", its->what);
	brought_fini(&log);
	end();
}
END_TEST

/* Its writer may be alive, and write on while it is read. */
START_TEST(a_log_ends_where_it_ended)
{
	struct brought log;
	int r;

	begin(MOST_BYTES / 64);
	for (uint64_t i = 0; i < 10; i++)
		append(0, i, 1, false);
	start(&log);
	for (uint64_t i = 10; (r = brought_step(&log)) == BROUGHT_E_MORE; i++) {
		ck_assert_uint_lt(i, 100);
		append(0, i, 1, false);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(log.rest.place, 10);
	brought_fini(&log);
	end();
}
END_TEST

/* The first entry that does not follow is the last that is read. */
START_TEST(nonsense_ends_soon)
{
	struct brought log;
	unsigned steps;

	begin(MOST_BYTES / 64);
	append(0, 0, 10, false);
	append(0, 11, 10, false); /* not the one behind it */
	append(0, 21, 10, false);
	start(&log);
	ck_assert_int_eq(run(&log, &steps), BROUGHT_E_BAD);
	ck_assert_uint_eq(steps, 2);
	brought_fini(&log);
	end();
}
END_TEST

static void refuse_forged(uint64_t bytes, uint64_t there)
{
	struct plan_log_head head = {
	    .magic = PLAN_LOG_MAGIC, .bytes = bytes, .room = bytes - PLAN_LOG_HEAD, .n_samples = N};
	struct brought log;
	int forged = base_memfd("forged", bytes);

	memcpy(head.id, id, sizeof(id));
	ck_assert_int_ge(forged, 0);
	ck_assert_int_eq(posix_fallocate(forged, 0, (off_t)there), 0);
	ck_assert_int_eq(pwrite(forged, &head, sizeof(head), 0), sizeof(head));
	ck_assert_int_eq(
	    fcntl(forged, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* FUTURE_WRITE */), 0);
	ck_assert_int_eq(brought_begin(&log, &conn, forged, &from, &set), BROUGHT_E_BAD);
	ck_assert_uint_eq(stream.bytes.all, 0);
	brought_fini(&log);
	close(forged);
}

START_TEST(no_log_is_so_large_or_has_holes)
{
	uint64_t most;

	begin(MOST_BYTES / 64);
	most = plan_log_bytes(carousel_log_most(stream.carousel));
	refuse_forged(UINT64_C(40) << 20, 4096);
	refuse_forged(most, 4096);
	refuse_forged(most + 4096, most + 4096);
	end();
}
END_TEST

/* The memory of a new one, and of one that is gone on with, is reserved a step a time, before anybody gets it. */
START_TEST(memory_is_reserved_in_steps)
{
	struct brought log;
	uint64_t before = PLAN_LOG_HEAD;
	struct stat status;
	unsigned steps = 0;
	int r;

	begin(MOST_BYTES / 64);
	if (_i)
		r = brought_begin_new(&log, &conn, &token, 77);
	else
		r = brought_begin(&log, &conn, fd, &from, &set);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(log.plan_log.reserved, before);
	for (r = BROUGHT_E_MORE; r == BROUGHT_E_MORE && log.stage == BROUGHT_RESERVE; steps++) {
		r = brought_step(&log);
		ck_assert_uint_le(log.plan_log.reserved - before, BROUGHT_STEP);
		before = log.plan_log.reserved;
	}
	ck_assert_int_eq(r, _i ? 0 : BROUGHT_E_MORE);
	ck_assert_uint_eq(before, log.plan_log.bytes);
	ck_assert_int_eq(fstat(log.plan_log_fd, &status), 0);
	ck_assert_uint_ge(512 * (uint64_t)status.st_blocks, before);
	ck_assert_uint_eq(steps, (before - PLAN_LOG_HEAD + BROUGHT_STEP - 1) / BROUGHT_STEP);
	ck_assert_uint_gt(steps, 1);
	ck_assert_uint_eq(log.plan_log.map->origin, _i ? 77 : 0);
	ck_assert_uint_eq(log.plan_log.map->n_samples, N);
	brought_fini(&log);
	end();
}
END_TEST

static struct loop_watch *other;
static unsigned turns;

static void on_other(void *arg)
{
	(void)arg;
	turns++;
	if (!LIST_EMPTY(&node.endings.list))
		loop_timer_set(other, 0);
}

/* Until all has ended. */
static void count_turns(void)
{
	turns = 0;
	ck_assert_int_eq(loop_timer_new(node.loop, on_other, NULL, &other), 0);
	loop_timer_set(other, 0);
	while (!LIST_EMPTY(&node.endings.list))
		ck_assert_int_eq(loop_turn(node.loop), 0);
	loop_unwatch(&other);
}

/* A turn of the loop frees some of it, and others have their turns meanwhile. */
START_TEST(a_long_log_ends_in_steps)
{
	const unsigned entries = 1
				 << 15; /* of which those are kept that a log of ours would have */
	struct brought log;
	uint64_t bytes;
	unsigned steps;

	begin(MOST_BYTES / 2);
	for (uint64_t i = 0; i < entries; i++)
		append(0, i, 1, false);
	start(&log);
	ck_assert_int_eq(run(&log, &steps), 0);
	ck_assert_uint_eq(steps, 2 * entries);
	bytes = log.log->room * sizeof(*log.log->records);
	ck_assert_uint_gt(bytes, 3 * GROUP_END_STEP);
	brought_fini(&log);
	count_turns();
	ck_assert_uint_ge(turns, bytes / GROUP_END_STEP - 1);
	end();
}
END_TEST

/* So is the mapping of what was brought, which is as large as who brings it likes, though little is in it. */
START_TEST(a_large_log_is_let_go_of_in_steps)
{
	struct brought log;
	unsigned steps;

	begin(MOST_BYTES / 2);
	append(0, 0, 1, false);
	start(&log);
	ck_assert_int_eq(run(&log, &steps), 0);
	brought_fini(&log);
	count_turns();
	ck_assert_uint_ge(turns, (MOST_BYTES >> 22) / 2 - 1); /* of 4 MiB */
	end();
}
END_TEST

/* The log is a part of its user's share. */
START_TEST(a_log_without_room_is_left_aside)
{
	struct brought log;

	begin(64 << 10);
	node.memory.budget = 4096;
	ck_assert_int_eq(brought_begin(&log, &conn, fd, &from, &set), BROUGHT_E_BAD);
	brought_fini(&log);
	end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, memory_is_reserved_in_steps, 0, 2);
	tcase_add_test(tcase, each_record_is_a_step);
	tcase_add_loop_test(tcase, a_large_record_has_many_steps, 0, 2);
	tcase_add_test(tcase, a_long_log_takes_what_a_log_takes);
	tcase_add_test(tcase, a_long_log_ends_in_steps);
	tcase_add_test(tcase, a_large_log_is_let_go_of_in_steps);
	tcase_add_loop_test(tcase, a_log_ends_with_an_epoch, 0, BASE_ARRAY_LEN(ends));
	tcase_add_loop_test(tcase, what_is_brought_is_a_version, 0, 4);
	tcase_add_loop_test(tcase, a_version_that_has_parted_is_told, 0, BASE_ARRAY_LEN(parted));
	tcase_add_test(tcase, a_log_ends_where_it_ended);
	tcase_add_test(tcase, nonsense_ends_soon);
	tcase_add_test(tcase, no_log_is_so_large_or_has_holes);
	tcase_add_test(tcase, a_log_without_room_is_left_aside);
}

int main(void)
{
	return suite_run("brought", add);
}
