/* SPDX-License-Identifier: Apache-2.0 */

/*
 * LitData's optimized data sets. What is in a chunk says scan_mds.c, of which leaves a sample is says index.json (litdata.h);
 * all else is that of any kind of shards. The chunks are those that index.json names, in the order of their names.
 */

#include "storage/index.h"
#include "storage/reader_parts.h"
#include "storage/source/scan/litdata.h"
#include "storage/source/scan/scan_option.h"
#include "storage/source/scan/scan_shard.h"
#include "storage/source/source_index_json.h"
#include "storage/source/source_shards.h"

#include <stdio.h>

#define MOST_NAME 256

struct wanted { /* by the user, and what there is */
	char picture[MOST_NAME], label[MOST_NAME];
	struct litdata leaves;
};

static int parse(const char *text, size_t size, void *arg, struct index_json *ret,
		 struct diag *diag)
{
	struct wanted *wanted = arg;
	const struct litdata_names names = {*wanted->picture ? wanted->picture : NULL,
					    *wanted->label ? wanted->label : NULL};

	return litdata_parse(text, size, &names, ret, &wanted->leaves, diag);
}

/* What the scan is told: leaves, the picture's, the label's. */
static char *layout_of(const struct litdata *leaves)
{
	return base_format("layout=%u;%u;%u", leaves->leaves, leaves->picture,
			   leaves->has_label ? leaves->label : leaves->leaves);
}

/* The chunks become the data set's shards. */
static int begin(struct reader_dataset *dataset, const struct scan_progress *progress,
		 const struct index_json *index, const struct litdata *leaves, struct diag *diag)
{
	struct shard_names names = {.name = NULL};
	int r = 0;

	for (size_t i = 0; i < index->n && !r; i++)
		r = i && !strcmp(index->shard[i].name, index->shard[i - 1].name)
			? source_index_json_refuse(dataset, index->shard[i].name,
						   "is named twice by " INDEX_JSON, diag)
			: source_shards_add(&names, index->shard[i].name);
	if (r)
		source_shards_names_free(&names);
	return r ? r : source_shards_begin(dataset, progress, &names, layout_of(leaves));
}

/* What else has an index.json is not read. */
static bool has_chunk(const struct reader_dataset *dataset)
{
	struct shard_names names;
	bool has = false;

	if (source_shards_beside(dataset->root_fd, ".", ".bin\0", &names))
		return false;
	for (size_t i = 0; i < names.n && !has; i++)
		has = strncmp(names.name[i], "chunk-", strlen("chunk-")) == 0;
	source_shards_names_free(&names);
	return has;
}

static int litdata_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			 struct diag *diag)
{
	struct index_json index;
	struct wanted wanted;
	int r;

	if (!dataset->is_folder || dataset->pattern || !has_chunk(dataset))
		return SOURCE_E_NONE;
	/* of a name that is too long there is no leaf */
	if (!scan_option(dataset->options, "image", wanted.picture, MOST_NAME))
		snprintf(wanted.picture, MOST_NAME, "(too long)");
	if (!scan_option(dataset->options, "label", wanted.label, MOST_NAME))
		snprintf(wanted.label, MOST_NAME, "(too long)");
	r = source_index_json(dataset, progress, 0, parse, &wanted, &index, diag);
	if (!r && !index.n)
		return SOURCE_E_NONE;
	r = r ? r : source_index_json_check(dataset, &index, true, diag);
	r = r ? r : begin(dataset, progress, &index, &wanted.leaves, diag);
	index_json_fini(&index);
	return r;
}

static const struct source_shards litdata_shards = {
    .what = "chunks of LitData",
    .suffixes = "",
    .compressed = "",
    .scan = &scan_litdata,
    .empty = "they have no sample",
};

const struct source_ops source_litdata = {
    .name = "litdata",
    .kind = INDEX_OF_LITDATA,
    .shards = &litdata_shards,
    .options = "image\0label\0leave_out\0",
    .probe = litdata_probe,
    SOURCE_SHARDS_OPS,
};
