/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a group's ranks are in its log, and what follows from it: which of them has something
 * coming to it, waits for a slot, wants the next chunk, is behind. A group has no pace, no hunger
 * and no life of its own: they are those of its ranks.
 *
 * What a rank takes next is not given up, unless for somebody who waits: carousel_rank_protects().
 */

#include "sched/carousel_log_state.h"

bool carousel_is_behind(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];

	return carousel_is_rank(member) && member->cursor < member->log->first;
}

bool carousel_rank_has(const struct carousel_member *rank, uint32_t slot)
{
	return rank->cursor >= rank->log->first && rank->log->at_slot[slot] == rank->cursor + 1;
}

bool carousel_rank_is_ahead(const struct carousel_member *rank)
{
	return rank->cursor >= rank->log->first && rank->cursor < carousel_log_end(rank->log);
}

bool carousel_rank_awaits(const struct carousel *carousel, const struct carousel_member *member,
			  uint32_t slot)
{
	uint64_t entry;

	if (!carousel_is_rank(member))
		return false;
	entry = member->log->at_slot[slot];
	return entry > member->cursor && entry <= member->cursor + carousel->n_slots;
}

/*
 * Ranks go in step: while one waits, the others stand. If those, with nothing coming to them, could
 * take each other's slots, they would do so for ever, and from the one that waits.
 */
bool carousel_rank_protects(const struct carousel *carousel, uint32_t slot, bool somebody_waits,
			    uint64_t now_ns)
{
	for (uint32_t job = 0; job < carousel->jobs_end && carousel->n_groups; job++) {
		const struct carousel_member *member = &carousel->jobs[job];
		uint32_t next = 0;

		if (!carousel_is_rank(member) || (somebody_waits && !member->waiting))
			continue;
		while (next < member->n_grants && member->grants[next].state != CAROUSEL_GRANTED)
			next++;
		if (next < member->n_grants && member->grants[next].slot == slot &&
		    carousel_step_lives(carousel, job, now_ns, NULL))
			return true;
	}
	return false;
}

uint64_t carousel_rank_taken_to(const struct carousel_member *rank)
{
	const struct carousel_log *log = rank->log;
	uint64_t at = log->samples;

	if (rank->cursor < log->first)
		return 0;
	if (rank->cursor < carousel_log_end(log))
		at = carousel_record_of(log, rank->cursor)->at;
	return at + rank->skip - rank->coming;
}

uint64_t carousel_rank_foremost(const struct carousel *carousel, const struct carousel_log *log,
				uint64_t now_ns)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < log->n_ranks; i++)
		if (carousel_step_lives(carousel, log->rank[i], now_ns, NULL))
			most =
			    BASE_MAX(most, carousel_rank_taken_to(&carousel->jobs[log->rank[i]]));
	return most;
}

bool carousel_rank_any_lives(const struct carousel *carousel, uint32_t group, uint64_t now_ns)
{
	const struct carousel_log *log = carousel->jobs[group].log;

	for (uint32_t i = 0; i < log->n_ranks; i++)
		if (carousel_step_lives(carousel, log->rank[i], now_ns, NULL))
			return true;
	return false;
}

uint32_t carousel_rank_neediest(const struct carousel *carousel, uint32_t group, uint64_t now_ns)
{
	const struct carousel_log *log = carousel->jobs[group].log;
	uint32_t neediest = CAROUSEL_NOBODY;

	for (uint32_t i = 0; i < log->n_ranks; i++) {
		uint32_t job = log->rank[i];
		const struct carousel_member *rank = &carousel->jobs[job];

		if (rank->revoked || rank->cursor != carousel_log_end(log) ||
		    rank->coming >= carousel_step_ahead(carousel, rank) ||
		    !carousel_step_lives(carousel, job, now_ns, NULL))
			continue;
		if (neediest == CAROUSEL_NOBODY || rank->coming < carousel->jobs[neediest].coming)
			neediest = job;
	}
	return neediest;
}

double carousel_rank_pace(const struct carousel *carousel, uint32_t group)
{
	const struct carousel_log *log = carousel->jobs[group].log;
	double least = 0;

	for (uint32_t i = 0; i < log->n_ranks; i++) {
		double pace = carousel->jobs[log->rank[i]].pace_ns;

		if (pace > 0 && (least <= 0 || pace < least))
			least = pace;
	}
	return least;
}
