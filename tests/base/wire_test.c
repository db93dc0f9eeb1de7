/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "base/wire.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void make_pair(int sock[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
}

static unsigned count_fds(void)
{
	unsigned open_fds = 0;

	for (int fd = 0; fd < 256; fd++)
		open_fds += fcntl(fd, F_GETFD) >= 0;
	return open_fds;
}

static void put_some(struct wire_out *out)
{
	wire_out_init(out, 7);
	wire_put_u64(out, 1, UINT64_MAX);
	wire_put_string(out, 2, "a name");
	wire_put_bytes(out, 3, "\0\1\2", 3);
	wire_put_string(out, 4, "");
	wire_put_bytes(out, 5, NULL, 0);
	wire_put_u64(out, 1, 5); /* twice: the first one counts */
}

START_TEST(messages_come_back)
{
	struct wire_out out;
	struct wire_in in;
	const void *bytes;
	const char *text;
	uint64_t number;
	size_t size;
	int sock[2];

	make_pair(sock);
	put_some(&out);
	ck_assert_int_eq(wire_send(sock[0], &out, 0), 0);
	wire_out_fini(&out);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), 0);
	ck_assert_uint_eq(in.type, 7);
	ck_assert_int_eq(wire_get_u64(&in, 1, &number), 0);
	ck_assert_uint_eq(number, UINT64_MAX);
	ck_assert_int_eq(wire_get_string(&in, 2, &text), 0);
	ck_assert_str_eq(text, "a name");
	ck_assert_int_eq(wire_get_bytes(&in, 3, &bytes, &size), 0);
	ck_assert_uint_eq(size, 3);
	ck_assert_mem_eq(bytes, "\0\1\2", 3);
	ck_assert_uint_eq((uintptr_t)bytes % 8, 0);
	ck_assert_int_eq(wire_get_string(&in, 4, &text), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(wire_get_bytes(&in, 5, &bytes, &size), 0);
	ck_assert_uint_eq(size, 0);
	wire_in_fini(&in);
	close(sock[0]);
	close(sock[1]);
}
END_TEST

START_TEST(what_is_not_there_is_missing)
{
	const char *text = "kept";
	const void *bytes = NULL;
	uint64_t number = 77;
	struct wire_out out;
	struct wire_in in;
	size_t size = 78;

	put_some(&out);
	wire_in_init(&in);
	ck_assert_int_eq(wire_in_parse(&in, out.data, out.size), 0);
	ck_assert_int_eq(wire_get_u64(&in, 9, &number), WIRE_E_MISSING);
	ck_assert_int_eq(wire_get_u64(&in, 2, &number), WIRE_E_MISSING); /* of another kind */
	ck_assert_int_eq(wire_get_string(&in, 3, &text), WIRE_E_MISSING);
	ck_assert_int_eq(wire_get_bytes(&in, 1, &bytes, &size), WIRE_E_MISSING);
	ck_assert_uint_eq(number, 77);
	ck_assert_str_eq(text, "kept");
	ck_assert_ptr_null(bytes);
	ck_assert_uint_eq(size, 78);
	ck_assert_int_eq(wire_take_fd(&in, 0), -1);
	wire_in_fini(&in);
	ck_assert_int_eq(wire_get_u64(&in, 1, &number), WIRE_E_MISSING);
	wire_out_fini(&out);
}
END_TEST

/* The bytes are what they are for ever: minor versions mix. */
START_TEST(bytes_are_frozen)
{
	static const uint8_t expected[] = {
	    'O', 'A', 'W', '1', 0x34, 0x12, 0, 0, 56,  0,   0, 0, 0, 0, 0, 0, /* head */
	    1,   0,   1,   0,   8,    0,    0, 0, 2,   1,   0, 0, 0, 0, 0, 0, /* number 258 */
	    2,   0,   2,   0,   3,    0,    0, 0, 'h', 'i', 0, 0, 0, 0, 0, 0, /* text */
	    3,   0,   3,   0,   0,    0,    0, 0,                             /* no bytes */
	};
	struct wire_out out;

	wire_out_init(&out, 0x1234);
	wire_put_u64(&out, 1, 258);
	wire_put_string(&out, 2, "hi");
	wire_put_bytes(&out, 3, "", 0);
	ck_assert_uint_eq(out.size, sizeof(expected));
	ck_assert_mem_eq(out.data, expected, sizeof(expected));
	wire_out_fini(&out);
}
END_TEST

START_TEST(the_first_error_sticks)
{
	struct wire_out out;
	uint8_t *large = calloc(1, WIRE_MAX);
	int sock[2];

	make_pair(sock);
	wire_out_init(&out, 1);
	wire_put_bytes(&out, 1, large, WIRE_MAX - 24);
	ck_assert_int_eq(out.error, 0);
	ck_assert_uint_eq(out.size, WIRE_MAX);
	ck_assert_int_eq(wire_send(sock[0], &out, MSG_DONTWAIT), 0); /* the largest one fits */
	wire_put_u64(&out, 2, 0);
	ck_assert_int_eq(out.error, -EMSGSIZE);
	wire_put_fd(&out, -1);
	ck_assert_int_eq(wire_send(sock[0], &out, 0), -EMSGSIZE);
	wire_out_fini(&out);
	wire_out_init(&out, 1);
	wire_put_bytes(&out, 1, large, SIZE_MAX);
	ck_assert_int_eq(out.error, -EMSGSIZE);
	wire_out_fini(&out);
	wire_out_init(&out, 1);
	wire_put_fd(&out, -1);
	wire_put_u64(&out, 1, 1);
	ck_assert_int_eq(wire_send(sock[0], &out, 0), -EBADF);
	wire_out_fini(&out);
	free(large);
}
END_TEST

/* One change each to the 56 bytes of the frozen message above; all must be refused. */
static const struct {
	const char *what;
	size_t at;
	uint8_t byte;
	size_t size;
} hostile[] = {
    {"empty", 0, 'O', 0},
    {"shorter than a head", 0, 'O', 15},
    {"magic", 0, 'X', 56},
    {"size too small", 8, 48, 56},
    {"size too large", 8, 64, 56},
    {"size far too large", 11, 0xff, 56},
    {"cut in a head of an item", 8, 52, 52},
    {"cut in an item", 8, 28, 28},
    {"number of 7 bytes", 20, 7, 56},
    {"number of 16 bytes", 20, 16, 56},
    {"length wraps 32 bits", 23, 0xff, 56},
    {"text without an end", 42, 'x', 56},
    {"text with a NUL inside", 40, 0, 56},
    {"text of no bytes", 36, 0, 56},
    {"padding in use", 47, 1, 56},
    {"last item too long", 52, 1, 56},
    {"last item far too long", 55, 0x80, 56},
};

START_TEST(hostile_messages_are_refused)
{
	struct wire_out out;
	struct wire_in in;

	wire_out_init(&out, 0x1234);
	wire_put_u64(&out, 1, 258);
	wire_put_string(&out, 2, "hi");
	wire_put_bytes(&out, 3, "", 0);
	wire_in_init(&in);
	ck_assert_int_eq(wire_in_parse(&in, out.data, out.size), 0);
	wire_in_fini(&in);
	out.data[hostile[_i].at] = hostile[_i].byte;
	ck_assert_msg(wire_in_parse(&in, out.data, hostile[_i].size) == WIRE_E_BAD, "%s",
		      hostile[_i].what);
	ck_assert_ptr_null(in.data);
	wire_in_fini(&in);
	wire_out_fini(&out);
}
END_TEST

START_TEST(unknown_kinds_are_carried)
{
	struct wire_out out;
	struct wire_in in;
	uint64_t number;

	wire_out_init(&out, 1);
	wire_put_bytes(&out, 1, "future", 6);
	wire_put_u64(&out, 2, 2);
	out.data[16 + 2] = 99; /* the kind of the first item */
	wire_in_init(&in);
	ck_assert_int_eq(wire_in_parse(&in, out.data, out.size), 0);
	ck_assert_int_eq(wire_get_u64(&in, 1, &number), WIRE_E_MISSING);
	ck_assert_int_eq(wire_get_u64(&in, 2, &number), 0);
	ck_assert_uint_eq(number, 2);
	wire_in_fini(&in);
	wire_out_fini(&out);
}
END_TEST

static void send_pipes(int sock, unsigned n)
{
	int ends[2];
	struct wire_out out;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	wire_out_init(&out, 3);
	wire_put_u64(&out, 1, n);
	for (unsigned i = 0; i < n; i++)
		wire_put_fd(&out, ends[i % 2]);
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	wire_out_fini(&out);
	close(ends[0]);
	close(ends[1]);
}

START_TEST(descriptors_are_owned_by_the_message)
{
	unsigned before = count_fds();
	struct wire_in in;
	int sock[2], end;

	make_pair(sock);
	send_pipes(sock[0], WIRE_MAX_FDS);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), 0);
	ck_assert_uint_eq(in.n_fds, WIRE_MAX_FDS);
	ck_assert_int_eq(wire_take_fd(&in, WIRE_MAX_FDS), -1);
	end = wire_take_fd(&in, 1);
	ck_assert_int_eq(fcntl(end, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(wire_take_fd(&in, 1), -1);
	wire_in_fini(&in);
	ck_assert_int_eq(write(end, "", 0), 0);
	close(end);
	close(sock[0]);
	close(sock[1]);
	ck_assert_uint_eq(count_fds(), before);
}
END_TEST

/* Raw: more descriptors than a message may have, or none of our bytes at all. */
static void send_raw(int sock, const void *data, size_t size, unsigned n_fds)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	_Alignas(struct cmsghdr) char space[CMSG_SPACE(64 * sizeof(int))] = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (n_fds > 0) {
		struct cmsghdr *head = (struct cmsghdr *)space;
		int fds[64];

		for (unsigned i = 0; i < n_fds; i++)
			fds[i] = sock;
		message.msg_control = space;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		*head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(head), fds, n_fds * sizeof(int));
	}
	ck_assert_int_eq(sendmsg(sock, &message, 0), (ssize_t)size);
}

START_TEST(surplus_descriptors_are_closed)
{
	unsigned before = count_fds();
	struct wire_out out;
	struct wire_in in;
	uint64_t number;
	int sock[2];

	make_pair(sock);
	wire_out_init(&out, 3);
	wire_put_u64(&out, 1, 9);
	send_raw(sock[0], out.data, out.size, 20);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_TRUNCATED_FDS);
	ck_assert_uint_eq(in.n_fds, 0);
	ck_assert_int_eq(wire_get_u64(&in, 1, &number), 0); /* the message itself is whole */
	ck_assert_uint_eq(number, 9);
	wire_in_fini(&in);
	send_raw(sock[0], "not a message", 13, 5);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_BAD);
	wire_in_fini(&in);
	wire_out_fini(&out);
	close(sock[0]);
	close(sock[1]);
	ck_assert_uint_eq(count_fds(), before);
}
END_TEST

START_TEST(a_full_descriptor_table_is_told)
{
	struct rlimit limit, before;
	struct wire_in in;
	unsigned open_fds;
	int sock[2];

	make_pair(sock);
	send_pipes(sock[0], 4);
	open_fds = count_fds();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)BASE_MAX(sock[0], sock[1]) + 3; /* room for two of four */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_TRUNCATED_FDS);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(in.n_fds, 0);
	ck_assert_uint_eq(in.type, 3);
	ck_assert_uint_eq(count_fds(), open_fds);
	wire_in_fini(&in);
}
END_TEST

START_TEST(strange_datagrams_are_bad_and_hangups_closed)
{
	uint8_t *large = calloc(1, WIRE_MAX + 8);
	struct wire_out out;
	struct wire_in in;
	int sock[2];

	make_pair(sock);
	ck_assert_int_eq(wire_recv(sock[1], &in, MSG_DONTWAIT), -EAGAIN);
	send_raw(sock[0], "", 0, 0);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_BAD);
	send_raw(sock[0], large, WIRE_MAX + 8, 0);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_BAD);
	close(sock[0]);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), WIRE_E_CLOSED);
	wire_out_init(&out, 1);
	ck_assert_int_eq(wire_send(sock[1], &out, 0), WIRE_E_CLOSED);
	wire_out_fini(&out);
	close(sock[1]);
	ck_assert_int_eq(wire_recv(sock[1], &in, 0), -EBADF);
	free(large);
}
END_TEST

START_TEST(a_full_socket_says_so)
{
	struct wire_out out;
	struct wire_in in;
	unsigned sent = 0, got = 0;
	int sock[2], r;

	make_pair(sock);
	put_some(&out);
	while ((r = wire_send(sock[0], &out, MSG_DONTWAIT)) == 0)
		sent++;
	ck_assert_int_eq(r, -EAGAIN);
	while (wire_recv(sock[1], &in, MSG_DONTWAIT) == 0) {
		got++;
		wire_in_fini(&in);
	}
	ck_assert_uint_gt(sent, 0);
	ck_assert_uint_eq(sent, got);
	wire_out_fini(&out);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, messages_come_back);
	tcase_add_test(tests, what_is_not_there_is_missing);
	tcase_add_test(tests, bytes_are_frozen);
	tcase_add_test(tests, the_first_error_sticks);
	tcase_add_loop_test(tests, hostile_messages_are_refused, 0, BASE_ARRAY_LEN(hostile));
	tcase_add_test(tests, unknown_kinds_are_carried);
	tcase_add_test(tests, descriptors_are_owned_by_the_message);
	tcase_add_test(tests, surplus_descriptors_are_closed);
	tcase_add_test(tests, a_full_descriptor_table_is_told);
	tcase_add_test(tests, strange_datagrams_are_bad_and_hangups_closed);
	tcase_add_test(tests, a_full_socket_says_so);
}

int main(void)
{
	return suite_run("wire", add);
}
