/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The node's disk for what is kept, `cache_size`, and how domains share it. A domain gets a limit for its
 * store when it comes and has it until it ends; stores of who is not served may take what is left, and make
 * room where it is needed. Both together are never more than `cache_size`.
 *
 *   DISK_CACHE_ALONE --comes--> ASKS --a look begins--> LOOKS --> HAS (a limit), or REFUSED --somebody ends--> ASKS
 */

#include "base/base.h"

struct domain;
struct identity;
struct json_out;
struct loop_watch;
struct node;
struct prune_report;

/* Ends a domain that nobody uses: domains_end_idle(). */
typedef bool (*stores_end_idle_fn)(struct node *node, const struct identity *who);

struct stores {
	stores_end_idle_fn end_idle;
	struct loop_watch *soon;
	pid_t pid;                     /* of the child that looks; 0: none */
	struct prune_report *report;   /* mapping that it writes */
	uint64_t most;                 /* bytes that it is to leave to stores that rest */
	uint64_t resting;              /* bytes that they took at the last look */
	uint64_t pruned, pruned_bytes; /* stores that were deleted */
};

/* What the parameters say of shares. */
struct stores_rule {
	uint64_t size, most; /* of all; of one user */
	uint64_t his;        /* that his domains have already, with other groups */
	unsigned users;      /* that there can be at once */
};
/* Bytes that each of them is sure of. */
uint64_t stores_sure(const struct stores_rule *rule);
/* Bytes of the next domain, when n other users have something, and all have `given` bytes together. */
uint64_t stores_share(const struct stores_rule *rule, uint64_t given, unsigned n);

int stores_init(struct node *node, stores_end_idle_fn end_idle);
void stores_fini(struct node *node);
/* The domain came and wants to keep things: stores_tell() follows when it has a limit. */
void stores_ask(struct domain *domain);
/* Its reader is told where to keep them, and how much. */
void stores_tell(struct domain *domain);
/* It ends. */
void stores_leave(struct domain *domain);
/* A child ended. false: it was none of these. */
bool stores_ended(struct node *node, pid_t pid, int status);
void stores_describe(const struct node *node, struct json_out *out); /* members of the node's */
void stores_describe_one(const struct domain *domain,
			 struct json_out *out); /* an object, for people */
