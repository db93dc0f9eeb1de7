/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a group's log remembers. Entries are copied to its end and forgotten at its beginning, as
 * many as its bound in bytes asks for; the newest stays whatever it takes. The records that are in
 * use lie together and wander to the end of their memory; when they reach it they are moved back,
 * or get twice as much.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/carousel_log_state.h"

#define ENTRY_BYTES 64 /* of an entry without its grains */
#define LEAST_RECORDS 64

void carousel_record_free_log(struct carousel_log *log)
{
	if (!log)
		return;
	for (uint32_t i = 0; i < log->n; i++) {
		free((void *)log->records[log->start + i].entry.grains);
		free((void *)log->records[log->start + i].entry.ids);
	}
	free(log->records);
	free(log->at_slot);
	free(log);
}

struct carousel_log *carousel_record_new_log(const struct carousel *carousel, uint64_t most_bytes)
{
	struct carousel_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->most_bytes = most_bytes;
	log->room = LEAST_RECORDS;
	log->records = calloc(log->room, sizeof(*log->records));
	log->at_slot = calloc(carousel->config.max_slots, sizeof(*log->at_slot));
	if (!log->records || !log->at_slot) {
		carousel_record_free_log(log);
		return NULL;
	}
	return log;
}

uint64_t carousel_entry_bytes(const struct entry *entry)
{
	uint64_t bytes =
	    entry->n_grains ? UINT64_C(4) * entry->n_grains : UINT64_C(8) * entry->count;

	return ENTRY_BYTES + base_align_up(bytes, 8);
}

uint64_t carousel_log_bytes(const struct carousel *carousel)
{
	uint64_t grains = carousel->deal.grains;
	uint64_t hands = grains / carousel->max_grains + 1;

	return 2 * (4 * grains + 2 * ENTRY_BYTES * hands) + (UINT64_C(64) << 10);
}

static int make_room(struct carousel_log *log)
{
	struct carousel_record *more;

	if (log->start + log->n < log->room)
		return 0;
	if (log->start > log->n) {
		memcpy(log->records, log->records + log->start, log->n * sizeof(*log->records));
		log->start = 0;
		return 0;
	}
	more = realloc(log->records, (size_t)2 * log->room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	log->records = more;
	log->room *= 2;
	return 0;
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = malloc(bytes ? bytes : 1);

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

static void forget_oldest(struct carousel_log *log)
{
	struct carousel_record *oldest = carousel_record_of(log, log->first);

	log->bytes -= carousel_entry_bytes(&oldest->entry);
	free((void *)oldest->entry.grains);
	free((void *)oldest->entry.ids);
	log->start++;
	log->first++;
	log->n--;
}

struct carousel_record *carousel_record_push(struct carousel_log *log, const struct entry *entry)
{
	struct carousel_record record = {.entry = *entry, .at = log->samples};

	record.entry.grains = NULL;
	record.entry.ids = NULL;
	if (make_room(log))
		return NULL;
	if (entry->n_grains)
		record.entry.grains =
		    copy_of(entry->grains, entry->n_grains * sizeof(*entry->grains));
	else
		record.entry.ids = copy_of(entry->ids, entry->count * sizeof(*entry->ids));
	if (!record.entry.grains && !record.entry.ids)
		return NULL;
	log->records[log->start + log->n++] = record;
	log->samples += entry->count;
	log->bytes += carousel_entry_bytes(entry);
	while (log->bytes > log->most_bytes && log->n > 1)
		forget_oldest(log);
	return carousel_record_of(log, carousel_log_end(log) - 1);
}
