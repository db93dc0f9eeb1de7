/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Index files of NVIDIA's DALI, which people have beside their shards: NAME.idx of NAME.tar or NAME.tfrecord. They are
 * checked against what a scan found, and not used: one that is not of its shard is told. Pure; the text may be any.
 *
 *   tfrecord2idx   "OFFSET SIZE" for each record, head and foot included
 *   wds2idx        "v1.2 SAMPLES", then for each "SUFFIX OFFSET SIZE NAME" of each of its files; in v1.1 without NAME
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dali_found { /* a sample of the shard, in the shard's order */
	uint64_t at, bytes;
};

struct dali_shard {
	uint64_t bytes;
	size_t n;
	/* sample i of n */
	struct dali_found (*found)(const void *arg, size_t i);
	const void *arg;
};

/* NULL: the index is of that shard. Else why not: a sentence's end. line: where, from 1 on; 0: nowhere in particular. */
const char *dali_check_records(const char *text, size_t size, const struct dali_shard *shard,
			       uint64_t *ret_line);
const char *dali_check_files(const char *text, size_t size, const struct dali_shard *shard,
			     uint64_t *ret_line);
