/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A provider for tests, of scheme "plain": PLACE is a host and port without TLS. GET /?list=PREFIX&after=CURSOR answers lines of
 * size, Last-Modified, ETag and name, and perhaps "next CURSOR" as the last one. A header Token is what it signs by: the option
 * "token", with "+" behind it once it was refused.
 */

#include <stdio.h>

#include "bucket/provider.h"

struct plain {
	char *place, *token, commit[80];
	bool was_refused, lists;
};

static int plain_open(const struct bucket_url *url, const struct bucket_options *options,
		      struct http *http, void **ret, struct diag *diag)
{
	const char *token = bucket_option(options, "token"),
		   *found = bucket_option(options, "commit");
	struct plain *self = calloc(1, sizeof(*self));

	(void)http;
	if (token && strcmp(token, "none") == 0) {
		free(self);
		return diag_fail(diag, -EACCES, "there are no credentials");
	}
	snprintf(self->commit, sizeof(self->commit), "%s",
		 found                    ? found
		 : getenv("PLAIN_COMMIT") ? getenv("PLAIN_COMMIT")
					  : "none");
	self->place = strdup(url->place);
	self->token = strdup(token ? token : "");
	self->lists = !bucket_option(options, "listless");
	*ret = self;
	return 0;
}

static void plain_close(void *arg)
{
	struct plain *self = arg;

	free(self->place);
	free(self->token);
	free(self);
}

static const char *plain_commit(const void *self)
{
	return ((const struct plain *)self)->commit;
}

static int plain_list(void *arg, const char *prefix, const char *cursor, struct http_request *ret)
{
	const struct plain *self = arg;
	_cleanup_free_ char *escaped = http_escape(prefix, "");
	_cleanup_free_ char *after = http_escape(cursor ? cursor : "", "");

	return self->lists ? http_request_url(ret, "http://%s/?list=%s&after=%s", self->place,
					      escaped, after)
			   : -ENOTSUP;
}

static int plain_listed(void *arg, const struct http_answer *answer,
			const struct provider_sink *sink, char **ret_cursor, struct diag *diag)
{
	char *line, *rest = answer->body;

	(void)arg;
	while ((line = strsep(&rest, "\n")) && *line) {
		struct provider_object object;
		char etag[160], name[4096], cursor[4096];
		unsigned long long size;
		long long date;
		int r;

		if (sscanf(line, "next %4095s", cursor) == 1) {
			*ret_cursor = strdup(cursor);
			return 0;
		}
		if (sscanf(line, "%llu %lld %159s %4095[^\n]", &size, &date, etag, name) != 4)
			return diag_fail(diag, -EBADMSG, "no such line: %s", line);
		object = (struct provider_object){name, size, date, etag};
		r = sink->object(sink->arg, &object);
		if (r)
			return r;
	}
	return 0;
}

static int plain_request(void *arg, const char *method, const char *name, struct http_request *ret)
{
	const struct plain *self = arg;
	_cleanup_free_ char *escaped = http_escape(name, "/");

	ret->method = method;
	return http_request_url(ret, "http://%s/%s", self->place, escaped);
}

static int plain_sign(void *arg, struct http_request *request)
{
	const struct plain *self = arg;

	return http_request_header(request, "Token: %s%s", self->token,
				   self->was_refused ? "+" : "");
}

static int plain_refused(void *arg, struct http *http, const struct http_answer *answer,
			 const char *name, struct diag *ret_diag)
{
	struct plain *self = arg;
	const bool is_first = !self->was_refused;

	(void)http;
	self->was_refused = true;
	diag_set(ret_diag, "%s: refused with %ld", name, answer->status);
	return is_first;
}

static const struct provider_ops plain = {
    .scheme = "plain",
    .options = "token\0listless\0",
    .open = plain_open,
    .close = plain_close,
    .commit = plain_commit,
    .list = plain_list,
    .listed = plain_listed,
    .request = plain_request,
    .sign = plain_sign,
    .refused = plain_refused,
};

const struct provider_ops *const bucket_providers[] = {&plain};
const size_t bucket_n_providers = 1;
