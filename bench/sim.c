/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The carousel, simulated: what each scenario of DESIGN.md section 3 costs over the reference, as a
 * share of separate loaders' work, and the longest share of its time that a job waited.
 *
 *	sim             the table: 100, 400, 1,600, 5,000 chunks an epoch, one and two in production
 *	sim --quick     what "make check" runs: 100 and 400 chunks, means of three seeds, with limits; and a small set
 *	sim CHUNKS SEEDS the same for so many chunks an epoch, means of so many seeds
 *	sim --compose   times the dealing of a chunk for 64 jobs and 2^19 blocks
 *	sim --chapters  what it costs to walk through an epoch in chapters
 *	sim --variants  what jobs with different pipelines cost, in decodings and in variants made
 *
 * The limits are what the policy reaches and some, and below the product's (two jobs, equal speeds:
 * 5 %; eight: 5 % at 100 chunks). A figure can be below 0: what was made for a job that leaves serves
 * others after its end, and the reference counts it again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/philox.h"
#include "bench/sim_world.h"

#define SIM_SIZE 8      /* samples a chunk, as the reference has */
#define SIM_RATE 4.0    /* production over the fastest job's speed, too */
#define SIM_STALL 0.008 /* share of its time that a job may wait */
#define SIM_COMPOSE_JOBS 64
#define SIM_COMPOSE_CHUNKS 200

#define SIM_EIGHT                                                \
	.jobs = 8, .speed = {1, .95, .83, .77, .6, .45, .3, .2}, \
	.start = {0, .05, .1, .22, .4, .41, .6, .8}, .epochs = {10, 9, 8, 7, 6, 4, 3, 2}

static const struct sim_world_scenario scenarios[] = {
    {.name = "4 equal jobs, started 20-25 % apart",
     .jobs = 4,
     .slots = 8,
     .speed = {1, 1, 1, 1},
     .start = {0, .2, .45, .65},
     .epochs = {4, 4, 4, 4},
     .limit_100 = 2,
     .limit_400 = 2},
    {.name = "1 and 0.5, together",
     .jobs = 2,
     .slots = 8,
     .speed = {1, .5},
     .epochs = {8, 4},
     .limit_100 = 1,
     .limit_400 = 1},
    {.name = "1, .9, .7, .5, staggered",
     .jobs = 4,
     .slots = 8,
     .speed = {1, .9, .7, .5},
     .start = {0, .1, .3, .6},
     .epochs = {8, 7, 6, 4},
     .limit_100 = 4,
     .limit_400 = 5},
    {.name = "1, .3, .1, together",
     .jobs = 3,
     .slots = 8,
     .speed = {1, .3, .1},
     .epochs = {10, 3, 1},
     .limit_100 = 1,
     .limit_400 = 1},
    {.name = "8 jobs, 1 ... .2, started over .8 of an epoch",
     .slots = 16,
     SIM_EIGHT,
     .limit_100 = 3,
     .limit_400 = 6},
    {.name = "8 jobs, 1 ... .2, started over .8 of an epoch",
     .slots = 8,
     SIM_EIGHT,
     .limit_100 = 16,
     .limit_400 = 20},
};

static int average(const struct sim_world_scenario *scenario, struct sim_world_run run,
		   unsigned seeds, struct sim_world_result *ret)
{
	struct sim_world_result mean = {0}, one;

	for (unsigned i = 0; i < seeds; i++) {
		int r;

		run.seed = i + 1;
		r = sim_world(scenario, &run, &one);
		if (r)
			return r;
		mean.over += one.over / seeds;
		mean.work += one.work / seeds;
		mean.stall = BASE_MAX(mean.stall, one.stall);
		mean.chunks += one.chunks / seeds;
		mean.outputs += one.outputs / seeds;
		mean.streams += one.streams / seeds;
	}
	*ret = mean;
	return 0;
}

/* What the figures may be at most: percent over the reference. */
static double limit_of(const struct sim_world_scenario *scenario, uint32_t chunks)
{
	if (chunks == 100)
		return scenario->limit_100;
	if (chunks == 400)
		return scenario->limit_400;
	return 1000;
}

static int print_table(uint32_t chunks, uint32_t producing, unsigned seeds)
{
	struct sim_world_run run = {
	    .n = (uint64_t)chunks * SIM_SIZE,
	    .chunk = SIM_SIZE,
	    .producing = producing,
	    .rate = SIM_RATE,
	};
	int failed = 0;

	printf("%u chunks an epoch, %u in production, mean of %u seed%s\n", chunks, producing,
	       seeds, seeds > 1 ? "s" : "");
	for (size_t i = 0; i < BASE_ARRAY_LEN(scenarios); i++) {
		const struct sim_world_scenario *scenario = &scenarios[i];
		struct sim_world_result result;
		int r = average(scenario, run, seeds, &result);
		bool over =
		    r || 100 * result.over > limit_of(scenario, chunks) || result.stall > SIM_STALL;

		if (r) {
			printf("  %s: %s\n", scenario->name, strerror(-r));
			return 1;
		}
		printf("  %-46s slots %3u  over the reference %5.1f %%  of separate loaders' work "
		       "%5.1f %%  worst wait %4.1f %%%s\n",
		       scenario->name, scenario->slots, 100 * result.over, 100 * result.work,
		       100 * result.stall, over ? "  TOO MUCH" : "");
		fflush(stdout);
		failed |= over;
	}
	return failed;
}

/* small data sets: jobs that come late, or are slow, find in the slots what the others had */

#define SIM_SMALL 8 /* chunks an epoch */
#define SIM_SMALL_SEEDS 20

static int print_small(void)
{
	static const struct sim_world_scenario scenario = {
	    .jobs = 4,
	    .slots = 2 * SIM_SMALL,
	    .speed = {1, .69, .52, .35},
	    .start = {0, .37, .74, 1.11},
	    .epochs = {2, 2, 2, 2},
	};
	int failed = 0;

	for (unsigned seed = 1; seed <= SIM_SMALL_SEEDS; seed++) {
		struct sim_world_run run = {
		    .n = SIM_SMALL * SIM_SIZE,
		    .chunk = SIM_SIZE,
		    .producing = 2,
		    .rate = SIM_RATE,
		    .seed = seed,
		};
		struct sim_world_result result;

		if (sim_world(&scenario, &run, &result) || result.work * scenario.jobs > 1) {
			printf("  seed %u: TOO MUCH\n", seed);
			failed = 1;
		}
	}
	printf("%u chunks an epoch, slots for two, 4 jobs of different speeds, one after the "
	       "other, %u "
	       "seeds: each sample is made %s\n",
	       SIM_SMALL, SIM_SMALL_SEEDS,
	       failed ? "more often than once" : "once for all of them");
	return failed;
}

static int print_tables(bool quick)
{
	static const struct {
		uint32_t chunks;
		unsigned seeds;
	} sizes[] = {{100, 5}, {400, 3}, {1600, 1}, {5000, 1}};
	int failed = 0;

	for (uint32_t producing = 1; producing <= 2; producing++)
		for (size_t i = 0; i < (quick ? 2 : BASE_ARRAY_LEN(sizes)); i++)
			failed |= print_table(sizes[i].chunks, producing, sizes[i].seeds);
	return print_small() | failed;
}

/* composing: 64 jobs in the middle of their epochs, in the cases that cost most in their ways */

enum needs {
	NEEDS_HALF,   /* each a random half */
	NEEDS_NEARLY, /* each a thousandth, but the first: splits find little */
	NEEDS_APART, /* the first one half of the permutation, all others the other half: they find nothing */
	NEEDS_ALIKE, /* all of them the same: nothing is split off */
	NEEDS_KINDS
};

static void fill_needs(uint64_t *need, size_t words, uint64_t job, enum needs kind)
{
	struct philox_seq random;

	philox_seq_init(&random, job, 0, 0);
	for (size_t i = 0; i < words; i++) {
		need[i] = philox_u64(&random);
		for (unsigned k = 0; k < 9 && kind == NEEDS_NEARLY && job; k++)
			need[i] &= philox_u64(&random);
		if (kind == NEEDS_APART)
			need[i] = (i < words / 2) == (job == 0) ? UINT64_MAX : 0;
		if (kind == NEEDS_ALIKE)
			need[i] = i ? UINT64_MAX : 0;
	}
}

static int join_all(struct carousel *carousel, enum needs kind)
{
	size_t words = (size_t)(carousel_permutation(carousel)->blocks / 64);
	_cleanup_free_ uint64_t *need = calloc(words, sizeof(*need));
	int r = need ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < SIM_COMPOSE_JOBS && r == 0; i++) {
		struct carousel_join join = {.batch = 256, .ranks = 1, .need = need};
		uint32_t job;

		fill_needs(need, words, i, kind);
		r = carousel_join(carousel, &join, 1, &job);
	}
	return r;
}

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return 1e3 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

/* Deals chunks until the slots are full; timed is the step that deals one, by the CPU's time. */
static int time_chunks(struct carousel *carousel, double *ret_mean_ms, double *ret_most_ms)
{
	double sum_ms = 0, most_ms = 0;
	unsigned dealt = 0;

	while (dealt < SIM_COMPOSE_CHUNKS) {
		struct carousel_action action;
		double begin_ms = cpu_ms();
		double took_ms;

		carousel_step(carousel, dealt + 1, &action);
		took_ms = cpu_ms() - begin_ms;
		if (action.kind == CAROUSEL_NONE)
			break;
		if (action.kind == CAROUSEL_GRANT)
			carousel_done(carousel, action.job, action.slot, dealt + 1);
		if (action.kind != CAROUSEL_PRODUCE)
			continue;
		carousel_produced(carousel, action.slot);
		sum_ms += took_ms;
		most_ms = BASE_MAX(most_ms, took_ms);
		dealt++;
	}
	if (!dealt)
		return -EDEADLK;
	*ret_mean_ms = sum_ms / dealt;
	*ret_most_ms = most_ms;
	return 0;
}

static int print_compose(enum needs kind)
{
	static const char *const names[] = {"half met", "nearly met", "apart", "alike"};
	struct carousel_config config = {
	    .n = UINT64_C(1) << 19,
	    .chunk = 256,
	    .slots = SIM_COMPOSE_CHUNKS,
	    .max_slots = SIM_COMPOSE_CHUNKS,
	    .producing = 1,
	    .seed = 1,
	    .first_nonce = 1,
	};
	struct carousel *carousel;
	double mean_ms, most_ms;
	int r = carousel_new(&config, &carousel);

	if (r)
		return r;
	r = join_all(carousel, kind);
	if (r == 0)
		r = time_chunks(carousel, &mean_ms, &most_ms);
	carousel_free(carousel);
	if (r)
		return r;
	printf("dealing a chunk, %u jobs, 2^19 blocks, needs %s: mean %.3f ms, most %.3f ms\n",
	       SIM_COMPOSE_JOBS, names[kind], mean_ms, most_ms);
	return 0;
}

/* chapters: jobs that start at any time in the first one's epoch, two slots a job */

#define SIM_CHAPTER 1600 /* blocks that stand for 2^19: 200 chunks */
#define SIM_CHAPTER_SEEDS 2

static const struct {
	const char *name;
	uint64_t size; /* so many chapters of SIM_CHAPTER blocks; 0: there is but one */
	uint32_t max_begun;
} walks[] = {
    {"one bitmap, no chapters", 0, 1},
    {"chapters of 2^19 blocks, 1 begun", 1, 1},
    {"chapters of 2^18 blocks, 2 begun", 2, 2},
    {"chapters of 2^16 blocks, 8 begun", 8, 8},
    {"chapters of 2^15 blocks, 16 begun", 16, 16},
    {"chapters of 2^15 blocks, all begun", 16, UINT32_MAX},
};

static void stagger(struct sim_world_scenario *scenario, unsigned jobs, bool mixed, uint64_t seed)
{
	struct philox_seq random;

	*scenario = (struct sim_world_scenario){.jobs = jobs, .slots = 2 * jobs};
	philox_seq_init(&random, 17, seed, jobs);
	for (unsigned i = 0; i < jobs; i++) {
		scenario->speed[i] = mixed ? 1 - .8 * i / (jobs > 2 ? jobs - 1 : 1.6) : 1;
		scenario->start[i] = i ? (double)philox_below(&random, 1000) / 1000 : 0;
		scenario->epochs[i] = (unsigned)(5 * scenario->speed[i]);
	}
}

static int print_walk(unsigned jobs, bool mixed, unsigned units, size_t walk)
{
	struct sim_world_run run = {
	    .n = (uint64_t)SIM_CHAPTER * units,
	    .chunk = SIM_SIZE,
	    .producing = 2,
	    .rate = SIM_RATE,
	    .chapter = walks[walk].size ? SIM_CHAPTER / walks[walk].size : UINT64_C(1) << 19,
	    .max_begun = walks[walk].max_begun,
	};
	struct sim_world_result mean = {0}, one;

	for (unsigned i = 0; i < SIM_CHAPTER_SEEDS; i++) {
		struct sim_world_scenario scenario;
		int r;

		stagger(&scenario, jobs, mixed, i);
		run.seed = i + 1;
		r = sim_world(&scenario, &run, &one);
		if (r)
			return r;
		mean.over += one.over / SIM_CHAPTER_SEEDS;
		mean.work += one.work / SIM_CHAPTER_SEEDS;
		mean.stall = BASE_MAX(mean.stall, one.stall);
	}
	printf("  %u jobs, %s, %2u x 2^19 blocks, %-34s over the reference %5.1f %%  of separate "
	       "loaders' work %5.1f %%  worst wait %4.1f %%\n",
	       jobs, mixed ? "mixed speeds" : "equal speeds", units, walks[walk].name,
	       100 * mean.over, 100 * mean.work, 100 * mean.stall);
	fflush(stdout);
	return 0;
}

static int print_chapters(void)
{
	static const unsigned jobs[] = {2, 4, 8}, units[] = {4, 16, 60};
	int r = 0;

	for (unsigned mixed = 0; mixed < 2; mixed++)
		for (size_t i = 0; i < BASE_ARRAY_LEN(jobs); i++)
			for (size_t k = 0; k < BASE_ARRAY_LEN(units); k++)
				for (size_t w = 0; w < BASE_ARRAY_LEN(walks) && !r; w++)
					r = print_walk(jobs[i], mixed, units[k], w);
	return r;
}

/* variants: the same worlds with one pipeline and with several */

#define SIM_JOIN .jobs = 4, .slots = 8, .speed = {1, 1, 1, 1}, .start = {0, .2, .45, .65}

static const struct sim_world_scenario mixtures[] = {
    {.name = "2 equal jobs, together", .jobs = 2, .slots = 4, .speed = {1, 1}, .epochs = {4, 4}},
    {.name = "2 equal jobs, one late",
     .jobs = 2,
     .slots = 4,
     .speed = {1, 1},
     .start = {0, .45},
     .epochs = {4, 4}},
    {.name = "1 and 0.5, together", .jobs = 2, .slots = 4, .speed = {1, .5}, .epochs = {8, 4}},
    {.name = "4 equal jobs, 20-25 % apart", SIM_JOIN, .epochs = {4, 4, 4, 4}},
    {.name = "1, .9, .7, .5, staggered",
     .jobs = 4,
     .slots = 8,
     .speed = {1, .9, .7, .5},
     .start = {0, .1, .3, .6},
     .epochs = {8, 7, 6, 4}},
    {.name = "8 equal jobs, together",
     .jobs = 8,
     .slots = 16,
     .speed = {1, 1, 1, 1, 1, 1, 1, 1},
     .epochs = {4, 4, 4, 4, 4, 4, 4, 4}},
    {.name = "8 jobs, 1 ... .2, staggered", .slots = 16, SIM_EIGHT},
    {.name = "8 jobs, 1 ... .2, staggered", .slots = 8, SIM_EIGHT},
};

static int print_mixture(const struct sim_world_scenario *base, uint32_t chunks, unsigned variants,
			 unsigned again)
{
	struct sim_world_run run = {
	    .n = (uint64_t)chunks * SIM_SIZE,
	    .chunk = SIM_SIZE,
	    .producing = 2,
	    .rate = SIM_RATE,
	};
	struct sim_world_scenario scenario = *base;
	struct sim_world_result result;
	int r;

	scenario.usable_again = again;
	for (unsigned i = 0; i < scenario.jobs; i++)
		scenario.variant[i] = i % variants;
	r = average(&scenario, run, 3, &result);
	if (r) {
		printf("  %s: %s\n", scenario.name, strerror(-r));
		return r;
	}
	printf("  %-28s slots %2u  variants %u again %u  decoded over the reference %5.1f %% (a "
	       "stream each: "
	       "%5.1f %%)  made over what each needs %5.1f %%  worst wait %4.1f %%\n",
	       scenario.name, scenario.slots, variants, again, 100 * result.over,
	       100 * result.streams, 100 * result.outputs, 100 * result.stall);
	fflush(stdout);
	return 0;
}

static int print_variants(uint32_t chunks)
{
	static const unsigned variants[] = {1, 2, 4, 8};
	int r = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(mixtures); i++)
		for (size_t k = 0; k < BASE_ARRAY_LEN(variants) && !r; k++)
			if (variants[k] <= mixtures[i].jobs) {
				r = print_mixture(&mixtures[i], chunks, variants[k], 0);
				if (!r && variants[k] == 2)
					r = print_mixture(&mixtures[i], chunks, variants[k], 2);
			}
	return r;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 3 && atoi(argv[1]) > 0 && atoi(argv[2]) > 0)
		return print_table((uint32_t)atoi(argv[1]), 1, (unsigned)atoi(argv[2]));
	if (argc > 2 || (argc == 2 && strcmp(what, "--quick") && strcmp(what, "--compose") &&
			 strcmp(what, "--chapters") && strcmp(what, "--variants"))) {
		fprintf(stderr, "usage: sim [CHUNKS SEEDS | --quick | --compose | --chapters | "
				"--variants]\n");
		return 2;
	}
	if (strcmp(what, "--variants") == 0)
		return print_variants(400) != 0;
	if (strcmp(what, "--chapters") == 0)
		return print_chapters() != 0;
	if (strcmp(what, "--compose") == 0) {
		int r = 0;

		for (unsigned kind = 0; kind < NEEDS_KINDS && !r; kind++)
			r = print_compose((enum needs)kind);
		return r != 0;
	}
	return print_tables(strcmp(what, "--quick") == 0);
}
