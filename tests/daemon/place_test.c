/* SPDX-License-Identifier: Apache-2.0 */

/* The place of an accessd: whose folder it takes, that it is alone there, how it comes and goes. */

#include "daemon/place.h"
#include "storage/store_place.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64], folder[128];
static struct param param;
static struct place place;
static struct diag diag;

static void setup(void)
{
	strcpy(root, "/tmp/access-place-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/node", root);
	param_init(&param);
	snprintf(param.cache_dir, sizeof(param.cache_dir), "%s/cache", root);
	umask(077);
	diag.text[0] = '\0';
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int take(struct place *ret)
{
	return place_open(ret, &param, true, folder, -1, &diag);
}

/* Refused, with this text after the folder's name. */
static void expect_refusal(const char *before, const char *after)
{
	char expected[1024];

	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	snprintf(expected, sizeof(expected), "%s%s%s", before, folder, after);
	ck_assert_str_eq(diag.text, expected);
	ck_assert_int_eq(place.listen_fd, -1);
}

static bool can_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	ck_assert_int_eq(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

static mode_t mode_when_bound;
int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	int r = __real_bind(fd, address, size);

	mode_when_bound = mode_of(((const struct sockaddr_un *)address)->sun_path);
	return r;
}

/* There is no moment in which a job is told that it may not connect, which it would believe. */
START_TEST(a_socket_has_its_mode_at_once)
{
	const bool is_private = _i;

	ck_assert_int_eq(place_open(&place, &param, is_private, folder, -1, &diag), 0);
	ck_assert_uint_eq(mode_when_bound, is_private ? 0600 : 0666);
	ck_assert_uint_eq(mode_of(place.socket), mode_when_bound);
	ck_assert_uint_eq(umask(077),
			  077); /* files that come later have the modes that they should have */
	place_close(&place);
}
END_TEST

START_TEST(a_new_place)
{
	char pid[32], expected[32], path[160];
	ssize_t n;

	ck_assert_msg(take(&place) == 0, "%s", diag.text);
	ck_assert_str_eq(place.folder, folder);
	ck_assert_uint_eq(mode_of(folder), 0700);
	ck_assert_uint_eq(mode_of(place.socket), 0600);
	ck_assert_uint_eq(mode_of(place.indexes), 0700);
	ck_assert(can_connect(place.socket));
	n = pread(place.pid_fd, pid, sizeof(pid) - 1, 0);
	pid[BASE_MAX(n, 0)] = '\0';
	snprintf(expected, sizeof(expected), "%ld\n", (long)getpid());
	ck_assert_str_eq(pid, expected);
	place_close(&place);
	ck_assert_int_eq(access(place.socket, F_OK), -1);
	snprintf(path, sizeof(path), "%s/accessd.pid", folder);
	ck_assert_int_eq(access(path, F_OK), 0); /* locks stay */
	place_close(&place);                     /* twice is fine */
	ck_assert_int_eq(take(&place), 0);
	place_close(&place);
}
END_TEST

START_TEST(a_folder_that_others_may_enter)
{
	char text[256];

	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(chmod(folder, 0750), 0);
	snprintf(text, sizeof(text),
		 " must be a folder of uid %u with mode 0700 (it has uid %u, mode 0750): mend or "
		 "remove it, or name another (--dir, XDG_RUNTIME_DIR)",
		 (unsigned)geteuid(), (unsigned)geteuid());
	expect_refusal("", text);
	ck_assert_int_eq(chmod(folder, 0701), 0);
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	ck_assert_int_eq(chmod(folder, 0700), 0);
	ck_assert_int_eq(take(&place), 0);
	place_close(&place);
}
END_TEST

START_TEST(a_folder_of_somebody_else)
{
	if (geteuid() != 0) {
		printf("not tested, a_folder_of_somebody_else: only root can give it away\n");
		return;
	}
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(chown(folder, 65534, 65534), 0);
	expect_refusal("",
		       " must be a folder of uid 0 with mode 0700 (it has uid 65534, mode 0700): "
		       "mend or remove it, or name another (--dir, XDG_RUNTIME_DIR)");
}
END_TEST

START_TEST(a_link_to_a_folder_of_ours)
{
	char target[160];

	snprintf(target, sizeof(target), "%s/target", root);
	ck_assert_int_eq(mkdir(target, 0700), 0);
	ck_assert_int_eq(symlink(target, folder), 0);
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "must be a folder of uid"));
	ck_assert_int_eq(unlink(folder), 0);
	ck_assert_int_eq(close(open(folder, O_CREAT | O_WRONLY, 0600)), 0); /* a file */
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
}
END_TEST

/* Locks that somebody linked elsewhere are not followed. */
START_TEST(a_link_in_the_lock_s_place)
{
	char lock[160], target[160];

	snprintf(target, sizeof(target), "%s/precious", root);
	snprintf(lock, sizeof(lock), "%s/accessd.pid", folder);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(symlink(target, lock), 0);
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot write"));
	ck_assert_int_eq(access(target, F_OK), -1);
}
END_TEST

static void expect_good_end(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(the_second_is_told_who_is_first)
{
	char expected[2048];
	pid_t second;

	ck_assert_int_eq(take(&place), 0);
	snprintf(expected, sizeof(expected),
		 "accessd (pid %ld) already serves %s: stop it first, or use another folder",
		 (long)getpid(), place.socket);
	for (int i = 0; i < 2; i++) { /* asking does not take it away from the first */
		second = fork();
		if (second == 0) {
			int r = take(&place);

			fprintf(stderr, "%s\n", diag.text);
			place_close(&place);
			_exit(r != PLACE_E_REFUSED || strcmp(diag.text, expected) != 0);
		}
		expect_good_end(second);
	}
	ck_assert(can_connect(place.socket)); /* the first one's socket was left alone */
	place_close(&place);
}
END_TEST

/* What kill -9 leaves: a socket that nobody listens on, a pid file that nobody locks. */
START_TEST(a_stale_socket_is_replaced)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(take(&place) ? 1 : 0);
	expect_good_end(pid);
	snprintf(place.socket, sizeof(place.socket), "%s/socket", folder);
	ck_assert_int_eq(access(place.socket, F_OK), 0);
	ck_assert(!can_connect(place.socket));
	ck_assert_msg(take(&place) == 0, "%s", diag.text);
	ck_assert(can_connect(place.socket));
	place_close(&place);
}
END_TEST

/* Takes the place, forks a child that has a copy of all it has, and is killed. The child ends when
 * nobody has the other end of `life` any more. */
static void be_killed_beside_a_child(int life[2])
{
	char byte;

	if (take(&place))
		_exit(1);
	close(life[1]);
	if (fork() == 0) {
		while (read(life[0], &byte, 1) < 0 && errno == EINTR)
			continue;
		_exit(0);
	}
	raise(SIGKILL);
}

/* So it is when accessd is killed while it forks: the place is free, the child is still there. */
START_TEST(a_child_of_the_dead_holds_nothing)
{
	int life[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(life), 0);
	pid = fork();
	if (pid == 0)
		be_killed_beside_a_child(life);
	close(life[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	snprintf(place.socket, sizeof(place.socket), "%s/socket", folder);
	ck_assert(can_connect(place.socket)); /* to the child, who will not answer */
	ck_assert_msg(take(&place) == 0, "%s", diag.text);
	ck_assert(can_connect(place.socket));
	place_close(&place);
	close(life[1]);
}
END_TEST

START_TEST(a_folder_in_the_socket_s_place)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/socket", folder);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot replace the stale socket"));
}
END_TEST

static int write_index(const char *name)
{
	char path[PARAM_TEXT_MAX + 256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", place.indexes, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static bool has_index(const char *name)
{
	char path[PARAM_TEXT_MAX + 256];

	snprintf(path, sizeof(path), "%s/%s", place.indexes, name);
	return access(path, F_OK) == 0;
}

/* What a killed accessd left half written goes; what another one writes, or has stored, stays. */
START_TEST(half_an_index_is_removed)
{
	int written;

	ck_assert_int_eq(take(&place), 0);
	close(write_index("tmp-7-1"));
	close(write_index("tmp-8"));
	close(write_index("0123abcd"));
	written = write_index("tmp-9-1");
	ck_assert_int_eq(flock(written, LOCK_EX), 0);
	place_close(&place);
	ck_assert_int_eq(take(&place), 0);
	ck_assert(!has_index("tmp-7-1"));
	ck_assert(!has_index("tmp-8"));
	ck_assert(has_index("tmp-9-1"));
	ck_assert(has_index("0123abcd"));
	close(written);
	place_close(&place);
}
END_TEST

START_TEST(paths_have_a_length)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	for (size_t n = most - 1; n <= most + 2; n++) {
		size_t used = (size_t)snprintf(param.socket, sizeof(param.socket), "%s/", root);

		memset(param.socket + used, 's', n - used);
		param.socket[n] = '\0';
		if (n <= most) {
			ck_assert_msg(take(&place) == 0, "%s", diag.text);
			ck_assert(can_connect(place.socket));
		} else {
			ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
			ck_assert_ptr_nonnull(
			    strstr(diag.text, "is longer than 107 bytes: choose a shorter folder"));
		}
		place_close(&place);
	}
	memset(param.socket, 's', sizeof(param.socket) - 1);
	ck_assert_int_eq(take(&place), PLACE_E_REFUSED);
	place_close(&place);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made)
{
	ck_assert_int_eq(close(open(folder, O_CREAT | O_WRONLY, 0600)), 0);
	strcat(folder, "/below");
	expect_refusal("cannot make the folder ", ": Not a directory");
}
END_TEST

/* Of one that can, nothing is said. */
START_TEST(a_cache_that_cannot_be_written_to_is_told_of)
{
	const int saved = dup(STDERR_FILENO);
	char path[128], text[4096] = "";
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", root);
	log = fopen(path, "w+e");
	ck_assert_ptr_nonnull(log);
	if (_i)
		ck_assert_int_eq(mknod(param.cache_dir, S_IFREG | 0600, 0), 0);
	ck_assert_int_ge(dup2(fileno(log), STDERR_FILENO), 0);
	ck_assert_int_eq(take(&place), 0);
	place_close(&place);
	ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
	rewind(log);
	ck_assert_uint_lt(fread(text, 1, sizeof(text) - 1, log), sizeof(text) - 1);
	ck_assert_int_eq(strstr(text, "indexes are not stored") != NULL, _i == 1);
	ck_assert_int_eq(strstr(text, "Not a directory") != NULL, _i == 1);
	ck_assert_int_eq(strstr(text, "nothing is kept on the disk") != NULL, _i == 1);
	fclose(log);
	close(saved);
}
END_TEST

/* The idle exit gives way to whoever is electing, and goes when nobody is. */
START_TEST(leaving_waits_for_the_election)
{
	char path[160];
	int lock;

	ck_assert_int_eq(take(&place), 0);
	snprintf(path, sizeof(path), "%s/lock", folder);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(lock, 0);
	ck_assert_int_eq(flock(lock, LOCK_EX), 0);
	ck_assert(!place_try_leave(&place));
	ck_assert(can_connect(place.socket));
	ck_assert_int_eq(flock(lock, LOCK_UN), 0);
	ck_assert(place_try_leave(&place));
	ck_assert_int_eq(access(place.socket, F_OK), -1);
	ck_assert_int_eq(flock(lock, LOCK_EX | LOCK_NB), 0); /* and lets go of it */
	close(lock);
	ck_assert_int_eq(take(&place), 0);
	place_close(&place);
}
END_TEST

/* A system's accessd makes it for all users, a private one's user makes it. */
START_TEST(a_folder_for_users_of_object_stores)
{
	char path[192];
	struct stat status;

	snprintf(path, sizeof(path), "%s/buckets", folder);
	ck_assert_int_eq(take(&place), 0);
	ck_assert_str_eq(place.buckets, path);
	ck_assert_int_eq(access(path, F_OK), -1);
	place_close(&place);
	for (unsigned i = 0; i < 2; i++) { /* it is there already, too */
		ck_assert_int_eq(place_open(&place, &param, false, folder, -1, &diag), 0);
		ck_assert_str_eq(place.buckets, path);
		ck_assert_int_eq(lstat(path, &status), 0);
		ck_assert_uint_eq(status.st_mode, S_IFDIR | 01777);
		place_close(&place);
	}
	ck_assert_int_eq(rmdir(path) || symlink("/tmp", path), 0);
	ck_assert_int_eq(place_open(&place, &param, false, folder, -1, &diag), 0);
	ck_assert_str_eq(place.buckets, "");
	place_close(&place);
	strcpy(param.bucket_dir, "/elsewhere");
	ck_assert_int_eq(place_open(&place, &param, false, folder, -1, &diag), 0);
	ck_assert_str_eq(place.buckets, "/elsewhere");
	place_close(&place);
}
END_TEST

START_TEST(the_usual_folder)
{
	char path[256], expected[64];

	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	place_private_folder(path, sizeof(path));
	ck_assert_str_eq(path, "/run/user/7/oneaccess");
	snprintf(expected, sizeof(expected), "/tmp/oneaccess-%u", (unsigned)geteuid());
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	place_private_folder(path, sizeof(path));
	ck_assert_str_eq(path, expected);
	unsetenv("XDG_RUNTIME_DIR");
	place_private_folder(path, sizeof(path));
	ck_assert_str_eq(path, expected);
}
END_TEST

/* ---- homes on a network ---- */

static char disk[128]; /* all below is on a disk of this machine, all else is NFS */

static int statfs_of_a_cluster(int fd, struct statfs *ret)
{
	char link[64], path[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[BASE_MAX(n, 0)] = '\0';
	memset(ret, 0, sizeof(*ret));
	ret->f_type = strncmp(path, disk, strlen(disk)) == 0 ? 0xef53 : 0x6969;
	return n < 0 ? -1 : 0;
}

/* Where what is kept goes, with a home and a TMPDIR of these names below the root. */
static const char *stores_with(const char *home, const char *temporary)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", root, home);
	setenv("XDG_CACHE_HOME", path, 1);
	snprintf(path, sizeof(path), "%s/%s", root, temporary);
	mkdir(path, 0777);
	setenv("TMPDIR", path, 1);
	param.cache_dir[0] = '\0';
	store_place_statfs = statfs_of_a_cluster;
	ck_assert_msg(take(&place) == 0, "%s", diag.text);
	place_close(&place);
	ck_assert_int_eq(strncmp(place.stores, root, strlen(root)), 0);
	return place.stores + strlen(root);
}

START_TEST(a_home_on_a_network)
{
	char moved[64], path[160];

	snprintf(disk, sizeof(disk), "%s/disk", root);
	ck_assert_str_eq(stores_with("home", "other"), "/home/oneaccess/store");
	snprintf(path, sizeof(path), "%s/other/oneaccess-%u", root, (unsigned)geteuid());
	ck_assert_int_eq(access(path, F_OK), -1); /* nothing is left where it cannot be */
	snprintf(moved, sizeof(moved), "/disk/oneaccess-%u/store", (unsigned)geteuid());
	ck_assert_str_eq(stores_with("home", "disk"), moved);
	ck_assert_uint_eq(mode_of(place.stores), 0700);
	ck_assert_int_eq(strncmp(place.indexes + strlen(root), "/home/", 6), 0);
	param.cache_force = 1;
	ck_assert_str_eq(stores_with("home", "disk"), "/home/oneaccess/store");
	param.cache_force = 0;
	ck_assert_str_eq(stores_with("disk/home", "disk"), "/disk/home/oneaccess/store");
}
END_TEST

/* A folder that others may enter is not taken for it. */
START_TEST(no_folder_of_one_s_own)
{
	char path[160];

	snprintf(disk, sizeof(disk), "%s/disk", root);
	ck_assert_int_eq(mkdir(disk, 0777), 0);
	snprintf(path, sizeof(path), "%s/oneaccess-%u", disk, (unsigned)geteuid());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(chmod(path, 0777), 0);
	ck_assert_str_eq(stores_with("home", "disk"), "/home/oneaccess/store");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_new_place);
	tcase_add_test(tcase, a_folder_that_others_may_enter);
	tcase_add_test(tcase, a_folder_of_somebody_else);
	tcase_add_test(tcase, a_link_to_a_folder_of_ours);
	tcase_add_test(tcase, a_link_in_the_lock_s_place);
	tcase_add_test(tcase, the_second_is_told_who_is_first);
	tcase_add_test(tcase, a_stale_socket_is_replaced);
	tcase_add_loop_test(tcase, a_socket_has_its_mode_at_once, 0, 2);
	tcase_add_test(tcase, a_child_of_the_dead_holds_nothing);
	tcase_add_test(tcase, a_folder_in_the_socket_s_place);
	tcase_add_test(tcase, half_an_index_is_removed);
	tcase_add_test(tcase, paths_have_a_length);
	tcase_add_test(tcase, a_folder_that_cannot_be_made);
	tcase_add_loop_test(tcase, a_cache_that_cannot_be_written_to_is_told_of, 0, 2);
	tcase_add_test(tcase, leaving_waits_for_the_election);
	tcase_add_test(tcase, a_folder_for_users_of_object_stores);
	tcase_add_test(tcase, the_usual_folder);
	tcase_add_test(tcase, a_home_on_a_network);
	tcase_add_test(tcase, no_folder_of_one_s_own);
}

int main(void)
{
	return suite_run("place", add);
}
