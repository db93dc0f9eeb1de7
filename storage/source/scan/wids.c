/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of shards in JSON, of one data set or of several; references to other indexes are passed over. */

#include "storage/source/scan/wids.h"

#include "base/json.h"

/* What is between the last slash and a query. */
static char *name_of(const char *url)
{
	const size_t size = strcspn(url, "?#");
	size_t from = size;

	while (from > 0 && url[from - 1] != '/')
		from--;
	return strndup(url + from, size - from);
}

static int add_shard(const struct json_in *from, struct wids *wids)
{
	const char *url = json_in_string(json_in_member(from, "url"), NULL);
	struct wids_shard *shard;

	if (!url || json_in_u64(json_in_member(from, "nsamples"), UINT64_MAX) == UINT64_MAX)
		return WIDS_E_BAD;
	if (!base_grow(&wids->shard, &wids->room, wids->n + 1, sizeof(*wids->shard)))
		return -ENOMEM;
	shard = &wids->shard[wids->n];
	shard->name = name_of(url);
	if (!shard->name)
		return -ENOMEM;
	wids->n++;
	shard->samples = json_in_u64(json_in_member(from, "nsamples"), 0);
	shard->bytes = json_in_u64(json_in_member(from, "filesize"), 0);
	return *shard->name ? 0 : WIDS_E_BAD;
}

static int add_list(const struct json_in *list, struct wids *wids)
{
	const size_t n = json_in_kind_of(list) == JSON_IN_ARRAY ? json_in_count(list) : 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = add_shard(json_in_item(list, i), wids);
	return r;
}

static int add_all(const struct json_in *root, struct wids *wids)
{
	const struct json_in *sets = json_in_member(root, "datasets");
	const size_t n = json_in_kind_of(sets) == JSON_IN_ARRAY ? json_in_count(sets) : 0;
	int r = add_list(json_in_member(root, "shardlist"), wids);

	for (size_t i = 0; i < n && r == 0; i++)
		r = add_list(json_in_member(json_in_item(sets, i), "shardlist"), wids);
	return r;
}

int wids_parse(const char *text, size_t size, struct wids *ret)
{
	struct wids wids = {.n = 0};
	_cleanup_json_ struct json_in *root = NULL;
	struct diag diag;
	int r = json_in_parse(text, size, WIDS_MOST_TEXT, &root, &diag);

	if (r)
		return r < 0 ? r : WIDS_E_NONE;
	if (json_in_kind_of(root) != JSON_IN_OBJECT ||
	    json_in_u64(json_in_member(root, "wids_version"), 0) != 1)
		r = WIDS_E_NONE;
	else
		r = add_all(root, &wids);
	if (r)
		wids_fini(&wids);
	else
		*ret = wids;
	return r;
}

void wids_fini(struct wids *wids)
{
	for (size_t i = 0; i < wids->n; i++)
		free(wids->shard[i].name);
	free(wids->shard);
	*wids = (struct wids){.n = 0};
}
