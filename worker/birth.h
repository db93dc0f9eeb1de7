/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From a program that accessd has just started to the worker parent. */

#include "worker/pool.h"

/* Ties the process to accessd (its parent by pid), closes what it was not given, makes it
 * unreadable to others, opens the signals (*ret_signals: a signalfd of SIGCHLD, the caller's) and
 * sets settings->oom_...; 0 or negative errno. */
int birth_of_parent(pid_t accessd, struct pool_settings *settings, int *ret_signals);
