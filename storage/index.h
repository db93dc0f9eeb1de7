/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of a stored index (access-index(5)) and their writer. The places of all parts follow
 * from the six numbers in the head, so there are no offsets to forge, and a file of another length
 * is damaged. dataset.c reads it, scan.c writes it.
 *
 *   head | records | names | class names | folders | folder paths | sums
 * where a list of n strings is u64 [n + 1] (start of each, then the end) and the text, each string
 * with its NUL; every part begins at a multiple of 8 bytes. The sums are a checksum for each block of
 * INDEX_BLOCK bytes before them, so that a large index is checked where it is used.
 */

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_MAGIC UINT64_C(0x3158444e4921414f) /* "OA!INDX1" */
#define INDEX_VERSION 2
#define INDEX_BLOCK UINT64_C(16384)

/* No part of an honest index comes near these; below them no sum of sizes overflows 64 bits. */
#define INDEX_MAX_SAMPLES (UINT64_C(1) << 32)
#define INDEX_MAX_TEXT (UINT64_C(1) << 44)

enum index_label_rule {
	INDEX_LABELS_FLAT = 0,    /* files in the root, label 0 */
	INDEX_LABELS_FOLDERS = 1, /* number of the top-level folder in the sorted list of them */
	INDEX_LABELS_OWN = 2, /* samples bring it; class names: the numbers in decimal, or words */
};

/* What the first 8 bytes of a record are. */
enum index_kind {
	INDEX_OF_FILES = 0, /* the file's time of change; of a converted data set a checksum */
	/* where the sample begins in its shard; instead of folders there are shards. 1 to 3 were these kinds with a
	 * version that said nothing of samples */
	INDEX_OF_TAR = 4,
	INDEX_OF_TFRECORD = 5,
	INDEX_OF_MDS = 6,
	INDEX_OF_MANIFEST = 7, /* the file's time of change; shards are what names the files */
	INDEX_OF_RECORDIO = 8,
	INDEX_OF_LITDATA = 9,
	INDEX_OF_BAGZ = 10,
	INDEX_OF_ARRAYRECORD = 11,
	INDEX_OF_ZIP = 12,
	INDEX_OF_BETON = 13, /* above the lower 48 bits the width of pixels; 0: a picture's file */
	INDEX_KINDS = 14,
};

struct index_head { /* 192 bytes */
	uint64_t magic;
	uint32_t version, head_bytes;
	uint64_t bytes;         /* of the whole file */
	uint64_t head_checksum; /* XXH3-64 of the head, this member 0 */
	uint64_t sums_checksum; /* XXH3-64 of the sums */
	uint64_t n_samples, names_bytes;
	uint64_t n_classes, classes_bytes;
	uint64_t n_folders, folders_bytes;
	uint64_t sum_bytes;        /* of all samples' sizes */
	uint32_t label_rule, kind; /* enum index_label_rule, enum index_kind */
	struct hash_id dataset;    /* the dataset version */
	uint64_t largest_bytes;    /* the largest of the samples' sizes */
	int64_t youngest_ns;       /* the latest change of status of a folder; 0: nobody knows */
	uint64_t reserved1[5];
};

struct index_record {     /* 16 bytes a sample: all that training looks at */
	int64_t mtime_ns; /* or what enum index_kind says */
	uint32_t size, label;
};

struct index_folder {     /* 24 bytes */
	int64_t mtime_ns; /* INDEX_UNSETTLED: was changing when it was listed */
	uint64_t device, inode;
};
#define INDEX_UNSETTLED INT64_MIN
struct index_shard { /* 24 bytes, in the place of a folder */
	int64_t mtime_ns;
	uint64_t bytes, first; /* first: number of its first sample */
};

_Static_assert(sizeof(struct index_head) == 192, "the head is frozen");
_Static_assert(offsetof(struct index_head, dataset) == 104, "the head is frozen");
_Static_assert(sizeof(struct index_record) == 16, "16 bytes a sample");
_Static_assert(sizeof(struct index_folder) == 24, "the folder is frozen");
_Static_assert(sizeof(struct index_shard) == sizeof(struct index_folder), "they have one place");

/* Where the parts are, computed from the head's numbers alone. */
struct index_places {
	uint64_t records;
	uint64_t name_starts, names;
	uint64_t class_starts, classes;
	uint64_t folders, folder_starts, folder_paths;
	uint64_t sums;
	uint64_t bytes;
};
/* false: a number is beyond the limits above. */
bool index_place(const struct index_head *head, struct index_places *ret);
uint64_t index_bytes(const struct index_head *head); /* of the whole; UINT64_MAX: beyond them */

/* Number of blocks; the bytes of a block that are summed (the head is not). */
uint64_t index_blocks(const struct index_places *place);
uint64_t index_block(const struct index_places *place, uint64_t block, uint64_t *ret_at);
/* Makes the checksums of a whole index right, the head's last. */
void index_sum(uint8_t *map, const struct index_places *place);

/*
 * Filling a new index in order: index_new() with the numbers, then each sample, class and folder
 * in its order and exactly as many as were announced, then index_seal().
 */
struct index_writer {
	uint8_t *map; /* owned */
	int fd;       /* owned: the memfd */
	struct index_head head;
	struct index_places place;
	uint64_t sample, name_used;
	uint64_t class_, class_used;
	uint64_t folder, folder_used;
	struct hash *hash; /* owned: the dataset version under way */
};
/* Takes n_..., ..._bytes, label_rule, kind and youngest_ns from head (text with a NUL each); reserves all memory
 * first. 0 or negative errno; then nothing is left to free. */
int index_new(struct index_writer *writer, const struct index_head *head);
void index_drop(struct index_writer *writer); /* frees what index_seal() did not hand over */
/* folder: relative path, "" for the root. */
void index_add_sample(struct index_writer *writer, const char *folder, const char *name,
		      const struct index_record *record);
void index_add_class(struct index_writer *writer, const char *name);
void index_add_folder(struct index_writer *writer, const char *path,
		      const struct index_folder *folder);
/* Before all else: what samples are said to be; "" is nothing. */
void index_add_options(struct index_writer *writer, const char *options);
/* The same of shards, whose first sample is the one that is added next: before its samples. */
void index_add_shard(struct index_writer *writer, const char *name, uint64_t bytes,
		     int64_t mtime_ns);
/* Writes the head and seals the memfd. 0 and *ret_fd (caller owns), or negative errno. */
int index_seal(struct index_writer *writer, int *ret_fd);
