/* SPDX-License-Identifier: Apache-2.0 */

/* What is around a store: file systems, full disks, other processes in it, who may open it. */

#include "tests/storage/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <lmdb.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/store_lmdb.h"
#include "storage/store_place.h"
#include "tests/suite.h"

#define LIMIT (8 << 20)
#define SAMPLES 1000
#define MANY_READERS 2000 /* more than there are slots */

static struct hold hold;

static void setup(void)
{
	hold_new(&hold, LIMIT);
}

static void teardown(void)
{
	hold_remove(&hold);
}

/* ---- file systems ---- */

static uint64_t fake_type;

static int fake_statfs(int fd, struct statfs *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->f_type = (__typeof__(ret->f_type))fake_type;
	if (fd < 0)
		errno = EBADF;
	return fd < 0 ? -1 : 0;
}

static const struct {
	uint64_t type;
	bool is_good;
	const char *name; /* in the text of a refusal */
} kinds[] = {
    {0xef53, true, NULL},        {0x58465342, true, NULL},    {0x9123683e, true, NULL},
    {0x2fc12fc1, true, NULL},    {0xf2f52010, true, NULL},    {0xca451a4e, true, NULL},
    {0x6969, false, "NFS"},      {0xff534d42, false, "CIFS"}, {0xfe534d42, false, "SMB"},
    {0x65735546, false, "FUSE"}, {0x01021997, false, "9p"},   {0x0bd00bd0, false, "Lustre"},
    {0x794c7630, false, "over"}, {0x01021994, false, "tmpf"}, {0x12345678, false, "0x12345678"},
};

START_TEST(test_file_systems)
{
	struct diag diag;

	store_place_statfs = fake_statfs;
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		int r;

		fake_type = kinds[i].type;
		hold.settings.force = false;
		r = store_open(&hold.settings, &hold.store, &diag);
		ck_assert_int_eq(r, kinds[i].is_good ? 0 : STORE_E_REFUSED);
		if (r) {
			ck_assert_ptr_nonnull(strstr(diag.text, kinds[i].name));
			ck_assert_ptr_nonnull(strstr(diag.text, "cache_force = 1"));
			hold.settings.force = true;
			hold_open(&hold);
		}
		hold_close(&hold);
	}
}
END_TEST

START_TEST(test_bad_settings)
{
	struct diag diag;

	hold.settings.limit = STORE_LIMIT_MIN - 1;
	ck_assert_int_eq(store_open(&hold.settings, &hold.store, &diag), -EINVAL);
	hold.settings.limit = STORE_LIMIT_MIN;
	hold.settings.folder_fd = -1;
	ck_assert_int_eq(store_open(&hold.settings, &hold.store, &diag), -EBADF);
	hold.settings.folder_fd = hold.fd;
	ck_assert_int_eq(mkdirat(hold.fd, "cache.mdb", 0700), 0);
	ck_assert_int_eq(store_open(&hold.settings, &hold.store, &diag), -ENOTSUP);
	ck_assert_int_eq(unlinkat(hold.fd, "cache.mdb", AT_REMOVEDIR), 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", hold.fd, "cache.mdb"), 0);
	ck_assert_int_eq(store_open(&hold.settings, &hold.store, &diag), -ENOTSUP);
	ck_assert_int_eq(unlinkat(hold.fd, "cache.mdb", 0), 0);
	hold_open(&hold);
}
END_TEST

/* ---- who opens it ---- */

static void put_some(struct store_group *group, uint64_t from, uint64_t to, size_t size)
{
	for (uint64_t i = from; i < to; i++) {
		hold_put(group, 1, i, size);
		if (i % 20 == 19)
			hold_settle(&hold); /* else the queue may be full */
	}
	hold_settle(&hold);
}

START_TEST(test_opened_twice)
{
	struct store *second;
	struct diag diag;
	pid_t child;
	int status;

	child = fork(); /* nothing is open yet */
	if (child == 0) {
		hold_open(&hold);
		kill(getpid(), SIGSTOP);
		hold_close(&hold);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(store_open(&hold.settings, &second, &diag), -EBUSY);
	ck_assert_ptr_nonnull(strstr(diag.text, "another process"));
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	hold_open(&hold);
	ck_assert_int_eq(store_open(&hold.settings, &second, &diag), -EBUSY);
}
END_TEST

/* As access-reader has it: not dumpable, another user than who made the folder, whose parent folder is
 * closed to him. */
static void use_as_reader(void)
{
	struct store_group *group;
	struct stat st;

	if (geteuid() == 0) {
		ck_assert_int_eq(setgroups(0, NULL), 0);
		ck_assert_int_eq(setresgid(65534, 65534, 65534), 0);
		ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
	}
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 0), 0);
	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, 50, 5000);
	for (uint64_t i = 0; i < 50; i++)
		ck_assert_int_eq(hold_get(group, 1, i, 5000), 0);
	ck_assert_int_eq(fstatat(hold.fd, "cache.mdb", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	ck_assert_uint_eq(st.st_uid, geteuid());
	store_group_close(group);
	hold_close(&hold);
	_exit(0);
}

START_TEST(test_as_access_reader)
{
	int status, outside = hold.fd;
	pid_t child;

	ck_assert_int_eq(fchmod(outside, 0700), 0);
	ck_assert_int_eq(mkdirat(outside, "store", 0777), 0);
	hold.fd = openat(outside, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(fchmod(hold.fd, 0777), 0);
	hold.settings.folder_fd = hold.fd;
	child = fork();
	if (child == 0)
		use_as_reader();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	unlinkat(hold.fd, "cache.mdb", 0);
	unlinkat(hold.fd, "cache.mdb-lock", 0);
	base_close(&hold.fd);
	ck_assert_int_eq(unlinkat(outside, "store", AT_REMOVEDIR), 0);
	hold.fd = outside;
}
END_TEST

/* ---- other processes in it ---- */

static char data_path[200];

/* A program of LMDB's that knows nothing of ours: holds `readers` reads open, says so, and waits. */
static void be_reader(unsigned readers, int ready_fd)
{
	MDB_env *env;
	MDB_txn *txn;

	if (mdb_env_create(&env) || mdb_env_set_maxdbs(env, 2) ||
	    mdb_env_open(env, data_path, MDB_NOSUBDIR | MDB_NOTLS | MDB_RDONLY, 0600))
		_exit(1);
	for (unsigned i = 0; i < readers; i++) {
		if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn))
			break; /* they are full */
	}
	if (write(ready_fd, "r", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

/* Forked before the store is opened in this process; starts at the first byte of *ret_go_fd. */
static pid_t start_reader(unsigned readers, int *ret_go_fd, int *ret_ready_fd)
{
	int go[2], ready[2];
	pid_t child;
	char c;

	snprintf(data_path, sizeof(data_path), "%s/cache.mdb", hold.path);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		be_reader(readers, ready[1]);
	}
	close(go[0]);
	close(ready[1]);
	*ret_go_fd = go[1];
	*ret_ready_fd = ready[0];
	return child;
}

static void let_read(int go_fd, int ready_fd)
{
	char c;

	ck_assert_int_eq((int)write(go_fd, "g", 1), 1);
	ck_assert_int_eq((int)read(ready_fd, &c, 1), 1);
	close(go_fd);
	close(ready_fd);
}

static void end_reader(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}

START_TEST(test_all_readers_slots_of_the_dead)
{
	int go_fd, ready_fd;
	const pid_t child = start_reader(MANY_READERS, &go_fd, &ready_fd);
	struct store_group *group;

	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, 10, 100);
	let_read(go_fd, ready_fd); /* all that are left */
	end_reader(child);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_int_eq(hold_get(group, 1, i, 100), 0);
	hold_settle(&hold);
	store_group_close(group);
	hold_reopen(&hold);
	ck_assert_uint_eq(hold_state(&hold).values, 10);
}
END_TEST

/* A get whose slot cannot be had is a miss, and no more. */
START_TEST(test_all_readers_slots_of_the_living)
{
	int go_fd, ready_fd;
	const pid_t child = start_reader(MANY_READERS, &go_fd, &ready_fd);
	struct store_lmdb_key key = {"k", 1};
	struct store_lmdb *db;
	uint8_t bytes[8];
	size_t size;

	ck_assert_int_eq(store_lmdb_open(data_path, LIMIT, &db), 0);
	let_read(go_fd, ready_fd);
	ck_assert_int_eq(
	    store_lmdb_get(db, STORE_LMDB_GROUPS, &key, NULL, 0, bytes, sizeof(bytes), &size),
	    -EAGAIN);
	end_reader(child);
	ck_assert_int_eq(
	    store_lmdb_get(db, STORE_LMDB_GROUPS, &key, NULL, 0, bytes, sizeof(bytes), &size),
	    STORE_LMDB_E_NONE);
	store_lmdb_close(db);
}
END_TEST

/* A reader that stays keeps every page that was free: the file stays below its limit, puts are no longer
 * taken, it is told, and when he has gone things are as before. */
START_TEST(test_long_reader)
{
	int go_fd, ready_fd;
	const pid_t child = start_reader(1, &go_fd, &ready_fd);
	const struct hash_id id = hold_id(1);
	struct store_group *group;
	struct store_state state;

	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, SAMPLES / 4, 10000);
	let_read(go_fd, ready_fd);
	for (unsigned turn = 0; turn < 6; turn++) {
		ck_assert_int_le(store_drop(hold.store, &id), 0);
		store_group_close(group);
		group = hold_group(&hold, 1, SAMPLES);
		for (uint64_t i = 0; i < SAMPLES; i += 20)
			put_some(group, i, i + 20, 10000);
	}
	state = hold_state(&hold);
	ck_assert_uint_le(state.bytes_file, LIMIT);
	ck_assert_uint_eq(state.set_aside, 0);
	ck_assert_uint_gt(state.puts_full, 0);
	ck_assert_uint_le(state.puts_full, state.puts_not_taken);
	store_group_close(group);
	hold_close(&hold); /* he is still in it */
	hold_open(&hold);
	end_reader(child);
	group = hold_group(&hold, 1, SAMPLES);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	store_group_close(group);
	group = hold_group(&hold, 1, SAMPLES);
	for (uint64_t i = 0; i < 200; i += 20)
		put_some(group, i, i + 20, 10000);
	ck_assert_uint_gt(hold_state(&hold).values, 150);
	store_group_close(group);
}
END_TEST

/* An administrator copies it meanwhile: his copy is whole, and so are we. */
/* Of the first ten values, how many have their middle in the file? */
static unsigned count_in_file(void)
{
	const size_t bytes = hold_bytes(&hold, "cache.mdb");
	const int fd = open(data_path, O_RDONLY | O_CLOEXEC);
	uint8_t *all = malloc(bytes), value[10000];
	unsigned n = 0;

	ck_assert_int_eq(pread(fd, all, bytes, 0), (ssize_t)bytes);
	for (uint64_t i = 0; i < 10; i++) {
		hold_fill(1, i, sizeof(value), value);
		n += memmem(all, bytes, value + 5000, 64) != NULL;
	}
	free(all);
	close(fd);
	return n;
}

/* What a reader of another process may read stays, and is wiped when he has gone. */
START_TEST(test_wiped_under_a_reader)
{
	int go_fd, ready_fd;
	const pid_t child = start_reader(1, &go_fd, &ready_fd);
	const struct hash_id id = hold_id(1);
	struct store_group *group;

	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, 10, 10000);
	store_group_close(group);
	let_read(go_fd, ready_fd);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	for (unsigned turn = 0; turn < 3; turn++) {
		ck_assert_int_eq(store_wipe(hold.store), -EBUSY);
		ck_assert_uint_eq(count_in_file(), 10);
	}
	end_reader(child);
	ck_assert_int_eq(store_wipe(hold.store), 0);
	ck_assert_uint_eq(count_in_file(), 0);
}
END_TEST

START_TEST(test_copied_by_another_process)
{
	char copy[200];
	struct store_group *group;
	int go[2], status;
	MDB_env *env;
	pid_t child;
	char c;

	snprintf(data_path, sizeof(data_path), "%s/cache.mdb", hold.path);
	snprintf(copy, sizeof(copy), "%s/copy", hold.path);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		if (read(go[0], &c, 1) != 1 || mdb_env_create(&env) ||
		    mdb_env_open(env, data_path, MDB_NOSUBDIR | MDB_RDONLY, 0600) ||
		    mdb_env_copy(env, copy))
			_exit(1);
		_exit(0);
	}
	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, 100, 20000);
	ck_assert_int_eq((int)write(go[1], "g", 1), 1);
	put_some(group, 100, 200, 20000);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (uint64_t i = 0; i < 200; i++)
		ck_assert_int_eq(hold_get(group, 1, i, 20000), 0);
	store_group_close(group);
	hold_close(&hold);
	ck_assert_int_eq(renameat(hold.fd, "copy", hold.fd, "cache.mdb"), 0);
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
	group = hold_group(&hold, 1, SAMPLES);
	for (uint64_t i = 0; i < 100; i++)
		ck_assert_int_eq(hold_get(group, 1, i, 20000), 0);
	store_group_close(group);
}
END_TEST

/* ---- disks ---- */

static bool is_read_only(void *arg)
{
	(void)arg;
	return hold_state(&hold).mode == STORE_READ_ONLY;
}

static uint64_t next_sample;

/* Puts until writing works again: the store tries by itself. */
static bool is_on(void *arg)
{
	hold_put(arg, 1, next_sample++ % SAMPLES, 3000);
	store_flush(hold.store);
	return hold_state(&hold).mode == STORE_ON && hold_state(&hold).puts > 20;
}

/* Writing fails while `begin` holds and `end` does not; what was there is got all the time. */
static void check_failing_disk(void (*begin)(void), void (*end)(void))
{
	struct store_group *group = hold_group(&hold, 1, SAMPLES);
	struct store_state state;

	put_some(group, 0, 20, 3000);
	begin();
	put_some(group, 20, 600, 3000);
	hold_until(is_read_only, NULL);
	state = hold_state(&hold);
	ck_assert_uint_ge(state.write_errors, 1);
	ck_assert_str_ne(state.why, "");
	ck_assert_uint_eq(state.set_aside, 0);
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(hold_get(group, 1, i, 3000), 0);
	end();
	next_sample = 600;
	hold_until(is_on, group);
	ck_assert_str_eq(hold_state(&hold).why, "");
	for (uint64_t i = 0; i < SAMPLES; i++)
		ck_assert_int_le(hold_get(group, 1, i, 3000), STORE_E_NONE);
	ck_assert_uint_eq(hold_state(&hold).set_aside + hold_state(&hold).damaged, 0);
	store_group_close(group);
	hold_reopen(&hold);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
	ck_assert_uint_gt(hold_state(&hold).values, 20);
}

static void files_are_short(void)
{
	const struct rlimit limit = {hold_bytes(&hold, "cache.mdb") + 8192, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void files_are_long(void)
{
	const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(test_write_fails)
{
	hold_open(&hold);
	check_failing_disk(files_are_short, files_are_long);
}
END_TEST

/* What cannot be dropped is there as before, for those who use it, too. */
START_TEST(test_drop_fails)
{
	const struct rlimit none = {0, RLIM_INFINITY};
	const struct hash_id id = hold_id(1);
	struct store_group *group;

	hold_open(&hold);
	group = hold_group(&hold, 1, SAMPLES);
	put_some(group, 0, 50, 3000);
	hold_settle(&hold);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	ck_assert_int_lt(store_drop(hold.store, &id), 0);
	files_are_long();
	for (uint64_t i = 0; i < 50; i++) {
		ck_assert_uint_gt(hold_table(group, i), 0);
		ck_assert_int_eq(hold_get(group, 1, i, 3000), 0);
	}
	next_sample = 100;
	hold_until(is_on, group);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	ck_assert_int_eq(hold_get(group, 1, 0, 3000), STORE_E_NONE);
	store_group_close(group);
}
END_TEST

static bool has_small_disk(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("small", hold.path, "tmpfs", 0, "size=8m") < 0)
		return false;
	base_close(&hold.fd);
	hold.fd = open(hold.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	hold.settings.folder_fd = hold.fd;
	hold.settings.limit = 64 << 20;
	return true;
}

static void leave_small_disk(void)
{
	base_close(&hold.fd);
	ck_assert_int_eq(umount2(hold.path, MNT_DETACH), 0);
	hold.fd = open(hold.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void fill_disk(void)
{
	static const uint8_t zeros[65536];
	_cleanup_close_ int fd = openat(hold.fd, "others", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
}

static void clear_disk(void)
{
	ck_assert_int_eq(unlinkat(hold.fd, "others", 0), 0);
}

START_TEST(test_full_disk)
{
	struct diag diag;

	if (!has_small_disk())
		return; /* needs root and a mount of its own; RLIMIT_FSIZE above goes the same way */
	fill_disk();    /* at the start */
	ck_assert_int_lt(store_open(&hold.settings, &hold.store, &diag), 0);
	clear_disk();
	hold_open(&hold);
	check_failing_disk(fill_disk, clear_disk);
	hold_close(&hold);
	leave_small_disk();
}
END_TEST

START_TEST(test_read_only_disk)
{
	struct diag diag;

	if (!has_small_disk())
		return;
	ck_assert_int_eq(mount(NULL, hold.path, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	ck_assert_int_eq(store_open(&hold.settings, &hold.store, &diag), -EROFS);
	ck_assert_ptr_nonnull(strstr(diag.text, "ead-only"));
	leave_small_disk();
}
END_TEST

static void add(TCase *trouble)
{
	tcase_add_checked_fixture(trouble, setup, teardown);
	tcase_add_test(trouble, test_file_systems);
	tcase_add_test(trouble, test_bad_settings);
	tcase_add_test(trouble, test_opened_twice);
	tcase_add_test(trouble, test_as_access_reader);
	tcase_add_test(trouble, test_all_readers_slots_of_the_dead);
	tcase_add_test(trouble, test_all_readers_slots_of_the_living);
	tcase_add_test(trouble, test_long_reader);
	tcase_add_test(trouble, test_wiped_under_a_reader);
	tcase_add_test(trouble, test_copied_by_another_process);
	tcase_add_test(trouble, test_write_fails);
	tcase_add_test(trouble, test_drop_fails);
	tcase_add_test(trouble, test_full_disk);
	tcase_add_test(trouble, test_read_only_disk);
}

int main(void)
{
	return suite_run("store_trouble", add);
}
