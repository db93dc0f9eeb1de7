/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whom this accessd can serve, as the kernel and the configuration say once, at the start. */

#include "base/identity.h"
#include "daemon/tenant/subids.h"

struct param;

struct tenant_rules {
	bool serves_all; /* may start processes as others */
	bool is_mapped; /* every uid has a number here, so the overflow uid is a user like others */
	uid_t overflow; /* what uids without a number here look like */
	gid_t nobodys;  /* the same of gids; (gid_t)-1: all have one */
	struct subids subids;   /* as whom a uid counts, if not as itself */
	bool shares;            /* what is open to everybody is read once for all */
	struct identity nobody; /* by whom, if so */
	char why_not[256];      /* it is wanted, and there is nobody to do it; else "" */
};

/* Looks; serves nobody but our own user when is_private, or without the capabilities. 0, or an error with
 * diag. */
int tenant_rules_init(struct tenant_rules *rules, const struct param *param, bool is_private,
		      struct diag *diag);
void tenant_rules_fini(struct tenant_rules *rules);
