/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The few answers that every room wants from the kernel: page size, clock, random bytes, memory
 * that can be shared by descriptor.
 *
 * A memfd of ours has mode 0400. Its maker maps it writable through the descriptor at hand and
 * seals it; who reopens it through /proc afterwards, even as the same user, gets it for reading.
 */

#include "base/base.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

uint64_t base_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t base_clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) < 0 ? 0 : (uint64_t)base_time_ns(&now);
}

BASE_HOT uint64_t base_now_ns(void)
{
	return base_clock_ns(CLOCK_MONOTONIC);
}

uint64_t base_cpu_ns(void)
{
	return base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t base_usage_ns(const struct rusage *usage)
{
	const uint64_t us = (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);

	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 + us * 1000;
}

int base_random(void *ret, size_t size)
{
	uint8_t *at = ret;

	while (size > 0) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0) {
			at += got;
			size -= (size_t)got;
		}
	}
	return 0;
}

int base_memfd(const char *name, uint64_t size)
{
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Where vm.memfd_noexec is 2, one must ask for memory that cannot be executed. */
	if (fd < 0 && errno == EACCES)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0)
		return -errno;
	if (size > INT64_MAX)
		return -EFBIG;
	if (ftruncate(fd, (off_t)size) < 0 || fchmod(fd, 0400) < 0)
		return -errno;
	return base_take_fd(&fd);
}

int base_memfd_of(const char *name, const void *text, size_t size)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	_cleanup_close_ int fd = base_memfd(name, size);
	int r = fd < 0 ? fd : base_write_at(fd, text, size, 0);

	if (r)
		return r;
	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : base_take_fd(&fd);
}

bool base_is_sealed(int fd, int seals)
{
	const int has = fcntl(fd, F_GET_SEALS);
	struct statfs system;

	return has >= 0 && (has & seals) == seals && fstatfs(fd, &system) == 0 &&
	       (uint32_t)system.f_type == TMPFS_MAGIC;
}

int base_read_at(int fd, void *ret, uint64_t bytes, uint64_t at)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(fd, (uint8_t *)ret + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

int base_write_at(int fd, const void *from, uint64_t bytes, uint64_t at)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n =
		    pwrite(fd, (const uint8_t *)from + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO;
		done += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

int base_write_all(int fd, const void *from, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		const ssize_t n = write(fd, (const uint8_t *)from + done, bytes - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

int base_kill(pid_t *pid)
{
	int status = 0;

	if (*pid > 0) {
		kill(*pid, SIGKILL);
		while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
			continue;
	}
	*pid = 0;
	return status;
}
