/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pictures in RecordIO files, as MXNet's im2rec and pack_img() write them. The option label=N: which number of a label of
 * several is the class, the first is 0; label=none: none is. */

#include <stdbool.h>
#include <stddef.h>

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_recordio;

/* Do a file's first bytes begin a record? */
bool recordio_is_file(const uint8_t *head, size_t size);
/* The bytes of a picture as they lie in the file become those that were written, zeros behind them: what stands at a cut goes.
 * They are a multiple of four behind the record's begin, wherever that is. */
void recordio_join(uint8_t *bytes, size_t size, uint64_t place);
