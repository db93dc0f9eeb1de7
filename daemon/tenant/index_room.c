/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index comes from a reader as memory, and stays so until it is stored, or where it cannot be, as long as
 * it is open. How large it is, a user's files say. So it is part of `memory`, and of the user's share of
 * it, as his streams are: the reader is told before it makes one how much is left, and what it made is counted
 * here. One that lies in a file counts for nothing: its pages are the kernel's to take back.
 *
 * What gives way to streams gives way to an index: streams without jobs, and forms that are kept in memory.
 *
 * Nobody in particular pays for data that are open to all before there is a stream. Their indexes have a part of
 * a share, so that what one user calls open leaves the others theirs; what does not fit is opened as that user's own.
 */
#include "daemon/tenant/index_room.h"

#include "daemon/node.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/tenant.h"

#define PUBLIC_PART 4 /* of a share */

static uint64_t left_of(uint64_t most, uint64_t used, uint64_t idle)
{
	used -= BASE_MIN(used, idle);
	return most - BASE_MIN(used, most);
}

static uint64_t idle_memory(const struct node *node, const struct domain *payer)
{
	return node->memory.room ? node->memory.room->idle(node, payer) : 0;
}

static uint64_t share_of(const struct domain *domain)
{
	uint64_t most = tenant_memory_most(domain);

	return domain_is_shared(domain) ? most / PUBLIC_PART : most;
}

uint64_t index_room_most(const struct domain *domain)
{
	const struct node *node = domain->node;

	return BASE_MIN(
	    left_of(share_of(domain), tenant_memory(domain).used, idle_memory(node, domain)),
	    left_of(node->memory.budget, node->memory.used, idle_memory(node, NULL)));
}

bool index_room_take(struct domain *domain, uint64_t bytes, struct diag *diag)
{
	uint64_t most = index_room_most(domain);
	const char *name;
	uint64_t limit;

	if (bytes <= most) {
		while (tenant_free_bytes(domain) < bytes && tenant_make_room(domain))
			continue;
		domain_account(domain, (int64_t)bytes);
		return true;
	}
	limit = tenant_limit_of(domain, &name);
	diag_set(diag,
		 "the list of the dataset's samples takes %s of memory, and %s of the budget of %s "
		 "(%s) is free: close another dataset, or raise `memory`",
		 BASE_BYTES(bytes), BASE_BYTES(most), BASE_BYTES(limit), name);
	return false;
}
