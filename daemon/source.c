/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: from a path to a mapped index of one dataset version.
 *
 *   request --> OPENING --(stored index verified)-------------------------> READY
 *                  |                                                         ^
 *                  +--(folder listed: index in a memfd)--> STORING --> OPENING with the stored file
 *
 * The second look after STORING is cheap (folders only) and makes both processes map the file
 * instead of memory. It is on the disk before it gets its name (fsync() may take long, so a child does
 * it), and locked until then, so that another accessd with the same cache does not take it for one
 * that was left behind. When the index cannot be stored (full disk, read-only folder), the memfd is
 * used as it is: nothing but the next start gets slower. The index comes from a reader that runs as
 * the user, so dataset_map() and its siblings believe no byte of it before it was checked, and it is sealed, so
 * that it cannot change afterwards. Neither mapping nor checking takes longer for more samples.
 */
#include "daemon/source.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "daemon/child.h"
#include "daemon/conn.h"
#include "daemon/node.h"
#include "daemon/stream.h"

#define STORE_STEP (UINT64_C(8) << 20) /* bytes a turn of the loop */

struct source_store {
	struct loop_watch *timer;
	int from, to; /* memfd (owned), file being written (owned) */
	uint64_t done, size;
	pid_t syncing; /* a child; 0: none */
	char temporary[PARAM_TEXT_MAX + 256];
};

/* Each domain has its own: an index has names in it, and is believed to come from that domain's
 * reader. */
static void index_path(const struct source *source, char *ret, size_t size)
{
	char name[IDENTITY_TEXT_MAX + PARAM_TEXT_MAX + 8], hex[65];
	struct hash_id id;
	size_t key;

	domain_key(source->domain, name);
	key = strlen(name);
	key += key ? 1 : 0; /* its NUL parts it from the path */
	snprintf(name + key, sizeof(name) - key, "%s", source->path);
	hash_of(name, key + strlen(source->path), &id);
	snprintf(ret, size, "%s/%s", source->node->place.indexes, hash_hex(&id, hex));
}

static struct source *find_id(struct domain *domain, uint64_t id)
{
	struct source *source;

	LIST_FOREACH(source, &domain->sources, link)
	if (source->id == id)
		return source;
	return NULL;
}

static void store_free(struct source *source)
{
	struct source_store *store = source->store;

	if (!store)
		return;
	loop_unwatch(&store->timer);
	base_close(&store->from);
	base_close(&store->to);
	unlink(store->temporary);
	free(store);
	source->store = NULL;
}

static void source_free(struct source *source)
{
	LIST_REMOVE(source, link);
	loop_unwatch(&source->deadline);
	reading_close(&source->domain->reading, source->id);
	store_free(source);
	dataset_unmap(source->dataset);
	base_close(&source->stored_fd);
	base_close(&source->index_fd);
	free(source->path);
	domain_rest(source->domain);
	free(source);
}

void source_unref(struct source *source)
{
	if (source && --source->users == 0)
		source_free(source);
}

void source_forget(const struct source *source)
{
	char stored[PARAM_TEXT_MAX + 256];

	index_path(source, stored, sizeof(stored));
	if (unlink(stored) < 0 && errno != ENOENT)
		log_line(LOG_LEVEL_WARN, "index-not-forgotten", "file=\"%s\" error=\"%s\"", stored,
			 strerror(errno));
}

/* ---- opening ---- */

static void expect_news(struct source *source)
{
	uint64_t limit_s = source->node->param.open_timeout_s;

	if (limit_s && source->state == SOURCE_OPENING)
		loop_timer_set(source->deadline, limit_s * UINT64_C(1000000000));
	else
		loop_timer_stop(source->deadline);
}

/* Calls fn for every connection that waits for the source; fn may free the connection. */
static void tell_waiting(struct source *source, void (*fn)(struct conn *conn, const char *text),
			 const char *text)
{
	struct conn *conn, *next;

	source->users++; /* kept while its waiters come and go */
	for (conn = LIST_FIRST(&source->node->conns); conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->source == source && conn->state == CONN_WAITS_SOURCE)
			fn(conn, text);
	}
	source_unref(source);
}

/* From now on nobody is given the source; who has it or waits for it is told. */
static void end_source(struct source *source, const char *text)
{
	store_free(source);
	source->state = SOURCE_GONE;
	expect_news(source);
	source->reopening = false;
	stream_source_failed(source, text);
	tell_waiting(source, conn_source_refused, text);
}

/* A file system that hangs holds a thread of the reader for as long as it hangs, but no client. */
static void on_silence(void *arg)
{
	struct source *source = arg;
	char path[512], stage[128], text[1024];

	if (source->folders)
		snprintf(stage, sizeof(stage), "listing it (%llu folders, %llu pictures so far)",
			 (unsigned long long)source->folders, (unsigned long long)source->files);
	else
		snprintf(stage, sizeof(stage), "opening it and looking at its folders");
	snprintf(text, sizeof(text),
		 "dataset \"%s\", stage %s: nothing has happened for %llu s; does its file system "
		 "answer (try ls)? If it is only slow, raise open_timeout_s of accessd",
		 base_quote(source->path, path, sizeof(path)), stage,
		 (unsigned long long)source->node->param.open_timeout_s);
	log_line(LOG_LEVEL_WARN, "source-silent", "text=\"%s\"", text);
	reading_close(&source->domain->reading, source->id);
	end_source(source, text);
}

static void ask_reader(struct source *source)
{
	char stored[PARAM_TEXT_MAX + 256];

	index_path(source, stored, sizeof(stored));
	base_close(&source->stored_fd);
	if (source->how != READER_HOW_LOOK)
		source->stored_fd = open(stored, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	source->state = SOURCE_OPENING;
	expect_news(source);
	reading_open(&source->domain->reading, source, source->stored_fd);
}

int source_request(struct domain *domain, const char *path, enum reader_how how,
		   struct source **ret)
{
	struct node *node = domain->node;
	struct source *source;

	LIST_FOREACH(source, &domain->sources, link)
	{
		if (source->state == SOURCE_OPENING && !source->reopening && source->how == how &&
		    strcmp(source->path, path) == 0) {
			source->users++;
			*ret = source;
			return 0;
		}
	}
	source = calloc(1, sizeof(*source));
	if (!source || !(source->path = strdup(path)) ||
	    loop_timer_new(node->loop, on_silence, source, &source->deadline)) {
		if (source)
			free(source->path);
		free(source);
		return -ENOMEM;
	}
	source->domain = domain;
	source->how = how;
	source->node = node;
	source->id = ++node->next_id;
	source->users = 1;
	source->stored_fd = source->index_fd = -1;
	LIST_INSERT_HEAD(&domain->sources, source, link);
	ask_reader(source);
	*ret = source;
	return 0;
}

void source_looked(struct domain *domain, uint64_t id, const uint64_t root[2], bool is_open)
{
	struct source *source = find_id(domain, id);

	if (!source || source->state != SOURCE_OPENING || source->how != READER_HOW_LOOK)
		return;
	source->device = root[0];
	source->inode = root[1];
	source->is_open = is_open;
	source->state = SOURCE_READY;
	expect_news(source);
	tell_waiting(source, conn_source_ready, NULL);
}

void source_refused(struct domain *domain, uint64_t id, const char *text)
{
	struct source *source = find_id(domain, id);

	if (!source || source->state == SOURCE_GONE)
		return;
	log_line(LOG_LEVEL_INFO, "source-refused", "path=\"%.400s\" reason=\"%.400s\"",
		 source->path, text);
	end_source(source, text);
}

void source_reader_failed(struct domain *domain, const char *text)
{
	struct source *source, *next;
	bool is_opening = false;

	LIST_FOREACH(source, &domain->sources, link)
	is_opening |= source->state == SOURCE_OPENING;
	for (source = LIST_FIRST(&domain->sources); source; source = next) {
		next = LIST_NEXT(source, link);
		if (source->state == (is_opening ? SOURCE_OPENING : SOURCE_READY))
			end_source(source, text);
	}
}

void source_progress(struct domain *domain, uint64_t id, uint64_t folders, uint64_t files)
{
	struct source *source = find_id(domain, id);
	struct conn *conn;

	if (!source)
		return;
	source->folders = folders;
	source->files = files;
	expect_news(source);
	LIST_FOREACH(conn, &domain->node->conns, link)
	if (conn->source == source && conn->state == CONN_WAITS_SOURCE)
		conn_progress(conn, "listing the dataset", folders, files);
}

static void source_ready(struct source *source)
{
	char hex[65];

	source->state = SOURCE_READY;
	log_line(LOG_LEVEL_INFO, "source-ready", "id=%llu samples=%llu bytes=%llu version=%.16s",
		 (unsigned long long)source->id, (unsigned long long)dataset_count(source->dataset),
		 (unsigned long long)dataset_bytes(source->dataset),
		 hash_hex(dataset_version(source->dataset), hex));
	tell_waiting(source, conn_source_ready, NULL);
}

/* ---- storing a new index ---- */

static void use_unstored(struct source *source)
{
	log_line(LOG_LEVEL_WARN, "index-not-stored", "folder=\"%s\" error=\"%s\"",
		 source->node->place.indexes, strerror(errno));
	store_free(source);
	source_ready(source);
}

static void store_finish(struct source *source)
{
	char path[PARAM_TEXT_MAX + 256];

	index_path(source, path, sizeof(path));
	if (rename(source->store->temporary, path)) {
		use_unstored(source);
		return;
	}
	store_free(source);
	dataset_unmap(source->dataset);
	source->dataset = NULL;
	base_close(&source->index_fd);
	reading_close(&source->domain->reading, source->id);
	source->id = ++source->node->next_id;
	source->was_stored = true;
	ask_reader(source);
}

static void sync_in_child(const struct source_store *store, pid_t accessd)
{
	child_settle(accessd, store->to);
	_exit(fsync(store->to) < 0 ? errno : 0);
}

static void store_sync(struct source *source)
{
	pid_t accessd = getpid(), pid = fork();

	if (pid < 0)
		use_unstored(source);
	if (pid == 0)
		sync_in_child(source->store, accessd);
	if (pid > 0)
		source->store->syncing = pid;
}

static struct source *find_syncing(struct node *node, pid_t pid)
{
	struct source *source;
	struct domain *domain;

	LIST_FOREACH(domain, &node->domains, link)
	LIST_FOREACH(source, &domain->sources, link)
	if (source->store && source->store->syncing == pid)
		return source;
	return NULL;
}

bool source_synced(struct node *node, pid_t pid, int status)
{
	struct source *source = find_syncing(node, pid);

	if (!source)
		return false;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	if (errno)
		use_unstored(source);
	else
		store_finish(source);
	return true;
}

static void store_step(void *arg)
{
	struct source *source = arg;
	struct source_store *store = source->store;
	off_t offset = (off_t)store->done;
	ssize_t moved = sendfile(store->to, store->from, &offset,
				 BASE_MIN(STORE_STEP, store->size - store->done));

	if (moved <= 0 && store->done < store->size) {
		use_unstored(source);
		return;
	}
	store->done += (uint64_t)moved;
	if (store->done < store->size)
		loop_timer_set(store->timer, 0);
	else
		store_sync(source);
}

static int store_begin(struct source *source, int from)
{
	struct node *node = source->node;
	struct source_store *store = calloc(1, sizeof(*store));
	struct stat status;

	if (!store)
		return -ENOMEM;
	source->store = store;
	store->to = -1;
	store->from = fcntl(from, F_DUPFD_CLOEXEC, 0);
	snprintf(store->temporary, sizeof(store->temporary), "%s/" PLACE_TEMPORARY "%ld-%llu",
		 node->place.indexes, (long)getpid(), (unsigned long long)source->id);
	store->to = open(store->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (store->from < 0 || store->to < 0 || flock(store->to, LOCK_EX | LOCK_NB) ||
	    fstat(from, &status))
		return -errno;
	store->size = (uint64_t)status.st_size;
	source->state = SOURCE_STORING;
	if (loop_timer_new(node->loop, store_step, source, &store->timer))
		return -ENOMEM;
	loop_timer_set(store->timer, 0);
	return 0;
}

/* ---- answers of the reader ---- */

/* Maps an index that came from the reader. -1 for fd: none came. 0, or an error. */
static int map_index(int fd, bool from_reader, struct dataset **ret)
{
	if (fd < 0)
		return -EBADF;
	if (from_reader && !dataset_is_sealed(fd))
		return DATASET_E_BAD;
	return dataset_map(fd, ret);
}

static bool is_same_version(const struct source *source, int fd)
{
	struct dataset *again;
	bool same;

	if (map_index(fd, true, &again))
		return false;
	same = memcmp(dataset_version(again), dataset_version(source->dataset),
		      sizeof(struct hash_id)) == 0;
	dataset_unmap(again);
	return same;
}

/* A source that was ready before its reader died. Folders that changed while their pictures did not
 * (a log was written into one) make no new version. */
static void reopened(struct source *source, bool unchanged, int fd)
{
	source->reopening = false;
	if (unchanged || is_same_version(source, fd))
		stream_source_reopened(source);
	else
		end_source(source,
			   "dataset changed: it is not what it was when it was opened; open "
			   "it again for the new version");
}

static void first_opened(struct source *source, bool unchanged, int *fd)
{
	int r;

	loop_timer_stop(source->deadline);
	source->index_fd = base_take_fd(unchanged ? &source->stored_fd : fd);
	r = map_index(source->index_fd, !unchanged, &source->dataset);
	if (r) {
		log_line(LOG_LEVEL_ERROR, "index-bad", "code=%d", r);
		source_refused(
		    source->domain, source->id,
		    r == -ENOMEM
			? "accessd has no memory left for the index of the dataset: raise its "
			  "limit (memory.max of its cgroup, ulimit -v)"
			: "the reader's index of the dataset is damaged; see the log");
	} else if (unchanged || source->was_stored) {
		source_ready(source); /* stored before, and changed since: not stored in a circle */
	} else if (store_begin(source, source->index_fd)) {
		use_unstored(source);
	}
}

void source_opened(struct domain *domain, uint64_t id, bool unchanged, const uint64_t root[2],
		   int index_fd)
{
	struct source *source = find_id(domain, id);
	_cleanup_close_ int fd = index_fd;

	if (!source || source->state == SOURCE_GONE || source->how == READER_HOW_LOOK)
		return;
	source->device = root[0];
	source->inode = root[1];
	if (source->reopening)
		reopened(source, unchanged, fd);
	else if (source->state == SOURCE_OPENING && !source->dataset)
		first_opened(source, unchanged, &fd);
}

void source_reader_started(struct domain *domain)
{
	struct source *source;

	LIST_FOREACH(source, &domain->sources, link)
	{
		if (source->state == SOURCE_OPENING) {
			ask_reader(source);
		} else if (source->how == READER_HOW_LOOK) {
			continue; /* all that was asked of it is known */
		} else if (source->state == SOURCE_READY || source->state == SOURCE_STORING) {
			source->reopening = source->state == SOURCE_READY;
			reading_open(&domain->reading, source, source->index_fd);
		}
	}
}
