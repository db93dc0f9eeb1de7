/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A rank follows the log at two places. One is where it passes entries: from there on it must be
 * able to say, for any step that is done, which samples no rank has had. The other is how far it
 * has looked ahead: a step may begin when the log reaches to its end, because only then the token after
 * it is known.
 *
 * Entries are passed when a chunk goes back, whole ones alone; a token cuts the one that its step
 * ends in, on a copy. The log lives in accessd's memory and is believed no more than the slot table is.
 */

#include "libaccess/plan_reader.h"

#include "base/bits.h"

int plan_reader_init(struct plan_reader *plan_reader, const struct entry_set *set,
		     const struct token *token)
{
	struct entry_rest *rest = &plan_reader->at.rest;

	*plan_reader = (struct plan_reader){.fd = -1};
	if (entry_rest_init(set, token ? token->need : NULL, token ? token->tail : NULL,
			    token ? token->n_tail : 0, rest))
		return -ENOMEM;
	rest->epoch = token ? token->epoch : 0;
	plan_reader->total = entry_rest_count(rest);
	rest->place = plan_reader->total;
	if (!plan_reader->total)
		plan_reader_next_epoch(plan_reader, set);
	rest->place = 0;
	return 0;
}

void plan_reader_fini(struct plan_reader *plan_reader)
{
	plan_log_detach(&plan_reader->plan_log);
	entry_rest_fini(&plan_reader->at.rest);
	base_close(&plan_reader->fd);
}

/* The next record. Outcomes of plan_log_read() as ours. */
static int read_entry(struct plan_log *plan_log, uint64_t *offset, struct entry *ret)
{
	int r = plan_log_read(plan_log, offset, ret);

	if (r == PLAN_LOG_E_NONE)
		return PLAN_READER_E_SHORT;
	if (r)
		return r == PLAN_LOG_E_GONE ? PLAN_READER_E_GONE : r < 0 ? r : PLAN_READER_E_BAD;
	return 0;
}

static bool is_below(const struct entry *entry, uint64_t epoch, uint64_t place)
{
	return entry->epoch < epoch ||
	       (entry->epoch == epoch && entry->place + entry->count <= place);
}

/* Where the record begins that has the place or comes after it. */
static int find(struct plan_log *plan_log, uint64_t epoch, uint64_t place, uint64_t *ret_offset)
{
	uint64_t offset = plan_log_first(plan_log), begin;
	struct entry entry;
	int r;

	do {
		begin = offset;
		r = read_entry(plan_log, &offset, &entry);
		if (r == PLAN_READER_E_GONE) /* the log goes on while we read */
			offset = plan_log_first(plan_log);
	} while (r == PLAN_READER_E_GONE || (!r && is_below(&entry, epoch, place)));
	*ret_offset = begin;
	return r == PLAN_READER_E_SHORT ? 0 : r;
}

int plan_reader_adopt(struct plan_reader *plan_reader, const struct entry_set *set,
		      struct plan_log *plan_log, int *fd, uint64_t epoch, uint64_t place)
{
	struct entry_rest *rest = &plan_reader->at.rest;
	uint64_t left = entry_rest_count(rest), offset;

	if (plan_log->n_samples != set->permutation->n || epoch != rest->epoch ||
	    place > set->permutation->n || left > set->permutation->n - place ||
	    find(plan_log, epoch, place, &offset))
		return PLAN_READER_E_BAD;
	plan_log_detach(&plan_reader->plan_log);
	base_close(&plan_reader->fd);
	plan_reader->plan_log = *plan_log;
	*plan_log = (struct plan_log){.map = NULL};
	plan_reader->fd = base_take_fd(fd);
	plan_reader->total = place + left;
	plan_reader->at.offset = plan_reader->ahead_offset = offset;
	plan_reader->ahead_epoch = epoch;
	plan_reader->is_short = false;
	plan_reader->ahead_place = rest->place = place;
	return 0;
}

static bool reaches(const struct plan_reader *plan_reader, uint64_t epoch, uint64_t place)
{
	return plan_reader->ahead_epoch > epoch ||
	       (plan_reader->ahead_epoch == epoch && plan_reader->ahead_place >= place);
}

int plan_reader_look(struct plan_reader *plan_reader, uint64_t epoch, uint64_t place)
{
	struct entry entry;
	int r;

	while (!reaches(plan_reader, epoch, place)) {
		r = read_entry(&plan_reader->plan_log, &plan_reader->ahead_offset, &entry);
		plan_reader->is_short = r == PLAN_READER_E_SHORT;
		if (r)
			return r;
		plan_reader->ahead_epoch = entry.epoch;
		plan_reader->ahead_place = entry.place + entry.count;
	}
	plan_reader->is_short = false;
	return 0;
}

bool plan_reader_has_grown(const struct plan_reader *plan_reader)
{
	return plan_reader->is_short &&
	       plan_log_end(&plan_reader->plan_log) != plan_reader->ahead_offset;
}

static int pass(struct plan_log *plan_log, struct plan_reader_at *at, const struct entry_set *set,
		uint64_t place, bool whole)
{
	while (at->rest.place < place) {
		uint64_t next = at->offset, end;
		struct entry entry;
		int r = read_entry(plan_log, &next, &entry);

		if (r)
			return r;
		end = entry.place + entry.count;
		if (entry.epoch == at->rest.epoch && end > place && whole)
			return 0;
		if (!entry_is_good(set, &entry))
			return PLAN_READER_E_BAD;
		r = entry_rest_pass(set, &at->rest, &entry, BASE_MIN(end, place));
		if (r)
			return r < 0 ? r : PLAN_READER_E_BAD;
		if (is_below(&entry, at->rest.epoch, at->rest.place))
			at->offset = next;
	}
	return 0;
}

int plan_reader_pass(struct plan_reader *plan_reader, const struct entry_set *set, uint64_t place,
		     bool whole)
{
	return pass(&plan_reader->plan_log, &plan_reader->at, set, place, whole);
}

int plan_reader_rest(struct plan_reader *plan_reader, const struct entry_set *set, uint64_t place,
		     struct entry_rest *ret)
{
	const struct entry_rest *rest = &plan_reader->at.rest;
	struct plan_reader_at at = {
	    .rest = {.epoch = rest->epoch, .place = rest->place},
	    .offset = plan_reader->at.offset,
	};
	int r = entry_rest_copy(set, rest, &at.rest);

	r = r ? r : pass(&plan_reader->plan_log, &at, set, place, false);
	if (r)
		entry_rest_fini(&at.rest);
	else
		*ret = at.rest;
	return r;
}

bool plan_reader_next_epoch(struct plan_reader *plan_reader, const struct entry_set *set)
{
	struct entry_rest *rest = &plan_reader->at.rest;

	if (rest->place != plan_reader->total || entry_rest_count(rest))
		return false;
	entry_rest_next_epoch(set, rest);
	plan_reader->total = entry_rest_count(rest);
	return true;
}
