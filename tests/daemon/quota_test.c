/* SPDX-License-Identifier: Apache-2.0 */

/* Quotas of single users: lines good and bad, whose they are, that they are part of the parameters, and what a tenant may have by
 * them. */

#include "daemon/tenant/quota.h"
#include "daemon/node.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"
#include "daemon/param.h"
#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

START_TEST(each_has_his_own)
{
	static struct quotas quotas;
	struct diag diag;

	memset(&quotas, 0, sizeof(quotas));
	ck_assert(quota_is_name("tenant.anna.share") && !quota_is_name("tenant_memory"));
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.65201.share", "3", &diag), 0);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.65201.memory", "1.5G", &diag), 0);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.root.jobs", "2", &diag), 0);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.no.such.user.jobs", "7", &diag), 0);
	ck_assert_uint_eq(quotas.n, 3);
	ck_assert_uint_eq(quota_of(&quotas, 65201, QUOTA_share), 3);
	ck_assert_uint_eq(quota_of(&quotas, 65201, QUOTA_memory), UINT64_C(3) << 29);
	ck_assert_uint_eq(quota_of(&quotas, 65201, QUOTA_jobs), 0);
	ck_assert_uint_eq(quota_of(&quotas, 0, QUOTA_jobs), 2); /* and not that of nobody */
	ck_assert_uint_eq(quota_of(&quotas, 65202, QUOTA_share), 0);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.0.jobs", "5", &diag),
			 0); /* the same user */
	ck_assert_uint_eq(quota_of(&quotas, 0, QUOTA_jobs), 5);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.root.jobs", "4", &diag), 0);
	ck_assert_uint_eq(quota_of(&quotas, 0, QUOTA_jobs), 4); /* what was said last */
}
END_TEST

/* By that a database which is down, or says something else now, changes nothing for who is known. */
START_TEST(who_is_known_is_not_looked_up_again)
{
	static struct quotas known, quotas;
	struct diag diag;

	memset(&known, 0, sizeof(known));
	memset(&quotas, 0, sizeof(quotas));
	ck_assert_int_eq(quota_set(&known, NULL, "tenant.root.share", "2", &diag), 0);
	ck_assert_int_eq(quota_set(&known, NULL, "tenant.no.such.user.share", "2", &diag), 0);
	known.user[0].uid = 65203;
	ck_assert_int_eq(quota_set(&quotas, &known, "tenant.root.share", "3", &diag), 0);
	ck_assert_int_eq(quota_set(&quotas, &known, "tenant.no.such.user.share", "3", &diag), 0);
	ck_assert_uint_eq(quota_of(&quotas, 65203, QUOTA_share), 3);
	ck_assert(quotas.user[0].is_known && !quotas.user[1].is_known);
}
END_TEST

static const struct {
	const char *name, *value, *text;
} bad[] = {
    {"tenant.anna", "1", "write tenant.USER.memory"},
    {"tenant..share", "1", "write tenant.USER.memory"},
    {"tenant.", "1", "write tenant.USER.memory"},
    {"tenant.anna.luck", "1", "no \"luck\": write share, memory"},
    {"tenant.anna.", "1", "no \"\": write share"},
    {"tenant.anna.share", "0", "range 1 .. 1000"},
    {"tenant.anna.share", "1001", "range 1 .. 1000"},
    {"tenant.anna.share", "1.5", "not a whole number"},
    {"tenant.anna.share", "", "not a whole number"},
    {"tenant.anna.memory", "much", "not a size"},
    {"tenant.anna.read_bandwidth", "1K", "range 65536"},
    {"tenant.anna.streams", "-1", "not a whole number"},
    {"tenant.a123456789b123456789c123456789d123456789e123456789f123456789g123.jobs", "1", "write"},
};

START_TEST(what_is_wrong_is_said)
{
	static struct quotas quotas;
	struct diag diag = {""};

	memset(&quotas, 0, sizeof(quotas));
	ck_assert_int_eq(quota_set(&quotas, NULL, bad[_i].name, bad[_i].value, &diag), QUOTA_E_BAD);
	ck_assert_msg(strstr(diag.text, bad[_i].text), "%s", diag.text);
	ck_assert_uint_eq(quotas.n, 0);
}
END_TEST

START_TEST(there_is_a_most)
{
	static struct quotas quotas;
	struct diag diag = {""};
	char name[64];

	memset(&quotas, 0, sizeof(quotas));
	for (unsigned i = 0; i < QUOTA_USERS; i++) {
		snprintf(name, sizeof(name), "tenant.%u.jobs", 70000 + i);
		ck_assert_int_eq(quota_set(&quotas, NULL, name, "1", &diag), 0);
	}
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.80000.jobs", "1", &diag), QUOTA_E_BAD);
	ck_assert_msg(strstr(diag.text, "256 users"), "%s", diag.text);
	ck_assert_int_eq(quota_set(&quotas, NULL, "tenant.70000.jobs", "2", &diag), 0);
	ck_assert_uint_eq(quota_of(&quotas, 70000, QUOTA_jobs), 2);
}
END_TEST

START_TEST(they_are_parameters)
{
	static struct param param, wanted;
	struct param_change change;
	struct diag diag = {""};

	param_init(&param);
	param_init(&wanted);
	param_take(&param, &wanted, &change);
	ck_assert_str_eq(change.taken, "");
	ck_assert_int_eq(param_set(&wanted, "tenant.65201.streams = 4 ", &diag), 0);
	ck_assert_int_eq(param_set(&wanted, "tenant.65201.luck = 4", &diag), PARAM_E_BAD);
	ck_assert_int_eq(param_set(&wanted, "tenants.65201.share = 4", &diag), PARAM_E_BAD);
	param_take(&param, &wanted, &change);
	ck_assert_str_eq(change.taken, "tenant.*");
	ck_assert_str_eq(change.left, "");
	ck_assert_uint_eq(quota_of(&param.quotas, 65201, QUOTA_streams), 4);
	param_take(&param, &wanted, &change);
	ck_assert_str_eq(change.taken, "");
}
END_TEST

START_TEST(what_is_set_for_one_goes_before_what_is_for_all)
{
	static struct node node;
	struct domain anna = {.node = &node, .kind = DOMAIN_USER, .tenant = 65201},
		      bert = {.node = &node, .kind = DOMAIN_USER, .tenant = 65202};
	struct diag diag = {""};

	memset(&node, 0, sizeof(node));
	param_init(&node.param);
	node.tenants.serves_all = true;
	node.memory.budget = 1 << 30;
	node.param.tenant_streams = 7;
	ck_assert(!quota_is_set(&node.param.quotas, QUOTA_read_bandwidth));
	for (unsigned i = 0; i < 7; i++) {
		static const char *const set[] = {
		    "share=3",   "memory=768M", "cache=1G",           "clients=5",
		    "streams=2", "jobs=1",      "read_bandwidth=200M"};
		char line[64];

		snprintf(line, sizeof(line), "tenant.65201.%s", set[i]);
		ck_assert_int_eq(param_set(&node.param, line, &diag), 0);
	}
	ck_assert_uint_eq(tenant_share(&anna), 3);
	ck_assert_uint_eq(tenant_memory_most(&anna), 768 << 20);
	ck_assert_uint_eq(tenant_cache_most(&anna), 1 << 30);
	ck_assert_uint_eq(tenant_conns_most(&node, 65201, 100), 5);
	ck_assert_uint_eq(tenant_streams_most(&anna), 2);
	ck_assert_uint_eq(tenant_jobs_most(&anna), 1);
	ck_assert_uint_eq(tenant_read_most(&anna), 200 << 20);
	ck_assert_uint_eq(tenant_read_most(&bert), 0);
	ck_assert(quota_is_set(&node.param.quotas, QUOTA_read_bandwidth));
	ck_assert_uint_eq(tenant_share(&bert), 1);
	ck_assert_uint_eq(tenant_memory_most(&bert), 512 << 20);
	ck_assert_uint_eq(tenant_cache_most(&bert), UINT64_C(2) << 30);
	ck_assert_uint_eq(tenant_conns_most(&node, 65202, 100), 25);
	ck_assert_uint_eq(tenant_streams_most(&bert), 7);
	ck_assert_uint_eq(tenant_jobs_most(&bert), UINT64_MAX);
	node.memory.budget = 1 << 20; /* never more than there is */
	ck_assert_uint_eq(tenant_memory_most(&anna), 1 << 20);
	node.tenants.serves_all = false; /* the only one has all */
	ck_assert_uint_eq(tenant_jobs_most(&anna), UINT64_MAX);
	ck_assert_uint_eq(tenant_streams_most(&anna), UINT64_MAX);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_has_his_own);
	tcase_add_test(tcase, who_is_known_is_not_looked_up_again);
	tcase_add_loop_test(tcase, what_is_wrong_is_said, 0, BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, there_is_a_most);
	tcase_add_test(tcase, they_are_parameters);
	tcase_add_test(tcase, what_is_set_for_one_goes_before_what_is_for_all);
}

int main(void)
{
	return suite_run("quota", add);
}
