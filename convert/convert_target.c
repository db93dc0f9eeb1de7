/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The target: a file that nobody sees until it is whole and on the disk.
 *
 * Where the file system can (O_TMPFILE) it has no name until then, so that whatever ends us, a power failure
 * or SIGKILL, leaves nothing. Elsewhere (NFS) it has a hidden name beside its own, which is removed on
 * every way out that a process has.
 *
 * Its name is given so that nothing is overwritten by chance: what has come to stand there meanwhile stays, unless
 * --force was said.
 */

#include "convert/convert.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int target_fail(const struct convert_target *target, const char *what, int error,
		       struct diag *diag)
{
	return diag_fail(diag, CONVERT_FAILED, "cannot %s \"%s\": %s", what,
			 BASE_QUOTED(target->path, 512), strerror(error));
}

static int target_refuse(const struct convert_target *target, const char *why, struct diag *diag)
{
	return diag_fail(diag, CONVERT_FAILED, "\"%s\" %s", BASE_QUOTED(target->path, 512), why);
}

static int target_look(const struct convert_target *target, struct diag *diag)
{
	struct stat st;

	if (!*base_name(target->path))
		return target_refuse(target, "names a folder: give the file to be written", diag);
	if (fstatat(target->folder_fd, base_name(target->path), &st, 0) < 0)
		return 0;
	if (!S_ISREG(st.st_mode))
		return target_refuse(target, "is there and is no file: give another name", diag);
	if (!target->force)
		return target_refuse(target, "is there already: --force replaces it", diag);
	return 0;
}

static int target_folder(struct convert_target *target, struct diag *diag)
{
	const size_t length = (size_t)(base_name(target->path) - target->path);
	_cleanup_free_ char *folder = length ? strndup(target->path, length) : strdup(".");

	if (!folder)
		return target_fail(target, "make", ENOMEM, diag);
	target->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return target->folder_fd < 0 ? target_fail(target, "open the folder of", errno, diag) : 0;
}

/* A hidden name beside the target's. 0 or negative errno. */
static int target_name(struct convert_target *target)
{
	uint64_t number;
	char *name;
	int r = base_random(&number, sizeof(number));

	if (r)
		return r;
	if (asprintf(&name, ".%.200s.%016llx", base_name(target->path),
		     (unsigned long long)number) < 0)
		return -ENOMEM;
	free(target->temporary);
	target->temporary = name;
	return 0;
}

static int target_create(struct convert_target *target, struct diag *diag)
{
	int r;

	if (access("/proc/self/fd", X_OK) == 0)
		target->fd = openat(target->folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (target->fd >= 0)
		return 0;
	r = target_name(target);
	if (!r)
		target->fd = openat(target->folder_fd, target->temporary,
				    O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (target->fd >= 0)
		return 0;
	r = r ? -r : errno;
	free(base_take_ptr(target->temporary));
	return target_fail(target, "make", r, diag);
}

int convert_target_open(struct convert_target *target, const char *path, bool force,
			struct diag *diag)
{
	int r;

	*target = (struct convert_target){.path = path, .force = force, .fd = -1, .folder_fd = -1};
	r = target_folder(target, diag);
	r = r ? r : target_look(target, diag);
	r = r ? r : target_create(target, diag);
	if (r)
		convert_target_close(target);
	return r;
}

/* ---- the end ---- */

/* From no name to the hidden one, or to the target's own where nothing may be replaced. */
static int target_link(struct convert_target *target)
{
	char self[64];
	int r;

	if (target->temporary)
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", target->fd);
	if (!target->force)
		return linkat(AT_FDCWD, self, target->folder_fd, base_name(target->path),
			      AT_SYMLINK_FOLLOW) < 0
			   ? -errno
			   : 0;
	r = target_name(target);
	if (r)
		return r;
	if (linkat(AT_FDCWD, self, target->folder_fd, target->temporary, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	r = -errno;
	free(base_take_ptr(target->temporary));
	return r;
}

static int target_rename(struct convert_target *target)
{
	const char *name = base_name(target->path);
	const int folder = target->folder_fd;
	int r;

	if (!target->temporary)
		return 0;
	r = renameat2(folder, target->temporary, folder, name,
		      target->force ? 0 : RENAME_NOREPLACE);
	if (r < 0 && (errno == EINVAL || errno == ENOSYS)) /* a file system that cannot promise */
		r = faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 || target->force
			? renameat(folder, target->temporary, folder, name)
			: (errno = EEXIST, -1);
	if (r < 0)
		return -errno;
	free(base_take_ptr(target->temporary));
	return 0;
}

int convert_target_keep(struct convert_target *target, struct diag *diag)
{
	int r;

	if (fsync(target->fd) < 0)
		return target_fail(target, "write", errno, diag);
	r = target_link(target);
	r = r ? r : target_rename(target);
	if (r == -EEXIST)
		return target_refuse(target, "has come to be there meanwhile: --force replaces it",
				     diag);
	if (r)
		return target_fail(target, "name", -r, diag);
	fsync(target->folder_fd);
	return 0;
}

void convert_target_close(struct convert_target *target)
{
	if (target->temporary)
		unlinkat(target->folder_fd, target->temporary, 0);
	free(base_take_ptr(target->temporary));
	base_close(&target->fd);
	base_close(&target->folder_fd);
}
