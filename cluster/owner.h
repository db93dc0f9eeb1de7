/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose a sample is: of the nodes that share a group's values, the one that keeps that of this sample for all. A
 * function of names and weights, in integers: each node computes the same.
 */

#include <stdint.h>

#include "base/hash.h"

struct owner_node {
	uint64_t id;     /* of no other node */
	uint32_t weight; /* its share is this among the sum of all; 0 counts as 1 */
};

#define OWNER_NONE UINT32_MAX

/* Its place in nodes, of which there are n, at least 1; in whatever order. *ret_next: whose it would be without that
 * one, and was before that one came; OWNER_NONE: there is no other. */
unsigned owner_of(const struct hash_id *group, uint64_t sample, const struct owner_node *nodes,
		  unsigned n, unsigned *ret_next);
