/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The populations of a carousel's jobs, one copy of equal ones.
 *
 * A job's population is where its need begins. What else it decides rests on one rule: a hand that a
 * job is granted is drawn by rules that would have drawn any other samples of the job's population as
 * well. So whoever sees a hand sees a random one.
 *
 * A random split has nothing to do with what is in a sample: it is a need that began with fewer bits,
 * and hands are made for it and others together as for any jobs. Any other population may be one
 * class. It gives the job a *scope*: hands that are made for it hold samples of the scope alone, and
 * who has another scope is granted such a hand only if the hand's scope is within his own: a job of the
 * whole never sees one, as its samples are not drawn from all. The other way round a job may be granted
 * a hand of a wider scope, in which its own samples lie as they fell; it passes over the rest. Nor
 * does its need have a say in what goes into a wider hand, or which of them is given up
 * (carousel_deal.c, carousel_evict.c): a hand without the class that it has had already is no random
 * one to the others. doc/decisions/080-populations.md has the argument at length.
 *
 * Scope 0 is the whole. A hand keeps its scope while it is resident, also when the jobs of the scope
 * have gone.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sched/carousel_state.h"
#include "sched/population.h"

/* ---- the table ---- */

static void free_population(struct carousel_population *population)
{
	if (population) {
		free(population->bits);
		free(population->need);
	}
	free(population);
}

void carousel_population_unref(struct carousel *carousel, uint32_t index)
{
	struct carousel_population *population = carousel->population[index];

	if (!population || --population->users)
		return;
	free_population(population);
	carousel->population[index] = NULL;
}

void carousel_population_ref(struct carousel *carousel, uint32_t index)
{
	if (carousel->population[index])
		carousel->population[index]->users++;
}

static uint64_t bytes_of(const struct carousel *carousel)
{
	return bits_words(carousel->deal.n) * sizeof(uint64_t);
}

static bool is_equal(const struct carousel *carousel, const struct carousel_population *population,
		     const struct carousel_join *join)
{
	return population && population->is_random == join->is_random &&
	       memcmp(population->bits, join->population, bytes_of(carousel)) == 0;
}

static struct carousel_population *make(const struct carousel *carousel,
					const struct carousel_join *join)
{
	struct carousel_population *population = calloc(1, sizeof(*population));

	if (!population)
		return NULL;
	population->is_random = join->is_random;
	population->bits = malloc(bytes_of(carousel));
	population->need = calloc(carousel->words, sizeof(*population->need));
	if (!population->bits || !population->need) {
		free_population(population);
		return NULL;
	}
	memcpy(population->bits, join->population, bytes_of(carousel));
	population->count = bits_count(population->bits, carousel->deal.n);
	population->grains = population_need(&carousel->deal, population->bits, population->need);
	return population;
}

/* Which scopes the new one lies within, and which lie within it. */
static void relate(struct carousel *carousel, uint32_t index)
{
	const struct carousel_population *a = carousel->population[index];

	carousel->population[index]->within = (struct carousel_scopes){{1}}; /* the whole */
	for (uint32_t i = 1; i < CAROUSEL_SCOPES && !a->is_random; i++) {
		struct carousel_population *b = carousel->population[i];

		if (!b || b->is_random)
			continue;
		if (population_is_within(&carousel->deal, a->bits, b->bits))
			carousel_scopes_add(&carousel->population[index]->within, i);
		if (population_is_within(&carousel->deal, b->bits, a->bits))
			carousel_scopes_add(&b->within, index);
		else
			carousel_scopes_remove(&b->within, index); /* of one that was here before */
	}
}

int carousel_population_join(struct carousel *carousel, const struct carousel_join *join,
			     uint32_t *ret_index)
{
	uint32_t unused = 0;
	unsigned rest = carousel->deal.n % 64;

	*ret_index = 0;
	if (!join->population)
		return 0;
	if (!carousel->deal.n ||
	    (rest && join->population[bits_words(carousel->deal.n) - 1] >> rest))
		return CAROUSEL_E_BAD;
	for (uint32_t i = 1; i < CAROUSEL_SCOPES; i++) {
		if (is_equal(carousel, carousel->population[i], join)) {
			carousel->population[i]->users++;
			*ret_index = i;
			return 0;
		}
		unused = !carousel->population[i] && !unused ? i : unused;
	}
	if (!unused)
		return CAROUSEL_E_FULL;
	carousel->population[unused] = make(carousel, join);
	if (!carousel->population[unused])
		return -ENOMEM;
	carousel->population[unused]->users = 1;
	relate(carousel, unused);
	*ret_index = unused;
	return carousel->population[unused]->count ? 0 : CAROUSEL_E_BAD;
}

/* ---- what it means for a job ---- */

const uint64_t *carousel_population_bits(const struct carousel *carousel, uint32_t index)
{
	return carousel->population[index] ? carousel->population[index]->bits : NULL;
}

uint64_t carousel_population_count(const struct carousel *carousel,
				   const struct carousel_member *member)
{
	const struct carousel_population *population = carousel->population[member->population];

	return population ? population->count : carousel->deal.n;
}

bool carousel_population_has_need(const struct carousel *carousel,
				  const struct carousel_member *member)
{
	const struct carousel_population *population = carousel->population[member->population];

	for (size_t i = 0; population && i < carousel->words; i++)
		if (member->need[i] & ~population->need[i])
			return false;
	return true;
}

bool carousel_population_is_within(const struct carousel *carousel, uint32_t inner, uint32_t outer)
{
	if (inner == outer || !outer)
		return true;
	return carousel->population[inner] &&
	       carousel_scopes_has(&carousel->population[inner]->within, outer);
}

/* Members of a grain that a hand of the scope holds. */
uint32_t carousel_population_grain(const struct carousel *carousel, uint32_t scope, uint64_t grain)
{
	if (!carousel->population[scope])
		return deal_grain_size(&carousel->deal, grain);
	return population_of_grain(&carousel->deal, carousel->population[scope]->bits, grain);
}

uint32_t carousel_population_of_hand(const struct carousel *carousel,
				     const struct carousel_member *member,
				     const struct carousel_hand *hand)
{
	uint32_t samples = 0;

	if (hand->is_private || hand->order || hand->scope == member->scope)
		return hand->count;
	for (uint32_t i = 0; i < hand->n_grains; i++)
		samples += carousel_population_grain(carousel, member->scope, hand->grains[i]);
	return samples;
}

bool carousel_population_covers(const struct carousel *carousel,
				const struct carousel_member *member,
				const struct carousel_hand *hand)
{
	const struct carousel_population *population = carousel->population[member->scope];
	bool any = false;

	for (uint32_t i = 0; i < hand->n_grains; i++) {
		if (!bits_test(population->need, hand->grains[i]))
			continue;
		if (!bits_test(member->need, hand->grains[i]))
			return false;
		any = true;
	}
	return any;
}

/* Is the grain one of the job's, and not only of the hand's? */
bool carousel_population_has(const struct carousel *carousel, const struct carousel_member *member,
			     uint32_t grain)
{
	const struct carousel_population *population = carousel->population[member->population];

	return !population || bits_test(population->need, grain);
}

bool carousel_population_has_id(const struct carousel *carousel,
				const struct carousel_member *member, uint64_t id)
{
	const uint64_t *bits = carousel_population_bits(carousel, member->population);

	return !bits || bits_test(bits, deal_position(&carousel->deal, id));
}
