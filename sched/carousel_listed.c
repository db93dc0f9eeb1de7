/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs whose plan is a list. Everything about them is as with other fixed plans, but that an epoch's
 * list comes from the client, may be late, and is hostile: an entry is looked at when a chunk is made
 * of it, or compared with one, and nowhere else.
 *
 * A chunk has no name here. Two lists mean the same chunk when they have the same samples with the
 * same keys at the same places, so that is what is compared before one is granted, in as many steps as a chunk has samples;
 * a client's word for it is not asked for. Whether one is worth keeping is said by its first samples. A chunk made of a list has order PLAN_LIST: so no job
 * with a computed plan can be given what somebody else's list says.
 *
 * Where no op is random keys mean nothing, and are not compared.
 */

#include "sched/carousel_state.h"

static const struct listing *list_of(const struct carousel_member *member, uint64_t epoch)
{
	for (uint32_t i = 0; i < member->n_lists; i++)
		if (member->lists[i].epoch == epoch)
			return &member->lists[i].list;
	return NULL;
}

uint64_t carousel_listed_places(const struct carousel *carousel,
				const struct carousel_member *member)
{
	const struct listing *list;

	if (member->plan.order != PLAN_LIST)
		return carousel_population_count(carousel, member);
	list = list_of(member, member->epoch);
	return list ? list->places : 0;
}

bool carousel_listed_awaits(const struct carousel_member *member)
{
	return member->plan.order == PLAN_LIST && !list_of(member, member->epoch);
}

/* ---- lists come and go ---- */

static void begin_epoch(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];

	member->need_samples = carousel_fixed_left(carousel, member, member->start);
	member->given += member->need_samples;
	member->start = 0;
	carousel_need_look(carousel, job);
	carousel_need_advance(carousel, job);
}

int carousel_list(struct carousel *carousel, uint32_t job, uint64_t epoch,
		  const struct listing *list)
{
	struct carousel_member *member;
	bool is_awaited;

	if (job >= CAROUSEL_MAX_JOBS || carousel->jobs[job].plan.order != PLAN_LIST)
		return CAROUSEL_E_BAD;
	member = &carousel->jobs[job];
	is_awaited = member->epoch == epoch && carousel_listed_awaits(member);
	if (epoch < member->epoch || list_of(member, epoch) || !list->places)
		return CAROUSEL_E_BAD;
	if (is_awaited && member->start > list->places)
		return CAROUSEL_E_BAD;
	if (member->n_lists == CAROUSEL_MAX_LISTS)
		return CAROUSEL_E_FULL;
	member->lists[member->n_lists++] = (struct carousel_list){epoch, *list};
	if (is_awaited)
		begin_epoch(carousel, job);
	return 0;
}

uint64_t carousel_lists_over(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member;
	uint32_t kept = 0;

	if (job >= CAROUSEL_MAX_JOBS)
		return 0;
	member = &carousel->jobs[job];
	for (uint32_t i = 0; i < member->n_lists; i++)
		if (member->lists[i].epoch >= member->closed)
			member->lists[kept++] = member->lists[i];
	member->n_lists = kept;
	return member->closed;
}

/* ---- chunks ---- */

static struct listing_key key_of(const struct carousel_chunk *chunk, uint32_t i)
{
	return chunk->keys ? chunk->keys[i] : (struct listing_key){chunk->seed, chunk->nonce};
}

static bool is_same(const struct listing *list, uint64_t place, const struct carousel_chunk *chunk,
		    uint32_t i, bool is_random)
{
	uint64_t entry = list->entries[place];
	uint32_t number = listing_key_number(entry);
	struct listing_key key = key_of(chunk, i);

	if (listing_id(entry) != (uint64_t)chunk->ids[i] || number >= list->n_keys)
		return false;
	return !is_random ||
	       (list->keys[number].seed == key.seed && list->keys[number].nonce == key.nonce);
}

bool carousel_listed_has(const struct carousel *carousel, const struct carousel_member *member,
			 const struct carousel_chunk *chunk, uint32_t most)
{
	const struct listing *list = list_of(member, member->epoch);
	bool is_random = !carousel_variant_again(carousel, member);
	struct carousel_chunk ours = *chunk; /* its places by the job's slice */
	uint64_t places = carousel_fixed_places(carousel, member), place;

	if (!list || !chunk->order || chunk->place >= places ||
	    chunk->count > places - chunk->place)
		return false;
	carousel_fixed_slice(carousel, member, &ours.slice);
	for (uint32_t i = 0, run; i < BASE_MIN(chunk->count, most); i += run) {
		run = carousel_fixed_run(&ours, i, &place);
		for (uint32_t k = 0; k < run && i + k < most; k++)
			if (!is_same(list, place + k, chunk, i + k, is_random))
				return false;
	}
	return true;
}

bool carousel_listed_is_good(const struct carousel *carousel, const struct carousel_member *member)
{
	const struct listing *list = list_of(member, member->epoch);
	uint64_t places = carousel_fixed_places(carousel, member), place;
	struct carousel_chunk chunk = {.place = places - member->need_samples};

	carousel_fixed_slice(carousel, member, &chunk.slice);
	chunk.place -= chunk.place % carousel->config.chunk;
	chunk.count = (uint32_t)BASE_MIN(places - chunk.place, (uint64_t)carousel->config.chunk);
	for (uint32_t i = 0, run; i < chunk.count; i += run) {
		run = carousel_fixed_run(&chunk, i, &place);
		if (!listing_is_good(list, place, run, carousel->permutation.n))
			return false;
	}
	return true;
}

/* count entries, from place on, into the chunk from at on. */
static void fill(const struct listing *list, uint64_t place, uint32_t count,
		 struct carousel_slot *slot, uint32_t at)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t entry = list->entries[place + i];

		slot->ids[at + i] = (int64_t)listing_id(entry);
		slot->keys[at + i] = list->keys[listing_key_number(entry)];
	}
}

void carousel_listed_deal(const struct carousel_member *member, struct carousel_slot *slot)
{
	const struct listing *list = list_of(member, member->epoch);
	struct carousel_chunk *chunk = &slot->chunk;
	uint64_t place;

	for (uint32_t i = 0, run; i < chunk->count; i += run) {
		run = carousel_fixed_run(chunk, i, &place);
		fill(list, place, run, slot, i);
	}
	chunk->seed = slot->keys[0].seed;
	chunk->nonce = slot->keys[0].nonce;
	for (uint32_t i = 1; i < chunk->count; i++)
		if (slot->keys[i].seed != chunk->seed || slot->keys[i].nonce != chunk->nonce)
			chunk->keys = slot->keys;
}
