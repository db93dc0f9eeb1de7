/* SPDX-License-Identifier: Apache-2.0 */

/* Questions are forms, answers are XML. */

#include "bucket/s3/s3_sts.h"

#include <stdio.h>
#include <time.h>

#include "bucket/s3/s3_list.h"
#include "bucket/s3/s3_place.h"
#include "bucket/s3/s3_sign.h"
#include "bucket/s3/s3_time.h"
#include "bucket/xml.h"

#define MOST_ANSWER 65536

/* Appends "&name=value" to the form, which is the caller's; a value NULL adds nothing. */
static int add_field(char **form, const char *name, const char *value)
{
	_cleanup_wipe_ char *escaped = value ? http_escape(value, "") : NULL;
	char *longer = escaped ? base_format("%s&%s=%s", *form, name, escaped) : NULL;

	if (!value)
		return 0;
	if (!longer)
		return -ENOMEM;
	base_wipe(form);
	*form = longer;
	return 0;
}

static int form_of(const struct s3_sts_role *role, const char *action, const char *token,
		   char **ret)
{
	_cleanup_wipe_ char *form = base_format("Action=%s&Version=2011-06-15", action);
	int r;

	if (!form)
		return -ENOMEM;
	r = add_field(&form, "RoleArn", role->arn);
	r = r ? r
	      : add_field(&form, "RoleSessionName", role->session ? role->session : "oneaccess");
	r = r ? r : add_field(&form, "ExternalId", role->external_id);
	r = r ? r : add_field(&form, "DurationSeconds", role->duration);
	r = r ? r : add_field(&form, "WebIdentityToken", token);
	if (!r)
		*ret = base_take_ptr(form);
	return r;
}

static int url_of(const struct s3_sts_role *role, struct http_request *request)
{
	const char *said = base_variable("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL");

	if (said)
		return http_request_url(request, "%s%s", said,
					said[strlen(said) - 1] == '/' ? "" : "/");
	return http_request_url(request, "https://sts.%s.%s/", role->region,
				s3_place_domain(role->region));
}

struct found {
	char *id, *secret, *token;
	int64_t expires;
};

static int on_element(void *arg, const char *path, const char *text)
{
	struct found *found = arg;
	char **field = xml_is(path, "Credentials/AccessKeyId")       ? &found->id
		       : xml_is(path, "Credentials/SecretAccessKey") ? &found->secret
		       : xml_is(path, "Credentials/SessionToken")    ? &found->token
								     : NULL;

	if (xml_is(path, "Credentials/Expiration"))
		found->expires = s3_time_parse(text);
	if (!field)
		return 0;
	base_wipe(field);
	*field = strdup(text);
	return *field ? 0 : -ENOMEM;
}

static int read_answer(const struct http_answer *answer, struct s3_keys *ret, struct diag *diag)
{
	struct found found = {.expires = INT64_MIN};
	struct diag why;
	int r = xml_read(answer->body, answer->body_bytes, on_element, &found, &why);

	if (r != -ENOMEM && (r || found.expires == INT64_MIN ||
			     !s3_keys_set(ret, found.id, found.secret, found.token)))
		r = diag_fail(diag, -EIO, "its answer has no credentials");
	if (!r)
		ret->expires = found.expires;
	base_wipe(&found.id);
	base_wipe(&found.secret);
	base_wipe(&found.token);
	return r;
}

/* What STS says when it says no. */
static int refused(const struct s3_sts_role *role, const struct http_answer *answer,
		   struct diag *diag)
{
	struct s3_error error;

	s3_error_read(answer->body, answer->body_bytes, &error);
	return diag_fail(diag, -EACCES,
			 "STS gives no credentials for the role %s: HTTP %ld%s%s%s%s%s",
			 BASE_QUOTED(role->arn, 160), answer->status, *error.code ? ", " : "",
			 BASE_QUOTED(error.code, 64), *error.message ? " (" : "",
			 BASE_QUOTED(error.message, 200),
			 *error.message ? "): the role's trust policy says who may have it" : "");
}

static int ask(const struct s3_sts_role *role, const char *action, const struct s3_keys *keys,
	       const char *token, struct http *http, struct s3_keys *ret, struct diag *diag)
{
	_cleanup_(http_request_free) struct http_request request = {.method = NULL};
	_cleanup_(http_answer_free) struct http_answer answer = {.status = 0};
	struct s3_sign_key key = {.scope = ""};
	char *form = NULL;
	int r;

	diag_set(diag, "there is no memory");
	if (!s3_place_is_region(role->region))
		return diag_fail(diag, -EACCES, "region \"%s\" of the role %s is none",
				 BASE_QUOTED(role->region, 64), BASE_QUOTED(role->arn, 160));
	r = form_of(role, action, token, &form);
	r = r ? r : http_request_form(&request, form);
	r = r ? r : url_of(role, &request);
	if (!r && keys)
		r = s3_sign(&request, keys, role->region, "sts", time(NULL), &key);
	explicit_bzero(&key, sizeof(key));
	r = r ? r : http_ask(http, &request, MOST_ANSWER, &answer, diag);
	if (r)
		return r;
	return answer.status == 200 ? read_answer(&answer, ret, diag)
				    : refused(role, &answer, diag);
}

int s3_sts_assume(const struct s3_sts_role *role, const struct s3_keys *keys, struct http *http,
		  struct s3_keys *ret, struct diag *diag)
{
	return ask(role, "AssumeRole", keys, NULL, http, ret, diag);
}

int s3_sts_web_identity(const struct s3_sts_role *role, const char *token, struct http *http,
			struct s3_keys *ret, struct diag *diag)
{
	return ask(role, "AssumeRoleWithWebIdentity", NULL, token, http, ret, diag);
}
