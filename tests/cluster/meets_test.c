/* SPDX-License-Identifier: Apache-2.0 */

/* Two carriers' parts that agree on how values go, with devices that are none: what fails leads to the socket on both sides, or
 * to an end with a reason, and leaves no queue pair behind. */

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/carrier_parts.h"
#include "tests/cluster/fake_verbs.h"
#include "tests/suite.h"

const struct verbs_ops *const verbs_ib = &fake_verbs;

static struct carrier carriers[2];
static unsigned met[2], lost[2];

/* ---- what of a carrier is not here ---- */

_Noreturn void control_fatal(const char *event, const char *text)
{
	(void)event;
	(void)text;
	abort();
}

void control_met(struct carrier *carrier, const struct channel *channel)
{
	(void)channel;
	met[carrier - carriers]++;
}

void control_lost(struct carrier *carrier, const struct channel *channel)
{
	(void)channel;
	lost[carrier - carriers]++;
}

int control_watch(const struct carrier *carrier, int fd, uint64_t tag)
{
	(void)carrier;
	(void)fd;
	(void)tag;
	return 0;
}

/* ---- two of them ---- */

static void start(struct carrier *carrier, enum carrier_transport transport)
{
	int fd;

	*carrier =
	    (struct carrier){.gate_fd = -1, .now_ns = UINT64_C(1) << 40, .transport = transport};
	carrier->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_eq(rings_new(1, VALUE_RING_BYTES, &fd), 0);
	ck_assert_int_eq(rings_attach(fd, &carrier->to_reader), 0);
	close(fd);
	path_open(carrier);
}

static void connect_both(void)
{
	const struct carrier_keys keys = {.send_key = {0}};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct channel_new from = {
		    .id = 9 - i, .incarnation = 1, .weight = 1, .fd = pair[i], .keys = &keys};

		ck_assert_int_eq(channel_begin(&carriers[i], &carriers[i].channel[0], &from), 0);
	}
}

static bool meets(void)
{
	return carriers[0].channel[0].phase == CHANNEL_MEETS ||
	       carriers[1].channel[0].phase == CHANNEL_MEETS;
}

/* Until both know, or a day has passed. */
static void let_them(void)
{
	for (unsigned n = 0; n < 100000 && meets(); n++)
		for (unsigned i = 0; i < 2; i++) {
			struct channel *channel = &carriers[i].channel[0];

			carriers[i].now_ns += CARRIER_TRIES_NS / 100;
			if (channel->phase == CHANNEL_MEETS)
				path_woke(&carriers[i], channel);
			if (channel->phase == CHANNEL_MEETS)
				frame_receive(&carriers[i], channel);
			if (channel->phase == CHANNEL_MEETS)
				path_tick(&carriers[i], channel);
		}
	ck_assert(!meets());
}

static void stop(void)
{
	fake_set(FAKE_NO_FAULT);
	for (unsigned i = 0; i < 2; i++) {
		channel_lose(&carriers[i], &carriers[i].channel[0], "the test has ended");
		if (carriers[i].pool)
			verbs_pool_free(carriers[i].pool);
		rings_detach(&carriers[i].to_reader);
		close(carriers[i].epoll_fd);
	}
	ck_assert_uint_eq(fake_in_use(), 0);
	ck_assert_uint_eq(fake_open_devices(), 0);
}

static bool is_rdma(unsigned i)
{
	const struct channel *channel = &carriers[i].channel[0];

	return channel->phase == CHANNEL_LIVES && transport_is_verbs(channel->transport);
}

START_TEST(test_meet)
{
	start(&carriers[0], CARRIER_RDMA);
	start(&carriers[1], CARRIER_AUTO);
	for (unsigned i = 0; i < 3; i++) {
		connect_both();
		let_them();
		ck_assert(is_rdma(0) && is_rdma(1));
		for (unsigned j = 0; j < 2; j++)
			channel_lose(&carriers[j], &carriers[j].channel[0], "again");
		ck_assert_uint_eq(fake_in_use(), 0);
	}
	ck_assert_uint_eq(met[0], 3);
	stop();
}
END_TEST

static const struct {
	enum fake_fault before, after; /* the device is opened, and the two are connected */
	enum carrier_transport other;
	const char *why;
} faults[] = {
    {FAKE_NO_DEVICE, FAKE_NO_DEVICE, CARRIER_AUTO, "no RDMA device"},
    {FAKE_NO_FAULT, FAKE_NO_FAULT, CARRIER_TCP, "the other node: transport = tcp"},
    {FAKE_NO_FAULT, FAKE_NO_ADDRESS, CARRIER_AUTO, "is down"},
    {FAKE_NO_FAULT, FAKE_POST_FAILS, CARRIER_AUTO, "cannot be made ready"},
    {FAKE_NO_FAULT, FAKE_NO_CONNECT, CARRIER_AUTO, "cannot reach the other end"},
    {FAKE_NO_FAULT, FAKE_BLACK_HOLE, CARRIER_AUTO, "no message came through"},
    {FAKE_NO_FAULT, FAKE_SEND_FAILS, CARRIER_AUTO, "retry counter exceeded"},
    {FAKE_NO_FAULT, FAKE_WILD_CREDITS, CARRIER_AUTO, "credits that it does not have"},
};

/* By TCP with auto; not at all with rdma; either way for that reason. */
START_TEST(test_fault)
{
	const unsigned which = (unsigned)_i / 2;
	const bool must = _i % 2;

	fake_set(faults[which].before);
	start(&carriers[0], must ? CARRIER_RDMA : CARRIER_AUTO);
	start(&carriers[1], faults[which].other);
	fake_set(faults[which].after);
	connect_both();
	let_them();
	ck_assert(!is_rdma(0) && !is_rdma(1));
	ck_assert_uint_eq(met[0], !must);
	ck_assert_uint_eq(lost[0], must);
	if (must)
		ck_assert_ptr_nonnull(strstr(carriers[0].channel[0].why.text, faults[which].why));
	else
		ck_assert_ptr_nonnull(
		    strstr(carriers[0].channel[0].path.why.text, faults[which].why));
	if (!must)
		ck_assert_uint_eq(met[1], 1);
	ck_assert_uint_eq(fake_in_use(), 0);
	stop();
}
END_TEST

/* One that says nothing is lost; its pair is free again. */
START_TEST(test_silent)
{
	struct channel *channel = &carriers[0].channel[0];

	start(&carriers[0], CARRIER_AUTO);
	start(&carriers[1], CARRIER_AUTO);
	connect_both();
	carriers[0].now_ns += CARRIER_MEETS_NS;
	path_tick(&carriers[0], channel);
	ck_assert_int_eq(channel->phase, CHANNEL_FREE);
	ck_assert_ptr_nonnull(strstr(channel->why.text, "does not say how"));
	ck_assert_uint_eq(fake_in_use(), 1);
	stop();
}
END_TEST

/* A way that was taken and fails ends; the next connection uses the socket for a while, and then tries again. */
START_TEST(test_failed_lately)
{
	start(&carriers[0], CARRIER_AUTO);
	start(&carriers[1], CARRIER_AUTO);
	connect_both();
	let_them();
	ck_assert(is_rdma(0));
	fake_set(FAKE_POST_FAILS);
	ck_assert(!channel_say(&carriers[0], &carriers[0].channel[0],
			       &(struct frame){.type = FRAME_ALIVE}, NULL, NULL, 0) ||
		  carriers[0].channel[0].outbox.bytes);
	channel_flush(&carriers[0], &carriers[0].channel[0]);
	ck_assert_int_eq(carriers[0].channel[0].phase, CHANNEL_FREE);
	fake_set(FAKE_NO_FAULT);
	channel_lose(&carriers[1], &carriers[1].channel[0], "it ended");
	connect_both();
	let_them();
	ck_assert(!is_rdma(0) && !is_rdma(1));
	ck_assert_ptr_nonnull(strstr(carriers[0].channel[0].path.why.text, "cannot be posted"));
	for (unsigned i = 0; i < 2; i++) {
		channel_lose(&carriers[i], &carriers[i].channel[0], "again");
		carriers[i].now_ns += CARRIER_SHUN_NS;
	}
	connect_both();
	let_them();
	ck_assert(is_rdma(0) && is_rdma(1));
	stop();
}
END_TEST

/* The device goes: its connections end, the next one uses the socket. */
START_TEST(test_device_gone)
{
	start(&carriers[0], CARRIER_AUTO);
	start(&carriers[1], CARRIER_AUTO);
	connect_both();
	let_them();
	fake_set(FAKE_DEVICE_GONE);
	path_device(&carriers[0]);
	ck_assert_int_eq(carriers[0].channel[0].phase, CHANNEL_FREE);
	ck_assert_ptr_nonnull(strstr(carriers[0].channel[0].why.text, "fake0 is gone"));
	ck_assert_ptr_null(carriers[0].pool);
	fake_set(FAKE_NO_FAULT);
	channel_lose(&carriers[1], &carriers[1].channel[0], "it ended");
	connect_both();
	let_them();
	ck_assert(!is_rdma(0) && !is_rdma(1));
	ck_assert_uint_eq(met[0], 2);
	stop();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_meet);
	tcase_add_loop_test(tcase, test_fault, 0, 2 * (int)BASE_ARRAY_LEN(faults));
	tcase_add_test(tcase, test_silent);
	tcase_add_test(tcase, test_failed_lately);
	tcase_add_test(tcase, test_device_gone);
}

int main(void)
{
	return suite_run("meets", add);
}
