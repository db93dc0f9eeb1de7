/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Amazon's signature, version 4, of a request: as headers. Pure, but for the memory of headers. */

#include "bucket/http.h"
#include "bucket/s3/s3_keys.h"

struct
    s3_sign_key { /* of a day, a region and a service; kept by who signs, zero at first and when credentials change */
	char scope[128];
	uint8_t bytes[32];
};

/* The URL is in the canonical form: its path and query escaped as http_escape() does, the query's names sorted, each with "=".
 * Signed are the host, Range, Content-Type and all x-amz-...; what an earlier signing left is replaced. now: seconds
 * since 1970. 0, -ENOMEM. */
int s3_sign(struct http_request *request, const struct s3_keys *keys, const char *region,
	    const char *service, int64_t now, struct s3_sign_key *key);
