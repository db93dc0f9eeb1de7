/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Indexes of the webdataset package's wids, which people have beside tar shards: any NAME.json with
 *
 *   {"wids_version": 1, "shardlist": [{"url": ..., "nsamples": ..., "filesize": ...}, ...], "datasets": [{"shardlist": ...}]}
 *
 * Pure; the text may be any.
 */

#include "base/base.h"

#define WIDS_MOST_TEXT (UINT64_C(1) << 26)

enum {
	WIDS_E_NONE = 1, /* no such index */
	WIDS_E_BAD = 2,  /* one with a shard that has no name or no number of samples */
};

struct wids_shard {
	char *name; /* owned: the last part of its URL */
	uint64_t samples;
	uint64_t bytes; /* 0: it does not say */
};
struct wids {
	size_t n, room;
	struct wids_shard *shard; /* owned, in the order of the text */
};
/* Its memory is index_json_weight()'s. 0, WIDS_E_NONE, WIDS_E_BAD, -ENOMEM. */
int wids_parse(const char *text, size_t size, struct wids *ret);
void wids_fini(struct wids *wids);
