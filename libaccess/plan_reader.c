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

void plan_reader_fini(struct plan_reader *plan_reader)
{
	plan_log_detach(&plan_reader->plan_log);
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
	} while (r == PLAN_READER_E_GONE || (!r && entry_ends_by(&entry, epoch, place)));
	*ret_offset = begin;
	return r == PLAN_READER_E_SHORT ? 0 : r;
}

int plan_reader_adopt(struct plan_reader *plan_reader, const struct entry_set *set,
		      struct entry_rest *rest, struct plan_log *plan_log, int *fd, uint64_t epoch,
		      uint64_t place)
{
	uint64_t offset;

	if (plan_log->n_samples != set->permutation->n || epoch != rest->epoch ||
	    place > set->permutation->n || entry_rest_count(rest) > set->permutation->n - place ||
	    find(plan_log, epoch, place, &offset))
		return PLAN_READER_E_BAD;
	plan_log_detach(&plan_reader->plan_log);
	base_close(&plan_reader->fd);
	plan_reader->plan_log = *plan_log;
	*plan_log = (struct plan_log){.map = NULL};
	plan_reader->fd = base_take_fd(fd);
	plan_reader->offset = plan_reader->ahead_offset = offset;
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

/* *offset: of the first record that is not passed. */
static int pass(struct plan_log *plan_log, const struct entry_set *set, struct entry_rest *rest,
		uint64_t *offset, uint64_t place, bool whole)
{
	while (rest->place < place) {
		uint64_t next = *offset, end;
		struct entry entry;
		int r = read_entry(plan_log, &next, &entry);

		if (r)
			return r;
		end = entry.place + entry.count;
		if (entry.epoch == rest->epoch && end > place && whole)
			return 0;
		if (!entry_is_good(set, &entry))
			return PLAN_READER_E_BAD;
		r = entry_rest_pass(set, rest, &entry, BASE_MIN(end, place));
		if (r)
			return r < 0 ? r : PLAN_READER_E_BAD;
		if (entry_ends_by(&entry, rest->epoch, rest->place))
			*offset = next;
	}
	return 0;
}

int plan_reader_pass(struct plan_reader *plan_reader, const struct entry_set *set,
		     struct entry_rest *rest, uint64_t place, bool whole)
{
	return pass(&plan_reader->plan_log, set, rest, &plan_reader->offset, place, whole);
}

int plan_reader_rest(struct plan_reader *plan_reader, const struct entry_set *set,
		     const struct entry_rest *rest, uint64_t place, struct entry_rest *ret)
{
	struct entry_rest copy = {.epoch = rest->epoch, .place = rest->place};
	uint64_t offset = plan_reader->offset;
	int r = entry_rest_copy(set, rest, &copy);

	r = r ? r : pass(&plan_reader->plan_log, set, &copy, &offset, place, false);
	if (r)
		entry_rest_fini(&copy);
	else
		*ret = copy;
	return r;
}
