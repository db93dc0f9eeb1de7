/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where access-video.so is: where accessd looks for its programs. $ACCESS_LIBEXEC, beside the running program (as in a wheel
 * or another prefix), in the installed tree. It is loaded whole at once: behind a sandbox nothing can be bound any more.
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include "base/base.h"
#include "pipeline/video/video_module.h"

#define VIDEO_FILE "access-video.so"

static bool video_is_there(const char *folder, const char *below, char *ret)
{
	return snprintf(ret, PATH_MAX, "%s%s/" VIDEO_FILE, folder, below) < PATH_MAX &&
	       access(ret, R_OK) == 0;
}

static bool video_find(char *ret)
{
	static const char *const near[] = {"", "/../libexec", "/../../libexec"};
	const char *libexec = secure_getenv("ACCESS_LIBEXEC");
	char own[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	own[length > 0 ? length : 0] = '\0';
	slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	if (libexec && *libexec && video_is_there(libexec, "", ret))
		return true;
	for (size_t i = 0; i < BASE_ARRAY_LEN(near); i++)
		if (slash && video_is_there(own, near[i], ret))
			return true;
	return video_is_there(LIBEXECDIR, "", ret);
}

const char *video_missing(void)
{
	char path[PATH_MAX];

	return video_find(path) ? NULL
				: "videos need " VIDEO_FILE ", which is not here: install the "
				  "package oneaccess-video; a build of the sources has it where "
				  "FFmpeg's libraries are, a wheel has not";
}

const struct video_module *video_load(const char **ret_why)
{
	static const struct video_module *module;
	static char why[200];
	char path[PATH_MAX];
	void *library;

	if (module)
		return module;
	*ret_why = video_missing();
	if (*ret_why)
		return NULL;
	library = video_find(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	module = library ? dlsym(library, VIDEO_MODULE_SYMBOL) : NULL;
	if (module && module->version == VIDEO_MODULE_VERSION) {
		module->prepare();
		return module;
	}
	snprintf(why, sizeof(why), VIDEO_FILE " cannot be used: %s",
		 module ? "it is of another version: install the same version of oneaccess-video"
			: dlerror());
	module = NULL;
	*ret_why = why;
	return NULL;
}
