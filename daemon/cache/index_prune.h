/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stored indexes: how much of the disk they take, and making room among them. */

#include "base/base.h"
#include "base/hash.h"

#define INDEX_PRUNE_NAME_MAX 256

struct index_prune_rule {
	uint64_t size, most; /* bytes of all; of one user's */
};

/* The name of a file of the domain of that key. `temporary`: one that is being written; is_old: one that is
 * no index any more, and perhaps in use. */
void index_prune_name(const char *key, const struct hash_id *id, char ret[INDEX_PRUNE_NAME_MAX]);
void index_prune_temporary(const char *key, uint64_t number, bool is_old,
			   char ret[INDEX_PRUNE_NAME_MAX]);
/* Deletes files in the folder until there is room for `bytes` more of that domain's user: what is left of writers
 * that died, then what was used longest ago, of his own until he has his share, of all until they fit. What is
 * in use stays. Waits for the disk. 0; -ENOSPC: there is no room; negative errno. */
int index_prune(const char *folder, const char *key, const struct index_prune_rule *rule,
		uint64_t bytes);
/* Takes the file for use, so that it is not deleted: as long as the descriptor is open, also in other
 * processes. false: it is being deleted. */
bool index_prune_hold(int fd);
