/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A private accessd of this user: its folder, the start. */

#include "base/base.h"
#include "libaccess/connect/spawn.h"

/* The usual folder: $XDG_RUNTIME_DIR/oneaccess, else /tmp/oneaccess-UID. 0 or OA_E_INVALID. */
int private_folder(char *ret, size_t size, struct diag *diag);
/* Makes it if need be; it must be a folder of this user alone, or what is in it may be a trap.
 * 0, or OA_E_PERMISSION, negative errno, with diag. */
int private_make_folder(const char *folder, struct diag *diag);

/* With the lock (spawn_elect()) and still nobody there: start accessd, then call private_step() until it is up. */
int private_spawn(struct spawn *spawn, const char *folder, struct diag *diag);
/* 0: the daemon says it is ready; SPAWN_AGAIN; OA_E_UNREACHABLE with the daemon's own words. */
int private_step(struct spawn *spawn, struct diag *diag);
