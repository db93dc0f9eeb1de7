/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a carrier may say to a reader that has asked for some values: items of a ring, of any bytes. No task is lost or
 * ended twice, and none is given more than it has room for.
 *
 * Input: how many tasks ask, then items: length (two bytes), bytes. An id of an answer below 16 is that of the task with
 * that number.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/value.h"
#include "storage/reader_peers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TASKS = 16, SAMPLES = 64, ROOM = 3000, MEMBERS = 1 << 0 | 1 << 2 };

static unsigned busy, under_way;
static uint64_t id_of[SAMPLES]; /* of the last question about each sample */
static uint32_t came = MEMBERS; /* peers of which something was said, a bit each */

static void check(bool is_so)
{
	if (!is_so)
		abort();
}

/* A sanitizer sees each byte. */
static void touch(const uint8_t *value, size_t bytes)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < bytes; i++)
		sum ^= value[i];
	*(volatile uint8_t *)&sum = sum;
}

/* ---- the rest of the reader ---- */

struct store_group {
	uint32_t bytes[SAMPLES]; /* of each value; 0: none */
};

int store_group_open_guest(struct store *store, const struct hash_id *id, const char *note,
			   uint64_t n_samples, struct store_group **ret)
{
	(void)store;
	(void)id;
	check(strlen(note) <= VALUE_MOST_NOTE && n_samples > 0);
	*ret = calloc(1, sizeof(**ret));
	check(*ret != NULL);
	return 0;
}

void store_group_close(struct store_group *group)
{
	free(group);
}

int store_get(struct store_group *group, uint64_t sample, uint8_t *buffer, size_t room,
	      size_t *ret_size)
{
	const uint32_t bytes = sample < SAMPLES ? group->bytes[sample] : 0;

	if (bytes > room)
		return STORE_E_ROOM;
	memset(buffer, 1, bytes);
	*ret_size = bytes;
	return bytes ? 0 : STORE_E_NONE;
}

bool store_put(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size)
{
	check(size > 0 && size <= VALUE_MOST);
	touch(value, size);
	if (sample < SAMPLES)
		group->bytes[sample] = (uint32_t)size;
	return true;
}

struct reader_resident *reader_resident_open(const struct hash_id *id, uint64_t samples)
{
	(void)id;
	(void)samples;
	return NULL;
}

void reader_resident_close(struct reader_resident *group)
{
	(void)group;
}

void reader_resident_yield(struct reader_resident *group, bool yields)
{
	(void)group;
	(void)yields;
}

int reader_resident_copy(const struct reader_resident *group, uint64_t sample, uint8_t *buffer,
			 size_t room, size_t *ret_bytes)
{
	(void)group;
	(void)sample;
	(void)buffer;
	(void)room;
	(void)ret_bytes;
	return STORE_E_NONE;
}

enum reader_resident_answer reader_resident_keep(struct reader_resident *group, uint64_t sample,
						 const uint8_t *value, size_t bytes)
{
	(void)group;
	(void)sample;
	touch(value, bytes);
	return RESIDENT_FULL;
}

void reader_queue_keep(struct reader_queue *queue)
{
	(void)queue;
	busy++;
}

void reader_queue_put(struct reader_queue *queue)
{
	(void)queue;
	check(busy-- > 0);
}

bool reader_queue_is_leaving(const struct reader_queue *queue)
{
	(void)queue;
	return false;
}

static void end_task(struct reader_ask *ask)
{
	check(under_way-- > 0);
	reader_queue_put(ask->queue);
	reader_asks_free(ask);
}

bool reader_queue_idles(uint32_t *seen)
{
	(void)seen;
	return false;
}

int reader_queue_look(const struct value_head *get)
{
	check(get->sample < SAMPLES);
	return (int)(get->sample % 2) - 1;
}

void reader_say_wrong(uint64_t node, uint64_t sample)
{
	(void)node;
	(void)sample;
}

void reader_queue_again(struct reader_ask *ask)
{
	end_task(ask);
}

void reader_queue_bring(struct reader_ask *ask, enum layout_from from, const uint8_t *value,
			uint32_t bytes)
{
	check(from == LAYOUT_FROM_PEER && bytes > 0 && bytes <= ROOM);
	touch(value, bytes);
	end_task(ask);
}

void reader_queue_store(struct reader_queue *queue, unsigned form, uint64_t sample,
			const uint8_t *value, uint32_t bytes)
{
	(void)queue;
	check(form == LAYOUT_FORM_PACKED && sample < SAMPLES);
	touch(value, bytes);
}

_Noreturn void reader_say_fatal(const char *event, const char *text)
{
	(void)event;
	(void)text;
	abort();
}

/* ---- the carrier ---- */

static struct rings to, from;
static struct reader_shared *shared;

static void begin(void)
{
	const struct reader_member members[] = {{.id = 22, .peer = 0, .weight = 10},
						{.id = 33, .peer = 2, .weight = 10}};
	struct hash_id id;
	int to_fd = -1, from_fd = -1;

	memset(&id, 'g', sizeof(id));
	shared = reader_peers_share(&id, SAMPLES, LAYOUT_FORM_PACKED, "{}");
	check(shared && !rings_new(1, VALUE_RING_BYTES, &to_fd) &&
	      !rings_new(1, VALUE_RING_BYTES, &from_fd) && !rings_attach(to_fd, &to) &&
	      !rings_attach(from_fd, &from) && reader_peers_carrier(11, to_fd, from_fd));
	close(to_fd);
	close(from_fd);
	reader_peers_store((struct store *)(void *)shared); /* which nobody looks into */
	check(reader_peers_members(10, members, BASE_ARRAY_LEN(members)) && reader_peers_turn());
}

/* What the reader says: it must make sense. */
static void listen(void)
{
	struct rings_item item;
	bool bad;

	while (rings_look(&to, 0, &item, &bad)) {
		struct value_head head;

		check(item.bytes >= sizeof(head));
		memcpy(&head, item.data, sizeof(head));
		check(value_head_check(&head) && item.bytes - sizeof(head) == head.bytes);
		if (head.type == VALUE_GET)
			id_of[head.sample] = head.id;
		rings_pass(&to, 0, &item);
	}
	check(!bad);
}

static void say(const uint8_t *data, uint32_t bytes)
{
	struct value_head head;
	uint8_t *at = rings_begin(&from, 0, bytes);

	check(at != NULL);
	memcpy(at, data, bytes);
	if (bytes >= sizeof(head)) {
		memcpy(&head, at, sizeof(head));
		if (head.id < TASKS && (head.type == VALUE_HAVE || head.type == VALUE_MISS))
			head.id = id_of[head.id];
		memcpy(at, &head, sizeof(head));
		came |= head.peer < VALUE_MOST_PEERS ? UINT32_C(1) << head.peer : 0;
	}
	rings_end(&from, 0, &(struct rings_item){.bytes = bytes});
	check(reader_peers_turn());
	listen();
}

static void say_gone(uint32_t peer)
{
	const struct value_head gone = {.magic = VALUE_MAGIC, .type = VALUE_GONE, .peer = peer};

	say((const uint8_t *)&gone, sizeof(gone));
}

static void ask_for(unsigned tasks)
{
	struct queue_task task = {
	    .bytes = 100, .room = ROOM, .want = LAYOUT_FORM_PACKED, .make = LAYOUT_FORM_PACKED};

	for (task.sample = 0; task.sample < tasks; task.sample++) {
		under_way++; /* it may be ended before this returns */
		under_way -= !reader_peers_ask(NULL, shared, &task);
	}
	listen();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!shared)
		begin();
	if (size == 0)
		return 0;
	ask_for(data[0] % (TASKS + 1));
	for (data++, size--; size > 2;) {
		const uint32_t bytes =
		    (uint32_t)BASE_MIN((size_t)(data[0] | data[1] << 8), size - 2);

		say(data + 2, bytes);
		data += 2 + bytes;
		size -= 2 + bytes;
	}
	for (uint32_t peer = 0; peer < VALUE_MOST_PEERS; peer++)
		if (came >> peer & 1)
			say_gone(peer);
	came = MEMBERS;
	reader_serve_tick(base_now_ns() + UINT64_C(60000000000));
	listen();
	check(under_way == 0 && busy == 0 && reader_asks_count() == 0);
	return 0;
}
