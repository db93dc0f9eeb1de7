/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ctl_peer.h"

#include "tools/ctl_value.h"

/* A node's channels are one a user, and may go different ways. */
static const char *with_way(const char *others, const char *way)
{
	return strcmp(others, "-") == 0 || strcmp(others, way) == 0 ? way : "both";
}

struct ctl_peer ctl_peer_of(const struct json_in *cluster, const struct json_in *member)
{
	const struct json_in *channels = json_in_member(cluster, "channels");
	const char *node = ctl_string(member, "node");
	struct ctl_peer peer = {.transport = "-"};

	JSON_IN_EACH(channel, channels) {
		if (strcmp(ctl_string(channel, "node"), node) != 0)
			continue;
		peer.channels++;
		peer.shut += !ctl_is(channel, "open");
		peer.distrusted += ctl_is(channel, "distrusted");
		peer.gets += ctl_u64(channel, "gets");
		peer.gots += ctl_u64(channel, "gots");
		peer.late += ctl_u64(channel, "late");
		peer.had += ctl_u64(channel, "had");
		peer.kept += ctl_u64(channel, "puts_received");
		peer.received += ctl_u64(channel, "bytes_received");
		peer.sent += ctl_u64(channel, "bytes_sent");
		peer.answer_us = BASE_MAX(peer.answer_us, ctl_u64(channel, "answer_us"));
		peer.transport = with_way(peer.transport, ctl_string(channel, "transport"));
	}
	return peer;
}

const char *ctl_peer_ahead(const char *state)
{
	static const struct {
		const char *state, *text;
	} states[] = {
	    {"alone", "nothing is made, as no other node is connected"},
	    {"not_worth", "nothing is made, as no form is worth it"},
	    {"in_part", "nothing is made, as no job here wants all of the data set"},
	    {"full", "nothing is made, as there is no room for it"},
	    {"busy", "more is made as soon as this node has time"},
	    {"rests", "more is made, slowly, as others want the processors"},
	    {"done", "all is made that this node owns"},
	    {"makes", "more is made"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(states); i++)
		if (strcmp(state, states[i].state) == 0)
			return states[i].text;
	return NULL;
}

const char *ctl_peer_state(const struct json_in *member, const struct ctl_peer *peer)
{
	if (peer->distrusted)
		return "distrusted";
	if (peer->shut)
		return "shut";
	return peer->channels ? "connected" : ctl_string(member, "state");
}
