/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_TENANT_TENANT_H
#define DAEMON_TENANT_TENANT_H

/*
 * Tenants: the users whose jobs a system accessd serves. Who is served, in which domain, and how much
 * of the node one of them may have. A private accessd, and one that may not start processes as
 * others, has one tenant: its own user, without limits of his own.
 */

#include <sys/types.h>
#include "base/base.h"
#include "base/identity.h"
#include "daemon/tenant/subids.h"

struct conn;
struct domain;
struct named;
struct node;
struct param;

/* What the kernel says about us, once at the start. */
struct tenant_rules {
	bool serves_all; /* may start processes as others */
	bool is_mapped; /* every uid has a number here, so the overflow uid is a user like others */
	uid_t overflow; /* what uids without a number here look like */
	gid_t nobodys;  /* the same of gids; (gid_t)-1: all have one */
	struct subids subids;   /* as whom a uid counts, if not as itself */
	bool shares;            /* what is open to everybody is read once for all */
	struct identity nobody; /* by whom, if so */
	char why_not[256];      /* it is wanted, and there is nobody to do it; else "" */
};

/* Looks; serves nobody but our own user when is_private, or without the capabilities. 0, or an error with
 * diag. */
int tenant_rules_init(struct tenant_rules *rules, const struct param *param, bool is_private,
		      struct diag *diag);
void tenant_rules_fini(struct tenant_rules *rules);
/* The uid whose shares that one's jobs are counted against. */
uid_t tenant_of(const struct node *node, uid_t uid);

/* May it talk to us (HELLO)? 0, or an OA_E_... with diag. */
int tenant_greet(const struct conn *conn, struct diag *diag);
/* Before it opens anything: conn->domain is its user's, a reference. 0, or an OA_E_... with diag. */
int tenant_enter(struct conn *conn, struct diag *diag);
/* Another job of conn's user, who has entered? 0, or an OA_E_... with diag. */
int tenant_may_have_job(const struct conn *conn, struct diag *diag);
/* May conn's process use that data set? 0, or an OA_E_... with diag. */
int tenant_may_use(const struct conn *conn, const struct named *named, struct diag *diag);
/* Root, our own user, and who is in our group, see everything. */
bool tenant_is_admin(const struct conn *conn);

/* Are these domains one user's? */
bool tenant_is_same(const struct domain *a, const struct domain *b);
/* The first of the tenant's domains stands for him, where something is his and not of one of them; NULL: he has
 * none any more. */
struct domain *tenant_first(const struct domain *domain);
/* Bytes that the tenant's streams and indexes use, and that he may use in all. */
uint64_t tenant_memory(const struct domain *domain);
/* Bytes that his domains were granted to keep forms in memory. */
uint64_t tenant_kept(const struct domain *domain);
uint64_t tenant_memory_most(const struct domain *domain);
/* Bytes of the disk that he may have. */
uint64_t tenant_cache_most(const struct domain *domain);
/* His parts of the CPU time when all want more than there is. */
uint64_t tenant_share(const struct domain *domain);
/* Bytes a second that may be read for him; 0: any number. */
uint64_t tenant_read_most(const struct domain *domain);
/* Is it his share that leaves him less than the node could? */
bool tenant_is_bound(const struct domain *domain);
/* Streams that he pays for, and may. */
unsigned tenant_streams(const struct domain *domain);
uint64_t tenant_streams_most(const struct domain *domain);
/* Jobs that he has, or that wait to be served, and may. */
unsigned tenant_jobs(const struct domain *domain);
uint64_t tenant_jobs_most(const struct domain *domain);
/* Who they are, the first few by name, for people. Returns ret. */
const char *tenant_tell_jobs(const struct domain *domain, char *ret, size_t size);
/* Connections of a uid, also those that cannot be closed yet, and the most that one may have when the node has `most`. */
unsigned tenant_conns(const struct node *node, uid_t uid);
uint64_t tenant_conns_most(const struct node *node, uid_t uid, uint64_t most);

#endif
