/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tenants: the users whose jobs a system accessd serves. Who is served, in which domain, and how much
 * of the node one of them may have. A private accessd, and one that may not start processes as
 * others, has one tenant: its own user, without limits of his own.
 */

#include "daemon/tenant/memory.h"

struct domain;
struct node;

/* The uid whose shares that one's jobs are counted against. */
uid_t tenant_of(const struct node *node, uid_t uid);

/* Are these domains one user's? */
bool tenant_is_same(const struct domain *a, const struct domain *b);
/* The first of the tenant's domains stands for him, where something is his and not of one of them; NULL: he has
 * none any more. */
struct domain *tenant_first(const struct domain *domain);
/* How many there are that have a domain of their own. */
unsigned tenant_count(const struct node *node);
/* What the tenant's streams and indexes use, and keep of forms; bytes that he may have in all. */
struct memory_part tenant_memory(const struct domain *domain);
uint64_t tenant_memory_most(const struct domain *domain);
/* Bytes of the disk that he may have. */
uint64_t tenant_cache_most(const struct domain *domain);
/* His parts of the CPU time when all want more than there is. */
uint64_t tenant_share(const struct domain *domain);
/* Bytes a second that may be read for him; 0: any number. */
uint64_t tenant_read_most(const struct domain *domain);
/* What is left to the tenant: of the node's budget, and of his share of it; the limit that leaves him
 * so little, and its name. */
uint64_t tenant_free_bytes(const struct domain *domain);
uint64_t tenant_limit_of(const struct domain *domain, const char **ret_name);
/* Has something give way that nobody misses, if that makes room for him. false: there is none. */
bool tenant_make_room(struct domain *domain);
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
