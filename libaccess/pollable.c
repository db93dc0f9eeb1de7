/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oa_fd(): one descriptor for event loops, made when it is first asked for. An epoll of two things:
 * the socket (of the session, or of the dial), and a timer that fires at once when something is
 * ready already, or when the next try to connect is due. So it stays the same over reconnects and
 * needs no thread.
 */

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/inbox.h"
#include "shmring/proto.h"

static int pollable_add(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int pollable_make(struct oa_stream *stream)
{
	_cleanup_close_ int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	_cleanup_close_ int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r;

	if (epoll_fd < 0 || timer_fd < 0)
		return -errno;
	r = pollable_add(epoll_fd, timer_fd);
	if (r)
		return r;
	stream->epoll_fd = base_take_fd(&epoll_fd);
	stream->timer_fd = base_take_fd(&timer_fd);
	return 0;
}

void pollable_forget(struct oa_stream *stream)
{
	if (stream->watched_fd >= 0)
		epoll_ctl(stream->epoll_fd, EPOLL_CTL_DEL, stream->watched_fd, NULL);
	stream->watched_fd = -1;
}

void pollable_disarm(struct oa_stream *stream)
{
	if (stream->session)
		grant_disarm(&stream->session->rank);
	stream->is_armed = false;
}

/* The timer fires at at_ns; 0: never. */
static void pollable_set_timer(const struct oa_stream *stream, uint64_t at_ns)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
					       .tv_nsec = (long)(at_ns % 1000000000)}};

	timerfd_settime(stream->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void pollable_released(const struct oa_stream *stream)
{
	if (stream->is_armed && next_is_ready(stream))
		pollable_set_timer(stream, 1);
}

static int pollable_watch(struct oa_stream *stream, int fd)
{
	int r;

	if (fd == stream->watched_fd)
		return 0;
	pollable_forget(stream);
	r = fd < 0 ? 0 : pollable_add(stream->epoll_fd, fd);
	if (!r)
		stream->watched_fd = fd;
	return r;
}

static int pollable_arm(struct oa_stream *stream)
{
	struct session *session = stream->session;
	int r = stream->epoll_fd < 0 ? pollable_make(stream) : 0;

	if (!r)
		r = pollable_watch(stream, session ? session->sock : dial_fd(&stream->dial));
	if (r)
		return r;
	if (session) {
		inbox_tell_sleep(session->outbox, base_now_ns());
		grant_arm(&session->rank);
	}
	stream->is_armed = session != NULL;
	if (stream->explain_ns) {
		pollable_set_timer(stream, stream->explain_ns);
	} else if (next_is_ready(stream)) {
		pollable_set_timer(stream, 1);
	} else if (session) {
		pollable_set_timer(stream, 0);
		if (grant_wants_sleep(&session->rank))
			session_send(session, PROTO_KICK);
	} else {
		pollable_set_timer(stream, BASE_MAX(stream->dial.wake_ns, (uint64_t)1));
	}
	return stream->epoll_fd;
}

int oa_fd(struct oa_stream *stream)
{
	int r;

	if (!stream)
		return -EINVAL;
	if (!guard_is_ours(&stream->guard))
		return -EPERM;
	pthread_mutex_lock(&stream->lock);
	r = pollable_arm(stream);
	if (r < 0)
		error_set(&stream->trouble.error, r, "oa_fd(): %s", oa_error_name(r));
	pthread_mutex_unlock(&stream->lock);
	return r;
}
