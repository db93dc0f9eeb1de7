/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shares of a disk, by a clock of our own: tenants with streams, a disk that serves whom it likes, workers behind it, and
 * fair_read.c before both. Counted are bytes: Jain's index among equals, shares under a flood; who reads from memory, or waits for his
 * trainer, is held back by nobody and holds nobody back, and owes nothing for it later.
 */

#include "sched/fair_read.h"

#include <string.h>

#include "base/base.h"
#include "tests/suite.h"

#define MOST_TENANTS 8
#define MOST_STREAMS 64
#define STEP_NS UINT64_C(2000000)
#define SECOND (1000000000 / STEP_NS)
#define TICK_STEPS 125
#define DEPTH 32 /* samples of a stream under way at most, whatever this says: fill_fair.c */

struct tenant {
	double share, favour; /* favour: how the disk likes his reads */
	unsigned streams;
	double size;        /* bytes of a sample */
	bool is_cached;     /* what he reads lies in memory, and processors are what he waits for */
	bool hangs;         /* what he reads does not come */
	double samples_s;   /* that his trainers take in all, in bursts; 0: as many as come */
	double bytes, done; /* of the disk; of all */
};

struct one {
	struct fair_read read;
	unsigned tenant, unread, ready;
	double part; /* bytes of a sample that is half read */
	uint64_t begun, finished, settled;
};

struct world {
	struct tenant tenant[MOST_TENANTS];
	struct one one[MOST_STREAMS];
	unsigned tenants, streams;
	uint64_t steps, now_ns;
	bool is_fair;
};

static struct world world;

static void begin(unsigned tenants, const struct tenant *tenant)
{
	memset(&world, 0, sizeof(world));
	world.tenants = tenants;
	world.is_fair = true;
	world.now_ns = 1000000000;
	for (unsigned t = 0; t < tenants; t++) {
		world.tenant[t] = tenant[t];
		for (unsigned i = 0; i < tenant[t].streams; i++)
			world.one[world.streams++] = (struct one){
			    .tenant = t, .read.fair = {.weight = 1, .cost = tenant[t].size}};
	}
	ck_assert_uint_le(world.streams, MOST_STREAMS);
}

static bool is_bound(const struct one *one)
{
	return fair_read_is_bound(&one->read, world.now_ns);
}

static void weigh(void)
{
	unsigned busy[MOST_TENANTS] = {0};

	for (unsigned i = 0; i < world.streams; i++)
		busy[world.one[i].tenant] += is_bound(&world.one[i]);
	for (unsigned i = 0; i < world.streams; i++) {
		struct one *one = &world.one[i];

		if (is_bound(one))
			one->read.fair.weight = world.tenant[one->tenant].share / busy[one->tenant];
	}
}

static uint32_t room_of(struct one *one)
{
	struct fair_node disk = {.rate = 0};
	double least = -1;

	if (!world.is_fair)
		return FAIR_ALL;
	fair_read_add(&disk, &one->read);
	for (unsigned i = 0; i < world.streams; i++) {
		struct one *other = &world.one[i];

		if (other == one || !fair_read_wants(&other->read, world.now_ns))
			continue;
		fair_read_add(&disk, &other->read);
		fair_look(&other->read.fair, &least);
	}
	for (unsigned i = 0; i < world.streams; i++)
		if (&world.one[i] != one)
			fair_pass(&world.one[i].read.fair, &one->read.fair, &disk, least);
	return fair_read_room(&one->read, &disk, least, one->unread + one->ready, world.now_ns);
}

/* Samples that its trainer has asked for: four at a time. */
static uint64_t wanted(const struct one *one)
{
	const struct tenant *tenant = &world.tenant[one->tenant];

	return tenant->samples_s > 0 ? 4 * (uint64_t)(tenant->samples_s / tenant->streams / 4 *
						      (double)world.steps / SECOND)
				     : UINT64_MAX;
}

static void feed(struct one *one)
{
	const struct tenant *tenant = &world.tenant[one->tenant];
	const unsigned under_way = one->unread + one->ready;
	const uint64_t left = BASE_MIN((uint64_t)DEPTH - under_way, wanted(one) - one->begun);
	uint32_t more;

	fair_read_look(&one->read, one->unread, one->ready, world.now_ns);
	fair_read_settle(&one->read, one->finished - one->settled, under_way,
			 (double)(one->finished - one->settled) * tenant->size, world.now_ns);
	one->settled = one->finished;
	more = (uint32_t)BASE_MIN((uint64_t)room_of(one), left);
	one->begun += more;
	fair_charge(&one->read.fair, more);
	if (tenant->is_cached)
		one->ready += more;
	else
		one->unread += more;
}

/* What it has no use for. */
static double read_some(struct one *one, double bytes)
{
	struct tenant *tenant = &world.tenant[one->tenant];
	const double used = BASE_MIN(bytes, one->unread * tenant->size - one->part);

	one->part += used;
	tenant->bytes += used;
	while (one->unread && one->part >= tenant->size) {
		one->part -= tenant->size;
		one->unread--;
		one->ready++;
	}
	return bytes - used;
}

static bool can_read(const struct one *one)
{
	return one->unread > 0 && !world.tenant[one->tenant].hangs;
}

/* The disk goes to who has something to read, as it likes. */
static double serve(double bytes)
{
	double wish = 0, left = 0;

	for (unsigned i = 0; i < world.streams; i++)
		if (can_read(&world.one[i]))
			wish += world.tenant[world.one[i].tenant].favour;
	for (unsigned i = 0; i < world.streams; i++)
		if (can_read(&world.one[i]))
			left += read_some(&world.one[i],
					  bytes * world.tenant[world.one[i].tenant].favour / wish);
	return wish > 0 ? left : 0;
}

/* Workers are quick, but for what comes from memory: ten samples of a stream a step. */
static void work(struct one *one)
{
	struct tenant *tenant = &world.tenant[one->tenant];
	const unsigned n = tenant->is_cached ? BASE_MIN(one->ready, 10u) : one->ready;

	one->ready -= n;
	one->finished += n;
	tenant->done += n * tenant->size;
}

static void go(double bytes_s, unsigned seconds)
{
	for (uint64_t n = 0; n < seconds * SECOND; n++) {
		weigh();
		for (unsigned i = 0; i < world.streams; i++)
			feed(&world.one[(i + world.steps) % world.streams]);
		for (double left = bytes_s / SECOND; left > 1;)
			left = serve(left);
		for (unsigned i = 0; i < world.streams; i++)
			work(&world.one[i]);
		world.steps++;
		world.now_ns += STEP_NS;
		for (unsigned i = 0; i < world.streams && world.steps % TICK_STEPS == 0; i++)
			fair_read_tick(&world.one[i].read, (double)(TICK_STEPS * STEP_NS));
	}
}

static void forget(void)
{
	for (unsigned t = 0; t < world.tenants; t++)
		world.tenant[t].bytes = world.tenant[t].done = 0;
}

static double part_of(unsigned tenant)
{
	double all = 0;

	for (unsigned t = 0; t < world.tenants; t++)
		all += world.tenant[t].bytes;
	return world.tenant[tenant].bytes / all;
}

static double jain(void)
{
	double sum = 0, squares = 0;

	for (unsigned t = 0; t < world.tenants; t++) {
		sum += world.tenant[t].bytes;
		squares += world.tenant[t].bytes * world.tenant[t].bytes;
	}
	return sum * sum / (world.tenants * squares);
}

/* ---- equals ---- */

static const struct tenant equals[] = {
    {.share = 1, .favour = 1, .streams = 1, .size = 110e3},
    {.share = 1, .favour = 4, .streams = 9, .size = 20e3},
    {.share = 1, .favour = 2, .streams = 2, .size = 600e3},
    {.share = 1, .favour = 1, .streams = 16, .size = 110e3},
    {.share = 1, .favour = 3, .streams = 1, .size = 5e3},
};

START_TEST(equal_tenants_have_equal_parts)
{
	const double bytes_s[] = {20e6, 200e6};

	begin(BASE_ARRAY_LEN(equals), equals);
	go(bytes_s[_i], 10);
	forget();
	go(bytes_s[_i], 15);
	ck_assert_msg(jain() >= 0.95, "%g bytes/s: Jain's index is %.4f: %.3f %.3f %.3f %.3f %.3f",
		      bytes_s[_i], jain(), part_of(0), part_of(1), part_of(2), part_of(3),
		      part_of(4));
}
END_TEST

/* What there was before, so that the test above says something. */
START_TEST(the_disk_alone_is_not_fair)
{
	begin(BASE_ARRAY_LEN(equals), equals);
	world.is_fair = false;
	go(20e6, 10);
	ck_assert_msg(jain() < 0.8, "Jain's index is %.4f", jain());
}
END_TEST

/* ---- a flood ---- */

static const struct {
	double share, favour;
	unsigned streams;
} floods[] = {{1, 1, 1}, {1, 3, 16}, {1, 8, 48}, {3, 8, 48}, {0.25, 8, 16}};

START_TEST(a_flood_takes_nobodys_share)
{
	const struct tenant tenants[] = {
	    {.share = floods[_i].share, .favour = 1, .streams = 1, .size = 110e3},
	    {.share = 1, .favour = floods[_i].favour, .streams = floods[_i].streams, .size = 60e3},
	};
	const double share = floods[_i].share / (floods[_i].share + 1);

	begin(2, tenants);
	go(100e6, 10);
	forget();
	go(100e6, 15);
	ck_assert_msg(part_of(0) > 0.95 * share && part_of(0) < 1.05 * share,
		      "his share is %.3f, and he had %.3f", share, part_of(0));
	ck_assert_double_gt(world.tenant[0].bytes + world.tenant[1].bytes, 0.98 * 15 * 100e6);
}
END_TEST

/* ---- who wants none of it ---- */

START_TEST(what_lies_in_memory_is_held_back_for_nobody)
{
	const double samples = 20.0 * SECOND * 10;

	begin(2, equals);
	world.tenant[1].streams = world.streams = 2;
	world.tenant[0].is_cached = true;
	go(20e6, 20);
	ck_assert_double_gt(world.tenant[0].done, 0.99 * samples * world.tenant[0].size);
	ck_assert_double_gt(world.tenant[1].bytes, 0.98 * 20 * 20e6);
	world.tenant[0].is_cached = false; /* no debts of that */
	go(20e6, 2);
	forget();
	go(20e6, 20);
	ck_assert_msg(part_of(0) > 0.475 && part_of(0) < 0.525, "%.3f", part_of(0));
}
END_TEST

START_TEST(who_waits_for_a_trainer_holds_nobody_back)
{
	begin(2, equals);
	world.tenant[0].samples_s = 20; /* 2.2 MB of 20 */
	go(20e6, 5);
	forget();
	go(20e6, 20);
	ck_assert_double_gt(world.tenant[0].bytes, 0.95 * 20 * 20 * world.tenant[0].size);
	ck_assert_double_gt(world.tenant[0].bytes + world.tenant[1].bytes, 0.97 * 20 * 20e6);
	world.tenant[0].samples_s = 0; /* no pay for that */
	go(20e6, 2);
	forget();
	go(20e6, 20);
	ck_assert_msg(part_of(1) > 0.475, "who read all the time has %.3f", part_of(1));
}
END_TEST

START_TEST(whose_reads_hang_holds_nobody_back)
{
	begin(2, equals);
	go(20e6, 5);
	world.tenant[0].hangs = true;
	go(20e6, 3);
	forget();
	go(20e6, 20);
	ck_assert_double_gt(world.tenant[1].bytes, 0.98 * 20 * 20e6);
	world.tenant[0].hangs = false;
	go(20e6, 2);
	forget();
	go(20e6, 20);
	ck_assert_msg(part_of(0) > 0.475 && part_of(0) < 0.525, "%.3f", part_of(0));
}
END_TEST

/* ---- who waits for what ---- */

START_TEST(a_disk_is_waited_for_where_more_is_unread_than_ready)
{
	const uint64_t ms = 1000000, now_ns = 5000 * ms;
	const struct fair_node disk = {.rate = 1, .weight = 2};
	struct fair_read one = {.fair = {.weight = 1, .cost = 1e5}};

	ck_assert(!fair_read_is_bound(&one, now_ns));
	fair_read_settle(&one, 0, 0, 0, now_ns);
	fair_read_look(&one, 3, 3, now_ns);
	ck_assert(!fair_read_is_bound(&one, now_ns) && !fair_read_wants(&one, now_ns));
	fair_read_look(&one, 4, 3, now_ns);
	ck_assert(fair_read_is_bound(&one, now_ns) && fair_read_wants(&one, now_ns));
	fair_read_look(&one, 0, 7,
		       now_ns + ms); /* it has all: it wants more in a moment, or nothing */
	ck_assert(fair_read_wants(&one, now_ns + ms) && !fair_read_wants(&one, now_ns + 11 * ms));
	ck_assert(fair_read_is_bound(&one, now_ns + 11 * ms));
	ck_assert(!fair_read_is_bound(&one, now_ns + 100 * ms));
	fair_read_look(&one, 4, 3, now_ns);
	fair_charge(&one.fair, 600); /* 60 MB; its window has 50 */
	ck_assert_uint_eq(fair_read_room(&one, &disk, -1, 0, now_ns), FAIR_ALL);
	ck_assert_uint_eq(fair_read_room(&one, &disk, 0, 0, now_ns + 90 * ms), 0);
	ck_assert(fair_read_is_bound(&one, now_ns + 150 * ms)); /* held back, it is what it was */
	ck_assert_uint_eq(fair_read_room(&one, &disk, 0, 0, now_ns + 200 * ms), FAIR_ALL);
	ck_assert_double_eq_tol(one.fair.done, 50e6, 1); /* now it was not */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, equal_tenants_have_equal_parts, 0, 2);
	tcase_add_test(tcase, the_disk_alone_is_not_fair);
	tcase_add_loop_test(tcase, a_flood_takes_nobodys_share, 0, BASE_ARRAY_LEN(floods));
	tcase_add_test(tcase, what_lies_in_memory_is_held_back_for_nobody);
	tcase_add_test(tcase, who_waits_for_a_trainer_holds_nobody_back);
	tcase_add_test(tcase, whose_reads_hang_holds_nobody_back);
	tcase_add_test(tcase, a_disk_is_waited_for_where_more_is_unread_than_ready);
}

int main(void)
{
	return suite_run("fair_read", add);
}
