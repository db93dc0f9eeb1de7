/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event loop of accessd, on libevent (whose header only loop.c sees). One thread owns it and
 * everything in daemon/; callbacks run one after the other and never block.
 */

#include "base/base.h"

struct loop;
struct wire_in;
struct loop_watch; /* one descriptor, signal or timer; owned by who made it */
typedef void (*loop_fn)(void *arg);

/* How long it was held. A turn is one callback. Time that somebody else had the CPU is in the wall's
 * time alone; a disk that was waited for, too. */
#define LOOP_LONG_NS UINT64_C(5000000)
struct loop_longest {
	uint64_t ns;
	char what[64]; /* the callback, or what it said that it was about */
};
struct loop_turns { /* since the start */
	struct loop_longest wall, cpu;
	uint64_t n_long, n_long_cpu; /* that took longer than LOOP_LONG_NS */
};

int loop_new(struct loop **ret);
void loop_free(struct loop *loop);
/* Runs until loop_stop(). 0 or negative errno. */
int loop_run(struct loop *loop);
/* One turn: calls what is due by now, and waits for nothing. 0 or negative errno. */
int loop_turn(struct loop *loop);
void loop_stop(struct loop *loop);
const struct loop_turns *loop_turns(const struct loop *loop);
/* The turn under way is about this, should somebody ask: a text for ever. */
void loop_is_about(struct loop *loop, const char *what);

/* A callback, named by where it is. */
struct loop_call {
	loop_fn fn;
	const char *what;
};
#define LOOP_CALL(fn) ((struct loop_call){(fn), __FILE__ ": " #fn})

/* fn(arg) whenever fd is readable or hung up. fd stays the caller's and must outlive the watch. */
#define loop_watch_fd(loop, fd, fn, arg, ret) loop_watch_fd_call(loop, fd, LOOP_CALL(fn), arg, ret)
int loop_watch_fd_call(struct loop *loop, int fd, struct loop_call call, void *arg,
		       struct loop_watch **ret);
/* fn(arg) after each write() to an eventfd that nobody reads: whoever shares it may take its count and clear
 * its O_NONBLOCK, which are all sharers', so that a read() could wait for ever. */
#define loop_watch_rings(loop, fd, fn, arg, ret) \
	loop_watch_rings_call(loop, fd, LOOP_CALL(fn), arg, ret)
int loop_watch_rings_call(struct loop *loop, int fd, struct loop_call call, void *arg,
			  struct loop_watch **ret);
#define loop_watch_signal(loop, signo, fn, arg, ret) \
	loop_watch_signal_call(loop, signo, LOOP_CALL(fn), arg, ret)
int loop_watch_signal_call(struct loop *loop, int signo, struct loop_call call, void *arg,
			   struct loop_watch **ret);
/* A timer, not running yet. loop_timer_set() (re)starts it once; 0 ns: at the next turn. */
#define loop_timer_new(loop, fn, arg, ret) loop_timer_new_call(loop, LOOP_CALL(fn), arg, ret)
int loop_timer_new_call(struct loop *loop, struct loop_call call, void *arg,
			struct loop_watch **ret);
void loop_timer_set(struct loop_watch *timer, uint64_t delay_ns);
void loop_timer_stop(struct loop_watch *timer);
bool loop_timer_is_set(const struct loop_watch *timer);
/* Ends the watch and sets it to NULL; safe inside its own callback; NULL is fine. */
void loop_unwatch(struct loop_watch **watch);

/* wire_recv_bare() for the loop's thread: its buffer is accessd's from the beginning, so that to be short of
 * memory ends no connection. A message that has descriptors is the porter's to fetch (porter.h). */
int loop_recv(int sock, struct wire_in *ret);
