/* SPDX-License-Identifier: Apache-2.0 */

/* A pane of arbitrary bytes, sealed as ours are: what is let in reads as a text of its size, or not at all. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/pane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = base_memfd("fuzz", size);
	struct pane_view view;

	if (fd < 0 || (size && pwrite(fd, data, size, 0) != (ssize_t)size))
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	if (pane_attach(fd, &view) == 0) {
		char *text = NULL;
		size_t length = 0;

		if (pane_read(&view, &text, &length) == 0 &&
		    (length > view.room || text[length] != '\0'))
			abort();
		free(text);
		pane_detach(&view);
	}
	close(fd);
	return 0;
}
