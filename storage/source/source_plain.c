/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kinds of shards that are told by their names and first bytes alone. What is in one says its scan (scan_shard.h); all else is
 * that of any kind of shards.
 */

#include "storage/index.h"
#include "storage/source/scan/dali.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

#define PLAIN_KIND(id, number, takes)           \
	const struct source_ops source_##id = { \
	    .name = #id,                        \
	    .kind = number,                     \
	    .shards = &id##_shards,             \
	    .options = takes,                   \
	    .probe = source_shards_probe,       \
	    SOURCE_SHARDS_OPS,                  \
	}

/* As the webdataset package writes and reads them. */
static const struct source_shards tar_shards = {
    .what = "tar shards",
    .suffixes = ".tar\0",
    .compressed = ".tar.gz\0.tgz\0.tar.zst\0.tar.bz2\0.tar.xz\0",
    .scan = &scan_tar,
    .dali = dali_check_files,
    .has_wids = true,
    .empty = "a sample is a run of neighbouring files KEY.SUFFIX with one KEY, and has a picture "
	     "or sound or video or point cloud: "
	     "a suffix of " WALK_PICTURE_SUFFIXES " " WALK_SOUND_SUFFIXES " " WALK_VIDEO_SUFFIXES
	     " " WALK_CLOUD_SUFFIXES " (any case) behind the first dot of the name",
};
PLAIN_KIND(tar, INDEX_OF_TAR, "members\0leave_out\0");

/* Of tf.Examples. */
static const struct source_shards tfrecord_shards = {
    .what = "TFRecord files",
    .suffixes = ".tfrecord\0.tfrecords\0",
    .is_numbered = true,
    .compressed = ".tfrecord.gz\0.tfrecords.gz\0.tfrecord.zlib\0.tfrecords.zlib\0",
    .scan = &scan_tfrecord,
    .dali = dali_check_records,
    .empty = "they have no record",
};
PLAIN_KIND(tfrecord, INDEX_OF_TFRECORD, "image\0label\0members\0leave_out\0");

/* MXNet's. Their .idx is not needed: a file says itself where its records are. */
static const struct source_shards recordio_shards = {
    .what = "RecordIO files",
    .suffixes = ".rec\0",
    .compressed = "",
    .scan = &scan_recordio,
    .empty = "they have no record with a picture",
};
PLAIN_KIND(recordio, INDEX_OF_RECORDIO, "label\0leave_out\0");

static const struct source_shards bagz_shards = {
    .what = "Bagz files",
    .suffixes = ".bag\0.bagz\0",
    .compressed = "",
    .scan = &scan_bagz,
    .empty = "they have no record",
};
PLAIN_KIND(bagz, INDEX_OF_BAGZ, "image\0label\0members\0leave_out\0");

static const struct source_shards arrayrecord_shards = {
    .what = "ArrayRecord files",
    .suffixes = ".array_record\0.arecord\0",
    .compressed = "",
    .scan = &scan_arrayrecord,
    .empty = "they have no record",
};
PLAIN_KIND(arrayrecord, INDEX_OF_ARRAYRECORD, "image\0label\0members\0leave_out\0");

/* Pictures that were written as pixels (write_mode raw) are those of a PPM, whose head is made where they are read. */
static const struct source_shards beton_shards = {
    .what = "FFCV's files",
    .suffixes = ".beton\0",
    .compressed = "",
    .scan = &scan_beton,
    .has_pixels = true,
    .empty = "they have no sample",
};
PLAIN_KIND(beton, INDEX_OF_BETON, "image\0label\0leave_out\0");
