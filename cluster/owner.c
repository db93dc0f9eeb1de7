/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Weighted rendezvous hashing (D. G. Thaler, C. V. Ravishankar, "Using name-based mappings to increase hit rates",
 * IEEE/ACM ToN 6, 1998; by exponential waits for weights, as in sched/weigh.c): each node waits for a sample
 * -log(u) / weight, u uniform, a function of the node, the group and the sample; who waits least has it. So a node that
 * comes takes its share from all others alike and moves nothing else, and one that goes gives back no more than that.
 *
 * Logarithms are integers and waits are compared as products, so that not even the last bit differs between machines.
 */

#include "cluster/owner.h"

#include "base/base.h"
#include "base/bits.h"
#include "base/little.h"
#include "base/philox.h"

#define OWNER_BITS 32 /* of a logarithm, behind its point */

static uint64_t log_of(uint64_t key, uint64_t sample, uint64_t node)
{
	const struct philox block = philox_block(key, sample, node);

	return bits_minus_log2((uint64_t)block.word[1] << 32 | block.word[0], OWNER_BITS);
}

struct wait {
	uint64_t log;
	uint32_t weight;
	uint64_t id;
};

/* Does a come before b? log / weight, as products of 38 and 32 bits; names decide what is even. */
static bool is_before(const struct wait *a, const struct wait *b)
{
	const unsigned __int128 of_a = (unsigned __int128)a->log * b->weight;
	const unsigned __int128 of_b = (unsigned __int128)b->log * a->weight;

	return of_a != of_b ? of_a < of_b : a->id < b->id;
}

unsigned owner_of(const struct hash_id *group, uint64_t sample, const struct owner_node *nodes,
		  unsigned n, unsigned *ret_next)
{
	const uint64_t key = little_64(group->bytes);
	unsigned best = OWNER_NONE, next = OWNER_NONE;
	struct wait first = {.log = 0}, second = first;

	for (unsigned i = 0; i < n; i++) {
		const struct wait wait = {.log = log_of(key, sample, nodes[i].id),
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
