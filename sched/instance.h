/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which instance of each sample of a stream is kept behind its random ops, and in how many chunks it was put into
 * production. A chunk's nonce is the key of what is drawn for its samples; a sample that comes kept is the one of the
 * nonce in which it was made.
 *
 * Jobs are not counted, nor what they were granted: the chunk in which an instance is made is its first, each that it
 * is brought to one more. A chunk has the highest number of any of its samples, and is granted to each job once at
 * most (carousel_number()). So nobody sees an instance in more chunks than its number says, whenever he comes.
 *
 * All of it is the memory of one accessd: after a restart nothing of what was kept before is brought, as nobody knows
 * who saw it.
 */

#include <stdbool.h>
#include <stdint.h>

#define INSTANCE_MOST 255 /* chunks */

struct instance_book {
	uint64_t n;           /* samples */
	uint64_t first_nonce; /* of the stream */
	uint32_t *age;   /* owned, [n]: of the instance that is kept, its nonce - first_nonce */
	uint8_t *number; /* owned, [n]: chunks that it was put into; 0: none is kept */
};

/* 0, -ENOMEM */
int instance_init(struct instance_book *book, uint64_t n, uint64_t first_nonce);
void instance_fini(struct instance_book *book); /* zeros are fine */
/* Is an instance kept that may be put into one chunk more, and that be its number `most` at most? Then it is, *ret_nonce
 * is its nonce, and its number in that chunk is returned; else 0. */
unsigned instance_bring(struct instance_book *book, uint64_t sample, unsigned most,
			uint64_t *ret_nonce);
/* The instance of that nonce, whose chunk is its first, takes the place of what was kept of the sample. Once an instance. */
void instance_made(struct instance_book *book, uint64_t sample, uint64_t nonce);
