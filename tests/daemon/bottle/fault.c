/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong, one after the other and several at a time, until it is time that all is well again. */

#include <signal.h>

#include "tests/daemon/bottle/bottle.h"

static void on_back(void *arg, uint64_t number, uint64_t unused)
{
	struct bottle *bottle = arg;

	(void)unused;
	training_begin(&bottle->job[number], NULL);
}

void fault_kill_rank_for(struct training *job, uint64_t away_ns)
{
	training_kill(job);
	bottle_after(away_ns, on_back, job->bottle, job->number, 0);
}

void fault_kill_rank(struct training *job)
{
	if (job->fiber && !job->is_killed)
		fault_kill_rank_for(job, bottle_between(10 * MS, 5 * SECOND));
}

/* Of several ranks one, or all of them. */
static void kill_job(struct bottle *bottle)
{
	struct training *job = &bottle->job[bottle_below(BOTTLE_JOBS)];
	const bool is_whole = bottle_chance(3);

	if (job->plan.ranks <= 1 || (!is_whole && job->plan.saves)) {
		fault_kill_rank(job);
		return;
	}
	for (unsigned i = 0; i < job->plan.ranks; i++)
		fault_kill_rank(&bottle->job[job->plan.leader + i]);
}

static void on_restart(void *arg, uint64_t a, uint64_t b)
{
	(void)arg;
	(void)a;
	(void)b;
	accessd_start();
}

/* Now and then it is away for longer than it keeps plans that nobody comes back to. */
static void restart(struct bottle *bottle)
{
	const bool is_long = bottle_chance(6);

	if (!bottle->node)
		return;
	if (bottle_chance(2))
		accessd_kill();
	else
		accessd_stop();
	bottle_after(is_long ? bottle_between(60 * SECOND, 90 * SECOND)
			     : bottle_between(MS, 3 * SECOND),
		     on_restart, bottle, 0, 0);
}

static void stop(uint64_t *until_ns, uint64_t most_ns)
{
	*until_ns = bottle_now()->clock.now_ns + bottle_between(MS, most_ns);
}

static void make_one(struct bottle *bottle, uint64_t what)
{
	struct training *job = &bottle->job[bottle_below(BOTTLE_JOBS)];

	switch (what) {
	case 0:
	case 1:
	case 2:
		kill_job(bottle);
		break;
	case 3:
	case 4:
		worker_die((unsigned)bottle_below(BOTTLE_WORKERS), SIGSEGV);
		break;
	case 5:
		parent_die(SIGKILL);
		break;
	case 6:
		reader_die(bottle_chance(3) ? SIGBUS : SIGKILL);
		break;
	case 7:
		restart(bottle);
		break;
	case 8:
		stop(&bottle->until_ns, 4 * SECOND);
		loop_poke();
		break;
	case 9:
		stop(&bottle->reader.until_ns, 3 * SECOND);
		break;
	case 10:
		stop(&bottle->parent.until_ns, 3 * SECOND);
		break;
	case 11:
		store_fail();
		break;
	default: /* a job that does not come back for long, with what it holds */
		job->stopped_ns = bottle->clock.now_ns + bottle_between(SECOND, 40 * SECOND);
	}
}

static void on_fault(void *arg, uint64_t until_ns, uint64_t unused)
{
	struct bottle *bottle = arg;
	const uint64_t what = bottle_below(14);

	(void)unused;
	if (bottle->clock.now_ns >= until_ns && bottle->node) {
		bottle->is_wild = false;
		bottle->calm_ns = bottle->clock.now_ns + 45 * SECOND;
		return;
	}
	bottle_note('f', what, ++bottle->faults);
	make_one(bottle, what);
	bottle_after(bottle_between(50 * MS, 8 * SECOND), on_fault, bottle, until_ns, 0);
}

void fault_begin(uint64_t until_ns)
{
	bottle_now()->is_wild = true;
	bottle_after(SECOND, on_fault, bottle_now(), until_ns, 0);
}
