/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-carrier: carries values between the readers of one user on two nodes.
 *
 * accessd starts it with the control socket at descriptor 3, as the user (--as). It maps two trays, starts the thread that
 * sleeps on one of them, and enters its sandbox: from then on it has the descriptors that it was given, and those that the
 * gate sends, and can open, connect and start nothing. It lives as long as accessd: the kernel kills it with its parent.
 *
 * The loop takes items of the reader's tray, some at a time, sends what they made, receives what came, and does what is
 * due. It sleeps when there was no item; the one that comes then wakes it (carrier_sleep.c).
 */

#include "cluster/carrier_parts.h"

#include "base/log.h"
#include "base/sandbox.h"
#include "base/started.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MAIN_MEMORY (UINT64_C(2) << 30)
#define MAIN_ITEMS 64                  /* taken before others have their turn, */
#define MAIN_BYTES (UINT64_C(1) << 20) /* or so many bytes of them */

/* ---- the loop ---- */

/* true: items were taken, and there may be more. */
static bool take_items(struct carrier *carrier)
{
	uint64_t bytes = 0;

	for (unsigned n = 0; n < MAIN_ITEMS && bytes < MAIN_BYTES; n++) {
		struct tray_item item;
		bool bad;

		if (!tray_look(&carrier->from_reader, 0, &item, &bad)) {
			if (bad)
				log_line(LOG_LEVEL_WARN, "tray-bad", "whose=reader");
			return n > 0 || bad;
		}
		if (!take_item(carrier, &item))
			return false;
		tray_pass(&carrier->from_reader, 0, &item);
		bytes += item.bytes;
	}
	return true;
}

static void tick(struct carrier *carrier)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		struct channel *channel = &carrier->channel[i];

		if (channel_is_open(channel) && channel->is_held)
			frame_receive(carrier, channel);
		channel_tick(carrier, channel);
	}
	if (carrier->now_ns < carrier->state_ns || !carrier->has_news)
		return;
	control_states(carrier);
	carrier->has_news = false;
	carrier->state_ns = carrier->now_ns + CARRIER_STATE_NS;
}

/* In ms, of the first thing that is due; -1: nothing is. */
static int patience_ms(const struct carrier *carrier)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		if (carrier->channel[i].is_awake)
			return 0;
		due = BASE_MIN(due, channel_due_ns(&carrier->channel[i]));
	}
	if (carrier->has_news)
		due = BASE_MIN(due, carrier->state_ns);
	if (carrier->is_held)
		due = BASE_MIN(due, carrier->now_ns + CARRIER_RETRY_NS);
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

static void on_channel_event(struct carrier *carrier, struct channel *channel, uint32_t events)
{
	bool receives, sends;

	if (!channel_is_open(channel))
		return;
	channel->is_awake = false;
	if (channel->phase == CHANNEL_MEETS)
		path_woke(carrier, channel);
	if (!channel_is_open(channel))
		return;
	channel->transport->ops->woke(channel->transport, events, &receives, &sends);
	if (sends)
		channel->is_full = false;
	channel_wait(carrier, channel); /* what woke once may have to be told to wake again */
	if (receives && channel_is_open(channel))
		frame_receive(carrier, channel);
	if (channel->phase == CHANNEL_MEETS)
		path_tick(carrier, channel);
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
			on_channel_event(carrier, &carrier->channel[event[i].data.u64],
					 event[i].events);
		else
			on_event(carrier, event[i].data.u64);
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrier->channel[i].is_awake)
			on_channel_event(carrier, &carrier->channel[i], 0);
}

static _Noreturn void run(struct carrier *carrier)
{
	for (;;) {
		const uint32_t seen = tray_seq(&carrier->from_reader);
		bool more;

		carrier->is_held = false;
		more = take_items(carrier);
		tick(carrier);
		if (!more && !carrier->is_held)
			sleep_arm(carrier, seen);
		wait_and_serve(carrier, more ? 0 : patience_ms(carrier));
	}
}

/* ---- the process ---- */

static void parse_options(int argc, char **argv)
{
	static const char usage[] =
	    "access-carrier [--as UID:GID]: carries samples to other nodes for accessd, which "
	    "starts it with the control socket at descriptor 3\n";

	if (argc == 3 && strcmp(argv[1], "--as") == 0) {
		started_become("access-carrier", argv[2]);
	} else if (argc != 1) {
		const bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;

		fputs(usage, is_help ? stdout : stderr);
		exit(is_help ? 0 : 2);
	}
}

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
	if (r == 0)
		r = control_watch(carrier, carrier->wake_fd, CONTROL_TAG_WAKE);
	if (r == 0)
		r = sandbox_enter_talking(MAIN_MEMORY,
					  carrier->pool ? verbs_pool_device_fd(carrier->pool) : -1);
	if (r)
		control_fatal("sandbox", strerror(-r));
}

int main(int argc, char **argv)
{
	static struct carrier carrier = {.gate_fd = -1};

	parse_options(argc, argv);
	started_confine("access-carrier");
	tzset(); /* or the first line of a log opens the time zone's file, which ends a confined process */
	started_follow("access-carrier");
	begin(&carrier);
	carrier.now_ns = base_now_ns();
	run(&carrier);
}
