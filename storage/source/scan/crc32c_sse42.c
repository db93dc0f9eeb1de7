/* SPDX-License-Identifier: Apache-2.0 */

/* CRC-32C by the instruction of x86-64 machines with SSE4.2, found out when it runs; others have none. */

#include "storage/source/scan/crc32c.h"

#ifdef __x86_64__

#include "base/little.h"

#include <immintrin.h>

__attribute__((target("sse4.2"))) static uint32_t sse42_add(uint32_t crc, const void *data,
							    size_t size)
{
	const uint8_t *at = data;
	uint64_t sum = ~crc;

	for (; size >= 8; at += 8, size -= 8)
		sum = _mm_crc32_u64(sum, little_64(at));
	for (; size > 0; size--)
		sum = _mm_crc32_u8((uint32_t)sum, *at++);
	return ~(uint32_t)sum;
}

crc32c_fn crc32c_sse42(void)
{
	return __builtin_cpu_supports("sse4.2") ? sse42_add : NULL;
}

#else

crc32c_fn crc32c_sse42(void)
{
	return NULL;
}

#endif
