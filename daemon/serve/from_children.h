/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What comes from a domain's reader, and from its workers and their parent. */

#include "daemon/proc/reading.h"
#include "daemon/proc/workers.h"

extern const struct reading_calls from_reader_calls;
extern const struct workers_calls from_workers_calls;
