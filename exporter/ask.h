/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of accessd, asked for by a child process, as accessd may be stopped and nobody here waits for it. */

#include "base/base.h"

#define ASK_TIMEOUT_S 5
#define ASK_MOST (UINT32_C(64) << 20) /* bytes of an answer */

/* Starts it. *ret_fd becomes readable: ASK_GOOD and the JSON, or another byte and why there is none, then the end of it.
 * The caller owns it, and reaps *ret_pid, which ends at the latest after ASK_TIMEOUT_S. socket: NULL for that which
 * access-ctl would find. 0 or negative errno. */
#define ASK_GOOD '+'
int ask_begin(const char *socket, pid_t *ret_pid, int *ret_fd);
