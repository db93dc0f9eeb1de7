/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A limit of so much a second: a bucket that fills at that rate, and holds a tenth of a second of it. Arithmetic on a clock
 * that callers bring.
 */

#include <stdint.h>

struct throttle {     /* zeroed: full when it is looked at first */
	double level; /* what may be taken; below 0: what was taken too much */
	double rate;  /* a second, at the last look */
	uint64_t at_ns;
};

/* It is now_ns, and the rate (over 0) is this. What was owed at a higher one is waited for no longer for that. */
void throttle_look(struct throttle *throttle, double rate, uint64_t now_ns);
/* So much was taken, more than there was, too: later ones wait for that. It adds to what is owed only up to
 * `most` (INFINITY: any amount), what was owed before stays. */
void throttle_take(struct throttle *throttle, double amount, double most);
/* Pieces of that size (over 0) that may be begun, beside those under way: one at least if there is anything in it and none is
 * under way. */
uint32_t throttle_room(const struct throttle *throttle, double size, uint32_t under_way);
/* Until there is something in it; 0: there is. */
uint64_t throttle_wait_ns(const struct throttle *throttle);
