/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The need of a large dataset in a token: a byte for each part of TOKEN_PART blocks (none of it is
 * needed, all, or some), zeros up to a multiple of 8, then the bitmaps of the parts of which some
 * is needed. As a job has begun few chapters at a time (carousel_chapter.c), that is a few KiB where
 * the bitmap of 10^9 samples would be 4 MB. There is one way to write each need.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_PART 32768 /* blocks; frozen */

/* Bytes that token_parts_write() writes for a bitmap over blocks. */
size_t token_parts_size(const uint64_t *need, uint64_t blocks);
void token_parts_write(const uint64_t *need, uint64_t blocks, uint8_t *ret);
/* Of hostile bytes, `room` of them: how many are the need's; 0: they are not a need. */
size_t token_parts_measure(const uint8_t *data, size_t room, uint64_t blocks);
/* Reads what was measured; need has room for the bitmap. False: it is none. */
bool token_parts_read(const uint8_t *data, uint64_t blocks, uint64_t *need);
