/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs that have jobs, each a process of a user. They are in a file, too: the accessd after this one, also after
 * one that was killed, knows those that have not come back yet.
 */

#include "base/base.h"

struct program {
	uid_t uid;
	pid_t pid;
	unsigned n_jobs;
	bool is_awaited; /* it had jobs of an accessd before this one, of which none is back yet */
};

struct programs {           /* zeroed: none, and no file */
	const char *folder; /* of the file; NULL: there is none */
	struct program *program;
	unsigned n;
};

/* Reads those of the accessd before this one. folder stays the caller's. */
void programs_load(struct programs *programs, const char *folder);
void programs_fini(struct programs *programs); /* the file stays */
bool programs_have(const struct programs *programs, uid_t uid, pid_t pid);
/* A job of it begins, or is back, and ends. Whom the kernel has no pid of (0) is nobody. */
void programs_begin(struct programs *programs, uid_t uid, pid_t pid, bool is_back);
void programs_end(struct programs *programs, uid_t uid, pid_t pid);
