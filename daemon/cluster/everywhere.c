/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cluster/everywhere.h"

/* The next folder of the list, without slashes at its end. false: there is none. */
static bool next_folder(const char **at, const char **ret, size_t *ret_size)
{
	if (!*at)
		return false;
	*ret = *at;
	*ret_size = strcspn(*at, ":");
	*at = (*at)[*ret_size] ? *at + *ret_size + 1 : NULL;
	while (*ret_size > 1 && (*ret)[*ret_size - 1] == '/')
		--*ret_size;
	return true;
}

/* No part of it is empty, "." or "..": such a path is none that a folder ever has. */
static bool is_plain(const char *folder, size_t size)
{
	for (size_t i = 0; i < size;) {
		const char *part = folder + i + 1;
		size_t length = 0;

		while (i + 1 + length < size && part[length] != '/')
			length++;
		if (length == 0 || (length <= 2 && strncmp(part, "..", length) == 0))
			return false;
		i += 1 + length;
	}
	return true;
}

int everywhere_check(const char *folders, struct diag *diag)
{
	const char *at = *folders ? folders : NULL, *folder;
	size_t size;

	while (next_folder(&at, &folder, &size)) {
		if (size > 1 && *folder == '/' && is_plain(folder, size))
			continue;
		return diag_fail(diag, -EINVAL,
				 "parameter cluster_paths: \"%.*s\" is no folder of which all "
				 "nodes could have the same: whole paths, a colon between two, no "
				 "\".\" and \"..\" in them, and not \"/\" (as /data:/mnt/shared)",
				 (int)BASE_MIN(size, (size_t)256), folder);
	}
	return 0;
}

bool everywhere_has(const char *folders, const char *way)
{
	const char *at = *folders ? folders : NULL, *folder;
	size_t size;

	while (next_folder(&at, &folder, &size))
		if (strncmp(way, folder, size) == 0 && (way[size] == '/' || !way[size]))
			return true;
	return false;
}
