/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An accessd of our own in a new folder that only this user may enter: started, waited for, ended
 * by its pid, the folder removed. And the status of any accessd, asked by a child process, so that
 * the caller need not link its life to libaccess (it forks jobs).
 */

#include <limits.h>
#include "base/base.h"

enum { HOST_E_FAILED = 1 }; /* diag says what and how to mend it */

struct host {
	int pid; /* 0: none */
	char dir[PATH_MAX - 64], socket[PATH_MAX];
};

/* settings: n texts "key=value" for --set; nothing is kept, unless they say so. 0 or HOST_E_FAILED. */
int host_start(const char *const *settings, unsigned n, struct host *ret, struct diag *diag);
/* Is it still there? Reaps it if not. */
bool host_is_alive(struct host *host);
/* SIGTERM, SIGKILL after 10 s; removes the folder. Idempotent. */
void host_end(struct host *host);

/* The JSON text of oa_status() over the socket (NULL: as libaccess finds it); the caller frees it.
 * 0 or HOST_E_FAILED; at most timeout_ms. */
int host_status(const char *socket, int timeout_ms, char **ret, struct diag *diag);
