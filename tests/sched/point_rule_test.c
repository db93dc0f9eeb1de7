/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What holds of the choice of a point for any inputs. How good it is on whole machines: point_test.c.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static double log_uniform(double from, double to)
{
	return exp(uniform(log(from), log(to)));
}

static void random_input(struct point_input *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n = 2 + (unsigned)philox_below(&draws, 5);
	ret->cores = log_uniform(0.5, 64);
	ret->reader_threads = log_uniform(1, 16);
	ret->n_samples = (uint64_t)log_uniform(1, 1e7);
	ret->uses = log_uniform(1, 100);
	ret->current = (unsigned)philox_below(&draws, ret->n);
	for (unsigned p = 0; p < ret->n; p++) {
		ret->cost[p] = (struct point_cost){
		    .samples = philox_below(&draws, 12) ? 100 : 0,
		    .made = philox_below(&draws, 12) ? 100 : 0,
		    .work_us = log_uniform(10, 20000),
		    .read_us = log_uniform(1, 20000),
		    .read_cpu_us = log_uniform(1, 100),
		    .make_us = log_uniform(10, 20000),
		    .write_us = log_uniform(1, 2000),
		    .bytes = log_uniform(1e3, 1e6),
		};
		ret->room[p] = (uint64_t)log_uniform(1e3, 1e13);
		ret->cached[p] = philox_below(&draws, 3) ? 0 : uniform(0, 1);
	}
}

static const double strange[] = {0,    -0.0,   -1,  -1e300,   1e300,
				 1e18, 1e-300, NAN, INFINITY, -INFINITY};

static double *member(struct point_input *input, unsigned p, uint64_t which)
{
	double *const members[] = {
	    &input->cost[p].work_us,
	    &input->cost[p].read_us,
	    &input->cost[p].read_cpu_us,
	    &input->cost[p].make_us,
	    &input->cost[p].write_us,
	    &input->cost[p].bytes,
	    &input->cached[p],
	    &input->most_uses[p],
	    &input->cores,
	    &input->reader_threads,
	    &input->uses,
	};

	return members[which % BASE_ARRAY_LEN(members)];
}

static void check_choice(unsigned n, const struct point_choice *choice)
{
	ck_assert_uint_lt(choice->point, n);
	ck_assert_uint_lt(choice->rival, n);
	ck_assert_ptr_nonnull(point_reason_name(choice->reason));
	ck_assert(choice->point > 0 || !choice->makes);
	for (unsigned p = 0; p < n; p++) {
		ck_assert(choice->fits[p] >= 0 && choice->fits[p] <= 1);
		ck_assert(choice->whole_us[p] >= 0);
		ck_assert(choice->serve_us[p] >= 0);
		ck_assert(choice->total_us[p] >= 0);
	}
}

START_TEST(any_values)
{
	for (unsigned i = 0; i < 10000; i++) {
		struct point_input input;
		struct point_choice choice;

		random_input(&input);
		for (unsigned k = 0; k < 1 + i % 5; k++)
			*member(&input, (unsigned)philox_below(&draws, input.n),
				philox_u32(&draws)) =
			    strange[philox_below(&draws, BASE_ARRAY_LEN(strange))];
		if (i % 7 == 0)
			input.n = (unsigned)philox_below(&draws, 40);
		if (i % 11 == 0)
			input.current = philox_u32(&draws);
		point_choose(&input, &choice);
		check_choice(BASE_MAX(1u, BASE_MIN(input.n, (unsigned)POINT_MAX)), &choice);
		ck_assert_uint_le(point_trials(&input, input.current), POINT_TRIALS_MOST);
	}
}
END_TEST

START_TEST(chosen_is_had)
{
	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice choice;
		unsigned p;

		random_input(&input);
		point_choose(&input, &choice);
		p = choice.point;
		if (choice.reason == POINT_UNMEASURED)
			ck_assert(!choice.makes);
		else
			ck_assert(isfinite(choice.total_us[p]));
		/* Measured, or used as far as it is kept; and what was never made is not made. */
		ck_assert(p == 0 || input.cost[p].samples > 0 || input.cached[p] > 0);
		ck_assert(!choice.makes || input.cost[p].made > 0);
	}
}
END_TEST

/* One that was chosen stays so when anything of it becomes cheaper. */
START_TEST(cheaper_never_loses)
{
	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice choice, again;
		double *what;

		random_input(&input);
		point_choose(&input, &choice);
		if (choice.point == 0)
			continue;
		what = member(&input, choice.point, philox_below(&draws, 5));
		*what *= uniform(0, 1);
		point_choose(&input, &again);
		ck_assert_uint_eq(again.point, choice.point);
	}
}
END_TEST

/* The file, too, when all of it becomes cheaper. */
START_TEST(cheaper_file_never_loses)
{
	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice choice, again;
		double factor = uniform(0, 1);

		random_input(&input);
		point_choose(&input, &choice);
		if (choice.point > 0)
			continue;
		input.cost[0].work_us *= factor;
		input.cost[0].read_us *= factor;
		input.cost[0].read_cpu_us *= factor;
		point_choose(&input, &again);
		ck_assert_uint_eq(again.point, 0);
	}
}
END_TEST

/* The unit of time is of no meaning. */
/* What is made anew after some uses is no better than what stays, the better the more those are, and with as many as
 * are expected the same; of a form that is quicker than the file. */
START_TEST(made_anew)
{
	for (unsigned i = 0; i < 2000; i++) {
		struct point_input input, anew;
		struct point_choice stays, some, more;

		random_input(&input);
		input.cached[1] = 0;
		input.cost[1].write_us = 0;
		input.cost[1].make_us += input.cost[0].work_us;
		anew = input;
		anew.most_uses[1] = uniform(1, 50);
		point_choose(&input, &stays);
		point_choose(&anew, &some);
		ck_assert(some.whole_us[1] == stays.whole_us[1] || isinf(stays.whole_us[1]));
		if (anew.most_uses[1] >= input.uses)
			ck_assert(some.total_us[1] == stays.total_us[1]);
		anew.most_uses[1] *= 1.5;
		point_choose(&anew, &more);
		if (stays.serve_us[1] < stays.whole_us[0]) {
			ck_assert_double_le(more.total_us[1], some.total_us[1] * (1 + 1e-9));
			ck_assert_double_le(stays.total_us[1], more.total_us[1] * (1 + 1e-9));
		}
	}
}
END_TEST

/* Ten epochs, or two, of a form that costs as much again to make and serves in a tenth of the time. */
START_TEST(as_many_uses_as_it_has)
{
	struct point_input input = {.n = 2,
				    .cores = 1,
				    .reader_threads = 4,
				    .n_samples = 1000,
				    .uses = 100,
				    .room = {0, 1 << 30}};
	struct point_choice choice;

	input.cost[0] = (struct point_cost){.samples = 100, .work_us = 1000, .bytes = 1e5};
	input.cost[1] = (struct point_cost){
	    .samples = 100, .made = 100, .work_us = 100, .make_us = 2000, .bytes = 1e5};
	input.most_uses[1] = 10;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(fabs(choice.total_us[1] - (2100 + 9 * 100) / 10.0) < 1e-6);
	input.most_uses[1] = 2;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 0);
	ck_assert_int_eq(choice.reason, POINT_FEW_USES);
}
END_TEST

START_TEST(scales)
{
	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice choice, again;

		random_input(&input);
		point_choose(&input, &choice);
		for (unsigned p = 0; p < input.n; p++)
			for (unsigned k = 0; k < 5; k++)
				*member(&input, p, k) *= 8;
		point_choose(&input, &again);
		ck_assert_uint_eq(again.point, choice.point);
		ck_assert_int_eq(again.reason, choice.reason);
	}
}
END_TEST

/* A choice chosen from is itself; and noise of a percent does not bring the old one back. */
START_TEST(does_not_swing)
{
	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice choice, again;
		unsigned before;

		random_input(&input);
		before = input.current;
		point_choose(&input, &choice);
		input.current = choice.point;
		point_choose(&input, &again);
		if (choice.reason != POINT_UNMEASURED && again.reason != POINT_UNMEASURED)
			ck_assert_uint_eq(again.point, choice.point);
		for (unsigned p = 0; p < input.n; p++)
			for (unsigned k = 0; k < 5; k++)
				*member(&input, p, k) *= uniform(0.99, 1.01);
		point_choose(&input, &again);
		if (choice.reason != POINT_UNMEASURED && before != choice.point)
			ck_assert_uint_ne(again.point, before);
	}
}
END_TEST

/* A form that was hardly served is left only for what saves a quarter; the file is left at once. */
START_TEST(new_ones_stay)
{
	unsigned stayed = 0;

	for (unsigned i = 0; i < 4000; i++) {
		struct point_input input;
		struct point_choice usual, choice;
		double saved;

		random_input(&input);
		point_choose(&input, &usual);
		input.is_new = true;
		point_choose(&input, &choice);
		if (input.current == 0 || usual.reason == POINT_UNMEASURED ||
		    usual.point == input.current) {
			ck_assert_uint_eq(choice.point, usual.point);
			continue;
		}
		saved = 1 - usual.total_us[usual.point] / usual.total_us[input.current];
		ck_assert_uint_eq(choice.point,
				  saved > POINT_MARGIN_NEW ? usual.point : input.current);
		stayed += choice.point == input.current;
	}
	ck_assert_uint_gt(stayed, 50);
}
END_TEST

/* ---- by hand ---- */

static void two_points(struct point_input *ret)
{
	*ret = (struct point_input){
	    .n = 2, .cores = 1, .reader_threads = 1, .n_samples = 1000, .uses = 4};
	ret->cost[0] = (struct point_cost){.samples = 100, .work_us = 1000};
	ret->cost[1] = (struct point_cost){
	    .samples = 100, .made = 100, .work_us = 500, .make_us = 1100, .bytes = 1000};
	ret->room[1] = 1000000;
}

static enum point_reason reason_of(const struct point_input *input, unsigned expected)
{
	struct point_choice choice;

	point_choose(input, &choice);
	ck_assert_uint_eq(choice.point, expected);
	return choice.reason;
}

START_TEST(reasons)
{
	struct point_input input;
	struct point_choice choice;

	two_points(&input);
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(choice.makes);
	ck_assert_int_eq(choice.reason, POINT_BEST);
	/* 1600 once, 500 three times */
	ck_assert(fabs(choice.total_us[1] - 775) < 1e-6);
	input.uses = 2;
	ck_assert_int_eq(reason_of(&input, 0), POINT_FEW_USES);
	two_points(&input);
	input.room[1] = 50000;
	ck_assert_int_eq(reason_of(&input, 0), POINT_NO_ROOM);
	two_points(&input);
	input.cost[1].work_us = 980;
	ck_assert_int_eq(reason_of(&input, 0), POINT_NOT_WORTH);
	two_points(&input);
	input.cost[1].samples = 7;
	ck_assert_int_eq(reason_of(&input, 0), POINT_UNMEASURED);
	two_points(&input);
	input.current = 1;
	input.cached[1] = 0.1;
	input.cost[1].work_us = 1010;
	ck_assert_int_eq(reason_of(&input, 1), POINT_STAYS);
	input.cost[1].work_us = 1500;
	ck_assert_int_eq(reason_of(&input, 0), POINT_NOT_WORTH);
}
END_TEST

/* Reading sets the pace: what costs more work but is read sooner is worth it. */
START_TEST(slow_disk)
{
	struct point_input input;
	struct point_choice choice;

	two_points(&input);
	input.cost[0].read_us = 9000;
	input.cost[1].read_us = 100;
	input.cost[1].work_us = 1200;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(fabs(choice.total_us[1] - (9000 + 3 * 1200) / 4.0) < 1e-6);
	input.reader_threads = 16;
	ck_assert_int_eq(reason_of(&input, 0), POINT_NOT_WORTH);
}
END_TEST

/* What is kept is used, though nothing is measured, and nothing is made for that. */
START_TEST(kept_before)
{
	struct point_input input;
	struct point_choice choice;

	two_points(&input);
	input.cost[0].samples = input.cost[1].samples = input.cost[1].made = 0;
	input.cached[1] = 0.5;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(!choice.makes);
	/* Measured, and never made here: used as far as it is kept. */
	input.cost[0].samples = input.cost[1].samples = 100;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(!choice.makes);
	ck_assert(fabs(choice.fits[1] - 0.5) < 1e-9);
	/* The last epochs: what is there is used, the rest is not worth it any more. */
	input.cost[1].made = 100;
	input.uses = 1.5;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert(!choice.makes);
}
END_TEST

/* A job of one epoch behind a restart: the file is known at once, and nothing else would ever be. */
START_TEST(kept_and_file_known)
{
	struct point_input input;
	struct point_choice choice;

	two_points(&input);
	input.cost[1].samples = input.cost[1].made = 0;
	input.cached[1] = 0.8;
	input.uses = 1;
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 1);
	ck_assert_int_eq(choice.reason, POINT_UNMEASURED);
	input.current = 1;
	input.cost[1].samples = 8;
	input.cost[1].work_us = 1100; /* it is of no use */
	point_choose(&input, &choice);
	ck_assert_uint_eq(choice.point, 0);
}
END_TEST

/* Several forms are kept and the file is not known: each is used for a while, then the quickest. */
START_TEST(kept_several)
{
	struct point_input input = {
	    .n = 4, .cores = 1, .reader_threads = 1, .n_samples = 1000, .uses = 1};
	static const double work_us[] = {0, 500, 100, 300}, cached[] = {0, 1, 1, 0.95};
	unsigned seen = 0;

	memcpy(input.cached, cached, sizeof(cached));
	for (unsigned i = 0; i < 100; i++) {
		struct point_choice choice;

		point_choose(&input, &choice);
		ck_assert_uint_gt(choice.point, 0);
		ck_assert(!choice.makes);
		input.current = choice.point;
		input.cost[choice.point].samples++;
		input.cost[choice.point].work_us = work_us[choice.point];
		seen |= 1u << choice.point;
	}
	ck_assert_uint_eq(seen, 0xe);
	ck_assert_uint_eq(input.current, 2);
}
END_TEST

START_TEST(uses)
{
	ck_assert(point_uses(true, 5.5, 100) == 5.5);
	ck_assert(point_uses(true, -1, 100) == 0);
	ck_assert(point_uses(true, NAN, 0) == 0);
	ck_assert(point_uses(false, 0, 0) == POINT_USES_LEAST);
	ck_assert(point_uses(false, 0, 40) == 40);
	ck_assert(isfinite(point_uses(false, 0, INFINITY)));
}
END_TEST

/* As many as are allowed, one after the other; then what they took is within the share. */
START_TEST(trials_cost_little)
{
	unsigned tried_any = 0;

	for (unsigned i = 0; i < 300; i++) {
		struct point_input input, truth;
		struct point_choice choice;
		double spent = 0, best = INFINITY, once = 0, share;
		bool more = true;

		random_input(&truth);
		truth.current = 0;
		truth.n_samples = BASE_MAX(truth.n_samples, UINT64_C(5000));
		memset(truth.cached, 0, sizeof(truth.cached));
		input = truth;
		for (unsigned p = 0; p < truth.n; p++) {
			truth.cost[p].samples = truth.cost[p].made = 100;
			input.cost[p].samples = input.cost[p].made = p > 0 ? 0 : 100;
		}
		while (more) {
			more = false;
			for (unsigned p = 1; p < input.n; p++) {
				const struct point_cost *cost = &input.cost[p];

				if (cost->samples >= point_trials(&input, p))
					continue;
				input.cost[p].samples++;
				input.cost[p].made++;
				spent += cost->work_us + cost->read_cpu_us + cost->make_us;
				more = true;
			}
		}
		point_choose(&truth, &choice);
		for (unsigned p = 0; p < truth.n; p++) {
			best = BASE_MIN(best, choice.total_us[p]);
			once += p > 0 ? truth.cost[p].work_us + truth.cost[p].read_cpu_us +
					    truth.cost[p].make_us
				      : 0;
			tried_any += p > 0 && input.cost[p].samples >= POINT_TRIALS_LEAST;
		}
		share = POINT_TRIALS_SHARE * best + POINT_TRIALS_GAIN * (choice.total_us[0] - best);
		ck_assert(spent <=
			  share * truth.cores * truth.uses * (double)truth.n_samples + 3 * once);
	}
	ck_assert_uint_gt(tried_any, 300);
}
END_TEST

START_TEST(no_trials)
{
	struct point_input input;

	two_points(&input);
	input.cost[1].samples = input.cost[1].made = 0;
	ck_assert_uint_eq(point_trials(&input, 1), 3); /* then it is known how dear they are */
	input.cost[1].samples = input.cost[1].made = 3;
	ck_assert_uint_ge(point_trials(&input, 1), POINT_TRIALS_LEAST);
	ck_assert_uint_eq(point_trials(&input, 2), 0);
	input.cost[1].samples = input.cost[1].made = 0;
	input.n_samples = 10000; /* whatever they cost */
	ck_assert_uint_eq(point_trials(&input, 1), POINT_TRIALS_LEAST);
	input.n_samples = 40; /* too few to find out more than how dear they are */
	ck_assert_uint_eq(point_trials(&input, 1), 3);
	input.cost[1].samples = input.cost[1].made = 3;
	ck_assert_uint_eq(point_trials(&input, 1), 0);
	input.n_samples = 1000000;
	input.uses = 1; /* nothing will be used again */
	ck_assert_uint_eq(point_trials(&input, 1), 0);
}
END_TEST

/* Of few samples: by what the form would save, or by the time that has passed. */
START_TEST(trials_are_paid)
{
	struct point_input input;

	two_points(&input);
	input.n_samples = 200;
	input.cost[1].samples = input.cost[1].made = 3;
	ck_assert_uint_ge(point_trials(&input, 1), POINT_TRIALS_LEAST); /* saves 900 a sample */
	input.uses = 2;
	ck_assert_uint_eq(point_trials(&input, 1), 0);
	input.past = 10;
	ck_assert_uint_ge(point_trials(&input, 1), POINT_TRIALS_LEAST);
	input.past = NAN;
	ck_assert_uint_eq(point_trials(&input, 1), 0);
}
END_TEST

/* Nothing is made meanwhile: where it is the reading that is spared, each sample that passes is dear. */
START_TEST(trials_delay_little)
{
	struct point_input input;

	two_points(&input);
	input.n_samples = 2000;
	input.uses = 40;
	input.room[1] = input.room[2] = 10000000;
	input.cost[1].samples = input.cost[1].made = POINT_TRIALS_LEAST;
	input.cost[1].work_us = 0.95 * input.cost[0].work_us; /* not yet told apart */
	ck_assert_uint_gt(point_trials(&input, 1), 3 * POINT_TRIALS_LEAST);
	input.cost[1].work_us = 0.85 * input.cost[0].work_us;
	input.cost[1].read_us = 0;
	input.cost[2] = input.cost[1];
	input.n = 3;
	input.cost[0].read_us = 50 * input.cost[0].work_us * input.reader_threads;
	ck_assert_uint_lt(point_trials(&input, 1), 3 * POINT_TRIALS_LEAST);
}
END_TEST

static void add(TCase *choice)
{
	tcase_add_checked_fixture(choice, setup, NULL);
	tcase_add_test(choice, any_values);
	tcase_add_test(choice, chosen_is_had);
	tcase_add_test(choice, cheaper_never_loses);
	tcase_add_test(choice, cheaper_file_never_loses);
	tcase_add_test(choice, made_anew);
	tcase_add_test(choice, as_many_uses_as_it_has);
	tcase_add_test(choice, scales);
	tcase_add_test(choice, does_not_swing);
	tcase_add_test(choice, new_ones_stay);
	tcase_add_test(choice, reasons);
	tcase_add_test(choice, slow_disk);
	tcase_add_test(choice, kept_before);
	tcase_add_test(choice, kept_and_file_known);
	tcase_add_test(choice, kept_several);
	tcase_add_test(choice, uses);
	tcase_add_test(choice, trials_cost_little);
	tcase_add_test(choice, no_trials);
	tcase_add_test(choice, trials_are_paid);
	tcase_add_test(choice, trials_delay_little);
}

int main(void)
{
	return suite_run("point_rule", add);
}
