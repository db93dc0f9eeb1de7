/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose a sample is: of the nodes that share values, or among which a job's samples are spread, the one that keeps that of
 * this sample for all. A function of names and weights, in integers: each node computes the same.
 */

#include <stdint.h>

struct owner_node {
	uint64_t id;     /* of no other node */
	uint32_t weight; /* its share is this among the sum of all; 0 counts as 1 */
};

#define OWNER_NONE UINT32_MAX
#define OWNER_SPREAD 16 /* nodes of a spread at most */

/* Its place in nodes, of which there are n, at least 1; in whatever order. key: of what the sample is of, the first 8 bytes
 * of a hash. *ret_next: whose it would be without that one, and was before that one came; OWNER_NONE: there is no other. */
unsigned owner_of(uint64_t key, uint64_t sample, const struct owner_node *nodes, unsigned n,
		  unsigned *ret_next);
/* The same among the nodes 0 .. n - 1 of a job, n at most OWNER_SPREAD, all of one weight. key: of the data set's version. */
unsigned owner_of_spread(uint64_t key, uint64_t sample, unsigned n);
