/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers to DESCRIBE: the catalogue (shmring/catalog.h) of a dataset version. */

#include "base/base.h"

struct conn;
struct domain;
struct node;
struct source;

/* What the domain's connections are told. 0 or -ENOMEM. */
int describe_catalogs_init(struct domain *domain);
/* Lets go of all catalogues; no connection may wait for one. */
void describe_forget_all(struct domain *domain);
void describe_catalogs_fini(struct domain *domain); /* the same, for good */
/* Does somebody still have one of them? */
bool describe_is_lent(const struct domain *domain);

/* Sends DESCRIBED, now or when the catalogue of source's dataset is written, or refuses the connection. */
void describe_answer(struct conn *conn, struct source *source);
/* The source whose catalogue the connection waits for; NULL: it waits for none. */
const struct source *describe_source(const struct conn *conn);
/* It waits for none any more. */
void describe_forget(struct conn *conn);
/* A child ended. false: it was none of these. */
bool describe_ended(struct node *node, pid_t pid, int status);
/* Bytes of those that nobody has: they give way to anything else. */
uint64_t describe_idle(const struct domain *domain);
/* Frees one that nobody has, of payer's tenant (NULL: anybody's). false: there is none. */
bool describe_give_way(struct node *node, const struct domain *payer);
