/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The permutation of a seeded epoch is the network of permutation.c under another key: the version's, mixed
 * with (seed, epoch). So it is computed at any place in constant time, and nothing is stored for a
 * job but its position.
 */

#include "base/base.h"
#include "base/philox.h"
#include "plan/permutation.h"
#include "plan/plan.h"

/* Apart from each other and from every other use of (seed, epoch). */
#define PLAN_STREAM_KEY UINT64_C(0x6b65790000000000)   /* "key" */
#define PLAN_STREAM_NONCE UINT64_C(0x6c61700000000000) /* "lap" */

const char *plan_name(uint32_t order)
{
	static const char *const names[] = {
	    [PLAN_CAROUSEL] = "carousel",     [PLAN_ANY] = "any",   [PLAN_SEEDED] = "seeded",
	    [PLAN_SEQUENTIAL] = "sequential", [PLAN_LIST] = "list",
	};

	return order && order < BASE_ARRAY_LEN(names) ? names[order] : "none of ours";
}

void plan_init(struct plan *plan, enum plan_order order, uint64_t n, uint64_t seed,
	       const uint8_t version[32], bool is_deterministic)
{
	*plan = (struct plan){.order = order, .n = n, .seed = seed};
	plan->ignores_epoch = order == PLAN_SEQUENTIAL && is_deterministic;
	if (plan->ignores_epoch)
		plan->seed = 0;
	for (unsigned i = 0; i < sizeof(plan->version); i++)
		plan->version[i] = version[i];
}

uint64_t plan_nonce(const struct plan *plan, uint64_t epoch)
{
	struct philox block;

	if (plan->ignores_epoch)
		epoch = 0;
	block = philox_block(plan->seed, epoch, PLAN_STREAM_NONCE);
	return philox_half(&block, 0);
}

void plan_samples(const struct plan *plan, uint64_t epoch, uint64_t first, uint32_t count,
		  int64_t *ret_ids)
{
	struct permutation permutation;

	if (plan->order == PLAN_SEEDED) {
		struct philox block = philox_block(plan->seed, epoch, PLAN_STREAM_KEY);

		permutation_init(&permutation, plan->n, plan->version);
		permutation.key[0] ^= philox_half(&block, 0);
		permutation.key[1] ^= philox_half(&block, 1);
	}
	for (uint32_t i = 0; i < count; i++)
		ret_ids[i] = plan->order == PLAN_SEEDED
				 ? (int64_t)permutation_sample(&permutation, first + i)
				 : (int64_t)(first + i);
}
