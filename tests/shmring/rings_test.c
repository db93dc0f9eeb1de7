/* SPDX-License-Identifier: Apache-2.0 */

/* Items through a ring: order, wrapping, a full ring, one writer beside the reader, and hostile numbers. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "shmring/rings.h"
#include "tests/shmring/suite.h"

enum { RINGS = 3, RING_BYTES = 16384, STORM = 5000 };

static struct rings rings;
static int rings_fd;

static void setup(void)
{
	ck_assert_int_eq(rings_new(RINGS, RING_BYTES, &rings_fd), 0);
	ck_assert_int_eq(rings_attach(rings_fd, &rings), 0);
	ck_assert_uint_eq(rings.n_rings, RINGS);
}

static void teardown(void)
{
	rings_detach(&rings);
	close(rings_fd);
}

/* A form of that many bytes, all of which say its number. */
static bool put(uint32_t ring, uint64_t sample, uint32_t bytes)
{
	const struct rings_item item = {
	    .queue = 1, .row = 2, .task = 3, .form = 4, .bytes = bytes, .sample = sample};
	uint8_t *at = rings_begin(&rings, ring, bytes);

	if (!at)
		return false;
	memset(at, (int)(sample & 0xff), bytes);
	rings_end(&rings, ring, &item);
	return true;
}

static bool take(uint32_t ring, uint64_t sample, uint32_t bytes)
{
	static uint8_t expected[RING_BYTES];
	struct rings_item item;
	bool bad;

	if (!rings_look(&rings, ring, &item, &bad)) {
		ck_assert(!bad);
		return false;
	}
	ck_assert_uint_eq(item.sample, sample);
	ck_assert_uint_eq(item.bytes, bytes);
	ck_assert_uint_eq(item.queue * 1000 + item.row * 100 + item.task * 10 + item.form, 1234);
	memset(expected, (int)(sample & 0xff), bytes);
	ck_assert_int_eq(memcmp(item.data, expected, bytes), 0);
	rings_pass(&rings, ring, &item);
	return true;
}

static uint32_t size_of(uint64_t sample)
{
	return (uint32_t)(sample * 2654435761u % (rings_most(&rings) + 1));
}

START_TEST(items_come_in_order_round_and_round)
{
	for (uint64_t i = 0; i < 1000; i++) {
		ck_assert(put(1, i, size_of(i)));
		ck_assert(take(1, i, size_of(i)));
		ck_assert(!take(1, 0, 0));
		ck_assert(!take(0, 0, 0));
	}
}
END_TEST

START_TEST(a_full_ring_takes_nothing_and_loses_nothing)
{
	uint64_t in = 0, out = 0;

	for (unsigned round = 0; round < 200; round++) {
		while (put(2, in, 100 + (uint32_t)(in % 700)))
			in++;
		for (unsigned n = 0; n <= round % 7; n++, out++)
			ck_assert(take(2, out, 100 + (uint32_t)(out % 700)));
	}
	while (out < in) {
		ck_assert(take(2, out, 100 + (uint32_t)(out % 700)));
		out++;
	}
	ck_assert(!take(2, 0, 0));
}
END_TEST

START_TEST(what_is_too_large_has_no_room)
{
	ck_assert_ptr_null(rings_begin(&rings, 0, rings_most(&rings) + 1));
	ck_assert_ptr_null(rings_begin(&rings, 0, UINT64_MAX));
	ck_assert(put(0, 7, (uint32_t)rings_most(&rings)));
	ck_assert(take(0, 7, (uint32_t)rings_most(&rings)));
}
END_TEST

static void *write_many(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < STORM;)
		if (put(1, i, size_of(i)))
			i++;
		else
			sched_yield();
	return NULL;
}

START_TEST(a_writer_beside_the_reader)
{
	pthread_t writer;

	ck_assert_int_eq(pthread_create(&writer, NULL, write_many, NULL), 0);
	for (uint64_t i = 0; i < STORM;) {
		uint32_t seen = rings_seq(&rings);

		if (take(1, i, size_of(i)))
			i++;
		else
			rings_sleep(&rings, seen, UINT64_MAX);
	}
	pthread_join(writer, NULL);
}
END_TEST

/* ---- hostile ---- */

static struct layout_item *first_item(void)
{
	return (struct layout_item *)(void *)rings.data;
}

static void expect_bad(void)
{
	struct rings_item item;
	bool bad = false;

	ck_assert(!rings_look(&rings, 0, &item, &bad));
	ck_assert(bad);
	ck_assert(!rings_look(&rings, 0, &item, &bad));
	ck_assert(!bad); /* emptied */
}

START_TEST(a_ring_that_makes_no_sense_is_emptied)
{
	struct layout_ring *ring = &rings.head->ring[0];

	ck_assert(put(0, 1, 100));
	first_item()->bytes = UINT32_MAX;
	expect_bad();
	ck_assert(put(0, 2, 100));
	ck_assert(take(0, 2, 100));

	atomic_store(&ring->w_head, 0);
	atomic_store(&ring->r_tail, 0);
	ck_assert(put(0, 3, 100));
	first_item()->magic = LAYOUT_ITEM_SKIP; /* over the head's place */
	expect_bad();

	atomic_store(&ring->w_head, 0);
	atomic_store(&ring->r_tail, 0);
	ck_assert(put(0, 4, 100));
	first_item()->bytes = 200; /* beyond the head */
	expect_bad();

	atomic_store(&ring->w_head, atomic_load(&ring->r_tail) + 2 * (uint64_t)RING_BYTES);
	expect_bad();
	atomic_store(&ring->r_tail, atomic_load(&ring->w_head) + 64);
	ck_assert_ptr_null(rings_begin(&rings, 0, 1));
}
END_TEST

START_TEST(other_memory_is_refused)
{
	struct layout_rings *head = rings.head;
	struct rings again;
	int fd = base_memfd("rings", (uint64_t)rings.bytes);

	ck_assert_int_eq(rings_attach(fd, &again), RINGS_E_BAD); /* no seals */
	close(fd);
	head->ring_bytes *= 2;
	ck_assert_int_eq(rings_attach(rings_fd, &again), RINGS_E_BAD);
	head->ring_bytes /= 2;
	head->n_rings = LAYOUT_MAX_WORKERS + 1;
	ck_assert_int_eq(rings_attach(rings_fd, &again), RINGS_E_BAD);
	head->n_rings = RINGS;
	ck_assert_int_eq(rings_attach(rings_fd, &again), 0);
	rings_detach(&again);
	rings_detach(&again);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, items_come_in_order_round_and_round);
	tcase_add_test(tcase, a_full_ring_takes_nothing_and_loses_nothing);
	tcase_add_test(tcase, what_is_too_large_has_no_room);
	tcase_add_test(tcase, a_writer_beside_the_reader);
	tcase_add_test(tcase, a_ring_that_makes_no_sense_is_emptied);
	tcase_add_test(tcase, other_memory_is_refused);
}

int main(void)
{
	return suite_run("rings", add);
}
