/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/from_workers.h"

#include "daemon/cache/ram_cache.h"
#include "daemon/node.h"
#include "daemon/serve/fill_state.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"

static void on_restarted(void *arg)
{
	stream_workers_started(arg);
}

static void on_died(void *arg)
{
	struct domain *domain = arg;

	domain->node->counters.restarts.parent++;
	domain->restarts.parent++;
	stream_workers_died(domain);
}

static void on_hopeless(void *arg, const char *text)
{
	stream_workers_failed(arg, text);
}

static void on_added(void *arg, uint32_t queue, uint64_t variant)
{
	stream_workers_added(arg, queue, variant);
}

static void on_refused(void *arg, uint32_t queue, uint64_t variant, const char *text)
{
	stream_variant_refused(arg, queue, variant, text);
}

static void on_removed(void *arg, uint32_t queue, uint64_t variant)
{
	stream_variant_removed(arg, queue, variant);
}

static void on_let_go(void *arg)
{
	ram_cache_look(arg);
}

static void on_worker_died(void *arg, const struct fill_death *death)
{
	struct domain *domain = arg;

	if (death->status) {
		domain->node->counters.restarts.worker++;
		domain->restarts.worker++;
	}
	stream_worker_died(domain, death);
}

const struct workers_calls from_workers_calls = {.restarted = on_restarted,
						 .died = on_died,
						 .hopeless = on_hopeless,
						 .added = on_added,
						 .refused = on_refused,
						 .removed = on_removed,
						 .let_go = on_let_go,
						 .worker_died = on_worker_died};
