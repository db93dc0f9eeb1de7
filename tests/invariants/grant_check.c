/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The checker of a rank's ledger. Tests call it after every step; whatever a rank writes into its
 * outbox, none of these rules can break.
 */

#include "tests/invariants/invariants.h"

#include "shmring/grant.h"

#define RING LAYOUT_GRANT_RING

static const char *check_grant(const struct grant_server *server, uint64_t i, uint64_t number)
{
	uint64_t state;
	uint64_t word = atomic_load_explicit(&server->inbox->grant[i].d_word, memory_order_relaxed);
	enum grant_fate fate = server->fate[i];

	state = server->revoked[i] ? LAYOUT_GRANT_REVOKED : LAYOUT_GRANT_POSTED;
	if (number % RING != i || number > server->posted)
		return "the ledger holds another grant in this place";
	if (word != (number << 8 | state))
		return "the inbox says something else than the ledger";
	if (fate > GRANT_RECLAIMED)
		return "a grant has a fate that does not exist";
	if (fate >= GRANT_RETURNED && !server->revoked[i])
		return "a grant came back without having been revoked";
	if (server->seen[i] && (!server->revoked[i] || fate != GRANT_UNTAKEN))
		return "a grant is marked as seen that is not between revoke and its fate";
	if ((fate == GRANT_DONE || fate == GRANT_RETURNED) && server->due[i] != fate)
		return "a grant ended otherwise than was seen";
	if (number <= server->settled && fate < GRANT_DONE)
		return "a settled grant has not ended";
	if (number + RING <= server->posted && fate < GRANT_TAKEN)
		return "a grant that the rank has not taken is older than the ring";
	return NULL;
}

/* The rank holds it, as far as accessd knows. */
static bool is_pinned(const struct grant_server *server, uint64_t number)
{
	uint64_t i = number % RING;

	return server->due[i] == GRANT_UNTAKEN &&
	       (server->fate[i] == GRANT_TAKEN || server->seen[i]);
}

const char *grant_check(const struct grant_server *server)
{
	unsigned pinned = 0;

	if (server->settled > server->posted)
		return "more grants are settled than were posted";
	if (atomic_load_explicit(&server->inbox->d_posted, memory_order_relaxed) != server->posted)
		return "d_posted is not the last grant posted";
	for (uint64_t i = 0; i < RING; i++) {
		uint64_t number = server->ledger[i].number;
		const char *broken = number ? check_grant(server, i, number) : NULL;

		if (broken)
			return broken;
		pinned += number && is_pinned(server, number);
	}
	if (pinned > LAYOUT_MAX_PINS)
		return "a rank holds more grants than it may";
	if (server->settled < server->posted && grant_next_open(server, 0) != server->settled + 1)
		return "a grant has ended but is not settled";
	return NULL;
}
