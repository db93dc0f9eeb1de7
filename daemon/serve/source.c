/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: from a path to a mapped index of one dataset version.
 *
 *   request --> OPENING --(stored index verified)-------------------------> READY
 *                  |                                                         ^
 *                  +--(folder listed: index in a memfd)--> STORING --> OPENING with the stored file
 *
 * The second look after STORING is cheap (folders only) and makes both processes map the file
 * instead of memory. All of storing is a child's work, since each part of it may take long: it makes room
 * (index_prune.h), copies, and waits for the disk (index_file.c). When the index cannot be stored (full disk,
 * read-only folder, no room), the memfd is used as it is: it stays memory of its user's, and the next start gets
 * slower. The index comes from a reader that runs as the user, so dataset_map() and its siblings believe no byte
 * of it before it was checked, and it is sealed, so that it cannot change afterwards.
 *
 * A data set that was made anew (removed and copied back) has another root, and is the same version where names, sizes
 * and times agree. A user's own reader goes on below the path (storage/reader_read.c), so who opens it has the source
 * that is there. Not so of data that users share, where each has seen that he may open that very root, nor of a file,
 * which the reader keeps: there another root is another source, and has another stream.
 *
 * The loop opens, locks, touches and renames one file in a folder of accessd's own, none of which takes longer for
 * more samples; mapping looks at one byte in 2,048 of what the reader has just looked at. What takes longer is to free
 * an index: that of a file is a child's, too (index_file.c), and memory is let go of in steps (map_end.c).
 */
#include "daemon/serve/source.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "daemon/budget.h"
#include "daemon/net/conn.h"
#include "daemon/map_end.h"
#include "daemon/node.h"
#include "daemon/proc/child.h"
#include "daemon/cache/index_file.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/index_room.h"

struct source_store {
	int from;  /* memfd (owned) */
	pid_t pid; /* of the child that stores it; 0: it has ended */
	char temporary[INDEX_FILE_PATH_MAX];
};

static struct source *find_id(struct domain *domain, uint64_t id)
{
	BASE_EACH(source, &domain->sources, link)
		if (source->id == id)
			return source;
	return NULL;
}

static struct index_file file_of(const struct source *source)
{
	struct index_file file = {.folder = source->node->place.indexes,
				  .dataset = source->path,
				  .id = source->id,
				  .size = source->node->param.index_size,
				  .is_own = source->domain->kind == DOMAIN_OWN};

	domain_key(source->domain, file.owner);
	return file;
}

static void store_free(struct source *source)
{
	struct source_store *store = source->store;

	if (!store)
		return;
	if (store->pid > 0)
		kill(store->pid, SIGKILL);
	base_close(&store->from);
	unlink(store->temporary); /* the child has it open until it has ended */
	free(store);
	source->store = NULL;
}

/* Before the reader is told to: who is the last to hold the memory frees it. */
static void drop_index(struct source *source)
{
	struct dataset *dataset = base_take_ptr(source->dataset);
	uint64_t bytes;
	void *map = dataset ? dataset_take_map(dataset, &bytes) : NULL;

	map_end(&source->node->endings, map, map ? bytes : 0);
	base_close(&source->index_fd);
	domain_account(source->domain, -(int64_t)source->memory);
	source->memory = 0;
}

static void source_free(struct source *source)
{
	LIST_REMOVE(source, link);
	loop_unwatch(&source->deadline);
	loop_unwatch(&source->teller);
	store_free(source);
	base_close(&source->stored_fd);
	drop_index(source);
	reading_close(&source->domain->reading, source->id);
	free(source->path);
	free(source->shown);
	free(source->refusal);
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
	const struct index_file file = file_of(source);
	int r = index_file_set_aside(&file);

	if (r)
		log_line(LOG_LEVEL_WARN, "index-not-forgotten", "path=\"%.400s\" error=\"%s\"",
			 source->path, strerror(-r));
}

bool source_keeps_root(const struct source *source)
{
	return source->how == READER_HOW_OPEN_ONLY || source->root.is_file;
}

bool source_has_shards(const struct source *source)
{
	return dataset_shards(source->dataset) > 0;
}

static bool is_same_root(const struct source_root *one, const struct source_root *other)
{
	return one->device == other->device && one->inode == other->inode &&
	       one->is_file == other->is_file && one->stamp == other->stamp;
}

bool source_is_same(const struct source *one, const struct source *other)
{
	return one->how == other->how && strcmp(one->path, other->path) == 0 &&
	       memcmp(dataset_version(one->dataset), dataset_version(other->dataset),
		      sizeof(struct hash_id)) == 0 &&
	       ((!source_keeps_root(one) && !source_keeps_root(other)) ||
		is_same_root(&one->root, &other->root));
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

static bool is_waiting(const struct source *source, const struct conn *conn)
{
	return conn->source == source && conn->state == CONN_WAITS_SOURCE;
}

/* The connection may be freed, and the source is, if nobody else has it. */
static void tell(const struct source *source, struct conn *conn)
{
	if (source->state == SOURCE_READY)
		conn_source_ready(conn);
	else
		conn_source_refused(conn, source->refusal ? source->refusal : "out of memory");
}

/* Those who wait for the source, as many as there is time for: each may have a stream made. */
static void on_tell(void *arg)
{
	struct source *source = arg;
	const struct budget budget = budget_begin();

	if (source->reopening || (source->state != SOURCE_READY && source->state != SOURCE_GONE))
		return;  /* they are told when it is known */
	source->users++; /* kept while its waiters come and go */
	BASE_EACH_LEAVING(conn, &source->node->clients.list, link) {
		if (!is_waiting(source, conn))
			continue;
		if (budget_is_spent(&budget)) {
			loop_timer_set(source->teller, 0);
			break;
		}
		tell(source, conn);
	}
	source_unref(source);
}

static void tell_waiting(struct source *source)
{
	loop_timer_set(source->teller, 0);
}

/* From now on nobody is given the source; who has it or waits for it is told. */
static void end_source(struct source *source, const char *text)
{
	store_free(source);
	source->state = SOURCE_GONE;
	expect_news(source);
	source->reopening = false;
	source->refusal = strdup(text);
	source->domain->source_calls->failed(source, text);
	tell_waiting(source);
}

/* A file system that hangs holds a thread of the reader for as long as it hangs, but no client. */
static void on_silence(void *arg)
{
	struct source *source = arg;
	char path[512], stage[128], text[1024];

	if (source->folders)
		snprintf(stage, sizeof(stage),
			 "listing it (%llu folders or shards, %llu samples so far)",
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

static void open_at_reader(struct source *source, int index_fd)
{
	const struct reading_ask ask = {.id = source->id,
					.path = source->path,
					.how = source->how,
					.most = index_room_most(source->domain)};

	reading_open(&source->domain->reading, &ask, index_fd);
}

static void ask_reader(struct source *source)
{
	const struct index_file file = file_of(source);

	base_close(&source->stored_fd);
	if (source->how != READER_HOW_LOOK)
		source->stored_fd = index_file_open(&file);
	source->state = SOURCE_OPENING;
	expect_news(source);
	open_at_reader(source, source->stored_fd);
}

int source_request(struct domain *domain, const char *path, enum reader_how how,
		   struct source **ret)
{
	struct node *node = domain->node;
	struct source *source;

	LIST_FOREACH(source, &domain->sources, link) {
		if (source->state == SOURCE_OPENING && !source->reopening && source->how == how &&
		    strcmp(source->path, path) == 0) {
			source->users++;
			*ret = source;
			return 0;
		}
	}
	source = calloc(1, sizeof(*source));
	if (!source || !(source->path = strdup(path)) ||
	    loop_timer_new(node->loop, on_silence, source, &source->deadline) ||
	    loop_timer_new(node->loop, on_tell, source, &source->teller)) {
		if (source) {
			loop_unwatch(&source->deadline);
			free(source->path);
		}
		free(source);
		return -ENOMEM;
	}
	source->domain = domain;
	source->how = how;
	source->node = node;
	source->id = ++node->next.id;
	source->users = 1;
	source->stored_fd = source->index_fd = -1;
	LIST_INSERT_HEAD(&domain->sources, source, link);
	ask_reader(source);
	*ret = source;
	return 0;
}

void source_looked(struct domain *domain, uint64_t id, const struct source_root *root, bool is_open)
{
	struct source *source = find_id(domain, id);

	if (!source || source->state != SOURCE_OPENING || source->how != READER_HOW_LOOK)
		return;
	source->root = *root;
	source->is_open = is_open;
	source->state = SOURCE_READY;
	expect_news(source);
	tell_waiting(source);
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

	if (!source)
		return;
	source->folders = folders;
	source->files = files;
	expect_news(source);
	BASE_EACH(conn, &domain->node->clients.list, link)
		if (conn->source == source && conn->state == CONN_WAITS_SOURCE)
			conn_progress(conn, "listing the dataset", files, 0);
}

static void source_ready(struct source *source)
{
	char hex[65];

	source->state = SOURCE_READY;
	log_line(LOG_LEVEL_INFO, "source-ready", "id=%llu samples=%llu bytes=%llu version=%.16s",
		 (unsigned long long)source->id, (unsigned long long)dataset_count(source->dataset),
		 (unsigned long long)dataset_head(source->dataset)->sum_bytes,
		 hash_hex(dataset_version(source->dataset), hex));
	tell_waiting(source);
}

/* ---- storing a new index ---- */

static void use_unstored(struct source *source, int error)
{
	log_line(LOG_LEVEL_WARN, "index-not-stored", "folder=\"%s\" error=\"%s\"%s",
		 source->node->place.indexes, strerror(error),
		 error == ENOSPC ? " text=\"free the disk, or raise index_size\"" : "");
	store_free(source);
	source_ready(source);
}

/* Its status is an errno: all are below 256. */
static void store_in_child(const struct source *source, pid_t accessd)
{
	const struct index_file file = file_of(source);

	child_settle(accessd, source->store->from);
	_exit(-index_file_store(&file, source->store->from, source->store->temporary));
}

static void store_finish(struct source *source)
{
	store_free(source);
	drop_index(source);
	reading_close(&source->domain->reading, source->id);
	source->id = ++source->node->next.id;
	source->was_stored = true;
	ask_reader(source);
}

static struct source *find_storing(struct node *node, pid_t pid)
{
	BASE_EACH(domain, &node->domains, link)
		BASE_EACH(source, &domain->sources, link)
			if (source->store && source->store->pid == pid)
				return source;
	return NULL;
}

bool source_stored(struct node *node, pid_t pid, int status)
{
	struct source *source = find_storing(node, pid);
	const int error = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;

	if (!source)
		return false;
	source->store->pid = 0;
	if (error)
		use_unstored(source, error);
	else
		store_finish(source);
	return true;
}

static int store_begin(struct source *source, int from)
{
	struct source_store *store = calloc(1, sizeof(*store));
	const struct index_file file = file_of(source);
	pid_t accessd = getpid();

	if (!store)
		return -ENOMEM;
	source->store = store;
	index_file_temporary(&file, store->temporary);
	store->from = fcntl(from, F_DUPFD_CLOEXEC, 0);
	store->pid = store->from < 0 ? -1 : fork();
	if (store->pid < 0)
		return -errno;
	if (store->pid == 0)
		store_in_child(source, accessd);
	source->state = SOURCE_STORING;
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
 * (a log was written into one) make no new version. Another root of data that users share is for those who open it
 * now. */
static void reopened(struct source *source, bool unchanged, const struct source_root *root, int fd)
{
	const bool is_kept =
	    source->how != READER_HOW_OPEN_ONLY || is_same_root(root, &source->root);

	source->reopening = false;
	source->root = *root;
	if (is_kept && (unchanged || is_same_version(source, fd))) {
		source->domain->source_calls->reopened(source);
		tell_waiting(source);
	} else {
		end_source(source, "dataset changed: it is not what it was when it was opened; "
				   "open it again for the new version");
	}
}

/* A file, or memory, which is counted. true: it is mapped. */
static bool take_index(struct source *source, bool is_file, struct diag *diag)
{
	struct stat st;
	int r;

	if (is_file)
		index_file_touch(source->index_fd);
	if (!is_file && fstat(source->index_fd, &st) == 0) {
		if (!index_room_take(source->domain, (uint64_t)st.st_size, diag))
			return false;
		source->memory += (uint64_t)st.st_size;
	}
	r = map_index(source->index_fd, !is_file, &source->dataset);
	if (!r)
		return true;
	log_line(LOG_LEVEL_ERROR, "index-bad", "code=%d", r);
	if (r == -ENOMEM)
		diag_set(diag, "accessd has no memory left for the index of the dataset: raise its "
			       "limit (memory.max of its cgroup, ulimit -v)");
	else
		diag_set(
		    diag,
		    "the reader's index of the dataset is damaged; accessd's log (%s) has more",
		    log_place());
	return false;
}

static void first_opened(struct source *source, bool unchanged, bool is_fleeting, int *fd)
{
	struct diag diag = {""};

	loop_timer_stop(source->deadline);
	source->index_fd = base_take_fd(unchanged ? &source->stored_fd : fd);
	if (!take_index(source, unchanged, &diag)) {
		source_refused(source->domain, source->id, diag.text);
	} else if (unchanged || is_fleeting || source->was_stored) {
		source_ready(source); /* stored before, and changed since: not stored in a circle */
	} else {
		int r = store_begin(source, source->index_fd);

		if (r)
			use_unstored(source, -r);
	}
}

const char *source_shown(const struct source *source)
{
	return source->shown ? source->shown : source->path;
}

void source_called(struct domain *domain, uint64_t id, const char *shown)
{
	struct source *source = find_id(domain, id);

	if (source && !source->shown)
		source->shown = strdup(shown); /* without memory it is called by its path */
}

void source_opened(struct domain *domain, uint64_t id, bool unchanged, bool is_fleeting,
		   const struct source_root *root, int index_fd)
{
	struct source *source = find_id(domain, id);
	_cleanup_close_ int fd = index_fd;

	if (!source || source->state == SOURCE_GONE || source->how == READER_HOW_LOOK)
		return;
	if (source->reopening) {
		reopened(source, unchanged, root, fd);
	} else if (source->state == SOURCE_OPENING && !source->dataset) {
		source->root = *root;
		first_opened(source, unchanged, is_fleeting, &fd);
	}
}

void source_reader_started(struct domain *domain)
{
	BASE_EACH(source, &domain->sources, link) {
		if (source->state == SOURCE_OPENING) {
			ask_reader(source);
		} else if (source->how == READER_HOW_LOOK) {
			continue; /* all that was asked of it is known */
		} else if (source->state == SOURCE_READY || source->state == SOURCE_STORING) {
			source->reopening = source->state == SOURCE_READY;
			open_at_reader(source, source->index_fd);
		}
	}
}
