/* SPDX-License-Identifier: Apache-2.0 */

/*
 * direct FILE [SAMPLES]: what reading SAMPLES (6000) samples of 76 KiB at random places of a new FILE of 640 MiB takes, by each
 * way of reading that there is past the page cache, and through it: processor time of the process and the kernel's threads for it,
 * a sample, the least of ROUNDS rounds, with that round's rate. Into memory of small pages and, where the kernel gives them, of
 * huge ones. "aio" is what access-reader does (storage/source/direct_aio.c). doc/decisions/340-direct.md says what came of it.
 *
 * "cold": the kernel was asked to forget the file's pages; below it the machine may still have them in a cache of its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/philox.h"
#include "storage/source/direct.h"

#define FILE_BYTES (UINT64_C(640) << 20)
#define BYTES (UINT32_C(76) << 10) /* of a sample */
#define STEP (UINT64_C(1) << 20)
#define PLACES 128 /* where samples are read to */
#define ROUNDS 4
#define MAP_BYTES BASE_MAX(BYTES *(uint64_t)PLACES, UINT64_C(16) << 20)
#define ALIGN 4096
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static int file_fd, direct_fd;
static unsigned n_samples;
static uint64_t *place; /* [n_samples], owned */
static uint8_t *memory; /* MAP_BYTES */
static struct direct_queue queue;

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "direct: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint8_t *memory_of(unsigned sample)
{
	return memory + (uint64_t)(sample % PLACES) * BYTES;
}

/* ---- the ways: samples from first on ---- */

static void by_pages(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		if (base_read_at(file_fd, memory_of(i), BYTES, place[i]))
			fail("pread", EIO);
}

static void by_pread(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		if (base_read_at(direct_fd, memory_of(i), BYTES, place[i]))
			fail("pread past the page cache", EIO);
}

static void by_aio(unsigned first, unsigned n)
{
	struct direct_read read[DIRECT_DEEP];
	int r;

	for (unsigned i = 0; i < n; i++)
		read[i] = (struct direct_read){.fd = direct_fd,
					       .to = memory_of(first + i),
					       .at = place[first + i],
					       .bytes = BYTES};
	r = direct_queue_read(&queue, &(struct direct_batch){.read = read, .n = n});
	for (unsigned i = 0; i < n && !r; i++)
		r = read[i].result == (int)BYTES ? 0 : BASE_MIN(read[i].result, -EIO);
	if (r)
		fail("aio", -r);
}

static struct ring {
	int fd;
	uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	uint8_t opcode;
} ring;

/* 0 or negative errno. Lives as long as the process. */
static int ring_open(void)
{
	struct io_uring_params p = {.flags = 0};
	uint8_t *map;

	ring.fd = (int)syscall(SYS_io_uring_setup, DIRECT_DEEP, &p);
	if (ring.fd < 0)
		return -errno;
	map = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*ring.cqe) + 4 * p.sq_entries,
		   PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.sqe = mmap(NULL, p.sq_entries * sizeof(*ring.sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
			ring.fd, IORING_OFF_SQES);
	if (map == MAP_FAILED || ring.sqe == MAP_FAILED)
		return -errno;
	ring.sq_tail = (void *)(map + p.sq_off.tail);
	ring.sq_mask = (void *)(map + p.sq_off.ring_mask);
	ring.sq_array = (void *)(map + p.sq_off.array);
	ring.cq_head = (void *)(map + p.cq_off.head);
	ring.cq_tail = (void *)(map + p.cq_off.tail);
	ring.cq_mask = (void *)(map + p.cq_off.ring_mask);
	ring.cqe = (void *)(map + p.cq_off.cqes);
	return 0;
}

static int ring_register(void)
{
	const struct iovec all = {memory, MAP_BYTES};
	const long r = syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &all, 1);

	return r < 0 ? -errno : 0;
}

static void ring_put(unsigned i)
{
	const uint32_t tail = *ring.sq_tail, at = tail & *ring.sq_mask;

	ring.sqe[at] = (struct io_uring_sqe){.opcode = ring.opcode,
					     .fd = direct_fd,
					     .addr = (uintptr_t)memory_of(i),
					     .len = BYTES,
					     .off = place[i]};
	ring.sq_array[at] = at;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE); /* pairs with the kernel's */
}

static void by_ring(unsigned first, unsigned n)
{
	unsigned put = n, left = n;

	for (unsigned i = 0; i < n; i++)
		ring_put(first + i);
	while (left) {
		const long r = syscall(SYS_io_uring_enter, ring.fd, put, left,
				       IORING_ENTER_GETEVENTS, NULL, 0);
		uint32_t head = *ring.cq_head;

		if (r < 0 && errno != EINTR)
			fail("io_uring_enter", errno);
		put -= r > 0 ? (unsigned)r : 0;
		for (; head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE); head++, left--)
			if (ring.cqe[head & *ring.cq_mask].res != (int)BYTES)
				fail("a read by the ring", EIO);
		__atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
	}
}

/* ---- measuring ---- */

static double cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void forget(void)
{
	fdatasync(file_fd);
	posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void measure(const char *what, void (*read)(unsigned first, unsigned n), unsigned deep,
		    bool is_cold)
{
	double best_us = 1e9, rate = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t began_ns;
		double us;

		if (is_cold)
			forget();
		began_ns = base_now_ns();
		us = cpu_us();
		for (unsigned i = 0; i < n_samples; i += deep)
			read(i, BASE_MIN(deep, n_samples - i));
		us = (cpu_us() - us) / n_samples;
		if (us < best_us)
			rate = n_samples / ((double)(base_now_ns() - began_ns) / 1e9);
		best_us = BASE_MIN(us, best_us);
	}
	printf("%-32s %3u deep  %5.1f us CPU a sample  %6.0f samples/s\n", what, deep, best_us,
	       rate);
	fflush(stdout);
}

static void compare(const char *pages, int ring_error)
{
	static const unsigned deeps[] = {1, 4, 16, 32};

	printf("into %s pages\n", pages);
	by_pages(0, BASE_MIN(n_samples, (unsigned)PLACES)); /* first touch */
	for (uint64_t at = 0; at < FILE_BYTES; at += STEP)
		base_read_at(file_fd, memory, STEP, at);
	measure("page cache, warm", by_pages, 1, false);
	measure("page cache, cold", by_pages, 1, true);
	measure("pread, O_DIRECT", by_pread, 1, true);
	for (size_t i = 0; i < BASE_ARRAY_LEN(deeps); i++)
		measure("aio", by_aio, deeps[i], true);
	ring.opcode = IORING_OP_READ;
	for (size_t i = 0; i < BASE_ARRAY_LEN(deeps) && !ring_error; i++)
		measure("io_uring", by_ring, deeps[i], true);
	ring.opcode = IORING_OP_READ_FIXED;
	if (!ring_error)
		ring_error = ring_register();
	for (size_t i = 0; i < BASE_ARRAY_LEN(deeps) && !ring_error; i++)
		measure("io_uring, registered memory", by_ring, deeps[i], true);
	if (ring_error)
		printf("no io_uring here, or no registered memory: %s\n", strerror(-ring_error));
	else
		syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

static void make_file(const char *path)
{
	struct philox_seq random;

	file_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file_fd < 0)
		fail(path, errno);
	unlink(path);
	philox_seq_init(&random, 1, 0, 0);
	for (uint64_t at = 0; at < FILE_BYTES; at += STEP) {
		for (uint64_t k = 0; k < STEP; k += 4)
			memcpy(memory + k, &(uint32_t){philox_u32(&random)}, 4);
		if (base_write_at(file_fd, memory, STEP, at))
			fail(path, EIO);
	}
	for (unsigned i = 0; i < n_samples; i++)
		place[i] = philox_below(&random, (FILE_BYTES - BYTES) / ALIGN) * ALIGN;
}

static void open_direct(void)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", file_fd);
	direct_fd = open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (direct_fd < 0)
		fail("O_DIRECT", errno);
	printf("places and memory by multiples of %u bytes (statx)\n", direct_align(file_fd));
}

static void map_memory(uint64_t align)
{
	const int fd = memfd_create("direct", MFD_CLOEXEC);
	uint8_t *all = mmap(NULL, MAP_BYTES + align, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || ftruncate(fd, (off_t)MAP_BYTES) < 0 || all == MAP_FAILED)
		fail("memory", errno);
	memory = mmap((void *)base_align_up((uintptr_t)all, align), MAP_BYTES,
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (memory == MAP_FAILED)
		fail("memory", errno);
	memset(memory, 1, MAP_BYTES);
}

int main(int argc, char **argv)
{
	int ring_error;

	n_samples = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 6000;
	place = calloc(n_samples, sizeof(*place));
	if (argc < 2 || argc > 3 || !n_samples || !place) {
		fprintf(stderr, "usage: direct FILE [SAMPLES]\n");
		return 2;
	}
	map_memory(ALIGN);
	make_file(argv[1]);
	open_direct();
	ring_error = ring_open();
	compare("small", ring_error);
	map_memory(UINT64_C(2) << 20);
	if (madvise(memory, MAP_BYTES, MADV_COLLAPSE) == 0)
		compare("huge", ring_error);
	else
		printf("no huge pages: %s\n", strerror(errno));
	free(place);
	return 0;
}
