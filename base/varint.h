/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers of 1 to 10 bytes, as protocol buffers have them, and what may stand behind a field's number there. */

#include <stddef.h>
#include <stdint.h>

enum proto_kind { PROTO_VARINT = 0, PROTO_64 = 1, PROTO_BYTES = 2, PROTO_32 = 5 };

/* Its bytes; 0: it is none, or goes on behind those that are there. */
static inline size_t varint_read(const uint8_t *data, size_t size, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 10 && i < size; i++) {
		if (i == 9 && data[i] > 1)
			return 0;
		value |= (uint64_t)(data[i] & 127) << (7 * i);
		if (data[i] < 128) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}
