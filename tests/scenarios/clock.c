/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded by 32-clock.sh: a wall clock that is an hour ahead, right, an hour behind, right, ... each
 * time that it is looked at, and by process at another point of that. The monotonic clocks are right.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))

int clock_jumping_gettime(clockid_t id, struct timespec *ret) CLOCK_REPLACES("clock_gettime");
int clock_jumping_gettimeofday(struct timeval *ret, void *zone) CLOCK_REPLACES("gettimeofday");
time_t clock_jumping_time(time_t *ret) CLOCK_REPLACES("time");

static time_t offset(void)
{
	static const time_t jumps[] = {3600, 0, -3600, 0};
	static atomic_uint looks;
	unsigned look = atomic_fetch_add(&looks, 1) + (unsigned)getpid();

	return jumps[look % 4];
}

int clock_jumping_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += offset();
	return r;
}

int clock_jumping_gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec now;

	(void)zone;
	clock_jumping_gettime(CLOCK_REALTIME, &now);
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t clock_jumping_time(time_t *ret)
{
	struct timespec now;

	clock_jumping_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
