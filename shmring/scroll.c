/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scroll. One writer, any number of readers that the writer knows nothing of. A record is
 * written, then published (S1). Before bytes are written over, the oldest records are given up (S3);
 * a reader copies a record and then looks whether it had been given up meanwhile (S4), so what it
 * returns was whole. The copy is by words, each released and acquired: a torn one is thrown away,
 * never a data race. Rejected: relaxed words between two fences, which ThreadSanitizer does not know.
 *
 * A reader believes nothing: a record's size bounds its arrays, the room bounds the record. What the
 * numbers mean is for the caller to check. A scroll comes back to accessd from clients
 * (daemon/group.c), so that a forged one must cost its forger alone.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/region.h"
#include "shmring/scroll.h"

#define LEAST_ROOM (4 * (uint64_t)4096)

static uint8_t *room_of(const struct scroll *scroll)
{
	return (uint8_t *)scroll->map + SCROLL_HEAD;
}

static uint32_t record_bytes(uint32_t count, uint32_t n_grains)
{
	uint64_t data = n_grains ? UINT64_C(4) * n_grains : UINT64_C(8) * count;

	return (uint32_t)(sizeof(struct scroll_record) + base_align_up(data, 8));
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

int scroll_new(uint64_t bytes, uint64_t n_samples, const uint8_t id[SCROLL_ID], struct scroll *ret,
	       int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	/* Room for what lies idle where the records turn round, and for the one that is written. */
	uint64_t room =
	    base_align_up(BASE_MAX(bytes + bytes / 4, LEAST_ROOM) + 2 * SCROLL_HEAD, 4096);
	struct scroll_head *head;
	void *map;
	int r = region_new("oneaccess-log", SCROLL_HEAD + room, &map, &fd);

	if (r)
		return r;
	head = map;
	head->magic = SCROLL_MAGIC;
	head->bytes = SCROLL_HEAD + room;
	head->room = room;
	head->n_samples = n_samples;
	memcpy(head->id, id, sizeof(head->id));
	r = region_seal(fd, REGION_READ_ONLY);
	if (r) {
		region_unmap(map, SCROLL_HEAD + room);
		return r;
	}
	*ret = (struct scroll){
	    .map = map, .bytes = SCROLL_HEAD + room, .room = room, .n_samples = n_samples};
	memcpy(ret->id, id, sizeof(ret->id));
	*ret_fd = base_take_fd(&fd);
	return 0;
}

void scroll_set_origin(struct scroll *scroll, uint64_t origin, uint64_t first_epoch)
{
	scroll->origin = scroll->map->origin = origin;
	scroll->first_epoch = scroll->map->first_epoch = first_epoch;
}

/* Where the record after `offset` begins, as the writer knows: these are its own words. */
static uint64_t after(const struct scroll *scroll, uint64_t offset)
{
	uint64_t at = offset % scroll->room;
	struct scroll_record record;

	if (scroll->room - at < sizeof(record))
		return offset + scroll->room - at;
	memcpy(&record, room_of(scroll) + at, sizeof(record));
	return offset + (record.bytes ? record.bytes : scroll->room - at);
}

static void give_up(struct scroll *scroll, uint64_t end)
{
	while (end - scroll->first > scroll->room)
		scroll->first = after(scroll, scroll->first);
	/* S3: pairs with S4. The words that follow are released after it. */
	atomic_store_explicit(&scroll->map->d_first, scroll->first, memory_order_relaxed);
}

/* Leaves the rest of the room idle if the record does not fit there. */
static void turn_round(struct scroll *scroll, uint32_t bytes)
{
	struct scroll_record filler = {.bytes = 0};
	uint64_t at = scroll->end % scroll->room, left = scroll->room - at;

	if (left >= bytes)
		return;
	give_up(scroll, scroll->end + left);
	if (left >= sizeof(filler))
		copy_in(room_of(scroll) + at, &filler, sizeof(filler));
	scroll->end += left;
}

void scroll_append(struct scroll *scroll, const struct scroll_entry *entry)
{
	uint32_t bytes = record_bytes(entry->count, entry->n_grains);
	const void *data = entry->n_grains ? (const void *)entry->grains : entry->ids;
	size_t data_bytes = entry->n_grains ? sizeof(uint32_t) * (size_t)entry->n_grains
					    : sizeof(int64_t) * (size_t)entry->count;
	struct scroll_record record = {
	    .epoch = entry->epoch,
	    .place = entry->place,
	    .seed = entry->seed,
	    .lap = entry->lap,
	    .count = entry->count,
	    .n_grains = entry->n_grains,
	    .bytes = bytes,
	};
	uint8_t *at, last[8] = {0};

	if (bytes > scroll->room / 2)
		return;
	turn_round(scroll, bytes);
	give_up(scroll, scroll->end + bytes);
	at = room_of(scroll) + scroll->end % scroll->room;
	copy_in(at, &record, sizeof(record));
	copy_in(at + sizeof(record), data, data_bytes / 8 * 8);
	memcpy(last, (const uint8_t *)data + data_bytes / 8 * 8, data_bytes % 8);
	if (data_bytes % 8)
		copy_in(at + sizeof(record) + data_bytes / 8 * 8, last, sizeof(last));
	scroll->end += bytes;
}

void scroll_publish(struct scroll *scroll)
{
	/* S1: release, pairs with S2 */
	atomic_store_explicit(&scroll->map->d_end, scroll->end, memory_order_release);
}

/* ---- a copy in a file ---- */

static int put(int fd, const void *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t n = pwrite(fd, data, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data = (const uint8_t *)data + n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* The head of a scroll without records. */
static int put_head(const struct scroll *scroll, int fd)
{
	struct scroll_head head = {
	    .magic = SCROLL_MAGIC,
	    .bytes = scroll->bytes,
	    .room = scroll->room,
	    .n_samples = scroll->n_samples,
	    .origin = scroll->origin,
	    .first_epoch = scroll->first_epoch,
	};

	memcpy(head.id, scroll->id, sizeof(head.id));
	if (ftruncate(fd, (off_t)scroll->bytes) < 0)
		return -errno;
	return put(fd, &head, sizeof(head), 0);
}

static int put_room(const struct scroll *scroll, int fd, uint64_t from, uint64_t to)
{
	int r = 0;

	while (from < to && !r) {
		uint64_t at = from % scroll->room;
		uint64_t bytes = BASE_MIN(to - from, scroll->room - at);

		r = put(fd, room_of(scroll) + at, bytes, SCROLL_HEAD + at);
		from += bytes;
	}
	return r;
}

int scroll_save(const struct scroll *scroll, int fd, uint64_t *saved)
{
	int r = *saved ? 0 : put_head(scroll, fd);

	/* As for readers of the memory: what is written over is given up first, what is new is
	 * published last. */
	if (!r)
		r = put(fd, &scroll->first, sizeof(scroll->first),
			offsetof(struct scroll_head, d_first));
	if (!r)
		r = put_room(scroll, fd, BASE_MAX(*saved, scroll->first), scroll->end);
	if (!r)
		r = put(fd, &scroll->end, sizeof(scroll->end), offsetof(struct scroll_head, d_end));
	if (!r)
		*saved = scroll->end;
	return r;
}

/* ---- others read ---- */

int scroll_attach(int fd, struct scroll *ret)
{
	struct scroll scroll = {.map = NULL};
	void *map;
	int r = region_size(fd, REGION_READ_ONLY, &scroll.bytes);

	if (r)
		return r > 0 ? SCROLL_E_BAD : r;
	if (scroll.bytes < SCROLL_HEAD + LEAST_ROOM || scroll.bytes % 4096)
		return SCROLL_E_BAD;
	r = region_map(fd, scroll.bytes, false, &map);
	if (r)
		return r;
	scroll.map = map;
	scroll.room = scroll.bytes - SCROLL_HEAD;
	scroll.n_samples = scroll.map->n_samples;
	scroll.origin = scroll.map->origin;
	scroll.first_epoch = scroll.map->first_epoch;
	memcpy(scroll.id, scroll.map->id, sizeof(scroll.id));
	if (scroll.map->magic != SCROLL_MAGIC || scroll.map->bytes != scroll.bytes ||
	    scroll.map->room != scroll.room) {
		region_unmap(map, scroll.bytes);
		return SCROLL_E_BAD;
	}
	*ret = scroll;
	return 0;
}

void scroll_detach(struct scroll *scroll)
{
	if (scroll->map)
		region_unmap(scroll->map, scroll->bytes);
	free(scroll->copy);
	*scroll = (struct scroll){.map = NULL};
}

uint64_t scroll_first(const struct scroll *scroll)
{
	return atomic_load_explicit(&scroll->map->d_first, memory_order_acquire);
}

uint64_t scroll_end(const struct scroll *scroll)
{
	/* S2: acquire, pairs with S1 */
	return atomic_load_explicit(&scroll->map->d_end, memory_order_acquire);
}

/* S4: was all that was copied from the offset on still there then? Who copied a word that was written
 * after S3 has acquired what S3 says. */
static bool is_whole(const struct scroll *scroll, uint64_t offset)
{
	return atomic_load_explicit(&scroll->map->d_first, memory_order_relaxed) <= offset;
}

static int make_room(struct scroll *scroll, size_t bytes)
{
	uint64_t *copy;

	if (bytes <= scroll->copy_bytes)
		return 0;
	copy = realloc(scroll->copy, bytes);
	if (!copy)
		return -ENOMEM;
	scroll->copy = copy;
	scroll->copy_bytes = bytes;
	return 0;
}

/* The record at the offset, of `left` bytes that are published. */
static int read_record(struct scroll *scroll, uint64_t offset, uint64_t left,
		       struct scroll_entry *ret, uint32_t *ret_bytes)
{
	const uint8_t *at = room_of(scroll) + offset % scroll->room;
	uint64_t words[sizeof(struct scroll_record) / 8];
	struct scroll_record record;
	int r;

	copy_out(words, at, sizeof(words));
	memcpy(&record, words, sizeof(record));
	if (!is_whole(scroll, offset))
		return SCROLL_E_GONE;
	*ret_bytes = record.bytes;
	if (!record.bytes)
		return 0;
	if (!record.count || record.count > 65536 || record.n_grains > record.count ||
	    record.bytes != record_bytes(record.count, record.n_grains) || record.bytes > left ||
	    record.bytes > scroll->room - offset % scroll->room)
		return SCROLL_E_BAD;
	r = make_room(scroll, record.bytes);
	if (r)
		return r;
	copy_out(scroll->copy, at + sizeof(record), record.bytes - sizeof(record));
	*ret = (struct scroll_entry){
	    .epoch = record.epoch,
	    .place = record.place,
	    .seed = record.seed,
	    .lap = record.lap,
	    .count = record.count,
	    .n_grains = record.n_grains,
	    .grains = record.n_grains ? (const uint32_t *)scroll->copy : NULL,
	    .ids = record.n_grains ? NULL : (const int64_t *)scroll->copy,
	};
	return is_whole(scroll, offset) ? 0 : SCROLL_E_GONE;
}

int scroll_read(struct scroll *scroll, uint64_t *offset, struct scroll_entry *ret)
{
	uint64_t end = scroll_end(scroll), at = *offset, left_in_room;
	uint32_t bytes;
	int r;

	for (int turns = 0; turns < 2; turns++) {
		if (at % 8 || at > end || end - at > scroll->room)
			return at < scroll_first(scroll) ? SCROLL_E_GONE : SCROLL_E_BAD;
		left_in_room = scroll->room - at % scroll->room;
		if (at == end)
			return SCROLL_E_NONE;
		if (left_in_room >= sizeof(struct scroll_record)) {
			if (end - at < sizeof(struct scroll_record))
				return SCROLL_E_BAD;
			r = read_record(scroll, at, end - at, ret, &bytes);
			if (r)
				return r;
			if (bytes) {
				*offset = at + bytes;
				return 0;
			}
		}
		at += left_in_room;
	}
	return SCROLL_E_BAD;
}
