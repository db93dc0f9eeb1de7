/* SPDX-License-Identifier: Apache-2.0 */

/* Bitmaps over blocks, the parts that loop. "Bits past n are 0" is the caller's promise to
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

/* One bit of the logarithm a squaring. */
uint64_t bits_minus_log2(uint64_t random, unsigned fraction)
{
	uint64_t mantissa, logarithm;
	unsigned exponent;

	if (random == UINT64_MAX)
		return 0;
	exponent = 63 - (unsigned)__builtin_clzll(random + 1);
	mantissa = (random + 1) << (63 - exponent);
	logarithm = exponent;
	for (unsigned i = 0; i < fraction; i++) {
		const unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
		const unsigned bit = (unsigned)(square >> 127);

		mantissa = (uint64_t)(square >> (63 + bit));
		logarithm = logarithm << 1 | bit;
	}
	return (UINT64_C(64) << fraction) - logarithm;
}
