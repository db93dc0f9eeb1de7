/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tenant/tenant_rules.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/param.h"

static bool is_all_mapped(const char *map)
{
	FILE *file = fopen(map, "re");
	unsigned long long inside, outside, count;
	bool is_all = false;

	if (file) {
		is_all = fscanf(file, "%llu %llu %llu", &inside, &outside, &count) == 3 &&
			 inside == 0 && count >= UINT32_MAX;
		fclose(file);
	}
	return is_all;
}

static unsigned overflow_of(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned id = 65534;

	if (file) {
		if (fscanf(file, "%u", &id) != 1)
			id = 65534;
		fclose(file);
	}
	return id;
}

/* Finds who reads public data. false: there is nobody. */
static bool find_nobody(struct tenant_rules *rules, const char *user)
{
	const char *why = NULL;

	if (identity_of_user(user, &rules->nobody))
		why = "there is no such user: make it (systemd-sysusers, or useradd --system), or "
		      "name another one, or a number that is nobody's";
	else if (rules->nobody.uid == 0 || rules->nobody.uid == geteuid() ||
		 rules->nobody.gid == getegid())
		why = "it has to be another user than accessd and root, with another group";
	if (why)
		snprintf(rules->why_not, sizeof(rules->why_not), "public_user \"%.64s\": %s", user,
			 why);
	return !why;
}

int tenant_rules_init(struct tenant_rules *rules, const struct param *param, bool is_private,
		      struct diag *diag)
{
	rules->serves_all = !is_private && identity_can_switch();
	rules->is_mapped = is_all_mapped("/proc/self/uid_map");
	rules->overflow = overflow_of("/proc/sys/kernel/overflowuid");
	rules->nobodys = is_all_mapped("/proc/self/gid_map")
			     ? (gid_t)-1
			     : overflow_of("/proc/sys/kernel/overflowgid");
	rules->why_not[0] = '\0';
	rules->shares =
	    rules->serves_all && param->share_public && find_nobody(rules, param->public_user);
	if (rules->why_not[0])
		log_line(LOG_LEVEL_WARN, "public-off",
			 "reason=\"%s\" text=\"each user's data are read for him alone\"",
			 rules->why_not);
	if (!rules->serves_all || !*param->subordinate_ids)
		return 0;
	return subids_read(param->subordinate_ids, &rules->subids, diag);
}

void tenant_rules_fini(struct tenant_rules *rules)
{
	subids_fini(&rules->subids);
}
