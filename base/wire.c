/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control messages. On the wire:
 *
 *   head   magic u32 | type u16 | 0 u16 | size u32 (of all, = the datagram's) | 0 u32
 *   item   key u16 | kind u16 | length u32 | length bytes | zeros up to a multiple of 8
 *
 * so payloads are aligned to 8. Kinds: 1 number (8 bytes), 2 text (with its final NUL), 3 bytes. An
 * item of another kind is carried and never found; when a key comes twice the first one counts.
 *
 * wire_in_parse() checks all items once, on a private copy; after it the getters walk items without
 * looking at lengths twice. Descriptors are received close-on-exec and owned by the wire_in from
 * the first moment, so that a message that turns out to be bad cannot leak one.
 *
 * The control buffer has room for exactly WIRE_MAX_FDS descriptors; our sockets do not set
 * SO_PASSCRED, which would need room of its own (credentials come from SO_PEERCRED).
 */

#include "base/wire.h"
#include "base/base.h"

#include <endian.h>
#include <poll.h>
#include <sys/un.h>

#define WIRE_MAGIC 0x3157414fu /* "OAW1" */

struct wire_head {
	uint32_t magic;
	uint16_t type, zero;
	uint32_t size, zero2;
};
_Static_assert(sizeof(struct wire_head) == 16, "a head has 16 bytes");

struct wire_item_head {
	uint16_t key, kind;
	uint32_t length;
};
_Static_assert(sizeof(struct wire_item_head) == 8, "an item's head has 8 bytes");

/* Makes room for size more bytes (zeroed) and returns where they are; NULL: out->error says why. */
static uint8_t *wire_extend(struct wire_out *out, size_t size)
{
	size_t capacity = out->capacity;
	uint8_t *data;

	if (out->error)
		return NULL;
	if (size > WIRE_MAX - out->size) {
		out->error = -EMSGSIZE;
		return NULL;
	}
	while (capacity < out->size + size)
		capacity = capacity ? 2 * capacity : 256;
	if (capacity != out->capacity) {
		data = realloc(out->data, capacity);
		if (!data) {
			out->error = -ENOMEM;
			return NULL;
		}
		out->data = data;
		out->capacity = capacity;
	}
	data = out->data + out->size;
	memset(data, 0, size);
	out->size += size;
	return data;
}

static void wire_set_size(struct wire_out *out)
{
	uint32_t size = htole32((uint32_t)out->size);

	memcpy(out->data + offsetof(struct wire_head, size), &size, sizeof(size));
}

void wire_out_init(struct wire_out *out, uint16_t type)
{
	const struct wire_head head = {.magic = htole32(WIRE_MAGIC), .type = htole16(type)};
	uint8_t *at;

	*out = (struct wire_out){0};
	at = wire_extend(out, sizeof(head));
	if (!at)
		return;
	memcpy(at, &head, sizeof(head));
	wire_set_size(out);
}

void wire_out_fini(struct wire_out *out)
{
	free(out->data);
	*out = (struct wire_out){.error = -EINVAL};
}

static void wire_put(struct wire_out *out, uint16_t key, enum wire_kind kind, const void *data,
		     size_t size)
{
	struct wire_item_head item = {.key = htole16(key), .kind = htole16((uint16_t)kind)};
	uint8_t *at;

	if (!out->error && size > WIRE_MAX)
		out->error = -EMSGSIZE;
	if (out->error)
		return;
	at = wire_extend(out, sizeof(item) + base_align_up(size, 8));
	if (!at)
		return;
	item.length = htole32((uint32_t)size);
	memcpy(at, &item, sizeof(item));
	if (size > 0)
		memcpy(at + sizeof(item), data, size);
	wire_set_size(out);
}

void wire_put_u64(struct wire_out *out, uint16_t key, uint64_t value)
{
	uint64_t little = htole64(value);

	wire_put(out, key, WIRE_KIND_U64, &little, sizeof(little));
}

void wire_put_string(struct wire_out *out, uint16_t key, const char *text)
{
	wire_put(out, key, WIRE_KIND_STRING, text, strlen(text) + 1);
}

void wire_put_bytes(struct wire_out *out, uint16_t key, const void *data, size_t size)
{
	wire_put(out, key, WIRE_KIND_BYTES, data, size);
}

void wire_put_fd(struct wire_out *out, int fd)
{
	if (out->error)
		return;
	if (fd < 0)
		out->error = -EBADF;
	else if (out->n_fds == WIRE_MAX_FDS)
		out->error = -EMSGSIZE;
	else
		out->fds[out->n_fds++] = fd;
}

static void wire_put_part(struct wire_out *out, const struct wire_part *part)
{
	switch (part->kind) {
	case WIRE_PART_END:
		break;
	case WIRE_PART_NONZERO:
		if (part->number)
			wire_put_u64(out, part->key, part->number);
		break;
	case WIRE_PART_U64:
		wire_put_u64(out, part->key, part->number);
		break;
	case WIRE_PART_STRING:
		if (part->data)
			wire_put_string(out, part->key, part->data);
		break;
	case WIRE_PART_BYTES:
		if (part->data)
			wire_put_bytes(out, part->key, part->data, part->size);
		break;
	case WIRE_PART_FD:
		if (part->fd >= 0)
			wire_put_fd(out, part->fd);
		break;
	}
}

void wire_out_make_of(struct wire_out *out, uint16_t type, const struct wire_part *parts)
{
	wire_out_init(out, type);
	for (; parts->kind != WIRE_PART_END; parts++)
		wire_put_part(out, parts);
}

void wire_in_init(struct wire_in *in)
{
	*in = (struct wire_in){0};
}

static void wire_close_fds(struct wire_in *in)
{
	for (unsigned i = 0; i < in->n_fds; i++)
		base_close(&in->fds[i]);
	in->n_fds = 0;
}

void wire_in_fini(struct wire_in *in)
{
	free(in->data);
	wire_close_fds(in);
	wire_in_init(in);
}

static bool wire_is_zero(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i])
			return false;
	return true;
}

/* Reads the item at offset; the caller knows that its head is inside. */
static struct wire_item_head wire_item_at(const uint8_t *data, size_t offset)
{
	struct wire_item_head item;

	memcpy(&item, data + offset, sizeof(item));
	return (struct wire_item_head){
	    .key = le16toh(item.key),
	    .kind = le16toh(item.kind),
	    .length = le32toh(item.length),
	};
}

static size_t wire_item_end(size_t offset, const struct wire_item_head *item)
{
	return offset + sizeof(*item) + base_align_up(item->length, 8);
}

static bool wire_is_good_item(const struct wire_item_head *item, const uint8_t *payload)
{
	size_t padded = base_align_up(item->length, 8);

	if (!wire_is_zero(payload + item->length, padded - item->length))
		return false;
	switch (item->kind) {
	case WIRE_KIND_U64:
		return item->length == 8;
	case WIRE_KIND_STRING:
		return item->length > 0 &&
		       memchr(payload, 0, item->length) == payload + item->length - 1;
	default:
		return true;
	}
}

static bool wire_are_good_items(const uint8_t *data, size_t size)
{
	size_t at = sizeof(struct wire_head);

	while (at < size) {
		struct wire_item_head item;

		if (size - at < sizeof(item))
			return false;
		item = wire_item_at(data, at);
		/* In 64 bits: a length near 2^32 cannot wrap. */
		if (wire_item_end(at, &item) > size)
			return false;
		if (!wire_is_good_item(&item, data + at + sizeof(item)))
			return false;
		at = wire_item_end(at, &item);
	}
	return true;
}

int wire_in_parse(struct wire_in *in, const void *data, size_t size)
{
	struct wire_head head;
	uint8_t *copy;

	if (size < sizeof(head) || size > WIRE_MAX)
		return WIRE_E_BAD;
	memcpy(&head, data, sizeof(head));
	if (le32toh(head.magic) != WIRE_MAGIC || le32toh(head.size) != size)
		return WIRE_E_BAD;
	if (!wire_are_good_items(data, size))
		return WIRE_E_BAD;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, size);
	free(in->data);
	in->data = copy;
	in->size = size;
	in->type = le16toh(head.type);
	return 0;
}

bool wire_next(const struct wire_in *in, size_t *at, struct wire_item *ret)
{
	size_t here = *at ? *at : sizeof(struct wire_head);
	struct wire_item_head item;

	if (here >= in->size)
		return false;
	item = wire_item_at(in->data, here);
	*ret = (struct wire_item){.key = item.key,
				  .kind = item.kind,
				  .size = item.length,
				  .data = in->data + here + sizeof(item)};
	*at = wire_item_end(here, &item);
	return true;
}

uint64_t wire_number(const struct wire_item *item)
{
	uint64_t little;

	memcpy(&little, item->data, sizeof(little));
	return le64toh(little);
}

/* The first item with this key, if it is of this kind. */
static int wire_find(const struct wire_in *in, uint16_t key, enum wire_kind kind,
		     struct wire_item *ret)
{
	size_t at = 0;

	while (wire_next(in, &at, ret))
		if (ret->key == key)
			return ret->kind == kind ? 0 : WIRE_E_MISSING;
	return WIRE_E_MISSING;
}

int wire_get_u64(const struct wire_in *in, uint16_t key, uint64_t *ret)
{
	struct wire_item item;
	int r = wire_find(in, key, WIRE_KIND_U64, &item);

	if (r)
		return r;
	*ret = wire_number(&item);
	return 0;
}

int wire_get_string(const struct wire_in *in, uint16_t key, const char **ret)
{
	struct wire_item item;
	int r = wire_find(in, key, WIRE_KIND_STRING, &item);

	if (r)
		return r;
	*ret = (const char *)item.data;
	return 0;
}

int wire_get_bytes(const struct wire_in *in, uint16_t key, const void **ret, size_t *ret_size)
{
	struct wire_item item;
	int r = wire_find(in, key, WIRE_KIND_BYTES, &item);

	if (r)
		return r;
	*ret = item.data;
	*ret_size = item.size;
	return 0;
}

int wire_take_fd(struct wire_in *in, unsigned index)
{
	return index < in->n_fds ? base_take_fd(&in->fds[index]) : -1;
}

union wire_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(WIRE_MAX_FDS * sizeof(int))];
};

static bool wire_is_hung_up(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

static void wire_attach_fds(const struct wire_out *out, struct msghdr *message,
			    union wire_control *control)
{
	struct cmsghdr *head;

	if (out->n_fds == 0)
		return;
	memset(control, 0, sizeof(*control));
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(out->n_fds * sizeof(int));
	head = CMSG_FIRSTHDR(message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(out->n_fds * sizeof(int));
	memcpy(CMSG_DATA(head), out->fds, out->n_fds * sizeof(int));
}

int wire_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int sock =
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sock < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	if (connect(sock, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return base_take_fd(&sock);
}

int wire_send(int sock, const struct wire_out *out, int flags)
{
	struct iovec part = {.iov_base = out->data, .iov_len = out->size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union wire_control control;

	if (out->error)
		return out->error;
	wire_attach_fds(out, &message, &control);
	while (sendmsg(sock, &message, flags | MSG_NOSIGNAL) < 0) {
		if (wire_is_hung_up(errno))
			return WIRE_E_CLOSED;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int wire_tell_of(int sock, int flags, uint16_t type, const struct wire_part *parts)
{
	struct wire_out out;
	int r;

	wire_out_make_of(&out, type, parts);
	r = wire_send(sock, &out, flags);
	wire_out_fini(&out);
	return r;
}

/* What a datagram of so many bytes says. */
static int wire_understand(struct wire_in *in, int sock, const uint8_t *data, ssize_t size,
			   int flags)
{
	if (size == 0) {
		struct pollfd state = {.fd = sock, .events = POLLRDHUP};

		/* Nothing was read: a hang-up, or a datagram of no bytes, which no peer of ours sends. */
		if (poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)))
			return WIRE_E_CLOSED;
		return WIRE_E_BAD;
	}
	return flags & MSG_TRUNC ? WIRE_E_BAD : wire_in_parse(in, data, (size_t)size);
}

int wire_recv(int sock, struct wire_in *ret, int flags)
{
	_cleanup_free_ uint8_t *buffer = malloc(WIRE_MAX);
	struct iovec part = {.iov_base = buffer, .iov_len = WIRE_MAX};
	union wire_control control;
	struct msghdr message = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control),
	};
	ssize_t got;
	int r;

	wire_in_init(ret);
	if (!buffer)
		return -ENOMEM;
	do
		got = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return wire_is_hung_up(errno) ? WIRE_E_CLOSED : -errno;
	/* Takes over the descriptors that came, all of them, whatever else is wrong. */
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		/* n_fds is 0 here: the kernel makes one such record, and the buffer bounds it. */
		n = BASE_MIN(n, (size_t)WIRE_MAX_FDS - ret->n_fds);
		memcpy(ret->fds + ret->n_fds, CMSG_DATA(c), n * sizeof(int));
		ret->n_fds += (unsigned)n;
	}
	r = wire_understand(ret, sock, buffer, got, message.msg_flags);
	if (r) {
		wire_in_fini(ret);
		return r;
	}
	if (message.msg_flags & MSG_CTRUNC) {
		wire_close_fds(ret);
		return WIRE_E_TRUNCATED_FDS;
	}
	return 0;
}

int wire_recv_bare(int sock, struct wire_in *ret, uint8_t *buffer)
{
	struct iovec part = {.iov_base = buffer, .iov_len = WIRE_MAX};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t got;

	wire_in_init(ret);
	/* Looked at first: the kernel drops in our thread what a message has and we have no room for. */
	got = recvmsg(sock, &message, MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		return wire_is_hung_up(errno) ? WIRE_E_CLOSED : -errno;
	if (message.msg_flags & MSG_CTRUNC)
		return WIRE_E_HAS_FDS;
	recv(sock, NULL, 0, MSG_DONTWAIT);
	return wire_understand(ret, sock, buffer, got, message.msg_flags);
}
