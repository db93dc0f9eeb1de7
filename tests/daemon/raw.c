/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/daemon/raw.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "plan/plan.h"

int raw_try_dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	strcpy(address.sun_path, rig_host.socket);
	if (connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0) {
		base_close(&sock);
		return -1;
	}
	return sock;
}

int raw_dial(void)
{
	int sock = raw_try_dial();

	ck_assert_int_ge(sock, 0);
	return sock;
}

int raw_hear_for(int sock, uint16_t type, unsigned ms, struct wire_in *ret)
{
	struct timeval limit = {ms / 1000, ms % 1000 * 1000};
	int r;

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (;;) {
		wire_in_init(ret);
		r = wire_recv(sock, ret, 0);
		if (r || ret->type == type ||
		    (!type && ret->type != PROTO_PROGRESS && ret->type != PROTO_NOTICE))
			return r;
		wire_in_fini(ret);
	}
}

int raw_hear(int sock, uint16_t type, struct wire_in *ret)
{
	return raw_hear_for(sock, type, PATIENCE_MS, ret);
}

int raw_say_hello(int sock, const char *program)
{
	struct wire_out out;
	int r;

	wire_out_init(&out, PROTO_HELLO);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	wire_put_u64(&out, PROTO_KEY_MINOR, PROTO_MINOR);
	wire_put_string(&out, PROTO_KEY_PROGRAM, program);
	r = wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
	return r;
}

int raw_greeted(struct wire_in *ret_welcome)
{
	int sock = raw_dial();

	ck_assert_int_eq(raw_say_hello(sock, "raw"), 0);
	ck_assert_int_eq(raw_hear(sock, 0, ret_welcome), 0);
	ck_assert_int_eq(ret_welcome->type, PROTO_WELCOME);
	return sock;
}

void raw_send_open(int sock, const struct wire_in *welcome, const struct raw_open *open)
{
	const void *nonce = NULL;
	struct wire_out out;
	size_t size = 0;

	ck_assert_int_eq(wire_get_bytes(welcome, PROTO_KEY_NONCE, &nonce, &size), 0);
	wire_out_init(&out, PROTO_OPEN);
	wire_put_bytes(&out, PROTO_KEY_NONCE, nonce, size);
	wire_put_string(&out, PROTO_KEY_DATASET, open->dataset);
	wire_put_string(&out, PROTO_KEY_PIPELINE, open->pipeline);
	wire_put_u64(&out, PROTO_KEY_BATCH, open->batch);
	wire_put_u64(&out, PROTO_KEY_EPOCHS, 0);
	wire_put_string(&out, PROTO_KEY_JOB, "raw");
	wire_put_u64(&out, PROTO_KEY_POLICY, open->policy);
	if (open->has_budget)
		wire_put_u64(&out, PROTO_KEY_BUDGET, open->budget);
	if (open->chunk)
		wire_put_u64(&out, PROTO_KEY_CHUNK, open->chunk);
	if (open->spread) {
		wire_put_u64(&out, PROTO_KEY_RANKS, 4);
		wire_put_u64(&out, PROTO_KEY_LOCAL_RANKS, 2);
		wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_SEEDED);
		wire_put_u64(&out, PROTO_KEY_SPREAD, open->spread);
	}
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
}

int raw_ask(const struct raw_open *open)
{
	struct wire_in welcome;
	int sock = raw_greeted(&welcome);

	raw_send_open(sock, &welcome, open);
	wire_in_fini(&welcome);
	return sock;
}

int raw_open(const struct raw_open *open, struct wire_in *ret_opened)
{
	int sock = raw_ask(open);
	const char *text = "";

	ck_assert_int_eq(raw_hear(sock, 0, ret_opened), 0);
	wire_get_string(ret_opened, PROTO_KEY_TEXT, &text);
	ck_assert_msg(ret_opened->type == PROTO_OPENED, "message %u: %s", ret_opened->type, text);
	ck_assert_uint_eq(ret_opened->n_fds, 4);
	return sock;
}

void raw_say(int sock, uint16_t type)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_send(sock, &out, MSG_DONTWAIT);
	wire_out_fini(&out);
}

size_t raw_nonsense(unsigned kind, uint64_t *state, uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		data[i] = (uint8_t)*state;
	}
	switch (kind % 4) {
	case 0: /* random all over */
		return 1 + *state % size;
	case 1: /* a right head, random items */
		memset(data, 0, 8);
		data[0] = PROTO_HELLO;
		return 8 + *state % 200;
	case 2: /* lengths without end */
		memset(data, 0xff, size);
		data[0] = (uint8_t)(1 + *state % 6);
		data[1] = 0;
		return 64;
	default: /* half a head */
		data[0] = PROTO_OPEN;
		data[1] = 0;
		return 1 + *state % 7;
	}
}

void raw_attach(struct wire_in *opened, struct raw_rank *ret)
{
	ck_assert_int_eq(
	    grant_memory_attach(opened->fds[2], opened->fds[3], &ret->inbox, &ret->outbox), 0);
	grant_rank_init(&ret->rank, ret->inbox, ret->outbox);
}

void raw_detach(struct raw_rank *rank)
{
	grant_memory_detach(rank->inbox, rank->outbox);
}
