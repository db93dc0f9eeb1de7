/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bitmaps over blocks: n bits in u64 words, bits past n are always 0. Plain storage of the
 * caller. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bits_words(uint64_t n)
{
	return (size_t)((n + 63) / 64);
}
static inline bool bits_test(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}
static inline void bits_set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void bits_clear(uint64_t *bits, uint64_t i)
{
	bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}
/* A bijection of 64 bits in which each bit of the argument moves each bit of the result. Frozen: the permutation is made of it. */
static inline uint64_t bits_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xe9846af9b1a615d5);
	x ^= x >> 29;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return x;
}
uint64_t bits_count(const uint64_t *bits, uint64_t n);
void bits_fill(uint64_t *bits, uint64_t n); /* all n bits 1, the rest of the last word 0 */
/* -log2((random + 1) / 2^64) in units of 2^-fraction, at most 57. Frozen: draws and owners are made of it. */
uint64_t bits_minus_log2(uint64_t random, unsigned fraction);
