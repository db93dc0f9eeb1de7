/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for streams. Each job needs slots (admit.c), and a slot is memory of each variant, so that one
 * job more, or a variant more, is counted over all of them and each is charged to who pays for it. Nothing
 * is touched before it was counted.
 *
 * Small data sets get more: where the slots hold the epochs that jobs can be apart by, each sample is made once
 * for all of them, whenever they begin and however fast they are. Such slots are reserved as they are about to be
 * filled, only if all of them fit into a part of what is free, so that whoever comes later finds the rest.
 */
#include "daemon/serve/streams.h"

#include <stdio.h>

#include "daemon/node.h"
#include "daemon/proc/reserve.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_life.h"
#include "daemon/tenant/admit.h"
#include "daemon/tenant/tenant.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"

#define SPARE 8      /* of what is free, one part in so many may be slots that no job needs */
#define GROW_AHEAD 2 /* free slots that are left when more are reserved */

/* ---- what it takes ---- */

/* Slots that are reserved, or about to be. */
static uint32_t paid_of(const struct variant *variant)
{
	return variant->reserve.pid ? variant->reserve.to : variant->slots;
}

/* Bytes that payer's variants lack to have so many slots; payer NULL: all variants. */
static uint64_t lack_of(const struct stream *stream, const struct domain *payer, uint32_t slots)
{
	uint64_t bytes = 0;

	VARIANT_EACH_OPEN(variant, stream) {
		uint32_t paid = paid_of(variant);

		if (paid < slots && (!payer || tenant_is_same(payer, variant->payer)))
			bytes += (slots - paid) * variant->table.geometry.slot_stride;
	}
	return bytes;
}

/* Would `times` what all variants lack to have so many slots fit into what is free? */
static bool lack_fits(const struct stream *stream, uint32_t slots, unsigned times)
{
	if (times * lack_of(stream, NULL, slots) > memory_left(&stream->node->memory))
		return false;
	VARIANT_EACH_OPEN(variant, stream) {
		uint64_t lack = lack_of(stream, variant->payer, slots);

		if (lack && times * lack > tenant_free_bytes(variant->payer))
			return false;
	}
	return true;
}

/* Can all variants have so many slots, and payer so many bytes more? */
static bool can_afford(const struct stream *stream, uint32_t slots, const struct domain *payer,
		       uint64_t more)
{
	return lack_fits(stream, slots, 1) &&
	       lack_of(stream, NULL, slots) + more <= memory_left(&stream->node->memory) &&
	       lack_of(stream, payer, slots) + more <= tenant_free_bytes(payer);
}

static uint64_t stride_of_all(const struct stream *stream)
{
	uint64_t bytes = 0;

	VARIANT_EACH_OPEN(variant, stream)
		bytes += variant->table.geometry.slot_stride;
	return bytes;
}

/* ---- a job more ---- */

/* Was it not the budget, but pages? */
static bool refused_huge(const struct stream *stream, struct diag *diag)
{
	VARIANT_EACH_OPEN(variant, stream) {
		if (!variant->reserve.is_refused)
			continue;
		reserve_refusal(variant, diag->text, sizeof(diag->text));
		return true;
	}
	return false;
}

static int refuse_job(const struct stream *stream, unsigned ranks, struct diag *diag)
{
	const char *name;
	uint64_t most = tenant_limit_of(stream->payer, &name);

	if (refused_huge(stream, diag))
		return STREAM_E_MEMORY;
	return diag_fail(
	    diag, STREAM_E_MEMORY,
	    "job number %u of this stream needs %u slots of %s each; it has %u and may have %u, "
	    "and %s of the budget of %s (%s) is free: raise `memory` or `slots`",
	    ranks, admit_least_slots(ranks), BASE_BYTES(stride_of_all(stream)), stream->slots,
	    stream->geometry.max_slots, BASE_BYTES(tenant_free_bytes(stream->payer)),
	    BASE_BYTES(most), name);
}

/* false: it cannot be done. */
static bool reserve_all(struct stream *stream, uint32_t slots)
{
	VARIANT_EACH_OPEN(variant, stream)
		if (!variant->full && reserve_begin(variant, slots))
			return false;
	return true;
}

static bool is_reserving(const struct stream *stream)
{
	VARIANT_EACH_OPEN(variant, stream)
		if (variant->reserve.pid)
			return true;
	return false;
}

static uint32_t wanted_slots(const struct stream *stream)
{
	const struct admit_crowd crowd = {.jobs = stream->users.n_jobs,
					  .conns = stream->users.n_conns,
					  .slots = stream->slots,
					  .max_slots = stream->geometry.max_slots,
					  .configured = (uint32_t)stream->node->param.slots};

	return admit_slots_for_next(&crowd);
}

int stream_make_room(struct stream *stream, struct diag *diag)
{
	const uint32_t most = stream->geometry.max_slots;
	unsigned ranks = stream->users.n_jobs + 1;
	uint32_t wanted = wanted_slots(stream);
	uint32_t least = admit_least_slots(ranks);
	bool can_begin;
	int r;

	while (least <= most && !lack_fits(stream, least, 1) && tenant_make_room(stream->payer))
		continue;
	if (!machine_has_room_ahead(&stream->node->machine))
		wanted = BASE_MIN(wanted, least);
	while (wanted && !lack_fits(stream, wanted, 1))
		wanted--;
	can_begin = reserve_all(stream, wanted);
	if (can_begin && stream->slots < least && is_reserving(stream))
		return STREAM_E_LATER;
	r = can_begin && stream->slots >= least ? 0 : refuse_job(stream, ranks, diag);
	/* What the kernel refused was the answer to one job: for the next it is asked again. */
	stream->cannot_grow = false;
	VARIANT_EACH_OPEN(variant, stream)
		variant->full = variant->reserve.is_refused = false;
	return r;
}

/* ---- more than jobs need ---- */

/* Slots for all that jobs can have in common: with random ops two epochs of each job, without one. 0: there is no room for so
 * many, or it is a stream of which nothing serves twice. */
static uint32_t slots_of_epochs(const struct stream *stream)
{
	const struct slot_geometry *geometry = &stream->geometry;
	uint64_t chunks = (geometry->n_samples + geometry->chunk - 1) / geometry->chunk;
	unsigned epochs = 1;

	if (stream->asked.keep[0])
		return 0;
	VARIANT_EACH_OPEN(variant, stream)
		if (pipeline_is_random(variant->pipeline))
			epochs = 2;
	return epochs * chunks > geometry->max_slots ? 0 : (uint32_t)(epochs * chunks);
}

/* Does no variant open, which has as many slots as the stream had, or get some? */
static bool is_settled(const struct stream *stream)
{
	VARIANT_EACH_OPEN(variant, stream)
		if (variant->state == VARIANT_OPENING)
			return false;
	return !is_reserving(stream);
}

void stream_grow(struct stream *stream)
{
	const struct node *node = stream->node;
	uint32_t to = slots_of_epochs(stream);

	if (node->param.slots || stream->cannot_grow || stream->slots >= to ||
	    carousel_free_slots(stream->carousel) > GROW_AHEAD ||
	    !machine_has_room_ahead(&node->machine) || !is_settled(stream) ||
	    !lack_fits(stream, to, SPARE))
		return;
	/* Where it is refused, the stream has what it had, until another job comes. */
	to = BASE_MIN(to, stream->slots + BASE_MAX(stream->slots / 2, 2u));
	stream->cannot_grow = !reserve_all(stream, to);
	VARIANT_EACH_OPEN(variant, stream)
		variant->reserve.is_growth = variant->reserve.pid;
}

/* ---- a variant more ---- */

bool stream_make_room_for(struct stream *stream, const struct slot_geometry *geometry,
			  const struct domain *payer, uint32_t *ret_slots, char *ret, size_t size)
{
	uint32_t slots = admit_least_slots(stream->users.n_jobs + 1);
	uint64_t bytes;
	bool fits;

	VARIANT_EACH_OPEN(variant, stream)
		slots = BASE_MAX(slots, paid_of(variant));
	slots = BASE_MIN(slots, geometry->max_slots);
	bytes = geometry->table_bytes + slots * geometry->slot_stride;
	do
		fits = can_afford(stream, slots, payer, bytes);
	while (!fits && tenant_make_room((struct domain *)payer));
	*ret_slots = slots;
	if (fits)
		return true;
	snprintf(ret, size, "with others it would need %u slots, %s, and %s are free", slots,
		 BASE_BYTES(bytes + lack_of(stream, NULL, slots)),
		 BASE_BYTES(tenant_free_bytes(payer)));
	return false;
}

/* ---- reserved ---- */

static void reserved(struct variant *variant, uint32_t slots, bool all_of_them)
{
	struct stream *stream = variant->stream;
	char refusal[512];
	bool is_refused = !all_of_them;
	struct reserve *reserve = &variant->reserve;

	/* Was it more than jobs need? Then a refusal is no answer to any. */
	variant->full = is_refused && !reserve->is_growth;
	if (reserve->is_growth) {
		variant->stream->cannot_grow |= is_refused;
		reserve->is_growth = reserve->is_refused = false;
	}
	if (stream->state > STREAM_RUNS || !variant_is_open(variant))
		return;
	variant->slots += slots;
	if (variant->slots &&
	    (all_of_them || variant->state != VARIANT_OPENING || variant->slots >= stream->slots)) {
		stream_settle(stream);
		return;
	}
	if (variant->reserve.is_refused) {
		reserve_refusal(variant, refusal, sizeof(refusal));
		variant_fail(variant, OA_E_MEMORY, refusal);
	} else {
		variant_fail(variant, OA_E_MEMORY,
			     "the kernel has no memory for the stream's slots: lower `memory`, or "
			     "raise the cgroup's limit");
	}
}

bool stream_child_ended(struct node *node, pid_t pid, int status)
{
	struct reserve_done done;
	const bool is_ours = reserve_ended(node, pid, status, &done);

	if (is_ours && done.variant)
		reserved(done.variant, done.slots, done.all_of_them);
	return is_ours;
}
