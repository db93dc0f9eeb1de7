/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A forked child has the parent's handles, mappings and socket, and must not use them: two
 * processes would give back the same pins and read each other's answers. The child is told by a
 * page that fork() fills with zeros (MADV_WIPEONFORK), so that asking costs one load on the path of
 * a batch. Rejected: getpid(), a system call; pthread_atfork(), whose handlers cannot be taken back
 * when the library is unloaded, and which clone() passes by.
 */

#include "libaccess/guard.h"

#include <sys/mman.h>
#include "base/base.h"

int guard_init(struct guard *guard)
{
	size_t bytes = (size_t)base_page_size();
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, bytes, MADV_WIPEONFORK) < 0) {
		int error = errno;

		munmap(page, bytes);
		return -error;
	}
	guard->page = page;
	guard->page[0] = 1;
	return 0;
}

void guard_fini(struct guard *guard)
{
	if (guard->page)
		munmap((void *)guard->page, (size_t)base_page_size());
	guard->page = NULL;
}
