/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How values go to a node: the two carriers agree on it (cluster/path.h) before accessd hears that they have met. The way is
 * tried in both directions before it is taken; what fails leads to the socket, or, where accessd.conf says that it must be
 * RDMA, to an end with the reason.
 *
 * A way that was taken and failed ends its connection, as any does. The next one to that node goes over the socket for a
 * while, or each connection would fail at its first value.
 */

#include "cluster/carrier_parts.h"

#include "base/log.h"

#include <stdio.h>
#include <sys/epoll.h>

#define NO_REASON "no reason is known" /* a "no" without any is nonsense to who hears it */

static void say(struct carrier *carrier, struct channel *channel,
		const struct path_message *message)
{
	uint8_t body[PATH_BYTES];

	path_write(message, body);
	if (!channel_say(carrier, channel, &(struct frame){.type = FRAME_PATH}, NULL, body,
			 PATH_BYTES))
		channel_lose(carrier, channel, "there is no memory to agree with it how values go");
	else
		channel_flush(carrier, channel);
}

static void say_done(struct carrier *carrier, struct channel *channel, const char *why)
{
	struct path_message message = {.step = PATH_DONE, .yes = why == NULL};

	if (channel->path.said_done)
		return;
	channel->path.said_done = true;
	if (why) {
		why = why[0] ? why : NO_REASON;
		channel->path.has_failed = true;
		diag_set(&channel->path.why, "%s", why);
		snprintf(message.text, sizeof(message.text), "%s", why);
	}
	say(carrier, channel, &message);
}

void path_fini(struct channel *channel)
{
	struct transport *verbs = channel->path.verbs;

	if (verbs)
		verbs->ops->close(verbs);
	channel->path.verbs = NULL;
}

/* ---- a way that failed ---- */

static struct path_failed *failed_of(struct carrier *carrier, uint64_t id)
{
	struct path_failed *oldest = &carrier->failed[0];

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		struct path_failed *failed = &carrier->failed[i];

		if (failed->until_ns && failed->id == id)
			return failed;
		if (failed->until_ns < oldest->until_ns)
			oldest = failed;
	}
	return oldest;
}

void path_has_failed(struct carrier *carrier, const struct channel *channel, const char *why)
{
	struct path_failed *failed = failed_of(carrier, channel->id);

	failed->id = channel->id;
	failed->until_ns = carrier->now_ns + CARRIER_SHUN_NS;
	diag_set(&failed->why, "%s", why);
}

static const char *failed_lately(struct carrier *carrier, uint64_t id)
{
	const struct path_failed *failed = failed_of(carrier, id);

	return failed->id == id && failed->until_ns > carrier->now_ns ? failed->why.text : NULL;
}

/* ---- which way ---- */

static void settle(struct carrier *carrier, struct channel *channel)
{
	struct path *path = &channel->path;

	if (path->has_failed && carrier->transport == CARRIER_RDMA) {
		channel_lose(carrier, channel, "transport = rdma, but %s", path->why.text);
		return;
	}
	if (path->has_failed) {
		path_fini(channel);
	} else {
		struct transport *verbs = path->verbs;
		const int fd = transport_tcp_take(channel->transport);
		int r;

		channel->transport = verbs;
		path->verbs = NULL;
		r = transport_verbs_take(verbs, fd, carrier->epoll_fd, channel->peer);
		if (r)
			channel_lose(carrier, channel, "waiting: %s", strerror(-r));
		else if (channel->intake.begin != channel->intake.end)
			channel_lose(carrier, channel, "it said more on the way that was left");
	}
	if (channel->phase != CHANNEL_MEETS)
		return;
	channel->phase = CHANNEL_LIVES;
	channel->is_full = false;
	control_met(carrier, channel);
	channel_wait(carrier, channel);
}

/* Both have said all, and it has left. */
static bool is_agreed(const struct channel *channel)
{
	const struct path *path = &channel->path;

	return channel->phase == CHANNEL_MEETS && channel->outbox.bytes == 0 && path->heard_offer &&
	       (!path->is_tried || (path->said_done && path->heard_done));
}

static void try_it(struct carrier *carrier, struct channel *channel)
{
	struct path *path = &channel->path;
	int r = path->said_done || !path->heard_ready ? 0 : transport_verbs_works(path->verbs);

	if (r < 0)
		say_done(carrier, channel, path->verbs->ops->why(path->verbs));
	else if (r > 0)
		say_done(carrier, channel, NULL);
	else if (!path->said_done && carrier->now_ns >= path->until_ns)
		say_done(
		    carrier, channel,
		    "no message came through between the two devices: are they of one network?");
}

void path_tick(struct carrier *carrier, struct channel *channel)
{
	if (channel->is_held) { /* nobody is blamed for what we do not hear */
		channel->path.begun_ns = carrier->now_ns;
		channel->path.until_ns = carrier->now_ns + CARRIER_TRIES_NS;
	}
	if (channel->phase == CHANNEL_MEETS && channel->path.is_tried)
		try_it(carrier, channel);
	if (channel->phase == CHANNEL_MEETS)
		channel_flush(carrier, channel);
	if (is_agreed(channel))
		settle(carrier, channel);
	else if (channel->phase == CHANNEL_MEETS &&
		 carrier->now_ns >= channel->path.begun_ns + CARRIER_MEETS_NS)
		channel_lose(carrier, channel, "it does not say how values are to go");
}

uint64_t path_due_ns(const struct channel *channel)
{
	const struct path *path = &channel->path;
	const uint64_t last = path->begun_ns + CARRIER_MEETS_NS;

	return path->is_tried && !path->said_done ? BASE_MIN(last, path->until_ns) : last;
}

/* ---- what is said ---- */

void path_begin(struct carrier *carrier, struct channel *channel)
{
	struct path_message offer = {.step = PATH_OFFER};
	struct path *path = &channel->path;
	const char *failed =
	    carrier->transport == CARRIER_AUTO ? failed_lately(carrier, channel->id) : NULL;

	path->begun_ns = carrier->now_ns;
	if (!carrier->pool)
		path->why = carrier->no_verbs;
	else if (failed)
		diag_set(&path->why, "it failed within the last minute: %s", failed);
	else
		offer.yes = transport_verbs_new(carrier->pool, &path->verbs, &offer.address,
						&path->why) == 0;
	path->has_failed = !offer.yes;
	if (!offer.yes && !path->why.text[0])
		diag_set(&path->why, NO_REASON);
	snprintf(offer.text, sizeof(offer.text), "%s", path->why.text);
	say(carrier, channel, &offer);
}

static const char *on_offer(struct carrier *carrier, struct channel *channel,
			    const struct path_message *offer)
{
	struct path *path = &channel->path;
	struct diag why = {""};

	if (path->heard_offer)
		return "it offers twice how values are to go";
	path->heard_offer = true;
	if (!offer->yes) {
		if (!path->has_failed)
			diag_set(&path->why, "the other node: %s", offer->text);
		path->has_failed = true;
		return NULL;
	}
	if (path->has_failed)
		return NULL;
	path->is_tried = true;
	path->until_ns = carrier->now_ns + CARRIER_TRIES_NS;
	if (transport_verbs_connect(path->verbs, &offer->address, &why))
		say_done(carrier, channel, why.text);
	else
		say(carrier, channel, &(struct path_message){.step = PATH_READY, .yes = true});
	return NULL;
}

static const char *on_ready(struct carrier *carrier, struct channel *channel)
{
	struct path *path = &channel->path;

	if (!path->is_tried || path->heard_ready || path->heard_done)
		return "it is ready for what was not offered";
	path->heard_ready = true;
	if (path->said_done)
		return NULL;
	if (transport_verbs_try(path->verbs) ||
	    path->verbs->ops->wait(path->verbs, carrier->epoll_fd, channel->peer, true, false) < 0)
		say_done(carrier, channel, "a message cannot be sent");
	return NULL;
}

static const char *on_done(struct carrier *carrier, struct channel *channel,
			   const struct path_message *done)
{
	struct path *path = &channel->path;
	char text[PATH_TEXT + 32];

	if (!path->is_tried || path->heard_done)
		return "it has tried what was not offered";
	path->heard_done = true;
	if (done->yes)
		return NULL;
	snprintf(text, sizeof(text), "the other node: %s", done->text);
	say_done(carrier, channel, text);
	if (!path->has_failed)
		diag_set(&path->why, "%s", text);
	path->has_failed = true;
	return NULL;
}

static const char *on_message(struct carrier *carrier, struct channel *channel,
			      const struct path_message *message)
{
	switch (message->step) {
	case PATH_OFFER:
		return on_offer(carrier, channel, message);
	case PATH_READY:
		return on_ready(carrier, channel);
	default:
		return on_done(carrier, channel, message);
	}
}

const char *path_heard(struct carrier *carrier, struct channel *channel, const uint8_t *body)
{
	struct path_message message;
	const char *wrong;

	if (!path_read(body, &message))
		return "what it says of how values are to go makes no sense";
	wrong = on_message(carrier, channel, &message);
	/* The first value may lie behind it. If the way is another one, nothing does. */
	if (!wrong && channel->path.has_failed && is_agreed(channel))
		settle(carrier, channel);
	return wrong;
}

void path_woke(struct carrier *carrier, struct channel *channel)
{
	struct transport *verbs = channel->path.verbs;
	bool receives, sends;

	if (!verbs)
		return;
	verbs->ops->woke(verbs, EPOLLIN, &receives, &sends);
	if (verbs->ops->wait(verbs, carrier->epoll_fd, channel->peer, true, false) < 0)
		say_done(carrier, channel, verbs->ops->why(verbs));
	path_tick(carrier, channel);
}

/* ---- the device ---- */

void path_open(struct carrier *carrier)
{
	int r;

	if (carrier->transport == CARRIER_TCP)
		diag_set(&carrier->no_verbs, "transport = tcp");
	else if (!verbs_ib)
		diag_set(&carrier->no_verbs, "this access-carrier was built without libibverbs");
	else
		r = verbs_pool_new(verbs_ib, &carrier->pool, &carrier->no_verbs);
	if (carrier->pool) {
		r = control_watch(carrier, verbs_pool_event_fd(carrier->pool), CONTROL_TAG_DEVICE);
		if (r)
			control_fatal("device", strerror(-r));
		log_line(LOG_LEVEL_INFO, "rdma", "device=%s", verbs_pool_device(carrier->pool));
	} else if (carrier->transport == CARRIER_RDMA) {
		log_line(LOG_LEVEL_ERROR, "rdma", "text=\"%s\"", carrier->no_verbs.text);
	}
}

void path_device(struct carrier *carrier)
{
	if (!carrier->pool || !verbs_pool_broken(carrier->pool))
		return;
	diag_set(&carrier->no_verbs, "%s is gone", verbs_pool_device(carrier->pool));
	log_line(LOG_LEVEL_ERROR, "rdma", "text=\"%s\"", carrier->no_verbs.text);
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		struct channel *channel = &carrier->channel[i];

		if ((channel->phase == CHANNEL_MEETS && channel->path.verbs) ||
		    (channel->phase == CHANNEL_LIVES && transport_is_verbs(channel->transport)))
			channel_lose(carrier, channel, "%s", carrier->no_verbs.text);
	}
	verbs_pool_free(carrier->pool);
	carrier->pool = NULL;
}
