/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A client: hello, one open at most, then the quiet messages around a job. Everything
 * that comes in is hostile; a connection that misbehaves is shut, and when its process still holds
 * slots only our sending side is shut, until it hangs up or its process ends.
 */

#include "base/base.h"

struct conn;
struct node;

/* A client on fd (consumed). NULL: it could not be had. */
struct conn *client_new(struct node *node, int fd);
void client_free(struct conn *conn); /* everything it had is given back */
/* Has it no job, and does it not wait for one? */
bool client_is_spare(const struct conn *conn);
