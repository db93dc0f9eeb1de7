/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes over a connection: frames, opened straight into the reader's tray, where nobody sees them before they are
 * known to be good, and checked like everything that a stranger says. One that makes no sense ends the connection.
 *
 * A buffer begins with a frame or a part of one. What is behind it is received up to where the frame ends if it is a long
 * one, and as it comes if not, so a value is never moved within the buffer. It is as long as the longest frame that came.
 *
 * If the tray is full the connection is not read, and the peer waits in his kernel, then in his queue, then is told.
 */

#include "cluster/carrier_parts.h"

#include "base/little.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INTAKE_AHEAD ((size_t)128 << 10) /* received without knowing what it is */
#define INTAKE_LITTLE ((size_t)16 << 10) /* a rest that is not worth a call of its own */
#define INTAKE_AT_ONCE ((size_t)1 << 20) /* then it is others' turn */

void frame_fini(struct intake *intake)
{
	free(intake->data);
	*intake = (struct intake){.data = NULL};
}

/* Bytes of the frame at the buffer's begin, its length included; 0: its length is not there yet. */
static size_t frame_bytes(const struct intake *intake)
{
	if (intake->end - intake->begin < FRAME_LENGTH)
		return 0;
	return FRAME_LENGTH + (size_t)little_32(intake->data + intake->begin);
}

/* Room for `needed` bytes from the frame's begin. */
static bool make_room(struct intake *intake, size_t needed)
{
	const size_t has = intake->end - intake->begin;
	uint8_t *data = intake->data;

	if (data && intake->size - intake->begin >= needed)
		return true;
	if (intake->size < needed) {
		data = malloc(needed + INTAKE_AHEAD);
		if (!data)
			return false;
		intake->size = needed + INTAKE_AHEAD;
	}
	if (has)
		memmove(data, intake->data + intake->begin, has);
	if (data != intake->data)
		free(intake->data);
	intake->data = data;
	intake->begin = 0;
	intake->end = has;
	return true;
}

/* ---- a frame that was opened: its body lies behind the place of a head ---- */

static void deliver(struct carrier *carrier, uint8_t *place, const struct value_head *head)
{
	memcpy(place, head, sizeof(*head));
	tray_end(&carrier->to_reader, 0,
		 &(struct tray_item){.bytes = (uint32_t)sizeof(*head) + head->bytes});
}

static const char *on_group(struct carrier *carrier, struct channel *channel,
			    const struct frame *frame, uint8_t *place, uint32_t body)
{
	uint8_t *at = place + sizeof(struct value_head);
	struct value_head head;
	struct hash_id group;

	if (frame->group != channel->heard.n)
		return "a group's number is out of order";
	memcpy(&group, at, sizeof(group));
	if (names_add(&channel->heard, &group))
		return "there is no memory for a group's name";
	memmove(at, at + FRAME_HASH, body - FRAME_HASH);
	frame_to_value(frame, body, &group, channel->peer, &head);
	deliver(carrier, place, &head);
	return NULL;
}

static const char *on_get_or_put(struct carrier *carrier, struct channel *channel,
				 const struct frame *frame, uint8_t *place, uint32_t body)
{
	struct value_head head;

	if (frame->group >= channel->heard.n)
		return "a group was not told before it was named";
	if (frame->type == VALUE_GET) {
		channel->owes++;
		channel->owes_until_ns = carrier->now_ns + CARRIER_OWES_NS;
		channel->said_ns =
		    carrier->now_ns; /* time to answer, before it is said that we live */
		channel->state.asked++;
	} else {
		channel->state.puts_received++;
		channel->state.value_bytes_received += body;
	}
	frame_to_value(frame, body, &channel->heard.group[frame->group], channel->peer, &head);
	deliver(carrier, place, &head);
	return NULL;
}

static void note_answer(struct carrier *carrier, struct channel *channel,
			const struct asked_get *get, const struct value_head *head)
{
	const uint64_t took_ns = carrier->now_ns - get->sent_ns;
	struct carrier_state *state = &channel->state;

	breaker_good(&channel->breaker, get->is_try);
	state->is_shut = channel->breaker.state != BREAKER_ASKS;
	state->answer_us = state->gots + state->misses ? (7 * state->answer_us + took_ns / 1000) / 8
						       : took_ns / 1000;
	asked_note(&channel->asked, took_ns);
	if (head->type == VALUE_HAVE) {
		state->gots++;
		state->value_bytes_received += head->bytes;
	} else {
		state->misses++;
	}
}

/* One that was given up is passed over, as is what another accessd's GET would have got. */
static const char *on_answer(struct carrier *carrier, struct channel *channel,
			     const struct frame *frame, uint8_t *place, uint32_t body)
{
	const struct asked_get *get = asked_find(&channel->asked, frame->id);
	struct value_head head;

	if (!get || frame->group != frame_mark(&get->group) || frame->sample != get->sample)
		return NULL;
	if (body > get->room)
		return "a value is larger than was asked for";
	frame_to_value(frame, body, &get->group, channel->peer, &head);
	head.id = get->reader_id;
	note_answer(carrier, channel, get, &head);
	asked_drop(&channel->asked, get);
	deliver(carrier, place, &head);
	return NULL;
}

/* NULL: it is done; or what is wrong with it. */
static const char *on_frame(struct carrier *carrier, struct channel *channel,
			    const struct frame *frame, uint8_t *place, uint32_t body)
{
	switch (frame->type) {
	case VALUE_GROUP:
		return on_group(carrier, channel, frame, place, body);
	case VALUE_GET:
	case VALUE_PUT:
		return on_get_or_put(carrier, channel, frame, place, body);
	case VALUE_HAVE:
	case VALUE_MISS:
		return on_answer(carrier, channel, frame, place, body);
	default:
		return NULL; /* it lives */
	}
}

/* ---- frames ---- */

/* The whole frame at the buffer's begin. false: the tray is full, or the connection has ended. */
static bool open_frame(struct carrier *carrier, struct channel *channel)
{
	const struct intake *intake = &channel->intake;
	const uint8_t *data = intake->data + intake->begin;
	const uint32_t body = little_32(data) - FRAME_HEAD - seal_tag(channel->receives);
	uint8_t head[FRAME_HEAD];
	uint8_t *place =
	    tray_begin(&carrier->to_reader, 0, sizeof(struct value_head) + (uint64_t)body);
	const char *wrong = "a frame makes no sense";
	struct frame frame;

	if (!place) {
		carrier->is_held = channel->is_held = true;
		return false;
	}
	if (seal_open_head(channel->receives, data, head) ||
	    seal_open_body(channel->receives, data, place + sizeof(struct value_head)))
		wrong = "a frame is not as it was sent: changed, repeated or left out on the way, "
			"or of another key";
	else if (frame_get(head, body, &frame))
		wrong = on_frame(carrier, channel, &frame, place, body);
	if (wrong)
		channel_lose(carrier, channel, "%s", wrong);
	return wrong == NULL;
}

/* All whole frames that are there. false: as open_frame(). */
static bool open_all(struct carrier *carrier, struct channel *channel)
{
	struct intake *intake = &channel->intake;
	size_t bytes;

	while ((bytes = frame_bytes(intake)) != 0) {
		if (!frame_length_check((uint32_t)(bytes - FRAME_LENGTH),
					seal_tag(channel->receives))) {
			channel_lose(carrier, channel, "a frame of %zu bytes makes no sense",
				     bytes);
			return false;
		}
		if (bytes > intake->end - intake->begin)
			return true;
		if (!open_frame(carrier, channel))
			return false;
		intake->begin += bytes;
	}
	return true;
}

/* What may be received at once. */
static size_t wanted(const struct intake *intake)
{
	const size_t has = intake->end - intake->begin, bytes = frame_bytes(intake);

	return bytes > has + INTAKE_LITTLE ? bytes - has : INTAKE_AHEAD;
}

/* Bytes that came; 0: none, for now or for good. */
static size_t receive_some(struct carrier *carrier, struct channel *channel)
{
	struct intake *intake = &channel->intake;
	const size_t most = wanted(intake);
	ssize_t bytes;

	if (intake->begin == intake->end)
		intake->begin = intake->end = 0;
	if (!make_room(intake, intake->end - intake->begin + most)) {
		channel_lose(carrier, channel, "there is no memory to receive a frame");
		return 0;
	}
	bytes =
	    channel->transport->ops->receive(channel->transport, intake->data + intake->end, most);
	if (bytes == 0)
		channel_lose(carrier, channel,
			     intake->end > intake->begin ? "it ended the connection within a frame"
							 : "it ended the connection");
	else if (bytes < 0 && bytes != -EAGAIN)
		channel_lose(carrier, channel, "receiving: %s", strerror((int)-bytes));
	if (bytes <= 0)
		return 0;
	intake->end += (size_t)bytes;
	channel->state.bytes_received += (uint64_t)bytes;
	channel->heard_ns = carrier->now_ns;
	channel->silent_from_ns = 0;
	carrier->has_news = true;
	return (size_t)bytes;
}

void frame_receive(struct carrier *carrier, struct channel *channel)
{
	size_t sum = 0;

	channel->is_held = false;
	while (open_all(carrier, channel) && sum < INTAKE_AT_ONCE) {
		const size_t bytes = receive_some(carrier, channel);

		sum += bytes;
		if (bytes == 0)
			break;
	}
	channel_wait(carrier, channel);
}
