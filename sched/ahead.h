/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is a stored form to be made ahead of need, for other nodes? Only while nobody here needs a processor. Arithmetic: what is so,
 * and the time, say the callers.
 */

#include <stdbool.h>
#include <stdint.h>

enum ahead_state {
	AHEAD_ALONE,     /* no other node has a part in it */
	AHEAD_NOT_WORTH, /* the choice is the file, or to make nothing more, or is not made yet */
	AHEAD_IN_PART,   /* all jobs here want a part of the data set: the rest may be nobody's */
	AHEAD_FULL,      /* the store takes nothing now */
	AHEAD_BUSY,      /* something is being made for a job */
	AHEAD_RESTS,     /* others wanted the processors */
	AHEAD_DONE,      /* all was gone through */
	AHEAD_MAKES,
};

struct ahead_look {
	bool has_peers, is_worth, is_whole, has_room, is_busy;
	uint64_t of; /* what is made, and for whom: it begins anew when that is another */
	uint64_t samples, now_ns;
};

struct ahead { /* zeroed, it begins */
	enum ahead_state state;
	uint64_t of, next;          /* the sample that is looked at next */
	uint64_t rest_ns, until_ns; /* it rests so long, until then */
};

/* Sets the state, and returns it. */
enum ahead_state ahead_look(struct ahead *ahead, const struct ahead_look *look);
/* What was begun together has ended: workers were at it for so long, of which a processor was theirs for cpu_us. */
void ahead_ended(struct ahead *ahead, double elapsed_us, double cpu_us, uint64_t now_ns);
const char *ahead_name(enum ahead_state state); /* "alone", ...: for the status */
