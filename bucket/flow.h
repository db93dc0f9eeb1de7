/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many requests are under way at once at a place, and how long one waits for a first byte. Arithmetic: the clock is the
 * caller's.
 *
 * A round is as many answers as there may be requests. While the median of a round is at most 1.5 times the least one, the server
 * has room: one more (at first, twice as many). Where it says that there are too many, or hangs up, 0.7 times as many, once a round trip.
 *
 * Of a store's answers a few are late by seconds, and the same question asked again has its answer at once. So who waits long
 * may ask again, of FLOW_HASTE answers once: a server that is slow as a whole has little more to do then.
 */

#include "base/base.h"

#define FLOW_LEAST 4
#define FLOW_MOST 256
#define FLOW_KEPT 256
#define FLOW_HASTE 20

struct flow {
	unsigned limit;
	bool is_starting; /* nothing was too much so far */
	uint64_t born_ns, cut_ns;
	uint64_t least_ns,
	    least_before_ns;      /* medians: of these FLOW_ROUNDS rounds, of those before */
	unsigned answers, rounds; /* of the round; of the least */
	uint64_t last[FLOW_KEPT]; /* until the first byte */
	unsigned kept;            /* ever */
	unsigned saved;           /* answers, for asking again in haste */
};

void flow_init(struct flow *flow, uint64_t now_ns);
/* A first byte came; is_full: the limit was reached since the last one. */
void flow_good(struct flow *flow, uint64_t latency_ns, bool is_full);
void flow_bad(struct flow *flow, uint64_t now_ns);
/* Until a first byte: max(1 s, 4 * p99); 5 s while little is known. */
uint64_t flow_patience_ns(const struct flow *flow, uint64_t now_ns);
/* After how long it is worth asking again: max(100 ms, 3 * p90). */
uint64_t flow_haste_ns(const struct flow *flow);
bool flow_hasten(struct flow *flow); /* May it be done now? Then it is. */
