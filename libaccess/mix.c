/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several streams as one. Which part the next sample is of is arithmetic (plan/mix/blend.h); each part
 * is an ordinary endless stream, shared as usual with whoever else reads its dataset.
 *
 * A mixed batch belongs to a stream of its own that nobody serves: so it is released, and outlives
 * its mix, as every other batch. Parts are asked for one sample at a time, and what comes is copied
 * from the slot to its place at once. So between two batches no part has given more than was handed
 * out, and its own token says all; a call costs some hundred nanoseconds, the copy of a picture a
 * hundred times that.
 *
 * A call may end in the middle of a batch (a time-out, a signal). The batch then stays under way,
 * and a token that is taken meanwhile is as of before it: each part's is told what to take back
 * (struct progress_mark).
 *
 * An epoch of the mix counts samples, or batches, alone: parts do not begin anew with it. Each goes
 * through its own epochs, one after the other, and gives each of its samples exactly once in each.
 */

#include "libaccess/mix.h"
#include "base/hold.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "libaccess/error.h"
#include "libaccess/mix_token.h"

/* ---- one thread at a time ---- */

/* Sets the text of the last failed call and returns code. */
BASE_COLD BASE_PRINTF(3, 4) static int mix_error(struct oa_mix *mix, int code, const char *fmt, ...)
{
	char text[sizeof(mix->error.text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	BASE_HOLD(&mix->lock);
	diag_set(&mix->error, "%s", text);
	return code;
}

const char *oa_mix_error_text(const struct oa_mix *mix)
{
	static _Thread_local struct diag copy;

	if (!mix)
		return "no mix";
	if (!guard_is_ours(&mix->guard))
		return ERROR_FORKED_TEXT;
	BASE_HOLD((pthread_mutex_t *)&mix->lock);
	copy = mix->error;
	return copy.text;
}

/* 0, OA_E_FORKED, OA_E_INVALID. */
static int mix_enter(struct oa_mix *mix)
{
	bool was_busy;

	if (!guard_is_ours(&mix->guard))
		return OA_E_FORKED;
	pthread_mutex_lock(&mix->lock);
	was_busy = mix->is_busy;
	mix->is_busy = true;
	pthread_mutex_unlock(&mix->lock);
	return was_busy ? mix_error(mix, OA_E_INVALID,
				    "another thread is in a call on this mix: one at a time")
			: 0;
}

static int mix_leave(struct oa_mix *mix, int r)
{
	BASE_HOLD(&mix->lock);
	mix->is_busy = false;
	return r;
}

/* A part's failed call. */
static int mix_part_error(struct oa_mix *mix, uint32_t part, int code)
{
	const struct oa_stream *stream = mix->part[part].stream;

	return mix_error(mix, code, "part %u: %.600s", part, oa_error_text(stream));
}

/* ---- the end of a batch, of an epoch ---- */

/* Samples of the batch at hand; with OA_MIX_BATCHES, 1. */
static uint32_t mix_units(const struct oa_mix *mix)
{
	uint64_t most = mix->unit == OA_MIX_SAMPLES ? mix->batch : 1;

	return (uint32_t)BASE_MIN(most, mix->length - mix->at);
}

/* Does the epoch end with so many units more? What is less than a batch is left out with
 * OA_DROP_LAST. */
static bool mix_is_last(const struct oa_mix *mix, uint32_t units)
{
	uint64_t left = mix->length - mix->at - units;

	return left == 0 ||
	       (mix->unit == OA_MIX_SAMPLES && (mix->flags & OA_DROP_LAST) && left < mix->batch);
}

/* What the mix says of a batch, and on to the next one. */
static void mix_number(struct oa_mix *mix, struct oa_batch *batch, uint32_t units)
{
	batch->epoch = mix->epoch;
	batch->step = mix->step++;
	batch->is_last = mix_is_last(mix, units);
	mix->at += units;
	if (!batch->is_last)
		return;
	mix->epoch++;
	mix->at = mix->step = 0;
	blend_seek(&mix->blend, 0, &mix->place);
}

/* ---- batches of samples ---- */

/* An empty batch, and which part each of its samples will be of. */
static int mix_begin(struct oa_mix *mix)
{
	struct oa_stream *own = mix->own;
	struct oa_batch *batch;

	pthread_mutex_lock(&own->lock);
	batch = batch_new(own);
	if (batch)
		batch->carry = carry_new(&own->carries);
	if (batch && !batch->carry) {
		batch->next = own->batch_pool;
		own->batch_pool = batch;
		batch = NULL;
	}
	pthread_mutex_unlock(&own->lock);
	if (!batch)
		return mix_error(mix, -ENOMEM, "oa_mix_next(): out of memory");
	mix->under_way = batch;
	mix->count = mix_units(mix);
	mix->filled = 0;
	mix->turns = (uint32_t *)(void *)(batch->carry->memory + own->schema.bytes -
					  base_align_up(mix->batch * sizeof(uint32_t), 64));
	for (uint32_t i = 0; i < mix->count; i++)
		mix->turns[i] = blend_next(&mix->blend, &mix->place);
	blend_scatter(mix->seed, mix->epoch, mix->at, mix->turns, mix->count);
	for (uint32_t i = 0; i < mix->n_parts; i++) {
		pthread_mutex_lock(&mix->part[i].stream->lock);
		progress_mark(&mix->part[i].stream->progress, &mix->part[i].mark);
		pthread_mutex_unlock(&mix->part[i].stream->lock);
	}
	return 0;
}

static int mix_left_ms(uint64_t deadline)
{
	uint64_t now = base_now_ns();

	if (deadline == UINT64_MAX)
		return -1;
	return now < deadline ? (int)BASE_MIN((deadline - now + 999999) / 1000000, INT_MAX) : 0;
}

static void mix_copy(struct oa_mix *mix, const struct oa_batch *one)
{
	const struct oa_stream *own = mix->own;
	struct carry *carry = mix->under_way->carry;

	carry->ids[mix->filled] = one->ids[0];
	carry->substituted += one->substituted;
	for (uint32_t i = 0; i < own->schema.n; i++) {
		const struct schema_field *field = &own->schema.field[i];
		struct oa_field from = {.size = sizeof(from)};

		if (field->where != LAYOUT_IN_SLOT)
			continue; /* the ids */
		oa_batch_field(one, i, &from);
		memcpy(carry->memory + field->offset + mix->filled * field->sample_bytes, from.data,
		       (size_t)field->sample_bytes);
	}
}

/* The next sample of the batch under way. A timeout of 0 asks without waiting. */
static int mix_take(struct oa_mix *mix, uint64_t deadline)
{
	struct mix_part *part = &mix->part[mix->turns[mix->filled]];
	struct oa_batch *one;
	int r = oa_next(part->stream, mix_left_ms(deadline), &one);

	if (r)
		return mix_part_error(mix, mix->turns[mix->filled], r);
	if (one->count > 0) {
		mix_copy(mix, one);
		mix->is_marked[mix->filled++] = one->epoch == part->mark.epoch;
	}
	oa_release(one);
	return 0;
}

static int mix_next_samples(struct oa_mix *mix, int timeout_ms, struct oa_batch **ret)
{
	uint64_t deadline = dial_deadline(timeout_ms);
	struct oa_stream *own = mix->own;
	struct oa_batch *batch;
	int r = mix->under_way ? 0 : mix_begin(mix);

	while (!r && mix->filled < mix->count)
		r = mix_take(mix, deadline);
	if (r)
		return r;
	batch = base_take_ptr(mix->under_way);
	batch->ids = batch->carry->ids;
	batch->parts = mix->turns;
	batch->count = batch->copied = batch->carry->count = mix->count;
	batch->substituted = batch->carry->substituted;
	mix_number(mix, batch, mix->count);
	pthread_mutex_lock(&own->lock);
	batch->is_live = true;
	own->stats.outstanding++;
	pthread_mutex_unlock(&own->lock);
	*ret = batch;
	return 0;
}

/* ---- whole batches ---- */

static int mix_next_batch(struct oa_mix *mix, int timeout_ms, struct oa_batch **ret)
{
	uint32_t part = blend_peek(&mix->blend, &mix->place);
	struct oa_stream *stream = mix->part[part].stream;
	int r = oa_next(stream, timeout_ms, ret);

	if (r)
		return mix_part_error(mix, part, r);
	blend_next(&mix->blend, &mix->place);
	(*ret)->parts = stream->parts;
	mix_number(mix, *ret, 1);
	return 0;
}

int oa_mix_next(struct oa_mix *mix, int timeout_ms, struct oa_batch **ret)
{
	int r;

	if (!mix || !ret)
		return OA_E_INVALID;
	r = mix_enter(mix);
	if (r)
		return r;
	if (mix->epochs && mix->epoch >= mix->epochs)
		r = mix_error(mix, OA_E_END, "all epochs of the mix are delivered");
	else if (mix->unit == OA_MIX_SAMPLES)
		r = mix_next_samples(mix, timeout_ms, ret);
	else
		r = mix_next_batch(mix, timeout_ms, ret);
	return mix_leave(mix, r);
}

/* ---- the token ---- */

/* The part's token: as of before the batch under way. Heap, caller owns. */
static int mix_part_token(struct oa_mix *mix, uint32_t number, uint8_t **ret, uint32_t *ret_size)
{
	struct mix_part *part = &mix->part[number];
	void *token;
	size_t size;
	int r;

	part->mark.ids = mix->ids;
	part->mark.n_ids = 0;
	for (uint32_t i = 0; mix->under_way && i < mix->filled; i++)
		if (mix->turns[i] == number && mix->is_marked[i])
			mix->ids[part->mark.n_ids++] = mix->under_way->carry->ids[i];
	pthread_mutex_lock(&part->stream->lock);
	r = stream_token(part->stream, mix->under_way ? &part->mark : NULL, &token, &size);
	pthread_mutex_unlock(&part->stream->lock);
	if (r)
		return r;
	*ret = token;
	*ret_size = (uint32_t)size;
	return 0;
}

static int mix_token_of(struct oa_mix *mix, uint8_t *tokens[], uint8_t **ret, size_t *ret_size)
{
	struct mix_token token = {
	    .n_parts = mix->n_parts,
	    .unit = mix->unit,
	    .end = mix->end,
	    .batch = mix->batch,
	    .seed = mix->seed,
	    .epoch = mix->epoch,
	    .at = mix->at,
	};

	for (uint32_t i = 0; i < mix->n_parts; i++) {
		int r = mix_part_token(mix, i, &tokens[i], &token.part_size[i]);

		if (r)
			return r;
		token.part[i] = tokens[i];
		token.weight[i] = mix->blend.weight[i];
	}
	*ret_size = mix_token_size(&token);
	*ret = malloc(*ret_size);
	if (!*ret)
		return -ENOMEM;
	mix_token_write(&token, *ret);
	return 0;
}

int oa_mix_state(struct oa_mix *mix, void *data, size_t *size)
{
	uint8_t *tokens[BLEND_MAX_PARTS] = {NULL};
	_cleanup_free_ uint8_t *token = NULL;
	size_t token_size = 0;
	int r;

	if (!mix || !size)
		return OA_E_INVALID;
	r = mix_enter(mix);
	if (r)
		return r;
	r = mix_token_of(mix, tokens, &token, &token_size);
	for (uint32_t i = 0; i < mix->n_parts; i++)
		free(tokens[i]);
	if (r)
		mix_error(mix, r, "oa_mix_state(): out of memory");
	mix_leave(mix, r);
	return r ? r : progress_copy_token(token, token_size, data, size);
}

/* ---- names ---- */

int oa_mix_sample_names(struct oa_mix *mix, uint32_t part, const int64_t *ids, uint64_t count,
			int timeout_ms, char ***ret)
{
	int r;

	if (!mix || !ret)
		return OA_E_INVALID;
	if (!guard_is_ours(&mix->guard))
		return OA_E_FORKED;
	if (part >= mix->n_parts)
		return mix_error(mix, OA_E_INVALID,
				 "oa_mix_sample_names(): part %u: the mix has parts 0 to %u", part,
				 mix->n_parts - 1);
	r = oa_sample_names(mix->part[part].stream, ids, count, timeout_ms, ret);
	return r ? mix_part_error(mix, part, r) : 0;
}
