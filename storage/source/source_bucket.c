/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The folder of a data set in an object store, and what its objects are called.
 *
 * Whoever may write to the folder decides what the samples are, and where they come from: folder and note must belong to the
 * user who reads, and to nobody else, as those of a wrapped data set. A root may be FOLDER/data, or any folder or file below
 * it, by whatever links it was found: where the note is decides, for placeholders have no bytes.
 */

#include "storage/source/source_bucket.h"

#include "base/hash.h"
#include "base/hold.h"
#include "base/url.h"
#include "shmring/bucket.h"
#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"
#include "storage/wrapped.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUCKET_MOST_URL 4096
_Static_assert(BUCKET_NAME_ROOM >= BUCKET_MOST_NAME + 2, "a name, a slash, a NUL");
#define BUCKET_WAIT_NS UINT64_C(180000000000) /* a job starts a new one */
#define BUCKET_PATIENCE_MS 600000             /* longer than all its own tries and deadlines */

static int refuse(const char *folder, const char *what, struct diag *diag)
{
	return diag_fail(diag, DATASET_E_REFUSED,
			 "\"%s\" is no data set in an object store of this user's: %s; remove the "
			 "folder, a job that opens the URL makes it anew",
			 BASE_QUOTED(folder, 256), what);
}

/* ---- the note ---- */

static bool note_is_good(const struct bucket_note *note)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(note->reserved1); i++)
		if (note->reserved1[i])
			return false;
	return note->magic == BUCKET_MAGIC && !note->reserved && note->url_bytes >= 1 &&
	       note->url_bytes <= BUCKET_MOST_URL;
}

/* NULL: it is damaged, or there is no memory. */
static char *read_url(int fd)
{
	_cleanup_free_ char *url = calloc(1, BUCKET_MOST_URL + 1);
	struct bucket_note note;

	if (!url || base_read_at(fd, &note, sizeof(note), 0) || !note_is_good(&note) ||
	    base_read_at(fd, url, note.url_bytes, sizeof(note)) || strlen(url) != note.url_bytes ||
	    !strstr(url, "://"))
		return NULL;
	return base_take_ptr(url);
}

/* Of a folder. 0 and NULL: there is none. */
static int read_note(const char *folder, char **ret_url, struct diag *diag)
{
	_cleanup_close_ int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd =
	    root < 0 ? -1
		     : openat(root, BUCKET_NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	*ret_url = NULL;
	if (root < 0 || (fd < 0 && errno == ENOENT))
		return 0;
	if (fd < 0)
		return refuse(folder, strerror(errno), diag);
	if (!wrapped_is_own(root, S_IFDIR) || !wrapped_is_own(fd, S_IFREG))
		return refuse(folder, "others may write to it, or it is another user's", diag);
	*ret_url = read_url(fd);
	return *ret_url ? 0 : refuse(folder, "its " BUCKET_NOTE " is damaged", diag);
}

/* ---- the root ---- */

/* Takes url. folder: the first bytes of path; data: so many, up to what lies below it. */
static struct bucket *bucket_new(const char *path, size_t folder, size_t data, bool is_folder,
				 char *url)
{
	struct bucket *bucket = calloc(1, sizeof(*bucket));
	const char *below = path + data + strspn(path + data, "/"), *slash = strrchr(below, '/');
	const size_t length = is_folder ? strlen(below) : slash ? (size_t)(slash - below) : 0;

	if (!bucket) {
		free(url);
		return NULL;
	}
	*bucket = (struct bucket){.url = url,
				  .folder = strndup(path, folder),
				  .below = calloc(1, strlen(below) + 3),
				  .wait_ns = BUCKET_WAIT_NS,
				  .patience_ms = BUCKET_PATIENCE_MS};
	pthread_mutex_init(&bucket->lock, NULL);
	if (!bucket->folder || !bucket->below) {
		source_bucket_free(bucket);
		return NULL;
	}
	sprintf(bucket->below, "%.*s%s", (int)length, below, length ? "/" : "");
	if (!is_folder)
		bucket->file =
		    strcpy(bucket->below + strlen(bucket->below) + 1, slash ? slash + 1 : below);
	return bucket;
}

/* Does the name end there in "/data"? */
static bool is_data(const char *path, size_t end)
{
	const size_t size = sizeof("/" BUCKET_DATA) - 1;

	return end > size && memcmp(path + end - size, "/" BUCKET_DATA, size) == 0;
}

/* Up from the root, which has that path behind all links. */
static int find_above(struct reader_dataset *dataset, const char *path, struct diag *diag)
{
	char folder[PATH_MAX], *url;
	size_t end = strlen(path);

	if (!dataset->is_folder)
		end = (size_t)(strrchr(path, '/') - path);
	for (; end > 1; end = (size_t)((char *)memrchr(path, '/', end) - path)) {
		const size_t size = end - strlen("/" BUCKET_DATA);
		int r;

		if (!is_data(path, end))
			continue;
		snprintf(folder, sizeof(folder), "%.*s", (int)size, path);
		r = read_note(folder, &url, diag);
		if (r)
			return r;
		if (!url)
			continue;
		dataset->bucket = bucket_new(path, size, end, dataset->is_folder, url);
		return dataset->bucket ? 0 : -ENOMEM;
	}
	return 0;
}

/* Which it is says the URL, on each node and however often the folder is made anew. */
static void name_root(struct reader_dataset *dataset)
{
	const struct bucket *bucket = dataset->bucket;
	char whole[BUCKET_MOST_URL + PATH_MAX];
	struct hash_id id;
	int length;

	length = snprintf(whole, sizeof(whole), "%s %s%s", bucket->url, bucket->below,
			  bucket->file ? bucket->file : "");
	hash_of(whole, BASE_MIN((size_t)length, sizeof(whole)), &id);
	memcpy(&dataset->root.device, id.bytes, sizeof(dataset->root.device));
	memcpy(&dataset->root.inode, id.bytes + 8, sizeof(dataset->root.inode));
	dataset->root.inode >>= 1;
}

/* A placeholder is not opened to be read: what would read it shall fail. */
static int take_root(struct reader_dataset *dataset)
{
	const bool is_of_web = url_is_of_web(dataset->bucket->url);
	char self[32], *shown;
	int fd;

	name_root(dataset);
	/* Logs, the status and metrics have it: a signature stands behind "?". */
	if (is_of_web)
		dataset->bucket->url[strcspn(dataset->bucket->url, "?")] = '\0';
	if (*dataset->options) {
		if (asprintf(&shown, "%s%c%s", dataset->bucket->url, is_of_web ? '#' : '?',
			     dataset->options) < 0)
			return -ENOMEM;
		free(dataset->bucket->url);
		dataset->bucket->url = shown;
	}
	if (dataset->is_folder)
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", dataset->root_fd);
	fd = open(self, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	base_close(&dataset->root_fd);
	dataset->root_fd = fd;
	return 0;
}

int source_bucket_find(struct reader_dataset *dataset, struct diag *diag)
{
	char self[32], path[PATH_MAX];
	ssize_t length;
	int r;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dataset->root_fd);
	length = readlink(self, path, sizeof(path) - 1);
	if (length < 1 || *path != '/')
		return 0;
	path[length] = '\0';
	r = find_above(dataset, path, diag);
	if (!r && dataset->bucket)
		r = take_root(dataset);
	if (r < 0)
		diag_set(diag, "cannot open the data set in an object store \"%s\": %s",
			 BASE_QUOTED(dataset->path, 400), strerror(-r));
	return r;
}

int source_bucket_check(const struct reader_dataset *dataset, struct diag *diag)
{
	if (dataset->how == READER_HOW_OPEN_ONLY)
		return diag_fail(
		    diag, DATASET_E_CLOSED,
		    "a data set in an object store is read with its user's credentials");
	if (dataset->how == READER_HOW_NAMED)
		return diag_fail(
		    diag, DATASET_E_REFUSED,
		    "\"%s\" is in an object store, and is read with the credentials "
		    "of the job that opens it: each user gives the URL himself; a data "
		    "set that has a name for others is files",
		    BASE_QUOTED(dataset->shown, 400));
	return 0;
}

void source_bucket_free(struct bucket *bucket)
{
	if (!bucket)
		return;
	source_fetch_close(bucket);
	pthread_mutex_destroy(&bucket->lock);
	free(bucket->folder);
	free(bucket->url);
	free(bucket->below);
	free(bucket);
}

/* ---- who wants it ---- */

void source_bucket_opening(struct bucket *bucket, const struct scan_progress *progress)
{
	BASE_HOLD(&bucket->lock);
	bucket->opening = progress;
}

void source_bucket_want(struct bucket *bucket, bool wants)
{
	BASE_HOLD(&bucket->lock);
	if (wants)
		bucket->queues++;
	else
		bucket->queues--;
}

bool source_bucket_is_left(struct bucket *bucket)
{
	const struct scan_progress *opening;
	bool has_queue;

	pthread_mutex_lock(&bucket->lock);
	opening = bucket->opening;
	has_queue = bucket->queues > 0;
	pthread_mutex_unlock(&bucket->lock);
	return opening ? opening->cancelled && opening->cancelled(opening->arg) : !has_queue;
}

/* ---- names ---- */

/* The last part of so many bytes goes. false: there is none. */
static bool go_up(const char *name, size_t *used)
{
	if (!*used)
		return false;
	for ((*used)--; *used && name[*used - 1] != '/';)
		(*used)--;
	return true;
}

/* Each part of a name, and a "/" behind it. false: it is too long, or leads elsewhere. */
static bool add_parts(const char *name, char *ret, size_t *used)
{
	for (const char *at = name; *at; at += strspn(at, "/")) {
		const size_t length = strcspn(at, "/");

		if (length == 2 && at[0] == '.' && at[1] == '.') {
			if (!go_up(ret, used))
				return false;
		} else if (length && !(length == 1 && at[0] == '.')) {
			if (*used + length > BUCKET_MOST_NAME)
				return false;
			memcpy(ret + *used, at, length);
			*used += length;
			ret[(*used)++] = '/';
		}
		at += length;
	}
	return true;
}

size_t source_bucket_name(const struct bucket *bucket, const char *name, char *ret)
{
	size_t used = 0;

	name = name ? name : bucket->file;
	if (!name || *name == '/' || !add_parts(bucket->below, ret, &used) ||
	    !add_parts(name, ret, &used) || !used)
		return 0;
	ret[--used] = '\0';
	return used;
}
