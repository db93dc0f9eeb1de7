/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/alive.h"

struct alive alive_from(uint64_t now_ns)
{
	return (struct alive){.heard_ns = now_ns, .said_ns = now_ns, .sent_ns = now_ns};
}

void alive_heard(struct alive *alive, uint64_t now_ns)
{
	alive->heard_ns = now_ns;
	alive->silent_from_ns = 0;
}

void alive_asks(struct alive *alive, uint64_t now_ns)
{
	if (alive->silent_from_ns == 0)
		alive->silent_from_ns = now_ns;
}

/* It has time to answer, before it is said that we live. */
void alive_is_asked(struct alive *alive, uint64_t now_ns)
{
	alive->owes++;
	alive->owes_until_ns = now_ns + ALIVE_OWES_NS;
	alive->said_ns = now_ns;
}

void alive_answers(struct alive *alive)
{
	alive->owes -= alive->owes > 0;
}

bool alive_is_to_say(struct alive *alive, const struct alive_now *now, uint64_t now_ns)
{
	if (alive->owes_until_ns <= now_ns)
		alive->owes = 0;
	if ((!alive->owes && !now->is_held) || now_ns - alive->said_ns < ALIVE_SAY_NS)
		return false;
	alive->said_ns = now_ns; /* also where there is no room for it */
	return true;
}

bool alive_is_lost(const struct alive *alive, const struct alive_now *now, uint64_t now_ns,
		   struct diag *ret_why)
{
	if (alive->silent_from_ns && now_ns - alive->silent_from_ns >= ALIVE_SILENT_NS)
		diag_set(ret_why, "it was asked, and has said nothing for 2 s");
	else if (now->has_begun && now_ns - alive->whole_ns >= ALIVE_WHOLE_NS)
		diag_set(ret_why, "a frame was not whole within 10 s");
	else if (now->waiting && now_ns - alive->sent_ns >= ALIVE_STUCK_NS)
		diag_set(ret_why, "it has taken nothing of %zu bytes for 30 s", now->waiting);
	else
		return false;
	return true;
}

uint64_t alive_due_ns(const struct alive *alive, const struct alive_now *now)
{
	uint64_t due = UINT64_MAX;

	if (alive->silent_from_ns)
		due = BASE_MIN(due, alive->silent_from_ns + ALIVE_SILENT_NS);
	if (alive->owes || now->is_held)
		due = BASE_MIN(due, alive->said_ns + ALIVE_SAY_NS);
	if (now->has_begun)
		due = BASE_MIN(due, alive->whole_ns + ALIVE_WHOLE_NS);
	if (now->waiting)
		due = BASE_MIN(due, alive->sent_ns + ALIVE_STUCK_NS);
	return due;
}
