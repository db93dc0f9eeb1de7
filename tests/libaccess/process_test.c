/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream and the process around it: forked children, threads, system calls and allocations on the
 * path of a batch, private daemons.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/libaccess/fake.h"
#include "tests/suite.h"

static const struct fake_config plain = {.n = 1000, .chunk = 20, .slots = 4};

/* ---- fork ---- */

static int child_tries(struct oa_client *client, struct oa_stream *stream, struct oa_batch *held)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(10, 1);
	struct oa_stream *other;
	struct oa_batch *batch;
	size_t size = 0;
	char *json;

	if (oa_next(stream, -1, &batch) != OA_E_FORKED ||
	    oa_state(stream, NULL, &size) != OA_E_FORKED)
		return 1;
	if (!strstr(oa_error_text(stream), "num_workers=0") || oa_fd(stream) != -EPERM)
		return 2;
	if (oa_open(client, &options, &other, &error) != OA_E_FORKED ||
	    oa_status(client, &json, &error) != OA_E_FORKED)
		return 3;
	oa_release(held);
	oa_close(stream);
	oa_close(stream);
	return 0;
}

START_TEST(children_are_told)
{
	struct oa_options options = fake_options(10, 1);
	struct oa_batch *held, *batch;
	struct oa_client *client;
	struct oa_stream *stream;
	unsigned batches = 1;
	struct fake fake;
	int status;
	pid_t pid;

	fake_start(&fake, &plain);
	client = fake_connect(&fake);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &held), 0);
	pid = fork();
	if (pid == 0)
		_exit(child_tries(client, stream, held));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	fake_check_batch(held);
	oa_release(held);
	for (; oa_next(stream, PATIENCE_MS, &batch) == 0;
	     batches++) /* the parent's pins and place are its own */
		oa_release(batch);
	ck_assert_uint_eq(batches, 100);
	ck_assert_uint_eq(atomic_load(&fake.nonsense), 0);
	oa_close(stream);
	oa_disconnect(client);
	fake_stop(&fake);
}
END_TEST

/* ---- threads ---- */

struct crew {
	struct oa_stream *stream;
	int timeout_ms;
	uint8_t seen[1000];
	pthread_mutex_t lock;
};

static void *take_all(void *argument)
{
	struct oa_batch_info info = {.size = sizeof(info)};
	struct crew *crew = argument;
	struct oa_stats stats = {.size = sizeof(stats)};
	char token[4096];
	struct oa_batch *batch;
	int r;

	while ((r = oa_next(crew->stream, crew->timeout_ms, &batch)) != OA_E_END) {
		size_t size = sizeof(token);

		if (r == OA_E_PINS) /* the others hold them */
			usleep(100);
		if (r == OA_E_PINS || (r == OA_E_TIMEOUT && crew->timeout_ms < 10))
			continue;
		if (r)
			ck_abort_msg("%s", oa_error_text(crew->stream));
		oa_batch_info(batch, &info);
		pthread_mutex_lock(&crew->lock);
		for (uint32_t i = 0; i < info.count; i++)
			crew->seen[info.ids[i]]++;
		pthread_mutex_unlock(&crew->lock);
		oa_state(crew->stream, token, &size);
		oa_stream_stats(crew->stream, &stats);
		oa_release(batch);
	}
	return NULL;
}

/* With long times and with short ones, whose ends run into the handing over of the turn. */
START_TEST(threads_share_a_stream)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(7, 1);
	struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER,
			    .timeout_ms = _i ? _i - 1 : PATIENCE_MS};
	pthread_t thread[4];
	struct fake fake;

	config.drips = true;
	fake_start(&fake, &config);
	crew.stream = fake_open(&fake, &options);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_all, &crew), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (unsigned id = 0; id < 1000; id++)
		if (crew.seen[id] != 1)
			ck_abort_msg("sample %u: %u times", id, crew.seen[id]);
	oa_close(crew.stream);
	fake_stop(&fake);
}
END_TEST

static _Atomic pid_t waiting;

static void *wait_for_ever(void *argument)
{
	struct oa_batch *batch;

	waiting = gettid();
	return (void *)(intptr_t)oa_next(argument, -1, &batch);
}

START_TEST(turns_have_an_end)
{
	struct fake_config config = plain;
	struct oa_options options = fake_options(20, 0);
	struct oa_stream *stream;
	struct oa_batch *batch;
	pthread_t thread;
	struct fake fake;
	void *result;
	int r;

	config.most_chunks = 1;
	fake_start(&fake, &config);
	stream = fake_open(&fake, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_ever, stream), 0);
	fake_wait_asleep(&waiting);
	r = oa_next(stream, 50, &(struct oa_batch *){NULL});
	ck_assert_int_eq(r, OA_E_TIMEOUT);
	ck_assert_ptr_nonnull(
	    strstr(oa_error_text(stream), "another thread is waiting in oa_next()"));
	oa_release(batch); /* while the other waits */
	oa_close(stream);
	pthread_join(thread, &result);
	ck_assert_int_eq((int)(intptr_t)result, OA_E_INVALID);
	fake_stop(&fake);
}
END_TEST

/* ---- the path of a batch ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static volatile unsigned long allocations;

#if !IS_SANITIZED
extern void *__libc_malloc(size_t size);
void *malloc(size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}
#endif

/* From now on a system call but exit ends the process. */
static void forbid_system_calls(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = BASE_ARRAY_LEN(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static bool clock_needs_the_kernel(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		forbid_system_calls();
		base_now_ns();
		syscall(SYS_exit, 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status != 0;
}

/* Takes n batches, holds all of them, gives them back. false: not got. */
static bool take_and_give(struct oa_stream *stream, unsigned n, int timeout_ms)
{
	struct oa_batch *batch[4];
	bool good = true;

	for (unsigned i = 0; i < n && good; i++)
		good = oa_next(stream, timeout_ms, &batch[i]) == 0;
	for (unsigned i = 0; i < n && good; i++)
		oa_release(batch[i]);
	return good;
}

#define NOT_READY 5

/* In a child with a daemon in the grandparent: opens, gives batches some time to be ready, takes
 * them. */
static void take_without_kernel(const char *socket, uint32_t flags, useconds_t patience_us)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_options options = fake_options(10, 0);
	struct oa_stream *stream;
	struct oa_client *client;
	unsigned long before;

	options.flags = flags;
	if (oa_connect(socket, &client, &error) || oa_open(client, &options, &stream, &error))
		_exit(3);
	for (unsigned i = 0; i < 12; i++) /* fills the pools */
		if (!take_and_give(stream, 4, PATIENCE_MS))
			_exit(4);
	if (allocations == 0) /* they are not counted: the test would prove nothing */
		_exit(7);
	usleep(patience_us); /* four chunks should be ready */
	before = allocations;
	forbid_system_calls();
	if (!take_and_give(stream, 4, 0))
		syscall(SYS_exit, NOT_READY);
	syscall(SYS_exit, allocations == before ? 0 : 6);
}

static const uint32_t ready_flags[] = {0, OA_KEEP, OA_WRITABLE};

START_TEST(ready_batches_need_no_kernel)
{
	useconds_t patience_us = 100000;
	struct fake fake;
	int status;
	pid_t pid;

	if (IS_SANITIZED || clock_needs_the_kernel())
		return;
	fake_start(&fake, &plain);
	do { /* batches that are not there yet are waited for, in the kernel: no proof */
		patience_us *= 2;
		pid = fork();
		if (pid == 0)
			take_without_kernel(fake.socket, ready_flags[_i], patience_us);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	} while (WIFEXITED(status) && WEXITSTATUS(status) == NOT_READY && patience_us < 20000000);
	ck_assert_msg(WIFEXITED(status), "a system call in oa_next() or oa_release(): signal %d",
		      WTERMSIG(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	fake_stop(&fake);
}
END_TEST

/* ---- private daemons ---- */

static char runtime[] = "/tmp/oa-runtime-XXXXXX";

/* A program that becomes a daemon: this one, started with the arguments of accessd. */
static void use_private(const char *program)
{
	ck_assert_ptr_nonnull(mkdtemp(runtime));
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	setenv("ACCESS_DAEMON", program, 1);
	unsetenv("ACCESS_SOCKET");
}

static void write_program(char *path, size_t size, const char *text)
{
	FILE *file;

	snprintf(path, size, "%s/program", runtime);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path, 0700), 0);
	setenv("ACCESS_DAEMON", path, 1);
}

static void forget_private(void)
{
	static const char *const names[] = {"oneaccess/lock", "oneaccess/socket",
					    "oneaccess/starts", "oneaccess", "program"};
	char path[128];

	for (unsigned i = 0; i < BASE_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", runtime, names[i]);
		remove(path);
	}
	remove(runtime);
}

START_TEST(the_first_job_starts_a_daemon)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client[2];
	char text[256], self[128];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *file;
	int pid;

	ck_assert_int_gt(length, 0);
	self[length] = '\0';
	use_private(self);
	ck_assert_msg(oa_connect(NULL, &client[0], &error) == 0, "%s", error.text);
	ck_assert_msg(oa_connect(NULL, &client[1], &error) == 0, "%s", error.text);
	snprintf(text, sizeof(text), "%s/oneaccess/starts", runtime);
	file = fopen(text, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_ne(fscanf(file, "%d", &pid), 1); /* one start */
	fclose(file);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left with us */
	ck_assert_int_eq(errno, ECHILD);
	oa_disconnect(client[0]);
	oa_disconnect(client[1]);
	forget_private();
}
END_TEST

START_TEST(a_daemon_that_cannot_start_is_quoted)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client;
	char path[128];

	use_private("/nonexistent/accessd");
	ck_assert_int_eq(oa_connect(NULL, &client, &error), OA_E_UNREACHABLE);
	ck_assert_ptr_nonnull(
	    strstr(error.text, "/nonexistent/accessd could not be started (No such file"));
	write_program(path, sizeof(path),
		      "#!/bin/sh\necho 'accessd: no memory: set memory=' >&2\nexit 3\n");
	ck_assert_int_eq(oa_connect(NULL, &client, &error), OA_E_UNREACHABLE);
	ck_assert_ptr_nonnull(
	    strstr(error.text, "gave up (status 3): accessd: no memory: set memory="));
	write_program(path, sizeof(path), "#!/bin/sh\nexit 0\n");
	ck_assert_int_eq(oa_connect(NULL, &client, &error), OA_E_UNREACHABLE);
	ck_assert_ptr_nonnull(strstr(error.text, "was started, but nobody answers"));
	forget_private();
}
END_TEST

START_TEST(a_folder_of_others_is_refused)
{
	struct oa_error error = {.size = sizeof(error)};
	struct oa_client *client;
	char folder[128];

	use_private("/nonexistent/accessd");
	snprintf(folder, sizeof(folder), "%s/oneaccess", runtime);
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(oa_connect(NULL, &client, &error), OA_E_PERMISSION);
	ck_assert_ptr_nonnull(strstr(error.text, "must belong to uid"));
	ck_assert_int_eq(rmdir(folder), 0);
	ck_assert_int_eq(symlink("/tmp", folder), 0);
	ck_assert_int_eq(oa_connect(NULL, &client, &error), OA_E_PERMISSION);
	ck_assert_ptr_nonnull(strstr(error.text, "not a link"));
	forget_private();
}
END_TEST

static char daemon_socket[96];

START_TEST(serve)
{
	static struct fake fake;

	fake_start_at(&fake, &plain, daemon_socket);
	alarm(4 * PATIENCE_S);
	for (;;)
		pause();
}
END_TEST

/* The fake uses Check's assertions, which need a runner around them. */
static void serve_for_ever(void)
{
	Suite *suite = suite_create("daemon");
	TCase *tcase = tcase_create("daemon");
	SRunner *runner = srunner_create(suite);

	tcase_add_test(tcase, serve);
	suite_add_tcase(suite, tcase);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	_exit(1);
}

static bool can_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

/* accessd --private --dir DIR --background, as far as libaccess sees it. */
static int be_daemon(const char *folder)
{
	char path[256];
	FILE *starts;

	snprintf(path, sizeof(path), "%s/starts", folder);
	starts = fopen(path, "ae");
	if (!starts)
		return 1;
	snprintf(daemon_socket, sizeof(daemon_socket), "%s/socket", folder);
	if (fork() == 0) {
		fprintf(starts, "%d\n", (int)getpid());
		fclose(starts);
		serve_for_ever();
	}
	for (unsigned i = 0; i < PATIENCE_MS / 5 && !can_connect(daemon_socket); i++)
		usleep(5000);
	return 0;
}

static void add(TCase *tcase)
{
	tcase_add_test(tcase, children_are_told);
	tcase_add_loop_test(tcase, threads_share_a_stream, 0, 3);
	tcase_add_test(tcase, turns_have_an_end);
	tcase_add_loop_test(tcase, ready_batches_need_no_kernel, 0, BASE_ARRAY_LEN(ready_flags));
	tcase_add_test(tcase, the_first_job_starts_a_daemon);
	tcase_add_test(tcase, a_daemon_that_cannot_start_is_quoted);
	tcase_add_test(tcase, a_folder_of_others_is_refused);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "--private") == 0)
		return be_daemon(argv[3]);
	return suite_run("process", add);
}
