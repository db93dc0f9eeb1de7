/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NODE_H
#define DAEMON_NODE_H

/*
 * The node: what one accessd has. Everything in daemon/ belongs to the loop thread, so nothing here
 * is locked. Owners: the node owns domains and connections, a domain its sources and streams, a
 * stream its jobs.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "daemon/accept.h"
#include "daemon/loop.h"
#include "daemon/param.h"
#include "daemon/place.h"
#include "daemon/domain.h"
#include "daemon/stores.h"
#include "daemon/tenant.h"

struct conn;

struct node_counters { /* since the start, over all streams, also those that ended */
	uint64_t samples_read, bytes_read, samples_preprocessed, hands, reference, bad_samples;
	uint64_t outputs; /* as samples_preprocessed, once for each variant */
	uint64_t waits_on_dead, nonsense;
	uint64_t reader_restarts, parent_restarts, worker_restarts;
	uint64_t opens, refused;
};

struct node {
	struct loop *loop;
	struct param param;
	struct place place;
	struct loop_watch *tick, *idle, *term_watch, *int_watch, *child_watch;
	struct accept accept;

	LIST_HEAD(node_domains, domain) domains;
	LIST_HEAD(node_leaving, reserve_leaving) leaving;
	struct domain *own; /* the only one, of our own user; NULL: tenants have theirs */
	unsigned n_tenants;
	struct tenant_rules tenants;
	unsigned workers; /* processes of a domain */
	LIST_HEAD(node_conns, conn) conns;
	unsigned n_conns;
	uint64_t next_id; /* of sources, jobs */
	uint16_t next_lane;

	struct stores stores;
	uint64_t memory_budget, memory_used;
	uint64_t memory_kept; /* of the budget, too: granted to hoards, which give way to streams */
	const char *memory_source;
	uint64_t started_ns;
	uint32_t ticks; /* since the start, from 1 */
	struct node_counters counters;
	uint64_t ended_reader_ns, ended_worker_ns; /* CPU time of domains that ended */
	bool draining;
};

/* Builds everything from node->param and node->place (both set, place open). 0 or negative errno
 * with diag. */
int node_init(struct node *node, struct diag *diag);
void node_fini(struct node *node);
/* A job came: its heart beats until no stream has work or jobs. */
void node_need_tick(struct node *node);
/* Nobody is connected (any more): a private accessd ends if that stays so. */
void node_is_idle(struct node *node);
/* SIGTERM: hand out nothing new, tell clients to come back, stop the loop. */
void node_drain(struct node *node, const char *why);

#endif
