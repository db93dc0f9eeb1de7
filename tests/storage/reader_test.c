/* SPDX-License-Identifier: Apache-2.0 */

/* access-reader as accessd sees it: opening, reading, storage that misbehaves, death. */

#include "tests/storage/reader_process.h"
#include "tests/invariants/invariants.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES 200

/* clang's sanitizers bring a pread() into the program itself, which no preloaded one replaces. */
#ifdef __clang__
#define CAN_PRELOAD (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define CAN_PRELOAD true
#endif

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

static void make_files(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[64];

		snprintf(name, sizeof(name), "c%u/%03u.jpg", i % 3, i);
		tree_file(&tree, name, i * i % 7001 * (i % 50 ? 1 : 20));
	}
}

/* Opens the tree as dataset 1 and makes a queue of it. */
static void open_work(struct work *work, uint32_t number)
{
	struct dataset *dataset;
	int fd;

	process_ask_open(&process, 1, tree.path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_ge(fd, 0);
	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	work_new(work, &tree, dataset, number);
}

static void send_id(uint16_t type, uint64_t id)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_u64(&out, READER_KEY_ID, id);
	process_send(&process, &out);
}

/* ---- opening ---- */

START_TEST(stored_index_is_used_while_nothing_changed)
{
	struct dataset *dataset;
	char stored[] = "stored-XXXXXX";
	const int stored_fd = mkstemp(stored);
	int fd;
	uint8_t buffer[65536];
	ssize_t size;

	make_files(5);
	process_start(&process, NULL, true);
	process_ask_open(&process, 1, tree.path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_ge(fd, 0);
	size = pread(fd, buffer, sizeof(buffer), 0);
	ck_assert_int_eq(write(stored_fd, buffer, (size_t)size), size);
	close(fd);

	process_ask_open(&process, 2, tree.path, stored_fd);
	ck_assert_int_eq(process_opened(&process, 2), -1);

	ck_assert_int_eq(pwrite(stored_fd, "x", 1, size / 2), 1); /* damaged */
	process_ask_open(&process, 3, tree.path, stored_fd);
	fd = process_opened(&process, 3);
	ck_assert_int_ge(fd, 0);
	close(fd);

	ck_assert_int_eq(pwrite(stored_fd, buffer, (size_t)size, 0), size);
	tree_file(&tree, "c0/new.jpg", 3);
	process_ask_open(&process, 4, tree.path, stored_fd);
	fd = process_opened(&process, 4);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	ck_assert_uint_eq(dataset_count(dataset), 6);
	dataset_unmap(dataset);
	close(fd);
	process_stop(&process);
	close(stored_fd);
	unlink(stored);
}
END_TEST

START_TEST(what_cannot_be_opened_is_refused_with_a_text)
{
	char path[5000], text[768];

	tree_file(&tree, "file", 1);
	tree_folder(&tree, "empty");
	process_start(&process, NULL, true);

	snprintf(path, sizeof(path), "%s/nowhere", tree.path);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), -ENOENT);
	ck_assert_ptr_nonnull(strstr(text, "nowhere"));

	snprintf(path, sizeof(path), "%s/file", tree.path);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), -ENOTDIR);

	process_ask_open(&process, 1, "relative", -1);
	ck_assert_int_eq(process_refused(&process, 1, text), -EINVAL);

	snprintf(path, sizeof(path), "%s/empty", tree.path);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_EMPTY);
	ck_assert_ptr_nonnull(strstr(text, ".jpg"));
	process_stop(&process);
}
END_TEST

START_TEST(open_can_be_cancelled)
{
	struct wire_in in;
	uint64_t code = 0;
	uint16_t type;

	make_files(3);
	process_start(&process, NULL, true);
	do { /* until the cancel comes while a folder is waited for because it is young */
		tree_mtime(&tree, "c0", time(NULL) + 2, 0);
		process_ask_open(&process, 9, tree.path, -1);
		send_id(READER_CANCEL, 9);
		process_receive(&process, &in);
		type = in.type;
		wire_get_u64(&in, READER_KEY_CODE, &code);
		wire_in_fini(&in);
	} while (type == READER_OPENED);
	ck_assert_int_eq(type, READER_REFUSED);
	ck_assert_uint_eq(code, DATASET_E_CANCELLED);
	send_id(READER_CANCEL, 77); /* nothing: crossed an answer */
	ck_assert(process_is_silent(&process));
	process_stop(&process);
}
END_TEST

START_TEST(more_opens_than_threads_are_queued)
{
	enum { OPENS = 40 };
	bool seen[OPENS] = {false};

	make_files(10);
	process_start(&process, NULL, true);
	for (uint64_t i = 0; i < OPENS; i++)
		process_ask_open(&process, i, tree.path, -1);
	for (unsigned i = 0; i < OPENS; i++) {
		struct wire_in in;
		uint64_t id;

		process_receive(&process, &in);
		ck_assert_int_eq(in.type, READER_OPENED);
		ck_assert_int_eq(wire_get_u64(&in, READER_KEY_ID, &id), 0);
		ck_assert(id < OPENS && !seen[id]);
		seen[id] = true;
		wire_in_fini(&in);
	}
	process_stop(&process);
}
END_TEST

/* ---- reading ---- */

START_TEST(every_byte_is_read)
{
	struct work work;
	struct pollfd poll_fd;

	make_files(FILES);
	process_start(&process, NULL, true);
	open_work(&work, 7);
	work_attach(&process, &work, 1);
	queue_ring_at(&work.queue, work.row, 1);
	doorbell_arm_event(process.doorbell);
	work_queue(&process, &work);
	work_wait(&process, &work);
	work_check(&work);
	ck_assert_ptr_null(queue_check(&work.queue));
	poll_fd = (struct pollfd){.fd = process.event_fd, .events = POLLIN};
	ck_assert_int_eq(poll(&poll_fd, 1, 0), 0); /* READY is no end: accessd was left alone */
	work_detach(&process, &work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(queues_of_one_dataset_are_served_and_detached)
{
	struct work one, two;
	struct dataset *dataset;

	make_files(60);
	process_start(&process, NULL, true);
	open_work(&one, 1);
	dataset = tree_scan(&tree, 1);
	work_new(&two, &tree, dataset, 2);
	work_queue(&process, &two); /* before it is attached */
	work_attach(&process, &one, 1);
	work_attach(&process, &two, 1);
	work_queue(&process, &one);
	work_wait(&process, &one);
	work_wait(&process, &two);
	work_check(&one);
	work_check(&two);
	send_id(READER_CANCEL, 1); /* queues keep the dataset */
	work_detach(&process, &two);
	work_detach(&process, &one);
	work_detach(&process, &one); /* unknown by now: the same answer */
	work_free(&one);
	work_free(&two);
	process_stop(&process);
}
END_TEST

static void do_touch(void)
{
	tree_mtime(&tree, "c1/001.jpg", 5, 5);
}
static void do_truncate(void)
{
	ck_assert_int_eq(truncate("c1/001.jpg", 0), 0);
}
static void do_grow(void)
{
	ck_assert_int_eq(truncate("c1/001.jpg", 100), 0);
}
static void do_remove(void)
{
	ck_assert_int_eq(unlink("c1/001.jpg"), 0);
}
static void do_fifo(void)
{
	do_remove();
	ck_assert_int_eq(mkfifo("c1/001.jpg", 0600), 0);
}
static void do_folder(void)
{
	do_remove();
	ck_assert_int_eq(mkdir("c1/001.jpg", 0700), 0);
}
static void do_replace(void)
{
	tree_file(&tree, "c1/new", 1);
	ck_assert_int_eq(rename("c1/new", "c1/001.jpg"), 0);
}
static void do_circle(void)
{
	do_remove();
	ck_assert_int_eq(symlink("001.jpg", "c1/001.jpg"), 0);
}

static const struct damage {
	void (*make)(void);
	enum layout_fail stage;
	int code;
	const char *text;
} damages[] = {
    {do_touch, LAYOUT_FAIL_CHANGED, 0, "written"},
    {do_truncate, LAYOUT_FAIL_CHANGED, 0, "had 1 bytes when listed, has 0"},
    {do_grow, LAYOUT_FAIL_CHANGED, 0, "has 100"},
    {do_remove, LAYOUT_FAIL_CHANGED, ENOENT, "removed"},
    {do_fifo, LAYOUT_FAIL_CHANGED, 0, "no regular file"},
    {do_folder, LAYOUT_FAIL_CHANGED, 0, "no regular file"},
    {do_replace, LAYOUT_FAIL_CHANGED, 0, "written"},
    {do_circle, LAYOUT_FAIL_OPEN, ELOOP, "symbolic"},
};

START_TEST(changed_files_are_told)
{
	struct work work;
	enum layout_fail stage;
	uint32_t owner, us, task;
	char text[48];
	int code;

	make_files(9);
	process_start(&process, NULL, true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	ck_assert_int_eq(fchdir(tree.fd), 0);
	damages[_i].make();
	ck_assert_int_eq(chdir(".."), 0);
	work_queue(&process, &work);
	work_wait(&process, &work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_FAILED), 1);
	for (task = 0; strcmp(dataset_name_of(work.dataset, task), "c1/001.jpg"); task++)
		continue;
	ck_assert_int_eq(queue_task_state(&work.queue, work.row, task, &owner), LAYOUT_TASK_FAILED);
	queue_task_outcome(&work.queue, work.row, task, &stage, &code, text, &us);
	ck_assert_int_eq(stage, damages[_i].stage);
	ck_assert_int_eq(code, damages[_i].code);
	ck_assert_msg(strstr(text, damages[_i].text) != NULL, "%s", text);
	process_failed(&process, &work, task);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* All threads come to it at once. */
START_TEST(a_root_made_anew_is_read_on)
{
	struct work work;

	make_files(FILES);
	process_start(&process, NULL, true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	setenv("T", tree.path, 1);
	ck_assert_int_eq(system("cp -a \"$T\" \"$T.new\" && rm -rf \"$T\" && mv \"$T.new\" \"$T\""),
			 0);
	work_queue(&process, &work);
	work_wait(&process, &work);
	work_check(&work);
	work_detach(&process, &work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(tasks_that_do_not_fit_the_index_fail)
{
	struct work work;
	enum layout_fail stage;
	uint32_t us;
	char text[48];
	int code;

	make_files(9);
	process_start(&process, NULL, true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	queue_task_put(&work.queue, work.row, 0, 9, 0, 0, 0, 0, 1, 0);          /* no such sample */
	queue_task_put(&work.queue, work.row, 1, 1, 0, 1, 0, 0, 1 << 20, 0);    /* other size */
	queue_task_put(&work.queue, work.row, 2, 2, 0, 2, 0, UINT64_MAX, 9, 0); /* no such place */
	for (uint32_t i = 3; i < 9; i++)
		queue_task_put(&work.queue, work.row, i, i, i, i, 0, work.offset[i],
			       dataset_size_of(work.dataset, i), 0);
	doorbell_ring_readers(process.doorbell);
	work_wait(&process, &work);
	for (uint32_t i = 0; i < 3; i++) {
		queue_task_outcome(&work.queue, work.row, i, &stage, &code, text, &us);
		ck_assert_int_ne(stage, LAYOUT_FAIL_NONE);
	}
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), 6);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* ---- storage that misbehaves ---- */

static const char *const survived[] = {"short", "short eintr", "eio", "estale", "short eio eintr"};

START_TEST(passing_faults_are_survived)
{
	struct work work;

	make_files(60);
	process_start(&process, survived[_i], true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	work_wait(&process, &work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(lasting_faults_are_told)
{
	struct work work;
	enum layout_fail stage;
	uint32_t us;
	char text[48];
	int code;

	make_files(4);
	process_start(&process, "dead", true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	queue_ring_at(&work.queue, work.row, 1);
	doorbell_arm_event(process.doorbell);
	work_queue(&process, &work);
	work_wait(&process, &work);
	for (uint32_t i = 0; i < work.count; i++) {
		if (!dataset_size_of(work.dataset, i))
			continue;
		queue_task_outcome(&work.queue, work.row, i, &stage, &code, text, &us);
		ck_assert_int_eq(stage, LAYOUT_FAIL_READ);
		ck_assert_int_eq(code, EIO);
	}
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* A mount that never answers holds its own queues alone. */
START_TEST(hung_mount_stalls_only_itself)
{
	struct tree here = tree, hung;
	struct stat one, two;
	struct work good, bad;
	struct wire_out out;
	int fd;
	struct dataset *dataset;

	if (stat("/dev/shm", &one) < 0 || stat(".", &two) < 0 || one.st_dev == two.st_dev ||
	    access("/dev/shm", W_OK) < 0)
		return; /* there is but one file system */
	make_files(40);
	ck_assert_int_eq(chdir("/dev/shm"), 0);
	tree_new(&hung);
	ck_assert_int_eq(fchdir(here.fd), 0);
	ck_assert_int_eq(chdir(".."), 0);
	for (char name[] = "0.jpg"; name[0] < '9'; name[0]++)
		tree_file(&hung, name, 4321);

	process_start(&process, "hang", true);
	process_ask_open(&process, 2, hung.path, -1);
	fd = process_opened(&process, 2);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	work_new(&bad, &hung, dataset, 2);
	work_attach(&process, &bad, 2);
	work_queue(&process, &bad);
	while (work_in_state(&bad, LAYOUT_TASK_READING) < 4)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	open_work(&good, 1);
	work_attach(&process, &good, 1);
	work_queue(&process, &good);
	work_wait(&process, &good);
	work_check(&good);
	ck_assert_uint_eq(work_in_state(&bad, LAYOUT_TASK_READING), 4);

	wire_out_init(&out, READER_DETACH);
	wire_put_u64(&out, READER_KEY_QUEUE, 2);
	process_send(&process, &out);
	ck_assert(process_is_silent(&process)); /* threads still touch the queue */
	process_stop(&process);
	work_free(&good);
	work_free(&bad);
	tree_remove(&hung);
}
END_TEST

/* What was not looked at, as the queue leaves, is not said to be the same. */
START_TEST(a_queue_that_leaves_says_nothing_is_the_same)
{
	struct work work;
	const uint64_t sample = 0;
	uint64_t code = 0;
	struct wire_in in;
	char held[sizeof(tree.path) + 8];

	for (char name[] = "0.jpg"; name[0] < '9'; name[0]++)
		tree_file(&tree, name, 4321);
	snprintf(held, sizeof(held), "%s/.held", tree.path);
	setenv("HELD", held, 1);
	close(openat(tree.fd, ".held", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	process_start(&process, "hang", true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	while (work_in_state(&work, LAYOUT_TASK_READING) < 4) /* all threads */
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	ck_assert_int_eq(wire_tell(process.sock, READER_REVISIT, WIRE_U64(READER_KEY_ID, 7),
				   WIRE_U64(READER_KEY_QUEUE, 1),
				   WIRE_BYTES(READER_KEY_SAMPLES, &sample, sizeof(sample))),
			 0);
	ck_assert_int_eq(wire_tell(process.sock, READER_DETACH, WIRE_U64(READER_KEY_QUEUE, 1)), 0);
	process_ask_open(&process, 2, "/nowhere", -1);
	process_refused(&process, 2, (char[768]){""}); /* it knows of both by now */
	unlink(held);
	process_receive(&process, &in);
	ck_assert_uint_eq(in.type, READER_REVISITED);
	ck_assert_int_eq(wire_get_u64(&in, READER_KEY_CODE, &code), 0);
	ck_assert_uint_eq(code, 1);
	wire_in_fini(&in);
	process_receive(&process, &in);
	ck_assert_uint_eq(in.type, READER_DETACHED);
	wire_in_fini(&in);
	process_stop(&process);
	work_free(&work);
}
END_TEST

static const char *stuck_path(uint64_t id)
{
	static char path[sizeof(tree.path) + 32];

	snprintf(path, sizeof(path), "%s-stuck-%u", tree.path, (unsigned)id);
	return path;
}

/* Asks for it and waits until its opener hangs. */
static void hang_opener(uint64_t id)
{
	process_ask_open(&process, id, stuck_path(id), -1);
	while (access(stuck_path(id), F_OK) < 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Openers whose work was given up are replaced, however many of them hang. */
START_TEST(hung_opens_do_not_block_others)
{
	char text[768];

	make_files(10);
	process_start(&process, "stuck", true);
	for (uint64_t id = 5; id <= 10; id += 5) {
		struct wire_out out;

		for (uint64_t hangs = id - 4; hangs < id; hangs++)
			hang_opener(hangs);
		process_ask_open(&process, id, stuck_path(id), -1); /* is queued */
		ck_assert(process_is_silent(&process));
		for (uint64_t given_up = id; given_up > id - 5; given_up--) {
			wire_out_init(&out, READER_CANCEL);
			wire_put_u64(&out, READER_KEY_ID, given_up);
			process_send(&process, &out);
		}
		process_refused(&process, id, text);
	}
	process_ask_open(&process, 11, tree.path, -1);
	close(process_opened(&process, 11));
	process_stop(&process);
	for (uint64_t id = 1; id <= 10; id++)
		rmdir(stuck_path(id));
}
END_TEST

/* ---- death ---- */

static void wait_until_reading(const struct work *work)
{
	while (work_in_state(work, LAYOUT_TASK_READY) < 3 ||
	       work_in_state(work, LAYOUT_TASK_READING) < 1)
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

START_TEST(killed_reader_is_replaced_in_the_middle)
{
	struct work work;
	uint32_t owner, taken = 0;

	make_files(60);
	tree_file(&tree, "c0/hangs.jpg",
		  4321); /* so that one is being read, however late we look */
	process_start(&process, "slow hang", true);
	open_work(&work, 1);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	for (unsigned round = 0; round < 3; round++) {
		wait_until_reading(&work);
		process_kill(&process);
		for (uint32_t i = 0; i < work.count; i++)
			if (queue_task_state(&work.queue, work.row, i, &owner) ==
			    LAYOUT_TASK_READING)
				taken += queue_task_take_over(
				    &work.queue, work.row, i, owner, LAYOUT_TASK_READING,
				    LAYOUT_TASK_QUEUED, LAYOUT_FAIL_NONE, 0);
		queue_recount(&work.queue, work.row);
		doorbell_ring_all(process.doorbell);
		process_again(&process, round < 2 ? "slow hang" : NULL);
		process_ask_open(&process, 1, tree.path, -1);
		close(process_opened(&process, 1));
		work_attach(&process, &work, 1);
	}
	ck_assert_uint_ge(taken, 1);
	work_wait(&process, &work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

static void send_garbage(void)
{
	ck_assert_int_eq(send(process.sock, "garbage of some length", 22, 0), 22);
}
static void send_unknown(void)
{
	send_id(99, 1);
}
static void send_open_without_path(void)
{
	send_id(READER_OPEN, 1);
}
static void send_attach_before_start(void)
{
	send_id(READER_ATTACH, 1);
}
static void send_start_without_fds(void)
{
	send_id(READER_START, 1);
}
static void send_cancel_without_id(void)
{
	struct wire_out out;

	wire_out_init(&out, READER_CANCEL);
	process_send(&process, &out);
}
static void send_open_twice(void)
{
	make_files(3);
	process_ask_open(&process, 1, tree.path, -1);
	process_ask_open(&process, 1, tree.path, -1);
}

static void (*const nonsense[])(void) = {
    send_garbage,           send_unknown,
    send_open_without_path, send_attach_before_start,
    send_start_without_fds, send_cancel_without_id,
    send_open_twice,
};

START_TEST(nonsense_ends_the_process)
{
	int status;

	process_start(&process, NULL, false);
	nonsense[_i]();
	status = process_wait(&process);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1);
}
END_TEST

START_TEST(process_is_confined)
{
	char path[64], line[256];
	unsigned seen = 0;
	FILE *status;

	make_files(3);
	process_start(&process, NULL, true);
	process_ask_open(&process, 1, tree.path, -1);
	close(process_opened(&process, 1));
	snprintf(path, sizeof(path), "/proc/%d/status", (int)process.pid);
	status = fopen(path, "r");
	while (fgets(line, sizeof(line), status))
		seen += !strcmp(line, "Umask:\t0077\n") || !strcmp(line, "NoNewPrivs:\t1\n") ||
			!strcmp(line, "Name:\taccess-reader\n");
	fclose(status);
	ck_assert_uint_eq(seen, 3);
	snprintf(path, sizeof(path), "/proc/%d/fd/50", (int)process.pid);
	ck_assert_int_ne(access(path, F_OK), 0);
	process_stop(&process);
}
END_TEST

/* Is the process gone, or dead and only not reaped by whoever inherited it? */
static bool is_dead(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *stat_file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat_file = fopen(path, "r");
	if (!stat_file)
		return true;
	if (fscanf(stat_file, "%*d %*s %c", &state) != 1)
		state = 'Z';
	fclose(stat_file);
	return state == 'Z';
}

/* Its parent dies without a word, and another process keeps the socket open. */
START_TEST(reader_dies_with_its_parent)
{
	int ends[2];
	pid_t parent, pids[2]; /* of the reader, of the process with the socket */

	ck_assert_int_eq(pipe(ends), 0);
	parent = fork();
	if (parent == 0) {
		process_start(&process, NULL, true);
		make_files(1);
		process_ask_open(&process, 1, tree.path, -1);
		close(process_opened(&process, 1));
		pids[0] = process.pid;
		pids[1] = fork();
		if (pids[1])
			ck_assert_int_eq(write(ends[1], pids, sizeof(pids)), sizeof(pids));
		pause();
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], pids, sizeof(pids)), sizeof(pids));
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	for (unsigned i = 0; !is_dead(pids[0]); i++) {
		ck_assert_uint_lt(i, PATIENCE_MS);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	ck_assert(!is_dead(pids[1]));
	kill(pids[1], SIGKILL);
	close(ends[0]);
}
END_TEST

static Suite *reader_suite(void)
{
	Suite *suite = suite_create("reader");
	TCase *tcase = tcase_create("reader");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, stored_index_is_used_while_nothing_changed);
	tcase_add_test(tcase, what_cannot_be_opened_is_refused_with_a_text);
	tcase_add_test(tcase, open_can_be_cancelled);
	tcase_add_test(tcase, more_opens_than_threads_are_queued);
	tcase_add_test(tcase, every_byte_is_read);
	tcase_add_test(tcase, queues_of_one_dataset_are_served_and_detached);
	tcase_add_loop_test(tcase, changed_files_are_told, 0, BASE_ARRAY_LEN(damages));
	tcase_add_test(tcase, a_root_made_anew_is_read_on);
	tcase_add_test(tcase, tasks_that_do_not_fit_the_index_fail);
	if (CAN_PRELOAD) {
		tcase_add_loop_test(tcase, passing_faults_are_survived, 0,
				    BASE_ARRAY_LEN(survived));
		tcase_add_test(tcase, lasting_faults_are_told);
		tcase_add_test(tcase, hung_mount_stalls_only_itself);
		tcase_add_test(tcase, a_queue_that_leaves_says_nothing_is_the_same);
		tcase_add_test(tcase, hung_opens_do_not_block_others);
		tcase_add_test(tcase, killed_reader_is_replaced_in_the_middle);
	}
	tcase_add_loop_test(tcase, nonsense_ends_the_process, 0, BASE_ARRAY_LEN(nonsense));
	tcase_add_test(tcase, process_is_confined);
	tcase_add_test(tcase, reader_dies_with_its_parent);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(reader_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
