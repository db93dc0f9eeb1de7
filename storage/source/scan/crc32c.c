/* SPDX-License-Identifier: Apache-2.0 */

/*
 * CRC-32C, eight bytes a step by eight tables (table k: a byte that k bytes follow), or by the instruction
 * that the machine has for it. The tables are made when first needed, from the polynomial.
 */

#include "storage/source/scan/crc32c.h"

#include "base/little.h"

#include <pthread.h>

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78) /* reflected */

static uint32_t crc32c_table[8][256];
static crc32c_fn crc32c_best;
static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;

static void crc32c_init(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (unsigned bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
		crc32c_table[0][byte] = crc;
	}
	for (unsigned k = 1; k < 8; k++)
		for (unsigned byte = 0; byte < 256; byte++) {
			const uint32_t crc = crc32c_table[k - 1][byte];

			crc32c_table[k][byte] = (crc >> 8) ^ crc32c_table[0][crc & 255];
		}
	crc32c_best = crc32c_sse42() ? crc32c_sse42() : crc32c_plain;
}

uint32_t crc32c_plain(uint32_t crc, const void *data, size_t size)
{
	const uint8_t *at = data;

	pthread_once(&crc32c_once, crc32c_init);
	crc = ~crc;
	for (; size >= 8; at += 8, size -= 8) {
		const uint64_t word = little_64(at) ^ crc;

		crc = 0;
		for (unsigned k = 0; k < 8; k++)
			crc ^= crc32c_table[7 - k][(word >> (8 * k)) & 255];
	}
	for (; size > 0; size--)
		crc = (crc >> 8) ^ crc32c_table[0][(crc ^ *at++) & 255];
	return ~crc;
}

uint32_t crc32c_add(uint32_t crc, const void *data, size_t size)
{
	pthread_once(&crc32c_once, crc32c_init);
	return crc32c_best(crc, data, size);
}
