/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stores that rest, those whose user is not served now: how much of the disk they take, and making room
 * among them. */

#include "base/base.h"

struct prune_report {
	uint64_t resting;       /* bytes that are left of those that rest */
	uint64_t stores, bytes; /* that were deleted */
};

/* Is a domain of that key served now, or about to be? Then its store is not looked at. */
typedef bool (*prune_is_served_fn)(void *arg, const char *key);
/* Deletes stores below the folder that rest, those that were used longest ago first, until all that are
 * left take no more than `most` bytes. Waits for disks, and half a second for a store that another process
 * has open. 0 or negative errno: the folder cannot be looked at. */
int prune_stores(const char *folder, uint64_t most, prune_is_served_fn is_served, void *arg,
		 struct prune_report *ret);
