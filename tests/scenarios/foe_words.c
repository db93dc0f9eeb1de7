/* SPDX-License-Identifier: Apache-2.0 */

/* Messages: none, half, of nonsense, in any order, of any items, as large as can be, and from a crowd. */

#include "tests/scenarios/foe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int some_socket(struct foe *foe)
{
	struct wire_in opened;
	int sock;

	switch (foe_below(foe, 4)) {
	case 0:
		return foe_dial(foe);
	case 1:
		sock = foe_open(foe, foe->data, &opened);
		wire_in_fini(&opened);
		return sock;
	default:
		return foe_greet(foe);
	}
}

void foe_nonsense(struct foe *foe)
{
	uint8_t data[2000];
	int sock = some_socket(foe);

	for (unsigned n = (unsigned)foe_below(foe, 8); n > 0; n--)
		if (send(sock, data,
			 raw_nonsense((unsigned)foe_below(foe, 4), &foe->noise, data, sizeof(data)),
			 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
}

void foe_any_order(struct foe *foe)
{
	int sock = some_socket(foe);
	struct wire_out out;

	for (unsigned n = 1 + (unsigned)foe_below(foe, 6); n > 0 && sock >= 0; n--) {
		wire_out_init(&out, (uint16_t)(foe_below(foe, 8) ? 1 + foe_below(foe, 9)
								 : foe_below(foe, 65536)));
		foe_put_odd(foe, &out, (unsigned)foe_below(foe, 40));
		foe_send(sock, &out);
	}
}

/* An OPEN or DESCRIBE that repeats, before or behind what is right, what makes no sense. */
void foe_odd_open(struct foe *foe)
{
	uint16_t type = foe_below(foe, 4) ? PROTO_OPEN : PROTO_DESCRIBE;
	int sock = foe_greet(foe);
	uint8_t part[4096] = {1, 2, 3};
	struct wire_in in;
	struct wire_out out;

	if (sock < 0)
		return;
	foe_begin_open(foe, &out, type);
	if (foe_below(foe, 3) == 0)
		wire_put_bytes(&out, PROTO_KEY_PART, part,
			       foe_below(foe, UINT64_C(1) << foe_below(foe, 13)));
	if (foe_below(foe, 2))
		wire_put_u64(&out, (uint16_t)(12 + foe_below(foe, 50)), foe_number(foe));
	foe_put_odd(foe, &out, (unsigned)foe_below(foe, 5));
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

/* ---- as large as can be ---- */

static const char *repeated(const char *head, const char *what, size_t bytes)
{
	static char text[WIRE_MAX];
	size_t n = strlen(head), length = strlen(what);

	strcpy(text, head);
	for (; n + length < bytes && n + length < sizeof(text); n += length)
		memcpy(text + n, what, length + 1);
	return text;
}

static const char *long_pipeline(struct foe *foe, size_t bytes)
{
	switch (foe_below(foe, 5)) {
	case 0:
		return repeated("", "[", bytes);
	case 1:
		return repeated("[{\"op\":\"decode\"}", ",{\"op\":\"hflip\"}", bytes);
	case 2:
		return repeated("{\"ops\":\"", "\\u0041", bytes);
	case 3:
		return repeated("{\"ops\":[{\"op\":\"resize\",\"size\":[", "9", bytes);
	default:
		return repeated("{\"ops\":[],", "\"a\":{\"b\":1},", bytes);
	}
}

void foe_largest(struct foe *foe)
{
	size_t bytes = 150000 + foe_below(foe, 46000);
	_cleanup_free_ uint8_t *noise = calloc(1, WIRE_MAX);
	int sock = foe_greet(foe);
	struct wire_in in;
	struct wire_out out;

	if (sock < 0 || !noise)
		return;
	foe_begin_open(foe, &out, foe_below(foe, 3) ? PROTO_OPEN : PROTO_DESCRIBE);
	switch (foe_below(foe, 4)) {
	case 0:
		wire_put_bytes(&out, PROTO_KEY_TOKEN, noise, bytes);
		break;
	case 1:
		while (out.size < bytes)
			wire_put_bytes(&out, (uint16_t)foe_below(foe, 66), noise,
				       foe_below(foe, 9));
		break;
	case 2:
		wire_put_string(&out, PROTO_KEY_DATASET, repeated("/", "a/", bytes));
		break;
	default:
		wire_put_string(&out, PROTO_KEY_PIPELINE, long_pipeline(foe, bytes));
	}
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

/* ---- half talks, crowds ---- */

void foe_half_talk(struct foe *foe)
{
	int sock = foe_dial(foe);
	struct wire_out out;

	if (sock < 0)
		return;
	for (unsigned n = (unsigned)foe_below(foe, 3); n > 0; n--)
		raw_say_hello(sock, "foe");
	if (foe_below(foe, 2)) { /* the nonce is of another talk */
		foe_begin_open(foe, &out, PROTO_OPEN);
		foe_end_open(foe, &out, foe->data);
		foe_send(sock, &out);
	}
	if (foe_below(foe, 2))
		shutdown(sock, foe_below(foe, 2) ? SHUT_RD : SHUT_WR);
	foe_rest(foe, 20);
}

void foe_crowd(struct foe *foe)
{
	for (unsigned n = 1 + (unsigned)foe_below(foe, 150); n > 0; n--) {
		int sock = raw_try_dial();

		if (foe_below(foe, 2))
			raw_say_hello(sock, "foe");
		if (foe_below(foe, 2))
			foe_keep(foe, sock);
		else
			base_close(&sock);
	}
}
