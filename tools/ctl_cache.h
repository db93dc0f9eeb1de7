/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* access-ctl cache: what is kept of samples, listed, pinned, dropped and checked. */

#include "base/json.h"
#include "tools/ctl.h"

struct ctl_cache {
	const char *user; /* a uid, or "everybody"; NULL: the one who asks */
	bool json;        /* of ls: as accessd says it */
};

/* words: ls | pin GROUP | unpin GROUP | drop GROUP | forget DATASET | verify. The exit status; diag when not 0. */
int ctl_cache_run(const struct ctl_cache *cache, const char *socket, uint64_t until_ns,
		  char **words, unsigned n, struct diag *diag);
/* The list as a table. */
void ctl_cache_draw(const struct json_in *list, FILE *out);
/* Was a group of the list made of that data set, with whatever options? Paths that lead to the same count as one; what has no note
 * is of none. */
bool ctl_cache_is_of(const struct json_in *group, const char *dataset);
/* The id of the one group whose id begins so: 0, or CTL_E_NONE with diag. */
int ctl_cache_find(const struct json_in *list, const char *prefix, uint8_t ret[32],
		   struct diag *diag);
