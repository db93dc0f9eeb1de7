/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What everybody may read, everybody may share.
 *
 * Open is what owner, group and others alike may read (and, a folder, search): a mode like 0604 shuts
 * out a group, so the bits of others alone prove nothing. An access control list can shut out one
 * user, so there must be none. Both are the whole truth only where the kernel itself decides by them: on
 * the file systems listed here. NFS version 4 and SMB have other lists, and the server the last word;
 * a FUSE file system is the word of another user's process. Data there are read by each user for
 * himself.
 *
 * A symbolic link leads to places whose ways nobody has looked at, so a tree with one is not open.
 *
 * The last word is the kernel's, whatever is found here: who reads open data is a process without
 * groups and rights of anybody's (doc/decisions/090-tenants.md).
 */

#include "storage/openness.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define READABLE (S_IRUSR | S_IRGRP | S_IROTH)
#define SEARCHABLE (S_IXUSR | S_IXGRP | S_IXOTH)
#define ACL "system.posix_acl_access"
#define SPARSE 8 /* a file has at least one in so many of its blocks */

/* not in magic.h */
#define MAGIC_ZFS 0x2fc12fc1
#define MAGIC_BCACHEFS 0xca451a4e
#define MAGIC_LUSTRE 0x0bd00bd0

static bool is_plain_file_system(int fd)
{
	static const unsigned long plain[] = {
	    EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
	    F2FS_SUPER_MAGIC,      TMPFS_MAGIC,     RAMFS_MAGIC,
	    OVERLAYFS_SUPER_MAGIC, SQUASHFS_MAGIC,  ISOFS_SUPER_MAGIC,
	    EROFS_SUPER_MAGIC_V1,  MAGIC_ZFS,       MAGIC_BCACHEFS,
	    MAGIC_LUSTRE,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < BASE_ARRAY_LEN(plain); i++)
		if ((unsigned long)fs.f_type == plain[i])
			return true;
	return false;
}

/* Of a system call that asked for the list. */
static bool is_without_acl(ssize_t size)
{
	return size < 0 && (errno == ENODATA || errno == EOPNOTSUPP);
}

static bool has_bits(const struct stat *st, mode_t bits)
{
	return (st->st_mode & bits) == bits;
}

bool openness_of_folder(int fd, const struct stat *st)
{
	return S_ISDIR(st->st_mode) && has_bits(st, READABLE | SEARCHABLE) &&
	       is_without_acl(fgetxattr(fd, ACL, NULL, 0)) && is_plain_file_system(fd);
}

bool openness_of_file(int folder_fd, const char *name, const struct stat *st)
{
	char path[64 + NAME_MAX];

	if (!S_ISREG(st->st_mode) || !has_bits(st, READABLE))
		return false;
	if (snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder_fd, name) >=
	    (int)sizeof(path))
		return false;
	return is_without_acl(lgetxattr(path, ACL, NULL, 0));
}

static bool is_open_folder(int at, const char *path)
{
	_cleanup_close_ int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && openness_of_folder(fd, &st);
}

bool openness_is_there(const struct stat *st)
{
	return st->st_blocks >= st->st_size / 512 / SPARSE;
}

static bool is_open_end(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (!S_ISREG(st.st_mode))
		return is_open_folder(AT_FDCWD, path);
	return has_bits(&st, READABLE) && is_without_acl(fgetxattr(fd, ACL, NULL, 0)) &&
	       is_plain_file_system(fd) && openness_is_there(&st);
}

bool openness_of_way(int fd)
{
	char path[PATH_MAX], link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		if (!is_open_folder(AT_FDCWD, path))
			return false;
		*slash = '/';
	}
	return is_open_folder(AT_FDCWD, "/") && is_open_end(fd, path);
}

bool openness_of_index(int root_fd, const struct dataset *dataset)
{
	const uint64_t n = dataset_head(dataset)->n_folders;

	for (uint64_t i = 0; i < n; i++) {
		struct dataset_folder folder;

		dataset_folder_of(dataset, i, &folder);
		if (!is_open_folder(root_fd, *folder.path ? folder.path : "."))
			return false;
	}
	return true;
}
