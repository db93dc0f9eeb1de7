/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a client is, the kernel says: SO_PEERCRED, as its uid and gid were when it connected, in the
 * numbers of our own user namespace. A container's root is the uid that it is mapped to. A uid that has
 * no number here looks like the overflow uid, and so do all others of that kind: they are refused, for
 * they would be one tenant.
 *
 * A domain belongs to a (uid, gid): the reader has the gid of the client, which no user database
 * could tell for a number without an entry, and which `newgrp` changes.
 */
#include "daemon/tenant/rights.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/identity.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/tenant/domains.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"

#define MOST_GROUPS 4096 /* who has more is in none: all of them are read at each question */

int rights_greet(const struct conn *conn, struct diag *diag)
{
	const struct tenant_rules *rules = &conn->node->tenants;

	if (!rules->serves_all && conn->uid != geteuid())
		diag_set(diag,
			 "this accessd serves user %u only and you are %u: start one of your own "
			 "(unset ACCESS_SOCKET), or ask for a system-wide accessd",
			 (unsigned)geteuid(), (unsigned)conn->uid);
	else if (rules->serves_all && !rules->is_mapped && conn->uid == rules->overflow)
		diag_set(diag, "your uid has no number in accessd's user namespace, so accessd "
			       "cannot tell you from others: map it there, or start an accessd of "
			       "your own (unset ACCESS_SOCKET)");
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
	return diag_fail(
	    diag, OA_E_PERMISSION,
	    "accessd opens no data as root: run the job as another user, have an accessd of its "
	    "own (ACCESS_SOCKET=private), or set serve_root of accessd");
}

/* The other's job, or one that was let in and waits to begin, and this rank is not there yet: without it the job stands still. */
static bool completes(const struct conn *conn, const struct conn *other)
{
	const struct request *mine = &conn->request, *its = &other->request;
	const bool is_in =
	    other->job || other->state == CONN_WAITS_SOURCE || other->state == CONN_WAITS_STREAM;

	return is_in && !other->describes && mine->ranks > 1 && its->ranks == mine->ranks &&
	       its->rank != mine->rank && its->job && strcmp(its->job, mine->job) == 0;
}

/* A program that trains may open what it evaluates on, also where its own job has not come back to this accessd yet, and the ranks of a job that has begun may all come. */
static bool has_job_already(const struct conn *conn)
{
	if (programs_have(&conn->node->clients.programs, conn->uid, conn->pid))
		return true;
	BASE_EACH(other, &conn->node->clients.list, link)
		if (other != conn && other->uid == conn->uid && completes(conn, other))
			return true;
	return false;
}

int rights_may_have_job(const struct conn *conn, struct diag *diag)
{
	const uint64_t most = tenant_jobs_most(conn->domain);
	const unsigned n = tenant_jobs(conn->domain);
	const char *closed = conn->node->param.closed;
	char jobs[320];

	if (*closed && !conn->request.token.data && !has_job_already(conn))
		return diag_fail(diag, OA_E_REFUSED,
				 "accessd serves no new jobs now, and those that run go on: %.400s",
				 closed);
	if (n < most)
		return 0;
	return diag_fail(
	    diag, OA_E_REFUSED,
	    "you have %u jobs here, each rank counted, of %llu that you may have (tenant_jobs): "
	    "%s; end one of them, or ask who runs accessd to raise tenant_jobs or tenant.%u.jobs",
	    n, (unsigned long long)most, tenant_tell_jobs(conn->domain, jobs, sizeof(jobs)),
	    (unsigned)conn->domain->tenant);
}

int rights_enter(struct conn *conn, struct diag *diag)
{
	struct identity who = {.uid = conn->uid, .gid = conn->gid, .has_groups = true};
	struct node *node = conn->node;

	if (conn->domain)
		return 0;
	if (refuse_root(conn, diag))
		return OA_E_PERMISSION;
	if (!node->own)
		return domains_request(node, DOMAIN_USER, &who, &conn->domain, diag);
	conn->domain = domain_ref(node->own);
	return 0;
}

/* The supplementary groups that its process had when it connected, ascending; *ret is the caller's, NULL: none. */
static void groups_of(const struct conn *conn, gid_t **ret, size_t *ret_n)
{
	socklen_t size = MOST_GROUPS * sizeof(gid_t);
	_cleanup_free_ gid_t *groups = malloc(size);

	*ret = NULL;
	*ret_n = 0;
	if (!groups || getsockopt(conn->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return;
	*ret_n = size / sizeof(gid_t);
	named_sort_groups(groups, *ret_n);
	*ret = base_take_ptr(groups);
}

/* Its groups are the caller's to free. */
static struct named_client client_of(const struct conn *conn, gid_t **ret_groups)
{
	struct named_client client = {
	    .uid = conn->uid, .gid = conn->gid, .nobodys = conn->node->tenants.nobodys};

	groups_of(conn, ret_groups, &client.n);
	client.groups = *ret_groups;
	return client;
}

int rights_may_use(const struct conn *conn, const struct named *named, struct diag *diag)
{
	_cleanup_free_ gid_t *groups = NULL;
	const struct named_client client = client_of(conn, &groups);

	return named_admit(named, &client, diag) ? OA_E_PERMISSION : 0;
}

uint64_t rights_named(const struct conn *conn)
{
	const struct named_sets *sets = &conn->node->param.named;
	_cleanup_free_ gid_t *groups = NULL;
	struct named_client client;
	uint64_t mask = 0;

	if (!sets->n)
		return 0;
	client = client_of(conn, &groups);
	for (unsigned i = 0; i < sets->n; i++)
		mask |= (uint64_t)named_allows(&sets->set[i], &client) << i;
	return mask;
}

_Static_assert(NAMED_SETS <= 64, "a bit each");

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

bool rights_is_admin(const struct conn *conn)
{
	return !conn->node->tenants.serves_all || conn->uid == 0 || conn->uid == geteuid() ||
	       conn->gid == getegid() || is_in_group(conn, getegid());
}
