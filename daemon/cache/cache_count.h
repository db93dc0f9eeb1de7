/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/counter.h"

/* How many of n samples the table says bytes of, and how many bytes in all: exact for up to 65,536 samples; else from as
 * many, so that it takes as long for any data set, and touches a few hundred pages of the table, which may be a hole. */
void cache_count(const struct counter_cell *table, uint64_t n, uint64_t *ret_samples,
		 uint64_t *ret_bytes);
