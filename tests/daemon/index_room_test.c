/* SPDX-License-Identifier: Apache-2.0 */

/* A list of samples that does not fit is refused in words: how much is asked, how much is left, of which budget. */

#include "daemon/tenant/index_room.h"

#include <string.h>

#include "base/base.h"
#include "daemon/node.h"
#include "daemon/tenant/domain.h"
#include "tests/suite.h"

#define MIB (UINT64_C(1) << 20)

static struct node node;
static struct domain domain;

static void begin(uint64_t tenant_memory)
{
	memset(&node, 0, sizeof(node));
	memset(&domain, 0, sizeof(domain));
	node.memory.budget = 64 * MIB;
	node.memory.source = "parameter `memory`";
	node.param.tenant_memory = tenant_memory;
	node.tenants.serves_all = tenant_memory != 0;
	domain.node = &node;
	LIST_INSERT_HEAD(&node.domains, &domain, link);
}

START_TEST(what_does_not_fit_is_told_with_the_budget)
{
	struct diag diag = {""};

	begin(0);
	ck_assert(!index_room_take(&domain, 65 * MIB, &diag));
	ck_assert_msg(strstr(diag.text,
			     "takes 65 MiB of memory, and 64 MiB of the budget of 64 MiB "
			     "(parameter `memory`) is free"),
		      "%s", diag.text);
	ck_assert_uint_eq(node.memory.used, 0);
}
END_TEST

START_TEST(a_users_share_is_told_as_such)
{
	struct diag diag = {""};

	begin(16 * MIB);
	ck_assert(!index_room_take(&domain, 17 * MIB, &diag));
	ck_assert_msg(strstr(diag.text, "of the budget of 16 MiB (a user's share, parameter "
					"`tenant_memory`)"),
		      "%s", diag.text);
}
END_TEST

START_TEST(what_fits_is_counted_until_it_is_left)
{
	struct diag diag = {""};

	begin(0);
	ck_assert(index_room_take(&domain, 40 * MIB, &diag));
	ck_assert_uint_eq(node.memory.used, 40 * MIB);
	ck_assert(!index_room_take(&domain, 25 * MIB, &diag));
	domain_account(&domain, -(int64_t)(40 * MIB));
	ck_assert_uint_eq(node.memory.used, 0);
	ck_assert_uint_eq(domain.memory.used, 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, what_does_not_fit_is_told_with_the_budget);
	tcase_add_test(tcase, a_users_share_is_told_as_such);
	tcase_add_test(tcase, what_fits_is_counted_until_it_is_left);
}

int main(void)
{
	return suite_run("index_room", add);
}
