/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all kinds of shards have in common (source_kind.h: struct source_shards); their source_ops have these functions.
 */

#include "storage/source/source_kind.h"

/* ---- source_shards.c: which shards there are, and the index ---- */

int source_shards_probe(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct diag *diag);
int source_shards_index(struct reader_dataset *dataset, unsigned threads,
			const struct scan_progress *progress, int *ret_fd, struct diag *diag);
void source_shards_close(struct reader_dataset *dataset);

/* ---- source_shards_write.c: the index of what was found ---- */

struct indexer_shard;
/* All of them; changes labels to numbers of classes. As index(). */
int source_shards_write(const struct reader_dataset *dataset, struct indexer_shard *shard, size_t n,
			unsigned threads, const struct scan_progress *progress, int *ret_fd,
			struct diag *diag);

/* Memory of the shards' names, and of what was found in them. */
uint64_t source_shards_memory(const struct reader_dataset *dataset,
			      const struct indexer_shard *shard, size_t n);

/* ---- source_beside.c ---- */

/* Indexes of others that lie beside the shards, which are sorted: are they of these? Those that are not are told to progress. 0,
 * DATASET_E_CANCELLED or -ENOMEM. */
int source_beside_check(const struct reader_dataset *dataset, const struct indexer_shard *shard,
			size_t n, const struct scan_progress *progress);

/* ---- source_manifest.c ---- */

/* The line in which that byte of a manifest is; 0: it cannot be read. For messages. */
uint64_t source_manifest_line(const struct reader_dataset *dataset, const char *name, uint64_t at);

/* ---- source_shards_list.c: their names ---- */

#define SHARDS_MOST (1u << 20)
#define SHARDS_MOST_BYTES (UINT64_C(256) << 20) /* of their names, and of what is noted of each */

struct shard_names { /* sorted, each once */
	char **name; /* owned, and each of them */
	size_t n, room;
	uint64_t bytes; /* of memory, with what listing their samples notes of each */
};
void source_shards_names_free(struct shard_names *names);
/* These are its shards: takes the names, and the options that the scan gets in place of the user's (malloc()ed; NULL: there was no memory). As
 * probe(). */
int source_shards_begin(struct reader_dataset *dataset, const struct scan_progress *progress,
			struct shard_names *names, char *options);
/* Those that the scan gets. */
const char *source_shards_options(const struct reader_dataset *dataset);
/* One more. 0, or negative errno. */
int source_shards_add(struct shard_names *names, const char *name);
/* Those below a folder that has nothing else that would be a data set; SOURCE_E_NONE: it is no folder of these. Or as
 * probe(). */
int source_shards_list(const struct reader_dataset *dataset, struct shard_names *ret,
		       struct diag *diag);
/* Those that dataset->pattern names, whether they are there or not. */
int source_shards_expand(const struct reader_dataset *dataset, struct shard_names *ret,
			 struct diag *diag);
/* The names in a folder below the root that end in one of the suffixes, whatever has them. 0 or negative errno. */
int source_shards_beside(int root_fd, const char *folder, const char *suffixes,
			 struct shard_names *ret);
/* Does the name end in one of a list of suffixes, "one\0other\0"? NULL: it does not. */
const char *source_shards_suffix(const char *name, const char *suffixes);
/* Do the kind's shards have such names? */
bool source_shards_has_name(const struct source_shards *kind, const char *name);
/* Says what is to be done with it. */
int source_shards_refuse_compressed(const struct reader_dataset *dataset, const char *name,
				    struct diag *diag);

/* ---- source_shards_read.c: samples ---- */

struct shard_files; /* open shards; any thread may ask */
/* So many read a data set, before any is opened. */
void source_shards_threads(unsigned threads);
/* is_direct: each thread may have as many in use as it reads from at once. */
struct shard_files *source_shard_files_new(bool is_direct);
void source_shard_files_free(struct shard_files *files);
void source_shards_read(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *ret);

/* As place() and settle(). */
int source_shards_place(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			struct source_range *ret);
void source_shards_settle(const struct reader_dataset *dataset, uint64_t sample, uint8_t *buffer,
			  struct reader_outcome *ret);

struct shard_read { /* one sample */
	const struct reader_dataset *dataset;
	int root_fd;
	bool has_name; /* below the root: it is not the root itself, which stays what was opened */
	uint64_t shard;
	struct dataset_shard is; /* what the index says of the shard */
	uint64_t place, at;      /* in the index, in the shard */
	uint32_t bytes;
	uint8_t *buffer; /* NULL: the check alone */
	struct reader_outcome *outcome;
};
/* Where the sample is. false: the index is damaged, which outcome says. */
bool source_shard_place(const struct reader_dataset *dataset, int root_fd, uint64_t sample,
			uint8_t *buffer, struct reader_outcome *outcome, struct shard_read *ret);
/* What became of a read from fd, which gave 0 or negative errno, and of the shard behind it. false: the shard is not there any
 * more, and another one may have its name. */
bool source_shard_judge(const struct shard_read *read, int fd, int r);
struct shard_file;
/* The sample's shard, opened to be read past the page cache, in use until it is released; NULL: it cannot be. */
struct shard_file *source_shard_take_direct(const struct shard_read *read, int *ret_fd);
/* is_stale: nobody shall find it any more. */
void source_shard_release(struct shard_files *files, struct shard_file *file, bool is_stale);

/* ---- source_shards_direct.c: several samples at once, past the page cache ---- */

struct shards_direct; /* how; any thread may ask */
/* Data sets of more bytes are tried; none, until it is said. Before any is opened. */
void source_direct_above(uint64_t bytes);
/* Of one whose index is in place. NULL: it is read through the page cache. */
struct shards_direct *source_direct_new(const struct reader_dataset *dataset);
void source_direct_free(struct shards_direct *direct);
/* As most() and many(). */
unsigned source_direct_most(const struct reader_dataset *dataset, const struct reader_link *link);
void source_direct_many(const struct reader_dataset *dataset, struct reader_many *many);
/* What all kinds of shards have in common, beside how they are known (struct source_ops). */
#define SOURCE_SHARDS_OPS                                                                       \
	.index = source_shards_index, .place = source_shards_place,                             \
	.settle = source_shards_settle, .read = source_shards_read, .most = source_direct_most, \
	.many = source_direct_many, .close = source_shards_close
struct direct_meter {
	uint64_t cpu_ns, disk_bytes; /* of the thread, so far */
};
/* Around a read of so many bytes through the page cache; 0: none came. false, also where direct is NULL: it is not measured. */
bool source_direct_begin(struct shards_direct *direct, struct direct_meter *ret);
void source_direct_end(struct shards_direct *direct, const struct direct_meter *meter,
		       uint64_t bytes);

struct shards { /* dataset->source of one of these kinds */
	struct shard_names names;
	char *options;                /* owned, for the scan; NULL: the user's */
	struct shard_files *files;    /* owned; NULL: the root is the one shard */
	struct shards_direct *direct; /* owned; NULL: none is read so */
	int base_fd; /* owned: of a manifest that is the root, its folder; else -1 */
};
