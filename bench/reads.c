/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads against io_uring, at what access-reader does: open a picture's file, read it, stat it,
 * close it. Both in one run and in turn, so that a busy machine slows both; the best of the rounds
 * counts.
 *
 *	reads [FOLDER [FILES]]     makes FILES (4000) files of 20 to 100 kB in FOLDER/reads-PID
 *
 * threads: as storage/reader_read.c, one file a thread at a time.
 * ring:    one thread and one ring; a file is a chain of four linked requests (openat into a
 *          direct descriptor, read, statx by name, close), and `deep` chains are under way. The
 *          sizes are known from the index, as the reader knows them.
 *
 * "cold": the kernel was asked to forget the files' pages (POSIX_FADV_DONTNEED), not their inodes;
 * below it the machine may still have them in a cache of its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/philox.h"

#define READS_MOST 100000 /* bytes of a file */
#define READS_LEAST 20000
#define READS_FILES 4000
#define READS_DEEP 64 /* most chains and most threads */
#define READS_ROUNDS 5
#define READS_STEPS 4 /* requests of a chain */

struct file {
	char name[16];
	uint32_t size;
};

static struct {
	int folder;
	char path[4096];
	struct file *file;
	unsigned n;
} files;
static uint8_t *buffers[READS_DEEP];

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "reads: %s: %s\n", what, strerror(error));
	exit(1);
}

/* ---- files ---- */

static void make_file(unsigned i, struct philox_seq *random)
{
	struct file *file = &files.file[i];
	int fd;

	snprintf(file->name, sizeof(file->name), "%u.jpg", i);
	file->size =
	    READS_LEAST + (uint32_t)philox_below(random, READS_MOST - READS_LEAST + UINT64_C(1));
	for (uint32_t k = 0; k + 4 <= file->size; k += 4)
		memcpy(buffers[0] + k, &(uint32_t){philox_u32(random)}, 4);
	memcpy(buffers[0], &i, sizeof(i));
	fd = openat(files.folder, file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, buffers[0], file->size) != (ssize_t)file->size || close(fd) < 0)
		fail(file->name, errno);
}

static void make_files(const char *folder, unsigned n)
{
	struct philox_seq random;

	snprintf(files.path, sizeof(files.path), "%s/reads-%ld", folder, (long)getpid());
	if (mkdir(files.path, 0700) < 0)
		fail(files.path, errno);
	files.folder = open(files.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files.file = calloc(n, sizeof(*files.file));
	if (files.folder < 0 || !files.file)
		fail(files.path, errno);
	philox_seq_init(&random, 1, 0, 0);
	for (files.n = 0; files.n < n; files.n++)
		make_file(files.n, &random);
	syncfs(files.folder);
}

static void remove_files(void)
{
	for (unsigned i = 0; i < files.n; i++)
		unlinkat(files.folder, files.file[i].name, 0);
	rmdir(files.path);
}

static void forget_pages(void)
{
	for (unsigned i = 0; i < files.n; i++) {
		int fd = openat(files.folder, files.file[i].name, O_RDONLY | O_CLOEXEC);

		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

static void check_file(unsigned i, const uint8_t *bytes)
{
	unsigned number;

	memcpy(&number, bytes, sizeof(number));
	if (number != i)
		fail("a file came with other bytes than its own", EIO);
}

/* ---- threads ---- */

struct thread {
	unsigned first, step;
};

static void read_one(unsigned i, uint8_t *buffer)
{
	const struct file *file = &files.file[i];
	int fd = openat(files.folder, file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || pread(fd, buffer, file->size, 0) != (ssize_t)file->size || fstat(fd, &st) < 0)
		fail(file->name, errno);
	close(fd);
	check_file(i, buffer);
}

static void *read_some(void *arg)
{
	const struct thread *thread = arg;

	for (unsigned i = thread->first; i < files.n; i += thread->step)
		read_one(i, buffers[thread->first]);
	return NULL;
}

static void read_by_threads(unsigned n)
{
	pthread_t handle[READS_DEEP];
	struct thread thread[READS_DEEP];

	for (unsigned i = 0; i < n; i++) {
		thread[i] = (struct thread){i, n};
		if (pthread_create(&handle[i], NULL, read_some, &thread[i]))
			fail("a thread", EAGAIN);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(handle[i], NULL);
}

/* ---- a ring ---- */

struct ring {
	int fd;
	uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct chain {
		unsigned file, left;
		struct statx st;
	} chain[READS_DEEP];
};

static int ring_call(unsigned call, int fd, const void *arg, unsigned n)
{
	int r = (int)syscall(SYS_io_uring_register, fd, call, arg, n);

	return r < 0 ? -errno : r;
}

/* 0 or negative errno: not here, or not allowed. Lives as long as the process. */
static int ring_init(struct ring *ring)
{
	struct io_uring_params p = {.flags = IORING_SETUP_CLAMP};
	int none[READS_DEEP];
	uint8_t *map;

	ring->fd = (int)syscall(SYS_io_uring_setup, READS_DEEP * READS_STEPS, &p);
	if (ring->fd < 0)
		return -errno;
	map = mmap(NULL,
		   BASE_MAX(p.cq_off.cqes + p.cq_entries * sizeof(*ring->cqe),
			    p.sq_off.array + p.sq_entries * sizeof(uint32_t)),
		   PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->sqe = mmap(NULL, p.sq_entries * sizeof(*ring->sqe), PROT_READ | PROT_WRITE,
			 MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (map == MAP_FAILED || ring->sqe == MAP_FAILED || !(p.features & IORING_FEAT_SINGLE_MMAP))
		return -ENOSYS;
	ring->sq_tail = (void *)(map + p.sq_off.tail);
	ring->sq_mask = (void *)(map + p.sq_off.ring_mask);
	ring->sq_array = (void *)(map + p.sq_off.array);
	ring->cq_head = (void *)(map + p.cq_off.head);
	ring->cq_tail = (void *)(map + p.cq_off.tail);
	ring->cq_mask = (void *)(map + p.cq_off.ring_mask);
	ring->cqe = (void *)(map + p.cq_off.cqes);
	memset(none, -1, sizeof(none));
	return ring_call(IORING_REGISTER_FILES, ring->fd, none, READS_DEEP);
}

static void ring_put(struct ring *ring, const struct io_uring_sqe *sqe)
{
	uint32_t tail = *ring->sq_tail, at = tail & *ring->sq_mask;

	ring->sqe[at] = *sqe;
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE); /* pairs with the kernel's */
}

static void ring_begin(struct ring *ring, unsigned c, unsigned i)
{
	const struct file *file = &files.file[i];
	struct chain *chain = &ring->chain[c];
	const struct io_uring_sqe step[READS_STEPS] = {
	    {.opcode = IORING_OP_OPENAT,
	     .flags = IOSQE_IO_LINK,
	     .fd = files.folder,
	     .addr = (uintptr_t)file->name,
	     .open_flags = O_RDONLY | O_NOCTTY | O_NONBLOCK,
	     .file_index = c + 1,
	     .user_data = c},
	    {.opcode = IORING_OP_READ,
	     .flags = IOSQE_IO_LINK | IOSQE_FIXED_FILE,
	     .fd = (int)c,
	     .addr = (uintptr_t)buffers[c],
	     .len = file->size,
	     .user_data = c},
	    {.opcode = IORING_OP_STATX,
	     .flags = IOSQE_IO_LINK,
	     .fd = files.folder,
	     .addr = (uintptr_t)file->name,
	     .len = STATX_SIZE | STATX_MTIME,
	     .off = (uintptr_t)&chain->st,
	     .user_data = c},
	    {.opcode = IORING_OP_CLOSE, .file_index = c + 1, .user_data = c},
	};

	chain->file = i;
	chain->left = READS_STEPS;
	for (unsigned k = 0; k < READS_STEPS; k++)
		ring_put(ring, &step[k]);
}

static void ring_enter(const struct ring *ring, unsigned put)
{
	while (syscall(SYS_io_uring_enter, ring->fd, put, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		if (errno != EINTR)
			fail("io_uring_enter", errno);
}

static void read_by_ring(struct ring *ring, unsigned deep)
{
	unsigned next = 0, ended = 0, put = 0;

	for (; next < BASE_MIN(deep, files.n); next++, put += READS_STEPS)
		ring_begin(ring, next, next);
	while (ended < files.n) {
		uint32_t head = *ring->cq_head;

		ring_enter(ring, put);
		put = 0;
		while (head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
			const struct io_uring_cqe *cqe = &ring->cqe[head++ & *ring->cq_mask];
			struct chain *chain = &ring->chain[cqe->user_data];

			if (cqe->res < 0)
				fail(files.file[chain->file].name, -cqe->res);
			if (--chain->left)
				continue;
			check_file(chain->file, buffers[cqe->user_data]);
			ended++;
			if (next < files.n) {
				ring_begin(ring, (unsigned)cqe->user_data, next++);
				put += READS_STEPS;
			}
		}
		__atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
	}
}

/* ---- measuring ---- */

struct figure {
	double rate, cpu_us; /* files a second; of a file, of all threads and the kernel's */
};

static double cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ring NULL: by threads. */
static void measure(struct ring *ring, unsigned n, bool cold, struct figure *best)
{
	double begin_us, took_s;
	uint64_t begin_ns;

	if (cold)
		forget_pages();
	begin_us = cpu_us();
	begin_ns = base_now_ns();
	if (ring)
		read_by_ring(ring, n);
	else
		read_by_threads(n);
	took_s = (double)(base_now_ns() - begin_ns) / 1e9;
	if (files.n / took_s <= best->rate)
		return;
	best->rate = files.n / took_s;
	best->cpu_us = (cpu_us() - begin_us) / files.n;
}

static void compare(struct ring *ring, bool cold)
{
	static const unsigned n_threads[] = {1, 2, 4, 8, 16, 64}, deeps[] = {1, 4, 16, 64};
	struct figure by_threads[6] = {{0}}, by_ring[4] = {{0}};
	double threads = 0, best = 0;

	for (unsigned round = 0; round < READS_ROUNDS; round++) {
		for (unsigned i = 0; i < 6; i++)
			measure(NULL, n_threads[i], cold, &by_threads[i]);
		for (unsigned i = 0; ring && i < 4; i++)
			measure(ring, deeps[i], cold, &by_ring[i]);
	}
	for (unsigned i = 0; i < 6; i++) {
		printf("%s  threads %2u  %7.0f files/s  %4.0f us CPU a file\n",
		       cold ? "cold" : "warm", n_threads[i], by_threads[i].rate,
		       by_threads[i].cpu_us);
		threads = BASE_MAX(threads, by_threads[i].rate);
	}
	for (unsigned i = 0; ring && i < 4; i++) {
		printf("%s  ring deep %2u %6.0f files/s  %4.0f us CPU a file\n",
		       cold ? "cold" : "warm", deeps[i], by_ring[i].rate, by_ring[i].cpu_us);
		best = BASE_MAX(best, by_ring[i].rate);
	}
	if (ring)
		printf("%s  the best ring has %.2f of the best threads' rate\n",
		       cold ? "cold" : "warm", best / threads);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : READS_FILES;
	struct ring ring = {0};
	int r;

	if (argc > 3 || n < 1 || n > 1000000) {
		fprintf(stderr, "usage: reads [FOLDER [FILES]]\n");
		return 2;
	}
	for (unsigned i = 0; i < READS_DEEP; i++)
		if (!(buffers[i] = malloc(READS_MOST)))
			fail("buffers", ENOMEM);
	r = ring_init(&ring);
	if (r < 0)
		printf("no io_uring here: %s\n", strerror(-r));
	make_files(argc > 1 ? argv[1] : ".", (unsigned)n);
	compare(r < 0 ? NULL : &ring, false);
	compare(r < 0 ? NULL : &ring, true);
	remove_files();
	return 0;
}
