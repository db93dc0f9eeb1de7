/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers as files and tokens have them: little-endian, of 1 to 8 bytes, at any place; those of files'
 * heads by names of their own. */

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void little_put(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static inline uint64_t little_get(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

static inline uint32_t little_16(const uint8_t *from)
{
	return from[0] | (uint32_t)from[1] << 8;
}

static inline uint32_t little_32(const uint8_t *from)
{
	return little_16(from) | little_16(from + 2) << 16;
}

/* The same of 64 bits, at once. */
static inline uint64_t little_64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

static inline void little_put_32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static inline void little_put_64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}
