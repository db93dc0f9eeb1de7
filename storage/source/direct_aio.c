/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several reads at once past the page cache, by the kernel's native AIO: one call hands them over, one waits for all, as a rule.
 *
 * Not by io_uring: doc/decisions/340-direct.md has what both take, which is about the same into huge pages. When a process
 * is killed the kernel waits for its AIO reads when its memory goes, and so before it tells who waits for its end, as long as
 * nobody else holds that memory; requests of a ring may still write to
 * their memory, by then another sample's.
 */

#include "storage/source/direct.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP_NS 5000000

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

static void tell(const struct direct_batch *batch, const unsigned *number, unsigned n)
{
	if (batch->ended)
		batch->ended(batch->arg, number, n);
}

/* How many are under way. A read that the kernel does not take is that one's outcome, but where there is no room for more. */
static unsigned submit(const struct direct_queue *queue, const struct direct_batch *batch)
{
	struct iocb block[DIRECT_DEEP], *list[DIRECT_DEEP];
	struct direct_read *read = batch->read;
	unsigned taken = 0;

	for (unsigned i = 0; i < batch->n; i++) {
		block[i] = (struct iocb){.aio_data = i,
					 .aio_lio_opcode = IOCB_CMD_PREAD,
					 .aio_fildes = (uint32_t)read[i].fd,
					 .aio_buf = (uintptr_t)read[i].to,
					 .aio_nbytes = read[i].bytes,
					 .aio_offset = (int64_t)read[i].at};
		list[i] = &block[i];
	}
	for (unsigned at = 0; at < batch->n;) {
		const long r =
		    syscall(SYS_io_submit, queue->context, (long)(batch->n - at), list + at);

		if (r > 0) {
			taken += (unsigned)r;
			at += (unsigned)r;
			continue;
		}
		read[at].result = r < 0 ? -errno : -EIO;
		tell(batch, &at, 1);
		at++;
	}
	return taken;
}

/* All of them at once where that takes no longer than a step, else each step those that are there: one that takes long holds
 * up none. */
static void wait_for(const struct direct_queue *queue, const struct direct_batch *batch, unsigned n)
{
	const struct timespec step = {.tv_nsec = STEP_NS};
	struct io_event event[DIRECT_DEEP];
	unsigned number[DIRECT_DEEP];

	while (n) {
		const long r =
		    syscall(SYS_io_getevents, queue->context, (long)n, (long)n, event, &step);

		for (long i = 0; i < r; i++) {
			number[i] = (unsigned)event[i].data;
			batch->read[number[i]].result = (int)event[i].res;
		}
		if (r > 0)
			tell(batch, number, (unsigned)r);
		n -= r > 0 ? (unsigned)r : 0;
		if (r < 0 && errno != EINTR)
			nanosleep(
			    &step,
			    NULL); /* they are under way: nobody may go before they have come */
	}
}

int direct_queue_read(struct direct_queue *queue, const struct direct_batch *batch)
{
	if (!queue->is_open && syscall(SYS_io_setup, DIRECT_DEEP, &queue->context) < 0)
		return -errno;
	queue->is_open = true;
	wait_for(queue, batch, submit(queue, batch));
	return 0;
}
