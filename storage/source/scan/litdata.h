/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * LitData's optimized data sets: a folder with an index.json and chunks that it names.
 *
 *   chunk     u32 n | u32 starts [n + 1] | samples
 *   sample    u32 sizes, one for each leaf | the leaves' bytes, in their order
 *
 * index.json says of what a sample's leaves are (its "data_format") and what they are called ("data_spec"): for a
 * sample {"image": ..., "meta": {"label": 3}} they are image and meta.label; for a tuple 0 and 1. A chunk is laid out as
 * an MDS shard that has no columns of its own, so scan_mds.c reads both. index.json says a chunk's size; before litdata 0.2.40 it was
 * that of the samples alone, without what is in front of them. Pure; the text may be any.
 */

#include "storage/source/scan/index_json.h"

#define LITDATA_MOST_LEAVES 64

struct litdata_names { /* of leaves; NULL: the usual ones */
	const char *picture;
	const char *label;
};
struct litdata { /* the leaves of a sample */
	unsigned leaves, picture;
	bool has_label;
	unsigned label;
};
/*
 * Its chunks, in the order of the index. The picture: the leaf that is named, else the only one that was written as a
 * picture, else the only one of bytes. The label: the leaf that is named, else one of whole numbers that is called label,
 * class or y, else the only one of whole numbers, else none. 0, INDEX_JSON_E_..., -ENOMEM.
 */
int litdata_parse(const char *text, size_t size, const struct litdata_names *names,
		  struct index_json *ret, struct litdata *ret_leaves, struct diag *diag);
