/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/s3/s3_place.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "bucket/http.h"

bool s3_place_is_region(const char *region)
{
	size_t bytes = 0;

	for (; region[bytes]; bytes++)
		if (!islower((unsigned char)region[bytes]) &&
		    !isdigit((unsigned char)region[bytes]) && region[bytes] != '-')
			return false;
	return bytes > 0 && bytes < S3_PLACE_REGION;
}

const char *s3_place_domain(const char *region)
{
	return strncmp(region, "cn-", 3) == 0     ? "amazonaws.com.cn"
	       : strncmp(region, "eusc-", 5) == 0 ? "amazonaws.eu"
						  : "amazonaws.com";
}

/* A bucket's name that can be a part of a host's name. */
static bool is_label(const char *bucket)
{
	for (; *bucket; bucket++)
		if (!islower((unsigned char)*bucket) && !isdigit((unsigned char)*bucket) &&
		    *bucket != '-')
			return false;
	return true;
}

static int set_bucket(struct s3_place *place, const char *bucket, struct diag *diag)
{
	const size_t bytes = strlen(bucket);

	if (strncmp(bucket, "arn:", 4) == 0)
		return diag_fail(
		    diag, -EINVAL,
		    "s3://%s: an ARN cannot stand in a URL: write the access point's alias",
		    BASE_QUOTED(bucket, 200));
	if (bytes > 6 && strcmp(bucket + bytes - 6, "--x-s3") == 0)
		return diag_fail(
		    diag, -EINVAL,
		    "s3://%s is a directory bucket (S3 Express One Zone), which is not "
		    "supported: a general purpose bucket is",
		    BASE_QUOTED(bucket, 200));
	for (size_t i = 0; i <= bytes; i++)
		if (i == bytes ? bytes < 1 || bytes >= sizeof(place->bucket)
			       : !isalnum((unsigned char)bucket[i]) && !strchr("-._:", bucket[i]))
			return diag_fail(
			    diag, -EINVAL,
			    "s3://%s: a bucket's name has letters, digits, \"-\", \".\" "
			    "and \"_\"",
			    BASE_QUOTED(bucket, 200));
	memcpy(place->bucket, bucket, bytes + 1);
	return 0;
}

static int set_endpoint(struct s3_place *place, const char *endpoint, struct diag *diag)
{
	const bool has_scheme = strstr(endpoint, "://") != NULL;
	size_t bytes, scheme, host;
	char *at = place->endpoint;
	int n =
	    snprintf(at, sizeof(place->endpoint), "%s%s", has_scheme ? "" : "https://", endpoint);

	scheme = strncasecmp(at, "https://", 8) == 0  ? 8
		 : strncasecmp(at, "http://", 7) == 0 ? 7
						      : 0;
	host = strcspn(at + scheme, "/");
	for (bytes = 0; at[bytes] > ' ' && at[bytes] <= '~'; bytes++) {
		if (bytes < scheme + host)
			at[bytes] = (char)tolower((unsigned char)at[bytes]);
		if (strchr("?#@\"\\", at[bytes]))
			break;
	}
	if (n < 0 || (size_t)n >= sizeof(place->endpoint) || !scheme || !host || at[bytes])
		return diag_fail(diag, -EINVAL,
				 "endpoint=%s: must be the URL of a server, as in "
				 "endpoint=https://storage.example.org:9000",
				 BASE_QUOTED(endpoint, 200));
	while (bytes > scheme + host && at[bytes - 1] == '/')
		at[--bytes] = '\0';
	return 0;
}

/* The host that is signed is the one that is sent, and libcurl leaves out a port that is the scheme's own. */
static void drop_port(char *endpoint)
{
	const bool is_https = strncmp(endpoint, "https://", 8) == 0;
	char *host = endpoint + (is_https ? 8 : 7), *end = host + strcspn(host, "/");
	const char *port = is_https ? ":443" : ":80";
	const size_t bytes = strlen(port);

	if ((size_t)(end - host) > bytes && strncmp(end - bytes, port, bytes) == 0)
		memmove(end - bytes, end, strlen(end) + 1);
}

int s3_place_init(struct s3_place *ret, const char *bucket, const char *endpoint,
		  const char *region, const char *style, struct diag *diag)
{
	struct s3_place place = {.bucket = ""};
	int r = set_bucket(&place, bucket, diag);

	if (!r && endpoint && *endpoint)
		r = set_endpoint(&place, endpoint, diag);
	if (r)
		return r;
	if (!region || !*region)
		region = "us-east-1";
	if (!s3_place_is_region(region))
		return diag_fail(diag, -EINVAL,
				 "region \"%s\": must be a name as in region=eu-central-1",
				 BASE_QUOTED(region, 100));
	strcpy(place.region, region);
	drop_port(place.endpoint);
	place.is_path_style = *place.endpoint || !is_label(place.bucket);
	if (style && (strcmp(style, "1") == 0 || strcmp(style, "path") == 0))
		place.is_path_style = true;
	if (style && (strcmp(style, "0") == 0 || strcmp(style, "virtual") == 0))
		place.is_path_style = false;
	*ret = place;
	return 0;
}

static void base_of(const struct s3_place *place, char ret[S3_PLACE_ENDPOINT])
{
	if (*place->endpoint)
		memcpy(ret, place->endpoint, S3_PLACE_ENDPOINT);
	else
		snprintf(ret, S3_PLACE_ENDPOINT, "https://s3.%s.%s", place->region,
			 s3_place_domain(place->region));
}

char *s3_place_url(const struct s3_place *place)
{
	_cleanup_free_ char *bucket = http_escape(place->bucket, "");
	char base[S3_PLACE_ENDPOINT], *host;

	if (!bucket)
		return NULL;
	base_of(place, base);
	host = strstr(base, "://") + 3;
	if (place->is_path_style)
		return base_format("%s/%s", base, bucket);
	return base_format("%.*s%s.%s", (int)(host - base), base, bucket, host);
}

const char *s3_place_host(const struct s3_place *place, char ret[320])
{
	char base[S3_PLACE_ENDPOINT];
	const char *host;

	base_of(place, base);
	host = strstr(base, "://") + 3;
	snprintf(ret, 320, "%.*s", (int)strcspn(host, "/"), host);
	return ret;
}
