/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants.
 *
 * Who a client is, the kernel says: SO_PEERCRED, as its uid and gid were when it connected, in the
 * numbers of our own user namespace. A container's root is the uid that it is mapped to. A uid that has
 * no number here looks like the overflow uid, and so do all others of that kind: they are refused, for
 * they would be one tenant.
 *
 * A domain belongs to a (uid, gid): the reader has the gid of the client, which no user database
 * could tell for a number without an entry, and which `newgrp` changes. Limits belong to the uid, so
 * what the domains of a uid use is added up; where `subordinate_ids` says so, those of his subordinate uids with
 * them, who remain themselves in all else.
 *
 * What is open to everybody is read by a user of its own (`public_user`), who is no tenant and has nothing. Were it
 * accessd's own uid, a reader that a hostile file made its own could signal accessd, and enter its cache. Nor
 * may it have accessd's gid, by which one sees everybody's status. Without such a user nothing is
 * shared: a uid that nobody has given us may be somebody's.
 *
 * Limits are shares, not reservations: they say how much one tenant can take from the others at
 * most.
 */
#include "daemon/tenant/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/identity.h"
#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"

#define LEAST_CONNS 8
#define MOST_GROUPS 65536
#define TOLD_JOBS 3 /* by name, in a refusal */

/* ---- what the kernel says ---- */

static bool is_all_mapped(const char *map)
{
	FILE *file = fopen(map, "re");
	unsigned long long inside, outside, count;
	bool is_all = false;

	if (file) {
		is_all = fscanf(file, "%llu %llu %llu", &inside, &outside, &count) == 3 &&
			 inside == 0 && count >= UINT32_MAX;
		fclose(file);
	}
	return is_all;
}

static unsigned overflow_of(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned id = 65534;

	if (file) {
		if (fscanf(file, "%u", &id) != 1)
			id = 65534;
		fclose(file);
	}
	return id;
}

/* Finds who reads public data. false: there is nobody. */
static bool find_nobody(struct tenant_rules *rules, const char *user)
{
	const char *why = NULL;

	if (identity_of_user(user, &rules->nobody))
		why = "there is no such user: make it (systemd-sysusers, or useradd --system), or "
		      "name another one, or a number that is nobody's";
	else if (rules->nobody.uid == 0 || rules->nobody.uid == geteuid() ||
		 rules->nobody.gid == getegid())
		why = "it has to be another user than accessd and root, with another group";
	if (why)
		snprintf(rules->why_not, sizeof(rules->why_not), "public_user \"%.64s\": %s", user,
			 why);
	return !why;
}

int tenant_rules_init(struct tenant_rules *rules, const struct param *param, bool is_private,
		      struct diag *diag)
{
	rules->serves_all = !is_private && identity_can_switch();
	rules->is_mapped = is_all_mapped("/proc/self/uid_map");
	rules->overflow = overflow_of("/proc/sys/kernel/overflowuid");
	rules->nobodys = is_all_mapped("/proc/self/gid_map")
			     ? (gid_t)-1
			     : overflow_of("/proc/sys/kernel/overflowgid");
	rules->why_not[0] = '\0';
	rules->shares =
	    rules->serves_all && param->share_public && find_nobody(rules, param->public_user);
	if (rules->why_not[0])
		log_line(LOG_LEVEL_WARN, "public-off",
			 "reason=\"%s\" text=\"each user's data are read for him alone\"",
			 rules->why_not);
	if (!rules->serves_all || !*param->subordinate_ids)
		return 0;
	return subids_read(param->subordinate_ids, &rules->subids, diag);
}

void tenant_rules_fini(struct tenant_rules *rules)
{
	subids_fini(&rules->subids);
}

uid_t tenant_of(const struct node *node, uid_t uid)
{
	return subids_owner(&node->tenants.subids, uid);
}

/* ---- who is served ---- */

int tenant_greet(const struct conn *conn, struct diag *diag)
{
	const struct tenant_rules *rules = &conn->node->tenants;

	if (!rules->serves_all && conn->uid != geteuid())
		diag_set(diag,
			 "this accessd serves user %u only and you are %u: start one of your own "
			 "(unset ACCESS_SOCKET), or ask for a system-wide accessd",
			 (unsigned)geteuid(), (unsigned)conn->uid);
	else if (rules->serves_all && !rules->is_mapped && conn->uid == rules->overflow)
		diag_set(diag, "your uid has no number in accessd's user namespace, so accessd "
			       "cannot tell you from others: map it there, or start an accessd "
			       "of your own (unset ACCESS_SOCKET)");
	else if (rules->shares && conn->uid == rules->nobody.uid)
		diag_set(diag,
			 "user %u is accessd's public_user, who has no jobs: run this one as "
			 "another user, or name another one there",
			 (unsigned)conn->uid);
	else
		return 0;
	return OA_E_PERMISSION;
}

static int refuse_root(const struct conn *conn, struct diag *diag)
{
	if (conn->uid || !conn->node->tenants.serves_all || conn->node->param.serve_root)
		return 0;
	diag_set(diag,
		 "accessd opens no data as root: run the job as another user, have an accessd of "
		 "its own (ACCESS_SOCKET=private), or set serve_root of accessd");
	return OA_E_PERMISSION;
}

int tenant_may_have_job(const struct conn *conn, struct diag *diag)
{
	const uint64_t most = tenant_jobs_most(conn->domain);
	const unsigned n = tenant_jobs(conn->domain);
	char jobs[320];

	if (n < most)
		return 0;
	diag_set(diag,
		 "you have %u jobs here, each rank counted, of %llu that you may have "
		 "(tenant_jobs): %s; end "
		 "one of them, or ask who runs accessd to raise tenant_jobs or tenant.%u.jobs",
		 n, (unsigned long long)most, tenant_tell_jobs(conn->domain, jobs, sizeof(jobs)),
		 (unsigned)conn->domain->tenant);
	return OA_E_REFUSED;
}

int tenant_enter(struct conn *conn, struct diag *diag)
{
	struct identity who = {.uid = conn->uid, .gid = conn->gid, .has_groups = true};
	struct node *node = conn->node;

	if (conn->domain)
		return 0;
	if (refuse_root(conn, diag))
		return OA_E_PERMISSION;
	if (!node->own)
		return domain_request(node, DOMAIN_USER, &who, &conn->domain, diag);
	conn->domain = domain_ref(node->own);
	return 0;
}

/* The supplementary groups that its process had when it connected; *ret is the caller's, NULL: none. */
static void groups_of(const struct conn *conn, gid_t **ret, size_t *ret_n)
{
	socklen_t size = MOST_GROUPS * sizeof(gid_t);
	_cleanup_free_ gid_t *groups = malloc(size);

	*ret = NULL;
	*ret_n = 0;
	if (!groups || getsockopt(conn->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return;
	*ret_n = size / sizeof(gid_t);
	*ret = base_take_ptr(groups);
}

int tenant_may_use(const struct conn *conn, const struct named *named, struct diag *diag)
{
	struct named_client client = {.uid = conn->uid, .gid = conn->gid};
	_cleanup_free_ gid_t *groups = NULL;

	groups_of(conn, &groups, &client.n);
	client.groups = groups;
	client.nobodys = conn->node->tenants.nobodys;
	return named_admit(named, &client, diag) ? OA_E_PERMISSION : 0;
}

static bool is_in_group(const struct conn *conn, gid_t gid)
{
	_cleanup_free_ gid_t *groups = NULL;
	size_t n;

	groups_of(conn, &groups, &n);
	for (size_t i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

bool tenant_is_admin(const struct conn *conn)
{
	return !conn->node->tenants.serves_all || conn->uid == 0 || conn->uid == geteuid() ||
	       conn->gid == getegid() || is_in_group(conn, getegid());
}

/* ---- how much one may have ---- */

bool tenant_is_same(const struct domain *a, const struct domain *b)
{
	return a->kind == b->kind && a->tenant == b->tenant;
}

struct domain *tenant_first(const struct domain *domain)
{
	struct domain *other;

	LIST_FOREACH(other, &domain->node->domains, link)
	if (tenant_is_same(domain, other))
		return other;
	return NULL;
}

uint64_t tenant_memory(const struct domain *domain)
{
	const struct domain *other;
	uint64_t sum = 0;

	LIST_FOREACH(other, &domain->node->domains, link)
	if (tenant_is_same(domain, other))
		sum += other->memory;
	return sum;
}

uint64_t tenant_kept(const struct domain *domain)
{
	const struct domain *other;
	uint64_t sum = 0;

	LIST_FOREACH(other, &domain->node->domains, link)
	if (tenant_is_same(domain, other))
		sum += other->ram_cache.granted;
	return sum;
}

/* What is set for him, else for everybody. */
static uint64_t most_of(const struct node *node, uid_t tenant, enum quota_kind kind, uint64_t all)
{
	const uint64_t his = quota_of(&node->param.quotas, tenant, kind);

	return his ? his : all;
}

uint64_t tenant_memory_most(const struct domain *domain)
{
	const struct node *node = domain->node;
	const uint64_t all = node->param.tenant_memory;
	uint64_t most = node->memory_budget;

	if (node->tenants.serves_all)
		most = most_of(node, domain->tenant, QUOTA_memory, all ? all : most / 2);
	return BASE_MIN(most, node->memory_budget);
}

uint64_t tenant_cache_most(const struct domain *domain)
{
	const struct param *param = &domain->node->param;
	const uint64_t all = param->tenant_cache ? param->tenant_cache : param->cache_size / 4;

	return BASE_MIN(most_of(domain->node, domain->tenant, QUOTA_cache, all), param->cache_size);
}

uint64_t tenant_share(const struct domain *domain)
{
	return domain->node->tenants.serves_all
		   ? most_of(domain->node, domain->tenant, QUOTA_share, 1)
		   : 1;
}

uint64_t tenant_read_most(const struct domain *domain)
{
	const struct node *node = domain->node;

	return node->tenants.serves_all ? most_of(node, domain->tenant, QUOTA_read_bandwidth, 0)
					: 0;
}

bool tenant_is_bound(const struct domain *domain)
{
	const struct node *node = domain->node;
	uint64_t used = tenant_memory(domain) + tenant_kept(domain);
	uint64_t most = tenant_memory_most(domain), all = node->memory_used + node->memory_kept;

	return most - BASE_MIN(used, most) <
	       node->memory_budget - BASE_MIN(all, node->memory_budget);
}

unsigned tenant_streams(const struct domain *domain)
{
	const struct domain *other;
	const struct stream *stream;
	unsigned n = 0;

	LIST_FOREACH(other, &domain->node->domains, link)
	LIST_FOREACH(stream, &other->streams, link)
	n += tenant_is_same(stream->payer, domain);
	return n;
}

uint64_t tenant_streams_most(const struct domain *domain)
{
	const struct node *node = domain->node;

	return node->tenants.serves_all
		   ? most_of(node, domain->tenant, QUOTA_streams, node->param.tenant_streams)
		   : UINT64_MAX;
}

/* One that has a job, or waits for it. */
static bool is_job(const struct conn *conn)
{
	return conn->job || (!conn->describes && (conn->state == CONN_WAITS_SOURCE ||
						  conn->state == CONN_WAITS_STREAM));
}

unsigned tenant_jobs(const struct domain *domain)
{
	const struct conn *conn;
	unsigned n = 0;

	LIST_FOREACH(conn, &domain->node->conns, link)
	n += is_job(conn) && conn->domain && tenant_is_same(conn->domain, domain);
	return n;
}

uint64_t tenant_jobs_most(const struct domain *domain)
{
	const struct node *node = domain->node;
	const uint64_t all = node->param.tenant_jobs ? node->param.tenant_jobs : UINT64_MAX;

	return node->tenants.serves_all ? most_of(node, domain->tenant, QUOTA_jobs, all)
					: UINT64_MAX;
}

/* How another one is written, cut where people have enough of it. */
static size_t add_job(char *ret, size_t size, size_t used, const struct conn *conn)
{
	char name[64];
	int more;

	base_quote(conn->request.job ? conn->request.job : "", name, sizeof(name));
	more = snprintf(ret + used, size - used, "%s%s (pid %ld)", used ? ", " : "", name,
			(long)conn->pid);
	return BASE_MIN(used + (more > 0 ? (size_t)more : 0), size - 1);
}

const char *tenant_tell_jobs(const struct domain *domain, char *ret, size_t size)
{
	const struct conn *conn;
	unsigned told = 0, n = 0;
	size_t used = 0;

	*ret = '\0';
	LIST_FOREACH(conn, &domain->node->conns, link)
	{
		if (!is_job(conn) || !conn->domain || !tenant_is_same(conn->domain, domain))
			continue;
		n++;
		if (told < TOLD_JOBS) {
			used = add_job(ret, size, used, conn);
			told++;
		}
	}
	if (n > told)
		snprintf(ret + used, size - used, " and %u more", n - told);
	if (n == 0)
		snprintf(ret, size, "what lingers of jobs that ended");
	return ret;
}

unsigned tenant_conns(const struct node *node, uid_t uid)
{
	const uid_t tenant = tenant_of(node, uid);
	const struct conn *conn;
	unsigned n = porter_closes(&node->porters, uid);

	LIST_FOREACH(conn, &node->conns, link)
	n += tenant_of(node, conn->uid) == tenant;
	return n;
}

uint64_t tenant_conns_most(const struct node *node, uid_t uid, uint64_t most)
{
	uint64_t all = node->param.tenant_clients ? node->param.tenant_clients
						  : BASE_MAX(most / 4, (uint64_t)LEAST_CONNS);

	if (!node->tenants.serves_all)
		return most;
	return BASE_MIN(most_of(node, tenant_of(node, uid), QUOTA_clients, all), most);
}
