/* SPDX-License-Identifier: Apache-2.0 */

#include "base/library.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define LIBRARY_BUILT "/../../libexec" /* of a program in one of libtool's folders, .libs */

void library_own_folder(char *ret)
{
	ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	ret[length > 0 ? length : 0] = '\0';
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
}

/* Is that folder one of a build tree, which has it from make? */
static bool is_built(const char *own, const char *folder)
{
	char stamp[PATH_MAX];

	return snprintf(stamp, sizeof(stamp), "%s%s/stamp", own, folder) < PATH_MAX &&
	       access(stamp, F_OK) == 0;
}

bool library_find_own(const char *file, const char *named, bool (*is_there)(const char *path),
		      char *ret)
{
	static const char *const near[] = {"", "/../libexec", LIBRARY_BUILT};
	char own[PATH_MAX];

	if (named && *named && snprintf(ret, PATH_MAX, "%s/%s", named, file) < PATH_MAX &&
	    is_there(ret))
		return true;
	library_own_folder(own);
	for (size_t i = 0; *own && i < BASE_ARRAY_LEN(near); i++)
		if ((strcmp(near[i], LIBRARY_BUILT) != 0 || is_built(own, near[i])) &&
		    snprintf(ret, PATH_MAX, "%s%s/%s", own, near[i], file) < PATH_MAX &&
		    is_there(ret))
			return true;
	snprintf(ret, PATH_MAX, LIBEXECDIR "/%s", file);
	return is_there(ret);
}
