/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DOMAIN_H
#define DAEMON_DOMAIN_H

/*
 * A trust domain: whose data its processes may see. It has a reader and a worker pool of its own, the
 * sources and streams that they work for, and the bell and the eventfd between them and us, so that
 * nothing that goes on in one domain is seen or moved from another.
 */

#include <sys/queue.h>
#include "base/base.h"
#include "daemon/describe.h"
#include "daemon/loop.h"
#include "daemon/reading.h"
#include "daemon/workers.h"
#include "shmring/layout.h"

struct node;
struct source;
struct stream;

struct domain {
	LIST_ENTRY(domain) link;
	struct node *node;
	struct reading reading;
	struct workers workers;
	struct layout_bell *bell;
	int bell_fd, event_fd;
	struct loop_watch *event_watch;
	LIST_HEAD(domain_sources, source) sources;
	LIST_HEAD(domain_streams, stream) streams;
	struct describe_shelf catalogs;
};

/* A domain with its processes started, in node->domains. 0, or negative errno with diag. */
int domain_new(struct node *node, struct domain **ret, struct diag *diag);
/* Ends its streams, sources and processes; no connection may refer to it any more. */
void domain_free(struct domain *domain);
/* A child ended: was it one of a domain's processes? cpu_ns: what it used. */
bool domain_child_ended(struct node *node, pid_t pid, int status, uint64_t cpu_ns);

#endif
