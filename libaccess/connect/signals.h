/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>

/* Blocks what others send, in this thread. A fault of the thread itself (SIGSEGV, ...) goes to the
 * program's handler as ever: run-time systems live on such faults, and blocked they would kill. */
void signals_block(sigset_t *ret_before);
