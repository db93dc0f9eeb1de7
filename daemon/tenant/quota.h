/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Quotas of single users, as accessd.conf has them (quota_tbl.h): a table that is part of the parameters, and
 * is copied with them. */

#include <stdio.h>
#include "base/base.h"

#define QUOTA_PREFIX "tenant."
#define QUOTA_USERS 256
#define QUOTA_NAME_MAX 64

enum { QUOTA_E_BAD = 1 };

enum quota_kind {
#define QUOTA_BYTES(name, least, most, what) QUOTA_##name,
#define QUOTA_COUNT(name, least, most, what) QUOTA_##name,
#include "daemon/tenant/quota_tbl.h"
#undef QUOTA_BYTES
#undef QUOTA_COUNT
	QUOTA_KINDS
};

struct quota_user {
	char name[QUOTA_NAME_MAX]; /* as it is written: a name, or a number */
	uid_t uid;
	bool is_known;               /* to the user database, when it was read */
	uint64_t value[QUOTA_KINDS]; /* 0: not set */
};

struct quotas { /* zeroed: nobody has any */
	unsigned n;
	struct quota_user user[QUOTA_USERS];
};

/* Is this the name of a quota, and not of a parameter? */
bool quota_is_name(const char *name);
/* name: "tenant.USER.WHAT", of which USER may have dots. Who is in `known` (NULL: nobody) is not looked up again. 0, or QUOTA_E_BAD with diag and *quotas as it was. A user whom
 * the database does not have is logged; what is set for him is kept, for nobody. */
int quota_set(struct quotas *quotas, const struct quotas *known, const char *name,
	      const char *value, struct diag *diag);
/* What is set for that user; 0: nothing is. */
uint64_t quota_of(const struct quotas *quotas, uid_t uid, enum quota_kind kind);
/* Is that set for anybody? */
bool quota_is_set(const struct quotas *quotas, enum quota_kind kind);
/* One line a quota: name and what. For --help. */
void quota_print(FILE *out);
