/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * MosaicML's MDS: a folder with an index.json and shards that it names.
 *
 *   shard     u32 n | u32 starts [n + 1] | the columns in JSON | samples
 *   sample    u32 sizes, one for each column of no fixed size | the columns' bytes, in their order
 *
 * A shard says itself which columns it has; index.json has shards, their sizes, and how many samples are in each. All
 * numbers are little endian. Pure; the bytes may be any.
 */

#include "base/base.h"
#include "storage/source/scan/index_json.h"

#define MDS_MOST_COLUMNS 64
#define MDS_HEAD 8 /* bytes of a shard that mds_head() looks at */

/* Its shards, in the order of the index. As INDEX_JSON_E_..., -ENOMEM. */
int mds_index_parse(const char *text, size_t size, struct index_json *ret, struct diag *diag);

/* ---- a shard's columns ---- */

#define MDS_MOST_NAMES 2048

struct mds_names { /* of columns; NULL: the usual ones */
	const char *picture;
	const char *label;
	/* Not NULL: a sample is all of its columns, which are to be "NAME:ENCODING;..." */
	const char *columns;
};
struct mds_columns { /* what of them is needed to find picture and label in a sample */
	unsigned n;
	uint32_t size[MDS_MOST_COLUMNS]; /* fixed ones; 0: each sample says it */
	unsigned picture;
	bool has_label, is_signed;
	unsigned label;
};
/* The picture: the column that is named, else the only one of encoding jpeg or png, else the only one of bytes. The
 * label: the column that is named, else one of whole numbers that is called label, class or y, else the only one of
 * whole numbers, else none. Of whole samples there need be no picture, and the only number is no label. 0, INDEX_JSON_E_BAD, -ENOMEM. */
int mds_columns_parse(const char *text, size_t size, const struct mds_names *names,
		      struct mds_columns *ret, struct diag *diag);

/* ---- a shard ---- */

struct mds_head {
	uint64_t samples;
	uint64_t columns_at, columns_bytes; /* of the text */
};
/* Of a shard's first MDS_HEAD bytes. false: they are damaged. */
bool mds_head(const uint8_t *bytes, uint64_t shard_bytes, struct mds_head *ret);
/* Of a sample's sizes, mds_sizes_bytes() of its begin; places are relative to that. false: they do not fill the
 * sample exactly. */
struct mds_sample {
	uint32_t picture_at, picture_bytes;
	uint32_t label_at, label_bytes; /* 0, 0: none */
};
size_t mds_sizes_bytes(const struct mds_columns *columns);
bool mds_sample(const struct mds_columns *columns, const uint8_t *sizes, uint64_t bytes,
		struct mds_sample *ret);
int64_t mds_label(const struct mds_columns *columns, const uint8_t *label, unsigned bytes);
