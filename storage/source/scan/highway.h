/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HighwayHash of 64 bits, with the key of Riegeli files, by which these are checked. Pure. */

#include <stddef.h>
#include <stdint.h>

#define HIGHWAY_PACKET 32

struct highway {
	uint64_t v0[4], v1[4], mul0[4], mul1[4];
	uint8_t rest[HIGHWAY_PACKET]; /* bytes that are no whole packet yet */
	uint32_t n_rest;
};

void highway_begin(struct highway *hash);
/* Bytes may come in any pieces. */
void highway_add(struct highway *hash, const void *data, size_t size);
/* Of all that came; nothing more may be added. */
uint64_t highway_end(struct highway *hash);
uint64_t highway(const void *data, size_t size);
