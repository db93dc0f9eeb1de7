/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of TFRecord files, one behind the other, all numbers little endian:
 *
 *   u64 bytes | u32 masked CRC-32C of the length | the record's bytes | u32 masked CRC-32C of these
 *
 * Pure; the bytes may be any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/little.h"
#include "storage/source/scan/crc32c.h"

#define TFRECORD_HEAD 12
#define TFRECORD_FOOT 4

/* Of TFRECORD_HEAD bytes: how many bytes the record has. false: no record begins here. */
static inline bool tfrecord_head(const uint8_t *head, uint64_t *ret_bytes)
{
	if (little_32(head + 8) != crc32c_masked(crc32c_add(0, head, 8)))
		return false;
	*ret_bytes = little_64(head);
	return true;
}
