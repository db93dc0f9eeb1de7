/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Credentials are looked for in this order, and the first place that has some is it:
 *
 *	AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN    not if a profile was named by an option
 *	the profile: a role (role_arn with source_profile, credential_source or web_identity_token_file), keys, credential_process
 *	AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN                  not if ...
 *	AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, _FULL_URI
 *	the machine's metadata
 *
 * A file of profiles that cannot be read counts where a profile is named; else what stands in the environment is looked for, but
 * not the machine's. A place that was named and has none is an error, not a reason to look further: else somebody gets another's rights. All
 * is read anew each time: files and variables that others renew are seen.
 */

#include "bucket/s3/s3_find.h"

#include <stdio.h>

#include "bucket/bearer.h"
#include "bucket/s3/s3_machine.h"
#include "bucket/s3/s3_process.h"
#include "bucket/s3/s3_profile.h"
#include "bucket/s3/s3_sts.h"

#define MOST_SOURCES 5 /* of profiles that name each other */

struct search {
	const struct s3_find *find;
	const struct s3_profiles *profiles;
	struct http *http;
	const char *profile;
	bool is_named; /* somebody said which */
};

const char *s3_find_profile(const char *said)
{
	if (said && *said)
		return said;
	said = base_variable("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
	return said ? said : "default";
}

bool s3_find_is_named(const char *said)
{
	return (said && *said) || base_variable("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
}

/* ---- the environment ---- */

static int from_environment(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	const char *id = base_variable("AWS_ACCESS_KEY_ID"),
		   *secret = base_variable("AWS_SECRET_ACCESS_KEY");

	(void)search;
	if (!id && !secret)
		return S3_FIND_E_NONE;
	if (!s3_keys_set(ret, id, secret, base_variable("AWS_SESSION_TOKEN")))
		return diag_fail(
		    diag, -EACCES,
		    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must both be set, and "
		    "with AWS_SESSION_TOKEN in printable characters: %s",
		    !id       ? "the first is not set"
		    : !secret ? "the second is not set"
			      : "one of them has others");
	snprintf(ret->from, sizeof(ret->from), "AWS_ACCESS_KEY_ID");
	return 0;
}

static int web_identity(const struct search *search, const char *arn, const char *path,
			const char *session, struct s3_keys *ret, struct diag *diag)
{
	const struct s3_sts_role role = {
	    .arn = arn, .session = session, .region = search->find->region};
	_cleanup_wipe_ char *token = NULL;
	int r = bearer_read(path, "the token of the web identity in its file", &token, diag);

	return r == -ENOMEM ? r
	       : r          ? -EACCES
			    : s3_sts_web_identity(&role, token, search->http, ret, diag);
}

static int from_web_identity(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	const char *path = base_variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
		   *arn = base_variable("AWS_ROLE_ARN");
	int r;

	if (!path)
		return S3_FIND_E_NONE;
	if (!arn)
		return diag_fail(
		    diag, -EACCES,
		    "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not: both "
		    "belong together");
	r = web_identity(search, arn, path, base_variable("AWS_ROLE_SESSION_NAME"), ret, diag);
	if (!r)
		snprintf(ret->from, sizeof(ret->from), "AWS_WEB_IDENTITY_TOKEN_FILE");
	return r;
}

static int from_container(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	return s3_machine_container(search->http, ret, diag);
}

static int from_machine(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	return s3_machine_metadata(search->http, ret, diag);
}

/* ---- profiles ---- */

static const char *of(const struct search *search, const char *profile, const char *key)
{
	return s3_profiles_get(search->profiles, profile, key);
}

static int from_keys(const struct search *search, const char *profile, struct s3_keys *ret,
		     struct diag *diag)
{
	const char *id = of(search, profile, "aws_access_key_id"),
		   *secret = of(search, profile, "aws_secret_access_key");

	if (!id && !secret)
		return S3_FIND_E_NONE;
	if (s3_keys_set(ret, id, secret, of(search, profile, "aws_session_token")))
		return 0;
	return diag_fail(diag, -EACCES,
			 "profile \"%s\": aws_access_key_id and aws_secret_access_key must both be "
			 "there, in printable characters",
			 BASE_QUOTED(profile, 100));
}

static int from_process(const struct search *search, const char *profile, struct s3_keys *ret,
			struct diag *diag)
{
	const char *command = of(search, profile, "credential_process");
	struct diag why;
	int r;

	if (!command)
		return S3_FIND_E_NONE;
	r = s3_process_keys(command, S3_PROCESS_MS, ret, &why);
	if (r == -EACCES)
		diag_set(diag, "credential_process of profile \"%s\" gives no credentials: %s",
			 BASE_QUOTED(profile, 100), why.text);
	return r;
}

static int refuse_login(const struct search *search, const char *profile, struct diag *diag)
{
	const char *name = BASE_QUOTED(profile, 100);

	if (!of(search, profile, "sso_session") && !of(search, profile, "sso_start_url") &&
	    !of(search, profile, "login_session"))
		return S3_FIND_E_NONE;
	return diag_fail(
	    diag, -EACCES,
	    "profile \"%s\" logs in by a browser, which Amazon's own tool does: write another "
	    "profile with the line `credential_process = aws configure export-credentials "
	    "--profile "
	    "%s --format process`, name that one by profile= or AWS_PROFILE, and log in by `aws "
	    "sso "
	    "login --profile %s`",
	    name, name, name);
}

static int from_profile(const struct search *search, const char *profile, unsigned depth,
			struct s3_keys *ret, struct diag *diag);

/* Who asks for the role: source_profile, which may be this one with its keys, or credential_source. */
static int source_of(const struct search *search, const char *profile, unsigned depth,
		     struct s3_keys *ret, struct diag *diag)
{
	const char *source = of(search, profile, "source_profile"),
		   *kind = of(search, profile, "credential_source");
	int r = S3_FIND_E_NONE;

	if (source && strcmp(source, profile) == 0)
		r = from_keys(search, profile, ret, diag);
	else if (source && depth < MOST_SOURCES && s3_profiles_have(search->profiles, source))
		r = from_profile(search, source, depth + 1, ret, diag);
	else if (kind && strcmp(kind, "Environment") == 0)
		r = from_environment(search, ret, diag);
	else if (kind && strcmp(kind, "EcsContainer") == 0)
		r = from_container(search, ret, diag);
	else if (kind && strcmp(kind, "Ec2InstanceMetadata") == 0)
		r = from_machine(search, ret, diag);
	if (r == S3_FIND_E_NONE)
		return diag_fail(
		    diag, -EACCES,
		    "profile \"%s\" has a role_arn, but %s \"%s\" has no credentials to "
		    "ask for it with",
		    BASE_QUOTED(profile, 100), source ? "source_profile" : "credential_source",
		    BASE_QUOTED(source ? source
				: kind ? kind
				       : "",
				100));
	return r;
}

static int assume(const struct search *search, const char *profile, const struct s3_sts_role *role,
		  unsigned depth, struct s3_keys *ret, struct diag *diag)
{
	struct s3_keys keys = {.id = ""};
	int r;

	if (of(search, profile, "mfa_serial"))
		return diag_fail(
		    diag, -EACCES,
		    "profile \"%s\" wants a code of a device (mfa_serial), which nobody can type "
		    "here: "
		    "credential_process = aws configure export-credentials --profile %s --format "
		    "process in another profile gives what the tool has",
		    BASE_QUOTED(profile, 100), BASE_QUOTED(profile, 100));
	r = source_of(search, profile, depth, &keys, diag);
	r = r ? r : s3_sts_assume(role, &keys, search->http, ret, diag);
	s3_keys_wipe(&keys);
	return r;
}

static int from_role(const struct search *search, const char *profile, unsigned depth,
		     struct s3_keys *ret, struct diag *diag)
{
	const char *token = of(search, profile, "web_identity_token_file"),
		   *region = of(search, profile, "region");
	const struct s3_sts_role role = {.arn = of(search, profile, "role_arn"),
					 .session = of(search, profile, "role_session_name"),
					 .external_id = of(search, profile, "external_id"),
					 .duration = of(search, profile, "duration_seconds"),
					 .region = region ? region : search->find->region};

	if (!role.arn)
		return S3_FIND_E_NONE;
	if (token)
		return web_identity(search, role.arn, token, role.session, ret, diag);
	return assume(search, profile, &role, depth, ret, diag);
}

static int from_profile(const struct search *search, const char *profile, unsigned depth,
			struct s3_keys *ret, struct diag *diag)
{
	int r = from_role(search, profile, depth, ret, diag);

	r = r != S3_FIND_E_NONE ? r : from_keys(search, profile, ret, diag);
	r = r != S3_FIND_E_NONE ? r : from_process(search, profile, ret, diag);
	r = r != S3_FIND_E_NONE ? r : refuse_login(search, profile, diag);
	if (!r)
		snprintf(ret->from, sizeof(ret->from), "profile \"%s\"", BASE_QUOTED(profile, 100));
	return r;
}

static int from_profiles(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	if (*search->profiles->refused.text && search->is_named)
		return diag_fail(diag, -EACCES, "%s", search->profiles->refused.text);
	if (*search->profiles->refused.text)
		return S3_FIND_E_NONE;
	if (!search->is_named || s3_profiles_have(search->profiles, search->profile))
		return from_profile(search, search->profile, 0, ret, diag);
	return diag_fail(
	    diag, -EACCES,
	    "there is no profile \"%s\" in %s or %s: `aws configure --profile %s` makes it",
	    BASE_QUOTED(search->profile, 100), BASE_QUOTED(search->profiles->credentials_path, 150),
	    BASE_QUOTED(search->profiles->config_path, 150), BASE_QUOTED(search->profile, 100));
}

/* ---- all of it ---- */

typedef int (*from_fn)(const struct search *search, struct s3_keys *ret, struct diag *diag);

/* Not for somebody whose own credentials may be in a file that cannot be read. */
static int from_machine_at_last(const struct search *search, struct s3_keys *ret, struct diag *diag)
{
	return *search->profiles->refused.text ? S3_FIND_E_NONE : from_machine(search, ret, diag);
}

static const struct place {
	from_fn from;
	bool is_variable; /* which does not count where an option names a profile */
} places[] = {
    {from_environment, true}, {from_profiles, false},        {from_web_identity, true},
    {from_container, false},  {from_machine_at_last, false},
};

static int nowhere(const struct search *search, struct diag *diag)
{
	const char *refused = search->profiles->refused.text;

	if (*refused)
		return diag_fail(
		    diag, -EACCES,
		    "there are no credentials for S3 in the environment, and %s: let the "
		    "job read it, name others in AWS_CONFIG_FILE and "
		    "AWS_SHARED_CREDENTIALS_FILE, or set AWS_ACCESS_KEY_ID and "
		    "AWS_SECRET_ACCESS_KEY; a bucket that is public needs the option "
		    "anonymous=1",
		    refused);
	return diag_fail(
	    diag, -EACCES,
	    "there are no credentials for S3. Looked for: AWS_ACCESS_KEY_ID and "
	    "AWS_SECRET_ACCESS_KEY; profile \"%s\" of %s and %s; AWS_WEB_IDENTITY_TOKEN_FILE; "
	    "AWS_CONTAINER_CREDENTIALS_...; the role of this machine (EC2). Set the variables, or "
	    "run "
	    "`aws configure`; a bucket that is public needs the option anonymous=1",
	    BASE_QUOTED(search->profile, 60),
	    *search->profiles->credentials_path
		? BASE_QUOTED(search->profiles->credentials_path, 120)
		: "~/.aws/credentials",
	    *search->profiles->config_path ? BASE_QUOTED(search->profiles->config_path, 120)
					   : "~/.aws/config");
}

int s3_find_keys(const struct s3_find *find, struct http *http, struct s3_keys *ret,
		 struct diag *diag)
{
	struct s3_profiles profiles;
	struct search search = {find, &profiles, http, s3_find_profile(find->profile), false};
	const bool is_option = find->profile && *find->profile;
	int r = s3_profiles_read(&profiles);

	if (r)
		return diag_fail(diag, r, "there is no memory");
	search.is_named = s3_find_is_named(find->profile);
	r = S3_FIND_E_NONE;
	for (size_t i = 0; r == S3_FIND_E_NONE && i < BASE_ARRAY_LEN(places); i++)
		if (!is_option || !places[i].is_variable)
			r = places[i].from(&search, ret, diag);
	if (r == S3_FIND_E_NONE)
		r = nowhere(&search, diag);
	s3_profiles_free(&profiles);
	if (r)
		s3_keys_wipe(ret);
	return r;
}
