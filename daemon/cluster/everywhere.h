/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Folders that an administrator says are the same on all nodes: the parameter cluster_paths, "/data:/mnt/shared". Data
 * that are open to everybody have no user by whom another node could know them, so they are known by their place below
 * one of these.
 */

#include "base/base.h"

/* Are these folders, each a whole path and not all there is? "" is none. 0, or -EINVAL with diag. */
int everywhere_check(const char *folders, struct diag *diag);
/* Is it one of them, or below one? way: a whole path, without links and dots. */
bool everywhere_has(const char *folders, const char *way);
