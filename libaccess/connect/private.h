/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A private accessd of this user: its folder, the election of who starts it, the start. */

#include <sys/types.h>
#include "base/base.h"

enum { PRIVATE_AGAIN = 256 }; /* not yet: come back when private_fd() is readable, or at wake_ns */

struct private_start { /* an election and a start under way; all owned */
	int lock_fd;   /* flock LOCK_EX while it is ours, -1: not */
	pid_t pid;     /* our child, 0: none */
	int pid_fd, pipe_fd;
	bool started; /* a child was started and said that the daemon is there */
	uint64_t wake_ns;
	char text[512]; /* what the child wrote on its stderr */
	size_t length;
};

/* The usual folder: $XDG_RUNTIME_DIR/oneaccess, else /tmp/oneaccess-UID. 0 or OA_E_INVALID. */
int private_folder(char *ret, size_t size, struct diag *diag);
/* Makes it if need be; it must be a folder of this user alone, or what is in it may be a trap.
 * 0, or OA_E_PERMISSION, negative errno, with diag. */
int private_make_folder(const char *folder, struct diag *diag);

void private_init(struct private_start *start);
/* Ends what is under way and lets go of the lock. A child that still runs is killed and reaped. */
void private_fini(struct private_start *start);
/* Nobody answers: get the lock. 0: it is ours, try to connect once more; PRIVATE_AGAIN: another
 * process is electing; try to connect again later; else an error. */
int private_elect(struct private_start *start, const char *folder, struct diag *diag);
/* With the lock and still nobody there: start accessd, then call private_step() until it is up. */
int private_spawn(struct private_start *start, const char *folder, struct diag *diag);
/* 0: the daemon says it is ready; PRIVATE_AGAIN; OA_E_UNREACHABLE with the daemon's own words. */
int private_step(struct private_start *start, struct diag *diag);
