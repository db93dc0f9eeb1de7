/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is known of a form: the line of bytes and cost, means that follow measurements, and how they are put
 * together. What is chosen by it: point_rule_test.c.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/philox.h"
#include "sched/point.h"
#include "tests/suite.h"

static struct philox_seq draws;

static void setup(void)
{
	philox_seq_init(&draws, 41, 0, 0);
}

static double uniform(double from, double to)
{
	return from + (to - from) * philox_unit(&draws);
}

/* ---- what bytes cost ---- */

START_TEST(straight_line)
{
	struct point_line all = {0}, same = {0}, falling = {0}, steep = {0};

	for (unsigned i = 0; i < 100; i++) {
		ck_assert(i >= POINT_TRIALS_LEAST || point_line_at(&all, 1000) < 0);
		point_line_add(&all, 100 * i, 10 + 20 * i);
		point_line_add(&all, NAN, 1);
		point_line_add(&all, 1, INFINITY);
		point_line_add(&all, -1, -1);
		point_line_add(&same, 500, i % 2 ? 4 : 6);
		point_line_add(&falling, i, 200 - i);
		point_line_add(&steep, 1000 + i, 10 * i);
	}
	ck_assert_double_eq_tol(point_line_at(&same, 0), 5, 1e-6);
	ck_assert_double_eq_tol(point_line_at(&same, 1e6), 5, 1e-6);
	ck_assert_double_eq_tol(point_line_at(&falling, 1e6), falling.cost, 1e-6);
	ck_assert_double_eq_tol(point_line_at(&steep, 0), 0, 1e-6);
	ck_assert_double_eq_tol(point_line_at(&steep, 2 * steep.bytes), 2 * steep.cost, 1e-6);
}
END_TEST

START_TEST(line_finds_both_parts)
{
	struct point_line all = {0};

	for (unsigned i = 0; i < 3000; i++) {
		double bytes = 1000.0 + i * 7 % 1000;

		point_line_add(&all, bytes, 30 + 0.02 * bytes);
	}
	ck_assert_double_eq_tol(point_line_at(&all, 0), 30, 0.5);
	ck_assert_double_eq_tol(point_line_at(&all, 1e5), 2030, 20);
}
END_TEST

/* A form that was tried and never brought: a call, and a copy of what is copied. */
static void bring(struct point_form *form, unsigned n, double read_us)
{
	const struct point_cost cost = {
	    .work_us = 50, .read_us = read_us, .read_cpu_us = 3, .bytes = 10000};

	for (unsigned i = 0; i < n; i++)
		point_form_served(form, &cost);
}

START_TEST(bringing_is_guessed)
{
	struct point_form file, form, other;
	struct point_cost cost, of_other;

	point_form_init(&file);
	point_form_init(&form);
	for (unsigned i = 0; i < 64; i++) {
		double bytes = 1000.0 + i * 16;

		point_form_served(&file, &(struct point_cost){.work_us = 100,
							      .read_us = 500,
							      .read_cpu_us = 20 + 0.01 * bytes,
							      .bytes = bytes});
		point_form_tried(&form,
				 &(struct point_cost){.work_us = 50,
						      .read_us = -1,
						      .read_cpu_us = -1,
						      .make_us = 200,
						      .bytes = 10000},
				 100);
	}
	point_form_cost(&form, &file, &cost);
	ck_assert_double_eq_tol(cost.read_cpu_us, 120, 0.1);
	ck_assert_double_eq_tol(cost.read_us, 0, 1e-9);
	form.is_at_hand = true;
	point_form_cost(&form, &file, &cost);
	ck_assert_double_eq_tol(cost.read_cpu_us, 20, 0.1);
	form.needs_file = true;
	point_form_cost(&form, &file, &cost);
	ck_assert_double_eq_tol(cost.read_cpu_us, file.read_cpu.used.mean, 0.1);
	ck_assert_double_eq_tol(cost.read_us, 500, 1e-9);
	form.needs_file = false;
	bring(&form, 16, 2872); /* as the writer has the disk */
	point_form_cost(&form, &file, &cost);
	ck_assert_double_eq_tol(cost.read_cpu_us, 20, 0.1);
	ck_assert_double_eq_tol(cost.read_us, 0, 1e-9);
	point_form_init(&other);
	bring(&other, 1000, 300);
	point_form_cost(&other, &file, &of_other);
	of_other.bytes = 20000;
	point_form_read_like(&form, &other, &of_other, &cost);
	ck_assert_double_eq_tol(cost.read_us, 150, 1e-6);
	bring(&form, 2000, 7);
	point_form_cost(&form, &file, &cost);
	point_form_read_like(&form, &other, &of_other, &cost);
	ck_assert_double_eq_tol(cost.read_cpu_us, 3, 1e-9);
	ck_assert(cost.read_us >= 7 && cost.read_us < 60); /* it forgets */
}
END_TEST

/* ---- means ---- */

static double noisy(double mean)
{
	return mean * (1 + uniform(-0.5, 0.5) + uniform(-0.5, 0.5));
}

static void add_noisy(struct point_mean *mean, unsigned n, double around)
{
	for (unsigned i = 0; i < n; i++)
		point_mean_add(mean, noisy(around));
}

START_TEST(mean_follows)
{
	struct point_mean mean;

	point_mean_init(&mean);
	add_noisy(&mean, 20000, 100);
	ck_assert(fabs(mean.mean - 100) < 5);
	add_noisy(&mean, 10000, 1000);
	ck_assert(fabs(mean.mean - 1000) < 50);
	add_noisy(&mean, 10000, 10);
	ck_assert(fabs(mean.mean - 10) < 0.5);
}
END_TEST

/* One that is out of all proportion: among the first, and later. */
START_TEST(mean_is_not_carried_away)
{
	for (unsigned at = 0; at < POINT_TRIALS_LEAST; at++) {
		struct point_mean mean;

		point_mean_init(&mean);
		for (unsigned i = 0; i < POINT_TRIALS_LEAST; i++)
			point_mean_add(&mean, i == at ? 1e15 : 100);
		ck_assert(fabs(mean.mean - 100) < 1e-9);
		add_noisy(&mean, 5000, 100);
		ck_assert(fabs(mean.mean - 100) < 5);
		point_mean_add(&mean, 1e15);
		ck_assert(mean.mean < 110);
	}
}
END_TEST

/* A machine that is slower by half for 0.4 s of each 2 s: a form of which so many are served a second has one cost. */
static double spread_of_unrest(unsigned a_second)
{
	const unsigned a_look = a_second / 4;
	struct point_form form;
	double least = INFINITY, most = 0;

	point_form_init(&form);
	for (unsigned look = 0; look < 120; look++) {
		const double slow_us = look % 8 < 2 ? 150 : 100;

		for (unsigned i = 0; i < a_look; i++)
			point_form_served(&form, &(struct point_cost){.work_us = noisy(slow_us)});
		point_form_passed(&form, 0.25);
		if (look < 64)
			continue;
		least = BASE_MIN(least, form.work.used.mean);
		most = BASE_MAX(most, form.work.used.mean);
	}
	return most / least;
}

START_TEST(mean_is_not_of_a_moment)
{
	ck_assert(spread_of_unrest(20000) < 1.15);
	ck_assert(spread_of_unrest(4000) < 1.15);
	ck_assert(spread_of_unrest(100) < 1.35);
}
END_TEST

/* Where few are served, those before do not hold the mean. */
START_TEST(mean_follows_a_slow_disk)
{
	struct point_form form;

	point_form_init(&form);
	for (unsigned i = 0; i < 200000; i++) {
		point_form_served(&form, &(struct point_cost){.read_us = 20});
		if (i % 5000 == 0)
			point_form_passed(&form, 0.25);
	}
	for (unsigned i = 0; i < 2000; i++) {
		point_form_served(&form, &(struct point_cost){.read_us = 5000});
		if (i % 50 == 0)
			point_form_passed(&form, 0.25);
	}
	ck_assert(form.read.used.mean > 1000);
}
END_TEST

/* Stalls that are no exception count. */
START_TEST(mean_counts_stalls)
{
	struct point_mean mean;

	point_mean_init(&mean);
	for (unsigned i = 0; i < 20000; i++)
		point_mean_add(&mean, i % 100 == 50 ? 4000 : 100);
	ck_assert(fabs(mean.mean - 139) < 15);
}
END_TEST

START_TEST(mean_takes_numbers)
{
	struct point_mean mean, same;

	point_mean_init(&mean);
	add_noisy(&mean, 100, 50);
	same = mean;
	point_mean_add(&mean, NAN);
	point_mean_add(&mean, -1);
	point_mean_add(&mean, INFINITY);
	ck_assert_mem_eq(&mean, &same, sizeof(mean));
	point_mean_init(&mean);
	for (unsigned i = 0; i < 100; i++)
		point_mean_add(&mean, 0);
	ck_assert(mean.mean == 0 && point_mean_is_sure(&mean));
}
END_TEST

START_TEST(mean_moves)
{
	struct point_mean mean;
	unsigned steps = 0;

	point_mean_init(&mean);
	add_noisy(&mean, POINT_TRIALS_LEAST - 1, 100);
	ck_assert(!point_mean_moved(&mean) && !point_mean_is_sure(&mean));
	add_noisy(&mean, 1, 100);
	ck_assert(point_mean_moved(&mean));
	add_noisy(&mean, 3000, 100);
	ck_assert(point_mean_is_sure(&mean));
	point_mean_settle(&mean);
	for (unsigned i = 0; i < 10000; i++) {
		add_noisy(&mean, 1, 100);
		ck_assert(!point_mean_moved(&mean));
	}
	for (; !point_mean_moved(&mean); steps++)
		add_noisy(&mean, 1, 120);
	ck_assert_uint_le(steps, 1000);
	point_mean_settle(&mean);
	ck_assert(!point_mean_moved(&mean));
}
END_TEST

/* ---- a form ---- */

/* Samples whose sizes differ fivefold: a dozen tell a form from the file by a few percent. */
START_TEST(sizes_cancel)
{
	struct point_form file, form;
	struct point_cost cost;

	point_form_init(&file);
	point_form_init(&form);
	for (unsigned i = 0; i < 1000; i++) {
		double size = uniform(0.4, 2), work = 1000 * size;
		struct point_cost sample = {.work_us = work, .read_us = -1, .read_cpu_us = 30};

		point_form_served(&file, &sample);
		sample = (struct point_cost){.work_us = 400 * size * uniform(0.97, 1.03),
					     .read_us = 60,
					     .read_cpu_us = 30,
					     .make_us = 2000 * size,
					     .bytes = 1e5 * size};
		if (i >= 200 && i < 212)
			point_form_tried(&form, &sample, work);
	}
	point_form_cost(&form, &file, &cost);
	ck_assert_uint_eq(cost.samples, 12);
	ck_assert_uint_eq(cost.made, 12);
	ck_assert(fabs(cost.work_us / file.work.used.mean - 0.4) < 0.01);
	ck_assert(fabs(cost.make_us / file.work.used.mean - 2) < 1e-6);
	ck_assert(point_form_is_sure(&form));
}
END_TEST

/* Trials found the form in the page cache; when it is really used it is ten times as slow. */
START_TEST(use_counts_more)
{
	struct point_form file, form;
	struct point_cost sample = {
	    .work_us = 1000, .read_us = 50, .read_cpu_us = 30, .bytes = 7000};
	struct point_cost cost;

	point_form_init(&file);
	point_form_init(&form);
	for (unsigned i = 0; i < 100; i++) {
		point_form_served(&file, &sample);
		point_form_tried(&form, &sample, 1000);
	}
	sample.read_us = 500;
	for (unsigned i = 0; i < 300; i++)
		point_form_served(&form, &sample);
	ck_assert(point_form_moved(&form));
	point_form_settle(&form);
	ck_assert(!point_form_moved(&form));
	point_form_cost(&form, &file, &cost);
	ck_assert(fabs(cost.read_us - 500) < 1e-6);
	ck_assert_uint_eq(cost.samples, 400);
	point_form_cost(&file, &file, &cost);
	ck_assert(cost.bytes == 7000);
}
END_TEST

static void add(TCase *means)
{
	tcase_add_checked_fixture(means, setup, NULL);
	tcase_add_test(means, straight_line);
	tcase_add_test(means, line_finds_both_parts);
	tcase_add_test(means, bringing_is_guessed);
	tcase_add_test(means, mean_follows);
	tcase_add_test(means, mean_is_not_carried_away);
	tcase_add_test(means, mean_is_not_of_a_moment);
	tcase_add_test(means, mean_follows_a_slow_disk);
	tcase_add_test(means, mean_counts_stalls);
	tcase_add_test(means, mean_takes_numbers);
	tcase_add_test(means, mean_moves);
	tcase_add_test(means, sizes_cancel);
	tcase_add_test(means, use_counts_more);
}

int main(void)
{
	return suite_run("point_mean", add);
}
