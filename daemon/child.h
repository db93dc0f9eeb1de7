/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CHILD_H
#define DAEMON_CHILD_H

/* A child process of accessd with a control socket (its descriptor 3). */

#include <sys/types.h>
#include "base/base.h"

struct child {
	pid_t pid; /* 0: none */
	int sock;  /* our end, non-blocking, CLOEXEC; -1: none */
};

/* Where our own helper programs are: $ACCESS_LIBEXEC (private mode only), beside accessd, in the
 * build's folders, LIBEXECDIR. ret: room of PATH_MAX. 0 or -ENOENT with diag naming all places. */
int child_find(const char *program, bool is_private, char *ret, size_t size, struct diag *diag);
/* Starts path with argv. 0 or negative errno. */
int child_start(const char *path, char *const argv[], struct child *ret);
/* SIGKILL and reap; the socket is closed. */
void child_end(struct child *child);

#endif
