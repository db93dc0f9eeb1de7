/* SPDX-License-Identifier: Apache-2.0 */

/* What a captured worker may try, one forked child each: all of it ends the child with SIGSYS. */

#include "tests/suite.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sandbox.h"

#define EVENT_FD 4
#define READ_FD 7
#define MEMORY (UINT64_C(64) << 20)

static void *shared_page; /* MAP_SHARED, read-only: as the arena is */

static void try_open(void)
{
	open("/etc/passwd", O_RDONLY);
}
static void try_socket(void)
{
	socket(AF_UNIX, SOCK_STREAM, 0);
}
static void try_ptrace(void)
{
	ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}
static void try_vm_read(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {&byte, 1};

	process_vm_readv(1, &here, 1, &there, 1, 0);
}
static void try_vm_write(void)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {&byte, 1};

	process_vm_writev(1, &here, 1, &there, 1, 0);
}
static void try_kill(void)
{
	kill(1, 0);
}
static void try_tgkill(void)
{
	raise(SIGTERM);
}
static void try_abort(void)
{
	abort();
}
static void try_write_stderr(void)
{
	syscall(SYS_write, STDERR_FILENO, "", 0);
}
static void try_write_other(void)
{
	syscall(SYS_write, EVENT_FD + 1, "", 0);
}
static void try_read_event(void)
{
	uint64_t value;

	syscall(SYS_read, EVENT_FD, &value, sizeof(value));
}
static void try_dup(void)
{
	syscall(SYS_dup, EVENT_FD);
}
static void try_mprotect_exec(void)
{
	mprotect(shared_page, 4096, PROT_READ | PROT_EXEC);
}
static void try_mprotect_write(void)
{
	mprotect(shared_page, 4096, PROT_READ | PROT_WRITE);
}
static void try_mmap_exec(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void try_mmap_file(void)
{
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, EVENT_FD, 0);
}
static void try_mmap_shared(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}
static void try_mmap_stack(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1,
	     0);
}
static void try_punch(void)
{
	madvise(shared_page, 4096, MADV_REMOVE);
}
static void try_fork(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}
static void try_exec(void)
{
	char *const nothing[] = {NULL};

	execve("/bin/true", nothing, nothing);
}
static void try_prctl(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
static void try_limits(void)
{
	const struct rlimit limit = {0, 0};

	setrlimit(RLIMIT_DATA, &limit);
}
static void try_unshare(void)
{
	unshare(CLONE_NEWUSER);
}
static void try_memfd(void)
{
	memfd_create("x", 0);
}
static void try_sleep(void)
{
	usleep(1);
}
static void try_yield(void)
{
	sched_yield();
}
static void try_futex_lock(void)
{
	uint32_t word = 0;

	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}
static void try_futex_requeue(void)
{
	uint32_t word[2] = {0, 0};

	syscall(SYS_futex, &word[0], FUTEX_REQUEUE, 1, NULL, &word[1], 0);
}
#ifdef __x86_64__
/* The same numbers mean other calls in the 32-bit world: its door is closed, too. */
static void try_32bit(void)
{
	long rc;

	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20L) : "memory");
}
static void try_x32(void)
{
	syscall(0x40000000 + SYS_brk, 0);
}
#endif

static void (*const forbidden[])(void) = {
    try_open,       try_socket,      try_ptrace,        try_vm_read,        try_vm_write,
    try_kill,       try_tgkill,      try_abort,         try_write_stderr,   try_write_other,
    try_read_event, try_dup,         try_mprotect_exec, try_mprotect_write, try_mmap_exec,
    try_mmap_file,  try_mmap_shared, try_mmap_stack,    try_punch,          try_fork,
    try_exec,       try_prctl,       try_limits,        try_unshare,        try_memfd,
    try_sleep,      try_yield,       try_futex_lock,    try_futex_requeue,
#ifdef __x86_64__
    try_32bit,      try_x32,
#endif
};

/* Runs what() in a sandboxed child and returns its wait status. */
static int in_sandbox(void (*what)(void))
{
	const struct sandbox_limits limits = {.memory = MEMORY, .event_fd = EVENT_FD};
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (dup2(eventfd(0, EFD_NONBLOCK), EVENT_FD) < 0 || sandbox_enter(&limits) < 0)
			_exit(99);
		what();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

START_TEST(test_forbidden)
{
	int status;

	if (!sandbox_is_strict())
		return;
	shared_page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(shared_page != MAP_FAILED);
	status = in_sandbox(forbidden[_i]);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "call %d: status 0x%x", _i,
		      (unsigned)status);
}
END_TEST

static void need(bool is_so)
{
	if (!is_so)
		_exit(1);
}

static void do_work(void)
{
	const uint64_t one = 1;
	struct timespec now;
	uint32_t word = 0;
	char *memory = malloc(MEMORY / 2);

	need(memory != NULL);
	memset(memory, 1, MEMORY / 2);
	memory = realloc(memory, MEMORY / 4);
	need(memory != NULL);
	free(memory);
	need(write(EVENT_FD, &one, sizeof(one)) == sizeof(one));
	need(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	need(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	need(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0);
}

static void do_hog(void)
{
	uint64_t had = 0;

	for (void *volatile more; (more = malloc(1 << 20)) != NULL;)
		had += 1 << 20;
	need(had > MEMORY / 2 && had <= MEMORY);
}

START_TEST(test_allowed)
{
	static void (*const allowed[])(void) = {do_work, do_hog};
	int status;

	if (!sandbox_is_strict())
		return;
	for (size_t i = 0; i < BASE_ARRAY_LEN(allowed); i++) {
		status = in_sandbox(allowed[i]);
		ck_assert_msg(status == 0, "%zu: status 0x%x", i, (unsigned)status);
	}
}
END_TEST

static int use_stack(unsigned depth)
{
	volatile char frame[64 << 10];

	frame[0] = (char)depth;
	return depth == 0 ? frame[0] : use_stack(depth - 1) + frame[0];
}

static void do_dig(void)
{
	use_stack(1024); /* 64 MiB */
}

/* An indexer's file: any place of it, by pread() alone, and no other file. */
static int reading(ssize_t (*look)(int fd, void *to, size_t bytes))
{
	const struct sandbox_limits limits = {
	    .memory = MEMORY, .event_fd = EVENT_FD, .reads = true, .read_fd = READ_FD};
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		char bytes[4];

		if (dup2(eventfd(0, EFD_NONBLOCK), EVENT_FD) < 0 ||
		    dup2(open("/proc/self/exe", O_RDONLY), READ_FD) < 0 ||
		    sandbox_enter(&limits) < 0)
			_exit(99);
		_exit(look(READ_FD, bytes, 4) == 4 && memcmp(bytes, "\177ELF", 4) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static ssize_t look_by_pread(int fd, void *to, size_t bytes)
{
	return pread(fd, to, bytes, 0);
}

static ssize_t look_elsewhere(int fd, void *to, size_t bytes)
{
	return pread(fd + 1, to, bytes, 0);
}

START_TEST(test_reads_one_file)
{
	static ssize_t (*const killed[])(int, void *, size_t) = {read, look_elsewhere};

	if (!sandbox_is_strict())
		return;
	ck_assert_int_eq(reading(look_by_pread), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(killed); i++) {
		const int status = reading(killed[i]);

		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%zu: 0x%x", i,
			      (unsigned)status);
	}
}
END_TEST

/* RLIMIT_DATA does not count the stack, and who starts accessd may have unlimited it. */
START_TEST(test_stack_is_limited)
{
	struct rlimit limit;
	int status;

	if (!sandbox_is_strict())
		return;
	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
	status = in_sandbox(do_dig);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status 0x%x",
		      (unsigned)status);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_forbidden, 0, BASE_ARRAY_LEN(forbidden));
	tcase_add_test(tcase, test_allowed);
	tcase_add_test(tcase, test_reads_one_file);
	tcase_add_test(tcase, test_stack_is_limited);
}

int main(void)
{
	return suite_run("sandbox", add_tests);
}
