/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CRC-32C (Castagnoli), by which other people's files are checked. Any thread. */

#include <stddef.h>
#include <stdint.h>

/* Of what went before, 0 for nothing, and size bytes more. */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t size);
/* As TFRecord stores it: turned and shifted, so that sums of sums are no trouble. */
static inline uint32_t crc32c_masked(uint32_t crc)
{
	return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

/* The ways there are, for their tests: by tables, and by the machine's instruction (NULL: it has none). */
typedef uint32_t (*crc32c_fn)(uint32_t crc, const void *data, size_t size);
uint32_t crc32c_plain(uint32_t crc, const void *data, size_t size);
crc32c_fn crc32c_sse42(void);
