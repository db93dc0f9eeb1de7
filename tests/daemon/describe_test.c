/* SPDX-License-Identifier: Apache-2.0 */

/* Asking for what a dataset holds: what it costs others. */

#include "tests/daemon/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmring/catalog.h"
#include "storage/reader.h"

static int greeted(void)
{
	struct wire_in welcome;
	int sock = raw_greeted(&welcome);

	wire_in_fini(&welcome);
	return sock;
}

static void ask(int sock, uint16_t type, const char *dataset)
{
	struct wire_out out;

	wire_out_init(&out, type);
	if (type == PROTO_DESCRIBE)
		wire_put_string(&out, PROTO_KEY_DATASET, dataset);
	else if (type == PROTO_CACHE)
		wire_put_u64(&out, PROTO_KEY_VERB, READER_VERB_LIST);
	wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
}

/* ---- answers that nobody reads ---- */

/* The type of the next message, which is left there; the one after it is seen next. 0: hung up. */
static uint16_t peek(int sock)
{
	static uint8_t message[WIRE_MAX];
	struct wire_in in;
	uint16_t type;
	ssize_t n;

	n = recv(sock, message, sizeof(message), MSG_PEEK);
	if (n <= 0)
		return 0;
	wire_in_init(&in);
	ck_assert_int_eq(wire_in_parse(&in, message, (size_t)n), 0);
	type = in.type;
	wire_in_fini(&in);
	return type == PROTO_PROGRESS ? peek(sock) : type;
}

/* Who asks again as soon as each answer is there, and reads none, is soon shut. */
START_TEST(unread_answers_are_few)
{
	static const uint16_t asked[] = {PROTO_STATUS, PROTO_DESCRIBE, PROTO_CACHE, PROTO_WATCH};
	static const uint16_t answer[] = {PROTO_STATUS_REPLY, PROTO_DESCRIBED, PROTO_CACHED,
					  PROTO_WATCHED};
	const char *dataset = rig_pictures("unread", 8, 1, 32);
	const struct timeval limit = {PATIENCE_S, 0};
	unsigned answers = 0;
	int sock, begin = 0;

	rig_start("workers=1", "cache_size=64M", "cache_force=1", NULL);
	sock = greeted();
	ck_assert_int_eq(setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	ck_assert_int_eq(setsockopt(sock, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof(begin)), 0);
	for (;; answers++) {
		ask(sock, asked[_i], dataset);
		if (peek(sock) != answer[_i])
			break;
	}
	ck_assert_uint_ge(answers, 1);
	ck_assert_uint_le(answers, 32);
	close(sock);
	ck_assert(rig_wait_status("node.clients", 1, 1));
	rig_end();
}
END_TEST

/* ---- large ones ---- */

#define MANY 20000 /* samples: more than are written in the loop */

/* One picture more, by a name of its own. */
static void add_picture(const char *dataset, unsigned number)
{
	char first[512], other[512];

	snprintf(first, sizeof(first), "%s/class_0000/000000.jpg", dataset);
	snprintf(other, sizeof(other), "%s/class_0000/x%06u.jpg", dataset, number);
	ck_assert_int_eq(link(first, other), 0);
}

static const char *many_pictures(const char *dir)
{
	const char *dataset = rig_pictures(dir, 1, 1, 32);

	for (unsigned i = 1; i < MANY; i++)
		add_picture(dataset, i);
	return dataset;
}

static void hear(int sock, uint16_t type, struct wire_in *ret)
{
	const char *text = "";

	ck_assert_int_eq(raw_hear(sock, 0, ret), 0);
	wire_get_string(ret, PROTO_KEY_TEXT, &text);
	ck_assert_msg(ret->type == type, "message %u: %s", ret->type, text);
}

/* Whoever asks for it, also while it is written, and whoever hangs up then. */
START_TEST(a_version_is_written_once)
{
	const char *dataset = many_pictures("once");
	struct wire_in in[4], again;
	struct catalog catalog;
	struct stat first, other;
	int sock[4], late;

	rig_start("workers=1", NULL);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++) {
		int gone = greeted();

		sock[i] = greeted();
		ask(sock[i], PROTO_DESCRIBE, dataset);
		ask(gone, PROTO_DESCRIBE, dataset);
		close(gone);
	}
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sock); i++) {
		hear(sock[i], PROTO_DESCRIBED, &in[i]);
		close(sock[i]);
		ck_assert_int_eq(fstat(in[0].fds[0], &first), 0);
		ck_assert_int_eq(fstat(in[i].fds[0], &other), 0);
		ck_assert_uint_eq(other.st_ino, first.st_ino);
	}
	ck_assert_int_eq(catalog_attach(in[0].fds[0], &catalog), 0);
	ck_assert_uint_eq(catalog.head.n, MANY);
	ck_assert_str_eq(catalog.names, "class_0000");
	catalog_detach(&catalog);
	late = greeted();
	ask(late, PROTO_DESCRIBE, dataset);
	hear(late, PROTO_DESCRIBED, &again);
	ck_assert_int_eq((int)rig_status("node.catalogs"), 1);
	ck_assert_int_eq((int)rig_status("node.catalogs_apart"), 1); /* not in the loop */
	ck_assert_double_ge(rig_status("node.memory_catalogs"), (double)first.st_size);
	ck_assert_double_ge(rig_status("node.memory_used"), (double)first.st_size);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(in); i++)
		wire_in_fini(&in[i]);
	wire_in_fini(&again);
	close(late);
	rig_end();
}
END_TEST

/* What others hold nobody can take back: it counts, and what would be too much is refused with figures. */
START_TEST(what_is_held_is_accounted)
{
	const char *dataset = many_pictures("held"), *text = "";
	unsigned held = 0, version = MANY;
	struct wire_in in[16];
	uint64_t code = 0;
	int sock;

	rig_start("workers=1", "memory=3M", NULL); /* for an index of 2 MiB, and what is held */
	sock = greeted();
	for (; version < MANY + 16; version++) { /* each is let go of */
		ask(sock, PROTO_DESCRIBE, dataset);
		hear(sock, PROTO_DESCRIBED, &in[0]);
		wire_in_fini(&in[0]);
		add_picture(dataset, version);
		ck_assert_double_le(rig_status("node.memory_used"), 3 << 20);
	}
	for (;; held++, version++) {
		ck_assert_uint_lt(held, BASE_ARRAY_LEN(in));
		ask(sock, PROTO_DESCRIBE, dataset);
		ck_assert_int_eq(raw_hear(sock, 0, &in[held]), 0);
		if (in[held].type != PROTO_DESCRIBED)
			break;
		add_picture(dataset, version);
	}
	ck_assert_uint_ge(held, 8);
	ck_assert_double_le(rig_status("node.memory_used"), 3 << 20);
	wire_get_u64(&in[held], PROTO_KEY_CODE, &code);
	wire_get_string(&in[held], PROTO_KEY_TEXT, &text);
	ck_assert(code == OA_E_MEMORY || code == OA_E_DATASET); /* also its index may not fit */
	ck_assert_msg(strstr(text, "MiB") != NULL && strstr(text, "raise") != NULL, "%s", text);
	for (unsigned i = 0; i <= held; i++)
		wire_in_fini(&in[i]);
	close(sock);
	sock = greeted();
	ask(sock, PROTO_DESCRIBE, dataset);
	hear(sock, PROTO_DESCRIBED, &in[0]);
	wire_in_fini(&in[0]);
	close(sock);
	rig_end();
}
END_TEST

/* ---- named ones ---- */

#define USUAL "{\"ops\":[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":[24,40]}]}"

static void start_named(const char *dataset)
{
	char path[2][512], owner[2][64];
	static const char *const name[] = {"pets", "plain"};

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "dataset.%s.path=%s", name[i], dataset);
		snprintf(owner[i], sizeof(owner[i]), "dataset.%s.owner=%u", name[i], geteuid());
	}
	rig_start("workers=1", path[0], owner[0], path[1], owner[1], "dataset.pets.pipeline=" USUAL,
		  NULL);
}

/* The pipeline that DESCRIBED names. "": none. */
static void check_described(int sock, const char *dataset, const char *pipeline)
{
	const char *said = "";
	struct wire_in in;

	ask(sock, PROTO_DESCRIBE, dataset);
	hear(sock, PROTO_DESCRIBED, &in);
	wire_get_string(&in, PROTO_KEY_PIPELINE, &said);
	ck_assert_str_eq(said, pipeline);
	wire_in_fini(&in);
}

/* Of the name that was asked for, whether the catalogue is new or there already, and of no path. */
START_TEST(a_usual_pipeline_is_said)
{
	const char *dataset = rig_pictures("usual", 8, 1, 32);
	int sock;

	start_named(dataset);
	sock = greeted();
	check_described(sock, "name:pets", USUAL);
	check_described(sock, "name:pets", USUAL);
	check_described(sock, "name:plain", "");
	check_described(sock, dataset, "");
	close(sock);
	rig_end();
}
END_TEST

START_TEST(a_program_takes_the_usual_pipeline)
{
	struct oa_options options = {
	    .size = sizeof(options), .dataset = "name:pets", .batch = 8, .epochs = 1};
	struct oa_error error = {.size = sizeof(error)};
	struct oa_field field = {.size = sizeof(field)};
	struct oa_stream *stream, *none;
	struct oa_client *client;
	struct oa_batch *batch;

	start_named(rig_pictures("taken", 8, 1, 32));
	client = rig_connect();
	stream = rig_open(client, &options);
	ck_assert_int_eq(oa_next(stream, PATIENCE_MS, &batch), 0);
	ck_assert_int_eq(oa_batch_field(batch, 0, &field), 0);
	ck_assert_int_eq(field.shape[1], 24);
	ck_assert_int_eq(field.shape[2], 40);
	oa_release(batch);
	oa_close(stream);
	options.dataset = "name:plain";
	ck_assert_int_eq(oa_open(client, &options, &none, &error), OA_E_INVALID);
	ck_assert_msg(strstr(error.text, "dataset.NAME.pipeline") != NULL, "%s", error.text);
	oa_disconnect(client);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_usual_pipeline_is_said);
	tcase_add_test(tcase, a_program_takes_the_usual_pipeline);
	tcase_add_loop_test(tcase, unread_answers_are_few, 0, 4);
	tcase_add_test(tcase, a_version_is_written_once);
	tcase_add_test(tcase, what_is_held_is_accounted);
}

int main(void)
{
	return rig_main("describe", add);
}
