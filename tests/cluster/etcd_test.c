/* SPDX-License-Identifier: Apache-2.0 */

/* Gates that find each other by a real etcd, of Debian's package etcd-server: in $ACCESS_ETCD (./check unpacks it) or in
 * PATH. Without one this is skipped. */

#include "tests/cluster/gate_rig.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/gate_call.h"
#include "tests/patience.h"

static char program[4096];

struct etcd {
	pid_t pid;
	char client[64], peer[64], folder[64];
};

static bool find_program(void)
{
	const char *folder = getenv("ACCESS_ETCD");

	snprintf(program, sizeof(program), "%s/etcd", folder ? folder : "/usr/bin");
	return access(program, X_OK) == 0;
}

static void run_etcd(const struct etcd *etcd)
{
	char client[96], peer[96], cluster[112];
	int null = open("/dev/null", O_WRONLY);

	snprintf(client, sizeof(client), "http://%s", etcd->client);
	snprintf(peer, sizeof(peer), "http://%s", etcd->peer);
	snprintf(cluster, sizeof(cluster), "default=%s", peer);
	dup2(null, 1);
	dup2(null, 2);
	setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 0);
	execl(program, "etcd", "--data-dir", etcd->folder, "--listen-client-urls", client,
	      "--advertise-client-urls", client, "--listen-peer-urls", peer,
	      "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, (char *)NULL);
	_exit(127);
}

/* Empty, at the address that it had before, if it had one; until it listens. */
static void etcd_start(struct etcd *etcd)
{
	int fd = -1;

	if (!*etcd->client)
		rig_free_address(etcd->client);
	rig_free_address(etcd->peer);
	strcpy(etcd->folder, "/tmp/oneaccess-etcd-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(etcd->folder));
	etcd->pid = fork();
	ck_assert_int_ge(etcd->pid, 0);
	if (etcd->pid == 0)
		run_etcd(etcd);
	while (fd < 0) {
		ck_assert_int_eq(waitpid(etcd->pid, NULL, WNOHANG), 0);
		fd = rig_try_connect(etcd->client);
		if (fd < 0)
			poll(NULL, 0, 20);
	}
	close(fd);
}

static void etcd_kill(struct etcd *etcd)
{
	char command[128];

	ck_assert_int_eq(kill(etcd->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(etcd->pid, NULL, 0), etcd->pid);
	snprintf(command, sizeof(command), "rm -rf %s", etcd->folder);
	ck_assert_int_eq(system(command), 0);
}

/* As anybody may: a key and a value in base64. Until etcd, which may only just have begun, has taken it. */
static void etcd_put(const struct etcd *etcd, const char *key, const char *value)
{
	char body[512], request[1024], answer[16] = "";

	snprintf(body, sizeof(body), "{\"key\": \"%s\", \"value\": \"%s\"}", key, value);
	snprintf(request, sizeof(request),
		 "POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	while (strncmp(answer, "HTTP/1.1 200", 12) != 0) {
		int fd = rig_connect(etcd->client);

		ck_assert_int_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
		memset(answer, 0, sizeof(answer));
		recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL);
		close(fd);
	}
}

struct node {
	struct rig_gate gate;
	int carrier;
};

static struct node node_start(const char *name, const char *peers)
{
	struct node node;

	node.gate = rig_gate_start(&(struct rig_start){.node = name, .peers = peers});
	ck_assert_str_eq(node.gate.failed, "");
	node.carrier = rig_gate_domain(&node.gate, 1, 1);
	return node;
}

static void node_stop(struct node *node)
{
	close(node->carrier);
	rig_gate_stop(&node->gate);
}

static struct rig_channel channel_to(const struct node *node, const char *name)
{
	struct rig_channel channel = rig_gate_channel(node->carrier);

	ck_assert_uint_eq(channel.id, gate_id_of(name));
	return channel;
}

/* It has said nothing of this id's being gone by now. */
static void check_not_gone(const struct node *node)
{
	while (!rig_is_silent(node->gate.sock))
		ck_assert_uint_ne(rig_gate_next(&node->gate), GATE_MEMBER_GONE);
}

START_TEST(etcd_tells_who_is_there)
{
	struct etcd etcd = {.pid = 0};
	struct node a, b, c;
	struct rig_channel at_a, at_b, of_c[2], at_c[2];
	char peers[128];

	etcd_start(&etcd);
	snprintf(peers, sizeof(peers), "etcd:http://127.0.0.1:1,http://%s", etcd.client);
	/* "/oneaccess/c/node/": no name; "/oneaccess/c/node/evil": "nonsense" */
	etcd_put(&etcd, "L29uZWFjY2Vzcy9jL25vZGUv", "bm9uc2Vuc2U=");
	etcd_put(&etcd, "L29uZWFjY2Vzcy9jL25vZGUvZXZpbA==", "bm9uc2Vuc2U=");
	a = node_start("a", peers);
	b = node_start("b", peers);
	at_a = channel_to(&a, "b");
	at_b = channel_to(&b, "a");
	rig_gate_member(&a.gate, GATE_MEMBER_MET, "b");

	/* it dies: members stay, and what is lost is connected without it */
	etcd_kill(&etcd);
	close(at_a.fd);
	close(at_b.fd);
	rig_gate_ended(a.carrier, &at_a);
	rig_gate_ended(b.carrier, &at_b);
	at_a = channel_to(&a, "b");
	at_b = channel_to(&b, "a");
	check_not_gone(&a);

	/* it comes back, and has forgotten everything: a third node meets both */
	etcd_start(&etcd);
	c = node_start("c", peers);
	of_c[0] = rig_gate_channel(c.carrier);
	of_c[1] = rig_gate_channel(c.carrier);
	ck_assert_uint_eq(of_c[0].id ^ of_c[1].id, gate_id_of("a") ^ gate_id_of("b"));
	at_c[0] = channel_to(&a, "c");
	at_c[1] = channel_to(&b, "c");
	check_not_gone(&a);

	/* who leaves is gone, when his channels have ended, too */
	node_stop(&c);
	rig_gate_ended(a.carrier, &at_c[0]);
	rig_gate_ended(b.carrier, &at_c[1]);
	rig_gate_gone(&a.gate, gate_id_of("c"));
	rig_gate_gone(&b.gate, gate_id_of("c"));
	node_stop(&a);
	node_stop(&b);
	etcd_kill(&etcd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("etcd");
	TCase *tcase = tcase_create("etcd");
	SRunner *runner;
	int failed;

	if (!find_program()) {
		printf("not tested: peers = etcd: Debian's etcd-server is not here\n");
		return 77;
	}
	if (!rig_user_has_name()) {
		printf("skipped: this user has no name here, by which nodes know him\n");
		return 77;
	}
	tcase_set_timeout(tcase, PATIENCE_OF_A_TEST_S);
	tcase_add_test(tcase, etcd_tells_who_is_there);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
