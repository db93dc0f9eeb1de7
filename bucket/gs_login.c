/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Google's Application Default Credentials: a file of credentials=, of GOOGLE_APPLICATION_CREDENTIALS, or gcloud's; else the
 * machine's metadata server. A service account's token is asked for by a JSON Web Token that its key signs, a user's by the
 * refresh token that `gcloud auth application-default login` wrote. Tokens may read objects, and no more, where we ask for a
 * scope: a user's and a machine's have what they were given.
 *
 * A login does not change once it is open; asking is a matter of the caller's thread.
 */

#include "bucket/gs_login.h"

#include <stdio.h>
#include <time.h>

#include "base/base64.h"
#include "base/json.h"
#include "bucket/bearer.h"
#include "bucket/gs_sign.h"
#include "bucket/ticket.h"

#define GS_LOGIN_SCOPE "https://www.googleapis.com/auth/devstorage.read_only"
#define GS_LOGIN_TOKEN_URI "https://oauth2.googleapis.com/token"
#define GS_LOGIN_MACHINE "169.254.169.254"

enum gs_login_kind { GS_LOGIN_SERVICE, GS_LOGIN_USER, GS_LOGIN_MACHINE_OWN };

struct gs_login {
	enum gs_login_kind kind;
	char *who;
	char *token_uri;
	char *account; /* a service account's address; a user's client_id */
	char *secret;  /* its key as PEM; client_secret */
	char *refresh; /* a user's */
};

void gs_login_free(struct gs_login *login)
{
	if (!login)
		return;
	base_wipe(&login->secret);
	base_wipe(&login->refresh);
	free(login->account);
	free(login->token_uri);
	free(login->who);
	free(login);
}

static void gs_login_freep(struct gs_login **login)
{
	gs_login_free(*login);
}

const char *gs_login_who(const struct gs_login *login)
{
	return login->who;
}

/* ---- files ---- */

/* A member that must be there. 0, -EINVAL with diag, -ENOMEM. */
static int gs_login_member(const struct json_in *root, const char *key, const char *path,
			   char **ret, struct diag *diag)
{
	const char *value = json_in_string(json_in_member(root, key), "");

	if (!*value)
		return diag_fail(diag, -EINVAL,
				 "the credentials in \"%s\" have no \"%s\": make the file anew by "
				 "`gcloud auth application-default login`, or in the console",
				 BASE_QUOTED(path, 256), key);
	*ret = strdup(value);
	return *ret ? 0 : -ENOMEM;
}

static int gs_login_service(struct gs_login *login, const struct json_in *root, const char *path,
			    struct diag *diag)
{
	int r = gs_login_member(root, "client_email", path, &login->account, diag);

	login->kind = GS_LOGIN_SERVICE;
	return r < 0 ? r : gs_login_member(root, "private_key", path, &login->secret, diag);
}

static int gs_login_user(struct gs_login *login, const struct json_in *root, const char *path,
			 struct diag *diag)
{
	int r = gs_login_member(root, "client_id", path, &login->account, diag);

	login->kind = GS_LOGIN_USER;
	if (r == 0)
		r = gs_login_member(root, "client_secret", path, &login->secret, diag);
	return r < 0 ? r : gs_login_member(root, "refresh_token", path, &login->refresh, diag);
}

static int gs_login_name(struct gs_login *login, const char *path)
{
	const bool is_user = login->kind == GS_LOGIN_USER;

	login->who = base_format("%s%s of %s", is_user ? "the user" : "the service account ",
				 is_user ? "" : login->account, path);
	return login->who ? 0 : -ENOMEM;
}

static int gs_login_parse(struct gs_login *login, const struct json_in *root, const char *path,
			  struct diag *diag)
{
	const char *type = json_in_string(json_in_member(root, "type"), "");
	int r;

	login->token_uri =
	    strdup(json_in_string(json_in_member(root, "token_uri"), GS_LOGIN_TOKEN_URI));
	if (!login->token_uri)
		return -ENOMEM;
	if (strcmp(type, "service_account") == 0)
		r = gs_login_service(login, root, path, diag);
	else if (strcmp(type, "authorized_user") == 0)
		r = gs_login_user(login, root, path, diag);
	else
		return diag_fail(
		    diag, -EINVAL,
		    "the credentials in \"%s\" are of type \"%s\": OneAccess reads "
		    "service_account and authorized_user, and what a machine's metadata "
		    "server gives",
		    BASE_QUOTED(path, 256), BASE_QUOTED(type, 64));
	if (r == 0 && !bearer_may_go(login->token_uri))
		r = diag_fail(diag, -EINVAL,
			      "the token_uri in \"%s\" is no https:// URL, so no secret goes there",
			      BASE_QUOTED(path, 256));
	if (r == 0)
		r = gs_login_name(login, path);
	return r;
}

static int gs_login_file(struct gs_login *login, const char *path, struct diag *diag)
{
	_cleanup_wipe_ char *text = NULL;
	_cleanup_json_ struct json_in *root = NULL;
	struct diag why;
	int r = bearer_load(path, "Google's credentials", &text, diag);

	if (r < 0)
		return r;
	r = json_in_parse(text, strlen(text), BEARER_MOST, &root, &why);
	if (r == JSON_E_BAD) /* not what the parser says: it may quote the text */
		return diag_fail(diag, -EINVAL, "Google's credentials: \"%s\" is no JSON",
				 BASE_QUOTED(path, 256));
	return r ? r : gs_login_parse(login, root, path, diag);
}

/* gcloud's, in its folder; *ret is NULL where there is no home. */
static int gs_login_path(char **ret)
{
	const char *folder = base_variable("CLOUDSDK_CONFIG"), *home = base_variable("HOME");

	*ret = NULL;
	if (!folder && !home)
		return 0;
	*ret = base_format("%s%s/application_default_credentials.json", folder ? folder : home,
			   folder ? "" : "/.config/gcloud");
	return *ret ? 0 : -ENOMEM;
}

static int gs_login_machine(struct gs_login *login)
{
	const char *host = base_variable("GCE_METADATA_HOST");

	login->kind = GS_LOGIN_MACHINE_OWN;
	login->who = strdup("this machine's service account");
	login->token_uri =
	    base_format("http://%s/computeMetadata/v1/instance/service-accounts/default/token",
			host ? host : GS_LOGIN_MACHINE);
	return login->who && login->token_uri ? 0 : -ENOMEM;
}

static int gs_login_find(struct gs_login *login, const char *file, struct diag *diag)
{
	const char *named = file ? file : base_variable("GOOGLE_APPLICATION_CREDENTIALS");
	_cleanup_free_ char *path = NULL;
	int r;

	if (named && *named)
		return gs_login_file(login, named, diag);
	r = gs_login_path(&path);
	if (r < 0)
		return r;
	r = path ? gs_login_file(login, path, diag) : -ENOENT;
	return r == -ENOENT || r == -ENOTDIR ? gs_login_machine(login) : r;
}

int gs_login_open(const char *file, struct gs_login **ret, struct diag *diag)
{
	_cleanup_(gs_login_freep) struct gs_login *login = calloc(1, sizeof(*login));
	int r = login ? gs_login_find(login, file, diag) : -ENOMEM;

	if (r < 0)
		return r == -ENOMEM || r == -EINVAL ? r : -EACCES;
	*ret = base_take_ptr(login);
	return 0;
}

/* ---- tokens ---- */

/* {"alg": ...}.{"iss": ...}, both in base64url. */
static int gs_login_claims(const struct gs_login *login, time_t now, char **ret)
{
	static const char head[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
	_cleanup_free_ char *first = base64_for_url(head, strlen(head)), *second = NULL;
	_cleanup_free_ char *claims = NULL;
	struct json_out out;
	size_t size;
	int r;

	json_out_init(&out, false);
	json_out_object_begin(&out);
	json_out_member_string(&out, "iss", login->account);
	json_out_member_string(&out, "scope", GS_LOGIN_SCOPE);
	json_out_member_string(&out, "aud", login->token_uri);
	json_out_member_u64(&out, "iat", (uint64_t)now);
	json_out_member_u64(&out, "exp", (uint64_t)now + 3600);
	json_out_object_end(&out);
	r = json_out_take(&out, &claims, &size);
	json_out_fini(&out);
	if (r < 0)
		return r;
	second = base64_for_url(claims, size);
	if (!first || !second || asprintf(ret, "%s.%s", first, second) < 0)
		return -ENOMEM;
	return 0;
}

static int gs_login_assert(const struct gs_login *login, char **ret_body, struct diag *diag)
{
	_cleanup_free_ char *claims = NULL, *signature = NULL;
	int r = gs_login_claims(login, time(NULL), &claims);

	if (r == 0)
		r = gs_sign_rs256(login->secret, claims, &signature);
	if (r == -EINVAL)
		return diag_fail(diag, -EACCES,
				 "the private_key of %s is no RSA key: make the file anew in the "
				 "console",
				 BASE_QUOTED(login->who, 300));
	if (r == -ENOENT)
		return diag_fail(
		    diag, -EACCES,
		    "the key of %s needs libcrypto of OpenSSL 3 (Debian: package libssl3; "
		    "Fedora: openssl-libs), which is not here",
		    BASE_QUOTED(login->who, 300));
	if (r == 0 && asprintf(ret_body,
			       "grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Ajwt-"
			       "bearer&assertion=%s.%s",
			       claims, signature) < 0)
		r = -ENOMEM;
	return r;
}

static int gs_login_refresh(const struct gs_login *login, char **ret_body)
{
	_cleanup_free_ char *account = http_escape(login->account, "");
	_cleanup_wipe_ char *secret = http_escape(login->secret, "");
	_cleanup_wipe_ char *refresh = http_escape(login->refresh, "");

	if (!account || !secret || !refresh ||
	    asprintf(ret_body,
		     "grant_type=refresh_token&client_id=%s&client_secret=%s&refresh_token=%s",
		     account, secret, refresh) < 0)
		return -ENOMEM;
	return 0;
}

static int gs_login_request(const struct gs_login *login, struct http_request *request,
			    struct diag *diag)
{
	char *body = NULL;
	int r = http_request_url(request, "%s", login->token_uri);

	if (r < 0)
		return r;
	if (login->kind == GS_LOGIN_MACHINE_OWN) {
		request->method = "GET";
		request->is_hasty = true;
		return http_request_header(request, "Metadata-Flavor: Google");
	}
	r = login->kind == GS_LOGIN_USER ? gs_login_refresh(login, &body)
					 : gs_login_assert(login, &body, diag);
	return r < 0 ? r : http_request_form(request, body);
}

static int gs_login_none(const struct gs_login *login, struct diag *diag)
{
	return diag_fail(
	    diag, -EACCES,
	    "no credentials for Google Cloud Storage: GOOGLE_APPLICATION_CREDENTIALS is "
	    "not set, gcloud's application_default_credentials.json is not there, and no "
	    "metadata server gives a token at %s. Log in by `gcloud auth "
	    "application-default login`, name a file by credentials=PATH, or say "
	    "anonymous=1 for a public bucket",
	    BASE_QUOTED(login->token_uri, 160));
}

int gs_login_ask(const void *of, struct http *http, char **ret_token, unsigned *ret_seconds,
		 struct diag *diag)
{
	const struct gs_login *login = of;
	_cleanup_(http_request_free) struct http_request request = {.method = NULL};
	int r = gs_login_request(login, &request, diag);

	if (r == 0)
		r = ticket_ask(
		    &request, http, login->who,
		    ". Make the credentials anew by `gcloud auth application-default login`, or in "
		    "the console",
		    ret_token, ret_seconds, diag);
	return r == TICKET_E_NONE ? gs_login_none(login, diag) : r;
}
