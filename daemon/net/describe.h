/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NET_DESCRIBE_H
#define DAEMON_NET_DESCRIBE_H

/* Answers to DESCRIBE: the catalogue (shmring/catalog.h) of a dataset version. */

#include <sys/queue.h>
#include <sys/types.h>
#include "base/base.h"

struct conn;
struct domain;
struct node;
struct source;
struct describe_entry;

/* What a domain's connections were told: each version once. */
struct describe_catalogs {
	TAILQ_HEAD(describe_entries, describe_entry) entries; /* who was asked for last is last */
	unsigned n;
};

void describe_catalogs_init(struct describe_catalogs *disk_cache);
/* Lets go of all of them; no connection may wait for one. */
void describe_catalogs_fini(struct domain *domain);
/* Does somebody still have one of them? */
bool describe_is_lent(const struct describe_catalogs *disk_cache);

/* Sends DESCRIBED, now or when the catalogue of source's dataset is written, or refuses the connection. */
void describe_answer(struct conn *conn, struct source *source);
/* The source whose catalogue the connection waits for; NULL: it waits for none. */
const struct source *describe_source(const struct conn *conn);
/* It waits for none any more. */
void describe_forget(struct conn *conn);
/* A child ended. false: it was none of these. */
bool describe_ended(struct node *node, pid_t pid, int status);
/* Bytes of those that nobody has: they give way to anything else. */
uint64_t describe_idle(const struct describe_catalogs *disk_cache);
/* Frees one that nobody has, of payer's tenant (NULL: anybody's). false: there is none. */
bool describe_give_way(struct node *node, const struct domain *payer);

#endif
