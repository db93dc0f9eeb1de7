/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where what is in a packed sample goes (zipped.h, zstandard.h): memory that is used again, but for a large sample's, which goes with the next small
 * one, or with the next one that is not packed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNPACKED_MOST (UINT32_C(1) << 30) /* bytes of a sample */
#define UNPACKED_FIRST (128u << 10) /* that are reserved first where nobody says how many come */

struct unpacked {       /* of a run; not shared */
	uint8_t *bytes; /* owned; what was in it is the caller's until the next sample */
	size_t room;
};
/* Memory for so many; what was there is lost. false: there is none. */
bool unpacked_reserve(struct unpacked *unpacked, size_t bytes);
/* More, with what is in it, for UNPACKED_MOST and one at most. */
bool unpacked_grow(struct unpacked *unpacked);
/* The sample is not packed. */
void unpacked_rest(struct unpacked *unpacked);
void unpacked_fini(struct unpacked *unpacked);
