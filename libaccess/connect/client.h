/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client: which daemon, and the guard against forks. No connection: each stream has its own. */

#include "libaccess/connect/dial.h"
#include "libaccess/guard.h"
#include "libaccess/libaccess.h"

struct oa_client { /* never changes after oa_connect(): needs no lock */
	struct dial_route route;
	struct guard guard;
};

/* Connects and greets: until WELCOME, or the deadline. 0, OA_E_..., negative errno, with diag. */
int client_dial(struct dial *dial, uint64_t deadline, struct diag *diag);
