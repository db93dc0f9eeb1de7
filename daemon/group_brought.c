/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A log that comes from elsewhere is hostile, whoever brings it: it is copied once, each entry is
 * checked against the set of samples and against what the token leaves, and a log that does not fit is
 * left aside.
 */

#include "daemon/group_brought.h"

#include <stdlib.h>
#include <string.h>

#include "shmring/scroll.h"

#define MOST_ENTRIES (UINT32_C(1) << 22)

void brought_fini(struct brought *log)
{
	for (size_t i = 0; i < log->n; i++) {
		free((void *)log->entries[i].grains);
		free((void *)log->entries[i].ids);
	}
	free(log->entries);
	entry_rest_fini(&log->rest);
	*log = (struct brought){.entries = NULL};
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = from ? malloc(bytes) : NULL;

	return to ? memcpy(to, from, bytes) : NULL;
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

static bool add(struct brought *log, const struct scroll_entry *from)
{
	struct entry *entry;

	if (log->n == log->room) {
		size_t room = 2 * log->room + 64;
		struct entry *more = realloc(log->entries, room * sizeof(*more));

		if (!more || log->n >= MOST_ENTRIES) {
			log->entries = more ? more : log->entries;
			return false;
		}
		log->entries = more;
		log->room = room;
	}
	entry = &log->entries[log->n++];
	*entry = entry_of(from);
	entry->grains = copy_of(from->grains, from->n_grains * sizeof(*from->grains));
	entry->ids = copy_of(from->ids, from->count * sizeof(*from->ids));
	return entry->grains || entry->ids;
}

/* Hands of this stream may be smaller than they were: parts of one, which list their samples, are the
 * same samples at the same places, made by the same seed and lap. */
static bool add_parts(struct brought *log, const struct entry_set *set, uint32_t most,
		      const struct scroll_entry *whole)
{
	const struct entry entry = entry_of(whole);
	_cleanup_free_ int64_t *ids = NULL;
	struct scroll_entry part = *whole;

	if (whole->count <= most)
		return add(log, whole);
	ids = malloc(whole->count * sizeof(*ids));
	if (!ids)
		return false;
	entry_samples(set, &entry, ids);
	part.n_grains = 0;
	part.grains = NULL;
	for (uint32_t at = 0; at < whole->count; at += part.count) {
		part.place = whole->place + at;
		part.count = BASE_MIN(whole->count - at, most);
		part.ids = ids + at;
		if (!add(log, &part))
			return false;
	}
	return true;
}

/* Passes the entry; at the log's end the rest is where it ends. */
static bool follow(const struct entry_set *set, struct entry_rest *rest, const struct entry *entry)
{
	return entry_is_good(set, entry) &&
	       entry_rest_pass(set, rest, entry, entry->place + entry->count) == 0;
}

/* The token's place, or, in a log that began with the same token, where that one began. */
static bool begin(const struct scroll *scroll, const struct token *token, bool is_named,
		  struct entry_rest *rest)
{
	rest->epoch = is_named ? token->epoch : scroll->first_epoch;
	rest->place = is_named ? token->place : 0;
	return !is_named || memcmp(scroll->id, token->log, sizeof(scroll->id)) == 0;
}

bool brought_read(int fd, const struct token *token, bool is_named, const struct entry_set *set,
		  uint32_t most, struct brought *ret)
{
	struct scroll scroll;
	struct scroll_entry read;
	struct entry last = {.count = 0};
	uint64_t offset;
	bool fits;
	int r = 0;

	*ret = (struct brought){.rest = {.epoch = 0}};
	if (scroll_attach(fd, &scroll))
		return false;
	memcpy(ret->id, scroll.id, sizeof(ret->id));
	ret->origin = scroll.origin;
	ret->first_epoch = scroll.first_epoch;
	offset = scroll_first(&scroll);
	fits = scroll.n_samples == set->deal->n && begin(&scroll, token, is_named, &ret->rest) &&
	       !entry_rest_init(set, token->need, token->tail, token->n_tail, &ret->rest);
	ret->epoch = ret->rest.epoch;
	ret->place = ret->rest.place;
	while (fits && (r = scroll_read(&scroll, &offset, &read)) == 0) {
		last = entry_of(&read);
		fits = follow(set, &ret->rest, &last) && add_parts(ret, set, most, &read);
	}
	scroll_detach(&scroll);
	if (!fits || r != SCROLL_E_NONE)
		return false;
	if (!last.count) /* nothing was dealt yet */
		return ret->epoch == ret->first_epoch && !ret->place;
	return last.epoch == ret->rest.epoch && last.place + last.count == ret->rest.place;
}
