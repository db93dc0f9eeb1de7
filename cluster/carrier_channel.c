/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection to the carrier of the same user on another node: its life, what it sends, its deadlines.
 *
 * It ends once, for a reason that people can read: the transport is closed at once, and what was asked there is forgotten,
 * for the reader learns by GONE that no answer will come. GONE needs room in the reader's ring, so an ended channel keeps
 * its number until that was said; then accessd and the gate are told.
 *
 * A GET has its deadline from cluster/asked.h; a peer who owes answers and says nothing for 2 s is lost. While our own
 * reader takes nothing we do not listen, so nobody is blamed for silence then.
 */

#include "cluster/carrier_parts.h"

#include <stdarg.h>
#include <stdio.h>

#define MOST_PARTS 16             /* of a message to the kernel */
#define ENOUGH ((size_t)64 << 10) /* not to wait for more */

int channel_begin(struct carrier *carrier, struct channel *channel, const struct channel_new *from)
{
	const struct carrier_keys *keys = from->keys;
	_cleanup_(seal_freep) struct seal *sends = NULL;
	_cleanup_(seal_freep) struct seal *receives = NULL;
	_cleanup_close_ int fd = from->fd;
	struct asked asked;
	int r = seal_new(from->is_sealed, keys->send_key, keys->send_iv, &sends);

	r = r ? r : seal_new(from->is_sealed, keys->receive_key, keys->receive_iv, &receives);
	r = r ? r : asked_init(&asked);
	if (r)
		return r;
	*channel = (struct channel){
	    .peer = channel->peer,
	    .id = from->id,
	    .incarnation = from->incarnation,
	    .weight = from->weight,
	    .alive = alive_from(carrier->now_ns),
	};
	r = transport_tcp_new(base_take_fd(&fd), &channel->transport);
	if (r) {
		asked_fini(&asked);
		return r;
	}
	channel->asked = asked;
	channel->sends = base_take_ptr(sends);
	channel->receives = base_take_ptr(receives);
	channel->phase = CHANNEL_MEETS;
	carrier->has_news = true;
	channel_wait(carrier, channel);
	if (channel_is_open(channel))
		path_begin(carrier, channel);
	return 0;
}

/* NULL: all numbers are in use. */
static struct channel *free_channel(struct carrier *carrier)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++)
		if (carrier->channel[i].phase == CHANNEL_FREE)
			return &carrier->channel[i];
	return NULL;
}

/* The gate knows it, and would take ENDED for the new one's end. */
static void lose_older(struct carrier *carrier, uint64_t id)
{
	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		struct channel *channel = &carrier->channel[i];

		if (channel->phase == CHANNEL_FREE || channel->id != id)
			continue;
		channel->is_replaced = true;
		channel_lose(carrier, channel, "the node has connected anew");
	}
}

/* The weight is the peer's word: it costs him his channel, and nobody else's. */
int channel_meet(struct carrier *carrier, const struct channel_new *from)
{
	struct channel *channel;
	int fd = from->fd;

	lose_older(carrier, from->id);
	channel = from->weight ? free_channel(carrier) : NULL;
	if (channel)
		return channel_begin(carrier, channel, from);
	base_close(&fd);
	return from->weight ? -EUSERS : -ERANGE;
}

void channel_lose(struct carrier *carrier, struct channel *channel, const char *fmt, ...)
{
	char text[sizeof(channel->why.text)];
	va_list args;

	if (!channel_is_open(channel))
		return;
	channel->was_met = channel->phase == CHANNEL_LIVES;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	diag_set(&channel->why, "%s", text);
	path_fini(channel);
	channel->transport->ops->close(channel->transport);
	channel->transport = NULL;
	seal_free(channel->sends);
	seal_free(channel->receives);
	channel->sends = channel->receives = NULL;
	outbox_fini(&channel->outbox);
	frame_fini(&channel->intake);
	names_fini(&channel->told);
	names_fini(&channel->heard);
	asked_fini(&channel->asked);
	channel->phase = CHANNEL_ENDS;
	channel_tick(carrier, channel);
}

void channel_fail(struct carrier *carrier, struct channel *channel, const char *doing, int error)
{
	const char *why = channel->transport->ops->why(channel->transport);
	struct diag diag;

	diag_set(&diag, "%s: %s", doing, why ? why : strerror(error));
	if (transport_is_verbs(channel->transport))
		path_has_failed(carrier, channel, diag.text);
	channel_lose(carrier, channel, "%s", diag.text);
}

/* The reader, then the others, are told. */
static void end(struct carrier *carrier, struct channel *channel)
{
	const struct value_head gone = {
	    .magic = VALUE_MAGIC, .type = VALUE_GONE, .peer = channel->peer};

	if (channel->was_met && !take_tell(carrier, &gone))
		return;
	channel->phase = CHANNEL_FREE;
	control_lost(carrier, channel);
}

/* ---- sending ---- */

/* Sends a long value out of the ring itself: what the kernel does not take now is copied. */
static bool say_directly(struct carrier *carrier, struct channel *channel, const uint8_t *head,
			 const uint8_t *body, uint32_t bytes)
{
	uint8_t first[SEAL_FIRST], tag[SEAL_MOST_TAG];
	struct iovec part[] = {
	    {first, SEAL_FIRST}, {(void *)body, bytes}, {tag, seal_tag(channel->sends)}};
	ssize_t sent;

	seal_around(channel->sends, head, body, bytes, first, tag);
	sent = channel->transport->ops->send(channel->transport, part, 3);
	if (sent < 0 && sent != -EAGAIN) {
		channel_fail(carrier, channel, "sending", (int)-sent);
		return false;
	}
	sent = BASE_MAX(sent, 0);
	channel->state.bytes_sent += (uint64_t)sent;
	channel->alive.said_ns = channel->alive.sent_ns = carrier->now_ns;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(part); i++) {
		const size_t done = BASE_MIN((size_t)sent, part[i].iov_len);
		const size_t left = part[i].iov_len - done;
		uint8_t *place = left ? outbox_room(&channel->outbox, left) : NULL;

		sent -= (ssize_t)done;
		if (left && !place) {
			channel_lose(carrier, channel, "there is no memory for a value's rest");
			return false;
		}
		if (left) {
			memcpy(place, (const uint8_t *)part[i].iov_base + done, left);
			outbox_add(&channel->outbox, left);
		}
	}
	channel_flush(carrier, channel);
	return channel_is_open(channel);
}

bool channel_say(struct carrier *carrier, struct channel *channel, const struct frame *frame,
		 const struct hash_id *hash, const uint8_t *body, uint32_t bytes)
{
	const uint32_t hash_bytes = hash ? FRAME_HASH : 0;
	const size_t size =
	    FRAME_LENGTH + FRAME_HEAD + hash_bytes + (size_t)bytes + seal_tag(channel->sends);
	const bool has_value = frame->type == VALUE_HAVE || frame->type == VALUE_PUT;
	uint8_t head[FRAME_HEAD], *place;
	int r;

	if (channel->outbox.bytes + size >
	    CARRIER_MOST_WAITING + (has_value ? 0 : CARRIER_SMALL_WAITING))
		return false;
	frame_put(frame, head);
	if (bytes >= CARRIER_LONG && !seal_encrypts(channel->sends)) {
		channel_flush(carrier, channel);
		if (!channel_is_open(channel))
			return false;
		if (channel->outbox.bytes == 0 && !channel->is_full)
			return say_directly(carrier, channel, head, body, bytes);
	}
	place = outbox_room(&channel->outbox, size);
	if (!place)
		return false;
	r = seal_frame(channel->sends, head, hash ? hash->bytes : NULL, hash_bytes, body, bytes,
		       place);
	if (r) {
		channel_lose(carrier, channel, "a frame cannot be sealed: %s", strerror(-r));
		return false;
	}
	if (channel->outbox.bytes == 0)
		channel->alive.sent_ns = carrier->now_ns;
	outbox_add(&channel->outbox, size);
	channel->alive.said_ns = carrier->now_ns;
	if (!channel->is_full && channel->outbox.bytes >= ENOUGH)
		channel_flush(carrier, channel);
	return channel_is_open(channel);
}

void channel_flush(struct carrier *carrier, struct channel *channel)
{
	while (channel->outbox.bytes && !channel->is_full) {
		struct iovec part[MOST_PARTS];
		const unsigned n = outbox_parts(&channel->outbox, part, MOST_PARTS);
		const ssize_t sent = channel->transport->ops->send(channel->transport, part, n);

		if (sent == -EAGAIN) {
			channel->is_full = true;
			channel_wait(carrier, channel);
			return;
		}
		if (sent < 0) {
			channel_fail(carrier, channel, "sending", (int)-sent);
			return;
		}
		outbox_sent(&channel->outbox, (size_t)sent);
		channel->state.bytes_sent += (uint64_t)sent;
		channel->alive.sent_ns = carrier->now_ns;
	}
}

void channel_wait(struct carrier *carrier, struct channel *channel)
{
	int r;

	if (!channel_is_open(channel))
		return;
	r = channel->transport->ops->wait(channel->transport, carrier->epoll_fd, channel->peer,
					  !channel->is_held, channel->is_full);
	channel->is_awake = r > 0;
	if (r < 0)
		channel_fail(carrier, channel, "waiting", -r);
}

/* ---- deadlines ---- */

/* Who says that he lives is slow, and not broken. */
static void judge(const struct carrier *carrier, struct channel *channel,
		  const struct asked_get *get)
{
	if (asked_is_silent(&channel->asked, get, channel->alive.heard_ns, carrier->now_ns))
		breaker_bad(&channel->breaker, get->is_try, carrier->now_ns, carrier->chance);
	else
		breaker_good(&channel->breaker, get->is_try);
	channel->state.is_shut = channel->breaker.state != BREAKER_ASKS;
}

static void give_up(struct carrier *carrier, struct channel *channel)
{
	const struct asked_get *get;

	while ((get = asked_oldest(&channel->asked)) != NULL &&
	       asked_until(&channel->asked, channel->alive.heard_ns) <= carrier->now_ns) {
		if (!take_miss(carrier, channel->peer, get->reader_id, &get->group, get->sample))
			return;
		carrier->chance = carrier->chance * 1664525U + 1013904223U;
		judge(carrier, channel, get);
		channel->state.late++;
		carrier->has_news = true;
		asked_drop(&channel->asked, get);
	}
}

static struct alive_now now_of(const struct channel *channel)
{
	return (struct alive_now){.is_held = channel->is_held,
				  .has_begun = channel->intake.end > channel->intake.begin,
				  .waiting = channel->outbox.bytes};
}

static void live(struct carrier *carrier, struct channel *channel)
{
	struct alive_now now = now_of(channel);
	struct diag why;

	if (now.is_held) {
		alive_heard(&channel->alive, carrier->now_ns);
		channel->alive.whole_ns = carrier->now_ns;
	}
	give_up(carrier, channel);
	if (alive_is_to_say(&channel->alive, &now, carrier->now_ns))
		channel_say(carrier, channel, &(struct frame){.type = FRAME_ALIVE}, NULL, NULL, 0);
	now = now_of(channel);
	if (alive_is_lost(&channel->alive, &now, carrier->now_ns, &why))
		channel_lose(carrier, channel, "%s", why.text);
	else
		channel_flush(carrier, channel);
}

void channel_tick(struct carrier *carrier, struct channel *channel)
{
	if (channel->phase == CHANNEL_MEETS)
		path_tick(carrier, channel);
	else if (channel->phase == CHANNEL_LIVES)
		live(carrier, channel);
	else if (channel->phase == CHANNEL_ENDS)
		end(carrier, channel);
}

uint64_t channel_due_ns(const struct channel *channel)
{
	const struct alive_now now = now_of(channel);
	uint64_t due;

	if (channel->phase == CHANNEL_MEETS)
		return path_due_ns(channel);
	if (channel->phase != CHANNEL_LIVES)
		return UINT64_MAX;
	due = alive_due_ns(&channel->alive, &now);
	return asked_oldest(&channel->asked)
		   ? BASE_MIN(due, asked_until(&channel->asked, channel->alive.heard_ns))
		   : due;
}
