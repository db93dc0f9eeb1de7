/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the status says of another node: the sum of all channels to it, one for each user (access-ctl, access-top). */

#include "base/json.h"

struct ctl_peer {
	uint64_t gets, gots, late, had, kept, received, sent, answer_us;
	unsigned channels, shut, distrusted;
	const char *transport; /* of the status; "both", "-": there is none */
};

/* member: of the status' cluster.members. */
struct ctl_peer ctl_peer_of(const struct json_in *cluster, const struct json_in *member);
/* What is made for other nodes in idle time, by a state of sched/ahead.h in the status. NULL: another accessd's, or none. */
const char *ctl_peer_ahead(const char *state);
/* A word for a person; of the status, or constant. */
const char *ctl_peer_state(const struct json_in *member, const struct ctl_peer *peer);
