/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writer of the stored index.
 *
 * The index is made in a memfd that is reserved in full before the first byte is written: a node
 * without memory refuses the dataset with -ENOMEM or -ENOSPC here instead of dying by SIGBUS in the
 * middle. When it is complete the memfd is sealed against every change, so accessd checks the bytes
 * of a reader once and may believe its own check from then on.
 *
 * The dataset version is computed while the samples go by: SHA-256 over
 *	u64 label rule, u64 number of samples, the options with their NUL if there are any, then for each sample in order
 *	relative path with its NUL, u64 size, i64 mtime in ns		(all little endian)
 * Folders are not part of it: they only say whether the list may have changed. Of shards it is SHA-256 over
 *	u64 kind, u64 number of shards, the options with their NUL if there are any, then for each shard in order
 *	a NUL, its name with its NUL, u64 size, i64 mtime in ns, then for each of its samples in order
 *	its name with its NUL, u64 where it begins, u32 size, u32 label
 * since shards of one size that a program made with one mtime need not have the same samples. Where even these are the
 * same, bytes may differ: who keeps something by the version keeps it by the root, too (source_has_shards() of daemon/serve).
 *
 * Rejected: writing through a buffered file (two copies of the names), and offsets in the head
 * (they would only be something to forge).
 */

#include "storage/index.h"

#include "base/base.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static bool place_part(uint64_t *at, uint64_t count, uint64_t each, uint64_t limit, uint64_t *ret)
{
	if (count > limit)
		return false;
	*ret = *at;
	*at = base_align_up(*at + count * each, 8);
	return true;
}

bool index_place(const struct index_head *head, struct index_places *ret)
{
	uint64_t at = sizeof(*head);
	struct index_places p;

	if (head->n_samples > INDEX_MAX_SAMPLES || head->n_classes > INDEX_MAX_SAMPLES ||
	    head->n_folders > INDEX_MAX_SAMPLES)
		return false;
	if (!place_part(&at, head->n_samples, sizeof(struct index_record), INDEX_MAX_SAMPLES,
			&p.records) ||
	    !place_part(&at, head->n_samples + 1, 8, INDEX_MAX_SAMPLES + 1, &p.name_starts) ||
	    !place_part(&at, head->names_bytes, 1, INDEX_MAX_TEXT, &p.names) ||
	    !place_part(&at, head->n_classes + 1, 8, INDEX_MAX_SAMPLES + 1, &p.class_starts) ||
	    !place_part(&at, head->classes_bytes, 1, INDEX_MAX_TEXT, &p.classes) ||
	    !place_part(&at, head->n_folders, sizeof(struct index_folder), INDEX_MAX_SAMPLES,
			&p.folders) ||
	    !place_part(&at, head->n_folders + 1, 8, INDEX_MAX_SAMPLES + 1, &p.folder_starts) ||
	    !place_part(&at, head->folders_bytes, 1, INDEX_MAX_TEXT, &p.folder_paths))
		return false;
	if (!place_part(&at, index_blocks(&(struct index_places){.sums = at}), 8, INDEX_MAX_TEXT,
			&p.sums))
		return false;
	p.bytes = at;
	*ret = p;
	return true;
}

uint64_t index_bytes(const struct index_head *head)
{
	struct index_places place;

	return index_place(head, &place) ? place.bytes : UINT64_MAX;
}

uint64_t index_blocks(const struct index_places *place)
{
	return (place->sums + INDEX_BLOCK - 1) / INDEX_BLOCK;
}

uint64_t index_block(const struct index_places *place, uint64_t block, uint64_t *ret_at)
{
	uint64_t at = BASE_MAX(block * INDEX_BLOCK, (uint64_t)sizeof(struct index_head));

	*ret_at = at;
	return BASE_MIN((block + 1) * INDEX_BLOCK, place->sums) - at;
}

void index_sum(uint8_t *map, const struct index_places *place)
{
	struct index_head *head = (struct index_head *)(void *)map;
	uint64_t *sums = (uint64_t *)(void *)(map + place->sums), at;

	for (uint64_t i = 0; i < index_blocks(place); i++) {
		uint64_t bytes = index_block(place, i, &at);

		sums[i] = hash_checksum(map + at, bytes);
	}
	head->sums_checksum = hash_checksum(sums, 8 * index_blocks(place));
	head->head_checksum = 0;
	head->head_checksum = hash_checksum(head, sizeof(*head));
}

/* ---- the writer ---- */

static int writer_reserve(struct index_writer *writer)
{
	const uint64_t bytes = writer->place.bytes;
	void *map;
	int fd;

	fd = base_memfd("access-index", bytes);
	if (fd < 0)
		return fd;
	writer->fd = fd;
	if (fallocate(fd, 0, 0, (off_t)bytes) < 0)
		return -errno;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	writer->map = map;
	return 0;
}

int index_new(struct index_writer *writer, const struct index_head *head)
{
	int r;

	*writer = (struct index_writer){.fd = -1, .head = *head};
	if (!index_place(head, &writer->place))
		return -EFBIG;
	r = writer_reserve(writer);
	r = r ? r : hash_new(&writer->hash);
	if (r) {
		index_drop(writer);
		return r;
	}
	hash_add_u64(writer->hash, head->kind ? head->kind : head->label_rule);
	hash_add_u64(writer->hash, head->kind ? head->n_folders : head->n_samples);
	return 0;
}

void index_drop(struct index_writer *writer)
{
	if (writer->map)
		munmap(writer->map, writer->place.bytes);
	writer->map = NULL;
	base_close(&writer->fd);
	hash_freep(&writer->hash);
}

static uint64_t *starts_at(struct index_writer *writer, uint64_t place)
{
	return (uint64_t *)(void *)(writer->map + place);
}

void index_add_sample(struct index_writer *writer, const char *folder, const char *name,
		      const struct index_record *record)
{
	uint64_t *starts = starts_at(writer, writer->place.name_starts);
	char *text = (char *)writer->map + writer->place.names + writer->name_used, *end = text;
	const uint64_t facts[2] = {record->size, (uint64_t)record->mtime_ns};

	if (*folder) {
		end = stpcpy(end, folder);
		*end++ = '/';
	}
	end = stpcpy(end, name) + 1;
	memcpy(writer->map + writer->place.records + writer->sample * sizeof(*record), record,
	       sizeof(*record));
	starts[writer->sample++] = writer->name_used;
	writer->name_used += (uint64_t)(end - text);
	starts[writer->sample] = writer->name_used;
	writer->head.sum_bytes += record->size;
	writer->head.largest_bytes = BASE_MAX(writer->head.largest_bytes, (uint64_t)record->size);
	hash_add(writer->hash, text, (size_t)(end - text));
	if (writer->head.kind)
		hash_add(writer->hash, record, sizeof(*record));
	else
		hash_add(writer->hash, facts, sizeof(facts));
}

void index_add_class(struct index_writer *writer, const char *name)
{
	uint64_t *starts = starts_at(writer, writer->place.class_starts);
	const size_t size = strlen(name) + 1;

	memcpy(writer->map + writer->place.classes + writer->class_used, name, size);
	starts[writer->class_++] = writer->class_used;
	writer->class_used += size;
	starts[writer->class_] = writer->class_used;
}

void index_add_folder(struct index_writer *writer, const char *path,
		      const struct index_folder *folder)
{
	uint64_t *starts = starts_at(writer, writer->place.folder_starts);
	const size_t size = strlen(path) + 1;

	memcpy(writer->map + writer->place.folders + writer->folder * sizeof(*folder), folder,
	       sizeof(*folder));
	memcpy(writer->map + writer->place.folder_paths + writer->folder_used, path, size);
	starts[writer->folder++] = writer->folder_used;
	writer->folder_used += size;
	starts[writer->folder] = writer->folder_used;
}

void index_add_options(struct index_writer *writer, const char *options)
{
	if (*options)
		hash_add(writer->hash, options, strlen(options) + 1);
}

void index_add_shard(struct index_writer *writer, const char *name, uint64_t bytes,
		     int64_t mtime_ns)
{
	const struct index_shard shard = {mtime_ns, bytes, writer->sample};
	const uint64_t facts[2] = {bytes, (uint64_t)mtime_ns};
	struct index_folder folder;

	memcpy(&folder, &shard, sizeof(folder));
	index_add_folder(writer, name, &folder);
	hash_add(writer->hash, "", 1); /* no sample's name begins so */
	hash_add(writer->hash, name, strlen(name) + 1);
	hash_add(writer->hash, facts, sizeof(facts));
}

int index_seal(struct index_writer *writer, int *ret_fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	struct index_head *head = &writer->head;

	head->magic = INDEX_MAGIC;
	head->version = INDEX_VERSION;
	head->head_bytes = sizeof(*head);
	head->bytes = writer->place.bytes;
	hash_finish(writer->hash, &head->dataset);
	memcpy(writer->map, head, sizeof(*head));
	index_sum(writer->map, &writer->place);
	munmap(writer->map, writer->place.bytes);
	writer->map = NULL;
	if (fcntl(writer->fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	*ret_fd = base_take_fd(&writer->fd);
	return 0;
}
