/* SPDX-License-Identifier: Apache-2.0 */

/* A plan log that a client made up: whatever is read lies within it, and reading ends. */

#include "base/base.h"
#include "shmring/plan_log.h"
#include "tests/fuzz/forge.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t lent; /* so that the reads are not left out */

static void read_all(struct plan_log *plan_log)
{
	uint64_t offset = plan_log_first(plan_log), before;
	struct entry entry;
	int r;

	do {
		before = offset;
		r = plan_log_read(plan_log, &offset, &entry);
		if (r == 0 && offset <= before)
			abort();
		for (uint32_t i = 0; r == 0 && i < entry.count; i++)
			lent += entry.n_blocks ? entry.blocks[i % entry.n_blocks]
					       : (uint64_t)entry.ids[i];
	} while (r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = forge_plan_log(data, size, 0);
	struct plan_log plan_log;

	if (plan_log_attach(fd, UINT64_MAX, &plan_log))
		abort();
	read_all(&plan_log);
	plan_log_detach(&plan_log);
	close(fd);
	return 0;
}
