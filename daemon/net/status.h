/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

struct conn;
struct watch_who;

/* The node's status as JSON in a sealed memfd (caller owns), or -1: all of it for who may see all, else
 * the viewer's own jobs, streams and processes, beside sums over everybody. */
int status_new(const struct conn *viewer);
/* The same of a struct node, as a text for watchers (watch.h). */
int status_render(void *node, const struct watch_who *who, char **ret, size_t *ret_size);
