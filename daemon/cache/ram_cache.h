/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The resident memory of a domain (shmring/resident.h), seen from accessd: how much of the budget it may have
 * now, and when its reader may use a place of it again.
 */

#include "base/base.h"

struct domain;
struct node;
struct reader_state;

/* Makes the memory, where the domain keeps anything. 0 or negative errno. */
int ram_cache_init(struct domain *domain);
int ram_cache_fd(const struct domain *domain); /* its own; -1: there is none */
void ram_cache_fini(struct domain *domain);
/* Bytes that the domain may have at most; 0: none. */
uint64_t ram_cache_most(const struct domain *domain);
/* Its reader has said how the store and the memory are: grants more as it fills. */
void ram_cache_said(struct domain *domain, const struct reader_state *state);
void ram_cache_reader_died(struct domain *domain);
/* Streams need what a domain has (payer: one of his, NULL: anybody's). false: nobody has any. */
bool ram_cache_give_way(struct node *node, const struct domain *payer);
/* The reader asks to be told when no task that was handed out until now is read any more. */
void ram_cache_asked(struct domain *domain, uint64_t question);
/* Is that so now? Tells it. */
void ram_cache_look(struct domain *domain);
