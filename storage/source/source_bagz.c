/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bagz files of pictures or tf.Examples. What is in one says scan_bagz.c; all else is that of any kind of shards.
 */

#include "storage/index.h"
#include "storage/source/scan/scan_bagz.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

static const struct source_shards bagz_shards = {
    .what = "Bagz files",
    .suffixes = ".bag\0.bagz\0",
    .compressed = "",
    .scan = &scan_bagz,
    .empty = "they have no record",
};

const struct source_ops source_bagz = {
    .name = "bagz",
    .kind = INDEX_OF_BAGZ,
    .shards = &bagz_shards,
    .options = "image\0label\0members\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
