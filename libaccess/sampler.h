/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which samples an epoch has, as the caller said it in struct oa_sampler: checked, copied, and
 * named by a hash that the token carries.
 */

#include "libaccess/libaccess.h"
#include "plan/token.h"

struct sampler { /* owned copies; all zero: all samples, once each */
	int64_t *ids;
	uint64_t n_ids;
	char **classes;
	uint32_t n_classes;
	double from, to; /* 0, 0: no split */
	uint64_t split_seed;
	double *weights;
	uint64_t n_weights, samples;
	uint32_t flags, window;
	int64_t *blocks; /* NULL: none */
	uint64_t n_blocks;
	int32_t *keep, *drop; /* classes, of the pipeline's filter; NULL: all, none */
	uint32_t n_keep, n_drop;
	uint8_t hash[TOKEN_SAMPLER]; /* zeros: it leaves all as it is */
};

/* Checks sampler, record, replay and reuse against each other and the order, as far as can be said
 * before the data set is open. 0, or OA_E_INVALID, OA_E_VERSION with diag naming the member. */
int sampler_check(const struct oa_options *options, struct diag *diag);
/* from: checked, or NULL. 0 or -ENOMEM; sampler_fini() in either case. */
int sampler_init(struct sampler *sampler, const struct oa_sampler *from);
void sampler_fini(struct sampler *sampler);
/* The classes that the pipeline's filter names: taken, with *keep and *drop set NULL. 0 or -ENOMEM. */
int sampler_set_filter(struct sampler *sampler, int32_t **keep, uint32_t n_keep, int32_t **drop,
		       uint32_t n_drop);
/* Does it say anything at all? */
bool sampler_is_used(const struct sampler *sampler);
