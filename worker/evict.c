/* SPDX-License-Identifier: Apache-2.0 */

#include "worker/evict.h"

#include <stdint.h>

#define EVICT_LINE 64 /* bytes; of a larger line it is said twice */

#if defined(__x86_64__)

#include <immintrin.h>

static void evict_line(const uint8_t *at)
{
	_mm_clflush(at);
}

static void evict_wait(void)
{
	_mm_mfence();
}

#elif defined(__aarch64__)

static void evict_line(const uint8_t *at)
{
	__asm__ volatile("dc civac, %0" : : "r"(at) : "memory");
}

static void evict_wait(void)
{
	__asm__ volatile("dsb sy" : : : "memory");
}

#else

static void evict_line(const uint8_t *at)
{
	(void)at;
}

static void evict_wait(void)
{
}

#endif

void evict(const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t at = 0; at < size; at += EVICT_LINE)
		evict_line(bytes + at);
	if (size > 0)
		evict_line(bytes + size - 1);
	evict_wait();
}
