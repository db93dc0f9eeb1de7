/* SPDX-License-Identifier: Apache-2.0 */

/* A stream of bytes over queue pairs: two ends of devices that are none, and their faults. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/transport_verbs.h"
#include "cluster/value.h"
#include "tests/cluster/fake_verbs.h"
#include "tests/suite.h"

enum { TAG = 3 };

struct end {
	struct verbs_pool *pool;
	struct transport *way;
	struct path_address address;
	int epoll_fd;
};

static struct end a, b;
static struct diag why;

static void open_both(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = i ? &b : &a;

		ck_assert_int_eq(verbs_pool_new(&fake_verbs, &end->pool, &why), 0);
		end->epoll_fd = epoll_create1(0);
	}
}

static void close_both(void)
{
	fake_set(FAKE_NO_FAULT);
	verbs_pool_free(a.pool);
	verbs_pool_free(b.pool);
	close(a.epoll_fd);
	close(b.epoll_fd);
	ck_assert_uint_eq(fake_open_devices(), 0);
	ck_assert_uint_eq(fake_unmet(), 0);
}

static void make(struct end *end)
{
	ck_assert_int_eq(transport_verbs_new(end->pool, &end->way, &end->address, &why), 0);
}

static void take(struct end *end, int fd)
{
	ck_assert_int_eq(transport_verbs_works(end->way), 1);
	ck_assert_int_eq(transport_verbs_take(end->way, fd, end->epoll_fd, TAG), 0);
}

static void join(void)
{
	int pair[2];

	make(&a);
	make(&b);
	ck_assert_int_eq(transport_verbs_connect(a.way, &b.address, &why), 0);
	ck_assert_int_eq(transport_verbs_connect(b.way, &a.address, &why), 0);
	ck_assert_int_eq(transport_verbs_works(a.way), 0);
	ck_assert_int_eq(transport_verbs_try(a.way), 0);
	ck_assert_int_eq(transport_verbs_works(b.way), 0); /* theirs came, ours did not go */
	ck_assert_int_eq(transport_verbs_try(b.way), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	take(&a, pair[0]);
	take(&b, pair[1]);
}

static void part(void)
{
	a.way->ops->close(a.way);
	b.way->ops->close(b.way);
	ck_assert_uint_eq(fake_in_use(), 0);
}

static ssize_t send_some(struct end *end, const void *bytes, size_t n)
{
	return end->way->ops->send(end->way, &(struct iovec){(void *)bytes, n}, 1);
}

static ssize_t receive_some(struct end *end, void *bytes, size_t n)
{
	return end->way->ops->receive(end->way, &(struct iovec){bytes, n}, 1);
}

/* What epoll says now of that end: its events, or 0. */
static uint32_t woken(const struct end *end)
{
	struct epoll_event event;
	const int n = epoll_wait(end->epoll_fd, &event, 1, 0);

	ck_assert_int_ge(n, 0);
	if (n)
		ck_assert_uint_eq(event.data.u64, TAG);
	return n ? event.events : 0;
}

static int wait_for(struct end *end, bool receives, bool sends)
{
	return end->way->ops->wait(end->way, end->epoll_fd, TAG, receives, sends);
}

/* ---- bytes ---- */

static uint8_t out[1 << 20], in[1 << 20];

static uint32_t chance(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Pieces of all lengths, both ways, as many as there is room for: all bytes come once, in order, and no message met a queue
 * without a receive. */
START_TEST(test_bytes)
{
	struct end *ends[2] = {&a, &b};
	size_t sent[2] = {0, 0}, came[2] = {0, 0};
	uint32_t seed = (uint32_t)_i;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)chance(&seed);
	open_both();
	join();
	while (came[0] < sizeof(out) || came[1] < sizeof(out)) {
		const unsigned who = chance(&seed) & 1;
		struct end *end = ends[who];
		const size_t most = 1 + chance(&seed) % 100000;
		ssize_t n;

		if (chance(&seed) & 1) {
			n = send_some(end, out + sent[who],
				      BASE_MIN(most, sizeof(out) - sent[who]));
			ck_assert(n >= 0 || n == -EAGAIN);
			sent[who] += (size_t)BASE_MAX(n, 0);
		} else {
			n = receive_some(end, in, most);
			ck_assert(n > 0 || n == -EAGAIN);
			n = BASE_MAX(n, 0);
			ck_assert_int_eq(memcmp(in, out + came[!who], (size_t)n), 0);
			came[!who] += (size_t)n;
		}
	}
	ck_assert_int_eq(receive_some(&a, in, 1), -EAGAIN);
	part();
	close_both();
}
END_TEST

/* One that does not listen is sent no more than its receives; what it takes gives room again, and that wakes. */
START_TEST(test_credits)
{
	bool receives, sends;
	size_t sum = 0;
	ssize_t n;

	open_both();
	join();
	while ((n = send_some(&a, out, sizeof(out))) > 0)
		sum += (size_t)n;
	ck_assert_int_eq(n, -EAGAIN);
	ck_assert_uint_gt(sum, 0);
	ck_assert_int_eq(wait_for(&a, true, true), 0);
	ck_assert_uint_eq(woken(&a), 0);
	ck_assert_int_eq(wait_for(&b, true, false), 1); /* there is something already */
	while (sum) {
		n = receive_some(&b, in, sizeof(in));
		ck_assert_int_gt(n, 0);
		sum -= (size_t)n;
	}
	ck_assert_uint_eq(woken(&a), EPOLLIN);
	a.way->ops->woke(a.way, EPOLLIN, &receives, &sends);
	ck_assert(!receives && sends);
	ck_assert_int_gt(send_some(&a, out, sizeof(out)), 0);
	part();
	close_both();
}
END_TEST

/* It sleeps when there is nothing, and is woken by what comes. */
START_TEST(test_wakes)
{
	bool receives, sends;

	open_both();
	join();
	ck_assert_int_eq(wait_for(&b, true, false), 0);
	ck_assert_uint_eq(woken(&b), 0);
	ck_assert_int_eq(send_some(&a, "hello", 5), 5);
	ck_assert_uint_eq(woken(&b), EPOLLIN);
	b.way->ops->woke(b.way, EPOLLIN, &receives, &sends);
	ck_assert(receives);
	ck_assert_int_eq(receive_some(&b, in, 3), 3);
	ck_assert_int_eq(wait_for(&b, true, false), 1);
	ck_assert_int_eq(receive_some(&b, in + 3, 9), 2);
	ck_assert_int_eq(memcmp(in, "hello", 5), 0);
	ck_assert_int_eq(wait_for(&b, true, false), 0);
	ck_assert_uint_eq(woken(&b), 0);
	part();
	close_both();
}
END_TEST

/* The other side's socket closes: what came before is received first. */
START_TEST(test_ends)
{
	bool receives, sends;

	open_both();
	join();
	ck_assert_int_eq(send_some(&a, "last", 4), 4);
	a.way->ops->close(a.way);
	ck_assert_uint_ne(woken(&b) & EPOLLRDHUP, 0);
	b.way->ops->woke(b.way, EPOLLRDHUP, &receives, &sends);
	ck_assert(receives);
	ck_assert_int_eq(receive_some(&b, in, 9), 4);
	ck_assert_int_eq(receive_some(&b, in, 9), 0);
	ck_assert_uint_eq(woken(&b), 0);
	b.way->ops->close(b.way);
	close_both();
}
END_TEST

/* ---- faults ---- */

START_TEST(test_no_device)
{
	fake_set(FAKE_NO_DEVICE);
	ck_assert_int_eq(verbs_pool_new(&fake_verbs, &a.pool, &why), -ENODEV);
	ck_assert_str_eq(why.text, "there is no RDMA device");
	ck_assert_uint_eq(fake_open_devices(), 0);
}
END_TEST

START_TEST(test_no_address)
{
	open_both();
	fake_set(FAKE_NO_ADDRESS);
	ck_assert_int_eq(transport_verbs_new(a.pool, &a.way, &a.address, &why), -ENETDOWN);
	ck_assert_ptr_nonnull(strstr(why.text, "is down"));
	ck_assert_uint_eq(fake_in_use(), 0);
	close_both();
}
END_TEST

START_TEST(test_no_connect)
{
	open_both();
	make(&a);
	make(&b);
	fake_set(FAKE_NO_CONNECT);
	ck_assert_int_eq(transport_verbs_connect(a.way, &b.address, &why), -EHOSTUNREACH);
	part();
	close_both();
}
END_TEST

/* A pair that never comes up: nothing is done, and nobody is told that it works. */
START_TEST(test_black_hole)
{
	open_both();
	make(&a);
	make(&b);
	ck_assert_int_eq(transport_verbs_connect(a.way, &b.address, &why), 0);
	ck_assert_int_eq(transport_verbs_connect(b.way, &a.address, &why), 0);
	fake_set(FAKE_BLACK_HOLE);
	ck_assert_int_eq(transport_verbs_try(a.way), 0);
	ck_assert_int_eq(transport_verbs_try(b.way), 0);
	ck_assert_int_eq(transport_verbs_works(a.way), 0);
	ck_assert_int_eq(transport_verbs_works(b.way), 0);
	part();
	close_both();
}
END_TEST

static const struct {
	enum fake_fault fault;
	const char *why;
} faults[] = {
    {FAKE_SEND_FAILS, "retry counter exceeded"},
    {FAKE_POST_FAILS, "cannot be posted"},
    {FAKE_WILD_CREDITS, "credits that it does not have"},
};

/* Whatever fails ends it with a reason, at each call from then on; the pair is as new for the next one. */
START_TEST(test_fails)
{
	struct end *end = faults[_i].fault == FAKE_WILD_CREDITS ? &b : &a;
	ssize_t n;

	open_both();
	join();
	fake_set(faults[_i].fault);
	n = send_some(&a, "hello", 5);
	ck_assert(n == 5 || n < 0);
	n = receive_some(end, in, 9);
	ck_assert_int_lt(n, 0);
	ck_assert_int_ne(n, -EAGAIN);
	ck_assert_int_eq(send_some(end, "more", 4), n);
	ck_assert_int_eq(wait_for(end, true, false), 1);
	ck_assert_ptr_nonnull(strstr(end->way->ops->why(end->way), faults[_i].why));
	part();
	fake_set(FAKE_NO_FAULT);
	join();
	ck_assert_int_eq(send_some(&a, "again", 5), 5);
	ck_assert_int_eq(receive_some(&b, in, 9), 5);
	part();
	close_both();
}
END_TEST

/* One message without bytes and credits tries the way. More of them cost the sender nothing, and us a turn each. */
START_TEST(test_empties)
{
	open_both();
	join();
	ck_assert_int_eq(receive_some(&b, in, 9), -EAGAIN);
	ck_assert_int_eq(transport_verbs_try(a.way), 0);
	ck_assert_int_eq(receive_some(&b, in, 9), -EPROTO);
	ck_assert_ptr_nonnull(strstr(b.way->ops->why(b.way), "say nothing"));
	part();
	close_both();
}
END_TEST

/* What was under way when a pair was closed is not taken for what its next owner did. */
START_TEST(test_no_ghosts)
{
	open_both();
	for (unsigned i = 0; i < 100; i++) {
		join();
		ck_assert_int_gt(send_some(&a, out, sizeof(out)), 0);
		ck_assert_int_gt(send_some(&b, out, 100), 0);
		ck_assert_int_eq(receive_some(&a, in, 50), 50);
		part();
	}
	join();
	ck_assert_int_eq(receive_some(&a, in, sizeof(in)), -EAGAIN);
	ck_assert_int_eq(receive_some(&b, in, sizeof(in)), -EAGAIN);
	part();
	close_both();
}
END_TEST

/* A pair that was given back is used again when all others were: also in a cell of as many nodes as there may be, of which
 * one comes again and again. */
START_TEST(test_rests)
{
	const unsigned resting = _i ? 4 : VALUE_MOST_PEERS + 3;
	struct transport *taken[VALUE_MOST_PEERS - 1];
	uint32_t number[2 * VALUE_MOST_PEERS];

	open_both();
	for (unsigned i = 0; _i && i < BASE_ARRAY_LEN(taken); i++) {
		make(&a);
		taken[i] = a.way;
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(number); i++) {
		make(&a);
		number[i] = a.address.number;
		a.way->ops->close(a.way);
		for (unsigned k = i - BASE_MIN(i, resting); k < i; k++)
			ck_assert_uint_ne(number[k], number[i]);
	}
	for (unsigned i = 0; _i && i < BASE_ARRAY_LEN(taken); i++)
		taken[i]->ops->close(taken[i]);
	close_both();
}
END_TEST

/* A pair that cannot be reset is not used again; when none is left, that is said. */
START_TEST(test_no_reset)
{
	open_both();
	make(&b);
	fake_set(FAKE_NO_RESET);
	for (
	    unsigned i = 0; i < 2;
	    i++) { /* also when it could be: one that could not be trusted once is not asked again */
		ck_assert_int_eq(transport_verbs_new(a.pool, &a.way, &a.address, &why), -EBUSY);
		fake_set(FAKE_NO_FAULT);
	}
	b.way->ops->close(b.way);
	ck_assert_ptr_nonnull(strstr(why.text, "no queue pair of fake0 is free"));
	close_both();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_bytes, 0, 8);
	tcase_add_test(tcase, test_credits);
	tcase_add_test(tcase, test_wakes);
	tcase_add_test(tcase, test_ends);
	tcase_add_test(tcase, test_no_device);
	tcase_add_test(tcase, test_no_address);
	tcase_add_test(tcase, test_no_connect);
	tcase_add_test(tcase, test_black_hole);
	tcase_add_loop_test(tcase, test_fails, 0, (int)BASE_ARRAY_LEN(faults));
	tcase_add_test(tcase, test_empties);
	tcase_add_test(tcase, test_no_ghosts);
	tcase_add_loop_test(tcase, test_rests, 0, 2);
	tcase_add_test(tcase, test_no_reset);
}

int main(void)
{
	return suite_run("verbs", add);
}
