/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Services at an address of the machine itself: link-local, or of the loopback. A secret is sent to such ones alone, or by
 * https. Where there is no such machine nobody answers, so each question has a second.
 */

#include "bucket/s3/s3_machine.h"

#include <stdio.h>
#include <strings.h>

#include "bucket/bearer.h"
#include "bucket/s3/s3_find.h"

#define MOST_ANSWER 65536
#define MOST_TRIES 3 /* of a container's service, which may be beginning */

/* ---- containers ---- */

static bool is_host(const char *url, size_t bytes, const char *host)
{
	return bytes == strlen(host) && strncasecmp(url, host, bytes) == 0;
}

/* As Amazon's libraries have it: by https, this machine, and the two services. */
static bool may_have_secrets(const char *url)
{
	static const char *const hosts[] = {"localhost",     "127.0.0.1",      "[::1]",
					    "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
	size_t bytes;

	if (strncasecmp(url, "https://", 8) == 0)
		return true;
	if (strncasecmp(url, "http://", 7) != 0 || strchr(url, '@'))
		return false;
	url += 7;
	bytes = *url == '[' ? strcspn(url, "]") + 1 : strcspn(url, ":/?");
	for (size_t i = 0; i < BASE_ARRAY_LEN(hosts); i++)
		if (is_host(url, bytes, hosts[i]))
			return true;
	return false;
}

static int authorize(struct http_request *request, struct diag *diag)
{
	const char *path = base_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		   *said = base_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	_cleanup_wipe_ char *token = NULL;
	int r = 0;

	if (path)
		r = bearer_read(path, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token, diag);
	else if (said && (r = bearer_copy(said, "it", &token, diag)) == -EINVAL)
		r = diag_fail(diag, r,
			      "AWS_CONTAINER_AUTHORIZATION_TOKEN is not in printable characters");
	if (r && r != -ENOMEM)
		return -EACCES;
	if (!r && token)
		r = http_request_header(request, "Authorization: %s", token);
	return r;
}

static int ask_container(const char *url, struct http *http, struct s3_keys *ret, struct diag *diag)
{
	_cleanup_(http_request_free) struct http_request request = {.method = "GET",
								    .is_hasty = true};
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	struct diag why;
	int r = http_request_url(&request, "%s", url);

	r = r ? r : authorize(&request, diag);
	for (int tries = 0; !r && tries < MOST_TRIES && answer.status != 200; tries++) {
		http_answer_free(&answer);
		r = http_ask(http, &request, MOST_ANSWER, &answer, diag);
		if (r == -EIO && tries + 1 < MOST_TRIES)
			r = 0;
	}
	if (r)
		return r;
	if (answer.status != 200)
		return diag_fail(
		    diag, -EACCES,
		    "the container's service of credentials, %s, answers HTTP %ld: has "
		    "the task or pod a role?",
		    BASE_QUOTED(url, 200), answer.status);
	r = s3_keys_of_json(answer.body, answer.body_bytes, ret, &why);
	if (r == -EBADMSG)
		r = diag_fail(diag, -EACCES, "the container's service of credentials, %s: %s",
			      BASE_QUOTED(url, 200), why.text);
	if (!r)
		snprintf(ret->from, sizeof(ret->from), "the container's service of credentials");
	return r;
}

int s3_machine_container(struct http *http, struct s3_keys *ret, struct diag *diag)
{
	const char *relative = base_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
		   *full = base_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char url[1024];
	int n;

	if (relative)
		n = snprintf(url, sizeof(url), "http://169.254.170.2%s%s",
			     *relative == '/' ? "" : "/", relative);
	else if (full)
		n = snprintf(url, sizeof(url), "%s", full);
	else
		return S3_FIND_E_NONE;
	if (n < 0 || (size_t)n >= sizeof(url) || !may_have_secrets(url))
		return diag_fail(
		    diag, -EINVAL,
		    "AWS_CONTAINER_CREDENTIALS_FULL_URI=%s: must be by https, or of this "
		    "machine",
		    BASE_QUOTED(url, 200));
	return ask_container(url, http, ret, diag);
}

/* ---- machines ---- */

static const char *metadata(void)
{
	const char *said = base_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
		   *mode = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");

	if (said)
		return said;
	return mode && strcasecmp(mode, "IPv6") == 0 ? "http://[fd00:ec2::254]"
						     : "http://169.254.169.254";
}

/* path: below "/latest". header: "": none. */
static int ask_metadata(struct http *http, const char *method, const char *path, const char *header,
			struct http_answer *ret, struct diag *diag)
{
	_cleanup_(http_request_free) struct http_request request = {.method = method,
								    .is_hasty = true};
	const char *base = metadata();
	int r = http_request_url(&request, "%s%slatest/%s", base,
				 base[strlen(base) - 1] == '/' ? "" : "/", path);

	if (!r && *header)
		r = http_request_header(&request, "%s", header);
	return r ? r : http_ask(http, &request, MOST_ANSWER, ret, diag);
}

/* The token of version 2, as a header; where a machine has version 1 alone, none. */
static int metadata_header(struct http *http, char *ret, size_t size)
{
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	_cleanup_wipe_ char *token = NULL;
	struct diag diag;
	int r = ask_metadata(http, "PUT", "api/token",
			     "X-aws-ec2-metadata-token-ttl-seconds: 21600", &answer, &diag);

	ret[0] = '\0';
	if (r)
		return r == -ENOMEM ? r : S3_FIND_E_NONE;
	if (answer.status == 403 || answer.status == 404 || answer.status == 405)
		return 0;
	if (answer.status != 200 || !answer.body ||
	    bearer_copy(answer.body, "a token", &token, &diag) ||
	    (size_t)snprintf(ret, size, "X-aws-ec2-metadata-token: %s", token) >= size)
		return S3_FIND_E_NONE;
	return 0;
}

#define ROLES "meta-data/iam/security-credentials/"

/* The first line names the role. */
static int metadata_role(struct http *http, const char *header, char ret[300])
{
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	_cleanup_free_ char *name = NULL, *role = NULL;
	struct diag diag;
	int r = ask_metadata(http, "GET", ROLES, header, &answer, &diag);

	if (r)
		return r == -ENOMEM ? r : S3_FIND_E_NONE;
	if (answer.status != 200 || !answer.body)
		return S3_FIND_E_NONE;
	answer.body[strcspn(answer.body, "\n")] = '\0';
	if (bearer_copy(answer.body, "a role", &name, &diag) || !(role = http_escape(name, "")) ||
	    snprintf(ret, 300, ROLES "%s", role) >= 300)
		return S3_FIND_E_NONE;
	return 0;
}

int s3_machine_metadata(struct http *http, struct s3_keys *ret, struct diag *diag)
{
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	const char *off = getenv("AWS_EC2_METADATA_DISABLED");
	char header[1024], path[300];
	struct diag why;
	int r;

	if (off && strcasecmp(off, "true") == 0)
		return S3_FIND_E_NONE;
	r = metadata_header(http, header, sizeof(header));
	r = r ? r : metadata_role(http, header, path);
	r = r ? r : ask_metadata(http, "GET", path, header, &answer, diag);
	explicit_bzero(header, sizeof(header));
	if (r)
		return r;
	if (answer.status != 200)
		return diag_fail(diag, -EACCES,
				 "the machine's metadata (%s) have a role, but answer HTTP %ld",
				 metadata(), answer.status);
	r = s3_keys_of_json(answer.body, answer.body_bytes, ret, &why);
	if (r == -EBADMSG)
		r = diag_fail(diag, -EACCES, "the machine's metadata (%s): %s", metadata(),
			      why.text);
	if (!r)
		snprintf(ret->from, sizeof(ret->from), "the machine's role");
	return r;
}
