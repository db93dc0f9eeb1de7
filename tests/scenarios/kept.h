/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a hostile neighbour makes the node keep. */

#include "tests/scenarios/neighbour.h"

struct kept {             /* the most that was seen */
	double memory;    /* bytes that count as his */
	double anon_kib;  /* of accessd's own, neither files nor what it shares */
	double disk;      /* bytes of everybody's */
	double status_ms; /* an answer took */
	unsigned fds;     /* of accessd */
};

/* What there is while nobody does anything. */
struct kept kept_now(void);
/* Looks once more. accessd is there, the same as ever, and answers. */
void kept_look(const struct neighbour *neighbour, struct kept *seen);
