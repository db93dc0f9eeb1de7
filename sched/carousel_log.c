/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs of several ranks. Their group has the job's need; whatever is dealt to it becomes the next
 * entry of its log, for good: the log is the job's plan, and each rank is granted its entries in
 * order, as a job with a fixed plan is. So all ranks see the same hands at the same places whenever
 * they come, and a rank that falls behind, dies, or comes back finds its place in the log.
 *
 *   a resident hand that the group needs whole and has not seen     becomes the next entry
 *   no such hand, and a rank at the log's end wants more            a hand is dealt and produced
 *   ranks must know more of the plan than there are slots for       a hand is dealt, produced later
 *   a rank's next entry is in no slot (any more)                    the same instance is made (again)
 *
 * The third line keeps ranks going where one step of all of them is more than the slots hold: a
 * rank's token after a step names what all ranks have then, so a rank begins a step only when the
 * log reaches to that step's end (libaccess/ranked.c).
 *
 * What a rank takes next is not given up, unless for somebody who waits: carousel_log_protects().
 *
 * A hand that is made again has the lap that it had, so nobody else can be granted it: he may have
 * seen it. Ranks of other groups know by their logs whether they wait for that very lap.
 *
 * The log keeps what its bound allows, two epochs by rule. A rank whose next entry was forgotten is
 * behind: it gets nothing more and is told so.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/carousel_state.h"

#define ENTRY_BYTES 64 /* of an entry without its grains */
#define LEAST_RECORDS 64

struct record {
	struct entry entry; /* grains and ids are owned */
	uint64_t at;        /* samples of the log before it, over all epochs */
	bool produced;
};

struct carousel_log {
	uint32_t group, n_ranks;
	uint32_t rank[CAROUSEL_MAX_JOBS]; /* their numbers */
	struct record *records;           /* owned; in use from `start` on */
	uint32_t start, n, room;
	uint64_t first; /* number of the oldest */
	uint64_t bytes, most_bytes;
	uint64_t place, samples; /* of the next one: in its epoch, in the log */
	uint64_t *at_slot;       /* owned; 1 + number of the entry that the slot holds, 0: none */
};

static struct record *record_of(const struct carousel_log *log, uint64_t number)
{
	return &log->records[log->start + (number - log->first)];
}

static uint64_t end_of(const struct carousel_log *log)
{
	return log->first + log->n;
}

static struct carousel_member *group_of(struct carousel *carousel, const struct carousel_log *log)
{
	return &carousel->jobs[log->group];
}

/* the records */

static void log_free(struct carousel_log *log)
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

static struct carousel_log *log_new(const struct carousel *carousel, uint64_t most_bytes)
{
	struct carousel_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->most_bytes = most_bytes;
	log->room = LEAST_RECORDS;
	log->records = calloc(log->room, sizeof(*log->records));
	log->at_slot = calloc(carousel->config.max_slots, sizeof(*log->at_slot));
	if (!log->records || !log->at_slot) {
		log_free(log);
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
	struct record *more;

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
	struct record *oldest = record_of(log, log->first);

	log->bytes -= carousel_entry_bytes(&oldest->entry);
	free((void *)oldest->entry.grains);
	free((void *)oldest->entry.ids);
	log->start++;
	log->first++;
	log->n--;
}

/* A copy of the entry goes to the end. NULL: no memory. */
static struct record *push(struct carousel_log *log, const struct entry *entry)
{
	struct record record = {.entry = *entry, .at = log->samples};

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
	return record_of(log, end_of(log) - 1);
}

/* founding */

int carousel_found(struct carousel *carousel, const struct carousel_join *join, uint64_t log_bytes,
		   uint64_t now_ns, uint32_t *ret_group)
{
	struct carousel_log *log;
	struct carousel_member *member;
	uint32_t group;
	int r;

	if (join->group || join->order || join->population || !carousel->deal.n)
		return CAROUSEL_E_BAD;
	log = log_new(carousel, log_bytes);
	if (!log)
		return -ENOMEM;
	r = carousel_join(carousel, join, now_ns, &group);
	if (r) {
		log_free(log);
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
	last = &record_of(log, end_of(log) - 1)->entry;
	if (entry->epoch == last->epoch)
		return entry->place == last->place + last->count;
	return entry->epoch == last->epoch + 1 && entry->place == 0;
}

int carousel_recall(struct carousel *carousel, uint32_t group, const struct entry *entry)
{
	struct carousel_log *log = (struct carousel_log *)log_of(carousel, group);
	struct record *record;

	if (!log || log->n_ranks || !entry_is_good(&carousel->deal, entry) ||
	    entry->count > carousel->config.hand || !does_follow(log, entry))
		return CAROUSEL_E_BAD;
	record = push(log, entry);
	if (!record)
		return -ENOMEM;
	record->produced = true;
	return 0;
}

void carousel_newest(const struct carousel *carousel, uint32_t group, struct entry *ret)
{
	const struct carousel_log *log = log_of(carousel, group);

	*ret = record_of(log, end_of(log) - 1)->entry;
}

uint32_t carousel_log_group(const struct carousel_log *log)
{
	return log->group;
}

/* ranks come */

/* The entry that has the place, or the end. false: none that is kept. */
static bool find_place(const struct carousel *carousel, const struct carousel_log *log,
		       uint64_t epoch, uint64_t place, uint64_t *ret_number, uint32_t *ret_skip)
{
	const struct carousel_member *group = &carousel->jobs[log->group];

	for (uint64_t number = log->first; number < end_of(log); number++) {
		const struct entry *entry = &record_of(log, number)->entry;

		if (entry->epoch != epoch || place < entry->place ||
		    place - entry->place >= entry->count)
			continue;
		*ret_number = number;
		*ret_skip = (uint32_t)(place - entry->place);
		return true;
	}
	*ret_number = end_of(log);
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

/* Samples of the epoch from the place on. */
static uint64_t left_from(const struct carousel *carousel, const struct carousel_log *log,
			  uint64_t epoch, uint64_t place)
{
	const struct carousel_member *group = &carousel->jobs[log->group];
	uint64_t end = log->place + group->need_samples + group->n_tail;

	if (epoch != group->epoch)
		for (uint64_t number = log->first; number < end_of(log); number++) {
			const struct entry *entry = &record_of(log, number)->entry;

			if (entry->epoch == epoch)
				end = entry->place + entry->count;
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
	member->ranks = group_of(carousel, log)->ranks;
	member->batch = group_of(carousel, log)->batch;
	member->epochs = group_of(carousel, log)->epochs;
	member->epoch = member->closed = join->epoch;
	member->need_samples = left_from(carousel, log, join->epoch, join->place);
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

void carousel_log_leave(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];

	if (!member->is_group) {
		leave_ranks(member->log, job);
		return;
	}
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		carousel->slots[i].logged -= member->log->at_slot[i] != 0;
	log_free(member->log);
	carousel->n_groups--;
}

/* where ranks are */

bool carousel_is_behind(const struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];

	return carousel_is_rank(member) && member->cursor < member->log->first;
}

bool carousel_log_has(const struct carousel_member *rank, uint32_t slot)
{
	return rank->cursor >= rank->log->first && rank->log->at_slot[slot] == rank->cursor + 1;
}

bool carousel_log_is_ahead(const struct carousel_member *rank)
{
	return rank->cursor >= rank->log->first && rank->cursor < end_of(rank->log);
}

bool carousel_log_awaits(const struct carousel *carousel, const struct carousel_member *member,
			 uint32_t slot)
{
	uint64_t entry;

	if (!carousel_is_rank(member))
		return false;
	entry = member->log->at_slot[slot];
	return entry > member->cursor && entry <= member->cursor + carousel->n_slots;
}

/*
 * Ranks go in step: while one waits, the others stand. If those, with nothing coming to them, could
 * take each other's slots, they would do so for ever, and from the one that waits.
 */
bool carousel_log_protects(const struct carousel *carousel, uint32_t slot, bool somebody_waits,
			   uint64_t now_ns)
{
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS && carousel->n_groups; job++) {
		const struct carousel_member *member = &carousel->jobs[job];
		uint32_t next = 0;

		if (!carousel_is_rank(member) || (somebody_waits && !member->waiting))
			continue;
		while (next < member->n_grants && member->grants[next].state != CAROUSEL_GRANTED)
			next++;
		if (next < member->n_grants && member->grants[next].slot == slot &&
		    carousel_step_lives(carousel, job, now_ns, NULL))
			return true;
	}
	return false;
}

/* Samples of the log before what the rank has not taken. */
static uint64_t taken_to(const struct carousel_member *rank)
{
	const struct carousel_log *log = rank->log;
	uint64_t at = log->samples;

	if (rank->cursor < log->first)
		return 0;
	if (rank->cursor < end_of(log))
		at = record_of(log, rank->cursor)->at;
	return at + rank->skip - rank->coming;
}

/* How far the first of the group's living ranks has come; 0: none lives. */
static uint64_t foremost(const struct carousel *carousel, const struct carousel_log *log,
			 uint64_t now_ns)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < log->n_ranks; i++)
		if (carousel_step_lives(carousel, log->rank[i], now_ns, NULL))
			most = BASE_MAX(most, taken_to(&carousel->jobs[log->rank[i]]));
	return most;
}

bool carousel_log_lives(const struct carousel *carousel, uint32_t group, uint64_t now_ns)
{
	const struct carousel_log *log = carousel->jobs[group].log;

	for (uint32_t i = 0; i < log->n_ranks; i++)
		if (carousel_step_lives(carousel, log->rank[i], now_ns, NULL))
			return true;
	return false;
}

uint32_t carousel_log_neediest(const struct carousel *carousel, uint32_t group, uint64_t now_ns)
{
	const struct carousel_log *log = carousel->jobs[group].log;
	uint32_t neediest = CAROUSEL_NOBODY;

	for (uint32_t i = 0; i < log->n_ranks; i++) {
		uint32_t job = log->rank[i];
		const struct carousel_member *rank = &carousel->jobs[job];

		if (rank->revoked || rank->cursor != end_of(log) ||
		    rank->coming >= carousel_step_ahead(carousel, rank) ||
		    !carousel_step_lives(carousel, job, now_ns, NULL))
			continue;
		if (neediest == CAROUSEL_NOBODY || rank->coming < carousel->jobs[neediest].coming)
			neediest = job;
	}
	return neediest;
}

double carousel_log_pace(const struct carousel *carousel, uint32_t group)
{
	const struct carousel_log *log = carousel->jobs[group].log;
	double least = 0;

	for (uint32_t i = 0; i < log->n_ranks; i++) {
		double pace = carousel->jobs[log->rank[i]].pace_ns;

		if (pace > 0 && (least <= 0 || pace < least))
			least = pace;
	}
	return least;
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
	uint64_t half = (uint64_t)carousel->n_slots * carousel->config.hand / 2;
	uint64_t reach = BASE_MAX(carousel_step_ahead(carousel, member), half);
	uint64_t least = log->samples;

	if (!log->n_ranks || is_in_use(carousel, log, slot))
		return false;
	for (uint32_t i = 0; i < log->n_ranks; i++)
		least = BASE_MIN(least, log->samples - taken_to(&carousel->jobs[log->rank[i]]));
	return least < reach;
}

static void hold(struct carousel *carousel, struct carousel_log *log, uint32_t slot,
		 uint64_t number)
{
	carousel->slots[slot].logged += !log->at_slot[slot];
	log->at_slot[slot] = number + 1;
}

/* The hand, dealt to the group, leaves its need and becomes the next entry. */
static void append(struct carousel *carousel, struct carousel_log *log,
		   const struct carousel_hand *hand, bool produced, struct carousel_action *ret)
{
	struct carousel_member *member = group_of(carousel, log);
	struct entry entry = {
	    .epoch = member->epoch,
	    .place = log->place,
	    .seed = hand->seed,
	    .lap = hand->lap,
	    .count = hand->count,
	    .n_grains = hand->n_grains,
	    .grains = hand->grains,
	    .ids = hand->ids,
	};
	struct record *record = push(log, &entry);

	*ret = (struct carousel_action){.kind = CAROUSEL_NONE};
	if (!record) { /* no memory: it stays needed, and is dealt again */
		for (uint32_t i = 0; i < hand->count && hand->is_private; i++)
			member->tail[member->n_tail++] = hand->ids[i];
		return;
	}
	record->produced = produced;
	carousel_need_take(carousel, log->group, hand, hand->count);
	member->taken += hand->count;
	log->place += hand->count;
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

	append(carousel, log, &s->hand, true, ret);
	if (ret->kind == CAROUSEL_NONE)
		return;
	ret->slot = slot;
	ret->instance = s->hand.instance;
	hold(carousel, log, slot, end_of(log) - 1);
	carousel_set_add(&s->seen, group);
	s->uses[group] += s->uses[group] < UINT8_MAX;
	carousel_set_add(&s->check, group);
	for (uint32_t i = 0; i < log->n_ranks; i++)
		carousel_set_add(&s->check, log->rank[i]);
}

/* producing what was dealt before */

/* A hand that was larger than this stream's is in the log in parts, which have one lap. */
static bool is_of(const struct entry *entry, const struct carousel_hand *hand)
{
	return entry->lap == hand->lap && entry->seed == hand->seed &&
	       entry->count == hand->count && entry->n_grains == hand->n_grains &&
	       (entry->n_grains ||
		memcmp(entry->ids, hand->ids, hand->count * sizeof(*hand->ids)) == 0);
}

/* Other groups may have the same hand in their logs, and their ranks may wait for it. */
static void hold_for_others(struct carousel *carousel, uint32_t slot)
{
	const struct carousel_hand *hand = &carousel->slots[slot].hand;

	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
		struct carousel_log *log =
		    carousel->jobs[job].is_group ? carousel->jobs[job].log : NULL;

		for (uint64_t number = log ? end_of(log) : 0;
		     log && number > log->first && !log->at_slot[slot]; number--) {
			const struct entry *entry = &record_of(log, number - 1)->entry;

			if (is_of(entry, hand))
				hold(carousel, log, slot, number - 1);
		}
	}
}

/* Who is here, or was, may have seen it. */
static void note_seen_by_all(struct carousel *carousel, struct carousel_slot *s)
{
	s->again = true;
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
		if (!carousel->jobs[job].used || carousel_is_rank(&carousel->jobs[job]))
			continue;
		carousel_set_add(&s->seen, job);
		s->uses[job] = UINT8_MAX;
	}
}

void carousel_log_produce(struct carousel *carousel, uint32_t job, uint32_t slot)
{
	struct carousel_log *log = carousel->jobs[job].log;
	struct record *record = record_of(log, carousel->jobs[job].cursor);
	struct carousel_slot *s = &carousel->slots[slot];
	struct carousel_hand *hand = &s->hand;

	hand->lap = record->entry.lap;
	hand->seed = record->entry.seed;
	hand->count = record->entry.count;
	hand->n_grains = record->entry.n_grains;
	entry_samples(&carousel->deal, &record->entry, s->ids);
	hand->ids = s->ids;
	hand->grains = NULL;
	hand->is_private = !hand->n_grains;
	if (hand->is_private)
		s->owner = log->group;
	else
		hand->grains =
		    memcpy(s->grains, record->entry.grains, hand->n_grains * sizeof(*s->grains));
	hold(carousel, log, slot, carousel->jobs[job].cursor);
	carousel_set_add(&s->seen, log->group);
	s->uses[log->group] += s->uses[log->group] < UINT8_MAX;
	if (record->produced) {
		note_seen_by_all(carousel, s);
		hold_for_others(carousel, slot);
	}
	record->produced = true;
}

void carousel_log_forget(struct carousel *carousel, uint32_t slot)
{
	struct carousel_slot *s = &carousel->slots[slot];

	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS && s->logged; job++) {
		struct carousel_member *member = &carousel->jobs[job];

		if (!member->is_group || !member->log->at_slot[slot])
			continue;
		member->log->at_slot[slot] = 0;
		s->logged--;
	}
}

/* planning ahead */

/* Must ranks of the group know more of the plan than there is? */
static bool must_plan(const struct carousel *carousel, const struct carousel_member *group,
		      uint64_t now_ns)
{
	uint64_t step = (uint64_t)group->ranks * group->batch;

	return (group->need_samples || group->n_tail) && group->log->n_ranks &&
	       group->log->samples < foremost(carousel, group->log, now_ns) + step;
}

static bool make_spare(struct carousel *carousel)
{
	struct carousel_slot *spare = &carousel->spare;

	if (!spare->ids)
		spare->ids = malloc(carousel->config.hand * sizeof(*spare->ids));
	if (!spare->grains)
		spare->grains = malloc(carousel->config.hand * sizeof(*spare->grains));
	return spare->ids && spare->grains;
}

/* order: the group first. */
static void plan_hand(struct carousel *carousel, const uint32_t *order, uint32_t n,
		      uint32_t n_hungry, struct carousel_action *ret)
{
	struct carousel_member *group = &carousel->jobs[order[0]];
	struct carousel_slot *spare = &carousel->spare;

	spare->hand = (struct carousel_hand){
	    .lap = carousel->config.first_lap + carousel->instances++,
	    .seed = carousel->config.seed,
	};
	carousel->planned++;
	if (group->n_tail)
		carousel_deal_tail(carousel, order[0], spare);
	else
		carousel_deal_hand(carousel, order, n, n_hungry, spare);
	append(carousel, group->log, &spare->hand, false, ret);
}

bool carousel_log_plan(struct carousel *carousel, uint32_t *order, uint32_t n, uint32_t n_hungry,
		       uint64_t now_ns, struct carousel_action *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t group = order[i];

		if (!carousel->jobs[group].is_group ||
		    !must_plan(carousel, &carousel->jobs[group], now_ns) || !make_spare(carousel))
			continue;
		memmove(order + 1, order, i * sizeof(*order));
		order[0] = group;
		plan_hand(carousel, order, n, BASE_MAX(n_hungry, 1u), ret);
		return ret->kind != CAROUSEL_NONE;
	}
	return false;
}

/* invariants */

static const char *check_records(const struct carousel_log *log)
{
	uint64_t bytes = 0;

	for (uint64_t number = log->first; number < end_of(log); number++) {
		const struct record *record = record_of(log, number), *before;

		bytes += carousel_entry_bytes(&record->entry);
		if (number == log->first)
			continue;
		before = record_of(log, number - 1);
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
		const struct carousel_hand *hand = &carousel->slots[i].hand;
		uint64_t number = log->at_slot[i] - 1;

		if (!log->at_slot[i])
			continue;
		if (!hand->instance || number >= end_of(log))
			return "a log believes that an entry is in a slot which is empty";
		if (number >= log->first && (record_of(log, number)->entry.lap != hand->lap ||
					     record_of(log, number)->entry.seed != hand->seed))
			return "a log believes that an entry is in a slot which holds another one";
	}
	return NULL;
}

static const char *check_rank(const struct carousel *carousel, const struct carousel_member *rank)
{
	const struct carousel_log *log = rank->log;
	const struct entry *entry;
	uint64_t place = log->place;

	if (rank->cursor > end_of(log))
		return "a rank is past the end of its log";
	if (rank->cursor < log->first)
		return NULL; /* it can only leave */
	if (rank->cursor < end_of(log)) {
		entry = &record_of(log, rank->cursor)->entry;
		place = entry->place + rank->skip;
		if (rank->skip >= entry->count || entry->epoch != rank->epoch)
			return "a rank is not where its epoch is";
	} else if (rank->epoch != carousel->jobs[log->group].epoch) {
		return "a rank at its log's end is in another epoch";
	}
	return rank->need_samples == left_from(carousel, log, rank->epoch, place)
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
