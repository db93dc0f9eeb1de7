/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control groups that a test makes up: it mounts files of its own over /proc and /sys in a mount namespace of its
 * own. That takes root; without it what needs them is not tested.
 */

#include <stdbool.h>

#define PRETEND_ROOT "/sys/fs/cgroup"

/* An empty /sys/fs/cgroup, and groups as this process's. false: not allowed here, and said. */
bool pretend_groups(const char *groups);
/* A file below PRETEND_ROOT, with its folders. */
void pretend_file(const char *path, const char *text);
