/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compressed shards, made plain: each by a process of its own, this program executed anew, which can read the shard and write
 * the new file, and do nothing else (convert_unpacking.c): a stranger's bytes go through two libraries there. Several at a
 * time. The folder that they are written to is beside the target, hidden, and gone when the conversion has
 * ended, however it did but by SIGKILL; plain shards beside compressed ones are linked there. What is in an object store is
 * brought there first. Of ArrayRecord files and zip archives the process finds out whether one is plain.
 */

#include "convert/convert.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/reader_parts.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_shards.h"

#define UNPACK_LOOK_MS 20
#define UNPACK_PART (UINT64_C(64) << 20) /* of an object: some questions at once */

extern char **environ;

static const struct {
	const char *suffix, *plain, *how;
} known[] = {
    {".tgz", ".tar", "gzip"}, {".gz", "", "gzip"},   {".zlib", "", "gzip"},
    {".zst", "", "zstd"},     {".zstd", "", "zstd"},
};

bool convert_unpacks_records(const struct reader_dataset *dataset)
{
	return dataset->ops == &source_arrayrecord || dataset->ops == &source_zip;
}

struct unpack {
	const struct reader_dataset *dataset;
	int folder_fd;
	struct shard_names names;
	struct {
		pid_t pid; /* 0: none */
		size_t name;
	} child[CONVERT_MAX_JOBS];
	unsigned jobs;
	size_t next, done;
	struct convert_progress progress;
	const struct scan_progress *scan;
	struct diag *diag;
};

static int unpack_fail(struct unpack *unpack, const char *name, const char *what)
{
	return diag_fail(unpack->diag, CONVERT_FAILED, "shard \"%s\" %s", BASE_QUOTED(name, 300),
			 what);
}

static int unpack_fail_errno(struct unpack *unpack, const char *name, const char *what, int error)
{
	char text[200];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
	return unpack_fail(unpack, name, text);
}

bool convert_unpack_keeps_names(const struct reader_dataset *dataset)
{
	return dataset->pattern && convert_unpacks_records(dataset);
}

/* How it is unpacked, and the plain name, of several folders below them where names are kept; NULL: it is not one that can be. */
static const char *plain_name(const struct unpack *unpack, size_t number, char ret[PATH_MAX])
{
	const char *name = unpack->names.name[number];
	const char *slash = convert_unpack_keeps_names(unpack->dataset) ? NULL : strrchr(name, '/');
	const char *base = slash ? slash + 1 : name;
	const size_t length = strlen(base);
	char before[24] = "";

	if (slash) /* of several folders: their order stays */
		snprintf(before, sizeof(before), "%07zu-", number);
	if (unpack->dataset->ops == &source_zip)
		return snprintf(ret, PATH_MAX, "%s%s", before, base) >= PATH_MAX ? NULL : "zip";
	if (convert_unpacks_records(unpack->dataset)) { /* keys of samples have this name */
		const bool is_known = source_shards_has_name(unpack->dataset->ops->shards, base);

		return snprintf(ret, PATH_MAX, "%s%s%s", before, base,
				is_known ? "" : ".array_record") >= PATH_MAX
			   ? NULL
			   : "arrayrecord";
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(known); i++) {
		const size_t size = strlen(known[i].suffix);

		if (length <= size || strcasecmp(base + length - size, known[i].suffix) != 0)
			continue;
		if (snprintf(ret, PATH_MAX, "%s%.*s%s", before, (int)(length - size), base,
			     known[i].plain) >= PATH_MAX)
			return NULL;
		return known[i].how;
	}
	return NULL;
}

/* ---- which there are ---- */

static int add_name(struct shard_names *names, const char *name)
{
	if (!base_grow(&names->name, &names->room, names->n + 1, sizeof(*names->name)))
		return -ENOMEM;
	names->name[names->n] = strdup(name);
	if (!names->name[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

static int list_folder(struct unpack *unpack)
{
	const struct source_shards *kind = unpack->dataset->ops->shards;
	int fd = openat(unpack->dataset->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!stream) {
		r = -errno;
		base_close(&fd);
		return r;
	}
	while (!r && (entry = readdir(stream)))
		if (*entry->d_name != '.' &&
		    (source_shards_suffix(entry->d_name, kind->compressed) ||
		     source_shards_has_name(kind, entry->d_name)))
			r = add_name(&unpack->names, entry->d_name);
	closedir(stream);
	return r;
}

static int list_names(struct unpack *unpack)
{
	const struct reader_dataset *dataset = unpack->dataset;
	int r;

	if (dataset->pattern)
		return source_shards_expand(dataset, &unpack->names, unpack->diag) ? CONVERT_FAILED
										   : 0;
	r = dataset->is_folder ? list_folder(unpack)
			       : add_name(&unpack->names, strrchr(dataset->name, '/') + 1);
	return r ? unpack_fail_errno(unpack, dataset->path, "cannot be listed", -r) : 0;
}

/* ---- one of them ---- */

static int spawn(const struct unpack *unpack, const char *how, const char *name, int from, int to,
		 pid_t *ret)
{
	char program[] = "access-convert", option[] = UNPACK_OPTION;
	char *arguments[] = {program,
			     option,
			     (char *)(uintptr_t)how,
			     (char *)(uintptr_t)unpack->dataset->options,
			     (char *)(uintptr_t)name,
			     NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return r;
	r = posix_spawn_file_actions_adddup2(&actions, from, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, to, 1);
	r = r ? r : posix_spawn(ret, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The object's bytes, to `to`. 0 or CONVERT_FAILED. */
static int bring(struct unpack *unpack, const char *name, int placeholder, int to)
{
	struct source_from from = {.dataset = unpack->dataset, .name = name, .fd = placeholder};
	_cleanup_free_ uint8_t *part = NULL;
	struct stat st;
	uint64_t size;

	if (fstat(placeholder, &st) < 0)
		return unpack_fail_errno(unpack, name, "cannot be read", errno);
	size = (uint64_t)st.st_size;
	part = malloc(BASE_MIN(size, UNPACK_PART) + 1);
	if (!part)
		return unpack_fail(unpack, name, "takes more memory than there is");
	for (uint64_t at = 0; at < size; at += UNPACK_PART) {
		const uint64_t bytes = BASE_MIN(size - at, UNPACK_PART);
		int r;

		if (unpack->scan->cancelled(unpack->scan->arg))
			return CONVERT_FAILED;
		r = source_read(&from, part, bytes, at);
		if (r)
			return unpack_fail(unpack, name, source_why(&from, r));
		r = base_write_at(to, part, bytes, at);
		if (r)
			return unpack_fail_errno(unpack, name,
						 "cannot be written beside the target", -r);
	}
	return 0;
}

/* It is plain: to the others by a link to its place, or of an object as it is, by that name. */
static int add_plain(struct unpack *unpack, const char *name, const char *plain)
{
	const struct reader_dataset *dataset = unpack->dataset;
	_cleanup_close_ int from = -1, to = -1;
	_cleanup_free_ char *path = NULL;

	if (dataset->bucket) {
		from = source_open_shard(dataset, name);
		if (from < 0)
			return unpack_fail_errno(unpack, name, "cannot be opened", -from);
		to =
		    openat(unpack->folder_fd, plain, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		return to < 0 ? unpack_fail_errno(unpack, name, "cannot be written", errno)
			      : bring(unpack, name, from, to);
	}
	if (asprintf(&path, "%s%s%s", dataset->root_path, dataset->is_folder ? "/" : "",
		     dataset->is_folder ? name : "") < 0) {
		path = NULL;
		return unpack_fail(unpack, name, "takes more memory than there is");
	}
	return symlinkat(path, unpack->folder_fd, plain) < 0
		   ? unpack_fail_errno(unpack, name, "cannot be linked", errno)
		   : 0;
}

/* Of an object that is unpacked, beside what that makes. */
static const char *copy_name(unsigned slot, char ret[24])
{
	snprintf(ret, 24, ".packed-%u", slot);
	return ret;
}

/* What is unpacked: the shard, or of an object the slot's copy. A descriptor, or -1 with diag. */
static int open_packed(struct unpack *unpack, unsigned slot, const char *name)
{
	_cleanup_close_ int fd = source_open_shard(unpack->dataset, name), copy = -1;
	char text[24];

	if (fd < 0) {
		unpack_fail_errno(unpack, name, "cannot be opened", -fd);
		return -1;
	}
	if (!unpack->dataset->bucket)
		return base_take_fd(&fd);
	copy = openat(unpack->folder_fd, copy_name(slot, text),
		      O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (copy < 0) {
		unpack_fail_errno(unpack, name, "cannot be written beside the target", errno);
		return -1;
	}
	return bring(unpack, name, fd, copy) ? -1 : base_take_fd(&copy);
}

/* 0 or negative errno. */
static int make_folders(const struct unpack *unpack, const char *plain)
{
	char folder[PATH_MAX];

	for (const char *slash = strchr(plain, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - plain), plain);
		if (mkdirat(unpack->folder_fd, folder, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int start(struct unpack *unpack, unsigned slot)
{
	const size_t number = unpack->next++;
	const char *name = unpack->names.name[number], *how;
	_cleanup_close_ int from = -1, to = -1;
	char plain[PATH_MAX];
	int r;

	if (!convert_unpacks_records(unpack->dataset) &&
	    !source_shards_suffix(name, unpack->dataset->ops->shards->compressed)) {
		unpack->done++;
		return add_plain(unpack, name, name);
	}
	how = plain_name(unpack, number, plain);
	if (!how)
		return unpack_fail(
		    unpack, name,
		    "is compressed in a way that convert does not read (it reads gzip "
		    "and zstd): unpack it (bunzip2, unxz) and give the plain one");
	from = open_packed(unpack, slot, name);
	if (from < 0)
		return CONVERT_FAILED;
	r = make_folders(unpack, plain);
	if (r)
		return unpack_fail_errno(unpack, name, "cannot be unpacked", -r);
	to = openat(unpack->folder_fd, plain, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return unpack_fail_errno(unpack, name, "cannot be unpacked", errno);
	r = spawn(unpack, how, name, from, to, &unpack->child[slot].pid);
	unpack->child[slot].name = number;
	if (!r)
		return 0;
	unpack->child[slot].pid = 0;
	return unpack_fail_errno(unpack, name, "cannot be unpacked", r);
}

/* It was plain already: the object's copy is what was to be made, a file's is a link. */
static int keep_plain(struct unpack *unpack, unsigned slot, const char *name)
{
	char plain[PATH_MAX], text[24];

	plain_name(unpack, unpack->child[slot].name, plain);
	if (!unpack->dataset->bucket) {
		unlinkat(unpack->folder_fd, plain, 0);
		return add_plain(unpack, name, plain);
	}
	return renameat(unpack->folder_fd, copy_name(slot, text), unpack->folder_fd, plain) < 0
		   ? unpack_fail_errno(unpack, name, "cannot be renamed", errno)
		   : 0;
}

/* The file in the archive where it failed (convert_unpacking.c), or "". The process may have written anything there. */
static void failed_file(const struct unpack *unpack, unsigned slot, char ret[UNPACK_MOST_FILE])
{
	char plain[PATH_MAX], text[UNPACK_MOST_FILE + 1] = "";
	_cleanup_close_ int fd = -1;
	const char *before;
	struct stat st;
	size_t n;

	*ret = '\0';
	plain_name(unpack, unpack->child[slot].name, plain);
	fd = openat(unpack->folder_fd, plain, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	n = (size_t)BASE_MIN((uint64_t)st.st_size, (uint64_t)sizeof(text));
	if (n < 2 || pread(fd, text, n, st.st_size - (off_t)n) != (ssize_t)n || text[n - 1])
		return;
	before = memrchr(text, '\0', n - 1);
	if (before)
		memcpy(ret, before + 1, (size_t)(text + n - (before + 1)));
}

static int fail_in_file(struct unpack *unpack, unsigned slot, const char *name, const char *why)
{
	char file[UNPACK_MOST_FILE], text[600];

	failed_file(unpack, slot, file);
	if (!*file)
		return unpack_fail(unpack, name, why);
	snprintf(text, sizeof(text), "%s (its file \"%s\"; leave_out goes on without it)", why,
		 BASE_QUOTED(file, 300));
	return unpack_fail(unpack, name, text);
}

static int judge(struct unpack *unpack, unsigned slot, int status)
{
	const char *name = unpack->names.name[unpack->child[slot].name];
	char text[24];
	static const char *const why[] = {
	    [UNPACK_E_DAMAGED] = "is damaged: it cannot be unpacked; copy it anew",
	    [UNPACK_E_CUT] = "ends within its compressed data: it is cut; copy it anew",
	    [UNPACK_E_READ] = "cannot be read",
	    [UNPACK_E_WRITE] =
		"cannot be unpacked beside the target: is the disk full? it takes as "
		"much as all shards unpacked",
	    [UNPACK_E_MEMORY] = "takes more memory to be unpacked than may be taken for it, or "
				"than there is: give it unpacked (a zip: written with zip -0)",
	    [UNPACK_E_LARGE_FILE] = "has a file of more than 1 GiB; no sample may have",
	    [UNPACK_E_SANDBOX] = "cannot be unpacked in a sandbox (seccomp)",
	    [UNPACK_E_WINDOW] = "needs a window over 128 MiB: unpack it by zstd -d --long=31",
	    [UNPACK_E_KIND] = "is transposed, or compressed by another way than zstd: write it "
			      "anew, with ArrayRecordWriter(NAME, \"group_size:1\")",
	    [UNPACK_E_LARGE] = "has a record of more than 128 MiB: write it anew, with "
			       "ArrayRecordWriter(NAME, \"group_size:1,uncompressed\")",
	};
	unsigned code;

	if (WIFEXITED(status) && WEXITSTATUS(status) == UNPACK_E_PLAIN)
		return keep_plain(unpack, slot, name);
	unlinkat(unpack->folder_fd, copy_name(slot, text), 0); /* of an object */
	if (WIFSIGNALED(status))
		return unpack_fail(unpack, name,
				   "ended the process that unpacked it: it is damaged, "
				   "or made to do harm");
	code = (unsigned)WEXITSTATUS(status);
	if (code == 0)
		return 0;
	if (unpack->dataset->ops == &source_zip &&
	    (code == UNPACK_E_DAMAGED || code == UNPACK_E_LARGE_FILE))
		return fail_in_file(unpack, slot, name, why[code]);
	return unpack_fail(unpack, name,
			   code < BASE_ARRAY_LEN(why) && why[code] ? why[code]
								   : "cannot be unpacked");
}

/* ---- all of them ---- */

/* Whoever has ended, and the next one in his place. *ret_idle: nobody has. */
static int look_after(struct unpack *unpack, unsigned slot, bool *ret_idle)
{
	int status, r = 0;

	if (unpack->child[slot].pid) {
		const char *name = unpack->names.name[unpack->child[slot].name];
		const pid_t ended = waitpid(unpack->child[slot].pid, &status, WNOHANG);

		if (ended == 0 || (ended < 0 && errno == EINTR))
			return 0;
		unpack->child[slot].pid = 0;
		unpack->done++;
		r = ended < 0 ? unpack_fail_errno(unpack, name, "cannot be unpacked", errno)
			      : judge(unpack, slot, status);
		*ret_idle = false;
	}
	if (!r && unpack->next < unpack->names.n) {
		r = start(unpack, slot);
		*ret_idle = false;
	}
	return r;
}

static int unpack_all(struct unpack *unpack, const struct scan_progress *progress)
{
	int r = 0;

	convert_progress_begin(&unpack->progress, "unpacking", unpack->names.n);
	while (!r && unpack->done < unpack->names.n) {
		bool is_idle = true;

		for (unsigned slot = 0; slot < unpack->jobs && !r; slot++)
			r = look_after(unpack, slot, &is_idle);
		convert_progress_tell(&unpack->progress, unpack->done, 0);
		if (!r && progress->cancelled(progress->arg))
			r = CONVERT_FAILED;
		if (is_idle)
			poll(NULL, 0, UNPACK_LOOK_MS);
	}
	convert_progress_end(&unpack->progress);
	for (unsigned i = 0; i < unpack->jobs; i++)
		base_kill(&unpack->child[i].pid);
	return r;
}

/* A descriptor or negative errno. */
static int open_folder(const char *path, struct stat *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return base_take_fd(&fd);
}

static int make_folder(const char *target, struct convert_unpacked *ret)
{
	const char *slash = strrchr(target, '/');
	_cleanup_free_ char *folder = NULL;
	struct stat st;
	int fd, error;

	if (asprintf(&folder, "%.*s.access-convert-XXXXXX", slash ? (int)(slash + 1 - target) : 0,
		     target) < 0)
		return -ENOMEM;
	if (!mkdtemp(folder))
		return -errno;
	ret->path = realpath(folder, NULL);
	error = -errno;
	fd = ret->path ? open_folder(ret->path, &st) : error;
	if (fd < 0) {
		rmdir(folder);
		return fd;
	}
	ret->device = st.st_dev;
	ret->inode = st.st_ino;
	return fd;
}

int convert_unpack(const struct reader_dataset *dataset, const char *target, unsigned jobs,
		   const struct scan_progress *progress, struct convert_unpacked *ret,
		   struct diag *diag)
{
	struct unpack unpack = {.dataset = dataset, .jobs = jobs, .scan = progress, .diag = diag};
	int r;

	unpack.folder_fd = make_folder(target, ret);
	if (unpack.folder_fd < 0)
		return unpack_fail_errno(&unpack, dataset->path,
					 "needs a folder beside the target to be unpacked",
					 -unpack.folder_fd);
	r = list_names(&unpack);
	r = r ? r : unpack_all(&unpack, progress);
	base_close(&unpack.folder_fd);
	source_shards_names_free(&unpack.names);
	return r;
}

static void empty_folder(int fd)
{
	DIR *stream = fdopendir(fd);
	const struct dirent *entry;

	if (!stream) {
		base_close(&fd);
		return;
	}
	while ((entry = readdir(stream))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    unlinkat(dirfd(stream), entry->d_name, 0) == 0)
			continue;
		fd = openat(dirfd(stream), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		empty_folder(fd);
		unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
	}
	closedir(stream);
}

void convert_unpack_remove(struct convert_unpacked *unpacked)
{
	struct stat st;
	int fd = unpacked->path ? open_folder(unpacked->path, &st) : -1;

	if (fd >= 0 && st.st_dev == unpacked->device && st.st_ino == unpacked->inode) {
		empty_folder(base_take_fd(&fd));
		rmdir(unpacked->path);
	}
	base_close(&fd);
	free(unpacked->path);
	*unpacked = (struct convert_unpacked){.path = NULL};
}
