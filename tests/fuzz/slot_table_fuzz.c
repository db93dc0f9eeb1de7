/* SPDX-License-Identifier: Apache-2.0 */

/* A slot table of arbitrary bytes, in a memfd sealed as ours are. What is let in must be usable to its
 * last byte. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shmring/slot_table.h"
#include "tests/invariants/invariants.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

/* The input's head says how long the memory is, up to a limit; what the input lacks is zero. */
static int memory_of(const uint8_t *data, size_t size)
{
	uint64_t bytes = size;
	int fd;

	if (size >= sizeof(struct layout_slot_table))
		bytes =
		    BASE_MIN(((const struct layout_slot_table *)data)->bytes, UINT64_C(1) << 30);
	fd = base_memfd("fuzz", bytes);
	if (fd < 0 || pwrite(fd, data, BASE_MIN(size, bytes), 0) < 0)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
	return fd;
}

static uint64_t read_all(const struct slot_table *table)
{
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < table->geometry.max_slots; slot++) {
		uint32_t last = table->geometry.chunk - 1;

		if (slot_table_read_watermark(table, slot) > table->geometry.chunk)
			abort();
		sum += slot_table_of(table, slot)->d_nonce +
		       slot_table_status_of(table, slot)[last] +
		       (uint64_t)slot_table_ids_of(table, slot)[last] +
		       slot_table_blocks_of(table, slot)[last];
	}
	if (slot_table_of(table, table->geometry.max_slots))
		abort();
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slot_table table;
	int fd, r;

	if (size == 0)
		return 0;
	fd = memory_of(data, size);
	r = slot_table_attach(fd, &table);
	if (r == 0) {
		lent = read_all(&table);
		slot_table_check(&table);
		slot_table_detach(&table);
	} else if (r != SLOT_TABLE_E_BAD) {
		abort();
	}
	close(fd);
	return 0;
}
