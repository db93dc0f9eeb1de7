/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What several programs of the room need. */

#include <stdint.h>
#include <stdio.h>
#include "tests/suite.h"

#define assert_fine(broken)                             \
	do {                                            \
		const char *broken_ = (broken);         \
		ck_assert_msg(!broken_, "%s", broken_); \
	} while (0)

/* A small generator for tests: the same numbers on every run (xorshift64*). */
static inline uint64_t suite_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 11;
}
