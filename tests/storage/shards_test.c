/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shards, by a real access-reader: its index of them, when a stored one holds, and each sample's bytes.
 */

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/index.h"
#include "storage/openness.h"
#include "tests/storage/reader_process.h"

#define SHARDS 260 /* more than stay open */
#define EACH 3

static struct tree tree;
static struct process process;

static void setup(void)
{
	tree_new(&tree);
}

static void teardown(void)
{
	tree_remove(&tree);
}

/* ---- shards ---- */

static void add(FILE *file, const char *path, const uint8_t *data, size_t size)
{
	char block[512] = "";
	unsigned sum = 0;

	snprintf(block, 100, "%s", path);
	snprintf(block + 124, 12, "%011o", (unsigned)size & 0777777777);
	block[156] = '0';
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += (uint8_t)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	ck_assert_uint_eq(fwrite(block, 1, sizeof(block), file), sizeof(block));
	ck_assert_uint_eq(fwrite(data, 1, size, file), size);
	memset(block, 0, sizeof(block));
	size = (size_t)base_align_up(size, 512) - size;
	ck_assert_uint_eq(fwrite(block, 1, size, file), size);
}

static uint32_t size_of(unsigned sample)
{
	return sample * 37 % 5000; /* the first is empty */
}

/* Samples that are called KEY have the bytes of tree_byte("SHARD:KEY"). */
static void write_shard(const char *shard, unsigned number, bool has_labels)
{
	FILE *file;
	int fd = openat(tree.fd, shard, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	file = fdopen(fd, "w");
	ck_assert_ptr_nonnull(file);
	for (unsigned i = number * EACH; i < (number + 1) * EACH; i++) {
		char key[32], name[64], path[64];
		uint8_t bytes[5000];

		snprintf(key, sizeof(key), "%04u", i);
		snprintf(name, sizeof(name), "%s:%s", shard, key);
		for (uint32_t k = 0; k < size_of(i); k++)
			bytes[k] = tree_byte(name, k);
		snprintf(path, sizeof(path), "%s.jpg", key);
		add(file, path, bytes, size_of(i));
		if (has_labels) {
			snprintf(path, sizeof(path), "%s.cls", key);
			snprintf(name, sizeof(name), "%u", i % 12);
			add(file, path, (const uint8_t *)name, strlen(name));
		}
	}
	ck_assert_int_eq(fclose(file), 0);
}

static void write_shards(unsigned n, bool has_labels)
{
	for (unsigned i = 0; i < n; i++) {
		char shard[32];

		snprintf(shard, sizeof(shard), "%03u.tar", i);
		write_shard(shard, i, has_labels);
	}
}

static struct dataset *map(int fd)
{
	struct dataset *index;

	ck_assert_int_ge(fd, 0);
	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &index), 0);
	close(fd);
	return index;
}

static void path_of(const char *below, char ret[4200])
{
	snprintf(ret, 4200, "%s%s%s", tree.path, *below ? "/" : "", below);
}

/* The new index; -1: the stored one holds. */
static int open_again(const char *below, int stored_fd)
{
	char path[4200];

	path_of(below, path);
	process_ask_open(&process, 1, path, stored_fd);
	return process_opened(&process, 1);
}

static void close_it(void)
{
	struct wire_out out;

	wire_out_init(&out, READER_CANCEL);
	wire_put_u64(&out, READER_KEY_ID, 1);
	process_send(&process, &out);
}

static struct dataset *open_new(const char *below)
{
	struct dataset *index = map(open_again(below, -1));

	close_it();
	return index;
}

/* ---- the index ---- */

START_TEST(index_says_where_samples_are)
{
	struct dataset *index;
	struct dataset_shard shard;
	struct stat st;

	write_shards(3, true);
	process_start(&process, NULL, true);
	index = open_new("");
	ck_assert_uint_eq(dataset_kind(index), INDEX_OF_TAR);
	ck_assert_uint_eq(dataset_count(index), 3 * EACH);
	ck_assert_uint_eq(dataset_classes(index), 9); /* 0 to 8 */
	ck_assert_str_eq(dataset_class_name(index, 8), "8");
	ck_assert_uint_eq(dataset_shards(index), 3);
	for (unsigned i = 0; i < 3 * EACH; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%03u.tar:%04u", i / EACH, i);
		ck_assert_str_eq(dataset_name_of(index, i), name);
		ck_assert_uint_eq(dataset_size_of(index, i), size_of(i));
		ck_assert_uint_eq(dataset_label_of(index, i), i);
		ck_assert_uint_eq(dataset_shard_with(index, i), i / EACH);
		if (i % EACH == 0)
			ck_assert_uint_eq(dataset_at_of(index, i), 512);
	}
	dataset_shard_of(index, 2, &shard);
	ck_assert_str_eq(shard.name, "002.tar");
	ck_assert_int_eq(fstatat(tree.fd, "002.tar", &st, 0), 0);
	ck_assert_uint_eq(shard.bytes, (uint64_t)st.st_size);
	dataset_unmap(index);
	process_stop(&process);
}
END_TEST

START_TEST(version_is_of_shards_and_samples)
{
	static const char *const same[] = {"", "{000..002}.tar", "{002,000,001,000}.tar"};
	struct dataset *index, *other;

	write_shards(3, true);
	for (unsigned i = 0; i < 3; i++)
		tree_mtime(&tree, (const char *[]){"000.tar", "001.tar", "002.tar"}[i], 1000 + i,
			   0);
	process_start(&process, NULL, true);
	index = open_new("");
	for (size_t i = 0; i < BASE_ARRAY_LEN(same); i++) {
		other = open_new(same[i]);
		ck_assert_mem_eq(dataset_version(index), dataset_version(other),
				 sizeof(struct hash_id));
		dataset_unmap(other);
	}
	other = open_new("{000..001}.tar");
	ck_assert_mem_ne(dataset_version(index), dataset_version(other), sizeof(struct hash_id));
	dataset_unmap(other);
	tree_mtime(&tree, "001.tar", 1001, 1);
	other = open_new("");
	ck_assert_mem_ne(dataset_version(index), dataset_version(other), sizeof(struct hash_id));
	dataset_unmap(other);
	dataset_unmap(index);
	process_stop(&process);
}
END_TEST

/* One sample, by a program that gives all shards one mtime. */
static void write_alike(const char *picture, const char *bytes, const char *cls, const char *label)
{
	FILE *file;
	int fd = openat(tree.fd, "alike.tar", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	file = fdopen(fd, "w");
	ck_assert_ptr_nonnull(file);
	add(file, picture, (const uint8_t *)bytes, strlen(bytes));
	add(file, cls, (const uint8_t *)label, strlen(label));
	ck_assert_int_eq(fclose(file), 0);
}

static void alike_label(unsigned which)
{
	write_alike("1.jpg", "x", "1.cls", which ? "7" : "8");
}
static void alike_size(unsigned which)
{
	write_alike("1.jpg", which ? "x" : "xy", "1.cls", "7");
}
static void alike_key(unsigned which)
{
	write_alike(which ? "1.jpg" : "2.jpg", "x", which ? "1.cls" : "2.cls", "7");
}

/* Labels, sizes, keys: all that a sample is but its bytes. */
START_TEST(shards_that_look_alike_are_not_the_same)
{
	static void (*const write[])(unsigned) = {alike_label, alike_size, alike_key};
	struct hash_id version[2];
	struct stat st[2];

	process_start(&process, NULL, true);
	for (unsigned i = 0; i < 2; i++) {
		struct dataset *index;

		write[_i](i);
		tree_mtime(&tree, "alike.tar", 1000, 0);
		ck_assert_int_eq(fstatat(tree.fd, "alike.tar", &st[i], 0), 0);
		index = open_new("alike.tar");
		version[i] = *dataset_version(index);
		dataset_unmap(index);
	}
	ck_assert_int_eq(st[0].st_size, st[1].st_size);
	ck_assert_mem_ne(&version[0], &version[1], sizeof(version[0]));
	process_stop(&process);
}
END_TEST

/* The clock of file systems moves in steps: what changes after this is later than what was scanned before. */
static void let_clock_go_on(void)
{
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;
	struct stat before, after;

	tree_file(&tree, ".clock", 1);
	ck_assert_int_eq(fstatat(tree.fd, ".clock", &before, 0), 0);
	do {
		ck_assert_uint_lt(base_now_ns(), deadline_ns);
		ck_assert_int_eq(fchmodat(tree.fd, ".clock", 0600, 0), 0);
		ck_assert_int_eq(fstatat(tree.fd, ".clock", &after, 0), 0);
	} while (before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
		 before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
}

static void change_nothing(void)
{
}
static void touch_one(void)
{
	tree_mtime(&tree, "001.tar", 5, 0);
}
static void add_one(void)
{
	write_shard("9.tar", 3, true);
}
static void remove_one(void)
{
	ck_assert_int_eq(unlinkat(tree.fd, "001.tar", 0), 0);
}
/* The same bytes, size and time, by another file. */
static void replace_one(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tree.fd, "001.tar", &st, 0), 0);
	write_shard("new", 1, true);
	ck_assert_int_eq(renameat(tree.fd, "new", tree.fd, "001.tar"), 0);
	tree_mtime(&tree, "001.tar", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}
static void add_a_folder(void)
{
	tree_file(&tree, "class/1.jpg", 10);
}
static void add_what_does_not_count(void)
{
	tree_file(&tree, "list.json", 10);
	tree_file(&tree, ".hidden.tar", 10);
}

START_TEST(stored_index_holds_as_long_as_shards_do)
{
	static const struct {
		void (*change)(void);
		bool holds;
	} cases[] = {
	    {change_nothing, true}, {add_what_does_not_count, true},
	    {touch_one, false},     {add_one, false},
	    {remove_one, false},    {replace_one, false},
	    {add_a_folder, false},
	};
	int stored, again;

	write_shards(3, true);
	process_start(&process, NULL, true);
	stored = open_again("", -1);
	ck_assert_int_ge(stored, 0);
	close_it();
	let_clock_go_on();
	cases[_i].change();
	again = open_again("", dup(stored));
	ck_assert_int_eq(again < 0, cases[_i].holds);
	if (again >= 0)
		close(again);
	close(stored);
	process_stop(&process);
}
END_TEST

START_TEST(no_more_memory_than_it_may_have)
{
	char text[768];

	write_shards(20, true);
	process_start(&process, NULL, true);
	process_ask_open_within(&process, 1, tree.path, 1000);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_ROOM);
	ck_assert_ptr_nonnull(strstr(text, "memory"));
	process_stop(&process);
}
END_TEST

/* A reader that opens the shards, where it may take so many bytes; does it say that? */
static bool says_of_shards(uint64_t most, const char *text)
{
	char line[2048];
	bool has = false;
	FILE *file = fopen("shards-said", "w+");
	const int error_fd = dup(STDERR_FILENO);

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
	process_start(&process, NULL, true);
	dup2(error_fd, STDERR_FILENO);
	close(error_fd);
	process_ask_open_within(&process, 1, tree.path, most);
	close(process_opened(&process, 1));
	process_stop(&process);
	rewind(file);
	while (!has && fgets(line, sizeof(line), file))
		has = strstr(line, text) != NULL;
	fclose(file);
	unlink("shards-said");
	return has;
}

/* An index beside shards is read where there is room for it beside what the shards take. */
START_TEST(indexes_beside_have_what_shards_leave)
{
	const uint64_t bytes = 1 << 20;

	write_shards(1, true);
	tree_file(&tree, "000.idx", bytes);
	ck_assert(says_of_shards(bytes + 100, "000.idx cannot be read: Cannot allocate memory"));
	ck_assert(says_of_shards(2 * bytes, "000.idx:1 "));
}
END_TEST

/* Before it is parsed: each byte of it is a list in a list. */
START_TEST(no_more_memory_for_an_index_json)
{
	char text[768], many[1000];
	int fd = openat(tree.fd, "index.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	memset(many, '[', sizeof(many));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_write_at(fd, many, sizeof(many), 0), 0);
	close(fd);
	tree_file(&tree, "shard.00000.mds", 100);
	process_start(&process, NULL, true);
	process_ask_open_within(&process, 1, tree.path, 100000);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_ROOM);
	process_stop(&process);
}
END_TEST

/* Of a shard that another process may write to: opening it breaks the lease. */
static void *give_lease_up(void *arg)
{
	const int fd = *(const int *)arg;
	const uint64_t deadline_ns = base_now_ns() + PATIENCE_NS;

	while (fcntl(fd, F_GETLEASE) == F_WRLCK && base_now_ns() < deadline_ns)
		usleep(1000);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return NULL;
}

START_TEST(a_lease_is_waited_for)
{
	struct dataset *index;
	pthread_t thread;
	int fd;

	write_shards(3, true);
	process_start(&process, NULL, true);
	fd = openat(tree.fd, "001.tar", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
		printf("a shard with a lease: not tested: %s\n", strerror(errno));
		close(fd);
		process_stop(&process);
		return;
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, give_lease_up, &fd), 0);
	index = open_new("");
	ck_assert_uint_eq(dataset_count(index), 3 * EACH);
	pthread_join(thread, NULL);
	close(fd);
	dataset_unmap(index);
	process_stop(&process);
}
END_TEST

/* ---- what is open to everybody ---- */

static void close_one(void)
{
	ck_assert_int_eq(fchmodat(tree.fd, "001.tar", 0640, 0), 0);
}
static void link_one(void)
{
	ck_assert_int_eq(renameat(tree.fd, "001.tar", tree.fd, ".real"), 0);
	tree_link(&tree, ".real", "001.tar");
}

/* The end of it is there in name only. */
static void thin_one(void)
{
	const int fd = openat(tree.fd, "001.tar", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 64 << 20), 0);
	close(fd);
}

static void ask_open_only(const char *below)
{
	struct wire_out out;
	char path[4200];

	path_of(below, path);
	wire_out_init(&out, READER_OPEN);
	wire_put_u64(&out, READER_KEY_ID, 1);
	wire_put_string(&out, READER_KEY_PATH, path);
	wire_put_u64(&out, READER_KEY_HOW, READER_HOW_OPEN_ONLY);
	process_send(&process, &out);
}

START_TEST(shards_must_be_open_each)
{
	static const struct {
		void (*change)(void);
		const char *below;
		bool is_open;
	} cases[] = {
	    {change_nothing, "", true},
	    {change_nothing, "{000..002}.tar", true},
	    {change_nothing, "001.tar", true},
	    {close_one, "", false},
	    {close_one, "{000..002}.tar", false},
	    {close_one, "{000,002}.tar", true},
	    {close_one, "001.tar", false},
	    {link_one, "", false},
	    {thin_one, "", false},
	    {thin_one, "{000,002}.tar", true},
	    {thin_one, "001.tar", false},
	};
	char text[768];

	ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
	if (!openness_of_way(tree.fd)) {
		printf("shards that are open to everybody: not tested: the way to %s is not\n",
		       tree.path);
		return;
	}
	write_shards(3, true);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(fchmodat(tree.fd,
					  (const char *[]){"000.tar", "001.tar", "002.tar"}[i],
					  0644, 0),
				 0);
	cases[_i].change();
	process_start(&process, NULL, true);
	ask_open_only(cases[_i].below);
	if (cases[_i].is_open)
		close(process_opened(&process, 1));
	else
		ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_CLOSED);
	process_stop(&process);
}
END_TEST

/* ---- reading ---- */

static void work_on(struct work *work, const char *below)
{
	work_new(work, &tree, map(open_again(below, -1)), 1);
	work_attach(&process, work, 1);
}

static void read_all(struct work *work)
{
	work_queue(&process, work);
	work_wait(&process, work);
}

/* Also from a disk that gives few bytes at a time. */
START_TEST(reader_reads_every_sample)
{
	static const char *const faults[] = {NULL, "short eintr"};
	struct work work;

#ifdef __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	if (faults[_i])
		return; /* reader_test.c says why */
#endif
#endif
	write_shards(SHARDS, false);
	process_start(&process, faults[_i], true);
	work_on(&work, "");
	ck_assert_uint_eq(work.count, SHARDS * EACH);
	read_all(&work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* Of the reader. */
static rlim_t count_fds(void)
{
	struct dirent *entry;
	char folder[32];
	rlim_t n = 0;
	DIR *stream;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)process.pid);
	stream = opendir(folder);
	ck_assert_ptr_nonnull(stream);
	while ((entry = readdir(stream)))
		n += entry->d_name[0] != '.';
	closedir(stream);
	return n;
}

/* Those that stay open take none from one that is to be read. */
START_TEST(no_descriptor_is_left_for_a_shard)
{
	struct rlimit limit;
	struct work work;

	write_shards(SHARDS, false);
	process_start(&process, NULL, true);
	work_on(&work, "");
	ck_assert_int_eq(prlimit(process.pid, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = count_fds() + 20;
	ck_assert_int_eq(prlimit(process.pid, RLIMIT_NOFILE, &limit, NULL), 0);
	read_all(&work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* When it was opened just now, or is open since. The index is stored, so that no scan meets the fault. */
START_TEST(a_shard_that_its_server_forgot_is_opened_anew)
{
	static const char *const faults[] = {"estale", "server"};
	struct work work;
	int stored;

	write_shards(3, false);
	process_start(&process, NULL, true);
	stored = open_again("", -1);
	process_stop(&process);
	process_start(&process, faults[_i], true);
	ck_assert_int_eq(open_again("", dup(stored)), -1);
	work_new(&work, &tree, map(stored), 1);
	work_attach(&process, &work, 1);
	read_all(&work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(one_shard_is_a_data_set)
{
	struct work work;

	write_shards(2, false);
	process_start(&process, NULL, true);
	work_on(&work, "001.tar");
	read_all(&work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* All samples of the shard, and no others, are told. */
START_TEST(reader_tells_a_change)
{
	static void (*const changes[])(void) = {touch_one, remove_one};
	struct work work;

	write_shards(3, true);
	process_start(&process, NULL, true);
	work_on(&work, "");
	changes[_i]();
	read_all(&work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), 2 * EACH);
	for (uint32_t i = EACH; i < 2 * EACH; i++) {
		enum layout_fail stage;
		char text[48];
		uint32_t us;
		int code;

		queue_task_outcome(&work.queue, work.row, i, &stage, &code, text, &us);
		ck_assert_int_eq(stage, LAYOUT_FAIL_CHANGED);
		ck_assert_int_eq(code, LAYOUT_CHANGED_ALL);
		ck_assert_ptr_nonnull(strstr(text, "since it was listed"));
	}
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* Descriptors of the reader on files that are gone. */
static unsigned removed_that_are_open(void)
{
	char folder[64], link[64 + 256], target[4200];
	const struct dirent *entry;
	unsigned n = 0;
	DIR *stream;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)process.pid);
	stream = opendir(folder);
	ck_assert_ptr_nonnull(stream);
	while ((entry = readdir(stream))) {
		ssize_t length;

		snprintf(link, sizeof(link), "%s/%s", folder, entry->d_name);
		length = readlink(link, target, sizeof(target) - 1);
		target[BASE_MAX(length, 0)] = '\0';
		n += strstr(target, ".tar (deleted)") != NULL;
	}
	closedir(stream);
	return n;
}

START_TEST(a_removed_shard_is_closed)
{
	struct work work, again;
	int fd;

	write_shards(3, true);
	process_start(&process, NULL, true);
	fd = open_again("", -1);
	work_new(&work, &tree, map(dup(fd)), 1);
	work_new(&again, &tree, map(fd), 2);
	work_attach(&process, &work, 1);
	read_all(&work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), 3 * EACH);
	remove_one();
	ck_assert_uint_eq(removed_that_are_open(), 1);
	work_attach(&process, &again, 1);
	read_all(&again);
	ck_assert_uint_eq(work_in_state(&again, LAYOUT_TASK_READY), 2 * EACH);
	ck_assert_uint_eq(removed_that_are_open(), 0);
	work_free(&again);
	work_free(&work);
	process_stop(&process);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shards");
	TCase *tcase = tcase_create("shards");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, PATIENCE_S);
	tcase_add_test(tcase, index_says_where_samples_are);
	tcase_add_test(tcase, version_is_of_shards_and_samples);
	tcase_add_loop_test(tcase, shards_that_look_alike_are_not_the_same, 0, 3);
	tcase_add_loop_test(tcase, stored_index_holds_as_long_as_shards_do, 0, 7);
	tcase_add_test(tcase, no_more_memory_than_it_may_have);
	tcase_add_test(tcase, no_more_memory_for_an_index_json);
	tcase_add_test(tcase, indexes_beside_have_what_shards_leave);
	tcase_add_test(tcase, a_lease_is_waited_for);
	tcase_add_loop_test(tcase, shards_must_be_open_each, 0, 11);
	tcase_add_loop_test(tcase, reader_reads_every_sample, 0, 2);
	tcase_add_test(tcase, no_descriptor_is_left_for_a_shard);
	tcase_add_loop_test(tcase, a_shard_that_its_server_forgot_is_opened_anew, 0, 2);
	tcase_add_test(tcase, one_shard_is_a_data_set);
	tcase_add_loop_test(tcase, reader_tells_a_change, 0, 2);
	tcase_add_test(tcase, a_removed_shard_is_closed);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
