/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of an accessd.
 *
 * Two locks on files that stay: "accessd.pid" is held for the daemon's life and tells who it is;
 * "lock" is the election's: a client holds it while it starts a private daemon, the daemon takes it
 * for its idle exit, so that nobody connects to a socket that is about to vanish. Only the owner of
 * accessd.pid ever unlinks the socket, so a live one is never removed and a stale one (after
 * kill -9) always is. A private folder must be ours alone: mode 0700, our uid, no symbolic link.
 *
 * accessd.pid is locked by fcntl(), because such a lock is the process's and of no child's: after
 * kill -9 the next accessd starts at once, though a child that was being forked may not have died
 * yet. Rejected: flock(), which lives on in every copy of the descriptor. The price is that nothing
 * else in this process may open and close that file. The election's is flock(): clients have
 * threads, and each of them is alone.
 *
 * Homes of clusters lie on networks, where no store may be. Unless cache_dir says otherwise a private accessd
 * then has it on the machine's own disk, in a folder below /var/tmp or $TMPDIR that is its user's alone.
 */
#include "daemon/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "storage/store_place.h"

void place_private_folder(char *ret, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime == '/')
		snprintf(ret, size, "%s/oneaccess", runtime);
	else
		snprintf(ret, size, "/tmp/oneaccess-%u", (unsigned)geteuid());
}

/* mkdir -p; only the last folder gets the mode. */
static int make_folders(const char *path, mode_t mode)
{
	char part[PARAM_TEXT_MAX + 128];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, mode) && errno != EEXIST ? -errno : 0;
}

static int check_private(const char *folder, struct diag *diag)
{
	struct stat status;

	if (lstat(folder, &status))
		return diag_fail(diag, PLACE_E_REFUSED, "cannot look at %s: %s", folder,
				 strerror(errno));
	if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077))
		return diag_fail(
		    diag, PLACE_E_REFUSED,
		    "%s must be a folder of uid %u with mode 0700 (it has uid %u, mode %04o): mend "
		    "or remove it, or name another (--dir, XDG_RUNTIME_DIR)",
		    folder, (unsigned)geteuid(), (unsigned)status.st_uid,
		    (unsigned)status.st_mode & 07777);
	return 0;
}

/* The folder of that name in the cache. */
static void plan_cache(const struct place *place, const struct param *param, const char *name,
		       char *ret, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (*param->cache_dir)
		snprintf(ret, size, "%s/%s", param->cache_dir, name);
	else if (!place->is_private)
		snprintf(ret, size, "%s/%s", LOCALSTATEDIR "/cache/accessd", name);
	else if (cache && *cache == '/')
		snprintf(ret, size, "%.1000s/oneaccess/%s", cache, name);
	else
		snprintf(ret, size, "%.1000s/.cache/oneaccess/%s",
			 home && *home == '/' ? home : place->folder, name);
}

static void plan_paths(struct place *place, const struct param *param, const char *folder)
{
	if (folder)
		snprintf(place->folder, sizeof(place->folder), "%s", folder);
	else if (place->is_private)
		place_private_folder(place->folder, sizeof(place->folder));
	else
		snprintf(place->folder, sizeof(place->folder), "%s", RUNSTATEDIR "/accessd");
	if (*param->socket)
		snprintf(place->socket, sizeof(place->socket), "%s", param->socket);
	else
		snprintf(place->socket, sizeof(place->socket), "%s/socket", place->folder);
	plan_cache(place, param, "index", place->indexes, sizeof(place->indexes));
	plan_cache(place, param, "store", place->stores, sizeof(place->stores));
}

static int refuse_second(const struct place *place, int fd, struct diag *diag)
{
	char text[32] = "";
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	text[size > 0 ? strcspn(text, "\n") : 0] = '\0';
	return diag_fail(diag, PLACE_E_REFUSED,
			 "accessd (pid %s) already serves %s: stop it first, or use another folder",
			 *text ? text : "unknown", place->socket);
}

static int take_lock(struct place *place, struct diag *diag)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PARAM_TEXT_MAX + 128];
	char text[32];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/accessd.pid", place->folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return diag_fail(
		    diag, PLACE_E_REFUSED, "cannot write %s: %s%s", path, strerror(errno),
		    errno == EACCES ? "; its folder must belong to accessd's user" : "");
	if (fcntl(fd, F_SETLK, &whole)) {
		if (errno == EAGAIN || errno == EACCES)
			return refuse_second(place, fd, diag);
		return diag_fail(diag, PLACE_E_REFUSED, "cannot lock %s: %s", path,
				 strerror(errno));
	}
	snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
		return diag_fail(diag, PLACE_E_REFUSED, "cannot write %s: %s", path,
				 strerror(errno));
	place->pid_fd = base_take_fd(&fd);
	return 0;
}

/* A service manager listens: jobs that come while there is no accessd wait there. */
static int take_listening(struct place *place, int *fd, struct diag *diag)
{
	struct sockaddr_un address = {.sun_family = AF_UNSPEC};
	socklen_t size = sizeof(address);

	if (getsockname(*fd, (struct sockaddr *)&address, &size) ||
	    size <= offsetof(struct sockaddr_un, sun_path) || address.sun_path[0] != '/')
		return diag_fail(diag, PLACE_E_REFUSED,
				 "the socket that the service manager opened has no path");
	snprintf(place->socket, sizeof(place->socket), "%.*s", (int)sizeof(address.sun_path),
		 address.sun_path);
	place->listen_fd = base_take_fd(fd);
	place->is_given = true;
	return 0;
}

/* It has its mode from the first moment on: a job that may not connect is told so for good. A folder may have a default ACL,
 * which takes the umask's place. 0 or -1 with errno. */
static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode)
{
	const mode_t mask = umask(~mode & 0777);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address));

	umask(mask);
	return r ? r : chmod(address->sun_path, mode);
}

static int start_listening(struct place *place, struct diag *diag)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if (strlen(place->socket) >= sizeof(address.sun_path))
		return diag_fail(
		    diag, PLACE_E_REFUSED,
		    "the socket's path %s is longer than %zu bytes: choose a shorter folder",
		    place->socket, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, place->socket);
	if (unlink(place->socket) && errno != ENOENT)
		return diag_fail(diag, PLACE_E_REFUSED, "cannot replace the stale socket %s: %s",
				 place->socket, strerror(errno));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind_with_mode(fd, &address, place->is_private ? 0600 : 0666) ||
	    listen(fd, 128))
		return diag_fail(diag, PLACE_E_REFUSED, "cannot listen on %s: %s", place->socket,
				 strerror(errno));
	place->listen_fd = base_take_fd(&fd);
	return 0;
}

/* ---- where what is kept may lie ---- */

static bool is_local(const char *folder, struct diag *diag)
{
	_cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && store_place_check(fd, false, diag) == 0;
}

/* true: there is a folder below `root` for it, ours alone, on a disk of this machine. */
static bool move_stores(struct place *place, const char *root)
{
	char folder[PARAM_TEXT_MAX], stores[PARAM_TEXT_MAX + 16];
	struct diag diag = {""};

	if (!root || *root != '/' ||
	    snprintf(folder, sizeof(folder), "%s/oneaccess-%u", root, (unsigned)geteuid()) >=
		(int)sizeof(folder))
		return false;
	snprintf(stores, sizeof(stores), "%s/store", folder);
	if ((mkdir(folder, 0700) && errno != EEXIST) || check_private(folder, &diag) ||
	    !is_local(folder, &diag) || make_folders(stores, 0700)) {
		rmdir(folder); /* unless there is something in it */
		return false;
	}
	log_line(LOG_LEVEL_INFO, "stores-moved",
		 "from=\"%s\" to=\"%s\" text=\"the first lies on no local disk\"", place->stores,
		 stores);
	snprintf(place->stores, sizeof(place->stores), "%s", stores);
	return true;
}

/* Without any it is kept in memory: the store says so. */
static void find_stores(struct place *place, const struct param *param)
{
	struct diag diag = {""};

	if (!place->is_private || *param->cache_dir || param->cache_force ||
	    is_local(place->stores, &diag))
		return;
	if (!move_stores(place, "/var/tmp"))
		move_stores(place, getenv("TMPDIR"));
}

/* ---- the place ---- */

/* What nobody writes any more: its lock went with its writer. */
static void remove_stale(const char *indexes)
{
	DIR *folder = opendir(indexes);
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		int fd;

		if (strncmp(entry->d_name, PLACE_TEMPORARY, strlen(PLACE_TEMPORARY)) != 0)
			continue;
		fd = openat(dirfd(folder), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(folder), entry->d_name, 0);
		base_close(&fd);
	}
	if (folder)
		closedir(folder);
}

/* Without it logs are not kept: group_keep.c says so. */
static void open_plans(struct place *place)
{
	struct stat status;
	_cleanup_close_ int fd = -1;

	snprintf(place->plans, sizeof(place->plans), "%s/plans", place->folder);
	if (make_folders(place->plans, 0700) == 0)
		fd = open(place->plans, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    !(status.st_mode & 077))
		place->plans_fd = base_take_fd(&fd);
}

/* As /tmp is: everybody may have a folder there. A private one's user makes it. Without it a job that opens a URL is told so. */
static void open_buckets(struct place *place, const struct param *param)
{
	const char *slash = strrchr(place->socket, '/');
	struct stat status;

	if (*param->bucket_dir)
		snprintf(place->buckets, sizeof(place->buckets), "%s", param->bucket_dir);
	else
		snprintf(place->buckets, sizeof(place->buckets), "%.*s/buckets",
			 slash ? (int)(slash - place->socket) : 1, slash ? place->socket : ".");
	if (place->is_private || *param->bucket_dir)
		return;
	if ((mkdir(place->buckets, 0700) && errno != EEXIST) || lstat(place->buckets, &status) ||
	    !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
	    chmod(place->buckets, 01777)) {
		log_line(LOG_LEVEL_WARN, "no-buckets",
			 "path=\"%s\" text=\"it cannot be made: jobs cannot open URLs\"",
			 place->buckets);
		place->buckets[0] = '\0';
	}
}

/* A disk that cannot be written to is no reason to serve nobody; but whoever runs accessd should know before the first job does. */
static void look_at_cache(const char *path, const char *what)
{
	_cleanup_close_ int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* Not every file system has nameless files. A mode alone does not tell of a disk that has found an error. */
	if (fd >= 0 || errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
		return;
	log_line(
	    LOG_LEVEL_WARN, "cache-folder",
	    "path=\"%s\" error=\"%s\" uid=%u text=\"%s; a cache_dir must belong to this uid, and "
	    "a service needs ReadWritePaths= for it (accessd.conf(5))\"",
	    path, strerror(errno), (unsigned)geteuid(), what);
}

int place_open(struct place *place, const struct param *param, bool is_private, const char *folder,
	       int given_fd, struct diag *diag)
{
	_cleanup_close_ int given = given_fd;
	int r;

	*place =
	    (struct place){.pid_fd = -1, .listen_fd = -1, .plans_fd = -1, .is_private = is_private};
	plan_paths(place, param, folder);
	r = make_folders(place->folder, is_private ? 0700 : 0755);
	if (r)
		return diag_fail(diag, PLACE_E_REFUSED, "cannot make the folder %s: %s",
				 place->folder, strerror(-r));
	if (is_private && check_private(place->folder, diag))
		return PLACE_E_REFUSED;
	r = take_lock(place, diag);
	if (!r)
		r = given >= 0 ? take_listening(place, &given, diag) : start_listening(place, diag);
	if (r)
		return r;
	make_folders(place->indexes, 0700);
	make_folders(place->stores, 0700);
	find_stores(place, param);
	look_at_cache(place->indexes, "indexes are not stored");
	if (param->cache_size)
		look_at_cache(place->stores, "nothing is kept on the disk");
	remove_stale(place->indexes);
	open_plans(place);
	open_buckets(place, param);
	return 0;
}

/* A folder that is another user's already is left to him. */
static int give_away(const char *path, mode_t mode, const struct identity *owner)
{
	struct stat status;
	int r = make_folders(path, mode);
	_cleanup_close_ int fd =
	    r ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (r)
		return r;
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid == 0 && (fchown(fd, owner->uid, owner->gid) < 0 || fchmod(fd, mode) < 0))
		return -errno;
	return 0;
}

int place_hand_over(const struct param *param, const char *folder, const struct identity *owner,
		    struct diag *diag)
{
	struct place place = {.is_private = false, .plans_fd = -1};
	mode_t mask = umask(022);
	int r;

	plan_paths(&place, param, folder);
	r = give_away(place.folder, 0755, owner);
	if (!r) /* without it indexes are not stored: source.c says so */
		give_away(place.indexes, 0700, owner);
	if (!r) /* without it nothing is kept on a disk: disk_cache.c says so */
		give_away(place.stores, 0700, owner);
	umask(mask);
	if (!r)
		return 0;
	return diag_fail(diag, PLACE_E_REFUSED, "cannot make the folder %s for user %u: %s",
			 place.folder, (unsigned)owner->uid, strerror(-r));
}

/* Somebody removed the folder, or what is in it; what has its name now is another's. */
static bool place_is_gone(const struct place *place)
{
	struct stat st;

	return place->pid_fd >= 0 && fstat(place->pid_fd, &st) == 0 && st.st_nlink == 0;
}

bool place_try_leave(struct place *place)
{
	char path[PARAM_TEXT_MAX + 128];
	_cleanup_close_ int fd = -1;

	if (place_is_gone(place)) { /* nobody finds us */
		place_close(place);
		return true;
	}
	snprintf(path, sizeof(path), "%s/lock", place->folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return false;
	place_close(place);
	return true;
}

void place_close(struct place *place)
{
	if (place->listen_fd >= 0 && !place->is_given && !place_is_gone(place))
		unlink(place->socket);
	base_close(&place->listen_fd);
	base_close(&place->pid_fd);
	base_close(&place->plans_fd);
}
