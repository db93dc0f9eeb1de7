/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packets of four numbers go into a state of sixteen, by products of 32-bit halves and by moving bytes between pairs of
 * numbers ("zipper merge"); the last bytes go into a packet in which they are spread out.
 */

#include "storage/source/scan/highway.h"

#include <string.h>

#include "base/base.h"
#include "base/little.h"

#define HIGHWAY_LAST 4 /* rounds at the end */

static uint64_t halves_swapped(uint64_t value)
{
	return value >> 32 | value << 32;
}

/* Some bytes of a and b, of which the even number is a; what an odd one gets of them is not what an even one does. */
static uint64_t zipped_even(uint64_t a, uint64_t b)
{
	return ((a & UINT64_C(0xff000000)) | (b & UINT64_C(0xff00000000))) >> 24 |
	       ((a & UINT64_C(0xff0000000000)) | (b & UINT64_C(0xff000000000000))) >> 16 |
	       (a & UINT64_C(0xff0000)) | (a & UINT64_C(0xff00)) << 32 |
	       (b & UINT64_C(0xff00000000000000)) >> 8 | a << 56;
}

static uint64_t zipped_odd(uint64_t a, uint64_t b)
{
	return ((b & UINT64_C(0xff000000)) | (a & UINT64_C(0xff00000000))) >> 24 |
	       (b & UINT64_C(0xff0000)) | (b & UINT64_C(0xff0000000000)) >> 16 |
	       (b & UINT64_C(0xff00)) << 24 | (a & UINT64_C(0xff000000000000)) >> 8 |
	       (b & UINT64_C(0xff)) << 48 | (a & UINT64_C(0xff00000000000000));
}

static void zip(uint64_t to[4], const uint64_t from[4])
{
	for (unsigned i = 0; i < 4; i += 2) {
		to[i] += zipped_even(from[i], from[i + 1]);
		to[i + 1] += zipped_odd(from[i], from[i + 1]);
	}
}

static void take_numbers(struct highway *hash, const uint64_t number[4])
{
	for (unsigned i = 0; i < 4; i++) {
		hash->v1[i] += hash->mul0[i] + number[i];
		hash->mul0[i] ^= (hash->v1[i] & UINT32_MAX) * (hash->v0[i] >> 32);
		hash->v0[i] += hash->mul1[i];
		hash->mul1[i] ^= (hash->v0[i] & UINT32_MAX) * (hash->v1[i] >> 32);
	}
	zip(hash->v0, hash->v1);
	zip(hash->v1, hash->v0);
}

static void take_packet(struct highway *hash, const uint8_t packet[HIGHWAY_PACKET])
{
	uint64_t number[4];

	for (unsigned i = 0; i < 4; i++)
		number[i] = little_64(packet + 8 * i);
	take_numbers(hash, number);
}

static uint64_t halves_turned(uint64_t value, uint32_t bits)
{
	const uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

	return (uint64_t)(high << bits | high >> (32 - bits)) << 32 |
	       (low << bits | low >> (32 - bits));
}

/* 1 to 31 bytes. */
static void take_rest(struct highway *hash)
{
	const uint32_t n = hash->n_rest, behind = n & 3;
	const uint8_t *rest = hash->rest;
	uint8_t packet[HIGHWAY_PACKET] = {0};

	for (unsigned i = 0; i < 4; i++) {
		hash->v0[i] += ((uint64_t)n << 32) + n;
		hash->v1[i] = halves_turned(hash->v1[i], n);
	}
	memcpy(packet, rest, n - behind);
	if (n & 16) {
		memcpy(packet + 28, rest + n - 4, 4);
	} else if (behind) {
		packet[16] = rest[n - behind];
		packet[17] = rest[n - behind + (behind >> 1)];
		packet[18] = rest[n - 1];
	}
	take_packet(hash, packet);
}

void highway_begin(struct highway *hash)
{
	static const uint64_t key[2] = {UINT64_C(0x2f696c6567656952),
					UINT64_C(0x0a7364726f636572)}; /* "Riegeli/", "records\n" */
	static const uint64_t mul0[4] = {UINT64_C(0xdbe6d5d5fe4cce2f), UINT64_C(0xa4093822299f31d0),
					 UINT64_C(0x13198a2e03707344),
					 UINT64_C(0x243f6a8885a308d3)};
	static const uint64_t mul1[4] = {UINT64_C(0x3bd39e10cb0ef593), UINT64_C(0xc0acf169b5f18a8c),
					 UINT64_C(0xbe5466cf34e90c6c),
					 UINT64_C(0x452821e638d01377)};

	*hash = (struct highway){.n_rest = 0};
	for (unsigned i = 0; i < 4; i++) {
		hash->mul0[i] = mul0[i];
		hash->mul1[i] = mul1[i];
		hash->v0[i] = mul0[i] ^ key[i & 1];
		hash->v1[i] = mul1[i] ^ halves_swapped(key[i & 1]);
	}
}

void highway_add(struct highway *hash, const void *data, size_t size)
{
	const uint8_t *at = data;

	if (size == 0)
		return;
	if (hash->n_rest > 0) {
		const size_t more = BASE_MIN(size, (size_t)HIGHWAY_PACKET - hash->n_rest);

		memcpy(hash->rest + hash->n_rest, at, more);
		hash->n_rest += (uint32_t)more;
		if (hash->n_rest < HIGHWAY_PACKET)
			return;
		take_packet(hash, hash->rest);
		at += more;
		size -= more;
	}
	for (; size >= HIGHWAY_PACKET; at += HIGHWAY_PACKET, size -= HIGHWAY_PACKET)
		take_packet(hash, at);
	if (size > 0)
		memcpy(hash->rest, at, size);
	hash->n_rest = (uint32_t)size;
}

uint64_t highway_end(struct highway *hash)
{
	if (hash->n_rest > 0)
		take_rest(hash);
	for (unsigned i = 0; i < HIGHWAY_LAST; i++) {
		const uint64_t turned[4] = {
		    halves_swapped(hash->v0[2]),
		    halves_swapped(hash->v0[3]),
		    halves_swapped(hash->v0[0]),
		    halves_swapped(hash->v0[1]),
		};

		take_numbers(hash, turned);
	}
	return hash->v0[0] + hash->v1[0] + hash->mul0[0] + hash->mul1[0];
}

uint64_t highway(const void *data, size_t size)
{
	struct highway hash;

	highway_begin(&hash);
	highway_add(&hash, data, size);
	return highway_end(&hash);
}
