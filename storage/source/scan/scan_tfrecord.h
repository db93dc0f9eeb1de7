/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scans of shards, for the table of kinds: TFRecord files with tf.Example, and MDS. Options of both: image=, label=, the names
 * of the features or columns that are picture and label, where they are not the usual ones. */

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_tfrecord;
extern const struct source_scan scan_mds;
extern const struct source_scan scan_litdata;
