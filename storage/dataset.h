/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The index of a dataset version: one file, mapped. 16 bytes a sample (mtime, size, label) are what
 * is looked at while training; names (8 bytes of offset and the text) are mapped and touched only
 * by the reader and by messages. The version is SHA-256 over the label rule and the sorted list of
 * (relative path, size, mtime in ns). Everything in the file is checked before it is believed.
 *
 * Samples have the order of torchvision's ImageFolder, compared as bytes: by class folder, then by
 * the path of the folder, then by the file's name. Labels: number of the top-level folder in the
 * sorted list of them; each must hold a picture, at any depth. Flat folder: label 0, no classes.
 */

#include "base/base.h"
#include "base/hash.h"
#include "storage/index.h"

enum {
	DATASET_E_BAD = 1,     /* damaged or forged index: rebuild it */
	DATASET_E_CHANGED = 2, /* the source is not what the index says; diag names the folder */
	DATASET_E_EMPTY = 3,   /* no picture found; diag says where and which suffixes count */
	DATASET_E_REFUSED = 4, /* cannot be opened or listed; diag names the path and errno */
	DATASET_E_CANCELLED = 5,
	DATASET_E_CLOSED = 6, /* not open to everybody, where only that was wanted */
	DATASET_E_ROOM = 7,   /* more memory than it may take; who set the limit knows how much */
	DATASET_E_COMPRESSED = 8, /* refused, but access-ctl convert unpacks it */
};

struct dataset; /* a mapped index; immutable, reference counted by its owner alone */

/* dataset.c: mapping an index. fd stays the caller's. Head and sums are checked, of a small index all
 * else, too; of a large one each part when it is asked for: what is damaged then reads as 0 and "", of
 * which the reader says that the dataset changed. Any thread may ask. 0, DATASET_E_BAD, negative
 * errno. */
int dataset_map(int fd, struct dataset **ret);
void dataset_unmap(struct dataset *dataset);
/* As dataset_unmap(), but for the mapping itself, which is the caller's now. */
void *dataset_take_map(struct dataset *dataset, uint64_t *ret_bytes);
/* Its numbers, checked. */
const struct index_head *dataset_head(const struct dataset *dataset);
uint64_t dataset_count(const struct dataset *dataset);
const struct hash_id *dataset_version(const struct dataset *dataset);
uint32_t dataset_kind(const struct dataset *dataset); /* enum index_kind */
/* Is what the index says of it undamaged? */
bool dataset_has(const struct dataset *dataset, uint64_t sample);
uint32_t dataset_size_of(const struct dataset *dataset, uint64_t sample); /* bytes of the file */
int64_t dataset_mtime_of(const struct dataset *dataset,
			 uint64_t sample); /* of files: ns since 1970 */
uint32_t dataset_label_of(const struct dataset *dataset, uint64_t sample);
const char *dataset_name_of(const struct dataset *dataset, uint64_t sample); /* relative path */
uint32_t dataset_classes(const struct dataset *dataset);
const char *dataset_class_name(const struct dataset *dataset, uint32_t label);

/* For fds that came from another process, before dataset_map(): is it sealed against every change,
 * so that what was checked stays so and no access ends in SIGBUS? */
bool dataset_is_sealed(int fd);
struct dataset_folder {
	const char *path; /* relative, "" for the root; borrowed from the dataset */
	int64_t mtime_ns; /* INT64_MIN: was changing while it was listed */
	uint64_t device, inode;
};
void dataset_folder_of(const struct dataset *dataset, uint64_t folder, struct dataset_folder *ret);

/* Of a data set that lies in shards: their list is in the place of that of the folders. */
struct dataset_shard {
	const char *name; /* below the root; borrowed from the dataset; "" if it is damaged */
	uint64_t bytes;
	int64_t mtime_ns;
};
uint64_t dataset_shards(const struct dataset *dataset); /* 0: it does not */
void dataset_shard_of(const struct dataset *dataset, uint64_t shard, struct dataset_shard *ret);
uint64_t dataset_shard_with(const struct dataset *dataset, uint64_t sample); /* its number */
uint64_t dataset_at_of(const struct dataset *dataset, uint64_t sample);      /* its place there */

/* Samples that may be read past the page cache, right into their place in an arena, lie there as in their shards: as far behind a
 * multiple of DATASET_PLACE, and all between the multiples before and behind is theirs. So is this data set placed? */
#define DATASET_PLACE 4096
bool dataset_is_placed(const struct dataset *dataset);

/* scan.c: run in the reader process, with its threads. */
struct scan_progress {
	void (*tell)(void *arg, uint64_t folders, uint64_t files); /* at most 10 times a second */
	bool (*cancelled)(void *arg);
	void *arg;
	/* Once, behind a scan with such: so many files that have pictures' names are left out, since they are FIFOs,
	 * sockets or devices, which are never opened; names: the first few, quoted. NULL: nobody wants to know */
	void (*left_out)(void *arg, uint64_t count, const char *names);
	/* Once: so many indexes of others were set aside; first: the first of them, and why. NULL: nobody wants to know */
	void (*aside)(void *arg, uint64_t count, const char *first);
	bool open_only; /* DATASET_E_CLOSED as soon as something is not open to everybody */
	bool (*takes)(void *arg, uint64_t bytes); /* may it have so much memory in all? else
						     DATASET_E_ROOM; NULL: any */
};
static inline bool scan_takes(const struct scan_progress *progress, uint64_t bytes)
{
	return !progress || !progress->takes || progress->takes(progress->arg, bytes);
}
/* Lists root (an open directory; stays the caller's) in parallel and writes the index to a sealed
 * memfd. 0 and *ret_fd (caller owns), DATASET_E_..., negative errno. Symbolic links to files and
 * folders are followed; loops are found by (device, inode) and refused with their path. Suffixes as
 * torchvision's IMG_EXTENSIONS (.jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp), .avif, .jp2, .j2k, .jpx, .jxl, .heic and .heif,
 * .dcm, .dicom, .nii and .nii.gz, in any case. */
int scan_build(int root_fd, const char *root_name, unsigned threads,
	       const struct scan_progress *progress, int *ret_fd, struct diag *diag);
/* Stats the folders only: 0 unchanged, DATASET_E_CHANGED. */
int scan_verify(int root_fd, const char *root_name, const struct dataset *dataset,
		struct diag *diag);
