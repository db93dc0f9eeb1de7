/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Has shards scanned, several at a time: a thread for each, which starts a process, listens to it, and
 * takes the next shard. What a process says is checked: numbers lie within the shard, keys end, and
 * nothing is longer than it may be. All else that it could say falsely is only false about its own shard.
 *
 * The lock covers what the threads share: which shard is next, the counts, the first thing that went wrong. It
 * is held over no system call but those on its conditions.
 *
 * A shard is the same before and after it was scanned, or it is refused: whoever writes to it should
 * have done so before.
 */

#include "storage/source/source_indexer.h"

#include "base/hold.h"
#include "storage/source/source_bytes.h"
#include "storage/source/source_kind.h"
#include "storage/walk.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define INDEXER_TELL_NS 100000000
#define INDEXER_LOOK_MS 100
#define INDEXER_MOST_THREADS 64
#define INDEXER_CHUNK 65536
#define INDEXER_OBJECTS 16 /* at a time: each waits for its store most of the time */

extern char **environ;

struct indexer {
	const struct indexer_job *job;
	struct indexer_shard *shard; /* each is one thread's, until it is done */
	size_t n;

	pthread_mutex_t lock;
	pthread_cond_t done;
	/* under the lock */
	size_t next, n_done;
	uint64_t n_records, memory;
	unsigned running;
	int error;
	struct diag *diag; /* of the error */
};

struct listener { /* one process */
	struct indexer *indexer;
	struct indexer_shard *shard;
	pid_t pid;
	int fd;         /* owned; the pipe's end */
	int shard_fd;   /* borrowed */
	int bytes_fd;   /* owned; of an object: where it gets its bytes. -1: it has them */
	uint8_t *block; /* owned; INDEXER_MOST of these */
	uint8_t *bytes; /* owned; INDEXER_CHUNK of them, not yet understood */
	size_t used;
	bool has_ended;
};

enum {
	LISTENER_E_LOST = 1000
}; /* beside DATASET_E_...: it ended, and had not said that it would */

/* ---- what goes wrong ---- */

BASE_PRINTF(3, 4) static int stop(struct indexer *indexer, int error, const char *fmt, ...)
{
	char text[sizeof(indexer->diag->text)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	BASE_HOLD(&indexer->lock);
	if (!indexer->error) {
		indexer->error = error;
		diag_set(indexer->diag, "%s", text);
	}
	return error;
}

static int stop_shard(struct indexer *indexer, const struct indexer_shard *shard, int error,
		      const char *what)
{
	return stop(indexer, error, "shard \"%s\" of dataset \"%s\" %s",
		    BASE_QUOTED(shard->name, 256), BASE_QUOTED(indexer->job->dataset->shown, 256),
		    what);
}

static int stop_errno(struct indexer *indexer, const struct indexer_shard *shard, const char *what,
		      int error)
{
	char text[160];

	snprintf(text, sizeof(text), "cannot be %s: %s", what, strerror(error));
	return stop_shard(indexer, shard, -error, text);
}

static int stop_memory(struct indexer *indexer)
{
	return stop(indexer, -ENOMEM, "not enough memory to list the samples of shards");
}

static bool is_stopped(struct indexer *indexer)
{
	BASE_HOLD(&indexer->lock);
	return indexer->error != 0;
}

/* ---- what a process says ---- */

static uint64_t memory_of(const struct indexer_shard *shard)
{
	return shard->room_records * sizeof(*shard->record) + shard->room_keys +
	       words_bytes(&shard->words);
}

uint64_t source_indexer_memory(const struct indexer_shard *shard, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += memory_of(&shard[i]);
	return bytes;
}

/* Within the shard, with a key, and a label at most: a number, or a word behind the key. */
static bool is_record(const struct listener *listener, const struct indexer_word *word,
		      const char *key)
{
	const struct indexer_shard *shard = listener->shard;
	const uint64_t at =
	    source_shards_at(listener->indexer->job->dataset->ops->shards, word->at);
	const size_t size = word->text_bytes < 2 ? 0 : strlen(key) + 1;

	if (at > shard->bytes || word->bytes > shard->bytes - at || size < 2 ||
	    size > SCAN_MOST_KEY)
		return false;
	if (size == word->text_bytes)
		return word->label <= SCAN_MOST_LABEL || word->label == SCAN_NO_LABEL;
	return word->label == SCAN_NO_LABEL && key[size] &&
	       size + strlen(key + size) + 1 == word->text_bytes;
}

static int take_record(struct listener *listener, const struct indexer_word *word, const char *key)
{
	struct indexer_shard *shard = listener->shard;
	uint32_t label = word->label, number;
	size_t size;
	int r = 0;

	if (!is_record(listener, word, key))
		return stop_shard(listener->indexer, shard, DATASET_E_REFUSED,
				  "has a sample that is beyond its end or has no name");
	size = strlen(key) + 1;
	if (size < word->text_bytes) {
		r = words_add(&shard->words, key + size, &number);
		label = INDEXER_WORDS + number;
	}
	if (r == -E2BIG)
		return stop_shard(listener->indexer, shard, DATASET_E_REFUSED, WORDS_TOO_MANY);
	if (r ||
	    !base_grow(&shard->record, &shard->room_records, shard->n_records + 1,
		       sizeof(*shard->record)) ||
	    !base_grow(&shard->keys, &shard->room_keys, shard->keys_bytes + size, 1))
		return stop_memory(listener->indexer);
	shard->record[shard->n_records++] = (struct indexer_record){word->at, word->bytes, label};
	memcpy(shard->keys + shard->keys_bytes, key, size);
	shard->keys_bytes += size;
	return 0;
}

/* As long as it reads: a pipe holds little. */
static int give_block(struct listener *listener, const uint8_t *at, size_t left)
{
	struct pollfd ready = {.fd = listener->bytes_fd, .events = POLLOUT};

	while (left) {
		const ssize_t n = write(listener->bytes_fd, at, left);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return LISTENER_E_LOST;
		at += BASE_MAX(n, 0);
		left -= (size_t)BASE_MAX(n, 0);
		if (is_stopped(listener->indexer))
			return DATASET_E_CANCELLED;
		if (n < 0)
			poll(&ready, 1, INDEXER_LOOK_MS);
	}
	return 0;
}

/* Bytes of an object. */
static int give(struct listener *listener, const struct indexer_word *word)
{
	struct indexer *indexer = listener->indexer;
	const struct indexer_shard *shard = listener->shard;
	const struct reader_dataset *dataset = indexer->job->dataset;
	struct source_from from = {.dataset = dataset,
				   .name = dataset->is_folder ? shard->name : NULL,
				   .fd = listener->shard_fd};
	char text[160];
	int r;

	if (listener->bytes_fd < 0 || !word->bytes || word->bytes > INDEXER_MOST ||
	    word->at > shard->bytes || word->bytes > shard->bytes - word->at)
		return stop_shard(indexer, shard, -EPROTO,
				  "was scanned by a process that asks for what is not there");
	r = source_read(&from, listener->block, word->bytes, word->at);
	if (!r)
		return give_block(listener, listener->block, word->bytes);
	snprintf(text, sizeof(text), "cannot be read: %s", source_why(&from, r));
	return stop_shard(indexer, shard, r, text);
}

static int take_word(struct listener *listener, const struct indexer_word *word, const char *text)
{
	struct indexer *indexer = listener->indexer;

	switch (word->said) {
	case INDEXER_RECORD:
		return take_record(listener, word, text);
	case INDEXER_END:
		listener->has_ended = true;
		return 0;
	case INDEXER_BAD:
		return stop(indexer, DATASET_E_REFUSED, "dataset \"%s\" is refused: %s:%llu: %s",
			    BASE_QUOTED(indexer->job->dataset->shown, 200),
			    BASE_QUOTED(listener->shard->name, 200), (unsigned long long)word->at,
			    BASE_QUOTED(text, 256));
	case INDEXER_WANT:
		return give(listener, word);
	case INDEXER_BROKE:
		return stop_errno(indexer, listener->shard, "read",
				  word->at > 0 && word->at < 4096 ? (int)word->at : EIO);
	default:
		return stop_shard(indexer, listener->shard, -EPROTO,
				  "was scanned by a process that says what it may not say");
	}
}

/* All whole words that have come. */
static int understand(struct listener *listener)
{
	size_t at = 0;
	int r = 0;

	while (!r && !listener->has_ended) {
		struct indexer_word word;
		const char *text = (const char *)listener->bytes + at + sizeof(word);

		if (listener->used - at < sizeof(word))
			break;
		memcpy(&word, listener->bytes + at, sizeof(word));
		if (word.text_bytes > INDEXER_MOST_TEXT)
			word.said = UINT32_MAX;
		else if (listener->used - at - sizeof(word) < word.text_bytes)
			break;
		else if (word.text_bytes && text[word.text_bytes - 1])
			word.said = UINT32_MAX;
		else if (!word.text_bytes)
			text = "";
		r = take_word(listener, &word, text);
		at += sizeof(word) + word.text_bytes;
	}
	if (r)
		return r;
	memmove(listener->bytes, listener->bytes + at, listener->used - at);
	listener->used -= at;
	return 0;
}

/* To what is used: arrays grow by doubling. */
static void shrink(struct indexer *indexer, struct indexer_shard *shard)
{
	const uint64_t before = memory_of(shard);
	struct indexer_record *record;
	char *keys;

	record = shard->n_records ? reallocarray(shard->record, shard->n_records, sizeof(*record))
				  : NULL;
	if (record) {
		shard->record = record;
		shard->room_records = shard->n_records;
	}
	keys = shard->keys_bytes ? realloc(shard->keys, shard->keys_bytes) : NULL;
	if (keys) {
		shard->keys = keys;
		shard->room_keys = shard->keys_bytes;
	}
	BASE_HOLD(&indexer->lock);
	indexer->memory -= before - memory_of(shard);
}

/* Of what was understood since. */
static void count(struct listener *listener, size_t records_before, uint64_t memory_before)
{
	struct indexer *indexer = listener->indexer;

	BASE_HOLD(&indexer->lock);
	indexer->n_records += listener->shard->n_records - records_before;
	indexer->memory += memory_of(listener->shard) - memory_before;
}

static int hear(struct listener *listener)
{
	const size_t records = listener->shard->n_records;
	const uint64_t memory = memory_of(listener->shard);
	const ssize_t got =
	    read(listener->fd, listener->bytes + listener->used, INDEXER_CHUNK - listener->used);
	int r;

	if (got < 0 && errno == EINTR)
		return 0;
	if (got <= 0)
		return LISTENER_E_LOST;
	listener->used += (size_t)got;
	r = understand(listener);
	count(listener, records, memory);
	return r;
}

static int listen_all(struct listener *listener)
{
	struct pollfd ready = {.fd = listener->fd, .events = POLLIN};
	int r = 0;

	while (!r && !listener->has_ended) {
		if (is_stopped(listener->indexer))
			return DATASET_E_CANCELLED; /* for a reason that is said */
		if (poll(&ready, 1, INDEXER_LOOK_MS) > 0)
			r = hear(listener);
	}
	return r;
}

/* ---- a process ---- */

/* pipe_bytes: of the shard, if it gets them through a pipe; else 0. */
static int spawn(const struct indexer *indexer, const char *name, const int fds[2],
		 uint64_t pipe_bytes, pid_t *ret)
{
	char option[64] = INDEXER_OPTION, program[] = "access-reader";
	char *arguments[] = {program,
			     option,
			     (char *)(uintptr_t)indexer->job->scan->name,
			     (char *)(uintptr_t)name,
			     (char *)(uintptr_t)indexer->job->options,
			     NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	if (pipe_bytes)
		snprintf(option, sizeof(option), INDEXER_PIPE_OPTION "%llu",
			 (unsigned long long)pipe_bytes);
	r = posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	r = r ? r : posix_spawn(ret, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Of an object: a pipe for its bytes. *ret: the end that is read, the caller's. */
static int start_bytes(struct listener *listener, int *ret)
{
	int ends[2];

	listener->block = malloc(INDEXER_MOST);
	if (!listener->block)
		return -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ret = ends[0];
	listener->bytes_fd = ends[1];
	return fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int start(struct listener *listener)
{
	const bool is_object = listener->indexer->job->dataset->bucket && listener->shard->bytes;
	_cleanup_close_ int in = -1, out = -1, bytes = -1;
	int ends[2], r = is_object ? start_bytes(listener, &bytes) : 0;

	listener->bytes = malloc(INDEXER_CHUNK);
	if (r || !listener->bytes)
		return r ? r : -ENOMEM;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	in = ends[0];
	out = ends[1];
	ends[0] = is_object ? bytes : listener->shard_fd;
	r = spawn(listener->indexer, listener->shard->name, ends,
		  is_object ? listener->shard->bytes : 0, &listener->pid);
	if (!r)
		listener->fd = base_take_fd(&in);
	return r;
}

/* Returns its wait status: of how it ended itself if it did, for a signal changes nothing behind that; and nothing that it
 * says keeps it from ending now. */
static int end(struct listener *listener)
{
	base_close(&listener->fd);
	base_close(&listener->bytes_fd);
	free(listener->bytes);
	free(listener->block);
	return base_kill(&listener->pid);
}

static int stop_lost(struct indexer *indexer, const struct indexer_shard *shard, int status)
{
	if (WIFEXITED(status))
		return stop_shard(
		    indexer, shard, -ECHILD,
		    "cannot be scanned: no process can be started for it, or not in a "
		    "sandbox (seccomp)");
	return stop_shard(indexer, shard, DATASET_E_REFUSED,
			  "ended the process that scanned it: it is damaged, or made to do harm");
}

/* ---- a shard ---- */

static int measure(struct indexer *indexer, struct indexer_shard *shard, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return stop_errno(indexer, shard, "opened", errno);
	if (!S_ISREG(st.st_mode))
		return stop_shard(indexer, shard, DATASET_E_REFUSED, "is no regular file");
	shard->bytes = (uint64_t)st.st_size;
	shard->mtime_ns = walk_mtime_ns(&st);
	shard->ctime_ns = walk_ctime_ns(&st);
	return 0;
}

static bool is_same(const struct indexer *indexer, const struct indexer_shard *shard, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && walk_is_same(&st, shard->bytes, shard->mtime_ns) &&
	       (indexer->job->dataset->bucket || walk_ctime_ns(&st) == shard->ctime_ns);
}

static int scan_one(struct indexer *indexer, struct indexer_shard *shard)
{
	struct listener listener = {.indexer = indexer, .shard = shard, .fd = -1, .bytes_fd = -1};
	_cleanup_close_ int fd = source_open_shard(indexer->job->dataset, shard->name);
	int r, status;

	if (fd < 0)
		return stop_errno(indexer, shard, "opened", -fd);
	r = measure(indexer, shard, fd);
	if (r)
		return r;
	listener.shard_fd = fd;
	r = start(&listener);
	if (r)
		stop_errno(indexer, shard, "scanned", -r);
	else
		r = listen_all(&listener);
	status = end(&listener);
	if (r == LISTENER_E_LOST)
		return stop_lost(indexer, shard, status);
	if (!r && !is_same(indexer, shard, fd))
		r = stop_shard(indexer, shard, DATASET_E_REFUSED,
			       "was written to while it was listed: open the dataset when it is "
			       "complete");
	shrink(indexer, shard);
	return r;
}

/* ---- threads ---- */

static struct indexer_shard *next_shard(struct indexer *indexer)
{
	struct indexer_shard *shard = NULL;

	BASE_HOLD(&indexer->lock);
	if (!indexer->error && indexer->next < indexer->n)
		shard = &indexer->shard[indexer->next++];
	return shard;
}

static void *indexer_thread(void *arg)
{
	struct indexer *indexer = arg;
	struct indexer_shard *shard;

	pthread_setname_np(pthread_self(), "indexer");
	while ((shard = next_shard(indexer))) {
		const bool is_done = !scan_one(indexer, shard);

		pthread_mutex_lock(&indexer->lock);
		indexer->n_done += is_done;
		pthread_mutex_unlock(&indexer->lock);
	}
	pthread_mutex_lock(&indexer->lock);
	indexer->running--;
	pthread_cond_signal(&indexer->done);
	pthread_mutex_unlock(&indexer->lock);
	return NULL;
}

/* Ten times a second, and when the last thread has ended. */
static void look_after(struct indexer *indexer, const struct scan_progress *progress)
{
	uint64_t done, records, memory;

	pthread_mutex_lock(&indexer->lock);
	done = indexer->n_done;
	records = indexer->n_records;
	memory = indexer->memory;
	pthread_mutex_unlock(&indexer->lock);
	if (progress && progress->tell)
		progress->tell(progress->arg, done, records);
	if (progress && progress->cancelled && progress->cancelled(progress->arg))
		stop(indexer, DATASET_E_CANCELLED, "the scan was cancelled");
	if (!scan_takes(progress, memory))
		stop(indexer, DATASET_E_ROOM, "its list takes too much memory");
}

static void wait_for_all(struct indexer *indexer, const struct scan_progress *progress)
{
	bool running = true;

	while (running) {
		const uint64_t next_ns = base_now_ns() + INDEXER_TELL_NS;
		const struct timespec until = {.tv_sec = (time_t)(next_ns / 1000000000),
					       .tv_nsec = (long)(next_ns % 1000000000)};

		pthread_mutex_lock(&indexer->lock);
		while (indexer->running && base_now_ns() < next_ns)
			pthread_cond_timedwait(&indexer->done, &indexer->lock, &until);
		running = indexer->running > 0;
		pthread_mutex_unlock(&indexer->lock);
		look_after(indexer, progress);
	}
}

static void run(struct indexer *indexer, unsigned threads, const struct scan_progress *progress)
{
	pthread_t thread[INDEXER_MOST_THREADS];
	unsigned started = 0;

	indexer->running = threads;
	while (started < threads &&
	       !pthread_create(&thread[started], NULL, indexer_thread, indexer))
		started++;
	pthread_mutex_lock(&indexer->lock);
	indexer->running -= threads - started;
	pthread_mutex_unlock(&indexer->lock);
	if (!started)
		stop(indexer, -EAGAIN, "no thread can be started to list the dataset");
	wait_for_all(indexer, progress);
	while (started)
		pthread_join(thread[--started], NULL);
}

int source_indexer_run(const struct indexer_job *job, struct indexer_shard *shard, size_t n,
		       const struct scan_progress *progress, struct diag *diag)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct indexer indexer = {.job = job, .shard = shard, .n = n, .diag = diag};
	unsigned threads = BASE_MIN(BASE_MAX(job->threads, 1u), (unsigned)INDEXER_MOST_THREADS);
	pthread_condattr_t monotonic;

	if (job->dataset->bucket)
		threads = INDEXER_OBJECTS;
	else if (cores > 0)
		threads = BASE_MIN(threads, (unsigned)cores);
	threads = (unsigned)BASE_MIN((size_t)threads, n);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&indexer.lock, NULL);
	pthread_cond_init(&indexer.done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	run(&indexer, threads, progress);
	pthread_cond_destroy(&indexer.done);
	pthread_mutex_destroy(&indexer.lock);
	return indexer.error;
}

void source_indexer_free(struct indexer_shard *shard, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(shard[i].record);
		free(shard[i].keys);
		words_fini(&shard[i].words);
	}
	free(shard);
}
