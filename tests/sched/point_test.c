/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The choice of what is kept: rules that hold for any inputs, and machines made up by hand and by
 * chance on which jobs run epoch by epoch with noisy costs and stores that fill. There the choice is
 * made as accessd makes it, from measurements alone, and compared with every point forced.
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

static void seed(uint64_t value)
{
	philox_seq_init(&draws, value, 0, 0);
}

static double uniform(double from, double to)
{
	return from + (to - from) * (double)philox_below(&draws, UINT64_C(1) << 40) / 1099511627776;
}

static double log_uniform(double from, double to)
{
	return exp(uniform(log(from), log(to)));
}

/* Mean 1, that standard deviation, never negative: a sum of uniform ones. */
static double noise(double deviation)
{
	double sum = uniform(-1, 1) + uniform(-1, 1) + uniform(-1, 1);

	return BASE_MAX(1 + deviation * sum, 0.05);
}

/* ---- machines ---- */

#define WORLD_SAMPLES 2000 /* at most */
#define WORLD_EPOCHS 16
#define WORLD_WINDOW 250 /* samples over which processors and storage may run apart */
#define WORLD_QUEUE \
	6e6 /* bytes that wait for the writer: few beside the samples, as they really are */
#define WORLD_TRIAL_EVERY 2
#define WORLD_LOOK_EVERY 16
#define WORLD_VAIN 8 /* forms of a window that are made though it takes none */

struct world {
	const char *name;
	unsigned n;
	struct point_cost cost[POINT_MAX]; /* the truth, in the mean */
	double cores, threads, epochs;
	double write_cpu; /* share of writing that is work */
	double spread;    /* of the samples' sizes */
	unsigned samples; /* 0: all */
	uint64_t store;   /* bytes */
	bool says_end;
};

struct run {
	const struct world *world;
	unsigned n_samples;
	bool is_forced, has_news; /* of trials */
	struct point_choice choice;
	struct point_form form[POINT_MAX];
	bool kept[POINT_MAX][WORLD_SAMPLES];
	double size[WORLD_SAMPLES];
	uint64_t n_kept[POINT_MAX];
	double used; /* bytes of the store */
	double cpu, read, elapsed;
	double pace;  /* of a sample in the window before */
	double write; /* time that what waits for the writer will take */
	bool has_written;
	unsigned vain;
	double after[WORLD_EPOCHS + 1]; /* elapsed, behind so many epochs */
	double at;                      /* epochs that are over */
	uint64_t decided, switches, trials, from_kept, samples;
};

static void run_init(struct run *run, const struct world *world)
{
	memset(run, 0, sizeof(*run));
	run->world = world;
	run->n_samples = world->samples > 0 ? world->samples : WORLD_SAMPLES;
	run->pace = BASE_MAX(world->cost[0].work_us / world->cores,
			     world->cost[0].read_us / world->threads);
	for (unsigned p = 0; p < world->n; p++)
		point_form_init(&run->form[p]);
	for (unsigned i = 0; i < run->n_samples; i++)
		run->size[i] = noise(world->spread);
}

static void fill_input(const struct run *run, struct point_input *ret)
{
	const struct world *world = run->world;

	memset(ret, 0, sizeof(*ret));
	ret->n = world->n;
	ret->cores = world->cores;
	ret->reader_threads = world->threads;
	ret->n_samples = run->n_samples;
	ret->current = run->choice.point;
	ret->is_new = point_form_is_new(&run->form[ret->current]);
	ret->past = run->at;
	ret->uses = point_uses(world->says_end, world->epochs - run->at, run->at);
	for (unsigned p = 0; p < world->n; p++) {
		point_form_cost(&run->form[p], &run->form[0], &ret->cost[p]);
		if (run->has_written && p > 0) {
			ret->cost[p].write_us = world->cost[p].write_us;
			ret->cost[p].make_us += world->write_cpu * world->cost[p].write_us;
		}
		ret->room[p] = world->store;
		ret->cached[p] = (double)run->n_kept[p] / run->n_samples;
	}
}

static void drop(struct run *run, unsigned p, unsigned i)
{
	run->kept[p][i] = false;
	run->n_kept[p]--;
	run->used -= run->world->cost[p].bytes * run->size[i];
}

/* What other points have makes room for the chosen one. */
static bool make_room(struct run *run, double bytes)
{
	for (unsigned p = 1; p < run->world->n; p++)
		for (unsigned i = 0;
		     p != run->choice.point && run->n_kept[p] > 0 &&
		     run->used + bytes > (double)run->world->store && i < run->n_samples;
		     i++)
			if (run->kept[p][i])
				drop(run, p, i);
	return run->used + bytes <= (double)run->world->store;
}

static struct point_cost drawn(const struct run *run, unsigned p, double size)
{
	const struct point_cost *cost = &run->world->cost[p];

	return (struct point_cost){
	    .work_us = cost->work_us * size * noise(0.16), /* as crops make of it */
	    .read_us = cost->read_us * size * noise(0.1),
	    .read_cpu_us = cost->read_cpu_us * size,
	    .make_us = cost->make_us * size * noise(0.1),
	    .write_us = cost->write_us * size * noise(0.1),
	    .bytes = cost->bytes * size,
	};
}

static void serve(struct run *run, unsigned p, const struct point_cost *sample)
{
	run->cpu += sample->work_us + sample->read_cpu_us;
	run->read += sample->read_us;
	point_form_served(&run->form[p], sample);
}

/* A writer that is slower than the workers takes what it can, and holds nobody up. */
static bool is_behind(const struct run *run, unsigned p)
{
	const struct point_cost *cost = &run->world->cost[p];

	return run->write * cost->bytes > WORLD_QUEUE * cost->write_us;
}

static void keep(struct run *run, unsigned i)
{
	unsigned p = run->choice.point;
	double bytes = run->world->cost[p].bytes * run->size[i];
	struct point_cost sample, file;

	if (is_behind(run, p)) {
		if (run->vain++ < WORLD_VAIN)
			run->cpu += drawn(run, p, run->size[i]).make_us;
		return;
	}
	if (!make_room(run, bytes))
		return;
	sample = drawn(run, p, run->size[i]);
	file = drawn(run, 0, run->size[i]);
	run->cpu += sample.make_us + run->world->write_cpu * sample.write_us;
	run->cpu += sample.work_us - file.work_us; /* the outputs come from the form then */
	run->write += sample.write_us;
	run->has_written = true;
	point_form_made(&run->form[p], &sample);
	run->kept[p][i] = true;
	run->n_kept[p]++;
	run->used += bytes;
}

static bool wants_trial(const struct run *run, const struct point_input *input, unsigned p)
{
	return p > 0 && !point_form_is_sure(&run->form[p]) &&
	       input->cost[p].samples < point_trials(input, p);
}

static bool wants_any(const struct run *run, const struct point_input *input)
{
	for (unsigned p = 1; p < run->world->n; p++)
		if (wants_trial(run, input, p))
			return true;
	return false;
}

/* The form that is tried with this sample, each in its turn; 0: none. */
static unsigned trial_of(const struct run *run, const struct point_input *input)
{
	if (run->is_forced || run->samples % WORLD_TRIAL_EVERY != 0)
		return 0;
	for (unsigned i = 0; i < run->world->n; i++) {
		unsigned p = (unsigned)(run->samples / WORLD_TRIAL_EVERY + i) % run->world->n;

		if (wants_trial(run, input, p))
			return p;
	}
	return 0;
}

/* Read and written by threads that had nothing to do. */
static void try_form(struct run *run, unsigned p, double size, double file_us)
{
	struct point_cost sample = drawn(run, p, size);

	run->cpu += sample.make_us + sample.work_us + sample.read_cpu_us;
	point_form_tried(&run->form[p], &sample, file_us);
	run->trials++;
	run->has_news = true;
}

static bool has_moved(const struct run *run)
{
	for (unsigned p = 0; p < run->world->n; p++)
		if (point_form_moved(&run->form[p]))
			return true;
	return false;
}

static bool has_kept(const struct run *run)
{
	for (unsigned p = 1; p < run->world->n; p++)
		if (run->n_kept[p] > 0)
			return true;
	return false;
}

static void decide(struct run *run)
{
	unsigned before = run->choice.point;
	struct point_input input;

	run->has_news = false;
	fill_input(run, &input);
	if (run->choice.point == 0 && !has_kept(run) && wants_any(run, &input))
		return;
	point_choose(&input, &run->choice);
	run->switches += run->decided > 0 && run->choice.point != before;
	run->decided += run->choice.reason != POINT_UNMEASURED;
	for (unsigned p = 0; p < run->world->n; p++)
		point_form_settle(&run->form[p]);
}

static void end_window(struct run *run)
{
	const struct world *world = run->world;

	run->elapsed += BASE_MAX(run->cpu / world->cores, run->read / world->threads);
	run->pace = BASE_MAX(run->cpu / world->cores, run->read / world->threads) / WORLD_WINDOW;
	run->cpu = run->read = 0;
	run->vain = 0;
}

static void one_sample(struct run *run, unsigned i)
{
	unsigned p = run->choice.point, tried;
	struct point_cost sample;
	struct point_input input;

	run->write = BASE_MAX(run->write - run->pace, 0);
	fill_input(run, &input);
	tried = trial_of(run, &input);
	run->samples++;
	if (p > 0 && run->kept[p][i] && tried == 0 &&
	    (run->is_forced || input.cost[0].samples >= point_trials(&input, 0))) {
		run->from_kept++;
		sample = drawn(run, p, run->size[i]);
		serve(run, p, &sample);
		return;
	}
	sample = drawn(run, 0, run->size[i]);
	serve(run, 0, &sample);
	if (tried > 0)
		try_form(run, tried, run->size[i], sample.work_us);
	else if (p > 0 && run->choice.makes && !run->kept[p][i])
		keep(run, i);
}

/* As accessd does: what was tried, or is not known yet, is looked at often. */
static bool is_time(const struct run *run, unsigned k)
{
	if (run->is_forced || k % WORLD_LOOK_EVERY != 0)
		return false;
	return k == 0 || run->has_news || run->choice.reason == POINT_UNMEASURED || has_moved(run);
}

static void one_epoch(struct run *run, uint32_t *order)
{
	for (unsigned k = run->n_samples; k > 1; k--) {
		uint32_t other = (uint32_t)philox_below(&draws, k), was = order[k - 1];

		order[k - 1] = order[other];
		order[other] = was;
	}
	for (unsigned k = 0; k < run->n_samples; k++) {
		one_sample(run, order[k]);
		run->at += 1.0 / run->n_samples;
		if (is_time(run, k))
			decide(run);
		if ((k + 1) % WORLD_WINDOW == 0 || k + 1 == run->n_samples)
			end_window(run);
	}
}

static void all_epochs(struct run *run)
{
	uint32_t order[WORLD_SAMPLES];

	for (uint32_t k = 0; k < WORLD_SAMPLES; k++)
		order[k] = k;
	for (unsigned epoch = 0; epoch < (unsigned)run->world->epochs; epoch++) {
		one_epoch(run, order);
		run->after[epoch + 1] = run->elapsed;
	}
}

/* forced: a point, or POINT_MAX: as it is chosen. The caller frees. */
static struct run *run_new(const struct world *world, unsigned forced, uint64_t number)
{
	struct run *run = malloc(sizeof(*run));

	ck_assert_ptr_nonnull(run);
	seed(number);
	run_init(run, world);
	if (forced < POINT_MAX) {
		run->is_forced = true;
		run->choice.point = forced;
		run->choice.makes = forced > 0;
	}
	all_epochs(run);
	return run;
}

static double best_forced(const struct world *world, uint64_t number, unsigned *ret_point)
{
	double best = INFINITY;

	for (unsigned p = 0; p < world->n; p++) {
		struct run *run = run_new(world, p, number);

		if (run->elapsed < best) {
			best = run->elapsed;
			*ret_point = p;
		}
		free(run);
	}
	return best;
}

/* Times the best point by hand, all that it took to find out counted. Where two lie near each other the noise of
 * the trials may choose the worse: no run is further from the best than such two are. */
static double over_best(const struct world *world, uint64_t number, unsigned most_switches)
{
	unsigned best_point = 0;
	double best = best_forced(world, number, &best_point);
	struct run *run = run_new(world, POINT_MAX, number);
	const double over = run->elapsed / best;

	ck_assert_msg(over <= 1.08, "%s %llu: %u is best, %u chosen: %s, %.3f", world->name,
		      (unsigned long long)number, best_point, run->choice.point,
		      point_reason_name(run->choice.reason), over);
	ck_assert_uint_le(run->switches, most_switches);
	free(run);
	return over;
}

/* ---- settings ---- */

/* A training pipeline on photographs, as bench/forms measures it: file, index, packed, decoded. */
#define TRAINING                                                                     \
	{.work_us = 1000, .read_us = 60, .read_cpu_us = 30, .bytes = 1e5},           \
	    {.work_us = 830,                                                         \
	     .read_us = 65,                                                          \
	     .read_cpu_us = 32,                                                      \
	     .make_us = 300,                                                         \
	     .write_us = 10,                                                         \
	     .bytes = 1700},                                                         \
	    {.work_us = 480,                                                         \
	     .read_us = 60,                                                          \
	     .read_cpu_us = 30,                                                      \
	     .make_us = 2300,                                                        \
	     .write_us = 90,                                                         \
	     .bytes = 1.16e5},                                                       \
	{                                                                            \
		.work_us = 400, .read_us = 250, .read_cpu_us = 120, .make_us = 1300, \
		.write_us = 400, .bytes = 5.5e5                                      \
	}

static const struct world worlds[] = {
    {.name = "fast disk",
     .n = 4,
     .cost = {TRAINING},
     .cores = 2,
     .threads = 4,
     .epochs = 16,
     .spread = 0.3,
     .store = 1000000000,
     .says_end = true},
    {.name = "slow disk",
     .n = 4,
     .cost = {{.work_us = 1000, .read_us = 20000, .read_cpu_us = 30, .bytes = 1e5},
	      {.work_us = 830,
	       .read_us = 20000,
	       .read_cpu_us = 32,
	       .make_us = 300,
	       .write_us = 10,
	       .bytes = 1700},
	      {.work_us = 480,
	       .read_us = 60,
	       .read_cpu_us = 30,
	       .make_us = 2300,
	       .write_us = 90,
	       .bytes = 1.16e5},
	      {.work_us = 400,
	       .read_us = 250,
	       .read_cpu_us = 120,
	       .make_us = 1300,
	       .write_us = 400,
	       .bytes = 5.5e5}},
     .cores = 2,
     .threads = 4,
     .epochs = 8,
     .spread = 0.3,
     .store = 2000000000,
     .says_end = true},
    {.name = "small cache",
     .n = 4,
     .cost = {TRAINING},
     .cores = 2,
     .threads = 4,
     .epochs = 16,
     .spread = 0.3,
     .store = 60000000,
     .says_end = true},
    {.name = "cheap ops",
     .n = 3,
     .cost = {{.work_us = 30, .read_us = 60, .read_cpu_us = 30, .bytes = 1e5},
	      {.work_us = 29,
	       .read_us = 60,
	       .read_cpu_us = 30,
	       .make_us = 20,
	       .write_us = 90,
	       .bytes = 1e5},
	      {.work_us = 28,
	       .read_us = 70,
	       .read_cpu_us = 36,
	       .make_us = 20,
	       .write_us = 90,
	       .bytes = 1.2e5}},
     .cores = 2,
     .threads = 4,
     .epochs = 16,
     .spread = 0.3,
     .store = 1000000000,
     .says_end = true},
    {.name = "costly ops",
     .n = 4,
     .cost = {{.work_us = 9000, .read_us = 60, .read_cpu_us = 30, .bytes = 1e5},
	      {.work_us = 8800,
	       .read_us = 65,
	       .read_cpu_us = 32,
	       .make_us = 300,
	       .write_us = 10,
	       .bytes = 1700},
	      {.work_us = 8500,
	       .read_us = 60,
	       .read_cpu_us = 30,
	       .make_us = 2300,
	       .write_us = 90,
	       .bytes = 1.16e5},
	      {.work_us = 60,
	       .read_us = 80,
	       .read_cpu_us = 40,
	       .make_us = 8950,
	       .write_us = 140,
	       .bytes = 1.5e5}},
     .cores = 2,
     .threads = 4,
     .epochs = 16,
     .spread = 0.3,
     .store = 1000000000,
     .says_end = true},
    {.name = "slow store", /* takes a tenth of what two cores make of it in an epoch */
     .n = 4,
     .cost = {{.work_us = 9000, .read_us = 60, .read_cpu_us = 30, .bytes = 1e5},
	      {.work_us = 8800,
	       .read_us = 65,
	       .read_cpu_us = 32,
	       .make_us = 300,
	       .write_us = 800,
	       .bytes = 1700},
	      {.work_us = 8500,
	       .read_us = 60,
	       .read_cpu_us = 30,
	       .make_us = 2300,
	       .write_us = 34000,
	       .bytes = 1.16e5},
	      {.work_us = 60,
	       .read_us = 80,
	       .read_cpu_us = 40,
	       .make_us = 8950,
	       .write_us = 45000,
	       .bytes = 1.5e5}},
     .cores = 2,
     .threads = 4,
     .epochs = 16,
     .spread = 0.3,
     .store = 1000000000,
     .says_end = true},
};

START_TEST(settings)
{
	double sum = 0;

	for (unsigned i = 0; i < 4; i++)
		sum += over_best(&worlds[_i], i + 1, 1);
	ck_assert_double_le(sum / 4, 1.04);
}
END_TEST

/* ---- machines by chance ---- */

static void random_world(struct world *ret)
{
	double work = log_uniform(50, 20000), read = log_uniform(20, 50000);
	double write = log_uniform(1e-4, 0.1); /* a byte: 10 GB/s to 10 MB/s */

	memset(ret, 0, sizeof(*ret));
	ret->name = "random";
	ret->n = 2 + (unsigned)philox_below(&draws, 4);
	ret->cores = log_uniform(1, 64);
	ret->threads = log_uniform(1, 16);
	ret->epochs = 2 + (double)philox_below(&draws, 15);
	ret->write_cpu = uniform(0, 1);
	ret->spread = uniform(0, 0.4);
	ret->says_end = true;
	for (unsigned p = 0; p < ret->n; p++) {
		ret->cost[p] = (struct point_cost){
		    .work_us = p > 0 ? work * log_uniform(0.02, 1.2) : work,
		    .read_us = p > 0 ? read * log_uniform(0.01, 3) : read,
		    .read_cpu_us = log_uniform(10, 50),
		    .make_us = work * log_uniform(0.05, 4),
		    .bytes = log_uniform(1e3, 1e6),
		};
		ret->cost[p].write_us = 5 + write * (4096 + ret->cost[p].bytes);
	}
	ret->store = (uint64_t)log_uniform(1e7, 1e9);
}

START_TEST(random_machines)
{
	double sum = 0;

	for (unsigned i = 0; i < 30; i++) {
		struct world world;

		seed(1000 + i);
		random_world(&world);
		sum += over_best(&world, i + 1, 3); /* writing may turn out to be dear */
	}
	ck_assert_double_le(sum / 30, 1.02);
}
END_TEST

/* Whenever a job ends that did not say when, it took at most twice as long as the best in hindsight
 * (and the trials). */
START_TEST(unknown_ends)
{
	struct world world;
	struct run *run, *forced[POINT_MAX];

	seed(2000 + (uint64_t)_i);
	random_world(&world);
	world.epochs = WORLD_EPOCHS;
	world.says_end = false;
	if (_i == 0) { /* would pay in the long run */
		world.n = 2;
		world.cost[1].work_us = world.cost[0].work_us / 4;
		world.cost[1].make_us = world.cost[0].work_us * 5;
		world.store = UINT64_MAX / 2;
	}
	run = run_new(&world, POINT_MAX, 1);
	for (unsigned p = 0; p < world.n; p++)
		forced[p] = run_new(&world, p, 1);
	for (unsigned epoch = 1; epoch <= WORLD_EPOCHS; epoch++) {
		double best = INFINITY;

		for (unsigned p = 0; p < world.n; p++)
			best = BASE_MIN(best, forced[p]->after[epoch]);
		ck_assert_msg(run->after[epoch] <= 2.05 * best, "%d, epoch %u: %.3f", _i, epoch,
			      run->after[epoch] / best);
	}
	ck_assert_uint_le(run->switches, 3);
	for (unsigned p = 0; p < world.n; p++)
		free(forced[p]);
	free(run);
}
END_TEST

/* ---- few samples ---- */

/* A tenth or a quarter of them, on which trials take a share of the time that counts: a job that says when it ends is
 * within 25 or 10 % of the best by hand, one that does not within twice the best, whenever it ends. */
START_TEST(few_samples)
{
	const double announced = _i % 2 ? 1.1 : 1.25;
	struct world world = worlds[_i / 2];
	struct run *run, *forced[POINT_MAX];

	world.samples = _i % 2 ? WORLD_SAMPLES / 4 : WORLD_SAMPLES / 10;
	world.epochs = WORLD_EPOCHS;
	for (unsigned p = 0; p < world.n; p++)
		forced[p] = run_new(&world, p, 1);
	for (unsigned says = 0; says < 2; says++) {
		world.says_end = says;
		run = run_new(&world, POINT_MAX, 1);
		for (unsigned epoch = says ? WORLD_EPOCHS : 1; epoch <= WORLD_EPOCHS; epoch++) {
			double best = INFINITY;

			for (unsigned p = 0; p < world.n; p++)
				best = BASE_MIN(best, forced[p]->after[epoch]);
			ck_assert_msg(run->after[epoch] <= (says ? announced : 2) * best,
				      "%s, epoch %u: %.3f", world.name, epoch,
				      run->after[epoch] / best);
		}
		free(run);
	}
	for (unsigned p = 0; p < world.n; p++)
		free(forced[p]);
}
END_TEST

/* ---- stores ---- */

/* What does not pay costs next to nothing to find out. */
START_TEST(not_worth)
{
	struct run *none = run_new(&worlds[3], 0, 7), *run = run_new(&worlds[3], POINT_MAX, 7);

	ck_assert_uint_eq(run->choice.point, 0);
	ck_assert(run->elapsed <= 1.02 * none->elapsed);
	free(none);
	free(run);
}
END_TEST

/* A store of a quarter, a half, three quarters of the data: that share is served from it. */
START_TEST(partial)
{
	double share = 0.25 * (_i + 1), hits;
	struct world world = worlds[4];
	struct run *none, *run;

	world.store = (uint64_t)(share * WORLD_SAMPLES * world.cost[3].bytes);
	none = run_new(&world, 0, 3);
	run = run_new(&world, POINT_MAX, 3);
	ck_assert_uint_eq(run->choice.point, 3);
	hits = (double)run->from_kept / ((world.epochs - 1) * WORLD_SAMPLES);
	ck_assert(fabs(hits - share) < 0.02);
	ck_assert(run->elapsed < none->elapsed);
	free(none);
	free(run);
}
END_TEST

/* A job that finds everything kept by an earlier one uses it from the beginning, though nothing is
 * measured yet. */
START_TEST(restarted)
{
	struct run *run = malloc(sizeof(*run));

	ck_assert_ptr_nonnull(run);
	seed(5);
	run_init(run, &worlds[4]);
	for (unsigned i = 0; i < WORLD_SAMPLES; i++) {
		run->kept[3][i] = true;
		run->used += worlds[4].cost[3].bytes * run->size[i];
	}
	run->n_kept[3] = WORLD_SAMPLES;
	decide(run);
	ck_assert_uint_eq(run->choice.point, 3);
	ck_assert_int_eq(run->choice.reason, POINT_UNMEASURED);
	all_epochs(run);
	ck_assert_uint_eq(run->choice.point, 3);
	ck_assert_int_eq(run->choice.reason, POINT_BEST);
	ck_assert_uint_ge(run->from_kept, run->samples - 3 * POINT_TRIALS_LEAST);
	free(run);
}
END_TEST

static void add(TCase *machines)
{
	tcase_add_loop_test(machines, settings, 0, BASE_ARRAY_LEN(worlds));
	tcase_add_test(machines, random_machines);
	tcase_add_loop_test(machines, unknown_ends, 0, 6);
	tcase_add_loop_test(machines, few_samples, 0, 2 * BASE_ARRAY_LEN(worlds));
	tcase_add_test(machines, not_worth);
	tcase_add_loop_test(machines, partial, 0, 3);
	tcase_add_test(machines, restarted);
}

int main(void)
{
	return suite_run("point", add);
}
