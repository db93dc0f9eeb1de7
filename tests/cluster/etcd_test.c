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

/* As anybody may who has that token. The answer, which etcd may have none of as long as it begins. A no is one: what is asked
 * again as its answer was late may have been done. */
static void etcd_ask(const struct etcd *etcd, const char *path, const char *body, const char *token,
		     char ret[4096])
{
	char request[2048], header[320] = "";

	if (*token)
		snprintf(header, sizeof(header), "Authorization: %s\r\n", token);
	snprintf(request, sizeof(request),
		 "POST /v3/%s HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n%s"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 path, header, strlen(body), body);
	do {
		int fd = rig_connect(etcd->client);

		ck_assert_int_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
		memset(ret, 0, 4096);
		recv(fd, ret, 4095, MSG_WAITALL);
		close(fd);
	} while (strncmp(ret, "HTTP/1.1 2", 10) != 0 && strncmp(ret, "HTTP/1.1 4", 10) != 0);
}

static void etcd_do(const struct etcd *etcd, const char *path, const char *body)
{
	char answer[4096];

	etcd_ask(etcd, path, body, "", answer);
}

/* A key and a value in base64. */
static void etcd_put(const struct etcd *etcd, const char *key, const char *value)
{
	char body[512];

	snprintf(body, sizeof(body), "{\"key\": \"%s\", \"value\": \"%s\"}", key, value);
	etcd_do(etcd, "kv/put", body);
}

/* What is behind `key": "` in it, up to the next `"`; moves *at. false: there is no more. */
static bool next_text(const char **at, const char *key, char *ret, size_t size)
{
	const char *begin = strstr(*at, key);

	if (!begin)
		return false;
	begin += strlen(key);
	snprintf(ret, size, "%.*s", (int)strcspn(begin, "\""), begin);
	*at = begin;
	return true;
}

/* As etcd does when it was paused for longer than they last. */
static void end_leases(const struct etcd *etcd)
{
	char answer[4096], lease[64], body[96];
	const char *at = answer;

	etcd_ask(etcd, "lease/leases", "{}", "", answer);
	while (next_text(&at, "\"ID\":\"", lease, sizeof(lease))) {
		snprintf(body, sizeof(body), "{\"ID\": \"%s\"}", lease);
		etcd_do(etcd, "lease/revoke", body);
	}
}

/* Until so many nodes have their keys in it. */
static void wait_keys(const struct etcd *etcd, const char *token, const char *count)
{
	char answer[4096], has[32] = "";

	while (strcmp(has, count) != 0) { /* /oneaccess/c/node/ to /oneaccess/c/node0 */
		const char *at = answer;

		etcd_ask(etcd, "kv/range",
			 "{\"key\": \"L29uZWFjY2Vzcy9jL25vZGUv\", \"range_end\": "
			 "\"L29uZWFjY2Vzcy9jL25vZGUw\", \"count_only\": true}",
			 token, answer);
		next_text(&at, "\"count\":\"", has, sizeof(has));
		poll(NULL, 0, 20);
	}
}

struct node {
	struct rig_gate gate;
	int carrier;
};

static struct node node_of(const struct rig_start *start)
{
	struct node node;

	node.gate = rig_gate_start(start);
	ck_assert_str_eq(node.gate.failed, "");
	node.carrier = rig_gate_domain(&node.gate, 1, 1);
	return node;
}

static struct node node_start(const char *name, const char *peers)
{
	return node_of(&(struct rig_start){.node = name, .peers = peers});
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

START_TEST(an_etcd_that_dies_is_named)
{
	struct etcd etcd = {.pid = 0};
	char peers[128], trouble[RIG_TEXT];
	struct node node;

	etcd_start(&etcd);
	snprintf(peers, sizeof(peers), "etcd:http://%s", etcd.client);
	node = node_start("a", peers);
	wait_keys(&etcd, "", "1");
	etcd_kill(&etcd);
	rig_gate_trouble(&node.gate, trouble);
	ck_assert_ptr_nonnull(strstr(trouble, etcd.client));
	node_stop(&node);
}
END_TEST

/* A third node meets both, which have said of nobody that he is gone. */
static void meet_third(struct node *a, struct node *b, const struct rig_start *start)
{
	struct node c = node_of(start);
	struct rig_channel of_c[2], at_c[2];

	of_c[0] = rig_gate_channel(c.carrier);
	of_c[1] = rig_gate_channel(c.carrier);
	ck_assert_uint_eq(of_c[0].id ^ of_c[1].id, gate_id_of("a") ^ gate_id_of("b"));
	at_c[0] = channel_to(a, "c");
	at_c[1] = channel_to(b, "c");
	check_not_gone(a);
	check_not_gone(b);
	for (unsigned i = 0; i < 2; i++) {
		close(of_c[i].fd);
		close(at_c[i].fd);
	}
	node_stop(&c);
}

/* It stands still: connections live on, and are made. When it goes on all leases have ended at once, and nobody is lost. */
START_TEST(an_etcd_that_was_paused_loses_nobody)
{
	struct etcd etcd = {.pid = 0};
	struct node a, b;
	struct rig_channel at_a, at_b;
	char peers[128];

	etcd_start(&etcd);
	snprintf(peers, sizeof(peers), "etcd:http://%s", etcd.client);
	a = node_start("a", peers);
	b = node_start("b", peers);
	at_a = channel_to(&a, "b");
	at_b = channel_to(&b, "a");
	ck_assert_int_eq(kill(etcd.pid, SIGSTOP), 0);
	close(at_a.fd);
	close(at_b.fd);
	rig_gate_ended(a.carrier, &at_a);
	rig_gate_ended(b.carrier, &at_b);
	at_a = channel_to(&a, "b");
	at_b = channel_to(&b, "a");
	ck_assert_int_eq(kill(etcd.pid, SIGCONT), 0);
	end_leases(&etcd);
	wait_keys(&etcd, "", "2");
	meet_third(&a, &b, &(struct rig_start){.node = "c", .peers = peers});
	close(at_a.fd);
	close(at_b.fd);
	node_stop(&a);
	node_stop(&b);
	etcd_kill(&etcd);
}
END_TEST

/* root:r, and ada:secret, whose role has the keys of nodes; only they are let in from then on. */
static void want_users(const struct etcd *etcd)
{
	etcd_do(etcd, "auth/user/add", "{\"name\": \"root\", \"password\": \"r\"}");
	etcd_do(etcd, "auth/role/add", "{\"name\": \"root\"}");
	etcd_do(etcd, "auth/user/grant", "{\"user\": \"root\", \"role\": \"root\"}");
	etcd_do(etcd, "auth/user/add", "{\"name\": \"ada\", \"password\": \"sec:ret\"}");
	etcd_do(etcd, "auth/role/add", "{\"name\": \"nodes\"}");
	etcd_do(etcd, "auth/role/grant", /* /oneaccess/ to /oneaccess0 */
		"{\"name\": \"nodes\", \"perm\": {\"permType\": \"READWRITE\", \"key\": "
		"\"L29uZWFjY2Vzcy8=\", \"range_end\": \"L29uZWFjY2VzczA=\"}}");
	etcd_do(etcd, "auth/user/grant", "{\"user\": \"ada\", \"role\": \"nodes\"}");
	etcd_do(etcd, "auth/enable", "{}");
}

static void root_token(const struct etcd *etcd, char ret[256])
{
	char answer[4096];
	const char *at = answer;

	etcd_ask(etcd, "auth/authenticate", "{\"name\": \"root\", \"password\": \"r\"}", "",
		 answer);
	ck_assert(next_text(&at, "\"token\":\"", ret, 256));
}

/* An etcd that has forgotten all tokens, as one that begins anew has, is told who it is by who knows. */
START_TEST(who_knows_the_password_is_let_in)
{
	struct etcd etcd = {.pid = 0};
	struct rig_start start = {.login = "ada:sec:ret\n"};
	struct rig_channel at_a, at_b;
	struct node a, b;
	char peers[128], token[256];

	etcd_start(&etcd);
	want_users(&etcd);
	snprintf(peers, sizeof(peers), "etcd:http://%s", etcd.client);
	start.peers = peers;
	start.node = "a";
	a = node_of(&start);
	start.node = "b";
	b = node_of(&start);
	at_a = channel_to(&a, "b");
	at_b = channel_to(&b, "a");
	root_token(&etcd, token);
	wait_keys(&etcd, token, "2");
	/* tokens are of a life and of a revision of who may what: all of them end */
	etcd_ask(&etcd, "auth/disable", "{}", token, (char[4096]){""});
	end_leases(&etcd);
	etcd_do(&etcd, "auth/enable", "{}");
	root_token(&etcd, token);
	wait_keys(&etcd, token, "2");
	start.node = "c";
	meet_third(&a, &b, &start);
	close(at_a.fd);
	close(at_b.fd);
	node_stop(&a);
	node_stop(&b);
	etcd_kill(&etcd);
}
END_TEST

/* What the gate says until it has said this. */
static void until_said(const struct etcd *etcd, const char *login, const char *wanted)
{
	char peers[128], text[65536] = "", path[] = "/tmp/oneaccess-said-XXXXXX";
	const int fd = mkstemp(path), err = dup(2);
	struct node node;

	ck_assert(fd >= 0 && err >= 0);
	unlink(path);
	dup2(fd, 2);
	snprintf(peers, sizeof(peers), "etcd:http://%s", etcd->client);
	node = node_of(&(struct rig_start){.node = "a", .peers = peers, .login = login});
	dup2(err, 2);
	close(err);
	while (!strstr(text, wanted)) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		ck_assert_int_ge(n, 0);
		text[n] = '\0';
		poll(NULL, 0, 20);
	}
	ck_assert_ptr_null(strstr(text, "sec:ret"));
	node_stop(&node);
	close(fd);
}

START_TEST(who_does_not_is_told_why)
{
	struct etcd etcd = {.pid = 0};
	struct rig_gate gate;

	etcd_start(&etcd);
	want_users(&etcd);
	until_said(&etcd, NULL, "peer_etcd_login into accessd.conf");
	until_said(&etcd, "ada:wrong", "password in the file of peer_etcd_login is not right");
	gate = rig_gate_start(
	    &(struct rig_start){.peers = "etcd:http://127.0.0.1:1", .login = "no colon"});
	ck_assert_ptr_nonnull(strstr(gate.failed, "one line, USER:PASSWORD"));
	rig_gate_stop(&gate);
	etcd_kill(&etcd);
}
END_TEST

/* A user who is let in, but whose role has nothing. */
START_TEST(who_may_not_is_told_what_he_lacks)
{
	struct etcd etcd = {.pid = 0};

	etcd_start(&etcd);
	etcd_do(&etcd, "auth/user/add", "{\"name\": \"bob\", \"password\": \"sec:ret\"}");
	want_users(&etcd);
	until_said(&etcd, "bob:sec:ret", "etcdctl role grant-permission");
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
	tcase_add_test(tcase, an_etcd_that_dies_is_named);
	tcase_add_test(tcase, an_etcd_that_was_paused_loses_nobody);
	tcase_add_test(tcase, who_knows_the_password_is_let_in);
	tcase_add_test(tcase, who_does_not_is_told_why);
	tcase_add_test(tcase, who_may_not_is_told_what_he_lacks);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
