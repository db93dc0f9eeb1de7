/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of datasets, and the threads that open them.
 *
 * Opening touches the user's file system and may hang there, so it never happens in the main
 * thread. Four datasets are opened at once, the others wait in the order they came, but not for those that
 * hang: where one has waited for a while, and fewer than four openers have found anything meanwhile, there is one
 * more of them. So whoever opens data on a mount that hangs, cancelled or not, costs others that while, until there are
 * OPEN_MOST of them. No more than four openers are there for nothing. What kind of data set it is, and how its index comes about, is source/source_kind.h's: a
 * stored index that still holds is used as it is.
 *
 * A dataset has one reference of the table, one of its opener while it is being opened, and one of
 * each queue. READER_CANCEL takes it out of the table; if it is still being opened, its opener says
 * REFUSED with DATASET_E_CANCELLED as soon as it sees that. A CANCEL that crosses an OPENED is
 * answered by nothing more.
 */

#include "base/log.h"
#include "storage/openness.h"
#include "storage/reader_parts.h"
#include "storage/source/source_bucket.h"
#include "storage/source/source_kind.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPEN_AT_ONCE 4
#define OPEN_MOST 64
#define OPEN_WAIT_NS 250000000 /* then it hangs, as far as one sees */

static struct {
	unsigned scan_threads; /* written before the openers start */
	pthread_mutex_t lock;
	pthread_cond_t queued; /* for openers */
	pthread_cond_t waits;  /* for who watches how long it waits */
	/* under the lock */
	struct reader_dataset *all;
	struct reader_dataset *first, **last; /* queue over next_queued */
	unsigned openers, idle;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .queued = PTHREAD_COND_INITIALIZER,
	   .waits = PTHREAD_COND_INITIALIZER};

/* ---- table ---- */

static struct reader_dataset **table_find_locked(uint64_t id)
{
	struct reader_dataset **at = &table.all;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static void dataset_free(struct reader_dataset *dataset)
{
	dataset_unmap(dataset->index);
	base_close(&dataset->stored_fd);
	source_close(dataset);
	free(dataset->path);
	free(dataset);
}

void reader_open_unref(struct reader_dataset *dataset)
{
	bool last;

	pthread_mutex_lock(&table.lock);
	last = --dataset->refs == 0;
	pthread_mutex_unlock(&table.lock);
	if (last)
		dataset_free(dataset);
}

struct reader_dataset *reader_open_ref(uint64_t id)
{
	struct reader_dataset *dataset;

	BASE_HOLD(&table.lock);
	dataset = *table_find_locked(id);
	if (dataset && dataset->open)
		dataset->refs++;
	else
		dataset = NULL;
	return dataset;
}

/* Takes the dataset out of the table; the caller holds a reference of its own. */
static void table_drop(struct reader_dataset *dataset)
{
	struct reader_dataset **at;

	pthread_mutex_lock(&table.lock);
	at = table_find_locked(dataset->id);
	*at = dataset->next;
	pthread_mutex_unlock(&table.lock);
	reader_open_unref(dataset);
}

void reader_open_cancel(uint64_t id)
{
	struct reader_dataset *dataset, *closed = NULL;
	struct reader_dataset **at;

	pthread_mutex_lock(&table.lock);
	at = table_find_locked(id);
	dataset = *at;
	if (dataset && dataset->open) {
		*at = dataset->next;
		closed = dataset;
	} else if (dataset) {
		dataset->cancelled = true;
	}
	pthread_mutex_unlock(&table.lock);
	if (closed)
		reader_open_unref(closed);
}

bool reader_open_request(uint64_t id, const char *path, enum reader_how how, uint64_t most,
			 int stored_fd)
{
	struct reader_dataset *dataset = calloc(1, sizeof(*dataset));
	bool fresh;

	if (!dataset || !(dataset->path = strdup(path)))
		reader_say_fatal("memory", "not enough memory to open a dataset");
	dataset->id = id;
	dataset->how = how;
	dataset->room.most = most;
	dataset->root_fd = -1;
	dataset->stored_fd = stored_fd;
	dataset->refs = 2;
	pthread_mutex_lock(&table.lock);
	fresh = !*table_find_locked(id);
	if (fresh) {
		dataset->next = table.all;
		table.all = dataset;
		*table.last = dataset;
		table.last = &dataset->next_queued;
		pthread_cond_signal(&table.queued);
		pthread_cond_signal(&table.waits);
	}
	pthread_mutex_unlock(&table.lock);
	if (!fresh)
		dataset_free(dataset);
	return fresh;
}

/* ---- opening ---- */

static void open_tell(void *arg, uint64_t folders, uint64_t files)
{
	struct reader_dataset *dataset = arg;

	pthread_mutex_lock(&table.lock);
	if (dataset->found != folders + files) {
		dataset->found = folders + files;
		dataset->moved_ns = base_now_ns();
	}
	pthread_mutex_unlock(&table.lock);
	reader_say_progress(dataset->id, folders, files);
}

static void open_left_out(void *arg, uint64_t count, const char *names)
{
	const struct reader_dataset *dataset = arg;

	log_line(
	    LOG_LEVEL_WARN, "left-out",
	    "path=\"%s\" files=%llu what=\"FIFOs, sockets or devices, no pictures\" names=\"%s\"",
	    BASE_QUOTED(dataset->shown, 512), (unsigned long long)count, names);
}

static void open_aside(void *arg, uint64_t count, const char *first)
{
	const struct reader_dataset *dataset = arg;

	log_line(
	    LOG_LEVEL_WARN, "index-aside",
	    "path=\"%s\" indexes=%llu what=\"indexes of others beside the shards are not of "
	    "these and were set aside; make or remove them (tfrecord2idx, wds2idx, widsindex)\" "
	    "first=\"%s\"",
	    BASE_QUOTED(dataset->shown, 512), (unsigned long long)count, first);
}

static bool open_cancelled(void *arg)
{
	const struct reader_dataset *dataset = arg;

	BASE_HOLD(&table.lock);
	return dataset->cancelled;
}

static bool open_takes(void *arg, uint64_t bytes)
{
	struct reader_dataset *dataset = arg;

	return reader_room_takes(&dataset->room, bytes);
}

/* The root is open. */
static int open_root(struct reader_dataset *dataset, const struct scan_progress *progress,
		     int *ret_fd, struct diag *diag)
{
	int r;

	if (progress->open_only && !openness_of_way(dataset->root_fd)) {
		diag_set(diag, "the way to the dataset is not open to everybody");
		return DATASET_E_CLOSED;
	}
	r = source_probe(dataset, progress, diag);
	if (r == DATASET_E_COMPRESSED)
		return DATASET_E_REFUSED;
	if (r == SOURCE_E_NONE)
		return source_refuse_root(dataset, dataset->pattern ? ENOENT : ENOTDIR, diag);
	return r ? r : dataset->ops->index(dataset, table.scan_threads, progress, ret_fd, diag);
}

/* 0 and the index in place, *ret_fd the memfd or -1 for the stored one; or as scan_build(). */
static int open_dataset(struct reader_dataset *dataset, int *ret_fd, struct diag *diag)
{
	const struct scan_progress progress = {
	    .tell = open_tell,
	    .cancelled = open_cancelled,
	    .left_out = open_left_out,
	    .aside = open_aside,
	    .arg = dataset,
	    .open_only = dataset->how == READER_HOW_OPEN_ONLY,
	    .takes = open_takes,
	};
	int r;

	r = source_open_root(dataset, diag);
	if (r || dataset->how == READER_HOW_LOOK)
		return r;
	if (dataset->bucket)
		source_bucket_opening(dataset->bucket, &progress);
	r = open_root(dataset, &progress, ret_fd, diag);
	if (dataset->bucket)
		source_bucket_opening(dataset->bucket, NULL);
	if (r == DATASET_E_ROOM)
		reader_room_refuse(&dataset->room, dataset->shown, diag);
	return r;
}

/* true: from now on the dataset is open; false: it was cancelled meanwhile. */
static bool open_settle(struct reader_dataset *dataset)
{
	BASE_HOLD(&table.lock);
	dataset->open = !dataset->cancelled;
	return dataset->open;
}

static void open_serve(struct reader_dataset *dataset)
{
	_cleanup_close_ int fd = -1;
	struct diag diag = {.text = ""};
	int r = DATASET_E_CANCELLED;

	if (!open_cancelled(dataset))
		r = open_dataset(dataset, &fd, &diag);
	base_close(&dataset->stored_fd);
	reader_room_leave(&dataset->room); /* before accessd counts what came of it */
	if (!r && dataset->how == READER_HOW_LOOK) {
		table_drop(dataset);
		reader_say_looked(dataset->id, dataset->root.device, dataset->root.inode,
				  openness_of_way(dataset->root_fd));
	} else if (!r && open_settle(dataset)) {
		reader_say_opened(dataset, fd);
	} else {
		if (!r || r == DATASET_E_CANCELLED) {
			r = DATASET_E_CANCELLED;
			diag_set(&diag, "the opening of the dataset was cancelled");
		}
		table_drop(dataset);
		reader_say_refused(dataset->id, NULL, r, diag.text);
	}
	reader_open_unref(dataset);
}

/* NULL: there are openers enough that have nothing to do. */
static struct reader_dataset *open_take(void)
{
	struct reader_dataset *dataset;

	BASE_HOLD(&table.lock);
	while (!table.first && table.idle < OPEN_AT_ONCE) {
		table.idle++;
		pthread_cond_wait(&table.queued, &table.lock);
		table.idle--;
	}
	dataset = table.first;
	if (dataset) {
		table.first = dataset->next_queued;
		dataset->moved_ns = base_now_ns();
	}
	if (!table.first)
		table.last = &table.first;
	table.openers -= !dataset;
	return dataset;
}

static void *open_thread(void *arg)
{
	struct reader_dataset *dataset;

	(void)arg;
	pthread_setname_np(pthread_self(), "opener");
	while ((dataset = open_take()))
		open_serve(dataset);
	return NULL;
}

static bool start_thread(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		return false;
	pthread_detach(thread);
	return true;
}

static void start_opener_locked(void)
{
	if (table.openers < OPEN_MOST && start_thread(open_thread))
		table.openers++;
}

/* Openers that have begun, or found something, within that while. */
static unsigned count_moving_locked(void)
{
	const uint64_t now_ns = base_now_ns();
	unsigned n = 0;

	for (const struct reader_dataset *at = table.all; at; at = at->next)
		n += !at->open && at->moved_ns && now_ns - at->moved_ns < OPEN_WAIT_NS;
	return n;
}

/* What is first still, after a while, waits for openers that are all busy, or hang. */
static void *watch_thread(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "opener-watch");
	pthread_mutex_lock(&table.lock);
	for (;;) {
		uint64_t first;

		while (!table.first)
			pthread_cond_wait(&table.waits, &table.lock);
		first = table.first->id;
		pthread_mutex_unlock(&table.lock);
		nanosleep(&(struct timespec){.tv_nsec = OPEN_WAIT_NS}, NULL);
		pthread_mutex_lock(&table.lock);
		if (table.first && table.first->id == first && count_moving_locked() < OPEN_AT_ONCE)
			start_opener_locked();
	}
	return NULL;
}

void reader_open_init(unsigned scan_threads)
{
	table.scan_threads = scan_threads;
	table.last = &table.first;
	BASE_HOLD(&table.lock);
	for (unsigned i = 0; i < OPEN_AT_ONCE; i++)
		start_opener_locked();
	if (table.openers < OPEN_AT_ONCE || !start_thread(watch_thread))
		reader_say_fatal("threads", "no thread that opens datasets can be started: "
					    "raise TasksMax or ulimit -u");
}
