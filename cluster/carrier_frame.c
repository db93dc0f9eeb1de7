/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes over a connection: frames, opened straight into the reader's ring, where nobody sees them before they are
 * known to be good, and checked like everything that a stranger says. One that makes no sense ends the connection.
 *
 * A buffer begins with a frame or a part of one. What is behind it is received up to where the frame ends if it is a long
 * one, and as it comes if not, so a value is never moved within the buffer. It is as long as the longest frame that came.
 * Where long values follow each other, only a little is received ahead, and the rest of one that is there as a whole goes
 * from the kernel to its place in the ring.
 *
 * If the ring is full the connection is not read, and the peer waits in his kernel, then in his queue, then is told.
 */

#include "cluster/carrier_parts.h"

#include "base/little.h"

#define INTAKE_AHEAD ((size_t)128 << 10) /* received without knowing what it is */
#define INTAKE_LITTLE ((size_t)4 << 10)  /* not worth a call of its own, nor a detour */
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
	rings_end(&carrier->to_reader, 0,
		  &(struct rings_item){.bytes = (uint32_t)sizeof(*head) + head->bytes});
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

static const char *on_known_group(struct carrier *carrier, struct channel *channel,
				  const struct frame *frame, uint8_t *place, uint32_t body)
{
	struct value_head head;

	if (frame->group >= channel->heard.n)
		return "a group was not told before it was named";
	if (frame->type == VALUE_GET) {
		alive_is_asked(&channel->alive, carrier->now_ns);
		channel->state.asked++;
	} else if (frame->type == VALUE_PUT) {
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
	} else if (!head->room) {
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
	if ((frame->type == FRAME_PATH) != (channel->phase == CHANNEL_MEETS))
		return "it talks of values before, or after, how they go was agreed on";
	switch (frame->type) {
	case FRAME_PATH:
		return path_heard(carrier, channel, place + sizeof(struct value_head));
	case VALUE_GROUP:
		return on_group(carrier, channel, frame, place, body);
	case VALUE_GET:
	case VALUE_PUT:
	case VALUE_SPREAD:
		return on_known_group(carrier, channel, frame, place, body);
	case VALUE_HAVE:
	case VALUE_MISS:
		return on_answer(carrier, channel, frame, place, body);
	default:
		return NULL; /* it lives */
	}
}

/* ---- frames ---- */

static uint32_t body_of(const struct channel *channel, const uint8_t first[SEAL_FIRST])
{
	return little_32(first) - FRAME_HEAD - seal_tag(channel->receives);
}

/* Where a frame's body goes. NULL: the ring is full. */
static uint8_t *place_of(struct carrier *carrier, struct channel *channel, uint32_t body)
{
	uint8_t *place =
	    rings_begin(&carrier->to_reader, 0, sizeof(struct value_head) + (uint64_t)body);

	if (!place)
		carrier->is_held = channel->is_held = true;
	return place;
}

/* A whole frame, whose body goes behind the head that belongs at `place`. false: the connection has ended. */
static bool open_at(struct carrier *carrier, struct channel *channel, const uint8_t *first,
		    const uint8_t *body, const uint8_t *tag, uint8_t *place)
{
	const uint32_t bytes = body_of(channel, first);
	const char *wrong = "a frame makes no sense";
	uint8_t head[FRAME_HEAD];
	struct frame frame;

	channel->intake.had_long = bytes >= CARRIER_LONG;
	if (seal_open(channel->receives, first, body, bytes, tag, head,
		      place + sizeof(struct value_head)))
		wrong = "a frame is not as it was sent: changed, repeated or left out on the way, "
			"or of another key";
	else if (frame_get(head, bytes, &frame))
		wrong = on_frame(carrier, channel, &frame, place, bytes);
	if (wrong)
		channel_lose(carrier, channel, "%s", wrong);
	channel->alive.whole_ns = carrier->now_ns;
	return channel_is_open(channel);
}

/* All whole frames that are in the buffer. false: the ring is full, or the connection has ended. */
static bool open_all(struct carrier *carrier, struct channel *channel)
{
	struct intake *intake = &channel->intake;
	size_t bytes;

	while ((bytes = frame_bytes(intake)) != 0) {
		const uint8_t *first = intake->data + intake->begin;
		const uint8_t *tag = first + bytes - seal_tag(channel->receives);
		uint8_t *place;

		if (!frame_length_check((uint32_t)(bytes - FRAME_LENGTH),
					seal_tag(channel->receives))) {
			channel_lose(carrier, channel, "a frame of %zu bytes makes no sense",
				     bytes);
			return false;
		}
		if (bytes > intake->end - intake->begin)
			return true;
		place = place_of(carrier, channel, body_of(channel, first));
		if (!place || !open_at(carrier, channel, first, first + SEAL_FIRST, tag, place))
			return false;
		intake->begin += bytes;
	}
	return true;
}

/* ---- receiving ---- */

/* The frame that the buffer begins with, or a little of it: should its body go to the ring at once? */
static bool is_direct(const struct intake *intake)
{
	const size_t has = intake->end - intake->begin;

	return has >= SEAL_FIRST && has <= SEAL_FIRST + INTAKE_LITTLE &&
	       frame_bytes(intake) >= has + CARRIER_LONG;
}

/* Bytes that came, or 0: the connection has ended, or has nothing now. */
static size_t receive_parts(struct carrier *carrier, struct channel *channel,
			    const struct iovec *part, unsigned n)
{
	const ssize_t bytes = channel->transport->ops->receive(channel->transport, part, n);

	if (bytes == 0)
		channel_lose(carrier, channel,
			     channel->intake.end > channel->intake.begin
				 ? "it ended the connection within a frame"
				 : "it ended the connection");
	else if (bytes < 0 && bytes != -EAGAIN)
		channel_fail(carrier, channel, "receiving", (int)-bytes);
	if (bytes <= 0)
		return 0;
	if (channel->intake.end == channel->intake.begin)
		channel->alive.whole_ns = carrier->now_ns;
	channel->state.bytes_received += (uint64_t)bytes;
	alive_heard(&channel->alive, carrier->now_ns);
	carrier->has_news = true;
	return (size_t)bytes;
}

/*
 * The rest of a long value into the ring, and a little of what follows into the buffer. Nobody else may write to the ring
 * before it is whole: if it is not at once, what came goes into the buffer after all.
 */
static size_t receive_value(struct carrier *carrier, struct channel *channel)
{
	struct intake *intake = &channel->intake;
	const size_t has = intake->end - intake->begin - SEAL_FIRST, at = intake->begin;
	const uint32_t body = body_of(channel, intake->data + at);
	const unsigned tag_bytes = seal_tag(channel->receives);
	uint8_t tag[SEAL_MOST_TAG], *to, *place = place_of(carrier, channel, body);
	struct iovec part[3];
	size_t came, rest;

	if (!place)
		return 0;
	to = place + sizeof(struct value_head);
	part[0] = (struct iovec){to + has, body - has};
	part[1] = (struct iovec){tag, tag_bytes};
	part[2] = (struct iovec){intake->data + intake->end, INTAKE_LITTLE};
	came = receive_parts(carrier, channel, part, 3);
	rest = BASE_MIN(came, body - has);
	if (came < body - has + tag_bytes) {
		if (came == 0)
			return 0;
		memcpy(intake->data + intake->end, to + has, rest);
		memcpy(intake->data + intake->end + rest, tag, came - rest);
		intake->end += came;
		return came;
	}
	memcpy(to, intake->data + at + SEAL_FIRST, has);
	intake->begin = intake->end;
	intake->end += came - rest - tag_bytes;
	open_at(carrier, channel, intake->data + at, to, tag, place);
	return came;
}

/* What may be received into the buffer at once. */
static size_t wanted(const struct intake *intake)
{
	const size_t has = intake->end - intake->begin, bytes = frame_bytes(intake);

	if (bytes > has + INTAKE_LITTLE)
		return bytes - has;
	return intake->had_long ? INTAKE_LITTLE : INTAKE_AHEAD;
}

/* As receive_parts(). */
static size_t receive_some(struct carrier *carrier, struct channel *channel)
{
	struct intake *intake = &channel->intake;
	const size_t most = wanted(intake);
	size_t came;

	if (intake->begin == intake->end)
		intake->begin = intake->end = 0;
	if (!make_room(intake, intake->end - intake->begin + most)) {
		channel_lose(carrier, channel, "there is no memory to receive a frame");
		return 0;
	}
	if (is_direct(intake))
		return receive_value(carrier, channel);
	came =
	    receive_parts(carrier, channel, &(struct iovec){intake->data + intake->end, most}, 1);
	if (channel_is_open(channel))
		intake->end += came;
	return came;
}

void frame_receive(struct carrier *carrier, struct channel *channel)
{
	size_t sum = 0;

	channel->is_held = false;
	while (open_all(carrier, channel) && sum < INTAKE_AT_ONCE) {
		const size_t bytes = receive_some(carrier, channel);

		sum += bytes;
		if (bytes == 0 || !channel_is_open(channel))
			break;
	}
	channel_wait(carrier, channel);
}
