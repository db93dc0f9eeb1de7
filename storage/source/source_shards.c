/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data sets that lie in shards: opening one.
 *
 * Shards have the order of their names, compared as bytes, samples within a shard the order that they have there. Labels
 * are what the samples bring, and classes are named by their numbers; without any, all have label 0.
 *
 * A stored index holds as long as the list of the shards is the same, and each has its size and time of change, and was
 * not changed in any way (st_ctim, which nobody sets) since all were scanned. One stat a shard tells.
 */

#include "storage/source/source_shards.h"

#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_indexer.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <unistd.h>

#define SHARD_HEAD 4096

/* ---- is it one of these? ---- */

/* A file: by what it begins with, or by its name, so that a damaged one is told as such. */
static int list_file(const struct reader_dataset *dataset, struct shard_names *ret,
		     struct diag *diag)
{
	const struct source_shards *kind = dataset->ops->shards;
	const char *name = strrchr(dataset->name, '/') + 1;
	struct source_from from = {.dataset = dataset, .fd = dataset->root_fd};
	uint8_t head[SHARD_HEAD];
	ssize_t got;

	if (source_shards_suffix(name, kind->compressed))
		return source_shards_refuse_compressed(dataset, name, diag);
	got = source_read_begin(&from, head, sizeof(head));
	if (got < 0 && dataset->bucket)
		return source_read_failed(&from, (int)got, diag);
	if (!source_shards_has_name(kind, name) &&
	    (!kind->scan->is_shard || got < 0 || !kind->scan->is_shard(head, (size_t)got)))
		return SOURCE_E_NONE;
	ret->name = calloc(1, sizeof(*ret->name));
	if (!ret->name || !(ret->name[0] = strdup(name)))
		return -ENOMEM;
	ret->n = ret->room = 1;
	return 0;
}

static int list_pattern(const struct reader_dataset *dataset, struct shard_names *ret,
			struct diag *diag)
{
	const struct source_shards *kind = dataset->ops->shards;

	if (source_shards_suffix(dataset->pattern, kind->compressed))
		return source_shards_refuse_compressed(dataset, dataset->pattern, diag);
	if (!source_shards_has_name(kind, dataset->pattern))
		return SOURCE_E_NONE;
	return source_shards_expand(dataset, ret, diag);
}

/* Takes both. */
static int begin(struct reader_dataset *dataset, const struct scan_progress *progress,
		 struct shard_names *names, char *options)
{
	const bool is_taken = scan_takes(progress, names->bytes);
	struct shards *shards = is_taken ? calloc(1, sizeof(*shards)) : NULL;

	if (!shards) {
		source_shards_names_free(names);
		free(options);
		return is_taken ? -ENOMEM : DATASET_E_ROOM;
	}
	*shards = (struct shards){.names = *names, .options = options, .base_fd = -1};
	dataset->source = shards;
	return 0;
}

int source_shards_begin(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct shard_names *names, char *options)
{
	if (options)
		return begin(dataset, progress, names, options);
	source_shards_names_free(names);
	return -ENOMEM;
}

const char *source_shards_options(const struct reader_dataset *dataset)
{
	const struct shards *shards = dataset->source;

	return shards->options ? shards->options : dataset->options;
}

int source_shards_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	struct shard_names names = {.name = NULL};
	int r;

	if (dataset->pattern)
		r = list_pattern(dataset, &names, diag);
	else
		r = dataset->is_folder ? source_shards_list(dataset, &names, diag)
				       : list_file(dataset, &names, diag);
	if (!r)
		return begin(dataset, progress, &names, NULL);
	source_shards_names_free(&names);
	return r;
}

void source_shards_close(struct reader_dataset *dataset)
{
	struct shards *shards = dataset->source;

	if (!shards)
		return;
	base_close(&shards->base_fd);
	source_direct_free(shards->direct);
	source_shard_files_free(shards->files);
	source_shards_names_free(&shards->names);
	free(shards->options);
	free(shards);
}

/* ---- who may read them ---- */

/* The way to the root was looked at. */
static bool shard_is_open(const struct reader_dataset *dataset, const char *name)
{
	struct stat st;

	return !dataset->is_folder ||
	       (!strchr(name, '/') &&
		fstatat(dataset->root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		openness_of_file(dataset->root_fd, name, &st) && openness_is_there(&st));
}

static bool shards_are_open(const struct reader_dataset *dataset)
{
	const struct shards *shards = dataset->source;

	for (size_t i = 0; i < shards->names.n; i++)
		if (!shard_is_open(dataset, shards->names.name[i]))
			return false;
	return true;
}

/* ---- a stored index ---- */

static bool shard_holds(const struct reader_dataset *dataset, uint64_t i, const char *name)
{
	struct dataset_shard shard;
	struct stat st;

	dataset_shard_of(dataset->index, i, &shard);
	if (strcmp(shard.name, name) != 0 ||
	    (dataset->is_folder ? fstatat(dataset->root_fd, name, &st, 0)
				: fstat(dataset->root_fd, &st)) < 0)
		return false;
	return walk_is_same(&st, shard.bytes, shard.mtime_ns) &&
	       (dataset->bucket || /* a placeholder's time is a tag, and tells enough */
		walk_ctime_ns(&st) <= dataset_head(dataset->index)->youngest_ns);
}

static bool stored_holds(const struct reader_dataset *dataset)
{
	const struct shards *shards = dataset->source;

	if (dataset_shards(dataset->index) != shards->names.n)
		return false;
	for (size_t i = 0; i < shards->names.n; i++)
		if (!shard_holds(dataset, i, shards->names.name[i]))
			return false;
	return true;
}

/* ---- a new index ---- */

static int build(const struct reader_dataset *dataset, unsigned threads,
		 const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	const struct shards *shards = dataset->source;
	const struct indexer_job job = {
	    .scan = dataset->ops->shards->scan,
	    .options = source_shards_options(dataset),
	    .dataset = dataset,
	    .threads = threads,
	};
	const size_t n = shards->names.n;
	struct indexer_shard *shard = calloc(n, sizeof(*shard));
	int r;

	if (!shard)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		shard[i].name = shards->names.name[i];
	r = source_indexer_run(&job, shard, n, progress, diag);
	r = r ? r : source_beside_check(dataset, shard, n, progress);
	r = r ? r : source_shards_write(dataset, shard, n, threads, progress, ret_fd, diag);
	source_indexer_free(shard, n);
	return r;
}

static int place_index(struct reader_dataset *dataset, unsigned threads,
		       const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	int r;

	if (progress->open_only && !shards_are_open(dataset))
		return diag_fail(diag, DATASET_E_CLOSED,
				 "not all shards of the dataset are open to everybody");
	if (source_map_stored(dataset)) {
		if (stored_holds(dataset))
			return 0;
		source_unmap(dataset);
	}
	r = build(dataset, threads, progress, ret_fd, diag);
	return r ? r : source_map_new(dataset, ret_fd, diag);
}

int source_shards_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	struct shards *shards = dataset->source;
	_cleanup_close_ int fd = -1;
	const int r = place_index(dataset, threads, progress, &fd, diag);

	if (r)
		return r;
	shards->direct = source_direct_new(dataset);
	if (dataset->is_folder)
		shards->files = source_shard_files_new(shards->direct != NULL);
	if (dataset->is_folder && !shards->files)
		return -ENOMEM;
	*ret_fd = base_take_fd(&fd);
	return 0;
}
