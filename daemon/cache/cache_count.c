/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cache/cache_count.h"

#include "base/base.h"

#define RUNS 256 /* places of the table that are looked at, */
#define RUN 256  /* and cells at each */

static void add_run(const struct counter_cell *cell, uint64_t n, uint64_t *samples, uint64_t *bytes)
{
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t size = counter_cell_get(&cell[i]);

		*samples += size > 0;
		*bytes += size;
	}
}

void cache_count(const struct counter_cell *table, uint64_t n, uint64_t *ret_samples,
		 uint64_t *ret_bytes)
{
	const bool is_all = n <= (uint64_t)RUNS * RUN;
	const double times = is_all ? 1 : (double)n / ((double)RUNS * RUN);
	uint64_t samples = 0, bytes = 0;

	if (is_all)
		add_run(table, n, &samples, &bytes);
	for (uint64_t i = 0; i < RUNS && !is_all; i++)
		add_run(table + n / RUNS * i, RUN, &samples, &bytes);
	*ret_samples = BASE_MIN((uint64_t)((double)samples * times), n);
	*ret_bytes = (uint64_t)((double)bytes * times);
}
