/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_FROM_READER_H
#define DAEMON_SERVE_FROM_READER_H

/* What comes from a domain's reader; arg is the domain. */

#include "daemon/proc/reading.h"

extern const struct reading_calls from_reader_calls;

#endif
