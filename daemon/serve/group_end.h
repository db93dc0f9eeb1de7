/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_GROUP_END_H
#define DAEMON_SERVE_GROUP_END_H

/* Freeing what the carousel's log of a group has, a little at a time. */

#include "base/base.h"

struct carousel_log;
struct node;

#define GROUP_END_STEP (UINT64_C(1) << 18) /* bytes a turn */

/* Owns the log from now on; NULL is fine. */
void group_end(struct node *node, struct carousel_log *log);
void group_end_fini(struct node *node); /* the rest at once */

#endif
