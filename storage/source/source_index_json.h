/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The index.json of a folder of shards, read and held against what is there, so that a copy that was broken off is told as such.
 *
 * The text is a stranger's, and is parsed here, not in a sandbox as shards are: it is JSON, which the daemon takes from any
 * client by the same parser. What it may cost is bounded before it is parsed: its size by INDEX_JSON_MOST_TEXT, what comes of
 * it by the room that the data set has (index_json_weight()). Names in it are only compared, and looked for in the folder.
 */

#include "storage/source/scan/index_json.h"
#include "storage/source/source_kind.h"

/* 0, INDEX_JSON_E_..., -ENOMEM; fills ret only with 0. */
typedef int (*source_index_json_fn)(const char *text, size_t size, void *arg,
				    struct index_json *ret, struct diag *diag);
/* Shards sorted by name. held: bytes of memory that the data set has beside. ret->n 0: there is none of this kind. As probe(). */
int source_index_json(const struct reader_dataset *dataset, const struct scan_progress *progress,
		      uint64_t held, source_index_json_fn parse, void *arg, struct index_json *ret,
		      struct diag *diag);
/* Is each there, in its size? is_less: or, as writers before some version said it, in its size less the head with the samples' places. As
 * probe(). */
int source_index_json_check(const struct reader_dataset *dataset, const struct index_json *index,
			    bool is_less, struct diag *diag);
/* Says that the shard and its index.json do not agree, and what to do. */
int source_index_json_refuse(const struct reader_dataset *dataset, const char *shard,
			     const char *what, struct diag *diag);
