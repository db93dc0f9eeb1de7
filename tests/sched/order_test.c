/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Is the order honest? Over many runs of the simulated world, for a job alone and for jobs that
 * share with faster and slower ones:
 *
 *   each sample is as likely at each place of the epoch (chi-square over samples x sixteenths of
 * it); each two samples that are neighbours in the permutation, of different blocks, are as often in one
 * chunk as chance has it; for a job alone so are all pairs.
 *
 * Statistics go through the Wilson-Hilferty approximation to a normal one, and both tails fail: too
 * even is as suspicious as too uneven. The bound, 4.9, is passed by an honest order with a
 * probability of 1e-6 in each of the 9 statistics. Seeds are fixed, so a failure never comes and
 * goes by itself.
 *
 * Places: with R runs a cell has expectation R / 16; the margins of permutations are fixed, so the
 * sum times (n - 1) / n is a chi-square of (n - 1) x 15 degrees. Pairs: indicators of disjoint
 * pairs are independent but for O(1/n). All pairs of a job alone: each sample has the same number
 * of mates in every run, which takes n degrees away, and the others share the variance.
 */

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "bench/sim_world.h"
#include "tests/suite.h"

#define ORDER_N 192
#define ORDER_CHUNK 24
#define ORDER_PARTS 16 /* of an epoch: half a chunk */
#define ORDER_RUNS 600
#define ORDER_BOUND 4.9

static const struct sim_world_scenario alone = {
    .name = "alone", .jobs = 1, .slots = 4, .speed = {1}, .epochs = {2}};
static const struct sim_world_scenario shared = {
    .name = "shared",
    .jobs = 4,
    .slots = 8,
    .speed = {1, .7, .45, .2},
    .start = {0, .3, .15, .6},
    .epochs = {5, 3, 2, 1},
};

struct tally { /* of one job in one of its epochs, over all runs */
	unsigned job;
	uint64_t epoch;
	uint32_t place; /* in the run under way */
	uint32_t at[ORDER_N][ORDER_PARTS];
	uint32_t together[ORDER_N][ORDER_N]; /* by block, lower one first */
	double chance, variance;             /* expected of a pair, its variance */
};

static struct tally tally;

static void count_pairs(const struct carousel_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->n_blocks; i++)
		for (uint32_t k = i + 1; k < chunk->n_blocks; k++)
			tally.together[chunk->blocks[i]][chunk->blocks[k]]++;
	tally.chance += (double)chunk->count * (chunk->count - 1);
}

static void on_taken(void *arg, unsigned job, uint64_t epoch, const struct carousel_chunk *chunk)
{
	(void)arg;
	if (job != tally.job || epoch != tally.epoch)
		return;
	for (uint32_t i = 0; i < chunk->count; i++)
		tally.at[chunk->ids[i]][tally.place++ * ORDER_PARTS / ORDER_N]++;
	count_pairs(chunk);
}

static void run_all(const struct sim_world_scenario *scenario, unsigned job, uint64_t epoch)
{
	double expected = 0;

	tally = (struct tally){.job = job, .epoch = epoch};
	for (uint64_t seed = 1; seed <= ORDER_RUNS; seed++) {
		struct sim_world_run run = {
		    .n = ORDER_N,
		    .chunk = ORDER_CHUNK,
		    .producing = 1 + seed % 2,
		    .rate = seed % 3 ? 4 : 1.5,
		    .seed = seed * 1000003,
		    .taken_fn = on_taken,
		};
		struct sim_world_result result;
		double p;

		tally.place = 0;
		tally.chance = 0;
		ck_assert_int_eq(sim_world(scenario, &run, &result), 0);
		ck_assert_uint_eq(tally.place, ORDER_N);
		p = tally.chance / ((double)ORDER_N * (ORDER_N - 1));
		expected += p;
		tally.variance += p * (1 - p);
	}
	tally.chance = expected;
}

/* A chi-square as a normal deviate. */
static double deviate(double sum, double degrees)
{
	double spread = 2 / (9 * degrees);

	return (cbrt(sum / degrees) - (1 - spread)) / sqrt(spread);
}

static void assert_honest(const char *what, double sum, double degrees)
{
	double z = deviate(sum, degrees);

	ck_assert_msg(fabs(z) < ORDER_BOUND, "%s: chi-square %.1f of %.0f degrees, %.1f deviations",
		      what, sum, degrees, z);
}

static void check_places(void)
{
	double expected = (double)ORDER_RUNS / ORDER_PARTS, sum = 0;

	for (int i = 0; i < ORDER_N; i++)
		for (int k = 0; k < ORDER_PARTS; k++)
			sum += (tally.at[i][k] - expected) * (tally.at[i][k] - expected) / expected;
	assert_honest("places", sum * (ORDER_N - 1) / ORDER_N, (ORDER_N - 1) * (ORDER_PARTS - 1));
}

static double pair_term(int i, int k)
{
	double off = tally.together[i][k] - tally.chance;

	return off * off / tally.variance;
}

static void check_neighbours(void)
{
	double sum = 0;

	for (int i = 0; i < ORDER_N; i += 2)
		sum += pair_term(i, i + 1);
	assert_honest("neighbours of the permutation", sum, ORDER_N / 2);
}

static void check_all_pairs(void)
{
	double pairs = ORDER_N * (ORDER_N - 1) / 2.0, degrees = pairs - ORDER_N, sum = 0;

	for (int i = 0; i < ORDER_N; i++)
		for (int k = i + 1; k < ORDER_N; k++)
			sum += pair_term(i, k);
	assert_honest("all pairs", sum * degrees / pairs, degrees);
}

START_TEST(a_job_alone_gets_a_uniform_order)
{
	run_all(&alone, 0, 1);
	check_places();
	check_neighbours();
	check_all_pairs();
}
END_TEST

/* The fastest, one between and the slowest. */
START_TEST(jobs_that_share_get_uniform_orders)
{
	static const struct {
		unsigned job;
		uint64_t epoch;
	} who[] = {{0, 2}, {1, 1}, {3, 0}};

	run_all(&shared, who[_i].job, who[_i].epoch);
	check_places();
	check_neighbours();
}
END_TEST

/* The measure itself: a part of the epoch that one sample in ten shuns is found, and so is too
 * even. */
START_TEST(crooked_orders_are_found)
{
	double degrees = (ORDER_N - 1) * (ORDER_PARTS - 1), even = 0, shy;

	ck_assert_double_lt(deviate(even, degrees), -ORDER_BOUND);
	shy = degrees + ORDER_N / 10.0 * ORDER_RUNS / ORDER_PARTS;
	ck_assert_double_gt(deviate(shy, degrees), ORDER_BOUND);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, crooked_orders_are_found);
	tcase_add_test(t, a_job_alone_gets_a_uniform_order);
	tcase_add_loop_test(t, jobs_that_share_get_uniform_orders, 0, 3);
}

int main(void)
{
	return suite_run("order", add);
}
