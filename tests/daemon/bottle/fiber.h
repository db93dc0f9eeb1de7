/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A stack of its own for code that waits: it runs until it waits, and goes on where it is woken. One at a time runs. */

#include <stdbool.h>

struct fiber;

/* fn(arg) begins with the first fiber_go(). */
struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
void fiber_free(struct fiber *fiber); /* one that has ended, or never began */
/* Runs until it waits or has ended. true: it has ended. */
bool fiber_go(struct fiber *fiber);
void fiber_wait(void); /* within one */
struct fiber *fiber_now(void);
