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

#include "libaccess/held.h"

#include "libaccess/error.h"
#include "shmring/proto.h"

static struct held *held_new(struct chunks *chunks)
{
	struct held *held = chunks->pool;

	if (held)
		chunks->pool = held->next;
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
static void held_trim(const struct part *part, struct held *held)
{
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
static BASE_HOT int held_check(const struct slot_table *table, const struct held_want *want,
			       const struct grant *grant, struct slot_table_chunk *ret_chunk,
			       struct diag *diag)
{
	uint64_t end = (uint64_t)grant->first + grant->count, count = grant->count;

	if (grant->slot >= table->geometry.max_slots)
		return diag_fail(diag, -EPROTO, "a grant names slot %u of %u", grant->slot,
				 table->geometry.max_slots);
	slot_table_read(table, grant->slot, ret_chunk);
	if (grant->instance == 0 || ret_chunk->instance != grant->instance)
		return diag_fail(diag, -EPROTO,
				 "slot %u does not hold the instance that was granted",
				 grant->slot);
	if (ret_chunk->count > table->geometry.chunk || end > ret_chunk->count ||
	    grant->count == 0 || ret_chunk->n_blocks > ret_chunk->count)
		return diag_fail(
		    diag, -EPROTO, "slot %u: samples %u to %llu of a chunk of %u were granted",
		    grant->slot, grant->first, (unsigned long long)end, ret_chunk->count);
	if (want->part->members)
		count =
		    held_own(want->part, slot_table_ids_of(table, grant->slot), grant->first, end);
	if (grant->epoch != want->epoch || count > want->lacking || count == 0)
		return diag_fail(
		    diag, -EPROTO,
		    "a chunk of %llu samples of epoch %llu was granted while epoch %llu lacks %llu",
		    (unsigned long long)count, (unsigned long long)grant->epoch,
		    (unsigned long long)want->epoch, (unsigned long long)want->lacking);
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

BASE_HOT int held_take(struct chunks *chunks, struct session *session, const struct held_want *want,
		       struct diag *diag)
{
	struct held *held = held_new(chunks);
	struct slot_table_chunk chunk;
	struct grant grant;
	int r;

	if (!held)
		return -ENOMEM;
	r = want->only ? grant_take_one(&session->rank, want->only, &grant)
		       : grant_take(&session->rank, &grant);
	if (r == 0)
		r = held_check(&session->table, want, &grant, &chunk, diag);
	else
		r = r == GRANT_E_PINS ? OA_E_PINS : HELD_NONE;
	if (r) {
		held->next = chunks->pool;
		chunks->pool = held;
		return r;
	}
	held_fill(held, session, &grant, &chunk);
	held->place = want->place - grant.first;
	held_trim(want->part, held);
	held->next = chunks->all;
	chunks->all = chunks->now = held;
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

uint32_t held_meet_substitutes(const struct held *held, uint32_t count, struct met *met)
{
	uint32_t n = 0;

	for (uint32_t i = held->at; held->has_substitutes && i < held->at + count; i++)
		if (held->status[i] == LAYOUT_SAMPLE_SUBSTITUTED) {
			met_note(met, slot_table_load_id(&held->ids[i]));
			n++;
		}
	return n;
}

void held_take_blocks(const struct held *held, const struct entry_set *set, struct entry_rest *rest)
{
	for (uint32_t i = 0; held && i < held->n_blocks; i++)
		entry_rest_take_block(set, rest, slot_table_load_block(&held->blocks[i]));
}

uint32_t held_copy_rest(const struct held *held, int64_t *ret_ids)
{
	const uint32_t count = held_rest(held);

	for (uint32_t i = 0; i < count; i++)
		ret_ids[i] = slot_table_load_id(&held->ids[held->at + i]);
	return count;
}

/* ---- give back ---- */

/* The slot is accessd's again. */
static BASE_HOT void held_unpin(struct chunks *chunks, struct held *held)
{
	struct held **link = &chunks->all;

	grant_release(&held->session->rank, held->number);
	chunks->is_pinned_out = false;
	if (grant_wants_kick(&held->session->rank))
		session_send(held->session, PROTO_KICK);
	while (*link != held)
		link = &(*link)->next;
	*link = held->next;
	session_unref(held->session);
	held->session = NULL;
}

/* What is private in the slot is dropped first: it hides what comes into the slot next. */
static BASE_HOT void held_give_back(struct chunks *chunks, struct held *held)
{
	struct view *view = held->view;

	if (view && view_leave(view, held->slot_number))
		chunks->copies_left = HELD_COPIES;
	if (held->session)
		held_unpin(chunks, held);
	view_unref(view);
	held->next = chunks->pool;
	chunks->pool = held;
}

BASE_HOT void held_spend(struct chunks *chunks, struct held *held)
{
	held->is_spent = true;
	if (chunks->now == held)
		chunks->now = NULL;
	if (chunks->aside == held)
		chunks->aside = NULL;
	if (held->windows == 0)
		held_give_back(chunks, held);
}

BASE_HOT void held_open_window(struct held *held, struct oa_batch *batch)
{
	held->windows++;
	if (!held->view)
		return;
	batch->next = held->open;
	held->open = batch;
}

BASE_HOT void held_close_window(struct chunks *chunks, struct held *held,
				const struct oa_batch *batch)
{
	struct oa_batch **link = &held->open;

	while (*link && *link != batch)
		link = &(*link)->next;
	if (*link)
		*link = batch->next;
	held->windows--;
	if (held->is_spent && held->windows == 0)
		held_give_back(chunks, held);
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

static BASE_COLD int held_keep_window(const struct schema *schema, const struct held *held,
				      const struct oa_batch *batch)
{
	int r = 0;

	for (uint32_t i = 0; i < schema->n && !r; i++) {
		const struct schema_field *field = &schema->field[i];

		if (field->where == LAYOUT_IN_SLOT)
			r = view_keep(held->view, held->slot_number,
				      view_offset(held->view, i) +
					  batch->first * field->sample_bytes,
				      batch->count * field->sample_bytes);
	}
	return r;
}

/* The newest comes first in the list, and is the likeliest to be released soon. */
static struct held *held_oldest(const struct chunks *chunks, const struct session *session)
{
	struct held *oldest = NULL;

	for (struct held *held = chunks->all; held; held = held->next)
		if (held->session == session && held->is_spent)
			oldest = held;
	return oldest;
}

BASE_COLD int held_keep(struct chunks *chunks, const struct session *session,
			const struct schema *schema, uint64_t *ret_count)
{
	struct held *held = held_oldest(chunks, session);
	uint64_t count = 0;

	if (!held || !held->view || view_open(held->view, held->slot_number))
		return OA_E_PINS;
	for (const struct oa_batch *batch = held->open; batch; batch = batch->next) {
		if (held_keep_window(schema, held, batch))
			return OA_E_PINS;
		count += batch->count;
	}
	held_unpin(chunks, held);
	*ret_count = count;
	return 0;
}

void held_fini(struct chunks *chunks)
{
	while (chunks->pool) {
		struct held *held = chunks->pool;

		chunks->pool = held->next;
		free(held);
	}
}
