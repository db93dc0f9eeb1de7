/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded into access-reader by reader_test: a storage that misbehaves. FAULTS names what happens
 * to every pread() of a file:
 *	short	at most 1000 bytes at a time
 *	eintr	every second call is interrupted
 *	eio	the first call on each file fails with EIO, later ones work
 *	estale	the same with ESTALE
 *	server	from the third one on each file on, all do so by the descriptor of that one
 *	dead	all calls fail with EIO
 *	slow	each takes 20 ms
 *	hang	files of the size HANG_BYTES never answer, or not before the file HELD is gone
 *	late	the first one of more than LATE_BYTES ends when the file HELD is gone
 * to the kernel's AIO:
 *	noaio	there is none: io_setup() fails with EPERM
 *	fewaio	others have all of it: io_setup() fails with EAGAIN
 *	held	the first of the first batch ends when the file HELD is gone
 *	cut	all of each batch come short, with "few" the first of it
 * and to every open():
 *	stuck	of a path with "stuck" in it never answers; it makes a folder of that path first, by which
 *		is seen that somebody hangs
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HANG_BYTES 4321
#define LATE_BYTES 30000
#define CUT_BYTES 512

#define FAULTS_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))

ssize_t faults_pread(int fd, void *buffer, size_t size, off_t offset) FAULTS_REPLACES("pread");
ssize_t faults_pread64(int fd, void *buffer, size_t size, off_t offset) FAULTS_REPLACES("pread64");

static ssize_t (*real_pread)(int, void *, size_t, off_t);
static long (*real_syscall)(long, ...);

/* Before the reader has threads; sooner where another library's constructor opens a file. */
__attribute__((constructor)) static void faults_find_real(void)
{
	*(void **)&real_pread = dlsym(RTLD_NEXT, "pread64");
	*(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
}

static long pass_on(long number, const long args[6])
{
	if (!real_syscall)
		faults_find_real();
	return real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

static bool first_on(int fd)
{
	static atomic_bool seen[65536]; /* by inode */
	struct stat st;

	return fstat(fd, &st) == 0 && !atomic_exchange(&seen[st.st_ino % 65536], true);
}

/* What was opened keeps it as its offset, which pread() does not heed. */
static bool is_forgotten(int fd)
{
	static atomic_uint calls[65536];
	const off_t mark = 77777;
	struct stat st;

	if (lseek(fd, 0, SEEK_CUR) == mark)
		return true;
	return fstat(fd, &st) == 0 && atomic_fetch_add(&calls[st.st_ino % 65536], 1) == 2 &&
	       lseek(fd, mark, SEEK_SET) == mark;
}

static void wait_for_held(void)
{
	while (access(getenv("HELD"), F_OK) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static ssize_t pread_badly(int fd, void *buffer, size_t size, off_t offset)
{
	static atomic_uint calls;
	static atomic_bool was_late;
	const char *faults = getenv("FAULTS");
	const unsigned call = atomic_fetch_add(&calls, 1);
	struct stat st;

	if (!faults)
		faults = "";
	if (strstr(faults, "dead"))
		return fail(EIO);
	if (strstr(faults, "eintr") && call % 2)
		return fail(EINTR);
	if (strstr(faults, "eio") && first_on(fd))
		return fail(EIO);
	if (strstr(faults, "estale") && first_on(fd))
		return fail(ESTALE);
	if (strstr(faults, "server") && is_forgotten(fd))
		return fail(ESTALE);
	if (strstr(faults, "slow"))
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	if (strstr(faults, "hang") && fstat(fd, &st) == 0 && st.st_size == HANG_BYTES) {
		while (!getenv("HELD"))
			pause();
		wait_for_held();
	}
	if (strstr(faults, "late") && size > LATE_BYTES && !atomic_exchange(&was_late, true))
		wait_for_held();
	if (strstr(faults, "short") && size > 1000)
		size = 1000;
	return real_pread(fd, buffer, size, offset);
}

ssize_t faults_pread(int fd, void *buffer, size_t size, off_t offset)
{
	return pread_badly(fd, buffer, size, offset);
}

ssize_t faults_pread64(int fd, void *buffer, size_t size, off_t offset)
{
	return pread_badly(fd, buffer, size, offset);
}

long faults_syscall(long number, long a, long b, long c, long d, long e, long f)
    FAULTS_REPLACES("syscall");

/* One event, the first, is kept back. */
static long get_events_but_held(const long args[6])
{
	static atomic_bool was_held;
	static _Thread_local struct io_event held;
	static _Thread_local bool has_held;
	struct io_event *event = (struct io_event *)(uintptr_t)args[3];
	struct timespec *step = (struct timespec *)(uintptr_t)args[4];
	long n = args[1] - has_held, kept = 0;

	if (has_held && access(getenv("HELD"), F_OK) < 0) {
		event[0] = held;
		has_held = false;
		return 1;
	}
	if (n == 0) {
		nanosleep(step, NULL);
		return 0;
	}
	n = real_syscall(SYS_io_getevents, args[0], n, n, event, step, 0L);
	for (long i = 0; i < n; i++) {
		if (event[i].data == 0 && !atomic_exchange(&was_held, true)) {
			held = event[i];
			has_held = true;
		} else {
			event[kept++] = event[i];
		}
	}
	return n < 0 ? n : kept;
}

static long get_events_cut(const long args[6], bool is_few)
{
	struct io_event *event = (struct io_event *)(uintptr_t)args[3];
	const long n =
	    real_syscall(SYS_io_getevents, args[0], args[1], args[2], event, args[4], 0L);

	for (long i = 0; i < n; i++)
		if (event[i].data == 0 || !is_few)
			event[i].res = CUT_BYTES;
	return n;
}

/* With all the arguments that there may be, as libc's: which were given nobody knows. */
long faults_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	const char *faults = getenv("FAULTS");
	const long args[6] = {a, b, c, d, e, f};

	if (number == SYS_io_setup && faults && strstr(faults, "noaio"))
		return fail(EPERM);
	if (number == SYS_io_setup && faults && strstr(faults, "fewaio"))
		return fail(EAGAIN);
	if (number == SYS_io_getevents && faults && strstr(faults, "held"))
		return get_events_but_held(args);
	if (number == SYS_io_getevents && faults && strstr(faults, "cut"))
		return get_events_cut(args, strstr(faults, "few") != NULL);
	return pass_on(number, args);
}

int faults_open(const char *path, int flags, ...) FAULTS_REPLACES("open");
int faults_open64(const char *path, int flags, ...) FAULTS_REPLACES("open64");

static int open_badly(const char *path, int flags, unsigned mode)
{
	const char *faults = getenv("FAULTS");

	if (faults && strstr(faults, "stuck") && strstr(path, "stuck")) {
		mkdir(path, 0700);
		for (;;)
			pause();
	}
	return (int)pass_on(SYS_openat,
			    (const long[6]){AT_FDCWD, (long)(uintptr_t)path, flags, (long)mode});
}

int faults_open(const char *path, int flags, ...)
{
	va_list args;
	unsigned mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
	va_end(args);
	return open_badly(path, flags, mode);
}

int faults_open64(const char *path, int flags, ...)
{
	va_list args;
	unsigned mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, unsigned) : 0;
	va_end(args);
	return open_badly(path, flags, mode);
}
