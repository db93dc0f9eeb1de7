/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs cannot write: every route that we know is tried on the slots, the slot table and the inbox, from
 * the descriptor that a job gets, by a process of the maker's own uid and (when the test runs as
 * root) of another one. Nothing may succeed, no byte may change, and the maker's own mapping must
 * go on writing all the while.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "tests/shmring/suite.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { NOBODY = 65534, MARK = 0xa5 };

/* ---- the routes: each returns true if it worked ---- */

struct prey {
	int fd;
	uint64_t bytes;
	uint8_t *map; /* read-only, as a job maps it */
};

static bool by_mmap(const struct prey *prey, int fd)
{
	void *map = mmap(NULL, prey->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map != MAP_FAILED;
}
static bool route_mmap(const struct prey *prey)
{
	return by_mmap(prey, prey->fd);
}
static bool route_mmap_write_only(const struct prey *prey)
{
	return mmap(NULL, prey->bytes, PROT_WRITE, MAP_SHARED, prey->fd, 0) != MAP_FAILED;
}
static bool route_mprotect(const struct prey *prey)
{
	return mprotect(prey->map, prey->bytes, PROT_READ | PROT_WRITE) == 0;
}
static bool route_mprotect_exec(const struct prey *prey)
{
	return mprotect(prey->map, prey->bytes, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}
static bool route_write(const struct prey *prey)
{
	return write(prey->fd, "x", 1) > 0;
}
static bool route_pwrite(const struct prey *prey)
{
	return pwrite(prey->fd, "x", 1, 64) > 0;
}
static bool route_pwritev(const struct prey *prey)
{
	struct iovec iov = {.iov_base = "x", .iov_len = 1};

	return pwritev(prey->fd, &iov, 1, 0) > 0;
}
static bool route_append(const struct prey *prey)
{
	return pwrite(prey->fd, "x", 1, (off_t)prey->bytes) > 0;
}
static bool route_shrink(const struct prey *prey)
{
	return ftruncate(prey->fd, 0) == 0;
}
static bool route_grow(const struct prey *prey)
{
	return ftruncate(prey->fd, (off_t)prey->bytes + 4096) == 0;
}
static bool by_fallocate(const struct prey *prey, int mode)
{
	return fallocate(prey->fd, mode, 0, (off_t)prey->bytes) == 0;
}
static bool route_punch(const struct prey *prey)
{
	return by_fallocate(prey, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}
static bool route_zero(const struct prey *prey)
{
	return by_fallocate(prey, FALLOC_FL_ZERO_RANGE);
}
static bool route_collapse(const struct prey *prey)
{
	return by_fallocate(prey, FALLOC_FL_COLLAPSE_RANGE);
}
static bool route_allocate_beyond(const struct prey *prey)
{
	return fallocate(prey->fd, 0, (off_t)prey->bytes, 4096) == 0;
}
static int reopened(const struct prey *prey, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", prey->fd);
	return open(path, flags | O_CLOEXEC);
}
static bool route_reopen_mmap(const struct prey *prey)
{
	return by_mmap(prey, reopened(prey, O_RDWR));
}
static bool route_reopen_write(const struct prey *prey)
{
	return write(reopened(prey, O_WRONLY), "x", 1) > 0;
}
static bool route_chmod_reopen_mmap(const struct prey *prey)
{
	if (fchmod(prey->fd, 0666) < 0)
		return false;
	return by_mmap(prey, reopened(prey, O_RDWR));
}
static bool route_reopen_truncate(const struct prey *prey)
{
	return reopened(prey, O_RDWR | O_TRUNC) >= 0;
}
static bool route_seal_write(const struct prey *prey)
{
	return fcntl(prey->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0; /* would stop the writer */
}
static bool route_madvise_remove(const struct prey *prey)
{
	return madvise(prey->map, prey->bytes, MADV_REMOVE) == 0;
}
static bool route_proc_mem(const struct prey *prey)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	return pwrite(fd, "x", 1, (off_t)(uintptr_t)prey->map) > 0;
}
static bool route_vm_writev(const struct prey *prey)
{
	struct iovec local = {.iov_base = "x", .iov_len = 1};
	struct iovec remote = {.iov_base = prey->map, .iov_len = 1};

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) > 0;
}
static bool route_read_into(const struct prey *prey)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	return read(fd, prey->map, 1) > 0;
}
static bool route_sendfile(const struct prey *prey)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return sendfile(prey->fd, fd, NULL, 16) > 0;
}
static bool route_splice(const struct prey *prey)
{
	loff_t at = 0;
	int fds[2];

	if (pipe(fds) < 0 || write(fds[1], "xxxx", 4) != 4)
		return false;
	return splice(fds[0], NULL, prey->fd, &at, 4, 0) > 0;
}
/* Pages of the memory go into a pipe; what is then written to the pipe must not land in them. */
static bool route_dirty_pipe(const struct prey *prey)
{
	loff_t at = 0;
	int fds[2];

	if (pipe(fds) < 0 || splice(prey->fd, &at, fds[1], NULL, 4, 0) != 4)
		return false;
	(void)!write(fds[1], "xxxx", 4);
	return false; /* the bytes tell */
}
/* The same by way of a mapping, as a gift to the pipe. */
static bool route_vmsplice(const struct prey *prey)
{
	struct iovec iov = {.iov_base = prey->map, .iov_len = 4096};
	int fds[2];

	if (pipe(fds) < 0 || vmsplice(fds[1], &iov, 1, SPLICE_F_GIFT) <= 0)
		return false;
	(void)!write(fds[1], "xxxx", 4);
	return false;
}
/* Out of a pipe into a mapping. */
static bool route_vmsplice_into(const struct prey *prey)
{
	struct iovec iov = {.iov_base = prey->map, .iov_len = 4};
	int fds[2];

	if (pipe(fds) < 0 || write(fds[1], "xxxx", 4) != 4)
		return false;
	return vmsplice(fds[0], &iov, 1, 0) > 0;
}
static bool route_copy_range(const struct prey *prey)
{
	loff_t from = 0, to = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return copy_file_range(fd, &from, prey->fd, &to, 16, 0) > 0;
}
static bool route_insert(const struct prey *prey)
{
	return by_fallocate(prey, FALLOC_FL_INSERT_RANGE);
}
/* A private mapping is the job's own: writing to it must change nothing of ours. */
static bool route_private(const struct prey *prey)
{
	uint8_t *map = mmap(NULL, prey->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, prey->fd, 0);

	if (map != MAP_FAILED)
		memset(map, 'x', prey->bytes);
	return false;
}
/* Nor does throwing pages away. */
static bool route_throw_away(const struct prey *prey)
{
	madvise(prey->map, prey->bytes, MADV_DONTNEED);
	madvise(prey->map, prey->bytes, MADV_PAGEOUT);
	return madvise(prey->map, prey->bytes, MADV_FREE) == 0;
}
static bool route_map_files(const struct prey *prey)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)prey->map,
		 (unsigned long)prey->map + (unsigned long)prey->bytes);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0 && (by_mmap(prey, fd) || write(fd, "x", 1) > 0);
}
static bool route_userfault(const struct prey *prey)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)prey->map, prey->bytes},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
	       ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}
static bool route_remap(const struct prey *prey)
{
	void *map = mremap(prey->map, prey->bytes, prey->bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);

	return map != MAP_FAILED && mprotect(map, prey->bytes, PROT_READ | PROT_WRITE) == 0;
}

#define ROUTE(name)                 \
	{                           \
#name, route_##name \
	}
static const struct {
	const char *name;
	bool (*try)(const struct prey *prey);
} routes[] = {
    ROUTE(mmap),          ROUTE(mmap_write_only), ROUTE(mprotect),
    ROUTE(mprotect_exec), ROUTE(write),           ROUTE(pwrite),
    ROUTE(pwritev),       ROUTE(append),          ROUTE(shrink),
    ROUTE(grow),          ROUTE(punch),           ROUTE(zero),
    ROUTE(collapse),      ROUTE(allocate_beyond), ROUTE(reopen_mmap),
    ROUTE(reopen_write),  ROUTE(reopen_truncate), ROUTE(chmod_reopen_mmap),
    ROUTE(seal_write),    ROUTE(madvise_remove),  ROUTE(proc_mem),
    ROUTE(vm_writev),     ROUTE(read_into),       ROUTE(sendfile),
    ROUTE(splice),        ROUTE(userfault),       ROUTE(remap),
    ROUTE(dirty_pipe),    ROUTE(vmsplice),        ROUTE(vmsplice_into),
    ROUTE(copy_range),    ROUTE(insert),          ROUTE(private),
    ROUTE(throw_away),    ROUTE(map_files),
};

/* ---- the prey ---- */

/* Makes a memory as accessd does; *ret_writer is its own mapping. */
struct maker {
	const char *name;
	int (*make)(uint8_t **ret_writer, uint64_t *ret_bytes);
};

static struct slot_geometry geometry(void)
{
	struct slot_geometry g = {
	    .max_slots = 4, .chunk = 8, .block = 1, .n_fields = 1, .n_samples = 10};

	g.field[0] = (struct layout_field){
	    .name = "x", .dtype = LAYOUT_U8, .where = LAYOUT_IN_SLOT, .ndim = 1, .shape = {1000}};
	ck_assert_int_eq(slot_table_plan(&g), 0);
	return g;
}

static int make_slots(uint8_t **ret_writer, uint64_t *ret_bytes)
{
	struct slot_geometry g = geometry();
	int fd;

	/* One slot is reserved only: the holes of the others are tried, too. */
	ck_assert_int_eq(slots_new(&g, &fd), 0);
	ck_assert_int_eq(slots_reserve(fd, &g, 0), 0);
	*ret_writer = mmap(NULL, g.slots_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(*ret_writer, MAP_FAILED);
	ck_assert_int_eq(slots_seal(fd), 0);
	*ret_bytes = g.slots_bytes;
	return fd;
}

static int make_table(uint8_t **ret_writer, uint64_t *ret_bytes)
{
	struct slot_geometry g = geometry();
	struct slot_table table;
	int fd;

	ck_assert_int_eq(slot_table_new(&g, &table, &fd), 0);
	*ret_writer = table.map;
	*ret_bytes = g.table_bytes;
	return fd;
}

static int make_inbox(uint8_t **ret_writer, uint64_t *ret_bytes)
{
	const struct layout_outbox *outbox;
	struct layout_inbox *inbox;
	int fd, outbox_fd;

	ck_assert_int_eq(grant_memory_new(&inbox, &fd, &outbox, &outbox_fd), 0);
	close(outbox_fd);
	*ret_writer = (uint8_t *)inbox;
	*ret_bytes = base_align_up(sizeof(*inbox), base_page_size());
	return fd;
}

static const struct maker makers[] = {
    {"slots", make_slots}, {"slot table", make_table}, {"inbox", make_inbox}};

/* ---- the hunt ---- */

static void become(uid_t uid)
{
	if (uid == getuid())
		return;
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1); /* an attacker has its own /proc/self */
}

/* In a process of its own, as a route may kill it. true: the route worked. */
static bool try_route(size_t route, const char *name, int fd, uint64_t bytes, uid_t uid)
{
	struct prey prey = {.fd = fd, .bytes = bytes};
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		become(uid);
		prey.map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (prey.map == MAP_FAILED)
			_exit(3);
		_exit(routes[route].try(&prey) ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) < 2, "%s by %s: no fair try (%d)",
		      name, routes[route].name, WEXITSTATUS(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void hunt(const struct maker *maker, uid_t attacker)
{
	uint64_t bytes;
	uint8_t *writer, *before;
	int fd = maker->make(&writer, &bytes);
	struct stat st;

	before = malloc(bytes);
	ck_assert_ptr_nonnull(before);
	for (size_t route = 0; route < BASE_ARRAY_LEN(routes); route++) {
		writer[100] = (uint8_t)(MARK + route); /* the writer goes on, whatever is tried */
		memcpy(before, writer, bytes);
		ck_assert_msg(!try_route(route, maker->name, fd, bytes, attacker),
			      "uid %u wrote to the %s by %s", attacker, maker->name,
			      routes[route].name);
		ck_assert_msg(memcmp(before, writer, bytes) == 0, "%s changed the %s",
			      routes[route].name, maker->name);
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_int_eq(st.st_size, (off_t)bytes);
		ck_assert_int_eq(fchmod(fd, 0400), 0);
	}
	free(before);
	munmap(writer, bytes);
	close(fd);
}

START_TEST(own_uid_cannot_write)
{
	hunt(&makers[_i], getuid());
}
END_TEST

START_TEST(other_uid_cannot_write)
{
	if (getuid() == 0)
		hunt(&makers[_i], NOBODY);
	else
		printf("not tested, other_uid_cannot_write: only root can be another user\n");
}
END_TEST

/* Maker and attacker are the same ordinary user. Check runs each test in a process of its own. */
START_TEST(own_ordinary_uid_cannot_write)
{
	if (getuid() == 0) {
		become(NOBODY);
		hunt(&makers[_i], NOBODY);
	}
}
END_TEST

/* The tries are fair: on memory with the other seals but FUTURE_WRITE the main routes work. */
START_TEST(routes_work_without_the_seal)
{
	static const char *const open_ones[] = {"mmap",  "mprotect", "write",
						"punch", "proc_mem", "chmod_reopen_mmap"};
	int fd = base_memfd("open", 16384);
	unsigned worked = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	for (size_t route = 0; route < BASE_ARRAY_LEN(routes); route++)
		for (size_t i = 0; i < BASE_ARRAY_LEN(open_ones); i++)
			if (!strcmp(routes[route].name, open_ones[i]))
				worked += try_route(route, "open memory", fd, 16384, getuid());
	ck_assert_uint_ge(worked, 5); /* proc_mem: not on a shared mapping without write access */
	close(fd);
}
END_TEST

START_TEST(store_kills_only_its_process)
{
	uint64_t bytes;
	uint8_t *writer;
	int fd = makers[_i].make(&writer, &bytes), status;
	volatile uint8_t *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	uint8_t before = writer[0];
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		map[0] = (uint8_t)~before;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	ck_assert_uint_eq(writer[0], before);
	munmap(writer, bytes);
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, own_uid_cannot_write, 0, BASE_ARRAY_LEN(makers));
	tcase_add_loop_test(tcase, other_uid_cannot_write, 0, BASE_ARRAY_LEN(makers));
	tcase_add_loop_test(tcase, own_ordinary_uid_cannot_write, 0, BASE_ARRAY_LEN(makers));
	tcase_add_test(tcase, routes_work_without_the_seal);
	tcase_add_loop_test(tcase, store_kills_only_its_process, 0, BASE_ARRAY_LEN(makers));
}

int main(void)
{
	return suite_run("seal", add);
}
