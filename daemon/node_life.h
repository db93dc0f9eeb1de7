/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The beginning and the end of all that a node has, and its wiring: what ended, what is due, whom that is about. */

#include "base/base.h"

struct node;

/* Builds everything from node->param and node->place (both set, place open). 0 or negative errno
 * with diag. */
int node_init(struct node *node, struct diag *diag);
void node_fini(struct node *node);
/* SIGTERM: hand out nothing new, tell clients to come back, stop the loop. */
void node_drain(struct node *node, const char *why);
