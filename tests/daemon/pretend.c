/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/daemon/pretend.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

void pretend_file(const char *path, const char *text)
{
	char folders[256];
	FILE *file;

	snprintf(folders, sizeof(folders), "%s", path);
	for (char *slash = strchr(folders + strlen(PRETEND_ROOT), '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		ck_assert(mkdir(folders, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

bool pretend_groups(const char *groups)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", PRETEND_ROOT, "tmpfs", 0, NULL)) {
		fprintf(stderr, "not tested: needs a mount namespace\n");
		return false;
	}
	pretend_file(PRETEND_ROOT "/self", groups);
	return mount(PRETEND_ROOT "/self", "/proc/self/cgroup", NULL, MS_BIND, NULL) == 0;
}
