/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a source's index is stored, and how. A new one is on the disk before it gets its name, and locked until
 * then, so that another accessd with the same cache does not take it for one that was left behind.
 *
 * Whoever was the last to have a file frees its bytes, which takes long where they are many. So the loop unlinks no
 * index: it renames what is none any more, and the next child that stores one deletes it (index_prune.c).
 */
#include "daemon/cache/index_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/cache/index_prune.h"

#define DISK_PART 10  /* of a file system for indexes, where index_size does not say */
#define TENANT_PART 4 /* of that, for one user */

/* ---- names ---- */

/* Each domain has its own: an index has names in it, and is believed to come from that domain's
 * reader. */
static void path_of(const struct index_file *file, char ret[INDEX_FILE_PATH_MAX])
{
	char text[IDENTITY_TEXT_MAX + PARAM_TEXT_MAX + 8];
	char name[INDEX_PRUNE_NAME_MAX];
	struct hash_id id;
	size_t at = strlen(file->owner);

	memcpy(text, file->owner, at + 1);
	at += at ? 1 : 0; /* its NUL parts it from the path */
	snprintf(text + at, sizeof(text) - at, "%s", file->dataset);
	hash_of(text, at + strlen(file->dataset), &id);
	index_prune_name(file->owner, &id, name);
	snprintf(ret, INDEX_FILE_PATH_MAX, "%s/%s", file->folder, name);
}

static void temporary_of(const struct index_file *file, bool is_old, char ret[INDEX_FILE_PATH_MAX])
{
	char name[INDEX_PRUNE_NAME_MAX];

	index_prune_temporary(file->owner, file->id, is_old, name);
	snprintf(ret, INDEX_FILE_PATH_MAX, "%s/%s", file->folder, name);
}

/* ---- on the loop ---- */

int index_file_open(const struct index_file *file)
{
	char path[INDEX_FILE_PATH_MAX];
	_cleanup_close_ int fd = -1;

	path_of(file, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && index_prune_hold(fd) ? base_take_fd(&fd) : -1;
}

void index_file_touch(int fd)
{
	futimens(fd, NULL);
}

int index_file_set_aside(const struct index_file *file)
{
	char path[INDEX_FILE_PATH_MAX], old[INDEX_FILE_PATH_MAX];

	path_of(file, path);
	temporary_of(file, true, old);
	return rename(path, old) < 0 && errno != ENOENT ? -errno : 0;
}

void index_file_temporary(const struct index_file *file, char ret[INDEX_FILE_PATH_MAX])
{
	temporary_of(file, false, ret);
}

/* ---- in a child ---- */

/* Our own user may have all of it. */
static int rule_of(const struct index_file *file, struct index_prune_rule *ret)
{
	uint64_t size = file->size;
	struct statvfs disk;

	if (!size && statvfs(file->folder, &disk) < 0)
		return -errno;
	if (!size)
		size = (uint64_t)disk.f_blocks * disk.f_frsize / DISK_PART;
	ret->size = size;
	ret->most = file->is_own ? size : size / TENANT_PART;
	return 0;
}

static int copy_all(int from, int to, uint64_t size)
{
	for (off_t at = 0; (uint64_t)at < size;) {
		ssize_t moved = sendfile(to, from, &at, size - (uint64_t)at);

		if (moved <= 0)
			return moved < 0 ? -errno : -EIO;
	}
	return fsync(to) < 0 ? -errno : 0;
}

static int write_all(const char *temporary, const char *path, int from, uint64_t size)
{
	_cleanup_close_ int to = -1;
	int r;

	to = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = flock(to, LOCK_EX | LOCK_NB) ? -errno : copy_all(from, to, size);
	if (!r && rename(temporary, path))
		r = -errno;
	if (r)
		unlink(temporary);
	return r;
}

int index_file_store(const struct index_file *file, int from, const char *temporary)
{
	char path[INDEX_FILE_PATH_MAX];
	struct index_prune_rule rule;
	struct stat status;
	int r = fstat(from, &status) < 0 ? -errno : rule_of(file, &rule);

	path_of(file, path);
	r = r ? r : index_file_set_aside(file);
	r = r ? r : index_prune(file->folder, file->owner, &rule, (uint64_t)status.st_size);
	return r ? r : write_all(temporary, path, from, (uint64_t)status.st_size);
}
