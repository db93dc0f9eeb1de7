/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What people ask of the store of what is kept (access-ctl cache): passed on to the reader of the domain
 * that it is about, and its answer back. One at a time for each connection.
 */

#include "daemon/net/message.h"

struct conn;
struct domain;

/* PROTO_CACHE; without `who` conn has entered (tenant/rights.h). Answered with REFUSED, or later with PROGRESS and CACHED. */
void chores_ask(struct conn *conn, const struct message_cache *asked);
/* The connection ends, and with it what it wanted to know; what it wanted changed goes on. */
void chores_forget(struct conn *conn);
/* The domain ends: nobody is there who asked. */
void chores_end(struct domain *domain);

/* From the reader; fd stays the caller's. */
void chores_progress(struct domain *domain, uint64_t id, uint64_t done, uint64_t total);
void chores_done(struct domain *domain, uint64_t id, uint64_t code, const char *text, int fd);
/* There will be no answers to what was asked. */
void chores_fail(struct domain *domain, const char *why);
