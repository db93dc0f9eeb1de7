/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The node: what one accessd has. Everything in daemon/ belongs to the loop thread, so nothing here
 * is locked. Owners: the node owns domains and connections, a domain its sources and streams, a
 * stream its jobs. This is the state alone, at the bottom: who makes and ends all of it, on top, is node_life.c.
 */

#include <sys/queue.h>
#include "daemon/net/guest.h"
#include "daemon/cluster/gating.h"
#include "daemon/ending.h"
#include "daemon/loop.h"
#include "daemon/machine/machine.h"
#include "daemon/param.h"
#include "daemon/place.h"
#include "daemon/net/porter.h"
#include "daemon/net/watch.h"
#include "daemon/proc/keeper.h"
#include "daemon/proc/reaper.h"
#include "daemon/serve/fill_state.h"
#include "daemon/serve/group_keep.h"
#include "daemon/service.h"
#include "daemon/tenant/memory.h"
#include "daemon/tenant/programs.h"
#include "daemon/tenant/tenant_rules.h"

struct accept;
struct conn;
struct domain;
struct prepare_queue;
struct reserve_leaving;
struct stores;

struct node_numbers {
	uint64_t id; /* of sources, streams, jobs */
	uint16_t queue;
};

struct node_counters { /* since the start, over all streams, also those that ended */
	uint64_t started_ns;
	uint32_t ticks; /* from 1 */
	uint64_t samples_read, bytes_read, samples_preprocessed, chunks, reference, bad_samples;
	uint64_t outputs;           /* as samples_preprocessed, once for each variant */
	uint64_t samples_revisited; /* revisit.h */
	uint64_t samples_delivered; /* to jobs that ended */
	uint64_t waits_on_dead, nonsense;
	struct restarts restarts;
	uint64_t opens, refused;
	uint64_t catalogs, catalogs_apart;         /* written, and of these by children */
	uint64_t ended_reader_ns, ended_worker_ns; /* CPU time of domains that ended */
};

struct node_clients {          /* who is connected */
	struct accept *accept; /* NULL: nobody is taken in */
	LIST_HEAD(, conn) list;
	unsigned n;
	struct programs programs;
	struct guest_list guests;
	struct prepare_queue *preparing;
};

/* Watched all the time that it runs (node_life.c). */
enum node_timer { NODE_TICK, NODE_IDLE, NODE_TRIM, NODE_MORE_CHILDREN, NODE_TIMERS };
enum node_signal { NODE_TERM, NODE_INT, NODE_CHILD, NODE_SIGNALS };

struct node {
	struct loop *loop;
	struct param param;
	struct place place;
	struct loop_watch *timers[NODE_TIMERS], *signals[NODE_SIGNALS];
	struct service service;

	LIST_HEAD(node_domains, domain) domains;
	LIST_HEAD(node_leaving, reserve_leaving) leaving;
	struct kept_logs kept;
	struct endings endings;
	struct domain *own; /* the only one, of our own user; NULL: tenants have theirs */
	struct tenant_rules tenants;
	struct machine machine;
	struct node_clients clients;
	struct watching watching;
	struct porters porters;
	struct reaper reaper;
	struct keepers keepers;
	struct node_numbers next;
	struct gating gating;
	struct stores *stores;
	struct memory memory;
	struct node_counters counters;
	struct fill_shares shares;
	bool draining;
};

/* A job came: its heart beats until no stream has work or jobs. */
void node_need_tick(struct node *node);
/* A stream ended: what is free of the heap goes back soon, should it have been the last. */
void node_has_room(struct node *node);
/* Nobody is connected (any more), but for watchers: a private accessd ends if that stays so. */
void node_is_idle(struct node *node);
