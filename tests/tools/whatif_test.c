/* SPDX-License-Identifier: Apache-2.0 */

/* The model of what limits a job: each case by hand. */

#include <math.h>
#include <stdlib.h>

#include "tools/whatif.h"
#include "tests/suite.h"

/* 1000 samples/s, 2 workers of 4 processors, a sample 1.8 ms of a worker: they are busy for 90 %. */
static const struct whatif_input usual = {
    .rate = 1000,
    .made = 1000,
    .workers = 2,
    .cpus = 4,
    .readers = 4,
    .cost = {.work_us = 1800, .read_us = 400, .read_cpu_us = 100},
};

static void check_near(double value, double expected)
{
	ck_assert_double_eq_tol(value, expected, 1e-6 * fabs(expected) + 1e-9);
}

static double rate_of(const struct whatif_input *in, const struct whatif_change *change)
{
	struct whatif whatif;

	whatif_look(in, &whatif);
	return whatif_rate(in, &whatif, change);
}

static double with_workers(const struct whatif_input *in, double more)
{
	struct whatif_change change = whatif_none;

	change.workers = more;
	return rate_of(in, &change);
}

static struct whatif_input waiting(enum whatif_part part, double share)
{
	struct whatif_input in = usual;

	in.waits[part] = share;
	return in;
}

START_TEST(limits)
{
	static const struct {
		enum whatif_part waits;
		double share;
		enum whatif_part limit;
	} cases[] = {
	    {WHATIF_READ, 0.4, WHATIF_READ},    {WHATIF_DECODE, 0.4, WHATIF_DECODE},
	    {WHATIF_SLOTS, 0.4, WHATIF_SLOTS},  {WHATIF_JOB, 0.4, WHATIF_PARTS},
	    {WHATIF_DECODE, 0.049, WHATIF_JOB}, {WHATIF_DECODE, 0.05, WHATIF_DECODE},
	    {WHATIF_DECODE, NAN, WHATIF_JOB},   {WHATIF_DECODE, -3, WHATIF_JOB},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct whatif_input in = waiting(cases[i].waits, cases[i].share);
		struct whatif whatif;

		whatif_look(&in, &whatif);
		ck_assert_msg(whatif.limit == cases[i].limit, "case %zu: %d", i, whatif.limit);
	}
}
END_TEST

START_TEST(shares)
{
	struct whatif_input in = waiting(WHATIF_DECODE, 0.4);
	struct whatif whatif;

	in.waits[WHATIF_SLOTS] = 0.1;
	whatif_look(&in, &whatif);
	check_near(whatif.used[WHATIF_JOB], 0.5);
	check_near(whatif.most[WHATIF_JOB], 2000);
	check_near(whatif.used[WHATIF_DECODE], 1); /* 0.9 by costs, and it is what is waited for */
	check_near(whatif.most[WHATIF_DECODE], 1000);
	check_near(whatif.used[WHATIF_READ], 0.1);
	check_near(whatif.most[WHATIF_READ], 10000);
	check_near(whatif.used[WHATIF_SLOTS], 0.1);
	check_near(whatif.most[WHATIF_SLOTS], 1000 / 0.9);
	in.cost.read_us = -1;
	whatif_look(&in, &whatif);
	ck_assert_double_lt(whatif.used[WHATIF_READ], 0);
	ck_assert(isinf(whatif.most[WHATIF_READ]));
}
END_TEST

/* Up to what comes next: processors, or the job's own steps. */
START_TEST(more_workers)
{
	struct whatif_input in = waiting(WHATIF_DECODE, 0.4);
	struct whatif_change both = whatif_none;

	check_near(with_workers(&in, 0), 1000);
	check_near(with_workers(&in, 1), 1500);
	check_near(with_workers(&in, 2), 1000 / 0.6); /* the job's own steps */
	in.waits[WHATIF_DECODE] = 0.9;
	check_near(with_workers(&in, 1), 1500);
	check_near(with_workers(&in, 2), 1000 * 0.9 / 0.475); /* processors: readers, too */
	check_near(with_workers(&in, 8), 1000 * 0.9 / 0.475);
	both.workers = both.cpus = 4;
	check_near(rate_of(&in, &both), 3000);
	in.others_busy = 1; /* of another stream: 2.8 of what there is */
	check_near(with_workers(&in, 1), 1000 * (2.8 / 2) / (2.8 / 3));
	in = waiting(WHATIF_READ, 0.4);
	check_near(with_workers(&in, 2), 1000);
	check_near(with_workers(&usual, 2), 1000); /* it does not wait */
}
END_TEST

/* Others that weigh a quarter on each processor, then twice as much as we do. */
START_TEST(busy_processors)
{
	struct whatif_input in = waiting(WHATIF_DECODE, 0.9);
	struct whatif_change form = whatif_none;

	in.granted = 4.0 / 6;
	in.cost.read_cpu_us = 0;
	check_near(with_workers(&in, 0), 1000);
	check_near(with_workers(&in, 1), 1500 * 6.0 / 7);
	check_near(with_workers(&in, 2), 2000 * 6.0 / 8);
	form.cost.work_us = 900; /* as many threads as before */
	check_near(rate_of(&in, &form), 2000);
	in.granted = 0.2;
	check_near(with_workers(&in, 1), 1500 * 5.0 / 7);
	form = whatif_none;
	form.cpus = 4;
	check_near(rate_of(&in, &form), 1000 * 5.0 / 3);
	in.granted = 0.95;
	check_near(with_workers(&in, 1), 1500);
	in.granted = 0; /* not known */
	check_near(with_workers(&in, 1), 1500);
}
END_TEST

START_TEST(another_form)
{
	struct whatif_input in = waiting(WHATIF_DECODE, 0.9);
	struct whatif_change change = whatif_none;

	change.cost = (struct whatif_cost){900, 200, 100};
	check_near(rate_of(&in, &change), 2000);
	change.cost =
	    (struct whatif_cost){180, 4000, 10}; /* then it is reading: all of 4 threads */
	check_near(rate_of(&in, &change), 1000);
	change.cost = (struct whatif_cost){0, 0, 0};
	check_near(rate_of(&in, &change), 10000);
	in = waiting(WHATIF_READ, 0.9);
	change.cost = (struct whatif_cost){1800, 200, 100};
	check_near(rate_of(&in, &change), 1000 / 0.9); /* then it is decoding */
}
END_TEST

START_TEST(other_changes)
{
	struct whatif_input in = waiting(WHATIF_READ, 0.9);
	struct whatif_change source = whatif_none, slots = whatif_none, step = whatif_none;

	source.read = 2;
	slots.slots = 2;
	step.step = 2;
	check_near(rate_of(&in, &source), 1000 / 0.9);
	in.cost.work_us = 450;
	check_near(rate_of(&in, &source), 2000);
	check_near(rate_of(&in, &slots), 1000);
	check_near(rate_of(&in, &step), 1000);
	in = waiting(WHATIF_SLOTS, 0.08);
	check_near(rate_of(&in, &slots), 1000 / 0.92);
	check_near(rate_of(&in, &source), 1000);
	check_near(rate_of(&usual, &slots), 1000);
	check_near(rate_of(&usual, &step), 1000 / 0.9);
	in = waiting(WHATIF_JOB, 0.5); /* accessd starts: nothing is promised */
	check_near(rate_of(&in, &step), 1000);
}
END_TEST

START_TEST(mixed)
{
	static const struct whatif_cost file = {1000, 400, 100}, form = {200, 100, 20};
	struct whatif_cost half = whatif_mixed(&file, &form, 0.5),
			   all = whatif_mixed(&file, &form, 7);

	check_near(half.work_us, 600);
	check_near(half.read_us, 250);
	check_near(half.read_cpu_us, 60);
	check_near(all.work_us, 200);
	check_near(whatif_mixed(&file, &form, NAN).work_us, 1000);
}
END_TEST

/* Whatever another process says: no rate that is less than nothing or no number. */
START_TEST(nonsense)
{
	static const double values[] = {-1, 0, 0.5, 1e300, INFINITY, NAN};
	const size_t n = sizeof(values) / sizeof(*values);

	for (size_t i = 0; i < n * n * n; i++) {
		const double a = values[i % n], b = values[i / n % n], c = values[i / n / n];
		struct whatif_input in = {.rate = a,
					  .made = b,
					  .workers = c,
					  .cpus = a,
					  .readers = b,
					  .others_busy = c,
					  .granted = b,
					  .cost = {c, a, b}};
		struct whatif_change change = whatif_none;
		struct whatif whatif;

		in.waits[WHATIF_DECODE] = c;
		change.workers = 2;
		whatif_look(&in, &whatif);
		ck_assert_double_ge(whatif_rate(&in, &whatif, &change), 0);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, limits);
	tcase_add_test(tcase, shares);
	tcase_add_test(tcase, more_workers);
	tcase_add_test(tcase, busy_processors);
	tcase_add_test(tcase, another_form);
	tcase_add_test(tcase, other_changes);
	tcase_add_test(tcase, mixed);
	tcase_add_test(tcase, nonsense);
}

int main(void)
{
	return suite_run("whatif", add);
}
