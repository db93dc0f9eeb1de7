/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A program that one of a user's processes starts for all of them: the election of who does, and the start. The program
 * exits with 0 when what it has left behind answers. */

#include <sys/types.h>
#include "base/base.h"

enum {
	SPAWN_AGAIN = 256, /* not yet: come back when pid_fd is readable, or at wake_ns */
	SPAWN_E_FAILED = 257,
};

struct spawn {       /* an election and a start under way; all owned */
	int lock_fd; /* flock LOCK_EX while it is ours, -1: not */
	pid_t pid;   /* our child, 0: none */
	int pid_fd, pipe_fd;
	bool has_run; /* a child was started */
	uint64_t wake_ns;
	char text[512]; /* what the child wrote on its stderr */
	size_t length;
};

void spawn_init(struct spawn *spawn);
/* Ends what is under way and lets go of the lock. A child that still runs is killed and reaped. */
void spawn_fini(struct spawn *spawn);
/* Nobody answers: get the lock in the folder. 0: it is ours, try to connect once more; SPAWN_AGAIN: another
 * process is electing; try to connect again later; else an error. */
int spawn_elect(struct spawn *spawn, const char *folder, struct diag *diag);
/* With the lock and still nobody there: start the program, then call spawn_step() until it is up. 0 or negative errno. */
int spawn_run(struct spawn *spawn, char *const *arguments);
/* 0: the program says that it is ready; SPAWN_AGAIN; SPAWN_E_FAILED with its own words behind `what`. */
int spawn_step(struct spawn *spawn, const char *what, struct diag *diag);
