/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What scans of records that are tf.Examples have in common: their options, and what is a sample of one. Pure. */

#include "storage/source/scan/example.h"
#include "storage/source/scan/scan_shard.h"

/* Of the options image, label and members. NULL, or what is wrong. */
const char *scan_example_options(const char *options, struct example_names *ret);
/* The sample in an example, which lies there in the shard, whose walk has come to its end or found it damaged; all of *ret but its key.
 * NULL, or what is wrong, and where in the shard. */
const char *scan_example_record(struct example_walk *walk, uint64_t at, struct scan_record *ret,
				uint64_t *ret_bad_at);
