/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FFCV's files of pictures. What is in one says scan_beton.c; all else is that of any kind of shards. Pictures that were written
 * as pixels (write_mode raw) are those of a PPM, whose head is made where they are read.
 */

#include "storage/index.h"
#include "storage/source/scan/scan_beton.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

static const struct source_shards beton_shards = {
    .what = "FFCV's files",
    .suffixes = ".beton\0",
    .compressed = "",
    .is_shard = beton_is_file,
    .scan = &scan_beton,
    .join = beton_join,
    .has_pixels = true,
    .empty = "they have no sample",
};

const struct source_ops source_beton = {
    .name = "beton",
    .kind = INDEX_OF_BETON,
    .shards = &beton_shards,
    .options = "image\0label\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
