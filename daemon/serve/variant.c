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
#include "daemon/serve/variant.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/job.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/stream.h"
#include "libaccess/libaccess.h"
#include "pipeline/pipeline.h"

/* ---- making ---- */

void variant_account(struct variant *variant, int64_t bytes)
{
	variant->memory = (uint64_t)((int64_t)variant->memory + bytes);
	stream_account(variant->stream, variant->payer, bytes);
}

void variant_describe_fields(const struct pipeline *pipeline, struct board_geometry *geometry)
{
	const struct pipeline_field *from;
	unsigned n = pipeline_fields(pipeline, &from);
	struct layout_field *index = &geometry->field[n];

	memset(geometry->field, 0, sizeof(geometry->field));
	for (unsigned i = 0; i < n; i++) {
		struct layout_field *field = &geometry->field[i];

		memcpy(field->name, from[i].name, sizeof(field->name));
		field->dtype = from[i].dtype;
		field->where = LAYOUT_IN_SLOT;
		field->ndim = from[i].ndim;
		memcpy(field->shape, from[i].shape, sizeof(field->shape));
		field->sample_bytes = from[i].bytes;
		field->kind = from[i].kind;
		field->lengths = from[i].lengths;
	}
	strcpy(index->name, "index");
	index->dtype = LAYOUT_I64;
	index->where = LAYOUT_IN_BOARD;
	index->sample_bytes = sizeof(int64_t);
	geometry->n_fields = n + 1;
}

int variant_plan(const struct stream *stream, const struct pipeline *pipeline,
		 struct board_geometry *ret)
{
	*ret = stream->geometry;
	variant_describe_fields(pipeline, ret);
	return board_plan(ret);
}

/* Jobs get a descriptor that cannot even reserve memory. */
static int reopen_for_reading(int fd, int *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

static void on_linger(void *arg);

static int make_memory(struct variant *variant, const struct board_geometry *geometry)
{
	int r = board_new(geometry, &variant->board, &variant->board_fd);

	if (r)
		return r;
	variant_account(variant, (int64_t)geometry->board_bytes);
	r = board_slots_new(geometry, &variant->slots_fd);
	if (!r)
		numa_prefer(&variant->stream->node->numa, variant->slots_fd, geometry->slots_bytes,
			    variant->stream->numa_node);
	if (!r)
		r = reopen_for_reading(variant->slots_fd, &variant->slots_read_fd);
	if (!r)
		r = loop_timer_new(variant->stream->node->loop, on_linger, variant,
				   &variant->linger_timer);
	return r;
}

static uint32_t free_number(const struct stream *stream)
{
	uint32_t number = 0;

	while (number < LAYOUT_MAX_VARIANTS && stream->variant[number])
		number++;
	return number;
}

int variant_new(struct stream *stream, struct pipeline *pipeline, const struct hash_id *key,
		const struct board_geometry *geometry, struct domain *payer, struct variant **ret)
{
	uint32_t number = free_number(stream);
	struct variant *variant = number < LAYOUT_MAX_VARIANTS ? calloc(1, sizeof(*variant)) : NULL;
	struct board_geometry own = *geometry;
	int r;

	if (!variant)
		return -ENOMEM;
	variant->stream = stream;
	variant->number = number;
	variant->payer = domain_ref(payer);
	variant->key = *key;
	variant->slots_fd = variant->slots_read_fd = variant->board_fd = -1;
	stream->variant[number] = variant;
	memcpy(own.stream, key, sizeof(own.stream));
	r = make_memory(variant, &own);
	if (r) {
		variant_free(variant);
		return r;
	}
	variant->pipeline = pipeline;
	*ret = variant;
	return 0;
}

void variant_let_go(struct variant *variant)
{
	reserve_cancel(variant);
	base_close(&variant->slots_read_fd);
	porter_close(&variant->stream->node->porters, PORTER_OWN, &variant->slots_fd);
}

/* All but its number. */
static void give_back(struct variant *variant)
{
	variant_let_go(variant);
	loop_unwatch(&variant->linger_timer);
	if (variant->board.map)
		board_detach(&variant->board);
	porter_close(&variant->stream->node->porters, PORTER_OWN, &variant->board_fd);
	pipeline_free(variant->pipeline);
	variant->pipeline = NULL;
	variant_account(variant, -(int64_t)variant->memory);
	domain_unref(variant->payer);
	variant->payer = NULL;
}

void variant_free(struct variant *variant)
{
	if (variant->state != VARIANT_GONE)
		give_back(variant);
	variant->stream->variant[variant->number] = NULL;
	free(variant);
}

/* ---- looking ---- */

struct variant *variant_of(const struct stream *stream, uint64_t number)
{
	return number < LAYOUT_MAX_VARIANTS ? stream->variant[number] : NULL;
}

bool variant_is_open(const struct variant *variant)
{
	return variant && variant->state <= VARIANT_RUNS;
}

unsigned variant_numbers(const struct stream *stream)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
		n += stream->variant[i] != NULL;
	return n;
}

static bool has_others(const struct variant *variant)
{
	const struct stream *stream = variant->stream;

	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
		if (stream->variant[i] != variant && variant_is_open(stream->variant[i]))
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

	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++)
		if (stream->variant[i] && stream->variant[i]->state == VARIANT_RUNS)
			least = BASE_MIN(least, stream->variant[i]->slots);
	return least == UINT32_MAX ? 0 : least;
}

/* Others may have taken meanwhile what the slots were to have when the number grew. */
static void follow(struct variant *variant, uint32_t slots)
{
	const uint64_t bytes = (slots - variant->slots) * variant->board.geometry.slot_stride;

	if (bytes > stream_free_bytes(variant->payer))
		variant_fail(variant, OA_E_MEMORY,
			     "others took the memory that was free for this stream's slots: try "
			     "again later, or raise `memory` or `tenant_memory` of accessd");
	else if (reserve_begin(variant, slots))
		variant_fail(variant, OA_E_MEMORY, "accessd cannot start a process");
}

/* Those that open while the stream's number grows follow it. */
static void catch_up(struct stream *stream)
{
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = stream->variant[i];

		if (variant && variant->state == VARIANT_OPENING && !variant->full &&
		    variant->slots && variant->slots < stream->slots && !variant->reserve.pid)
			follow(variant, stream->slots);
	}
}

void variant_settle(struct stream *stream)
{
	uint32_t slots;

	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = stream->variant[i];

		if (!variant || !can_run(variant))
			continue;
		variant->state = VARIANT_RUNS;
		carousel_set_variant(stream->carousel, variant->number,
				     !pipeline_is_random(variant->pipeline) && !stream->keep[0]);
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
	const struct group *group;

	LIST_FOREACH(group, &variant->stream->groups, link)
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

void variant_fail(struct variant *variant, uint64_t code, const char *text)
{
	struct stream *stream = variant->stream;
	struct conn *conn, *next;

	if (!has_others(variant)) {
		stream_fail(stream, code, text);
		return;
	}
	log_line(LOG_LEVEL_ERROR, "variant-failed", "lane=%u variant=%u reason=\"%.500s\"",
		 stream->lane.number, variant->number, text);
	leave(variant);
	for (conn = LIST_FIRST(&stream->node->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->variant == variant && conn->state == CONN_WAITS_STREAM)
			conn_refuse(conn, code, text);
	}
}

static bool is_in_production(const struct stream *stream, const struct variant *variant)
{
	for (unsigned i = 0; i < LAYOUT_MAX_BLOCKS; i++)
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

	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = stream->variant[i];

		if (!variant || !is_left(stream, variant))
			continue;
		any = true;
		log_line(LOG_LEVEL_INFO, "variant-end", "lane=%u variant=%u memory=%llu",
			 stream->lane.number, variant->number, (unsigned long long)variant->memory);
		carousel_set_variant(stream->carousel, variant->number, false);
		give_back(variant);
		variant->state = VARIANT_GONE;
		workers_remove_variant(&stream->domain->workers, stream->lane.number,
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
	for (unsigned i = 0; i < LAYOUT_MAX_VARIANTS; i++) {
		struct variant *variant = stream->variant[i];

		if (!variant_is_open(variant) || variant->n_conns || has_group(variant) ||
		    !has_others(variant) || is_in_production(stream, variant) ||
		    (payer && !tenant_is_same(payer, variant->payer)))
			continue;
		leave(variant);
		return true;
	}
	return false;
}
