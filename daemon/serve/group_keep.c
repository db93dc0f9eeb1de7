/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When accessd is killed, ranks that run bring their group's log to the next one. But a rank that is
 * only starting has no log, and if it comes first its plan would be another than the others'. So
 * accessd keeps each log in a file as well, one in the folder `plans`, and looks there before it founds
 * a group anew.
 *
 *   <stream, user, job, R, B, epochs>-<origin>-<log>, hashes and the log's id in hex
 *
 * The file is the plan log's image, written by pwrite() in an order that leaves a whole plan log wherever
 * the writer dies, and before ranks see the entry: so it has all that any rank may have seen. It is
 * read back as what a client brings is, as a sealed copy of which nothing is believed. Files of groups
 * that ended are removed; what a killed accessd left is removed when nobody has come back for a minute.
 *
 * Nobody but us makes files there, so the folder is read once, before anybody is served: whoever founds a
 * group looks through names in memory.
 *
 * Rejected: the plan log itself in a file, mapped by all (no seals: another process of the same user could
 * write it, or cut it under our eyes); waiting after a start until all ranks are there (a lost rank
 * would hold the others up).
 */

#include "daemon/serve/group_keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "shmring/region.h"

#define KEPT_S 60
#define MOST_REMOVED 16
#define COPY_STEP (UINT32_C(256) << 10)
#define KEY_HEX 32
#define LOG_HEX (2 * PLAN_LOG_ID)

/* ---- names ---- */

/* Of all logs of one job. */
static void name_job(const struct conn *conn, char ret[KEY_HEX + 1])
{
	const struct request *request = &conn->request;
	char hex[65] = "";
	struct hash_id id = {0};
	struct hash *hash;

	if (hash_new(&hash) == 0) {
		hash_add(hash, conn->variant->key.bytes, sizeof(conn->variant->key.bytes));
		hash_add_u64(hash, conn->uid);
		hash_add_u64(hash, request->ranks);
		hash_add_u64(hash, request->batch);
		hash_add_u64(hash, request->epochs);
		hash_add_u64(hash, request->part_sum);
		hash_add(hash, request->job, strlen(request->job));
		hash_finish(hash, &id);
		hash_free(hash);
	}
	memcpy(ret, hash_hex(&id, hex), KEY_HEX);
	ret[KEY_HEX] = '\0';
}

static void name_log(const uint8_t log[PLAN_LOG_ID], char ret[LOG_HEX + 1])
{
	for (int i = 0; i < PLAN_LOG_ID; i++)
		snprintf(ret + 2 * i, 3, "%02x", log[i]);
}

/* ---- what there is ---- */

struct kept { /* a log that no group of ours writes */
	LIST_ENTRY(kept) link;
	char name[KEEP_NAME];
	struct timespec written;
};

static void remember(struct node *node, const char *name, const struct timespec *written)
{
	struct kept *kept = strlen(name) < KEEP_NAME ? calloc(1, sizeof(*kept)) : NULL;

	if (!kept)
		return;
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	kept->written = *written;
	LIST_INSERT_HEAD(&node->kept, kept, link);
}

static void forget(struct kept *kept)
{
	LIST_REMOVE(kept, link);
	free(kept);
}

static void forget_named(struct node *node, const char *name)
{
	struct kept *kept, *next;

	for (kept = LIST_FIRST(&node->kept); kept; kept = next) {
		next = LIST_NEXT(kept, link);
		if (strcmp(kept->name, name) == 0)
			forget(kept);
	}
}

static void look_at(struct node *node, const char *name)
{
	const int folder = node->place.plans_fd;
	struct stat status;

	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid())
		return;
	if (strncmp(name, PLACE_TEMPORARY, strlen(PLACE_TEMPORARY)) == 0)
		unlinkat(folder, name, 0); /* its writer was killed before anybody saw it */
	else
		remember(node, name, &status.st_mtim);
}

void keep_load(struct node *node)
{
	const struct dirent *entry;
	DIR *folder = NULL;
	int fd = node->place.plans_fd < 0
		     ? -1
		     : openat(node->place.plans_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	LIST_INIT(&node->kept);
	if (fd >= 0 && !(folder = fdopendir(fd)))
		base_close(&fd);
	while (folder && (entry = readdir(folder)))
		look_at(node, entry->d_name);
	if (folder)
		closedir(folder);
}

void keep_unload(struct node *node)
{
	while (!LIST_EMPTY(&node->kept))
		forget(LIST_FIRST(&node->kept));
}

/* ---- writing ---- */

static void give_up(struct keep *keep, const char *what)
{
	log_line(
	    LOG_LEVEL_WARN, "plan-log-not-kept",
	    "folder=\"%s\" reason=\"%s: %s; if this accessd is killed, a rank that begins before "
	    "the others are back may get another plan\"",
	    keep->node->place.plans, what, strerror(errno));
	keep_end(keep, true);
}

void keep_begin(struct keep *keep, const struct conn *conn, const struct plan_log *plan_log)
{
	struct node *node = conn->stream->node;
	char job[KEY_HEX + 1], log[LOG_HEX + 1];

	*keep = (struct keep){.node = node, .fd = -1};
	name_job(conn, job);
	name_log(plan_log->id, log);
	snprintf(keep->name, sizeof(keep->name), "%s-%016" PRIx64 "-%s", job, plan_log->origin,
		 log);
	snprintf(keep->temporary, sizeof(keep->temporary), PLACE_TEMPORARY "%s", log);
	if (node->place.plans_fd >= 0)
		keep->fd = openat(node->place.plans_fd, keep->temporary,
				  O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (keep->fd < 0)
		give_up(keep, "cannot make a file there");
	else
		keep_save(keep, plan_log);
}

void keep_save(struct keep *keep, const struct plan_log *plan_log)
{
	if (keep->fd < 0)
		return;
	errno = -plan_log_save(plan_log, keep->fd, &keep->saved);
	if (errno)
		give_up(keep, "cannot write");
}

void keep_publish(struct keep *keep)
{
	if (keep->fd < 0)
		return;
	if (renameat(keep->node->place.plans_fd, keep->temporary, keep->node->place.plans_fd,
		     keep->name))
		give_up(keep, "cannot rename");
	else
		*keep->temporary = '\0';
	forget_named(keep->node, keep->name);
}

void keep_end(struct keep *keep, bool over)
{
	struct timespec now;

	if (keep->fd >= 0 && (over || *keep->temporary)) {
		unlinkat(keep->node->place.plans_fd,
			 *keep->temporary ? keep->temporary : keep->name, 0);
	} else if (keep->fd >= 0) {
		clock_gettime(CLOCK_REALTIME, &now);
		remember(keep->node, keep->name, &now);
	}
	base_close(&keep->fd);
}

/* ---- finding ---- */

/* Was it left to us, and has nobody come back to it for a minute in which he could? */
static bool is_old(const struct node *node, const struct kept *kept)
{
	int64_t up_s = (int64_t)((base_now_ns() - node->started_ns) / 1000000000);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return up_s >= KEPT_S && kept->written.tv_sec < now.tv_sec - up_s;
}

/* A few a time: those that come after us remove the rest. */
static void remove_old(struct node *node)
{
	struct kept *kept, *next;
	unsigned removed = 0;

	for (kept = LIST_FIRST(&node->kept); kept && removed < MOST_REMOVED; kept = next) {
		next = LIST_NEXT(kept, link);
		if (!is_old(node, kept))
			continue;
		unlinkat(node->place.plans_fd, kept->name, 0);
		forget(kept);
		removed++;
	}
}

struct search {
	char job[KEY_HEX + 2], origin[18], log[LOG_HEX + 2];
	bool is_named;
	const struct kept *found; /* NULL: nothing yet */
};

static bool begins_with(const char *name, const char *begin)
{
	return strncmp(name, begin, strlen(begin)) == 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t name_size = strlen(name), end_size = strlen(end);

	return name_size >= end_size && strcmp(name + name_size - end_size, end) == 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Takes it if it is what is searched for, or better than what was found: the time decides between several
 * that began alike, an older one is of a run before. */
static void consider(struct search *search, const struct kept *kept)
{
	bool is_named = *search->log && ends_with(kept->name, search->log);

	if (!begins_with(kept->name, search->job) || search->is_named)
		return;
	if (!is_named && (!begins_with(kept->name + strlen(search->job), search->origin) ||
			  (search->found && is_before(&kept->written, &search->found->written))))
		return;
	search->is_named = is_named;
	search->found = kept;
}

int keep_find(const struct conn *conn, const uint8_t *log, uint64_t origin)
{
	struct node *node = conn->stream->node;
	struct search search = {.found = NULL};
	const struct kept *kept;
	_cleanup_close_ int fd = -1;
	struct stat status;

	remove_old(node);
	if (LIST_EMPTY(&node->kept))
		return -1;
	name_job(conn, search.job);
	search.job[KEY_HEX] = '-';
	snprintf(search.origin, sizeof(search.origin), "%016" PRIx64 "-", origin);
	if (log) {
		*search.log = '-';
		name_log(log, search.log + 1);
	}
	LIST_FOREACH(kept, &node->kept, link)
	consider(&search, kept);
	if (!search.found)
		return -1;
	fd = openat(node->place.plans_fd, search.found->name,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
		return -1;
	return base_take_fd(&fd);
}

bool keep_copy(int from, int to, bool *ret_is_whole)
{
	ssize_t n = sendfile(to, from, NULL, COPY_STEP);

	*ret_is_whole = n == 0;
	return n > 0 || (n == 0 && region_seal(to, REGION_READ_ONLY) == 0);
}
