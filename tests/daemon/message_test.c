/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages of clients against their table: what is good is read whole, and nothing that is of another
 * kind, size or number of descriptors gets behind message_read(), whatever else the message has.
 */

#include "daemon/net/message.h"
#include "tests/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUARD 0x5a

/* A message as it is received, with so many descriptors. */
static void receive(struct wire_out *out, unsigned fds, struct wire_in *ret)
{
	int pair[2];

	for (unsigned i = 0; i < fds; i++)
		wire_put_fd(out, STDERR_FILENO);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(wire_send(pair[0], out, 0), 0);
	ck_assert_int_eq(wire_recv(pair[1], ret, 0), 0);
	wire_out_fini(out);
	close(pair[0]);
	close(pair[1]);
}

/* With guards around the union, which also under a sanitizer has nothing else beside it. */
static int read_guarded(const struct wire_in *in, union message *ret, struct diag *diag)
{
	uint8_t *room = malloc(sizeof(*ret) + 64);
	int r;

	ck_assert_ptr_nonnull(room);
	memset(room, GUARD, sizeof(*ret) + 64);
	r = message_read(in, (union message *)(void *)room, diag);
	for (size_t i = sizeof(*ret); i < sizeof(*ret) + 64; i++)
		ck_assert_uint_eq(room[i], GUARD);
	memcpy(ret, room, sizeof(*ret));
	free(room);
	return r;
}

static void put_good_open(struct wire_out *out)
{
	static const uint8_t nonce[MESSAGE_NONCE] = {1, 2, 3};

	wire_out_init(out, PROTO_OPEN);
	wire_put_bytes(out, PROTO_KEY_NONCE, nonce, sizeof(nonce));
	wire_put_string(out, PROTO_KEY_DATASET, "/data");
}

START_TEST(all_of_an_open)
{
	static const uint8_t version[MESSAGE_VERSION] = {7}, split[MESSAGE_SPLIT] = {9};
	union message message;
	struct wire_out out;
	struct wire_in in;
	struct diag diag;

	put_good_open(&out);
	wire_put_u64(&out, PROTO_KEY_BATCH, 8);
	wire_put_u64(&out, PROTO_KEY_BATCH, 9); /* the first one counts */
	wire_put_bytes(&out, PROTO_KEY_TOKEN, "token", 5);
	wire_put_u64(&out, PROTO_KEY_LOG, 12345); /* says only that it is there */
	wire_put_bytes(&out, PROTO_KEY_SPLIT, split, sizeof(split));
	wire_put_bytes(&out, PROTO_KEY_PART, version, sizeof(version));
	wire_put_string(&out, 999, "of a later version");
	receive(&out, 2, &in);
	ck_assert_msg(read_guarded(&in, &message, &diag) == 0, "%s", diag.text);
	ck_assert_str_eq(message.open.dataset, "/data");
	ck_assert_uint_eq(message.open.batch, 8);
	ck_assert(message.open.has_batch && !message.open.has_ranks && !message.open.job);
	ck_assert_uint_eq(message.open.token.size, 5);
	ck_assert_mem_eq(message.open.token.data, "token", 5);
	ck_assert(message.open.has_part && message.open.has_split && message.open.has_log);
	ck_assert_mem_eq(message.open.part, version, sizeof(version));
	ck_assert_mem_eq(message.open.split, split, sizeof(split));
	ck_assert_uint_eq(message.open.part_fd, 0);
	ck_assert_uint_eq(message.open.log_fd, 1);
	wire_in_fini(&in);
}
END_TEST

/* One item beside a good OPEN's. */
static const struct {
	const char *text; /* what is said of it; NULL: it is good */
	uint16_t key, kind;
	size_t size;
	unsigned fds;
} items[] = {
    {NULL, PROTO_KEY_BATCH, WIRE_KIND_U64, 8, 0},
    {"of another kind", PROTO_KEY_BATCH, WIRE_KIND_BYTES, 8, 0},
    {"of another kind", PROTO_KEY_TOKEN, WIRE_KIND_STRING, 8, 0},
    {"of another kind", PROTO_KEY_JOB, WIRE_KIND_BYTES, 8, 0},
    {"of another kind", PROTO_KEY_PART, WIRE_KIND_U64, 8, 1},
    {"1 descriptors", PROTO_KEY_BATCH, WIRE_KIND_U64, 8, 1},
    {NULL, PROTO_KEY_TOKEN, WIRE_KIND_BYTES, 100000, 0},
    {NULL, PROTO_KEY_JOB, WIRE_KIND_STRING, 100000, 0},
    {NULL, PROTO_KEY_FORM, WIRE_KIND_STRING, MESSAGE_FORM_MAX, 0},
    {"0 to 23", PROTO_KEY_FORM, WIRE_KIND_STRING, MESSAGE_FORM_MAX + 1, 0},
    {NULL, PROTO_KEY_PART, WIRE_KIND_BYTES, 32, 1},
    {"without its descriptor", PROTO_KEY_PART, WIRE_KIND_BYTES, 32, 0},
    {"items bring 1", PROTO_KEY_PART, WIRE_KIND_BYTES, 32, 2},
    {"must have 32", PROTO_KEY_PART, WIRE_KIND_BYTES, 0, 1},
    {"must have 32", PROTO_KEY_PART, WIRE_KIND_BYTES, 31, 1},
    {"must have 32", PROTO_KEY_PART, WIRE_KIND_BYTES, 33, 1},
    {"must have 32", PROTO_KEY_PART, WIRE_KIND_BYTES, 190000, 0},
    {"that it belongs to", PROTO_KEY_SPLIT, WIRE_KIND_BYTES, 24, 0},
    {"must have 24", PROTO_KEY_SPLIT, WIRE_KIND_BYTES, 190000, 0},
    {NULL, PROTO_KEY_LOG, WIRE_KIND_U64, 8, 1},
    {"without its descriptor", PROTO_KEY_LOG, WIRE_KIND_U64, 8, 0},
    {NULL, 999, WIRE_KIND_BYTES, 190000, 0},
    {"items bring 0", 999, WIRE_KIND_BYTES, 100, 1},
};

static void put_item(struct wire_out *out, uint16_t key, uint16_t kind, size_t size)
{
	static char bytes[WIRE_MAX];

	memset(bytes, 'a', size);
	bytes[size] = '\0';
	if (kind == WIRE_KIND_U64)
		wire_put_u64(out, key, UINT64_MAX);
	else if (kind == WIRE_KIND_STRING)
		wire_put_string(out, key, bytes);
	else
		wire_put_bytes(out, key, bytes, size);
}

START_TEST(one_item_of_an_open)
{
	union message message;
	struct wire_out out;
	struct wire_in in;
	struct diag diag = {""};
	int r;

	put_good_open(&out);
	put_item(&out, items[_i].key, items[_i].kind, items[_i].size);
	receive(&out, items[_i].fds, &in);
	r = read_guarded(&in, &message, &diag);
	ck_assert_msg((r == 0) == !items[_i].text, "item %d: %s", _i, diag.text);
	if (r)
		ck_assert_msg(strstr(diag.text, items[_i].text) != NULL, "item %d: %s", _i,
			      diag.text);
	wire_in_fini(&in);
}
END_TEST

/* Every type, key, kind and size, alone and with a descriptor: read without harm, or refused in words. */
START_TEST(anything_anywhere)
{
	static const size_t sizes[] = {0, 1, 8, 15, 16, 24, 32, 33, 4097, 190000};
	unsigned n_good = 0;

	for (uint16_t type = 0; type < 40; type++)
		for (uint16_t key = 0; key < 70; key++)
			for (uint16_t kind = WIRE_KIND_U64; kind <= WIRE_KIND_BYTES; kind++)
				for (size_t i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
					union message message;
					struct wire_out out;
					struct wire_in in;
					struct diag diag = {""};
					int r;

					wire_out_init(&out, type);
					put_item(&out, key, kind, sizes[i]);
					receive(&out, (unsigned)(i % 2), &in);
					r = read_guarded(&in, &message, &diag);
					ck_assert(r == 0 || (r == WIRE_E_BAD && *diag.text));
					n_good += r == 0;
					wire_in_fini(&in);
				}
	ck_assert_uint_gt(n_good, 1000); /* HELLO and those without items pass over the rest */
}
END_TEST

START_TEST(what_must_be_there)
{
	static const struct {
		uint16_t type;
		const char *text; /* NULL: nothing must */
	} types[] = {
	    {PROTO_HELLO, NULL},
	    {PROTO_OPEN, "nonce of WELCOME"},
	    {PROTO_KICK, NULL},
	    {PROTO_EXPLAIN, NULL},
	    {PROTO_STATUS, NULL},
	    {PROTO_DESCRIBE, "the dataset's path"},
	    {PROTO_PLAN, "the list of an epoch"},
	    {PROTO_CACHE, "what is to be done"},
	    {PROTO_WATCH, NULL},
	    {PROTO_WELCOME, "no message of type 16"},
	    {0, "no message of type 0"},
	    {65535, "no message of type 65535"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(types); i++) {
		union message message;
		struct wire_out out;
		struct wire_in in;
		struct diag diag = {""};

		wire_out_init(&out, types[i].type);
		receive(&out, 0, &in);
		ck_assert_int_eq(message_read(&in, &message, &diag) == 0, !types[i].text);
		ck_assert_msg(!types[i].text || strstr(diag.text, types[i].text), "%s", diag.text);
		wire_in_fini(&in);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, all_of_an_open);
	tcase_add_loop_test(tcase, one_item_of_an_open, 0, (int)BASE_ARRAY_LEN(items));
	tcase_add_test(tcase, anything_anywhere);
	tcase_add_test(tcase, what_must_be_there);
}

int main(void)
{
	return suite_run("message", add);
}
