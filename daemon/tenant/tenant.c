/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants.
 *
 * Limits belong to the uid, not to a (uid, gid) as a domain does, so what the domains of a uid use is added up; where `subordinate_ids` says so, those of his subordinate uids with
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

#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"

#define LEAST_CONNS 8
#define TOLD_JOBS 3 /* by name, in a refusal */

uid_t tenant_of(const struct node *node, uid_t uid)
{
	return subids_owner(&node->tenants.subids, uid);
}

/* ---- how much one may have ---- */

bool tenant_is_same(const struct domain *a, const struct domain *b)
{
	return a->kind == b->kind && a->tenant == b->tenant;
}

struct domain *tenant_first(const struct domain *domain)
{
	BASE_EACH(other, &domain->node->domains, link)
		if (tenant_is_same(domain, other))
			return other;
	return NULL;
}

unsigned tenant_count(const struct node *node)
{
	unsigned n = 0;

	BASE_EACH(domain, &node->domains, link)
		n += domain->kind == DOMAIN_USER && tenant_first(domain) == domain;
	return n;
}

struct memory_part tenant_memory(const struct domain *domain)
{
	struct memory_part sum = {.used = 0};

	BASE_EACH(other, &domain->node->domains, link)
		if (tenant_is_same(domain, other)) {
			sum.used += other->memory.used;
			sum.kept += other->memory.kept;
		}
	return sum;
}

/* What is set for him, else for everybody. */
static uint64_t most_of(const struct node *node, uid_t tenant, enum quota_kind kind, uint64_t all)
{
	const uint64_t his = quota_of(&node->param.quotas, tenant, kind);

	return his ? his : all;
}

/* The same, and `alone` for the one user of an accessd that serves nobody else. */
static uint64_t limit_of(const struct domain *domain, enum quota_kind kind, uint64_t all,
			 uint64_t alone)
{
	const struct node *node = domain->node;

	return node->tenants.serves_all ? most_of(node, domain->tenant, kind, all) : alone;
}

uint64_t tenant_memory_most(const struct domain *domain)
{
	const uint64_t all = domain->node->param.tenant_memory;
	const uint64_t budget = domain->node->memory.budget;

	return BASE_MIN(limit_of(domain, QUOTA_memory, all ? all : budget / 2, budget), budget);
}

uint64_t tenant_cache_most(const struct domain *domain)
{
	const struct param *param = &domain->node->param;
	const uint64_t all = param->tenant_cache ? param->tenant_cache : param->cache_size / 4;

	return BASE_MIN(most_of(domain->node, domain->tenant, QUOTA_cache, all), param->cache_size);
}

uint64_t tenant_share(const struct domain *domain)
{
	return limit_of(domain, QUOTA_share, 1, 1);
}

uint64_t tenant_read_most(const struct domain *domain)
{
	return limit_of(domain, QUOTA_read_bandwidth, 0, 0);
}

static uint64_t left_of_share(const struct domain *domain)
{
	const struct memory_part has = tenant_memory(domain);
	const uint64_t most = tenant_memory_most(domain);

	return most - BASE_MIN(has.used + has.kept, most);
}

bool tenant_is_bound(const struct domain *domain)
{
	return left_of_share(domain) < memory_left(&domain->node->memory);
}

uint64_t tenant_free_bytes(const struct domain *payer)
{
	return BASE_MIN(left_of_share(payer), memory_left(&payer->node->memory));
}

uint64_t tenant_limit_of(const struct domain *payer, const char **ret_name)
{
	const struct node *node = payer->node;
	bool is_bound = tenant_is_bound(payer);

	*ret_name = is_bound ? "a user's share, parameter `tenant_memory`" : node->memory.source;
	return is_bound ? tenant_memory_most(payer) : node->memory.budget;
}

bool tenant_make_room(struct domain *domain)
{
	const struct memory_room *room = domain->node->memory.room;

	return room && room->make(domain);
}

unsigned tenant_streams(const struct domain *domain)
{
	unsigned n = 0;

	BASE_EACH(other, &domain->node->domains, link)
		BASE_EACH(stream, &other->streams, link)
			n += tenant_is_same(stream->payer, domain);
	return n;
}

uint64_t tenant_streams_most(const struct domain *domain)
{
	return limit_of(domain, QUOTA_streams, domain->node->param.tenant_streams, UINT64_MAX);
}

/* One that has a job, or waits for it. */
static bool is_job(const struct conn *conn)
{
	return conn->job || (!conn->describes && (conn->state == CONN_WAITS_SOURCE ||
						  conn->state == CONN_WAITS_STREAM));
}

unsigned tenant_jobs(const struct domain *domain)
{
	unsigned n = 0;

	BASE_EACH(conn, &domain->node->clients.list, link)
		n += is_job(conn) && conn->domain && tenant_is_same(conn->domain, domain);
	return n;
}

uint64_t tenant_jobs_most(const struct domain *domain)
{
	const uint64_t all = domain->node->param.tenant_jobs;

	return limit_of(domain, QUOTA_jobs, all ? all : UINT64_MAX, UINT64_MAX);
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
	unsigned told = 0, n = 0;
	size_t used = 0;

	*ret = '\0';
	BASE_EACH(conn, &domain->node->clients.list, link) {
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
	unsigned n = porter_closes(&node->porters, uid);

	BASE_EACH(conn, &node->clients.list, link)
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
