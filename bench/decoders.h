/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes that decode photographs out of shared memory as workers do, for measurements of who puts them there: ImageNet's
 * training pipeline, to memory that is larger than the caches.
 */

#include <stdint.h>

struct decoders;
#define DECODERS_BURST 32 /* given at once, at most */

/* n of them, which end with this process. memory is mapped shared and stays the caller's. What fails ends the program with a
 * word. */
struct decoders *decoders_new(unsigned n, const uint8_t *memory);
/* Until a burst has room. */
void decoders_await(struct decoders *decoders);
/* One more photograph, which lies at so many bytes in the memory until some hundred others were given. */
void decoders_give(struct decoders *decoders, uint64_t at, uint32_t bytes);
/* Until they have nothing to do. */
void decoders_settle(struct decoders *decoders);
