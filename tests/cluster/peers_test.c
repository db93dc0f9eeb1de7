/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of nodes: as texts, cut into cells, and what etcd says of them. */

#include "cluster/peers/peers_etcd_json.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

static const struct {
	const char *text, *host;
	unsigned port;
} hosts[] = {
    {"node1", "node1", 0},
    {"node1:7411", "node1", 7411},
    {"10.0.0.2:1", "10.0.0.2", 1},
    {"[fd00::2]:7411", "fd00::2", 7411},
    {"[fe80::1%eth0]", "fe80::1%eth0", 0},
    {"a-b_c.example.com:65535", "a-b_c.example.com", 65535},
    {"", NULL, 0},
    {":7411", NULL, 0},
    {"node1:", NULL, 0},
    {"node1:65536", NULL, 0},
    {"node1:7411x", NULL, 0},
    {"node1:-1", NULL, 0},
    {"-node", NULL, 0},
    {"no de", NULL, 0},
    {"node;rm", NULL, 0},
    {"[fd00::2", NULL, 0},
    {"[fd00::2]7411", NULL, 0},
    {"fd00::2", NULL, 0},
    {"[]:1", NULL, 0},
};

START_TEST(hosts_are_parsed)
{
	char host[PEERS_HOST] = "";
	unsigned port = 77;
	struct diag diag;
	int r = peers_parse_host(hosts[_i].text, strlen(hosts[_i].text), host, &port, &diag);

	ck_assert_int_eq(r == 0, hosts[_i].host != NULL);
	if (r)
		return;
	ck_assert_str_eq(host, hosts[_i].host);
	ck_assert_uint_eq(port, hosts[_i].port);
}
END_TEST

/* The right sides are what `scontrol show hostnames` says, with commas. */
static const struct {
	const char *text, *expanded;
} lists[] = {
    {"n1", "n1"},
    {"n1,n2", "n1,n2"},
    {"n[1-3]", "n1,n2,n3"},
    {"n[01-03,7]", "n01,n02,n03,n7"},
    {"n[008-011]", "n008,n009,n010,n011"},
    {"a[1-2],b,c[9-10]", "a1,a2,b,c9,c10"},
    {"r[1-2]n[0-1]", "r1n0,r1n1,r2n0,r2n1"},
    {"n[1-2]-ib.example", "n1-ib.example,n2-ib.example"},
    {"", NULL},
    {",", NULL},
    {"n[", NULL},
    {"n[]", NULL},
    {"n[1-", NULL},
    {"n[2-1]", NULL},
    {"n[1-2", NULL},
    {"n]1[", NULL},
    {"n[1;2]", NULL},
    {"n[1-99999]", NULL},
    {"n[1-100]x[1-100]", NULL},
    {"n[1]a[1]b[1]c[1]d[1]", NULL},
    {"n[12345678901234567890]", NULL},
    {"n 1", NULL},
};

START_TEST(lists_of_slurm_are_expanded)
{
	char *expanded = NULL;
	struct diag diag;
	int r = peers_slurm_expand(lists[_i].text, &expanded, &diag);

	if (!lists[_i].expanded) {
		ck_assert_int_lt(r, 0);
		ck_assert_ptr_nonnull(strstr(diag.text, "SLURM_JOB_NODELIST"));
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(expanded, lists[_i].expanded);
	free(expanded);
}
END_TEST

START_TEST(addresses_are_figures)
{
	struct gate_address address;
	char text[GATE_CALL_ADDRESS];

	ck_assert(peers_parse_address("10.0.0.2:7411", &address));
	ck_assert_str_eq(gate_address_text(&address, text), "10.0.0.2:7411");
	ck_assert(peers_parse_address("[fd00::2]:7411", &address));
	ck_assert_str_eq(gate_address_text(&address, text), "[fd00::2]:7411");
	ck_assert(!peers_parse_address("localhost:7411", &address));
	ck_assert(!peers_parse_address("10.0.0.2", &address));
	ck_assert(!peers_parse_address("10.0.0.2:0", &address));
}
END_TEST

/* Of who listens on an IPv4 address, IPv6 ones are of no use: nobody could answer. */
START_TEST(addresses_are_of_the_kind_that_is_listened_on)
{
	struct peers_self self = {.node = 0};
	struct gate_address found;
	struct diag why = {""};

	ck_assert(peers_parse_address("0.0.0.0:7411", &self.listen));
	ck_assert_uint_eq(peers_resolve(&self, "127.0.0.1", 1, &found, 1, &why), 1);
	ck_assert_uint_eq(peers_resolve(&self, "::1", 1, &found, 1, &why), 0);
	ck_assert_str_eq(why.text,
			 "::1 has IPv6 addresses alone, and peer_listen of this node is an "
			 "IPv4 one: peer_listen = [::]:7411 takes both");
	ck_assert(peers_parse_address("[::]:7411", &self.listen));
	ck_assert_uint_eq(peers_resolve(&self, "::1", 1, &found, 1, &why), 1);
	ck_assert_uint_eq(peers_resolve(&self, "127.0.0.1", 1, &found, 1, &why), 1);
}
END_TEST

/* ---- cells ---- */

#define MOST 200

static struct peers_entry entries[2][MOST]; /* without names, and with */

static struct peers_entry make_entry(size_t i, bool is_named)
{
	struct peers_entry entry = {.node = ""};
	char text[32];

	snprintf(text, sizeof(text), "10.1.%zu.%zu:7411", i / 200, i % 200 + 1);
	if (!peers_parse_address(text, &entry.address))
		abort(); /* no test runs yet */
	if (is_named)
		snprintf(entry.node, sizeof(entry.node), "node%zu", i);
	return entry;
}

static void make_entries(void)
{
	for (size_t i = 0; i < 2 * MOST; i++)
		entries[i / MOST][i % MOST] = make_entry(i % MOST, i / MOST);
}

/* Who is in whose cell, as node i of n sees it. */
static void cut(size_t n, size_t i, bool is_named, bool ret[MOST])
{
	const struct peers_entry *all = entries[is_named];
	const struct peers_self self = {
	    .node = is_named ? all[i].node : "me",
	    .cluster = "c",
	    .incarnation = 1,
	    .listen = all[i].address,
	};
	struct peers_found found = {NULL, 0, 0};
	struct peers_list list;

	for (size_t k = 0; k < n; k++) /* in any order */
		ck_assert(peers_add(&found, &all[(k + i) % n]));
	peers_cut(&self, &found, &list);
	memset(ret, 0, MOST * sizeof(*ret));
	ret[i] = true;
	for (size_t k = 0; k < list.n; k++) {
		size_t other = 0;

		while (!gate_address_is_host(&all[other].address, &list.entries[k].address))
			other++;
		ck_assert_uint_lt(other, n);
		ck_assert(!ret[other]);
		ret[other] = true;
	}
	free(found.entries);
}

static size_t count(const bool *cell)
{
	size_t n = 0;

	for (size_t i = 0; i < MOST; i++)
		n += cell[i];
	return n;
}

static const size_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 200};

/* All nodes cut in the same way, into as few cells as there must be, of almost equal size. */
START_TEST(cells_are_everybodys)
{
	const size_t n = sizes[_i], cells = (n + 15) / 16;
	static bool cell[MOST][MOST];

	for (int is_named = 0; is_named < 2; is_named++) {
		for (size_t i = 0; i < n; i++)
			cut(n, i, is_named, cell[i]);
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_le(count(cell[i]), 16);
			ck_assert_uint_ge(count(cell[i]), n / cells);
			for (size_t k = 0; k < n; k++)
				if (cell[i][k])
					ck_assert_mem_eq(cell[i], cell[k], sizeof(cell[i]));
		}
	}
}
END_TEST

/* One more node: most of the others keep almost all whom they had. */
START_TEST(a_join_moves_few)
{
	static bool before[MOST], after[MOST];
	size_t moved = 0;

	for (size_t i = 0; i < 100; i++) {
		cut(100, i, true, before);
		cut(101, i, true, after);
		for (size_t k = 0; k < 100; k++)
			moved += before[k] && !after[k];
	}
	ck_assert_uint_lt(moved, 100 * 15 / 4);
}
END_TEST

/* ---- etcd ---- */

struct seen {
	struct peers_etcd_event events[4];
	size_t n;
};

static void on_event(void *arg, const struct peers_etcd_event *event)
{
	struct seen *seen = arg;

	ck_assert_uint_lt(seen->n, 4);
	seen->events[seen->n++] = *event;
}

/* What this node writes is what it reads. */
START_TEST(a_key_comes_back)
{
	char *put = peers_etcd_ask_put("/oneaccess/c/node/", "n-1", "10.0.0.2:7411",
				       UINT64_C(0xfedcba9876543210), "42");
	char line[1024], address[GATE_CALL_ADDRESS];
	struct seen seen = {.n = 0};

	ck_assert_ptr_nonnull(strstr(put, "\"lease\":\"42\""));
	snprintf(line, sizeof(line), "{\"result\":{\"events\":[{\"kv\":%s}]}}", put);
	ck_assert_int_eq(
	    peers_etcd_read_watch(line, strlen(line), "/oneaccess/c/node/", on_event, &seen), 0);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_str_eq(seen.events[0].node, "n-1");
	ck_assert_uint_eq(seen.events[0].entry.incarnation, UINT64_C(0xfedcba9876543210));
	ck_assert_str_eq(gate_address_text(&seen.events[0].entry.address, address),
			 "10.0.0.2:7411");
	free(put);
}
END_TEST

/* Keys and values of strangers are passed over; those of nodes beside them are not. */
START_TEST(nonsense_is_passed_over)
{
	static const char range[] =
	    "{\"header\":{\"revision\":\"17\"},\"kvs\":[5,{},{\"key\":\"%\"},"
	    /* .../node/../x */
	    "{\"key\":\"L29uZWFjY2Vzcy9jL25vZGUvLi4veA==\",\"value\":\"e30=\"},"
	    /* .../node/good, {} */
	    "{\"key\":\"L29uZWFjY2Vzcy9jL25vZGUvZ29vZA==\",\"value\":\"e30=\"},"
	    /* .../node/good, {"address":"10.0.0.2:7411","incarnation":"1f"} */
	    "{\"key\":\"L29uZWFjY2Vzcy9jL25vZGUvZ29vZA==\",\"value\":"
	    "\"eyJhZGRyZXNzIjoiMTAuMC4wLjI6NzQxMSIsImluY2FybmF0aW9uIjoiMWYifQ==\"}]}";
	struct seen seen = {.n = 0};
	uint64_t revision = 0;

	ck_assert_int_eq(peers_etcd_read_range(range, sizeof(range) - 1, "/oneaccess/c/node/",
					       on_event, &seen, &revision),
			 0);
	ck_assert_uint_eq(revision, 17);
	ck_assert_uint_eq(seen.n, 1);
	ck_assert_str_eq(seen.events[0].node, "good");
	ck_assert_uint_eq(seen.events[0].entry.incarnation, 0x1f);
}
END_TEST

START_TEST(leases_are_read)
{
	static const char grant[] = "{\"ID\":\"7587877532187468801\",\"TTL\":\"10\"}";
	static const char alive[] = "{\"result\":{\"ID\":\"42\",\"TTL\":\"10\"}}";
	static const char dead[] = "{\"result\":{\"ID\":\"42\"}}";
	char lease[24] = "";

	ck_assert_int_eq(peers_etcd_read_grant(grant, sizeof(grant) - 1, lease), 0);
	ck_assert_str_eq(lease, "7587877532187468801");
	ck_assert_int_eq(peers_etcd_read_grant("{\"ID\":42}", 9, lease), PEERS_ETCD_E_BAD);
	ck_assert_int_eq(peers_etcd_read_keepalive(alive, sizeof(alive) - 1), 0);
	ck_assert_int_eq(peers_etcd_read_keepalive(dead, sizeof(dead) - 1), PEERS_ETCD_E_BAD);
	ck_assert_int_eq(peers_etcd_read_keepalive("[]", 2), PEERS_ETCD_E_BAD);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("peers");
	TCase *tcase = tcase_create("peers");
	SRunner *runner;
	int failed;

	make_entries();
	tcase_add_loop_test(tcase, hosts_are_parsed, 0, BASE_ARRAY_LEN(hosts));
	tcase_add_loop_test(tcase, lists_of_slurm_are_expanded, 0, BASE_ARRAY_LEN(lists));
	tcase_add_test(tcase, addresses_are_figures);
	tcase_add_test(tcase, addresses_are_of_the_kind_that_is_listened_on);
	tcase_add_loop_test(tcase, cells_are_everybodys, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_test(tcase, a_join_moves_few);
	tcase_add_test(tcase, a_key_comes_back);
	tcase_add_test(tcase, nonsense_is_passed_over);
	tcase_add_test(tcase, leases_are_read);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
