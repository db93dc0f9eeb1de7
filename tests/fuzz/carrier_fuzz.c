/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What comes over a connection, by a peer who has its keys and is no friend: frames of any head and body, well sealed, and
 * bytes that are no frames. Whatever comes, the reader gets heads that make sense, and each GET that is out at most one
 * answer.
 *
 * The input is a row of: how (1 byte), length of the body (2), head (FRAME_HEAD), body. how: bit 0: the bytes go as they
 * are, without a seal; the bits above: in how small pieces they come; the highest but one, in the first record: also how values
 * go is agreed on by the input alone, with an RDMA device that the peer may name queue pairs of. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/little.h"
#include "cluster/carrier_parts.h"
#include "tests/cluster/fake_verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD = 3, GETS = 4, MEETS = 0x40 };

const struct verbs_ops *const verbs_ib = &fake_verbs;

static struct carrier carrier;
static struct {
	struct transport transport; /* first */
	const uint8_t *bytes;
	size_t left, most;
} stream;

/* ---- the rest of the world ---- */

_Noreturn void control_fatal(const char *event, const char *text)
{
	(void)event;
	(void)text;
	abort();
}

void control_lost(struct carrier *of, const struct channel *channel)
{
	if (of != &carrier || !channel->why.text[0])
		abort();
}

void control_met(struct carrier *of, const struct channel *channel)
{
	if (of != &carrier || channel->phase != CHANNEL_LIVES)
		abort();
}

int control_watch(const struct carrier *of, int fd, uint64_t tag)
{
	(void)of;
	(void)fd;
	(void)tag;
	return 0;
}

int transport_tcp_take(struct transport *transport)
{
	(void)transport;
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

int transport_tcp_new(int fd, struct transport **ret)
{
	(void)fd;
	*ret = &stream.transport;
	return 0;
}

static ssize_t stream_send(struct transport *transport, const struct iovec *parts, unsigned n)
{
	(void)transport;
	return n ? (ssize_t)parts[0].iov_len : 0;
}

static ssize_t stream_receive(struct transport *transport, const struct iovec *parts, unsigned n)
{
	size_t sum = 0;

	(void)transport;
	for (unsigned i = 0; i < n; i++) {
		const size_t bytes =
		    BASE_MIN(BASE_MIN(parts[i].iov_len, stream.left), stream.most - sum);

		memcpy(parts[i].iov_base, stream.bytes, bytes);
		stream.bytes += bytes;
		stream.left -= bytes;
		sum += bytes;
	}
	return sum ? (ssize_t)sum : -EAGAIN;
}

static int stream_wait(struct transport *transport, int epoll_fd, uint64_t tag, bool receives,
		       bool sends)
{
	(void)transport;
	(void)epoll_fd;
	(void)tag;
	(void)receives;
	(void)sends;
	return 0;
}

static void stream_woke(struct transport *transport, uint32_t events, bool *ret_receives,
			bool *ret_sends)
{
	(void)transport;
	(void)events;
	*ret_receives = *ret_sends = true;
}

static const char *stream_why(const struct transport *transport)
{
	(void)transport;
	return NULL;
}

static void stream_close(struct transport *transport)
{
	(void)transport;
}

static const struct transport_ops stream_ops = {
    "stream", stream_send, stream_receive, stream_wait, stream_woke, stream_why, stream_close};

static void make_rings(struct rings *ret)
{
	int fd;

	if (rings_new(1, VALUE_RING_BYTES, &fd) || rings_attach(fd, ret))
		abort();
	close(fd);
}

/* ---- the reader ---- */

static void say(struct value_head head)
{
	struct rings_item item = {.bytes = sizeof(head), .data = (const uint8_t *)&head};

	if (!take_item(&carrier, &item))
		abort();
}

static void ask(void)
{
	struct value_head head = {
	    .magic = VALUE_MAGIC, .type = VALUE_GROUP, .samples = 9, .form = LAYOUT_FORM_PACKED};

	say(head);
	head.type = VALUE_GET;
	head.samples = 0;
	head.form = 0;
	head.room = 100;
	for (head.id = 0; head.id < GETS; head.id++) {
		head.sample = head.id;
		say(head);
	}
}

static void read_all(unsigned answered[GETS])
{
	struct rings_item item;
	struct value_head head;
	bool bad;

	while (rings_look(&carrier.to_reader, 0, &item, &bad)) {
		memcpy(&head, item.data, sizeof(head));
		if (!value_head_check(&head) || item.bytes != sizeof(head) + head.bytes)
			abort();
		if (head.type == VALUE_HAVE || head.type == VALUE_MISS) {
			if (head.id >= GETS || head.sample != head.id || ++answered[head.id] > 1 ||
			    head.bytes > 100)
				abort();
		}
		rings_pass(&carrier.to_reader, 0, &item);
	}
	if (bad)
		abort();
}

/* ---- the peer ---- */

static bool is_streaming(void)
{
	return channel_is_open(&carrier.channel[0]) &&
	       carrier.channel[0].transport == &stream.transport;
}

static void refuse(struct seal *seal)
{
	static uint8_t frame[FRAME_LENGTH + FRAME_HEAD + PATH_BYTES + SEAL_MOST_TAG];
	const struct path_message offer = {.step = PATH_OFFER, .text = "none here"};
	uint8_t head[FRAME_HEAD], body[PATH_BYTES];

	frame_put(&(struct frame){.type = FRAME_PATH}, head);
	path_write(&offer, body);
	if (seal_frame(seal, head, NULL, 0, body, PATH_BYTES, frame))
		abort();
	stream.bytes = frame;
	stream.left = FRAME_LENGTH + little_32(frame);
	stream.most = stream.left;
	frame_receive(&carrier, &carrier.channel[0]);
	if (carrier.channel[0].phase != CHANNEL_LIVES)
		abort();
}

/* One record of the input; its bytes. */
static size_t play(struct seal *seal, const uint8_t *data, size_t size)
{
	static uint8_t frame[FRAME_LENGTH + FRAME_HEAD + UINT16_MAX + SEAL_MOST_TAG];
	const size_t body = BASE_MIN((size_t)little_16(data + 1), size - RECORD - FRAME_HEAD);
	const uint8_t *head = data + RECORD;

	if (data[0] & 1) {
		stream.bytes = head;
		stream.left = FRAME_HEAD + body;
	} else {
		if (seal_frame(seal, head, NULL, 0, head + FRAME_HEAD, (uint32_t)body, frame))
			abort();
		stream.bytes = frame;
		stream.left = FRAME_LENGTH + little_32(frame);
	}
	stream.most = 1U << (data[0] >> 1 & 31);
	while (is_streaming() && stream.left)
		frame_receive(&carrier, &carrier.channel[0]);
	carrier.now_ns += CARRIER_TRIES_NS / 4;
	channel_tick(&carrier, &carrier.channel[0]);
	return RECORD + FRAME_HEAD + body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct carrier_keys keys = {.send_key = {0}};
	const struct channel_new from = {.id = 1, .fd = -1, .keys = &keys};
	unsigned answered[GETS] = {0};
	struct seal *seal;

	if (!carrier.to_reader.head) {
		stream.transport.ops = &stream_ops;
		make_rings(&carrier.to_reader);
		make_rings(&carrier.from_reader);
		carrier.epoll_fd = epoll_create1(0);
		path_open(&carrier);
	}
	stream.left = 0;
	carrier.now_ns = UINT64_C(1) << 40;
	carrier.serial = 0;
	if (seal_new(false, NULL, NULL, &seal) ||
	    channel_begin(&carrier, &carrier.channel[0], &from))
		abort();
	if (size == 0 || !(data[0] & MEETS)) {
		refuse(seal);
		ask();
	}
	while (size >= RECORD + FRAME_HEAD && is_streaming()) {
		const size_t bytes = play(seal, data, size);

		data += bytes;
		size -= bytes;
		read_all(answered);
	}
	channel_lose(&carrier, &carrier.channel[0], "the input has ended");
	read_all(answered);
	if (carrier.channel[0].phase != CHANNEL_FREE || fake_in_use())
		abort();
	seal_free(seal);
	return 0;
}
