/* SPDX-License-Identifier: Apache-2.0 */

/*
 * reads [--beside N] [--arena MIB] LOOSE [SHARDS INDEX]...: what the system calls alone take by which access-reader reads the files
 * below LOOSE, and the samples that an INDEX (access-index(5)) has in the shards of the folder SHARDS: processor time a sample, the
 * median of ROUNDS rounds that have each way in turn. The page cache is to have all of them. One thread, nothing else: no queue,
 * nobody who is woken. Ways of shards are named by their folder's last name.
 *
 *   open     openat, fstat, close
 *   loose    openat, pread, fstat, close
 *   SHARDS   pread, fstat, from shards that stay open
 *
 * One behind the other to shared memory of MIB (64) MiB, round and round, and lying in it as accessd has them lie
 * (dataset_is_placed()); "hot": all to the same place, which stays in the processor's caches. Order: drawn.
 *
 * With --beside, one way more of each, "beside": while N processes decode what was read, as workers do, which
 * takes caches and memory from who reads. They set the pace; waiting for them and waking them does not count. What they get
 * are photographs, or the program ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/philox.h"
#include "bench/decoders.h"
#include "storage/dataset.h"

#define ROUNDS 9
#define ARENA_ALIGN 64
#define MOST_SETS 8

struct sample {
	char *name; /* owned; of a file: below the root */
	uint32_t bytes;
	int shard_fd;
	uint64_t at; /* in the shard */
};

struct set { /* samples that are read in one way */
	const char *what;
	struct sample *sample; /* owned */
	unsigned n;
	bool in_shards, is_placed;
};

static struct set sets[MOST_SETS]; /* the first one: loose files */
static unsigned n_sets;
static int root_fd;
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

static void add(struct set *set, const struct sample *sample)
{
	set->sample = realloc(set->sample, (set->n + 1) * sizeof(*set->sample));
	if (!set->sample)
		fail(set->what, ENOMEM);
	set->sample[set->n++] = *sample;
	largest = BASE_MAX(largest, sample->bytes);
}

static void shuffle(struct set *set)
{
	struct philox_seq random;

	philox_seq_init(&random, 1, 0, 0);
	for (unsigned i = set->n - 1; i > 0; i--) {
		const unsigned k = (unsigned)philox_below(&random, i + UINT64_C(1));
		const struct sample was = set->sample[i];

		set->sample[i] = set->sample[k];
		set->sample[k] = was;
	}
}

static void list_files(char *root)
{
	struct set *set = &sets[n_sets++];
	FTS *walk = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const size_t length = strlen(root);
	const FTSENT *entry;

	set->what = "loose";
	while (walk && (entry = fts_read(walk))) {
		const char *name = entry->fts_path + length + (root[length - 1] != '/');

		if (entry->fts_info == FTS_F && entry->fts_statp->st_size > 0)
			add(set, &(struct sample){.name = strdup(name),
						  .bytes = (uint32_t)entry->fts_statp->st_size});
	}
	if (!set->n)
		fail(root, ENOENT);
	fts_close(walk);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	shuffle(set);
}

static struct dataset *map_index(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct dataset *index;

	if (fd < 0)
		fail(path, errno);
	if (dataset_map(fd, &index))
		fail(path, EBADMSG);
	close(fd);
	return index;
}

static int open_shard(int folder_fd, const struct dataset *index, uint64_t number)
{
	struct dataset_shard shard;
	int fd;

	dataset_shard_of(index, number, &shard);
	fd = openat(folder_fd, shard.name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(shard.name, errno);
	return fd;
}

static void list_shards(const char *folder, const char *index_path)
{
	struct set *set = &sets[n_sets++];
	struct dataset *index = map_index(index_path);
	const uint64_t n = dataset_shards(index);
	int *fd = calloc(n + 1, sizeof(*fd));
	const int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!fd || folder_fd < 0 || !n)
		fail(folder, folder_fd < 0 ? errno : EINVAL);
	set->what = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
	set->in_shards = true;
	set->is_placed = dataset_is_placed(index);
	for (uint64_t i = 0; i < n; i++)
		fd[i] = open_shard(folder_fd, index, i);
	for (uint64_t i = 0; i < dataset_count(index); i++)
		add(set, &(struct sample){.name = strdup(dataset_name_of(index, i)),
					  .bytes = dataset_size_of(index, i),
					  .shard_fd = fd[dataset_shard_with(index, i)],
					  .at = dataset_at_of(index, i)});
	close(folder_fd);
	free(fd);
	dataset_unmap(index);
	shuffle(set);
}

/* ---- the ways ---- */

/* As daemon/serve/fill.c reserves it. */
static uint8_t *next_place(const struct set *set, const struct sample *sample)
{
	const uint64_t before = set->is_placed ? sample->at % DATASET_PLACE : 0;
	const uint64_t align = set->is_placed ? DATASET_PLACE : ARENA_ALIGN;
	const uint64_t room = base_align_up(before + sample->bytes, align);

	if (!is_arena || place + room > arena_bytes)
		place = 0;
	begun = place + before;
	place += room;
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

static void fill(int fd, const struct set *set, const struct sample *sample)
{
	if (pread(fd, next_place(set, sample), sample->bytes, (off_t)sample->at) !=
	    (ssize_t)sample->bytes)
		fail(sample->name, EIO);
	look(fd);
}

static void by_open(const struct set *set, const struct sample *sample)
{
	const int fd = open_one(sample);

	(void)set;
	look(fd);
	close(fd);
}

static void by_file(const struct set *set, const struct sample *sample)
{
	const int fd = open_one(sample);

	fill(fd, set, sample);
	close(fd);
}

static void by_shard(const struct set *set, const struct sample *sample)
{
	fill(sample->shard_fd, set, sample);
}

static struct way {
	const struct set *set;
	const char *how;
	void (*read)(const struct set *set, const struct sample *sample);
	bool is_arena, is_beside;
	double us[ROUNDS];
} ways[3 * MOST_SETS + 1];
static unsigned n_ways;

static void add_way(const struct way *way)
{
	if (decoders || !way->is_beside)
		ways[n_ways++] = *way;
}

static void make_ways(void)
{
	add_way(&(struct way){.set = &sets[0], .how = ", open", .read = by_open});
	for (unsigned i = 0; i < n_sets; i++) {
		struct way way = {.set = &sets[i], .read = sets[i].in_shards ? by_shard : by_file};

		way.how = ", hot";
		add_way(&way);
		way.is_arena = true;
		way.how = "";
		add_way(&way);
		way.is_beside = true;
		way.how = ", beside";
		add_way(&way);
	}
}

/* ---- measuring ---- */

/* Samples from that one on, no more than are given at once; those that decode get them. Nanoseconds. */
static uint64_t read_burst(const struct way *way, unsigned first, unsigned n)
{
	const struct sample *sample = way->set->sample + first;
	uint64_t at[DECODERS_BURST], cpu_ns;

	if (way->is_beside)
		decoders_await(decoders);
	cpu_ns = base_cpu_ns();
	for (unsigned i = 0; i < n; i++) {
		way->read(way->set, &sample[i]);
		at[i] = begun;
	}
	cpu_ns = base_cpu_ns() - cpu_ns;
	for (unsigned i = 0; i < n && way->is_beside; i++)
		decoders_give(decoders, at[i], sample[i].bytes);
	return cpu_ns;
}

static double measure(const struct way *way)
{
	const unsigned n = way->set->n;
	uint64_t cpu_ns = 0;

	is_arena = way->is_arena;
	for (unsigned i = 0; i < n; i += DECODERS_BURST)
		cpu_ns += read_burst(way, i, BASE_MIN(n - i, DECODERS_BURST));
	if (decoders)
		decoders_settle(decoders);
	return (double)cpu_ns / 1000 / n;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void map_memory(uint64_t bytes)
{
	const int fd = memfd_create("reads", MFD_CLOEXEC);

	arena_bytes = BASE_MAX(bytes, (uint64_t)largest + 2 * DATASET_PLACE);
	if (fd < 0 || ftruncate(fd, (off_t)arena_bytes) < 0)
		fail("memory", errno);
	memory = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("memory", errno);
	memset(memory, 1, arena_bytes);
}

static void report(struct way *way)
{
	qsort(way->us, ROUNDS, sizeof(*way->us), by_value);
	printf("%s%s\t%.2f\n", way->set->what, way->how, way->us[ROUNDS / 2]);
}

static _Noreturn void explain(void)
{
	fprintf(stderr, "usage: reads [--beside N] [--arena MIB] LOOSE [SHARDS INDEX]...\n");
	exit(2);
}

static const struct option options[] = {{"beside", required_argument, NULL, 'b'},
					{"arena", required_argument, NULL, 'a'},
					{NULL, 0, NULL, 0}};

int main(int argc, char **argv)
{
	uint64_t n_beside = 0, mib = 64;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (option == '?' || !number)
			explain();
		*(option == 'b' ? &n_beside : &mib) = number;
	}
	if ((argc - optind) % 2 != 1 || argc - optind > 2 * MOST_SETS)
		explain();
	list_files(argv[optind]);
	for (int i = optind + 1; i < argc; i += 2)
		list_shards(argv[i], argv[i + 1]);
	map_memory(mib << 20);
	if (n_beside)
		decoders = decoders_new((unsigned)n_beside, memory);
	make_ways();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < n_ways; i++)
			ways[i].us[round] = measure(&ways[i]);
	for (unsigned i = 0; i < n_ways; i++)
		report(&ways[i]);
	return 0;
}
