/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A converted data set from anywhere. Each input is tried as it is and, so that mutations get past the
 * checksums, once more with length and checksums made right, and then with a hole in it, which makes it as
 * long as it likes to say. Of what is accepted every sample is asked for: its place is within the samples, and
 * no more is written than its size. An index takes no more memory than the file has bytes, holes not counted.
 */

#include "storage/oads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/index.h"

#define HOLE (UINT64_C(64) << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static void read_all(const struct oads *oads, const struct dataset *index)
{
	uint8_t *buffer =
	    malloc(dataset_head(index)->largest_bytes < 65536 ? dataset_head(index)->largest_bytes
							      : 65536);

	for (uint64_t i = 0; i < dataset_count(index); i++) {
		const uint32_t size = dataset_size_of(index, i);
		uint64_t at;

		demand(buffer != NULL || dataset_head(index)->largest_bytes == 0);
		if (!oads_place(oads, index, i, &at))
			continue;
		demand(at >= OADS_FIRST && at + size <= oads_head(oads)->index_at);
		demand(size <= 65536); /* the input is smaller */
		oads_read(oads, index, i, buffer);
	}
	free(buffer);
}

/* The memory that a descriptor holds. */
static uint64_t bytes_of(int fd)
{
	struct stat st;

	demand(fstat(fd, &st) == 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The input with a hole of so many bytes at that place. */
static void try_open(const uint8_t *data, size_t size, uint64_t hole, uint64_t at)
{
	const int fd = memfd_create("oads", MFD_CLOEXEC);
	struct dataset *index;
	struct oads *oads;
	struct diag diag;
	int index_fd;

	demand(fd >= 0 && base_write_at(fd, data, at, 0) == 0 &&
	       base_write_at(fd, data + at, size - at, at + hole) == 0);
	if (oads_open(fd, "input", NULL, &oads, &diag) == 0) {
		if (oads_index(oads, NULL, &index_fd) == 0) {
			demand(bytes_of(index_fd) <= bytes_of(fd) + 4096);
			if (dataset_map(index_fd, &index) == 0) {
				if (oads_is_index(oads, index))
					read_all(oads, index);
				dataset_unmap(index);
			}
			close(index_fd);
		}
		oads_close(oads);
	}
	close(fd);
}

/* The index, if its numbers fit where it is: also that it is the one of the head. */
static void forge_index(uint8_t *data, struct oads_head *head)
{
	struct index_places place;
	struct index_head index;

	memcpy(&index, data + head->index_at, sizeof(index));
	index.magic = INDEX_MAGIC;
	index.version = INDEX_VERSION;
	index.head_bytes = sizeof(index);
	index.bytes = head->index_bytes;
	index.n_samples = head->n_samples;
	index.dataset = head->dataset;
	if (!index_place(&index, &place) || place.bytes != head->index_bytes)
		return;
	memcpy(data + head->index_at, &index, sizeof(index));
	index_sum(data + head->index_at, &place);
}

static void forge(uint8_t *data, size_t size)
{
	struct oads_head head;
	uint64_t starts, starts_at;

	memcpy(&head, data, sizeof(head));
	head.magic = OADS_MAGIC;
	head.version = OADS_VERSION;
	head.forms = OADS_FORMS;
	head.head_bytes = sizeof(head);
	head.bytes = size;
	if (head.n_samples == 0 || head.n_samples > size)
		return;
	starts = 8 * ((head.n_samples + OADS_GROUP - 1) / OADS_GROUP + 1);
	if (starts > size || head.index_at > size - starts)
		return;
	starts_at = (size - starts) / OADS_ALIGN * OADS_ALIGN;
	if (starts_at < head.index_at + sizeof(struct index_head))
		return;
	if (base_align_up(head.index_at + head.index_bytes, OADS_ALIGN) != starts_at)
		head.index_bytes = starts_at - head.index_at;
	head.bytes = starts_at + starts;
	head.starts_checksum = hash_checksum(data + starts_at, starts);
	forge_index(data, &head);
	head.head_checksum = 0;
	head.head_checksum = hash_checksum(&head, sizeof(head));
	memcpy(data, &head, sizeof(head));
	try_open(data, head.bytes, 0, 0);
	head.index_bytes += HOLE;
	head.bytes += HOLE;
	head.head_checksum = 0;
	head.head_checksum = hash_checksum(&head, sizeof(head));
	memcpy(data, &head, sizeof(head));
	try_open(data, head.bytes - HOLE, HOLE, starts_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > 65536)
		return 0;
	try_open(data, size, 0, 0);
	if (size < sizeof(struct oads_head))
		return 0;
	copy = malloc(size);
	demand(copy != NULL);
	memcpy(copy, data, size);
	forge(copy, size);
	free(copy);
	return 0;
}
