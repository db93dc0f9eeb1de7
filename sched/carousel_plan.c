/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where dealing and producing part. Where ranks must know more of their group's plan than there are
 * slots for, a chunk is dealt without a slot, and produced when a rank comes to it. And what a rank
 * comes to may have left its slot: the same instance is made again.
 *
 * Dealing ahead keeps ranks going where one step of all of them is more than the slots hold: a
 * rank's token after a step names what all ranks have then, so a rank begins a step only when the
 * log reaches to that step's end (libaccess/ranked.c).
 *
 * A chunk that is made again has the nonce that it had, so nobody else can be granted it: he may have
 * seen it. Ranks of other groups know by their logs whether they wait for that very nonce.
 */

#include "sched/carousel_log_state.h"

/* producing what was dealt before */

/* A chunk that was larger than this stream's is in the log in parts, which have one nonce. */
static bool is_of(const struct entry *entry, const struct carousel_chunk *chunk)
{
	return entry->nonce == chunk->nonce && entry->seed == chunk->seed &&
	       entry->count == chunk->count && entry->n_blocks == chunk->n_blocks &&
	       (entry->n_blocks ||
		memcmp(entry->ids, chunk->ids, chunk->count * sizeof(*chunk->ids)) == 0);
}

/* The newest entry of the group's log that is the slot's chunk, of those that some rank comes to soon: the others may be
 * millions, and a chunk seldom stays for so long. */
static bool find_entry(const struct carousel *carousel, uint32_t group, uint32_t slot,
		       uint64_t *ret_number)
{
	const struct carousel_log *log = carousel->jobs[group].log;
	uint64_t end = 0; /* behind the one that was found */

	for (uint32_t i = 0; i < log->n_ranks; i++) {
		uint64_t number = BASE_MAX(carousel->jobs[log->rank[i]].cursor, log->first);
		const uint64_t last = BASE_MIN(number + carousel->n_slots, carousel_log_end(log));

		for (; number < last; number++)
			if (number >= end && is_of(&carousel_record_of(log, number)->entry,
						   &carousel->slots[slot].chunk))
				end = number + 1;
	}
	*ret_number = end - 1;
	return end > 0;
}

/* Will a living rank come to the entry soon, and is it in no slot? */
static bool is_awaited(const struct carousel *carousel, const struct carousel_log *log,
		       uint64_t number, uint64_t now_ns)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		if (log->at_slot[i] == number + 1)
			return false;
	for (uint32_t i = 0; i < log->n_ranks; i++) {
		uint64_t cursor = carousel->jobs[log->rank[i]].cursor;

		if (cursor <= number && number < cursor + carousel->n_slots &&
		    carousel_step_lives(carousel, log->rank[i], now_ns, NULL))
			return true;
	}
	return false;
}

/* Other groups may have the same chunk in their logs, and their ranks may wait for it, in another
 * variant. */
static void make_for_others(struct carousel *carousel, uint32_t slot, uint64_t now_ns)
{
	struct carousel_chunk *chunk = &carousel->slots[slot].chunk;
	uint64_t number;

	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		const struct carousel_member *member = &carousel->jobs[job];

		if (member->is_group && !carousel_variant_has(chunk, member) &&
		    find_entry(carousel, job, slot, &number) &&
		    is_awaited(carousel, member->log, number, now_ns))
			chunk->variants |= UINT32_C(1) << member->variant;
	}
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		struct carousel_member *member = &carousel->jobs[job];

		if (member->is_group && carousel_variant_has(chunk, member) &&
		    !member->log->at_slot[slot] && find_entry(carousel, job, slot, &number))
			carousel_log_hold(carousel, member->log, slot, number);
	}
}

/* Who is here, or was, may have seen it. */
static void note_seen_by_all(struct carousel *carousel, struct carousel_slot *s)
{
	s->again = true;
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		if (!carousel->jobs[job].used || carousel_is_rank(&carousel->jobs[job]))
			continue;
		bits_set(s->seen.word, job);
		s->uses[job] = UINT8_MAX;
	}
}

void carousel_plan_produce(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	struct carousel_log *log = carousel->jobs[job].log;
	struct carousel_record *record = carousel_record_of(log, carousel->jobs[job].cursor);
	struct carousel_slot *s = &carousel->slots[slot];
	struct carousel_chunk *chunk = &s->chunk;
	const struct entry_set set = carousel_log_set(carousel, log);

	chunk->nonce = record->entry.nonce;
	chunk->seed = record->entry.seed;
	chunk->count = record->entry.count;
	chunk->n_blocks = record->entry.n_blocks;
	entry_samples(&set, &record->entry, s->ids);
	chunk->ids = s->ids;
	chunk->blocks = NULL;
	chunk->is_private = !chunk->n_blocks;
	if (chunk->is_private) {
		s->owner = log->group;
	} else {
		chunk->scope = carousel->jobs[log->group].scope;
		carousel_population_ref(carousel, chunk->scope);
		chunk->blocks =
		    memcpy(s->blocks, record->entry.blocks, chunk->n_blocks * sizeof(*s->blocks));
	}
	carousel_log_hold(carousel, log, slot, carousel->jobs[job].cursor);
	bits_set(s->seen.word, log->group);
	s->uses[log->group] += s->uses[log->group] < UINT8_MAX;
	if (record->produced)
		note_seen_by_all(carousel, s);
	chunk->variants = carousel_variant_of_chunk(carousel, job, slot, now_ns);
	if (record->produced)
		make_for_others(carousel, slot, now_ns);
	record->produced = true;
}

/* planning ahead */

/* Must ranks of the group know more of the plan than there is? To the end of a step that one of them has begun; to the end of the
 * epoch, if no whole step comes behind that: where they leave the rest out, the last step ends with the epoch. */
static bool must_plan(const struct carousel *carousel, const struct carousel_member *group,
		      uint64_t now_ns)
{
	const uint64_t step = (uint64_t)group->ranks * group->batch;
	const uint64_t left = group->need_samples + group->n_tail;
	uint64_t step_end;

	if (!left || !group->log->n_ranks)
		return false;
	step_end = carousel_rank_foremost(carousel, group->log, now_ns) + step;
	return group->log->samples < step_end || group->log->samples + left < step_end + step;
}

static bool make_spare(struct carousel *carousel)
{
	struct carousel_slot *spare = &carousel->spare;

	if (!spare->ids)
		spare->ids = malloc(carousel->config.chunk * sizeof(*spare->ids));
	if (!spare->blocks)
		spare->blocks = malloc(carousel->config.chunk * sizeof(*spare->blocks));
	return spare->ids && spare->blocks;
}

/* order: the group first. */
static void plan_chunk(struct carousel *carousel, const uint32_t *order, uint32_t n,
		       uint32_t n_hungry, struct carousel_action *ret)
{
	struct carousel_member *group = &carousel->jobs[order[0]];
	struct carousel_slot *spare = &carousel->spare;

	spare->chunk = (struct carousel_chunk){
	    .nonce = carousel->config.first_nonce + carousel->instances++,
	    .seed = carousel->config.seed,
	};
	carousel->planned++;
	if (group->n_tail)
		carousel_deal_tail(carousel, order[0], spare);
	else
		carousel_deal_chunk(carousel, order, n, n_hungry, spare);
	carousel_log_add(carousel, group->log, &spare->chunk, false, ret);
	carousel_population_unref(carousel, spare->chunk.scope);
}

bool carousel_plan_ahead(struct carousel *carousel, uint32_t *order, uint32_t n, uint32_t n_hungry,
			 uint64_t now_ns, struct carousel_action *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t group = order[i];

		if (!carousel->jobs[group].is_group ||
		    !must_plan(carousel, &carousel->jobs[group], now_ns) || !make_spare(carousel))
			continue;
		memmove(order + 1, order, i * sizeof(*order));
		order[0] = group;
		plan_chunk(carousel, order, n, BASE_MAX(n_hungry, 1u), ret);
		return ret->kind != CAROUSEL_NONE;
	}
	return false;
}
