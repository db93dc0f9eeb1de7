/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A rank follows the log at two places. One is where it passes entries: from there on it must be
 * able to say, for any step that is done, which samples no rank has had. The other is how far it
 * has looked ahead: a step may begin when the log reaches to its end, because only then the token after
 * it is known.
 *
 * Entries are passed when a hand goes back, whole ones alone; a token cuts the one that its step
 * ends in, on a copy. The log lives in accessd's memory and is believed no more than the board is.
 */

#include "libaccess/planlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

int planlog_init(struct planlog *planlog, const struct entry_set *set, const struct token *token)
{
	struct entry_rest *rest = &planlog->at.rest;

	*planlog = (struct planlog){.fd = -1};
	if (entry_rest_init(set, token ? token->need : NULL, token ? token->tail : NULL,
			    token ? token->n_tail : 0, rest))
		return -ENOMEM;
	rest->epoch = token ? token->epoch : 0;
	planlog->total = entry_rest_count(set, rest);
	rest->place = planlog->total;
	if (!planlog->total)
		planlog_next_epoch(planlog, set);
	rest->place = 0;
	return 0;
}

void planlog_fini(struct planlog *planlog)
{
	scroll_detach(&planlog->scroll);
	entry_rest_fini(&planlog->at.rest);
	base_close(&planlog->fd);
}

static struct entry entry_of(const struct scroll_entry *from)
{
	return (struct entry){
	    .epoch = from->epoch,
	    .place = from->place,
	    .seed = from->seed,
	    .lap = from->lap,
	    .count = from->count,
	    .n_grains = from->n_grains,
	    .grains = from->grains,
	    .ids = from->ids,
	};
}

/* The next record. Outcomes of scroll_read() as ours. */
static int read_entry(struct scroll *scroll, uint64_t *offset, struct entry *ret)
{
	struct scroll_entry entry;
	int r = scroll_read(scroll, offset, &entry);

	if (r == SCROLL_E_NONE)
		return PLANLOG_E_SHORT;
	if (r)
		return r == SCROLL_E_GONE ? PLANLOG_E_GONE : r < 0 ? r : PLANLOG_E_BAD;
	*ret = entry_of(&entry);
	return 0;
}

static bool is_below(const struct entry *entry, uint64_t epoch, uint64_t place)
{
	return entry->epoch < epoch ||
	       (entry->epoch == epoch && entry->place + entry->count <= place);
}

/* Where the record begins that has the place or comes after it. */
static int find(struct scroll *scroll, uint64_t epoch, uint64_t place, uint64_t *ret_offset)
{
	uint64_t offset = scroll_first(scroll), begin;
	struct entry entry;
	int r;

	do {
		begin = offset;
		r = read_entry(scroll, &offset, &entry);
		if (r == PLANLOG_E_GONE) /* the log goes on while we read */
			offset = scroll_first(scroll);
	} while (r == PLANLOG_E_GONE || (!r && is_below(&entry, epoch, place)));
	*ret_offset = begin;
	return r == PLANLOG_E_SHORT ? 0 : r;
}

int planlog_adopt(struct planlog *planlog, const struct entry_set *set, struct scroll *scroll,
		  int *fd, uint64_t epoch, uint64_t place)
{
	struct entry_rest *rest = &planlog->at.rest;
	uint64_t left = entry_rest_count(set, rest), offset;

	if (scroll->n_samples != set->deal->n || epoch != rest->epoch || place > set->deal->n ||
	    left > set->deal->n - place || find(scroll, epoch, place, &offset))
		return PLANLOG_E_BAD;
	scroll_detach(&planlog->scroll);
	base_close(&planlog->fd);
	planlog->scroll = *scroll;
	*scroll = (struct scroll){.map = NULL};
	planlog->fd = base_take_fd(fd);
	planlog->total = place + left;
	planlog->at.offset = planlog->ahead_offset = offset;
	planlog->ahead_epoch = epoch;
	planlog->is_short = false;
	planlog->ahead_place = rest->place = place;
	return 0;
}

static bool reaches(const struct planlog *planlog, uint64_t epoch, uint64_t place)
{
	return planlog->ahead_epoch > epoch ||
	       (planlog->ahead_epoch == epoch && planlog->ahead_place >= place);
}

int planlog_look(struct planlog *planlog, uint64_t epoch, uint64_t place)
{
	struct entry entry;
	int r;

	while (!reaches(planlog, epoch, place)) {
		r = read_entry(&planlog->scroll, &planlog->ahead_offset, &entry);
		planlog->is_short = r == PLANLOG_E_SHORT;
		if (r)
			return r;
		planlog->ahead_epoch = entry.epoch;
		planlog->ahead_place = entry.place + entry.count;
	}
	planlog->is_short = false;
	return 0;
}

bool planlog_has_grown(const struct planlog *planlog)
{
	return planlog->is_short && scroll_end(&planlog->scroll) != planlog->ahead_offset;
}

static int pass(struct scroll *scroll, struct planlog_at *at, const struct entry_set *set,
		uint64_t place, bool whole)
{
	while (at->rest.place < place) {
		uint64_t next = at->offset, end;
		struct entry entry;
		int r = read_entry(scroll, &next, &entry);

		if (r)
			return r;
		end = entry.place + entry.count;
		if (entry.epoch == at->rest.epoch && end > place && whole)
			return 0;
		if (!entry_is_good(set, &entry))
			return PLANLOG_E_BAD;
		r = entry_rest_pass(set, &at->rest, &entry, BASE_MIN(end, place));
		if (r)
			return r < 0 ? r : PLANLOG_E_BAD;
		if (is_below(&entry, at->rest.epoch, at->rest.place))
			at->offset = next;
	}
	return 0;
}

int planlog_pass(struct planlog *planlog, const struct entry_set *set, uint64_t place, bool whole)
{
	return pass(&planlog->scroll, &planlog->at, set, place, whole);
}

int planlog_rest(struct planlog *planlog, const struct entry_set *set, uint64_t place,
		 struct entry_rest *ret)
{
	const struct entry_rest *rest = &planlog->at.rest;
	struct planlog_at at = {
	    .rest = {.epoch = rest->epoch, .place = rest->place},
	    .offset = planlog->at.offset,
	};
	int r = entry_rest_init(set, rest->need, rest->tail, rest->n_tail, &at.rest);

	if (!r)
		r = pass(&planlog->scroll, &at, set, place, false);
	if (r)
		entry_rest_fini(&at.rest);
	else
		*ret = at.rest;
	return r;
}

bool planlog_next_epoch(struct planlog *planlog, const struct entry_set *set)
{
	struct entry_rest *rest = &planlog->at.rest;

	if (rest->place != planlog->total || entry_rest_count(set, rest))
		return false;
	entry_rest_next_epoch(set, rest);
	planlog->total = entry_rest_count(set, rest);
	return true;
}
