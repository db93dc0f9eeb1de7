/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control messages: one SOCK_SEQPACKET datagram = head + items {key u16, kind u16, length u32,
 * bytes}. Unknown keys are ignored, a missing one is an outcome, so minor versions mix. Nothing of
 * a received message is believed: every length is checked against the datagram before use, numbers
 * have exactly 8 bytes, strings hold no NUL inside. Little endian, x86-64 and AArch64 alike.
 * Used client <-> accessd (shmring/proto.h), accessd <-> reader, accessd <-> worker parent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define WIRE_MAX 196608 /* bytes of the largest message; fits the default socket buffer */
#define WIRE_MAX_FDS 8

enum wire_kind { WIRE_KIND_U64 = 1, WIRE_KIND_STRING = 2, WIRE_KIND_BYTES = 3 };

enum {
	WIRE_E_MISSING = 1,
	WIRE_E_BAD = 2,
	WIRE_E_CLOSED = 3,
	WIRE_E_TRUNCATED_FDS = 4,
	WIRE_E_HAS_FDS = 5,
};

struct wire_out { /* a message under construction; heap buffer, grows; first error sticks */
	uint8_t *data;
	size_t size, capacity;
	int error;             /* 0 or negative errno (-EMSGSIZE above WIRE_MAX) */
	int fds[WIRE_MAX_FDS]; /* borrowed until sent */
	unsigned n_fds;
};
void wire_out_init(struct wire_out *out, uint16_t type);
void wire_out_fini(struct wire_out *out); /* does not close fds */
void wire_put_u64(struct wire_out *out, uint16_t key, uint64_t value);
void wire_put_string(struct wire_out *out, uint16_t key, const char *text);
void wire_put_bytes(struct wire_out *out, uint16_t key, const void *data, size_t size);
void wire_put_fd(struct wire_out *out, int fd);

/* A whole message: wire_tell(sock, TYPE, WIRE_U64(KEY, 1), WIRE_STRING(KEY, text), WIRE_FD(fd)). A NULL, a descriptor
 * of -1, a WIRE_NONZERO() of 0 and a WIRE_U64_IF() that is not are left out. */
enum wire_part_kind {
	WIRE_PART_END,
	WIRE_PART_U64,
	WIRE_PART_NONZERO,
	WIRE_PART_STRING,
	WIRE_PART_BYTES,
	WIRE_PART_FD
};
struct wire_part {
	enum wire_part_kind kind;
	uint16_t key;
	uint64_t number;
	const void *data;
	size_t size;
	int fd;
};
#define WIRE_U64(KEY, VALUE)                                           \
	{                                                              \
		.kind = WIRE_PART_U64, .key = (KEY), .number = (VALUE) \
	}
#define WIRE_NONZERO(KEY, VALUE)                                           \
	{                                                                  \
		.kind = WIRE_PART_NONZERO, .key = (KEY), .number = (VALUE) \
	}
#define WIRE_U64_IF(IS, KEY, VALUE)                                             \
	{                                                                       \
		.kind = (IS) ? WIRE_PART_U64 : WIRE_PART_NONZERO, .key = (KEY), \
		.number = (IS) ? (VALUE) : 0                                    \
	}
#define WIRE_STRING(KEY, TEXT)                                         \
	{                                                              \
		.kind = WIRE_PART_STRING, .key = (KEY), .data = (TEXT) \
	}
#define WIRE_BYTES(KEY, DATA, SIZE)                                                   \
	{                                                                             \
		.kind = WIRE_PART_BYTES, .key = (KEY), .data = (DATA), .size = (SIZE) \
	}
#define WIRE_FD(FD)                              \
	{                                        \
		.kind = WIRE_PART_FD, .fd = (FD) \
	}
#define WIRE_NOTHING                  \
	{                             \
		.kind = WIRE_PART_END \
	}
#define WIRE_PARTS(...) ((const struct wire_part[]){__VA_ARGS__, WIRE_NOTHING})
void wire_out_make_of(struct wire_out *out, uint16_t type, const struct wire_part *parts);
#define wire_out_make(out, type, ...) wire_out_make_of(out, type, WIRE_PARTS(__VA_ARGS__))

struct wire_in { /* a received message; owns data and the fds not yet taken */
	uint8_t *data;
	size_t size;
	uint16_t type;
	int fds[WIRE_MAX_FDS];
	unsigned n_fds;
};
void wire_in_init(struct wire_in *in); /* so that fini is always safe */
void wire_in_fini(struct wire_in *in); /* closes fds that nobody took */
/* Checks head and every item of data (copied). 0 or WIRE_E_BAD. The parser the fuzzer drives. */
int wire_in_parse(struct wire_in *in, const void *data, size_t size);
/* 0 or WIRE_E_MISSING (also: of another kind), *ret untouched. Strings/bytes borrow from in. */
int wire_get_u64(const struct wire_in *in, uint16_t key, uint64_t *ret);
int wire_get_string(const struct wire_in *in, uint16_t key, const char **ret);
int wire_get_bytes(const struct wire_in *in, uint16_t key, const void **ret, size_t *ret_size);
/* Walks all items from *at, 0 at the beginning; data borrows from in. false: that was the last one. */
struct wire_item {
	/* Of a kind of enum wire_kind: of the form that wire_in_parse() checked */
	uint16_t key, kind;
	uint32_t size;
	const uint8_t *data;
};
bool wire_next(const struct wire_in *in, size_t *at, struct wire_item *ret);
uint64_t wire_number(const struct wire_item *item); /* of one of kind WIRE_KIND_U64 */
/* Takes descriptor number index (order of wire_put_fd): caller owns it. -1 if not there. */
int wire_take_fd(struct wire_in *in, unsigned index);

/* A socket that is connected to the one at path, and does not block: the caller owns it. Negative errno; -EAGAIN: its backlog is full. */
int wire_connect(const char *path);
/* One datagram out/in. MSG_NOSIGNAL always; flags may add MSG_DONTWAIT.
 * 0; WIRE_E_CLOSED (peer hung up); recv: WIRE_E_BAD, WIRE_E_TRUNCATED_FDS (descriptor limit hit:
 * the message is parsed, the fds that came are closed); negative errno (-EAGAIN, ...). */
int wire_send(int sock, const struct wire_out *out, int flags);
int wire_tell_of(int sock, int flags, uint16_t type, const struct wire_part *parts);
#define wire_tell(sock, type, ...) wire_tell_of(sock, MSG_DONTWAIT, type, WIRE_PARTS(__VA_ARGS__))
int wire_recv(int sock, struct wire_in *ret, int flags);
/* A message that is there and has no descriptors, through a buffer of WIRE_MAX bytes: nothing but its
 * own size is allocated. WIRE_E_HAS_FDS: it has some, and stays in the socket's queue. */
int wire_recv_bare(int sock, struct wire_in *ret, uint8_t *buffer);
