/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Amazon's STS, and those that speak like it: credentials of a role. */

#include "bucket/http.h"
#include "bucket/s3/s3_keys.h"

struct s3_sts_role {
	const char *arn;
	const char *session;     /* NULL: a name of ours */
	const char *external_id; /* NULL: none; and so are these */
	const char *duration;    /* seconds */
	const char *region;      /* of the STS that is asked */
};
/* By the credentials of somebody who may: AssumeRole; by a token of an identity provider: AssumeRoleWithWebIdentity. 0,
 * -EACCES, -EIO, -ENOMEM with diag. */
int s3_sts_assume(const struct s3_sts_role *role, const struct s3_keys *keys, struct http *http,
		  struct s3_keys *ret, struct diag *diag);
int s3_sts_web_identity(const struct s3_sts_role *role, const char *token, struct http *http,
			struct s3_keys *ret, struct diag *diag);
