/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A slow disk that needs no root: preloaded into accessd and what it starts, where access-reader's pread() alone is
 * what reads pictures. All threads of a process together get $ACCESS_PACE bytes a second; a read ends when
 * a disk of that speed, which serves one after the other, would have ended it. The store of what is kept
 * is mapped (LMDB), so it is as fast as it is.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define PACE_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))

ssize_t pace_pread(int fd, void *buffer, size_t size, off_t at) PACE_REPLACES("pread");
ssize_t pace_pread64(int fd, void *buffer, size_t size, off_t at) PACE_REPLACES("pread64");

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* When the disk will be done with so many bytes more. */
static uint64_t reserve(double bytes_per_s, size_t bytes)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t free_ns;
	uint64_t now = now_ns(), end;

	pthread_mutex_lock(&lock);
	if (free_ns < now)
		free_ns = now;
	free_ns += (uint64_t)((double)bytes * 1e9 / bytes_per_s);
	end = free_ns;
	pthread_mutex_unlock(&lock);
	return end;
}

static void wait_until(uint64_t ns)
{
	struct timespec until = {.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

ssize_t pace_pread(int fd, void *buffer, size_t size, off_t at)
{
	const char *pace = getenv("ACCESS_PACE");
	double bytes_per_s = pace ? strtod(pace, NULL) : 0;
	ssize_t got = syscall(SYS_pread64, fd, buffer, size, at);

	if (bytes_per_s > 0 && got > 0)
		wait_until(reserve(bytes_per_s, (size_t)got));
	return got;
}

ssize_t pace_pread64(int fd, void *buffer, size_t size, off_t at)
{
	return pace_pread(fd, buffer, size, at);
}
