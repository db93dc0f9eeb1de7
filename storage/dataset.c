/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stored index, mapped and checked.
 *
 * An index comes from a file that may be damaged, or from a reader process that may be hostile, and
 * it decides which files are opened under the user's root and how far memory is read. So nothing in it
 * is believed before it was checked:
 *	head		magic, version, checksum, and that its numbers make up exactly this length;
 *	sums		their checksum, then each block by its sum (damage; a forger computes them, so
 *			nothing rests on them);
 *	strings		starts ascend from 0 to the end, one NUL each, at its end;
 *	paths		relative, no empty, "." or ".." component: the reader opens below its root; but of a
 *			manifest's files, which may lie wherever its user can read, and of no other user's;
 *	records		label below the number of classes, size not above the largest.
 * What stays unchecked is harmless: an index with false mtimes or a false version only says
 * "changed" of every file, or names another dataset of the same user.
 *
 * Head and sums (1 byte in 2,048) are checked when it is mapped. A small index is then checked whole,
 * sums of sizes included. Of a large one each block is checked when something in it is first
 * asked for, and each string and record whenever it is: 10^9 samples are there at once, and what a
 * sample costs does not depend on how many there are. What turns out damaged reads as an empty name
 * of an empty file of 1970: the reader finds no such file, says that the dataset changed, and the
 * stored index is forgotten. Blocks are marked as they are found good, by any thread, in any order.
 *
 * The mapping is shared and read-only, so accessd and the reader have one copy between them. Files
 * that accessd stores are replaced by rename and never changed in place; memfds of readers are sealed
 * (dataset_is_sealed). Not so on a network file system, where many a home folder is: a rename by
 * another node takes the old file away from under its mappings, and touching one ends in SIGBUS.
 * There the file is read into memory, as it is wherever we do not know better.
 */

#include "storage/dataset.h"

#include "base/counter.h"
#include "storage/index.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define DATASET_ZFS 0x2fc12fc1 /* not in magic.h */

#define DATASET_PLACED_LEAST 32768        /* bytes of a sample in the mean */
#define DATASET_SMALL (UINT64_C(1) << 20) /* bytes of an index that is checked whole */

enum string_kind { STRING_PATH, STRING_PATH_OR_ROOT, STRING_TEXT };

struct strings {
	const uint64_t *start; /* [count + 1] */
	const char *text;
	uint64_t count, text_bytes;
	enum string_kind kind;
};

struct dataset {
	const uint8_t *map; /* owned */
	uint64_t bytes;
	struct index_head head; /* private copy, checked */
	struct index_places place;
	const struct index_record *record;
	const struct index_folder *folder;
	struct strings names, classes, folder_paths;
	struct counter *is_good; /* owned; of each block: 1 when its sum was found right */
};

/* ---- checks ---- */

static bool head_is_good(const struct index_head *head, uint64_t bytes)
{
	struct index_head copy = *head;
	struct index_places place;

	if (head->magic != INDEX_MAGIC || head->version != INDEX_VERSION ||
	    head->head_bytes != sizeof(*head) || head->bytes != bytes)
		return false;
	copy.head_checksum = 0;
	if (hash_checksum(&copy, sizeof(copy)) != head->head_checksum)
		return false;
	if (!index_place(head, &place) || place.bytes != bytes)
		return false;
	if (head->n_samples == 0 || head->n_folders == 0)
		return false;
	if (head->kind >= INDEX_KINDS ||
	    (head->kind != INDEX_OF_FILES && head->kind < INDEX_OF_TAR) ||
	    head->label_rule > INDEX_LABELS_OWN)
		return false;
	if (head->label_rule == INDEX_LABELS_FLAT)
		return head->n_classes == 0;
	return (head->label_rule == INDEX_LABELS_OWN) == (head->kind != INDEX_OF_FILES) &&
	       head->n_classes > 0 && head->n_classes <= UINT32_MAX;
}

/* Is path relative and without empty, "." and ".." components? size is without the NUL. */
static bool path_is_below(const char *path, size_t size)
{
	const char *end = path + size;

	for (;;) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		const size_t length = (size_t)((slash ? slash : end) - path);

		if (length == 0 ||
		    (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.'))))
			return false;
		if (!slash)
			return true;
		path = slash + 1;
	}
}

static bool string_is_good(const char *text, uint64_t size, enum string_kind kind)
{
	if (memchr(text, 0, size) != text + size - 1)
		return false;
	if (size == 1)
		return kind == STRING_PATH_OR_ROOT;
	return kind == STRING_TEXT || path_is_below(text, size - 1);
}

/* From the disk in one go, where MADV_RANDOM keeps the kernel from reading more than is touched. */
static void want_pages(const uint8_t *from, uint64_t bytes)
{
	madvise((void *)(uintptr_t)from, bytes, MADV_WILLNEED);
}

static bool block_is_good(const struct dataset *dataset, uint64_t block)
{
	const uint64_t *sums = (const uint64_t *)(const void *)(dataset->map + dataset->place.sums);
	uint64_t at, bytes;

	if (counter_get(&dataset->is_good[block]))
		return true;
	bytes = index_block(&dataset->place, block, &at);
	want_pages(dataset->map + block * INDEX_BLOCK, INDEX_BLOCK);
	if (hash_checksum(dataset->map + at, bytes) != sums[block])
		return false;
	counter_set(&dataset->is_good[block], 1);
	return true;
}

/* Are the blocks good in which these bytes lie? */
static bool range_is_good(const struct dataset *dataset, const void *from, uint64_t bytes)
{
	uint64_t at = (uint64_t)((const uint8_t *)from - dataset->map);

	for (uint64_t i = at / INDEX_BLOCK; i <= (at + bytes - 1) / INDEX_BLOCK; i++)
		if (!block_is_good(dataset, i))
			return false;
	return true;
}

/* The string, or "" if it is damaged. */
static const char *string_of(const struct dataset *dataset, const struct strings *strings,
			     uint64_t i)
{
	uint64_t at, next;

	if (!range_is_good(dataset, strings->start + i, 16))
		return "";
	at = strings->start[i];
	next = strings->start[i + 1];
	if (next <= at || next > strings->text_bytes ||
	    !range_is_good(dataset, strings->text + at, next - at) ||
	    !string_is_good(strings->text + at, next - at, strings->kind))
		return "";
	return strings->text + at;
}

static bool strings_are_good(const struct dataset *dataset, const struct strings *strings)
{
	if (strings->start[0] != 0 || strings->start[strings->count] != strings->text_bytes)
		return false;
	for (uint64_t i = 0; i < strings->count; i++)
		if (!*string_of(dataset, strings, i) &&
		    (strings->kind != STRING_PATH_OR_ROOT ||
		     strings->start[i + 1] != strings->start[i] + 1))
			return false;
	return true;
}

static bool record_is_good(const struct dataset *dataset, uint64_t sample,
			   const struct index_record *record)
{
	return range_is_good(dataset, &dataset->record[sample], sizeof(*record)) &&
	       record->label < BASE_MAX(dataset->head.n_classes, UINT64_C(1)) &&
	       record->size <= dataset->head.largest_bytes;
}

/* A copy, all 0 if it is damaged. */
static struct index_record record_of(const struct dataset *dataset, uint64_t sample)
{
	const struct index_record record = dataset->record[sample];

	return record_is_good(dataset, sample, &record) ? record : (struct index_record){0};
}

static bool records_are_good(const struct dataset *dataset)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < dataset->head.n_samples; i++) {
		if (!record_is_good(dataset, i, &dataset->record[i]))
			return false;
		sum += dataset->record[i].size;
	}
	return sum == dataset->head.sum_bytes;
}

static bool sums_are_good(const struct dataset *dataset)
{
	const uint8_t *sums = dataset->map + dataset->place.sums;
	const uint64_t bytes = 8 * index_blocks(&dataset->place);
	const uint64_t in_page = dataset->place.sums % base_page_size();

	want_pages(sums - in_page, bytes + in_page);
	return hash_checksum(sums, bytes) == dataset->head.sums_checksum;
}

static bool all_is_good(const struct dataset *dataset)
{
	for (uint64_t i = 0; i < index_blocks(&dataset->place); i++)
		if (!block_is_good(dataset, i))
			return false;
	return strings_are_good(dataset, &dataset->names) &&
	       strings_are_good(dataset, &dataset->classes) &&
	       strings_are_good(dataset, &dataset->folder_paths) && records_are_good(dataset);
}

/* ---- mapping ---- */

static struct strings strings_at(const uint8_t *map, uint64_t starts, uint64_t text, uint64_t count,
				 uint64_t text_bytes, enum string_kind kind)
{
	return (struct strings){
	    .start = (const uint64_t *)(const void *)(map + starts),
	    .text = (const char *)map + text,
	    .count = count,
	    .text_bytes = text_bytes,
	    .kind = kind,
	};
}

static void dataset_lay_out(struct dataset *dataset)
{
	const struct index_head *head = &dataset->head;
	const struct index_places *place = &dataset->place;
	const uint8_t *map = dataset->map;

	index_place(head, &dataset->place); /* head_is_good() has seen it succeed */
	dataset->record = (const void *)(map + place->records);
	dataset->folder = (const void *)(map + place->folders);
	dataset->names =
	    strings_at(map, place->name_starts, place->names, head->n_samples, head->names_bytes,
		       head->kind == INDEX_OF_MANIFEST ? STRING_TEXT : STRING_PATH);
	dataset->classes = strings_at(map, place->class_starts, place->classes, head->n_classes,
				      head->classes_bytes, STRING_TEXT);
	dataset->folder_paths =
	    strings_at(map, place->folder_starts, place->folder_paths, head->n_folders,
		       head->folders_bytes, STRING_PATH_OR_ROOT);
}

static int dataset_check_map(struct dataset *dataset)
{
	memcpy(&dataset->head, dataset->map, sizeof(dataset->head));
	if (!head_is_good(&dataset->head, dataset->bytes))
		return DATASET_E_BAD;
	dataset_lay_out(dataset);
	dataset->is_good = calloc(index_blocks(&dataset->place), sizeof(*dataset->is_good));
	if (!dataset->is_good)
		return -ENOMEM;
	if (!sums_are_good(dataset))
		return DATASET_E_BAD;
	return dataset->bytes > DATASET_SMALL || all_is_good(dataset) ? 0 : DATASET_E_BAD;
}

/* Does the file stay what it is while it is mapped, also when its name goes to another? */
static bool file_is_steady(int fd)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
					 F2FS_SUPER_MAGIC, TMPFS_MAGIC,     OVERLAYFS_SUPER_MAGIC,
					 RAMFS_MAGIC,      DATASET_ZFS};
	struct statfs fs;

	if (dataset_is_sealed(fd))
		return true;
	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < BASE_ARRAY_LEN(local); i++)
		if ((uint32_t)fs.f_type == local[i])
			return true;
	return false;
}

static int file_read(int fd, uint8_t *to, uint64_t bytes)
{
	const int r = base_read_at(fd, to, bytes, 0);

	if (r)
		return r == -ENODATA ? DATASET_E_BAD : r; /* it became shorter */
	return mprotect(to, bytes, PROT_READ) < 0 ? -errno : 0;
}

/* The file's bytes in memory, mapped or copied; to be given back by munmap(). */
static int file_map(int fd, uint64_t bytes, const uint8_t **ret)
{
	const bool steady = file_is_steady(fd);
	void *map =
	    steady ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0)
		   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (map == MAP_FAILED)
		return -errno;
	if (bytes > DATASET_SMALL)
		madvise(map, bytes, MADV_RANDOM);
	r = steady ? 0 : file_read(fd, map, bytes);
	if (r) {
		munmap(map, bytes);
		return r;
	}
	*ret = map;
	return 0;
}

int dataset_map(int fd, struct dataset **ret)
{
	struct dataset *dataset;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct index_head))
		return DATASET_E_BAD;
	dataset = calloc(1, sizeof(*dataset));
	if (!dataset)
		return -ENOMEM;
	dataset->bytes = (uint64_t)st.st_size;
	r = file_map(fd, dataset->bytes, &dataset->map);
	if (r) {
		free(dataset);
		return r;
	}
	r = dataset_check_map(dataset);
	if (r) {
		dataset_unmap(dataset);
		return r;
	}
	*ret = dataset;
	return 0;
}

void *dataset_take_map(struct dataset *dataset, uint64_t *ret_bytes)
{
	void *map = (void *)(uintptr_t)dataset->map;

	*ret_bytes = dataset->bytes;
	free(dataset->is_good);
	free(dataset);
	return map;
}

void dataset_unmap(struct dataset *dataset)
{
	uint64_t bytes;
	void *map;

	if (!dataset)
		return;
	map = dataset_take_map(dataset, &bytes);
	munmap(map, bytes);
}

bool dataset_is_sealed(int fd)
{
	return base_is_sealed(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

/* ---- accessors ---- */

const struct index_head *dataset_head(const struct dataset *dataset)
{
	return &dataset->head;
}

uint64_t dataset_count(const struct dataset *dataset)
{
	return dataset->head.n_samples;
}

const struct hash_id *dataset_version(const struct dataset *dataset)
{
	return &dataset->head.dataset;
}

bool dataset_has(const struct dataset *dataset, uint64_t sample)
{
	return record_is_good(dataset, sample, &dataset->record[sample]) &&
	       *dataset_name_of(dataset, sample);
}

uint32_t dataset_size_of(const struct dataset *dataset, uint64_t sample)
{
	return record_of(dataset, sample).size;
}

int64_t dataset_mtime_of(const struct dataset *dataset, uint64_t sample)
{
	return record_of(dataset, sample).mtime_ns;
}

uint32_t dataset_label_of(const struct dataset *dataset, uint64_t sample)
{
	return record_of(dataset, sample).label;
}

const char *dataset_name_of(const struct dataset *dataset, uint64_t sample)
{
	return string_of(dataset, &dataset->names, sample);
}

uint32_t dataset_classes(const struct dataset *dataset)
{
	return (uint32_t)dataset->head.n_classes;
}

const char *dataset_class_name(const struct dataset *dataset, uint32_t label)
{
	return string_of(dataset, &dataset->classes, label);
}

void dataset_folder_of(const struct dataset *dataset, uint64_t folder, struct dataset_folder *ret)
{
	*ret = (struct dataset_folder){.path = "", .mtime_ns = INDEX_UNSETTLED};
	if (!range_is_good(dataset, &dataset->folder[folder], sizeof(*dataset->folder)))
		return;
	*ret = (struct dataset_folder){
	    .path = string_of(dataset, &dataset->folder_paths, folder),
	    .mtime_ns = dataset->folder[folder].mtime_ns,
	    .device = dataset->folder[folder].device,
	    .inode = dataset->folder[folder].inode,
	};
}

uint32_t dataset_kind(const struct dataset *dataset)
{
	return dataset->head.kind;
}

/* ---- shards ---- */

uint64_t dataset_at_of(const struct dataset *dataset, uint64_t sample)
{
	return (uint64_t)record_of(dataset, sample).mtime_ns;
}

/* In shards, where the places between cost little of an arena. */
bool dataset_is_placed(const struct dataset *dataset)
{
	const uint32_t kind = dataset->head.kind;

	return kind != INDEX_OF_FILES && kind != INDEX_OF_MANIFEST &&
	       dataset->head.sum_bytes / DATASET_PLACED_LEAST >= dataset->head.n_samples;
}

uint64_t dataset_shards(const struct dataset *dataset)
{
	return dataset->head.kind ? dataset->head.n_folders : 0;
}

static struct index_shard shard_record_of(const struct dataset *dataset, uint64_t shard)
{
	struct index_shard record = {.bytes = 0};

	if (range_is_good(dataset, &dataset->folder[shard], sizeof(record)))
		memcpy(&record, &dataset->folder[shard], sizeof(record));
	return record;
}

void dataset_shard_of(const struct dataset *dataset, uint64_t shard, struct dataset_shard *ret)
{
	const struct index_shard record = shard_record_of(dataset, shard);

	*ret = (struct dataset_shard){
	    .name = string_of(dataset, &dataset->folder_paths, shard),
	    .bytes = record.bytes,
	    .mtime_ns = record.mtime_ns,
	};
}

uint64_t dataset_shard_with(const struct dataset *dataset, uint64_t sample)
{
	return BASE_LAST(at, dataset_shards(dataset), shard_record_of(dataset, at).first <= sample);
}
