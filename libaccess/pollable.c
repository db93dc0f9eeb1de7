/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One descriptor for event loops, made when it is first asked for. An epoll of two things: the
 * socket (of the session, or of the dial), and a timer that fires at once when something is ready
 * already, or when the next try to connect is due. So it stays the same over reconnects and needs no
 * thread.
 */

#include "libaccess/pollable.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

void pollable_init(struct pollable *pollable)
{
	*pollable = (struct pollable){.epoll_fd = -1, .timer_fd = -1, .watch_fd = -1};
}

void pollable_fini(struct pollable *pollable)
{
	base_close(&pollable->epoll_fd);
	base_close(&pollable->timer_fd);
}

static int pollable_add(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int pollable_make(struct pollable *pollable)
{
	_cleanup_close_ int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	_cleanup_close_ int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r;

	if (epoll_fd < 0 || timer_fd < 0)
		return -errno;
	r = pollable_add(epoll_fd, timer_fd);
	if (r)
		return r;
	pollable->epoll_fd = base_take_fd(&epoll_fd);
	pollable->timer_fd = base_take_fd(&timer_fd);
	return 0;
}

void pollable_forget(struct pollable *pollable)
{
	if (pollable->watch_fd >= 0)
		epoll_ctl(pollable->epoll_fd, EPOLL_CTL_DEL, pollable->watch_fd, NULL);
	pollable->watch_fd = -1;
}

void pollable_set_timer(const struct pollable *pollable, uint64_t at_ns)
{
	struct itimerspec when = {.it_value = base_timespec(at_ns)};

	timerfd_settime(pollable->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int pollable_watch(struct pollable *pollable, int sock)
{
	int r = pollable->epoll_fd < 0 ? pollable_make(pollable) : 0;

	if (r || sock == pollable->watch_fd)
		return r;
	pollable_forget(pollable);
	r = sock < 0 ? 0 : pollable_add(pollable->epoll_fd, sock);
	if (!r)
		pollable->watch_fd = sock;
	return r;
}
