/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client computes which samples it wants; here it is only copied, counted and compared with what others want, n / 8
 * bytes once an open, from a memory that must be sealed and whole (shmring/region.h): a descriptor of anything
 * else could make accessd wait, and what changes afterwards could make it wrong.
 *
 * Whether a part is a random split is the one thing that must not be believed: chunks for others are
 * composed from the needs of such jobs, too (sched/carousel_population.c). So some blocks, drawn here, are
 * compared with what the split says. What differs in one block of a hundred is found by 256 of them nine
 * times in ten; what differs in fewer cannot be seen in the orders of others.
 */
#include "daemon/net/members.h"

#include "base/bits.h"
#include "base/hash.h"
#include "daemon/net/request.h"
#include "libaccess/libaccess.h"
#include "sched/carousel.h"
#include "plan/population.h"
#include "shmring/region.h"

#define PROBES 256
#define MEMBERS_STEP (UINT64_C(1) << 20) /* bytes: a fifth of a millisecond */

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, OA_E_INVALID,
			 "the part of the dataset that the job asks for: %s; update libaccess",
			 what);
}

static bool is_split(const struct request *request, const struct permutation *permutation,
		     const uint8_t version[32], const uint64_t *bits)
{
	uint64_t chosen[PROBES];

	if (base_random(chosen, sizeof(chosen)))
		return false;
	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t block = chosen[i] % permutation->blocks;
		uint32_t wanted =
		    population_has_block(permutation, version, &request->part.split, block)
			? permutation_block_size(permutation, block)
			: 0;

		if (population_of_block(permutation, bits, block) != wanted)
			return false;
	}
	return true;
}

int members_begin(struct members *members, const struct request *request,
		  const struct carousel *carousel, const uint8_t *version, struct diag *diag)
{
	const struct permutation *permutation = carousel_permutation(carousel);
	const uint64_t bytes = bits_words(permutation->n) * sizeof(uint64_t);

	*members = (struct members){.bits = NULL};
	if (request->part.fd < 0)
		return 0;
	if (memcmp(request->part.version, version, sizeof(request->part.version)) != 0)
		return diag_fail(
		    diag, OA_E_DATASET,
		    "the dataset changed between the look at it and the open: open again");
	if (region_attach_foreign(request->part.fd, REGION_IMMUTABLE, bytes, bytes, &members->from,
				  &members->bytes))
		return bad(diag, "its bitmap is no sealed memory of the right size");
	members->bits = malloc(bytes);
	if (members->bits)
		return 0;
	return diag_fail(diag, OA_E_MEMORY,
			 "out of memory for the part of the dataset that the job asks for");
}

static void let_go(struct members *members)
{
	region_unmap(members->from, members->bytes);
	members->from = NULL;
}

bool members_step(struct members *members)
{
	uint64_t bytes = BASE_MIN(members->bytes - members->at, MEMBERS_STEP);
	uint64_t *to, sums[2] = {members->sum};

	if (!bytes) {
		let_go(members);
		return true;
	}
	to = members->bits + members->at / sizeof(*to);
	memcpy(to, (const uint8_t *)members->from + members->at, bytes);
	members->count += bits_count(to, 8 * bytes);
	sums[1] = hash_checksum(to, bytes);
	members->sum = members->at ? hash_checksum(sums, sizeof(sums)) : sums[1];
	members->at += bytes;
	return false;
}

int members_check(const struct members *members, const struct request *request,
		  const struct carousel *carousel, const uint8_t *version, struct diag *diag)
{
	const struct permutation *permutation = carousel_permutation(carousel);
	const uint64_t *bits = members->bits;

	if (!bits)
		return 0;
	if (permutation->n % 64 && bits[bits_words(permutation->n) - 1] >> (permutation->n % 64))
		return bad(diag, "its bitmap has bits past the end");
	if (!members->count)
		return bad(diag, "nobody is in it");
	if (population_is_split(&request->part.split) &&
	    !is_split(request, permutation, version, bits))
		return bad(diag, "it is not the split that it is said to be");
	return 0;
}

bool members_are_settled(const struct members *members, const struct carousel *carousel)
{
	return !members->bits ||
	       (members->population && carousel_population_is_ready(carousel, members->population));
}

bool members_settle(struct members *members, const struct request *request,
		    struct carousel *carousel, bool *ret_failed)
{
	if (!members->bits)
		return true;
	if (!members->population)
		members->population = carousel_population_new(
		    carousel, members->bits, population_is_split(&request->part.split));
	*ret_failed = !members->population;
	return members->population && carousel_population_step(carousel, members->population);
}

void members_join(const struct members *members, const struct request *request,
		  struct carousel_join *join)
{
	if (!members->bits)
		return;
	join->population = members->bits;
	join->made = members->population;
	join->is_random = population_is_split(&request->part.split);
	join->is_narrow = request->ranks > 1;
}

void members_fini(struct members *members)
{
	let_go(members);
	if (members->population)
		carousel_population_end(members->population);
	else
		free(members->bits);
	members->population = NULL;
	members->bits = NULL;
}
