/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parallel listing of a dataset's folders.
 *
 * Threads share one stack of folders to list and one short queue of batches of names to look at
 * (fstatat). A thread lists a folder and collects names in its own batch. When that is full it
 * hands the batch over if another thread is idle, else it looks at the names itself: so a flat
 * folder of millions of files is looked at by all threads, while many small folders cost no
 * hand-over. Batches go before folders and folders are a stack, so what is open or waiting stays
 * small: at most one open folder and one queued batch a thread. What the walk keeps is the result:
 * 24 bytes and the name for each picture, about 150 bytes and the path for each folder.
 *
 * The kernel tells the kind of most entries with their names, so that plain files without a
 * picture's suffix and folders cost no system call of their own. Symbolic links are followed.
 * A folder that is one of its own ancestors is a loop, refused; two ways to one folder are not.
 *
 * A folder's mtime is what a later verification compares. It is worth nothing while the folder may
 * still change within the same tick of the clock: such a young folder is waited for before it is
 * listed (once in a walk, usually: the others are old by then). A folder whose mtime moved while it
 * was listed is stored as unsettled, which makes the next verification say "changed".
 *
 * Threads: everything in struct walk is under its lock, except what is written before the threads
 * start. A folder's stream is read by its lister alone, its descriptor is used by all holders. The
 * calling thread only waits, tells the progress and asks whether to go on.
 */

#include "storage/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WALK_MAX_THREADS 64
#define WALK_BATCH_BYTES 16384 /* text of a batch: some 500 names */
#define WALK_LEAST_NAME 6      /* of a picture in a batch: type, ".jpg", NUL */
#define WALK_TELL_NS 100000000

/* Clocks of file systems are as coarse as the kernel's tick; those that store whole seconds are
 * known by their zeros. */
#define WALK_TICK_NS INT64_C(50000000)
#define WALK_COARSE_NS INT64_C(2500000000)
#define WALK_PATIENCE_NS UINT64_C(3000000000) /* with a folder that goes on changing */

struct batch {                      /* names of one folder, each: type byte (d_type), name, NUL */
	struct walk_folder *folder; /* its lister or queue counts as a holder */
	size_t used;
	char text[WALK_BATCH_BYTES];
};

struct walk {
	int root_fd; /* borrowed */
	const char *root_name;
	unsigned n_threads;
	pthread_mutex_t lock;
	pthread_cond_t work; /* something to do, or the end */
	pthread_cond_t done; /* for the calling thread */

	/* under the lock */
	struct walk_folder *folders; /* all */
	struct walk_folder *todo;
	struct batch *queue[WALK_MAX_THREADS];
	unsigned n_queued;
	unsigned idle, running; /* threads that wait for work; that live */
	uint64_t n_listed, n_files;
	bool stop;
	int error; /* the first one */
	struct diag *diag;
};

/* ---- failing -----------------------------------------------------------------------------------
 */

static void walk_stop(struct walk *walk, int code, const char *text)
{
	pthread_mutex_lock(&walk->lock);
	if (!walk->stop) {
		walk->stop = true;
		walk->error = code;
		diag_set(walk->diag, "%s", text);
		pthread_cond_broadcast(&walk->work);
	}
	pthread_mutex_unlock(&walk->lock);
}

static bool walk_stopped(struct walk *walk)
{
	bool stop;

	pthread_mutex_lock(&walk->lock);
	stop = walk->stop;
	pthread_mutex_unlock(&walk->lock);
	return stop;
}

static void walk_stop_memory(struct walk *walk)
{
	walk_stop(walk, -ENOMEM, "not enough memory to list the dataset");
}

/* path: of the folder; name: in it, or NULL. why: "is ...; do ..." */
static void walk_refuse(struct walk *walk, const char *path, const char *name, const char *why)
{
	struct diag diag;
	char root[256], quoted[384], whole[PATH_MAX + NAME_MAX + 2];

	snprintf(whole, sizeof(whole), "%s%s%s", path, *path && name ? "/" : "", name ? name : "");
	base_quote(walk->root_name, root, sizeof(root));
	base_quote(whole, quoted, sizeof(quoted));
	diag_set(&diag, "\"%s\" in dataset \"%s\" %s", *quoted ? quoted : ".", root, why);
	walk_stop(walk, DATASET_E_REFUSED, diag.text);
}

static void walk_refuse_errno(struct walk *walk, const char *path, const char *name, int error)
{
	const char *mend = "mend it or move it out of the dataset";
	char why[256];

	if (error == EACCES || error == EPERM)
		mend = "let the user of the job read it (chmod), or move it out of the dataset";
	else if (error == ELOOP)
		mend = "remove the symbolic links that lead in a circle";
	else if (error == EMFILE || error == ENFILE)
		mend = "raise the limit of open files";
	snprintf(why, sizeof(why), "cannot be read: %s; %s", strerror(error), mend);
	walk_refuse(walk, path, name, why);
}

/* ---- folders -----------------------------------------------------------------------------------
 */

bool walk_is_picture(const char *name)
{
	static const char *const suffixes[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
					       ".pgm", ".tif",  ".tiff", ".webp"};
	const size_t length = strlen(name);

	for (size_t i = 0; i < BASE_ARRAY_LEN(suffixes); i++) {
		const size_t suffix = strlen(suffixes[i]);

		if (length >= suffix && !strcasecmp(name + length - suffix, suffixes[i]))
			return true;
	}
	return false;
}

/* parent NULL: the root. Adds the folder to the stack. */
static void folder_push(struct walk *walk, const struct walk_folder *parent, const char *name)
{
	struct walk_folder *folder = calloc(1, sizeof(*folder));

	if (!folder || asprintf(&folder->path, "%s%s%s", parent ? parent->path : "",
				parent && *parent->path ? "/" : "", name) < 0) {
		free(folder);
		walk_stop_memory(walk);
		return;
	}
	folder->parent = parent;
	pthread_mutex_lock(&walk->lock);
	folder->next = walk->folders;
	walk->folders = folder;
	folder->next_todo = walk->todo;
	walk->todo = folder;
	if (walk->idle)
		pthread_cond_signal(&walk->work);
	pthread_mutex_unlock(&walk->lock);
}

static int file_compare(const void *a, const void *b, void *text)
{
	const struct walk_file *one = a, *two = b;

	return strcmp((const char *)text + one->name, (const char *)text + two->name);
}

/* One holder less; the last one closes and sorts the folder. */
static void folder_put(struct walk *walk, struct walk_folder *folder)
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

static int64_t stat_mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* How long until no change can hide behind this mtime. One far in the future is no clock's. */
static int64_t mtime_youth_ns(int64_t mtime_ns)
{
	const int64_t margin = mtime_ns % 1000000000 ? WALK_TICK_NS : WALK_COARSE_NS;
	struct timespec now;
	int64_t youth;

	clock_gettime(CLOCK_REALTIME, &now);
	youth = mtime_ns + margin - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	return youth > 2 * WALK_COARSE_NS ? 0 : BASE_MAX(youth, 0);
}

/* Stats the folder when it is old enough; waits for that in steps, so that a cancelled walk ends.
 */
static int folder_stat(struct walk *walk, struct walk_folder *folder, int fd)
{
	const uint64_t begin_ns = base_now_ns();
	int64_t youth_ns;
	struct stat st;

	for (;;) {
		struct timespec step = {0};

		if (fstat(fd, &st) < 0)
			return -errno;
		youth_ns = mtime_youth_ns(stat_mtime_ns(&st));
		if (!youth_ns || walk_stopped(walk) || base_now_ns() - begin_ns > WALK_PATIENCE_NS)
			break;
		step.tv_nsec = (long)BASE_MIN(youth_ns, WALK_TICK_NS);
		nanosleep(&step, NULL);
	}
	folder->device = st.st_dev;
	folder->inode = st.st_ino;
	folder->mtime_ns = youth_ns ? INT64_MIN : stat_mtime_ns(&st);
	return 0;
}

static bool folder_is_loop(const struct walk_folder *folder)
{
	for (const struct walk_folder *up = folder->parent; up; up = up->parent)
		if (up->inode == folder->inode && up->device == folder->device)
			return true;
	return false;
}

/* false: refused, and said so. */
static bool folder_open(struct walk *walk, struct walk_folder *folder)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(walk->root_fd, *folder->path ? folder->path : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : folder_stat(walk, folder, fd);
	if (r) {
		walk_refuse_errno(walk, folder->path, NULL, -r);
		return false;
	}
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

/* ---- batches of names --------------------------------------------------------------------------
 */

struct found { /* pictures of one batch */
	struct walk_file *file;
	size_t n_files;
	char *text;
	size_t text_bytes;
};

static bool grow(void *pointer_to_pointer, size_t *room, size_t needed, size_t each)
{
	void **p = pointer_to_pointer, *more;
	size_t want = BASE_MAX(*room, 16);

	if (needed <= *room)
		return true;
	while (want < needed)
		want *= 2;
	more = reallocarray(*p, want, each);
	if (!more)
		return false;
	*p = more;
	*room = want;
	return true;
}

/* Appends what a batch found to its folder. The text of the batch is the scratch it came in. */
static void folder_add(struct walk *walk, struct walk_folder *folder, const struct found *found)
{
	bool good;

	pthread_mutex_lock(&walk->lock);
	good = grow(&folder->file, &folder->room_files, folder->n_files + found->n_files,
		    sizeof(*folder->file)) &&
	       grow(&folder->text, &folder->room_text, folder->text_bytes + found->text_bytes, 1);
	if (good && found->n_files) {
		for (size_t i = 0; i < found->n_files; i++) {
			folder->file[folder->n_files] = found->file[i];
			folder->file[folder->n_files++].name += folder->text_bytes;
		}
		memcpy(folder->text + folder->text_bytes, found->text, found->text_bytes);
		folder->text_bytes += found->text_bytes;
		walk->n_files += found->n_files;
	}
	pthread_mutex_unlock(&walk->lock);
	if (!good)
		walk_stop_memory(walk);
}

static void found_add(struct walk *walk, const struct walk_folder *folder, struct found *found,
		      const char *name, const struct stat *st)
{
	const size_t size = strlen(name) + 1;

	if ((uint64_t)st->st_size > UINT32_MAX) {
		walk_refuse(walk, folder->path, name,
			    "has 4 GiB or more; no picture has: move it out of the dataset");
		return;
	}
	found->file[found->n_files++] = (struct walk_file){
	    .mtime_ns = stat_mtime_ns(st),
	    .size = (uint32_t)st->st_size,
	    .name = found->text_bytes,
	};
	/* never ahead of the names still to be read: each came with a type byte */
	memmove(found->text + found->text_bytes, name, size);
	found->text_bytes += size;
}

/* fstatat failed: is that the end of the scan? */
static void look_failed(struct walk *walk, const struct walk_folder *folder, const char *name,
			unsigned char type, int error)
{
	const bool picture = walk_is_picture(name);

	if (error == ENOENT && type == DT_LNK && picture)
		walk_refuse(walk, folder->path, name,
			    "is a symbolic link to nothing; mend or remove it");
	else if (error == ENOENT || (error == ELOOP && !picture))
		return; /* removed since its name was read, or nothing of ours */
	else
		walk_refuse_errno(walk, folder->path, name, error);
}

static void look_at(struct walk *walk, struct walk_folder *folder, struct found *found,
		    const char *name, unsigned char type)
{
	struct stat st;

	if (fstatat(dirfd(folder->stream), name, &st, 0) < 0) {
		look_failed(walk, folder, name, type, errno);
		return;
	}
	if (S_ISDIR(st.st_mode))
		folder_push(walk, folder, name);
	else if (S_ISREG(st.st_mode) && walk_is_picture(name))
		found_add(walk, folder, found, name, &st);
}

/* Looks at every name; the batch is empty afterwards. */
static void batch_look(struct walk *walk, struct batch *batch)
{
	struct walk_file file[WALK_BATCH_BYTES / WALK_LEAST_NAME];
	struct found found = {.file = file, .text = batch->text};
	size_t at = 0;

	while (at < batch->used) {
		const unsigned char type = (unsigned char)batch->text[at];
		const char *name = batch->text + at + 1;
		const size_t size = strlen(name) + 2;

		look_at(walk, batch->folder, &found, name, type);
		at += size;
	}
	folder_add(walk, batch->folder, &found);
	batch->used = 0;
}

/* Hands the batch to an idle thread if there is one. true: *batch is a fresh one. */
static bool batch_offer(struct walk *walk, struct batch **batch)
{
	struct batch *fresh = NULL;
	bool given = false;

	pthread_mutex_lock(&walk->lock);
	if (walk->idle > walk->n_queued && walk->n_queued < walk->n_threads)
		fresh = malloc(sizeof(*fresh));
	if (fresh) {
		fresh->folder = (*batch)->folder;
		fresh->used = 0;
		(*batch)->folder->holders++;
		walk->queue[walk->n_queued++] = *batch;
		*batch = fresh;
		given = true;
		pthread_cond_signal(&walk->work);
	}
	pthread_mutex_unlock(&walk->lock);
	return given;
}

static void batch_flush(struct walk *walk, struct batch **batch)
{
	if ((*batch)->used && !batch_offer(walk, batch))
		batch_look(walk, *batch);
}

static void batch_add(struct walk *walk, struct batch **batch, const char *name, unsigned char type)
{
	const size_t size = strlen(name) + 2;

	if ((*batch)->used + size > WALK_BATCH_BYTES)
		batch_flush(walk, batch);
	(*batch)->text[(*batch)->used] = (char)type;
	memcpy((*batch)->text + (*batch)->used + 1, name, size - 1);
	(*batch)->used += size;
}

/* ---- listing -----------------------------------------------------------------------------------
 */

static void list_entry(struct walk *walk, struct batch **batch, const struct dirent *entry)
{
	const char *name = entry->d_name;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	switch (entry->d_type) {
	case DT_DIR:
		folder_push(walk, (*batch)->folder, name);
		break;
	case DT_REG:
		if (walk_is_picture(name))
			batch_add(walk, batch, name, DT_REG);
		break;
	case DT_LNK:
	case DT_UNKNOWN:
		batch_add(walk, batch, name, entry->d_type);
		break;
	default: /* FIFOs, sockets, devices: no samples */
		break;
	}
}

/* Was the folder changed while it was listed? */
static void folder_settle(struct walk_folder *folder)
{
	struct stat st;

	if (fstat(dirfd(folder->stream), &st) < 0 || stat_mtime_ns(&st) != folder->mtime_ns)
		folder->mtime_ns = INT64_MIN;
}

static void list_folder(struct walk *walk, struct batch **batch, struct walk_folder *folder)
{
	if (!folder_open(walk, folder))
		return;
	(*batch)->folder = folder;
	(*batch)->used = 0;
	while (!walk_stopped(walk)) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(folder->stream);
		if (!entry) {
			if (errno)
				walk_refuse_errno(walk, folder->path, NULL, errno);
			break;
		}
		list_entry(walk, batch, entry);
	}
	batch_flush(walk, batch);
	folder_settle(folder);
	folder_put(walk, folder);
}

/* ---- threads -----------------------------------------------------------------------------------
 */

/* Waits for something to do. false: the walk is over. Exactly one of the results is set. */
static bool walk_take(struct walk *walk, struct batch **ret_batch, struct walk_folder **ret_folder)
{
	*ret_batch = NULL;
	*ret_folder = NULL;
	pthread_mutex_lock(&walk->lock);
	walk->idle++;
	while (!walk->stop && !walk->n_queued && !walk->todo) {
		if (walk->idle == walk->running) {
			walk->stop = true;
			pthread_cond_broadcast(&walk->work);
			break;
		}
		pthread_cond_wait(&walk->work, &walk->lock);
	}
	walk->idle--;
	if (walk->n_queued) {
		*ret_batch = walk->queue[--walk->n_queued];
	} else if (!walk->stop) {
		*ret_folder = walk->todo;
		walk->todo = walk->todo->next_todo;
		walk->n_listed++;
	}
	pthread_mutex_unlock(&walk->lock);
	return *ret_batch || *ret_folder;
}

static void walk_look(struct walk *walk, struct batch *batch)
{
	struct walk_folder *folder = batch->folder;

	if (!walk_stopped(walk))
		batch_look(walk, batch);
	free(batch);
	folder_put(walk, folder);
}

static void *walk_thread(void *arg)
{
	struct walk *walk = arg;
	struct batch *own = malloc(sizeof(*own)), *batch;
	struct walk_folder *folder;

	if (!own)
		walk_stop_memory(walk);
	while (walk_take(walk, &batch, &folder)) {
		if (batch)
			walk_look(walk, batch);
		else
			list_folder(walk, &own, folder);
	}
	free(own);
	pthread_mutex_lock(&walk->lock);
	walk->running--;
	pthread_cond_signal(&walk->done);
	pthread_mutex_unlock(&walk->lock);
	return NULL;
}

/* Waits until no thread lives; tells and asks ten times a second. */
static void walk_wait(struct walk *walk, const struct scan_progress *progress)
{
	struct timespec until;

	pthread_mutex_lock(&walk->lock);
	while (walk->running) {
		const uint64_t next_ns = base_now_ns() + WALK_TELL_NS;
		uint64_t listed, files;

		until.tv_sec = (time_t)(next_ns / 1000000000);
		until.tv_nsec = (long)(next_ns % 1000000000);
		while (walk->running && base_now_ns() < next_ns)
			pthread_cond_timedwait(&walk->done, &walk->lock, &until);
		listed = walk->n_listed;
		files = walk->n_files;
		pthread_mutex_unlock(&walk->lock);
		if (progress && progress->tell)
			progress->tell(progress->arg, listed, files);
		if (progress && progress->cancelled && progress->cancelled(progress->arg))
			walk_stop(walk, DATASET_E_CANCELLED, "the scan was cancelled");
		pthread_mutex_lock(&walk->lock);
	}
	pthread_mutex_unlock(&walk->lock);
}

static int walk_run(struct walk *walk, const struct scan_progress *progress)
{
	pthread_t thread[WALK_MAX_THREADS];
	unsigned started = 0;
	int r = 0;

	walk->running = walk->n_threads; /* nobody may find himself the last before all are there */
	while (started < walk->n_threads) {
		r = pthread_create(&thread[started], NULL, walk_thread, walk);
		if (r)
			break;
		pthread_setname_np(thread[started++], "scan");
	}
	if (r) {
		pthread_mutex_lock(&walk->lock);
		walk->running -= walk->n_threads - started;
		pthread_cond_broadcast(&walk->work);
		pthread_mutex_unlock(&walk->lock);
	}
	if (!started) {
		walk_stop(walk, -r, "no thread can be started to list the dataset");
		return walk->error;
	}
	walk_wait(walk, progress);
	while (started)
		pthread_join(thread[--started], NULL);
	return walk->error;
}

static void walk_init(struct walk *walk)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&walk->lock, NULL);
	pthread_cond_init(&walk->work, NULL);
	pthread_cond_init(&walk->done, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void walk_fini(struct walk *walk)
{
	pthread_cond_destroy(&walk->done);
	pthread_cond_destroy(&walk->work);
	pthread_mutex_destroy(&walk->lock);
}

int walk_tree(int root_fd, const char *root_name, unsigned threads,
	      const struct scan_progress *progress, struct walk_folder **ret, struct diag *diag)
{
	struct walk walk = {
	    .root_fd = root_fd,
	    .root_name = root_name,
	    .n_threads = BASE_MIN(BASE_MAX(threads, 1u), (unsigned)WALK_MAX_THREADS),
	    .diag = diag,
	};
	int r;

	walk_init(&walk);
	folder_push(&walk, NULL, "");
	r = walk_run(&walk, progress);
	walk_fini(&walk);
	if (r)
		walk_free(walk.folders);
	else
		*ret = walk.folders;
	return r;
}

void walk_free(struct walk_folder *folders)
{
	while (folders) {
		struct walk_folder *next = folders->next;

		if (folders->stream)
			closedir(folders->stream);
		free(folders->path);
		free(folders->file);
		free(folders->text);
		free(folders);
		folders = next;
	}
}
