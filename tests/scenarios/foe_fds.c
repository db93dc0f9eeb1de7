/* SPDX-License-Identifier: Apache-2.0 */

/* Descriptors of everything that a user can open, where accessd asks for a memory and where it asks for none. */

#include "tests/scenarios/foe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "plan/listing.h"
#include "plan/plan.h"
#include "shmring/catalog.h"
#include "shmring/plan_log.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- what there is to open ---- */

static int pipe_end(struct foe *foe)
{
	int fds[2], end = (int)foe_below(foe, 2);

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	close(fds[!end]);
	return fds[end];
}

/* One end of a TCP connection with bytes that nobody reads: whose close() is the last waits for them, but not who ends. */
static int lingering(struct foe *foe)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger linger = {1, 1 + (int)foe_below(foe, 60)};
	socklen_t size = sizeof(address);
	static const char bytes[65536];
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), sock;

	bind(server, (struct sockaddr *)&address, size);
	listen(server, 1);
	getsockname(server, (struct sockaddr *)&address, &size);
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connect(sock, (struct sockaddr *)&address, size);
	foe_keep(foe, accept4(server, NULL, NULL, SOCK_CLOEXEC));
	while (send(sock, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	setsockopt(sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	base_close(&server);
	foe->is_over = true;
	return sock;
}

static int memory(struct foe *foe)
{
	static const uint64_t sizes[] = {
	    0, 1, 64, 4096, UINT64_C(40) << 20, UINT64_C(1) << 40, INT64_MAX};
	bool is_huge = foe_below(foe, 4) == 0;
	int fd = memfd_create("foe", MFD_CLOEXEC | MFD_ALLOW_SEALING | (is_huge ? MFD_HUGETLB : 0));

	if (fd < 0)
		return -1;
	if (ftruncate(
		fd, (off_t)(is_huge ? 1 << 21 : sizes[foe_below(foe, BASE_ARRAY_LEN(sizes))])) == 0)
		fcntl(fd, F_ADD_SEALS,
		      foe_below(foe, 2) ? SEALS | (foe_below(foe, 2) ? F_SEAL_WRITE : 0) : 0);
	return fd;
}

/* A socket with a descriptor in its queue, of which accessd's end is the last. */
static int loaded_socket(struct foe *foe)
{
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct wire_out out;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	wire_out_init(&out, 1);
	wire_put_fd(&out, foe_below(foe, 2) ? null : pair[1]);
	foe_send(pair[0], &out);
	base_close(&null);
	base_close(&pair[0]);
	return pair[1];
}

static int file(struct foe *foe)
{
	static const char *const names[] = {"/dev/zero", "/dev/null",      "/dev/full",
					    "/dev/ptmx", "/dev/urandom",   "/proc/self/mem",
					    "/",         "/proc/self/fd",  "/proc/self/maps",
					    ".",         "/proc/self/stat"};
	const char *name = names[foe_below(foe, BASE_ARRAY_LEN(names))];

	return open(name, O_CLOEXEC | O_NOCTTY | (foe_below(foe, 4) ? O_RDONLY : O_PATH));
}

/* A file on a disk, or a FIFO, which a read() of would wait at. */
static int own_file(struct foe *foe)
{
	const char *path = foe_path(foe, ".file");
	bool is_fifo = foe_below(foe, 2);
	int fd;

	if (is_fifo)
		mkfifo(path, 0600);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && !is_fifo && ftruncate(fd, (off_t)foe_below(foe, 1 << 20)) < 0)
		base_close(&fd);
	unlink(path);
	return fd;
}

static int some_fd(struct foe *foe)
{
	switch (foe_below(foe, 10)) {
	case 0:
		return pipe_end(foe);
	case 1:
		return lingering(foe);
	case 2:
		return loaded_socket(foe);
	case 3:
		return file(foe);
	case 4:
		return own_file(foe);
	case 5:
		return eventfd(0, EFD_CLOEXEC);
	case 6:
		return epoll_create1(EPOLL_CLOEXEC);
	case 7:
		return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	default:
		return memory(foe);
	}
}

/* n of them are borrowed by the message; foe_end() closes them, so that accessd's is often the last. */
static void put_some_fds(struct foe *foe, struct wire_out *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int fd = foe_keep(foe, some_fd(foe));

		if (fd >= 0)
			wire_put_fd(out, fd);
	}
}

/* ---- where none is asked for ---- */

void foe_uninvited(struct foe *foe)
{
	static const uint16_t types[] = {PROTO_HELLO, PROTO_STATUS, PROTO_OPEN, PROTO_KICK,
					 PROTO_PLAN};
	int sock = foe_below(foe, 2) ? foe_greet(foe) : foe_dial(foe);
	struct wire_out out;

	if (sock < 0)
		return;
	wire_out_init(&out, types[foe_below(foe, BASE_ARRAY_LEN(types))]);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	put_some_fds(foe, &out, 1 + (unsigned)foe_below(foe, WIRE_MAX_FDS));
	foe_send(sock, &out);
}

/* accessd's is the last one, and it is open at the other end. */
void foe_lingers(struct foe *foe)
{
	int sock = foe_greet(foe), fd = lingering(foe);
	uint8_t version[32] = {0};
	struct wire_out out;

	if (sock < 0 || fd < 0)
		return;
	foe_begin_open(foe, &out, PROTO_OPEN);
	wire_put_bytes(&out, PROTO_KEY_PART, version, sizeof(version));
	wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_CAROUSEL);
	wire_put_fd(&out, fd);
	foe_end_open(foe, &out, foe->data);
	if (wire_send(sock, &out, MSG_DONTWAIT) == 0)
		base_close(&fd);
	wire_out_fini(&out);
	foe_rest(foe, 4000);
}

/* As many as the kernel lets through in one message. */
static void send_many(int sock, const void *bytes, size_t size, const int *fds, unsigned n)
{
	union {
		char bytes[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, size};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CMSG_SPACE(n * sizeof(int))};

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
	sendmsg(sock, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void foe_many_fds(struct foe *foe)
{
	int sock = foe_below(foe, 2) ? foe_greet(foe) : foe_dial(foe), fds[253], fd;
	static const uint8_t head[8] = {PROTO_OPEN};

	fd = foe_keep(foe,
		      foe_below(foe, 2) ? some_fd(foe) : open("/dev/null", O_RDONLY | O_CLOEXEC));
	if (sock < 0 || fd < 0)
		return;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fds); i++)
		fds[i] = fd;
	for (unsigned n = 1 + (unsigned)foe_below(foe, 20); n > 0; n--)
		send_many(sock, head, sizeof(head), fds, 253);
}

/* Messages that are still in the queue when nobody is there any more. */
void foe_unread_fds(struct foe *foe)
{
	int sock = foe_dial(foe), fds[8];
	static const uint8_t head[8] = {PROTO_STATUS};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(fds); i++)
		fds[i] = foe_keep(foe, foe_below(foe, 2) ? lingering(foe) : some_fd(foe));
	for (unsigned i = 0; i < BASE_ARRAY_LEN(fds); i++)
		if (fds[i] < 0)
			return;
	if (sock < 0)
		return;
	raw_say_hello(sock, "foe");
	for (unsigned n = (unsigned)foe_below(foe, 200); n > 0; n--)
		send_many(sock, head, sizeof(head), fds, BASE_ARRAY_LEN(fds));
	shutdown(sock, SHUT_RDWR);
}

/* ---- parts ---- */

void foe_odd_part(struct foe *foe)
{
	int sock = foe_greet(foe);
	uint8_t version[64] = {0};
	struct wire_out out;
	struct wire_in in;

	if (sock < 0)
		return;
	foe_begin_open(foe, &out, PROTO_OPEN);
	if (foe_below(foe, 4))
		wire_put_bytes(&out, PROTO_KEY_PART, version,
			       foe_below(foe, 4) ? 32 : foe_below(foe, 64));
	wire_put_u64(&out, PROTO_KEY_LOG, foe_below(foe, 3));
	wire_put_u64(&out, PROTO_KEY_RANKS, 1 + foe_below(foe, 3));
	put_some_fds(foe, &out, 1 + (unsigned)foe_below(foe, 2));
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

/* The dataset's version, as DESCRIBE tells it. */
static bool ask_version(struct foe *foe, int sock, uint8_t ret[32])
{
	struct catalog catalog;
	struct wire_out out;
	struct wire_in in;
	bool has = false;

	foe_begin_open(foe, &out, PROTO_DESCRIBE);
	wire_put_string(&out, PROTO_KEY_DATASET, foe->data);
	foe_send(sock, &out);
	if (foe_hear(foe, sock, &in) && in.type == PROTO_DESCRIBED && in.n_fds == 1 &&
	    catalog_attach(in.fds[0], &catalog) == 0) {
		memcpy(ret, catalog.head.version, 32);
		catalog_detach(&catalog);
		has = true;
	}
	wire_in_fini(&in);
	return has;
}

/* Of the right version, and of any size and bits; it changes while it is looked at, if accessd lets it. */
void foe_right_part(struct foe *foe)
{
	int sock = foe_greet(foe), fd;
	uint8_t version[32], bits[4096];
	struct wire_out out;
	struct wire_in in;

	if (sock < 0 || !ask_version(foe, sock, version))
		return;
	fd = foe_keep(foe, memfd_create("part", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	raw_nonsense(0, &foe->noise, bits, sizeof(bits));
	if (fd < 0 || pwrite(fd, bits, foe_below(foe, 2) ? 8 : foe_below(foe, sizeof(bits)), 0) < 0)
		return;
	if (foe_below(foe, 4))
		fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_WRITE);
	foe_begin_open(foe, &out, PROTO_OPEN);
	wire_put_bytes(&out, PROTO_KEY_PART, version, sizeof(version));
	wire_put_fd(&out, fd);
	wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_CAROUSEL);
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

/* ---- logs and lists ---- */

/* A whole log of as many records as fit, each of a few blocks, or of many. */
static int dense_log(struct foe *foe)
{
	static uint32_t blocks[65536];
	uint32_t n =
	    foe_below(foe, 2) ? 1 + (uint32_t)foe_below(foe, 65536) : (uint32_t)foe_below(foe, 3);
	struct entry entry = {.blocks = blocks, .n_blocks = n, .count = 1 + n};
	uint64_t bytes = UINT64_C(1) << (16 + foe_below(foe, 10)), record = 64 + 8 * (uint64_t)n;
	static const int64_t ids[8];
	struct plan_log plan_log;
	int fd;

	if (record > PLAN_LOG_MAX_RECORD ||
	    plan_log_new(bytes, 1 + foe_below(foe, 200), foe->nonce, &plan_log, &fd))
		return -1;
	plan_log_reserve(&plan_log, fd, UINT64_MAX);
	if (n == 0)
		entry.ids = ids;
	for (uint64_t at = 0; record < plan_log.room / 2 && at + record < plan_log.room;
	     at += record) {
		entry.place = at / record;
		plan_log_append(&plan_log, &entry);
	}
	plan_log_publish(&plan_log);
	plan_log_detach(&plan_log);
	return fd;
}

/* Nothing but a head, which says what it likes of a memory that takes no room. */
static int sparse_log(struct foe *foe)
{
	struct plan_log_head head = {.magic = PLAN_LOG_MAGIC, .n_samples = foe_number(foe)};
	int fd = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	head.room = UINT64_C(40) << 20;
	head.bytes = PLAN_LOG_HEAD + head.room;
	if (foe_below(foe, 3) == 0)
		head.room = foe_number(foe);
	head.first_epoch = foe_number(foe);
	atomic_init(&head.d_first, foe_below(foe, 2) ? 0 : foe_number(foe));
	atomic_init(&head.d_end, foe_below(foe, 2) ? head.room : foe_number(foe));
	if (fd < 0 || pwrite(fd, &head, sizeof(head), 0) < 0 ||
	    ftruncate(fd, PLAN_LOG_HEAD + (INT64_C(40) << 20)) < 0)
		base_close(&fd);
	else
		fcntl(fd, F_ADD_SEALS, SEALS | (foe_below(foe, 4) ? F_SEAL_FUTURE_WRITE : 0));
	return fd;
}

void foe_log(struct foe *foe)
{
	int sock = foe_greet(foe), fd = foe_below(foe, 2) ? dense_log(foe) : sparse_log(foe);
	uint64_t ranks = foe_below(foe, 2) ? 2 : 2 + foe_below(foe, 1024);
	struct wire_out out;
	struct wire_in in;

	if (foe_keep(foe, fd) < 0 || sock < 0)
		return;
	foe_begin_open(foe, &out, PROTO_OPEN);
	wire_put_u64(&out, PROTO_KEY_RANKS, ranks);
	wire_put_u64(&out, PROTO_KEY_RANK, foe_below(foe, ranks));
	wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_CAROUSEL);
	wire_put_u64(&out, PROTO_KEY_LOG, 0);
	wire_put_fd(&out, fd);
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
}

struct list_head {
	char magic[8];
	uint32_t format, head;
	uint64_t places;
	uint32_t keys, zero[9];
};
_Static_assert(sizeof(struct list_head) == LISTING_HEAD, "as plan/listing.h has it");

static int odd_list(struct foe *foe)
{
	struct list_head head = {.magic = "OA!LIST1", .format = 1, .head = LISTING_HEAD, .keys = 1};
	uint64_t entries[512], bytes;
	int fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	head.places =
	    foe_below(foe, 4) ? 1 + foe_below(foe, 400) : foe_below(foe, LISTING_MAX_PLACES);
	if (foe_below(foe, 4) == 0)
		head.keys = (uint32_t)foe_number(foe);
	bytes = LISTING_HEAD + 8 * head.places + 16 * (uint64_t)head.keys;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(entries); i++)
		entries[i] = foe_below(foe, 3) ? foe_below(foe, 48) : foe_number(foe);
	if (fd < 0 || pwrite(fd, &head, sizeof(head), 0) < 0 ||
	    pwrite(fd, entries, sizeof(entries), LISTING_HEAD) < 0 ||
	    ftruncate(fd, (off_t)bytes) < 0)
		base_close(&fd);
	else if (foe_below(foe, 8))
		fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_WRITE);
	return fd;
}

void foe_list(struct foe *foe)
{
	int sock = foe_greet(foe);
	struct wire_out out;
	struct wire_in in;

	if (sock < 0)
		return;
	foe_begin_open(foe, &out, PROTO_OPEN);
	wire_put_u64(&out, PROTO_KEY_ORDER, PLAN_LIST);
	foe_end_open(foe, &out, foe->data);
	foe_send(sock, &out);
	foe_hear(foe, sock, &in);
	wire_in_fini(&in);
	for (uint64_t epoch = 0, n = foe_below(foe, 6); epoch < n; epoch++) {
		int fd = foe_keep(foe, foe_below(foe, 6) ? odd_list(foe) : some_fd(foe));

		wire_out_init(&out, PROTO_PLAN);
		wire_put_u64(&out, PROTO_KEY_EPOCH, foe_below(foe, 4) ? epoch : foe_number(foe));
		if (fd >= 0)
			wire_put_fd(&out, fd);
		foe_send(sock, &out);
	}
	foe_rest(foe, 200);
}
