/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is found when the program runs: a library that not everybody has or needs, and programs and modules of our own. */

#include <dlfcn.h>

#include "base/base.h"

struct library_name {
	const char *name; /* of a function */
	void *to;         /* the pointer to it */
};

/* Of lists of F(the struct's name, its member, the library's function): the struct's members, and all their names. */
#define LIBRARY_MEMBER(of, member, function) __typeof__(function) *member;
#define LIBRARY_NAME(of, member, function) {#function, (void *)&of.member},

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

/* ---- library.c; ret: room of PATH_MAX ---- */

/* Folder of the running program, without the last '/'; "" where that is not known. */
void library_own_folder(char *ret);
/* A program or module that comes with this one: the first path to it of which is_there() says so, in the folder that is
 * named ($ACCESS_LIBEXEC, where that may be believed; or NULL), beside the running program, in the libexec of its wheel
 * or other prefix, or of its build tree, where all was installed. false: there is none. */
bool library_find_own(const char *file, const char *named, bool (*is_there)(const char *path),
		      char *ret);
