/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBACCESS_CLIENT_H
#define LIBACCESS_CLIENT_H

/* A client: which daemon, and the guard against forks. No connection: each stream has its own. */

#include "libaccess/dial.h"
#include "libaccess/guard.h"
#include "libaccess/libaccess.h"

struct oa_client { /* never changes after oa_connect(): needs no lock */
	struct dial_route route;
	struct guard guard;
};

#endif
