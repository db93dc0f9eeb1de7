/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What comes from a domain's workers and their parent. */

#include "daemon/proc/workers.h"

extern const struct workers_calls from_workers_calls;
