/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The populations of a carousel's jobs, one copy of equal ones.
 *
 * A job's population is where its need begins. What else it decides rests on one rule: a chunk that a
 * job is granted is drawn by rules that would have drawn any other samples of the job's population as
 * well. So whoever sees a chunk sees a random one.
 *
 * A random split has nothing to do with what is in a sample: it is a need that began with fewer bits,
 * and chunks are made for it and others together as for any jobs. Any other population may be one
 * class. It gives the job a *scope*: chunks that are made for it hold samples of the scope alone, and
 * who has another scope is granted such a chunk only if the chunk's scope is within his own: a job of the
 * whole never sees one, as its samples are not drawn from all. The other way round a job may be granted
 * a chunk of a wider scope, in which its own samples lie as they fell; it passes over the rest. Nor
 * does its need have a say in what goes into a wider chunk, or which of them is given up
 * (carousel_deal.c, carousel_evict.c): a chunk without the class that it has had already is no random
 * one to the others. doc/decisions/080-populations.md has the argument at length.
 *
 * Scope 0 is the whole. A chunk keeps its scope while it is resident, also when the jobs of the scope
 * have gone.
 */

#include "base/bits.h"
#include "sched/carousel_state.h"
#include "plan/population.h"

/* ---- making one ---- */

#define STEP (UINT64_C(1) << 16) /* words, of one bitmap or of two: some tenths of a millisecond */

static void free_population(struct carousel_population *population)
{
	free(population->bits);
	free(population->need);
	free(population);
}

struct carousel_population *carousel_population_new(struct carousel *carousel, uint64_t *bits,
						    bool is_random)
{
	struct carousel_population *population = calloc(1, sizeof(*population));

	if (!population)
		return NULL;
	population->need = calloc(carousel->words, sizeof(*population->need));
	if (!population->need) {
		free(population);
		return NULL;
	}
	population->bits = bits;
	population->is_random = is_random;
	population->is_held = true;
	population->serial = ++carousel->populations;
	return population;
}

void carousel_population_end(struct carousel_population *population)
{
	if (!population)
		return;
	population->is_held = false;
	if (!population->users)
		free_population(population);
}

static uint64_t words_of(const struct carousel *carousel)
{
	return bits_words(carousel->permutation.n);
}

/* Is it known whether a is b, and whether one lies within the other? A random one is never a scope. */
static bool is_known(const struct carousel *carousel, const struct carousel_population *a,
		     uint32_t index)
{
	const struct carousel_population *b = carousel->population[index];
	const struct carousel_known *known = &a->known[index];

	if (!b || b == a || a->is_random != b->is_random)
		return true;
	if (known->serial != b->serial)
		return false;
	return known->at == words_of(carousel) || known->differ == (POPULATION_A | POPULATION_B) ||
	       (a->is_random && known->differ);
}

static void compare_some(const struct carousel *carousel, struct carousel_population *population,
			 uint32_t index)
{
	const struct carousel_population *other = carousel->population[index];
	struct carousel_known *known = &population->known[index];
	uint64_t words;

	if (known->serial != other->serial)
		*known = (struct carousel_known){.serial = other->serial};
	words = BASE_MIN(words_of(carousel) - known->at, STEP);
	known->differ |=
	    population_differ(population->bits + known->at, other->bits + known->at, words);
	known->at += words;
}

/* The first that it has not been compared with; 0: there is none. */
static uint32_t find_unknown(const struct carousel *carousel,
			     const struct carousel_population *population)
{
	for (uint32_t i = 1; i < CAROUSEL_SCOPES; i++)
		if (!is_known(carousel, population, i))
			return i;
	return 0;
}

bool carousel_population_is_ready(const struct carousel *carousel,
				  const struct carousel_population *population)
{
	return population->at == words_of(carousel) && !find_unknown(carousel, population);
}

bool carousel_population_step(const struct carousel *carousel,
			      struct carousel_population *population)
{
	uint32_t unknown;

	if (population->at < words_of(carousel)) {
		const uint64_t words = BASE_MIN(words_of(carousel) - population->at, STEP);
		const uint64_t blocks = 64 / carousel->permutation.block,
			       from = population->at * blocks;
		const uint64_t end = BASE_MIN(from + words * blocks, carousel->permutation.blocks);

		/* A word holds whole blocks. */
		population->count += bits_count(population->bits + population->at, 64 * words);
		population->blocks += population_need(&carousel->permutation, population->bits,
						      from, end, population->need);
		population->at += words;
		return false;
	}
	unknown = find_unknown(carousel, population);
	if (unknown)
		compare_some(carousel, population, unknown);
	return !unknown;
}

const uint64_t *carousel_population_blocks(const struct carousel_population *population,
					   uint64_t *ret_samples)
{
	*ret_samples = population->count;
	return population->need;
}

/* ---- the table ---- */

void carousel_population_unref(struct carousel *carousel, uint32_t index)
{
	struct carousel_population *population = carousel->population[index];

	if (!population || --population->users)
		return;
	carousel->population[index] = NULL;
	if (!population->is_held)
		free_population(population);
}

void carousel_population_ref(struct carousel *carousel, uint32_t index)
{
	if (carousel->population[index])
		carousel->population[index]->users++;
}

static bool is_equal(const struct carousel *carousel, const struct carousel_population *population,
		     uint32_t index)
{
	const struct carousel_population *other = carousel->population[index];

	return other == population || (other && other->is_random == population->is_random &&
				       !population->known[index].differ);
}

/* Which scopes the new one lies within, and which lie within it. */
static void relate(struct carousel *carousel, uint32_t index)
{
	struct carousel_population *a = carousel->population[index];

	a->within = (struct carousel_scopes){{1}}; /* the whole */
	for (uint32_t i = 1; i < CAROUSEL_SCOPES && !a->is_random; i++) {
		struct carousel_population *b = carousel->population[i];

		if (!b || b->is_random || a == b)
			continue;
		if (!(a->known[i].differ & POPULATION_A))
			bits_set(a->within.word, i);
		if (!(a->known[i].differ & POPULATION_B))
			bits_set(b->within.word, index);
		else
			bits_clear(b->within.word, index); /* of one that was here before */
	}
}

static bool has_bits_past_end(const struct carousel *carousel, const uint64_t *bits)
{
	const unsigned rest = carousel->permutation.n % 64;

	return rest && bits[words_of(carousel) - 1] >> rest;
}

static int enter(struct carousel *carousel, struct carousel_population *population,
		 uint32_t *ret_index)
{
	uint32_t unused = 0, i = 1;

	while (!carousel_population_step(carousel, population))
		continue; /* nothing, if it is ready */
	if (has_bits_past_end(carousel, population->bits) || !population->count)
		return CAROUSEL_E_BAD;
	for (; i < CAROUSEL_SCOPES && !is_equal(carousel, population, i); i++)
		unused = !carousel->population[i] && !unused ? i : unused;
	if (i == CAROUSEL_SCOPES) {
		if (!unused)
			return CAROUSEL_E_FULL;
		i = unused;
		carousel->population[i] = population;
		relate(carousel, i);
	}
	carousel->population[i]->users++;
	*ret_index = i;
	return 0;
}

static int enter_copy(struct carousel *carousel, const struct carousel_join *join,
		      uint32_t *ret_index)
{
	const uint64_t bytes = words_of(carousel) * sizeof(uint64_t);
	uint64_t *bits = malloc(bytes);
	struct carousel_population *population =
	    bits ? carousel_population_new(carousel, bits, join->is_random) : NULL;
	int r;

	if (!population) {
		free(bits);
		return -ENOMEM;
	}
	memcpy(bits, join->population, bytes);
	r = enter(carousel, population, ret_index);
	carousel_population_end(population);
	return r;
}

int carousel_population_join(struct carousel *carousel, const struct carousel_join *join,
			     uint32_t *ret_index)
{
	*ret_index = 0;
	if (!join->population)
		return 0;
	if (!carousel->permutation.n)
		return CAROUSEL_E_BAD;
	if (join->made)
		return enter(carousel, join->made, ret_index);
	return enter_copy(carousel, join, ret_index);
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

	return population ? population->count : carousel->permutation.n;
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
	       bits_test(carousel->population[inner]->within.word, outer);
}

/* Members of a block that a chunk of the scope holds. */
uint32_t carousel_population_block(const struct carousel *carousel, uint32_t scope, uint64_t block)
{
	if (!carousel->population[scope])
		return permutation_block_size(&carousel->permutation, block);
	return population_of_block(&carousel->permutation, carousel->population[scope]->bits,
				   block);
}

uint32_t carousel_population_of_chunk(const struct carousel *carousel,
				      const struct carousel_member *member,
				      const struct carousel_chunk *chunk)
{
	uint32_t samples = 0;

	if (chunk->is_private || chunk->order || chunk->scope == member->scope)
		return chunk->count;
	for (uint32_t i = 0; i < chunk->n_blocks; i++)
		samples += carousel_population_block(carousel, member->scope, chunk->blocks[i]);
	return samples;
}

uint32_t carousel_population_end_in_chunk(const struct carousel *carousel,
					  const struct carousel_member *member,
					  const struct carousel_chunk *chunk)
{
	const uint64_t *bits = carousel_population_bits(carousel, member->scope);
	uint32_t end = chunk->count;

	if (!bits || chunk->is_private || chunk->order || chunk->scope == member->scope)
		return end;
	while (end > 0 && !bits_test(bits, permutation_position(&carousel->permutation,
								(uint64_t)chunk->ids[end - 1])))
		end--;
	return end;
}

bool carousel_population_covers(const struct carousel *carousel,
				const struct carousel_member *member,
				const struct carousel_chunk *chunk)
{
	const struct carousel_population *population = carousel->population[member->scope];
	bool any = false;

	for (uint32_t i = 0; i < chunk->n_blocks; i++) {
		if (!bits_test(population->need, chunk->blocks[i]))
			continue;
		if (!bits_test(member->need, chunk->blocks[i]))
			return false;
		any = true;
	}
	return any;
}

/* Is the block one of the job's, and not only of the chunk's? */
bool carousel_population_has(const struct carousel *carousel, const struct carousel_member *member,
			     uint32_t block)
{
	const struct carousel_population *population = carousel->population[member->population];

	return !population || bits_test(population->need, block);
}
