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

#include "storage/index.h"
#include "storage/numbered.h"
#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/source_indexer.h"
#include "storage/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARD_HEAD 4096

/* ---- is it one of these? ---- */

/* A file: by what it begins with, or by its name, so that a damaged one is told as such. */
static int list_file(const struct reader_dataset *dataset, struct shard_names *ret,
		     struct diag *diag)
{
	const struct source_shards *kind = dataset->ops->shards;
	const char *name = strrchr(dataset->name, '/') + 1;
	uint8_t head[SHARD_HEAD];
	ssize_t got;

	if (source_shards_suffix(name, kind->compressed))
		return source_shards_refuse_compressed(dataset, name, diag);
	do
		got = pread(dataset->root_fd, head, sizeof(head), 0);
	while (got < 0 && errno == EINTR);
	if (!source_shards_has_name(kind, name) && (got < 0 || !kind->is_shard(head, (size_t)got)))
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

int source_shards_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag)
{
	struct shards *shards = calloc(1, sizeof(*shards));
	int r;

	if (!shards)
		return -ENOMEM;
	if (dataset->pattern)
		r = list_pattern(dataset, &shards->names, diag);
	else
		r = dataset->is_folder ? source_shards_list(dataset, &shards->names, diag)
				       : list_file(dataset, &shards->names, diag);
	if (!r && !scan_takes(progress, shards->names.bytes))
		r = DATASET_E_ROOM;
	if (!r && dataset->is_folder && !(shards->files = source_shard_files_new()))
		r = -ENOMEM;
	if (r) {
		source_shards_names_free(&shards->names);
		free(shards);
		return r;
	}
	dataset->source = shards;
	return 0;
}

void source_shards_close(struct reader_dataset *dataset)
{
	struct shards *shards = dataset->source;

	if (!shards)
		return;
	source_shard_files_free(shards->files);
	source_shards_names_free(&shards->names);
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
	return S_ISREG(st.st_mode) && (uint64_t)st.st_size == shard.bytes &&
	       walk_mtime_ns(&st) == shard.mtime_ns &&
	       walk_ctime_ns(&st) <= dataset_youngest(dataset->index);
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

struct found { /* all shards, scanned */
	const struct reader_dataset *dataset;
	struct indexer_shard *shard; /* owned */
	size_t n;
	uint64_t memory; /* of the lists */
	bool has_labels;
	uint32_t largest_label;
	struct index_head head; /* its numbers */
};

/* Where a sample is told: "shard:byte (key)". */
static void place_text(const struct indexer_shard *shard, size_t record, const char *key,
		       char ret[320])
{
	char name[150], quoted[120];

	snprintf(ret, 320, "%s:%llu (%s)", base_quote(shard->name, name, sizeof(name)),
		 (unsigned long long)shard->record[record].at,
		 base_quote(key, quoted, sizeof(quoted)));
}

/* The first sample that has a label, or has none; false: there is no such. */
static bool find_labelled(const struct found *found, bool has_label, char ret[320])
{
	for (size_t i = 0; i < found->n; i++) {
		const struct indexer_shard *shard = &found->shard[i];
		const char *key = shard->keys;

		for (size_t k = 0; k < shard->n_records; k++, key += strlen(key) + 1)
			if ((shard->record[k].label != SCAN_NO_LABEL) == has_label) {
				place_text(shard, k, key, ret);
				return true;
			}
	}
	return false;
}

/* All samples have one, or none has. */
static int check_labels(struct found *found, struct diag *diag)
{
	char with[320], without[320], root[200];

	found->has_labels = find_labelled(found, true, with);
	if (!found->has_labels || !find_labelled(found, false, without))
		return 0;
	diag_set(diag,
		 "dataset \"%s\" is refused: sample %s has no label, and %s has one: give all "
		 "samples a label, or none",
		 base_quote(found->dataset->path, root, sizeof(root)), without, with);
	return DATASET_E_REFUSED;
}

static void measure(struct found *found)
{
	struct index_head *head = &found->head;

	head->kind = found->dataset->ops->kind;
	head->n_folders = found->n;
	found->memory = ((const struct shards *)found->dataset->source)->names.bytes;
	for (size_t i = 0; i < found->n; i++) {
		const struct indexer_shard *shard = &found->shard[i];
		const size_t name = strlen(shard->name) + 1;

		found->memory += shard->room_records * sizeof(*shard->record) + shard->room_keys;
		head->youngest_ns = BASE_MAX(head->youngest_ns, shard->ctime_ns);
		head->folders_bytes += name;
		head->n_samples += shard->n_records;
		head->names_bytes += shard->n_records * name + shard->keys_bytes;
		for (size_t k = 0; k < shard->n_records && found->has_labels; k++)
			found->largest_label =
			    BASE_MAX(found->largest_label, shard->record[k].label);
	}
	head->label_rule = found->has_labels ? INDEX_LABELS_OWN : INDEX_LABELS_FLAT;
	head->n_classes = found->has_labels ? (uint64_t)found->largest_label + 1 : 0;
	head->classes_bytes = numbered_bytes(head->n_classes, 1);
}

/* name: room for the longest. */
static void write_shard(struct index_writer *writer, const struct found *found,
			const struct indexer_shard *shard, char *name)
{
	const char *key = shard->keys;
	char *behind = stpcpy(stpcpy(name, shard->name), ":");

	index_add_shard(writer, shard->name, shard->bytes, shard->mtime_ns);
	for (size_t i = 0; i < shard->n_records; i++, key += strlen(key) + 1) {
		const struct indexer_record *record = &shard->record[i];
		const struct index_record is = {
		    .mtime_ns = (int64_t)record->at,
		    .size = record->bytes,
		    .label = found->has_labels ? record->label : 0,
		};

		strcpy(behind, key);
		index_add_sample(writer, "", name, &is);
	}
}

static void write_classes(struct index_writer *writer, uint64_t n)
{
	char name[24];

	for (uint64_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%llu", (unsigned long long)i);
		index_add_class(writer, name);
	}
}

static int write_all(struct found *found, int *ret_fd, struct diag *diag)
{
	_cleanup_free_ char *name = malloc(PATH_MAX + SCAN_MOST_KEY);
	struct index_writer writer;
	char root[256];
	int r = name ? index_new(&writer, &found->head) : -ENOMEM;

	if (r) {
		diag_set(diag, "cannot make the index of dataset \"%s\" (%llu samples): %s",
			 base_quote(found->dataset->path, root, sizeof(root)),
			 (unsigned long long)found->head.n_samples, strerror(-r));
		return r;
	}
	index_add_options(&writer, found->dataset->options);
	for (size_t i = 0; i < found->n; i++)
		write_shard(&writer, found, &found->shard[i], name);
	write_classes(&writer, found->head.n_classes);
	r = index_seal(&writer, ret_fd);
	index_drop(&writer);
	return r;
}

static int refuse_empty(const struct reader_dataset *dataset, struct diag *diag)
{
	char root[256];

	diag_set(diag, "no sample found in the %s of dataset \"%s\": %s",
		 dataset->ops->shards->what, base_quote(dataset->path, root, sizeof(root)),
		 dataset->ops->shards->empty);
	return DATASET_E_EMPTY;
}

static int write_found(struct found *found, const struct scan_progress *progress, int *ret_fd,
		       struct diag *diag)
{
	int r = check_labels(found, diag);

	if (r)
		return r;
	measure(found);
	if (!found->head.n_samples)
		return refuse_empty(found->dataset, diag);
	if (!scan_takes(progress, found->memory + index_bytes(&found->head)))
		return DATASET_E_ROOM;
	return write_all(found, ret_fd, diag);
}

static int build(const struct reader_dataset *dataset, unsigned threads,
		 const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	const struct shards *shards = dataset->source;
	const struct indexer_job job = {
	    .scan = dataset->ops->shards->scan,
	    .options = dataset->options,
	    .root_name = dataset->path,
	    .root_fd = dataset->root_fd,
	    .is_folder = dataset->is_folder,
	    .no_atime = dataset->no_atime,
	    .threads = threads,
	};
	struct found found = {.dataset = dataset, .n = shards->names.n};
	int r;

	found.shard = calloc(found.n, sizeof(*found.shard));
	if (!found.shard)
		return -ENOMEM;
	for (size_t i = 0; i < found.n; i++)
		found.shard[i].name = shards->names.name[i];
	r = source_indexer_run(&job, found.shard, found.n, progress, diag);
	if (!r)
		r = write_found(&found, progress, ret_fd, diag);
	source_indexer_free(found.shard, found.n);
	return r;
}

int source_shards_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag)
{
	int r;

	if (progress->open_only && !shards_are_open(dataset)) {
		diag_set(diag, "not all shards of the dataset are open to everybody");
		return DATASET_E_CLOSED;
	}
	if (source_map_stored(dataset)) {
		if (stored_holds(dataset))
			return 0;
		source_unmap(dataset);
	}
	r = build(dataset, threads, progress, ret_fd, diag);
	return r ? r : source_map_new(dataset, *ret_fd, diag);
}
