/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A breaker: is a peer worth asking? Three GETs in a row at which it was silent, or five of the last twenty, open it.
 * While it is open nobody asks, but one at a time tries: the first a second later, then ever later, up to half a minute,
 * each with jitter, so that nodes do not try together. One that is answered closes it.
 * Arithmetic: time and chance are arguments.
 */

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_ROW 3
#define BREAKER_OF 20
#define BREAKER_MOST_BAD 5
#define BREAKER_FIRST_NS UINT64_C(1000000000)
#define BREAKER_LONGEST_NS UINT64_C(30000000000)

enum breaker_state { BREAKER_ASKS, BREAKER_OPEN, BREAKER_TRIES };

enum breaker_go { BREAKER_GO_NOT, BREAKER_GO_ASK, BREAKER_GO_TRY };

struct breaker { /* all 0: asks */
	enum breaker_state state;
	uint32_t bad;    /* of the last BREAKER_OF, a bit each, the newest lowest */
	unsigned opened; /* times in a row */
	uint64_t try_ns; /* when it is open: not before */
};

/* May one ask now? GO_TRY: as the one that tries; its outcome must be told as such. */
enum breaker_go breaker_may(struct breaker *breaker, uint64_t now_ns);
/* An answer came, whatever it was. was_try: to the one that tried. */
void breaker_good(struct breaker *breaker, bool was_try);
/* None came. chance: any number, evenly. */
void breaker_bad(struct breaker *breaker, bool was_try, uint64_t now_ns, uint32_t chance);
