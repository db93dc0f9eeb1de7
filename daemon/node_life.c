/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node: made once, ended once. Order of ending: connections first (their jobs leave streams),
 * then the domains.
 */
#include "daemon/node_life.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/cache/stores.h"
#include "daemon/net/accept.h"
#include "daemon/net/client.h"
#include "daemon/net/conn.h"
#include "daemon/net/describe.h"
#include "daemon/net/prepare.h"
#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/group_keep.h"
#include "daemon/serve/hung.h"
#include "daemon/serve/job.h"
#include "daemon/limits.h"
#include "daemon/net/status.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/domains.h"
#include "pipeline/ops/fingerprint.h"

#define TICK_NS UINT64_C(250000000)
#define RETRY_NS UINT64_C(1000000000)

static void on_idle(void *arg)
{
	struct node *node = arg;

	if (node->clients.n > node->watching.n || node->draining)
		return;
	if (!place_try_leave(&node->place)) { /* a client is about to start one: it finds us */
		loop_timer_set(node->timers[NODE_IDLE], RETRY_NS);
		return;
	}
	log_line(LOG_LEVEL_INFO, "idle-exit", "seconds=%llu",
		 (unsigned long long)node->param.idle_exit_s);
	service_stops(&node->service, "idle");
	accept_end(node);
	loop_stop(node->loop);
}

static void on_tick(void *arg)
{
	struct node *node = arg;
	bool is_needed = false;

	node->counters.ticks++;
	BASE_EACH(domain, &node->domains, link) {
		is_needed |= hung_find(domain, base_now_ns());
		ram_cache_look(domain);
		BASE_EACH(stream, &domain->streams, link)
			is_needed |= pump_tick(stream);
	}
	fill_settle(node, base_now_ns());
	if (is_needed)
		loop_timer_set(node->timers[NODE_TICK], TICK_NS);
}

/* Small things stand behind what streams leave. It may take longer than a turn should, so it waits until nobody has a stream, and
 * for what ends in steps. */
static void on_trim(void *arg)
{
	struct node *node = arg;

	BASE_EACH(domain, &node->domains, link)
		if (!LIST_EMPTY(&domain->streams))
			return;
	if (LIST_EMPTY(&node->endings.list))
		malloc_trim(0);
	else
		node_has_room(node);
}

/* Whose it was: for who looks for what holds the loop. */
static const char *child_ended(struct node *node, pid_t pid, int status)
{
	if (source_stored(node, pid, status))
		return "end of who stored an index";
	if (stores_ended(node, pid, status))
		return "end of who looked through stores";
	if (describe_ended(node, pid, status))
		return "end of who wrote a catalogue";
	return stream_child_ended(node, pid, status) ? "end of who reserved slots"
						     : "end of a child";
}

/* One a turn: many may end at once, and each has something to be taken care of. Those that execute a program are in
 * groups of their own (child.h), and readers and parents are asked one by one. */
static void on_child(void *arg)
{
	struct node *node = arg;
	int status = 0;
	const pid_t reaped = waitpid(0, &status, WNOHANG);
	uint64_t cpu_ns = 0;
	struct keeper *keeper = keeper_of_ended(&node->keepers, reaped, &status, &cpu_ns);
	const pid_t kept = keeper && reaped <= 0 ? keeper->child.pid : 0;

	if (reaped <= 0 && !keeper)
		return;
	loop_timer_set(node->timers[NODE_MORE_CHILDREN], 0);
	loop_is_about(node->loop, keeper ? keeper->kind->end : child_ended(node, reaped, status));
	if (keeper)
		keeper->kind->died(keeper->arg, status, cpu_ns);
	reaper_take(&node->reaper, kept);
}

static void on_term(void *arg)
{
	node_drain(arg, "signal");
}

static int watch_signals(struct node *node)
{
	struct loop_watch **watch = node->signals;
	int r = loop_watch_signal(node->loop, SIGTERM, on_term, node, &watch[NODE_TERM]);

	r = r ? r : loop_watch_signal(node->loop, SIGINT, on_term, node, &watch[NODE_INT]);
	r = r ? r : loop_watch_signal(node->loop, SIGCHLD, on_child, node, &watch[NODE_CHILD]);
	signal(SIGPIPE, SIG_IGN);
	return r;
}

static int start_timers(struct node *node)
{
	static void (*const due[])(void *arg) = {on_tick, on_idle, on_trim, on_child};
	int r = 0;

	for (unsigned i = 0; i < NODE_TIMERS && !r; i++)
		r = loop_timer_new(node->loop, due[i], node, &node->timers[i]);
	r = r ? r : keep_watch(&node->kept, node->loop);
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
	int r = tenant_rules_init(&node->tenants, &node->param, node->place.is_private, diag);

	if (r)
		return -EINVAL;
	if (node->tenants.serves_all)
		return find_programs(node, diag);
	return domains_request(node, DOMAIN_OWN, &self, &node->own, diag) ? -EIO : 0;
}

/* ---- the machine ---- */

static void set_workers(void *arg, unsigned workers)
{
	struct node *node = arg;

	BASE_EACH(domain, &node->domains, link)
		workers_resize(&domain->workers, workers);
}

static uint64_t give_back(void *arg, bool caches, bool idle)
{
	struct node *node = arg;
	const uint64_t had = node->memory.used + node->memory.kept;

	while (caches && describe_give_way(node, NULL))
		continue;
	if (caches)
		ram_cache_give_way(node, NULL);
	while (idle && stream_give_back(node))
		continue;
	return had - node->memory.used - node->memory.kept;
}

/* What is too much goes as far as it may: what jobs have stays. */
static void set_memory(void *arg, uint64_t budget, const char *source)
{
	struct node *node = arg;
	const bool is_less = budget < node->memory.budget;

	node->memory.budget = budget;
	node->memory.source = source;
	if (is_less)
		give_back(node, true, false);
	while (node->memory.used > budget && stream_give_back(node))
		continue;
}

static int follow_machine(struct node *node)
{
	static const struct machine_calls calls = {set_workers, set_memory, give_back};
	const struct machine_wants wants = {node->param.workers, node->param.memory,
					    node->param.numa == NUMA_AUTO,
					    node->param.memory_pressure == MEMORY_PRESSURE_AUTO};
	const int r = machine_begin(&node->machine, node->loop, &wants, &calls, node);

	/* keys name the arithmetic: 10 ms, before anybody is served, and only where something may be kept */
	if (!r && disk_cache_may_keep(&node->param))
		node->machine.arithmetic = fingerprint_of_arithmetic();
	return r;
}

/* ---- other nodes ---- */

static void gate_started(void *arg)
{
	struct node *node = arg;

	BASE_EACH(domain, &node->domains, link)
		carrying_gate_started(&domain->carrying);
}

static int begin_gating(struct node *node, struct diag *diag)
{
	const struct child_wants wants = {
	    .loop = node->loop,
	    .keepers = &node->keepers,
	    .porters = &node->porters,
	    .reaper = &node->reaper,
	    .param = &node->param,
	    .is_private = node->place.is_private,
	    .uid = PORTER_OWN,
	};

	node->gating.started = gate_started;
	node->gating.arg = node;
	return gating_begin(&node->gating, &wants, diag);
}

int node_init(struct node *node, struct diag *diag)
{
	int r;

	LIST_INIT(&node->domains);
	LIST_INIT(&node->leaving);
	LIST_INIT(&node->clients.list);
	LIST_INIT(&node->clients.guests);
	keep_load(&node->kept, node->place.plans, node->place.plans_fd);
	programs_load(&node->clients.programs, node->place.folder);
	node->counters.started_ns = base_now_ns();
	node->counters.ticks = 1;
	node->memory.room = &streams_room;
	diag_set(diag, "cannot set up the event loop and its memory");
	r = loop_new(&node->loop);
	node->porters.loop = node->endings.loop = node->loop;
	node->porters.reaper = &node->reaper;
	r = r ? r : follow_machine(node);
	r = r ? r : reaper_begin(&node->reaper, node->loop);
	r = r ? r : watch_signals(node);
	r = r ? r : start_timers(node);
	r = r ? r : prepare_init(node);
	r = r ? r : watch_init(&node->watching, node->loop, status_render, node);
	r = r ? r : stores_init(node, domains_end_idle);
	r = r ? r : begin_gating(node, diag);
	r = r ? r : begin_serving(node, diag);
	return r ? r : accept_begin(node, limits_raise_files());
}

void node_drain(struct node *node, const char *why)
{
	if (node->draining)
		return;
	node->draining = node->kept.stays = true;
	log_line(LOG_LEVEL_INFO, "drain", "why=%s clients=%u", why, node->clients.n);
	service_stops(&node->service, why);
	accept_end(node);
	place_close(&node->place);
	BASE_EACH(conn, &node->clients.list, link)
		if (conn->job && conn->job->active)
			job_lost(conn->job, "accessd is restarting");
	loop_stop(node->loop);
}

/* Of all domains before the first domain ends: another one may pay for streams, and write a catalogue
 * of its sources. */
static void free_streams(struct node *node)
{
	BASE_EACH(domain, &node->domains, link) {
		describe_forget_all(domain);
		while (!LIST_EMPTY(&domain->streams))
			stream_free(LIST_FIRST(&domain->streams));
	}
}

void node_fini(struct node *node)
{
	node->draining = node->kept.stays = true;
	service_end(&node->service);
	while (!LIST_EMPTY(&node->clients.list))
		client_free(LIST_FIRST(&node->clients.list));
	loop_unwatch(&node->timers[NODE_MORE_CHILDREN]);
	for (unsigned i = 0; i < NODE_SIGNALS; i++)
		loop_unwatch(&node->signals[i]);
	free_streams(node);
	while (!LIST_EMPTY(&node->domains))
		domains_free(LIST_FIRST(&node->domains));
	gating_end(&node->gating);
	endings_fini(&node->endings);
	reserve_fini(node);
	stores_fini(node);
	keep_unload(&node->kept);
	programs_fini(&node->clients.programs);
	prepare_fini(node);
	watch_fini(&node->watching);
	tenant_rules_fini(&node->tenants);
	porter_fini(&node->porters);
	reaper_end(&node->reaper);
	accept_end(node);
	machine_end(&node->machine);
	for (unsigned i = 0; i < NODE_TIMERS; i++)
		loop_unwatch(&node->timers[i]);
	place_close(&node->place);
	loop_free(node->loop);
}
