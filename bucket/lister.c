/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A path without an end in "/" may be an object or what others begin with. The first page of what begins with it says which:
 * stores list in the order of bytes, where a name comes before all that are longer. So one question more decides, and a HEAD,
 * which wants another permission, is asked only where a provider cannot list.
 */

#include "bucket/lister.h"

#include <pthread.h>
#include <stdio.h>

#include "base/hold.h"

#define LISTER_MOST_PAGE ((size_t)64 << 20)
#define LISTER_MOST_PAGES 1000000
#define LISTER_MOST_NAMES UINT64_C(1048576)
#define LISTER_THREADS 16
#define LISTER_TRIED 1000 /* objects without bytes before none is tried */

static void freep(struct http_request *request)
{
	http_request_free(request);
}

static void answer_freep(struct http_answer *answer)
{
	http_answer_free(answer);
}

/* What the store says of credentials is no other error, as one of a file's would be. */
static int error_of(const struct http_answer *answer)
{
	return answer->status == 401 || answer->status == 403 ? -EKEYREJECTED : -EACCES;
}

static int refuse(const struct lister *lister, const struct http_answer *answer, const char *name,
		  struct diag *diag)
{
	const struct provider_ops *ops = lister->url->ops;

	if (http_passes(answer->status))
		return diag_fail(diag, -EIO, "%s: the server says %ld, after all tries",
				 BASE_QUOTED(lister->url->place, 200), answer->status);
	return ops->refused(lister->provider, lister->http, answer, name, diag) > 0
		   ? 1
		   : error_of(answer);
}

/* What is in the way is said of the place that was meant. */
static int ask(const struct lister *lister, struct http *http, const struct http_request *request,
	       size_t most, struct http_answer *ret, struct diag *diag)
{
	struct diag why = {""};
	const int r = http_ask(http, request, most, ret, &why);

	return r ? diag_fail(diag, r, "%s://%s: %s", lister->url->ops->scheme,
			     BASE_QUOTED(lister->url->place, 200), why.text)
		 : 0;
}

static int make_page(const struct lister *lister, const char *prefix, const char *cursor,
		     struct http_request *ret)
{
	const struct provider_ops *ops = lister->url->ops;

	return ops->list ? ops->list(lister->provider, prefix, cursor, ret) : -ENOTSUP;
}

static int make_byte(const struct lister *lister, const char *key, const char *cursor,
		     struct http_request *ret)
{
	const int r = lister->url->ops->request(lister->provider, "GET", key, ret);

	(void)cursor;
	return r ? r : http_request_header(ret, "Range: bytes=0-0");
}

/* Where credentials or the region were mended, once more. */
static int ask_well(const struct lister *lister, const char *name, const char *cursor,
		    int (*make)(const struct lister *lister, const char *name, const char *cursor,
				struct http_request *ret),
		    struct http_answer *ret, struct diag *diag)
{
	const struct provider_ops *ops = lister->url->ops;

	for (unsigned tries = 0;; tries++) {
		_cleanup_(freep) struct http_request request = {.method = "GET"};
		_cleanup_(answer_freep) struct http_answer answer = {.body = NULL};
		int r;

		if (lister->before_page)
			lister->before_page(lister->arg);
		r = make(lister, name, cursor, &request);
		if (r)
			return r;
		r = ops->sign(lister->provider, &request);
		if (r)
			return diag_fail(diag, r, "a request cannot be signed: %s", strerror(-r));
		r = ask(lister, lister->http, &request, LISTER_MOST_PAGE, &answer, diag);
		if (r)
			return r;
		if (answer.status == 200 || (answer.status == 206 && make == make_byte)) {
			*ret = answer;
			answer.body = NULL;
			return 0;
		}
		r = refuse(lister, &answer, name, diag);
		if (r < 0)
			return r;
		if (tries > 2)
			return diag_fail(diag, error_of(&answer), "%s: the server says %ld again",
					 BASE_QUOTED(lister->url->place, 200), answer.status);
	}
}

static int ask_page(const struct lister *lister, const char *prefix, const char *cursor,
		    struct http_answer *ret, struct diag *diag)
{
	return ask_well(lister, prefix, cursor, make_page, ret, diag);
}

/* ---- a list ---- */

struct pass { /* of one list, to the sink */
	const struct lister *lister;
	const struct lister_sink *sink;
	uint64_t objects;
	struct diag *diag;
};

static int pass_on(void *arg, const struct provider_object *object)
{
	struct pass *pass = arg;
	const char *name = key_name(&pass->lister->scope, object->name);
	const struct lister_object passed = {
	    .name = name,
	    .size = object->size,
	    .mtime_ns = bucket_tag_listed(pass->lister->url->ops, object),
	    .last_modified = object->last_modified,
	};
	int r;

	if (!name)
		return 0;
	pass->objects++;
	r = pass->sink->object(pass->sink->arg, &passed, pass->diag);
	return r ? r : pass->lister->scope.kind == KEY_OBJECT; /* what follows is another */
}

static int list(const struct lister *lister, const struct lister_sink *sink, struct diag *diag)
{
	struct pass pass = {lister, sink, 0, diag};
	const struct provider_sink provided = {pass_on, &pass};
	/* mark: the cursor behind page 1, 2, 4, 8 ...: a list that goes round meets one of them again. */
	_cleanup_free_ char *cursor = NULL, *mark = NULL;

	for (unsigned pages = 0; pages < LISTER_MOST_PAGES; pages++) {
		_cleanup_(answer_freep) struct http_answer answer = {.body = NULL};
		_cleanup_free_ char *last = cursor;
		int r;

		cursor = NULL;
		r = ask_page(lister, lister->scope.prefix, last, &answer, diag);
		if (!r)
			r = lister->url->ops->listed(lister->provider, &answer, &provided, &cursor,
						     diag);
		if (r)
			return BASE_MIN(r, 0);
		if (!cursor)
			return pass.objects ? 0 : -ENOENT;
		if (mark && strcmp(cursor, mark) == 0)
			break;
		if ((pages & (pages + 1)) == 0) {
			free(mark);
			mark = strdup(cursor);
		}
	}
	return diag_fail(diag, -EBADMSG, "%s: the server's list has no end",
			 BASE_QUOTED(lister->url->place, 200));
}

static int is_same(void *arg, const struct provider_object *object)
{
	const struct lister *lister = arg;

	/* 1: it is found. One without bytes is no data set, but stands for a folder with some tools. */
	return object->size > 0 && strcmp(object->name, lister->scope.prefix) == 0;
}

/* Is the scope's object one, or is it a prefix? */
static int find_out(struct lister *lister, struct diag *diag)
{
	const struct provider_sink sink = {is_same, lister};
	_cleanup_(answer_freep) struct http_answer answer = {.body = NULL};
	_cleanup_free_ char *cursor = NULL;
	int r = ask_page(lister, lister->scope.prefix, NULL, &answer, diag);

	if (!r)
		r = lister->url->ops->listed(lister->provider, &answer, &sink, &cursor, diag);
	if (r == 1)
		key_scope_widen(&lister->scope);
	return r ? BASE_MIN(r, 0) : key_scope_below(&lister->scope);
}

/* ---- a HEAD of each ---- */

struct heads {
	const struct lister *lister;
	char **key;
	size_t n, room;
	pthread_mutex_t mutex; /* covers what follows, the sink, the diag and refused() */
	size_t next;
	int error;
	const struct lister_sink *sink;
	struct diag *diag;
};

static int keep(void *arg, const char *key)
{
	struct heads *heads = arg;

	if (!base_grow(&heads->key, &heads->room, heads->n + 1, sizeof(*heads->key)))
		return -ENOMEM;
	heads->key[heads->n] = strdup(key);
	return heads->key[heads->n] ? (heads->n++, 0) : -ENOMEM;
}

/* Providers are asked to mend something by one thread at a time. */
static int refuse_head(struct heads *heads, struct http *http, const struct http_answer *answer,
		       const char *key, struct diag *diag)
{
	struct lister mine = *heads->lister;
	BASE_HOLD(&heads->mutex);

	mine.http = http;
	return refuse(&mine, answer, key, diag);
}

static int ask_head(struct heads *heads, struct http *http, const char *key,
		    struct lister_object *ret, struct diag *diag)
{
	const struct lister *lister = heads->lister;
	const struct provider_ops *ops = lister->url->ops;

	for (unsigned tries = 0;; tries++) {
		_cleanup_(freep) struct http_request request = {.method = "HEAD"};
		_cleanup_(answer_freep) struct http_answer answer = {.body = NULL};
		bool is_there;
		int r = ops->request(lister->provider, "HEAD", key, &request);

		r = r ? r : ops->sign(lister->provider, &request);
		if (r)
			return diag_fail(diag, r, "\"%s\": no request of it can be made: %s",
					 BASE_QUOTED(key, 200), strerror(-r));
		r = ask(lister, http, &request, 65536, &answer, diag);
		if (r)
			return r;
		is_there = answer.status == 200 || answer.status == 206;
		if (is_there && answer.total == UINT64_MAX)
			return diag_fail(diag, -EBADMSG,
					 "\"%s\": the server does not say how many bytes it has",
					 BASE_QUOTED(key, 200));
		if (is_there && ops->tag == PROVIDER_TAG_ETAG &&
		    answer.last_modified == INT64_MIN && !*answer.etag)
			return diag_fail(
			    diag, -EBADMSG,
			    "\"%s\": the server says neither an ETag nor a "
			    "Last-Modified, so nobody could tell that it was replaced: "
			    "have it served by one that does",
			    BASE_QUOTED(key, 200));
		if (is_there) {
			*ret = (struct lister_object){
			    .name = key_name(&lister->scope, key),
			    .size = answer.total,
			    .mtime_ns = bucket_tag_headed(ops, &answer),
			    .last_modified = answer.last_modified,
			};
			return 0;
		}
		r = refuse_head(heads, http, &answer, key, diag);
		if (r < 0)
			return r;
		if (tries > 2)
			return diag_fail(diag, error_of(&answer),
					 "\"%s\": the server says %ld again", BASE_QUOTED(key, 200),
					 answer.status);
	}
}

static void *ask_heads(void *arg)
{
	struct heads *heads = arg;
	struct http *http = NULL;
	int error = http_new(&http);

	while (!error) {
		struct lister_object object;
		const char *key = NULL;
		struct diag diag = {""};

		{
			BASE_HOLD(&heads->mutex);
			if (!heads->error && heads->next < heads->n)
				key = heads->key[heads->next++];
		}
		if (!key)
			break;
		error = ask_head(heads, http, key, &object, &diag);
		{
			BASE_HOLD(&heads->mutex);
			if (!error && object.name && !heads->error)
				error = heads->sink->object(heads->sink->arg, &object, &diag);
			if (error && !heads->error) {
				heads->error = error;
				*heads->diag = diag;
			}
		}
	}
	http_free(http);
	return NULL;
}

static int head_each(const struct lister *lister, const struct lister_sink *sink, struct diag *diag)
{
	struct heads heads = {.lister = lister, .sink = sink, .diag = diag};
	pthread_t thread[LISTER_THREADS];
	unsigned n = 0;
	int r = key_each(&lister->scope, LISTER_MOST_NAMES, keep, &heads, diag);

	pthread_mutex_init(&heads.mutex, NULL);
	while (!r && n < LISTER_THREADS && n + 1 < heads.n &&
	       pthread_create(&thread[n], NULL, ask_heads, &heads) == 0)
		n++;
	if (!r)
		ask_heads(&heads);
	while (n > 0)
		pthread_join(thread[--n], NULL);
	pthread_mutex_destroy(&heads.mutex);
	for (size_t i = 0; i < heads.n; i++)
		free(heads.key[i]);
	free(heads.key);
	if (!r && !heads.error && heads.next < heads.n)
		return diag_fail(diag, -ENOMEM, "there is no memory");
	return r ? r : heads.error;
}

/* ---- either ---- */

static int refuse_list(const struct lister *lister, struct diag *diag)
{
	return diag_fail(diag, -ENOTSUP,
			 "%s://%s: such a server has no list of what it has: name one file, or "
			 "shards as in %s://%s/train-{000..123}.tar",
			 lister->url->ops->scheme, BASE_QUOTED(lister->url->place, 200),
			 lister->url->ops->scheme, BASE_QUOTED(lister->url->place, 200));
}

int lister_run(struct lister *lister, const struct lister_sink *sink, struct diag *diag)
{
	int r;

	key_scope_fini(&lister->scope);
	r = key_scope_of(lister->url->path, &lister->scope, diag);
	if (r)
		return r;
	if (lister->scope.kind == KEY_OBJECT)
		r = find_out(lister, diag);
	if (!r)
		r = list(lister, sink, diag);
	if (r == -ENOTSUP)
		r = lister->scope.kind == KEY_BELOW ? refuse_list(lister, diag)
						    : head_each(lister, sink, diag);
	if (r == -ENOENT)
		return diag_fail(diag, r, "%s: there is no object of that name, nor any below it",
				 BASE_QUOTED(lister->url->text, 300));
	if (r < 0 && !*diag->text)
		return diag_fail(diag, r, "the list cannot be read: %s", strerror(-r));
	return r;
}

/* ---- a try ---- */

struct trial {
	const struct lister *lister;
	char *key; /* of the first object that has bytes; NULL: there is none */
	unsigned n;
};

static int is_enough(void *arg, const struct lister_object *object, struct diag *diag)
{
	struct trial *trial = arg;
	const struct key_scope *scope = &trial->lister->scope;

	(void)diag;
	if (object->size == 0)
		return ++trial->n >= LISTER_TRIED;
	trial->key = base_format("%.*s%s", (int)scope->folder, scope->prefix, object->name);
	return trial->key ? 1 : -ENOMEM;
}

int lister_try(struct lister *lister, struct diag *diag)
{
	struct trial trial = {.lister = lister};
	const struct lister_sink sink = {is_enough, &trial};
	_cleanup_(answer_freep) struct http_answer answer = {.body = NULL};
	int r = BASE_MIN(lister_run(lister, &sink, diag), 0);

	if (!r && trial.key) {
		r = ask_well(lister, trial.key, NULL, make_byte, &answer, diag);
		if (r && !*diag->text)
			diag_set(diag, "the object cannot be read: %s", strerror(-r));
	}
	free(trial.key);
	return r;
}
