/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes a batch writable when a program writes to it, or says so before that ends the program. */

#include <stddef.h>
#include "libaccess/libaccess.h"

/* From now on SIGSEGV is looked at first here, whoever has begun to handle it since the last call; it is
 * looked at there after us. With the interpreter's lock. */
void pyguard_begin(void);
/* Memory of the batch, which outlives the watch. A number for pyguard_forget(); -1: there was no room. */
int pyguard_watch(struct oa_batch *batch, const void *start, size_t size);
void pyguard_forget(int number); /* -1 is fine */
