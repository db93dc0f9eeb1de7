/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory tier: values that lie ready in the resident memory (shmring/resident.h), where workers read them.
 *
 * A value comes in when it came from the store, checked, or from a worker's write-back ring, and stays: first come,
 * a stable part, found in every epoch. A group's table (where each sample's value lies) is this process' own;
 * queues of the same group share it, and what a group has stays when the last of them has gone.
 *
 * A chunk belongs to one group. It leaves its group when the memory is needed for another one (of groups
 * that no queue has, or only queues that yield, the one that rested longest), when somebody has the group
 * dropped, and when accessd wants the memory back. From then on no task is told of it; but tasks that were told before may still be read, by
 * workers of which this process knows nothing. So accessd is asked, and says when none of those is left
 * (READER_UNREAD); only then is the chunk used again. A new process knows nothing of what the one before it
 * told: to it all of the memory is such, and it begins with that question.
 *
 * The table's words are read without lock. A word is set after the value was written (release, acquire),
 * cleared before the question is asked, and who has read it before is a task under way.
 *
 * Where there is no store, this memory is all that is kept (it is alone): then a group has a table for accessd as
 * well, which tells of what is here.
 *
 * One lock, over copies and reservations: each value is copied once.
 */

#include "storage/reader_parts.h"

#include "base/counter.h"
#include "base/log.h"
#include "shmring/region.h"

#include <sys/stat.h>

#define RESIDENT_STEP UINT64_C(64) /* values begin at multiples of it */
#define RESIDENT_SIZE_BITS 22
#define RESIDENT_TABLE_SHARE 8 /* of the memory, so much a group's table may have at most */
#define RESIDENT_NONE UINT32_MAX
#define RESIDENT_STEPS 32 /* of growth; accessd grants several of them ahead */

_Static_assert(RESIDENT_VALUE_MOST < UINT64_C(1) << RESIDENT_SIZE_BITS,
	       "a cell has a value's size");

struct reader_resident {
	struct hash_id id; /* const */
	uint64_t samples;  /* const */
	/* Owned, [samples]: place of the value / STEP and its size; 0: none */
	struct counter *cell;
	struct store_table table; /* of an alone one */

	/* under the lock */
	struct reader_resident *next;
	unsigned users, yielders; /* those of the users who no longer read it */
	uint64_t rests_since;     /* turn of the last close */
	uint32_t first;           /* of its chunks, the one that is filled now */
	uint64_t at, end;         /* free bytes of that one */
	uint64_t values;
};

struct resident_list { /* of chunks, by resident.next */
	uint32_t first;
	uint64_t count;
};

static struct {
	/* written by the main thread before others ask */
	struct resident memory;
	int fd; /* owned */
	uint32_t n_chunks;
	_Atomic uint64_t hits; /* for eyes: no order */
	bool is_alone;         /* the keeper's */

	pthread_mutex_t lock;
	/* under the lock */
	struct reader_resident *groups;
	uint32_t *next;                         /* [n_chunks] */
	struct resident_list free, left, asked; /* left their group; and accessd was asked */
	uint64_t taken;                         /* chunks that groups have */
	uint64_t limit;                         /* chunks that may be in use */
	bool is_most;                           /* accessd gives no more at present */
	bool is_asking, is_clean; /* is_clean: nothing of an earlier process is read */
	uint64_t question;        /* number of the last one */
	uint64_t turn, values, old_bytes;
} resident = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- chunks, under the lock ---- */

static void push_chunk(struct resident_list *list, uint32_t chunk)
{
	resident.next[chunk] = list->first;
	list->first = chunk;
	list->count++;
}

static uint32_t pop_chunk(struct resident_list *list)
{
	uint32_t chunk = list->first;

	list->first = resident.next[chunk];
	list->count--;
	return chunk;
}

static bool is_full(void)
{
	return resident.taken + resident.left.count + resident.asked.count >= resident.limit ||
	       resident.free.count == 0;
}

/* One more for the group. Where it lies behind the last one, values lie in both. */
static bool take_chunk(struct reader_resident *group)
{
	const uint32_t chunk = resident.free.first;
	const uint64_t begin = chunk * RESIDENT_CHUNK;

	if (!resident.is_clean || is_full() || resident_take(resident.fd, chunk))
		return false;
	region_touch(resident.memory.data + begin, RESIDENT_CHUNK);
	pop_chunk(&resident.free);
	resident.next[chunk] = group->first;
	resident.taken++;
	group->first = chunk;
	if (begin != group->end)
		group->at = begin;
	group->end = begin + RESIDENT_CHUNK;
	return true;
}

/* Its values are told to nobody any more. */
static void leave(struct reader_resident *group)
{
	for (uint64_t i = 0; i < group->samples && group->values > 0; i++) {
		if (!counter_get(&group->cell[i]))
			continue;
		counter_set(&group->cell[i], 0);
		store_table_set(&group->table, i, 0);
		group->values--;
		resident.values--;
	}
	while (group->first != RESIDENT_NONE) {
		uint32_t chunk = group->first;

		group->first = resident.next[chunk];
		push_chunk(&resident.left, chunk);
		resident.taken--;
	}
	group->at = group->end = 0;
}

/* A question to be asked, without the lock; 0: none. */
static uint64_t next_question(void)
{
	if (resident.is_asking || (resident.is_clean && resident.left.count == 0))
		return 0;
	resident.is_asking = true;
	resident.asked = resident.left;
	resident.left = (struct resident_list){.first = RESIDENT_NONE};
	return ++resident.question;
}

static void ask(uint64_t question)
{
	if (question)
		reader_say_ask_unread(question);
}

/* ---- groups, under the lock ---- */

static struct reader_resident *find_group(const struct hash_id *id)
{
	struct reader_resident *group = resident.groups;

	while (group && memcmp(&group->id, id, sizeof(*id)) != 0)
		group = group->next;
	return group;
}

static void free_group(struct reader_resident *group)
{
	struct reader_resident **at = &resident.groups;

	while (*at != group)
		at = &(*at)->next;
	*at = group->next;
	store_table_free(&group->table);
	free(group->cell);
	free(group);
}

static bool is_idle(const struct reader_resident *group)
{
	return group->users == group->yielders;
}

/* Of those that nobody reads, the one that rested longest; then, if it must be, any that has something. */
static struct reader_resident *find_victim(bool must)
{
	struct reader_resident *best = NULL, *any = NULL;

	for (struct reader_resident *group = resident.groups; group; group = group->next) {
		if (group->first == RESIDENT_NONE)
			continue;
		if (is_idle(group) && (!best || group->rests_since < best->rests_since))
			best = group;
		any = group;
	}
	return best || !must ? best : any;
}

static bool leave_one(bool must)
{
	struct reader_resident *group = find_victim(must);

	if (!group)
		return false;
	leave(group);
	if (group->users == 0)
		free_group(group);
	return true;
}

static struct reader_resident *new_group(const struct hash_id *id, uint64_t samples)
{
	struct reader_resident *group;

	if (samples > resident.memory.bytes / sizeof(*group->cell) / RESIDENT_TABLE_SHARE)
		return NULL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->table.fd = -1;
	group->cell = calloc(samples, sizeof(*group->cell));
	if (!group->cell || (resident.is_alone && store_table_new(samples, &group->table))) {
		free(group->cell);
		free(group);
		return NULL;
	}
	group->id = *id;
	group->samples = samples;
	group->first = RESIDENT_NONE;
	group->next = resident.groups;
	resident.groups = group;
	return group;
}

/* ---- from the main thread ---- */

int reader_resident_init(int fd)
{
	struct stat status;
	int r = resident_attach(fd, true, &resident.memory);

	if (r)
		return r;
	if (fstat(fd, &status) == 0)
		resident.old_bytes = (uint64_t)status.st_blocks * 512;
	resident.n_chunks = (uint32_t)(resident.memory.bytes / RESIDENT_CHUNK);
	resident.next = calloc(resident.n_chunks, sizeof(*resident.next));
	if (!resident.next) {
		resident_detach(&resident.memory);
		return -ENOMEM;
	}
	resident.fd = fd;
	resident.free.first = resident.left.first = resident.asked.first = RESIDENT_NONE;
	for (uint32_t chunk = resident.n_chunks; chunk > 0; chunk--)
		push_chunk(&resident.free, chunk - 1);
	ask(next_question());
	return 0;
}

/* Nobody reads what had left when it was asked. It stays in its order, in which neighbours follow each other. */
static void use_again(void)
{
	uint32_t *end = &resident.asked.first;

	for (; *end != RESIDENT_NONE; end = &resident.next[*end]) {
		int r = resident_give_back(resident.fd, *end, 1);

		if (r)
			log_line(LOG_LEVEL_WARN, "resident-hole", "error=\"%s\"", strerror(-r));
	}
	*end = resident.free.first;
	resident.free.first = resident.asked.first;
	resident.free.count += resident.asked.count;
	resident.asked = (struct resident_list){.first = RESIDENT_NONE};
}

void reader_resident_unread(uint64_t question)
{
	uint64_t next = 0;

	pthread_mutex_lock(&resident.lock);
	if (resident.is_asking && question == resident.question) {
		resident.is_asking = false;
		if (!resident.is_clean)
			resident_give_back(resident.fd, 0, resident.n_chunks);
		resident.is_clean = true;
		resident.old_bytes = 0;
		use_again();
		next = next_question();
	}
	pthread_mutex_unlock(&resident.lock);
	ask(next);
}

void reader_resident_limit(uint64_t bytes, bool is_most)
{
	uint64_t question;

	if (resident.fd < 0)
		return;
	pthread_mutex_lock(&resident.lock);
	resident.limit = bytes / RESIDENT_CHUNK;
	resident.is_most = is_most;
	while (resident.taken > resident.limit && leave_one(true))
		;
	question = next_question();
	pthread_mutex_unlock(&resident.lock);
	ask(question);
}

/* ---- from the keeper ---- */

bool reader_resident_stand_alone(void)
{
	resident.is_alone = resident.fd >= 0;
	return resident.is_alone;
}

/* ---- for queues ---- */

struct reader_resident *reader_resident_open(const struct hash_id *id, uint64_t samples)
{
	struct reader_resident *group;

	if (resident.fd < 0)
		return NULL;
	BASE_HOLD(&resident.lock);
	group = find_group(id);
	if (!group)
		group = new_group(id, samples);
	if (group && group->samples != samples) /* one id names one dataset version */
		group = NULL;
	if (group)
		group->users++;
	return group;
}

int reader_resident_table(const struct reader_resident *group)
{
	return group->table.fd;
}

void reader_resident_close(struct reader_resident *group)
{
	if (!group)
		return;
	BASE_HOLD(&resident.lock);
	group->rests_since = ++resident.turn;
	if (--group->users == 0 && group->first == RESIDENT_NONE)
		free_group(group);
}

void reader_resident_yield(struct reader_resident *group, bool yields)
{
	if (!group)
		return;
	BASE_HOLD(&resident.lock);
	if (yields)
		group->yielders++;
	else
		group->yielders--;
	group->rests_since = ++resident.turn;
}

bool reader_resident_find(const struct reader_resident *group, uint64_t sample,
			  struct reader_place *ret)
{
	uint64_t cell, offset;

	if (!group || sample >= group->samples)
		return false;
	cell = counter_get(&group->cell[sample]);
	if (!cell)
		return false;
	offset = (cell >> RESIDENT_SIZE_BITS) * RESIDENT_STEP;
	*ret = (struct reader_place){
	    .place = offset + 1,
	    .bytes = (uint32_t)(cell & ((UINT64_C(1) << RESIDENT_SIZE_BITS) - 1)),
	    .data = resident.memory.data + offset,
	};
	return true;
}

/* No task is told of it, so under the lock: nobody uses the chunk again meanwhile. */
int reader_resident_copy(const struct reader_resident *group, uint64_t sample, uint8_t *buffer,
			 size_t room, size_t *ret_bytes)
{
	struct reader_place at;
	int r = STORE_E_NONE;

	if (!group)
		return r;
	pthread_mutex_lock(&resident.lock);
	if (reader_resident_find(group, sample, &at))
		r = at.bytes > room ? STORE_E_ROOM : 0;
	if (!r)
		memcpy(buffer, at.data, at.bytes);
	pthread_mutex_unlock(&resident.lock);
	if (!r)
		*ret_bytes = at.bytes;
	return r;
}

/* Under the lock. */
static bool keep_value(struct reader_resident *group, uint64_t sample, const uint8_t *value,
		       size_t bytes)
{
	const uint64_t size = base_align_up(bytes, RESIDENT_STEP);

	if (counter_get(&group->cell[sample]))
		return true;
	if (group->end - group->at < size && !take_chunk(group))
		return false;
	memcpy(resident.memory.data + group->at, value, bytes);
	counter_set(&group->cell[sample], group->at / RESIDENT_STEP << RESIDENT_SIZE_BITS | bytes);
	store_table_set(&group->table, sample, (uint32_t)bytes);
	group->at += size;
	group->values++;
	resident.values++;
	return true;
}

/* Under the lock: there is no room. *ret_question: to be asked without it. */
static enum reader_resident_answer find_room(uint64_t *ret_question)
{
	if (!resident.is_clean || !resident.is_most || !is_full() ||
	    resident.left.count + resident.asked.count > 0)
		return RESIDENT_LATER;
	if (resident.limit == 0 || !leave_one(false))
		return RESIDENT_FULL;
	*ret_question = next_question();
	return RESIDENT_LATER;
}

enum reader_resident_answer reader_resident_keep(struct reader_resident *group, uint64_t sample,
						 const uint8_t *value, size_t bytes)
{
	enum reader_resident_answer answer = RESIDENT_KEEPS;
	uint64_t question = 0;

	if (!group || sample >= group->samples || bytes == 0 || bytes > RESIDENT_VALUE_MOST)
		return RESIDENT_FULL;
	if (counter_get(&group->cell[sample]))
		return RESIDENT_KEEPS;
	pthread_mutex_lock(&resident.lock);
	if (is_idle(group))
		answer = RESIDENT_FULL;
	else if (!keep_value(group, sample, value, bytes))
		answer = find_room(&question);
	pthread_mutex_unlock(&resident.lock);
	ask(question);
	return answer;
}

void reader_resident_drop(const struct hash_id *id)
{
	struct reader_resident *group;
	uint64_t question = 0;

	if (resident.fd < 0)
		return;
	pthread_mutex_lock(&resident.lock);
	group = find_group(id);
	if (group) {
		leave(group);
		question = next_question();
	}
	if (group && group->users == 0)
		free_group(group);
	pthread_mutex_unlock(&resident.lock);
	ask(question);
}

void reader_resident_hit(void)
{
	atomic_fetch_add_explicit(&resident.hits, 1, memory_order_relaxed);
}

/* Under the lock. */
static uint64_t used(void)
{
	return (resident.taken + resident.left.count + resident.asked.count) * RESIDENT_CHUNK +
	       resident.old_bytes;
}

bool reader_resident_has_grown(uint64_t since)
{
	const uint64_t step = BASE_MAX(resident.memory.bytes / RESIDENT_STEPS, RESIDENT_CHUNK);

	BASE_HOLD(&resident.lock);
	return !resident.is_most && used() >= since + step;
}

void reader_resident_state(struct reader_state *ret)
{
	BASE_HOLD(&resident.lock);
	ret->memory_used = used();
	ret->memory_values = resident.values;
	ret->memory_hits = atomic_load_explicit(&resident.hits, memory_order_relaxed);
}
