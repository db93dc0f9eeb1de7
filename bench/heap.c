/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What of accessd's heap is in use: preloaded into accessd, it keeps the bytes and the number of all blocks that are not freed,
 * as 64-bit words in the file $ACCESS_HEAP. Resident memory says less: what is free stays with the process for a while, and how
 * much of it can be given back is chance. What accessd starts is not counted. The C library must be glibc.
 */

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_REPLACES(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* The C library's own, by the names that it keeps for who replaces them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

void *heap_malloc(size_t size) HEAP_REPLACES("malloc");
void *heap_calloc(size_t n, size_t size) HEAP_REPLACES("calloc");
void *heap_realloc(void *block, size_t size) HEAP_REPLACES("realloc");
void *heap_memalign(size_t align, size_t size) HEAP_REPLACES("memalign");
void *heap_aligned_alloc(size_t align, size_t size) HEAP_REPLACES("aligned_alloc");
int heap_posix_memalign(void **ret, size_t align, size_t size) HEAP_REPLACES("posix_memalign");
void heap_free(void *block) HEAP_REPLACES("free");

struct heap {
	int64_t bytes, blocks;
};

static struct heap unseen, *heap = &unseen;
static pid_t owner; /* others that were forked have the same page */

static void count(void *block, int64_t sign)
{
	if (!block || (owner && getpid() != owner))
		return;
	__atomic_fetch_add(&heap->bytes, sign * (int64_t)malloc_usable_size(block),
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&heap->blocks, sign, __ATOMIC_RELAXED);
}

static void *counted(void *block)
{
	count(block, 1);
	return block;
}

void *heap_malloc(size_t size)
{
	return counted(__libc_malloc(size));
}

void *heap_calloc(size_t n, size_t size)
{
	return counted(__libc_calloc(n, size));
}

void *heap_realloc(void *block, size_t size)
{
	void *larger;

	count(block, -1);
	larger = __libc_realloc(block, size);
	count(larger || !size ? larger : block, 1);
	return larger;
}

void *heap_memalign(size_t align, size_t size)
{
	return counted(__libc_memalign(align, size));
}

void *heap_aligned_alloc(size_t align, size_t size)
{
	return heap_memalign(align, size);
}

int heap_posix_memalign(void **ret, size_t align, size_t size)
{
	void *block = heap_memalign(align, size);

	if (!block)
		return ENOMEM;
	*ret = block;
	return 0;
}

void heap_free(void *block)
{
	count(block, -1);
	__libc_free(block);
}

/* Before main(): nobody else runs. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("ACCESS_HEAP");
	struct heap *shown = MAP_FAILED;
	int fd;

	if (!path || strcmp(program_invocation_short_name, "accessd") != 0)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && ftruncate(fd, sizeof(*shown)) == 0)
		shown = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	unsetenv("LD_PRELOAD");
	if (shown == MAP_FAILED)
		return;
	*shown = unseen;
	heap = shown;
	owner = getpid();
}
