/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who leads, and how far ahead a job is fed.
 *
 * The lead is the fastest living job of a scope. What it needs must be made anyway, so whatever the
 * others are granted should be made of that: the others follow. A follower is granted a chunk that
 * was made for it (carousel_choose.c), or when little is coming to it any that is there; it is hungry
 * only then. Else it lets chunks pass: which ones is what the choice is about, and a follower that
 * took all it can would leave none. But nobody waits for a chunk in production beside a finished one
 * that it can take: so a job that joins catches up when production is slower than all of them.
 *
 * While slots are free, beside the one that is filled next, nothing has to go for what is granted. So
 * everybody is granted all that he needs of what is there. A new chunk is then made of what is in none of these, and those stay
 * whole: where the slots hold the epochs that jobs are apart by, each sample is made once for all.
 *
 * A job whose pace is not known yet, and a group, want as much as the lead. Nobody leads where no op
 * is random (a resident chunk may come again), nor where an epoch has chapters.
 */

#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

#define EQUALLY_FAST 1.03 /* paces that differ less do not make another one lead */
#define MOST_BEHIND 2     /* finished chunks granted behind one in production */

static double pace_of(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];

	return member->is_group ? carousel_rank_pace(carousel, job) : member->pace_ns;
}

static bool is_led(const struct carousel *carousel, const struct carousel_member *member)
{
	return member->used && !carousel_is_placed(member) && carousel_has_lead(carousel);
}

double carousel_lead_speed(const struct carousel *carousel, uint32_t job, uint32_t lead)
{
	double pace = pace_of(carousel, job), fastest = pace_of(carousel, lead);

	if (pace <= 0 || fastest <= 0 || pace <= fastest)
		return 1;
	return fastest / pace;
}

void carousel_lead_find(struct carousel *carousel, uint64_t now_ns)
{
	double fastest[CAROUSEL_SCOPES]; /* its pace */
	struct carousel_scopes led = {0};
	uint32_t able[CAROUSEL_MAX_JOBS], n = 0;

	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		struct carousel_member *member = &carousel->jobs[job];

		member->leads = false;
		fastest[member->scope] = 0;
		if (is_led(carousel, member) && member->need_samples &&
		    carousel_step_lives(carousel, job, now_ns, NULL))
			able[n++] = job;
	}
	for (uint32_t i = 0; i < n; i++) {
		double pace = pace_of(carousel, able[i]),
		       *least = &fastest[carousel->jobs[able[i]].scope];

		if (pace > 0 && (*least <= 0 || pace < *least))
			*least = pace;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct carousel_member *member = &carousel->jobs[able[i]];
		double pace = pace_of(carousel, able[i]);

		if (bits_test(led.word, member->scope))
			continue;
		if (fastest[member->scope] > 0 &&
		    (pace <= 0 || pace > EQUALLY_FAST * fastest[member->scope]))
			continue;
		member->leads = true;
		bits_set(led.word, member->scope);
	}
}

double carousel_lead_level(const struct carousel *carousel, const struct carousel_member *member)
{
	double ahead = (double)carousel_step_ahead(carousel, member);

	return 2 * (double)member->coming / ahead + (member->pins ? 0.5 : 0);
}

bool carousel_lead_wants(const struct carousel *carousel, const struct carousel_member *member)
{
	if (!is_led(carousel, member) || member->is_group || member->leads || member->pace_ns <= 0)
		return member->coming < carousel_step_ahead(carousel, member);
	return carousel_lead_level(carousel, member) < 1;
}

/* Does the job wait for a chunk in production, with few finished ones behind it? */
static bool waits_for_production(const struct carousel *carousel,
				 const struct carousel_member *member)
{
	uint32_t finished = 0;
	bool is_first = true;

	for (uint32_t i = 0; i < member->n_grants && member->waiting && finished < MOST_BEHIND;
	     i++) {
		bool is_ready = carousel->slots[member->grants[i].slot].chunk.ready;

		if (member->grants[i].state != CAROUSEL_GRANTED)
			continue;
		if (is_first && is_ready)
			return false;
		is_first = false;
		finished += is_ready;
	}
	return member->waiting && finished < MOST_BEHIND;
}

bool carousel_lead_may_take(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const struct carousel_slot *s = &carousel->slots[slot];

	return carousel->n_free > 1 || !is_led(carousel, member) || member->is_group ||
	       member->scope != s->chunk.scope || bits_test(s->meant.word, job) ||
	       carousel_lead_wants(carousel, member) ||
	       (s->chunk.ready && waits_for_production(carousel, member));
}
