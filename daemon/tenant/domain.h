/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A trust domain: whose data its processes may see. It has a reader and a worker pool of its own, the
 * sources and streams that they work for, and the doorbell and the eventfd between them and us, so that
 * nothing that goes on in one domain is seen or moved from another.
 *
 *   made for the first job of a user --last one gone, sources and streams too--> idle --tenant_idle_s--> ended
 */

#include <sys/queue.h>
#include "base/identity.h"
#include "daemon/cluster/carrying.h"
#include "daemon/loop.h"
#include "daemon/proc/reading.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/proc/workers.h"
#include "daemon/serve/fill_state.h"
#include "daemon/tenant/memory.h"
#include "daemon/tenant/named.h"
#include "shmring/layout.h"

struct chore;
struct describe_catalogs;
struct node;
struct ram_cache;
struct source;
struct source_calls;
struct stream;

#define DOMAIN_MOST_GROUPS 3 /* domains of one uid, of another gid each, at once */

enum domain_kind {
	DOMAIN_OWN,    /* of our own user: the one domain of an accessd that serves nobody else */
	DOMAIN_USER,   /* of a tenant */
	DOMAIN_PUBLIC, /* of data that are open to all */
	DOMAIN_NAMED,  /* of one named data set, read as its owner for those who may use it */
};

struct domain_users {
	unsigned n; /* connections and streams that refer to it, beside its own streams */
	bool ending;
	struct loop_watch *idle;
};

struct domain_bell { /* the doorbell's memory, and what it rings us by */
	int doorbell_fd, event_fd;
	struct loop_watch *watch;
};

struct domain {
	LIST_ENTRY(domain) link;
	struct node *node;
	enum domain_kind kind;
	struct identity who;       /* as whom its processes run; OWN: as we do */
	char name[NAMED_NAME_MAX]; /* NAMED: of the data set, else "" */
	uid_t tenant;              /* as whom it counts (tenant_of()) */
	struct domain_users users;
	struct memory_part memory;
	uint64_t mark; /* as a stream's */
	struct reading reading;
	struct workers workers;
	struct carrying carrying;
	struct layout_doorbell *doorbell;
	struct domain_bell bell;
	struct disk_cache disk_cache;
	struct ram_cache *ram_cache;
	const struct source_calls *source_calls; /* of who has streams of these */
	LIST_HEAD(domain_sources, source) sources;
	LIST_HEAD(domain_streams, stream) streams;
	LIST_HEAD(domain_chores, chore) chores;
	uint64_t last_chore;
	struct describe_catalogs *catalogs;
	struct restarts restarts;
	struct fair_had had; /* its user's jobs; samples: those that ended */
	struct fill_share share;
};

/* Do several users' jobs have streams of it? */
bool domain_is_shared(const struct domain *domain);
struct domain *domain_ref(struct domain *domain);
void domain_unref(struct domain *domain); /* NULL is fine */
/* It uses so much more memory, or less. */
void domain_account(struct domain *domain, int64_t bytes);
bool domain_is_unused(const struct domain *domain);
/* Something of it ended: with nothing left it ends itself after a while. */
void domain_rest(struct domain *domain);
/* The option --as for its processes, without groups for workers; NULL: as we are. */
const char *domain_identity(const struct domain *domain, bool is_reader,
			    char ret[IDENTITY_TEXT_MAX]);
/* The name under which what it stores is kept apart from others': "" for our own user. */
void domain_key(const struct domain *domain, char ret[IDENTITY_TEXT_MAX]);
