/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What comes from a domain's reader. */

#include "daemon/proc/reading.h"

extern const struct reading_calls from_reader_calls;
