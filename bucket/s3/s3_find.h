/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where credentials are looked for, in the order of Amazon's own libraries. */

#include "bucket/http.h"
#include "bucket/s3/s3_keys.h"

enum { S3_FIND_E_NONE = 1 }; /* of one place: there are none, so the next one is asked */

struct s3_find {
	const char *profile; /* of an option: then no variable is looked at; NULL */
	const char *region;  /* of the STS that may be asked */
};
/* May wait, for servers and programs. 0; -EACCES with diag, which says where it looked and what to do; -EINVAL, -EIO, -ENOMEM
 * with diag. */
int s3_find_keys(const struct s3_find *find, struct http *http, struct s3_keys *ret,
		 struct diag *diag);
/* The profile that is meant: find's, AWS_PROFILE, AWS_DEFAULT_PROFILE, "default". */
const char *s3_find_profile(const char *said);
bool s3_find_is_named(const char *said); /* by an option or a variable */
