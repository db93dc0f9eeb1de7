/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An accessd of our own in a new folder that only this user may enter: started, waited for, ended
 * by its pid, the folder removed.
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
