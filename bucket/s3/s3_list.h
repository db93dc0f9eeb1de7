/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What S3 answers: a page of a list (ListObjectsV2), and what it says when it says no. */

#include "bucket/provider.h"

#define S3_LIST_MOST_KEYS 100000 /* of a page; S3 has 1000 */
#define S3_LIST_MOST_NAME 4096

/* The objects of a page go to the sink. *ret_next: the token of the next page, the caller's; NULL: it was the last one. 0,
 * -EBADMSG with diag, -ENOMEM, what the sink said. */
int s3_list_read(const char *text, size_t size, const struct provider_sink *sink, char **ret_next,
		 struct diag *diag);

struct s3_error { /* "": not said; what comes from outside is quoted before it is shown */
	char code[64], message[256], region[64], server_time[32];
};
/* Of S3 and of STS. What is no such answer leaves all empty. */
void s3_error_read(const char *text, size_t size, struct s3_error *ret);
