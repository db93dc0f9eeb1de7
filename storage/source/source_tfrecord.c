/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TFRecord files with tf.Example. What is in one says scan_tfrecord.c; all else is that of any kind of shards.
 */

#include "storage/index.h"
#include "storage/source/scan/dali.h"
#include "storage/source/scan/scan_tfrecord.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"
#include "storage/source/scan/tfrecord.h"

/* A file that only happens to be one has a chance of 2^-32. */
static bool tfrecord_is_shard(const uint8_t *head, size_t size)
{
	uint64_t bytes;

	return size >= TFRECORD_HEAD && tfrecord_head(head, &bytes);
}

static const struct source_shards tfrecord_shards = {
    .what = "TFRecord files",
    .suffixes = ".tfrecord\0.tfrecords\0",
    .is_numbered = true,
    .compressed = ".tfrecord.gz\0.tfrecords.gz\0.tfrecord.zlib\0.tfrecords.zlib\0",
    .is_shard = tfrecord_is_shard,
    .scan = &scan_tfrecord,
    .dali = dali_check_records,
    .empty = "they have no record",
};

const struct source_ops source_tfrecord = {
    .name = "tfrecord",
    .kind = INDEX_OF_TFRECORD,
    .shards = &tfrecord_shards,
    .options = "image\0label\0members\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
