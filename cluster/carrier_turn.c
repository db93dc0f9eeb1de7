/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn of the loop: takes items of the reader's ring, some at a time, sends what they made, does what is due, and receives
 * what came. Time is the carrier's, and whoever calls says what woke: no clock, and nothing waits.
 */

#include "cluster/carrier_parts.h"

#include "base/log.h"

#define TURN_ITEMS 64                  /* taken before others have their turn, */
#define TURN_BYTES (UINT64_C(1) << 20) /* or so many bytes of them */

bool turn_take(struct carrier *carrier)
{
	uint64_t bytes = 0;

	for (unsigned n = 0; n < TURN_ITEMS && bytes < TURN_BYTES; n++) {
		struct rings_item item;
		bool bad;

		if (!rings_look(&carrier->from_reader, 0, &item, &bad)) {
			if (bad)
				log_line(LOG_LEVEL_WARN, "ring-bad", "whose=reader");
			return n > 0 || bad;
		}
		if (!take_item(carrier, &item))
			return false;
		rings_pass(&carrier->from_reader, 0, &item);
		bytes += item.bytes;
	}
	return true;
}

void turn_tick(struct carrier *carrier)
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

uint64_t turn_due_ns(const struct carrier *carrier)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < VALUE_MOST_PEERS; i++) {
		if (carrier->channel[i].is_awake)
			return carrier->now_ns;
		due = BASE_MIN(due, channel_due_ns(&carrier->channel[i]));
	}
	if (carrier->has_news)
		due = BASE_MIN(due, carrier->state_ns);
	if (carrier->is_held)
		due = BASE_MIN(due, carrier->now_ns + CARRIER_RETRY_NS);
	return due;
}

void turn_woke(struct carrier *carrier, struct channel *channel, uint32_t events)
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
