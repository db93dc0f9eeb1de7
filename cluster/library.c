/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster/library.h"

#include <dlfcn.h>

const char *library_load(const char *file, const struct library_name *names, size_t n)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *function = library;

	for (size_t i = 0; i < n && function; i++) {
		function = dlsym(library, names[i].name);
		memcpy(names[i].to, &function, sizeof(function));
	}
	return function ? NULL : dlerror();
}
