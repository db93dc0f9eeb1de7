/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Providers: where objects lie. A provider is a file, and a line in provider_tbl.h. It makes requests and reads
 * answers; it moves no bytes itself but for credentials (http_ask()).
 *
 * A URL is SCHEME://PLACE/PATH. What is below it is a data set as a folder is: PATH without an end in "/" is an
 * object, if there is one of that name, or else a prefix to which "/" is added. PATH with "{" is a pattern of shards,
 * in one "folder".
 */

#include "base/base.h"
#include "bucket/http.h"

/* KEY=VALUE of the command line: "endpoint", "region", "profile", "anonymous" ... */
struct bucket_option {
	const char *key, *value;
};
struct bucket_options {
	const struct bucket_option *option;
	size_t n;
};
const char *bucket_option(const struct bucket_options *options,
			  const char *key); /* NULL: not given */

struct bucket_url {
	const struct provider_ops *ops;
	char *text;  /* the whole, as it was given */
	char *place; /* between "://" and the next "/": bucket, account/container, host */
	char *path;  /* behind that "/", not escaped: the key; ""; has_query: up to the "?" */
};

struct provider_object {
	const char *name; /* the whole key */
	uint64_t size;
	int64_t last_modified; /* seconds since 1970 */
	const char *etag; /* as a GET of it will say, with quotes or without; they do not count */
};
struct provider_sink {
	int (*object)(void *arg,
		      const struct provider_object *object); /* 0, or what list() gives then */
	void *arg;
};

/* What says, with the size, that an object is the one that was listed. What is not compared has no part in the object's
 * tag either, and a request asks for no match of it. */
enum provider_tag {
	PROVIDER_TAG_ETAG, /* ETag and Last-Modified of the list, of HEAD and of GET are alike */
	PROVIDER_TAG_VERSION, /* an answer's `version` is the list's etag; Last-Modified is not compared */
	PROVIDER_TAG_NAME, /* nothing else: while one is open, an object of that name never changes */
};

struct provider_ops {
	const char *scheme; /* "s3" */
	enum provider_tag tag;
	/* What is behind "?" in a URL is no part of keys: open() takes it from the URL's text. */
	bool has_query;
	const char *options; /* that may be given: "one\0other\0" */
	/* Looks for credentials: options, environment, files, the machine. *ret: the provider's own, NULL with an error. 0,
	 * -EINVAL, -EACCES, -ENOMEM with diag, which says what was looked for and what is to be done. */
	int (*open)(const struct bucket_url *url, const struct bucket_options *options,
		    struct http *http, void **ret, struct diag *diag);
	void (*close)(void *self);
	/* The request of a page of the list of what begins with prefix; cursor: what listed() gave, NULL for the first page.
	 * 0, -ENOTSUP: this provider cannot list (then each name is asked for by HEAD), -ENOMEM. */
	int (*list)(void *self, const char *prefix, const char *cursor, struct http_request *ret);
	/* The answer's objects go to the sink; the answer's status is 200. *ret_cursor: the caller's; NULL: it was the last
	 * page. 0, -EBADMSG with diag, or what the sink said. */
	int (*listed)(void *self, const struct http_answer *answer,
		      const struct provider_sink *sink, char **ret_cursor, struct diag *diag);
	/* The request of an object (GET or HEAD), signed; Range is the caller's to add, before sign(). Any thread. */
	int (*request)(void *self, const char *method, const char *name, struct http_request *ret);
	/* Signs list()'s and request()'s requests, right before they are sent; any thread. */
	int (*sign)(void *self, struct http_request *request);
	/* The answer is no: 301, 307, 400, 401, 403, 404. In a thread that may wait. 1: something was mended (region,
	 * credentials), it is worth one more try; 0: nothing can be done: ret_diag says what was asked, what the server said and how to mend it. */
	int (*refused)(void *self, struct http *http, const struct http_answer *answer,
		       const char *name, struct diag *ret_diag);
	/* NULL, or: which commit all that it reads is of, as open() has found out. Who takes its place has it as the option "commit". */
	const char *(*commit)(const void *self);
	/* NULL, or: a good answer of an object came from there, by redirections. Any thread. */
	void (*landed)(void *self, const char *name, const char *url);
	/* Before credentials expire: in a thread that may wait. Seconds until it is to be called again; 0: never. */
	unsigned (*renew)(void *self, struct http *http, struct diag *diag);
};

#define PROVIDER(name) extern const struct provider_ops provider_##name;
#include "bucket/provider_tbl.h"
#undef PROVIDER
/* providers.c, or a test's. */
extern const struct provider_ops *const bucket_providers[];
extern const size_t bucket_n_providers;

/* ---- provider.c ---- */

/* text: any. 0 and *ret, whose texts are the caller's; -EINVAL with diag: no such scheme, no place ... */
int bucket_url_parse(const char *text, struct bucket_url *ret, struct diag *diag);
void bucket_url_free(struct bucket_url *url);
/* Each is one that the provider has. 0, -EINVAL with diag. */
int bucket_options_check(const struct bucket_options *options, const struct provider_ops *ops,
			 struct diag *diag);
/* The time of change of an object's placeholder, as shmring/bucket.h says. last_modified: INT64_MIN: not said; etag: "": not said. */
int64_t bucket_tag(int64_t last_modified, const char *etag);
int64_t bucket_tag_listed(const struct provider_ops *ops, const struct provider_object *object);
int64_t bucket_tag_headed(const struct provider_ops *ops, const struct http_answer *answer);
/* Is it what was listed with that tag? */
bool bucket_tag_is(const struct provider_ops *ops, const struct http_answer *answer,
		   int64_t mtime_ns);

/* ---- provider_text.c ---- */

bool bucket_is_anonymous(const struct bucket_options *options);
/* A URL without "/" in the end, the caller's; NULL: there is no memory. */
char *bucket_bare(const char *url);
/* What stands behind the head of a name; "" of one that does not begin so. */
const char *bucket_behind(const char *name, const char *head);
