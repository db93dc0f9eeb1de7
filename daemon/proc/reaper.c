/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/proc/reaper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/loop.h"

#define NICE 19

/* One that was taken and may not have ended yet. */
struct reaper_wait {
	LIST_ENTRY(reaper_wait) link;
	struct reaper *reaper;
	pid_t pid;
	int pid_fd; /* readable when it has ended */
	struct loop_watch *watch;
};

/* ---- the thread ---- */

static void *reap(void *arg)
{
	const int pids = (int)(intptr_t)arg;
	pid_t pid;

	pthread_setname_np(pthread_self(), "reaper");
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	while (read(pids, &pid, sizeof(pid)) == (ssize_t)sizeof(pid) && pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	close(pids);
	return NULL;
}

static int start(struct reaper *reaper, int pids)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the loop */
	r = pthread_create(&reaper->thread, NULL, reap, (void *)(intptr_t)pids);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int reaper_begin(struct reaper *reaper, struct loop *loop)
{
	int pair[2], r;

	LIST_INIT(&reaper->waits);
	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	r = start(reaper, pair[0]);
	if (r) {
		base_close(&pair[0]);
		base_close(&pair[1]);
		return r;
	}
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	reaper->pids = pair[1];
	reaper->loop = loop;
	return 0;
}

/* ---- the loop's side ---- */

static void wait_free(struct reaper_wait *wait)
{
	LIST_REMOVE(wait, link);
	loop_unwatch(&wait->watch);
	base_close(&wait->pid_fd);
	free(wait);
}

/* One that finds no room among 16,000 stays a zombie. */
static void on_end(void *arg)
{
	struct reaper_wait *wait = arg;

	if (write(wait->reaper->pids, &wait->pid, sizeof(wait->pid)) < 0 && errno == EINTR)
		return;
	wait_free(wait);
}

void reaper_take(struct reaper *reaper, pid_t pid)
{
	struct reaper_wait *wait = reaper->loop && pid > 0 ? calloc(1, sizeof(*wait)) : NULL;

	if (!wait)
		return;
	LIST_INSERT_HEAD(&reaper->waits, wait, link);
	wait->reaper = reaper;
	wait->pid = pid;
	wait->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (wait->pid_fd < 0 ||
	    loop_watch_fd(reaper->loop, wait->pid_fd, on_end, wait, &wait->watch))
		wait_free(wait);
}

/* The pid 0 tells it to end. A child that was just forked may still have the pipe, so to close it would not. */
void reaper_end(struct reaper *reaper)
{
	const pid_t none = 0;
	struct pollfd room = {.fd = reaper->pids, .events = POLLOUT};

	if (!reaper->loop)
		return;
	while (!LIST_EMPTY(&reaper->waits))
		wait_free(LIST_FIRST(&reaper->waits));
	while (write(reaper->pids, &none, sizeof(none)) < 0)
		poll(&room, 1, -1);
	pthread_join(reaper->thread, NULL);
	base_close(&reaper->pids);
	reaper->loop = NULL;
}
