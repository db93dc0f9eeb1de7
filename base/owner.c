/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Weighted rendezvous hashing (D. G. Thaler, C. V. Ravishankar, "Using name-based mappings to increase hit rates",
 * IEEE/ACM ToN 6, 1998; by exponential waits for weights, as in plan/weigh.c): each node waits for a sample
 * -log(u) / weight, u uniform, a function of the node, the key and the sample; who waits least has it. So a node that
 * comes takes its share from all others alike and moves nothing else, and one that goes gives back no more than that.
 *
 * Logarithms are integers and waits are compared as products, so that not even the last bit differs between machines.
 * Where all weights are one, who waits least is who has the largest u, and no logarithm is taken: accessd asks so for each
 * place of a spread (plan/ranks/spread.h).
 */

#include "base/owner.h"

#include "base/base.h"
#include "base/bits.h"

#define OWNER_BITS 32                           /* of a logarithm, behind its point */
#define OWNER_STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / phi */

struct wait {
	uint64_t log, random;
	uint32_t weight;
	uint64_t id;
};

/* Does a come before b? log / weight, as products of 38 and 32 bits; what is even there the draw decides, then names. */
static bool is_before(const struct wait *a, const struct wait *b)
{
	const unsigned __int128 of_a = (unsigned __int128)a->log * b->weight;
	const unsigned __int128 of_b = (unsigned __int128)b->log * a->weight;

	if (of_a != of_b)
		return of_a < of_b;
	return a->random != b->random ? a->random > b->random : a->id < b->id;
}

/* The same for all draws of a sample. */
static uint64_t place_of(uint64_t key, uint64_t sample)
{
	return bits_mix(key + bits_mix(sample));
}

static uint64_t draw(uint64_t place, uint64_t node)
{
	return bits_mix(place + node * OWNER_STEP);
}

unsigned owner_of(uint64_t key, uint64_t sample, const struct owner_node *nodes, unsigned n,
		  unsigned *ret_next)
{
	const uint64_t place = place_of(key, sample);
	unsigned best = OWNER_NONE, next = OWNER_NONE;
	struct wait first = {.log = 0}, second = first;

	for (unsigned i = 0; i < n; i++) {
		const uint64_t random = draw(place, nodes[i].id);
		const struct wait wait = {.log = bits_minus_log2(random, OWNER_BITS),
					  .random = random,
					  .weight = BASE_MAX(nodes[i].weight, 1u),
					  .id = nodes[i].id};

		if (best == OWNER_NONE || is_before(&wait, &first)) {
			next = best;
			second = first;
			best = i;
			first = wait;
		} else if (next == OWNER_NONE || is_before(&wait, &second)) {
			next = i;
			second = wait;
		}
	}
	*ret_next = next;
	return best;
}

unsigned owner_of_spread(uint64_t key, uint64_t sample, unsigned n)
{
	const uint64_t place = place_of(key, sample);
	uint64_t most = draw(place, 0);
	unsigned owner = 0;

	for (unsigned i = 1; i < n; i++) {
		const uint64_t random = draw(place, i);

		if (random > most) {
			most = random;
			owner = i;
		}
	}
	return owner;
}
