/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node as a service (service.h): what it says of itself, what SIGHUP changes, children that somebody has stopped. */

#include "base/base.h"

struct node;
struct notify;
struct param;

struct operate { /* lives as long as the node */
	struct node *node;
	int (*reread)(void *arg, struct param *ret, struct diag *diag); /* service.h */
	void *arg;
};

/* The node is ready. operate: filled by the caller. 0 or negative errno. */
int operate_begin(struct operate *operate, struct notify *notify);
