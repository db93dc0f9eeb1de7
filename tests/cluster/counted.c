/* SPDX-License-Identifier: Apache-2.0 */

/*
 * counted FOLDER MOUNT LOG: shows FOLDER at MOUNT, to be read, and writes a line into LOG for each opening of a file, "open PATH",
 * and for each reading that the kernel has not in memory, "read PATH OFFSET BYTES". Until SIGTERM, or whoever began it
 * ends.
 *
 * So what a program reads is counted by who gives it, and not by itself.
 */

#define FUSE_USE_VERSION 35

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int folder = -1;
static FILE *lines;

/* Below folder. */
static const char *name_of(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int get_attributes(const char *path, struct stat *ret, struct fuse_file_info *info)
{
	(void)info;
	return fstatat(folder, name_of(path), ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int list(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
		struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
	const int fd = openat(folder, name_of(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	(void)offset, (void)info, (void)flags;
	if (!entries)
		return -errno;
	while ((entry = readdir(entries)))
		fill(buffer, entry->d_name, NULL, 0, 0);
	closedir(entries);
	return 0;
}

static int open_file(const char *path, struct fuse_file_info *info)
{
	const int fd = openat(folder, name_of(path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if ((info->flags & O_ACCMODE) != O_RDONLY)
		return -EROFS;
	if (fd < 0)
		return -errno;
	fprintf(lines, "open %s\n", name_of(path));
	fflush(lines);
	info->fh = (uint64_t)fd;
	return 0;
}

static int read_file(const char *path, char *buffer, size_t size, off_t offset,
		     struct fuse_file_info *info)
{
	const ssize_t n = pread((int)info->fh, buffer, size, offset);

	if (n < 0)
		return -errno;
	fprintf(lines, "read %s %lld %zd\n", name_of(path), (long long)offset, n);
	fflush(lines);
	return (int)n;
}

static int close_file(const char *path, struct fuse_file_info *info)
{
	(void)path;
	return close((int)info->fh);
}

/* Inodes and times are those of the folder, as on all nodes that have it. */
static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	config->use_ino = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
	    .init = begin,
	    .getattr = get_attributes,
	    .readdir = list,
	    .open = open_file,
	    .read = read_file,
	    .release = close_file,
	};
	char *arguments[] = {argv[0], (char *)"-f", (char *)"-s", NULL, NULL};

	if (argc != 4) {
		fprintf(stderr, "usage: counted FOLDER MOUNT LOG\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* so no mount is left behind */
	folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lines = fopen(argv[3], "we");
	if (folder < 0 || !lines) {
		fprintf(stderr, "counted: %s\n", strerror(errno));
		return 1;
	}
	arguments[3] = argv[2];
	return fuse_main(4, arguments, &operations, NULL);
}
