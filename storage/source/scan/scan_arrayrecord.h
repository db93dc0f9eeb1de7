/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ArrayRecord files, as Grain and TensorFlow Datasets have them: records that are pictures or tf.Examples, each in a chunk of its own
 * (group_size:1). The options are those of TFRecord. */

#include <stdbool.h>
#include <stddef.h>

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_arrayrecord;

/* Do a file's first bytes begin a file of Riegeli's, as ArrayRecord files are? */
bool arrayrecord_is_file(const uint8_t *head, size_t size);
/* The bytes of a sample, as they lie at that place of the file, become those that were written, zeros behind them: heads of blocks go. */
void arrayrecord_join(uint8_t *bytes, size_t size, uint64_t at);
