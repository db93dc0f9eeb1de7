/* SPDX-License-Identifier: Apache-2.0 */

/* A ring of arbitrary bytes: attached, then read as the reader does and written to as a worker does.
 * Whatever it says, nobody leaves the memory. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/rings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RINGS = 2, RING_BYTES = 4096 };

/* A good ring whose bytes behind the geometry are the input's. */
static int memory_of(const uint8_t *data, size_t size)
{
	const off_t from = (off_t)offsetof(struct layout_rings, s_seq);
	uint64_t room = base_align_up(sizeof(struct layout_rings), base_page_size()) +
			RINGS * (uint64_t)RING_BYTES - (uint64_t)from;
	int fd;

	if (rings_new(RINGS, RING_BYTES, &fd) || pwrite(fd, data, BASE_MIN(size, room), from) < 0)
		abort();
	return fd;
}

static void read_all(const struct rings *rings, uint32_t ring)
{
	unsigned char sum = 0;
	struct rings_item item;
	bool bad;

	for (unsigned n = 0; n < 2 * RING_BYTES / 64; n++) {
		if (!rings_look(rings, ring, &item, &bad))
			return;
		for (uint32_t i = 0; i < item.bytes; i++)
			sum ^= item.data[i];
		rings_pass(rings, ring, &item);
	}
	*(volatile unsigned char *)&sum = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memory_of(data, size);
	struct rings rings;

	if (rings_attach(fd, &rings))
		abort();
	for (uint32_t ring = 0; ring < RINGS; ring++) {
		uint8_t *at = rings_begin(&rings, ring, size % rings_most(&rings));

		if (at)
			memset(at, 1, size % rings_most(&rings));
		read_all(&rings, ring);
	}
	rings_detach(&rings);
	close(fd);
	return 0;
}
