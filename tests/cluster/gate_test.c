/* SPDX-License-Identifier: Apache-2.0 */

/* Two and three access-gates on loopback, with this test as their accessd and as their carriers. */

#include "tests/cluster/authority.h"
#include "tests/cluster/gate_rig.h"

#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/gate_call.h"
#include "tests/patience.h"

/* ---- what two ends of a channel must be ---- */

static void read_all(int fd, void *ret, size_t size)
{
	struct pollfd pollfd = {fd, POLLIN, 0};

	for (size_t done = 0; done < size;) {
		ssize_t n;

		ck_assert_int_eq(poll(&pollfd, 1, PATIENCE_MS), 1);
		n = read(fd, (uint8_t *)ret + done, size - done);
		ck_assert_int_gt(n, 0);
		done += (size_t)n;
	}
}

/* The first bytes behind the handover are the carriers', in both directions, and all of them. */
static void check_pair(const struct rig_channel *one, const struct rig_channel *other)
{
	char said[2][16];

	ck_assert_int_eq(write(one->fd, "from the one to", 16), 16);
	ck_assert_int_eq(write(other->fd, "and the way back", 16), 16);
	read_all(other->fd, said[0], 16);
	read_all(one->fd, said[1], 16);
	ck_assert_mem_eq(said[0], "from the one to", 16);
	ck_assert_mem_eq(said[1], "and the way back", 16);
	ck_assert(rig_is_silent(one->fd));
	ck_assert(rig_is_silent(other->fd));
	ck_assert_mem_eq(one->keys.send_key, other->keys.receive_key, 16);
	ck_assert_mem_eq(one->keys.receive_key, other->keys.send_key, 16);
	ck_assert_mem_eq(one->keys.send_iv, other->keys.receive_iv, 12);
	ck_assert_mem_eq(one->keys.receive_iv, other->keys.send_iv, 12);
	ck_assert_mem_ne(one->keys.send_key, one->keys.receive_key, 16);
}

static int option_of(int fd, int level, int name)
{
	socklen_t size = sizeof(int);
	int number = -1;

	ck_assert_int_eq(getsockopt(fd, level, name, &number, &size), 0);
	return number;
}

/* A peer that is cut off while nobody talks is noticed by the kernel. */
static void check_notices(int fd)
{
	ck_assert_int_eq(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_le(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
	ck_assert_int_le(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
	ck_assert_int_gt(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
}

/* b is there first, and a, which lists b, calls it. */
struct two {
	struct rig_gate a, b;
	int carrier_a, carrier_b;
	struct rig_channel at_a, at_b;
	char peers[96];
};

static struct two connect_two(struct rig_start *a, struct rig_start *b)
{
	struct two two;

	b->node = b->node ? b->node : "b";
	a->node = a->node ? a->node : "a";
	two.b = rig_gate_start(b);
	ck_assert_str_eq(two.b.failed, "");
	two.carrier_b = rig_gate_domain(&two.b, 7, 200);
	snprintf(two.peers, sizeof(two.peers), "static:%s", two.b.address);
	a->peers = two.peers;
	two.a = rig_gate_start(a);
	ck_assert_str_eq(two.a.failed, "");
	two.carrier_a = rig_gate_domain(&two.a, 3, 100);
	two.at_a = rig_gate_channel(two.carrier_a);
	two.at_b = rig_gate_channel(two.carrier_b);
	check_pair(&two.at_a, &two.at_b);
	return two;
}

static void disconnect_two(struct two *two)
{
	close(two->at_a.fd);
	close(two->at_b.fd);
	close(two->carrier_a);
	close(two->carrier_b);
	rig_gate_stop(&two->a);
	rig_gate_stop(&two->b);
}

START_TEST(a_key_connects_two)
{
	struct rig_start a = {.incarnation = 11}, b = {.incarnation = 22};
	struct two two = connect_two(&a, &b);
	struct rig_member at_a = rig_gate_member(&two.a, GATE_MEMBER_MET, "b");
	struct rig_member at_b = rig_gate_member(&two.b, GATE_MEMBER_MET, "a");

	check_notices(two.at_a.fd);
	check_notices(two.at_b.fd);
	ck_assert_uint_eq(two.at_a.id, gate_id_of("b"));
	ck_assert_uint_eq(two.at_b.id, gate_id_of("a"));
	ck_assert_uint_eq(two.at_a.incarnation, 22);
	ck_assert_uint_eq(two.at_b.incarnation, 11);
	ck_assert_uint_eq(two.at_a.weight, 200);
	ck_assert_uint_eq(two.at_b.weight, 100);
	ck_assert_uint_eq(two.at_a.is_sealed, 1);
	ck_assert_uint_eq(at_a.id, two.at_a.id);
	ck_assert_str_eq(at_a.address, two.b.address);
	ck_assert_str_eq(at_b.address, two.a.address);
	disconnect_two(&two);
}
END_TEST

START_TEST(what_is_lost_is_connected_anew)
{
	struct rig_start a = {.is_plain = true}, b = {.is_plain = true};
	struct two two = connect_two(&a, &b);
	struct rig_channel before = two.at_a;

	ck_assert_uint_eq(two.at_a.is_sealed, 0);
	close(two.at_a.fd);
	close(two.at_b.fd);
	rig_gate_ended(two.carrier_a, &two.at_a);
	rig_gate_ended(two.carrier_b, &two.at_b);
	two.at_a = rig_gate_channel(two.carrier_a);
	two.at_b = rig_gate_channel(two.carrier_b);
	check_pair(&two.at_a, &two.at_b);
	ck_assert_mem_ne(before.keys.send_key, two.at_a.keys.send_key, 16);
	disconnect_two(&two);
}
END_TEST

/* b's carrier dies, and another one begins: a is told by its carrier that the channel ended. */
START_TEST(another_carrier_is_connected)
{
	struct rig_start a = {0}, b = {0};
	struct two two = connect_two(&a, &b);

	close(two.at_a.fd);
	close(two.at_b.fd);
	close(two.carrier_b);
	two.carrier_b = rig_gate_domain(&two.b, 7, 300);
	rig_gate_ended(two.carrier_a, &two.at_a);
	two.at_a = rig_gate_channel(two.carrier_a);
	two.at_b = rig_gate_channel(two.carrier_b);
	check_pair(&two.at_a, &two.at_b);
	ck_assert_uint_eq(two.at_a.weight, 300);
	disconnect_two(&two);
}
END_TEST

/* a's accessd starts anew: b takes the new life's call, though nobody told it that the old channel ended. */
START_TEST(a_new_incarnation_takes_the_place)
{
	struct rig_start a = {.incarnation = 1}, b = {0}, again = {.node = "a", .incarnation = 2};
	struct two two = connect_two(&a, &b);

	close(two.at_a.fd);
	close(two.carrier_a);
	rig_gate_stop(&two.a);
	again.peers = two.peers;
	two.a = rig_gate_start(&again);
	two.carrier_a = rig_gate_domain(&two.a, 3, 100);
	two.at_a = rig_gate_channel(two.carrier_a);
	close(two.at_b.fd);
	two.at_b = rig_gate_channel(two.carrier_b);
	ck_assert_uint_eq(two.at_b.incarnation, 2);
	check_pair(&two.at_a, &two.at_b);
	disconnect_two(&two);
}
END_TEST

/* Each lists the other, and both domains begin at once: one channel comes of it. */
START_TEST(crossing_calls_make_one_channel)
{
	char at[2][64], peers[2][160];
	struct rig_gate gates[2];
	int carriers[2];
	struct rig_channel channels[2];

	for (int i = 0; i < 2; i++)
		rig_free_address(at[i]);
	for (int i = 0; i < 2; i++) {
		snprintf(peers[i], sizeof(peers[i]), "static:%s,%s", at[0], at[1]);
		gates[i] = rig_gate_start(
		    &(struct rig_start){.node = i ? "b" : "a", .listen = at[i], .peers = peers[i]});
		ck_assert_str_eq(gates[i].failed, "");
	}
	for (int i = 0; i < 2; i++)
		carriers[i] = rig_gate_domain(&gates[i], 1, 1);
	for (int i = 0; i < 2; i++)
		channels[i] = rig_gate_channel(carriers[i]);
	check_pair(&channels[0], &channels[1]);
	for (int i = 0; i < 2; i++)
		ck_assert(rig_is_silent(carriers[i]));
	for (int i = 0; i < 2; i++) {
		close(channels[i].fd);
		close(carriers[i]);
		rig_gate_stop(&gates[i]);
	}
}
END_TEST

/* A domain that is not there yet is no error; whose begins later calls. */
START_TEST(the_later_side_calls)
{
	struct rig_gate b, a;
	struct rig_channel at_a, at_b;
	char peers[96], listen[64], back[96];
	int carrier_a, carrier_b;

	rig_free_address(listen);
	snprintf(back, sizeof(back), "static:%s", listen);
	b = rig_gate_start(&(struct rig_start){.node = "b", .peers = back});
	snprintf(peers, sizeof(peers), "static:%s", b.address);
	a = rig_gate_start(&(struct rig_start){.node = "a", .listen = listen, .peers = peers});
	carrier_a = rig_gate_domain(&a, 1, 1);
	rig_gate_member(&a, GATE_MEMBER_MET, "b");
	ck_assert(rig_is_silent(carrier_a));
	carrier_b = rig_gate_domain(&b, 1, 1);
	at_b = rig_gate_channel(carrier_b);
	at_a = rig_gate_channel(carrier_a);
	check_pair(&at_a, &at_b);
	close(at_a.fd);
	close(at_b.fd);
	close(carrier_a);
	close(carrier_b);
	rig_gate_stop(&a);
	rig_gate_stop(&b);
}
END_TEST

/* ---- who does not belong together ---- */

/* What `a` learns of b. */
static struct rig_member refusal(struct rig_start *a, struct rig_start *b, enum gate_state state)
{
	struct rig_gate gates[2];
	struct rig_member member;
	char peers[96];
	int carriers[2];

	b->node = b->node ? b->node : "b";
	a->node = a->node ? a->node : "a";
	gates[1] = rig_gate_start(b);
	ck_assert_str_eq(gates[1].failed, "");
	carriers[1] = rig_gate_domain(&gates[1], 1, 1);
	snprintf(peers, sizeof(peers), "static:%s", gates[1].address);
	a->peers = peers;
	gates[0] = rig_gate_start(a);
	ck_assert_str_eq(gates[0].failed, "");
	carriers[0] = rig_gate_domain(&gates[0], 1, 1);
	member = rig_gate_member(&gates[0], state, NULL);
	for (int i = 0; i < 2; i++) {
		ck_assert(rig_is_silent(carriers[i]));
		close(carriers[i]);
		rig_gate_stop(&gates[i]);
	}
	return member;
}

static void check_has(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part), "\"%s\" is not in \"%s\"", part, text);
}

START_TEST(another_key_is_refused)
{
	struct rig_start a = {.key = "another key, of more than thirty-two letters"}, b = {0};
	struct rig_member member = refusal(&a, &b, GATE_MEMBER_REFUSED);

	check_has(member.text, "sha256sum");
	check_has(member.text, "peer_key");
}
END_TEST

START_TEST(another_cluster_is_refused)
{
	struct rig_start a = {.cluster = "red"}, b = {.cluster = "blue"};
	struct rig_member member = refusal(&a, &b, GATE_MEMBER_REFUSED);

	check_has(member.text, "red");
	check_has(member.text, "blue");
	check_has(member.text, "cluster_name");
}
END_TEST

START_TEST(the_same_name_is_refused)
{
	struct rig_start a = {.node = "twin"}, b = {.node = "twin"};
	struct rig_member member = refusal(&a, &b, GATE_MEMBER_REFUSED);

	check_has(member.text, "twin");
	check_has(member.text, "node_name");
}
END_TEST

START_TEST(another_crypt_is_refused)
{
	struct rig_start a = {.is_plain = true}, b = {0};
	struct rig_member member = refusal(&a, &b, GATE_MEMBER_REFUSED);

	check_has(member.text, "peer_crypt is on there and off here");
}
END_TEST

/* A third node has the name of the first, and comes while that is connected. */
START_TEST(a_name_that_comes_twice_is_told)
{
	struct rig_start a = {.node = "twin", .incarnation = 1}, b = {0};
	struct two two = connect_two(&a, &b);
	struct rig_gate other = rig_gate_start(
	    &(struct rig_start){.node = "twin", .incarnation = 2, .peers = two.peers});
	int carrier = rig_gate_domain(&other, 1, 1);
	struct rig_channel at_other = rig_gate_channel(carrier), at_b;

	at_b = rig_gate_channel(two.carrier_b); /* taken for one that was started anew */
	check_pair(&at_other, &at_b);
	rig_gate_ended(two.carrier_a, &two.at_a); /* so the first one's channel ends */
	check_has(rig_gate_member(&two.a, GATE_MEMBER_REFUSED, "b").text, "node_name");
	close(at_b.fd);
	close(at_other.fd);
	close(carrier);
	rig_gate_stop(&other);
	disconnect_two(&two);
}
END_TEST

START_TEST(nobody_there_is_tried_again)
{
	struct rig_start later = {.node = "b"};
	struct rig_gate a, b;
	struct rig_channel at_a, at_b;
	struct rig_member member;
	char address[64], peers[96];
	int carrier_a, carrier_b;

	rig_free_address(address);
	snprintf(peers, sizeof(peers), "static:%s", address);
	a = rig_gate_start(&(struct rig_start){.node = "a", .peers = peers});
	carrier_a = rig_gate_domain(&a, 1, 1);
	member = rig_gate_member(&a, GATE_MEMBER_WAITS, NULL);
	check_has(member.text, "cannot connect");
	ck_assert_str_eq(member.node, address);
	later.listen = address;
	b = rig_gate_start(&later);
	carrier_b = rig_gate_domain(&b, 1, 1);
	at_a = rig_gate_channel(carrier_a);
	at_b = rig_gate_channel(carrier_b);
	rig_gate_gone(&a, member.id); /* it has a name by now */
	check_pair(&at_a, &at_b);
	close(at_a.fd);
	close(at_b.fd);
	close(carrier_a);
	close(carrier_b);
	rig_gate_stop(&a);
	rig_gate_stop(&b);
}
END_TEST

/* One that cannot be found is told, and the others are called. */
START_TEST(a_name_without_an_address_is_told)
{
	char peers[128], text[RIG_TEXT];
	struct rig_gate gate;

	/* no label of a name is so long: nobody is asked for it */
	snprintf(peers, sizeof(peers), "static:127.0.0.1:1,%064d.x", 0);
	gate = rig_gate_start(&(struct rig_start){.peers = peers});
	rig_gate_trouble(&gate, text);
	check_has(text, "has no address");
	close(rig_gate_domain(&gate, 1, 1));
	rig_gate_stop(&gate);
}
END_TEST

/* Itself among the peers, by an address that no interface has: it is only seen to be its own when it answers. */
START_TEST(itself_is_no_peer)
{
	char address[64], peers[160], listen[80];
	const char *port;
	struct rig_gate a, b;
	struct rig_channel at_a, at_b;
	int carrier_a, carrier_b;

	rig_free_address(address);
	port = strchr(address, ':');
	b = rig_gate_start(&(struct rig_start){.node = "b"});
	carrier_b = rig_gate_domain(&b, 1, 1);
	snprintf(listen, sizeof(listen), "0.0.0.0%s", port);
	snprintf(peers, sizeof(peers), "static:127.0.0.2%s,%s", port, b.address);
	a = rig_gate_start(&(struct rig_start){.node = "a", .listen = listen, .peers = peers});
	carrier_a = rig_gate_domain(&a, 1, 1);
	at_a = rig_gate_channel(carrier_a);
	at_b = rig_gate_channel(carrier_b);
	check_pair(&at_a, &at_b);
	snprintf(peers, sizeof(peers), "127.0.0.2%s", port);
	rig_gate_gone(&a, gate_id_of(peers));
	close(at_a.fd);
	close(at_b.fd);
	close(carrier_a);
	close(carrier_b);
	rig_gate_stop(&a);
	rig_gate_stop(&b);
}
END_TEST

/* ---- certificates ---- */

static struct rig_start certified(struct authority *authority, const char *name, const char *node,
				  long valid_from_s)
{
	const struct authority_files files = authority_issue(authority, name, valid_from_s);
	struct rig_start start = {.node = node};

	memcpy(start.files, files.path, sizeof(start.files));
	return start;
}

START_TEST(certificates_connect_two)
{
	struct authority *authority = authority_new();
	struct rig_start a = certified(authority, "a", "a", -60);
	struct rig_start b = certified(authority, "b", "b", -60);
	struct two two = connect_two(&a, &b);

	ck_assert_uint_eq(two.at_a.id, gate_id_of("b"));
	disconnect_two(&two);
	authority_free(authority);
}
END_TEST

/* What `a` is told, and b's and a's own names in their certificates, and since when these are valid. */
static const struct {
	const char *name_a, *name_b;
	long from_a_s, from_b_s;
	const char *part;
} certificates[] = {
    {"a", "x", -60, -60, "says that it is b, which its certificate does not"},
    {"x", "b", -60, -60, "this node's certificate is not for a"},
    {"a", "b", -60, 3600, "compare the clocks"},
    {"a", "b", 3600, -60, "compare the clocks"},
    {"a", "b", -60, -2 * 86400, "compare the clocks"},
};

START_TEST(wrong_certificates_are_refused)
{
	struct authority *authority = authority_new();
	struct rig_start a =
	    certified(authority, certificates[_i].name_a, "a", certificates[_i].from_a_s);
	struct rig_start b =
	    certified(authority, certificates[_i].name_b, "b", certificates[_i].from_b_s);

	check_has(refusal(&a, &b, GATE_MEMBER_REFUSED).text, certificates[_i].part);
	authority_free(authority);
}
END_TEST

START_TEST(another_authority_is_refused)
{
	struct authority *ours = authority_new(), *theirs = authority_new();
	struct rig_start a = certified(ours, "a", "a", -60);
	struct rig_start b = certified(theirs, "b", "b", -60);

	check_has(refusal(&a, &b, GATE_MEMBER_REFUSED).text, "peer_certificates");
	authority_free(ours);
	authority_free(theirs);
}
END_TEST

/* One has certificates, and the other the key. */
START_TEST(another_way_is_refused)
{
	struct authority *authority = authority_new();
	struct rig_start a = certified(authority, "a", "a", -60), b = {0};
	struct rig_start key = {.node = "a"}, certificate = certified(authority, "b", "b", -60);

	check_has(refusal(&a, &b, GATE_MEMBER_REFUSED).text, "no certificate to show");
	check_has(refusal(&key, &certificate, GATE_MEMBER_REFUSED).text, "shows a certificate");
	authority_free(authority);
}
END_TEST

START_TEST(a_broken_certificate_is_told)
{
	struct authority *authority = authority_new();
	struct rig_start start = certified(authority, "a", "a", -60);
	struct rig_gate gate;

	start.files[0] = start.files[1];
	gate = rig_gate_start(&start);
	check_has(gate.failed, "this node's certificate is not one in PEM");
	rig_gate_stop(&gate);
	authority_free(authority);
}
END_TEST

/* ---- strangers ---- */

#define STRANGERS 100

/* More than a gate takes at once: silent ones, ones that stop in the middle of a hello, and ones that talk nonsense. A good
 * peer connects meanwhile, and they hold nothing for long. */
START_TEST(strangers_stop_nobody)
{
	static const uint8_t half[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03};
	struct rig_start a = {0}, b = {0};
	int fds[STRANGERS];
	struct two two;

	b.node = "b";
	two.b = rig_gate_start(&b);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = rig_connect(two.b.address);
		if (i % 3 == 1)
			ck_assert_int_gt(send(fds[i], half, sizeof(half), MSG_NOSIGNAL), 0);
		if (i % 3 == 2)
			send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
	}
	two.carrier_b = rig_gate_domain(&two.b, 7, 200);
	snprintf(two.peers, sizeof(two.peers), "static:%s", two.b.address);
	a.peers = two.peers;
	a.node = "a";
	two.a = rig_gate_start(&a);
	two.carrier_a = rig_gate_domain(&two.a, 3, 100);
	two.at_a = rig_gate_channel(two.carrier_a);
	two.at_b = rig_gate_channel(two.carrier_b);
	check_pair(&two.at_a, &two.at_b);
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	disconnect_two(&two);
}
END_TEST

/* ---- configuration ---- */

static const struct {
	struct rig_start start;
	const char *part;
} wrong[] = {
    {{.node = "a b"}, "node_name"},           {{.node = ".example.com"}, "node_name"},
    {{.cluster = "/"}, "cluster_name"},       {{.key = "short"}, "32"},
    {{.listen = "here"}, "peer_listen here"}, {{.listen = "localhost:1"}, "in figures"},
    {{.peers = "consul:x"}, "static:HOST"},   {{.peers = "static:"}, "static:node1"},
    {{.peers = "static:a,,b"}, "HOST:PORT"},  {{.peers = "static:a:70000"}, "HOST:PORT"},
    {{.peers = "dns:"}, "HOST:PORT"},         {{.peers = "slurm"}, "srun"},
};

START_TEST(wrong_configuration_is_told)
{
	struct rig_gate gate;

	unsetenv("SLURM_JOB_NODELIST");
	gate = rig_gate_start(&wrong[_i].start);
	check_has(gate.failed, wrong[_i].part);
	rig_gate_stop(&gate);
}
END_TEST

/* Somebody has the port, and ends. */
START_TEST(a_port_that_is_taken_is_tried_again)
{
	struct rig_start taken = {.node = "other"}, start = {.node = "a"};
	struct rig_gate other = rig_gate_start(&taken), gate;
	pid_t pid;

	start.listen = other.address;
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		usleep(300000);
		_exit(kill(other.pid, SIGKILL) ? 1 : 0);
	}
	gate = rig_gate_start(&start);
	ck_assert_str_eq(gate.failed, "");
	ck_assert_str_eq(gate.address, other.address);
	check_has(gate.trouble, "cannot listen there");
	rig_gate_stop(&gate);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(waitpid(other.pid, NULL, 0), other.pid);
	close(other.sock);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gate");
	TCase *tcase = tcase_create("gate");
	SRunner *runner;
	int failed;

	if (!rig_user_has_name()) {
		printf("skipped: this user has no name here, by which nodes know him\n");
		return 77;
	}
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_test(tcase, a_key_connects_two);
	tcase_add_test(tcase, what_is_lost_is_connected_anew);
	tcase_add_test(tcase, another_carrier_is_connected);
	tcase_add_test(tcase, a_new_incarnation_takes_the_place);
	tcase_add_test(tcase, crossing_calls_make_one_channel);
	tcase_add_test(tcase, the_later_side_calls);
	tcase_add_test(tcase, another_key_is_refused);
	tcase_add_test(tcase, another_cluster_is_refused);
	tcase_add_test(tcase, the_same_name_is_refused);
	tcase_add_test(tcase, another_crypt_is_refused);
	tcase_add_test(tcase, a_name_that_comes_twice_is_told);
	tcase_add_test(tcase, nobody_there_is_tried_again);
	tcase_add_test(tcase, a_name_without_an_address_is_told);
	tcase_add_test(tcase, itself_is_no_peer);
	tcase_add_test(tcase, certificates_connect_two);
	tcase_add_loop_test(tcase, wrong_certificates_are_refused, 0, BASE_ARRAY_LEN(certificates));
	tcase_add_test(tcase, another_authority_is_refused);
	tcase_add_test(tcase, another_way_is_refused);
	tcase_add_test(tcase, a_broken_certificate_is_told);
	tcase_add_test(tcase, strangers_stop_nobody);
	tcase_add_test(tcase, a_port_that_is_taken_is_tried_again);
	tcase_add_loop_test(tcase, wrong_configuration_is_told, 0, BASE_ARRAY_LEN(wrong));
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
