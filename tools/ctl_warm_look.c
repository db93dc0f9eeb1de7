/* SPDX-License-Identifier: Apache-2.0 */

/* What accessd's status says of a job that warms, or lends. */

#include "tools/ctl_warm.h"

#include <string.h>

static uint64_t warm_u64(const struct json_in *in, const char *key)
{
	return json_in_u64(json_in_member(in, key), 0);
}

static const struct json_in *warm_find(const struct json_in *list, const char *key,
				       const char *text, uint64_t number)
{
	for (size_t i = 0; i < json_in_count(list); i++) {
		const struct json_in *item = json_in_item(list, i);

		if (text ? strcmp(json_in_string(json_in_member(item, key), ""), text) == 0
			 : json_in_u64(json_in_member(item, key), UINT64_MAX) == number)
			return item;
	}
	return NULL;
}

static void warm_read_stores(const struct json_in *stores, struct ctl_warm_look *ret)
{
	for (size_t i = 0; i < json_in_count(stores); i++) {
		uint64_t used = warm_u64(json_in_item(stores, i), "used");
		uint64_t limit = warm_u64(json_in_item(stores, i), "limit");

		if (limit == 0 || (ret->limit && (double)used / (double)limit <=
						     (double)ret->used / (double)ret->limit))
			continue;
		ret->used = used;
		ret->limit = limit;
	}
}

static void warm_read_peers(const struct json_in *peers, struct ctl_warm_look *ret)
{
	const char *why_not = json_in_string(json_in_member(peers, "why_not"), "");
	const char *ahead = json_in_string(json_in_member(peers, "ahead"), "");

	base_quote(why_not, ret->not_shared, sizeof(ret->not_shared));
	base_quote(ahead, ret->ahead, sizeof(ret->ahead));
	ret->made_ahead = warm_u64(peers, "made_ahead");
}

bool ctl_warm_read(const struct json_in *status, const char *job, struct ctl_warm_look *ret)
{
	const struct json_in *mine = warm_find(json_in_member(status, "jobs"), "name", job, 0);
	const struct json_in *stream = mine ? warm_find(json_in_member(status, "streams"), "id",
							NULL, warm_u64(mine, "stream"))
					    : NULL;
	const struct json_in *cache = json_in_member(stream, "cache"), *point;
	const char *form = json_in_string(json_in_member(cache, "point"), "");
	const char *why = json_in_string(json_in_member(cache, "why"), "");

	*ret =
	    (struct ctl_warm_look){.is_on = json_in_bool(json_in_member(cache, "on"), false),
				   .is_there = json_in_bool(json_in_member(mine, "active"), true)};
	if (!stream || !json_in_string(json_in_member(cache, "asked"), NULL))
		return false;
	point = warm_find(json_in_member(cache, "points"), "name", form, 0);
	ret->is_measured =
	    json_in_bool(json_in_member(cache, "forced"), false) ||
	    strcmp(json_in_string(json_in_member(cache, "reason"), ""), "unmeasured") != 0;
	base_quote(form, ret->form, sizeof(ret->form));
	base_quote(why, ret->why, sizeof(ret->why));
	ret->found = warm_u64(point, "found");
	ret->kept = warm_u64(point, "kept_samples");
	ret->bytes = warm_u64(point, "kept_bytes");
	ret->unfit = warm_u64(point, "unfit");
	warm_read_peers(json_in_member(cache, "peers"), ret);
	warm_read_stores(json_in_member(status, "caches"), ret);
	return true;
}
