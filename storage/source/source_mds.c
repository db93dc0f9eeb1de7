/* SPDX-License-Identifier: Apache-2.0 */

/*
 * MosaicML's MDS. What is in a shard says scan_mds.c; all else is that of any kind of shards, but that a folder has an
 * index.json of theirs. It is checked, not used: that the shards are those which it names, in the sizes which it
 * says, so that a copy that was broken off is told as such. A folder without one is taken as its shards are.
 */

#include "storage/index.h"
#include "storage/reader_parts.h"
#include "storage/source/scan/mds.h"
#include "storage/source/scan/scan_shard.h"
#include "storage/source/source_index_json.h"
#include "storage/source/source_shards.h"

static int parse(const char *text, size_t size, void *arg, struct index_json *ret,
		 struct diag *diag)
{
	(void)arg;
	return mds_index_parse(text, size, ret, diag);
}

/* Names are sorted in both. */
static int check_names(const struct reader_dataset *dataset, const struct shard_names *names,
		       const struct index_json *index, struct diag *diag)
{
	for (size_t i = 0; i < names->n; i++)
		if (i >= index->n || strcmp(names->name[i], index->shard[i].name) != 0)
			return source_index_json_refuse(
			    dataset, names->name[i],
			    "is there, but " INDEX_JSON " does not name it (once)", diag);
	return 0;
}

/* ---- the kind ---- */

static int mds_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
		     struct diag *diag)
{
	const struct shard_names *names;
	struct index_json index;
	int r = source_shards_probe(dataset, progress, diag);

	if (r || !dataset->is_folder || dataset->pattern)
		return r;
	names = &((const struct shards *)dataset->source)->names;
	r = source_index_json(dataset, progress, names->bytes, parse, NULL, &index, diag);
	if (!r && index.n)
		r = source_index_json_check(dataset, &index, false, diag);
	if (!r && index.n)
		r = check_names(dataset, names, &index, diag);
	index_json_fini(&index);
	return r;
}

static const struct source_shards mds_shards = {
    .what = "MDS shards",
    .suffixes = ".mds\0",
    .compressed = ".mds.zstd\0.mds.zst\0.mds.gz\0.mds.br\0.mds.bz2\0.mds.snappy\0",
    .scan = &scan_mds,
    .empty = "they have no sample",
};

const struct source_ops source_mds = {
    .name = "mds",
    .kind = INDEX_OF_MDS,
    .shards = &mds_shards,
    .options = "image\0label\0columns\0leave_out\0",
    .probe = mds_probe,
    SOURCE_SHARDS_OPS,
};
