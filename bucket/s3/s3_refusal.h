/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server's no, in words: what was asked, what it said, and what is to be done. */

#include "bucket/s3/s3_list.h"

struct s3_refusal {
	long status;
	const char *bucket, *host, *region;
	const char *name; /* of the object; NULL: of a list */
	const char *key;  /* as it may be shown, and where it was found; NULL: anonymous */
	bool pays;
	int64_t now;
	const struct s3_error *error;
};
void s3_refusal_say(const struct s3_refusal *refusal, struct diag *ret);
/* Other credentials may be what it wants: these have expired, or somebody has replaced them. */
bool s3_refusal_is_of_keys(long status, const struct s3_error *error);
/* It is, or may be, somewhere else than was asked. */
bool s3_refusal_is_of_place(long status, const struct s3_error *error);
