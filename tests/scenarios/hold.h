/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file or a folder that whoever opens it waits for, as on storage that hangs, until the test lets go of it or ends:
 * the kernel asks us (fanotify) whether it may be opened, and we say nothing. Needs root.
 */

#include "base/base.h"

bool hold_is_possible(void); /* false: says why */
/* The descriptor that holds it. Ends the test where it cannot. */
int hold_path(const char *path);
/* Waits until somebody waits for it. false: nobody came. */
bool hold_is_met(int hold);
void hold_end(int hold); /* who waits goes on */
