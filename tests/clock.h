/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A clock that goes as fast as there is something to do: what is to happen, by time, and of one time in the order in which
 * it was asked for. */

#include <stdbool.h>
#include <stdint.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define NEVER UINT64_MAX

typedef void clock_fn(void *arg, uint64_t a, uint64_t b);

struct clock_event {
	uint64_t when_ns, serial;
	clock_fn *fn;
	void *arg;
	uint64_t a, b;
};

struct clock {
	uint64_t now_ns, serial;
	struct clock_event *heap; /* owned */
	unsigned n, room;
};

/* fn(arg, a, b) at that time, or now if it is over. */
void clock_at(struct clock *clock, uint64_t when_ns, clock_fn *fn, void *arg, uint64_t a,
	      uint64_t b);
/* What comes next, if it comes until then. false: nothing does, and it is then. */
bool clock_go(struct clock *clock, uint64_t until_ns);
void clock_end(struct clock *clock);
