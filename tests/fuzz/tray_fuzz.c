/* SPDX-License-Identifier: Apache-2.0 */

/* A tray of arbitrary bytes: attached, then read as the reader does and written to as a worker does.
 * Whatever it says, nobody leaves the memory. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/tray.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RINGS = 2, RING_BYTES = 4096 };

/* A good tray whose bytes behind the geometry are the input's. */
static int memory_of(const uint8_t *data, size_t size)
{
	const off_t from = (off_t)offsetof(struct layout_tray, s_seq);
	uint64_t room = base_align_up(sizeof(struct layout_tray), base_page_size()) +
			RINGS * (uint64_t)RING_BYTES - (uint64_t)from;
	int fd;

	if (tray_new(RINGS, RING_BYTES, &fd) || pwrite(fd, data, BASE_MIN(size, room), from) < 0)
		abort();
	return fd;
}

static void read_all(const struct tray *tray, uint32_t ring)
{
	unsigned char sum = 0;
	struct tray_item item;
	bool bad;

	for (unsigned n = 0; n < 2 * RING_BYTES / 64; n++) {
		if (!tray_look(tray, ring, &item, &bad))
			return;
		for (uint32_t i = 0; i < item.bytes; i++)
			sum ^= item.data[i];
		tray_pass(tray, ring, &item);
	}
	*(volatile unsigned char *)&sum = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memory_of(data, size);
	struct tray tray;

	if (tray_attach(fd, &tray))
		abort();
	for (uint32_t ring = 0; ring < RINGS; ring++) {
		uint8_t *at = tray_begin(&tray, ring, size % tray_most(&tray));

		if (at)
			memset(at, 1, size % tray_most(&tray));
		read_all(&tray, ring);
	}
	tray_detach(&tray);
	close(fd);
	return 0;
}
