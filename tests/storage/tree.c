/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/storage/tree.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tree_new(struct tree *tree)
{
	char cwd[2048];

	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(tree->path, sizeof(tree->path), "%s/tree-XXXXXX", cwd);
	ck_assert_ptr_nonnull(mkdtemp(tree->path));
	ck_assert_int_eq(chmod(tree->path, 0755), 0);
	tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(tree->fd, 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

void tree_remove(struct tree *tree)
{
	close(tree->fd);
	ck_assert_int_eq(nftw(tree->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

uint8_t tree_byte(const char *path, uint64_t at)
{
	uint64_t x = at + 1;

	while (*path)
		x = x * 0x9e3779b97f4a7c15 + (uint8_t)*path++;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9;
	return (uint8_t)(x >> 56);
}

void tree_folder(struct tree *tree, const char *path)
{
	char way[4096];

	snprintf(way, sizeof(way), "%s", path);
	for (char *slash = strchr(way, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		ck_assert(mkdirat(tree->fd, way, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	ck_assert(mkdirat(tree->fd, way, 0755) == 0 || errno == EEXIST);
}

void tree_file(struct tree *tree, const char *path, size_t size)
{
	const char *slash = strrchr(path, '/');
	char folder[4096];
	uint8_t *data = malloc(size + 1);
	int fd;

	if (slash) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		tree_folder(tree, folder);
	}
	for (size_t i = 0; i < size; i++)
		data[i] = tree_byte(path, i);
	fd = openat(tree->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, size), (ssize_t)size);
	close(fd);
	free(data);
}

void tree_link(struct tree *tree, const char *target, const char *path)
{
	ck_assert_int_eq(symlinkat(target, tree->fd, path), 0);
}

void tree_mtime(struct tree *tree, const char *path, int64_t seconds, long nanoseconds)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
					  {.tv_sec = seconds, .tv_nsec = nanoseconds}};

	ck_assert_int_eq(utimensat(tree->fd, path, times, 0), 0);
}

struct dataset *tree_scan(struct tree *tree, unsigned threads)
{
	struct dataset *dataset = NULL;
	struct diag diag = {.text = ""};
	int fd = -1;
	const int r = scan_build(tree->fd, tree->path, threads, NULL, &fd, &diag);

	ck_assert_msg(r == 0, "scan_build: %d %s", r, diag.text);
	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	return dataset;
}

int tree_scan_fails(struct tree *tree, struct diag *diag)
{
	int fd = -1;
	const int r = scan_build(tree->fd, tree->path, 2, NULL, &fd, diag);

	ck_assert_int_ne(r, 0);
	ck_assert_int_eq(fd, -1);
	return r;
}
