/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An index.json beside shards, which names them and says how large they are: MDS' (mds.h), LitData's (litdata.h). Pure; the text may be any. */

#include "base/base.h"

struct json_in;

#define INDEX_JSON "index.json"
#define INDEX_JSON_MOST_TEXT (UINT64_C(1) << 26) /* some 50000 shards of MDS' */

enum {
	INDEX_JSON_E_NONE = 1, /* it is of another kind */
	INDEX_JSON_E_BAD = 2,  /* it cannot be used; diag says why, and how to mend it */
};

struct index_json_shard {
	char *name; /* owned; in the folder itself */
	uint64_t bytes, samples;
};
struct index_json {
	size_t n;
	struct index_json_shard *shard; /* owned, in the order of the text */
};
/* The memory of the text, of what parsing makes of it, and of the list of shards that comes of it, at most. */
uint64_t index_json_weight(const char *text, size_t size);
/* Of one shard: fills ret, whose name is then owned. 0, INDEX_JSON_E_BAD with diag, -ENOMEM. */
typedef int (*index_json_fn)(const struct json_in *shard, struct index_json_shard *ret,
			     struct diag *diag);
/* Of each of a list; what is in ret is to be freed in any case. 0, or what a call returned. */
int index_json_list(const struct json_in *list, index_json_fn one, struct index_json *ret,
		    struct diag *diag);
/* Its copy in ret, if it is the name of a file of the folder itself and so many samples may be in so many bytes. false: it is not. ret->name
 * NULL: there is no memory. */
bool index_json_shard(const char *name, uint64_t bytes, uint64_t samples,
		      struct index_json_shard *ret);
void index_json_fini(struct index_json *index);
