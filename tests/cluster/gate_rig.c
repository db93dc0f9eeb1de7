/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/cluster/gate_rig.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/wire.h"
#include "tests/patience.h"

#define KEY "this is a key of fifty letters for tests, no other"

static void receive(int sock, struct wire_in *ret)
{
	struct pollfd pollfd = {sock, POLLIN, 0};

	ck_assert_int_eq(poll(&pollfd, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(wire_recv(sock, ret, 0), 0);
}

static pid_t run_gate(int sock)
{
	char path[4096];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/access-gate", getenv("ACCESS_LIBEXEC"));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	if (sock == GATE_CONTROL_FD)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, GATE_CONTROL_FD);
	execl(path, "access-gate", (char *)NULL);
	_exit(127);
}

static const char *or_else(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static void send_start(int sock, const struct rig_start *start)
{
	const char *key = or_else(start->key, KEY);
	uint64_t incarnation = start->incarnation;
	struct wire_out out;

	if (!incarnation)
		ck_assert_int_eq(base_random(&incarnation, sizeof(incarnation)), 0);
	wire_out_init(&out, GATE_START);
	wire_put_string(&out, GATE_KEY_NODE, or_else(start->node, "n"));
	wire_put_string(&out, GATE_KEY_CLUSTER, or_else(start->cluster, "c"));
	wire_put_string(&out, GATE_KEY_LISTEN, or_else(start->listen, "127.0.0.1:0"));
	wire_put_string(&out, GATE_KEY_PEERS, or_else(start->peers, "static:127.0.0.1:1"));
	wire_put_u64(&out, GATE_KEY_INCARNATION, incarnation);
	wire_put_u64(&out, GATE_KEY_SEALED, !start->is_plain);
	if (start->files[0])
		wire_put_u64(&out, GATE_KEY_CERTIFICATES, 1);
	for (int i = 0; i < 3 && start->files[i]; i++) {
		wire_put_fd(&out, open(start->files[i], O_RDONLY | O_CLOEXEC));
		ck_assert_int_ge(out.fds[i], 0);
	}
	if (!start->files[0])
		wire_put_fd(&out, base_memfd_of("key", key, strlen(key)));
	if (start->login) {
		wire_put_u64(&out, GATE_KEY_LOGIN, 1);
		wire_put_fd(&out, base_memfd_of("login", start->login, strlen(start->login)));
	}
	ck_assert_int_eq(wire_send(sock, &out, 0), 0);
	for (unsigned i = 0; i < out.n_fds; i++)
		close(out.fds[i]);
	wire_out_fini(&out);
}

static void copy_text(const struct wire_in *in, uint16_t key, char *ret, size_t size)
{
	const char *text;

	ck_assert_int_eq(wire_get_string(in, key, &text), 0);
	ck_assert_uint_lt(strlen(text), size);
	snprintf(ret, size, "%s", text);
}

struct rig_gate rig_gate_start(const struct rig_start *start)
{
	struct rig_gate gate = {.sock = -1};
	const char *text;
	struct wire_in in;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	gate.pid = run_gate(pair[1]);
	close(pair[1]);
	gate.sock = pair[0];
	send_start(gate.sock, start);
	receive(gate.sock, &in);
	while (in.type == GATE_TROUBLE) {
		if (!*gate.trouble)
			copy_text(&in, GATE_KEY_TEXT, gate.trouble, sizeof(gate.trouble));
		wire_in_fini(&in);
		receive(gate.sock, &in);
	}
	if (in.type == GATE_FAILED) {
		ck_assert_int_eq(wire_get_string(&in, GATE_KEY_TEXT, &text), 0);
		snprintf(gate.failed, sizeof(gate.failed), "%s", text);
	} else {
		ck_assert_uint_eq(in.type, GATE_READY);
		ck_assert_int_eq(wire_get_string(&in, GATE_KEY_ADDRESS, &text), 0);
		snprintf(gate.address, sizeof(gate.address), "%s", text);
	}
	wire_in_fini(&in);
	return gate;
}

void rig_gate_stop(struct rig_gate *gate)
{
	int status;

	close(gate->sock);
	ck_assert_int_eq(waitpid(gate->pid, &status, 0), gate->pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), *gate->failed ? 1 : 0);
}

int rig_gate_domain(const struct rig_gate *gate, uint64_t number, uint64_t weight)
{
	struct wire_out out;
	char name[32];
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	snprintf(name, sizeof(name), "user:%u:%u", (unsigned)getuid(), (unsigned)getgid());
	wire_out_init(&out, GATE_DOMAIN);
	wire_put_u64(&out, GATE_KEY_DOMAIN, number);
	wire_put_string(&out, GATE_KEY_NAME, name);
	wire_put_u64(&out, GATE_KEY_WEIGHT, weight);
	wire_put_fd(&out, pair[1]);
	ck_assert_int_eq(wire_send(gate->sock, &out, 0), 0);
	wire_out_fini(&out);
	close(pair[1]);
	return pair[0];
}

void rig_gate_domain_end(const struct rig_gate *gate, uint64_t number)
{
	struct wire_out out;

	wire_out_init(&out, GATE_DOMAIN_END);
	wire_put_u64(&out, GATE_KEY_DOMAIN, number);
	ck_assert_int_eq(wire_send(gate->sock, &out, 0), 0);
	wire_out_fini(&out);
}

struct rig_channel rig_gate_channel(int carrier)
{
	struct rig_channel channel;
	struct wire_in in;
	const void *keys;
	size_t size;

	receive(carrier, &in);
	ck_assert_uint_eq(in.type, CARRIER_CHANNEL);
	ck_assert_int_eq(wire_get_u64(&in, CARRIER_KEY_ID, &channel.id), 0);
	ck_assert_int_eq(wire_get_u64(&in, CARRIER_KEY_INCARNATION, &channel.incarnation), 0);
	ck_assert_int_eq(wire_get_u64(&in, CARRIER_KEY_WEIGHT, &channel.weight), 0);
	ck_assert_int_eq(wire_get_u64(&in, CARRIER_KEY_SEALED, &channel.is_sealed), 0);
	ck_assert_int_eq(wire_get_bytes(&in, CARRIER_KEY_KEYS, &keys, &size), 0);
	ck_assert_uint_eq(size, sizeof(channel.keys));
	memcpy(&channel.keys, keys, size);
	channel.fd = wire_take_fd(&in, 0);
	ck_assert_int_ge(channel.fd, 0);
	ck_assert_int_eq(fcntl(channel.fd, F_SETFL, 0), 0);
	wire_in_fini(&in);
	return channel;
}

void rig_gate_ended(int carrier, const struct rig_channel *channel)
{
	struct wire_out out;

	wire_out_init(&out, CARRIER_ENDED);
	wire_put_u64(&out, CARRIER_KEY_ID, channel->id);
	wire_put_u64(&out, CARRIER_KEY_INCARNATION, channel->incarnation);
	ck_assert_int_eq(wire_send(carrier, &out, 0), 0);
	wire_out_fini(&out);
}

struct rig_member rig_gate_member(const struct rig_gate *gate, enum gate_state state,
				  const char *node)
{
	for (;;) {
		struct rig_member member = {.state = GATE_MEMBER_KNOWN};
		struct wire_in in;

		receive(gate->sock, &in);
		if (in.type != GATE_MEMBER) {
			wire_in_fini(&in);
			continue;
		}
		ck_assert_int_eq(wire_get_u64(&in, GATE_KEY_ID, &member.id), 0);
		ck_assert_int_eq(wire_get_u64(&in, GATE_KEY_INCARNATION, &member.incarnation), 0);
		ck_assert_int_eq(wire_get_u64(&in, GATE_KEY_STATE, &member.state), 0);
		copy_text(&in, GATE_KEY_NODE, member.node, sizeof(member.node));
		copy_text(&in, GATE_KEY_ADDRESS, member.address, sizeof(member.address));
		copy_text(&in, GATE_KEY_TEXT, member.text, sizeof(member.text));
		wire_in_fini(&in);
		if (member.state == (uint64_t)state && (!node || strcmp(node, member.node) == 0))
			return member;
	}
}

void rig_gate_trouble(const struct rig_gate *gate, char ret[RIG_TEXT])
{
	struct wire_in in;

	receive(gate->sock, &in);
	while (in.type != GATE_TROUBLE) {
		wire_in_fini(&in);
		receive(gate->sock, &in);
	}
	copy_text(&in, GATE_KEY_TEXT, ret, RIG_TEXT);
	wire_in_fini(&in);
}

void rig_gate_gone(const struct rig_gate *gate, uint64_t id)
{
	uint64_t gone = 0;

	while (gone != id) {
		struct wire_in in;

		receive(gate->sock, &in);
		if (in.type == GATE_MEMBER_GONE)
			ck_assert_int_eq(wire_get_u64(&in, GATE_KEY_ID, &gone), 0);
		wire_in_fini(&in);
	}
}

bool rig_is_silent(int fd)
{
	struct pollfd pollfd = {fd, POLLIN, 0};

	return poll(&pollfd, 1, 0) == 0;
}

bool rig_user_has_name(void)
{
	return getpwuid(getuid()) != NULL;
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	char host[64];
	unsigned port;

	ck_assert_int_eq(sscanf(text, "%63[^:]:%u", host, &port), 2);
	ck_assert_int_eq(inet_pton(AF_INET, host, &address.sin_addr), 1);
	address.sin_port = htons((uint16_t)port);
	return address;
}

/* Its socket stays open as long as this process, and never listens: the kernel gives the port to nobody by itself, and who
 * asks for it with SO_REUSEADDR, as servers do, has it. */
void rig_free_address(char ret[64])
{
	struct sockaddr_in address = address_of("127.0.0.1:0");
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	snprintf(ret, 64, "127.0.0.1:%u", ntohs(address.sin_port));
}

int rig_try_connect(const char *text)
{
	const struct sockaddr_in address = address_of(text);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

int rig_connect(const char *text)
{
	int fd = rig_try_connect(text);

	ck_assert_int_ge(fd, 0);
	return fd;
}

unsigned rig_gate_next(const struct rig_gate *gate)
{
	struct wire_in in;
	unsigned type;

	receive(gate->sock, &in);
	type = in.type;
	wire_in_fini(&in);
	return type;
}
