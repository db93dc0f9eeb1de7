/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fairness on a machine of arithmetic: tenants with streams whose samples cost what they cost, a kernel that prefers
 * whom it likes, and fair.c before both. Jain's index among equals, shares under a flood, no pay for idleness, and nobody
 * is held back by one who stands still.
 */

#include "base/base.h"
#include "sched/fair.h"
#include "tests/suite.h"

#include <stdint.h>
#include <string.h>

#define MOST_TENANTS 8
#define MOST_STREAMS 64
#define STEP_NS UINT64_C(2000000)
#define SETTLE_STEPS 125
#define SECOND (1000000000 / STEP_NS)
#define DEPTH 512 /* samples of a stream under way, at most */

struct tenant {
	double share, favour; /* favour: how the kernel likes his processes */
	unsigned streams;
	double cost_ns;   /* of a sample */
	bool idle, reads; /* reads: his work waits for a disk, and not for a processor */
	unsigned stops;   /* his processes are stopped in so many of ten steps */
	double cpu_ns;
};

struct one {
	struct fair fair;
	unsigned tenant, under_way;
	double part; /* of a sample that is done, ns */
	uint64_t made, settled;
	double cpu_ns;
};

struct world {
	struct tenant tenant[MOST_TENANTS];
	struct one one[MOST_STREAMS];
	unsigned tenants, streams;
	struct fair_node node;
	uint64_t steps;
	bool is_fair;
};

static struct world world;

static void begin(unsigned tenants, const struct tenant *tenant, double cpus)
{
	memset(&world, 0, sizeof(world));
	world.tenants = tenants;
	world.is_fair = true;
	world.node.rate = cpus;
	for (unsigned t = 0; t < tenants; t++) {
		world.tenant[t] = tenant[t];
		for (unsigned i = 0; i < tenant[t].streams; i++)
			world.one[world.streams++].tenant = t;
	}
	ck_assert_uint_le(world.streams, MOST_STREAMS);
}

static bool waits(const struct one *one)
{
	const struct tenant *tenant = &world.tenant[one->tenant];

	return one->under_way > 0 && !tenant->idle && !tenant->reads &&
	       world.steps * 7 % 10 >= tenant->stops;
}

/* Shares of who has work, as accessd has them. */
static void weigh(void)
{
	world.node.weight = 0;
	for (unsigned i = 0; i < world.streams; i++) {
		const struct tenant *tenant = &world.tenant[world.one[i].tenant];

		world.one[i].fair.weight = tenant->share / tenant->streams;
		world.node.weight += tenant->idle ? 0 : world.one[i].fair.weight;
	}
}

static void feed(struct one *one)
{
	unsigned depth = fair_depth(&one->fair, &world.node), more, room = FAIR_ALL;
	double least_ns = -1;

	depth = depth < 16 ? 16 : depth > DEPTH || !world.is_fair ? DEPTH : depth;
	more = depth > one->under_way ? depth - one->under_way : 0;

	for (unsigned i = 0; i < world.streams && world.is_fair; i++) {
		struct one *other = &world.one[i];

		if (other == one || world.tenant[other->tenant].idle)
			continue;
		if (waits(other))
			fair_look(&other->fair, &least_ns);
	}
	for (unsigned i = 0; i < world.streams && world.is_fair; i++)
		if (&world.one[i] != one)
			fair_pass(&world.one[i].fair, &one->fair, &world.node, least_ns);
	room = fair_room(&one->fair, &world.node, least_ns);
	more = more < room ? more : room;
	one->under_way += more;
	fair_charge(&one->fair, more);
}

static void run(struct one *one, double cpu_ns)
{
	struct tenant *tenant = &world.tenant[one->tenant];

	one->part += cpu_ns;
	while (one->under_way && one->part >= tenant->cost_ns) {
		one->part -= tenant->cost_ns;
		one->under_way--;
		one->made++;
	}
	if (!one->under_way)
		one->part = 0;
	one->cpu_ns += cpu_ns;
	tenant->cpu_ns += cpu_ns;
}

/* The kernel: processors go to who has work, as it likes; a tenant's go to his streams in turn. */
static void spend(double cpus)
{
	double wish = 0;

	for (unsigned i = 0; i < world.streams; i++)
		if (waits(&world.one[i]))
			wish += world.tenant[world.one[i].tenant].favour;
	for (unsigned i = 0; i < world.streams && wish > 0; i++) {
		const struct tenant *tenant = &world.tenant[world.one[i].tenant];

		if (waits(&world.one[i]))
			run(&world.one[i], (double)STEP_NS * cpus * tenant->favour / wish);
	}
}

static void settle(void)
{
	for (unsigned i = 0; i < world.streams; i++) {
		struct one *one = &world.one[i];

		if (one->made == one->settled)
			continue;
		fair_settle(&one->fair, one->made - one->settled, one->under_way, one->cpu_ns);
		one->settled = one->made;
		one->cpu_ns = 0;
	}
}

static void go(double cpus, unsigned seconds)
{
	for (uint64_t n = 0; n < seconds * SECOND; n++, world.steps++) {
		weigh();
		for (unsigned i = 0; i < world.streams; i++)
			if (!world.tenant[world.one[i].tenant].idle)
				feed(&world.one[(i + world.steps) % world.streams]);
		spend(cpus);
		if (world.steps % SETTLE_STEPS == SETTLE_STEPS - 1)
			settle();
	}
}

/* From now on. */
static void forget(void)
{
	for (unsigned t = 0; t < world.tenants; t++)
		world.tenant[t].cpu_ns = 0;
}

static double part_of(unsigned tenant)
{
	double all = 0;

	for (unsigned t = 0; t < world.tenants; t++)
		all += world.tenant[t].cpu_ns;
	return world.tenant[tenant].cpu_ns / all;
}

static double jain(void)
{
	double sum = 0, squares = 0;

	for (unsigned t = 0; t < world.tenants; t++) {
		sum += world.tenant[t].cpu_ns;
		squares += world.tenant[t].cpu_ns * world.tenant[t].cpu_ns;
	}
	return sum * sum / (world.tenants * squares);
}

/* ---- equals ---- */

static const struct tenant equals[] = {
    {.share = 1, .favour = 1, .streams = 1, .cost_ns = 5e6},
    {.share = 1, .favour = 4, .streams = 9, .cost_ns = 1e6},
    {.share = 1, .favour = 2, .streams = 2, .cost_ns = 20e6},
    {.share = 1, .favour = 1, .streams = 16, .cost_ns = 3e6},
    {.share = 1, .favour = 3, .streams = 1, .cost_ns = 0.3e6},
};

START_TEST(equal_tenants_have_equal_parts)
{
	const double cpus[] = {1, 2, 16, 64};

	begin(BASE_ARRAY_LEN(equals), equals, cpus[_i]);
	go(cpus[_i], 5);
	forget();
	go(cpus[_i], 30);
	ck_assert_msg(jain() >= 0.95,
		      "%g processors: Jain's index is %.4f: %.3f %.3f %.3f %.3f %.3f", cpus[_i],
		      jain(), part_of(0), part_of(1), part_of(2), part_of(3), part_of(4));
}
END_TEST

/* What there was before, so that the test above says something. */
START_TEST(the_kernel_alone_is_not_fair)
{
	begin(BASE_ARRAY_LEN(equals), equals, 2);
	world.is_fair = false;
	go(2, 10);
	ck_assert_msg(jain() < 0.8, "Jain's index is %.4f", jain());
}
END_TEST

/* ---- a flood ---- */

struct flood_case {
	double share, favour;
	unsigned streams;
};

static const struct flood_case floods[] = {
    {1, 1, 1}, {1, 3, 16}, {1, 8, 48}, {3, 8, 48}, {0.25, 8, 16}};

START_TEST(a_flood_takes_nobodys_share)
{
	const struct flood_case *flood = &floods[_i];
	const struct tenant tenants[] = {
	    {.share = flood->share, .favour = 1, .streams = 1, .cost_ns = 8e6},
	    {.share = 1, .favour = flood->favour, .streams = flood->streams, .cost_ns = 2e6},
	};
	const double share = flood->share / (flood->share + 1);

	begin(2, tenants, 2);
	go(2, 5);
	forget();
	go(2, 30);
	ck_assert_msg(part_of(0) > 0.95 * share && part_of(0) < 1.05 * share,
		      "his share is %.3f, and he had %.3f", share, part_of(0));
}
END_TEST

/* ---- who does not want his share ---- */

START_TEST(idleness_is_not_paid_for)
{
	begin(2, equals, 2);
	world.tenant[0].idle = true;
	go(2, 20);
	ck_assert_double_gt(part_of(1), 0.999);
	world.tenant[0].idle = false;
	weigh();
	fair_enter(&world.one[0].fair, fair_reached(&world.one[1].fair, world.one[1].under_way));
	go(2, 1);
	forget();
	go(2, 10);
	ck_assert_msg(part_of(1) > 0.475, "who worked all the time has %.3f", part_of(1));
}
END_TEST

/* Of a disk, or a trainer, accessd knows nothing; the processors are there. */
START_TEST(who_waits_for_something_else_holds_nobody_back)
{
	begin(2, equals, 2);
	world.tenant[0].reads = true;
	go(2, 20);
	ck_assert_msg(world.tenant[1].cpu_ns > 0.98 * 2 * 20e9, "%.3f s of 40",
		      world.tenant[1].cpu_ns / 1e9);
}
END_TEST

/* His own processes, which he stops, or lets limp. */
START_TEST(who_stands_still_costs_nobody_his_share)
{
	const double least = 0.5 * 0.95 * 2 * 20e9;

	begin(2, equals, 2);
	go(2, 5);
	world.tenant[0].stops = (unsigned)_i;
	forget();
	go(2, 20);
	ck_assert_msg(world.tenant[1].cpu_ns >= least, "stopped %d of 10: he has %.3f s of %.3f",
		      _i, world.tenant[1].cpu_ns / 1e9, least / 1e9);
	world.tenant[0].stops = 0;
	go(2, 1);
	forget();
	go(2, 20);
	ck_assert_msg(part_of(0) > 0.475, "when he runs again he has %.3f", part_of(0));
}
END_TEST

/* ---- the sums ---- */

START_TEST(room_is_what_is_left_of_the_window)
{
	const struct fair_node node = {.rate = 2, .weight = 4};
	struct fair one = {.weight = 1, .cost = 1e6};
	const double window_ns = fair_window(&node);

	ck_assert_double_eq_tol(window_ns, 50e6, 1);
	ck_assert_uint_eq(fair_room(&one, &node, -1), FAIR_ALL);
	ck_assert_uint_eq(fair_room(&one, &node, 0), 51);
	fair_charge(&one, 50);
	ck_assert_uint_eq(fair_room(&one, &node, 0), 0);
	ck_assert_uint_eq(fair_room(&one, &node, 1e6), 2);
	one.cost = 1e12; /* one at a time, but never none */
	ck_assert_uint_eq(fair_room(&one, &node, 1e6), 1);
	one.cost = 0;
	ck_assert_uint_eq(fair_room(&one, &node, 45e6), 10); /* it is guessed */
}
END_TEST

START_TEST(what_it_took_puts_right_what_was_charged)
{
	struct fair one = {.weight = 2};

	fair_charge(&one, 100);
	ck_assert_double_eq_tol(one.done, 250e6, 1);
	ck_assert_double_eq_tol(fair_reached(&one, 40), 150e6, 1);
	ck_assert_double_eq(fair_reached(&one, 200), 0);
	fair_settle(&one, 100, 0, 300e6);
	ck_assert_double_eq_tol(one.done, 150e6, 1);
	ck_assert_double_eq_tol(one.cost, 3e6, 1);
	fair_charge(&one, 10);
	ck_assert_double_eq_tol(one.done, 165e6, 1);
	fair_settle(&one, 10, 0, 70e6); /* 7 ms each */
	ck_assert_double_eq_tol(one.done, 185e6, 1);
	ck_assert_double_eq_tol(one.cost, 4e6, 1);
}
END_TEST

/* 40 were begun when a sample was taken to cost 5 ms; they take a second each. */
START_TEST(all_that_it_had_is_charged_however_it_was_guessed)
{
	struct fair one = {.weight = 1};

	fair_charge(&one, 40);
	for (unsigned left = 40; left > 0; left -= 4) {
		fair_settle(&one, 0, left, 3e9); /* none has ended yet */
		ck_assert_double_ge(one.done, (40 - left) * 1e9 + 3e9);
		ck_assert_double_le(fair_reached(&one, left), one.done);
		ck_assert_double_ge(fair_reached(&one, left), (40 - left) * 1e9 + 3e9 - 1);
		fair_settle(&one, 4, left - 4, 1e9);
		ck_assert_double_eq_tol(one.cost, 1e9, 1);
	}
	ck_assert_double_eq_tol(one.done, 40e9, 1);
	ck_assert_double_eq_tol(one.ahead, 0, 1);
}
END_TEST

START_TEST(what_is_saved_is_never_less_than_nothing)
{
	struct fair_account account = {.cpu_ns = 1, .bytes = 2};

	fair_account_add(&account, &(struct fair_account){1, 2, 3, 4});
	ck_assert(account.cpu_ns == 2 && account.bytes == 4 && account.alone_cpu_ns == 3 &&
		  account.alone_bytes == 4);
	ck_assert_double_eq(fair_saved(3, 2), 1);
	ck_assert_double_eq(fair_saved(2, 3), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, equal_tenants_have_equal_parts, 0, 4);
	tcase_add_test(tcase, the_kernel_alone_is_not_fair);
	tcase_add_loop_test(tcase, a_flood_takes_nobodys_share, 0, BASE_ARRAY_LEN(floods));
	tcase_add_test(tcase, idleness_is_not_paid_for);
	tcase_add_test(tcase, who_waits_for_something_else_holds_nobody_back);
	tcase_add_loop_test(tcase, who_stands_still_costs_nobody_his_share, 0, 11);
	tcase_add_test(tcase, room_is_what_is_left_of_the_window);
	tcase_add_test(tcase, what_it_took_puts_right_what_was_charged);
	tcase_add_test(tcase, all_that_it_had_is_charged_however_it_was_guessed);
	tcase_add_test(tcase, what_is_saved_is_never_less_than_nothing);
}

int main(void)
{
	return suite_run("fair", add);
}
