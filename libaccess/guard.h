/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The fork guard: one page a handle that the kernel wipes in a forked child. */

#include <stdbool.h>

struct guard {
	volatile unsigned char *page; /* [0] is 1 in the process that made it, 0 in its children */
};

int guard_init(struct guard *guard); /* 0 or negative errno */
void guard_fini(struct guard *guard);

/* One load, no system call. */
static inline bool guard_is_ours(const struct guard *guard)
{
	return guard->page[0] == 1;
}
