/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_FROM_WORKERS_H
#define DAEMON_SERVE_FROM_WORKERS_H

/* What comes from a domain's workers and their parent; arg is the domain. */

#include "daemon/proc/workers.h"

extern const struct workers_calls from_workers_calls;

#endif
