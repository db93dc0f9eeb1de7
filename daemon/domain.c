/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust domains. Order of ending: streams, sources, and last the processes that worked for them.
 */
#include "daemon/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/limits.h"
#include "daemon/node.h"
#include "daemon/pump.h"
#include "daemon/source.h"
#include "daemon/stream.h"
#include "shmring/lane.h"

static void on_event(void *arg)
{
	struct domain *domain = arg;
	struct stream *stream;
	uint64_t count;

	if (read(domain->event_fd, &count, sizeof(count)) < 0)
		return;
	LIST_FOREACH(stream, &domain->streams, link)
	pump_turn(stream);
}

static int make_bell(struct domain *domain)
{
	int r = bell_new(&domain->bell, &domain->bell_fd);

	if (r)
		return r;
	domain->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (domain->event_fd < 0)
		return -errno;
	return loop_watch_fd(domain->node->loop, domain->event_fd, on_event, domain,
			     &domain->event_watch);
}

int domain_new(struct node *node, struct domain **ret, struct diag *diag)
{
	unsigned workers = node->param.workers ? (unsigned)node->param.workers : limits_cpus();
	struct domain *domain = calloc(1, sizeof(*domain));
	int r;

	diag_set(diag, "cannot set up the memory between accessd and its processes");
	if (!domain)
		return -ENOMEM;
	domain->node = node;
	domain->bell_fd = domain->event_fd = -1;
	domain->reading.child.sock = domain->workers.child.sock = -1;
	describe_shelf_init(&domain->catalogs);
	LIST_INSERT_HEAD(&node->domains, domain, link);
	r = make_bell(domain);
	if (!r)
		r = reading_start(&domain->reading, domain, diag);
	if (!r)
		r = workers_start(&domain->workers, domain, BASE_MIN(workers, LAYOUT_MAX_WORKERS),
				  diag);
	if (r)
		domain_free(domain);
	else
		*ret = domain;
	return r;
}

void domain_free(struct domain *domain)
{
	while (!LIST_EMPTY(&domain->streams))
		stream_free(LIST_FIRST(&domain->streams));
	while (!LIST_EMPTY(&domain->sources))
		source_unref(LIST_FIRST(&domain->sources));
	LIST_REMOVE(domain, link);
	workers_stop(&domain->workers);
	reading_stop(&domain->reading);
	describe_shelf_fini(&domain->catalogs);
	loop_unwatch(&domain->event_watch);
	if (domain->bell)
		bell_detach(domain->bell);
	base_close(&domain->bell_fd);
	base_close(&domain->event_fd);
	free(domain);
}

bool domain_child_ended(struct node *node, pid_t pid, int status, uint64_t cpu_ns)
{
	struct domain *domain;

	LIST_FOREACH(domain, &node->domains, link)
	{
		if (pid == domain->reading.child.pid)
			reading_died(&domain->reading, status, cpu_ns);
		else if (pid == domain->workers.child.pid)
			workers_died(&domain->workers, status);
		else
			continue;
		return true;
	}
	return false;
}
