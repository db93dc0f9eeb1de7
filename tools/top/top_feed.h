/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_TOP_TOP_FEED_H
#define TOOLS_TOP_TOP_FEED_H

/* Where statuses come from: an accessd, which may end and come back. */

#include "base/base.h"
#include "base/json.h"
#include "tools/ctl_ask.h"

enum { TOP_FEED_E_NONE = 1 };

struct top_feed {
	const char *named; /* socket; NULL: the usual ones */
	struct ctl_ask ask;
	uint64_t tried_ns; /* to connect */
	struct diag diag;  /* why there is none */
};

void top_feed_init(struct top_feed *feed, const char *named);
void top_feed_fini(struct top_feed *feed);
/* The status of now; caller frees. TOP_FEED_E_NONE: there is none, feed->diag says why; it is tried again by a later
 * call, not more often than twice a second. */
int top_feed_next(struct top_feed *feed, struct json_in **ret);

#endif
