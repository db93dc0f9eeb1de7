/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A chunk of a plan, as it is reckoned with (plan/entry.h) and as shared memory and files say it (shmring/plan_log.h). */

#include <stdint.h>

struct entry {
	uint64_t epoch, place; /* of its first sample */
	uint64_t seed, nonce;
	uint32_t count;    /* samples */
	uint32_t n_blocks; /* 0: a tail, whose samples are listed */
	const uint32_t *blocks;
	const int64_t *ids; /* of a tail, in order */
};
