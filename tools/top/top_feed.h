/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where statuses come from: an accessd, which may end and come back. */

#include "base/json.h"
#include "shmring/pane.h"
#include "tools/ctl_ask.h"

enum { TOP_FEED_E_NONE = 1, TOP_FEED_E_OLD = 2 };

struct top_feed {
	const char *named; /* socket; NULL: the usual ones */
	struct ctl_ask ask;
	struct pane_view pane; /* that accessd renews; none: it is asked each time */
	uint64_t period_ms;    /* between two calls */
	uint64_t tried_ns;     /* to connect */
	uint64_t heard_ns;     /* something new came */
	struct diag diag;      /* why there is none */
};

void top_feed_init(struct top_feed *feed, const char *named, double period_s);
void top_feed_fini(struct top_feed *feed);
/* The status of now; caller frees. TOP_FEED_E_OLD: it is that of the last call. TOP_FEED_E_NONE: there is none, feed->diag
 * says why; it is tried again by a later call, not more often than twice a second. */
int top_feed_next(struct top_feed *feed, struct json_in **ret);
