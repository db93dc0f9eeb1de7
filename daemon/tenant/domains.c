/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust domains. Order of ending: streams, sources, and last the processes that worked for them.
 *
 * Nothing here waits for a process: one that reads from a file system that hangs does not end when it
 * is killed. Who was let go of is reaped as any other child when it does (on_child() in node_life.c).
 *
 * Workers run as the user whose pixels they make, and not as accessd. They open nothing, and their
 * sandbox leaves them no system call that could use a uid; should one break out all the same, it has
 * what the maker of its pictures gave it, and can signal neither accessd nor another tenant's
 * processes, as a uid common to all workers would let it.
 */
#include "daemon/tenant/domains.h"

#include <stdio.h>
#include <sys/eventfd.h>

#include "base/log.h"
#include "daemon/cache/chores.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/cache/stores.h"
#include "daemon/net/describe.h"
#include "daemon/node.h"
#include "daemon/serve/from_children.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "shmring/queue.h"

#define LENT_NS UINT64_C(30000000000) /* between looks whether a catalogue is still in use */

/* He who has another group now owes what he owed. */
static void take_over_throttle(struct domain *domain, const struct domain *from)
{
	if (domain && from && from->share.throttle.at_ns > domain->share.throttle.at_ns)
		domain->share.throttle = from->share.throttle;
}

/* A user's. */
static unsigned count_of(const struct node *node, uid_t uid)
{
	const uid_t tenant = tenant_of(node, uid);
	unsigned n = 0;

	BASE_EACH(domain, &node->domains, link)
		n += domain->kind == DOMAIN_USER && domain->tenant == tenant;
	return n;
}

/* Nobody says whom it is about. The usual one is turned at once, all others each in its own turn. */
static void on_event(void *arg)
{
	struct domain *domain = arg;

	BASE_EACH(stream, &domain->streams, link)
		if (stream == LIST_FIRST(&domain->streams))
			stream_turn(stream);
		else
			stream_turn_soon(stream);
}

static int make_doorbell(struct domain *domain)
{
	int r = doorbell_new(&domain->doorbell, &domain->bell.doorbell_fd);

	if (r)
		return r;
	domain->bell.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (domain->bell.event_fd < 0)
		return -errno;
	return loop_watch_rings(domain->node->loop, domain->bell.event_fd, on_event, domain,
				&domain->bell.watch);
}

static void on_idle(void *arg);

static void say_wants(const struct domain *domain, bool is_reader, struct child_wants *ret)
{
	struct node *node = domain->node;

	*ret = (struct child_wants){
	    .loop = node->loop,
	    .keepers = &node->keepers,
	    .porters = &node->porters,
	    .reaper = &node->reaper,
	    .param = &node->param,
	    .machine = &node->machine,
	    .is_private = node->place.is_private,
	    .priority = (enum cpu_priority)node->param.cpu_priority,
	    .uid = domain->who.uid,
	    .doorbell_fd = domain->bell.doorbell_fd,
	    .event_fd = domain->bell.event_fd,
	    .rings_fd = domain->disk_cache.rings_fd,
	    .memory_fd = ram_cache_fd(domain),
	};
	domain_identity(domain, is_reader, ret->as);
}

/* ---- peers ---- */

static void peers_rings(void *arg, int to_fd, int from_fd)
{
	struct domain *domain = arg;

	reading_peers(&domain->reading, domain->node->gating.id, to_fd, from_fd);
}

static void peers_members(void *arg, const struct reader_member *members, unsigned n)
{
	struct domain *domain = arg;

	reading_members(&domain->reading, (uint32_t)gating_weight(&domain->node->gating), members,
			n);
}

/* What is open to all is known to other nodes by its place: everywhere.h. Who reads it has another uid there. A named data set stays
 * here: its name, owner and members are this node's. */
static void begin_peers(struct domain *domain)
{
	struct node *node = domain->node;
	const bool is_public = domain->kind == DOMAIN_PUBLIC;
	char name[IDENTITY_TEXT_MAX] = "public";
	struct carrying_wants wants = {
	    .calls = {peers_rings, peers_members, domain},
	    .gating = &node->gating,
	    .gid = domain->who.gid,
	    .is_public = is_public,
	    .name = name,
	};

	say_wants(domain, false, &wants.child);
	if (!is_public)
		snprintf(name, sizeof(name), "user:%u:%u", (unsigned)domain->who.uid,
			 (unsigned)domain->who.gid);
	if (gating_is_on(&node->gating) &&
	    (!domain_is_shared(domain) || (is_public && *node->param.cluster_paths)))
		carrying_begin(&domain->carrying, &wants);
}

/* ---- processes ---- */

static int start_processes(struct domain *domain, struct diag *diag)
{
	struct child_wants wants;
	int r;

	say_wants(domain, true, &wants);
	r = reading_start(&domain->reading, &wants, &from_reader_calls, domain, diag);
	say_wants(domain, false, &wants);
	return r ? r : workers_start(&domain->workers, &wants, &from_workers_calls, domain, diag);
}

/* ---- making ---- */

/* Whose domain it is. */
struct wish {
	enum domain_kind kind;
	const struct identity *who;
	const char *name;
};

static int domain_new(struct node *node, const struct wish *wish, struct domain **ret,
		      struct diag *diag)
{
	const enum domain_kind kind = wish->kind;
	const struct identity *who = wish->who;
	struct domain *domain = calloc(1, sizeof(*domain));
	int r;

	diag_set(diag, "cannot set up the memory between accessd and its processes");
	if (!domain)
		return -ENOMEM;
	domain->node = node;
	domain->kind = kind;
	domain->who = *who;
	snprintf(domain->name, sizeof(domain->name), "%s", wish->name);
	domain->tenant = tenant_of(node, who->uid);
	domain->users.n = 1;
	domain->bell.doorbell_fd = domain->bell.event_fd = domain->disk_cache.rings_fd = -1;
	domain->reading.keeper.child.sock = domain->workers.keeper.child.sock = -1;
	take_over_throttle(domain, tenant_first(domain));
	LIST_INSERT_HEAD(&node->domains, domain, link);
	domain->source_calls = &streams_source_calls;
	r = make_doorbell(domain);
	r = r ? r : describe_catalogs_init(domain);
	r = r ? r : disk_cache_init(&domain->disk_cache, &node->param, node->machine.workers_most);
	r = r ? r : ram_cache_init(domain);
	r = r ? r : loop_timer_new(node->loop, on_idle, domain, &domain->users.idle);
	r = r ? r : start_processes(domain, diag);
	if (r) {
		domains_free(domain);
		return r;
	}
	begin_peers(domain);
	*ret = domain;
	return r;
}

/* ---- finding ---- */

static struct domain *find(struct node *node, const struct wish *wish)
{
	const struct identity *who = wish->who;

	BASE_EACH(domain, &node->domains, link)
		if (domain->kind == wish->kind && domain->who.uid == who->uid &&
		    domain->who.gid == who->gid && strcmp(domain->name, wish->name) == 0)
			return domain;
	return NULL;
}

/* New ones are at the head. */
bool domains_end_idle(struct node *node, const struct identity *who)
{
	struct domain *oldest = NULL;

	BASE_EACH(domain, &node->domains, link)
		if (domain_is_unused(domain) && domain->kind == DOMAIN_USER &&
		    !describe_is_lent(domain) &&
		    (!who || domain->tenant == tenant_of(node, who->uid)))
			oldest = domain;
	if (oldest)
		domains_free(oldest);
	return oldest != NULL;
}

/* A user is counted once, and has as many domains as groups that he comes with: each is a reader and workers. */
static int check_room(struct node *node, const struct identity *who, struct diag *diag)
{
	bool is_new = !count_of(node, who->uid);

	while (is_new && tenant_count(node) >= node->param.tenants && domains_end_idle(node, NULL))
		continue;
	while (count_of(node, who->uid) >= DOMAIN_MOST_GROUPS && domains_end_idle(node, who))
		continue;
	if (is_new && tenant_count(node) >= node->param.tenants)
		diag_set(diag,
			 "accessd serves %u users already, its most: try again when one of them is "
			 "gone, or raise `tenants`",
			 tenant_count(node));
	else if (count_of(node, who->uid) >= DOMAIN_MOST_GROUPS)
		diag_set(diag,
			 "your jobs run with %d groups already (newgrp, user namespaces), the most "
			 "for one user: end those of one group, or run this job with one of these",
			 DOMAIN_MOST_GROUPS);
	else
		return 0;
	return OA_E_REFUSED;
}

static int request(struct node *node, const struct wish *wish, struct domain **ret,
		   struct diag *diag)
{
	const struct identity *who = wish->who;
	struct domain *domain = find(node, wish);
	int r;

	if (domain) {
		*ret = domain_ref(domain);
		return 0;
	}
	if (wish->kind == DOMAIN_USER && check_room(node, who, diag))
		return OA_E_REFUSED;
	r = domain_new(node, wish, ret, diag);
	if (r)
		return r == -ENOMEM ? OA_E_MEMORY : OA_E_REFUSED;
	log_line(LOG_LEVEL_INFO, "domain-open",
		 "kind=%d name=\"%s\" uid=%u gid=%u reader=%ld workers=%ld", (int)wish->kind,
		 wish->name, (unsigned)who->uid, (unsigned)who->gid,
		 (long)(*ret)->reading.keeper.child.pid, (long)(*ret)->workers.keeper.child.pid);
	return 0;
}

int domains_request(struct node *node, enum domain_kind kind, const struct identity *who,
		    struct domain **ret, struct diag *diag)
{
	const struct wish wish = {kind, who, ""};

	return request(node, &wish, ret, diag);
}

int domains_request_named(struct node *node, const struct named *named, struct domain **ret,
			  struct diag *diag)
{
	const struct wish wish = {DOMAIN_NAMED, &named->owner, named->name};

	return request(node, &wish, ret, diag);
}

/* ---- ending ---- */

static void on_idle(void *arg)
{
	struct domain *domain = arg;

	if (!domain_is_unused(domain))
		return;
	if (describe_is_lent(domain)) /* its memory is still in use */
		loop_timer_set(domain->users.idle, LENT_NS);
	else
		domains_free(domain);
}

void domains_free(struct domain *domain)
{
	struct node *node = domain->node;

	domain->users.ending = true;
	describe_forget_all(domain);
	while (!LIST_EMPTY(&domain->streams))
		stream_free(LIST_FIRST(&domain->streams));
	while (!LIST_EMPTY(&domain->sources))
		source_unref(LIST_FIRST(&domain->sources));
	chores_end(domain);
	LIST_REMOVE(domain, link);
	take_over_throttle(tenant_first(domain), domain);
	node->counters.ended_reader_ns += reading_cpu_ns(&domain->reading);
	node->counters.ended_worker_ns += workers_cpu_ns(&domain->workers);
	carrying_end(&domain->carrying);
	workers_stop(&domain->workers, node->draining);
	reading_stop(&domain->reading, node->draining);
	loop_unwatch(&domain->bell.watch);
	loop_unwatch(&domain->users.idle);
	if (domain->doorbell)
		doorbell_detach(domain->doorbell);
	base_close(&domain->bell.doorbell_fd);
	base_close(&domain->bell.event_fd);
	stores_leave(domain);
	disk_cache_fini(&domain->disk_cache, &node->porters);
	ram_cache_fini(domain);
	describe_catalogs_fini(domain);
	if (domain->kind != DOMAIN_OWN)
		log_line(LOG_LEVEL_INFO, "domain-end", "kind=%d uid=%u gid=%u", (int)domain->kind,
			 (unsigned)domain->who.uid, (unsigned)domain->who.gid);
	free(domain);
}
