/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

/*
 * The event loop of accessd, on libevent (whose header only loop.c sees). One thread owns it and
 * everything in daemon/; callbacks run one after the other and never block.
 */

#include "base/base.h"

struct loop;
struct wire_in;
struct loop_watch; /* one descriptor, signal or timer; owned by who made it */
typedef void (*loop_fn)(void *arg);

int loop_new(struct loop **ret);
void loop_free(struct loop *loop);
/* Runs until loop_stop(). 0 or negative errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* fn(arg) whenever fd is readable or hung up. fd stays the caller's and must outlive the watch. */
int loop_watch_fd(struct loop *loop, int fd, loop_fn fn, void *arg, struct loop_watch **ret);
int loop_watch_signal(struct loop *loop, int signo, loop_fn fn, void *arg, struct loop_watch **ret);
/* A timer, not running yet. loop_timer_set() (re)starts it once; 0 ns: at the next turn. */
int loop_timer_new(struct loop *loop, loop_fn fn, void *arg, struct loop_watch **ret);
void loop_timer_set(struct loop_watch *timer, uint64_t delay_ns);
void loop_timer_stop(struct loop_watch *timer);
bool loop_timer_is_set(const struct loop_watch *timer);
/* Ends the watch and sets it to NULL; safe inside its own callback; NULL is fine. */
void loop_unwatch(struct loop_watch **watch);

/* wire_recv() of a message that is there, for the loop's thread: its buffer is accessd's from the beginning, so
 * that to be short of memory ends no connection. */
int loop_recv(int sock, struct wire_in *ret);

#endif
