/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that are hostile, or die in the middle of a sentence, speak to a real accessd over raw
 * sockets. Whatever they do costs them their connection and nobody else anything: after each case
 * accessd has as many descriptors, jobs, pins and as much memory as before, and serves a good job.
 */

#include "tests/daemon/raw.h"

#include "shmring/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dataset;
static unsigned fds_before;
static double memory_before;

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(sock, 0);
	strcpy(address.sun_path, rig_host.socket);
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	return sock;
}

static int say_hello_as(int sock, uint64_t major, uint64_t minor)
{
	struct wire_out out;
	int r;

	wire_out_init(&out, PROTO_HELLO);
	wire_put_u64(&out, PROTO_KEY_MAJOR, major);
	wire_put_u64(&out, PROTO_KEY_MINOR, minor);
	wire_put_string(&out, PROTO_KEY_PROGRAM, "hostile");
	r = wire_send(sock, &out, 0);
	wire_out_fini(&out);
	return r;
}

static int say_hello(int sock)
{
	return say_hello_as(sock, PROTO_MAJOR, PROTO_MINOR);
}

static void say(int sock, uint16_t type)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
}

/* The next message that is no progress. 0, or wire_recv()'s outcome. Waits as long as it takes. */
static int hear(int sock, struct wire_in *in)
{
	struct timeval limit = {PATIENCE_S, 0};
	int r;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	do {
		wire_in_init(in);
		r = wire_recv(sock, in, 0);
		if (r == 0 && in->type == PROTO_PROGRESS)
			wire_in_fini(in);
		else
			return r;
	} while (true);
}

static void put_open(struct wire_out *out, const struct wire_in *welcome)
{
	const void *nonce = NULL;
	size_t size = 0;

	wire_get_bytes(welcome, PROTO_KEY_NONCE, &nonce, &size);
	wire_out_init(out, PROTO_OPEN);
	if (size > 0)
		wire_put_bytes(out, PROTO_KEY_NONCE, nonce, size);
	wire_put_string(out, PROTO_KEY_DATASET, dataset);
	wire_put_string(out, PROTO_KEY_PIPELINE, "imagenet-eval-u8");
	wire_put_u64(out, PROTO_KEY_BATCH, 8);
	wire_put_u64(out, PROTO_KEY_EPOCHS, 0);
	wire_put_string(out, PROTO_KEY_JOB, "hostile\x1b[2J\n");
	wire_put_u64(out, PROTO_KEY_POLICY, PROTO_POLICY_ERROR);
}

/* A whole, correct opening: *ret has the four descriptors. */
static int open_raw(struct wire_in *ret)
{
	struct wire_in welcome;
	struct wire_out out;
	int sock = dial();

	ck_assert_int_eq(say_hello(sock), 0);
	ck_assert_int_eq(hear(sock, &welcome), 0);
	ck_assert_int_eq(welcome.type, PROTO_WELCOME);
	put_open(&out, &welcome);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
	wire_in_fini(&welcome);
	ck_assert_int_eq(hear(sock, ret), 0);
	ck_assert_int_eq(ret->type, PROTO_OPENED);
	ck_assert_uint_eq(ret->n_fds, 4);
	return sock;
}

/* A good job gets a batch. */
static void good_job(void)
{
	struct oa_options options = {
	    .size = sizeof(options),
	    .dataset = dataset,
	    .pipeline = "imagenet-eval-u8",
	    .batch = 8,
	};
	struct oa_client *client = rig_connect();
	struct oa_stream *stream = rig_open(client, &options);
	struct oa_batch *batch = NULL;

	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
		oa_release(batch);
	}
	oa_close(stream);
	oa_disconnect(client);
}

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	rig_start("workers=1", "linger_s=0", "max_clients=200", "chunk=8", NULL);
	dataset = rig_pictures("data", 80, 2, 32);
	good_job();
	ck_assert(rig_wait_status("streams", 0, 0));
	fds_before = rig_settled_fds(0);
	memory_before = rig_status("node.memory_used");
}

/* accessd is as it was before. */
static void teardown(void)
{
	int pid = rig_host.pid;

	good_job();
	ck_assert(rig_wait_status("jobs", 0, 0));
	ck_assert(rig_wait_status("streams", 0, 0));
	ck_assert(rig_wait_status("pid", pid, pid));
	ck_assert_uint_le(rig_settled_fds(fds_before), fds_before);
	ck_assert(rig_wait_status("node.memory_used", memory_before, memory_before));
	rig_end();
}

/* Case 2: hang up after each message of the protocol. */
START_TEST(hanging_up_at_any_step)
{
	struct wire_in welcome, opened;
	struct wire_out out;

	setup();
	for (unsigned round = 0; round < 5; round++) {
		int sock = dial();

		close(sock); /* before a word */
		sock = dial();
		say_hello(sock);
		close(sock); /* before the answer */
		sock = dial();
		say_hello(sock);
		ck_assert_int_eq(hear(sock, &welcome), 0);
		put_open(&out, &welcome);
		wire_send(sock, &out, 0);
		wire_out_fini(&out);
		wire_in_fini(&welcome);
		rig_sleep_ms(round * 3); /* while it opens */
		close(sock);
		sock = open_raw(&opened);
		wire_in_fini(&opened);
		close(sock); /* as soon as it is open */
	}
	teardown();
}
END_TEST

/* A client that has come so far in the protocol when it is killed. */
enum step {
	STEP_CONNECTED,
	STEP_HELLO_SENT,
	STEP_WELCOME_HEARD,
	STEP_HALF_OPEN_SENT,
	STEP_OPEN_SENT,
	STEP_STATUS_SENT,
	STEP_ANSWER_HEARD, /* PROGRESS or OPENED */
	STEP_OPENED,
	STEP_KICKED,
	STEP_EXPLAIN_SENT,
	STEP_OUTBOX_HALF_WRITTEN,
	STEPS,
};

_Noreturn static void die(void)
{
	kill(getpid(), SIGKILL);
	_exit(1);
}

static void die_before_opened(int sock, enum step step)
{
	struct wire_in in;
	struct wire_out out;

	if (step == STEP_CONNECTED)
		die();
	say_hello(sock);
	if (step == STEP_HELLO_SENT || hear(sock, &in))
		die();
	if (step == STEP_WELCOME_HEARD)
		die();
	put_open(&out, &in);
	if (step == STEP_HALF_OPEN_SENT) {
		send(sock, "\x02\0\0", 3, MSG_NOSIGNAL);
		die();
	}
	if (step == STEP_STATUS_SENT) {
		say(sock, PROTO_STATUS);
		die();
	}
	wire_send(sock, &out, 0);
	if (step == STEP_OPEN_SENT)
		die();
	wire_in_init(&in);
	if (wire_recv(sock, &in, 0) || step == STEP_ANSWER_HEARD)
		die();
}

_Noreturn static void die_at(enum step step)
{
	struct wire_in opened;
	uint64_t *words;
	struct stat st;
	int sock;

	if (step < STEP_OPENED) {
		die_before_opened(dial(), step);
		die();
	}
	sock = open_raw(&opened);
	if (step == STEP_KICKED)
		say(sock, PROTO_KICK);
	if (step == STEP_EXPLAIN_SENT)
		say(sock, PROTO_EXPLAIN);
	if (step == STEP_OUTBOX_HALF_WRITTEN && fstat(opened.fds[3], &st) == 0) {
		words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     opened.fds[3], 0);
		if (words != MAP_FAILED)
			memset(words, 0xa5, (size_t)st.st_size / 2);
		say(sock, PROTO_KICK);
	}
	die();
}

/* Case 2: kill -9 after each message sent or received. */
START_TEST(killed_at_each_step)
{
	setup();
	for (unsigned round = 0; round < 3; round++) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0)
			die_at((enum step)_i);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	teardown();
}
END_TEST

/* Cases 1, 2: killed at a random moment, with whatever it held. */
START_TEST(killed_at_any_moment)
{
	setup();
	for (unsigned round = 0; round < 25; round++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct oa_options options = {
			    .size = sizeof(options),
			    .dataset = dataset,
			    .pipeline = "imagenet-eval-u8",
			    .batch = 8,
			};
			struct oa_error error = {.size = sizeof(error)};
			struct oa_client *client = NULL;
			struct oa_stream *stream = NULL;
			struct oa_batch *batch[2] = {NULL};

			if (oa_connect(rig_host.socket, &client, &error) ||
			    oa_open(client, &options, &stream, &error))
				_exit(1);
			for (unsigned i = 0;; i++) {
				oa_release(batch[i % 2]);
				batch[i % 2] = NULL;
				oa_next(stream, 1000, &batch[i % 2]);
			}
		}
		rig_sleep_ms(1 + round * round % 60);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	teardown();
}
END_TEST

/* Case 12: random bytes, as first words and after a correct opening. */
START_TEST(nonsense_costs_the_connection)
{
	static uint64_t state = 88172645463325252u;
	static uint8_t data[2000];

	setup();
	for (unsigned round = 0; round < 120; round++) {
		struct wire_in in;
		int sock = round % 8 == 7 ? open_raw(&in) : dial();

		if (round % 8 == 7)
			wire_in_fini(&in);
		else if (round % 2)
			say_hello(sock);
		for (unsigned k = 0; k < 3; k++)
			if (send(sock, data, raw_nonsense(round, &state, data, sizeof(data)),
				 MSG_NOSIGNAL) < 0)
				break;
		close(sock);
	}
	teardown();
}
END_TEST

/* Every message type, in the wrong order, with numbers that cannot be. */
START_TEST(wrong_orders_and_numbers)
{
	static const uint64_t numbers[] = {0, 1, UINT32_MAX, UINT64_MAX, INT64_MAX, UINT64_MAX - 7};

	setup();
	for (uint16_t type = 0; type < 32; type++)
		for (size_t i = 0; i < BASE_ARRAY_LEN(numbers); i++) {
			struct wire_in in;
			struct wire_out out;
			int sock = i % 2 ? open_raw(&in) : dial();

			if (i % 2)
				wire_in_fini(&in);
			else
				say_hello(sock);
			wire_out_init(&out, type);
			for (uint16_t key = 0; key < 32; key++)
				if (key != PROTO_KEY_NONCE)
					wire_put_u64(&out, key, numbers[i]);
			wire_send(sock, &out, 0);
			wire_out_fini(&out);
			close(sock);
		}
	teardown();
}
END_TEST

/* The number of a job that is there; 0: there is none. */
static uint64_t job_id_of(const struct wire_in *opened)
{
	uint64_t id = 0;

	wire_get_u64(opened, PROTO_KEY_JOB_ID, &id);
	return id;
}

static const struct {
	bool has_job, is_own; /* own: on the connection of a job, where nothing is asked */
	uint16_t key;
	size_t ids;
	uint64_t value; /* FROM, or each of the ids */
	uint16_t answer;
} bad_asks[] = {
    {true, false, PROTO_KEY_FROM, 0, 0, PROTO_BAD_SAMPLES},
    {true, false, PROTO_KEY_FROM, 0, 1000, PROTO_BAD_SAMPLES},
    {true, false, PROTO_KEY_FROM, 0, UINT64_MAX, PROTO_BAD_SAMPLES},
    {true, false, PROTO_KEY_IDS, 1, 79, PROTO_BAD_SAMPLES},
    {true, false, PROTO_KEY_IDS, 256, 0, PROTO_BAD_SAMPLES},
    {true, false, PROTO_KEY_IDS, 1, 80, PROTO_REFUSED},
    {true, false, PROTO_KEY_IDS, 256, UINT64_MAX, PROTO_REFUSED},
    {true, false, PROTO_KEY_IDS, 257, 0, PROTO_REFUSED},
    {true, false, PROTO_KEY_IDS, 0, 0, PROTO_REFUSED},
    {true, false, PROTO_KEY_IDS, 20000, 0, PROTO_REFUSED},
    {false, false, PROTO_KEY_FROM, 0, 0, PROTO_REFUSED},
    {true, true, PROTO_KEY_FROM, 0, 0, PROTO_REFUSED},
};

static void put_ask(struct wire_out *out, uint64_t job, int row)
{
	static uint64_t ids[20000];

	for (size_t i = 0; i < bad_asks[row].ids; i++)
		ids[i] = bad_asks[row].value;
	wire_out_init(out, PROTO_BAD);
	wire_put_u64(out, PROTO_KEY_JOB_ID, bad_asks[row].has_job ? job : job + 1);
	if (bad_asks[row].key == PROTO_KEY_IDS)
		wire_put_bytes(out, PROTO_KEY_IDS, ids, bad_asks[row].ids * sizeof(ids[0]));
	else
		wire_put_u64(out, PROTO_KEY_FROM, bad_asks[row].value);
}

/* Questions for bad samples: of places and samples that are not there, of more than a page, of nobody's job. */
START_TEST(bad_samples_are_asked_for)
{
	struct wire_in in, opened;
	struct wire_out out;
	uint16_t type;
	int job, sock;

	setup();
	job = open_raw(&opened);
	sock = bad_asks[_i].is_own ? job : dial();
	if (sock != job) {
		say_hello(sock);
		ck_assert_int_eq(hear(sock, &in), 0);
		wire_in_fini(&in);
	}
	put_ask(&out, job_id_of(&opened), _i);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
	do {
		ck_assert_int_eq(hear(sock, &in), 0);
		type = in.type;
		wire_in_fini(&in);
	} while (type == PROTO_WAKE);
	ck_assert_int_eq(type, bad_asks[_i].answer);
	wire_in_fini(&opened);
	if (sock != job)
		close(sock);
	close(job);
	teardown();
}
END_TEST

/* An item as large as a message can be, where the receiver has room for a hash: with the descriptor that
 * belongs to it, and without. */
START_TEST(a_part_of_any_size)
{
	static const size_t sizes[] = {0, 1, 31, 33, 64, 4096, 190000};
	static uint8_t bytes[190000];

	setup();
	memset(bytes, 0xa5, sizeof(bytes));
	for (size_t i = 0; i < 2 * BASE_ARRAY_LEN(sizes); i++) {
		int fd = memfd_create("part", MFD_CLOEXEC), sock = dial();
		struct wire_in in;
		struct wire_out out;

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(say_hello(sock), 0);
		ck_assert_int_eq(hear(sock, &in), 0);
		put_open(&out, &in);
		wire_in_fini(&in);
		wire_put_bytes(&out, PROTO_KEY_PART, bytes, sizes[i / 2]);
		if (i % 2)
			wire_put_fd(&out, fd);
		ck_assert_int_eq(wire_send(sock, &out, 0), 0);
		wire_out_fini(&out);
		ck_assert_int_eq(hear(sock, &in), 0);
		ck_assert_int_eq(in.type, PROTO_REFUSED);
		wire_in_fini(&in);
		close(sock);
		close(fd);
	}
	teardown();
}
END_TEST

/* Descriptors that nobody asked for are closed. */
START_TEST(uninvited_descriptors_are_closed)
{
	static const uint16_t types[] = {PROTO_HELLO, PROTO_STATUS, PROTO_OPEN, PROTO_KICK};

	setup();
	for (unsigned round = 0; round < 60; round++) {
		uint16_t type = types[round % BASE_ARRAY_LEN(types)];
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC), sock;
		struct wire_out out;
		struct wire_in in;

		sock = type == PROTO_KICK ? open_raw(&in) : dial();
		if (type == PROTO_KICK)
			wire_in_fini(&in);
		if (type == PROTO_OPEN)
			say_hello(sock);
		wire_out_init(&out, type);
		wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
		wire_put_u64(&out, PROTO_KEY_MINOR, PROTO_MINOR);
		for (unsigned i = 0; i < WIRE_MAX_FDS; i++)
			wire_put_fd(&out, null);
		wire_send(sock, &out, 0);
		wire_send(sock, &out, 0);
		wire_out_fini(&out);
		close(null);
		close(sock);
	}
	teardown();
}
END_TEST

/* More connections than there is room for, silent ones: those who are served stay served. */
START_TEST(a_crowd_is_turned_away)
{
	int socks[400];
	unsigned n = 0;

	setup();
	while (n < BASE_ARRAY_LEN(socks)) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		strcpy(address.sun_path, rig_host.socket);
		if (sock >= 0 && connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0) {
			close(sock);
			rig_sleep_ms(2);
			sock = -1;
		}
		socks[n++] = sock;
	}
	/* of each client that was let in: its socket and its process */
	ck_assert_uint_le(rig_count_fds(rig_host.pid), fds_before + 2 * 200 + 4);
	for (unsigned i = 0; i < n; i++)
		if (socks[i] >= 0)
			close(socks[i]);
	for (unsigned i = 0; i < 3000; i++) /* and comes again, one by one */
		close(dial());
	teardown();
}
END_TEST

/* Case 12: clients that connect and say nothing take every place, and lose it. */
START_TEST(the_silent_are_shut)
{
	int socks[200];

	setup();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(socks); i++)
		socks[i] = dial();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(socks); i++) {
		struct wire_in in;
		int r = hear(socks[i], &in);

		ck_assert(r == WIRE_E_CLOSED || (r == 0 && in.type == PROTO_REFUSED));
		wire_in_fini(&in);
		if (i % 2)
			close(socks[i]);
	}
	good_job();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(socks); i += 2)
		close(socks[i]);
	teardown();
}
END_TEST

/* Newer minors are served, other majors are told who must be upgraded. */
START_TEST(other_versions)
{
	const char *text = "";
	struct wire_in in;
	int sock;

	setup();
	sock = dial();
	say_hello_as(sock, PROTO_MAJOR, PROTO_MINOR + 1);
	ck_assert_int_eq(hear(sock, &in), 0);
	ck_assert_int_eq(in.type, PROTO_WELCOME);
	wire_in_fini(&in);
	close(sock);
	for (int newer = 0; newer < 2; newer++) {
		sock = dial();
		say_hello_as(sock, newer ? PROTO_MAJOR + 1 : PROTO_MAJOR - 1, 0);
		ck_assert_int_eq(hear(sock, &in), 0);
		ck_assert_int_eq(in.type, PROTO_REFUSED);
		wire_get_string(&in, PROTO_KEY_TEXT, &text);
		ck_assert_msg(strstr(text, newer ? "upgrade accessd" : "upgrade the client") !=
				  NULL,
			      "%s", text);
		wire_in_fini(&in);
		close(sock);
	}
	teardown();
}
END_TEST

/* Case 25: on SIGTERM clients are told that accessd restarts, then it ends. */
START_TEST(draining_is_told)
{
	const char *text = "";
	struct wire_in in;
	int sock;

	setup();
	sock = open_raw(&in);
	wire_in_fini(&in);
	kill(rig_host.pid, SIGTERM);
	do
		ck_assert_int_eq(hear(sock, &in), 0);
	while (in.type == PROTO_WAKE);
	ck_assert_int_eq(in.type, PROTO_LOST);
	wire_get_string(&in, PROTO_KEY_TEXT, &text);
	ck_assert_ptr_nonnull(strstr(text, "restarting"));
	wire_in_fini(&in);
	ck_assert_int_eq(hear(sock, &in), WIRE_E_CLOSED);
	close(sock);
	ck_assert_int_eq(waitpid(rig_host.pid, NULL, 0), rig_host.pid);
	rig_host.pid = 0;
	rig_end();
}
END_TEST

/* Words in the outbox that make no sense: grants never given, twice, of others. */
START_TEST(a_lying_outbox_harms_nobody)
{
	setup();
	for (unsigned round = 0; round < 12; round++) {
		struct wire_in opened;
		struct wire_out out;
		int sock = open_raw(&opened);
		struct stat st;
		uint64_t *words;
		size_t n;

		ck_assert_int_eq(fstat(opened.fds[3], &st), 0);
		words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     opened.fds[3], 0);
		ck_assert_ptr_ne(words, MAP_FAILED);
		n = BASE_MIN((size_t)st.st_size, sizeof(struct layout_outbox)) / sizeof(*words);
		for (unsigned k = 0; k < 40; k++) {
			for (size_t i = k % 2 ? 8 : 0; i < n; i++)
				words[i] = round % 3 == 0   ? UINT64_MAX
					   : round % 3 == 1 ? (uint64_t)(i + k) << 8 | 1
							    : (i * 2654435761u + k) << 8 | (i & 3);
			wire_out_init(&out, PROTO_KICK);
			wire_send(sock, &out, MSG_DONTWAIT);
			wire_out_fini(&out);
		}
		good_job();
		munmap(words, (size_t)st.st_size);
		wire_in_fini(&opened);
		close(sock);
	}
	teardown();
}
END_TEST

static int reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

/* The ways to write into memory that is only to be read; true when one works. */
static bool can_write(int fd)
{
	static const char byte = 'x';
	bool worked = false;
	struct stat st;
	void *map;

	ck_assert_int_eq(fstat(fd, &st), 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	worked |= map != MAP_FAILED;
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	worked |= mprotect(map, 4096, PROT_READ | PROT_WRITE) == 0;
	munmap(map, 4096);
	worked |= ftruncate(fd, 0) == 0;
	worked |= ftruncate(fd, st.st_size + 4096) == 0;
	worked |= pwrite(fd, &byte, 1, 0) == 1;
	worked |= fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
	worked |= fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
	return worked;
}

/* Case 13: slots, slot table and inbox cannot be written, by any of these ways, by the same user. */
START_TEST(memory_cannot_be_written)
{
	struct wire_in opened;
	int sock;

	setup();
	sock = open_raw(&opened);
	for (unsigned i = 0; i < 3; i++) {
		int again = reopen(opened.fds[i], O_RDWR);

		ck_assert_msg(!can_write(opened.fds[i]), "descriptor %u can be written", i);
		if (again >= 0) {
			ck_assert_msg(!can_write(again), "descriptor %u can be written, reopened",
				      i);
			close(again);
		}
	}
	wire_in_fini(&opened);
	close(sock);
	teardown();
}
END_TEST

/* A store into the mapping kills the one who does it. */
START_TEST(a_store_kills_its_client_alone)
{
	int status = 0;
	pid_t pid;

	setup();
	pid = fork();
	if (pid == 0) {
		struct wire_in opened;
		int sock = open_raw(&opened);
		volatile char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, opened.fds[0], 0);

		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		if (sock < 0)
			_exit(1);
		*map = 1;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
	teardown();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, hanging_up_at_any_step);
	tcase_add_loop_test(tcase, killed_at_each_step, 0, STEPS);
	tcase_add_test(tcase, killed_at_any_moment);
	tcase_add_test(tcase, nonsense_costs_the_connection);
	tcase_add_test(tcase, wrong_orders_and_numbers);
	tcase_add_loop_test(tcase, bad_samples_are_asked_for, 0, BASE_ARRAY_LEN(bad_asks));
	tcase_add_test(tcase, a_part_of_any_size);
	tcase_add_test(tcase, uninvited_descriptors_are_closed);
	tcase_add_test(tcase, a_crowd_is_turned_away);
	tcase_add_test(tcase, the_silent_are_shut);
	tcase_add_test(tcase, other_versions);
	tcase_add_test(tcase, draining_is_told);
	tcase_add_test(tcase, a_lying_outbox_harms_nobody);
	tcase_add_test(tcase, memory_cannot_be_written);
	tcase_add_test(tcase, a_store_kills_its_client_alone);
}

int main(void)
{
	return rig_main("hostile", add);
}
