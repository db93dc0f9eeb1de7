/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stored index from anywhere. Each input is tried as it is and, so that mutations get past the
 * checksums, once more with the checksums made right. What dataset_map() accepts is then read to
 * the last byte, and must hold no name that leads out of the root.
 */

#include "storage/dataset.h"
#include "storage/index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static void check_name(const char *name)
{
	demand(*name && *name != '/' && strcmp(name, "..") && strncmp(name, "../", 3));
	demand(!strstr(name, "/../") && name[strlen(name) - 1] != '/');
}

static void read_all(const struct dataset *dataset)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < dataset_count(dataset); i++) {
		if (dataset_kind(dataset) == INDEX_OF_MANIFEST)
			demand(*dataset_name_of(dataset, i));
		else
			check_name(dataset_name_of(dataset, i));
		bytes += dataset_size_of(dataset, i) + (uint64_t)dataset_mtime_of(dataset, i) * 0;
		demand(dataset_label_of(dataset, i) < BASE_MAX(dataset_classes(dataset), 1u));
	}
	demand(bytes == dataset_head(dataset)->sum_bytes);
	for (uint32_t i = 0; i < dataset_classes(dataset); i++)
		demand(*dataset_class_name(dataset, i));
	for (uint64_t i = 0; i < dataset_head(dataset)->n_folders; i++) {
		struct dataset_folder folder;

		dataset_folder_of(dataset, i, &folder);
		if (*folder.path)
			check_name(folder.path);
	}
}

static void read_shards(const struct dataset *dataset)
{
	const uint64_t n = dataset_shards(dataset);

	demand(n == (dataset_kind(dataset) ? dataset_head(dataset)->n_folders : 0));
	for (uint64_t i = 0; i < n; i++) {
		struct dataset_shard shard;

		dataset_shard_of(dataset, i, &shard);
		if (*shard.name)
			check_name(shard.name);
	}
	for (uint64_t i = 0; i < dataset_count(dataset) && n; i++)
		demand(dataset_shard_with(dataset, i) < n &&
		       dataset_at_of(dataset, i) == (uint64_t)dataset_mtime_of(dataset, i));
}

static void try_map(const void *data, size_t size)
{
	const int fd = memfd_create("index", MFD_CLOEXEC);
	struct dataset *dataset;

	demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (dataset_map(fd, &dataset) == 0) {
		read_all(dataset);
		read_shards(dataset);
		dataset_unmap(dataset);
	}
	close(fd);
}

static void forge(uint8_t *data, size_t size)
{
	struct index_places place;
	struct index_head head;

	memcpy(&head, data, sizeof(head));
	head.magic = INDEX_MAGIC;
	head.version = INDEX_VERSION;
	head.head_bytes = sizeof(head);
	head.bytes = size;
	memcpy(data, &head, sizeof(head));
	if (index_place(&head, &place) && place.bytes == size)
		index_sum(data, &place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	try_map(data, size);
	if (size < sizeof(struct index_head))
		return 0;
	copy = malloc(size);
	demand(copy != NULL);
	memcpy(copy, data, size);
	forge(copy, size);
	try_map(copy, size);
	free(copy);
	return 0;
}
