/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/scan/index_json.h"

#include "base/json.h"

/* Of what jansson makes of it: an object or a list, with its table, and a shard of the list that comes of it; a member or an item. */
#define NEST_BYTES 320
#define MORE_BYTES 64
#define LEAST_BYTES 8 /* of a shard: how many samples there are, and where the first one is */

uint64_t index_json_weight(const char *text, size_t size)
{
	uint64_t weight =
	    3 * (uint64_t)size; /* the text, its strings, and their copies in the list */

	for (size_t i = 0; i < size; i++)
		if (text[i] == '{' || text[i] == '[')
			weight += NEST_BYTES;
		else if (text[i] == ',')
			weight += MORE_BYTES;
	return weight;
}

int index_json_list(const struct json_in *list, index_json_fn one, struct index_json *ret,
		    struct diag *diag)
{
	const size_t n = json_in_count(list);

	*ret = (struct index_json){.shard = calloc(n ? n : 1, sizeof(*ret->shard))};
	if (!ret->shard)
		return -ENOMEM;
	while (ret->n < n) {
		const int r = one(json_in_item(list, ret->n), &ret->shard[ret->n], diag);

		if (r)
			return r;
		ret->n++;
	}
	return 0;
}

bool index_json_shard(const char *name, uint64_t bytes, uint64_t samples,
		      struct index_json_shard *ret)
{
	if (!name || !*name || *name == '.' || strchr(name, '/') || strlen(name) > 255 ||
	    bytes < LEAST_BYTES || samples == 0 || samples >= bytes / 4)
		return false;
	*ret = (struct index_json_shard){strdup(name), bytes, samples};
	return true;
}

void index_json_fini(struct index_json *index)
{
	for (size_t i = 0; i < index->n; i++)
		free(index->shard[i].name);
	free(index->shard);
	*index = (struct index_json){.n = 0};
}
