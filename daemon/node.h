/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The node: what one accessd has. Everything in daemon/ belongs to the loop thread, so nothing here
 * is locked. Owners: the node owns domains and connections, a domain its sources and streams, a
 * stream its jobs. This is the state alone, at the bottom: who makes and ends all of it, on top, is node_life.c.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "daemon/net/guest.h"
#include "daemon/cluster/gating.h"
#include "daemon/ending.h"
#include "daemon/loop.h"
#include "daemon/machine/machine.h"
#include "daemon/machine/numa.h"
#include "daemon/param.h"
#include "daemon/place.h"
#include "daemon/net/porter.h"
#include "daemon/net/watch.h"
#include "daemon/proc/reaper.h"
#include "daemon/serve/group_keep.h"
#include "daemon/service.h"
#include "daemon/tenant/memory.h"
#include "daemon/tenant/tenant_rules.h"
#include "sched/fair.h"

struct accept;
struct conn;
struct domain;
struct node;
struct prepare_queue;
struct reserve_leaving;
struct stores;

struct node_counters { /* since the start, over all streams, also those that ended */
	uint64_t samples_read, bytes_read, samples_preprocessed, chunks, reference, bad_samples;
	uint64_t outputs;           /* as samples_preprocessed, once for each variant */
	uint64_t samples_delivered; /* to jobs that ended */
	uint64_t waits_on_dead, nonsense;
	uint64_t reader_restarts, parent_restarts, worker_restarts;
	uint64_t opens, refused;
	uint64_t catalogs, catalogs_apart; /* written, and of these by children */
};

struct node_room { /* what gives way where memory is wanted (stream_end.c) */
	bool (*make)(struct domain *domain); /* for that one's tenant. false: there is nothing */
	/* Bytes that would give way, of payer's tenant; NULL: anybody's. */
	uint64_t (*idle)(const struct node *node, const struct domain *payer);
};

struct node {
	struct loop *loop;
	struct param param;
	struct place place;
	struct loop_watch *tick, *idle, *trim, *term_watch, *int_watch, *child_watch,
	    *more_children;
	struct accept *accept; /* NULL: nobody is taken in */
	struct service service;

	LIST_HEAD(node_domains, domain) domains;
	LIST_HEAD(node_leaving, reserve_leaving) leaving;
	struct kept_logs kept;
	struct prepare_queue *preparing;
	struct endings endings;
	struct domain *own; /* the only one, of our own user; NULL: tenants have theirs */
	unsigned n_tenants; /* uids that have a domain */
	struct tenant_rules tenants;
	struct machine machine;
	struct numa numa;
	uint64_t arithmetic; /* fingerprint_of_arithmetic() */
	unsigned workers;    /* processes of a domain */
	LIST_HEAD(node_conns, conn) conns;
	unsigned n_conns;
	struct guest_list guests;
	struct watching watching;
	struct porters porters;
	struct reaper reaper;
	uint64_t next_id; /* of sources, jobs */
	uint16_t next_queue;

	struct gating gating;
	struct stores *stores;
	struct memory memory;
	const struct node_room *room; /* NULL: nothing gives way */
	uint64_t started_ns;
	uint32_t ticks; /* since the start, from 1 */
	struct node_counters counters;
	uint64_t ended_reader_ns, ended_worker_ns; /* CPU time of domains that ended */

	struct fair_node fair; /* fill_fair.c */
	unsigned n_busy;       /* streams with chunks in production, at weighed_ns */
	uint64_t weighed_ns, settled_ns;
	bool draining;
};

/* A job came: its heart beats until no stream has work or jobs. */
void node_need_tick(struct node *node);
/* A stream ended: what is free of the heap goes back soon, should it have been the last. */
void node_has_room(struct node *node);
/* Nobody is connected (any more), but for watchers: a private accessd ends if that stays so. */
void node_is_idle(struct node *node);
