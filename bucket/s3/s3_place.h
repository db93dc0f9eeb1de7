/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a bucket is: s3://BUCKET and what was said about it become the addresses of requests. */

#include "base/base.h"

#define S3_PLACE_REGION 64
#define S3_PLACE_ENDPOINT 512

struct s3_place {
	char bucket[256];
	char endpoint
	    [S3_PLACE_ENDPOINT]; /* "https://host:port/path", without "/" at the end; "": Amazon's */
	char region[S3_PLACE_REGION];
	bool is_path_style;
};

/* bucket: as in the URL. style: "1", "path": the bucket stands in the path, "0", "virtual": in the host's name; NULL or another
 * word: as it works best. 0, -EINVAL with diag. */
int s3_place_init(struct s3_place *ret, const char *bucket, const char *endpoint,
		  const char *region, const char *style, struct diag *diag);
/* Can it be a part of a host's name? */
bool s3_place_is_region(const char *region);
/* What the names of Amazon's hosts end in, in that region. */
const char *s3_place_domain(const char *region);
/* The bucket's URL: no "/" at the end. The caller frees; NULL: no memory. */
char *s3_place_url(const struct s3_place *place);
/* The host's name and port, for people. */
const char *s3_place_host(const struct s3_place *place, char ret[320]);
