/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of many samples is mostly a hole of its memfd as long as little is kept, and reading a hole
 * through a mapping would fill it with pages: clearing goes by SEEK_DATA.
 */

#include "storage/store_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int store_table_new(uint64_t cells, struct store_table *ret)
{
	const uint64_t bytes = cells * sizeof(*ret->cell);
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	_cleanup_close_ int fd = base_memfd("store-table", bytes);
	void *map;

	if (fd < 0)
		return fd;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		int r = -errno;

		munmap(map, bytes);
		return r;
	}
	*ret = (struct store_table){.fd = base_take_fd(&fd), .cell = map, .cells = cells};
	return 0;
}

void store_table_free(struct store_table *table)
{
	if (table->cell)
		munmap(table->cell, table->cells * sizeof(*table->cell));
	base_close(&table->fd);
	*table = (struct store_table){.fd = -1};
}

void store_table_set(const struct store_table *table, uint64_t sample, uint32_t size)
{
	if (sample < table->cells)
		counter_cell_set(&table->cell[sample], size);
}

void store_table_clear_from(const struct store_table *table, uint64_t sample)
{
	const off_t size = sizeof(*table->cell);
	off_t at = (off_t)sample * size, end;

	if (!table->cell)
		return;
	while ((at = lseek(table->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(table->fd, at, SEEK_HOLE);
		for (; at < end; at += size)
			counter_cell_set(&table->cell[at / size], 0);
	}
}
