/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading past the page cache: where reads begin and end, what is chosen, what comes of a file and what stays of it in the page
 * cache; and a real access-reader, whose samples lie at any byte of their shards, on this file system and on tmpfs, which has none of it.
 */

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/philox.h"
#include "storage/source/direct.h"
#include "tests/storage/reader_process.h"
#include "tests/suite.h"

#define PAGE UINT64_C(4096)
#define FILE_BYTES (64 * PAGE + 777)
#define MOST_BYTES UINT32_C(70000)
#define SHARDS 3
#define EACH 20
#define ROUNDS 4

/* ---- where ---- */

static const struct span_case {
	uint64_t at;
	uint32_t bytes, align;
	uint64_t before, behind;
	bool is_good;
	struct direct_span is;
} span_cases[] = {
    {0, 512, 512, 0, 0, true, {0, 512, 0}},
    {512, 1, 512, 0, 511, true, {512, 512, 0}},
    {512, 1, 512, 0, 510, false, {0}},
    {511, 2, 512, 511, 511, true, {0, 1024, 511}},
    {511, 2, 512, 510, 511, false, {0}},
    {511, 1, 512, 511, 0, true, {0, 512, 511}},
    {8191, 4098, 4096, 4095, 4095, true, {4096, 12288, 4095}},
    {5, 0, 512, 4095, 4095, false, {0}},
    {5, 5, 0, 4095, 4095, false, {0}},
    {5, 5, 768, 4095, 4095, false, {0}},
    {5, 5, 1, 0, 0, true, {5, 5, 0}},
    {UINT64_MAX - 3, 5, 512, 4095, 4095, false, {0}},
    {INT64_MAX, 1, 512, 4095, 4095, false, {0}},
    {0, UINT32_MAX, 512, 4095, 4095, false, {0}},
};

START_TEST(spans)
{
	const struct span_case *c = &span_cases[_i];
	struct direct_span is = {7, 7, 7};

	ck_assert(direct_span(c->at, c->bytes, c->align, c->before, c->behind, &is) == c->is_good);
	if (!c->is_good)
		return;
	ck_assert_uint_eq(is.at, c->is.at);
	ck_assert_uint_eq(is.bytes, c->is.bytes);
	ck_assert_uint_eq(is.before, c->is.before);
}
END_TEST

/* ---- which way ---- */

/* Of a MiB each, that takes 1000 ns through the page cache. */
static unsigned count_direct(struct direct_choice *choice, unsigned batches, uint64_t cpu_ns,
			     uint64_t disk_bytes)
{
	unsigned n = 0;

	for (unsigned i = 0; i < batches; i++) {
		const bool is_direct = direct_choice_next(choice);

		n += is_direct;
		direct_choice_note(choice, is_direct, 1 << 20, is_direct ? cpu_ns : 1000,
				   disk_bytes);
	}
	return n;
}

START_TEST(what_takes_less_is_chosen)
{
	struct direct_choice choice = {.turn = 0};

	ck_assert(!choice.is_settled);
	ck_assert_uint_eq(count_direct(&choice, 12, 500, 1 << 20), 6); /* by turns */
	ck_assert(choice.is_settled && choice.is_direct);
	/* the other one now and then: behind 64, 128, 256, 512, 512 */
	ck_assert_uint_eq(count_direct(&choice, 1472, 500, 1 << 20), 1467);
	count_direct(&choice, 640, 2000, 1 << 20); /* it takes more from now on */
	ck_assert(!choice.is_direct);
	ck_assert_uint_le(count_direct(&choice, 5120, 2000, 1 << 20), 14);
	ck_assert(direct_choice_us(&choice, true) > 1.5);
	ck_assert(direct_choice_us(&choice, false) < 1.1);
}
END_TEST

/* So much more or less is no reason to change, in either way. */
START_TEST(what_is_about_as_good_stays)
{
	struct direct_choice choice = {.turn = 0};

	count_direct(&choice, 100, 950, 1 << 20);
	ck_assert(choice.is_settled && choice.is_direct);
	count_direct(&choice, 20000, 1050, 1 << 20);
	ck_assert(choice.is_direct);
	count_direct(&choice, 20000, 1200, 1 << 20);
	ck_assert(!choice.is_direct);
	count_direct(&choice, 20000, 950, 1 << 20);
	ck_assert(!choice.is_direct);
	count_direct(&choice, 20000, 850, 1 << 20);
	ck_assert(choice.is_direct);
	count_direct(&choice, 20000, 850, (1 << 19) - 1000); /* a little more than half is cached */
	ck_assert(choice.is_direct);
	count_direct(&choice, 20000, 850, 1 << 18);
	ck_assert(!choice.is_direct);
	count_direct(&choice, 20000, 850, (1 << 19) + 1000);
	ck_assert(!choice.is_direct);
}
END_TEST

START_TEST(changes_are_told_once_a_minute)
{
	const uint64_t minute_ns = UINT64_C(60000000000);
	struct direct_choice choice = {.turn = 0};

	ck_assert(!direct_choice_says(&choice, 7));
	count_direct(&choice, 100, 500, 1 << 20);
	ck_assert(direct_choice_says(&choice, 7));
	ck_assert(!direct_choice_says(&choice, 7 + minute_ns)); /* it has not changed */
	count_direct(&choice, 20000, 2000, 1 << 20);
	ck_assert(!direct_choice_says(&choice, 6 + minute_ns));
	ck_assert(direct_choice_says(&choice, 7 + minute_ns));
	count_direct(&choice, 20000, 500, 1 << 20);
	ck_assert(!direct_choice_says(&choice, 8 + minute_ns));
	count_direct(&choice, 20000, 2000, 1 << 20); /* as people know */
	ck_assert(!direct_choice_says(&choice, 9 + 2 * minute_ns));
}
END_TEST

START_TEST(what_the_page_cache_has_is_read_there)
{
	struct direct_choice choice = {.turn = 0};

	count_direct(&choice, 100, 500, 1 << 18);
	ck_assert(choice.is_settled && !choice.is_direct);
	count_direct(&choice, 20000, 500, 1 << 20); /* it has lost it */
	ck_assert(choice.is_direct);
}
END_TEST

/* ---- a file ---- */

static uint8_t byte_of(uint64_t number, uint64_t at)
{
	return (uint8_t)(number * 131 + at * 7 + at / 251);
}

/* Are they those of that number from there on? */
static void check_bytes(uint64_t number, uint64_t at, const uint8_t *is, uint32_t bytes)
{
	uint32_t k = 0;

	while (k < bytes && is[k] == byte_of(number, at + k))
		k++;
	ck_assert_msg(k == bytes, "number %llu, byte %llu", (unsigned long long)number,
		      (unsigned long long)at + k);
}

/* Its pages in the page cache. */
static unsigned resident(int fd, uint64_t bytes)
{
	unsigned char pages[2 * FILE_BYTES / PAGE];
	const size_t n = (size_t)((bytes + PAGE - 1) / PAGE);
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	unsigned is = 0;

	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_uint_le(n, sizeof(pages));
	ck_assert_int_eq(mincore(map, bytes, pages), 0);
	for (size_t i = 0; i < n; i++)
		is += pages[i] & 1;
	munmap(map, bytes);
	return is;
}

static unsigned n_ended;

static void count_ended(void *arg, const unsigned *number, unsigned n)
{
	bool *is_ended = arg;

	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_lt(number[i], DIRECT_DEEP);
		ck_assert(!is_ended[number[i]]);
		is_ended[number[i]] = true;
	}
	n_ended += n;
}

/* What is refused without a queue is said once. */
static bool has_queue(struct direct_queue *queue)
{
	const int r = direct_queue_read(queue, &(struct direct_batch){.n = 0});

	if (r)
		printf("several reads at once past the page cache: not tested: io_setup: %s\n",
		       strerror(-r));
	return r == 0;
}

static void read_and_compare(struct direct_queue *queue, int fd, uint32_t align, uint8_t *memory,
			     struct philox_seq *seq)
{
	struct direct_read read[DIRECT_DEEP];
	struct direct_span span[DIRECT_DEEP];
	uint64_t at[DIRECT_DEEP];
	uint32_t bytes[DIRECT_DEEP];
	bool is_ended[DIRECT_DEEP] = {false};

	n_ended = 0;
	for (unsigned i = 0; i < DIRECT_DEEP; i++) {
		at[i] = philox_below(seq, FILE_BYTES);
		bytes[i] = 1 + (uint32_t)philox_below(
				   seq, BASE_MIN(FILE_BYTES - at[i], (uint64_t)MOST_BYTES));
		ck_assert(direct_span(at[i], bytes[i], align, PAGE, PAGE, &span[i]));
		read[i] = (struct direct_read){.fd = fd,
					       .to = memory + 20 * PAGE * i,
					       .at = span[i].at,
					       .bytes = span[i].bytes};
	}
	ck_assert_int_eq(direct_queue_read(queue, &(struct direct_batch){read, DIRECT_DEEP,
									 count_ended, is_ended}),
			 0);
	ck_assert_uint_eq(n_ended, DIRECT_DEEP);
	for (unsigned i = 0; i < DIRECT_DEEP; i++) {
		ck_assert_int_ge(read[i].result, (int)(span[i].before + bytes[i]));
		check_bytes(0, at[i], read[i].to + span[i].before, bytes[i]);
	}
}

START_TEST(a_file_comes_and_does_not_stay)
{
	struct direct_queue queue = {.is_open = false};
	struct direct_read bad;
	struct philox_seq seq;
	struct tree tree;
	uint8_t *memory = mmap(NULL, 20 * PAGE * DIRECT_DEEP, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t align;
	int fd, direct_fd;

	tree_new(&tree);
	fd = openat(tree.fd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	for (uint64_t at = 0; at < FILE_BYTES; at += PAGE)
		for (uint64_t k = 0; k < PAGE; k++)
			memory[at + k] = byte_of(0, at + k);
	ck_assert_int_eq(base_write_at(fd, memory, FILE_BYTES, 0), 0);
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	align = direct_align(fd);
	direct_fd = openat(tree.fd, "file", O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (!align || align > PAGE || direct_fd < 0) {
		printf("reading past the page cache: not tested: not on this file system\n");
	} else if (has_queue(&queue)) {
		const unsigned before = resident(fd, FILE_BYTES);

		philox_seq_init(&seq, 1, 0, 0);
		for (unsigned i = 0; i < 10; i++)
			read_and_compare(&queue, direct_fd, align, memory, &seq);
		ck_assert_uint_le(resident(fd, FILE_BYTES), before);
		bad = (struct direct_read){.fd = -1, .to = memory, .bytes = align};
		ck_assert_int_eq(
		    direct_queue_read(&queue, &(struct direct_batch){.read = &bad, .n = 1}), 0);
		ck_assert_int_eq(bad.result, -EBADF);
	}
	base_close(&direct_fd);
	close(fd);
	munmap(memory, 20 * PAGE * DIRECT_DEEP);
	tree_remove(&tree);
}
END_TEST

/* ---- a reader ---- */

static struct tree tree;
static struct process process;

static uint32_t size_of(unsigned sample)
{
	return 33000 + sample * 1237 % 40000;
}

static void put_u32(FILE *file, uint32_t value)
{
	const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				  (uint8_t)(value >> 24)};

	ck_assert_uint_eq(fwrite(bytes, 1, 4, file), 4);
}

static FILE *create(const char *name)
{
	int fd = openat(tree.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	ck_assert_ptr_nonnull(file);
	return file;
}

/* An MDS shard: samples lie at any byte. Its size. */
static uint32_t write_shard(const char *name, unsigned first)
{
	static const char columns[] = "{\"column_encodings\": [\"jpeg\"], \"column_names\": "
				      "[\"image\"], \"column_sizes\": [null]}";
	uint32_t at = 4 + 4 * (EACH + 1) + sizeof(columns) - 1;
	FILE *file = create(name);

	put_u32(file, EACH);
	for (unsigned i = 0; i <= EACH; i++) {
		put_u32(file, at);
		at += i < EACH ? 4 + size_of(first + i) : 0;
	}
	fputs(columns, file);
	for (unsigned i = first; i < first + EACH; i++) {
		put_u32(file, size_of(i));
		for (uint32_t k = 0; k < size_of(i); k++)
			fputc(byte_of(i, k), file);
	}
	ck_assert_int_eq(fclose(file), 0);
	return at;
}

static void write_shards(void)
{
	FILE *file = create("index.json");

	fputs("{\"version\": 2, \"shards\": [", file);
	for (unsigned i = 0; i < SHARDS; i++) {
		char name[32];
		uint32_t bytes;

		snprintf(name, sizeof(name), "shard.%05u.mds", i);
		bytes = write_shard(name, i * EACH);
		fprintf(
		    file,
		    "%s{\"column_encodings\": [\"jpeg\"], \"column_names\": [\"image\"], "
		    "\"column_sizes\": [null], \"compression\": null, \"format\": \"mds\", "
		    "\"hashes\": [], \"raw_data\": {\"basename\": \"%s\", \"bytes\": %u, "
		    "\"hashes\": {}}, \"samples\": %u, \"size_limit\": 67108864, \"version\": 2, "
		    "\"zip_data\": null}",
		    i ? ", " : "", name, bytes, EACH);
	}
	fputs("]}", file);
	ck_assert_int_eq(fclose(file), 0);
}

/* Descriptors of the reader that read past the page cache; -1: it does not show them. */
static int count_direct_fds(void)
{
	char folder[64], name[64 + 256], line[128];
	const struct dirent *entry;
	int n = 0;
	DIR *stream;

	snprintf(folder, sizeof(folder), "/proc/%d/fdinfo", (int)process.pid);
	stream = opendir(folder);
	if (!stream)
		return -1;
	while ((entry = readdir(stream))) {
		unsigned flags = 0;
		FILE *file;

		snprintf(name, sizeof(name), "%s/%s", folder, entry->d_name);
		file = fopen(name, "r");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "flags: %o", &flags) == 1)
				n += (flags & O_DIRECT) != 0;
		if (file)
			fclose(file);
	}
	closedir(stream);
	return n;
}

/* faults: as of process_start(). */
static void start_reader(const char *faults, bool may_be_huge)
{
	struct wire_out out;

	process_start(&process, faults, false);
	wire_out_init(&out, READER_START);
	wire_put_u64(&out, READER_KEY_DIRECT, 1);
	wire_put_u64(&out, READER_KEY_HUGE, may_be_huge);
	wire_put_fd(&out, process.doorbell_fd);
	wire_put_fd(&out, process.event_fd);
	process_send(&process, &out);
}

static void check_round(struct work *work)
{
	work_wait(&process, work);
	ck_assert_uint_eq(work_in_state(work, LAYOUT_TASK_READY), work->count);
	for (uint32_t i = 0; i < work->count; i++)
		check_bytes(i, 0, work->arena + work->offset[i], size_of(i));
}

/* Each round into memory that was cleared. */
static void read_rounds(struct work *work)
{
	uint8_t *arena;

	ck_assert_int_eq(queue_arena_attach(work->arena_fd, &work->queue, true, &arena), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		memset(arena, 0, work->queue.arena_bytes);
		work_queue(&process, work);
		check_round(work);
	}
	queue_arena_detach(&work->queue, arena);
}

static void open_shards(const char *path, struct work *ret)
{
	struct dataset *dataset;
	int fd;

	process_ask_open(&process, 1, path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	ck_assert(dataset_is_placed(dataset));
	work_new(ret, &tree, dataset, 1);
	work_attach(&process, ret, 1);
}

static void close_shards(struct work *work)
{
	work_detach(&process, work);
	work_free(work);
}

/* fds: the least number of descriptors that read past the page cache then. */
static void read_shards(const char *path, int fds)
{
	struct work work;
	int is;

	open_shards(path, &work);
	read_rounds(&work);
	is = count_direct_fds();
	ck_assert(fds ? is < 0 || is >= fds : is <= 0);
	close_shards(&work);
}

/* Does this file system say how, and has the kernel a queue for us? */
static bool is_read_directly(void)
{
	struct direct_queue queue = {.is_open = false};
	int fd = openat(tree.fd, "index.json", O_RDONLY | O_CLOEXEC);
	const uint32_t align = direct_align(fd);

	close(fd);
	if (!align || align > DATASET_PLACE) {
		printf("shards past the page cache: not tested: not on this file system\n");
		return false;
	}
	return has_queue(&queue);
}

START_TEST(every_byte_of_shards_comes)
{
	tree_new(&tree);
	write_shards();
	start_reader(NULL, true);
	read_shards(tree.path, is_read_directly() ? SHARDS : 0);
	process_stop(&process);
	tree_remove(&tree);
}
END_TEST

/* What the reader says meanwhile. */
static void log_to(const char *name, int *ret_stderr)
{
	const int fd = openat(tree.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	*ret_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	close(fd);
}

static bool log_has(const char *name, const char *text)
{
	char line[1024];
	const int fd = openat(tree.fd, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool has = false;

	ck_assert_ptr_nonnull(file);
	while (!has && fgets(line, sizeof(line), file))
		has = strstr(line, text) != NULL;
	fclose(file);
	return has;
}

static const struct {
	const char *faults, *says;
} refusal_cases[] = {
    {"noaio", "io_setup: Operation not permitted\""},
    {"fewaio", "sysctl fs.aio-max-nr="},
};

START_TEST(where_the_kernel_has_no_queue_they_come_as_ever)
{
	struct work work;
	int error_fd;

	tree_new(&tree);
	write_shards();
	log_to(".log", &error_fd);
	start_reader(refusal_cases[_i].faults, true);
	dup2(error_fd, STDERR_FILENO);
	close(error_fd);
	open_shards(tree.path, &work);
	read_rounds(&work);
	close_shards(&work);
	process_stop(&process);
	if (is_read_directly())
		ck_assert(log_has(".log", refusal_cases[_i].says));
	tree_remove(&tree);
}
END_TEST

static void await_ready(const struct work *work, uint32_t n)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	while (work_in_state(work, LAYOUT_TASK_READY) < n) {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		usleep(1000);
	}
}

static const char *const late_cases[] = {"held", "late cut", "late cut few"};

/* A read that takes long holds up none of those that were begun with it; nor does one that cannot be read so, and comes by
 * itself, hold up them or another one like it. */
START_TEST(one_that_takes_long_holds_up_no_other)
{
	char held[sizeof(tree.path) + 8];
	struct work work;

	tree_new(&tree);
	write_shards();
	if (is_read_directly()) {
		snprintf(held, sizeof(held), "%s/.held", tree.path);
		setenv("HELD", held, 1);
		close(openat(tree.fd, ".held", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		start_reader(late_cases[_i], true);
		open_shards(tree.path, &work);
		work_queue(&process, &work);
		await_ready(&work, work.count - 1);
		ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READING), 1);
		unlink(held);
		check_round(&work);
		close_shards(&work);
		process_stop(&process);
	}
	tree_remove(&tree);
}
END_TEST

/* KiB of the reader's memory that is shared and in huge pages; -1: the kernel does not say. */
static int huge_kib(void)
{
	char name[64], line[256];
	int kib = 0, is = -1;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/smaps_rollup", (int)process.pid);
	file = fopen(name, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "ShmemPmdMapped: %d", &kib) == 1)
			is = kib;
	if (file)
		fclose(file);
	return is;
}

/* Does the kernel make huge pages of shared memory only where somebody asks for them? */
static bool huge_if_asked(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	char line[128] = "";
	bool is_read = file && fgets(line, sizeof(line), file);

	if (file)
		fclose(file);
	return is_read &&
	       (strstr(line, "[never]") || strstr(line, "[advise]") || strstr(line, "[deny]"));
}

START_TEST(arenas_lie_in_small_pages_where_they_shall)
{
	struct work work;

	tree_new(&tree);
	write_shards();
	start_reader(NULL, false);
	open_shards(tree.path, &work);
	ck_assert_uint_ge(work.queue.arena_bytes, 2 << 20);
	read_rounds(&work);
	if (huge_if_asked())
		ck_assert_int_le(huge_kib(), 0);
	else
		printf("arenas in small pages: not tested: the kernel makes huge ones of all\n");
	close_shards(&work);
	process_stop(&process);
	tree_remove(&tree);
}
END_TEST

START_TEST(where_there_is_no_such_reading_they_come_as_ever)
{
	snprintf(tree.path, sizeof(tree.path), "/dev/shm/oneaccess-direct-XXXXXX");
	if (!mkdtemp(tree.path)) {
		printf("shards on tmpfs: not tested: /dev/shm: %s\n", strerror(errno));
		return;
	}
	tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(tree.fd, 0);
	write_shards();
	start_reader(NULL, true);
	read_shards(tree.path, 0);
	process_stop(&process);
	tree_remove(&tree);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, spans, 0, BASE_ARRAY_LEN(span_cases));
	tcase_add_test(tcase, what_takes_less_is_chosen);
	tcase_add_test(tcase, what_is_about_as_good_stays);
	tcase_add_test(tcase, changes_are_told_once_a_minute);
	tcase_add_test(tcase, what_the_page_cache_has_is_read_there);
	tcase_add_test(tcase, a_file_comes_and_does_not_stay);
	tcase_add_test(tcase, every_byte_of_shards_comes);
	tcase_add_loop_test(tcase, where_the_kernel_has_no_queue_they_come_as_ever, 0,
			    BASE_ARRAY_LEN(refusal_cases));
	tcase_add_loop_test(tcase, one_that_takes_long_holds_up_no_other, 0,
			    BASE_ARRAY_LEN(late_cases));
	tcase_add_test(tcase, arenas_lie_in_small_pages_where_they_shall);
	tcase_add_test(tcase, where_there_is_no_such_reading_they_come_as_ever);
}

int main(void)
{
	return suite_run("direct", add);
}
