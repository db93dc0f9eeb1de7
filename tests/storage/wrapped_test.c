/* SPDX-License-Identifier: Apache-2.0 */

/* Wrapped data sets: the note and its index, and access-reader with a pool that this program plays. */

#include "storage/wrapped.h"

#include "storage/dataset.h"
#include "tests/storage/reader_process.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ROOM 4096
#define COUNT 12
#define MANY 96
#define TEXT "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static struct tree tree;
static struct process process;

static void setup(void)
{
	tree_new(&tree);
	ck_assert_int_eq(fchmod(tree.fd, 0700), 0); /* whatever the umask */
}

static void teardown(void)
{
	tree_remove(&tree);
}

static struct wrapped_note good_note(void)
{
	return (struct wrapped_note){.magic = WRAPPED_MAGIC,
				     .count = COUNT,
				     .room = ROOM,
				     .workers = 3,
				     .seconds = 60,
				     .id = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9}}};
}

static void write_note(const void *note, size_t size)
{
	int fd = openat(tree.fd, WRAPPED_NOTE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, note, size), (ssize_t)size);
	close(fd);
}

/* Of a pool with one process that may be asked for several samples at a time. */
static void write_note_of_many(const struct wrapped_more *more, size_t size)
{
	struct {
		struct wrapped_note note;
		struct wrapped_more more;
	} both = {good_note(), *more};

	both.note.count = MANY;
	both.note.workers = 1;
	write_note(&both, sizeof(both.note) + size);
}

static int open_note(struct diag *diag)
{
	struct wrapped_note note;

	return wrapped_open(tree.fd, tree.path, &note, diag);
}

/* ---- the note ---- */

static void no_magic(struct wrapped_note *note)
{
	note->magic++;
}
static void no_sample(struct wrapped_note *note)
{
	note->count = 0;
}
static void many_samples(struct wrapped_note *note)
{
	note->count = UINT64_MAX;
}
static void no_room(struct wrapped_note *note)
{
	note->room = 0;
}
static void much_room(struct wrapped_note *note)
{
	note->room = WRAPPED_MAX_ROOM + 1;
}
static void no_worker(struct wrapped_note *note)
{
	note->workers = 0;
}
static void many_workers(struct wrapped_note *note)
{
	note->workers = WRAPPED_MAX_WORKERS + 1;
}
static void no_time(struct wrapped_note *note)
{
	note->seconds = 0;
}
static void much_time(struct wrapped_note *note)
{
	note->seconds = UINT32_MAX;
}
static void reserved(struct wrapped_note *note)
{
	note->reserved = 1;
}

static void (*const lies[])(struct wrapped_note *note) = {
    no_magic,  no_sample,    many_samples, no_room,   much_room,
    no_worker, many_workers, no_time,      much_time, reserved,
};

START_TEST(a_false_note_is_refused)
{
	struct wrapped_note note = good_note();
	struct diag diag = {.text = ""};

	write_note(&note, sizeof(note));
	ck_assert_int_eq(open_note(&diag), 0);
	lies[_i](&note);
	write_note(&note, sizeof(note));
	ck_assert_int_eq(open_note(&diag), WRAPPED_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "damaged"));
}
END_TEST

START_TEST(a_note_is_the_users_own_or_none)
{
	const struct wrapped_note note = good_note();
	struct diag diag = {.text = ""};

	ck_assert_int_eq(open_note(&diag), WRAPPED_E_NONE);
	write_note(&note, sizeof(note) - 1);
	ck_assert_int_eq(open_note(&diag), WRAPPED_E_BAD);
	write_note(&note, sizeof(note));
	ck_assert_int_eq(fchmodat(tree.fd, WRAPPED_NOTE, 0622, 0), 0);
	ck_assert_int_eq(open_note(&diag), WRAPPED_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "others may write"));
	ck_assert_int_eq(fchmodat(tree.fd, WRAPPED_NOTE, 0600, 0), 0);
	ck_assert_int_eq(fchmod(tree.fd, 0770), 0);
	ck_assert_int_eq(open_note(&diag), WRAPPED_E_BAD);
	ck_assert_int_eq(fchmod(tree.fd, 0700), 0);
	ck_assert_int_eq(open_note(&diag), 0);
	ck_assert_int_eq(renameat(tree.fd, WRAPPED_NOTE, tree.fd, "other"), 0);
	ck_assert_int_eq(symlinkat("other", tree.fd, WRAPPED_NOTE), 0);
	ck_assert_int_eq(open_note(&diag), WRAPPED_E_BAD);
}
END_TEST

static void more_magic(struct wrapped_more *more)
{
	more->magic--;
}
static void more_reserved(struct wrapped_more *more)
{
	more->reserved = 1;
}
static void more_none(struct wrapped_more *more)
{
	more->batch = 0;
}
static void more_many(struct wrapped_more *more)
{
	more->batch = WRAPPED_MAX_BATCH + 1;
}
static void (*const more_lies[])(struct wrapped_more *more) = {more_magic, more_reserved, more_none,
							       more_many};

static struct wrapped_more good_more(void)
{
	return (struct wrapped_more){.magic = WRAPPED_MORE_MAGIC, .batch = 64};
}

/* Neither is what a reader of before is told changed by it, nor does what is damaged keep a data set from being read. */
START_TEST(a_second_part_says_how_many)
{
	struct wrapped_more more = good_more();
	struct diag diag = {.text = ""};

	ck_assert_uint_eq(wrapped_batch(tree.fd), 1);
	write_note_of_many(&more, sizeof(more));
	ck_assert_uint_eq(wrapped_batch(tree.fd), 64);
	ck_assert_int_eq(open_note(&diag), 0);
	write_note_of_many(&more, sizeof(more) - 1);
	ck_assert_uint_eq(wrapped_batch(tree.fd), 1);
	ck_assert_int_eq(open_note(&diag), 0);
	write_note_of_many(&more, 0);
	ck_assert_uint_eq(wrapped_batch(tree.fd), 1);
	more_lies[_i](&more);
	write_note_of_many(&more, sizeof(more));
	ck_assert_uint_eq(wrapped_batch(tree.fd), 1);
	ck_assert_int_eq(open_note(&diag), 0);
}
END_TEST

START_TEST(records_lie_in_a_row)
{
	struct wrapped_note note = good_note();
	struct wrapped_answer answer = {.status = WRAPPED_GOOD, .bytes = 100};
	uint64_t at = 0, place = 0;

	ck_assert_uint_eq(wrapped_memory(&note, 1), ROOM);
	ck_assert_uint_eq(wrapped_memory(&note, 64), 64 * ROOM);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(wrapped_place(&answer, &note, 384, &at, &place));
		ck_assert_uint_eq(place, 128 * i);
	}
	ck_assert(!wrapped_place(&answer, &note, 384, &at, &place));
	answer.bytes = 1;
	ck_assert(!wrapped_place(&answer, &note, 384, &at, &place));
	at = 0;
	answer.bytes = ROOM + 1;
	ck_assert(!wrapped_place(&answer, &note, 64 * ROOM, &at, &place));
	answer.bytes = UINT64_MAX;
	at = 64;
	ck_assert(!wrapped_place(&answer, &note, 64 * ROOM, &at, &place));
	note.room = WRAPPED_MAX_ROOM;
	ck_assert_uint_eq(wrapped_memory(&note, 64), WRAPPED_MAX_ROOM);
	note.room = 1 << 20;
	ck_assert_uint_eq(wrapped_memory(&note, 64), WRAPPED_BATCH_BYTES);
}
END_TEST

static struct dataset *index_of(const struct wrapped_note *note)
{
	struct dataset *dataset;
	int fd;

	ck_assert_int_eq(wrapped_index(note, NULL, &fd), 0);
	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	return dataset;
}

static const uint64_t counts[] = {1, 9, 10, 11, 99, 100, 101, 1000, 12345};

START_TEST(an_index_has_a_place_for_each_sample)
{
	struct wrapped_note note = good_note(), other = good_note();
	struct dataset *dataset, *again;
	char name[32];

	note.count = other.count = counts[_i];
	other.id.bytes[0]++;
	dataset = index_of(&note);
	ck_assert_uint_eq(dataset_count(dataset), counts[_i]);
	for (uint64_t i = 0; i < counts[_i]; i++) {
		snprintf(name, sizeof(name), "[%llu]", (unsigned long long)i);
		ck_assert_str_eq(dataset_name_of(dataset, i), name);
		ck_assert_uint_eq(dataset_size_of(dataset, i), ROOM);
	}
	again = index_of(&note);
	ck_assert_mem_eq(dataset_version(dataset), dataset_version(again), sizeof(struct hash_id));
	dataset_unmap(again);
	again = index_of(&other);
	ck_assert_mem_ne(dataset_version(dataset), dataset_version(again), sizeof(struct hash_id));
	dataset_unmap(again);
	dataset_unmap(dataset);
}
END_TEST

/* ---- a pool ---- */

enum act { /* what becomes of a question for sample 5 */
	   ACT_GOOD,
	   ACT_FAIL,
	   ACT_DIE,      /* each time */
	   ACT_DIE_ONCE, /* and it is good the second time */
	   ACT_HANG,
	   ACT_LEAVE_ONCE, /* hangs up without a word */
	   ACT_LARGE,      /* says that the record is larger than its room */
	   ACT_SHORT,      /* says less than an answer */
	   ACT_LATER,      /* of several: not now, nor any behind it */
};
static struct {
	pthread_mutex_t lock;
	int listener;
	enum act act;
	unsigned asked, met; /* in all; for sample 5 */
	unsigned many;       /* questions about several with sample 5 among them */
} pool;

static uint8_t byte_of(uint64_t sample)
{
	return (uint8_t)(17 * sample + 3);
}

static enum act act_of(uint64_t sample)
{
	enum act act = ACT_GOOD;

	pthread_mutex_lock(&pool.lock);
	pool.asked++;
	if (sample == 5 &&
	    (pool.act != ACT_DIE_ONCE && pool.act != ACT_LEAVE_ONCE ? true : pool.met == 0))
		act = pool.act;
	pool.met += sample == 5;
	pthread_mutex_unlock(&pool.lock);
	return act;
}

/* false: hang up. */
static bool reply(int fd, uint8_t *memory, const struct wrapped_ask *ask)
{
	struct wrapped_answer answer = {.status = WRAPPED_GOOD, .bytes = 100};
	enum act act = act_of(ask->sample);
	size_t size = sizeof(answer);

	ck_assert_uint_eq(ask->magic, WRAPPED_MAGIC);
	ck_assert_uint_eq(ask->kind, WRAPPED_READ);
	ck_assert_uint_eq(ask->random_id, ask->sample);
	if (act == ACT_LEAVE_ONCE)
		return false;
	memset(memory, byte_of(ask->sample), 100);
	if (act == ACT_FAIL)
		answer.status = WRAPPED_FAILED;
	else if (act == ACT_DIE || act == ACT_DIE_ONCE)
		answer.status = WRAPPED_DIED;
	else if (act == ACT_HANG)
		answer.status = WRAPPED_HUNG;
	else if (act == ACT_LARGE)
		answer.bytes = ROOM + 1;
	else if (act == ACT_SHORT)
		size--;
	memset(answer.text, 'x', sizeof(answer.text)); /* without an end */
	ck_assert_int_eq(send(fd, &answer, size, MSG_NOSIGNAL), (ssize_t)size);
	return answer.status < WRAPPED_DIED;
}

/* false: hang up. */
static bool reply_one(int fd, uint32_t status)
{
	struct wrapped_answer answer = {.status = status};

	if (pool.act != ACT_LEAVE_ONCE)
		ck_assert_int_eq(send(fd, &answer, sizeof(answer), MSG_NOSIGNAL), sizeof(answer));
	return false;
}

/* One of several; *at is where the next record goes. */
static struct wrapped_answer answer_of(const struct wrapped_ask *ask, uint8_t *memory, uint64_t *at)
{
	const enum act act = ask->sample == 5 ? pool.act : ACT_GOOD;
	struct wrapped_answer answer = {.status = WRAPPED_GOOD, .bytes = 100};

	ck_assert_uint_eq(ask->magic, WRAPPED_MAGIC);
	ck_assert_uint_eq(ask->kind, WRAPPED_READ_MANY);
	if (act == ACT_FAIL) {
		answer.status = WRAPPED_FAILED;
		memset(answer.text, 'x', sizeof(answer.text));
	} else if (act == ACT_LARGE) {
		answer.bytes = ROOM + 1;
	} else {
		memset(memory + *at, byte_of(ask->sample), 100);
		*at += 128;
	}
	return answer;
}

static bool reply_many(int fd, uint8_t *memory, const struct wrapped_ask ask[], unsigned n)
{
	struct wrapped_answer answer[WRAPPED_MAX_BATCH];
	bool met = false, is_late = false;
	uint64_t at = 0;

	for (unsigned i = 0; i < n; i++)
		met |= ask[i].sample == 5;
	pthread_mutex_lock(&pool.lock);
	pool.many += met;
	pthread_mutex_unlock(&pool.lock);
	if (met && (pool.act == ACT_DIE || pool.act == ACT_DIE_ONCE))
		return reply_one(fd, WRAPPED_DIED);
	if (met && pool.act == ACT_HANG)
		return reply_one(fd, WRAPPED_HUNG);
	if (met && (pool.act == ACT_LEAVE_ONCE || pool.act == ACT_SHORT))
		return reply_one(fd, WRAPPED_GOOD);
	for (unsigned i = 0; i < n; i++) {
		is_late |= pool.act == ACT_LATER && ask[i].sample == 5 && i > 0;
		answer[i] = is_late ? (struct wrapped_answer){.status = WRAPPED_LATER}
				    : answer_of(&ask[i], memory, &at);
	}
	ck_assert_int_eq(send(fd, answer, n * sizeof(*answer), MSG_NOSIGNAL),
			 (ssize_t)(n * sizeof(*answer)));
	return true;
}

static uint8_t *take_memory(int fd, uint64_t *ret_bytes)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct wrapped_ask hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int memory_fd;
	uint8_t *memory;

	if (recvmsg(fd, &message, 0) <= 0)
		return NULL;
	ck_assert_uint_eq(hello.kind, WRAPPED_HELLO);
	*ret_bytes = hello.room;
	ck_assert(hello.room == ROOM || hello.room == (uint64_t)WRAPPED_MAX_BATCH * ROOM);
	memcpy(&memory_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	ck_assert_int_lt(ftruncate(memory_fd, 0), 0); /* or the reader would die of SIGBUS */
	memory = mmap(NULL, hello.room, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	close(memory_fd);
	return memory;
}

static void *serve(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	uint64_t bytes = 0;
	uint8_t *memory = take_memory(fd, &bytes);
	struct wrapped_ask ask[WRAPPED_MAX_BATCH + 1];
	bool goes_on = memory != NULL;
	ssize_t got;

	while (goes_on && (got = recv(fd, ask, sizeof(ask), 0)) > 0) {
		ck_assert_int_eq(got % (ssize_t)sizeof(*ask), 0);
		goes_on = ask->kind == WRAPPED_READ_MANY
			      ? reply_many(fd, memory, ask, (unsigned)(got / (ssize_t)sizeof(*ask)))
			      : reply(fd, memory, ask);
	}
	if (memory)
		munmap(memory, bytes);
	close(fd);
	return NULL;
}

static void *take(void *arg)
{
	pthread_t thread;
	int fd;

	(void)arg;
	while ((fd = accept(pool.listener, NULL, NULL)) >= 0) {
		ck_assert_int_eq(pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd), 0);
		pthread_detach(thread);
	}
	return NULL;
}

static void pool_start(enum act act)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	pthread_t thread;

	pthread_mutex_init(&pool.lock, NULL);
	pool.act = act;
	pool.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" WRAPPED_SOCKET,
		 tree.fd);
	ck_assert_int_eq(bind(pool.listener, (const struct sockaddr *)&address, sizeof(address)),
			 0);
	ck_assert_int_eq(listen(pool.listener, 16), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, take, NULL), 0);
	pthread_detach(thread);
}

/* ---- the reader ---- */

static void open_work_of(struct work *work)
{
	struct dataset *dataset;
	int fd;

	process_start(&process, NULL, true);
	process_ask_open(&process, 1, tree.path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dataset_map(fd, &dataset), 0);
	close(fd);
	work_new(work, &tree, dataset, 7);
	work_attach(&process, work, 1);
	work_queue(&process, work);
}

static void open_work(struct work *work)
{
	const struct wrapped_note note = good_note();

	write_note(&note, sizeof(note));
	open_work_of(work);
}

static void close_work(struct work *work)
{
	work_detach(&process, work);
	process_stop(&process);
	work_free(work);
}

static void check_good(const struct work *work, uint32_t task)
{
	uint32_t owner;

	ck_assert_int_eq(queue_task_state(&work->queue, work->row, task, &owner),
			 LAYOUT_TASK_READY);
	for (unsigned k = 0; k < 100; k++)
		ck_assert_uint_eq(work->arena[work->offset[task] + k], byte_of(task));
}

static const struct {
	enum act act;
	const char *says; /* NULL: it is good in the end */
	unsigned asked;   /* sample 5 */
} acts[] = {
    {ACT_GOOD, NULL, 1},
    {ACT_FAIL, TEXT, 1},
    {ACT_DIE, TEXT, 2},
    {ACT_DIE_ONCE, NULL, 2},
    {ACT_HANG, TEXT, 1},
    {ACT_LEAVE_ONCE, NULL, 2},
    {ACT_LARGE, "a record larger than its room", 1},
    {ACT_SHORT, "its pool of processes is gone", 5},
};

static const struct {
	enum act act;
	const char *says;
} acts_of_many[] = {
    {ACT_GOOD, NULL},
    {ACT_FAIL, TEXT},
    {ACT_DIE, TEXT},
    {ACT_DIE_ONCE, NULL},
    {ACT_HANG, TEXT},
    {ACT_LEAVE_ONCE, NULL},
    {ACT_LARGE, "a record larger than its room"},
    {ACT_SHORT, "its pool of processes is gone"},
    {ACT_LATER, NULL},
};

START_TEST(a_pool_makes_the_samples)
{
	struct work work;
	enum layout_fail stage;
	char text[48];
	uint32_t us;
	int code;

	pool_start(acts[_i].act);
	open_work(&work);
	work_wait(&process, &work);
	for (uint32_t i = 0; i < COUNT; i++)
		if (i != 5 || !acts[_i].says)
			check_good(&work, i);
	if (acts[_i].says) {
		queue_task_outcome(&work.queue, work.row, 5, &stage, &code, text, &us);
		ck_assert_int_eq(stage, LAYOUT_FAIL_READ);
		ck_assert_str_eq(text, acts[_i].says);
		process_failed(&process, &work, 5);
	}
	pthread_mutex_lock(&pool.lock);
	ck_assert_uint_eq(pool.met, acts[_i].asked);
	ck_assert_uint_eq(pool.asked, COUNT - 1 + acts[_i].asked);
	pthread_mutex_unlock(&pool.lock);
	close_work(&work);
}
END_TEST

static unsigned questions_of_many(void)
{
	unsigned many;

	pthread_mutex_lock(&pool.lock);
	many = pool.many;
	pthread_mutex_unlock(&pool.lock);
	return many;
}

/* What goes wrong with one of several is that one's alone, in the end. */
START_TEST(a_pool_makes_several_at_a_time)
{
	const struct wrapped_more more = good_more();
	struct work work;
	enum layout_fail stage;
	char text[48];
	uint32_t us;
	int code;

	write_note_of_many(&more, sizeof(more));
	pool_start(acts_of_many[_i].act);
	open_work_of(&work);
	work_wait(&process, &work);
	for (unsigned rounds = 0; !questions_of_many() && rounds < 1000; rounds++) {
		work_queue(&process, &work); /* answers came late, as one does on a busy machine */
		work_wait(&process, &work);
	}
	ck_assert_uint_gt(questions_of_many(), 0);
	for (uint32_t i = 0; i < MANY; i++)
		if (i != 5 || !acts_of_many[_i].says)
			check_good(&work, i);
	if (acts_of_many[_i].says) {
		queue_task_outcome(&work.queue, work.row, 5, &stage, &code, text, &us);
		ck_assert_int_eq(stage, LAYOUT_FAIL_READ);
		ck_assert_str_eq(text, acts_of_many[_i].says);
	}
	close_work(&work);
}
END_TEST

START_TEST(a_pool_is_waited_for)
{
	struct work work;

	open_work(&work);
	poll(NULL, 0, 200); /* so that some threads do */
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), 0);
	pool_start(ACT_GOOD);
	work_wait(&process, &work);
	for (uint32_t i = 0; i < COUNT; i++)
		check_good(&work, i);
	close_work(&work);
}
END_TEST

START_TEST(a_queue_leaves_where_no_pool_is)
{
	struct work work;

	open_work(&work);
	poll(NULL, 0, 200);
	close_work(&work);
}
END_TEST

START_TEST(a_damaged_note_is_no_dataset)
{
	char text[768];

	write_note("x", 1);
	process_start(&process, NULL, true);
	process_ask_open(&process, 1, tree.path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(text, "oneaccess.wrap()"));
	process_stop(&process);
}
END_TEST

/* A reader that comes after another one is given its index, and takes no memory for one of its own. */
START_TEST(an_index_that_was_made_is_used_again)
{
	struct wrapped_note note = good_note();
	int fd, other;

	write_note(&note, sizeof(note));
	process_start(&process, NULL, true);
	process_ask_open(&process, 1, tree.path, -1);
	fd = process_opened(&process, 1);
	process_ask_open(&process, 2, tree.path, fd);
	ck_assert_int_eq(process_opened(&process, 2), -1);
	note.id.bytes[0]++;
	write_note(&note, sizeof(note));
	process_ask_open(&process, 3, tree.path, fd);
	other = process_opened(&process, 3);
	ck_assert_int_ge(other, 0);
	close(other);
	close(fd);
	process_stop(&process);
}
END_TEST

/* 64 bytes that claim an index of some hundred megabytes. */
START_TEST(a_note_claims_no_more_than_there_is)
{
	struct wrapped_note note = good_note();
	char text[768];

	note.count = 10000000;
	write_note(&note, sizeof(note));
	process_start(&process, NULL, true);
	process_ask_open_within(&process, 1, tree.path, 100 << 20);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_ROOM);
	ck_assert_msg(strstr(text, "100 MiB") && strstr(text, "tenant_memory"), "%s", text);
	note.count = COUNT; /* and all of it is there again */
	write_note(&note, sizeof(note));
	process_ask_open_within(&process, 2, tree.path, 10 << 10);
	close(process_opened(&process, 2));
	process_stop(&process);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("wrapped");
	TCase *note = tcase_create("note"), *reader = tcase_create("reader");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(note, setup, teardown);
	tcase_add_loop_test(note, a_false_note_is_refused, 0, BASE_ARRAY_LEN(lies));
	tcase_add_test(note, a_note_is_the_users_own_or_none);
	tcase_add_loop_test(note, an_index_has_a_place_for_each_sample, 0, BASE_ARRAY_LEN(counts));
	tcase_add_loop_test(note, a_second_part_says_how_many, 0, BASE_ARRAY_LEN(more_lies));
	tcase_add_test(note, records_lie_in_a_row);
	suite_add_tcase(suite, note);
	tcase_add_checked_fixture(reader, setup, teardown);
	tcase_set_timeout(reader, PATIENCE_OF_A_TEST_S);
	tcase_add_loop_test(reader, a_pool_makes_the_samples, 0, BASE_ARRAY_LEN(acts));
	tcase_add_loop_test(reader, a_pool_makes_several_at_a_time, 0,
			    BASE_ARRAY_LEN(acts_of_many));
	tcase_add_test(reader, a_pool_is_waited_for);
	tcase_add_test(reader, a_queue_leaves_where_no_pool_is);
	tcase_add_test(reader, a_damaged_note_is_no_dataset);
	tcase_add_test(reader, an_index_that_was_made_is_used_again);
	tcase_add_test(reader, a_note_claims_no_more_than_there_is);
	suite_add_tcase(suite, reader);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
