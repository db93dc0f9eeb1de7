/* SPDX-License-Identifier: Apache-2.0 */

/* daemon/loop.h without libevent, on the bottle's clock: timers are events of the clock, descriptors are looked at when
 * somebody has poked it. While accessd is stopped nothing is called. */

#include "daemon/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#include "tests/daemon/bottle/bottle.h"

#define AT_ONCE 64 /* callbacks of a turn */

struct loop {
	int epoll_fd;
	struct loop_turns turns;
	LIST_HEAD(, loop_watch) watches;
	struct loop_watch *child; /* of SIGCHLD */
};

struct loop_watch {
	LIST_ENTRY(loop_watch) link;
	struct loop *loop;
	int fd;               /* -1: a timer or a signal */
	uint64_t serial, set; /* set: of its setting, 0: it is not */
	struct loop_call call;
	void *arg;
};

static struct loop *now; /* the one that there is */
static uint64_t serial;

int loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	LIST_INIT(&loop->watches);
	now = *ret = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	if (!LIST_EMPTY(&loop->watches))
		bottle_break("a watch of %s is left", LIST_FIRST(&loop->watches)->call.what);
	close(loop->epoll_fd);
	free(loop);
	now = NULL;
}

int loop_run(struct loop *loop)
{
	(void)loop;
	return -ENOSYS;
}

int loop_turn(struct loop *loop)
{
	(void)loop;
	return -ENOSYS;
}

void loop_stop(struct loop *loop)
{
	(void)loop;
}

const struct loop_turns *loop_turns(const struct loop *loop)
{
	return &loop->turns;
}

void loop_is_about(struct loop *loop, const char *what)
{
	(void)loop;
	(void)what;
}

/* ---- turns ---- */

/* true: it is stopped, and will see to it later. */
static bool is_late(clock_fn *fn, uint64_t a, uint64_t b)
{
	struct bottle *bottle = bottle_now();

	if (bottle->clock.now_ns >= bottle->until_ns)
		return false;
	clock_at(&bottle->clock, bottle->until_ns, fn, bottle, a, b);
	return true;
}

static void call(struct loop_watch *watch)
{
	struct bottle *bottle = bottle_now();

	bottle->turns++;
	bottle->clock.now_ns += 1 + bottle_below(2000); /* what it takes */
	watch->call.fn(watch->arg);
}

/* What others find when it has had its turn. */
static void stir(void)
{
	bottle_check();
	reader_stir();
	worker_stir();
	training_wake();
	training_check();
}

static void on_poke(void *arg, uint64_t life, uint64_t unused)
{
	struct bottle *bottle = arg;
	struct epoll_event event;
	unsigned n = 0;

	(void)unused;
	if (!now || life != bottle->life || is_late(on_poke, life, 0))
		return;
	bottle->is_poked = false;
	while (n < AT_ONCE && now && epoll_wait(now->epoll_fd, &event, 1, 0) == 1) {
		call(event.data.ptr);
		n++;
	}
	if (n)
		stir();
	if (n == AT_ONCE)
		loop_poke();
}

void loop_poke(void)
{
	struct bottle *bottle = bottle_now();

	if (!now || bottle->is_poked)
		return;
	bottle->is_poked = true;
	bottle_after(bottle_below(50 * US), on_poke, bottle, bottle->life, 0);
}

static void on_timer(void *arg, uint64_t its, uint64_t set)
{
	struct loop_watch *watch;

	(void)arg;
	if (!now)
		return;
	LIST_FOREACH(watch, &now->watches, link)
		if (watch->serial == its)
			break;
	if (!watch || watch->set != set || is_late(on_timer, its, set))
		return;
	watch->set = 0;
	call(watch);
	stir();
	loop_poke();
}

static void on_child(void *arg, uint64_t life, uint64_t unused)
{
	struct bottle *bottle = arg;

	(void)unused;
	if (!now || !now->child || life != bottle->life || is_late(on_child, life, 0))
		return;
	call(now->child);
	stir();
	loop_poke();
}

void loop_child_ended(void)
{
	struct bottle *bottle = bottle_now();

	bottle_after(bottle_below(200 * US), on_child, bottle, bottle->life, 0);
}

/* ---- watches ---- */

static int watch_new(struct loop *loop, int fd, uint32_t events, struct loop_call call, void *arg,
		     struct loop_watch **ret)
{
	struct loop_watch *watch = calloc(1, sizeof(*watch));
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};

	if (!watch)
		return -ENOMEM;
	*watch = (struct loop_watch){
	    .loop = loop, .fd = fd, .serial = ++serial, .call = call, .arg = arg};
	if (fd >= 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		free(watch);
		return -errno;
	}
	LIST_INSERT_HEAD(&loop->watches, watch, link);
	*ret = watch;
	if (fd >= 0)
		loop_poke();
	return 0;
}

int loop_watch_fd_call(struct loop *loop, int fd, struct loop_call call, void *arg,
		       struct loop_watch **ret)
{
	return watch_new(loop, fd, EPOLLIN, call, arg, ret);
}

int loop_watch_rings_call(struct loop *loop, int fd, struct loop_call call, void *arg,
			  struct loop_watch **ret)
{
	return watch_new(loop, fd, EPOLLIN | EPOLLET, call, arg, ret);
}

int loop_watch_signal_call(struct loop *loop, int signo, struct loop_call call, void *arg,
			   struct loop_watch **ret)
{
	int r = watch_new(loop, -1, 0, call, arg, ret);

	if (r == 0 && signo == SIGCHLD)
		loop->child = *ret;
	return r;
}

int loop_timer_new_call(struct loop *loop, struct loop_call call, void *arg,
			struct loop_watch **ret)
{
	return watch_new(loop, -1, 0, call, arg, ret);
}

void loop_timer_set(struct loop_watch *timer, uint64_t delay_ns)
{
	timer->set = ++serial;
	bottle_after(delay_ns, on_timer, bottle_now(), timer->serial, timer->set);
}

void loop_timer_stop(struct loop_watch *timer)
{
	timer->set = 0;
}

bool loop_timer_is_set(const struct loop_watch *timer)
{
	return timer->set;
}

void loop_unwatch(struct loop_watch **watch)
{
	struct loop_watch *gone = *watch;

	if (!gone)
		return;
	if (gone->fd >= 0)
		epoll_ctl(gone->loop->epoll_fd, EPOLL_CTL_DEL, gone->fd, NULL);
	if (gone->loop->child == gone)
		gone->loop->child = NULL;
	LIST_REMOVE(gone, link);
	free(gone);
	*watch = NULL;
}

int loop_recv(int sock, struct wire_in *ret)
{
	static uint8_t buffer[WIRE_MAX];

	return wire_recv_bare(sock, ret, buffer);
}
