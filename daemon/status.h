/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

struct node;

/* The node's status as JSON in a sealed memfd (caller owns), or -1. */
int status_new(struct node *node);

#endif
