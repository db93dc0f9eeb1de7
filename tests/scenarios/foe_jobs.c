/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs: they ask without end and read nothing, hold what they get, lie, stop, die, and memory cache; and end the processes that
 * accessd has started for them. */

#include "tests/scenarios/foe.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/plan.h"
#include "storage/reader.h"
#include "tests/scenarios/town.h"

/* ---- floods ---- */

static void put_question(struct foe *foe, struct wire_out *out, uint16_t type)
{
	uint8_t group[32];

	wire_out_init(out, type);
	wire_put_string(out, PROTO_KEY_DATASET, foe->data);
	wire_put_u64(out, PROTO_KEY_INSTANCE, foe_number(foe));
	wire_put_u64(out, PROTO_KEY_POSITION, foe_number(foe));
	wire_put_u64(out, PROTO_KEY_VERB, foe_below(foe, READER_VERBS + 1));
	raw_nonsense(0, &foe->noise, group, sizeof(group));
	wire_put_bytes(out, PROTO_KEY_GROUP, group, foe_below(foe, 8) ? sizeof(group) : 5);
	if (foe_below(foe, 4) == 0)
		wire_put_string(out, PROTO_KEY_WHO, foe_below(foe, 2) ? "everybody" : "65201");
}

/* The same question again and again, and no look at the answers. */
void foe_flood(struct foe *foe)
{
	static const uint16_t early[] = {PROTO_STATUS, PROTO_DESCRIBE, PROTO_CACHE},
			      late[] = {PROTO_STATUS, PROTO_EXPLAIN, PROTO_KICK};
	bool is_late = foe_below(foe, 2);
	uint16_t type = is_late ? late[foe_below(foe, 3)] : early[foe_below(foe, 3)];
	struct wire_in opened;
	int sock;

	wire_in_init(&opened);
	sock = is_late ? foe_open(foe, foe->data, &opened) : foe_greet(foe);
	wire_in_fini(&opened);
	for (unsigned n = 1 << foe_below(foe, 12); n > 0 && sock >= 0; n--) {
		struct wire_out out;

		put_question(foe, &out, type);
		foe_send(sock, &out);
	}
	foe_rest(foe, 50);
}

/* What is asked of what is kept, with answers, from many connections. */
void foe_chores(struct foe *foe)
{
	for (unsigned n = 1 + (unsigned)foe_below(foe, 20); n > 0; n--) {
		int sock = foe_greet(foe);
		struct wire_out out;

		if (sock < 0)
			return;
		put_question(foe, &out, PROTO_CACHE);
		foe_send(sock, &out);
	}
	foe_rest(foe, 100);
}

/* ---- many ---- */

/* Ranks of a job of up to 1,024, as many as he has connections for. */
void foe_ranks(struct foe *foe)
{
	uint64_t ranks = 2 + foe_below(foe, foe_below(foe, 2) ? 1023 : 65535);

	for (uint64_t i = 0, n = foe_below(foe, 30); i < n && i < ranks; i++) {
		int sock = foe_greet(foe);
		struct wire_out out;

		if (sock < 0)
			return;
		foe_begin_open(foe, &out, PROTO_OPEN);
		wire_put_u64(&out, PROTO_KEY_RANKS, ranks);
		wire_put_u64(&out, PROTO_KEY_RANK, foe_below(foe, 8) ? i : foe_number(foe));
		wire_put_u64(&out, PROTO_KEY_ORDER, foe_below(foe, 6));
		foe_end_open(foe, &out, foe->data);
		foe_send(sock, &out);
	}
	foe_rest(foe, 300);
}

/* Streams until he is refused. */
void foe_hoards(struct foe *foe)
{
	for (unsigned n = 1 + (unsigned)foe_below(foe, 12); n > 0; n--) {
		struct wire_in opened;

		foe_open(foe, foe->data, &opened);
		wire_in_fini(&opened);
	}
	foe_rest(foe, 100);
}

void foe_breaks(struct foe *foe)
{
	for (unsigned n = 1 + (unsigned)foe_below(foe, 40); n > 0; n--) {
		int sock = raw_try_dial();
		struct wire_in welcome;
		struct wire_out out;
		const void *nonce = "";
		size_t size = 0;

		wire_in_init(&welcome);
		if (sock < 0 || raw_say_hello(sock, "foe") ||
		    raw_hear_for(sock, 0, 20000, &welcome))
			n = 1;
		else {
			wire_get_bytes(&welcome, PROTO_KEY_NONCE, &nonce, &size);
			memcpy(foe->nonce, nonce, BASE_MIN(size, sizeof(foe->nonce)));
			foe_begin_open(foe, &out, PROTO_OPEN);
			foe_end_open(foe, &out, foe->data);
			foe_send(sock, &out);
		}
		wire_in_fini(&welcome);
		base_close(&sock);
	}
}

/* ---- jobs that do not behave ---- */

/* Takes what it gets, gives nothing back. */
static void hold_all(struct foe *foe)
{
	struct wire_in opened;
	struct raw_rank rank;
	struct grant grant;

	if (foe_open(foe, foe->data, &opened) < 0)
		return;
	if (grant_memory_attach(opened.fds[2], opened.fds[3], &rank.inbox, &rank.outbox))
		return;
	grant_rank_init(&rank.rank, rank.inbox, rank.outbox);
	for (;;) {
		grant_take(&rank.rank, &grant);
		rig_sleep_ms(5);
	}
}

void foe_holds(struct foe *foe)
{
	foe_sacrifice(foe, hold_all, 2000);
}

/* An outbox full of nonsense. */
void foe_outbox(struct foe *foe)
{
	struct wire_in opened;
	int sock = foe_open(foe, foe->data, &opened);
	struct stat st;
	void *words;

	if (sock >= 0 && fstat(opened.fds[3], &st) == 0 &&
	    (words = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  opened.fds[3], 0)) != MAP_FAILED) {
		for (unsigned n = 1 + (unsigned)foe_below(foe, 200); n > 0; n--) {
			size_t at = foe_below(foe, sizeof(struct layout_outbox) / 8);

			((_Atomic uint64_t *)words)[at] =
			    foe_below(foe, 2) ? foe_below(foe, 80) << 8 | foe_below(foe, 4)
					      : foe_number(foe);
			raw_say(sock, PROTO_KICK);
		}
		munmap(words, (size_t)st.st_size);
	}
	wire_in_fini(&opened);
}

/* A job as any other, until it is killed. */
static void train(struct foe *foe)
{
	struct oa_options options = trainee_options(foe->data, 1 + (uint32_t)foe_below(foe, 16), 0);
	struct oa_error error = {.size = sizeof(error)};
	struct oa_batch *batch[2] = {NULL};
	struct oa_client *client = NULL;
	struct oa_stream *stream = NULL;

	if (oa_connect(rig_host.socket, &client, &error) ||
	    oa_open(client, &options, &stream, &error))
		return;
	for (unsigned i = 0;; i++) {
		oa_release(batch[i % 2]);
		batch[i % 2] = NULL;
		oa_next(stream, 1000, &batch[i % 2]);
		if (foe_below(foe, 200) == 0)
			raise(SIGSTOP); /* nobody wakes it but its end */
	}
}

void foe_dies(struct foe *foe)
{
	foe_sacrifice(foe, train, 200);
}

/* Long enough that it has stopped itself. */
void foe_stops(struct foe *foe)
{
	foe_sacrifice(foe, train, 3000);
}

/* What /proc has of each of its threads: the kernel keeps that for as long as they live, and who reaps it must clear it
 * away. */
static void look_at_threads(pid_t pid)
{
	char path[64];
	glob_t found;

	snprintf(path, sizeof(path), "/proc/%d/task/*/comm", (int)pid);
	if (glob(path, 0, NULL, &found) == 0)
		globfree(&found);
}

/* His own reader, worker parent or a worker of it: killed, or stopped. */
void foe_kills(struct foe *foe)
{
	int number = foe_below(foe, 3) ? SIGKILL : SIGSTOP;
	pid_t pid = rig_host.pid, below[64];
	unsigned n;

	for (unsigned depth = 1 + (unsigned)foe_below(foe, 2); depth > 0; depth--) {
		n = town_children(pid, below, BASE_ARRAY_LEN(below));
		if (n == 0)
			return;
		pid = below[foe_below(foe, n)];
	}
	if (foe_below(foe, 2))
		look_at_threads(pid);
	kill(pid, number);
}
