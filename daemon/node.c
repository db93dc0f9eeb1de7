/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node: made once, ended once. Order of ending: connections first (their jobs leave streams),
 * then the domains.
 */
#include "daemon/node.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/conn.h"
#include "daemon/hang.h"
#include "daemon/job.h"
#include "daemon/limits.h"
#include "daemon/pump.h"
#include "daemon/source.h"
#include "daemon/stream.h"

#define TICK_NS UINT64_C(250000000)
#define RETRY_NS UINT64_C(1000000000)

static void on_idle(void *arg)
{
	struct node *node = arg;

	if (node->n_conns || node->draining)
		return;
	if (!place_try_leave(&node->place)) { /* a client is about to start one: it finds us */
		loop_timer_set(node->idle, RETRY_NS);
		return;
	}
	log_line(LOG_LEVEL_INFO, "idle-exit", "seconds=%llu",
		 (unsigned long long)node->param.idle_exit_s);
	accept_end(&node->accept);
	loop_stop(node->loop);
}

void node_is_idle(struct node *node)
{
	if (node->place.is_private && node->param.idle_exit_s && !node->draining)
		loop_timer_set(node->idle, node->param.idle_exit_s * UINT64_C(1000000000));
}

static void on_tick(void *arg)
{
	struct node *node = arg;
	struct domain *domain;
	bool is_needed = false;

	node->ticks++;
	LIST_FOREACH(domain, &node->domains, link)
	{
		struct stream *stream;

		is_needed |= hang_find(domain, base_now_ns());
		hoard_look(domain);
		LIST_FOREACH(stream, &domain->streams, link)
		is_needed |= pump_tick(stream);
	}
	if (is_needed)
		loop_timer_set(node->tick, TICK_NS);
}

void node_need_tick(struct node *node)
{
	if (!loop_timer_is_set(node->tick))
		loop_timer_set(node->tick, TICK_NS);
}

static uint64_t cpu_ns_of(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * UINT64_C(1000000000) +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void on_child(void *arg)
{
	struct node *node = arg;
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (!domain_child_ended(node, pid, status, cpu_ns_of(&usage)) &&
		    !source_synced(node, pid, status) && !stores_ended(node, pid, status))
			reserve_ended(node, pid, status);
	}
}

static void on_term(void *arg)
{
	node_drain(arg, "signal");
}

static int watch_signals(struct node *node)
{
	int r = loop_watch_signal(node->loop, SIGTERM, on_term, node, &node->term_watch);

	if (!r)
		r = loop_watch_signal(node->loop, SIGINT, on_term, node, &node->int_watch);
	if (!r)
		r = loop_watch_signal(node->loop, SIGCHLD, on_child, node, &node->child_watch);
	signal(SIGPIPE, SIG_IGN);
	return r;
}

static int start_timers(struct node *node)
{
	int r = loop_timer_new(node->loop, on_tick, node, &node->tick);

	if (!r)
		r = loop_timer_new(node->loop, on_idle, node, &node->idle);
	if (!r)
		node_is_idle(node);
	return r;
}

static int find_programs(const struct node *node, struct diag *diag)
{
	char path[PATH_MAX];
	int r = child_find("access-reader", node->place.is_private, path, sizeof(path), diag);

	return r ? r
		 : child_find("access-worker", node->place.is_private, path, sizeof(path), diag);
}

/* Tenants get their domains when they come; what would hinder all of them is found now. */
static int begin_serving(struct node *node, struct diag *diag)
{
	struct identity self = {.uid = geteuid(), .gid = getegid()};

	tenant_rules_init(&node->tenants, node->place.is_private);
	if (node->tenants.serves_all)
		return find_programs(node, diag);
	return domain_request(node, DOMAIN_OWN, &self, &node->own, diag) ? -EIO : 0;
}

int node_init(struct node *node, struct diag *diag)
{
	unsigned workers = node->param.workers ? (unsigned)node->param.workers : limits_cpus();
	int r;

	LIST_INIT(&node->domains);
	LIST_INIT(&node->leaving);
	node->workers = BASE_MIN(workers, (unsigned)LAYOUT_MAX_WORKERS);
	LIST_INIT(&node->conns);
	node->started_ns = base_now_ns();
	node->ticks = 1;
	node->memory_source = "parameter `memory`";
	node->memory_budget =
	    node->param.memory ? node->param.memory : limits_memory(&node->memory_source);
	diag_set(diag, "cannot set up the event loop and its memory");
	r = loop_new(&node->loop);
	if (!r)
		r = watch_signals(node);
	if (!r)
		r = start_timers(node);
	if (!r)
		r = stores_init(node);
	if (!r)
		r = begin_serving(node, diag);
	return r ? r : accept_begin(&node->accept, node, limits_raise_files());
}

void node_drain(struct node *node, const char *why)
{
	struct conn *conn;

	if (node->draining)
		return;
	node->draining = true;
	log_line(LOG_LEVEL_INFO, "drain", "why=%s clients=%u", why, node->n_conns);
	accept_end(&node->accept);
	place_close(&node->place);
	LIST_FOREACH(conn, &node->conns, link)
	if (conn->job && conn->job->active)
		job_lost(conn->job, "accessd is restarting");
	loop_stop(node->loop);
}

/* Of all domains before the first domain ends: another one may pay for them. */
static void free_streams(struct node *node)
{
	struct domain *domain;

	LIST_FOREACH(domain, &node->domains, link)
	while (!LIST_EMPTY(&domain->streams))
		stream_free(LIST_FIRST(&domain->streams));
}

void node_fini(struct node *node)
{
	node->draining = true;
	while (!LIST_EMPTY(&node->conns))
		conn_free(LIST_FIRST(&node->conns));
	loop_unwatch(&node->child_watch);
	loop_unwatch(&node->term_watch);
	loop_unwatch(&node->int_watch);
	free_streams(node);
	while (!LIST_EMPTY(&node->domains))
		domain_free(LIST_FIRST(&node->domains));
	reserve_fini(node);
	stores_fini(node);
	accept_end(&node->accept);
	loop_unwatch(&node->tick);
	loop_unwatch(&node->idle);
	place_close(&node->place);
	loop_free(node->loop);
}
