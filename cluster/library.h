/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A library that is found when the program runs: not everybody has it, or needs it. */

#include "base/base.h"

struct library_name {
	const char *name; /* of a function */
	void *to;         /* the pointer to it */
};

/* Fills the pointers. NULL, or why that cannot be. */
const char *library_load(const char *file, const struct library_name *names, size_t n);
