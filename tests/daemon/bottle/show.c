/* SPDX-License-Identifier: Apache-2.0 */

/* What a node has, for people: who waits for what, and what lies in which slot. */

#include <stdio.h>

#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"
#include "tests/daemon/bottle/bottle.h"

static void show_job(const struct carousel *carousel, uint32_t number)
{
	struct carousel_job_view view;

	carousel_job(carousel, number, bottle_now()->clock.now_ns, &view);
	if (view.used)
		printf(
		    "  job %u:%s%s%s epoch %llu, needs %llu, %llu are coming, %u grants, %u pins\n",
		    number, view.lives ? " lives" : "", view.hungry ? " hungry" : "",
		    view.starving ? " starving" : "", (unsigned long long)view.epoch,
		    (unsigned long long)view.need, (unsigned long long)view.coming, view.grants,
		    view.pins);
}

static void show_slot(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, slot);

	if (chunk)
		printf(
		    "  slot %u: instance %llu, %u samples, order %d from %llu, variants %x%s%s\n",
		    slot, (unsigned long long)chunk->instance, chunk->count, (int)chunk->order,
		    (unsigned long long)chunk->place, chunk->variants,
		    chunk->ready ? "" : ", is filled", chunk->is_private ? ", private" : "");
}

static void show_stream(const struct stream *stream)
{
	struct carousel_totals totals = {0};

	printf(" stream %llu, state %d: %u in production\n", (unsigned long long)stream->number,
	       (int)stream->state, fill_active(stream->fill));
	if (!stream->carousel)
		return;
	carousel_totals(stream->carousel, &totals);
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		show_job(stream->carousel, i);
	for (uint32_t i = 0; i < totals.slots; i++)
		show_slot(stream->carousel, i);
}

void bottle_show(void)
{
	const struct bottle *bottle = bottle_now();
	const struct domain *domain;
	const struct stream *stream;

	if (!bottle->node)
		return;
	LIST_FOREACH(domain, &bottle->node->domains, link) {
		printf("domain: %u workers of %u\n", domain->workers.alive, domain->workers.size);
		LIST_FOREACH(stream, &domain->streams, link)
			show_stream(stream);
	}
}
