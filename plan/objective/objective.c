/* SPDX-License-Identifier: Apache-2.0 */

/* The table of kinds, and where each sample's draws begin. */

#include "plan/objective/objective.h"

#define OBJECTIVE_DOMAIN UINT64_C(0x6f61746f6b656e73)

static const struct objective_ops *objective_ops_of(const struct objective *objective)
{
	static const struct objective_ops *const ops[] = {
	    [OBJECTIVE_MASKED] = &objective_masked_ops,
	    [OBJECTIVE_SPANS] = &objective_spans_ops,
	    [OBJECTIVE_MIDDLE] = &objective_middle_ops,
	};

	return ops[objective->kind];
}

bool objective_shape(const struct objective *objective, const struct objective_from *from,
		     struct objective_shape *ret)
{
	return from->length > 0 && objective_ops_of(objective)->shape(objective, from, ret);
}

void objective_make(const struct objective *objective, const struct objective_from *from,
		    const struct objective_key *key, const int64_t *sample, int64_t *ret)
{
	struct philox first =
	    philox_block(key->seed ^ OBJECTIVE_DOMAIN, key->nonce, (uint64_t)key->sample);
	struct philox_seq seq;

	philox_seq_init(&seq, philox_half(&first, 0), philox_half(&first, 1) + key->epoch, 0);
	objective_ops_of(objective)->make(objective, from, &seq, sample, ret);
}
