/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tar shards, as the webdataset package writes and reads them. What is in one says scan_tar.c; all else is that of any
 * kind of shards.
 */

#include "base/tar.h"
#include "storage/index.h"
#include "storage/source/scan/dali.h"
#include "storage/source/scan/scan_tar.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"
#include "storage/walk.h"

static const struct source_shards tar_shards = {
    .what = "tar shards",
    .suffixes = ".tar\0",
    .compressed = ".tar.gz\0.tgz\0.tar.zst\0.tar.bz2\0.tar.xz\0",
    .is_shard = tar_is_archive,
    .scan = &scan_tar,
    .dali = dali_check_files,
    .has_wids = true,
    .empty = "a sample is a run of neighbouring files KEY.SUFFIX with one KEY, and has a picture "
	     "or sound or video: "
	     "a suffix of " WALK_PICTURE_SUFFIXES " " WALK_SOUND_SUFFIXES " " WALK_VIDEO_SUFFIXES
	     " (any case) behind the first dot of the name",
};

const struct source_ops source_tar = {
    .name = "tar",
    .kind = INDEX_OF_TAR,
    .shards = &tar_shards,
    .options = "members\0leave_out\0",
    .probe = source_shards_probe,
    SOURCE_SHARDS_OPS,
};
