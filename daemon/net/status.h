/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_NET_STATUS_H
#define DAEMON_NET_STATUS_H

struct conn;

/* The node's status as JSON in a sealed memfd (caller owns), or -1: all of it for who may see all, else
 * the viewer's own jobs, streams and processes, beside sums over everybody. */
int status_new(const struct conn *viewer);

#endif
