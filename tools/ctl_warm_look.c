/* SPDX-License-Identifier: Apache-2.0 */

/* What accessd's status says of a job that warms, or lends. */

#include "tools/ctl_warm.h"

#include "tools/ctl.h"
#include "tools/ctl_value.h"

static void warm_read_stores(const struct json_in *stores, struct ctl_warm_look *ret)
{
	JSON_IN_EACH(store, stores) {
		uint64_t used = ctl_u64(store, "used"), limit = ctl_u64(store, "limit");

		if (limit == 0 || (ret->limit && (double)used / (double)limit <=
						     (double)ret->used / (double)ret->limit))
			continue;
		ret->used = used;
		ret->limit = limit;
	}
}

static void warm_read_peers(const struct json_in *peers, struct ctl_warm_look *ret)
{
	const char *why_not = ctl_text(peers, "why_not");
	const char *ahead = ctl_text(peers, "ahead");

	base_quote(why_not, ret->not_shared, sizeof(ret->not_shared));
	base_quote(ahead, ret->ahead, sizeof(ret->ahead));
	ret->made_ahead = ctl_u64(peers, "made_ahead");
}

bool ctl_warm_read(const struct json_in *status, const char *job, struct ctl_warm_look *ret)
{
	const struct json_in *mine = json_in_with(json_in_member(status, "jobs"), "name", job);
	const struct json_in *stream = mine ? ctl_stream_of(status, mine) : NULL;
	const struct json_in *cache = json_in_member(stream, "cache"), *point;
	const char *form = ctl_text(cache, "point");
	const char *why = ctl_text(cache, "why");

	*ret =
	    (struct ctl_warm_look){.is_on = ctl_is(cache, "on"),
				   .is_there = json_in_bool(json_in_member(mine, "active"), true)};
	if (!stream || !json_in_string(json_in_member(cache, "asked"), NULL))
		return false;
	point = json_in_with(json_in_member(cache, "points"), "name", form);
	ret->is_measured =
	    ctl_is(cache, "forced") || strcmp(ctl_text(cache, "reason"), "unmeasured") != 0;
	base_quote(form, ret->form, sizeof(ret->form));
	base_quote(why, ret->why, sizeof(ret->why));
	ret->found = ctl_u64(point, "found");
	ret->kept = ctl_u64(point, "kept_samples");
	ret->bytes = ctl_u64(point, "kept_bytes");
	ret->unfit = ctl_u64(point, "unfit");
	warm_read_peers(json_in_member(cache, "peers"), ret);
	warm_read_stores(json_in_member(status, "caches"), ret);
	return true;
}
