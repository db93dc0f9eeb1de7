/* SPDX-License-Identifier: Apache-2.0 */

/* Bitmaps over grains, the parts that loop. "Bits past n are 0" is the caller's promise to
 * bits_count() and bits_fill()'s to everybody. */

#include "base/bits.h"

uint64_t bits_count(const uint64_t *bits, uint64_t n)
{
	uint64_t count = 0;

	for (size_t i = 0; i < bits_words(n); i++)
		count += (uint64_t)__builtin_popcountll(bits[i]);
	return count;
}

void bits_fill(uint64_t *bits, uint64_t n)
{
	size_t words = bits_words(n);

	for (size_t i = 0; i < words; i++)
		bits[i] = UINT64_MAX;
	if (n % 64)
		bits[words - 1] = UINT64_MAX >> (64 - n % 64);
}
