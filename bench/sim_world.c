/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The world of the simulation: a clock that jumps from event to event. Nothing here decides
 * anything; a job takes its oldest grant as soon as that is finished and the job is idle, and a
 * revoked grant always comes back at once, for nothing happens between two events.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/sim_world.h"

#define SIM_WORLD_CHUNK_NS 100000000.0 /* time the fastest job spends on a full chunk */

struct sim_world_grant {
	uint32_t slot;
	uint64_t epoch;
};

struct sim_job {
	double speed, start_ns;
	bool joined, ended;
	uint32_t number;                               /* the carousel's */
	struct sim_world_grant queue[SIM_WORLD_SLOTS]; /* grants, oldest first */
	uint32_t n_queue;
	uint32_t reading; /* slot, or CAROUSEL_NO_SLOT */
	double until_ns, idle_since_ns, stall_ns, begin_ns, end_ns;
	uint64_t consumed, total;
	uint64_t mark; /* consumed when the segment began */
};

struct sim {
	const struct sim_world_scenario *scenario;
	const struct sim_world_run *run;
	struct carousel *carousel;
	struct sim_job jobs[SIM_WORLD_JOBS];
	unsigned n_jobs;
	uint32_t producing[4], n_producing; /* slots in production, oldest first */
	double first_ready_ns, sample_ns;   /* of producing[0]; to produce a sample */
	double now_ns;
	uint64_t references; /* the sum of the variants' */
};

static struct sim_job *job_of(struct sim *sim, uint32_t number)
{
	for (unsigned i = 0; i < sim->n_jobs; i++)
		if (sim->jobs[i].joined && !sim->jobs[i].ended && sim->jobs[i].number == number)
			return &sim->jobs[i];
	return NULL;
}

static double time_to_produce(const struct sim *sim, uint32_t slot)
{
	return carousel_chunk_of(sim->carousel, slot)->count * sim->sample_ns;
}

static void drop_from_queue(struct sim_job *job, uint32_t slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < job->n_queue; i++)
		if (job->queue[i].slot != slot)
			job->queue[kept++] = job->queue[i];
	job->n_queue = kept;
}

static void obey(struct sim *sim, const struct carousel_action *action)
{
	struct sim_job *job;

	switch (action->kind) {
	case CAROUSEL_GRANT:
		job = job_of(sim, action->job);
		job->queue[job->n_queue++] = (struct sim_world_grant){action->slot, action->epoch};
		break;
	case CAROUSEL_REVOKE:
		drop_from_queue(job_of(sim, action->job), action->slot);
		carousel_reclaimed(sim->carousel, action->job, action->slot, (uint64_t)sim->now_ns);
		break;
	case CAROUSEL_PRODUCE:
		if (!sim->n_producing)
			sim->first_ready_ns = sim->now_ns + time_to_produce(sim, action->slot);
		sim->producing[sim->n_producing++] = action->slot;
		break;
	case CAROUSEL_EMPTY:
	case CAROUSEL_LOG:  /* it has no groups */
	case CAROUSEL_FAIL: /* of lists, which nobody here has */
	case CAROUSEL_NONE:
		break;
	}
}

/* The job takes its oldest grant if that is finished. */
static bool try_take(struct sim *sim, struct sim_job *job)
{
	const struct carousel_chunk *chunk;

	if (!job->joined || job->ended || job->reading != CAROUSEL_NO_SLOT || !job->n_queue)
		return false;
	chunk = carousel_chunk_of(sim->carousel, job->queue[0].slot);
	if (!chunk->ready)
		return false;
	if (sim->run->taken_fn)
		sim->run->taken_fn(sim->run->arg, (unsigned)(job - sim->jobs), job->queue[0].epoch,
				   chunk);
	job->reading = job->queue[0].slot;
	drop_from_queue(job, job->reading);
	job->stall_ns += sim->now_ns - job->idle_since_ns;
	job->until_ns =
	    sim->now_ns + SIM_WORLD_CHUNK_NS * chunk->count / sim->run->chunk / job->speed;
	carousel_waiting(sim->carousel, job->number, false);
	carousel_taken(sim->carousel, job->number, job->reading, (uint64_t)sim->now_ns);
	return true;
}

static void decide(struct sim *sim)
{
	struct carousel_action action;
	bool again = true;

	while (again) {
		again = false;
		for (unsigned i = 0; i < sim->n_jobs; i++)
			again |= try_take(sim, &sim->jobs[i]);
		do {
			carousel_step(sim->carousel, (uint64_t)sim->now_ns, &action);
			obey(sim, &action);
			again |= action.kind == CAROUSEL_GRANT;
		} while (action.kind != CAROUSEL_NONE && action.kind != CAROUSEL_GRANT);
	}
}

/* As the carousel's reference (sched/carousel.c), for the jobs of each variant. */
static void end_segment(struct sim *sim)
{
	uint64_t most[CAROUSEL_MAX_VARIANTS] = {0};

	for (unsigned i = 0; i < sim->n_jobs; i++) {
		struct sim_job *job = &sim->jobs[i];
		uint64_t *of_variant = &most[sim->scenario->variant[i]];

		*of_variant = BASE_MAX(*of_variant, job->consumed - job->mark);
		job->mark = job->consumed;
	}
	for (unsigned i = 0; i < CAROUSEL_MAX_VARIANTS; i++)
		sim->references += most[i];
}

static int join(struct sim *sim, struct sim_job *job)
{
	struct carousel_join join = {
	    .variant = sim->scenario->variant[job - sim->jobs],
	    .batch = sim->run->chunk,
	    .ranks = 1,
	    .epochs = sim->scenario->epochs[job - sim->jobs],
	};
	int r = carousel_join(sim->carousel, &join, (uint64_t)sim->now_ns, &job->number);

	if (r)
		return r;
	end_segment(sim);
	job->joined = true;
	job->reading = CAROUSEL_NO_SLOT;
	job->begin_ns = job->idle_since_ns = sim->now_ns;
	carousel_waiting(sim->carousel, job->number, true);
	return 0;
}

static void finish_reading(struct sim *sim, struct sim_job *job)
{
	job->consumed += carousel_chunk_of(sim->carousel, job->reading)->count;
	carousel_waiting(sim->carousel, job->number, true);
	carousel_done(sim->carousel, job->number, job->reading, (uint64_t)sim->now_ns);
	job->reading = CAROUSEL_NO_SLOT;
	job->idle_since_ns = sim->now_ns;
	if (job->consumed < job->total)
		return;
	end_segment(sim);
	job->ended = true;
	job->end_ns = sim->now_ns;
	carousel_leave(sim->carousel, job->number, (uint64_t)sim->now_ns);
}

static void finish_chunk(struct sim *sim)
{
	carousel_produced(sim->carousel, sim->producing[0]);
	sim->n_producing--;
	memmove(sim->producing, sim->producing + 1, sim->n_producing * sizeof(sim->producing[0]));
	if (sim->n_producing)
		sim->first_ready_ns += time_to_produce(sim, sim->producing[0]);
}

/* What happens next: *ret_job, or the first chunk in production (NULL). False: nothing any more. */
static bool find_next(struct sim *sim, struct sim_job **ret_job)
{
	double next_ns = sim->n_producing ? sim->first_ready_ns : -1;

	*ret_job = NULL;
	for (unsigned i = 0; i < sim->n_jobs; i++) {
		struct sim_job *job = &sim->jobs[i];
		double at_ns = job->joined ? job->until_ns : job->start_ns;

		if (job->ended || (job->joined && job->reading == CAROUSEL_NO_SLOT))
			continue;
		if (next_ns < 0 || at_ns < next_ns) {
			next_ns = at_ns;
			*ret_job = job;
		}
	}
	if (next_ns < 0)
		return false;
	sim->now_ns = next_ns;
	return true;
}

static int run_all(struct sim *sim)
{
	struct sim_job *job;
	int r = 0;

	while (r == 0 && find_next(sim, &job)) {
		if (!job)
			finish_chunk(sim);
		else if (job->joined)
			finish_reading(sim, job);
		else
			r = join(sim, job);
		decide(sim);
	}
	for (unsigned i = 0; i < sim->n_jobs && r == 0; i++)
		r = sim->jobs[i].ended ? 0 : -EDEADLK;
	return r;
}

static int set_up(struct sim *sim)
{
	const struct sim_world_scenario *scenario = sim->scenario;
	const struct sim_world_run *run = sim->run;
	struct carousel_config config = {
	    .n = run->n,
	    .chunk = run->chunk,
	    .slots = scenario->slots,
	    .max_slots = scenario->slots,
	    .producing = run->producing,
	    .chapter = run->chapter,
	    .max_begun = run->max_begun,
	    .usable_again = scenario->usable_again,
	    .seed = run->seed,
	    .first_nonce = 1,
	};
	double epoch_ns = SIM_WORLD_CHUNK_NS * (double)run->n / run->chunk;

	sim->n_jobs = scenario->jobs;
	sim->sample_ns = SIM_WORLD_CHUNK_NS / run->rate / run->chunk;
	for (unsigned i = 0; i < sim->n_jobs; i++) {
		sim->jobs[i].speed = scenario->speed[i];
		sim->jobs[i].start_ns = 1 + scenario->start[i] * epoch_ns;
		sim->jobs[i].total = run->n * scenario->epochs[i];
	}
	return carousel_new(&config, &sim->carousel);
}

static void sum_up(const struct sim *sim, struct sim_world_result *ret)
{
	struct carousel_totals totals;
	double alone = 0;

	carousel_totals(sim->carousel, &totals);
	*ret = (struct sim_world_result){.chunks = totals.chunks};
	for (unsigned i = 0; i < sim->n_jobs; i++) {
		const struct sim_job *job = &sim->jobs[i];
		double stall = job->stall_ns / (job->end_ns - job->begin_ns);

		alone += (double)job->total;
		ret->stall = BASE_MAX(ret->stall, stall);
	}
	ret->over = (double)totals.productions / (double)totals.reference - 1;
	ret->work = (double)totals.productions / alone;
	ret->outputs = (double)totals.outputs / (double)sim->references - 1;
	ret->streams = (double)sim->references / (double)totals.reference - 1;
}

int sim_world(const struct sim_world_scenario *scenario, const struct sim_world_run *run,
	      struct sim_world_result *ret)
{
	struct sim sim = {.scenario = scenario, .run = run};
	int r = set_up(&sim);

	if (r)
		return r;
	r = run_all(&sim);
	if (r == 0)
		sum_up(&sim, ret);
	carousel_free(sim.carousel);
	return r;
}
