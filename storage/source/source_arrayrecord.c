/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ArrayRecord files of pictures or tf.Examples. What is in one says scan_arrayrecord.c; all else is that of any kind of shards.
 */

#include "storage/index.h"
#include "storage/source/scan/scan_arrayrecord.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

static const struct source_shards arrayrecord_shards = {
    .what = "ArrayRecord files",
    .suffixes = ".array_record\0.arecord\0",
    .compressed = "",
    .is_shard = arrayrecord_is_file,
    .scan = &scan_arrayrecord,
    .join = arrayrecord_join,
    .empty = "they have no record",
};

const struct source_ops source_arrayrecord = {
    .name = "arrayrecord",
    .kind = INDEX_OF_ARRAYRECORD,
    .shards = &arrayrecord_shards,
    .options = "image\0label\0members\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
