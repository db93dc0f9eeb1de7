/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of streams, and the deaths of others that end them or not.
 */
#include "daemon/serve/streams.h"

#include "base/log.h"
#include "daemon/cache/cache.h"
#include "daemon/cache/ram_cache.h"
#include "daemon/net/conn.h"
#include "daemon/net/describe.h"
#include "daemon/net/porter.h"
#include "daemon/net/prepare.h"
#include "daemon/node.h"
#include "daemon/serve/fill.h"
#include "daemon/serve/group.h"
#include "daemon/serve/revisit.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_life.h"
#include "daemon/serve/variant_make.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"

/* ---- ending ---- */

static void add_totals(struct stream *stream)
{
	struct carousel_totals totals;

	if (!stream->carousel)
		return;
	carousel_totals(stream->carousel, &totals);
	stream->node->counters.reference += totals.reference;
	stream->node->counters.waits_on_dead += totals.waits_on_dead;
}

void stream_free(struct stream *stream)
{
	log_line(LOG_LEVEL_INFO, "stream-end", "queue=%u memory=%llu", stream->shared.queue.number,
		 (unsigned long long)stream->bytes.all);
	stream_detach(stream);
	add_totals(stream);
	LIST_REMOVE(stream, link);
	loop_unwatch(&stream->pump_timer);
	loop_unwatch(&stream->linger_timer);
	fill_fini(stream);
	revisit_fini(stream);
	cache_fini(stream);
	group_free_all(stream);
	carousel_free(stream->carousel);
	arena_fini(&stream->shared.arena);
	bad_fini(&stream->bad);
	if (stream->shared.queue.head)
		queue_detach(&stream->shared.queue);
	porter_close(&stream->node->porters, PORTER_OWN, &stream->shared.queue_fd);
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
		if (stream->variant[i])
			variant_free(stream->variant[i]);
	source_unref(stream->source);
	node_has_room(stream->node);
	stream_account(stream, stream->payer, -(int64_t)stream->bytes.fixed);
	domain_unref(stream->payer);
	free(stream);
}

/* Who pays for a part of a stream that users share may leave it to others; then one of them pays. NULL: it stays
 * as it is. variant: NULL for what all have in common. */
static struct domain *heir_of(const struct stream *stream, const struct variant *variant,
			      const struct domain *payer)
{
	struct domain *heir = NULL;

	BASE_EACH(conn, &stream->node->clients.list, link) {
		if (conn->stream != stream || (variant && conn->variant != variant))
			continue;
		if (conn->domain == payer)
			return NULL;
		heir = conn->domain;
	}
	return heir;
}

static void pass_on(struct domain **payer, struct domain *heir, uint64_t bytes)
{
	if (!heir)
		return;
	domain_account(*payer, -(int64_t)bytes);
	domain_unref(*payer);
	*payer = domain_ref(heir);
	domain_account(heir, (int64_t)bytes);
}

static void pass_on_payment(struct stream *stream)
{
	pass_on(&stream->payer, heir_of(stream, NULL, stream->payer), stream->bytes.fixed);
	VARIANT_EACH_OPEN(variant, stream)
		pass_on(&variant->payer, heir_of(stream, variant, variant->payer), variant->memory);
}

void stream_unref(struct conn *conn)
{
	struct stream *stream = conn->stream;
	struct variant *variant = conn->variant;

	prepare_free(conn);
	conn->stream = NULL;
	conn->variant = NULL;
	if (domain_is_shared(stream->domain))
		pass_on_payment(stream);
	variant_unref(variant);
	if (--stream->users.n_conns)
		return;
	/* Who comes next reads again what could not be read. */
	if (stream->state == STREAM_RUNS && !stream->node->draining && !stream->asked.keep[0] &&
	    !stream->bad.has_unread)
		loop_timer_set(stream->linger_timer,
			       stream->node->param.linger_s * UINT64_C(1000000000));
	else if (stream->state != STREAM_OPENING)
		loop_timer_set(stream->linger_timer, 0);
	else
		loop_timer_set(stream->linger_timer, UINT64_C(1000000000));
}

/* payer: NULL for anybody's. */
static bool free_oldest(struct node *node, const struct domain *payer)
{
	struct stream *oldest = NULL;

	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			if (!stream->users.n_conns &&
			    (!payer || tenant_is_same(payer, stream->payer)) &&
			    (!oldest || stream->number < oldest->number))
				oldest = stream;
	if (oldest)
		stream_free(oldest);
	return oldest != NULL;
}

static bool free_variant(struct node *node, const struct domain *payer)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(stream, &domain->streams, link)
			if (variant_free_idle(stream, payer))
				return true;
	return false;
}

bool stream_free_idle_of(struct domain *domain)
{
	return free_oldest(domain->node, domain);
}

bool stream_free_idle(struct domain *domain)
{
	const struct domain *payer = tenant_is_bound(domain) ? domain : NULL;

	return describe_give_way(domain->node, payer) || free_oldest(domain->node, payer) ||
	       free_variant(domain->node, payer) || ram_cache_give_way(domain->node, payer);
}

/* Memory of streams that no connection has, and of catalogues that nobody has; payer: that his tenant pays
 * for, NULL: anybody. */
static uint64_t idle_memory(const struct node *node, const struct domain *payer)
{
	uint64_t bytes = 0;

	BASE_EACH(domain, &node->domains, link) {
		if (!payer || tenant_is_same(payer, domain))
			bytes += describe_idle(domain);
		BASE_EACH(stream, &domain->streams, link)
			if (!stream->users.n_conns &&
			    (!payer || tenant_is_same(payer, stream->payer)))
				bytes += stream->bytes.all;
	}
	return bytes;
}

const struct memory_room streams_room = {.make = stream_free_idle, .idle = idle_memory};

bool stream_give_back(struct node *node)
{
	return free_oldest(node, NULL) || free_variant(node, NULL);
}

/* ---- deaths of others ---- */

/* Each variant has a right to as much as it would have alone. */
uint64_t stream_patience_ns(struct domain *domain, uint32_t queue, uint32_t row, uint64_t own_ns)
{
	const struct stream *stream = stream_of_queue(domain, queue);
	uint64_t least =
	    BASE_MAX(domain->node->param.sample_timeout_ms * UINT64_C(1000000), own_ns);
	uint32_t variants = stream ? fill_variants(stream->fill, row) : 0;

	if (!variants)
		return least;
	least *= (uint64_t)__builtin_popcount(variants);
	return BASE_MAX(least, (uint64_t)(50e3 * BASE_MAX(stream->made.median_us[variants], 0.0)));
}

void stream_worker_died(struct domain *domain, const struct fill_death *death)
{
	BASE_EACH(stream, &domain->streams, link) {
		if (stream->state != STREAM_RUNS)
			continue;
		fill_worker_died(stream, death);
		stream_turn_soon(stream);
	}
	doorbell_ring_all(domain->doorbell);
}

void stream_workers_died(struct domain *domain)
{
	BASE_EACH_LEAVING(stream, &domain->streams, link)
		stream_lose_memory(stream);
}

void stream_workers_failed(struct domain *domain, const char *text)
{
	BASE_EACH(stream, &domain->streams, link)
		stream_fail(stream, OA_E_REFUSED, text);
}

void stream_reader_died(struct domain *domain)
{
	BASE_EACH(stream, &domain->streams, link) {
		stream->shared.is_attached = false;
		cache_reader_died(stream);
		revisit_reader_died(stream);
		if (stream->state == STREAM_RUNS)
			fill_reader_died(stream);
	}
}
