/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data sets of the Hugging Face Hub: hf://datasets/ORG/NAME[@REVISION]/path. A revision is a branch, a tag, a commit,
 * refs/pr/N or refs/convert/NAME, with "/" or "%2F"; main without one. It is looked up once, when access-bucket begins, so
 * that all that is read is of one commit, also by an access-bucket that takes its place: a later one is seen by jobs that begin
 * when the last one has ended, behind the last job.
 *
 * An object's tag is its hash in git, or in LFS where its bytes are there: it is the same in each commit that has the same
 * bytes. An answer comes from the Hub or, by a redirection, from a CDN with an ETag of its own, so no answer is compared with
 * the list (PROVIDER_TAG_NAME): behind the URL of a commit there is one file for ever.
 *
 *	option             what
 *	endpoint=URL       before HF_ENDPOINT; else https://huggingface.co
 *	token_file=PATH    before all that follows
 *	anonymous=1        no token
 *
 *	variable           what
 *	HF_ENDPOINT        a mirror's URL
 *	HF_TOKEN           the token; before it had this name: HUGGING_FACE_HUB_TOKEN
 *	HF_TOKEN_PATH      a file with it; else HF_HOME/token, XDG_CACHE_HOME/huggingface/token,
 *	                   ~/.cache/huggingface/token, which `hf auth login` writes
 *
 * A token goes to https:// or to this machine alone, and never to the host of a redirection. All of struct hf but what is of
 * the list under way stays as open() made it, so it has no mutex; hf_landing.c has one of its own.
 */

#include <stdio.h>
#include <strings.h>

#include "base/json.h"
#include "bucket/bearer.h"
#include "bucket/hf_landing.h"
#include "bucket/provider.h"

#define HF_MOST_ANSWER (UINT64_C(32) << 20) /* a page has a thousand files */
#define HF_COMMIT 40

struct hf {
	char *endpoint;       /* without a "/" in the end */
	char *head;           /* "ORG/NAME@REVISION/", which all names begin with */
	char *repo;           /* "ORG/NAME" */
	char *revision;       /* as a person says it */
	char commit[65];      /* its hash */
	char *token, *origin; /* NULL: none; where it is from, for messages */
	struct hf_landings *landings;
	/* of the list under way: */
	char *prefix; /* what is behind the head */
	bool is_one;  /* its first page is about the file of this name */
};

static void hf_close(void *self)
{
	struct hf *hf = self;

	if (!hf)
		return;
	hf_landings_free(hf->landings);
	base_wipe(&hf->token);
	free(hf->origin);
	free(hf->prefix);
	free(hf->revision);
	free(hf->repo);
	free(hf->head);
	free(hf->endpoint);
	free(hf);
}

static void hf_closep(struct hf **hf)
{
	hf_close(*hf);
}

/* ---- where and who ---- */

/* Letters of a revision that stand in the URL, up to the path. */
static size_t hf_revision_length(const char *text)
{
	static const char *const refs[] = {"refs/pr/", "refs/convert/"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(refs); i++)
		if (strncmp(text, refs[i], strlen(refs[i])) == 0)
			return strlen(refs[i]) + strcspn(text + strlen(refs[i]), "/");
	return strcspn(text, "/");
}

/* "%2F" is a "/": other escapes are not to be expected in a branch's name. */
static void hf_unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (strncasecmp(text, "%2f", 3) == 0) {
			*to++ = '/';
			text += 2;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

static int hf_set_place(struct hf *hf, const struct bucket_url *url, struct diag *diag)
{
	const size_t org = strcspn(url->path, "/"), rest = org + (url->path[org] == '/');
	const size_t name = strcspn(url->path + rest, "/@");
	const char *at = url->path + rest + name;
	const size_t revision = *at == '@' ? hf_revision_length(++at) : 0;
	const size_t head = (size_t)(at - url->path) + revision;

	if (strcmp(url->place, "datasets") != 0 || org == 0 || name == 0 ||
	    (at[-1] == '@' && revision == 0))
		return diag_fail(diag, -EINVAL,
				 "hf://%s/%s: the Hub's data sets are hf://datasets/ORG/NAME/path "
				 "or hf://datasets/ORG/NAME@REVISION/path",
				 BASE_QUOTED(url->place, 128), BASE_QUOTED(url->path, 256));
	hf->repo = strndup(url->path, rest + name);
	hf->revision = revision ? strndup(at, revision) : strdup("main");
	if (!hf->repo || !hf->revision)
		return -ENOMEM;
	hf_unescape(hf->revision);
	hf->head = base_format("%.*s/", (int)head, url->path);
	return hf->head ? 0 : -ENOMEM;
}

static int hf_set_endpoint(struct hf *hf, const struct bucket_options *options)
{
	const char *named = bucket_option(options, "endpoint");

	if (!named)
		named = base_variable("HF_ENDPOINT");
	hf->endpoint = bucket_bare(named && *named ? named : "https://huggingface.co");
	return hf->endpoint ? 0 : -ENOMEM;
}

/* Where `hf auth login` puts it; *ret is NULL where there is no home. */
static int hf_token_path(char **ret)
{
	static const struct {
		const char *variable, *below;
	} place[] = {{"HF_TOKEN_PATH", ""},
		     {"HF_HOME", "/token"},
		     {"XDG_CACHE_HOME", "/huggingface/token"},
		     {"HOME", "/.cache/huggingface/token"}};

	*ret = NULL;
	for (size_t i = 0; i < BASE_ARRAY_LEN(place); i++) {
		const char *value = base_variable(place[i].variable);

		if (!value)
			continue;
		*ret = base_format("%s%s", value, place[i].below);
		return *ret ? 0 : -ENOMEM;
	}
	return 0;
}

static int hf_set_token_of(struct hf *hf, const char *path, struct diag *diag)
{
	hf->origin = strdup(path);
	return hf->origin ? bearer_read(path, "the Hub's token", &hf->token, diag) : -ENOMEM;
}

static int hf_set_token(struct hf *hf, const struct bucket_options *options, struct diag *diag)
{
	static const char *const variable[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
	const char *file = bucket_option(options, "token_file");
	_cleanup_free_ char *path = NULL;
	int r;

	if (bucket_is_anonymous(options))
		return 0;
	if (file)
		return hf_set_token_of(hf, file, diag);
	for (size_t i = 0; i < BASE_ARRAY_LEN(variable); i++) {
		const char *value = base_variable(variable[i]);

		if (!value)
			continue;
		hf->origin = strdup(variable[i]);
		return hf->origin ? bearer_copy(value, variable[i], &hf->token, diag) : -ENOMEM;
	}
	r = hf_token_path(&path);
	if (r < 0 || !path)
		return r;
	r = hf_set_token_of(hf, path, diag);
	return r == -ENOENT || r == -ENOTDIR ? 0 : r; /* nobody logged in: public data sets */
}

/* ---- what the Hub says no to ---- */

/* what: of the data set, "" or "/path". */
static void hf_say(const struct hf *hf, const struct http_answer *answer, const char *what,
		   struct diag *ret_diag)
{
	const char *page = "", *mend = "it does not give it";
	char answered[BEARER_ANSWERED];

	switch (answer->status) {
	case 401:
		mend =
		    hf->token
			? "it does not take the token, which may have ended: `hf auth login` "
			  "makes another, or set HF_TOKEN"
			: "it is private, gated, or there is none of that name: set HF_TOKEN, or "
			  "log in by `hf auth login`";
		break;
	case 403:
		mend = hf->token
			   ? "accept the terms at the data set's page, and let the token read "
			     "gated data sets"
			   : "accept the terms at the data set's page, then set HF_TOKEN";
		page = hf->repo;
		break;
	case 404:
		mend = "there is no such data set, revision or file, or the token may not see it";
		break;
	}
	diag_set(ret_diag, "hf://datasets/%s@%s%s: %s answers %s: %s%s%s%s%s%s%s",
		 BASE_QUOTED(hf->repo, 160), BASE_QUOTED(hf->revision, 80), BASE_QUOTED(what, 200),
		 BASE_QUOTED(hf->endpoint, 120), bearer_answered(answer, answered), mend,
		 *page ? " (" : "", *page ? hf->endpoint : "", *page ? "/datasets/" : "", page,
		 *page ? ")" : "", hf->token ? "" : ". No token was found");
}

static int hf_refused(void *self, struct http *http, const struct http_answer *answer,
		      const char *name, struct diag *ret_diag)
{
	const struct hf *hf = self;
	const size_t head = strlen(hf->head);

	(void)http;
	if (hf_landings_drop(hf->landings, name))
		return 1; /* it has ended, perhaps */
	hf_say(hf, answer, strncmp(name, hf->head, head) == 0 ? name + head - 1 : "", ret_diag);
	return 0;
}

/* ---- the commit ---- */

static bool hf_is_commit(const char *text)
{
	const size_t size = strspn(text, "0123456789abcdef");

	return text[size] == '\0' && (size == HF_COMMIT || size == 64);
}

static int hf_read_commit(struct hf *hf, const struct http_answer *answer, struct diag *diag)
{
	_cleanup_json_ struct json_in *root = NULL;
	struct diag why;
	const int r = json_in_parse(answer->body, answer->body_bytes, HF_MOST_ANSWER, &root, &why);
	const char *sha = json_in_string(json_in_member(root, "sha"), "");
	const bool is_good = r == 0 && hf_is_commit(sha);

	if (is_good)
		snprintf(hf->commit, sizeof(hf->commit), "%s", sha);
	if (r == -ENOMEM)
		return r;
	return is_good ? 0
		       : diag_fail(diag, -EINVAL,
				   "%s does not say which commit %s of %s is: is it the Hub's URL?",
				   BASE_QUOTED(hf->endpoint, 200), BASE_QUOTED(hf->revision, 100),
				   BASE_QUOTED(hf->repo, 200));
}

static int hf_ask_commit(struct hf *hf, const char *repo, struct http *http,
			 struct http_answer *ret, struct diag *diag)
{
	_cleanup_(http_request_free) struct http_request request = {.method = "GET",
								    .follows = true};
	_cleanup_free_ char *revision = http_escape(hf->revision, "");
	struct diag why = {""};
	int r = revision ? http_request_url(&request, "%s/api/datasets/%s/revision/%s?expand=sha",
					    hf->endpoint, repo, revision)
			 : -ENOMEM;

	if (r == 0)
		r = bearer_authorize(&request, hf->token);
	if (r == 0)
		r = http_ask(http, &request, HF_MOST_ANSWER, ret, &why);
	return r == 0 || !*why.text ? r
				    : diag_fail(diag, r, "hf://datasets/%s: %s",
						BASE_QUOTED(hf->repo, 160), why.text);
}

static int hf_set_commit(struct hf *hf, const struct bucket_options *options, struct http *http,
			 struct diag *diag)
{
	const char *found = bucket_option(options, "commit"), *known = found ? found : hf->revision;
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	_cleanup_free_ char *repo = http_escape(hf->repo, "/");
	int r;

	if (!repo)
		return -ENOMEM;
	if (hf_is_commit(known)) {
		snprintf(hf->commit, sizeof(hf->commit), "%s", known);
		return 0;
	}
	r = hf_ask_commit(hf, repo, http, &answer, diag);
	if (r < 0)
		return r;
	if (answer.status == 200)
		return hf_read_commit(hf, &answer, diag);
	hf_say(hf, &answer, "", diag);
	return answer.status == 401 || answer.status == 403 ? -EACCES : -EINVAL;
}

static int hf_open(const struct bucket_url *url, const struct bucket_options *options,
		   struct http *http, void **ret, struct diag *diag)
{
	_cleanup_(hf_closep) struct hf *hf = calloc(1, sizeof(*hf));
	int r = hf ? hf_landings_new(&hf->landings) : -ENOMEM;

	if (r == 0)
		r = hf_set_place(hf, url, diag);
	if (r == 0)
		r = hf_set_endpoint(hf, options);
	if (r == 0)
		r = hf_set_token(hf, options, diag);
	if (r == 0 && hf->token && !bearer_may_go(hf->endpoint))
		r = diag_fail(diag, -EINVAL,
			      "to the Hub at %s the token of %s would go in the clear: name an "
			      "https:// URL as the endpoint, or say anonymous=1",
			      BASE_QUOTED(hf->endpoint, 200), BASE_QUOTED(hf->origin, 200));
	if (r == 0)
		r = hf_set_commit(hf, options, http, diag);
	if (r == 0)
		*ret = base_take_ptr(hf);
	return r;
}

/* ---- lists and objects ---- */

/* The URL of a file's bytes or of a folder's list: repo and path are names, and escaped here. */
static int hf_url(const struct hf *hf, const char *before, const char *way, const char *path,
		  const char *query, struct http_request *ret)
{
	_cleanup_free_ char *repo = http_escape(hf->repo, "/"), *escaped = http_escape(path, "/");

	if (!repo || !escaped)
		return -ENOMEM;
	return http_request_url(ret, "%s%s/datasets/%s/%s/%s%s%s%s", hf->endpoint, before, repo,
				way, hf->commit, *escaped ? "/" : "", escaped, query);
}

/* Is there a file of just this name? The Hub's lists have no order to tell it from their first page. */
static int hf_ask_one(const struct hf *hf, struct http_request *ret)
{
	_cleanup_free_ char *path = http_escape(hf->prefix, "");
	int r = path ? hf_url(hf, "/api", "paths-info", "", "", ret) : -ENOMEM;

	return r ? r : http_request_form(ret, base_format("paths=%s&expand=False", path));
}

/* The list of the folder that the prefix ends in: what does not begin so is left out when it comes. */
static int hf_ask_folder(const struct hf *hf, struct http_request *ret)
{
	const char *slash = strrchr(hf->prefix, '/');
	_cleanup_free_ char *folder = strndup(hf->prefix, slash ? (size_t)(slash - hf->prefix) : 0);

	if (!folder)
		return -ENOMEM;
	return hf_url(hf, "/api", "tree", folder, "?recursive=true&expand=false", ret);
}

static int hf_list(void *self, const char *prefix, const char *cursor, struct http_request *ret)
{
	struct hf *hf = self;
	size_t size;

	ret->method = "GET";
	ret->follows = true;
	if (cursor) {
		hf->is_one = false;
		return *cursor ? http_request_url(ret, "%s%s", hf->endpoint, cursor)
			       : hf_ask_folder(hf, ret);
	}
	free(hf->prefix);
	hf->prefix = strdup(bucket_behind(prefix, hf->head));
	if (!hf->prefix)
		return -ENOMEM;
	size = strlen(hf->prefix);
	hf->is_one = size > 0 && hf->prefix[size - 1] != '/';
	return hf->is_one ? hf_ask_one(hf, ret) : hf_ask_folder(hf, ret);
}

/* Is it in the list, and not in two pages of it? */
static bool hf_is_wanted(const struct hf *hf, const char *path)
{
	const size_t size = strlen(hf->prefix);

	if (strncmp(path, hf->prefix, size) != 0)
		return false;
	if (hf->is_one)
		return path[size] == '\0';
	return size == 0 || path[size] != '\0';
}

/* 0, -EBADMSG, or what the sink said. */
static int hf_entry(struct hf *hf, const struct json_in *entry, const struct provider_sink *sink,
		    struct diag *diag)
{
	const char *path = json_in_string(json_in_member(entry, "path"), "");
	const char *oid = json_in_string(json_in_member(entry, "oid"), "");
	_cleanup_free_ char *name = NULL;
	struct provider_object object = {
	    .size = json_in_u64(json_in_member(entry, "size"), UINT64_MAX),
	    .last_modified = INT64_MIN,
	    .etag = json_in_string(json_in_member(json_in_member(entry, "lfs"), "oid"), oid),
	};

	if (strcmp(json_in_string(json_in_member(entry, "type"), ""), "file") != 0)
		return 0;
	if (!*path || !*object.etag || object.size == UINT64_MAX)
		return diag_fail(
		    diag, -EBADMSG,
		    "%s lists a file without a path, a size or a hash: is it the Hub's URL?",
		    BASE_QUOTED(hf->endpoint, 200));
	if (!hf_is_wanted(hf, path))
		return 0;
	object.name = name = base_format("%s%s", hf->head, path);
	if (!name)
		return -ENOMEM;
	return sink->object(sink->arg, &object);
}

/* A page's link may name the Hub where a mirror was asked: only what is behind the host counts, and the token goes to the
 * endpoint. */
static int hf_next(const struct hf *hf, const char *link, bool is_cut, char **ret,
		   struct diag *diag)
{
	const char *path = strstr(link, "/api/datasets/");

	if (hf->is_one) {
		*ret = strdup(""); /* the folder's list */
		return *ret ? 0 : -ENOMEM;
	}
	if (is_cut)
		return diag_fail(diag, -EBADMSG,
				 "%s says that there are more files behind a link of more than %d "
				 "bytes, which no Hub does",
				 BASE_QUOTED(hf->endpoint, 200), HTTP_MOST_LINK - 1);
	if (!*link) {
		*ret = NULL;
		return 0;
	}
	if (!path || !bearer_is_good(path))
		return diag_fail(diag, -EBADMSG,
				 "%s says that there are more files, not where: is it the Hub's "
				 "URL?",
				 BASE_QUOTED(hf->endpoint, 200));
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

static int hf_listed(void *self, const struct http_answer *answer, const struct provider_sink *sink,
		     char **ret_cursor, struct diag *diag)
{
	struct hf *hf = self;
	_cleanup_json_ struct json_in *root = NULL;
	struct diag why;
	int r = hf->prefix ? 0 : -EINVAL; /* nobody asked for a list */

	if (r == 0)
		r = json_in_parse(answer->body, answer->body_bytes, HF_MOST_ANSWER, &root, &why);
	if (r == 0 && json_in_kind_of(root) != JSON_IN_ARRAY)
		r = JSON_E_BAD;
	if (r == JSON_E_BAD)
		r = diag_fail(diag, -EBADMSG, "%s gives no list of files: is it the Hub's URL?",
			      BASE_QUOTED(hf->endpoint, 200));
	for (size_t i = 0; r == 0 && i < json_in_count(root); i++)
		r = hf_entry(hf, json_in_item(root, i), sink, diag);
	return r == 0 ? hf_next(hf, answer->next, answer->is_link_cut, ret_cursor, diag) : r;
}

static int hf_request(void *self, const char *method, const char *name, struct http_request *ret)
{
	const struct hf *hf = self;
	_cleanup_wipe_ char *landing = hf_landings_get(hf->landings, name);

	ret->method = method;
	ret->follows = true;
	return landing ? http_request_url(ret, "%s", landing)
		       : hf_url(hf, "", "resolve", bucket_behind(name, hf->head), "", ret);
}

static const char *hf_commit(const void *self)
{
	return ((const struct hf *)self)->commit;
}

static void hf_landed(void *self, const char *name, const char *url)
{
	hf_landings_put(((struct hf *)self)->landings, name, url);
}

/* A landing is signed, and no business of the token. */
static int hf_sign(void *self, struct http_request *request)
{
	const struct hf *hf = self;
	const size_t size = strlen(hf->endpoint);

	if (strncmp(request->url, hf->endpoint, size) != 0 || request->url[size] != '/')
		return 0;
	return bearer_authorize(request, hf->token);
}

static unsigned hf_renew(void *self, struct http *http, struct diag *diag)
{
	(void)self, (void)http, (void)diag;
	return 0;
}

const struct provider_ops provider_hf = {
    .scheme = "hf",
    .tag = PROVIDER_TAG_NAME,
    .options = "endpoint\0token_file\0anonymous\0",
    .open = hf_open,
    .close = hf_close,
    .list = hf_list,
    .listed = hf_listed,
    .request = hf_request,
    .sign = hf_sign,
    .commit = hf_commit,
    .landed = hf_landed,
    .refused = hf_refused,
    .renew = hf_renew,
};
