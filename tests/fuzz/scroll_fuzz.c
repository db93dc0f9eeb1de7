/* SPDX-License-Identifier: Apache-2.0 */

/* A plan log that a client made up: the head's words and the first records are the input, its sizes
 * are right. Whatever is read lies within it, and reading ends. */

#include "base/base.h"
#include "shmring/scroll.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (SCROLL_HEAD + 5 * 4096)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

static void fill(uint8_t *bytes, const uint8_t *data, size_t size)
{
	uint64_t first = 0, end = 0;
	struct scroll_head head = {
	    .magic = SCROLL_MAGIC, .bytes = BYTES, .room = BYTES - SCROLL_HEAD};

	if (size >= 16) {
		memcpy(&first, data, 8);
		memcpy(&end, data + 8, 8);
		data += 16;
		size -= 16;
	}
	atomic_init(&head.d_first, first);
	atomic_init(&head.d_end, end);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + SCROLL_HEAD, data, BASE_MIN(size, (size_t)(BYTES - SCROLL_HEAD)));
}

static void read_all(struct scroll *scroll)
{
	uint64_t offset = scroll_first(scroll), before;
	struct scroll_entry entry;
	int r;

	do {
		before = offset;
		r = scroll_read(scroll, &offset, &entry);
		if (r == 0 && offset <= before)
			abort();
		for (uint32_t i = 0; r == 0 && i < entry.count; i++)
			lent += entry.n_grains ? entry.grains[i % entry.n_grains]
					       : (uint64_t)entry.ids[i];
	} while (r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[BYTES];
	int fd = base_memfd("fuzz", BYTES);
	struct scroll scroll;

	memset(bytes, 0, sizeof(bytes));
	fill(bytes, data, size);
	if (fd < 0 || pwrite(fd, bytes, BYTES, 0) != BYTES)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */);
	if (scroll_attach(fd, &scroll))
		abort();
	read_all(&scroll);
	scroll_detach(&scroll);
	close(fd);
	return 0;
}
