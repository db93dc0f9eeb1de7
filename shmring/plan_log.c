/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plan log. One writer, any number of readers that the writer knows nothing of. A record is
 * written, then published (S1). Before bytes are written over, the oldest records are given up (S3);
 * a reader copies a record and then looks whether it had been given up meanwhile (S4), so what it
 * returns was whole. The copy is by words, each released and acquired: a torn one is thrown away,
 * never a data race. Rejected: relaxed words between two fences, which ThreadSanitizer does not know.
 *
 * A reader believes nothing: a record's size bounds its arrays, the room bounds the record. What the
 * numbers mean is for the caller to check. A plan log comes back to accessd from clients
 * (daemon/serve/group.c), so that a forged one must cost its forger alone.
 */

#include <unistd.h>

#include "shmring/region.h"
#include "shmring/plan_log.h"

#define LEAST_ROOM (4 * (uint64_t)4096)

static uint8_t *room_of(const struct plan_log *plan_log)
{
	return (uint8_t *)plan_log->map + PLAN_LOG_HEAD;
}

static uint32_t record_bytes(uint32_t count, uint32_t n_blocks)
{
	uint64_t data = n_blocks ? UINT64_C(4) * n_blocks : UINT64_C(8) * count;

	return (uint32_t)(sizeof(struct plan_log_record) + base_align_up(data, 8));
}

static void copy_in(void *to, const void *from, size_t bytes)
{
	_Atomic uint64_t *words = to;

	for (size_t i = 0; i < bytes / 8; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)from + 8 * i, 8);
		atomic_store_explicit(&words[i], word, memory_order_release); /* S3 */
	}
}

static void copy_out(uint64_t *to, const void *from, size_t bytes)
{
	const _Atomic uint64_t *words = from;

	for (size_t i = 0; i < bytes / 8; i++)
		to[i] = atomic_load_explicit(&words[i], memory_order_acquire); /* S4 */
}

/* ---- accessd writes ---- */

uint64_t plan_log_bytes(uint64_t bytes)
{
	/* Room for what lies idle where the records turn round, and for the one that is written. */
	return PLAN_LOG_HEAD +
	       base_align_up(BASE_MAX(bytes + bytes / 4, LEAST_ROOM) + 2 * PLAN_LOG_HEAD, 4096);
}

int plan_log_reserve(struct plan_log *plan_log, int fd, uint64_t most)
{
	const uint64_t bytes = BASE_MIN(plan_log->bytes - plan_log->reserved, most);
	int r = bytes ? region_reserve(fd, plan_log->reserved, bytes) : 0;

	if (!r)
		plan_log->reserved += bytes;
	return r;
}

static void write_head(const struct plan_log *plan_log)
{
	struct plan_log_head *head = plan_log->map;

	head->magic = PLAN_LOG_MAGIC;
	head->bytes = plan_log->bytes;
	head->room = plan_log->room;
	head->n_samples = plan_log->n_samples;
	memcpy(head->id, plan_log->id, sizeof(head->id));
}

int plan_log_new(uint64_t bytes, uint64_t n_samples, const uint8_t id[PLAN_LOG_ID],
		 struct plan_log *ret, int *ret_fd)
{
	struct plan_log plan_log = {.bytes = plan_log_bytes(bytes), .n_samples = n_samples};
	_cleanup_close_ int fd = base_memfd("oneaccess-log", plan_log.bytes);
	void *map;
	int r = fd < 0 ? fd : plan_log_reserve(&plan_log, fd, PLAN_LOG_HEAD);

	r = r ? r : region_map(fd, plan_log.bytes, true, &map);
	if (r)
		return r;
	plan_log.map = map;
	plan_log.room = plan_log.bytes - PLAN_LOG_HEAD;
	memcpy(plan_log.id, id, sizeof(plan_log.id));
	write_head(&plan_log);
	r = region_seal(fd, REGION_READ_ONLY);
	if (r) {
		region_unmap(map, plan_log.bytes);
		return r;
	}
	*ret = plan_log;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

void plan_log_set_origin(struct plan_log *plan_log, uint64_t origin, uint64_t first_epoch)
{
	plan_log->origin = plan_log->map->origin = origin;
	plan_log->first_epoch = plan_log->map->first_epoch = first_epoch;
}

void plan_log_go_on(struct plan_log *plan_log, const struct plan_log *from, uint64_t epoch,
		    uint64_t place)
{
	const bool is_other = memcmp(plan_log->id, from->id, sizeof(from->id)) != 0;
	struct plan_log_before *before = plan_log->map->before;

	memcpy(before + is_other, from->map->before,
	       (size_t)(PLAN_LOG_BEFORE - is_other) * sizeof(*before));
	if (!is_other)
		return;
	memcpy(before->id, from->id, sizeof(from->id));
	before->epoch = epoch;
	before->place = place;
}

bool plan_log_has(const struct plan_log *plan_log, const uint8_t id[PLAN_LOG_ID], uint64_t epoch,
		  uint64_t place)
{
	static const uint8_t none[PLAN_LOG_ID];

	if (memcmp(plan_log->id, id, PLAN_LOG_ID) == 0)
		return true;
	if (memcmp(id, none, PLAN_LOG_ID) == 0) /* as in places of the list that have none */
		return false;
	for (unsigned i = 0; i < PLAN_LOG_BEFORE; i++) {
		const struct plan_log_before before = plan_log->map->before[i];

		if (memcmp(before.id, id, PLAN_LOG_ID) == 0)
			return epoch < before.epoch ||
			       (epoch == before.epoch && place <= before.place);
	}
	return false;
}

/* Where the record after `offset` begins, as the writer knows: these are its own words. */
static uint64_t after(const struct plan_log *plan_log, uint64_t offset)
{
	uint64_t at = offset % plan_log->room;
	struct plan_log_record record;

	if (plan_log->room - at < sizeof(record))
		return offset + plan_log->room - at;
	memcpy(&record, room_of(plan_log) + at, sizeof(record));
	return offset + (record.bytes ? record.bytes : plan_log->room - at);
}

static void give_up(struct plan_log *plan_log, uint64_t end)
{
	while (end - plan_log->first > plan_log->room)
		plan_log->first = after(plan_log, plan_log->first);
	/* S3: pairs with S4. The words that follow are released after it. */
	atomic_store_explicit(&plan_log->map->d_first, plan_log->first, memory_order_relaxed);
}

/* Leaves the rest of the room idle if the record does not fit there. */
static void turn_round(struct plan_log *plan_log, uint32_t bytes)
{
	struct plan_log_record filler = {.bytes = 0};
	uint64_t at = plan_log->end % plan_log->room, left = plan_log->room - at;

	if (left >= bytes)
		return;
	give_up(plan_log, plan_log->end + left);
	if (left >= sizeof(filler))
		copy_in(room_of(plan_log) + at, &filler, sizeof(filler));
	plan_log->end += left;
}

void plan_log_append(struct plan_log *plan_log, const struct entry *entry)
{
	uint32_t bytes = record_bytes(entry->count, entry->n_blocks);
	const void *data = entry->n_blocks ? (const void *)entry->blocks : entry->ids;
	size_t data_bytes = entry->n_blocks ? sizeof(uint32_t) * (size_t)entry->n_blocks
					    : sizeof(int64_t) * (size_t)entry->count;
	struct plan_log_record record = {
	    .epoch = entry->epoch,
	    .place = entry->place,
	    .seed = entry->seed,
	    .nonce = entry->nonce,
	    .count = entry->count,
	    .n_blocks = entry->n_blocks,
	    .bytes = bytes,
	};
	uint8_t *at, last[8] = {0};

	if (bytes > plan_log->room / 2)
		return;
	turn_round(plan_log, bytes);
	give_up(plan_log, plan_log->end + bytes);
	at = room_of(plan_log) + plan_log->end % plan_log->room;
	copy_in(at, &record, sizeof(record));
	copy_in(at + sizeof(record), data, data_bytes / 8 * 8);
	memcpy(last, (const uint8_t *)data + data_bytes / 8 * 8, data_bytes % 8);
	if (data_bytes % 8)
		copy_in(at + sizeof(record) + data_bytes / 8 * 8, last, sizeof(last));
	plan_log->end += bytes;
}

void plan_log_publish(struct plan_log *plan_log)
{
	/* S1: release, pairs with S2 */
	atomic_store_explicit(&plan_log->map->d_end, plan_log->end, memory_order_release);
}

/* ---- a copy in a file ---- */

/* The head of a plan log without records. */
static int put_head(const struct plan_log *plan_log, int fd)
{
	struct plan_log_head head = {
	    .magic = PLAN_LOG_MAGIC,
	    .bytes = plan_log->bytes,
	    .room = plan_log->room,
	    .n_samples = plan_log->n_samples,
	    .origin = plan_log->origin,
	    .first_epoch = plan_log->first_epoch,
	};

	memcpy(head.id, plan_log->id, sizeof(head.id));
	memcpy(head.before, plan_log->map->before, sizeof(head.before));
	if (ftruncate(fd, (off_t)plan_log->bytes) < 0)
		return -errno;
	return base_write_at(fd, &head, sizeof(head), 0);
}

int plan_log_save_before(const struct plan_log *plan_log, int fd)
{
	return base_write_at(fd, plan_log->map->before, sizeof(plan_log->map->before),
			     offsetof(struct plan_log_head, before));
}

static int put_room(const struct plan_log *plan_log, int fd, uint64_t from, uint64_t to)
{
	int r = 0;

	while (from < to && !r) {
		uint64_t at = from % plan_log->room;
		uint64_t bytes = BASE_MIN(to - from, plan_log->room - at);

		r = base_write_at(fd, room_of(plan_log) + at, bytes, PLAN_LOG_HEAD + at);
		from += bytes;
	}
	return r;
}

int plan_log_save(const struct plan_log *plan_log, int fd, uint64_t *saved)
{
	int r = *saved ? 0 : put_head(plan_log, fd);

	/* As for readers of the memory: what is written over is given up first, what is new is
	 * published last. */
	if (!r)
		r = base_write_at(fd, &plan_log->first, sizeof(plan_log->first),
				  offsetof(struct plan_log_head, d_first));
	r = r ? r : put_room(plan_log, fd, BASE_MAX(*saved, plan_log->first), plan_log->end);
	if (!r)
		r = base_write_at(fd, &plan_log->end, sizeof(plan_log->end),
				  offsetof(struct plan_log_head, d_end));
	if (!r)
		*saved = plan_log->end;
	return r;
}

/* ---- others read ---- */

int plan_log_attach(int fd, uint64_t most, struct plan_log *ret)
{
	struct plan_log plan_log = {.map = NULL};
	void *map;
	int r = region_attach_foreign(fd, REGION_READ_ONLY, PLAN_LOG_HEAD + LEAST_ROOM, most, &map,
				      &plan_log.bytes);

	if (r)
		return r > 0 ? PLAN_LOG_E_BAD : r;
	plan_log.map = map;
	plan_log.room = plan_log.bytes - PLAN_LOG_HEAD;
	plan_log.n_samples = plan_log.map->n_samples;
	plan_log.origin = plan_log.map->origin;
	plan_log.first_epoch = plan_log.map->first_epoch;
	memcpy(plan_log.id, plan_log.map->id, sizeof(plan_log.id));
	if (plan_log.map->magic != PLAN_LOG_MAGIC || plan_log.map->bytes != plan_log.bytes ||
	    plan_log.map->room != plan_log.room || plan_log.bytes % 4096) {
		region_unmap(map, plan_log.bytes);
		return PLAN_LOG_E_BAD;
	}
	*ret = plan_log;
	return 0;
}

void *plan_log_take_map(struct plan_log *plan_log, uint64_t *ret_bytes)
{
	void *map = plan_log->map;

	*ret_bytes = plan_log->bytes;
	free(plan_log->copy);
	*plan_log = (struct plan_log){.map = NULL};
	return map;
}

void plan_log_detach(struct plan_log *plan_log)
{
	uint64_t bytes;
	void *map = plan_log_take_map(plan_log, &bytes);

	region_unmap(map, bytes);
}

uint64_t plan_log_first(const struct plan_log *plan_log)
{
	return atomic_load_explicit(&plan_log->map->d_first, memory_order_acquire);
}

uint64_t plan_log_end(const struct plan_log *plan_log)
{
	/* S2: acquire, pairs with S1 */
	return atomic_load_explicit(&plan_log->map->d_end, memory_order_acquire);
}

/* S4: was all that was copied from the offset on still there then? Who copied a word that was written
 * after S3 has acquired what S3 says. */
static bool is_whole(const struct plan_log *plan_log, uint64_t offset)
{
	return atomic_load_explicit(&plan_log->map->d_first, memory_order_relaxed) <= offset;
}

/* The record at the offset, of `left` bytes that are published. */
static int read_record(struct plan_log *plan_log, uint64_t offset, uint64_t left, struct entry *ret,
		       uint32_t *ret_bytes)
{
	const uint8_t *at = room_of(plan_log) + offset % plan_log->room;
	uint64_t words[sizeof(struct plan_log_record) / 8];
	struct plan_log_record record;

	copy_out(words, at, sizeof(words));
	memcpy(&record, words, sizeof(record));
	if (!is_whole(plan_log, offset))
		return PLAN_LOG_E_GONE;
	*ret_bytes = record.bytes;
	if (!record.bytes)
		return 0;
	if (!record.count || record.count > 65536 || record.n_blocks > record.count ||
	    record.bytes != record_bytes(record.count, record.n_blocks) || record.bytes > left ||
	    record.bytes > plan_log->room - offset % plan_log->room)
		return PLAN_LOG_E_BAD;
	if (!base_grow(&plan_log->copy, &plan_log->copy_bytes, record.bytes, 1))
		return -ENOMEM;
	copy_out(plan_log->copy, at + sizeof(record), record.bytes - sizeof(record));
	*ret = (struct entry){
	    .epoch = record.epoch,
	    .place = record.place,
	    .seed = record.seed,
	    .nonce = record.nonce,
	    .count = record.count,
	    .n_blocks = record.n_blocks,
	    .blocks = record.n_blocks ? (const uint32_t *)plan_log->copy : NULL,
	    .ids = record.n_blocks ? NULL : (const int64_t *)plan_log->copy,
	};
	return is_whole(plan_log, offset) ? 0 : PLAN_LOG_E_GONE;
}

int plan_log_read(struct plan_log *plan_log, uint64_t *offset, struct entry *ret)
{
	uint64_t end = plan_log_end(plan_log), at = *offset, left_in_room;
	uint32_t bytes;
	int r;

	for (int turns = 0; turns < 2; turns++) {
		if (at % 8 || at > end || end - at > plan_log->room)
			return at < plan_log_first(plan_log) ? PLAN_LOG_E_GONE : PLAN_LOG_E_BAD;
		left_in_room = plan_log->room - at % plan_log->room;
		if (at == end)
			return PLAN_LOG_E_NONE;
		if (left_in_room >= sizeof(struct plan_log_record)) {
			if (end - at < sizeof(struct plan_log_record))
				return PLAN_LOG_E_BAD;
			r = read_record(plan_log, at, end - at, ret, &bytes);
			if (r)
				return r;
			if (bytes) {
				*offset = at + bytes;
				return 0;
			}
		}
		at += left_in_room;
	}
	return PLAN_LOG_E_BAD;
}
