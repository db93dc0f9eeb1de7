/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that hangs is replaced (hang.c), a process that died is (reading.c, workers.c); what is left are a reader and a
 * parent of workers that somebody has stopped. One that has been stopped for half the watchdog's time is killed, so that another
 * takes its place. One that a debugger holds, or that waits for a disk, is left alone.
 */
#include "daemon/operate.h"

#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "daemon/limits.h"
#include "daemon/net/accept.h"
#include "daemon/net/conn.h"
#include "daemon/net/sharing.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"

static void look_at_child(struct child *child, const char *what, uint64_t limit_ns)
{
	if (child->pid <= 0 || service_judge(&child->stopped_ns, limits_state(child->pid),
					     base_now_ns(), limit_ns) != SERVICE_CHILD_STUCK)
		return;
	log_line(LOG_LEVEL_WARN, "child-stopped",
		 "what=%s pid=%ld text=\"somebody has stopped it: it is killed, and another takes "
		 "its place\"",
		 what, (long)child->pid);
	child->stopped_ns = 0;
	kill(child->pid, SIGKILL);
}

static void look(void *arg, uint64_t limit_ns)
{
	const struct operate *operate = arg;

	BASE_EACH(keeper, &operate->node->keepers, link)
		look_at_child(&keeper->child, keeper->kind->name, limit_ns);
}

static unsigned count_jobs(const struct node *node)
{
	unsigned n = 0;

	BASE_EACH(conn, &node->clients.list, link)
		n += conn->job != NULL;
	return n;
}

static unsigned count_streams(const struct node *node)
{
	unsigned n = 0;

	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			n++;
	return n;
}

static void describe(void *arg, char *ret, size_t size)
{
	const struct operate *operate = arg;
	const struct node *node = operate->node;
	char users[48] = "";

	if (node->tenants.serves_all)
		snprintf(users, sizeof(users), ", users %u", tenant_count(node));
	snprintf(ret, size, "Serves: jobs %u, streams %u%s; memory %s of %s%s%.300s",
		 count_jobs(node), count_streams(node), users, BASE_BYTES(node->memory.used),
		 BASE_BYTES(node->memory.budget), *node->param.closed ? "; no new jobs: " : "",
		 node->param.closed);
}

/* What they wait for may be another now: their tenants' quotas are. */
static void turn_streams(const struct node *node)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			stream_turn_soon(stream);
}

static void take(void *arg, const struct param *wanted, struct param_change *ret)
{
	struct node *node = ((const struct operate *)arg)->node;
	const struct named_sets then = node->param.named;
	enum log_level level;

	param_take(&node->param, wanted, ret);
	sharing_reload(node, &then);
	turn_streams(node);
	if (log_parse_level(node->param.log_level, &level) == 0)
		log_init("accessd", level);
	accept_limit(node, limits_raise_files());
}

static int reread(void *arg, struct param *ret, struct diag *diag)
{
	const struct operate *operate = arg;

	return operate->reread(operate->arg, ret, diag);
}

int operate_begin(struct operate *operate, struct notify *notify)
{
	const struct service_calls calls = {
	    .arg = operate, .reread = reread, .take = take, .describe = describe, .look = look};
	struct node *node = operate->node;

	return service_begin(&node->service, node->loop, notify, &calls);
}
