/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants.
 *
 * A slot can be used when all variants that run have reserved it, so one that comes reserves as many
 * slots as the stream has before it runs, and the stream's number grows with the last of them.
 *
 * Numbers are used again. A mask with a number in it stands in three places: in resident chunks, where
 * carousel_set_variant() takes it out; in chunks in production, which are waited for; in workers, which
 * are replaced (REMOVED). Only then another pipeline gets it.
 */
#include "daemon/serve/variant_life.h"

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/group.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/stream_fail.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_make.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"

static bool has_others(const struct variant *variant)
{
	const struct stream *stream = variant->stream;

	VARIANT_EACH_OPEN(other, stream)
		if (other != variant)
			return true;
	return false;
}

/* ---- beginning ---- */

static bool can_run(const struct variant *variant)
{
	return variant->state == VARIANT_OPENING && variant->is_mapped && variant->slots &&
	       variant->slots >= variant->stream->slots;
}

/* The slots that every variant has which runs. */
static uint32_t common_slots(const struct stream *stream)
{
	uint32_t least = UINT32_MAX;

	VARIANT_EACH_OPEN(variant, stream)
		if (variant->state == VARIANT_RUNS)
			least = BASE_MIN(least, variant->slots);
	return least == UINT32_MAX ? 0 : least;
}

/* Others may have taken meanwhile what the slots were to have when the number grew. */
static void follow(struct variant *variant, uint32_t slots)
{
	const uint64_t bytes = (slots - variant->slots) * variant->table.geometry.slot_stride;

	if (bytes > tenant_free_bytes(variant->payer))
		variant_fail(variant, OA_E_MEMORY,
			     "others took the memory that was free for this stream's slots: try "
			     "again later, or raise `memory` or `tenant_memory` of accessd");
	else if (reserve_begin(variant, slots))
		variant_fail(variant, OA_E_MEMORY, "accessd cannot start a process");
}

/* Those that open while the stream's number grows follow it. */
static void catch_up(struct stream *stream)
{
	VARIANT_EACH_OPEN(variant, stream)
		if (variant->state == VARIANT_OPENING && !variant->full && variant->slots &&
		    variant->slots < stream->slots && !variant->reserve.pid)
			follow(variant, stream->slots);
}

void variant_settle(struct stream *stream)
{
	uint32_t slots;

	VARIANT_EACH(variant, stream) {
		if (!can_run(variant))
			continue;
		variant->state = VARIANT_RUNS;
		carousel_set_variant(stream->carousel, variant->number,
				     !pipeline_is_random(variant->pipeline) &&
					 !stream->asked.keep[0]);
	}
	slots = common_slots(stream);
	if (slots > stream->slots) {
		if (carousel_add_slots(stream->carousel, slots - stream->slots)) {
			stream_fail(stream, OA_E_MEMORY, "no memory for the stream's tables");
			return;
		}
		stream->slots = slots;
	}
	catch_up(stream);
}

/* ---- ending ---- */

void variant_ref(struct variant *variant)
{
	loop_timer_stop(variant->linger_timer);
	variant->n_conns++;
}

void variant_unref(struct variant *variant)
{
	if (--variant->n_conns)
		return;
	if (!variant_is_open(variant))
		variant_sweep(variant->stream);
	else
		loop_timer_set(variant->linger_timer,
			       variant->stream->node->param.linger_s * UINT64_C(1000000000));
}

/* Ranks of a group may come back. */
static bool has_group(const struct variant *variant)
{
	BASE_EACH(group, &variant->stream->users.groups, link)
		if (group->variant == variant)
			return true;
	return false;
}

static void leave(struct variant *variant)
{
	variant->state = VARIANT_LEAVES;
	variant_let_go(variant);
	variant_sweep(variant->stream);
}

/* The last one goes with its stream. */
static void on_linger(void *arg)
{
	struct variant *variant = arg;

	if (variant->n_conns || !variant_is_open(variant))
		return;
	if (has_group(variant) || !has_others(variant))
		loop_timer_set(variant->linger_timer, UINT64_C(1000000000));
	else
		leave(variant);
}

int variant_begin(struct variant *variant)
{
	return loop_timer_new(variant->stream->node->loop, on_linger, variant,
			      &variant->linger_timer);
}

void variant_fail(struct variant *variant, uint64_t code, const char *text)
{
	struct stream *stream = variant->stream;

	if (!has_others(variant)) {
		stream_fail(stream, code, text);
		return;
	}
	log_line(LOG_LEVEL_ERROR, "variant-failed", "queue=%u variant=%u reason=\"%.500s\"",
		 stream->shared.queue.number, variant->number, text);
	leave(variant);
	BASE_EACH_LEAVING(conn, &stream->node->clients.list, link)
		if (conn->variant == variant && conn->state == CONN_WAITS_STREAM)
			conn_refuse(conn, code, "%s", text);
}

static bool is_in_production(const struct stream *stream, const struct variant *variant)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		if (stream->fill[i].used && stream->fill[i].variants >> variant->number & 1)
			return true;
	return false;
}

/* A connection that was refused may still stand. It maps nothing, but it knows its variant. */
static bool is_left(const struct stream *stream, const struct variant *variant)
{
	return variant->state == VARIANT_LEAVES && !variant->n_conns &&
	       !is_in_production(stream, variant);
}

void variant_sweep(struct stream *stream)
{
	bool any = false;

	VARIANT_EACH(variant, stream) {
		if (!is_left(stream, variant))
			continue;
		any = true;
		log_line(LOG_LEVEL_INFO, "variant-end", "queue=%u variant=%u memory=%llu",
			 stream->shared.queue.number, variant->number,
			 (unsigned long long)variant->memory);
		carousel_set_variant(stream->carousel, variant->number, false);
		variant_give_back(variant);
		variant->state = VARIANT_GONE;
		workers_remove_variant(&stream->domain->workers, stream->shared.queue.number,
				       variant->number);
	}
	if (any && stream->state == STREAM_RUNS)
		variant_settle(stream);
}

void variant_removed(struct variant *variant)
{
	if (variant->state == VARIANT_GONE)
		variant_free(variant);
}

bool variant_free_idle(struct stream *stream, const struct domain *payer)
{
	VARIANT_EACH_OPEN(variant, stream) {
		if (variant->n_conns || has_group(variant) || !has_others(variant) ||
		    is_in_production(stream, variant) ||
		    (payer && !tenant_is_same(payer, variant->payer)))
			continue;
		leave(variant);
		return true;
	}
	return false;
}
