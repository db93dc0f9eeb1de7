/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a group's log remembers. Entries are copied to its end and forgotten at its beginning, as
 * many as its bound in bytes asks for; the newest stays whatever it takes. The records lie in a ring, whose size is
 * a power of two and doubles when it is full; nothing else moves them, as there may be millions. Their arrays lie one behind the other in pages, each of which is freed with the last entry
 * that has something in it: with a piece of memory for each array, free() would have millions to do at once.
 */

#include "sched/carousel_log_state.h"

#define ENTRY_BYTES 64 /* of an entry without its blocks */
#define LEAST_RECORDS 64
#define PAGE_BYTES ((size_t)64 << 10)

struct carousel_page {
	struct carousel_page *older, *newer;
	uint64_t end;      /* behind the number of the last entry that has something here */
	size_t used, room; /* bytes */
	uint64_t data[];
};

static void free_page(struct carousel_log *log, struct carousel_page *page)
{
	*(page->older ? &page->older->newer : &log->oldest) = page->newer;
	*(page->newer ? &page->newer->older : &log->newest) = page->older;
	free(page);
}

/* Gives back some of the records. false: they are so few that free() does it. */
static bool shrink(struct carousel_log *log, uint64_t bytes)
{
	const uint32_t records = (uint32_t)(bytes / sizeof(*log->records));
	struct carousel_record *fewer;

	if (log->room <= records)
		return false;
	fewer = realloc(log->records, (log->room - records) * sizeof(*fewer));
	if (!fewer)
		return false;
	log->records = fewer;
	log->room -= records;
	return true;
}

/* The newest first: so the C library gives back memory as it goes. */
bool carousel_log_free_some(struct carousel_log **log, uint64_t most)
{
	struct carousel_log *l = *log;
	struct carousel_page *page;
	uint64_t freed = 0;

	while ((page = l->newest) && freed < most) {
		freed += page->room;
		free_page(l, page);
	}
	if (page || (most != UINT64_MAX && (freed || shrink(l, most))))
		return true;
	free(l->records);
	free(l->at_slot);
	free(l);
	*log = NULL;
	return false;
}

void carousel_log_free(struct carousel_log *log)
{
	if (log)
		carousel_log_free_some(&log, UINT64_MAX);
}

struct carousel_log *carousel_log_new(const struct carousel *carousel, uint64_t most_bytes)
{
	struct carousel_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->most_bytes = most_bytes;
	log->room = LEAST_RECORDS;
	log->records = calloc(log->room, sizeof(*log->records));
	log->at_slot = calloc(carousel->config.max_slots, sizeof(*log->at_slot));
	if (!log->records || !log->at_slot) {
		carousel_log_free(log);
		return NULL;
	}
	return log;
}

static uint64_t array_bytes(const struct entry *entry)
{
	uint64_t bytes =
	    entry->n_blocks ? UINT64_C(4) * entry->n_blocks : UINT64_C(8) * entry->count;

	return base_align_up(bytes, 8);
}

uint64_t carousel_entry_bytes(const struct entry *entry)
{
	return ENTRY_BYTES + array_bytes(entry);
}

static uint64_t log_bytes(const struct carousel *carousel, uint64_t chunk_blocks)
{
	uint64_t blocks = carousel->permutation.blocks;
	uint64_t chunks = blocks / chunk_blocks + 1;

	return 2 * (4 * blocks + 2 * ENTRY_BYTES * chunks) + (UINT64_C(64) << 10);
}

uint64_t carousel_log_bytes(const struct carousel *carousel)
{
	return log_bytes(carousel, carousel->max_blocks);
}

uint64_t carousel_log_most(const struct carousel *carousel)
{
	return log_bytes(carousel, 1);
}

static int make_room(struct carousel_log *log)
{
	struct carousel_record *more;

	if (log->n < log->room)
		return 0;
	more = realloc(log->records, (size_t)2 * log->room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + log->room, more, log->start * sizeof(*more)); /* what lay behind the end */
	log->records = more;
	log->room *= 2;
	return 0;
}

/* Memory for the arrays of the next entry. NULL: there is none. */
static void *room_for(struct carousel_log *log, uint64_t bytes)
{
	struct carousel_page *page = log->newest;

	if (!page || page->room - page->used < bytes) {
		const size_t room = BASE_MAX(bytes, PAGE_BYTES);

		page = malloc(sizeof(*page) + room);
		if (!page)
			return NULL;
		*page = (struct carousel_page){.older = log->newest, .room = room};
		*(log->newest ? &log->newest->newer : &log->oldest) = page;
		log->newest = page;
	}
	page->end = carousel_log_end(log) + 1;
	page->used += bytes;
	return (uint8_t *)page->data + page->used - bytes;
}

struct carousel_record *carousel_record_push(struct carousel_log *log, const struct entry *entry)
{
	const uint64_t bytes = array_bytes(entry);
	struct carousel_record record = {.entry = *entry, .at = log->samples};
	void *arrays;

	if (make_room(log) || !(arrays = room_for(log, bytes)))
		return NULL;
	if (entry->n_blocks)
		memcpy(arrays, entry->blocks, entry->n_blocks * sizeof(*entry->blocks));
	else
		memcpy(arrays, entry->ids, entry->count * sizeof(*entry->ids));
	record.entry.blocks = entry->n_blocks ? arrays : NULL;
	record.entry.ids = entry->n_blocks ? NULL : arrays;
	log->n++;
	*carousel_record_of(log, carousel_log_end(log) - 1) = record;
	log->samples += entry->count;
	log->bytes += carousel_entry_bytes(entry);
	while (log->bytes > log->most_bytes && log->n > 1) {
		struct carousel_record *oldest = carousel_record_of(log, log->first);
		struct carousel_page *page;

		log->bytes -= carousel_entry_bytes(&oldest->entry);
		log->start = (log->start + 1) & (log->room - 1);
		log->first++;
		log->n--;
		while ((page = log->oldest) && page->end <= log->first)
			free_page(log, page);
	}
	return carousel_record_of(log, carousel_log_end(log) - 1);
}
