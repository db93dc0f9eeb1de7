/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/s3/s3_refusal.h"

#include <stdio.h>

#include "bucket/s3/s3_time.h"

#define MOST_ADVICE 384

typedef void (*advice_fn)(const struct s3_refusal *refusal, char *ret);

static void denied(const struct s3_refusal *refusal, char *ret)
{
	const char *action = refusal->name ? "s3:GetObject" : "s3:ListBucket";

	if (refusal->key)
		snprintf(ret, MOST_ADVICE,
			 "the key %s may not do this: it needs %s for the bucket \"%s\"%s",
			 refusal->key, action, refusal->bucket,
			 refusal->pays ? "" : " (and requester_pays=1, if readers pay for it)");
	else
		snprintf(
		    ret, MOST_ADVICE,
		    "it was asked without credentials (anonymous=1), and is not public for %s: "
		    "leave that option out",
		    action);
}

static void no_bucket(const struct s3_refusal *refusal, char *ret)
{
	snprintf(ret, MOST_ADVICE,
		 "%s knows no bucket \"%s\": is its name right, and is it there (endpoint=, "
		 "AWS_ENDPOINT_URL)?",
		 refusal->host, refusal->bucket);
}

static void no_object(const struct s3_refusal *refusal, char *ret)
{
	(void)refusal;
	snprintf(ret, MOST_ADVICE, "there is no such object");
}

static void skewed(const struct s3_refusal *refusal, char *ret)
{
	char stamp[S3_TIME_STAMP];

	s3_time_stamp(refusal->now, stamp);
	snprintf(
	    ret, MOST_ADVICE,
	    "this machine's clock is wrong: it says %s, the server %s; look at `date`, and let "
	    "NTP set it",
	    stamp,
	    *refusal->error->server_time ? BASE_QUOTED(refusal->error->server_time, 32)
					 : "something else");
}

static void bad_signature(const struct s3_refusal *refusal, char *ret)
{
	snprintf(
	    ret, MOST_ADVICE,
	    "the secret is not that of the key %s, or this server wants another region than \"%s\" "
	    "(region=)",
	    refusal->key ? refusal->key : "", refusal->region);
}

static void unknown_key(const struct s3_refusal *refusal, char *ret)
{
	snprintf(
	    ret, MOST_ADVICE,
	    "%s does not know the key %s: is it for another server (endpoint=), or was it deleted?",
	    refusal->host, refusal->key ? refusal->key : "");
}

static void expired(const struct s3_refusal *refusal, char *ret)
{
	snprintf(
	    ret, MOST_ADVICE,
	    "the session of the key %s is over, and there are no newer credentials where it was "
	    "found: log in again, or write new ones there",
	    refusal->key ? refusal->key : "");
}

static void elsewhere(const struct s3_refusal *refusal, char *ret)
{
	snprintf(ret, MOST_ADVICE,
		 "it is not in region \"%s\", or not at %s: give its own by region= or endpoint=",
		 refusal->region, refusal->host);
}

static void archived(const struct s3_refusal *refusal, char *ret)
{
	(void)refusal;
	snprintf(ret, MOST_ADVICE,
		 "it is archived (Glacier) and must be restored before it can be read");
}

static const struct advice {
	const char *code;
	advice_fn fn;
	bool is_of_keys;
} advices[] = {
    {"AccessDenied", denied, false},
    {"NoSuchBucket", no_bucket, false},
    {"NoSuchKey", no_object, false},
    {"RequestTimeTooSkewed", skewed, false},
    {"SignatureDoesNotMatch", bad_signature, false},
    {"InvalidAccessKeyId", unknown_key, true},
    {"ExpiredToken", expired, true},
    {"ExpiredTokenException", expired, true},
    {"TokenRefreshRequired", expired, true},
    {"InvalidToken", expired, true},
    {"InvalidClientTokenId", unknown_key, true},
    {"PermanentRedirect", elsewhere, false},
    {"TemporaryRedirect", elsewhere, false},
    {"AuthorizationHeaderMalformed", elsewhere, false},
    {"IllegalLocationConstraintException", elsewhere, false},
    {"InvalidObjectState", archived, false},
};

static const struct advice *advice_of(const char *code)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(advices); i++)
		if (strcmp(advices[i].code, code) == 0)
			return &advices[i];
	return NULL;
}

bool s3_refusal_is_of_keys(long status, const struct s3_error *error)
{
	const struct advice *advice = advice_of(error->code);

	/* An answer to HEAD has no body that says why. */
	return advice ? advice->is_of_keys : status == 401 || (status == 403 && !*error->code);
}

bool s3_refusal_is_of_place(long status, const struct s3_error *error)
{
	const struct advice *advice = advice_of(error->code);

	return advice ? advice->fn == elsewhere
		      : !*error->code && (status == 301 || status == 307 || status == 400);
}

static advice_fn of_status(long status)
{
	return status == 401 || status == 403   ? denied
	       : status == 404                  ? no_object
	       : status == 301 || status == 307 ? elsewhere
						: NULL;
}

void s3_refusal_say(const struct s3_refusal *refusal, struct diag *ret)
{
	const struct s3_error *error = refusal->error;
	const struct advice *advice = advice_of(error->code);
	const advice_fn fn = advice ? advice->fn : *error->code ? NULL : of_status(refusal->status);
	char text[MOST_ADVICE] = "";
	bool has_words;

	if (fn)
		fn(refusal, text);
	else
		snprintf(text, sizeof(text), "the server says: %s%s",
			 *error->message ? BASE_QUOTED(error->message, 256) : "nothing more",
			 refusal->key ? "" : " (it was asked without credentials, anonymous=1)");
	/* Amazon says who may not do what to what, and by which policy. */
	has_words = fn && strstr(error->message, "not authorized to perform");
	diag_set(ret, "s3://%s%s%s: HTTP %ld%s%s: %s%s%s", refusal->bucket,
		 refusal->name ? "/" : " cannot be listed",
		 refusal->name ? BASE_QUOTED(refusal->name, 200) : "", refusal->status,
		 *error->code ? " " : "", BASE_QUOTED(error->code, 64), text,
		 has_words ? "; the server says: " : "",
		 has_words ? BASE_QUOTED(error->message, 256) : "");
}
