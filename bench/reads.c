/* SPDX-License-Identifier: Apache-2.0 */

/*
 * reads [--beside N] LOOSE [SHARDS [MIB]]: what the system calls alone take by which access-reader reads the files below LOOSE, and as many
 * samples of the same sizes out of the files in SHARDS: processor time a sample, the median of ROUNDS rounds that have each way in turn.
 * The page cache is to have all of them. One thread, nothing else: no index, no queue, nobody who is woken.
 *
 *   open     openat, fstat, close
 *   loose    openat, pread, fstat, close
 *   shards   pread, fstat, from shards that stay open
 *
 * One behind the other to shared memory of MIB (64) MiB, round and round, as access-reader has it; "hot": all to the same
 * place, which stays in the processor's caches. Order: drawn, the same for all.
 *
 * With --beside, two ways more, "beside": loose and shards while N processes decode what was read, as workers do, which
 * takes caches and memory from who reads. They set the pace; waiting for them and waking them does not count.
 */

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/philox.h"
#include "bench/decoders.h"

#define ROUNDS 9
#define TAR_BLOCK 512 /* samples lie in shards by multiples of it, two between them */
#define ARENA_ALIGN 64
#define MOST_SHARDS 64

struct sample {
	char *name; /* owned, below the root */
	uint32_t bytes;
	int shard_fd;
	uint64_t at; /* in the shard */
};

static int root_fd;
static struct sample *samples; /* owned */
static unsigned n_samples;
static uint32_t largest;

static uint8_t *memory;                    /* of the way that is measured */
static uint64_t arena_bytes, begun, place; /* of the last sample, of the next one */
static bool is_arena;
static int no_atime = O_NOATIME;  /* 0: files of another owner */
static struct decoders *decoders; /* NULL: none */

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "reads: %s: %s\n", what, strerror(error));
	exit(1);
}

/* ---- where samples are ---- */

static void add(const char *name, uint64_t bytes)
{
	if (bytes == 0 || bytes > UINT32_MAX)
		return;
	samples = realloc(samples, (n_samples + 1) * sizeof(*samples));
	if (!samples)
		fail(name, ENOMEM);
	samples[n_samples++] = (struct sample){.name = strdup(name), .bytes = (uint32_t)bytes};
	largest = BASE_MAX(largest, (uint32_t)bytes);
}

static void list(char *root)
{
	FTS *walk = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const size_t length = strlen(root);
	const FTSENT *entry;

	while (walk && (entry = fts_read(walk)))
		if (entry->fts_info == FTS_F)
			add(entry->fts_path + length + (root[length - 1] != '/'),
			    (uint64_t)entry->fts_statp->st_size);
	if (!n_samples)
		fail(root, ENOENT);
	fts_close(walk);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void shuffle(void)
{
	struct philox_seq random;

	philox_seq_init(&random, 1, 0, 0);
	for (unsigned i = n_samples - 1; i > 0; i--) {
		const unsigned k = (unsigned)philox_below(&random, i + UINT64_C(1));
		const struct sample was = samples[i];

		samples[i] = samples[k];
		samples[k] = was;
	}
}

static unsigned open_shards(char *folder, int fd[], uint64_t bytes[])
{
	FTS *walk = fts_open((char *[]){folder, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const FTSENT *entry;
	unsigned n = 0;

	while (walk && n < MOST_SHARDS && (entry = fts_read(walk))) {
		if (entry->fts_info != FTS_F)
			continue;
		bytes[n] = (uint64_t)entry->fts_statp->st_size;
		fd[n] = open(entry->fts_path, O_RDONLY | O_CLOEXEC);
		if (fd[n] < 0)
			fail(entry->fts_path, errno);
		n++;
	}
	fts_close(walk);
	return n;
}

/* Before they are shuffled: samples lie one behind the other, as many as have room, and from the beginning again. */
static void place_in_shards(char *folder)
{
	uint64_t bytes[MOST_SHARDS], at = 0;
	int fd[MOST_SHARDS];
	const unsigned n = open_shards(folder, fd, bytes);
	unsigned shard = 0, passed = 0;

	for (unsigned i = 0; i < n_samples; i++) {
		for (; passed < n && at + samples[i].bytes > bytes[shard]; passed++) {
			shard = (shard + 1) % n;
			at = 0;
		}
		if (passed >= n)
			fail(folder, EFBIG);
		samples[i].shard_fd = fd[shard];
		samples[i].at = at;
		at = base_align_up(at + samples[i].bytes, TAR_BLOCK) + 2 * TAR_BLOCK;
		passed = 0;
	}
}

/* ---- the ways ---- */

static uint8_t *next_place(uint32_t bytes)
{
	if (place + bytes > arena_bytes)
		place = 0;
	begun = place;
	if (is_arena)
		place = base_align_up(place + bytes, ARENA_ALIGN);
	return memory + begun;
}

static int open_one(const struct sample *sample)
{
	const int fd =
	    openat(root_fd, sample->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | no_atime);

	if (fd < 0 && errno == EPERM && no_atime) {
		no_atime = 0;
		return open_one(sample);
	}
	if (fd < 0)
		fail(sample->name, errno);
	return fd;
}

static void look(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		fail("fstat", errno);
}

static void fill(int fd, const struct sample *sample, uint64_t at)
{
	if (pread(fd, next_place(sample->bytes), sample->bytes, (off_t)at) !=
	    (ssize_t)sample->bytes)
		fail(sample->name, EIO);
	look(fd);
}

static void by_open(const struct sample *sample)
{
	const int fd = open_one(sample);

	look(fd);
	close(fd);
}

static void by_file(const struct sample *sample)
{
	const int fd = open_one(sample);

	fill(fd, sample, 0);
	close(fd);
}

static void by_shard(const struct sample *sample)
{
	fill(sample->shard_fd, sample, sample->at);
}

static struct way {
	const char *what;
	void (*read)(const struct sample *sample);
	bool is_arena, in_shards, is_beside;
	double us[ROUNDS];
} ways[] = {
    {"open", by_open, false, false, false, {0}},
    {"loose, hot", by_file, false, false, false, {0}},
    {"loose", by_file, true, false, false, {0}},
    {"loose, beside", by_file, true, false, true, {0}},
    {"shards, hot", by_shard, false, true, false, {0}},
    {"shards", by_shard, true, true, false, {0}},
    {"shards, beside", by_shard, true, true, true, {0}},
};

static bool is_asked(const struct way *way, bool has_shards)
{
	return (has_shards || !way->in_shards) && (decoders || !way->is_beside);
}

/* ---- measuring ---- */

/* Samples from that one on, no more than are given at once; those that decode get them. Nanoseconds. */
static uint64_t read_burst(const struct way *way, unsigned first, unsigned n)
{
	uint64_t at[DECODERS_BURST], cpu_ns;

	if (way->is_beside)
		decoders_await(decoders);
	cpu_ns = base_cpu_ns();
	for (unsigned i = 0; i < n; i++) {
		way->read(&samples[first + i]);
		at[i] = begun;
	}
	cpu_ns = base_cpu_ns() - cpu_ns;
	for (unsigned i = 0; i < n && way->is_beside; i++)
		decoders_give(decoders, at[i], samples[first + i].bytes);
	return cpu_ns;
}

static double measure(const struct way *way)
{
	uint64_t cpu_ns = 0;

	is_arena = way->is_arena;
	for (unsigned i = 0; i < n_samples; i += DECODERS_BURST)
		cpu_ns += read_burst(way, i, BASE_MIN(n_samples - i, DECODERS_BURST));
	if (decoders)
		decoders_settle(decoders);
	return (double)cpu_ns / 1000 / n_samples;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void map_memory(uint64_t bytes)
{
	const int fd = memfd_create("reads", MFD_CLOEXEC);

	arena_bytes = BASE_MAX(bytes, (uint64_t)largest);
	if (fd < 0 || ftruncate(fd, (off_t)arena_bytes) < 0)
		fail("memory", errno);
	memory = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("memory", errno);
	memset(memory, 1, arena_bytes);
}

static void report(bool has_shards)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		if (!is_asked(&ways[i], has_shards))
			continue;
		qsort(ways[i].us, ROUNDS, sizeof(*ways[i].us), by_value);
		printf("%s\t%.2f\n", ways[i].what, ways[i].us[ROUNDS / 2]);
	}
}

int main(int argc, char **argv)
{
	const bool is_beside = argc > 2 && strcmp(argv[1], "--beside") == 0;
	const unsigned n_beside = is_beside ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	uint64_t mib;

	argc -= 2 * is_beside;
	argv += 2 * is_beside;
	mib = argc > 3 ? strtoull(argv[3], NULL, 10) : 64;
	if (argc < 2 || argc > 4 || mib == 0 || (is_beside && !n_beside)) {
		fprintf(stderr, "usage: reads [--beside N] LOOSE [SHARDS [MIB]]\n");
		return 2;
	}
	list(argv[1]);
	if (argc > 2)
		place_in_shards(argv[2]);
	shuffle();
	map_memory(mib << 20);
	if (is_beside)
		decoders = decoders_new(n_beside, memory);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++)
			if (is_asked(&ways[i], argc > 2))
				ways[i].us[round] = measure(&ways[i]);
	report(argc > 2);
	return 0;
}
