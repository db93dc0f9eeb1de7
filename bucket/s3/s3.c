/* SPDX-License-Identifier: Apache-2.0 */

/*
 * s3://BUCKET/PREFIX: Amazon S3, and what speaks like it (MinIO, Ceph, Cloudflare R2, and those of Google and Oracle).
 *
 *	option              variable, then key of the profile      what
 *	endpoint=URL        AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; another server than Amazon's
 *	                    services: s3: endpoint_url; endpoint_url
 *	region=NAME         AWS_REGION, AWS_DEFAULT_REGION; region where the bucket is; else us-east-1, and what the server
 *	                                                           says then
 *	profile=NAME        AWS_PROFILE, AWS_DEFAULT_PROFILE       in the files AWS_CONFIG_FILE (~/.aws/config) and
 *	                                                           AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials)
 *	anonymous=1                                                no credentials: for public buckets
 *	requester_pays=1                                           the reader pays for what is read
 *	path_style=0|1      s3: addressing_style                   the bucket's name in the host's name, or in the path; else
 *	                                                           in the path with an endpoint, or a name with dots
 *
 * Credentials: s3_find.c. AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true leaves out the endpoints.
 *
 * The lock covers the credentials, the key of the day and the place. Requests are made and signed in one thread, and
 * what was refused is mended in another one, which asks for new credentials without the lock. Where several requests were
 * refused for one reason, the first one to be looked at mends it, and the others are told so for a while.
 */

#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "base/hold.h"
#include "bucket/provider.h"
#include "bucket/s3/s3_find.h"
#include "bucket/s3/s3_list.h"
#include "bucket/s3/s3_place.h"
#include "bucket/s3/s3_profile.h"
#include "bucket/s3/s3_refusal.h"
#include "bucket/s3/s3_sign.h"

#define EARLY_S 300 /* before they expire, credentials are renewed */
#define AGAIN_S 60  /* until that is tried again */
#define RECENT_S 60 /* so long what was mended is news */
#define LOOK_S 10   /* between two looks for newer credentials */

struct s3 {
	bool is_anonymous, pays;
	char *profile;                /* NULL: no option names one */
	char region[S3_PLACE_REGION]; /* as it was said, for STS */
	pthread_mutex_t lock;
	struct s3_place place;
	struct s3_keys keys;
	struct s3_sign_key key;
	int64_t looked, mended,
	    moved; /* when, in seconds of a clock that nobody sets; INT64_MIN: never */
};

static int64_t seconds(void)
{
	return (int64_t)(base_now_ns() / 1000000000);
}

static bool is_recent(int64_t when, int64_t within)
{
	return when != INT64_MIN && seconds() - when < within;
}

/* ---- opening ---- */

static const char *endpoint_of(const struct bucket_options *options,
			       const struct s3_profiles *profiles, const char *profile)
{
	const char *value = bucket_option(options, "endpoint"),
		   *off = base_variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), *services;

	if (value || (off && strcasecmp(off, "true") == 0))
		return value;
	value = base_variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
	services = s3_profiles_get(profiles, profile, "services");
	if (!value && services)
		value = s3_profiles_service(profiles, services, "s3", "endpoint_url");
	return value ? value : s3_profiles_get(profiles, profile, "endpoint_url");
}

static const char *region_of(const struct bucket_options *options,
			     const struct s3_profiles *profiles, const char *profile)
{
	const char *value = bucket_option(options, "region");

	value = value ? value : base_variable("AWS_REGION", "AWS_DEFAULT_REGION");
	return value ? value : s3_profiles_get(profiles, profile, "region");
}

static int place_of(struct s3 *s3, const char *bucket, const struct bucket_options *options,
		    struct diag *diag)
{
	const char *said = bucket_option(options, "profile"), *profile = s3_find_profile(said);
	const char *style = bucket_option(options, "path_style");
	struct s3_profiles profiles;
	int r = s3_profiles_read(&profiles);

	if (r)
		return r;
	if (*profiles.refused.text && s3_find_is_named(said)) { /* which may name an endpoint */
		s3_profiles_free(&profiles);
		return diag_fail(diag, -EACCES, "%s", profiles.refused.text);
	}
	style = style ? style : s3_profiles_nested(&profiles, profile, "s3", "addressing_style");
	r = s3_place_init(&s3->place, bucket, endpoint_of(options, &profiles, profile),
			  region_of(options, &profiles, profile), style, diag);
	memcpy(s3->region, s3->place.region, sizeof(s3->region));
	s3_profiles_free(&profiles);
	return r;
}

static int flag_of(const struct bucket_options *options, const char *name, bool *ret,
		   struct diag *diag)
{
	const char *value = bucket_option(options, name);

	if (value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return diag_fail(diag, -EINVAL, "%s=%s: must be 0 or 1", name,
				 BASE_QUOTED(value, 64));
	*ret = value && *value == '1';
	return 0;
}

static int look(struct s3 *s3, struct http *http, struct s3_keys *ret, struct diag *diag)
{
	const struct s3_find find = {s3->profile, s3->region};

	diag_set(diag, "there is no memory");
	return s3_find_keys(&find, http, ret, diag);
}

static int set_up(struct s3 *s3, const struct bucket_url *url, const struct bucket_options *options,
		  struct http *http, struct diag *diag)
{
	const char *profile = bucket_option(options, "profile");
	bool is_path_style;
	int r = flag_of(options, "anonymous", &s3->is_anonymous, diag);

	r = r ? r : flag_of(options, "requester_pays", &s3->pays, diag);
	r = r ? r : flag_of(options, "path_style", &is_path_style, diag);
	if (!r && profile && !(s3->profile = strdup(profile)))
		r = -ENOMEM;
	r = r ? r : place_of(s3, url->place, options, diag);
	if (!r && !s3->is_anonymous)
		r = look(s3, http, &s3->keys, diag);
	return r;
}

static void s3_close(void *self)
{
	struct s3 *s3 = self;

	s3_keys_wipe(&s3->keys);
	explicit_bzero(&s3->key, sizeof(s3->key));
	pthread_mutex_destroy(&s3->lock);
	free(s3->profile);
	free(s3);
}

static int s3_open(const struct bucket_url *url, const struct bucket_options *options,
		   struct http *http, void **ret, struct diag *diag)
{
	struct s3 *s3 = calloc(1, sizeof(*s3));
	int r;

	diag_set(diag, "there is no memory");
	if (!s3)
		return -ENOMEM;
	pthread_mutex_init(&s3->lock, NULL);
	s3->looked = s3->mended = s3->moved = INT64_MIN;
	r = set_up(s3, url, options, http, diag);
	if (r)
		s3_close(s3);
	*ret = r ? NULL : s3;
	return r == -EIO ? -EACCES : r;
}

/* ---- requests ---- */

/* The bucket's URL, and what all requests have. */
static int begin(struct s3 *s3, const char *method, struct http_request *request, char **ret_base,
		 bool *ret_is_path_style)
{
	request->method = method;
	{
		BASE_HOLD(&s3->lock);
		*ret_base = s3_place_url(&s3->place);
		*ret_is_path_style = s3->place.is_path_style;
	}
	if (!*ret_base)
		return -ENOMEM;
	return s3->pays ? http_request_header(request, "x-amz-request-payer: requester") : 0;
}

static int s3_list(void *self, const char *prefix, const char *cursor, struct http_request *ret)
{
	_cleanup_free_ char *base = NULL, *at = cursor ? http_escape(cursor, "") : NULL,
			    *below = http_escape(prefix, "");
	bool is_path_style;
	int r = begin(self, "GET", ret, &base, &is_path_style);

	if (r || !below || (cursor && !at))
		return -ENOMEM;
	return http_request_url(ret,
				"%s%s?%s%s%sencoding-type=url&list-type=2&max-keys=1000&prefix=%s",
				base, is_path_style ? "" : "/", at ? "continuation-token=" : "",
				at ? at : "", at ? "&" : "", below);
}

static int s3_listed(void *self, const struct http_answer *answer, const struct provider_sink *sink,
		     char **ret_cursor, struct diag *diag)
{
	struct s3 *s3 = self;
	struct diag why = {"there is no memory"};
	int r = s3_list_read(answer->body, answer->body_bytes, sink, ret_cursor, &why);

	if (r == -EBADMSG)
		diag_set(diag, "the list of s3://%s makes no sense: %s", s3->place.bucket,
			 why.text);
	return r;
}

static int s3_request(void *self, const char *method, const char *name, struct http_request *ret)
{
	_cleanup_free_ char *base = NULL, *key = http_escape(name, "/");
	bool is_path_style;
	int r = begin(self, method, ret, &base, &is_path_style);

	if (r || !key)
		return -ENOMEM;
	return http_request_url(ret, "%s/%s", base, key);
}

static int s3_sign_request(void *self, struct http_request *request)
{
	struct s3 *s3 = self;

	if (s3->is_anonymous)
		return 0;
	BASE_HOLD(&s3->lock);
	return s3_sign(request, &s3->keys, s3->place.region, "s3", (int64_t)time(NULL), &s3->key);
}

/* ---- renewing and mending ---- */

/* The keys are taken over and wiped. true: they are others than before. */
static bool replace(struct s3 *s3, struct s3_keys *keys)
{
	bool are_others;

	{
		BASE_HOLD(&s3->lock);
		are_others = strcmp(s3->keys.id, keys->id) != 0 ||
			     strcmp(s3->keys.secret, keys->secret) != 0 ||
			     strcmp(s3->keys.token, keys->token) != 0;
		s3->keys = *keys;
		explicit_bzero(&s3->key, sizeof(s3->key));
	}
	s3_keys_wipe(keys);
	return are_others;
}

static bool mend_keys(struct s3 *s3, struct http *http, struct diag *diag)
{
	struct s3_keys keys;
	bool is_mended;

	if (s3->is_anonymous)
		return false;
	{
		BASE_HOLD(&s3->lock);
		if (is_recent(s3->mended, RECENT_S))
			return true;
		if (is_recent(s3->looked, LOOK_S))
			return false;
		s3->looked = seconds();
	}
	if (look(s3, http, &keys, diag))
		return false;
	*diag->text = '\0';
	is_mended = replace(s3, &keys);
	if (is_mended) {
		BASE_HOLD(&s3->lock);
		s3->mended = seconds();
	}
	return is_mended;
}

/* Answers that are no redirection may say the region, too. */
static bool mend_region(struct s3 *s3, const char *region, bool is_of_place)
{
	BASE_HOLD(&s3->lock);
	if (!s3_place_is_region(region))
		return false;
	if (strcmp(region, s3->place.region) == 0)
		return is_of_place && is_recent(s3->moved, RECENT_S);
	strcpy(s3->place.region, region);
	explicit_bzero(&s3->key, sizeof(s3->key));
	s3->moved = seconds();
	return true;
}

/* why: there are no newer credentials; "": nobody has looked. */
static void say(struct s3 *s3, const struct http_answer *answer, const struct s3_error *error,
		const char *name, const struct diag *why, struct diag *diag)
{
	char shown[16], key[160], host[320];
	struct diag no;
	struct s3_refusal refusal = {.status = answer->status,
				     .name = name,
				     .key = s3->is_anonymous ? NULL : key,
				     .pays = s3->pays,
				     .now = (int64_t)time(NULL),
				     .error = error,
				     .bucket = s3->place.bucket,
				     .host = host};
	BASE_HOLD(&s3->lock);

	snprintf(key, sizeof(key), "%s (of %s)", s3_keys_shown(&s3->keys, shown), s3->keys.from);
	s3_place_host(&s3->place, host);
	refusal.region = s3->place.region;
	s3_refusal_say(&refusal, &no);
	diag_set(diag, "%s%s%s", no.text, *why->text ? "; and new credentials: " : "", why->text);
}

static int s3_refused(void *self, struct http *http, const struct http_answer *answer,
		      const char *name, struct diag *ret_diag)
{
	struct s3 *s3 = self;
	struct s3_error error;
	struct diag why = {""};

	s3_error_read(answer->body, answer->body_bytes, &error);
	if (answer->status != 404 &&
	    mend_region(s3, *answer->region ? answer->region : error.region,
			s3_refusal_is_of_place(answer->status, &error)))
		return 1;
	if (s3_refusal_is_of_keys(answer->status, &error) && mend_keys(s3, http, &why))
		return 1;
	say(s3, answer, &error, name && *name && name[strlen(name) - 1] != '/' ? name : NULL, &why,
	    ret_diag);
	return 0;
}

static unsigned s3_renew(void *self, struct http *http, struct diag *diag)
{
	struct s3 *s3 = self;
	const int64_t now = (int64_t)time(NULL);
	struct s3_keys keys;
	int64_t expires;

	*diag->text = '\0';
	{
		BASE_HOLD(&s3->lock);
		expires = s3->keys.expires;
	}
	if (s3->is_anonymous || !expires)
		return 0;
	if (expires - now <= EARLY_S) {
		if (look(s3, http, &keys, diag))
			return AGAIN_S;
		*diag->text = '\0';
		expires = keys.expires;
		replace(s3, &keys);
	}
	if (!expires)
		return 0;
	/* Those that live shorter than is early are asked for again, but not all the time. */
	expires -= now + EARLY_S;
	return expires < AGAIN_S ? AGAIN_S : (unsigned)BASE_MIN(expires, INT64_C(86400));
}

const struct provider_ops provider_s3 = {
    .scheme = "s3",
    .options = "endpoint\0region\0profile\0anonymous\0requester_pays\0path_style\0",
    .open = s3_open,
    .close = s3_close,
    .list = s3_list,
    .listed = s3_listed,
    .request = s3_request,
    .sign = s3_sign_request,
    .refused = s3_refused,
    .renew = s3_renew,
};
