/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tenant/domain.h"

#include <stdio.h>

#include "daemon/node.h"

const char *domain_identity(const struct domain *domain, bool is_reader,
			    char ret[IDENTITY_TEXT_MAX])
{
	struct identity who = domain->who;

	if (domain->kind == DOMAIN_OWN)
		return NULL;
	who.has_groups = who.has_groups && is_reader;
	identity_format(&who, ret);
	return ret;
}

void domain_key(const struct domain *domain, char ret[IDENTITY_TEXT_MAX])
{
	const struct identity *who = &domain->who;

	*ret = '\0';
	if (domain->kind == DOMAIN_USER)
		snprintf(ret, IDENTITY_TEXT_MAX, "user:%u:%u", (unsigned)who->uid,
			 (unsigned)who->gid);
	else if (domain->kind == DOMAIN_PUBLIC)
		snprintf(ret, IDENTITY_TEXT_MAX, "public:%u", (unsigned)who->uid);
	else if (domain->kind == DOMAIN_NAMED)
		snprintf(ret, IDENTITY_TEXT_MAX, "name:%s:%u", domain->name, (unsigned)who->uid);
}

bool domain_is_shared(const struct domain *domain)
{
	return domain->kind == DOMAIN_PUBLIC || domain->kind == DOMAIN_NAMED;
}

void domain_account(struct domain *domain, int64_t bytes)
{
	memory_account(&domain->node->memory, &domain->memory, bytes);
}

bool domain_is_unused(const struct domain *domain)
{
	return !domain->users.n && LIST_EMPTY(&domain->sources) && LIST_EMPTY(&domain->streams);
}

struct domain *domain_ref(struct domain *domain)
{
	domain->users.n++;
	loop_timer_stop(domain->users.idle);
	return domain;
}

void domain_unref(struct domain *domain)
{
	if (!domain)
		return;
	domain->users.n--;
	domain_rest(domain);
}

void domain_rest(struct domain *domain)
{
	if (!domain->users.ending && domain_is_unused(domain))
		loop_timer_set(domain->users.idle,
			       domain->node->param.tenant_idle_s * UINT64_C(1000000000));
}
