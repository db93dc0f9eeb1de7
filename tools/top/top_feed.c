/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection. It asks once, to watch; from then on the status is read from the memory that accessd renews, and the connection
 * only tells whether accessd lives. An accessd of before, which cannot be watched, is asked each time. When the connection breaks, or
 * nothing new comes, it is made anew: the accessd that comes back may listen elsewhere, a private one instead of the
 * system's, so it is looked for again.
 */

#include "tools/top/top_feed.h"

#include <poll.h>

#include "shmring/proto.h"
#include "tools/ctl.h"

#define FEED_PATIENCE_NS UINT64_C(2000000000) /* of each answer */
#define FEED_PAUSE_NS UINT64_C(500000000)
#define FEED_SILENT_NS UINT64_C(15000000000) /* more than any period of renewals */

void top_feed_init(struct top_feed *feed, const char *named, double period_s)
{
	*feed = (struct top_feed){.named = named,
				  .period_ms = (uint64_t)(period_s * 1000),
				  .ask = {.sock = -1, .program = "access-top"}};
}

void top_feed_fini(struct top_feed *feed)
{
	pane_detach(&feed->pane);
	base_close(&feed->ask.sock);
}

static int feed_connect(struct top_feed *feed)
{
	uint64_t now_ns = base_now_ns();
	char socket[256];

	if (feed->tried_ns && now_ns - feed->tried_ns < FEED_PAUSE_NS)
		return TOP_FEED_E_NONE;
	feed->tried_ns = now_ns;
	if (ctl_find(feed->named, socket, sizeof(socket), &feed->diag) ||
	    ctl_ask_begin(&feed->ask, socket, now_ns + FEED_PATIENCE_NS, &feed->diag))
		return TOP_FEED_E_NONE;
	return 0;
}

static int feed_parse(struct top_feed *feed, const char *text, size_t size, struct json_in **ret)
{
	int r = json_in_parse(text, size, CTL_ASK_MOST, ret, &feed->diag);

	if (r == -ENOMEM)
		diag_set(&feed->diag, "out of memory");
	return r ? TOP_FEED_E_NONE : 0;
}

static int feed_ask(struct top_feed *feed, struct json_in **ret)
{
	_cleanup_free_ char *text = NULL;

	ctl_ask_renew(&feed->ask);
	if (ctl_ask_status(&feed->ask, &text, &feed->diag))
		return TOP_FEED_E_NONE;
	return feed_parse(feed, text, strlen(text), ret);
}

/* ---- watching ---- */

static int feed_watch(struct top_feed *feed)
{
	_cleanup_close_ int fd = -1;
	struct wire_in in;

	pane_detach(&feed->pane);
	ctl_ask_renew(&feed->ask);
	if (ctl_ask(&feed->ask, PROTO_WATCHED, &in, &feed->diag, PROTO_WATCH,
		    WIRE_U64(PROTO_KEY_PERIOD, feed->period_ms)))
		return TOP_FEED_E_NONE;
	fd = wire_take_fd(&in, 0);
	wire_in_fini(&in);
	feed->heard_ns = base_now_ns();
	if (fd >= 0 && pane_attach(fd, &feed->pane) == 0)
		return 0;
	return diag_fail(&feed->diag, TOP_FEED_E_NONE, "accessd's answer has no memory to watch");
}

/* accessd says nothing to a watcher, so whatever comes is its end. */
static bool feed_is_over(const struct top_feed *feed)
{
	struct pollfd pollfd = {.fd = feed->ask.sock, .events = POLLIN};

	return poll(&pollfd, 1, 0) > 0;
}

static int feed_silent(struct top_feed *feed)
{
	if (base_now_ns() - feed->heard_ns < FEED_SILENT_NS)
		return TOP_FEED_E_OLD;
	return diag_fail(&feed->diag, TOP_FEED_E_NONE,
			 "accessd has shown nothing new for %d s: it is stopped, or has much to do",
			 (int)(FEED_SILENT_NS / 1000000000));
}

static int feed_look(struct top_feed *feed, struct json_in **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = pane_read(&feed->pane, &text, &size);

	if (feed_is_over(feed))
		return diag_fail(&feed->diag, TOP_FEED_E_NONE, "accessd has ended");
	if (r == PANE_E_ENDED) {
		r = feed_watch(feed);
		if (r)
			return r;
		r = pane_read(&feed->pane, &text, &size);
	}
	if (r == PANE_E_OLD || r == PANE_E_BUSY)
		return feed_silent(feed);
	if (r)
		return diag_fail(&feed->diag, TOP_FEED_E_NONE,
				 "the status that accessd shows cannot be read");
	feed->heard_ns = base_now_ns();
	return feed_parse(feed, text, size, ret);
}

static int feed_any(struct top_feed *feed, struct json_in **ret)
{
	int r = feed->ask.sock < 0 ? feed_connect(feed) : 0;

	if (r == 0 && feed->ask.minor < PROTO_SINCE_WATCH)
		return feed_ask(feed, ret);
	if (r == 0 && !feed->pane.map)
		r = feed_watch(feed);
	return r ? r : feed_look(feed, ret);
}

int top_feed_next(struct top_feed *feed, struct json_in **ret)
{
	int r = feed_any(feed, ret);

	if (r == TOP_FEED_E_NONE) {
		pane_detach(&feed->pane);
		base_close(&feed->ask.sock);
	}
	return r;
}
