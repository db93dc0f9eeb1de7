/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Objects of any server of HTTP: https://HOST/PATH/file.tar, https://HOST/PATH/train-{000..123}.tar. There is no list: each
 * name is asked for by HEAD. A name is as the URL has it, so it may be escaped; a "#" in it is a letter of the name. What
 * stands behind "?", such as the signature of a presigned URL, goes with each name, and is told to nobody. A server that
 * refuses HEAD, as presigned URLs are of one method, is asked for the first byte instead.
 *
 *	option             what
 *	token_file=PATH    a bearer token, read anew when the server says that it is none: only for https://, or for
 *	                   this machine. Redirections to other hosts are followed without it.
 *
 * No variable is read but those of libcurl (HTTPS_PROXY, NO_PROXY, ...).
 *
 * The mutex covers token, no_head and mended_ns; nothing is done under it but copying.
 */

#include <stdio.h>

#include "base/hold.h"
#include "bucket/bearer.h"
#include "bucket/provider.h"

/* What a URL may have beside letters and digits; it stays as it is, "%" too. */
#define HTTPS_KEEP "/?:@!$&'()*+,;=%[]"
#define HTTPS_FRESH_NS (UINT64_C(10) * 1000000000)

struct https {
	char *base;       /* "https://HOST" */
	char *query;      /* "?..."; "" */
	char *token_file; /* NULL: no token */
	pthread_mutex_t mutex;
	char *token;
	bool no_head;
	uint64_t mended_ns; /* when one of these became another; 0: never */
};

static void https_close(void *self)
{
	struct https *https = self;

	if (!https)
		return;
	base_wipe(&https->token);
	base_wipe(&https->query);
	free(https->token_file);
	free(https->base);
	pthread_mutex_destroy(&https->mutex);
	free(https);
}

static void https_closep(struct https **https)
{
	https_close(*https);
}

static int https_read_token(struct https *https, char **ret, struct diag *diag)
{
	return bearer_read(https->token_file, "the token of token_file=", ret, diag);
}

static int https_open(const struct bucket_url *url, const struct bucket_options *options,
		      struct http *http, void **ret, struct diag *diag)
{
	_cleanup_(https_closep) struct https *https = calloc(1, sizeof(*https));
	const char *file = bucket_option(options, "token_file"), *query = strchr(url->text, '?');
	int r;

	(void)http;
	if (!https)
		return -ENOMEM;
	pthread_mutex_init(&https->mutex, NULL);
	if (strchr(url->place, '@'))
		return diag_fail(
		    diag, -EINVAL,
		    "%s: a URL here has no user and no password, as URLs stand in logs: "
		    "put a token into a file and say token_file=PATH",
		    url->ops->scheme);
	https->base = base_format("%s://%s", url->ops->scheme, url->place);
	https->query = strdup(query ? query : "");
	https->token_file = file ? strdup(file) : NULL;
	if (!https->base || !https->query || (file && !https->token_file))
		return -ENOMEM;
	if (file && !bearer_may_go(https->base))
		return diag_fail(diag, -EINVAL,
				 "token_file=: to %s a token would go in the clear: say https://",
				 BASE_QUOTED(https->base, 256));
	r = file ? https_read_token(https, &https->token, diag) : 0;
	if (r < 0)
		return r;
	*ret = base_take_ptr(https);
	return 0;
}

static int https_list(void *self, const char *prefix, const char *cursor, struct http_request *ret)
{
	(void)self, (void)prefix, (void)cursor, (void)ret;
	return -ENOTSUP;
}

static int https_request(void *self, const char *method, const char *name, struct http_request *ret)
{
	struct https *https = self;
	_cleanup_free_ char *escaped = http_escape(name, HTTPS_KEEP);
	bool by_get;
	int r;

	if (!escaped)
		return -ENOMEM;
	{
		BASE_HOLD(&https->mutex);
		by_get = https->no_head && strcmp(method, "HEAD") == 0;
	}
	ret->method = by_get ? "GET" : method;
	ret->follows = true;
	r = http_request_url(ret, "%s/%s%s", https->base, escaped,
			     strchr(name, '?') ? "" : https->query);
	return r == 0 && by_get ? http_request_header(ret, "Range: bytes=0-0") : r;
}

static int https_sign(void *self, struct http_request *request)
{
	struct https *https = self;

	BASE_HOLD(&https->mutex);
	return bearer_authorize(request, https->token);
}

/* Another token than the one that was refused, if there is one by now. */
static void https_new_token(struct https *https)
{
	_cleanup_wipe_ char *token = NULL;
	struct diag ignored;

	if (!https->token_file || https_read_token(https, &token, &ignored) < 0)
		return;
	BASE_HOLD(&https->mutex);
	if (strcmp(token, https->token) == 0)
		return;
	base_wipe(&https->token);
	https->token = base_take_ptr(token);
	https->mended_ns = base_now_ns();
}

static void https_no_head(struct https *https)
{
	BASE_HOLD(&https->mutex);
	if (!https->no_head)
		https->mended_ns = base_now_ns();
	https->no_head = true;
}

/* What was refused may have been asked before that. */
static bool https_is_mended(struct https *https)
{
	BASE_HOLD(&https->mutex);
	return https->mended_ns && base_now_ns() - https->mended_ns < HTTPS_FRESH_NS;
}

static const char *https_mend(const struct https *https, long status)
{
	if (status == 404 || status == 410)
		return "there is nothing of that name: is the path right?";
	if (status == 400 || status == 401 || status == 403) {
		if (https->token_file)
			return "it does not take the token in token_file= for it";
		if (*https->query)
			return "is what stands behind the \"?\" of the URL still valid? A "
			       "presigned URL ends after hours";
		return "it wants to know who asks: put a bearer token into a file and say "
		       "token_file=PATH, or ask for a presigned URL";
	}
	return "it does not give it";
}

static int https_refused(void *self, struct http *http, const struct http_answer *answer,
			 const char *name, struct diag *ret_diag)
{
	struct https *https = self;
	_cleanup_free_ char *path = strndup(name, strcspn(name, "?"));
	char answered[BEARER_ANSWERED];
	const long status = answer->status;
	/* S3 and its like: 403. A server that knows no HEAD: 405, 501. */
	const bool is_head =
	    (status == 403 || status == 405 || status == 501) && answer->body_bytes == 0;

	(void)http;
	if (status == 401)
		https_new_token(https);
	if (is_head)
		https_no_head(https);
	if ((status == 401 || is_head) && https_is_mended(https))
		return 1;
	diag_set(ret_diag, "%s/%s: the server answers %s: %s", https->base,
		 BASE_QUOTED(path ? path : "", 256), bearer_answered(answer, answered),
		 https_mend(https, status));
	return 0;
}

static unsigned https_renew(void *self, struct http *http, struct diag *diag)
{
	(void)self, (void)http, (void)diag;
	return 0;
}

#define HTTPS_OPS(name)                                                              \
	{                                                                            \
		.scheme = name, .tag = PROVIDER_TAG_ETAG, .has_query = true,         \
		.options = "token_file\0", .open = https_open, .close = https_close, \
		.list = https_list, .request = https_request, .sign = https_sign,    \
		.refused = https_refused, .renew = https_renew,                      \
	}
const struct provider_ops provider_https = HTTPS_OPS("https");
const struct provider_ops provider_http = HTTPS_OPS("http");
