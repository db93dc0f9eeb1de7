/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: libevent behind a few functions, and receiving.
 *
 * The base is made without locks (EVENT_BASE_FLAG_NOLOCK): only the loop thread touches it, other
 * processes reach it through descriptors alone. Timers use libevent's monotonic clock, so that a
 * jump of the wall clock fires nothing. A watch may end itself inside its callback: event_free()
 * deletes first, and nothing is read from the watch after its callback returned.
 *
 * Each callback is timed, for whoever holds the loop keeps everybody waiting. The wall's clock is read without a
 * system call; the CPU's costs one, so it is read once in CPU_STEP_NS of turns and after a turn that was
 * slow. What such a turn is said to have used may be too much by such a step, and is never
 * more than it took.
 */
#include "daemon/loop.h"

#include <event2/event.h>
#include <stdio.h>

#include "base/log.h"
#include "base/wire.h"

#define CPU_STEP_NS UINT64_C(250000)
#define SLOW_NS UINT64_C(1000000)

struct loop {
	struct event_base *base;
	struct loop_turns turns;
	const char *about;  /* of the turn under way, NULL: its callback's name says it */
	uint64_t cpu_ns;    /* of the thread, when it was looked at last */
	uint64_t unseen_ns; /* of the wall, in turns since then */
};

struct loop_watch {
	struct loop *loop;
	struct event *event;
	struct loop_call call;
	void *arg;
};

int loop_new(struct loop **ret)
{
	struct event_config *config = event_config_new();
	struct loop *loop = calloc(1, sizeof(*loop));

	if (config && loop) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		event_config_require_features(config, EV_FEATURE_ET);
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
	loop->cpu_ns = base_cpu_ns();
	return event_base_dispatch(loop->base) < 0 ? -EIO : 0;
}

int loop_turn(struct loop *loop)
{
	return event_base_loop(loop->base, EVLOOP_NONBLOCK) < 0 ? -EIO : 0;
}

void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

/* ---- turns ---- */

const struct loop_turns *loop_turns(const struct loop *loop)
{
	return &loop->turns;
}

void loop_is_about(struct loop *loop, const char *what)
{
	loop->about = what;
}

static bool is_longest(struct loop_longest *longest, uint64_t ns, const char *what)
{
	if (ns <= longest->ns)
		return false;
	longest->ns = ns;
	snprintf(longest->what, sizeof(longest->what), "%s", what);
	return true;
}

/* what: its name, or the path of its callback (LOOP_CALL()). */
static void note_slow(struct loop_turns *turns, uint64_t ns, uint64_t cpu_ns, const char *what)
{
	const char *path = strrchr(what, '/');
	bool is_new;

	what = path ? path + 1 : what;
	is_new = is_longest(&turns->wall, ns, what);
	is_new |= is_longest(&turns->cpu, cpu_ns, what);
	turns->n_long += ns > LOOP_LONG_NS;
	turns->n_long_cpu += cpu_ns > LOOP_LONG_NS;
	if (is_new && ns > LOOP_LONG_NS)
		log_line(LOG_LEVEL_INFO, "long-turn", "what=\"%s\" ms=%.1f cpu_ms=%.1f", what,
			 (double)ns / 1e6, (double)cpu_ns / 1e6);
}

static void note_turn(struct loop *loop, uint64_t ns, const char *what)
{
	uint64_t before_ns = loop->cpu_ns;

	loop->unseen_ns += ns;
	if (loop->unseen_ns < CPU_STEP_NS && ns <= loop->turns.wall.ns)
		return;
	loop->unseen_ns = 0;
	loop->cpu_ns = base_cpu_ns();
	if (ns >= SLOW_NS || ns > loop->turns.wall.ns)
		note_slow(&loop->turns, ns, BASE_MIN(loop->cpu_ns - before_ns, ns), what);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct loop_watch *watch = arg;
	struct loop *loop = watch->loop;
	const char *name = watch->call.what; /* the watch may end itself */
	const uint64_t begin_ns = base_now_ns();

	(void)fd;
	(void)what;
	loop->about = NULL;
	watch->call.fn(watch->arg);
	note_turn(loop, base_now_ns() - begin_ns, loop->about ? loop->about : name);
}

/* ---- watches ---- */

static int watch_new(struct loop *loop, int fd, short what, struct loop_call call, void *arg,
		     struct loop_watch **ret)
{
	struct loop_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	watch->loop = loop;
	watch->call = call;
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

int loop_watch_fd_call(struct loop *loop, int fd, struct loop_call call, void *arg,
		       struct loop_watch **ret)
{
	int r = watch_new(loop, fd, EV_READ | EV_PERSIST, call, arg, ret);

	return r ? r : watch_added(ret);
}

int loop_watch_rings_call(struct loop *loop, int fd, struct loop_call call, void *arg,
			  struct loop_watch **ret)
{
	int r = watch_new(loop, fd, EV_READ | EV_PERSIST | EV_ET, call, arg, ret);

	return r ? r : watch_added(ret);
}

int loop_watch_signal_call(struct loop *loop, int signo, struct loop_call call, void *arg,
			   struct loop_watch **ret)
{
	int r = watch_new(loop, signo, EV_SIGNAL | EV_PERSIST, call, arg, ret);

	return r ? r : watch_added(ret);
}

int loop_timer_new_call(struct loop *loop, struct loop_call call, void *arg,
			struct loop_watch **ret)
{
	return watch_new(loop, -1, 0, call, arg, ret);
}

void loop_timer_set(struct loop_watch *timer, uint64_t delay_ns)
{
	const uint64_t us = delay_ns / 1000 + (delay_ns % 1000 > 0);
	const struct timeval delay = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};

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

	return wire_recv_bare(sock, ret, buffer);
}
