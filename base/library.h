/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A library that is found when the program runs: not everybody has it, or needs it. */

#include <dlfcn.h>

#include "base/base.h"

struct library_name {
	const char *name; /* of a function */
	void *to;         /* the pointer to it */
};

/* Fills the pointers. NULL, or why that cannot be. */
static inline const char *library_load(const char *file, const struct library_name *names, size_t n)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *function = library;

	for (size_t i = 0; i < n && function; i++) {
		function = dlsym(library, names[i].name);
		memcpy(names[i].to, &function, sizeof(function));
	}
	return function ? NULL : dlerror();
}
