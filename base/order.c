/* SPDX-License-Identifier: Apache-2.0 */

/* What qsort() and bsearch() ask. */

#include "base/base.h"

int base_compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return BASE_ORDER(x, y);
}

int base_compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return BASE_ORDER(x, y);
}

int base_compare_times(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? BASE_ORDER(a->tv_sec, b->tv_sec)
				      : BASE_ORDER(a->tv_nsec, b->tv_nsec);
}

int base_compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}
