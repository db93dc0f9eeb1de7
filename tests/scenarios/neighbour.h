/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A hostile neighbour: several processes of one user, under ever other gids, who do to the accessd of the
 * town all the harm that a user can, at random. Which attack is number i, and what it draws, follows from
 * the seed. The environment may say otherwise:
 *
 *   NEIGHBOUR_SEED=N        another seed
 *   NEIGHBOUR_ATTACKS=N     more or fewer
 *   NEIGHBOUR_FIRST=N       the first number: with NEIGHBOUR_ATTACKS=1, one attack again
 *   NEIGHBOUR_ONLY=A,B,...  these attacks alone
 *   NEIGHBOUR_NOT=A,B,...   all but these
 */

#include <stdatomic.h>
#include "tests/scenarios/town.h"

#define NEIGHBOUR_MOST_KINDS 40

struct neighbour_toll {         /* shared with his processes */
	_Atomic uint64_t next;  /* number of the next attack */
	_Atomic uint64_t lives; /* processes that began */
	_Atomic uint64_t count[NEIGHBOUR_MOST_KINDS];
};

struct neighbour {
	struct town_user user;
	unsigned gids;                 /* he comes with so many */
	const char *data;              /* a folder of pictures of his */
	char folder[512];              /* where he makes more */
	uint64_t seed, attacks, first; /* attacks: 0: until he is ended */
	unsigned at_once, nice;
	struct neighbour_toll *toll;
	pid_t pid;
};

/* Before the town starts: two of carl's data sets have names, "open" for everybody and "closed" for anna alone. */
void neighbour_names(void);
/* He is bert, with bert's pictures, and does so many attacks if the environment does not say otherwise. */
void neighbour_init(struct neighbour *neighbour, uint64_t attacks);
void neighbour_start(struct neighbour *neighbour);
/* Waits until he has done his attacks. */
void neighbour_wait(struct neighbour *neighbour);
/* Ends him where he is. */
void neighbour_end(struct neighbour *neighbour);
/* What he did, and the longest turns of the loop so far, to stdout. */
void neighbour_tell(const struct neighbour *neighbour);
