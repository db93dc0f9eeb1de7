/* SPDX-License-Identifier: Apache-2.0 */

/*
 * When accessd is killed, ranks that run bring their group's log to the next one. But a rank that is
 * only starting has no log, and if it comes first its plan would be another than the others'. So
 * accessd keeps each log in a file as well, one in the folder `plans`, and looks there before it founds
 * a group anew.
 *
 *   <stream, user, job, R, B, epochs>-<origin>-<log>-<user>, hashes and the log's id in hex
 *
 * The file is the plan log's image, written by pwrite() in an order that leaves a whole plan log wherever
 * the writer dies, and before ranks see the entry: so it has all that any rank may have seen. It is
 * read back as what a client brings is, as a sealed copy of which nothing is believed.
 *
 * A group can end while its job goes on: its stream was lost, or ended with the last rank that it had, while another one
 * still works on what it holds, or all are just started again. So its file is left to the next group, as what a killed
 * accessd left is. When nobody has come back for a minute, a rank that begins is another run, and the file is removed, if all
 * ranks have the whole log. Some may not, where it was gone on with and they have not come back since: their logs end where
 * that began, and the file stays for a day. Files of runs that are over are removed. Of one user's
 * not more are left than KEPT_EACH and KEPT_BYTES of a disk: those that were left longest ago go first. Files of groups in which
 * ranks may still be do not count: not those that are lent, and none that accessd leaves when it ends itself. The next one
 * counts them when nobody has come back to them for a minute.
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
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/loop.h"
#include "daemon/net/request.h"
#include "daemon/place.h"
#include "shmring/region.h"

#define KEPT_NS (UINT64_C(60) * 1000000000)
#define PARTED_NS (UINT64_C(86400) * 1000000000) /* ranks may have less of it */
#define KEPT_EACH 64
#define KEPT_BYTES (UINT64_C(64) << 20)
#define NOBODYS ((uid_t)-1)
#define MOST_REMOVED 16 /* at once */
#define REST_NS UINT64_C(1000000000)
#define BLOCK 512 /* st_blocks' */
#define COPY_STEP (UINT32_C(256) << 10)
#define KEY_HEX 32
#define ORIGIN_HEX 16
#define LOG_HEX (2 * PLAN_LOG_ID)
#define PLAN_HEX (2 * PLAN_LOG_PLAN)
#define RUN_NAME                    \
	(KEY_HEX + 1 + ORIGIN_HEX + \
	 1) /* what the names of all logs of runs that began alike begin with */
#define LOG_NAME (RUN_NAME + LOG_HEX)

/* ---- names ---- */

/* Of all logs of one job. */
static void name_job(const struct keep_job *of, char ret[KEY_HEX + 1])
{
	const struct request *request = of->request;
	char hex[65] = "";
	struct hash_id id = {0};
	struct hash *hash;

	if (hash_new(&hash) == 0) {
		hash_add(hash, of->pipeline->bytes, sizeof(of->pipeline->bytes));
		hash_add_u64(hash, of->uid);
		hash_add_u64(hash, request->ranks);
		hash_add_u64(hash, request->batch);
		hash_add_u64(hash, request->epochs);
		hash_add_u64(hash, request->part.sum);
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
	uid_t uid;      /* NOBODYS: its name does not say whose it is */
	bool is_found;  /* an accessd before us left it, and it was not counted yet */
	uint64_t bytes; /* of the disk: logs are sparse */
	struct timespec written;
	uint64_t left_ns; /* UINT64_MAX: ranks may still be in its group */
	uint64_t *begun;  /* bitmap: ranks that have been in it, and are gone; NULL: unknown */
	uint32_t ranks;   /* that it has bits for */
};

static void forget(struct kept *kept)
{
	LIST_REMOVE(kept, link);
	free(kept->begun);
	free(kept);
}

static void remove_one(struct kept_logs *logs, struct kept *kept)
{
	unlinkat(logs->fd, kept->name, 0);
	forget(kept);
}

/* Has nobody come back to it for so long, in which he could? */
static bool is_old(const struct kept *kept, uint64_t most_ns)
{
	const uint64_t now_ns = base_now_ns();

	return now_ns - BASE_MIN(kept->left_ns, now_ns) >= most_ns;
}

/* May ranks still be in its group? */
static bool is_in_use(const struct kept *kept)
{
	return kept->left_ns == UINT64_MAX || (kept->is_found && !is_old(kept, KEPT_NS));
}

/* Of that user's, from the one that was left last, which stays: what is too much. One that is in use stays, and does not count.
 * At most so many are removed; returns how many were. */
static unsigned make_room(struct kept_logs *logs, uid_t uid, unsigned most)
{
	uint64_t bytes = 0;
	unsigned n = 0, removed = 0;

	BASE_EACH_LEAVING(kept, &logs->list, link) {
		if (kept->uid != uid || is_in_use(kept))
			continue;
		n++;
		bytes += kept->bytes;
		if (n == 1 || (n <= KEPT_EACH && bytes <= KEPT_BYTES) || removed == most)
			continue;
		remove_one(logs, kept);
		removed++;
	}
	return removed;
}

static struct kept *kept_new(const char *name, uid_t uid, const struct stat *status)
{
	struct kept *kept = strlen(name) < KEEP_NAME ? calloc(1, sizeof(*kept)) : NULL;

	if (!kept)
		return NULL;
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	kept->uid = uid;
	kept->bytes = (uint64_t)status->st_blocks * BLOCK;
	kept->written = status->st_mtim;
	kept->left_ns = base_now_ns();
	return kept;
}

static struct kept *remember(struct kept_logs *logs, const char *name, uid_t uid,
			     const struct stat *status)
{
	struct kept *kept = kept_new(name, uid, status);

	if (!kept)
		return NULL;
	LIST_INSERT_HEAD(&logs->list, kept, link);
	if (logs->timer && !loop_timer_is_set(logs->timer))
		loop_timer_set(logs->timer, KEPT_NS);
	return kept;
}

/* One that an accessd before us left: when, its time says. */
static void remember_found(struct kept_logs *logs, const char *name, uid_t uid,
			   const struct stat *status)
{
	struct kept *kept = kept_new(name, uid, status), *newer = NULL;

	if (!kept)
		return;
	kept->is_found = true;
	BASE_EACH(each, &logs->list, link) {
		if (base_compare_times(&each->written, &kept->written) < 0)
			break;
		newer = each;
	}
	if (newer)
		LIST_INSERT_AFTER(newer, kept, link);
	else
		LIST_INSERT_HEAD(&logs->list, kept, link);
}

/* A group begins with that one: others of runs that began alike are over. is_there: the file of that name is its own now; else what it went on
 * with has that name, which nobody shall take for the newest. */
static void replace(struct kept_logs *logs, const char *name, bool is_there)
{
	BASE_EACH_LEAVING(kept, &logs->list, link) {
		if (is_there && strcmp(kept->name, name) == 0)
			forget(kept);
		else if (strncmp(kept->name, name, RUN_NAME) == 0)
			remove_one(logs, kept);
	}
}

/* The names that an accessd of before wrote end with the log's id. */
static uid_t user_of(const char *name)
{
	const char *user = strlen(name) > LOG_NAME ? name + LOG_NAME : "";
	unsigned uid;

	return sscanf(user, "-%u", &uid) == 1 ? (uid_t)uid : NOBODYS;
}

static void look_at(struct kept_logs *logs, const char *name)
{
	const int folder = logs->fd;
	struct stat status;

	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid())
		return;
	if (strncmp(name, PLACE_TEMPORARY, strlen(PLACE_TEMPORARY)) == 0)
		unlinkat(folder, name, 0); /* its writer was killed before anybody saw it */
	else
		remember_found(logs, name, user_of(name), &status);
}

void keep_load(struct kept_logs *logs, const char *folder, int folder_fd)
{
	const struct dirent *entry;
	DIR *dir = NULL;
	int fd = folder_fd < 0 ? -1 : openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*logs = (struct kept_logs){.folder = folder, .fd = folder_fd};
	if (fd >= 0 && !(dir = fdopendir(fd)))
		base_close(&fd);
	while (dir && (entry = readdir(dir)))
		look_at(logs, entry->d_name);
	if (dir)
		closedir(dir);
}

void keep_unload(struct kept_logs *logs)
{
	while (!LIST_EMPTY(&logs->list))
		forget(LIST_FIRST(&logs->list));
	loop_unwatch(&logs->timer);
}

/* ---- writing ---- */

static void give_up(struct keep *keep, const char *what)
{
	log_line(
	    LOG_LEVEL_WARN, "plan-log-not-kept",
	    "folder=\"%s\" reason=\"%s: %s; if this accessd is killed, a rank that begins before "
	    "the others are back may get another plan\"",
	    keep->logs->folder, what, strerror(errno));
	keep_end(keep, true);
}

void keep_begin(struct keep *keep, struct kept_logs *logs, const struct keep_job *of,
		const struct plan_log *plan_log)
{
	char job[KEY_HEX + 1], log[LOG_HEX + 1];

	*keep = (struct keep){.logs = logs, .uid = of->uid, .fd = -1};
	name_job(of, job);
	name_log(plan_log->id, log);
	snprintf(keep->name, sizeof(keep->name), "%s-%016" PRIx64 "-%s-%u", job, plan_log->origin,
		 log, (unsigned)of->uid);
	snprintf(keep->temporary, sizeof(keep->temporary), PLACE_TEMPORARY "%s", log);
	if (logs->fd >= 0)
		keep->fd = openat(logs->fd, keep->temporary,
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

void keep_publish(struct keep *keep, const struct plan_log *plan_log)
{
	if (keep->fd >= 0) {
		errno = -plan_log_save_before(plan_log, keep->fd);
		if (errno || renameat(keep->logs->fd, keep->temporary, keep->logs->fd, keep->name))
			give_up(keep, "cannot write or rename");
		else
			*keep->temporary = '\0';
	}
	replace(keep->logs, keep->name, keep->fd >= 0);
}

/* NULL: it has no file that others find, or there is no memory. */
static struct kept *leave(struct keep *keep)
{
	struct kept *kept = NULL;
	struct stat status;

	if (keep->fd >= 0 && !*keep->temporary && fstat(keep->fd, &status) == 0) {
		clock_gettime(CLOCK_REALTIME, &status.st_mtim);
		kept = remember(keep->logs, keep->name, keep->uid, &status);
	}
	base_close(&keep->fd);
	return kept;
}

/* Nobody is in it any more, as far as we know: where we end ourselves, its ranks wait for the next accessd. */
static void settle(struct keep *keep)
{
	if (!keep->logs->stays)
		make_room(keep->logs, keep->uid, UINT_MAX);
}

static void settle_lent(struct keep *keep)
{
	struct kept *kept = NULL;

	BASE_EACH(each, &keep->logs->list, link)
		if (strcmp(each->name, keep->name) == 0)
			kept = each;
	if (!kept)
		return;
	LIST_REMOVE(kept, link);
	LIST_INSERT_HEAD(&keep->logs->list, kept, link);
	kept->left_ns = base_now_ns();
	settle(keep);
}

void keep_end(struct keep *keep, bool over)
{
	if (keep->is_lent) {
		settle_lent(keep);
	} else if (over || *keep->temporary) {
		if (keep->fd >= 0)
			unlinkat(keep->logs->fd, *keep->temporary ? keep->temporary : keep->name,
				 0);
		base_close(&keep->fd);
	} else {
		leave(keep);
		settle(keep);
	}
}

void keep_lend(struct keep *keep)
{
	struct kept *kept = leave(keep);

	keep->is_lent = kept;
	if (kept)
		kept->left_ns = UINT64_MAX;
}

void keep_leave(struct keep *keep, uint64_t *begun, uint32_t ranks)
{
	struct kept *kept = leave(keep);

	if (!kept) {
		free(begun);
		return;
	}
	kept->begun = begun;
	kept->ranks = ranks;
	settle(keep);
}

/* ---- finding ---- */

/* Those that an accessd before us left, and nobody came back to for a minute, count from now on: one user's a time. */
static bool count_found(struct kept_logs *logs, unsigned most)
{
	const struct kept *found = NULL;
	uid_t uid;

	BASE_EACH(kept, &logs->list, link)
		if (kept->is_found && kept->uid != NOBODYS && is_old(kept, KEPT_NS))
			found = kept;
	if (!found)
		return false;
	uid = found->uid;
	if (make_room(logs, uid, most) == most)
		return true; /* there may be more */
	BASE_EACH(kept, &logs->list, link)
		kept->is_found &= kept->uid != uid;
	return true;
}

/* A few a time. */
static void on_timer(void *arg)
{
	struct kept_logs *logs = arg;
	unsigned removed = 0;
	bool is_more;

	BASE_EACH_LEAVING(kept, &logs->list, link) {
		if (removed == MOST_REMOVED || !is_old(kept, kept->begun ? KEPT_NS : PARTED_NS))
			continue;
		remove_one(logs, kept);
		removed++;
	}
	is_more = removed == MOST_REMOVED || count_found(logs, MOST_REMOVED - removed);
	if (!LIST_EMPTY(&logs->list))
		loop_timer_set(logs->timer, is_more ? REST_NS : KEPT_NS);
}

int keep_watch(struct kept_logs *logs, struct loop *loop)
{
	int r = loop_timer_new(loop, on_timer, logs, &logs->timer);

	if (!r && !LIST_EMPTY(&logs->list))
		loop_timer_set(logs->timer, KEPT_NS);
	return r;
}

struct search {
	char job[KEY_HEX + 2], origin[ORIGIN_HEX + 2],
	    log[LOG_HEX + 1]; /* log empty: none is named */
	bool is_named;
	const struct kept *found; /* NULL: nothing yet */
};

static bool begins_with(const char *name, const char *begin)
{
	return strncmp(name, begin, strlen(begin)) == 0;
}

static bool is_of_plan(const struct search *search, const char *name)
{
	return *search->log && strlen(name) > RUN_NAME &&
	       strncmp(name + RUN_NAME, search->log, PLAN_HEX) == 0;
}

/* Takes it if it is what is searched for, or better than what was found: the time decides between several
 * that began alike, an older one is of a run before. */
static void consider(struct search *search, const struct kept *kept)
{
	const bool is_named = is_of_plan(search, kept->name);

	if (!begins_with(kept->name, search->job) || search->is_named)
		return;
	if (!is_named &&
	    (is_old(kept, KEPT_NS) ||
	     !begins_with(kept->name + strlen(search->job), search->origin) ||
	     (search->found && base_compare_times(&kept->written, &search->found->written) < 0)))
		return;
	search->is_named = is_named;
	search->found = kept;
}

/* A rank that has been in a run that began without a token, and now begins so, is another run. */
static void remove_over(struct kept_logs *logs, const struct search *search, uint32_t rank)
{
	BASE_EACH_LEAVING(kept, &logs->list, link)
		if (kept->begun && rank < kept->ranks && bits_test(kept->begun, rank) &&
		    begins_with(kept->name, search->job) &&
		    begins_with(kept->name + strlen(search->job), search->origin))
			remove_one(logs, kept);
}

int keep_find(struct kept_logs *logs, const struct keep_job *of, const uint8_t *log,
	      uint64_t origin)
{
	struct search search = {.found = NULL};
	_cleanup_close_ int fd = -1;
	struct stat status;

	if (LIST_EMPTY(&logs->list))
		return -1;
	name_job(of, search.job);
	search.job[KEY_HEX] = '-';
	snprintf(search.origin, sizeof(search.origin), "%016" PRIx64 "-", origin);
	if (log)
		name_log(log, search.log);
	if (!of->request->token.data)
		remove_over(logs, &search, of->request->rank);
	BASE_EACH(kept, &logs->list, link)
		consider(&search, kept);
	if (!search.found)
		return -1;
	fd = openat(logs->fd, search.found->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
