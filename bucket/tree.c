/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Placeholders. Names are a server's: each is checked (key.h), and gone to by openat() of one part after the other, which follows
 * no link. A placeholder is made beside data/, complete, and renamed to its place, so that who opens one sees
 * the size and the time of one object; what is as it should be is not touched, so that the folders' times stay, and with
 * them the index of who listed them.
 *
 * What a listing has is remembered as XXH3-64 of the names, folders with "/" behind: 8 bytes each, 64 MB for four million. Two
 * names of one sum would leave a placeholder that has no object: reading it says that the object has changed.
 */

#include "bucket/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "bucket/key.h"
#include "shmring/bucket.h"

#define TREE_NEW "new"   /* beside data */
#define TREE_DEEPEST 512 /* folders in each other: of 1024 bytes */
#define NS UINT64_C(1000000000)

struct sums { /* open addressing; 0 is no sum */
	uint64_t *sum;
	size_t n, room; /* room: a power of two */
};

struct tree {
	int folder_fd, data_fd;
	int at_fd;                     /* the folder of the last name, */
	char at[BUCKET_MOST_NAME + 1]; /* its name with "/" behind; "": data itself */
	bool is_checked;               /* this file system keeps sizes and times as they were set */
	struct sums sums;
	struct tree_counts counts;
};

/* ---- what was put ---- */

static bool sums_has(const struct sums *sums, uint64_t sum)
{
	if (sums->room == 0)
		return false;
	for (size_t i = sum & (sums->room - 1); sums->sum[i]; i = (i + 1) & (sums->room - 1))
		if (sums->sum[i] == sum)
			return true;
	return false;
}

static void sums_set(struct sums *sums, uint64_t sum)
{
	size_t i = sum & (sums->room - 1);

	while (sums->sum[i])
		i = (i + 1) & (sums->room - 1);
	sums->sum[i] = sum;
	sums->n++;
}

static int sums_grow(struct sums *sums)
{
	struct sums larger = {.room = BASE_MAX(2 * sums->room, (size_t)4096)};

	larger.sum = calloc(larger.room, sizeof(*larger.sum));
	if (!larger.sum)
		return -ENOMEM;
	for (size_t i = 0; i < sums->room; i++)
		if (sums->sum[i])
			sums_set(&larger, sums->sum[i]);
	free(sums->sum);
	*sums = larger;
	return 0;
}

/* 0, 1: it was there; -ENOMEM. */
static int sums_add(struct sums *sums, uint64_t sum)
{
	if (sums_has(sums, sum))
		return 1;
	if (2 * sums->n >= sums->room && sums_grow(sums))
		return -ENOMEM;
	sums_set(sums, sum);
	return 0;
}

static uint64_t sum_of(const char *name, size_t bytes)
{
	const uint64_t sum = hash_checksum(name, bytes);

	return sum ? sum : 1;
}

/* ---- removing ---- */

static DIR *list_of(int fd, const char *name)
{
	const int at = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = at < 0 ? NULL : fdopendir(at);

	if (!list && at >= 0)
		close(at);
	return list;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* With all that is in it, which nobody put. */
static int remove_all(int fd, const char *name, unsigned depth)
{
	DIR *list;
	int r = 0;

	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth == 0)
		return -ELOOP;
	list = list_of(fd, name);
	if (!list)
		return -errno;
	for (const struct dirent *entry; !r && (entry = readdir(list));)
		if (!is_dots(entry->d_name))
			r = remove_all(dirfd(list), entry->d_name, depth - 1);
	closedir(list);
	return r ? r : unlinkat(fd, name, AT_REMOVEDIR) ? -errno : 0;
}

/* Of the folder `list`, whose name with "/" behind has so many bytes, what was not put. */
static int remove_rest(struct tree *tree, DIR *list, char *name, size_t used);

static int remove_unless_put(struct tree *tree, int fd, char *name, size_t used, const char *entry)
{
	const size_t bytes = used + strlen(entry);
	DIR *list;
	int r;

	if (bytes < BUCKET_MOST_NAME) {
		memcpy(name + used, entry, bytes - used);
		name[bytes] = '/';
		if (sums_has(&tree->sums, sum_of(name, bytes + 1))) {
			list = list_of(fd, entry);
			if (!list)
				return -errno;
			r = remove_rest(tree, list, name, bytes + 1);
			closedir(list);
			return r;
		}
		if (sums_has(&tree->sums, sum_of(name, bytes)))
			return 0;
	}
	tree->counts.removed++;
	return remove_all(fd, entry, TREE_DEEPEST);
}

static int remove_rest(struct tree *tree, DIR *list, char *name, size_t used)
{
	int r = 0;

	for (const struct dirent *entry; !r && (entry = readdir(list));)
		if (!is_dots(entry->d_name))
			r = remove_unless_put(tree, dirfd(list), name, used, entry->d_name);
	return r;
}

/* ---- putting ---- */

static int fail(struct diag *diag, int r, const char *name)
{
	return diag_fail(diag, r, "\"%s\": its placeholder cannot be made: %s%s",
			 BASE_QUOTED(name, 300), strerror(-r),
			 r == -EFBIG    ? " (a limit of `ulimit -f`, or of the file system)"
			 : r == -ENOSPC ? " (of space, or of inodes: `df -i`)"
					: "");
}

static int refuse_both(struct diag *diag, const char *name, size_t bytes)
{
	_cleanup_free_ char *text = strndup(name, bytes);

	return diag_fail(
	    diag, -EEXIST,
	    "\"%s\" is an object, and others begin with that and \"/\": as files both cannot be. "
	    "Give a URL of what is below it, or move one of both",
	    BASE_QUOTED(text ? text : "", 300));
}

/* An object without bytes beside others that begin with its name and "/" is what some tools make of a folder: ADLS, Hadoop. */
static bool is_marker(uint64_t size)
{
	return size == 0;
}

/* A folder below fd that is this listing's. Returns a descriptor. */
static int enter(struct tree *tree, int fd, const char *part, const char *name, size_t bytes,
		 struct diag *diag)
{
	int at = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (at < 0 && sums_has(&tree->sums, sum_of(name, bytes))) {
		struct stat stat;

		if (fstatat(fd, part, &stat, AT_SYMLINK_NOFOLLOW) ||
		    !is_marker((uint64_t)stat.st_size))
			return refuse_both(diag, name, bytes);
		tree->counts.objects--;
		errno = ENOTDIR;
	}
	if (at < 0 &&
	    (errno == ENOTDIR || errno == ELOOP)) { /* a placeholder of an older listing */
		if (unlinkat(fd, part, 0))
			return fail(diag, -errno, name);
		errno = ENOENT;
	}
	if (at < 0 && errno == ENOENT) {
		if (mkdirat(fd, part, 0700))
			return fail(diag, -errno, name);
		at = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (at < 0)
		return fail(diag, -errno, name);
	r = sums_add(&tree->sums, sum_of(name, bytes + 1));
	if (r < 0) {
		close(at);
		return fail(diag, r, name);
	}
	return at;
}

/* To the folder of the name, of which `bytes` with the last "/" are the folders. */
static int go_to(struct tree *tree, const char *name, size_t bytes, struct diag *diag)
{
	_cleanup_close_ int fd = -1;
	char part[NAME_MAX + 1];

	if (tree->at_fd >= 0 && strlen(tree->at) == bytes && memcmp(tree->at, name, bytes) == 0)
		return 0;
	base_close(&tree->at_fd);
	*tree->at = '\0';
	fd = openat(tree->data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(diag, -errno, name);
	for (size_t from = 0; from < bytes;) {
		const size_t n = (size_t)(strchr(name + from, '/') - (name + from));
		int next;

		memcpy(part, name + from, n);
		part[n] = '\0';
		next = enter(tree, fd, part, name, from + n, diag);
		if (next < 0)
			return next;
		close(fd);
		fd = next;
		from += n + 1;
	}
	tree->at_fd = base_take_fd(&fd);
	memcpy(tree->at, name, bytes);
	tree->at[bytes] = '\0';
	return 0;
}

static bool is_as(const struct stat *stat, uint64_t size, int64_t mtime_ns)
{
	return S_ISREG(stat->st_mode) && (uint64_t)stat->st_size == size &&
	       (int64_t)stat->st_mtim.tv_sec == mtime_ns / (int64_t)NS &&
	       (int64_t)stat->st_mtim.tv_nsec == mtime_ns % (int64_t)NS;
}

/* Of FOLDER/new, complete. */
static int make(struct tree *tree, uint64_t size, int64_t mtime_ns)
{
	const struct timespec times[2] = {
	    {.tv_nsec = UTIME_OMIT},
	    {.tv_sec = mtime_ns / (int64_t)NS, .tv_nsec = mtime_ns % (int64_t)NS},
	};
	_cleanup_close_ int fd = -1;
	struct stat stat;

	if (unlinkat(tree->folder_fd, TREE_NEW, 0) && errno != ENOENT)
		return -errno;
	fd = openat(tree->folder_fd, TREE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0400);
	if (fd < 0 || ftruncate(fd, (off_t)size) || futimens(fd, times))
		return -errno;
	if (tree->is_checked)
		return 0;
	if (fstat(fd, &stat))
		return -errno;
	tree->is_checked = is_as(&stat, size, mtime_ns);
	return tree->is_checked ? 0 : -ETIME;
}

static int place(struct tree *tree, const char *name, const char *last, uint64_t size,
		 int64_t mtime_ns, struct diag *diag)
{
	int r = make(tree, size, mtime_ns);

	if (r == -ETIME)
		return diag_fail(diag, r,
				 "the file system of the folder keeps no sizes or times in "
				 "nanoseconds: put the folder on another one");
	if (r)
		return fail(diag, r, name);
	if (renameat(tree->folder_fd, TREE_NEW, tree->at_fd, last) && errno == EISDIR) {
		/* A folder of an older listing. */
		r = remove_all(tree->at_fd, last, TREE_DEEPEST);
		if (r)
			return fail(diag, r, name);
		if (renameat(tree->folder_fd, TREE_NEW, tree->at_fd, last))
			return fail(diag, -errno, name);
	}
	tree->counts.made++;
	return 0;
}

static void skip(struct tree *tree, const char *name, const char *why)
{
	tree->counts.skipped++;
	if (tree->counts.why)
		return;
	tree->counts.why = why;
	base_quote(name, tree->counts.example, sizeof(tree->counts.example));
}

int tree_put(struct tree *tree, const char *name, uint64_t size, int64_t mtime_ns,
	     struct diag *diag)
{
	const size_t bytes = strlen(name);
	const char *why = key_bad_name(name, bytes), *slash, *last;
	char folder[BUCKET_MOST_NAME + 1];
	struct stat stat;
	int r;

	if (!why && (size > INT64_MAX || mtime_ns < 0))
		why = "its size or time makes no sense";
	if (why) {
		skip(tree, name, why);
		return 0;
	}
	if (tree->counts.objects >= TREE_MOST_OBJECTS)
		return diag_fail(diag, -E2BIG,
				 "there are more than %llu objects: put them into shards, or give "
				 "a longer prefix",
				 (unsigned long long)TREE_MOST_OBJECTS);
	slash = strrchr(name, '/');
	last = slash ? slash + 1 : name;
	r = go_to(tree, name, (size_t)(last - name), diag);
	if (r)
		return r;
	memcpy(folder, name, bytes);
	folder[bytes] = '/';
	if (sums_has(&tree->sums, sum_of(folder, bytes + 1)))
		return is_marker(size) ? 0 : refuse_both(diag, name, bytes);
	r = sums_add(&tree->sums, sum_of(name, bytes));
	if (r < 0)
		return fail(diag, r, name);
	tree->counts.objects += r == 0;
	tree->counts.bytes += r == 0 ? size : 0;
	if (fstatat(tree->at_fd, last, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_as(&stat, size, mtime_ns))
		return 0;
	return place(tree, name, last, size, mtime_ns, diag);
}

/* ---- all of it ---- */

int tree_begin(struct tree *tree)
{
	free(tree->sums.sum);
	tree->sums = (struct sums){.n = 0};
	tree->counts = (struct tree_counts){.objects = 0};
	base_close(&tree->at_fd);
	*tree->at = '\0';
	tree->at_fd = openat(tree->data_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tree->at_fd < 0 ? -errno : sums_grow(&tree->sums);
}

int tree_end(struct tree *tree, struct diag *diag)
{
	char name[BUCKET_MOST_NAME + 1];
	DIR *list = list_of(tree->data_fd, ".");
	const int r = list ? remove_rest(tree, list, name, 0) : -errno;

	if (list)
		closedir(list);
	base_close(&tree->at_fd);
	free(tree->sums.sum);
	tree->sums = (struct sums){.n = 0};
	return r ? diag_fail(diag, r, "what is no object any more cannot be removed: %s",
			     strerror(-r))
		 : 0;
}

const struct tree_counts *tree_counts(const struct tree *tree)
{
	return &tree->counts;
}

int tree_open(int folder_fd, struct tree **ret, struct diag *diag)
{
	struct tree *tree;
	int data_fd;

	if (mkdirat(folder_fd, BUCKET_DATA, 0700) && errno != EEXIST)
		return diag_fail(diag, -errno, "\"%s\" cannot be made in the folder: %s",
				 BUCKET_DATA, strerror(errno));
	data_fd = openat(folder_fd, BUCKET_DATA, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (data_fd < 0)
		return diag_fail(diag, -errno, "\"%s\" cannot be opened in the folder: %s",
				 BUCKET_DATA, strerror(errno));
	tree = calloc(1, sizeof(*tree));
	if (!tree) {
		close(data_fd);
		return diag_fail(diag, -ENOMEM, "there is no memory");
	}
	tree->folder_fd = folder_fd;
	tree->data_fd = data_fd;
	tree->at_fd = -1;
	*ret = tree;
	return 0;
}

void tree_close(struct tree *tree)
{
	if (!tree)
		return;
	base_close(&tree->at_fd);
	base_close(&tree->data_fd);
	free(tree->sums.sum);
	free(tree);
}
