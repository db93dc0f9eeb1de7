/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What our reader says, and to whom it goes. The reader is the same user's, and believed no more for that: a head is
 * copied once and checked, its bytes are what the item has.
 *
 * Nobody waits for a slow peer: what a queue has no room for is a miss, which the source replaces (GET, HAVE), or is
 * dropped (PUT). What has to be told to our own reader waits for it, and so does all that comes behind.
 */

#include "cluster/carrier_parts.h"

#include "base/log.h"

bool take_tell(struct carrier *carrier, const struct value_head *head)
{
	uint8_t *place = rings_begin(&carrier->to_reader, 0, sizeof(*head));

	if (!place) {
		carrier->is_held = true;
		return false;
	}
	memcpy(place, head, sizeof(*head));
	rings_end(&carrier->to_reader, 0, &(struct rings_item){.bytes = sizeof(*head)});
	return true;
}

bool take_miss(struct carrier *carrier, uint32_t peer, uint64_t id, const struct hash_id *group,
	       uint64_t sample)
{
	return take_tell(carrier, &(struct value_head){
				      .magic = VALUE_MAGIC,
				      .type = VALUE_MISS,
				      .peer = peer,
				      .id = id,
				      .sample = sample,
				      .group = *group,
				  });
}

static void take_group(struct carrier *carrier, struct channel *channel,
		       const struct value_head *head, const uint8_t *note)
{
	struct frame frame;

	if (names_find(&channel->told, &head->group) != NAMES_NONE)
		return;
	if (channel->told.n == FRAME_MOST_GROUPS) {
		channel_lose(carrier, channel,
			     "%u groups were told, which is all that a connection can name",
			     channel->told.n);
		return;
	}
	frame_of_value(head, channel->told.n, 0, &frame);
	if (!channel_say(carrier, channel, &frame, &head->group, note, head->bytes) ||
	    names_add(&channel->told, &head->group))
		channel_lose(carrier, channel, "there is no room to tell it a group");
}

/* false: the reader must be told first that nobody is asked. */
static bool take_get(struct carrier *carrier, struct channel *channel,
		     const struct value_head *head)
{
	const uint32_t group = names_find(&channel->told, &head->group);
	enum breaker_go go = BREAKER_GO_NOT;
	struct frame frame;
	uint64_t id;

	if (group != NAMES_NONE && !asked_is_full(&channel->asked) &&
	    channel->outbox.bytes < CARRIER_MOST_WAITING)
		go = breaker_may(&channel->breaker, carrier->now_ns);
	if (go == BREAKER_GO_NOT)
		return take_miss(carrier, head->peer, head->id, &head->group, head->sample);
	id = asked_add(&channel->asked, head, go == BREAKER_GO_TRY, carrier->now_ns,
		       &carrier->serial);
	frame_of_value(head, group, id, &frame);
	channel->state.gets++;
	alive_asks(&channel->alive, carrier->now_ns);
	if (!channel_say(carrier, channel, &frame, NULL, NULL, 0))
		channel_lose(carrier, channel, "there is no memory to ask it");
	return true;
}

static void take_answer(struct carrier *carrier, struct channel *channel,
			const struct value_head *head, const uint8_t *value)
{
	struct frame frame;

	frame_of_value(head, frame_mark(&head->group), head->id, &frame);
	alive_answers(&channel->alive);
	if (head->type == VALUE_HAVE &&
	    channel_say(carrier, channel, &frame, NULL, value, head->bytes)) {
		channel->state.had++;
		channel->state.value_bytes_sent += head->bytes;
		return;
	}
	frame.type = VALUE_MISS;
	frame.form = 0;
	channel->state.missed++;
	if (channel->phase == CHANNEL_LIVES)
		channel_say(carrier, channel, &frame, NULL, NULL, 0);
}

static void take_put(struct carrier *carrier, struct channel *channel,
		     const struct value_head *head, const uint8_t *value)
{
	const uint32_t group = names_find(&channel->told, &head->group);
	struct frame frame;

	frame_of_value(head, group, 0, &frame);
	if (group == NAMES_NONE || channel->breaker.state != BREAKER_ASKS ||
	    !channel_say(carrier, channel, &frame, NULL, value, head->bytes)) {
		channel->state.puts_dropped++;
		return;
	}
	channel->state.puts_sent++;
	channel->state.value_bytes_sent += head->bytes;
}

static void take_spread(struct carrier *carrier, struct channel *channel,
			const struct value_head *head)
{
	const uint32_t group = names_find(&channel->told, &head->group);
	struct frame frame;

	frame_of_value(head, group, head->id, &frame);
	if (group != NAMES_NONE && !channel_say(carrier, channel, &frame, NULL, NULL, 0))
		channel_lose(carrier, channel, "there is no room to tell it a spread");
}

/* Of who is not there, or not yet. What was told of a group is lost, too: the reader must know, or it would not tell it to
 * the next one with that number. */
static bool take_for_nobody(struct carrier *carrier, const struct value_head *head)
{
	const struct value_head gone = {
	    .magic = VALUE_MAGIC, .type = VALUE_GONE, .peer = head->peer};

	if (head->type == VALUE_GET)
		return take_miss(carrier, head->peer, head->id, &head->group, head->sample);
	return head->type != VALUE_GROUP || take_tell(carrier, &gone);
}

bool take_item(struct carrier *carrier, const struct rings_item *item)
{
	struct channel *channel;
	struct value_head head;

	if (item->bytes >= sizeof(head))
		memcpy(&head, item->data, sizeof(head));
	if (item->bytes < sizeof(head) || !value_head_check(&head) ||
	    item->bytes - sizeof(head) != head.bytes || head.type == VALUE_GONE) {
		log_line(LOG_LEVEL_WARN, "item-bad", "bytes=%u", item->bytes);
		return true;
	}
	channel = &carrier->channel[head.peer];
	if (channel->phase != CHANNEL_LIVES)
		return take_for_nobody(carrier, &head);
	carrier->has_news = true;
	switch (head.type) {
	case VALUE_GROUP:
		take_group(carrier, channel, &head, item->data + sizeof(head));
		return true;
	case VALUE_GET:
		return take_get(carrier, channel, &head);
	case VALUE_SPREAD:
		take_spread(carrier, channel, &head);
		return true;
	case VALUE_PUT:
		take_put(carrier, channel, &head, item->data + sizeof(head));
		return true;
	default:
		take_answer(carrier, channel, &head, item->data + sizeof(head));
		return true;
	}
}
