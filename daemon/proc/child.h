/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A child process of accessd with a control socket (its descriptor 3). */

#include "base/identity.h"
#include "daemon/param.h"

struct keepers;
struct loop;
struct machine;
struct porters;
struct reaper;

#define CHILD_SOCK 3 /* its end, in the child */

struct child {
	pid_t pid;           /* 0: none */
	int sock;            /* our end, non-blocking, CLOEXEC; -1: none */
	uint64_t stopped_ns; /* somebody has stopped it since then, 0: nobody; service.c's */
};

struct child_wants { /* of one that is kept: keeper.h */
	struct loop *loop;
	struct keepers *keepers;
	struct porters *porters;
	struct reaper *reaper;
	const struct param *param;
	const struct machine *machine;
	bool is_private;
	enum cpu_priority priority;
	uid_t uid;                  /* as whom it runs, and whose descriptors come from it */
	char as[IDENTITY_TEXT_MAX]; /* the option --as; "": as we are */
	int doorbell_fd, event_fd, rings_fd, memory_fd; /* borrowed; the latter two -1: none */
};

/* Where our own helper programs are: $ACCESS_LIBEXEC (private mode only), or as library_find_own() has it.
 * ret: room of PATH_MAX. 0 or -ENOENT with diag naming all places. */
int child_find(const char *program, bool is_private, char *ret, size_t size, struct diag *diag);
/* What child_start() adds to a child's nice value for that priority. */
int child_nice(enum cpu_priority priority);
/* Starts path with argv; it and its children have that priority. 0 or negative errno. */
int child_start(const char *path, char *const argv[], enum cpu_priority priority,
		struct child *ret);
/* Descriptors in the message by which it starts. */
#define CHILD_FDS(wants)                                                                       \
	WIRE_FD((wants)->doorbell_fd), WIRE_FD((wants)->event_fd), WIRE_FD((wants)->rings_fd), \
	    WIRE_FD((wants)->memory_fd)
/* In a child that accessd (its pid, taken before the fork) forked for one thing and that executes no
 * program: it dies with accessd, may become nobody else, and keeps no descriptor but `keep` and
 * stderr. Copies of the others would outlive accessd's own: peers would not see that it hung up. */
void child_settle(pid_t accessd, int keep);
/* SIGKILL and reap; the socket is closed. */
void child_end(struct child *child);
/* Until it has ended, but no longer; it is not reaped. */
void child_await(pid_t pid, unsigned patience_ms);
/* Hangs up and lets it end by itself for that long, then child_end(). */
void child_leave(struct child *child, unsigned patience_ms);
/* SIGKILL, and it is no child of ours any more: it is reaped when it has ended. */
void child_abandon(struct child *child, struct reaper *reaper);
/* Has it ended? Its status and CPU time; it stays a zombie until it is reaped. */
bool child_has_ended(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);

struct restarts { /* since the start */
	uint64_t reader, parent, worker;
};

/* Luck: when a child that died may be started again. Plain arithmetic. */
#define CHILD_QUICK_NS UINT64_C(5000000000) /* one that lived longer did not fail quickly */
#define CHILD_PAUSE_NS UINT64_C(1000000000)
#define CHILD_PATIENCE 3 /* quick failures in a row that cost no pause */
#define CHILD_HOPELESS 6 /* quick failures in a row after which nobody is kept waiting */
struct child_luck {      /* zeroed: nothing happened yet */
	uint64_t started_ns;
	unsigned failures; /* quick ones in a row */
};
void child_luck_start(struct child_luck *luck, uint64_t now_ns);
/* It died, or could not be started. Returns the pause before the next start. */
uint64_t child_luck_failure(struct child_luck *luck, uint64_t now_ns);
bool child_luck_is_hopeless(const struct child_luck *luck);
/* What a wait status says, for people: "was killed by signal 9 (Killed)". Returns ret. */
char *child_describe_end(int status, char *ret, size_t size);
