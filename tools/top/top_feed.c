/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection, which asks for the status each time. When it breaks, or accessd says nothing, it is made anew: the
 * accessd that comes back may listen elsewhere, a private one instead of the system's, so it is looked for again.
 */

#include "tools/top/top_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shmring/proto.h"
#include "tools/ctl.h"

#define FEED_PATIENCE_MS 2000
#define FEED_PAUSE_NS UINT64_C(500000000)
#define FEED_MAX (16u << 20)

void top_feed_init(struct top_feed *feed, const char *named)
{
	*feed = (struct top_feed){.named = named, .ask = {.sock = -1, .program = "access-top"}};
}

void top_feed_fini(struct top_feed *feed)
{
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
	    ctl_ask_begin(&feed->ask, socket, FEED_PATIENCE_MS, &feed->diag))
		return TOP_FEED_E_NONE;
	return 0;
}

static int feed_parse(struct top_feed *feed, const char *text, size_t size, struct json_in **ret)
{
	int r = json_in_parse(text, size, FEED_MAX, ret, &feed->diag);

	if (r == -ENOMEM)
		diag_set(&feed->diag, "out of memory");
	return r ? TOP_FEED_E_NONE : 0;
}

static int feed_read(struct top_feed *feed, int fd, struct json_in **ret)
{
	_cleanup_free_ char *text = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || status.st_size > FEED_MAX) {
		diag_set(&feed->diag, "accessd's answer has no status");
		return TOP_FEED_E_NONE;
	}
	text = malloc((size_t)status.st_size + 1);
	if (!text || base_read_all(fd, text, (size_t)status.st_size)) {
		diag_set(&feed->diag, "the status cannot be read");
		return TOP_FEED_E_NONE;
	}
	return feed_parse(feed, text, (size_t)status.st_size, ret);
}

static int feed_ask(struct top_feed *feed, struct json_in **ret)
{
	_cleanup_close_ int fd = -1;
	struct wire_out out;
	struct wire_in in;

	wire_out_init(&out, PROTO_STATUS);
	if (ctl_ask(&feed->ask, &out, PROTO_STATUS_REPLY, &in, &feed->diag))
		return TOP_FEED_E_NONE;
	fd = wire_take_fd(&in, 0);
	wire_in_fini(&in);
	return feed_read(feed, fd, ret);
}

int top_feed_next(struct top_feed *feed, struct json_in **ret)
{
	int r = feed->ask.sock < 0 ? feed_connect(feed) : 0;

	if (r == 0)
		r = feed_ask(feed, ret);
	if (r)
		base_close(&feed->ask.sock);
	return r;
}
