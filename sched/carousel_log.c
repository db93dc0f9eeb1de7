/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs of several ranks. Their group has the job's need; whatever is dealt to it becomes the next
 * entry of its log, for good: the log is the job's plan, and each rank is granted its entries in
 * order, as a job with a fixed plan is. So all ranks see the same chunks at the same places whenever
 * they come, and a rank that falls behind, dies, or comes back finds its place in the log.
 *
 *   a resident chunk that the group needs whole and has not seen     becomes the next entry
 *   no such chunk, and a rank at the log's end wants more            a chunk is dealt and produced
 *   ranks must know more of the plan than there are slots for       a chunk is dealt, produced later
 *   a rank's next entry is in no slot (any more)                    the same instance is made (again)
 *
 * The first line is this file's: how logs are founded and grow, and how ranks come to a place of
 * theirs and go. The second is carousel_step.c's, the other two are carousel_plan.c's. carousel_record.c
 * keeps the entries, carousel_rank.c knows where ranks are, tests/invariants/carousel_log_check.c what must hold.
 *
 * The log keeps what its bound allows, two epochs by rule. A rank whose next entry was forgotten is
 * behind: it gets nothing more and is told so.
 */

#include "sched/carousel_log_state.h"

static struct carousel_member *group_of(struct carousel *carousel, const struct carousel_log *log)
{
	return &carousel->jobs[log->group];
}

struct entry_set carousel_log_set(const struct carousel *carousel, const struct carousel_log *log)
{
	return (struct entry_set){
	    .permutation = &carousel->permutation,
	    .bits = carousel_population_bits(carousel, carousel->jobs[log->group].population),
	};
}

/* founding */

int carousel_found(struct carousel *carousel, const struct carousel_join *join, uint64_t log_bytes,
		   uint64_t now_ns, uint32_t *ret_group)
{
	struct carousel_log *log;
	struct carousel_member *member;
	uint32_t group;
	int r;

	if (join->group || join->order || !carousel->permutation.n)
		return CAROUSEL_E_BAD;
	log = carousel_log_new(carousel, log_bytes);
	if (!log)
		return -ENOMEM;
	r = carousel_join(carousel, join, now_ns, &group);
	if (r) {
		carousel_log_free(log);
		return r;
	}
	member = &carousel->jobs[group];
	member->is_group = true;
	member->log = log;
	log->group = group;
	carousel->n_groups++;
	log->place = member->epoch == join->epoch ? join->place : 0;
	*ret_group = group;
	return 0;
}

static const struct carousel_log *log_of(const struct carousel *carousel, uint32_t group)
{
	if (group >= CAROUSEL_MAX_JOBS || !carousel->jobs[group].is_group)
		return NULL;
	return carousel->jobs[group].log;
}

/* Does the entry come right after the log's last one? */
static bool does_follow(const struct carousel_log *log, const struct entry *entry)
{
	const struct entry *last;

	if (!log->n)
		return true;
	last = &carousel_record_of(log, carousel_log_end(log) - 1)->entry;
	if (entry->epoch == last->epoch)
		return entry->place == last->place + last->count;
	return entry->epoch == last->epoch + 1 && entry->place == 0;
}

int carousel_recall(const struct carousel *carousel, struct carousel_log *log,
		    const struct entry *entry)
{
	struct carousel_record *record;

	if (!entry->count || entry->count > carousel->config.chunk || !does_follow(log, entry))
		return CAROUSEL_E_BAD;
	record = carousel_record_push(log, entry);
	if (!record)
		return -ENOMEM;
	record->produced = true;
	return 0;
}

void carousel_adopt(struct carousel *carousel, uint32_t group, struct carousel_log *log)
{
	struct carousel_member *member = &carousel->jobs[group];

	log->group = group;
	log->place = member->log->place;
	carousel_log_free(member->log);
	member->log = log;
}

void carousel_newest(const struct carousel *carousel, uint32_t group, struct entry *ret)
{
	const struct carousel_log *log = log_of(carousel, group);

	*ret = carousel_record_of(log, carousel_log_end(log) - 1)->entry;
}

uint32_t carousel_log_group(const struct carousel_log *log)
{
	return log->group;
}

/* ranks come */

/* The first that ends behind the place, or the end: they are in order, and may be millions. */
static uint64_t first_behind(const struct carousel_log *log, uint64_t epoch, uint64_t place)
{
	return BASE_SEARCH(at, log->first, carousel_log_end(log),
			   entry_ends_by(&carousel_record_of(log, at)->entry, epoch, place));
}

/* The entry that has the place, or the end. false: none that is kept. */
static bool find_place(const struct carousel *carousel, const struct carousel_log *log,
		       uint64_t epoch, uint64_t place, uint64_t *ret_number, uint32_t *ret_skip)
{
	const struct carousel_member *group = &carousel->jobs[log->group];
	const uint64_t number = first_behind(log, epoch, place);

	if (number < carousel_log_end(log)) {
		const struct entry *entry = &carousel_record_of(log, number)->entry;

		*ret_number = number;
		*ret_skip = (uint32_t)(place - entry->place);
		if (entry->epoch == epoch && entry->place <= place)
			return true;
	}
	*ret_number = carousel_log_end(log);
	*ret_skip = 0;
	return epoch == group->epoch && place == log->place;
}

bool carousel_has_place(const struct carousel *carousel, uint32_t group, uint64_t epoch,
			uint64_t place)
{
	const struct carousel_log *log = log_of(carousel, group);
	uint64_t number;
	uint32_t skip;

	return log && find_place(carousel, log, epoch, place, &number, &skip);
}

uint64_t carousel_log_left(const struct carousel *carousel, const struct carousel_log *log,
			   uint64_t epoch, uint64_t place)
{
	const struct carousel_member *group = &carousel->jobs[log->group];
	uint64_t end = log->place + group->need_samples + group->n_tail;

	if (epoch != group->epoch) {
		const uint64_t behind = first_behind(log, epoch, UINT64_MAX);
		const struct entry *last =
		    behind > log->first ? &carousel_record_of(log, behind - 1)->entry : NULL;

		if (last && last->epoch == epoch)
			end = last->place + last->count;
	}
	return end - place;
}

int carousel_log_enter(struct carousel *carousel, const struct carousel_join *join, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_log *log = (struct carousel_log *)log_of(carousel, join->group - 1);

	if (!log ||
	    !find_place(carousel, log, join->epoch, join->place, &member->cursor, &member->skip))
		return CAROUSEL_E_BAD;
	member->log = log;
	member->variant = group_of(carousel, log)->variant;
	member->ranks = group_of(carousel, log)->ranks;
	member->batch = group_of(carousel, log)->batch;
	member->epochs = group_of(carousel, log)->epochs;
	member->epoch = member->closed = join->epoch;
	member->need_samples = carousel_log_left(carousel, log, join->epoch, join->place);
	member->given = member->need_samples;
	log->rank[log->n_ranks++] = job;
	return 0;
}

static void leave_ranks(struct carousel_log *log, uint32_t job)
{
	uint32_t at = 0;

	while (log->rank[at] != job)
		at++;
	log->rank[at] = log->rank[--log->n_ranks];
}

static struct carousel_log *take_log(struct carousel *carousel, uint32_t group)
{
	struct carousel_log *log = carousel->jobs[group].log;

	for (uint32_t i = 0; i < carousel->n_slots; i++)
		carousel->slots[i].logged -= log->at_slot[i] != 0;
	carousel->jobs[group].log = NULL;
	carousel->n_groups--;
	return log;
}

void carousel_log_leave(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];

	if (member->is_group)
		carousel_log_free(take_log(carousel, job));
	else
		leave_ranks(member->log, job);
}

struct carousel_log *carousel_disband(struct carousel *carousel, uint32_t group, uint64_t now_ns)
{
	struct carousel_log *log = NULL;

	if (log_of(carousel, group))
		log = take_log(carousel, group);
	carousel_leave(carousel, group, now_ns);
	return log;
}

/* appending */

/* Does a rank still wait for the slot, or have it, as another entry of the log? */
static bool is_in_use(const struct carousel *carousel, const struct carousel_log *log,
		      uint32_t slot)
{
	for (uint32_t i = 0; i < log->n_ranks && log->at_slot[slot]; i++) {
		const struct carousel_member *rank = &carousel->jobs[log->rank[i]];

		if (rank->cursor < log->at_slot[slot] || carousel_need_find(rank, slot) >= 0)
			return true;
	}
	return false;
}

bool carousel_log_wants(const struct carousel *carousel, uint32_t group, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[group];
	const struct carousel_log *log = member->log;
	uint64_t half = (uint64_t)carousel->n_slots * carousel->config.chunk / 2;
	uint64_t reach = BASE_MAX(carousel_step_ahead(carousel, member), half);
	uint64_t least = log->samples;

	if (!log->n_ranks || is_in_use(carousel, log, slot))
		return false;
	for (uint32_t i = 0; i < log->n_ranks; i++)
		least = BASE_MIN(least, log->samples -
					    carousel_rank_taken_to(&carousel->jobs[log->rank[i]]));
	return least < reach;
}

void carousel_log_hold(struct carousel *carousel, struct carousel_log *log, uint32_t slot,
		       uint64_t number)
{
	carousel->slots[slot].logged += !log->at_slot[slot];
	log->at_slot[slot] = number + 1;
}

void carousel_log_add(struct carousel *carousel, struct carousel_log *log,
		      const struct carousel_chunk *chunk, bool produced,
		      struct carousel_action *ret)
{
	struct carousel_member *member = group_of(carousel, log);
	struct entry entry = {
	    .epoch = member->epoch,
	    .place = log->place,
	    .seed = chunk->seed,
	    .nonce = chunk->nonce,
	    .count = chunk->count,
	    .n_blocks = chunk->n_blocks,
	    .blocks = chunk->blocks,
	    .ids = chunk->ids,
	};
	struct carousel_record *record = carousel_record_push(log, &entry);

	*ret = (struct carousel_action){.kind = CAROUSEL_NONE};
	if (!record) { /* no memory: it stays needed, and is dealt again */
		for (uint32_t i = 0; i < chunk->count && chunk->is_private; i++)
			member->tail[member->n_tail++] = chunk->ids[i];
		return;
	}
	record->produced = produced;
	carousel_need_take(carousel, log->group, chunk, chunk->count);
	member->taken += chunk->count;
	log->place += chunk->count;
	*ret = (struct carousel_action){
	    .kind = CAROUSEL_LOG,
	    .job = log->group,
	    .epoch = entry.epoch,
	};
	carousel_need_advance(carousel, log->group);
	if (member->epoch != entry.epoch)
		log->place = 0;
}

void carousel_log_append(struct carousel *carousel, uint32_t group, uint32_t slot,
			 struct carousel_action *ret)
{
	struct carousel_log *log = carousel->jobs[group].log;
	struct carousel_slot *s = &carousel->slots[slot];

	carousel_log_add(carousel, log, &s->chunk, true, ret);
	if (ret->kind == CAROUSEL_NONE)
		return;
	ret->slot = slot;
	ret->instance = s->chunk.instance;
	carousel_log_hold(carousel, log, slot, carousel_log_end(log) - 1);
	bits_set(s->seen.word, group);
	s->uses[group] += s->uses[group] < UINT8_MAX;
	bits_set(s->check.word, group);
	for (uint32_t i = 0; i < log->n_ranks; i++)
		bits_set(s->check.word, log->rank[i]);
}

void carousel_log_forget(struct carousel *carousel, uint32_t slot)
{
	struct carousel_slot *s = &carousel->slots[slot];

	for (uint32_t job = 0; job < carousel->jobs_end && s->logged; job++) {
		struct carousel_member *member = &carousel->jobs[job];

		if (!member->is_group || !member->log->at_slot[slot])
			continue;
		member->log->at_slot[slot] = 0;
		s->logged--;
	}
}
