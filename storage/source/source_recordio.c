/* SPDX-License-Identifier: Apache-2.0 */

/*
 * MXNet's RecordIO files of pictures. What is in one says scan_recordio.c; all else is that of any kind of shards. Their .idx
 * is not needed: a file says itself where its records are.
 */

#include "storage/index.h"
#include "storage/source/scan/scan_recordio.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

static const struct source_shards recordio_shards = {
    .what = "RecordIO files",
    .suffixes = ".rec\0",
    .compressed = "",
    .is_shard = recordio_is_file,
    .scan = &scan_recordio,
    .join = recordio_join,
    .empty = "they have no record with a picture",
};

const struct source_ops source_recordio = {
    .name = "recordio",
    .kind = INDEX_OF_RECORDIO,
    .shards = &recordio_shards,
    .options = "label\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
