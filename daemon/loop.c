/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: libevent behind nine functions, and receiving.
 *
 * The base is made without locks (EVENT_BASE_FLAG_NOLOCK): only the loop thread touches it, other
 * processes reach it through descriptors alone. Timers use libevent's monotonic clock, so that a
 * jump of the wall clock fires nothing. A watch may end itself inside its callback: event_free()
 * deletes first, and nothing is read from the watch after its callback returned.
 */
#include "daemon/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/wire.h"

struct loop {
	struct event_base *base;
};

struct loop_watch {
	struct event *event;
	loop_fn fn;
	void *arg;
};

int loop_new(struct loop **ret)
{
	struct event_config *config = event_config_new();
	struct loop *loop = calloc(1, sizeof(*loop));

	if (config && loop) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		loop->base = event_base_new_with_config(config);
	}
	if (config)
		event_config_free(config);
	if (!loop || !loop->base) {
		free(loop);
		return -ENOMEM;
	}
	*ret = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	event_base_free(loop->base);
	free(loop);
}

int loop_run(struct loop *loop)
{
	return event_base_dispatch(loop->base) < 0 ? -EIO : 0;
}

void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct loop_watch *watch = arg;

	(void)fd;
	(void)what;
	watch->fn(watch->arg);
}

static int watch_new(struct loop *loop, int fd, short what, loop_fn fn, void *arg,
		     struct loop_watch **ret)
{
	struct loop_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->fn = fn;
	watch->arg = arg;
	watch->event = event_new(loop->base, fd, what, on_event, watch);
	if (!watch->event) {
		free(watch);
		return -ENOMEM;
	}
	*ret = watch;
	return 0;
}

static int watch_added(struct loop_watch **ret)
{
	if (event_add((*ret)->event, NULL) == 0)
		return 0;
	loop_unwatch(ret);
	return -EIO;
}

int loop_watch_fd(struct loop *loop, int fd, loop_fn fn, void *arg, struct loop_watch **ret)
{
	int r = watch_new(loop, fd, EV_READ | EV_PERSIST, fn, arg, ret);

	return r ? r : watch_added(ret);
}

int loop_watch_signal(struct loop *loop, int signo, loop_fn fn, void *arg, struct loop_watch **ret)
{
	int r = watch_new(loop, signo, EV_SIGNAL | EV_PERSIST, fn, arg, ret);

	return r ? r : watch_added(ret);
}

int loop_timer_new(struct loop *loop, loop_fn fn, void *arg, struct loop_watch **ret)
{
	return watch_new(loop, -1, 0, fn, arg, ret);
}

void loop_timer_set(struct loop_watch *timer, uint64_t delay_ns)
{
	struct timeval delay = {
	    .tv_sec = (time_t)(delay_ns / 1000000000),
	    .tv_usec = (suseconds_t)((delay_ns % 1000000000 + 999) / 1000),
	};

	if (delay.tv_usec >= 1000000) {
		delay.tv_sec++;
		delay.tv_usec = 0;
	}
	event_add(timer->event, &delay);
}

void loop_timer_stop(struct loop_watch *timer)
{
	event_del(timer->event);
}

bool loop_timer_is_set(const struct loop_watch *timer)
{
	return event_pending(timer->event, EV_TIMEOUT, NULL);
}

void loop_unwatch(struct loop_watch **watch)
{
	if (!*watch)
		return;
	event_free((*watch)->event);
	free(*watch);
	*watch = NULL;
}

int loop_recv(int sock, struct wire_in *ret)
{
	static uint8_t buffer[WIRE_MAX];

	return wire_recv_through(sock, ret, MSG_DONTWAIT, buffer);
}
