/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose a subordinate uid is, by a file like /etc/subuid (subuid(5)): user:first:count, a range a line, the user
 * by name or number.
 */

#include "base/base.h"

#define SUBIDS_MOST 65536 /* ranges */

enum { SUBIDS_E_BAD = 1 };

struct subids_range {
	uid_t first, last, owner;
	unsigned line;
};

struct subids {                     /* zeroed: nobody has any */
	struct subids_range *range; /* by first, apart from each other */
	size_t n;
};

/* Reads the file. 0; SUBIDS_E_BAD or negative errno with diag, and *ret untouched. */
int subids_read(const char *path, struct subids *ret, struct diag *diag);
void subids_fini(struct subids *subids);
/* The user whose subordinate uid it is, or uid itself. */
uid_t subids_owner(const struct subids *subids, uid_t uid);
