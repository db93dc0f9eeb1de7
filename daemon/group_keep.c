/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When accessd is killed, ranks that run bring their group's log to the next one. But a rank that is
 * only starting has no log, and if it comes first its plan would be another than the others'. So
 * accessd keeps each log in a file as well, one in the folder `plans`, and looks there before it founds
 * a group anew.
 *
 *   <stream, user, job, R, B, epochs>-<origin>-<log>, hashes and the log's id in hex
 *
 * The file is the scroll's image, written by pwrite() in an order that leaves a whole scroll wherever
 * the writer dies, and before ranks see the entry: so it has all that any rank may have seen. It is
 * read back as what a client brings is, as a sealed copy of which nothing is believed. Files of groups
 * that ended are removed; what a killed accessd left is removed when nobody has come back for a minute.
 *
 * Rejected: the scroll itself in a file, mapped by all (no seals: another process of the same user could
 * write it, or cut it under our eyes); waiting after a start until all ranks are there (a lost rank
 * would hold the others up).
 */

#include "daemon/group_keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "daemon/conn.h"
#include "daemon/node.h"
#include "daemon/stream.h"
#include "shmring/region.h"

#define KEPT_S 60
#define MOST_BYTES (INT64_C(64) << 20) /* more than a log of 2^20 grains takes */
#define KEY_HEX 32
#define LOG_HEX (2 * SCROLL_ID)

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

static void name_log(const uint8_t log[SCROLL_ID], char ret[LOG_HEX + 1])
{
	for (int i = 0; i < SCROLL_ID; i++)
		snprintf(ret + 2 * i, 3, "%02x", log[i]);
}

/* ---- writing ---- */

static void give_up(struct keep *keep, const char *what)
{
	log_line(
	    LOG_LEVEL_WARN, "plan-log-not-kept",
	    "folder=\"%s\" reason=\"%s: %s; if this accessd is killed, a rank that begins before "
	    "the others are back may get another plan\"",
	    keep->place->plans, what, strerror(errno));
	keep_end(keep, true);
}

void keep_begin(struct keep *keep, const struct conn *conn, const struct scroll *scroll)
{
	const struct place *place = &conn->stream->node->place;
	char job[KEY_HEX + 1], log[LOG_HEX + 1];

	*keep = (struct keep){.place = place, .fd = -1};
	name_job(conn, job);
	name_log(scroll->id, log);
	snprintf(keep->name, sizeof(keep->name), "%s-%016" PRIx64 "-%s", job, scroll->origin, log);
	snprintf(keep->temporary, sizeof(keep->temporary), PLACE_TEMPORARY "%s", log);
	if (place->plans_fd >= 0)
		keep->fd = openat(place->plans_fd, keep->temporary,
				  O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (keep->fd < 0)
		give_up(keep, "cannot make a file there");
	else
		keep_save(keep, scroll);
}

void keep_save(struct keep *keep, const struct scroll *scroll)
{
	if (keep->fd < 0)
		return;
	errno = -scroll_save(scroll, keep->fd, &keep->saved);
	if (errno)
		give_up(keep, "cannot write");
}

void keep_publish(struct keep *keep)
{
	if (keep->fd < 0)
		return;
	if (renameat(keep->place->plans_fd, keep->temporary, keep->place->plans_fd, keep->name))
		give_up(keep, "cannot rename");
	else
		*keep->temporary = '\0';
}

void keep_end(struct keep *keep, bool over)
{
	if (keep->fd >= 0 && (over || *keep->temporary))
		unlinkat(keep->place->plans_fd, *keep->temporary ? keep->temporary : keep->name, 0);
	base_close(&keep->fd);
}

/* ---- finding ---- */

/* Was it left to us, and has nobody come back to it for a minute in which he could? */
static bool is_old(const struct node *node, const struct stat *status)
{
	int64_t up_s = (int64_t)((base_now_ns() - node->started_ns) / 1000000000);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return up_s >= KEPT_S && status->st_mtim.tv_sec < now.tv_sec - up_s;
}

static int sealed_copy(int from, const struct stat *status)
{
	uint64_t bytes = (uint64_t)status->st_size;
	_cleanup_close_ int fd = -1;
	void *map;
	int r;

	if (status->st_size <= 0 || status->st_size > MOST_BYTES ||
	    region_new("oneaccess-kept", bytes, &map, &fd))
		return -1;
	r = base_read_all(from, map, bytes);
	region_unmap(map, bytes);
	if (r || region_seal(fd, REGION_READ_ONLY))
		return -1;
	return base_take_fd(&fd);
}

/* The file's mtime decides between several that began alike: an older one is of a run before. */
struct search {
	char job[KEY_HEX + 2], origin[18], log[LOG_HEX + 2];
	bool is_named;
	int fd;             /* owned; what was found, -1: nothing yet */
	struct stat status; /* of it */
};

static bool ends_with(const char *name, const char *end)
{
	size_t name_size = strlen(name), end_size = strlen(end);

	return name_size >= end_size && strcmp(name + name_size - end_size, end) == 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Takes the descriptor if it is what is searched for, or better than what was found. */
static void consider(struct search *search, const char *name, const struct stat *status, int *fd)
{
	bool is_named = *search->log && ends_with(name, search->log);

	if (strncmp(name, search->job, strlen(search->job)) != 0 || search->is_named)
		return;
	if (!is_named &&
	    (strncmp(name + strlen(search->job), search->origin, strlen(search->origin)) != 0 ||
	     (search->fd >= 0 && is_before(&status->st_mtim, &search->status.st_mtim))))
		return;
	search->is_named = is_named;
	search->status = *status;
	base_close(&search->fd);
	search->fd = base_take_fd(fd);
}

static void look_at(struct search *search, const struct node *node, int folder, const char *name)
{
	_cleanup_close_ int fd =
	    openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
		return;
	if (is_old(node, &status))
		unlinkat(folder, name, 0);
	else
		consider(search, name, &status, &fd);
}

int keep_find(const struct conn *conn, const uint8_t *log, uint64_t origin)
{
	const struct node *node = conn->stream->node;
	struct search search = {.fd = -1};
	const struct dirent *entry;
	DIR *folder;
	int fd = node->place.plans_fd < 0
		     ? -1
		     : openat(node->place.plans_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !(folder = fdopendir(fd))) {
		base_close(&fd);
		return -1;
	}
	name_job(conn, search.job);
	search.job[KEY_HEX] = '-';
	snprintf(search.origin, sizeof(search.origin), "%016" PRIx64 "-", origin);
	if (log) {
		*search.log = '-';
		name_log(log, search.log + 1);
	}
	while ((entry = readdir(folder)))
		look_at(&search, node, fd, entry->d_name);
	closedir(folder);
	fd = search.fd < 0 ? -1 : sealed_copy(search.fd, &search.status);
	base_close(&search.fd);
	return fd;
}
