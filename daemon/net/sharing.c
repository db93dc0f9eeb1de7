/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one has mapped one can keep, whatever is closed. So when somebody loses a data set, also somebody whose job ended long
 * ago, its slots are written no more: the streams are LOST, and whoever may still have it opens again with his token, in new memory.
 * Groups are those that the client had when it connected. Who leaves one keeps what he has open until then, or until a
 * change of the rule shuts everybody out for a moment.
 */
#include "daemon/net/sharing.h"

#include <stdio.h>

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/describe.h"
#include "daemon/net/opening.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/rights.h"
#include "libaccess/libaccess.h"

#define CHANGED "what is said of the data set in accessd.conf has changed: open it again"

static bool is_in(const struct conn *conn, const struct domain *domain)
{
	const struct source *source = conn->source ? conn->source : describe_source(conn);

	return conn->stream ? conn->stream->domain == domain : source && source->domain == domain;
}

static void turn_out(struct conn *conn, const char *text)
{
	if (conn->job && conn->job->active)
		job_fail(conn->job, OA_E_PERMISSION, text);
	else if (conn->state == CONN_WAITS_SOURCE || conn->state == CONN_WAITS_CATALOG ||
		 conn->state == CONN_WAITS_STREAM)
		conn_refuse(conn, OA_E_PERMISSION, "%s", text);
	describe_forget(conn);
}

/* Perhaps it is another path now, or another owner: what it waited for is asked for once more. */
static void begin_anew(struct conn *conn, const char *name)
{
	char dataset[NAMED_NAME_MAX + sizeof(PROTO_NAMED)];
	struct diag diag;
	int code;

	if (conn->state != CONN_WAITS_SOURCE && conn->state != CONN_WAITS_CATALOG)
		return;
	conn->describes |= conn->state == CONN_WAITS_CATALOG;
	describe_forget(conn);
	snprintf(dataset, sizeof(dataset), PROTO_NAMED "%s", name);
	code = opening_begin(conn, dataset, &diag);
	if (code)
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
}

static void turn_out_all(const struct domain *domain, const struct named *now)
{
	struct diag diag;

	BASE_EACH_LEAVING(conn, &domain->node->clients.list, link) {
		if (!is_in(conn, domain))
			continue;
		if (!now)
			diag_set(&diag,
				 "data set \"%s\" is no longer among those of this accessd: ask "
				 "who runs it",
				 domain->name);
		if (!now || rights_may_use(conn, now, &diag))
			turn_out(conn, diag.text);
		else
			begin_anew(conn, domain->name);
	}
}

static void close_streams(struct domain *domain)
{
	BASE_EACH_LEAVING(stream, &domain->streams, link)
		stream_lose(stream, CHANGED);
}

void sharing_reload(struct node *node, const struct named_sets *then)
{
	struct domain *domain, *next;

	for (domain = LIST_FIRST(&node->domains); domain; domain = next) {
		const struct named *now, *was;

		next = LIST_NEXT(domain, link);
		if (domain->kind != DOMAIN_NAMED)
			continue;
		now = named_find(&node->param.named, domain->name);
		was = named_find(then, domain->name);
		if (!was || !named_is_narrower(now, was))
			continue;
		log_line(LOG_LEVEL_INFO, "dataset-narrowed", "name=%s", domain->name);
		turn_out_all(domain, now);
		close_streams(domain);
	}
	if (memcmp(then, &node->param.named, sizeof(*then)) != 0)
		watch_turn_out(&node->watching);
}
