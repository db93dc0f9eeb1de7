/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/cluster/post.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/little.h"
#include "cluster/path.h"
#include "tests/patience.h"

#define POST_INCARNATION 77

/* ---- the process ---- */

static _Noreturn void exec_carrier(int sock, const char *as)
{
	const char *libexec = getenv("ACCESS_LIBEXEC");
	char program[4096];

	snprintf(program, sizeof(program), "%s/access-carrier", libexec ? libexec : "libexec");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(sock, CARRIER_CONTROL_FD);
	dup2(CARRIER_CONTROL_FD, 50); /* a descriptor too many, which it must close */
	execl(program, "access-carrier", as ? "--as" : NULL, as, (char *)NULL);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static void send_and_free(int sock, struct wire_out *out)
{
	ck_assert_int_eq(wire_send(sock, out, 0), 0);
	wire_out_fini(out);
}

static void pair_of(int type, int ret[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret), 0);
}

static int make_rings(struct rings *ret)
{
	int fd;

	ck_assert_int_eq(rings_new(1, VALUE_RING_BYTES, &fd), 0);
	ck_assert_int_eq(rings_attach(fd, ret), 0);
	return fd;
}

enum carrier_transport post_transport(void)
{
	const char *name = getenv("OA_TEST_TRANSPORT");

	if (!name || strcmp(name, "tcp") == 0)
		return CARRIER_TCP;
	return strcmp(name, "rdma") == 0 ? CARRIER_RDMA : CARRIER_AUTO;
}

void post_start(struct post *post, const char *as)
{
	int pair[2], gate[2], to, from;
	struct wire_out out;

	post->weight = 512;
	pair_of(SOCK_SEQPACKET, pair);
	post->pid = fork();
	ck_assert_int_ge(post->pid, 0);
	if (post->pid == 0)
		exec_carrier(pair[1], as);
	close(pair[1]);
	post->control = pair[0];
	pair_of(SOCK_SEQPACKET, gate);
	post->gate = gate[0];
	to = make_rings(&post->to_carrier);
	from = make_rings(&post->from_carrier);
	post->bytes = malloc(VALUE_MOST);
	ck_assert_ptr_nonnull(post->bytes);
	wire_out_init(&out, CARRIER_START);
	wire_put_u64(&out, CARRIER_KEY_GATE, 1);
	wire_put_u64(&out, CARRIER_KEY_RINGS, 1);
	wire_put_u64(&out, CARRIER_KEY_TRANSPORT, post_transport());
	wire_put_fd(&out, gate[1]);
	wire_put_fd(&out, to);
	wire_put_fd(&out, from);
	send_and_free(post->control, &out);
	close(gate[1]);
	close(to);
	close(from);
}

void post_new_gate(struct post *post)
{
	struct wire_out out;
	int gate[2];

	close(post->gate);
	pair_of(SOCK_SEQPACKET, gate);
	post->gate = gate[0];
	wire_out_init(&out, CARRIER_START);
	wire_put_u64(&out, CARRIER_KEY_GATE, 1);
	wire_put_fd(&out, gate[1]);
	send_and_free(post->control, &out);
	close(gate[1]);
}

static void fini(struct post *post)
{
	close(post->control);
	close(post->gate);
	rings_detach(&post->to_carrier);
	rings_detach(&post->from_carrier);
	free(post->bytes);
}

void post_stop(struct post *post)
{
	int status;

	shutdown(post->control, SHUT_RDWR);
	ck_assert_int_eq(waitpid(post->pid, &status, 0), post->pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended by %#x",
		      (unsigned)status);
	fini(post);
}

void post_kill(struct post *post)
{
	int status;

	ck_assert_int_eq(kill(post->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(post->pid, &status, 0), post->pid);
	ck_assert(WIFSIGNALED(status));
	fini(post);
}

/* ---- accessd and the gate ---- */

void post_connect(struct post *post, uint64_t id, int fd, bool is_sealed,
		  const struct carrier_keys *keys)
{
	struct wire_out out;

	wire_out_init(&out, CARRIER_CHANNEL);
	wire_put_u64(&out, CARRIER_KEY_ID, id);
	wire_put_u64(&out, CARRIER_KEY_INCARNATION, POST_INCARNATION);
	wire_put_u64(&out, CARRIER_KEY_WEIGHT, post->weight);
	wire_put_u64(&out, CARRIER_KEY_SEALED, is_sealed);
	wire_put_bytes(&out, CARRIER_KEY_KEYS, keys, sizeof(*keys));
	wire_put_fd(&out, fd);
	send_and_free(post->gate, &out);
	close(fd);
}

static void receive(int sock, struct wire_in *ret)
{
	struct pollfd readable = {.fd = sock, .events = POLLIN};

	ck_assert_int_eq(poll(&readable, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(wire_recv(sock, ret, 0), 0);
}

void post_hear(struct post *post, uint16_t type, struct wire_in *ret)
{
	wire_in_init(ret);
	for (;;) {
		receive(post->control, ret);
		if (ret->type == type)
			return;
		wire_in_fini(ret);
	}
}

static uint64_t number_of(const struct wire_in *in, uint16_t key)
{
	uint64_t number;

	ck_assert_int_eq(wire_get_u64(in, key, &number), 0);
	return number;
}

/* rdma: as it must be; NULL: as it is. */
static uint32_t hear_met(struct post *post, const bool *rdma, const char *why)
{
	struct wire_in in;
	const char *text;
	uint64_t peer;

	post_hear(post, CARRIER_MET, &in);
	ck_assert_int_eq(wire_get_string(&in, CARRIER_KEY_TEXT, &text), 0);
	if (rdma) {
		ck_assert_msg(number_of(&in, CARRIER_KEY_RDMA) == *rdma, "by RDMA or not: %s",
			      text);
		ck_assert_msg(strstr(text, why) != NULL, "\"%s\", not \"%s\"", text, why);
	}
	peer = number_of(&in, CARRIER_KEY_PEER);
	ck_assert_uint_lt(peer, VALUE_MOST_PEERS);
	ck_assert_uint_eq(number_of(&in, CARRIER_KEY_INCARNATION), POST_INCARNATION);
	ck_assert_uint_eq(number_of(&in, CARRIER_KEY_WEIGHT), post->weight);
	wire_in_fini(&in);
	return (uint32_t)peer;
}

uint32_t post_met(struct post *post)
{
	return hear_met(post, NULL, NULL);
}

uint32_t post_met_by(struct post *post, bool rdma, const char *why)
{
	return hear_met(post, &rdma, why);
}

static uint64_t hear_lost(struct post *post, uint32_t peer, const char *why)
{
	struct wire_in in;
	const char *text;
	uint64_t id;

	post_hear(post, CARRIER_LOST, &in);
	ck_assert_uint_eq(number_of(&in, CARRIER_KEY_PEER), peer);
	id = number_of(&in, CARRIER_KEY_ID);
	ck_assert_int_eq(wire_get_string(&in, CARRIER_KEY_TEXT, &text), 0);
	ck_assert_msg(strstr(text, why) != NULL, "\"%s\", not \"%s\"", text, why);
	wire_in_fini(&in);
	return id;
}

void post_ended(struct post *post, uint64_t id)
{
	struct wire_in in;

	wire_in_init(&in);
	receive(post->gate, &in);
	ck_assert_uint_eq(in.type, CARRIER_ENDED);
	ck_assert_uint_eq(number_of(&in, CARRIER_KEY_ID), id);
	wire_in_fini(&in);
}

void post_refused(struct post *post, uint64_t id, const char *why)
{
	struct wire_in in;
	const char *text;

	post_hear(post, CARRIER_REFUSED, &in);
	ck_assert_uint_eq(number_of(&in, CARRIER_KEY_ID), id);
	ck_assert_int_eq(wire_get_string(&in, CARRIER_KEY_TEXT, &text), 0);
	ck_assert_msg(strstr(text, why) != NULL, "\"%s\", not \"%s\"", text, why);
	wire_in_fini(&in);
	post_ended(post, id);
}

void post_lost(struct post *post, uint32_t peer, const char *why)
{
	post_ended(post, hear_lost(post, peer, why));
}

void post_replaced(struct post *post, uint32_t peer)
{
	hear_lost(post, peer, "connected anew");
}

bool post_is_silent(const struct post *post)
{
	struct pollfd readable = {.fd = post->gate, .events = POLLIN};

	return poll(&readable, 1, 0) == 0;
}

void post_state(struct post *post, uint32_t peer, size_t offset, uint64_t least)
{
	for (;;) {
		struct wire_in in;
		const void *state;
		uint64_t number;
		size_t size;
		bool is_so;

		post_hear(post, CARRIER_STATE, &in);
		ck_assert_int_eq(wire_get_bytes(&in, CARRIER_KEY_STATE, &state, &size), 0);
		ck_assert_uint_eq(size, sizeof(struct carrier_state));
		memcpy(&number, (const uint8_t *)state + offset, sizeof(number));
		is_so = number_of(&in, CARRIER_KEY_PEER) == peer && number >= least;
		wire_in_fini(&in);
		if (is_so)
			return;
	}
}

/* ---- the reader ---- */

bool post_try_say(struct post *post, const struct value_head *head, const void *bytes)
{
	const uint32_t size = (uint32_t)sizeof(*head) + head->bytes;
	uint8_t *place = rings_begin(&post->to_carrier, 0, size);

	if (!place)
		return false;
	memcpy(place, head, sizeof(*head));
	if (head->bytes)
		memcpy(place + sizeof(*head), bytes, head->bytes);
	rings_end(&post->to_carrier, 0, &(struct rings_item){.bytes = size});
	return true;
}

void post_say(struct post *post, const struct value_head *head, const void *bytes)
{
	const uint64_t until = base_now_ns() + PATIENCE_NS;

	while (!post_try_say(post, head, bytes)) {
		ck_assert_uint_lt(base_now_ns(), until);
		usleep(1000);
	}
}

bool post_try_next(struct post *post, struct value_head *ret)
{
	struct rings_item item;
	bool bad;

	if (!rings_look(&post->from_carrier, 0, &item, &bad)) {
		ck_assert(!bad);
		return false;
	}
	ck_assert_uint_ge(item.bytes, sizeof(*ret));
	memcpy(ret, item.data, sizeof(*ret));
	ck_assert(value_head_check(ret));
	ck_assert_uint_eq(item.bytes, sizeof(*ret) + ret->bytes);
	memcpy(post->bytes, item.data + sizeof(*ret), ret->bytes);
	rings_pass(&post->from_carrier, 0, &item);
	return true;
}

void post_next(struct post *post, struct value_head *ret)
{
	const uint64_t until = base_now_ns() + PATIENCE_NS;

	for (;;) {
		const uint32_t seen = rings_seq(&post->from_carrier);

		if (post_try_next(post, ret))
			return;
		ck_assert_uint_lt(base_now_ns(), until);
		rings_sleep(&post->from_carrier, seen, PATIENCE_NS / 10);
	}
}

/* ---- things ---- */

void post_fill(uint64_t name, uint8_t *ret, uint32_t bytes)
{
	uint64_t word = name * UINT64_C(0x9e3779b97f4a7c15) + 1;

	for (uint32_t i = 0; i < bytes; i += 8) {
		word ^= word << 13;
		word ^= word >> 7;
		word ^= word << 17;
		memcpy(ret + i, &word, BASE_MIN(8U, bytes - i));
	}
}

void post_keys(uint64_t seed, struct carrier_keys *ret, struct carrier_keys *ret_other)
{
	post_fill(seed, (uint8_t *)ret, sizeof(*ret));
	memcpy(ret_other->send_key, ret->receive_key, sizeof(ret->receive_key));
	memcpy(ret_other->receive_key, ret->send_key, sizeof(ret->send_key));
	memcpy(ret_other->send_iv, ret->receive_iv, sizeof(ret->receive_iv));
	memcpy(ret_other->receive_iv, ret->send_iv, sizeof(ret->send_iv));
}

void post_tcp(int ret[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(ret[0], (struct sockaddr *)&address, size), 0);
	ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(ret[1], 0);
	close(listener);
}

struct value_head post_head(uint32_t type, uint32_t peer, uint64_t id, unsigned group,
			    uint64_t sample, uint32_t bytes)
{
	struct value_head head = {
	    .magic = VALUE_MAGIC,
	    .type = type,
	    .peer = peer,
	    .bytes = bytes,
	    .id = id,
	    .sample = sample,
	    .samples = type == VALUE_GROUP ? VALUE_MOST_SAMPLES : 0,
	    .form = type == VALUE_GET || type == VALUE_MISS ? 0 : LAYOUT_FORM_PACKED,
	    .room = type == VALUE_GET ? VALUE_MOST : 0,
	};

	post_fill(group, head.group.bytes, sizeof(head.group.bytes));
	return head;
}

/* ---- a peer who is no carrier ---- */

static void offer_nothing(struct peer *peer)
{
	const struct path_message offer = {.step = PATH_OFFER, .text = "a peer of a test"};
	uint8_t body[PATH_BYTES];

	path_write(&offer, body);
	peer_say(peer, &(struct frame){.type = FRAME_PATH}, body, PATH_BYTES);
}

void peer_connect(struct peer *peer, struct post *post, uint64_t id, bool is_sealed)
{
	struct carrier_keys ours, keys;
	int pair[2];

	post_keys(id + 1, &ours, &keys);
	post_tcp(pair);
	ck_assert_int_eq(seal_init(), 0);
	peer->fd = pair[0];
	ck_assert_int_eq(seal_new(is_sealed, ours.send_key, ours.send_iv, &peer->sends), 0);
	ck_assert_int_eq(seal_new(is_sealed, ours.receive_key, ours.receive_iv, &peer->receives),
			 0);
	peer->frame = malloc(FRAME_LENGTH + FRAME_HEAD + VALUE_MOST + SEAL_MOST_TAG);
	ck_assert_ptr_nonnull(peer->frame);
	offer_nothing(peer);
	post_connect(post, id, pair[1], is_sealed, &keys);
}

void peer_fini(struct peer *peer)
{
	base_close(&peer->fd);
	seal_free(peer->sends);
	seal_free(peer->receives);
	free(peer->frame);
}

void peer_make(struct peer *peer, const struct frame *frame, const void *body, uint32_t bytes)
{
	uint8_t head[FRAME_HEAD];

	frame_put(frame, head);
	ck_assert_int_eq(seal_frame(peer->sends, head, NULL, 0, body, bytes, peer->frame), 0);
	peer->bytes = FRAME_LENGTH + FRAME_HEAD + (size_t)bytes + seal_tag(peer->sends);
}

void peer_send(struct peer *peer, size_t bytes)
{
	const ssize_t sent = send(peer->fd, peer->frame, bytes, MSG_NOSIGNAL);

	ck_assert(sent == (ssize_t)bytes || errno == EPIPE || errno == ECONNRESET);
}

void peer_say(struct peer *peer, const struct frame *frame, const void *body, uint32_t bytes)
{
	peer_make(peer, frame, body, bytes);
	peer_send(peer, peer->bytes);
}

void peer_group(struct peer *peer, uint32_t number, unsigned group)
{
	const struct frame frame = {.type = VALUE_GROUP,
				    .form = LAYOUT_FORM_PACKED,
				    .group = number,
				    .sample = VALUE_MOST_SAMPLES - 1};
	struct value_head head = post_head(VALUE_GROUP, 0, 0, group, 0, 0);

	peer_say(peer, &frame, head.group.bytes, FRAME_HASH);
}

static void receive_all(int fd, uint8_t *ret, size_t bytes)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	while (bytes) {
		ssize_t part;

		ck_assert_int_eq(poll(&readable, 1, PATIENCE_MS), 1);
		part = recv(fd, ret, bytes, 0);
		ck_assert_int_gt(part, 0);
		ret += part;
		bytes -= (size_t)part;
	}
}

void peer_hear(struct peer *peer, uint8_t type, struct frame *ret)
{
	uint8_t head[FRAME_HEAD];
	uint32_t body;

	do {
		uint8_t *bytes = malloc(VALUE_MOST);

		receive_all(peer->fd, peer->frame, FRAME_LENGTH);
		peer->bytes = little_32(peer->frame);
		ck_assert(frame_length_check((uint32_t)peer->bytes, seal_tag(peer->receives)));
		receive_all(peer->fd, peer->frame + FRAME_LENGTH, peer->bytes);
		body = (uint32_t)peer->bytes - FRAME_HEAD - seal_tag(peer->receives);
		ck_assert_int_eq(seal_open(peer->receives, peer->frame, peer->frame + SEAL_FIRST,
					   body, peer->frame + SEAL_FIRST + body, head, bytes),
				 0);
		ck_assert(frame_get(head, body, ret));
		free(bytes);
	} while (ret->type != type && (ret->type == FRAME_ALIVE || ret->type == FRAME_PATH));
	ck_assert_uint_eq(ret->type, type);
}
