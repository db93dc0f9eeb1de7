/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chunks that this rank has taken: how they come, how the cursor looks at them, how they go back.
 *
 *   grant --take--> held (cursor in it) --spent--> held by its windows --last release--> given back
 *
 * accessd is trusted not to be malicious, yet every number is checked against the slot table's geometry
 * before it becomes an address: a daemon with a bug, or one that forgot us, must cost a reconnect
 * and not a crash of the training run.
 *
 * Looking at samples' status bytes is the only work per sample on the path of a batch. Nearly all
 * chunks are all OK, so the question asked is "is it the same byte throughout": one memcmp() of the
 * bytes with themselves, shifted by one, which runs at the speed of vector loads.
 */

#include "libaccess/bad_samples.h"
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/proto.h"

static struct held *held_new(struct oa_stream *stream)
{
	struct held *held = stream->chunk_pool;

	if (held)
		stream->chunk_pool = held->next;
	else
		held = malloc(sizeof(*held));
	return held;
}

/* ---- whose samples they are ---- */

static uint64_t held_own(const struct part *part, const int64_t *ids, uint64_t from, uint64_t to)
{
	uint64_t own = 0;

	for (uint64_t i = from; i < to; i++)
		own += part_has(part, slot_table_load_id(&ids[i]));
	return own;
}

uint32_t held_count_own(const struct held *held, uint32_t from, uint32_t to)
{
	return held->part ? (uint32_t)held_own(held->part, held->ids, from, to) : to - from;
}

bool held_is_others(const struct held *held, uint32_t offset)
{
	return held->part &&
	       !part_has(held->part, slot_table_load_id(&held->ids[held->at + offset]));
}

/* Leaves out what others have at the two ends, so that with the last sample of ours the chunk is spent.
 * There is one of ours: held_check() has counted. */
static void held_trim(const struct oa_stream *stream, struct held *held)
{
	const struct part *part = &stream->course.part;

	if (!part->members ||
	    held_own(part, held->ids, held->at, held->end) == held->end - held->at)
		return;
	held->part = part;
	while (held->at < held->end && held_is_others(held, 0))
		held->at++;
	while (held->end > held->at &&
	       !part_has(part, slot_table_load_id(&held->ids[held->end - 1])))
		held->end--;
	held->clean = held->at;
}

/* ---- take ---- */

/*
 * The grant must fit the geometry and the slot table must say the same. -EPROTO with diag if not.
 * *ret_chunk is the copy of the slot table's words that was checked: they are not read again.
 */
static BASE_HOT int held_check(const struct oa_stream *stream, const struct grant *grant,
			       struct slot_table_chunk *ret_chunk, struct diag *diag)
{
	const struct slot_table *table = &stream->session->table;
	uint64_t end = (uint64_t)grant->first + grant->count;
	uint64_t lacking, count = grant->count;

	if (grant->slot >= table->geometry.max_slots)
		return error_set(diag, -EPROTO, "a grant names slot %u of %u", grant->slot,
				 table->geometry.max_slots);
	slot_table_read(table, grant->slot, ret_chunk);
	if (grant->instance == 0 || ret_chunk->instance != grant->instance)
		return error_set(diag, -EPROTO,
				 "slot %u does not hold the instance that was granted",
				 grant->slot);
	if (ret_chunk->count > table->geometry.chunk || end > ret_chunk->count ||
	    grant->count == 0 || ret_chunk->n_blocks > ret_chunk->count)
		return error_set(
		    diag, -EPROTO, "slot %u: samples %u to %llu of a chunk of %u were granted",
		    grant->slot, grant->first, (unsigned long long)end, ret_chunk->count);
	lacking = stream->course.is_fixed || stream->course.is_ranked
		      ? stream->local_places - stream->progress.cursor
		      : stream->progress.left - stream->n_carried - held_rest_own(stream->aside);
	if (stream->course.part.members)
		count = held_own(&stream->course.part, slot_table_ids_of(table, grant->slot),
				 grant->first, end);
	if (grant->epoch != stream->progress.epoch || count > lacking || count == 0)
		return error_set(
		    diag, -EPROTO,
		    "a chunk of %llu samples of epoch %llu was granted while epoch %llu lacks %llu",
		    (unsigned long long)count, (unsigned long long)grant->epoch,
		    (unsigned long long)stream->progress.epoch, (unsigned long long)lacking);
	return 0;
}

static BASE_HOT void held_fill(struct held *held, struct session *session,
			       const struct grant *grant, const struct slot_table_chunk *chunk)
{
	const struct slot_table *table = &session->table;

	*held = (struct held){
	    .session = session,
	    .number = grant->number,
	    .instance = grant->instance,
	    .nonce = chunk->nonce,
	    .epoch = grant->epoch,
	    .view = session->view,
	    .slot = session->slots + grant->slot * table->geometry.slot_stride,
	    .status = slot_table_status_of(table, grant->slot),
	    .ids = slot_table_ids_of(table, grant->slot),
	    .blocks = slot_table_blocks_of(table, grant->slot),
	    .slot_number = grant->slot,
	    .n_blocks = chunk->n_blocks,
	    .at = grant->first,
	    .end = grant->first + grant->count,
	    .clean = grant->first,
	};
	session_ref(session);
	if (held->view) {
		view_ref(held->view);
		view_enter(held->view, held->slot_number);
	}
}

BASE_HOT int held_take(struct oa_stream *stream, uint64_t only, struct diag *diag)
{
	struct held *held = held_new(stream);
	struct slot_table_chunk chunk;
	struct grant grant;
	int r;

	if (!held)
		return -ENOMEM;
	r = only ? grant_take_one(&stream->session->rank, only, &grant)
		 : grant_take(&stream->session->rank, &grant);
	if (r == 0)
		r = held_check(stream, &grant, &chunk, diag);
	else
		r = r == GRANT_E_PINS ? OA_E_PINS : STREAM_NOTHING;
	if (r) {
		held->next = stream->chunk_pool;
		stream->chunk_pool = held;
		return r;
	}
	held_fill(held, stream->session, &grant, &chunk);
	held->place = stream->progress.cursor - grant.first;
	held_trim(stream, held);
	held->next = stream->chunks;
	stream->chunks = held;
	stream->held = held;
	if (held->n_blocks == 0)
		progress_take_tail(&stream->progress, held->ids + held->at, held->end - held->at);
	return 0;
}

/* ---- look ---- */

bool held_has_moved(const struct held *held)
{
	uint32_t now = slot_table_read_watermark(&held->session->table, held->slot_number);

	/* Only upwards, as held_look() sees it: one that fell would have us look for ever. */
	return BASE_MIN(now, held->end) > held->watermark;
}

BASE_HOT bool held_look(struct held *held)
{
	uint32_t before = held->watermark;
	uint32_t now = slot_table_read_watermark(&held->session->table, held->slot_number);

	held->watermark = BASE_MAX(before, BASE_MIN(now, held->end));
	return held->watermark != before;
}

/* Is it OK throughout? count > 0 */
static bool held_is_all_ok(const uint8_t *status, uint32_t count)
{
	return status[0] == LAYOUT_SAMPLE_OK && memcmp(status, status + 1, count - 1) == 0;
}

/* Moves clean towards upto, up to the first hole. */
static BASE_HOT int held_scan(struct held *held, uint32_t upto)
{
	if (held->clean < upto && !held->part &&
	    held_is_all_ok(held->status + held->clean, upto - held->clean))
		held->clean = upto;
	for (; held->clean < upto; held->clean++) {
		uint8_t status = held->status[held->clean];

		if (held_is_hole(status) || status == LAYOUT_SAMPLE_ERROR ||
		    held_is_others(held, held->clean - held->at))
			break;
		if (status != LAYOUT_SAMPLE_OK && status != LAYOUT_SAMPLE_SUBSTITUTED)
			return -EPROTO;
		held->has_substitutes |= status == LAYOUT_SAMPLE_SUBSTITUTED;
	}
	return 0;
}

BASE_HOT int held_run(struct held *held, uint32_t want)
{
	uint32_t upto = BASE_MIN(held->watermark, held->end);

	if (upto <= held->at)
		return 0;
	upto = BASE_MIN(upto, held->at + BASE_MIN(want, held->end - held->at));
	held->clean = BASE_MAX(held->clean, held->at);
	if (held_scan(held, upto))
		return -EPROTO;
	return (int)(BASE_MIN(held->clean, upto) - held->at);
}

uint8_t held_status(const struct held *held, uint32_t offset)
{
	return held->status[held->at + offset];
}

void held_count_hole(struct oa_stream *stream, const struct held *held)
{
	bool is_filtered = held->status[held->at] == LAYOUT_SAMPLE_FILTERED;

	stream->stats.filtered += is_filtered;
	stream->stats.skipped += !is_filtered;
	stream->progress.filtered += is_filtered;
	stream->progress.skipped += !is_filtered;
	if (!is_filtered)
		bad_samples_met(stream, slot_table_load_id(&held->ids[held->at]));
}

uint32_t held_meet_substitutes(struct oa_stream *stream, const struct held *held, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = held->at; held->has_substitutes && i < held->at + count; i++)
		if (held->status[i] == LAYOUT_SAMPLE_SUBSTITUTED) {
			bad_samples_met(stream, slot_table_load_id(&held->ids[i]));
			n++;
		}
	return n;
}

/* ---- give back ---- */

BASE_HOT void held_note_seen(struct oa_stream *stream, struct held *held)
{
	struct progress *progress = &stream->progress;
	uint32_t at = 0;

	if (held->is_seen)
		return;
	held->is_seen = true;
	while (stream->open.reuse > 1 && at < progress->n_nonces &&
	       progress->nonces[at] != held->nonce)
		at++;
	if (stream->open.reuse > 1 &&
	    at < progress->n_nonces) { /* seen before: it is the newest now */
		memmove(progress->nonces + at, progress->nonces + at + 1,
			(progress->n_nonces - at - 1) * sizeof(uint64_t));
		progress->n_nonces--;
	}
	if (progress->n_nonces == TOKEN_MAX_NONCES) {
		memmove(progress->nonces, progress->nonces + 1,
			sizeof(progress->nonces) - sizeof(uint64_t));
		progress->n_nonces--;
	}
	progress->nonces[progress->n_nonces++] = held->nonce;
}

/* The slot is accessd's again. */
static BASE_HOT void held_unpin(struct oa_stream *stream, struct held *held)
{
	struct held **link = &stream->chunks;

	progress_fold(stream, held);
	grant_release(&held->session->rank, held->number);
	stream->is_pinned_out = false;
	if (grant_wants_kick(&held->session->rank))
		session_send(held->session, PROTO_KICK);
	while (*link != held)
		link = &(*link)->next;
	*link = held->next;
	session_unref(held->session);
	held->session = NULL;
}

/* What is private in the slot is dropped first: it hides what comes into the slot next. */
static BASE_HOT void held_give_back(struct oa_stream *stream, struct held *held)
{
	struct view *view = held->view;

	if (view && view_leave(view, held->slot_number))
		stream->copies_left = STREAM_COPIES;
	if (held->session)
		held_unpin(stream, held);
	view_unref(view);
	held->next = stream->chunk_pool;
	stream->chunk_pool = held;
}

BASE_HOT void held_spend(struct oa_stream *stream, struct held *held)
{
	held->is_spent = true;
	if (stream->held == held)
		stream->held = NULL;
	if (stream->aside == held)
		stream->aside = NULL;
	if (held->windows == 0)
		held_give_back(stream, held);
}

BASE_HOT void held_open_window(struct held *held, struct oa_batch *batch)
{
	held->windows++;
	if (!held->view)
		return;
	batch->next = held->open;
	held->open = batch;
}

BASE_HOT void held_close_window(struct oa_stream *stream, struct held *held,
				const struct oa_batch *batch)
{
	struct oa_batch **link = &held->open;

	while (*link && *link != batch)
		link = &(*link)->next;
	if (*link)
		*link = batch->next;
	held->windows--;
	if (held->is_spent && held->windows == 0)
		held_give_back(stream, held);
}

/* ---- private ---- */

const uint8_t *held_memory(const struct held *held)
{
	return held->view && !held_is_private(held) ? view_slot(held->view, held->slot_number)
						    : held->slot;
}

BASE_HOT bool held_is_private(const struct held *held)
{
	return held->view && view_is_private(held->view, held->slot_number);
}

static BASE_COLD int held_keep_window(const struct oa_stream *stream, const struct held *held,
				      const struct oa_batch *batch)
{
	int r = 0;

	for (uint32_t i = 0; i < stream->schema.n && !r; i++) {
		const struct schema_field *field = &stream->schema.field[i];

		if (field->where == LAYOUT_IN_SLOT)
			r = view_keep(held->view, held->slot_number,
				      view_offset(held->view, i) +
					  batch->first * field->sample_bytes,
				      batch->count * field->sample_bytes);
	}
	return r;
}

/* The newest comes first in the list, and is the likeliest to be released soon. */
static struct held *held_oldest(const struct oa_stream *stream)
{
	struct held *oldest = NULL;

	for (struct held *held = stream->chunks; held; held = held->next)
		if (held->session == stream->session && held->is_spent)
			oldest = held;
	return oldest;
}

BASE_COLD int held_keep(struct oa_stream *stream)
{
	struct held *held = held_oldest(stream);

	if (!held || !held->view || view_open(held->view, held->slot_number))
		return OA_E_PINS;
	for (const struct oa_batch *batch = held->open; batch; batch = batch->next)
		if (held_keep_window(stream, held, batch))
			return OA_E_PINS;
	for (const struct oa_batch *batch = held->open; batch; batch = batch->next)
		stream->stats.kept += batch->count;
	stream->has_copied = true;
	held_unpin(stream, held);
	return 0;
}
