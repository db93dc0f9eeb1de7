/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a URL to a folder.
 *
 *   IDLE --connect, WATCH--> LISTING --READY--> READY
 *    |  ^                       |                 |
 *    v  | it listens            +---- it ended ---+--> IDLE
 *   STARTING   (the process with the election's lock)
 *
 * The folder must be seen by accessd, and by all jobs of the user, under a name that each of them finds. It is beside
 * accessd's socket, whose folder is what a container mounts: in a private accessd's, which is the user's alone, below
 * "buckets"; in a system's, where "buckets" is everybody's to write to as /tmp is, below that in the user's own. A uid may be
 * called otherwise in a container, and its name be another user's: then the next name is taken. Whoever owns a folder,
 * it is used only if it is ours alone. $ACCESS_BUCKETS names another folder.
 *
 * One that is there with other credentials than ours is as good as none when a data set is opened: it is supplanted. A job that
 * runs already goes on with whoever is there. Where the store refuses another's credentials, a job asks with its own, once; so does
 * one that went over to another which then lists nothing.
 *
 * The library has no thread, so that access-bucket ended is seen where a job waits: there it is started again. Readers wait
 * for that.
 */

#include "libaccess/connect/remote.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/wire.h"
#include "libaccess/connect/dial.h"
#include "libaccess/connect/private.h"
#include "libaccess/error.h"
#include "shmring/proto.h"

#define REMOTE_PROGRAM "access-bucket"
#define REMOTE_PATH 1024 /* accessd takes no longer one */
#define REMOTE_NAMES 16  /* folders that may be another user's before one is ours */
#define REMOTE_RETRY_NS UINT64_C(50000000)
#define REMOTE_LOOK_NS UINT64_C(1000000000)
#define REMOTE_MINUTE_NS UINT64_C(60000000000)

enum {
	REMOTE_AGAIN = 256,    /* nothing to do until wake_ns */
	REMOTE_PROGRESS = 257, /* step again */
};

void remote_init(struct remote *remote)
{
	*remote = (struct remote){.sock = -1, .wake_ns = UINT64_MAX};
	spawn_init(&remote->spawn);
}

void remote_fini(struct remote *remote)
{
	base_close(&remote->sock);
	spawn_fini(&remote->spawn);
	url_fini(&remote->url);
	free(remote->folder);
	free(remote->path);
	remote_init(remote);
}

/* ---- the folder ---- */

static bool remote_is_folder(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool remote_is_ours(const struct stat *status)
{
	return S_ISDIR(status->st_mode) && status->st_uid == geteuid() && !(status->st_mode & 077);
}

/* Makes it, if need be. 0, -EPERM: it is not ours alone, or negative errno. */
static int remote_make(const char *path)
{
	struct stat status;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &status) < 0)
		return -errno;
	return remote_is_ours(&status) ? 0 : -EPERM;
}

static int remote_refuse_folder(const char *path, int r, struct diag *diag)
{
	if (r == -EPERM)
		return diag_fail(diag, OA_E_PERMISSION,
				 "%s, where data sets of object stores are, must be a folder of "
				 "uid %u alone: remove it, or name another one in ACCESS_BUCKETS",
				 path, (unsigned)geteuid());
	return diag_fail(diag, OA_E_PERMISSION,
			 "cannot make the folder %s for data sets of object stores (%s): in a "
			 "container mount the folder of accessd's socket so that \"buckets\" in it "
			 "can be written to (-v /run/accessd/buckets:/run/accessd/buckets; "
			 "Kubernetes: doc/kubernetes/job.yaml), or name a folder that accessd sees "
			 "under the same path in ACCESS_BUCKETS",
			 path, strerrordesc_np(-r));
}

/* In a folder that is everybody's: ours, which may not be under the first name. `path` grows by it. */
static int remote_find_own(char *path, size_t size, struct diag *diag)
{
	size_t length = strlen(path);
	int r = -EPERM;

	for (unsigned i = 0; i < REMOTE_NAMES && r == -EPERM; i++) {
		if (i)
			snprintf(path + length, size - length, "/%u.%u", (unsigned)geteuid(), i);
		else
			snprintf(path + length, size - length, "/%u", (unsigned)geteuid());
		r = remote_make(path);
	}
	return r ? remote_refuse_folder(path, r, diag) : 0;
}

/* Beside the socket as we see it, else where accessd says. */
static void remote_beside(const struct dial_route *route, char *ret, size_t size)
{
	const char *slash = strrchr(route->socket, '/');

	snprintf(ret, size, "%.*s/buckets", slash ? (int)(slash - route->socket) : 1,
		 slash ? route->socket : ".");
	if (!remote_is_folder(ret) && remote_is_folder(route->buckets))
		snprintf(ret, size, "%s", route->buckets);
}

/* path: where our folders are, as we see it; seen: as accessd does. */
static int remote_base(const struct dial_route *route, char path[REMOTE_PATH],
		       char seen[REMOTE_PATH], struct diag *diag)
{
	const char *named = secure_getenv("ACCESS_BUCKETS");
	const bool is_named = named && *named == '/';
	size_t length;
	struct stat status;
	int r;

	if (is_named)
		snprintf(path, REMOTE_PATH, "%s", named);
	else
		remote_beside(route, path, REMOTE_PATH);
	snprintf(seen, REMOTE_PATH, "%s", is_named || !*route->buckets ? path : route->buckets);
	length = strlen(path);
	r = remote_make(path);
	if (r == -EPERM && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
	    ((status.st_mode & S_ISVTX) || !(status.st_mode & 022)))
		r = remote_find_own(path, REMOTE_PATH, diag);
	else if (r)
		r = remote_refuse_folder(path, r, diag);
	if (!r)
		strncat(seen, path + length, REMOTE_PATH - strlen(seen) - 1);
	return r;
}

/* Sets folder, and path to its data as accessd sees it. */
static int remote_find_folder(struct remote *remote, const struct dial_route *route,
			      struct diag *diag)
{
	char path[REMOTE_PATH], seen[REMOTE_PATH], name[URL_FOLDER_MAX];
	int r = remote_base(route, path, seen, diag);

	if (r)
		return r;
	url_folder(&remote->url, name);
	remote->folder = base_format("%s/%s", path, name);
	remote->path = base_format("%s/%s/" BUCKET_DATA, seen, name);
	if (!remote->folder || !remote->path)
		return error_of_errno(diag, -ENOMEM, "opening a URL");
	r = remote_make(remote->folder);
	return r ? remote_refuse_folder(remote->folder, r, diag) : 0;
}

/* ---- the program ---- */

static void remote_program(char *ret, size_t size)
{
	const char *libexec = secure_getenv("ACCESS_LIBEXEC");

	if (libexec && *libexec && snprintf(ret, size, "%s/" REMOTE_PROGRAM, libexec) < (int)size &&
	    access(ret, X_OK) == 0)
		return;
	snprintf(ret, size, "%s/" REMOTE_PROGRAM, LIBEXECDIR);
	if (access(ret, X_OK) < 0)
		snprintf(ret, size, REMOTE_PROGRAM);
}

static int remote_spawn(struct remote *remote, struct diag *diag)
{
	_cleanup_free_ char **arguments = calloc(remote->url.n_access + 4, sizeof(*arguments));
	char program[REMOTE_PATH];
	size_t n = 0;
	int r;

	if (!arguments)
		return error_of_errno(diag, -ENOMEM, "starting " REMOTE_PROGRAM);
	remote_program(program, sizeof(program));
	arguments[n++] = program;
	arguments[n++] = remote->folder;
	arguments[n++] = remote->url.text;
	for (size_t i = 0; i < remote->url.n_access; i++)
		arguments[n++] = remote->url.access[i];
	r = spawn_run(&remote->spawn, arguments);
	if (r == -EMFILE)
		return error_of_errno(diag, r, "starting " REMOTE_PROGRAM);
	if (r)
		return diag_fail(
		    diag, OA_E_DATASET,
		    "%.300s: %s, which reads object stores, could not be started (%s): "
		    "install the package oneaccess-buckets where the job runs, or a build of "
		    "OneAccess that was configured with it",
		    remote->url.text, program, strerrordesc_np(-r));
	remote->state = REMOTE_STARTING;
	remote->is_waiting = false;
	remote->has_tried = true;
	remote->wake_ns = remote->spawn.wake_ns;
	return REMOTE_AGAIN;
}

/* access-bucket has ended. */
static int remote_lose(struct remote *remote, struct diag *diag)
{
	const uint64_t now_ns = base_now_ns(), at = remote->n_lost++ % REMOTE_LOSSES;
	const uint64_t before_ns = remote->lost_ns[at];

	base_close(&remote->sock);
	remote->state = REMOTE_IDLE;
	remote->lost_ns[at] = now_ns;
	if (remote->n_lost <= REMOTE_LOSSES || now_ns - before_ns > REMOTE_MINUTE_NS)
		return REMOTE_PROGRESS;
	return diag_fail(diag, OA_E_DATASET,
			 "%.300s: " REMOTE_PROGRAM " has ended %d times within a minute%s%s",
			 remote->url.text, REMOTE_LOSSES + 1,
			 remote->last.text[0] ? "; it said: " : "", remote->last.text);
}

/* Nobody answers: elect, look again, start. */
static int remote_start(struct remote *remote, struct diag *diag)
{
	int r;

	if (remote->spawn.has_run) { /* it has served others since, and ended */
		spawn_fini(&remote->spawn);
		return remote_lose(remote, diag);
	}
	if (remote->spawn.lock_fd >= 0)
		return remote_spawn(remote, diag);
	r = spawn_elect(&remote->spawn, remote->folder, diag);
	if (r == SPAWN_AGAIN) {
		remote->wake_ns = remote->spawn.wake_ns;
		return REMOTE_AGAIN;
	}
	return r ? r : REMOTE_PROGRESS; /* the lock is ours: look once more */
}

static int remote_step_starting(struct remote *remote, struct diag *diag)
{
	static const char own[] = REMOTE_PROGRAM ": ";
	char what[320];
	int r;

	snprintf(what, sizeof(what), "%.280s: " REMOTE_PROGRAM, remote->url.text);
	r = spawn_step(&remote->spawn, what, diag);
	if (r == SPAWN_AGAIN) {
		remote->wake_ns = remote->spawn.wake_ns;
		return REMOTE_AGAIN;
	}
	if (r == SPAWN_E_FAILED && remote->spawn.length) /* in its own words */
		diag_set(diag, "%.300s: %s", remote->url.text,
			 remote->spawn.text +
			     (strncmp(remote->spawn.text, own, strlen(own)) ? 0 : strlen(own)));
	if (r == SPAWN_E_FAILED)
		return OA_E_DATASET;
	remote->state = REMOTE_IDLE;
	return r ? r : REMOTE_PROGRESS;
}

/* ---- the conversation ---- */

/* A socket, or negative errno; -EPERM: another user's process answers. */
static int remote_connect(const char *folder)
{
	_cleanup_close_ int at = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int sock = -1;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char path[64];

	if (at < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/" BUCKET_SOCKET, at);
	sock = wire_connect(path);
	if (sock < 0)
		return sock;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return peer.uid == geteuid() ? base_take_fd(&sock) : -EPERM;
}

/* Has the one that listens there other credentials than we have? */
static bool remote_is_other(const struct remote *remote)
{
	static const char *const names[] = {"token_file=", "credentials="};
	_cleanup_close_ int at =
	    open(remote->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int fd =
	    openat(at, BUCKET_KEYS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct hash_id ours, theirs;
	const char *file = NULL;
	bool is_anonymous = false;

	for (size_t i = 0; i < remote->url.n_access; i++) {
		is_anonymous |= strcmp(remote->url.access[i], "anonymous=1") == 0;
		for (size_t k = 0; k < BASE_ARRAY_LEN(names); k++)
			if (strncmp(remote->url.access[i], names[k], strlen(names[k])) == 0)
				file = remote->url.access[i] + strlen(names[k]);
	}
	return fd >= 0 && base_read_at(fd, &theirs, sizeof(theirs), 0) == 0 &&
	       url_keys(remote->url.text, file, is_anonymous, &ours) == 0 &&
	       memcmp(&ours, &theirs, sizeof(ours)) != 0;
}

static int remote_step_idle(struct remote *remote, struct diag *diag)
{
	const struct bucket_head watch = {.magic = BUCKET_MAGIC, .kind = BUCKET_WATCH};
	int r = remote_make(remote->folder); /* it may have been removed with what was there */

	if (r)
		return remote_refuse_folder(remote->folder, r, diag);
	if (remote->is_waiting && !remote->spawn.has_run && remote->spawn.lock_fd < 0)
		return remote_start(remote, diag); /* it waits for its turn alone */
	r = remote_connect(remote->folder);
	if (r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET)
		return remote_start(remote, diag);
	if (r == -EAGAIN) { /* its backlog is full */
		remote->wake_ns = base_now_ns() + REMOTE_RETRY_NS;
		return REMOTE_AGAIN;
	}
	if (r == -EPERM)
		return remote_refuse_folder(remote->folder, r, diag);
	if (r < 0)
		return error_of_errno(diag, r, remote->folder);
	remote->sock = r;
	if ((!remote->is_open || remote->is_waiting) && !remote->spawn.has_run &&
	    remote_is_other(remote)) {
		base_close(&remote->sock);
		remote->is_waiting = true;
		return remote_start(remote, diag);
	}
	/* What cannot be sent was closed, which the next step finds out. */
	(void)!send(remote->sock, &watch, sizeof(watch), MSG_DONTWAIT | MSG_NOSIGNAL);
	spawn_fini(&remote->spawn); /* the election is over */
	remote->is_waiting = false;
	remote->state = REMOTE_LISTING;
	return REMOTE_PROGRESS;
}

/* Is the only thing in the folder a file of that name (NULL: of any)? Then its name; the caller frees. */
static char *remote_only_file(const char *folder, const char *name)
{
	DIR *listing = opendir(folder);
	_cleanup_free_ char *found = NULL;
	const struct dirent *entry;
	struct stat status;
	bool is_one = true;

	while (listing && is_one && (entry = readdir(listing))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		is_one =
		    !found && (!name || strcmp(entry->d_name, name) == 0) &&
		    fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(status.st_mode);
		found = is_one ? strdup(entry->d_name) : found;
	}
	if (listing)
		closedir(listing);
	return is_one ? base_take_ptr(found) : NULL;
}

/* Is it an object that is listed with others? */
static bool remote_has_company(const char *folder, const char *name)
{
	char path[2 * REMOTE_PATH];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return url_brings(name) != URL_ALONE && lstat(path, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

/* What of the folder's data is meant: an object, a pattern, all of it; and the kind's options. */
static int remote_name_path(struct remote *remote, struct diag *diag)
{
	_cleanup_free_ char *data = base_format("%s/" BUCKET_DATA, remote->folder), *name = NULL;
	const char *tail;
	const size_t length = url_tail(&remote->url, &tail);
	char *path;

	name = strndup(tail, length);
	if (!name || !data)
		return error_of_errno(diag, -ENOMEM, "opening a URL");
	if (*name && !strchr(name, '{') && !remote_has_company(data, name)) {
		char *file = remote_only_file(data, url_is_of_web(remote->url.text) ? NULL : name);

		free(name);
		name = file;
	}
	path = base_format("%s%s%s%s", remote->path, name && *name ? "/" : "", name ? name : "",
			   remote->url.options);
	if (!path)
		return error_of_errno(diag, -ENOMEM, "opening a URL");
	free(remote->path);
	remote->path = path;
	return 0;
}

static int remote_hear(struct remote *remote, const struct bucket_news *news, struct diag *diag)
{
	char text[sizeof(news->text)];

	snprintf(text, sizeof(text), "%.*s", (int)sizeof(news->text) - 1, news->text);
	if (news->what == BUCKET_REFUSED) {
		base_quote(text, remote->last.text, sizeof(remote->last.text));
		if (remote->state == REMOTE_READY)
			return REMOTE_PROGRESS; /* it goes on, or ends */
		/* By another's credentials: as if it came now. */
		if (!remote->has_tried && (remote->is_moved || news->is_denied)) {
			remote->is_moved = false;
			remote->has_tried = remote->is_waiting = true;
			base_close(&remote->sock);
			remote->state = REMOTE_IDLE;
			return REMOTE_PROGRESS;
		}
		return diag_fail(diag, OA_E_DATASET, "%s", remote->last.text);
	}
	remote->objects = news->objects;
	if (news->what == BUCKET_READY) {
		remote->state = REMOTE_READY;
		remote->is_open = true;
		remote->is_moved = remote->has_tried = false;
	}
	if (news->what == BUCKET_MOVED) {
		remote->is_moved = true;
		remote->has_tried = false;
		base_close(&remote->sock);
		remote->state = REMOTE_IDLE;
	}
	return REMOTE_PROGRESS;
}

static int remote_step_talking(struct remote *remote, struct diag *diag)
{
	struct bucket_news news = {0};
	ssize_t got = recv(remote->sock, &news, sizeof(news), MSG_DONTWAIT);

	if (got < 0 && errno == ECONNRESET) /* before it read us: it may have said why */
		got = recv(remote->sock, &news, sizeof(news), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		remote->wake_ns = base_now_ns() + REMOTE_LOOK_NS;
		return remote->state == REMOTE_READY ? 0 : REMOTE_AGAIN;
	}
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return remote_lose(remote, diag);
	if (got < 0)
		return error_of_errno(diag, -errno, remote->folder);
	if (got != sizeof(news) || news.magic != BUCKET_MAGIC)
		return diag_fail(diag, OA_E_DATASET,
				 "%s/" BUCKET_SOCKET
				 " says what makes no sense: is it an " REMOTE_PROGRAM
				 " of this version?",
				 remote->folder);
	return remote_hear(remote, &news, diag);
}

static int remote_step(struct remote *remote, struct diag *diag)
{
	switch (remote->state) {
	case REMOTE_IDLE:
		return remote_step_idle(remote, diag);
	case REMOTE_STARTING:
		return remote_step_starting(remote, diag);
	default:
		return remote_step_talking(remote, diag);
	}
}

/* ---- for the job ---- */

static int remote_fd(const struct remote *remote)
{
	return remote->state == REMOTE_STARTING ? remote->spawn.pid_fd : remote->sock;
}

const char *remote_describe(const struct remote *remote, char *ret, size_t size)
{
	if (!remote->url.text || remote->state == REMOTE_READY)
		return NULL;
	if (remote->state == REMOTE_LISTING)
		snprintf(ret, size, REMOTE_PROGRAM " lists %.300s, %llu objects so far",
			 remote->url.text, (unsigned long long)remote->objects);
	else
		snprintf(ret, size, REMOTE_PROGRAM " is being started for %.300s",
			 remote->url.text);
	return ret;
}

static int remote_late(const struct remote *remote, struct diag *diag)
{
	char what[512];

	return diag_fail(diag, OA_E_TIMEOUT, "the data set is not there in time: %s",
			 remote_describe(remote, what, sizeof(what)));
}

static void remote_tell(const struct remote *remote, const struct oa_options *options)
{
	char text[400];

	if (!options || !options->progress || remote->state != REMOTE_LISTING || !remote->objects)
		return;
	snprintf(text, sizeof(text), "listing %.300s", remote->url.text);
	options->progress(options->progress_arg, text, remote->objects, 0);
}

static int remote_wait(struct remote *remote, uint64_t deadline, const struct oa_options *options,
		       struct diag *diag)
{
	_cleanup_(dial_wait_end) struct dial_wait wait = {.has_begun = false};
	int r;

	dial_wait_begin(&wait);
	while ((r = remote_step(remote, diag)) != 0) {
		if (r == REMOTE_PROGRESS) {
			remote_tell(remote, options);
			continue;
		}
		if (r != REMOTE_AGAIN)
			return r;
		if (base_now_ns() >= deadline)
			return remote_late(remote, diag);
		r = dial_wait(&wait, remote_fd(remote), BASE_MIN(remote->wake_ns, deadline));
		if (r)
			return diag_fail(diag, r, "interrupted by a signal");
	}
	return 0;
}

static char *remote_absolute(const char *path)
{
	return proto_is_named(path) ? strdup(path) : base_absolute(path);
}

int remote_open(struct remote *remote, const struct dial_route *route, const char *dataset,
		uint64_t deadline, const struct oa_options *options, struct diag *diag)
{
	int r;

	if (!url_is(dataset)) {
		remote->path = remote_absolute(url_path(dataset));
		return remote->path ? 0 : error_of_errno(diag, -ENOMEM, "opening a data set");
	}
	if (url_parse(dataset, &remote->url))
		return error_of_errno(diag, -ENOMEM, "opening a URL");
	r = remote_find_folder(remote, route, diag);
	r = r ? r : remote_wait(remote, deadline, options, diag);
	return r ? r : remote_name_path(remote, diag);
}

int remote_open_alone(struct remote *remote, const char *dataset,
		      void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total),
		      void *arg, struct diag *diag)
{
	const struct oa_options options = {.progress = progress, .progress_arg = arg};
	struct dial_route route = {.is_private = true};
	char folder[DIAL_PATH - sizeof("/socket")];
	int r = private_folder(folder, sizeof(folder), diag);

	r = r ? r : private_make_folder(folder, diag);
	snprintf(route.socket, sizeof(route.socket), "%s/socket", folder);
	return r ? r : remote_open(remote, &route, dataset, UINT64_MAX, &options, diag);
}

int remote_look(struct remote *remote, struct diag *diag)
{
	int r;

	if (!remote->url.text)
		return 0;
	do
		r = remote_step(remote, diag);
	while (r == REMOTE_PROGRESS);
	return r == REMOTE_AGAIN ? 0 : r;
}
