/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of logs and of the ranks on them: a part of carousel_check().
 */

#include "tests/invariants/invariants.h"

#include "sched/carousel_log_state.h"

static const char *check_records(const struct carousel_log *log)
{
	uint64_t bytes = 0;

	for (uint64_t number = log->first; number < carousel_log_end(log); number++) {
		const struct carousel_record *record = carousel_record_of(log, number), *before;

		bytes += carousel_entry_bytes(&record->entry);
		if (number == log->first)
			continue;
		before = carousel_record_of(log, number - 1);
		if (record->at != before->at + before->entry.count)
			return "a log's entries do not follow each other";
		if (record->entry.place != before->entry.place + before->entry.count &&
		    (record->entry.place || record->entry.epoch != before->entry.epoch + 1))
			return "a log has a gap";
	}
	return bytes == log->bytes ? NULL : "a log's bytes are not counted right";
}

static const char *check_slots(const struct carousel *carousel, const struct carousel_log *log)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		const struct carousel_chunk *chunk = &carousel->slots[i].chunk;
		uint64_t number = log->at_slot[i] - 1;

		if (!log->at_slot[i])
			continue;
		if (!chunk->instance || number >= carousel_log_end(log))
			return "a log believes that an entry is in a slot which is empty";
		if (!carousel_variant_has(chunk, &carousel->jobs[log->group]))
			return "a log believes that an entry is there in its ranks' variant";
		if (number >= log->first &&
		    (carousel_record_of(log, number)->entry.nonce != chunk->nonce ||
		     carousel_record_of(log, number)->entry.seed != chunk->seed))
			return "a log believes that an entry is in a slot which holds another one";
	}
	return NULL;
}

static const char *check_rank(const struct carousel *carousel, const struct carousel_member *rank)
{
	const struct carousel_log *log = rank->log;
	const struct entry *entry;
	uint64_t place = log->place;

	if (rank->cursor > carousel_log_end(log))
		return "a rank is past the end of its log";
	if (rank->cursor < log->first)
		return NULL; /* it can only leave */
	if (rank->cursor < carousel_log_end(log)) {
		entry = &carousel_record_of(log, rank->cursor)->entry;
		place = entry->place + rank->skip;
		if (rank->skip >= entry->count || entry->epoch != rank->epoch)
			return "a rank is not where its epoch is";
	} else if (rank->epoch != carousel->jobs[log->group].epoch) {
		return "a rank at its log's end is in another epoch";
	}
	return rank->need_samples == carousel_log_left(carousel, log, rank->epoch, place)
		   ? NULL
		   : "a rank's need is not what its log leaves";
}

const char *carousel_log_check(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const char *broken;

	if (!member->log)
		return NULL;
	if (!member->is_group)
		return check_rank(carousel, member);
	if (member->n_grants)
		return "a group was granted something itself";
	broken = check_records(member->log);
	return broken ? broken : check_slots(carousel, member->log);
}
