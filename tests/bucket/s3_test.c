/* SPDX-License-Identifier: Apache-2.0 */

/* The provider as access-bucket uses it: addresses, requests, and what is made of a no. */

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "bucket/provider.h"
#include "bucket/s3/s3_place.h"
#include "bucket/s3/s3_time.h"
#include "tests/bucket/s3_fake.h"
#include "tests/suite.h"

static char home[64];

static void clean(void)
{
	clearenv();
	setenv("PATH", "/usr/bin:/bin", 1);
	strcpy(home, "/tmp/oneaccess-s3-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(home));
	setenv("HOME", home, 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT1", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
}

static void clean_up(void)
{
	char command[96];

	fake_end();
	snprintf(command, sizeof(command), "rm -rf '%s'", home);
	ck_assert_int_eq(system(command), 0);
}

/* options: "key=value key=value" */
static int try_open(const char *bucket, const char *options, void **ret, struct diag *diag)
{
	char text[256], place[256], *at = text, *word;
	struct bucket_url url = {&provider_s3, NULL, place, NULL};
	struct bucket_option option[8];
	struct bucket_options all = {option, 0};

	snprintf(text, sizeof(text), "%s", options);
	snprintf(place, sizeof(place), "%s", bucket);
	while ((word = strsep(&at, " ")) && *word) {
		option[all.n].value = strchr(word, '=') + 1;
		*strchr(word, '=') = '\0';
		option[all.n++].key = word;
	}
	return provider_s3.open(&url, &all, NULL, ret, diag);
}

static void *opened(const char *bucket, const char *options)
{
	struct diag diag = {""};
	void *s3;

	ck_assert_msg(try_open(bucket, options, &s3, &diag) == 0, "%s", diag.text);
	return s3;
}

/* ---- addresses ---- */

static const struct {
	const char *bucket, *options, *variable, *value, *url;
} addresses[] = {
    {"bucket", "", NULL, NULL, "https://bucket.s3.us-east-1.amazonaws.com/a/b%20%2B%C3%A4~"},
    {"bucket", "region=cn-north-1", NULL, NULL,
     "https://bucket.s3.cn-north-1.amazonaws.com.cn/a/b%20%2B%C3%A4~"},
    {"bucket", "", "AWS_REGION", "eu-west-3",
     "https://bucket.s3.eu-west-3.amazonaws.com/a/b%20%2B%C3%A4~"},
    {"bucket", "region=ap-south-1", "AWS_REGION", "eu-west-3",
     "https://bucket.s3.ap-south-1.amazonaws.com/a/b%20%2B%C3%A4~"},
    {"bucket", "", "AWS_DEFAULT_REGION", "eusc-de-east-1",
     "https://bucket.s3.eusc-de-east-1.amazonaws.eu/a/b%20%2B%C3%A4~"},
    {"my.bucket", "", NULL, NULL, "https://s3.us-east-1.amazonaws.com/my.bucket/a/b%20%2B%C3%A4~"},
    {"My_Bucket", "", NULL, NULL, "https://s3.us-east-1.amazonaws.com/My_Bucket/a/b%20%2B%C3%A4~"},
    {"bucket", "path_style=1", NULL, NULL,
     "https://s3.us-east-1.amazonaws.com/bucket/a/b%20%2B%C3%A4~"},
    {"bucket", "endpoint=http://127.0.0.1:9000", NULL, NULL,
     "http://127.0.0.1:9000/bucket/a/b%20%2B%C3%A4~"},
    {"bucket", "endpoint=HTTPS://Store.Example:443/v1/S3//", NULL, NULL,
     "https://store.example/v1/S3/bucket/a/b%20%2B%C3%A4~"},
    {"bucket", "endpoint=store.example:80", NULL, NULL,
     "https://store.example:80/bucket/a/b%20%2B%C3%A4~"},
    {"bucket", "endpoint=http://store.example:80 path_style=0", NULL, NULL,
     "http://bucket.store.example/a/b%20%2B%C3%A4~"},
    {"tenant:bucket", "", "AWS_ENDPOINT_URL", "http://ceph:7480",
     "http://ceph:7480/tenant%3Abucket/a/b%20%2B%C3%A4~"},
    {"bucket", "endpoint=http://option", "AWS_ENDPOINT_URL_S3", "http://variable",
     "http://option/bucket/a/b%20%2B%C3%A4~"},
};

START_TEST(where_buckets_are)
{
	struct http_request request = {.method = NULL};
	void *s3;

	if (addresses[_i].variable)
		setenv(addresses[_i].variable, addresses[_i].value, 1);
	s3 = opened(addresses[_i].bucket, addresses[_i].options);
	ck_assert_int_eq(provider_s3.request(s3, "GET", "a/b +\xc3\xa4~", &request), 0);
	ck_assert_str_eq(request.method, "GET");
	ck_assert_str_eq(request.url, addresses[_i].url);
	ck_assert_uint_eq(request.n_headers, 0);
	http_request_free(&request);
	provider_s3.close(s3);
}
END_TEST

static const struct {
	const char *bucket, *options, *why;
} mistakes[] = {
    {"bucket", "endpoint=ftp://a", "as in endpoint=https://storage.example.org:9000"},
    {"bucket", "endpoint=http://", "must be the URL of a server"},
    {"bucket", "endpoint=http://user@host", "must be the URL of a server"},
    {"bucket", "endpoint=http://host?x", "must be the URL of a server"},
    {"bucket", "region=eu-west-1.evil.org/", "region \"eu-west-1.evil.org/\""},
    {"bu%cket", "", "a bucket's name has letters"},
    {"arn:aws:s3:us-east-1:1:accesspoint", "", "access point's alias"},
    {"bucket--use1-az4--x-s3", "", "directory bucket"},
    {"bucket", "anonymous=yes", "anonymous=yes: must be 0 or 1"},
    {"bucket", "path_style=2", "path_style=2: must be 0 or 1"},
    {"bucket", "profile=nobody", "there is no profile \"nobody\""},
};

START_TEST(mistakes_are_told)
{
	struct diag diag = {""};
	void *s3;

	ck_assert_int_lt(try_open(mistakes[_i].bucket, mistakes[_i].options, &s3, &diag), 0);
	ck_assert_ptr_null(s3);
	ck_assert_msg(strstr(diag.text, mistakes[_i].why) != NULL, "%s", diag.text);
}
END_TEST

static void write_file(const char *variable, const char *text)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", home, variable);
	setenv(variable, path, 1);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(profiles_say_where)
{
	static const struct {
		const char *profile, *url;
	} rows[] = {
	    {"region", "https://bucket.s3.eu-north-1.amazonaws.com/k"},
	    {"endpoint", "http://profile:1/bucket/k"},
	    {"services", "http://service:2/bucket/k"},
	    {"style", "https://s3.us-east-1.amazonaws.com/bucket/k"},
	};
	struct http_request request = {.method = NULL};

	write_file("AWS_CONFIG_FILE",
		   "[profile region]\nregion = eu-north-1\n"
		   "[profile endpoint]\nendpoint_url = http://profile:1\n"
		   "[profile services]\nendpoint_url = http://profile:1\nservices = local\n"
		   "[services local]\ns3 =\n  endpoint_url = http://service:2\n"
		   "[profile style]\ns3 =\n  addressing_style = path\n");
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		void *s3;

		setenv("AWS_PROFILE", rows[i].profile, 1);
		s3 = opened("bucket", "");
		ck_assert_int_eq(provider_s3.request(s3, "HEAD", "k", &request), 0);
		ck_assert_str_eq(request.url, rows[i].url);
		http_request_free(&request);
		provider_s3.close(s3);
	}
	setenv("AWS_PROFILE", "endpoint", 1);
	setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
	void *s3 = opened("bucket", "");
	ck_assert_int_eq(provider_s3.request(s3, "HEAD", "k", &request), 0);
	ck_assert_str_eq(request.url, "https://bucket.s3.us-east-1.amazonaws.com/k");
	http_request_free(&request);
	provider_s3.close(s3);
}
END_TEST

/* As with the home of another user; a profile may name an endpoint, so one that is named must be read. */
START_TEST(profiles_may_be_unreadable)
{
	struct diag diag = {""};
	void *s3;

	setenv("AWS_CONFIG_FILE", home, 1);
	provider_s3.close(opened("bucket", ""));
	provider_s3.close(opened("bucket", "anonymous=1"));
	setenv("AWS_PROFILE", "p", 1);
	ck_assert_int_eq(try_open("bucket", "", &s3, &diag), -EACCES);
	ck_assert_msg(strstr(diag.text, "cannot be read") != NULL, "%s", diag.text);
}
END_TEST

START_TEST(lists_are_asked_for)
{
	void *s3 = opened("bucket", "requester_pays=1"), *other = opened("b.c", "");
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(provider_s3.list(s3, "a b/\xc3\xa4/", NULL, &request), 0);
	ck_assert_str_eq(request.url, "https://bucket.s3.us-east-1.amazonaws.com/?encoding-type=url"
				      "&list-type=2&max-keys=1000&prefix=a%20b%2F%C3%A4%2F");
	ck_assert_str_eq(http_request_value(&request, "x-amz-request-payer"), "requester");
	ck_assert_int_eq(provider_s3.sign(s3, &request), 0);
	ck_assert_ptr_nonnull(strstr(http_request_value(&request, "Authorization"),
				     "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-"
				     "request-payer,"));
	http_request_free(&request);
	ck_assert_int_eq(provider_s3.list(other, "", "1/+=", &request), 0);
	ck_assert_str_eq(request.url, "https://s3.us-east-1.amazonaws.com/"
				      "b.c?continuation-token=1%2F%2B%3D&encoding-type=url"
				      "&list-type=2&max-keys=1000&prefix=");
	http_request_free(&request);
	provider_s3.close(s3);
	provider_s3.close(other);
}
END_TEST

static int on_object(void *arg, const struct provider_object *object)
{
	snprintf(arg, 64, "%s", object->name);
	return 0;
}

START_TEST(lists_are_read)
{
	static char good[] = "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>"
			     "</ListBucketResult>",
		    bad[] = "<html>";
	char name[64] = "", *cursor = NULL;
	const struct provider_sink sink = {on_object, name};
	struct http_answer answer = {.body = good, .body_bytes = sizeof(good) - 1};
	void *s3 = opened("bucket", "");
	struct diag diag = {""};

	ck_assert_int_eq(provider_s3.listed(s3, &answer, &sink, &cursor, &diag), 0);
	ck_assert_str_eq(name, "a");
	ck_assert_ptr_null(cursor);
	answer = (struct http_answer){.body = bad, .body_bytes = sizeof(bad) - 1};
	ck_assert_int_eq(provider_s3.listed(s3, &answer, &sink, &cursor, &diag), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, "the list of s3://bucket makes no sense: "));
	provider_s3.close(s3);
}
END_TEST

/* ---- a no ---- */

static const struct {
	const char *options;
	long status;
	const char *body, *name, *why;
} refusals[] = {
    {"", 403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", "a/b",
     "s3://bucket/a/b: HTTP 403 AccessDenied: the key ...ENT1 (of AWS_ACCESS_KEY_ID) may not do "
     "this: it needs s3:GetObject for the bucket \"bucket\" (and requester_pays=1"},
    {"requester_pays=1", 403, "<Error><Code>AccessDenied</Code></Error>", NULL,
     "s3://bucket cannot be listed: HTTP 403 AccessDenied: the key ...ENT1 (of "
     "AWS_ACCESS_KEY_ID) may not do this: it needs s3:ListBucket for the bucket \"bucket\""},
    {"anonymous=1", 403, "<Error><Code>AccessDenied</Code></Error>", NULL,
     "it was asked without credentials (anonymous=1)"},
    {"", 403,
     "<Error><Code>AccessDenied</Code><Message>User: arn:aws:iam::1:user/u is not authorized to "
     "perform: s3:GetObject</Message></Error>",
     "a", "; the server says: User: arn:aws:iam::1:user/u is not authorized to perform: s3:GetObj"},
    {"anonymous=1", 401, "", "a", "it was asked without credentials (anonymous=1)"},
    {"", 404, "<Error><Code>NoSuchBucket</Code></Error>", NULL,
     "s3.us-east-1.amazonaws.com knows no bucket \"bucket\""},
    {"", 404, "<Error><Code>NoSuchKey</Code></Error>", "a", "there is no such object"},
    {"", 404, "", "a", "there is no such object"},
    {"", 403,
     "<Error><Code>RequestTimeTooSkewed</Code><ServerTime>2013-05-24T00:00:00Z</ServerTime></"
     "Error>",
     "a", "the server 2013-05-24T00:00:00Z; look at `date`"},
    {"", 403, "<Error><Code>SignatureDoesNotMatch</Code></Error>", "a",
     "the secret is not that of the key ...ENT1"},
    {"", 403, "<Error><Code>InvalidAccessKeyId</Code></Error>", "a",
     "does not know the key ...ENT1"},
    {"", 400, "<Error><Code>ExpiredToken</Code></Error>", "a", "log in again"},
    {"", 301, "<Error><Code>PermanentRedirect</Code></Error>", NULL,
     "it is not in region \"us-east-1\""},
    {"", 403, "<Error><Code>InvalidObjectState</Code></Error>", "a", "must be restored"},
    {"", 400, "<Error><Code>Strange\n</Code><Message>a \"b\"\n</Message></Error>", "a\n",
     "s3://bucket/a\\x0a: HTTP 400 Strange\\x0a: the server says: a \\x22b\\x22\\x0a"},
    {"", 403, "<html>proxy</html>", "a", "s3://bucket/a: HTTP 403: the key ...ENT1"},
    {"", 418, "", "a", "HTTP 418: the server says: nothing more"},
    {"anonymous=1", 400, "<Error><Code>Odd</Code></Error>", "p/",
     "s3://bucket cannot be listed: HTTP 400 Odd: the server says: nothing more (it was asked "
     "without credentials"},
};

START_TEST(refusals_are_told)
{
	void *s3 = opened("bucket", refusals[_i].options);
	struct http_answer answer = {.status = refusals[_i].status};
	struct diag diag = {""};

	answer.body = strdup(refusals[_i].body);
	answer.body_bytes = strlen(answer.body);
	ck_assert_int_eq(provider_s3.refused(s3, NULL, &answer, refusals[_i].name, &diag), 0);
	ck_assert_msg(strstr(diag.text, refusals[_i].why) != NULL, "%s", diag.text);
	ck_assert_ptr_null(strstr(diag.text, "hush"));
	http_answer_free(&answer);
	provider_s3.close(s3);
}
END_TEST

static struct diag last;

static int refuse(void *s3, long status, const char *region, const char *body)
{
	struct http_answer answer = {.status = status};
	int r;

	snprintf(answer.region, sizeof(answer.region), "%s", region);
	answer.body = strdup(body);
	answer.body_bytes = strlen(body);
	r = provider_s3.refused(s3, NULL, &answer, "a", &last);
	http_answer_free(&answer);
	return r;
}

static void expect(void *s3, const char *url, const char *credential)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(provider_s3.request(s3, "GET", "a", &request), 0);
	ck_assert_int_eq(provider_s3.sign(s3, &request), 0);
	ck_assert_str_eq(request.url, url);
	ck_assert_ptr_nonnull(strstr(http_request_value(&request, "Authorization"), credential));
	http_request_free(&request);
}

START_TEST(regions_are_found)
{
	void *s3 = opened("bucket", "");

	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "/us-east-1/s3/");
	ck_assert_int_eq(refuse(s3, 301, "eu-west-1", ""), 1);
	expect(s3, "https://bucket.s3.eu-west-1.amazonaws.com/a", "/eu-west-1/s3/");
	/* Another request, which was sent to the old one. */
	ck_assert_int_eq(refuse(s3, 301, "eu-west-1", ""), 1);
	ck_assert_int_eq(refuse(s3, 400, "",
				"<Error><Code>AuthorizationHeaderMalformed</Code><Region>ap-east-1"
				"</Region></Error>"),
			 1);
	expect(s3, "https://bucket.s3.ap-east-1.amazonaws.com/a", "/ap-east-1/s3/");
	/* It is there, and says no. */
	ck_assert_int_eq(refuse(s3, 403, "ap-east-1", "<Error><Code>AccessDenied</Code></Error>"),
			 0);
	ck_assert_ptr_nonnull(strstr(last.text, "it needs s3:GetObject"));
	ck_assert_int_eq(refuse(s3, 301, "evil.example/", ""), 0);
	provider_s3.close(s3);
	/* With an endpoint the host stays. */
	s3 = opened("bucket", "endpoint=http://minio:9000");
	ck_assert_int_eq(refuse(s3, 400, "eu-west-1", ""), 1);
	expect(s3, "http://minio:9000/bucket/a", "/eu-west-1/s3/");
	provider_s3.close(s3);
}
END_TEST

START_TEST(expired_ones_are_replaced)
{
	static const char over[] = "<Error><Code>ExpiredToken</Code></Error>";
	void *s3 = opened("bucket", ""), *other = opened("bucket", "");

	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDENVIRONMENT1/");
	setenv("AWS_ACCESS_KEY_ID", "AKIDNEW", 1);
	ck_assert_int_eq(refuse(s3, 403, "", "<Error><Code>AccessDenied</Code></Error>"), 0);
	ck_assert_int_eq(refuse(s3, 400, "", over), 1);
	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDNEW/");
	/* Others that were on their way are told so, too. */
	ck_assert_int_eq(refuse(s3, 400, "", over), 1);
	/* An answer to HEAD has no words. */
	ck_assert_int_eq(refuse(other, 403, "", ""), 1);
	provider_s3.close(s3);
	provider_s3.close(other);
	/* There are none that are newer. */
	s3 = opened("bucket", "");
	ck_assert_int_eq(refuse(s3, 400, "", over), 0);
	provider_s3.close(s3);
	s3 = opened("bucket", "");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	ck_assert_int_eq(refuse(s3, 400, "", over), 0);
	ck_assert_ptr_nonnull(strstr(last.text, "; and new credentials: AWS_ACCESS_KEY_ID and"));
	provider_s3.close(s3);
}
END_TEST

START_TEST(anonymous_ones_are_not_signed)
{
	void *s3 = opened("bucket", "anonymous=1");
	struct http_request request = {.method = NULL};
	struct diag diag;

	ck_assert_int_eq(provider_s3.request(s3, "GET", "a", &request), 0);
	ck_assert_int_eq(provider_s3.sign(s3, &request), 0);
	ck_assert_uint_eq(request.n_headers, 0);
	ck_assert_uint_eq(provider_s3.renew(s3, NULL, &diag), 0);
	http_request_free(&request);
	provider_s3.close(s3);
}
END_TEST

/* ---- renewing ---- */

static void process_of(const char *id, int64_t seconds)
{
	const time_t at = time(NULL) + (time_t)seconds;
	char text[512], stamp[32];
	struct tm tm;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	snprintf(text, sizeof(text),
		 "[default]\ncredential_process = printf %%s '{\"AccessKeyId\":\"%s\","
		 "\"SecretAccessKey\":\"hush\",\"SessionToken\":\"t\",\"Expiration\":\"%s\"}'\n",
		 id, stamp);
	write_file("AWS_CONFIG_FILE", text);
}

START_TEST(they_are_renewed_early)
{
	struct diag diag;
	unsigned wait;
	void *s3;

	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	process_of("AKIDONE", 3600);
	s3 = opened("bucket", "");
	process_of("AKIDTWO", 200);
	wait = provider_s3.renew(s3, NULL, &diag);
	ck_assert(wait > 3000 && wait <= 3300);
	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDONE/");
	provider_s3.close(s3);
	s3 = opened("bucket", "");
	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDTWO/");
	write_file("AWS_CONFIG_FILE", "[default]\ncredential_process = echo locked >&2; false\n");
	ck_assert_uint_eq(provider_s3.renew(s3, NULL, &diag), 60);
	ck_assert_ptr_nonnull(strstr(diag.text, "locked"));
	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDTWO/");
	process_of("AKIDTHREE", 1000);
	wait = provider_s3.renew(s3, NULL, &diag);
	ck_assert(wait > 600 && wait <= 700);
	ck_assert_str_eq(diag.text, "");
	expect(s3, "https://bucket.s3.us-east-1.amazonaws.com/a", "AKIDTHREE/");
	provider_s3.close(s3);
}
END_TEST

static void *sign_many(void *s3)
{
	for (int i = 0; i < 500; i++) {
		struct http_request request = {.method = NULL};

		ck_assert_int_eq(provider_s3.list(s3, "p/", "c", &request), 0);
		ck_assert_int_eq(provider_s3.sign(s3, &request), 0);
		http_request_free(&request);
		ck_assert_int_eq(provider_s3.request(s3, "GET", "p/a", &request), 0);
		ck_assert_int_eq(provider_s3.sign(s3, &request), 0);
		ck_assert_ptr_nonnull(http_request_value(&request, "X-Amz-Security-Token"));
		http_request_free(&request);
	}
	return NULL;
}

/* One thread signs, another one renews and mends. */
START_TEST(in_two_threads)
{
	static const char *const ids[] = {"AKIDONE", "AKIDTWO", "AKIDTHREE", "AKIDFOUR"};
	pthread_t thread;
	struct diag diag;
	void *s3;

	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	process_of("AKIDZERO", 100);
	s3 = opened("bucket", "");
	ck_assert_int_eq(pthread_create(&thread, NULL, sign_many, s3), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(ids); i++) {
		process_of(ids[i], 100);
		ck_assert_uint_eq(provider_s3.renew(s3, NULL, &diag), 60);
		ck_assert_int_eq(refuse(s3, 301, i & 1 ? "eu-west-1" : "eu-west-2", ""), 1);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	expect(s3, "https://bucket.s3.eu-west-1.amazonaws.com/a", "AKIDFOUR/");
	provider_s3.close(s3);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, clean, clean_up);
	tcase_add_loop_test(tcase, where_buckets_are, 0, BASE_ARRAY_LEN(addresses));
	tcase_add_loop_test(tcase, mistakes_are_told, 0, BASE_ARRAY_LEN(mistakes));
	tcase_add_test(tcase, profiles_say_where);
	tcase_add_test(tcase, profiles_may_be_unreadable);
	tcase_add_test(tcase, lists_are_asked_for);
	tcase_add_test(tcase, lists_are_read);
	tcase_add_loop_test(tcase, refusals_are_told, 0, BASE_ARRAY_LEN(refusals));
	tcase_add_test(tcase, regions_are_found);
	tcase_add_test(tcase, expired_ones_are_replaced);
	tcase_add_test(tcase, anonymous_ones_are_not_signed);
	tcase_add_test(tcase, they_are_renewed_early);
	tcase_add_test(tcase, in_two_threads);
}

int main(void)
{
	return suite_run("s3", add);
}
