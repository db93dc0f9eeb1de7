/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The budget of memory, and who has what of it: the node's in all, and each domain's part. Plain arithmetic. */

#include "base/base.h"

struct domain;
struct json_out;
struct node;

struct memory_room { /* what gives way where memory is wanted (stream_end.c) */
	bool (*make)(struct domain *domain); /* for that one's tenant. false: there is nothing */
	/* Bytes that would give way, of payer's tenant; NULL: anybody's. */
	uint64_t (*idle)(const struct node *node, const struct domain *payer);
};

struct memory {
	uint64_t budget, used;
	uint64_t catalogs; /* of what is used */
	uint64_t kept; /* of the budget, too: granted to memory caches, which give way to streams */
	const char *source;             /* of the budget */
	const struct memory_room *room; /* NULL: nothing gives way */
};

struct memory_part { /* a domain's */
	uint64_t
	    used; /* of the streams and catalogues that it pays for, and of indexes: index_room.h */
	uint64_t kept; /* granted to keep forms in memory */
};

/* That much more, or less, is used. */
void memory_account(struct memory *memory, struct memory_part *part, int64_t bytes);
/* So much is granted to keep forms in memory, in all. */
void memory_keep(struct memory *memory, struct memory_part *part, uint64_t bytes);
uint64_t memory_left(const struct memory *memory);
/* Members "memory_...". */
void memory_describe(const struct memory *memory, struct json_out *out);
