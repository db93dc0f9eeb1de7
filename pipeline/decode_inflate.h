/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DECODE_INFLATE_H
#define PIPELINE_DECODE_INFLATE_H

/* Deflated bytes (zlib), given piece by piece. */

#include <stddef.h>
#include "base/base.h"

struct decode_inflate;
/* 0; PIPELINE_FAIL_MEMORY. The caller owns *ret. */
int decode_inflate_new(struct decode_inflate **ret);
void decode_inflate_free(struct decode_inflate *handle);

/* The bytes to go on with, borrowed until they are used up. */
void decode_inflate_give(struct decode_inflate *handle, const uint8_t *data, size_t size);
bool decode_inflate_is_empty(const struct decode_inflate *handle);

/* Up to `room` bytes into to. 0; PIPELINE_FAIL_MEMORY; PIPELINE_FAIL_DECODE: no deflated bytes. */
int decode_inflate_take(struct decode_inflate *handle, uint8_t *to, size_t room, size_t *ret_count,
			bool *ret_is_end);

/* How many bytes these are inflated, damaged ones none; -1: more than `most`, or no memory. */
int64_t decode_inflate_length(const uint8_t *data, size_t size, size_t most);

/* CRC-32 as PNG has it. */
uint32_t decode_inflate_crc(const uint8_t *data, size_t size);

#endif
