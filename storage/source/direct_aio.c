/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several reads at once past the page cache, by the kernel's native AIO: one call hands them over, one waits for all.
 *
 * Not by io_uring: doc/decisions/340-direct.md has what both take, which is about the same into huge pages. When a process
 * is killed the kernel waits for its AIO reads when its memory goes, and so before it tells who waits for its end, as long as
 * nobody else holds that memory; requests of a ring may still write to
 * their memory, by then another sample's.
 */

#include "storage/source/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAP_US 1000

/* statx() as the kernel has it: a C library may not know alignments yet. */
#ifdef STATX_DIOALIGN
uint32_t direct_align(int fd)
{
	struct statx st = {.stx_mask = 0};

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) < 0 ||
	    !(st.stx_mask & STATX_DIOALIGN))
		return 0;
	return BASE_MAX(st.stx_dio_offset_align, st.stx_dio_mem_align);
}
#else /* headers before Linux 6.1 */
uint32_t direct_align(int fd)
{
	(void)fd;
	return 0;
}
#endif

/* How many are under way. A read that the kernel does not take is that one's outcome, but where there is no room for more. */
static unsigned submit(const struct direct_queue *queue, struct direct_read *read, unsigned n)
{
	struct iocb block[DIRECT_DEEP], *list[DIRECT_DEEP];
	unsigned taken = 0, at = 0;

	for (unsigned i = 0; i < n; i++) {
		block[i] = (struct iocb){.aio_data = i,
					 .aio_lio_opcode = IOCB_CMD_PREAD,
					 .aio_fildes = (uint32_t)read[i].fd,
					 .aio_buf = (uintptr_t)read[i].to,
					 .aio_nbytes = read[i].bytes,
					 .aio_offset = (int64_t)read[i].at};
		list[i] = &block[i];
	}
	while (at < n) {
		const long r = syscall(SYS_io_submit, queue->context, (long)(n - at), list + at);

		if (r > 0) {
			taken += (unsigned)r;
			at += (unsigned)r;
		} else {
			read[at++].result = r < 0 ? -errno : -EIO;
		}
	}
	return taken;
}

static void wait_for(const struct direct_queue *queue, struct direct_read *read, unsigned n)
{
	struct io_event event[DIRECT_DEEP];

	while (n) {
		const long r =
		    syscall(SYS_io_getevents, queue->context, (long)n, (long)n, event, NULL);

		for (long i = 0; i < r; i++)
			read[event[i].data].result = (int)event[i].res;
		n -= r > 0 ? (unsigned)r : 0;
		if (r < 0 && errno != EINTR)
			usleep(
			    NAP_US); /* they are under way: nobody may go before they have come */
	}
}

int direct_queue_read(struct direct_queue *queue, struct direct_read *read, unsigned n)
{
	if (!queue->is_open && syscall(SYS_io_setup, DIRECT_DEEP, &queue->context) < 0)
		return -errno;
	queue->is_open = true;
	wait_for(queue, read, submit(queue, read, n));
	return 0;
}
