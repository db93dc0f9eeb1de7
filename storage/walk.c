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
 * Threads: everything in struct walk is under its lock, except what is written before the threads
 * start. A folder's stream is read by its lister alone, its descriptor is used by all holders. The
 * calling thread only waits, tells the progress and asks whether to go on, and whether there is memory for it.
 */

#include "storage/walk_parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#define WALK_TELL_NS 100000000
#define WALK_LEFT_NAMES 3 /* of those left out that are named */

/* ---- failing ---- */

/* The first one counts. */
static void walk_stop(struct walk *walk, int code, const char *text)
{
	BASE_HOLD(&walk->lock);
	if (!walk->stop) {
		walk->stop = true;
		walk->error = code;
		diag_set(walk->diag, "%s", text);
		pthread_cond_broadcast(&walk->work);
	}
}

bool walk_stopped(struct walk *walk)
{
	BASE_HOLD(&walk->lock);
	return walk->stop;
}

void walk_stop_memory(struct walk *walk)
{
	walk_stop(walk, -ENOMEM, "not enough memory to list the dataset");
}

void walk_leave_out(struct walk *walk, const char *path, const char *name)
{
	char whole[PATH_MAX + NAME_MAX + 2];
	struct walk_left *left = &walk->left;

	snprintf(whole, sizeof(whole), "%s%s%s", path, *path ? "/" : "", name);
	BASE_HOLD(&walk->lock);
	if (left->count < WALK_LEFT_NAMES) {
		const size_t used = strlen(left->names);

		snprintf(left->names + used, sizeof(left->names) - used, "%s%s",
			 left->count ? ", " : "", BASE_QUOTED(whole, 112));
	}
	left->count++;
}

void walk_refuse(struct walk *walk, const char *path, const char *name, const char *why)
{
	struct diag diag;
	char quoted[384], whole[PATH_MAX + NAME_MAX + 2];

	snprintf(whole, sizeof(whole), "%s%s%s", path, *path && name ? "/" : "", name ? name : "");
	base_quote(whole, quoted, sizeof(quoted));
	diag_set(&diag, "\"%s\" in dataset \"%s\" %s", *quoted ? quoted : ".",
		 BASE_QUOTED(walk->root_name, 256), why);
	walk_stop(walk, DATASET_E_REFUSED, diag.text);
}

void walk_refuse_closed(struct walk *walk)
{
	walk_stop(walk, DATASET_E_CLOSED, "the dataset is not open to everybody");
}

void walk_refuse_errno(struct walk *walk, const char *path, const char *name, int error)
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

/* ---- the queue ---- */

bool walk_offer(struct walk *walk, struct walk_batch **batch)
{
	struct walk_batch *fresh = NULL;
	bool given = false;

	BASE_HOLD(&walk->lock);
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
	return given;
}

/* Waits for something to do. false: the walk is over. Exactly one of the results is set. */
static bool walk_take(struct walk *walk, struct walk_batch **ret_batch,
		      struct walk_folder **ret_folder)
{
	*ret_batch = NULL;
	*ret_folder = NULL;
	BASE_HOLD(&walk->lock);
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
	return *ret_batch || *ret_folder;
}

static void thread_look(struct walk *walk, struct walk_batch *batch)
{
	struct walk_folder *folder = batch->folder;

	if (!walk_stopped(walk))
		walk_look_batch(walk, batch);
	free(batch);
	walk_folder_put(walk, folder);
}

static void *walk_thread(void *arg)
{
	struct walk *walk = arg;
	struct walk_batch *own = malloc(sizeof(*own)), *batch;
	struct walk_folder *folder;

	pthread_setname_np(pthread_self(), "scan");
	if (!own)
		walk_stop_memory(walk);
	while (walk_take(walk, &batch, &folder)) {
		if (batch)
			thread_look(walk, batch);
		else
			walk_look_folder(walk, &own, folder);
	}
	free(own);
	BASE_HOLD(&walk->lock);
	walk->running--;
	pthread_cond_signal(&walk->done);
	return NULL;
}

/* Waits until no thread lives; tells and asks ten times a second. */
static void walk_wait(struct walk *walk, const struct scan_progress *progress)
{
	pthread_mutex_lock(&walk->lock);
	while (walk->running) {
		const uint64_t next_ns = base_now_ns() + WALK_TELL_NS;
		const struct timespec until = base_timespec(next_ns);
		uint64_t listed, files, bytes;

		while (walk->running && base_now_ns() < next_ns)
			pthread_cond_timedwait(&walk->done, &walk->lock, &until);
		listed = walk->n_listed;
		files = walk->n_files;
		bytes = walk->bytes;
		pthread_mutex_unlock(&walk->lock);
		if (progress && progress->tell)
			progress->tell(progress->arg, listed, files);
		if (progress && progress->cancelled && progress->cancelled(progress->arg))
			walk_stop(walk, DATASET_E_CANCELLED, "the scan was cancelled");
		if (!scan_takes(progress, bytes))
			walk_stop(walk, DATASET_E_ROOM, "its list takes too much memory");
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
		started++;
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

int walk_tree(int root_fd, const char *root_name, const struct walk_kind *kind, unsigned threads,
	      const struct scan_progress *progress, struct walk_folder **ret,
	      struct walk_left *ret_left, struct diag *diag)
{
	struct walk walk = {
	    .root_fd = root_fd,
	    .root_name = root_name,
	    .kind = kind,
	    .open_only = progress && progress->open_only,
	    .n_threads = BASE_MIN(BASE_MAX(threads, 1u), (unsigned)WALK_MAX_THREADS),
	    .diag = diag,
	};
	int r;
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&walk.lock, NULL);
	pthread_cond_init(&walk.work, NULL);
	pthread_cond_init(&walk.done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	walk_folder_push(&walk, NULL, "");
	r = walk_run(&walk, progress);
	pthread_cond_destroy(&walk.done);
	pthread_cond_destroy(&walk.work);
	pthread_mutex_destroy(&walk.lock);
	if (r) {
		walk_free(walk.folders);
		return r;
	}
	*ret = walk.folders;
	*ret_left = walk.left;
	return 0;
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
