/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fixed plan (DESIGN.md section 3): which sample is at which place of an epoch, computed from the
 * dataset version, the order, the seed and the epoch's number, and from nothing else: not from the
 * size of batches or chunks, not from who shares, not from when it is asked. So a job gets the same
 * batches alone, beside others, after a restart and on another machine.
 *
 *   seeded       a keyed permutation of the samples, another one each epoch
 *   sequential   0, 1, 2, ...
 *
 * Chunk h of an epoch is the places hC .. hC + C - 1 in this order. Random ops are functions of
 * (seed, nonce, sample, op), and the nonce is plan_nonce(): of the seed and the epoch. Frozen by known
 * answers, as tokens name places of a plan.
 */

#include <stdbool.h>
#include <stdint.h>

/* Frozen: in tokens, messages and the public header. */
enum plan_order {
	PLAN_CAROUSEL = 1,
	PLAN_ANY = 2,
	PLAN_SEEDED = 3,
	PLAN_SEQUENTIAL = 4,
	PLAN_LIST = 5, /* listing.h: given place by place, as a recorded plan is */
};

struct plan {
	enum plan_order order; /* PLAN_SEEDED or PLAN_SEQUENTIAL */
	uint64_t n, seed;
	uint8_t version[32];
	bool ignores_epoch; /* neither order nor pixels depend on seed and epoch */
};

static inline bool plan_is_fixed(uint32_t order)
{
	return order == PLAN_SEEDED || order == PLAN_SEQUENTIAL || order == PLAN_LIST;
}
/* "carousel", "any", "seeded", "sequential", "list"; "none of ours" otherwise. */
const char *plan_name(uint32_t order);
/* is_deterministic: the pipeline has no random op. Where neither order nor pixels depend on seed
 * and epoch, they are taken as 0, so that all jobs and epochs mean the same instances. */
void plan_init(struct plan *plan, enum plan_order order, uint64_t n, uint64_t seed,
	       const uint8_t version[32], bool is_deterministic);
/* Bytes of an id where one of n samples is stored. */
static inline unsigned plan_id_bytes(uint64_t n)
{
	return n <= UINT64_C(1) << 32 ? 4 : 8;
}
uint64_t plan_nonce(const struct plan *plan, uint64_t epoch);
/* The samples at places first .. first + count - 1; first + count <= n. */
void plan_samples(const struct plan *plan, uint64_t epoch, uint64_t first, uint32_t count,
		  int64_t *ret_ids);
