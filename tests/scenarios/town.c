/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The programs are copied into the scenario's folder, because a build may lie where other users
 * cannot go. accessd changes its uid, and with it forgets that it was to die with its parent, so a guard
 * kills it when the test's process has ended, however it did. The user database is put over /etc in
 * a mount namespace of accessd's own, if the machine lets us.
 */

#include "tests/scenarios/town.h"
#include "tools/ctl_ask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/identity.h"

const struct town_user town_anna = {65201, 65201, 0};
const struct town_user town_bert = {65202, 65202, 0};
const struct town_user town_carl = {65203, 65203, TOWN_GROUP};
const struct town_user town_accessd = {65200, 65200, 0};
const struct town_user town_public = {65204, 65204, 0};

bool town_is_powerless;
const char *town_config;
uint64_t town_pace;
static int guard_fd = -1; /* the guard waits as long as it is open */
static pid_t guard;
static bool *has_database; /* shared with accessd's process, which finds out */

/* ---- can it be? ---- */

/* Outside of any test, so without assertions. */
static bool can_others_come(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setresgid(town_anna.gid, town_anna.gid, town_anna.gid) < 0 ||
		      setresuid(town_anna.uid, town_anna.uid, town_anna.uid) < 0 ||
		      access(rig_path("."), R_OK | X_OK) < 0);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

bool town_can(const char **ret_why)
{
	*ret_why = NULL;
	if (!identity_can_switch() || geteuid() != 0)
		*ret_why = "needs root, with SETUID, SETGID and KILL";
	else if (chmod(rig_path("."), 0755) < 0 || !can_others_come())
		*ret_why = "other users cannot go where TMPDIR is";
	return !*ret_why;
}

/* ---- accessd ---- */

static void copy_program(const char *folder, const char *name)
{
	char from[PATH_MAX], buffer[65536];
	const char *to = rig_path("bin/%s", name);
	int in, out;
	ssize_t n;

	snprintf(from, sizeof(from), "%s/%s", folder, name);
	in = open(from, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(in >= 0, "%s: %s", from, strerror(errno));
	unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		ck_assert_int_eq(write(out, buffer, (size_t)n), n);
	fchmod(out, 0755);
	close(in);
	close(out);
}

/* The folder of bench/pace.c's library. */
static const char *pace_folder(void)
{
	static char path[PATH_MAX];
	const char *accessd = getenv("ACCESS_DAEMON");

	snprintf(path, sizeof(path), "%.*s/../bench/.libs", (int)(strrchr(accessd, '/') - accessd),
		 accessd);
	return path;
}

static void copy_programs(void)
{
	const char *libexec = getenv("ACCESS_LIBEXEC"), *accessd = getenv("ACCESS_DAEMON");
	char folder[PATH_MAX];

	ck_assert_ptr_nonnull(libexec);
	ck_assert_ptr_nonnull(accessd);
	mkdir(rig_path("bin"), 0755);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(accessd, '/') - accessd), accessd);
	copy_program(folder, "accessd");
	copy_program(libexec, "access-reader");
	copy_program(libexec, "access-worker");
	if (town_pace)
		copy_program(pace_folder(), "pace.so");
}

bool town_can_be_slow(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("not tested: a slow disk: a sanitizer must be the first library\n");
	return false;
#else
	char path[PATH_MAX + 16];
	bool can;

	snprintf(path, sizeof(path), "%s/pace.so", pace_folder());
	can = access(path, R_OK) == 0;
	if (!can)
		printf("not tested: a slow disk: built without shared libraries\n");
	return can;
#endif
}

/* In accessd's process. */
static void slow_down(void)
{
	char pace[32];

	snprintf(pace, sizeof(pace), "%llu", (unsigned long long)town_pace);
	setenv("ACCESS_PACE", pace, 1);
	setenv("LD_PRELOAD", rig_path("bin/pace.so"), 1);
}

static bool write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	bool is_good = file && fputs(text, file) >= 0;

	if (file && fclose(file) != 0)
		is_good = false;
	return is_good && chmod(path, 0644) == 0;
}

/* In accessd's process, before the exec. */
static bool take_database(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       write_text(rig_path("passwd"),
			  "root:x:0:0::/:/bin/sh\ncarl:x:65203:65203::/:/bin/sh\n") &&
	       write_text(rig_path("group"),
			  "root:x:0:\ncarl:x:65203:\ncarls:x:65300:anna,carl\n") &&
	       mount(rig_path("passwd"), "/etc/passwd", NULL, MS_BIND, NULL) == 0 &&
	       mount(rig_path("group"), "/etc/group", NULL, MS_BIND, NULL) == 0;
}

bool town_has_database(void)
{
	return *has_database;
}

_Noreturn static void become_accessd(const char *const *args)
{
	int log = open(rig_path("accessd.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

	*has_database = take_database();
	if (town_is_powerless &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || identity_drop_switching()))
		_exit(126);
	dup2(log, 2);
	unsetenv("ACCESS_LIBEXEC");
	if (town_pace)
		slow_down();
	execv(args[0], (char *const *)(uintptr_t)args);
	_exit(127);
}

static void start_guard(void)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	guard = fork();
	if (guard == 0) {
		char byte;

		close(fds[1]);
		setpgid(0, 0);
		if (read(fds[0], &byte, 1) == 0)
			kill(rig_host.pid, SIGKILL);
		_exit(0);
	}
	close(fds[0]);
	guard_fd = fds[1];
}

static bool answers(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, rig_host.socket);
	return connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0;
}

void town_start(const char *first, ...)
{
	char program[512], cache[512], user[32], nobody[32];
	const char *args[72] = {program,        "--dir", rig_host.dir, "--set", cache,
				"--set",        user,    "--set",      nobody,  "--set",
				"cache_size=0", "--set", "chunk=16"};
	uint64_t end = base_now_ns() + PATIENCE_NS;
	unsigned n = 13;
	va_list settings;

	copy_programs();
	has_database = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(program, sizeof(program), "%s", rig_path("bin/accessd"));
	snprintf(cache, sizeof(cache), "cache_dir=%s", rig_path("cache"));
	snprintf(user, sizeof(user), "user=%u", (unsigned)town_accessd.uid);
	snprintf(nobody, sizeof(nobody), "public_user=%u", (unsigned)town_public.uid);
	snprintf(rig_host.dir, sizeof(rig_host.dir), "%s", rig_path("run-%d", (int)getpid()));
	snprintf(rig_host.socket, sizeof(rig_host.socket), "%s/socket", rig_host.dir);
	if (town_is_powerless) /* its own folder nobody else could enter */
		mkdir(rig_host.dir, 0755);
	va_start(settings, first);
	for (const char *setting = first; setting; setting = va_arg(settings, const char *)) {
		args[n++] = "--set";
		args[n++] = setting;
	}
	va_end(settings);
	if (town_config) {
		args[n++] = "--config";
		args[n++] = town_config;
	}
	rig_host.pid = fork();
	if (rig_host.pid == 0)
		become_accessd(args);
	start_guard();
	while (!answers() && base_now_ns() < end && host_is_alive(&rig_host))
		rig_sleep_ms(10);
	ck_assert_msg(answers(), "accessd does not answer: see %s", rig_path("accessd.log"));
	/* it listens before it is whole */
	ck_assert(rig_wait_status("node.clients", 0, 100000));
}

static unsigned all_below(pid_t pid, pid_t *ret, unsigned most)
{
	unsigned n = town_children(pid, ret, most), direct = n;

	for (unsigned i = 0; i < direct; i++)
		n += all_below(ret[i], ret + n, most - n);
	return n;
}

/* Ended, also where process 1, whose child it became, takes its time to ask for its status. */
static bool is_gone(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z'; /* it went while we looked */
	if (file)
		fclose(file);
	return state == 'Z' || state == 'X';
}

void town_end(void)
{
	uint64_t end = base_now_ns() + PATIENCE_NS;
	pid_t below[256];
	unsigned n = all_below(rig_host.pid, below, BASE_ARRAY_LEN(below));
	int status = -1;

	kill(rig_host.pid, SIGTERM);
	ck_assert_int_eq(waitpid(rig_host.pid, &status, 0), rig_host.pid);
	ck_assert_msg(status == 0, "accessd ended with status %#x", (unsigned)status);
	for (unsigned i = 0; i < n; i++) {
		while (!is_gone(below[i]) && base_now_ns() < end)
			rig_sleep_ms(10);
		ck_assert_msg(is_gone(below[i]), "process %d outlives accessd", (int)below[i]);
	}
	kill(guard, SIGKILL);
	waitpid(guard, NULL, 0);
	base_close(&guard_fd);
	munmap(has_database, 4096);
	rig_host.pid = 0;
}

/* ---- files ---- */

static struct {
	uid_t uid;
	gid_t gid;
	mode_t folders, files;
} giving;

static int give(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	return chown(path, giving.uid, giving.gid) < 0 ||
		       chmod(path, S_ISDIR(st->st_mode) ? giving.folders : giving.files) < 0
		   ? -1
		   : 0;
}

void town_give(const char *path, const struct town_user *owner, gid_t group, mode_t folders,
	       mode_t files)
{
	giving.uid = owner->uid;
	giving.gid = group;
	giving.folders = folders;
	giving.files = files;
	ck_assert_int_eq(nftw(path, give, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- users ---- */

pid_t town_send(const struct town_user *user, int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	if (setgroups(user->group ? 1 : 0, &user->group) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		_exit(125);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(fn(arg));
}

int town_wait(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool town_has_ended(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == pid;
}

int town_do(const struct town_user *user, int (*fn)(void *arg), void *arg)
{
	return town_wait(town_send(user, fn, arg));
}

/* ---- errands ---- */

struct town_errand *town_errand_new(const char *dataset, unsigned n, unsigned epochs)
{
	struct town_errand *errand =
	    mmap(NULL, sizeof(*errand), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(errand, MAP_FAILED);
	snprintf(errand->dataset, sizeof(errand->dataset), "%s", dataset);
	strcpy(errand->job, "errand");
	errand->n = n;
	errand->epochs = epochs;
	return errand;
}

void town_errand_free(struct town_errand *errand)
{
	munmap(errand, sizeof(*errand));
}

struct kept {
	struct oa_batch *batch[2];
	unsigned n;
};

static void hold(struct town_errand *errand, struct kept *kept, struct trainee_seen *seen)
{
	errand->holds = true;
	while (!errand->goes)
		rig_sleep_ms(5);
	for (unsigned i = 0; i < kept->n; i++) {
		errand->wrong += trainee_count_wrong(kept->batch[i], errand->n, 2);
		trainee_see(seen, kept->batch[i]);
		oa_release(kept->batch[i]);
	}
	kept->n = 0;
}

static int take_all(struct town_errand *errand, struct oa_stream *stream, struct trainee_seen *seen)
{
	struct kept kept = {.n = 0};
	struct oa_batch *batch;
	int r;

	while ((r = oa_next(stream, PATIENCE_MS, &batch)) == 0) {
		errand->batches++;
		if (!errand->holds && errand->hold) {
			kept.batch[kept.n++] = batch;
			if (kept.n == errand->hold)
				hold(errand, &kept, seen);
			continue;
		}
		errand->wrong += trainee_count_wrong(batch, errand->n, 2);
		trainee_see(seen, batch);
		if (errand->step_ms)
			rig_sleep_ms(errand->step_ms);
		oa_release(batch);
	}
	snprintf(errand->text, sizeof(errand->text), "%s", oa_error_text(stream));
	return r;
}

int town_train(void *arg)
{
	struct town_errand *errand = arg;
	struct oa_options options = trainee_options(errand->dataset, 8, errand->epochs);
	struct oa_error error = {.size = sizeof(error)};
	struct trainee_seen seen = {{0}};
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;

	options.job = errand->job;
	options.order = errand->order;
	options.timeout_ms = PATIENCE_MS;
	errand->code = oa_connect(rig_host.socket, &client, &error);
	if (!errand->code)
		errand->code = oa_open(client, &options, &stream, &error);
	if (errand->code) {
		snprintf(errand->text, sizeof(errand->text), "%s", error.text);
		return 0;
	}
	errand->code = take_all(errand, stream, &seen);
	errand->saw_all =
	    errand->code == OA_E_END && trainee_saw_all(&seen, errand->n, errand->epochs);
	oa_close(stream);
	oa_disconnect(client);
	return 0;
}

bool town_wait_holding(const struct town_errand *errand, pid_t pid)
{
	while (!errand->holds) {
		if (waitpid(pid, NULL, WNOHANG) != 0) {
			fprintf(stderr, "%s: %d %s\n", errand->dataset, errand->code, errand->text);
			return false;
		}
		rig_sleep_ms(5);
	}
	return true;
}

/* ---- the status ---- */

static int write_status(void *arg)
{
	_cleanup_free_ char *text = NULL;
	struct diag diag = {""};

	if (ctl_status(rig_host.socket, base_now_ns() + PATIENCE_NS, &text, &diag))
		return 1;
	return base_write_all(*(int *)arg, text, strlen(text)) ? 2 : 0;
}

const char *town_status_of(const struct town_user *user)
{
	static char text[1 << 20];
	int fd = memfd_create("status", MFD_CLOEXEC);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(town_do(user, write_status, &fd), 0);
	n = pread(fd, text, sizeof(text) - 1, 0);
	close(fd);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	return text;
}

static pid_t parent_of(const char *pid)
{
	char path[300];
	long parent = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%*d (%*[^)]) %*c %ld", &parent) != 1)
		parent = -1;
	if (file)
		fclose(file);
	return (pid_t)parent;
}

unsigned town_children(pid_t pid, pid_t *ret, unsigned most)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while (n < most && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    parent_of(entry->d_name) == pid)
			ret[n++] = (pid_t)atol(entry->d_name);
	closedir(dir);
	return n;
}
