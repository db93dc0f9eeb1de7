/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One folder of a walk: pushed on the stack by the lister of its parent, opened by its own lister,
 * held open for the batches of its names, closed and sorted by whoever is done last.
 *
 * A folder's mtime is what a later verification compares. It is worth nothing while the folder may
 * still change within the same tick of the clock: such a young folder is waited for before it is
 * listed (once in a walk, usually: the others are old by then). A folder whose mtime moved while it
 * was listed is stored as unsettled, which makes the next verification say "changed". mtime can be set to what it was, as
 * tar and rsync do, so ctime is looked at, too, which only ever grows.
 *
 * Mounts of object stores have no times of folders: what s3, http and their like show is 1970, or when they were mounted, whatever
 * came or went. A file system that is a program's word is not believed that a folder has not changed (openness.c
 * neither), so such folders are unsettled, too: each opening lists them, and what it finds is the same version where
 * nothing did change.
 *
 * A folder that is removed before it was listed is no part of the tree; the mtime of the one that
 * held it tells the next verification. (Not so a link whose target is gone: that is refused.)
 *
 * A folder that is one of its own ancestors is a loop, refused; two ways to one folder are not.
 */

#include "storage/openness.h"
#include "storage/walk_parts.h"

#include <dirent.h>
#include <linux/magic.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>

/* Clocks of file systems are as coarse as the kernel's tick; those that store whole seconds are
 * known by their zeros. */
#define WALK_TICK_NS INT64_C(50000000)
#define WALK_COARSE_NS INT64_C(2500000000)
#define WALK_PATIENCE_NS UINT64_C(3000000000) /* with a folder that goes on changing */

void walk_folder_push(struct walk *walk, const struct walk_folder *parent, const char *name)
{
	struct walk_folder *folder = calloc(1, sizeof(*folder));

	if (!folder || asprintf(&folder->path, "%s%s%s", parent ? parent->path : "",
				parent && *parent->path ? "/" : "", name) < 0) {
		free(folder);
		walk_stop_memory(walk);
		return;
	}
	folder->parent = parent;
	BASE_HOLD(&walk->lock);
	walk->bytes += sizeof(*folder) + strlen(folder->path) + 1;
	folder->next = walk->folders;
	walk->folders = folder;
	folder->next_todo = walk->todo;
	walk->todo = folder;
	if (walk->idle)
		pthread_cond_signal(&walk->work);
}

static int file_compare(const void *a, const void *b, void *text)
{
	const struct walk_file *one = a, *two = b;

	return strcmp((const char *)text + one->name, (const char *)text + two->name);
}

void walk_folder_put(struct walk *walk, struct walk_folder *folder)
{
	bool last;

	pthread_mutex_lock(&walk->lock);
	last = --folder->holders == 0;
	pthread_mutex_unlock(&walk->lock);
	if (!last)
		return;
	closedir(folder->stream);
	folder->stream = NULL;
	if (folder->n_files > 1)
		qsort_r(folder->file, folder->n_files, sizeof(*folder->file), file_compare,
			folder->text);
}

/* How long until no change can hide behind this time. One far in the future is no clock's. */
static int64_t time_youth_ns(int64_t time_ns)
{
	const int64_t margin = time_ns % 1000000000 ? WALK_TICK_NS : WALK_COARSE_NS;
	const int64_t youth = time_ns + margin - (int64_t)base_clock_ns(CLOCK_REALTIME);

	return youth > 2 * WALK_COARSE_NS ? 0 : BASE_MAX(youth, 0);
}

static bool has_times(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != FUSE_SUPER_MAGIC;
}

/* Stats the folder when it is old enough; waits for that in steps, so that a cancelled walk
 * ends. */
static int folder_stat(struct walk *walk, struct walk_folder *folder, int fd)
{
	const uint64_t begin_ns = base_now_ns();
	const bool settles = has_times(fd);
	int64_t youth_ns;
	struct stat st;

	for (;;) {
		struct timespec step = {0};

		if (fstat(fd, &st) < 0)
			return -errno;
		youth_ns =
		    BASE_MAX(time_youth_ns(walk_mtime_ns(&st)), time_youth_ns(walk_ctime_ns(&st)));
		if (!settles || !youth_ns || walk_stopped(walk) ||
		    base_now_ns() - begin_ns > WALK_PATIENCE_NS)
			break;
		step.tv_nsec = (long)BASE_MIN(youth_ns, WALK_TICK_NS);
		nanosleep(&step, NULL);
	}
	if (walk->open_only && !openness_of_folder(fd, &st))
		walk_refuse_closed(walk);
	folder->device = st.st_dev;
	folder->inode = st.st_ino;
	folder->mtime_ns = youth_ns || !settles ? INT64_MIN : walk_mtime_ns(&st);
	folder->ctime_ns = walk_ctime_ns(&st);
	return 0;
}

static bool folder_is_loop(const struct walk_folder *folder)
{
	for (const struct walk_folder *up = folder->parent; up; up = up->parent)
		if (up->inode == folder->inode && up->device == folder->device)
			return true;
	return false;
}

static bool is_removed(const struct walk *walk, const struct walk_folder *folder)
{
	struct stat st;

	return folder->parent &&
	       fstatat(walk->root_fd, folder->path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

bool walk_folder_open(struct walk *walk, struct walk_folder *folder)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(walk->root_fd, *folder->path ? folder->path : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : folder_stat(walk, folder, fd);
	folder->gone = r == -ENOENT && is_removed(walk, folder);
	if (r && !folder->gone)
		walk_refuse_errno(walk, folder->path, NULL, -r);
	if (r)
		return false;
	if (folder_is_loop(folder)) {
		walk_refuse(walk, folder->path, NULL,
			    "leads back to a folder that holds it; remove that symbolic link");
		return false;
	}
	folder->stream = fdopendir(fd);
	if (!folder->stream) {
		walk_refuse_errno(walk, folder->path, NULL, errno);
		return false;
	}
	fd = -1; /* the stream's now */
	folder->holders = 1;
	return true;
}

void walk_folder_settle(struct walk_folder *folder)
{
	struct stat st;

	if (fstat(dirfd(folder->stream), &st) < 0)
		st = (struct stat){.st_nlink = 1}; /* nobody knows */
	folder->gone = folder->parent && st.st_nlink == 0;
	if (walk_mtime_ns(&st) != folder->mtime_ns || walk_ctime_ns(&st) != folder->ctime_ns)
		folder->mtime_ns = INT64_MIN;
}
