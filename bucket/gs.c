/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Google Cloud Storage: gs://BUCKET/prefix. Lists come by its JSON API, bytes by its XML API. An object's tag is its generation,
 * which is in both, and in each object that is written another number; ETags of the two are not alike, and Last-Modified is
 * another when a storage class changes. Objects that are stored compressed (Content-Encoding: gzip) come as they are
 * stored, so that ranges of them are what their sizes say.
 *
 *	option             what
 *	anonymous=1        no credentials, for public buckets
 *	credentials=PATH   a file as of GOOGLE_APPLICATION_CREDENTIALS, before it
 *	user_project=ID    who pays for a bucket where the requester does
 *	endpoint=URL       before STORAGE_EMULATOR_HOST; else https://storage.googleapis.com
 *
 *	variable           what
 *	GOOGLE_APPLICATION_CREDENTIALS
 *	                   a file: a key of a service account, or what gcloud writes
 *	CLOUDSDK_CONFIG    gcloud's folder; else ~/.config/gcloud: application_default_credentials.json there
 *	GCE_METADATA_HOST  the metadata server, HOST or HOST:PORT; else 169.254.169.254
 *	STORAGE_EMULATOR_HOST
 *	                   HOST:PORT or a URL of an emulator, which is asked without credentials
 *
 * All but the ticket stays as open() made it.
 */

#include <ctype.h>
#include <stdio.h>

#include "base/json.h"
#include "bucket/bearer.h"
#include "bucket/gs_login.h"
#include "bucket/provider.h"
#include "bucket/ticket.h"

#define GS_MOST_ANSWER (UINT64_C(32) << 20)

struct gs {
	char *bucket, *endpoint;
	char *project;          /* NULL: the bucket's own */
	struct gs_login *login; /* NULL: nobody */
	struct ticket ticket;
};

static void gs_close(void *self)
{
	struct gs *gs = self;

	if (!gs)
		return;
	gs_login_free(gs->login);
	free(gs->project);
	free(gs->endpoint);
	free(gs->bucket);
	ticket_fini(&gs->ticket);
	free(gs);
}

static void gs_closep(struct gs **gs)
{
	gs_close(*gs);
}

/* ---- credentials ---- */

static unsigned gs_renew(void *self, struct http *http, struct diag *diag)
{
	struct gs *gs = self;

	return ticket_renew(&gs->ticket, http, diag);
}

static int gs_sign(void *self, struct http_request *request)
{
	struct gs *gs = self;

	return gs->login ? ticket_authorize(&gs->ticket, request) : 0;
}

/* ---- open ---- */

static bool gs_is_bucket(const char *name)
{
	const size_t size = strlen(name);

	for (const char *at = name; *at; at++)
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) &&
		    !strchr("-_.", *at))
			return false;
	return size >= 3 && size <= 222;
}

/* "http://HOST:PORT" of an emulator's "HOST:PORT", too. */
static int gs_set_endpoint(struct gs *gs, const char *named, const char *emulator)
{
	const char *url = named ? named : emulator ? emulator : "https://storage.googleapis.com";
	_cleanup_free_ char *bare = bucket_bare(url);

	if (bare)
		gs->endpoint = base_format("%s%s", strstr(url, "://") ? "" : "http://", bare);
	return gs->endpoint ? 0 : -ENOMEM;
}

static int gs_log_in(struct gs *gs, const struct bucket_options *options, struct http *http,
		     struct diag *diag)
{
	int r;

	if (!bearer_may_go(gs->endpoint))
		return diag_fail(diag, -EINVAL,
				 "to %s a token would go in the clear: name an https:// URL as the "
				 "endpoint, or say anonymous=1",
				 BASE_QUOTED(gs->endpoint, 256));
	r = gs_login_open(bucket_option(options, "credentials"), &gs->login, diag);
	return r < 0 ? r : ticket_open(&gs->ticket, gs_login_ask, gs->login, http, diag);
}

static int gs_open(const struct bucket_url *url, const struct bucket_options *options,
		   struct http *http, void **ret, struct diag *diag)
{
	_cleanup_(gs_closep) struct gs *gs = calloc(1, sizeof(*gs));
	const char *project = bucket_option(options, "user_project");
	const char *endpoint = bucket_option(options, "endpoint");
	const char *emulator = base_variable("STORAGE_EMULATOR_HOST");
	int r;

	if (!gs)
		return -ENOMEM;
	ticket_init(&gs->ticket);
	if (!gs_is_bucket(url->place))
		return diag_fail(diag, -EINVAL,
				 "gs://%s: no bucket has this name: small letters, digits, \"-\", "
				 "\"_\" and \".\", three or more",
				 BASE_QUOTED(url->place, 256));
	if (project && !bearer_is_good(project))
		return diag_fail(diag, -EINVAL, "user_project=: a project has no such name");
	gs->bucket = strdup(url->place);
	gs->project = project ? strdup(project) : NULL;
	r = !gs->bucket || (project && !gs->project) ? -ENOMEM
						     : gs_set_endpoint(gs, endpoint, emulator);
	if (r == 0 && !bucket_is_anonymous(options) && (endpoint || !emulator))
		r = gs_log_in(gs, options, http, diag);
	if (r == 0)
		*ret = base_take_ptr(gs);
	return r;
}

/* ---- lists and objects ---- */

static int gs_pays(const struct gs *gs, struct http_request *request)
{
	return gs->project ? http_request_header(request, "x-goog-user-project: %s", gs->project)
			   : 0;
}

static int gs_list(void *self, const char *prefix, const char *cursor, struct http_request *ret)
{
	struct gs *gs = self;
	_cleanup_free_ char *begins = http_escape(prefix, "");
	_cleanup_free_ char *page = http_escape(cursor ? cursor : "", "");
	int r;

	if (!begins || !page)
		return -ENOMEM;
	ret->method = "GET";
	r = http_request_url(ret,
			     "%s/storage/v1/b/%s/o?prefix=%s&maxResults=1000"
			     "&fields=items(name,size,generation),nextPageToken%s%s",
			     gs->endpoint, gs->bucket, begins, cursor ? "&pageToken=" : "", page);
	return r < 0 ? r : gs_pays(gs, ret);
}

static bool gs_is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 20;
}

/* 0, -EBADMSG, or what the sink said. */
static int gs_item(const struct gs *gs, const struct json_in *item,
		   const struct provider_sink *sink, struct diag *diag)
{
	const char *size = json_in_string(json_in_member(item, "size"), "");
	const struct provider_object object = {
	    .name = json_in_string(json_in_member(item, "name"), ""),
	    .size = gs_is_number(size) ? strtoull(size, NULL, 10) : 0,
	    .last_modified = INT64_MIN,
	    .etag = json_in_string(json_in_member(item, "generation"), ""),
	};

	if (!*object.name || !gs_is_number(size) || !gs_is_number(object.etag))
		return diag_fail(
		    diag, -EBADMSG,
		    "%s lists an object without a name, a size or a generation: is it a "
		    "server of Google Cloud Storage?",
		    BASE_QUOTED(gs->endpoint, 256));
	return sink->object(sink->arg, &object);
}

static int gs_listed(void *self, const struct http_answer *answer, const struct provider_sink *sink,
		     char **ret_cursor, struct diag *diag)
{
	struct gs *gs = self;
	_cleanup_json_ struct json_in *root = NULL;
	const struct json_in *items;
	const char *page;
	struct diag why;
	int r = json_in_parse(answer->body, answer->body_bytes, GS_MOST_ANSWER, &root, &why);

	if (r == 0 && json_in_kind_of(root) != JSON_IN_OBJECT)
		r = JSON_E_BAD;
	if (r == JSON_E_BAD)
		r = diag_fail(diag, -EBADMSG,
			      "%s gives no list: is it a server of Google Cloud Storage?",
			      BASE_QUOTED(gs->endpoint, 256));
	items = json_in_member(root, "items");
	for (size_t i = 0; r == 0 && i < json_in_count(items); i++)
		r = gs_item(gs, json_in_item(items, i), sink, diag);
	page = json_in_string(json_in_member(root, "nextPageToken"), "");
	if (r == 0) {
		*ret_cursor = *page ? strdup(page) : NULL;
		r = *page && !*ret_cursor ? -ENOMEM : 0;
	}
	return r;
}

static int gs_request(void *self, const char *method, const char *name, struct http_request *ret)
{
	struct gs *gs = self;
	_cleanup_free_ char *escaped = http_escape(name, "/");
	int r;

	if (!escaped)
		return -ENOMEM;
	ret->method = method;
	r = http_request_url(ret, "%s/%s/%s", gs->endpoint, gs->bucket, escaped);
	if (r == 0)
		r = http_request_header(ret, "Accept-Encoding: gzip");
	return r < 0 ? r : gs_pays(gs, ret);
}

static const char *gs_mend(const struct gs *gs, long status)
{
	switch (status) {
	case 400:
		return gs->project ? "is user_project= a project?"
				   : "where the requester pays, name a project by user_project=ID";
	case 401:
	case 403:
		return gs->login
			   ? "it wants the role Storage Object Viewer "
			     "(roles/storage.objectViewer) for the bucket"
			   : "the bucket is not public: do without anonymous=1, and log in by "
			     "`gcloud auth application-default login`";
	case 404:
		return "there is no such bucket or object";
	}
	return "it does not give it";
}

static int gs_refused(void *self, struct http *http, const struct http_answer *answer,
		      const char *name, struct diag *ret_diag)
{
	struct gs *gs = self;
	char answered[BEARER_ANSWERED];

	if (answer->status == 401 && gs->login)
		return ticket_refused(&gs->ticket, http, ret_diag);
	diag_set(ret_diag, "gs://%s/%s: %s answers %s to %s: %s", gs->bucket,
		 BASE_QUOTED(name ? name : "", 200), BASE_QUOTED(gs->endpoint, 120),
		 bearer_answered(answer, answered),
		 gs->login ? BASE_QUOTED(gs_login_who(gs->login), 200) : "nobody",
		 gs_mend(gs, answer->status));
	return 0;
}

const struct provider_ops provider_gs = {
    .scheme = "gs",
    .tag = PROVIDER_TAG_VERSION,
    .options = "anonymous\0credentials\0endpoint\0user_project\0",
    .open = gs_open,
    .close = gs_close,
    .list = gs_list,
    .listed = gs_listed,
    .request = gs_request,
    .sign = gs_sign,
    .refused = gs_refused,
    .renew = gs_renew,
};
