/* SPDX-License-Identifier: Apache-2.0 */

/* access-carrier: two of them joined, and one with a peer who does what no carrier does. */

#include <check.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "tests/cluster/post.h"
#include "tests/patience.h"

enum { GROUP = 5, NODE_A = 1001, NODE_B = 1002 };

static uint8_t value[VALUE_MOST], expected[VALUE_MOST];

/* Two carriers with a device must have taken it. */
static uint32_t meet(struct post *post)
{
	const bool rdma = post_transport() != CARRIER_TCP;

	return post_met_by(post, rdma, rdma ? "rxe0" : "transport = tcp");
}

static void join(struct post *a, struct post *b, bool is_sealed, uint32_t ret_peer[2])
{
	struct carrier_keys of_a, of_b;
	int pair[2];

	post_keys(3, &of_a, &of_b);
	post_tcp(pair);
	post_connect(a, NODE_B, pair[0], is_sealed, &of_a);
	post_connect(b, NODE_A, pair[1], is_sealed, &of_b);
	ret_peer[0] = meet(a);
	ret_peer[1] = meet(b);
}

static void check_value(struct post *post, const struct value_head *head)
{
	post_fill(head->sample, expected, head->bytes);
	ck_assert_int_eq(memcmp(post->bytes, expected, head->bytes), 0);
	ck_assert_uint_eq(head->form, LAYOUT_FORM_PACKED);
}

static void say_group(struct post *post, uint32_t peer)
{
	struct value_head head = post_head(VALUE_GROUP, peer, 0, GROUP, 0, 11);

	post_say(post, &head, "for people\n");
}

static void hear_group(struct post *post, uint32_t peer)
{
	struct value_head head;
	struct value_head said = post_head(VALUE_GROUP, peer, 0, GROUP, 0, 11);

	post_next(post, &head);
	ck_assert_int_eq(memcmp(&head, &said, sizeof(head)), 0);
	ck_assert_int_eq(memcmp(post->bytes, "for people\n", 11), 0);
}

/* Which of three nodes each is: it comes as it was said. */
static void tell_spreads(struct post post[2], const uint32_t peer[2])
{
	for (unsigned i = 0; i < 2; i++) {
		struct value_head said =
		    post_head(VALUE_SPREAD, peer[i], ~UINT64_C(7), GROUP, i, 0);
		struct value_head head;

		said.form = 0;
		said.room = 3;
		post_say(&post[i], &said, NULL);
		said.peer = peer[1 - i];
		post_next(&post[1 - i], &head);
		ck_assert_int_eq(memcmp(&head, &said, sizeof(head)), 0);
	}
}

static void put(struct post *post, uint32_t peer, uint64_t sample, uint32_t bytes)
{
	struct value_head head = post_head(VALUE_PUT, peer, 0, GROUP, sample, bytes);

	post_fill(sample, value, bytes);
	post_say(post, &head, value);
}

static void gone(struct post *post, uint32_t peer)
{
	struct value_head head;

	post_next(post, &head);
	ck_assert_uint_eq(head.type, VALUE_GONE);
	ck_assert_uint_eq(head.peer, peer);
}

/* ---- two carriers ---- */

static const uint32_t sizes[] = {1,     2,      63,     64,      65,      4095,
				 65536, 150000, 262144, 1000000, 4194303, VALUE_MOST};
#define SIZES BASE_ARRAY_LEN(sizes)

/* Values of all sizes both ways at once: each comes once, in order, whole. */
START_TEST(test_both_ways)
{
	struct post post[2];
	uint32_t peer[2];
	unsigned sent[2] = {0, 0}, came[2] = {0, 0};

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join(&post[0], &post[1], _i != 0, peer);
	for (unsigned i = 0; i < 2; i++)
		say_group(&post[i], peer[i]);
	for (unsigned i = 0; i < 2; i++)
		hear_group(&post[i], peer[i]);
	tell_spreads(post, peer);
	while (came[0] < 3 * SIZES || came[1] < 3 * SIZES)
		for (unsigned i = 0; i < 2; i++) {
			struct value_head head;

			if (sent[i] < 3 * SIZES) {
				put(&post[i], peer[i], sent[i], sizes[sent[i] % SIZES]);
				sent[i]++;
			}
			if (!post_try_next(&post[i], &head))
				continue;
			ck_assert_uint_eq(head.type, VALUE_PUT);
			ck_assert_uint_eq(head.peer, peer[i]);
			ck_assert_uint_eq(head.sample, came[i]);
			ck_assert_uint_eq(head.bytes, sizes[came[i] % SIZES]);
			check_value(&post[i], &head);
			came[i]++;
		}
	post_state(&post[0], peer[0], offsetof(struct carrier_state, puts_received), 3 * SIZES);
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* The owner has samples below 100. true: it answered. */
static void answer(struct post *owner, const struct value_head *get)
{
	const bool has = get->sample < 100;
	struct value_head head = post_head(has ? VALUE_HAVE : VALUE_MISS, get->peer, get->id, GROUP,
					   get->sample, has ? 3000 : 0);

	ck_assert_uint_eq(get->type, VALUE_GET);
	ck_assert_int_eq(memcmp(&get->group, &head.group, sizeof(head.group)), 0);
	post_fill(get->sample, value, head.bytes);
	post_say(owner, &head, value);
}

/* What is asked is answered under the asker's own numbers. A carrier that had no time in 250 ms says MISS itself, so a miss
 * of what is there is asked again. */
START_TEST(test_asks)
{
	struct post post[2];
	uint32_t peer[2];
	unsigned answered = 0;
	struct value_head head, get;

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join(&post[0], &post[1], _i != 0, peer);
	say_group(&post[0], peer[0]);
	hear_group(&post[1], peer[1]);
	while (answered < 200) {
		get = post_head(VALUE_GET, peer[0], 7000 + answered, GROUP, answered, 0);
		post_say(&post[0], &get, NULL);
		while (!post_try_next(&post[0], &head))
			if (post_try_next(&post[1], &head))
				answer(&post[1], &head);
		ck_assert_uint_eq(head.peer, peer[0]);
		ck_assert_uint_eq(head.id, 7000 + answered);
		ck_assert_uint_eq(head.sample, answered);
		ck_assert_int_eq(memcmp(&head.group, &get.group, sizeof(get.group)), 0);
		if (head.type == VALUE_HAVE) {
			ck_assert_uint_eq(head.bytes, 3000);
			check_value(&post[0], &head);
		}
		if (head.type == VALUE_HAVE || answered >= 100)
			answered++;
		else
			usleep(10000);
	}
	post_state(&post[0], peer[0], offsetof(struct carrier_state, gots), 100);
	post_state(&post[1], peer[1], offsetof(struct carrier_state, had), 100);
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* The other node's carrier dies: the reader, accessd and the gate hear of it, and a new one is met. */
START_TEST(test_killed)
{
	struct post post[2];
	uint32_t peer[2];

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join(&post[0], &post[1], true, peer);
	say_group(&post[0], peer[0]);
	hear_group(&post[1], peer[1]);
	post_kill(&post[1]);
	gone(&post[0], peer[0]);
	post_lost(&post[0], peer[0], "it ended the connection");
	say_group(&post[0],
		  peer[0]); /* the reader has older members: this is lost, and it must know */
	gone(&post[0], peer[0]);
	post_start(&post[1], NULL);
	join(&post[0], &post[1], true, peer);
	say_group(&post[0], peer[0]);
	hear_group(&post[1], peer[1]);
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* A node that connects anew has one channel; a gate that is new is told what ends. */
START_TEST(test_anew)
{
	struct peer first, second, first_refused;
	struct frame offer;
	struct post post;
	uint32_t number, other;

	post_start(&post, NULL);
	peer_connect(&first, &post, NODE_B, true);
	number = post_met(&post);
	peer_connect(&second, &post, NODE_B, true);
	gone(&post, number);
	post_replaced(&post, number);
	other = post_met(&post);
	ck_assert(post_is_silent(&post));
	post_new_gate(&post);
	post.weight = 0; /* one that it refuses: then the new gate is known */
	peer_connect(&first_refused, &post, NODE_A, true);
	post_ended(&post, NODE_A);
	peer_fini(&first_refused);
	peer_hear(&second, FRAME_PATH, &offer); /* what was not read would make its end a reset */
	peer_group(&second, 0, GROUP);
	{
		struct value_head head;

		post_next(&post, &head);
		ck_assert_uint_eq(head.type, VALUE_GROUP);
		ck_assert_uint_eq(head.peer, other);
	}
	base_close(&second.fd);
	gone(&post, other);
	post_lost(&post, other, "it ended the connection");
	peer_fini(&first);
	peer_fini(&second);
	post_stop(&post);
}
END_TEST

/* Gates that died connect what they do not know to be connected: the new channel goes by the old one's name, and the gate
 * hears of no end but the last one's. */
START_TEST(test_new_gates)
{
	enum { GATES = 3 };
	struct peer peers[GATES];
	struct frame offer;
	uint32_t number = 0;
	struct post post;

	post_start(&post, NULL);
	for (unsigned i = 0; i < GATES; i++) {
		if (i > 0)
			post_new_gate(&post);
		peer_connect(&peers[i], &post, NODE_B, true);
		if (i > 0) {
			gone(&post, number);
			post_replaced(&post, number);
		}
		number = post_met(&post);
		ck_assert(post_is_silent(&post));
	}
	peer_hear(&peers[GATES - 1], FRAME_PATH, &offer);
	for (unsigned i = 0; i < GATES; i++)
		peer_fini(&peers[i]);
	gone(&post, number);
	post_lost(&post, number, "it ended the connection");
	post_stop(&post);
}
END_TEST

/* A peer says what its weight is: one that cannot be is refused, and the carrier lives on. */
START_TEST(test_weight)
{
	static const uint64_t weights[] = {0, UINT64_C(1) << 32, UINT64_MAX};
	struct peer peer;
	struct post post;

	post_start(&post, NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(weights); i++) {
		post.weight = weights[i];
		peer_connect(&peer, &post, NODE_B, true);
		post_ended(&post, NODE_B);
		peer_fini(&peer);
	}
	post.weight = UINT32_MAX;
	peer_connect(&peer, &post, NODE_B, true);
	post_met(&post);
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* ---- a peer who is none ---- */

static const struct frame a_put = {
    .type = VALUE_PUT, .form = LAYOUT_FORM_PACKED, .group = 0, .sample = 9};

static void break_byte(struct peer *peer)
{
	peer_make(peer, &a_put, "value", 5);
	peer->frame[FRAME_LENGTH + FRAME_HEAD + 2] ^= 1;
	peer_send(peer, peer->bytes);
}

static void break_head(struct peer *peer)
{
	peer_make(peer, &a_put, "value", 5);
	peer->frame[FRAME_LENGTH + 8] ^= 1;
	peer_send(peer, peer->bytes);
}

static void repeat(struct peer *peer)
{
	peer_say(peer, &a_put, "value", 5);
	peer_send(peer, peer->bytes);
}

static void leave_out(struct peer *peer)
{
	peer_make(peer, &a_put, "value", 5);
	peer_say(peer, &a_put, "value", 5);
}

static void cut(struct peer *peer)
{
	peer_make(peer, &a_put, "value", 5);
	peer_send(peer, peer->bytes - 1);
	shutdown(peer->fd, SHUT_WR);
}

static void too_long(struct peer *peer)
{
	memset(peer->frame, 0xff, 4);
	peer_send(peer, 4);
}

static void too_short(struct peer *peer)
{
	memset(peer->frame, 0, 4);
	peer_send(peer, 4);
}

static void say_gone(struct peer *peer)
{
	peer_say(peer, &(struct frame){.type = VALUE_GONE}, NULL, 0);
}

static void unknown_group(struct peer *peer)
{
	struct frame frame = a_put;

	frame.group = 1;
	peer_say(peer, &frame, "value", 5);
}

static void skip_a_group(struct peer *peer)
{
	peer_group(peer, 2, GROUP + 1);
}

static void no_value(struct peer *peer)
{
	peer_say(peer, &(struct frame){.type = VALUE_HAVE, .form = a_put.form, .id = 1}, NULL, 0);
}

static const struct {
	void (*does)(struct peer *peer);
	const char *why;
} wrongs[] = {
    {break_byte, "not as it was sent"},
    {break_head, "not as it was sent"},
    {repeat, "not as it was sent"},
    {leave_out, "not as it was sent"},
    {cut, "within a frame"},
    {too_long, "makes no sense"},
    {too_short, "makes no sense"},
    {say_gone, "makes no sense"},
    {unknown_group, "was not told"},
    {skip_a_group, "out of order"},
    {no_value, "makes no sense"},
};

/* Whatever a peer does wrong ends its connection, with a reason; no bad byte reaches the reader, and others live on. */
START_TEST(test_wrong)
{
	const bool is_sealed = _i != 0;
	struct value_head head;
	struct peer good;
	struct post post;
	uint32_t number;

	post_start(&post, NULL);
	peer_connect(&good, &post, NODE_A, is_sealed);
	number = post_met(&post);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(wrongs); i++) {
		struct peer bad;
		uint32_t other;

		peer_connect(&bad, &post, NODE_B, is_sealed);
		other = post_met(&post);
		peer_group(&bad, 0, GROUP);
		post_next(&post, &head);
		ck_assert_uint_eq(head.type, VALUE_GROUP);
		wrongs[i].does(&bad);
		post_next(&post, &head);
		if (head.type == VALUE_PUT) { /* the one that was repeated */
			ck_assert_uint_eq(head.bytes, 5);
			ck_assert_int_eq(memcmp(post.bytes, "value", 5), 0);
			post_next(&post, &head);
		}
		ck_assert_uint_eq(head.type, VALUE_GONE);
		ck_assert_uint_eq(head.peer, other);
		post_lost(&post, other, wrongs[i].why);
		peer_fini(&bad);
	}
	peer_group(&good, 0, GROUP);
	post_next(&post, &head);
	ck_assert_uint_eq(head.type, VALUE_GROUP);
	ck_assert_uint_eq(head.peer, number);
	peer_fini(&good);
	post_stop(&post);
}
END_TEST

START_TEST(test_wrong_key)
{
	struct post post[2];
	struct carrier_keys of_a, of_b;
	int pair[2];

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	post_keys(3, &of_a, &of_b);
	of_b.receive_key[0] ^= 1;
	post_tcp(pair);
	post_connect(&post[0], NODE_B, pair[0], true, &of_a);
	post_connect(&post[1], NODE_A, pair[1], true, &of_b);
	post_refused(&post[1], NODE_A, "of another key");
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

static uint32_t connect_asked(struct post *post, struct peer *peer)
{
	struct frame frame;
	uint32_t number;

	peer_connect(peer, post, NODE_B, true);
	number = post_met(post);
	say_group(post, number);
	peer_hear(peer, VALUE_GROUP, &frame);
	return number;
}

/* It answers what it was asked when that was given up, and names a group. */
static void answer_late(struct peer *peer)
{
	const struct value_head get = post_head(VALUE_GET, 0, 0, GROUP, 0, 0);
	struct frame asked, late;

	peer_hear(peer, VALUE_GET, &asked);
	late = (struct frame){
	    .type = VALUE_HAVE,
	    .form = LAYOUT_FORM_PACKED,
	    .group = frame_mark(&get.group),
	    .sample = asked.sample,
	    .id = asked.id,
	};
	peer_say(peer, &late, "late", 4);
	peer_group(peer, 0, GROUP);
}

/* Asks more often than the breaker bears, is given up each time, and is answered then: of that only the group arrives. false:
 * on a slow machine this took so long that the peer was lost. */
static bool asks_in_vain(struct post *post, struct peer *peer, uint32_t number)
{
	struct value_head head, get;

	for (unsigned i = 0; i < 8; i++) {
		get = post_head(VALUE_GET, number, i, GROUP, i, 0);
		post_say(post, &get, NULL);
		post_next(post, &head);
		if (head.type == VALUE_GONE)
			return false;
		ck_assert_uint_eq(head.type, VALUE_MISS);
		ck_assert_uint_eq(head.id, i);
	}
	answer_late(peer);
	post_next(post, &head);
	if (head.type == VALUE_GONE)
		return false;
	ck_assert_uint_eq(head.type, VALUE_GROUP);
	return true;
}

/* A peer that is asked and says nothing: misses, the breaker opens, and it is lost. An answer that came too late is
 * nobody's. */
START_TEST(test_silent)
{
	struct value_head head, get;
	struct peer peer;
	struct post post;
	uint32_t number;

	post_start(&post, NULL);
	number = connect_asked(&post, &peer);
	while (!asks_in_vain(&post, &peer, number)) {
		post_lost(&post, number, "has said nothing for 2 s");
		peer_fini(&peer);
		number = connect_asked(&post, &peer);
	}
	post_state(&post, number, offsetof(struct carrier_state, is_shut), 1);
	get = post_head(VALUE_GET, number, 7, GROUP, 7, 0);
	do {
		get.id++;
		post_say(&post, &get, NULL);
		post_next(&post, &head);
		usleep(10000);
	} while (head.type == VALUE_MISS);
	ck_assert_uint_eq(head.type, VALUE_GONE);
	post_lost(&post, number, "has said nothing for 2 s");
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* A frame whose length was changed on the way would take whatever comes after it. */
START_TEST(test_never_whole)
{
	struct value_head head;
	struct peer peer;
	struct post post;
	uint32_t number;

	post_start(&post, NULL);
	peer_connect(&peer, &post, NODE_B, false);
	number = post_met(&post);
	peer_group(&peer, 0, GROUP);
	post_next(&post, &head);
	ck_assert_uint_eq(head.type, VALUE_GROUP);
	peer_make(&peer, &a_put, "value", 5);
	peer.frame[2] ^= 1; /* 64 KiB more */
	peer_send(&peer, peer.bytes);
	gone(&post, number);
	post_lost(&post, number, "not whole within 10 s");
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* While the reader lets a peer wait for an answer, the peer hears that we live. */
START_TEST(test_parks)
{
	struct value_head head;
	struct frame frame;
	struct peer peer;
	struct post post;

	post_start(&post, NULL);
	peer_connect(&peer, &post, NODE_B, true);
	post_met(&post);
	peer_group(&peer, 0, GROUP);
	peer_say(&peer, &(struct frame){.type = VALUE_GET, .sample = 3, .room = 100, .id = 42},
		 NULL, 0);
	post_next(&post, &head);
	post_next(&post, &head);
	for (unsigned i = 0; i < 3; i++)
		peer_hear(&peer, FRAME_ALIVE, &frame);
	answer(&post, &head);
	peer_hear(&peer, VALUE_HAVE, &frame);
	ck_assert_uint_eq(frame.id, 42);
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* Until the peer hears what was asked, or the reader hears something first: a miss, as it was too late three times, and the
 * breaker is open. */
static bool is_heard(struct post *post, const struct peer *peer, struct value_head *ret)
{
	struct pollfd readable = {.fd = peer->fd, .events = POLLIN};

	while (poll(&readable, 1, 1) == 0)
		if (post_try_next(post, ret))
			return false;
	return true;
}

/* A value that is larger than the room that was asked for is a lie. */
START_TEST(test_too_large)
{
	struct value_head head, get;
	struct frame frame;
	struct peer peer;
	struct post post;
	uint32_t number;

	post_start(&post, NULL);
	number = connect_asked(&post, &peer);
	do {
		get = post_head(VALUE_GET, number, 1, GROUP, 4, 0);
		get.room = 3;
		post_say(&post, &get, NULL);
		if (is_heard(&post, &peer, &head)) {
			peer_hear(&peer, VALUE_GET, &frame);
			frame.type = VALUE_HAVE;
			frame.form = LAYOUT_FORM_PACKED;
			frame.group = frame_mark(&get.group);
			frame.room = 0;
			peer_say(&peer, &frame, "four", 4);
			post_next(&post, &head);
		}
	} while (head.type == VALUE_MISS); /* given up before: once more */
	ck_assert_uint_eq(head.type, VALUE_GONE);
	post_lost(&post, number, "larger than was asked for");
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* The reader takes nothing for a while: the peer waits, nothing is lost, and it is not said to be silent. */
START_TEST(test_full_rings)
{
	enum { VALUES = 12 };
	struct post post[2];
	uint32_t peer[2];
	struct value_head head;

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join(&post[0], &post[1], false, peer);
	say_group(&post[0], peer[0]);
	for (unsigned i = 0; i < VALUES; i++)
		put(&post[0], peer[0], i, VALUE_MOST);
	/* More than the ring holds was sent, or waits; its carrier says that it lives. */
	post_state(&post[1], peer[1], offsetof(struct carrier_state, puts_received), 3);
	hear_group(&post[1], peer[1]);
	for (unsigned i = 0; i < VALUES; i++) {
		post_next(&post[1], &head);
		ck_assert_uint_eq(head.type, VALUE_PUT);
		ck_assert_uint_eq(head.sample, i);
		check_value(&post[1], &head);
	}
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* One peer takes nothing: what is put there is dropped and counted when its queue is full; the other gets all. */
START_TEST(test_slow)
{
	enum { VALUES = 40 };
	struct post post[2];
	struct peer slow;
	uint32_t peer[2], number;
	struct value_head head;

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join(&post[0], &post[1], true, peer);
	peer_connect(&slow, &post[0], NODE_B + 1, true);
	number = post_met(&post[0]);
	say_group(&post[0], peer[0]);
	say_group(&post[0], number);
	hear_group(&post[1], peer[1]);
	for (unsigned i = 0; i < VALUES; i++) {
		put(&post[0], number, i, VALUE_MOST);
		put(&post[0], peer[0], i, 1000);
		post_next(&post[1], &head);
		ck_assert_uint_eq(head.type, VALUE_PUT);
		ck_assert_uint_eq(head.sample, i);
		check_value(&post[1], &head);
	}
	post_state(&post[0], number, offsetof(struct carrier_state, puts_dropped), 1);
	peer_fini(&slow);
	gone(&post[0], number);
	post_lost(&post[0], number, "");
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* ---- what it may do ---- */

/* What /proc says of it behind that word. */
static long status_of(pid_t pid, const char *word)
{
	char path[64], line[256];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0)
			number = strtol(line + strlen(word), NULL, 10);
	fclose(file);
	return number;
}

START_TEST(test_confined)
{
	struct peer peer;
	struct post post;
	char path[64];

	post_start(&post, getuid() == 0 ? "65534:65534" : NULL);
	peer_connect(&peer, &post, NODE_B, true);
	post_met(&post);
	ck_assert_int_eq(status_of(post.pid, "NoNewPrivs:"), 1);
	ck_assert_int_eq(status_of(post.pid, "Threads:"), 2);
	if (sandbox_is_strict())
		ck_assert_int_eq(status_of(post.pid, "Seccomp:"), 2);
	else
		printf("test_confined: system calls are not filtered in this build: not tested\n");
	if (getuid() == 0)
		ck_assert_int_eq(status_of(post.pid, "Uid:"), 65534);
	snprintf(path, sizeof(path), "/proc/%d/fd/50", (int)post.pid);
	ck_assert_int_lt(access(path, F_OK), 0);
	peer_fini(&peer);
	post_stop(&post);
}
END_TEST

/* ---- again and again ---- */

/* Pages that the kernel has pinned for it, in KiB. */
static unsigned long pinned(const struct post *post)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)post->pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %lu kB", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

static void forget_ends(const struct post *post)
{
	char message[4096];

	while (recv(post->gate, message, sizeof(message), MSG_DONTWAIT) > 0)
		;
}

/* Connects them anew, whatever was before, and carries something both ways. */
static void join_anew(struct post post[2])
{
	uint32_t peer[2];

	join(&post[0], &post[1], true, peer);
	for (unsigned i = 0; i < 2; i++)
		say_group(&post[i], peer[i]);
	for (unsigned i = 0; i < 2; i++) {
		struct value_head head;

		do
			post_next(&post[i], &head);
		while (head.type == VALUE_GONE);
		ck_assert_uint_eq(head.type, VALUE_GROUP);
		ck_assert_uint_eq(head.peer, peer[i]);
		forget_ends(&post[i]);
	}
}

static unsigned cycles(void)
{
	const char *text = getenv("OA_TEST_CYCLES");

	return text ? (unsigned)atoi(text) : 30;
}

/* How many there are of each thing of the machine's devices. */
static void count_things(char *ret, size_t room)
{
	size_t bytes = 0;
	FILE *rdma;

	ret[0] = '\0';
	if (post_transport() == CARRIER_TCP)
		return;
	rdma = popen("rdma resource", "re");
	ck_assert_ptr_nonnull(rdma);
	bytes = fread(ret, 1, room - 1, rdma);
	ret[bytes] = '\0';
	ck_assert_int_eq(pclose(rdma), 0);
	ck_assert_ptr_nonnull(strstr(ret, " qp "));
}

/* Connections begin and end, and in each tenth round a carrier dies: what is pinned stays what it was, and so do queue pairs
 * and all else that a device has. */
START_TEST(test_cycles)
{
	const unsigned n = cycles(), part = n < 10 ? 1 : n / 10;
	char had[1024], has[1024];
	struct post post[2];
	unsigned long kib;

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], NULL);
	join_anew(post);
	kib = pinned(&post[0]);
	ck_assert(post_transport() == CARRIER_TCP || kib > 0);
	count_things(had, sizeof(had));
	for (unsigned i = 1; i <= n; i++) {
		if (i % 10 == 0) {
			post_kill(&post[1]);
			post_start(&post[1], NULL);
		}
		join_anew(post);
		for (unsigned j = 0; j < 2; j++)
			ck_assert_uint_eq(pinned(&post[j]), kib);
		if (i % part)
			continue;
		count_things(has, sizeof(has));
		ck_assert_str_eq(has, had);
		printf("cycles: %u connects of %u, %u deaths; a carrier has pinned %lu KiB, as at "
		       "first\n",
		       i, n, i / 10, kib);
		fflush(stdout);
	}
	printf("cycles: at the end as at first: %s", *had ? had : "no device\n");
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}
END_TEST

/* Of a machine that is not made for it, or spoilt (tests/cluster/verbs.sh): what OA_TEST_REFUSED says is why. */
static void refused(void)
{
	struct carrier_keys of_a, of_b;
	struct post post[2];
	int pair[2];

	for (unsigned i = 0; i < 2; i++)
		post_start(&post[i], getenv("OA_TEST_AS"));
	post_keys(3, &of_a, &of_b);
	post_tcp(pair);
	post_connect(&post[0], NODE_B, pair[0], true, &of_a);
	post_connect(&post[1], NODE_A, pair[1], true, &of_b);
	if (post_transport() == CARRIER_RDMA) {
		post_refused(&post[0], NODE_B, getenv("OA_TEST_REFUSED"));
	} else {
		post_met_by(&post[0], false, getenv("OA_TEST_REFUSED"));
		post_met_by(&post[1], false, getenv("OA_TEST_REFUSED"));
	}
	for (unsigned i = 0; i < 2; i++)
		post_stop(&post[i]);
}

START_TEST(test_refused)
{
	refused();
}
END_TEST

/* A machine without a device: the same, of what access-carrier says itself. */
START_TEST(test_no_device)
{
	if (access("/dev/infiniband", F_OK) == 0)
		return;
	setenv("OA_TEST_TRANSPORT", _i ? "rdma" : "auto", 1);
	setenv("OA_TEST_REFUSED", _i ? "transport = rdma, but" : "", 1);
	refused();
}
END_TEST

static int run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(void)
{
	Suite *suite = suite_create("carrier");
	TCase *two = tcase_create("two"), *one = tcase_create("one"),
	      *often = tcase_create("often");

	tcase_set_timeout(one, PATIENCE_OF_A_TEST_S);
	if (getenv("OA_TEST_REFUSED")) {
		tcase_add_test(one, test_refused);
		suite_add_tcase(suite, one);
		return run(suite);
	}
	tcase_set_timeout(two, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(two, test_both_ways, 0, 2);
	tcase_add_loop_test(two, test_asks, 0, 2);
	tcase_add_test(two, test_killed);
	tcase_add_test(two, test_wrong_key);
	tcase_add_test(two, test_full_rings);
	tcase_add_test(two, test_slow);
	tcase_add_loop_test(two, test_no_device, 0, 2);
	tcase_add_test(one, test_anew);
	tcase_add_test(one, test_new_gates);
	tcase_add_test(one, test_weight);
	tcase_add_loop_test(one, test_wrong, 0, 2);
	tcase_add_test(one, test_silent);
	tcase_add_test(one, test_never_whole);
	tcase_add_test(one, test_parks);
	tcase_add_test(one, test_too_large);
	tcase_add_test(one, test_confined);
	tcase_set_timeout(often, PATIENCE_OF_A_TEST_S + cycles());
	tcase_add_test(often, test_cycles);
	suite_add_tcase(suite, two);
	suite_add_tcase(suite, one);
	suite_add_tcase(suite, often);
	return run(suite);
}
