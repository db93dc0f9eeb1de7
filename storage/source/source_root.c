/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a path is: a folder, a file, a list of files below a folder, and options behind it. What is there as it is written
 * goes before what it could mean.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_bucket.h"
#include "storage/source/source_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Does the path lead into a mount of FUSE that is closed to us? Such a one's own folder can be looked up by all, and who asks for
 * more than its file system is refused. */
static bool is_in_closed_mount(const char *path)
{
	char way[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (strlen(path) >= sizeof(way))
		return false;
	strcpy(way, path);
	for (char *slash; statfs(way, &fs) < 0; *slash = '\0') {
		slash = strrchr(way, '/');
		if (!slash || slash == way)
			return false;
	}
	return (unsigned long)fs.f_type == FUSE_SUPER_MAGIC && stat(way, &st) < 0 &&
	       errno == EACCES;
}

int source_refuse_root(const struct reader_dataset *dataset, int error, struct diag *diag)
{
	const char *mend = "is the path right, and does this machine have it mounted?";
	char closed[256];

	snprintf(closed, sizeof(closed),
		 "the user of the job must be able to search every folder on the way and to read "
		 "the last one: here that is uid %u, whatever number a container gives it",
		 (unsigned)geteuid());
	if (error == EACCES && is_in_closed_mount(dataset->path))
		mend = "it is in a mount (FUSE), which is closed to all but who mounted it, root "
		       "too: mount it as the user of the job, or with allow_other";
	else if (error == EACCES)
		mend = closed;
	else if (error == ENOENT && strstr(dataset->path, "://"))
		mend =
		    "accessd reads no URLs: the libaccess of this program is to make a folder of "
		    "it, and is older than that, or has no access-bucket beside it; install both, "
		    "or mount the bucket (with mount-s3, gcsfuse, rclone) and give the folder";
	else if (error == ENOTDIR)
		mend = "give the folder that holds the pictures or the class folders, or a file "
		       "that access-ctl convert made, or another kind of data set "
		       "(oneaccess-sources(7)); unpack archives";
	return diag_fail(diag, -error, "cannot open dataset \"%s\": %s; %s",
			 BASE_QUOTED(dataset->shown, 512), strerror(error), mend);
}

/* A placeholder of an object's may be closed to all (source_bucket.c). */
static int open_file(const char *path)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 && errno == EACCES ? open(path, O_PATH | O_CLOEXEC) : fd;
}

/* A folder, or a file: nothing else is opened, which might wait for somebody or do something. */
static int open_path(const char *path, struct stat *ret)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR && stat(path, ret) == 0 && S_ISREG(ret->st_mode))
		fd = open_file(path);
	else if (fd < 0 && errno == ENOTDIR)
		return -ENOTDIR;
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return fd;
}

/* "FOLDER/name-{000..123}.tar", of which nothing has that name: the root is FOLDER. */
static int open_pattern(struct reader_dataset *dataset, struct stat *ret)
{
	const char *brace = strchr(dataset->name, '{'), *slash = brace;

	if (!brace)
		return -ENOENT;
	while (*slash != '/') /* the path begins with one */
		slash--;
	dataset->pattern = slash + 1;
	dataset->root_path = strndup(dataset->name, (size_t)BASE_MAX(slash - dataset->name, 1));
	return dataset->root_path ? open_path(dataset->root_path, ret) : -ENOMEM;
}

/* "PATH?key=value,...", of which nothing has that name: the options are the kind's. */
static int open_name(struct reader_dataset *dataset, struct stat *ret)
{
	char *mark;
	int fd;

	dataset->name = strdup(dataset->path);
	dataset->options = "";
	if (!dataset->name)
		return -ENOMEM;
	fd = open_path(dataset->name, ret);
	mark = strrchr(dataset->name, '?');
	if ((fd == -ENOENT || fd == -ENOTDIR) && mark) {
		*mark = '\0';
		dataset->options = mark + 1;
		fd = open_path(dataset->name, ret);
	}
	if (fd == -ENOENT)
		fd = open_pattern(dataset, ret);
	if (fd >= 0 && !dataset->root_path && !(dataset->root_path = strdup(dataset->name))) {
		base_close(&fd);
		return -ENOMEM;
	}
	return fd;
}

int source_open_root(struct reader_dataset *dataset, struct diag *diag)
{
	struct stat st;
	int fd, r;

	dataset->shown = dataset->path;
	if (dataset->path[0] != '/')
		return diag_fail(diag, -EINVAL, "the path of a dataset must be absolute");
	fd = open_name(dataset, &st);
	if (fd < 0)
		return source_refuse_root(dataset, -fd, diag);
	dataset->root_fd = fd;
	dataset->is_folder = S_ISDIR(st.st_mode);
	dataset->root.device = st.st_dev;
	dataset->root.inode = st.st_ino;
	dataset->root.stamp =
	    (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	dataset->no_atime = st.st_uid == geteuid();
	r = source_bucket_find(dataset, diag);
	if (dataset->bucket)
		dataset->shown = dataset->bucket->url;
	else if (!r && fcntl(fd, F_GETFL) & O_PATH)
		return source_refuse_root(dataset, EACCES, diag);
	return r;
}

void source_close(struct reader_dataset *dataset)
{
	if (dataset->ops && dataset->ops->close)
		dataset->ops->close(dataset);
	dataset->source = NULL;
	source_bucket_free(dataset->bucket);
	dataset->bucket = NULL;
	base_close(&dataset->root_fd);
	free(dataset->name);
	free(dataset->root_path);
}
