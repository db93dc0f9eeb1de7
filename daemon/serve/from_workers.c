/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/from_workers.h"

#include "daemon/cache/ram_cache.h"
#include "daemon/node.h"
#include "daemon/serve/fill_state.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"

static void on_died(struct domain *domain)
{
	domain->node->counters.restarts.parent++;
	domain->restarts.parent++;
	stream_workers_died(domain);
}

static void on_worker_died(struct domain *domain, const struct fill_death *death)
{
	if (death->status) {
		domain->node->counters.restarts.worker++;
		domain->restarts.worker++;
	}
	stream_worker_died(domain, death);
}

const struct workers_calls from_workers_calls = {.restarted = stream_workers_started,
						 .died = on_died,
						 .hopeless = stream_workers_failed,
						 .added = stream_workers_added,
						 .refused = stream_variant_refused,
						 .removed = stream_variant_removed,
						 .let_go = ram_cache_look,
						 .worker_died = on_worker_died};
