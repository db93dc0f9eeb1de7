/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A processor that is idle here may still be wanted: by a trainer, or by somebody else's program. Who works ahead
 * sees that from his own work: it takes much longer than the processor's time for it. Then he rests, each time twice as long.
 */

#include "sched/ahead.h"

#include "base/base.h"

#define AHEAD_LATE 2.             /* times the processor's time */
#define AHEAD_LATE_LEAST_US 2000. /* over that: it may have been woken late */
#define AHEAD_REST_NS UINT64_C(100000000)
#define AHEAD_REST_MOST_NS UINT64_C(5000000000)

static enum ahead_state state_of(const struct ahead *ahead, const struct ahead_look *look)
{
	if (!look->has_peers)
		return AHEAD_ALONE;
	if (!look->is_worth)
		return AHEAD_NOT_WORTH;
	if (!look->is_whole)
		return AHEAD_IN_PART;
	if (!look->has_room)
		return AHEAD_FULL;
	if (ahead->next >= look->samples)
		return AHEAD_DONE;
	if (look->is_busy)
		return AHEAD_BUSY;
	return look->now_ns < ahead->until_ns ? AHEAD_RESTS : AHEAD_MAKES;
}

enum ahead_state ahead_look(struct ahead *ahead, const struct ahead_look *look)
{
	if (ahead->of != look->of) {
		ahead->of = look->of;
		ahead->next = 0;
	}
	ahead->state = state_of(ahead, look);
	return ahead->state;
}

void ahead_ended(struct ahead *ahead, double elapsed_us, double cpu_us, uint64_t now_ns)
{
	if (elapsed_us <= AHEAD_LATE * cpu_us + AHEAD_LATE_LEAST_US) {
		ahead->rest_ns = 0;
		return;
	}
	ahead->rest_ns = BASE_MIN(BASE_MAX(2 * ahead->rest_ns, AHEAD_REST_NS), AHEAD_REST_MOST_NS);
	ahead->until_ns = now_ns + ahead->rest_ns;
}

const char *ahead_name(enum ahead_state state)
{
	static const char *const names[] = {
	    [AHEAD_ALONE] = "alone", [AHEAD_NOT_WORTH] = "not_worth", [AHEAD_IN_PART] = "in_part",
	    [AHEAD_FULL] = "full",   [AHEAD_BUSY] = "busy",           [AHEAD_RESTS] = "rests",
	    [AHEAD_DONE] = "done",   [AHEAD_MAKES] = "makes",
	};

	return names[state];
}
