/* SPDX-License-Identifier: Apache-2.0 */
/* access-video.so is where accessd's programs are. It is loaded whole at once: behind a sandbox nothing can be bound any more. */

#include <limits.h>
#include <stdio.h>
#include <unistd.h>
#include "base/library.h"
#include "pipeline/video/video_module.h"

#define VIDEO_FILE "access-video.so"

static bool video_is_there(const char *path)
{
	return access(path, R_OK) == 0;
}

static bool video_find(char ret[PATH_MAX])
{
	return library_find_own(VIDEO_FILE, secure_getenv("ACCESS_LIBEXEC"), video_is_there, ret);
}

const char *video_missing(void)
{
	char path[PATH_MAX];

	return video_find(path) ? NULL
				: "videos need " VIDEO_FILE ", which is not here: install the "
				  "package oneaccess-video; a build of the sources has it where "
				  "FFmpeg's libraries are, a wheel has not";
}

static const struct video_module *video_module;

const struct video_module *video_loaded(void)
{
	return video_module;
}

const struct video_module *video_load(const char **ret_why)
{
	const struct video_module *module = video_module;
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
		return video_module = module;
	}
	snprintf(why, sizeof(why), VIDEO_FILE " cannot be used: %s",
		 module ? "it is of another version: install the same version of oneaccess-video"
			: dlerror());
	*ret_why = why;
	return NULL;
}
