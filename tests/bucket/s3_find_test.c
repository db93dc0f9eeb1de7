/* SPDX-License-Identifier: Apache-2.0 */

/* Where credentials are found, and what is said where there are none: with files, and with servers that say what real ones do. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bucket/s3/s3_find.h"
#include "bucket/s3/s3_process.h"
#include "bucket/s3/s3_profile.h"
#include "bucket/s3/s3_time.h"
#include "tests/bucket/s3_fake.h"
#include "tests/suite.h"

static char folder[64];

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void name_file(const char *variable, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv(variable, path, 1);
}

/* No test sees the credentials of who runs it. */
static void clean(void)
{
	clearenv();
	setenv("PATH", "/usr/bin:/bin", 1);
	strcpy(folder, "/tmp/oneaccess-s3-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("HOME", folder, 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

static void clean_up(void)
{
	char command[96];

	fake_end();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

static int find(const char *profile, struct s3_keys *keys, struct diag *diag)
{
	const struct s3_find find = {profile, "eu-west-1"};

	return s3_find_keys(&find, NULL, keys, diag);
}

static void found(const char *profile, const char *id, const char *secret, const char *token,
		  const char *from)
{
	struct s3_keys keys;
	struct diag diag = {""};

	ck_assert_msg(find(profile, &keys, &diag) == 0, "%s", diag.text);
	ck_assert_str_eq(keys.id, id);
	ck_assert_str_eq(keys.secret, secret);
	ck_assert_str_eq(keys.token, token);
	ck_assert_str_eq(keys.from, from);
}

/* A secret is never in it. */
static void refused(const char *profile, const char *why)
{
	struct s3_keys keys;
	struct diag diag = {""};
	const int r = find(profile, &keys, &diag);

	ck_assert_msg(r == -EACCES || r == -EINVAL, "%d", r);
	ck_assert_msg(strstr(diag.text, why) != NULL, "%s", diag.text);
	ck_assert_msg(strstr(diag.text, "hush") == NULL, "%s", diag.text);
	ck_assert_str_eq(keys.secret, "");
}

START_TEST(environment)
{
	setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
	refused(NULL, "the second is not set");
	setenv("AWS_SECRET_ACCESS_KEY", " hushENV\n", 1);
	found(NULL, "AKIDENV", "hushENV", "", "AWS_ACCESS_KEY_ID");
	setenv("AWS_SESSION_TOKEN", "TOKENENV", 1);
	setenv("AWS_PROFILE", "nobody", 1);
	found(NULL, "AKIDENV", "hushENV", "TOKENENV", "AWS_ACCESS_KEY_ID");
	refused("nobody", "there is no profile \"nobody\" in ");
	setenv("AWS_SESSION_TOKEN", "TOKEN\r\nHost: hush", 1);
	refused(NULL, "one of them has others");
}
END_TEST

START_TEST(nothing)
{
	refused(NULL, "there are no credentials for S3");
	refused(NULL, "/.aws/credentials");
	refused(NULL, "anonymous=1");
	setenv("AWS_PROFILE", "nobody", 1);
	refused(NULL, "aws configure --profile nobody");
	unsetenv("HOME");
	unsetenv("AWS_PROFILE");
	refused(NULL, "~/.aws/credentials");
}
END_TEST

static void files(void)
{
	write_file(
	    "config",
	    "[default]\nregion = us-west-2\n"
	    "[profile other]\naws_access_key_id=AKIDCONFIG\naws_secret_access_key=hushCONFIG\n"
	    "[profile half]\naws_access_key_id=AKIDHALF\n"
	    "[profile sso]\nsso_session = corp\nsso_account_id = 1\n"
	    "[sso-session corp]\nsso_start_url = https://example.org\n"
	    "[profile mfa]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = other\n"
	    "mfa_serial = arn:aws:iam::1:mfa/u\n"
	    "[profile loop]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = pool\n"
	    "[profile pool]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = loop\n"
	    "[profile lonely]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = gone\n");
	write_file("credentials",
		   "# a comment\n[default]\naws_access_key_id = AKIDDEFAULT\n"
		   "aws_secret_access_key = hushDEFAULT\naws_session_token = TOKENDEFAULT\n");
	name_file("AWS_CONFIG_FILE", "config");
	name_file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
}

START_TEST(profiles)
{
	files();
	found(NULL, "AKIDDEFAULT", "hushDEFAULT", "TOKENDEFAULT", "profile \"default\"");
	found("other", "AKIDCONFIG", "hushCONFIG", "", "profile \"other\"");
	setenv("AWS_PROFILE", "other", 1);
	found(NULL, "AKIDCONFIG", "hushCONFIG", "", "profile \"other\"");
	refused("half", "profile \"half\": aws_access_key_id and aws_secret_access_key must");
	refused("sso", "aws configure export-credentials --profile sso --format process");
	refused("mfa", "mfa_serial");
	refused("loop", "has no credentials to ask for it with");
	refused("lonely", "source_profile \"gone\"");
}
END_TEST

START_TEST(unreadable)
{
	files();
	setenv("AWS_SHARED_CREDENTIALS_FILE", folder, 1);
	refused(NULL, " cannot be read: ");
	setenv("AWS_EC2_METADATA_DISABLED", "false",
	       1); /* it is not asked: there is no network here */
	refused(NULL, " cannot be read: ");
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	refused("default", " cannot be read: ");
	setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "hushENV", 1);
	found(NULL, "AKIDENV", "hushENV", "", "AWS_ACCESS_KEY_ID");
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
	refused(NULL, "no credentials");
}
END_TEST

static const struct {
	const char *command, *why; /* why NULL: it is good */
} processes[] = {
    {"echo '{\"Version\":1,\"AccessKeyId\":\"AKIDP\",\"SecretAccessKey\":\"hushP\","
     "\"SessionToken\":\"TOKENP\",\"Expiration\":\"2009-10-12T17:50:30Z\"}'",
     NULL},
    {"echo '{\"Version\":1,\"AccessKeyId\":\"AKIDP\",\"SecretAccessKey\":\"hushP\","
     "\"SessionToken\":\"TOKENP\",\"Expiration\":\"soon\"}'",
     "which is no time"},
    {"echo '{\"AccessKeyId\":\"AKIDP\"}'", "has no AccessKeyId and SecretAccessKey"},
    {"printf %s '{\"AccessKeyId\":\"AKIDP\",\"SecretAccessKey\":\"hush\\r\\nX: y\"}'",
     "has no AccessKeyId and SecretAccessKey"},
    {"echo hush", "no JSON"},
    {"echo log in first >&2; exit 3", "it failed (exit status 3): log in first"},
    {"kill -9 $$", "it failed (signal 9): without a word"},
    {"/nowhere/program", "it failed (exit status 127)"},
    {"yes '{\"AccessKeyId\":\"hush\"}' | head -c 1000000", "no JSON"},
};

START_TEST(processes_are_run)
{
	struct s3_keys keys;
	struct diag diag = {""};
	const int r = s3_process_keys(processes[_i].command, 60000, &keys, &diag);

	if (!processes[_i].why) {
		ck_assert_msg(r == 0, "%s", diag.text);
		ck_assert_str_eq(keys.secret, "hushP");
		ck_assert_str_eq(keys.token, "TOKENP");
		ck_assert_int_eq(keys.expires, 1255369830);
		return;
	}
	ck_assert_int_eq(r, -EACCES);
	ck_assert_msg(strstr(diag.text, processes[_i].why) != NULL, "%s", diag.text);
	ck_assert_ptr_null(strstr(diag.text, "hush"));
}
END_TEST

/* One that never ends, and one whose children keep its output open. */
START_TEST(processes_are_ended)
{
	static const char *const commands[] = {"sleep 3600", "sleep 3600 & exit 0",
					       "exec >&- 2>&-; sleep 3600"};
	struct s3_keys keys;
	struct diag diag = {""};

	ck_assert_int_eq(s3_process_keys(commands[_i], 200, &keys, &diag), -EACCES);
	ck_assert_msg(strstr(diag.text, "it took more than 1 s and was ended") != NULL, "%s",
		      diag.text);
}
END_TEST

START_TEST(process_of_a_profile)
{
	write_file("config",
		   "[profile p]\ncredential_process = printf '%s' "
		   "'{\"Version\":1,\"AccessKeyId\":\"AKIDP\",\"SecretAccessKey\":\"hushP\"}'\n"
		   "[profile q]\ncredential_process = false\n");
	name_file("AWS_CONFIG_FILE", "config");
	found("p", "AKIDP", "hushP", "", "profile \"p\"");
	refused("q", "credential_process of profile \"q\" gives no credentials: it failed (exit "
		     "status 1): without a word");
}
END_TEST

#define STS_ANSWER                                                                        \
	"<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"        \
	"<AssumeRoleResult><Credentials><AccessKeyId>ASIASTS</AccessKeyId>"               \
	"<SecretAccessKey>hushSTS</SecretAccessKey><SessionToken>TOKENSTS</SessionToken>" \
	"<Expiration>2026-11-27T10:00:00Z</Expiration></Credentials></AssumeRoleResult>"  \
	"</AssumeRoleResponse>"

START_TEST(roles)
{
	write_file(
	    "config",
	    "[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
	    "region = ap-south-1\nexternal_id = e/1\nrole_session_name = s\n"
	    "duration_seconds = 900\n"
	    "[profile base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = hushBASE\n"
	    "[profile self]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = self\n"
	    "aws_access_key_id = AKIDSELF\naws_secret_access_key = hushSELF\n"
	    "[profile china]\nrole_arn = arn:aws-cn:iam::1:role/r\nsource_profile = base\n"
	    "region = cn-north-1\n"
	    "[profile env]\nrole_arn = arn:aws:iam::1:role/r\ncredential_source = Environment\n"
	    "[profile evil]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
	    "region = evil.example/\n");
	name_file("AWS_CONFIG_FILE", "config");
	{
		FAKE_BEGIN({"POST", "https://sts.ap-south-1.amazonaws.com/",
			    "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%"
			    "3Arole%2Fr"
			    "&RoleSessionName=s&ExternalId=e%2F1&DurationSeconds=900",
			    200, STS_ANSWER, NULL},
			   {"POST", "https://sts.eu-west-1.amazonaws.com/", "Credential=AKIDSELF/",
			    200, STS_ANSWER, NULL},
			   {"POST", "https://sts.cn-north-1.amazonaws.com.cn/",
			    "Credential=AKIDBASE/", 403,
			    "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not "
			    "yours</Message></Error></ErrorResponse>",
			    NULL},
			   {"POST", "https://minio:9000/", "Credential=AKIDENV/", 200,
			    "<html>hush</html>", NULL});
		found("role", "ASIASTS", "hushSTS", "TOKENSTS", "profile \"role\"");
		found("self", "ASIASTS", "hushSTS", "TOKENSTS", "profile \"self\"");
		refused("china", "HTTP 403, AccessDenied (not yours)");
		setenv("AWS_ENDPOINT_URL", "https://minio:9000", 1);
		setenv("AWS_ACCESS_KEY_ID", "AKIDENV", 1);
		setenv("AWS_SECRET_ACCESS_KEY", "hushENV", 1);
		ck_assert_int_eq(find("env", &(struct s3_keys){.id = ""}, &(struct diag){""}),
				 -EIO);
		unsetenv("AWS_ENDPOINT_URL");
		refused("evil", "region \"evil.example/\"");
	}
}
END_TEST

START_TEST(web_identities)
{
	FAKE_BEGIN({"POST", "https://sts.eu-west-1.amazonaws.com/",
		    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Ax"
		    "&RoleSessionName=pod&WebIdentityToken=a.b-c%3D",
		    200, STS_ANSWER, NULL});
	name_file("AWS_WEB_IDENTITY_TOKEN_FILE", "token");
	refused(NULL, "AWS_ROLE_ARN is not");
	setenv("AWS_ROLE_ARN", "arn:x", 1);
	refused(NULL, "the token of the web identity ");
	write_file("token", "  \n");
	refused(NULL, "has no token in it");
	refused(NULL, "/token\": it is empty");
	write_file("token", "a.b-c=\n");
	setenv("AWS_ROLE_SESSION_NAME", "pod", 1);
	found(NULL, "ASIASTS", "hushSTS", "TOKENSTS", "AWS_WEB_IDENTITY_TOKEN_FILE");
	refused("nobody", "there is no profile");
}
END_TEST

#define CONTAINER                                                                        \
	"{\"AccessKeyId\":\"ASIAC\",\"SecretAccessKey\":\"hushC\",\"Token\":\"TOKENC\"," \
	"\"Expiration\":\"2026-11-27T10:00:00Z\",\"RoleArn\":\"arn:x\"}"

START_TEST(containers)
{
	FAKE_BEGIN(
	    {"GET", "http://169.254.170.2/v2/credentials/1", NULL, 200, CONTAINER, NULL},
	    {"GET", "http://169.254.170.23/v1/credentials", "Authorization: eks.token", 200,
	     CONTAINER, NULL},
	    {"GET", "https://service.example/c", "Authorization: plain", 0, NULL, NULL},
	    {"GET", "https://service.example/c", "Authorization: plain", 500, NULL, NULL},
	    {"GET", "https://service.example/c", "Authorization: plain", 200, CONTAINER, NULL},
	    {"GET", "http://[::1]:80/c", "Authorization: plain", 403, "", NULL},
	    {"GET", "http://[::1]:80/c", "Authorization: plain", 403, "", NULL},
	    {"GET", "http://[::1]:80/c", "Authorization: plain", 403, "hush", NULL});
	setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1", 1);
	found(NULL, "ASIAC", "hushC", "TOKENC", "the container's service of credentials");
	unsetenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials", 1);
	name_file("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "token");
	write_file("token", "eks.token\n");
	found(NULL, "ASIAC", "hushC", "TOKENC", "the container's service of credentials");
	unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "plain", 1);
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://service.example/c", 1);
	found(NULL, "ASIAC", "hushC", "TOKENC", "the container's service of credentials");
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://[::1]:80/c", 1);
	refused(NULL, "answers HTTP 403");
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\nb", 1);
	refused(NULL, "AWS_CONTAINER_AUTHORIZATION_TOKEN is not");
}
END_TEST

static const char *const strangers[] = {
    "http://example.org/c",
    "http://127.0.0.1@example.org/c",
    "http://169.254.170.2.example.org/",
    "ftp://127.0.0.1/",
    "http://127.0.0.11/",
    "http://[::1",
};

START_TEST(strangers_get_no_token)
{
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", strangers[_i], 1);
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush", 1);
	refused(NULL, "must be by https, or of this machine");
}
END_TEST

#define METADATA "http://169.254.169.254/latest/"
#define ROLE_ANSWER                                                                             \
	"{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"ASIAM\","                \
	"\"SecretAccessKey\":\"hushM\",\"Token\":\"TOKENM\",\"Expiration\":\"2026-11-27T10:00:" \
	"00Z\"}"

START_TEST(machines)
{
	FAKE_BEGIN({"PUT", METADATA "api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", 200,
		    "TTOKEN", NULL},
		   {"GET", METADATA "meta-data/iam/security-credentials/",
		    "X-aws-ec2-metadata-token: TTOKEN", 200, "my role\n", NULL},
		   {"GET", METADATA "meta-data/iam/security-credentials/my%20role",
		    "X-aws-ec2-metadata-token: TTOKEN", 200, ROLE_ANSWER, NULL},
		   /* no role */
		   {"PUT", METADATA "api/token", NULL, 200, "TTOKEN", NULL},
		   {"GET", METADATA "meta-data/iam/security-credentials/", NULL, 404, "", NULL},
		   /* version 1 alone, and nonsense */
		   {"PUT", METADATA "api/token", NULL, 404, "", NULL},
		   {"GET", METADATA "meta-data/iam/security-credentials/", NULL, 200, "r", NULL},
		   {"GET", METADATA "meta-data/iam/security-credentials/r", NULL, 200,
		    "{\"Code\":\"AssumeRoleUnauthorizedAccess\"}", NULL},
		   /* nobody answers */
		   {"PUT", "http://fake:1/latest/api/token", NULL, 0, NULL, NULL});
	unsetenv("AWS_EC2_METADATA_DISABLED");
	found(NULL, "ASIAM", "hushM", "TOKENM", "the machine's role");
	refused(NULL, "there are no credentials");
	refused(NULL, "the machine's metadata (http://169.254.169.254): its JSON has no");
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://fake:1/", 1);
	refused(NULL, "there are no credentials");
}
END_TEST

/* ---- files of profiles ---- */

static const struct {
	const char *section, *parent, *key, *value;
} items[] = {
    {"default", "", "region", "eu-west-1"},
    {"default", "", "REGION", "eu-west-1"},
    {"profile a b", "", "region", "x = y"},
    {"profile a", "", "empty", ""},
    {"profile a", "s3", "addressing_style", "path"},
    {"profile a", "s3", "max_queue", "10"},
    {"profile a", "", "addressing_style", NULL},
    {"profile a", "", "after", "1"},
    {"profile a", "", "twice", "2"},
    {"profile a", "", "crlf", "v"},
    {"services local", "s3", "endpoint_url", "http://127.0.0.1:9000"},
    {"services local", "", "endpoint_url", NULL},
    {"profile a", "", "no_equals", NULL},
    {"default", "", "outside", NULL},
    {"profile a", "", "last", "no newline"},
};

START_TEST(files_of_profiles)
{
	static const char text[] =
	    "outside = 1\n"
	    "[default] # comment\n"
	    "region=eu-west-1\n"
	    "[ profile  \"a b\" ]\nregion = x = y\n"
	    "[profile a]\n# c = 1\n; d = 1\nempty =\ns3 =\n"
	    "  addressing_style = path\n\tmax_queue=10\n"
	    "after = 1\ntwice = 1\ntwice = 2\ncrlf = v\r\nno_equals\n"
	    "= nothing\n"
	    "[services local]\ns3 =\n  endpoint_url = http://127.0.0.1:9000\n"
	    "[profile a]\nlast = no newline";
	struct s3_profile_file file;
	const char *value;

	ck_assert_int_eq(s3_profile_parse(text, strlen(text), &file), 0);
	value = s3_profile_item(&file, items[_i].section, items[_i].parent, items[_i].key);
	ck_assert_str_eq(value ? value : "(none)", items[_i].value ? items[_i].value : "(none)");
	s3_profile_free(&file);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, clean, clean_up);
	tcase_add_test(tcase, environment);
	tcase_add_test(tcase, nothing);
	tcase_add_test(tcase, profiles);
	tcase_add_test(tcase, unreadable);
	tcase_add_loop_test(tcase, processes_are_run, 0, BASE_ARRAY_LEN(processes));
	tcase_add_loop_test(tcase, processes_are_ended, 0, 3);
	tcase_add_test(tcase, process_of_a_profile);
	tcase_add_test(tcase, roles);
	tcase_add_test(tcase, web_identities);
	tcase_add_test(tcase, containers);
	tcase_add_loop_test(tcase, strangers_get_no_token, 0, BASE_ARRAY_LEN(strangers));
	tcase_add_test(tcase, machines);
	tcase_add_loop_test(tcase, files_of_profiles, 0, BASE_ARRAY_LEN(items));
}

int main(void)
{
	return suite_run("s3_find", add);
}
