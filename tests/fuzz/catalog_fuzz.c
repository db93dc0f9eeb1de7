/* SPDX-License-Identifier: Apache-2.0 */

/* A catalogue of arbitrary bytes, sealed as ours are: what is let in must be usable to its last
 * byte. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/catalog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

static void read_all(const struct catalog *catalog)
{
	for (uint64_t i = 0; i < catalog->head.n; i++)
		if (catalog->label[i] >= BASE_MAX(catalog->head.n_classes, 1))
			abort();
	for (uint64_t i = 0; i < catalog->head.n_classes; i++)
		lent += strlen(catalog->names + catalog->start[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = base_memfd("fuzz", size), r;
	struct catalog catalog;

	if (fd < 0 || (size && pwrite(fd, data, size, 0) != (ssize_t)size))
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	r = catalog_attach(fd, &catalog);
	if (r == 0) {
		read_all(&catalog);
		catalog_detach(&catalog);
	} else if (r != CATALOG_E_BAD) {
		abort();
	}
	close(fd);
	return 0;
}
