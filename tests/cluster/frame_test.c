/* SPDX-License-Identifier: Apache-2.0 */

/* Frames and what is around them: heads there and back, seals, names of groups, what waits to be sent. */

#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "base/owner.h"
#include "base/philox.h"
#include "cluster/names.h"
#include "cluster/outbox.h"
#include "cluster/seal.h"
#include "shmring/layout.h"
#include "tests/suite.h"

static struct philox_seq seq;

static void setup(void)
{
	philox_seq_init(&seq, 7, 0, 0);
	ck_assert_int_eq(seal_init(), 0);
}

/* ---- heads ---- */

/* Any head that is one; of a message that goes over a connection. */
static struct value_head any_head(void)
{
	const uint32_t drawn = VALUE_GROUP + (uint32_t)philox_below(&seq, 6);
	const uint32_t type = drawn == VALUE_GONE ? VALUE_SPREAD : drawn;
	const bool has_value = type == VALUE_HAVE || type == VALUE_PUT;
	struct value_head head = {.magic = VALUE_MAGIC, .type = type};

	for (unsigned i = 0; i < sizeof(head.group); i++)
		head.group.bytes[i] = (uint8_t)philox_u32(&seq);
	head.peer = (uint32_t)philox_below(&seq, VALUE_MOST_PEERS);
	if (type == VALUE_GROUP) {
		head.samples = 1 + philox_below(&seq, VALUE_MOST_SAMPLES);
		head.form = 1 + (uint32_t)philox_below(&seq, LAYOUT_FORMS - 1);
		head.bytes = (uint32_t)philox_below(&seq, VALUE_MOST_NOTE + 1);
		return head;
	}
	head.sample = philox_below(&seq, VALUE_MOST_SAMPLES);
	if (type == VALUE_SPREAD) {
		head.room = 1 + (uint32_t)philox_below(&seq, OWNER_SPREAD);
		head.sample = philox_below(&seq, head.room);
	}
	if (type != VALUE_PUT)
		head.id = philox_u64(&seq);
	if (type == VALUE_GET)
		head.room = philox_u32(&seq);
	if (type == VALUE_HAVE || type == VALUE_MISS)
		head.room = (uint32_t)philox_below(&seq, 2);
	if (has_value) {
		head.form = 1 + (uint32_t)philox_below(&seq, LAYOUT_FORMS - 1);
		head.bytes = (type == VALUE_HAVE) + (uint32_t)philox_below(&seq, VALUE_MOST);
	}
	return head;
}

/* false: it does not come back as it was. */
static bool comes_back(const struct value_head *head, uint32_t group)
{
	struct value_head again;
	struct frame frame, read;
	uint8_t bytes[FRAME_HEAD];

	frame_of_value(head, group, head->id, &frame);
	frame_put(&frame, bytes);
	if (!value_head_check(head) || !frame_get(bytes, frame_body(head), &read) ||
	    read.group != group)
		return false;
	frame_to_value(&read, frame_body(head), &head->group, head->peer, &again);
	return memcmp(&again, head, sizeof(again)) == 0;
}

START_TEST(test_there_and_back)
{
	unsigned wrong = 0; /* an assertion each would be a message each to who counts them */

	for (unsigned i = 0; i < 100000; i++) {
		const struct value_head head = any_head();

		wrong += !comes_back(&head, i % FRAME_MOST_GROUPS);
	}
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

static const struct {
	const char *what;
	struct frame frame;
	uint32_t body;
} bad[] = {
    {"no type", {.type = 0}, 0},
    {"a type that there is not", {.type = VALUE_SPREAD + 1}, 0},
    {"GONE, which is of no connection", {.type = VALUE_GONE}, 0},
    {"ALIVE with an id", {.type = FRAME_ALIVE, .id = 1}, 0},
    {"ALIVE with a body", {.type = FRAME_ALIVE}, 1},
    {"a group without its hash", {.type = VALUE_GROUP, .form = 1}, FRAME_HASH - 1},
    {"a group with too long a note",
     {.type = VALUE_GROUP, .form = 1},
     FRAME_HASH + VALUE_MOST_NOTE + 1},
    {"a group too many", {.type = VALUE_GROUP, .form = 1, .group = FRAME_MOST_GROUPS}, FRAME_HASH},
    {"a group of no form", {.type = VALUE_GROUP}, FRAME_HASH},
    {"a group with an id", {.type = VALUE_GROUP, .form = 1, .id = 1}, FRAME_HASH},
    {"a spread over no nodes", {.type = VALUE_SPREAD}, 0},
    {"a spread over too many", {.type = VALUE_SPREAD, .room = OWNER_SPREAD + 1}, 0},
    {"a spread without such a node", {.type = VALUE_SPREAD, .room = 3, .sample = 3}, 0},
    {"a spread with a body", {.type = VALUE_SPREAD, .room = 3}, 1},
    {"a question with a body", {.type = VALUE_GET, .room = 1}, 1},
    {"a question with a form", {.type = VALUE_GET, .room = 1, .form = 1}, 0},
    {"a question of a group too many", {.type = VALUE_GET, .group = FRAME_MOST_GROUPS}, 0},
    {"a value of no bytes", {.type = VALUE_HAVE, .form = 1}, 0},
    {"a value of no form", {.type = VALUE_HAVE}, 1},
    {"a value of a form that there is not", {.type = VALUE_HAVE, .form = LAYOUT_FORMS}, 1},
    {"a value that is too large", {.type = VALUE_PUT, .form = 1}, VALUE_MOST + 1},
    {"a value with an id that nobody asked", {.type = VALUE_PUT, .form = 1, .id = 1}, 1},
    {"a value with room", {.type = VALUE_PUT, .form = 1, .room = 1}, 1},
    {"a miss with a body", {.type = VALUE_MISS}, 1},
    {"a miss with more than one room", {.type = VALUE_MISS, .room = 2}, 0},
};

START_TEST(test_bad)
{
	uint8_t bytes[FRAME_HEAD];
	struct frame frame = {.type = 99};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(bad); i++) {
		frame_put(&bad[i].frame, bytes);
		ck_assert_msg(!frame_get(bytes, bad[i].body, &frame), "%s", bad[i].what);
	}
	frame_put(&(struct frame){.type = VALUE_GET, .room = 1}, bytes);
	ck_assert(frame_get(bytes, 0, &frame));
	for (unsigned i = 2; i < 4; i++) {
		bytes[i] = 1;
		ck_assert(!frame_get(bytes, 0, &frame));
		bytes[i] = 0;
	}
	ck_assert(!frame_length_check(FRAME_HEAD + 15, 16));
	ck_assert(frame_length_check(FRAME_HEAD + 16, 16));
	ck_assert(frame_length_check(FRAME_HEAD + VALUE_MOST + 16, 16));
	ck_assert(!frame_length_check(FRAME_HEAD + VALUE_MOST + 17, 16));
	ck_assert(!frame_length_check(UINT32_MAX, 8));
}
END_TEST

/* ---- seals ---- */

static const uint8_t key[16] = "sixteen letters", iv[12] = "twelve of em";

static void make_pair(bool is_sealed, struct seal **ret_sends, struct seal **ret_receives)
{
	ck_assert_int_eq(seal_new(is_sealed, key, iv, ret_sends), 0);
	ck_assert_int_eq(seal_new(is_sealed, key, iv, ret_receives), 0);
}

static int open_it(struct seal *seal, const uint8_t *frame, uint8_t *head, uint8_t *body)
{
	const uint32_t bytes = little_32(frame) - FRAME_HEAD - seal_tag(seal);

	return seal_open(seal, frame, frame + SEAL_FIRST, bytes, frame + SEAL_FIRST + bytes, head,
			 body);
}

/* As it was made, whatever its size; on the wire by no more bytes than are promised. */
START_TEST(test_seals)
{
	static const uint32_t sizes[] = {0, 1, 15, 16, 17, 4096, 100001};
	static uint8_t body[100001], opened[100001], frame[100001 + 64 + FRAME_HASH];
	struct seal *sends, *receives;
	uint8_t head[FRAME_HEAD], got[FRAME_HEAD], hash[FRAME_HASH];

	make_pair(_i != 0, &sends, &receives);
	for (unsigned i = 0; i < 3 * BASE_ARRAY_LEN(sizes); i++) {
		const uint32_t size = sizes[i % BASE_ARRAY_LEN(sizes)];

		memset(head, (int)i, sizeof(head));
		memset(hash, (int)i + 1, sizeof(hash));
		memset(body, (int)i + 2, size);
		ck_assert_int_eq(seal_frame(sends, head, NULL, 0, body, size, frame), 0);
		ck_assert_uint_le(FRAME_LENGTH + little_32(frame), size + 64);
		ck_assert_uint_eq(little_32(frame), FRAME_HEAD + size + seal_tag(sends));
		ck_assert_int_eq(open_it(receives, frame, got, opened), 0);
		ck_assert_int_eq(memcmp(got, head, sizeof(head)), 0);
		ck_assert_int_eq(memcmp(opened, body, size), 0);
		if (_i == 0) { /* around a body that stays where it is */
			uint8_t first[SEAL_FIRST], tag[SEAL_MOST_TAG];

			seal_around(sends, head, body, size, first, tag);
			ck_assert_int_eq(seal_open(receives, first, body, size, tag, got, body), 0);
			ck_assert_int_eq(memcmp(got, head, sizeof(head)), 0);
		}
		if (size > 4096)
			continue;
		ck_assert_int_eq(seal_frame(sends, head, hash, sizeof(hash), body, size, frame), 0);
		ck_assert_int_eq(open_it(receives, frame, got, opened), 0);
		ck_assert_int_eq(memcmp(opened, hash, sizeof(hash)), 0);
		ck_assert_int_eq(memcmp(opened + sizeof(hash), body, size), 0);
	}
	seal_free(sends);
	seal_free(receives);
}
END_TEST

/* Each bit behind the length matters, and the frame's number. */
START_TEST(test_damage)
{
	const char text[] = "a value";
	uint8_t head[FRAME_HEAD] = {1}, got[FRAME_HEAD], opened[64], frame[128];
	struct seal *sends, *receives;
	size_t size;

	make_pair(_i != 0, &sends, &receives);
	size = FRAME_LENGTH + FRAME_HEAD + sizeof(text) + seal_tag(sends);
	for (size_t bit = 8 * FRAME_LENGTH; bit < 8 * size; bit++) {
		ck_assert_int_eq(
		    seal_frame(sends, head, NULL, 0, (const uint8_t *)text, sizeof(text), frame),
		    0);
		frame[bit / 8] ^= (uint8_t)(1U << bit % 8);
		ck_assert_int_ne(open_it(receives, frame, got, opened), 0);
	}
	ck_assert_int_eq(seal_frame(sends, head, NULL, 0, (const uint8_t *)text, 7, frame), 0);
	ck_assert_int_eq(open_it(receives, frame, got, opened), 0);
	ck_assert_int_ne(open_it(receives, frame, got, opened), 0);
	seal_free(sends);
	seal_free(receives);
}
END_TEST

/* What was sealed is not to be seen, and twice the same is not the same. */
START_TEST(test_secret)
{
	static const uint8_t body[64];
	uint8_t head[FRAME_HEAD] = {0}, first[128], second[128];
	struct seal *sends, *receives;

	make_pair(true, &sends, &receives);
	ck_assert_int_eq(seal_frame(sends, head, NULL, 0, body, sizeof(body), first), 0);
	ck_assert_int_eq(seal_frame(sends, head, NULL, 0, body, sizeof(body), second), 0);
	for (unsigned at = FRAME_LENGTH; at + 16 <= FRAME_LENGTH + FRAME_HEAD + sizeof(body);
	     at += 8) {
		ck_assert_int_ne(memcmp(first + at, body, 16), 0);
		ck_assert_int_ne(memcmp(first + at, second + at, 16), 0);
	}
	seal_free(sends);
	seal_free(receives);
}
END_TEST

/* ---- names ---- */

START_TEST(test_names)
{
	struct names names = {.n = 0};
	struct hash_id group = {{0}};

	ck_assert_uint_eq(names_find(&names, &group), NAMES_NONE);
	for (uint32_t i = 0; i < FRAME_MOST_GROUPS; i++) {
		/* Half of them begin alike. */
		little_put_32(group.bytes, i % 2 ? i * UINT32_C(2654435761) : 7);
		little_put_32(group.bytes + 8, i);
		ck_assert_uint_eq(names_find(&names, &group), NAMES_NONE);
		ck_assert_int_eq(names_add(&names, &group), 0);
	}
	for (uint32_t i = 0; i < FRAME_MOST_GROUPS; i++) {
		little_put_32(group.bytes, i % 2 ? i * UINT32_C(2654435761) : 7);
		little_put_32(group.bytes + 8, i);
		ck_assert_uint_eq(names_find(&names, &group), i);
	}
	names_fini(&names);
	ck_assert_uint_eq(names_find(&names, &group), NAMES_NONE);
}
END_TEST

/* ---- what waits to be sent ---- */

/* Bytes come out in the order they went in, however many go at once. */
START_TEST(test_outbox)
{
	struct outbox box = {.bytes = 0};
	uint64_t in = 0, out = 0, wrong = 0;

	for (unsigned step = 0; step < 4000; step++) {
		const size_t size = 1 + philox_below(&seq, step % 50 ? 3000 : 600000);
		struct iovec part[4];
		uint8_t *place = outbox_room(&box, size);
		size_t take = philox_below(&seq, 20000);
		unsigned n;

		ck_assert_ptr_nonnull(place);
		for (size_t i = 0; i < size; i++)
			place[i] = (uint8_t)(in++ % 251);
		outbox_add(&box, size);
		ck_assert_uint_eq(box.bytes, in - out);
		n = outbox_parts(&box, part, 4);
		for (unsigned i = 0; i < n; i++) {
			const size_t bytes = BASE_MIN(part[i].iov_len, take);

			for (size_t j = 0; j < bytes; j++)
				wrong += ((const uint8_t *)part[i].iov_base)[j] != out++ % 251;
			outbox_sent(&box, bytes);
			take -= bytes;
			if (take == 0)
				break;
		}
		ck_assert_uint_eq(box.bytes, in - out);
	}
	ck_assert_uint_eq(wrong, 0);
	outbox_fini(&box);
}
END_TEST

static void add(TCase *all)
{
	tcase_add_checked_fixture(all, setup, NULL);
	tcase_add_test(all, test_there_and_back);
	tcase_add_test(all, test_bad);
	tcase_add_loop_test(all, test_seals, 0, 2);
	tcase_add_loop_test(all, test_damage, 0, 2);
	tcase_add_test(all, test_secret);
	tcase_add_test(all, test_names);
	tcase_add_test(all, test_outbox);
}

int main(void)
{
	return suite_run("frame", add);
}
