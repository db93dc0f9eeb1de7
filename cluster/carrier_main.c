/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-carrier: carries values between the readers of one user on two nodes.
 *
 * accessd starts it with the control socket at descriptor 3, as the user (--as). It maps two rings, starts the thread that
 * sleeps on one of them, and enters its sandbox: from then on it has the descriptors that it was given, and those that the
 * gate sends, and can open, connect and start nothing. It lives as long as accessd: the kernel kills it with its parent.
 *
 * The loop takes its turns (carrier_turn.c), and sleeps when there was no item; the one that comes then wakes it
 * (carrier_sleep.c).
 */

#include "cluster/carrier_parts.h"

#include "base/sandbox.h"
#include "base/started.h"

#include <sys/epoll.h>

#define MAIN_MEMORY (UINT64_C(2) << 30)

/* ---- the loop ---- */

/* Until the first thing that is due; -1: nothing is. */
static int patience_ms(const struct carrier *carrier)
{
	const uint64_t due = turn_due_ns(carrier);

	if (due == UINT64_MAX)
		return -1;
	return due <= carrier->now_ns ? 0 : (int)((due - carrier->now_ns + 999999) / 1000000);
}

static void on_event(struct carrier *carrier, uint64_t tag)
{
	if (tag == CONTROL_TAG_ACCESSD)
		control_receive(carrier);
	else if (tag == CONTROL_TAG_GATE)
		control_gate(carrier);
	else if (tag == CONTROL_TAG_WAKE)
		sleep_woke(carrier);
	else if (tag == CONTROL_TAG_DEVICE)
		path_device(carrier);
}

static void wait_and_serve(struct carrier *carrier, int timeout_ms)
{
	/* A channel has a socket, and perhaps a queue pair. */
	struct epoll_event event[2 * VALUE_MOST_PEERS + 4];
	int n = epoll_wait(carrier->epoll_fd, event, BASE_ARRAY_LEN(event), timeout_ms);

	if (n < 0 && errno != EINTR)
		control_fatal("wait", strerror(errno));
	carrier->now_ns = base_now_ns();
	for (int i = 0; i < n; i++)
		if (event[i].data.u64 < VALUE_MOST_PEERS)
			turn_woke(carrier, &carrier->channel[event[i].data.u64], event[i].events);
		else
			on_event(carrier, event[i].data.u64);
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrier->channel[i].is_awake)
			turn_woke(carrier, &carrier->channel[i], 0);
}

static _Noreturn void run(struct carrier *carrier)
{
	for (;;) {
		const uint32_t seen = rings_seq(&carrier->from_reader);
		bool more;

		carrier->is_held = false;
		more = turn_take(carrier);
		turn_tick(carrier);
		if (!more && !carrier->is_held)
			sleep_arm(carrier, seen);
		wait_and_serve(carrier, more ? 0 : patience_ms(carrier));
	}
}

/* ---- the process ---- */

static void begin(struct carrier *carrier)
{
	int r;

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		carrier->channel[i].peer = i;
	carrier->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (carrier->epoll_fd < 0)
		control_fatal("epoll", strerror(errno));
	r = seal_init();
	if (r)
		control_fatal("cipher", "libcrypto has no AES-128-GCM");
	control_begin(carrier);
	r = sandbox_drop_capabilities();
	if (r)
		control_fatal("capabilities", strerror(-r));
	path_open(carrier);
	r = base_random(&carrier->chance, sizeof(carrier->chance));
	if (r)
		control_fatal("random", strerror(-r));
	carrier->serial =
	    carrier->chance; /* ids of a carrier before this one are not taken for its own */
	r = sleep_init(carrier);
	r = r ? r : control_watch(carrier, carrier->wake_fd, CONTROL_TAG_WAKE);
	if (r == 0)
		r = sandbox_enter_talking(MAIN_MEMORY,
					  carrier->pool ? verbs_pool_device_fd(carrier->pool) : -1);
	if (r)
		control_fatal("sandbox", strerror(-r));
}

int main(int argc, char **argv)
{
	static struct carrier carrier = {.gate_fd = -1};

	started_options(
	    "access-carrier", argc, argv,
	    "access-carrier [--as UID:GID]: carries samples to other nodes for accessd, which "
	    "starts it with the control socket at descriptor 3\n",
	    NULL, NULL);
	started_confine("access-carrier");
	tzset(); /* or the first line of a log opens the time zone's file, which ends a confined process */
	started_follow("access-carrier");
	begin(&carrier);
	carrier.now_ns = base_now_ns();
	run(&carrier);
}
