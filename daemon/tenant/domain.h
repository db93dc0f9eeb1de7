/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_TENANT_DOMAIN_H
#define DAEMON_TENANT_DOMAIN_H

/*
 * A trust domain: whose data its processes may see. It has a reader and a worker pool of its own, the
 * sources and streams that they work for, and the doorbell and the eventfd between them and us, so that
 * nothing that goes on in one domain is seen or moved from another.
 *
 *   made for the first job of a user --last one gone, sources and streams too--> idle --tenant_idle_s--> ended
 */

#include <sys/queue.h>
#include "base/base.h"
#include "base/identity.h"
#include "daemon/net/describe.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/cluster/carrying.h"
#include "daemon/loop.h"
#include "daemon/proc/reading.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/proc/workers.h"
#include "daemon/tenant/named.h"
#include "sched/bucket.h"
#include "sched/fair.h"
#include "shmring/layout.h"

struct chore;
struct node;
struct source;
struct stream;

#define DOMAIN_MOST_GROUPS 3 /* domains of one uid, of another gid each, at once */

enum domain_kind {
	DOMAIN_OWN,    /* of our own user: the one domain of an accessd that serves nobody else */
	DOMAIN_USER,   /* of a tenant */
	DOMAIN_PUBLIC, /* of data that are open to all */
	DOMAIN_NAMED,  /* of one named data set, read as its owner for those who may use it */
};

struct domain {
	LIST_ENTRY(domain) link;
	struct node *node;
	enum domain_kind kind;
	struct identity who;       /* as whom its processes run; OWN: as we do */
	char name[NAMED_NAME_MAX]; /* NAMED: of the data set, else "" */
	uid_t tenant;              /* as whom it counts (tenant_of()) */
	unsigned users; /* connections and streams that refer to it, beside its own streams */
	bool ending;
	struct loop_watch *idle;
	uint64_t
	    memory; /* of the streams and catalogues that it pays for, and of indexes: index_room.h */
	struct reading reading;
	struct workers workers;
	struct carrying carrying;
	struct layout_doorbell *doorbell;
	int doorbell_fd, event_fd;
	struct disk_cache disk_cache;
	struct ram_cache ram_cache;
	struct loop_watch *event_watch;
	LIST_HEAD(domain_sources, source) sources;
	LIST_HEAD(domain_streams, stream) streams;
	LIST_HEAD(domain_chores, chore) chores;
	uint64_t last_chore;
	struct describe_catalogs catalogs;
	uint64_t reader_restarts, parent_restarts, worker_restarts;
	uint64_t samples_delivered;  /* to its user's jobs that ended */
	struct fair_account account; /* of its user's jobs */
	uint64_t settled_ns;         /* CPU time of its processes that is accounted for */
	uint64_t settled_at_ns;      /* when it was */
	uint64_t looked_ns;          /* fill_fair.c: whether its workers want a processor */
	bool competes;               /* they did */
	struct bucket bucket;        /* fill_read.c: what its tenant may read now */
	unsigned busy;               /* fill_fair.c: streams that its tenant has work in */
};

/* The domain of that kind and identity, made with its processes if there is none; *ret is a
 * reference. 0, or an OA_E_... with diag. */
int domain_request(struct node *node, enum domain_kind kind, const struct identity *who,
		   struct domain **ret, struct diag *diag);
/* The same for a named data set, whose owner is known. */
int domain_request_named(struct node *node, const struct named *named, struct domain **ret,
			 struct diag *diag);
/* Do several users' jobs have streams of it? */
bool domain_is_shared(const struct domain *domain);
struct domain *domain_ref(struct domain *domain);
void domain_unref(struct domain *domain); /* NULL is fine */
/* Something of it ended: with nothing left it ends itself after a while. */
void domain_rest(struct domain *domain);
/* Ends the user's domain that has been there longest of those that nobody uses, of anybody's (NULL) or of that
 * uid's. false: there is none. */
bool domain_end_idle(struct node *node, const struct identity *who);
/* Ends its streams, sources and processes; no connection may refer to it any more. */
void domain_free(struct domain *domain);
/* A reader or worker parent that has ended, and is no more than looked at (child_has_ended()); 0: none. */
pid_t domain_find_ended(const struct node *node, int *ret_status, uint64_t *ret_cpu_ns);
/* A child ended: was it one of a domain's processes? cpu_ns: what it used. What the turn was about; NULL: no. */
const char *domain_child_ended(struct node *node, pid_t pid, int status, uint64_t cpu_ns);
/* The option --as for its processes, without groups for workers; NULL: as we are. */
const char *domain_identity(const struct domain *domain, bool is_reader,
			    char ret[IDENTITY_TEXT_MAX]);
/* The name under which what it stores is kept apart from others': "" for our own user. */
void domain_key(const struct domain *domain, char ret[IDENTITY_TEXT_MAX]);

#endif
