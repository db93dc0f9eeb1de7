/* SPDX-License-Identifier: Apache-2.0 */

/* gs://: credentials of each kind, what is asked for, and what is made of answers. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/base64.h"
#include "bucket/gs_sign.h"
#include "tests/bucket/fake_http.h"
#include "tests/bucket/keys.h"
#include "tests/suite.h"

#define HOST "https://storage.googleapis.com"
#define TOKENS "https://oauth2.googleapis.com/token"
#define MACHINE "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"
#define TOKEN "{\"access_token\": \"ya29.t0k\", \"expires_in\": 3599, \"token_type\": \"Bearer\"}"
#define OTHER "{\"access_token\": \"ya29.0ther\", \"expires_in\": 3599}"
#define FILE_NAME "gs_test.json"

static struct diag diag;
static const struct provider_ops *const ops = &provider_gs;
static const struct bucket_option anonymous = {"anonymous", "1"};

static int opened(const char *bucket, const struct bucket_option *option, size_t n, void **ret)
{
	char place[64], path[] = "data";
	const struct bucket_url url = {.ops = ops, .place = place, .path = path};
	const struct bucket_options options = {option, n};

	snprintf(place, sizeof(place), "%s", bucket);
	*ret = NULL;
	return ops->open(&url, &options, NULL, ret, &diag);
}

static void *good(const struct bucket_option *option)
{
	void *self;

	ck_assert_msg(opened("my-bucket", option, option != NULL, &self) == 0, "%s", diag.text);
	ck_assert_uint_eq(fake_left(), 0);
	return self;
}

static void nobody(void)
{
	unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
	unsetenv("CLOUDSDK_CONFIG");
	unsetenv("GCE_METADATA_HOST");
	unsetenv("STORAGE_EMULATOR_HOST");
	setenv("HOME", "/nonexistent", 1);
}

static void put(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(base_write_all(fd, text, strlen(text)), 0);
}

static void is_signed(void *self, const char *value)
{
	struct http_request request = {.method = NULL};
	const char *has;

	ck_assert_int_eq(ops->request(self, "GET", "a", &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	has = http_request_value(&request, "Authorization");
	ck_assert_str_eq(has ? has : "", value);
	http_request_free(&request);
}

static void is_asked(void *self, const char *name, const char *url, const char *project)
{
	struct http_request request = {.method = NULL};
	const char *has;

	ck_assert_int_eq(ops->request(self, "HEAD", name, &request), 0);
	ck_assert_str_eq(request.method, "HEAD");
	ck_assert_str_eq(request.url, url);
	has = http_request_value(&request, "x-goog-user-project");
	ck_assert_str_eq(has ? has : "", project);
	http_request_free(&request);
}

static void is_listed(void *self, const char *prefix, const char *cursor, const char *url)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(ops->list(self, prefix, cursor, &request), 0);
	ck_assert_str_eq(request.method, "GET");
	ck_assert_str_eq(request.url, url);
	http_request_free(&request);
}

#define PAGE "&maxResults=1000&fields=items(name,size,generation),nextPageToken"

START_TEST(objects)
{
	const struct bucket_option payer[] = {{"anonymous", "1"}, {"user_project", "p1"}};
	void *self;

	nobody();
	self = good(&anonymous);
	is_signed(self, "");
	is_asked(self, "a b/\xc3\xa9?.tar", HOST "/my-bucket/a%20b/%C3%A9%3F.tar", "");
	is_listed(self, "a/b c", NULL, HOST "/storage/v1/b/my-bucket/o?prefix=a%2Fb%20c" PAGE);
	is_listed(self, "", "x=/",
		  HOST "/storage/v1/b/my-bucket/o?prefix=" PAGE "&pageToken=x%3D%2F");
	ck_assert_uint_eq(ops->renew(self, NULL, &diag), 0);
	ops->close(self);

	ck_assert_int_eq(opened("my-bucket", payer, 2, &self), 0);
	is_asked(self, "a", HOST "/my-bucket/a", "p1");
	ops->close(self);

	setenv("STORAGE_EMULATOR_HOST", "localhost:4443", 1);
	self = good(NULL);
	is_signed(self, "");
	is_asked(self, "a", "http://localhost:4443/my-bucket/a", "");
	ops->close(self);
	setenv("STORAGE_EMULATOR_HOST", "http://other/", 1);
	self = good(NULL);
	is_asked(self, "a", "http://other/my-bucket/a", "");
	ops->close(self);
}
END_TEST

START_TEST(lists)
{
	static const char first[] =
	    "{\"nextPageToken\": \"more=\", \"items\": ["
	    "{\"name\": \"data/a\", \"size\": \"5000000000\", \"generation\": "
	    "\"1700000000000001\"},"
	    "{\"name\": \"data/b\", \"size\": \"0\", \"generation\": \"2\"}]}";
	char *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(&anonymous);
	lines = fake_listed(ops, self, first, "", &cursor, &r, &diag);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(lines, "data/a 5000000000 0 1700000000000001\ndata/b 0 0 2\n");
	ck_assert_str_eq(cursor, "more=");
	free(lines);
	free(cursor);
	lines = fake_listed(ops, self, "{}", "", &cursor, &r, &diag);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(lines, "");
	ck_assert_ptr_null(cursor);
	free(lines);
	ops->close(self);
}
END_TEST

static const char *const bad_pages[] = {
    "[]",
    "<xml>",
    "{\"items\": [1]}",
    "{\"items\": [{\"name\": \"a\", \"size\": \"1\"}]}",
    "{\"items\": [{\"name\": \"a\", \"size\": \"-1\", \"generation\": \"1\"}]}",
    "{\"items\": [{\"name\": \"a\", \"size\": \"1\", \"generation\": \"x\"}]}",
    "{\"items\": [{\"name\": \"a\", \"size\": \"99999999999999999999\", \"generation\": \"1\"}]}",
    "{\"items\": [{\"name\": \"\", \"size\": \"1\", \"generation\": \"1\"}]}",
};

START_TEST(nonsense)
{
	char *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(&anonymous);
	lines = fake_listed(ops, self, bad_pages[_i], "", &cursor, &r, &diag);
	ck_assert_int_eq(r, -EBADMSG);
	ck_assert_str_eq(lines, "");
	free(lines);
	ops->close(self);
}
END_TEST

START_TEST(signatures)
{
	char *signature = NULL, *text;

	ck_assert_int_eq(gs_sign_rs256(KEYS_RSA, "header.claims", &signature), 0);
	ck_assert_str_eq(signature, KEYS_SIGNATURE);
	free(signature);
	ck_assert_int_eq(gs_sign_rs256(KEYS_EC, "header.claims", &signature), -EINVAL);
	ck_assert_int_eq(gs_sign_rs256("", "a", &signature), -EINVAL);
	ck_assert_int_eq(
	    gs_sign_rs256("-----BEGIN KEY-----\n====\n-----END KEY-----", "a", &signature),
	    -EINVAL);
	ck_assert_int_eq(
	    gs_sign_rs256("-----BEGIN KEY-----\nAAAA\n-----END KEY-----", "a", &signature),
	    -EINVAL);
	ck_assert_int_eq(gs_sign_rs256("-----BEGIN KEY----------END KEY-----", "a", &signature),
			 -EINVAL);
	text = base64_for_url("\xfb\xff\xfe\x01", 4);
	ck_assert_str_eq(text, "-__-AQ");
	free(text);
}
END_TEST

static const struct {
	const char *text, *bytes;
} codes[] = {{"", ""},
	     {"Zg==", "f"},
	     {"Zm8=", "fo"},
	     {"Zm9v", "foo"},
	     {"Zm9vYg==", "foob"},
	     {"Zm9vYmE=", "fooba"},
	     {"Zm9vYmFy", "foobar"},
	     {"/+8=", "\xff\xef"}};
static const char *const bad_codes[] = {"A", "AAAAA", "=A", "AA=A", "A-==", "AA==="};

START_TEST(base64)
{
	uint8_t *bytes;
	char *text;
	size_t n;

	for (size_t i = 0; i < BASE_ARRAY_LEN(codes); i++) {
		text = base64_of(codes[i].bytes, strlen(codes[i].bytes));
		ck_assert_str_eq(text, codes[i].text);
		free(text);
		ck_assert_int_eq(base64_read(codes[i].text, strlen(codes[i].text), &bytes, &n), 0);
		ck_assert_uint_eq(n, strlen(codes[i].bytes));
		ck_assert_mem_eq(bytes, codes[i].bytes, n);
		free(bytes);
	}
	ck_assert_int_eq(base64_read(" Z m\n8 ", 7, &bytes, &n), 0);
	ck_assert_uint_eq(n, 2);
	free(bytes);
	for (size_t i = 0; i < BASE_ARRAY_LEN(bad_codes); i++)
		ck_assert_int_eq(base64_read(bad_codes[i], strlen(bad_codes[i]), &bytes, &n),
				 -EINVAL);
}
END_TEST

/* A key file, as the console makes it. */
static void put_service(const char *key, const char *uri)
{
	FILE *file = fopen(FILE_NAME, "we");
	struct json_out out;

	ck_assert_ptr_nonnull(file);
	json_out_init(&out, false);
	json_out_object_begin(&out);
	json_out_member_string(&out, "type", "service_account");
	json_out_member_string(&out, "client_email", "me@p1.iam.gserviceaccount.com");
	json_out_member_string(&out, "private_key", key);
	if (uri)
		json_out_member_string(&out, "token_uri", uri);
	json_out_object_end(&out);
	ck_assert_int_eq(json_out_write(&out, file), 0);
	json_out_fini(&out);
	fclose(file);
	setenv("GOOGLE_APPLICATION_CREDENTIALS", FILE_NAME, 1);
}

/* What was sent is signed by the key: made again, it is the same. */
static void is_assertion(void)
{
	char *claims = strstr(fake_sent, "&assertion="), *signature = NULL, *dot;

	ck_assert_ptr_nonnull(claims);
	claims += strlen("&assertion=");
	dot = strrchr(claims, '.');
	ck_assert_ptr_nonnull(dot);
	*dot = '\0';
	ck_assert_int_eq(gs_sign_rs256(KEYS_RSA, claims, &signature), 0);
	ck_assert_str_eq(signature, dot + 1);
	/* {"alg":"RS256","typ":"JWT"}, and {"iss":"me@p1.iam */
	ck_assert_ptr_nonnull(
	    strstr(claims, "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJtZUBwMS5pYW"));
	free(signature);
}

START_TEST(service_accounts)
{
	void *self;

	nobody();
	put_service(KEYS_RSA, NULL);
	FAKE_HTTP({TOKENS, 200, TOKEN, NULL, 0,
		   "Content-Type: application/x-www-form-urlencoded\n"
		   "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="});
	self = good(NULL);
	is_assertion();
	is_signed(self, "Bearer ya29.t0k");
	/* Five minutes early. */
	ck_assert_uint_le(ops->renew(self, NULL, &diag), 3299);
	ck_assert_uint_ge(ops->renew(self, NULL, &diag), 3200);
	ops->close(self);
	unlink(FILE_NAME);
}
END_TEST

START_TEST(users)
{
	static const char text[] = "{\"type\": \"authorized_user\", \"client_id\": \"c1\",\n"
				   " \"client_secret\": \"s&1\", \"refresh_token\": \"1//r\"}\n";
	void *self;

	nobody();
	mkdir("gs_test.home", 0700);
	put("gs_test.home/application_default_credentials.json", text);
	setenv("CLOUDSDK_CONFIG", "gs_test.home", 1);
	FAKE_HTTP(
	    {TOKENS, 200, TOKEN, NULL, 0,
	     "grant_type=refresh_token&client_id=c1&client_secret=s%261&refresh_token=1%2F%2Fr"});
	self = good(NULL);
	is_signed(self, "Bearer ya29.t0k");
	ops->close(self);
	FAKE_HTTP({TOKENS, 400, "{\"error\": \"invalid_grant\", \"error_description\": \"Bad\"}",
		   NULL, 0, NULL});
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "it answers 400 (Bad). Make the credentials anew"));
	ck_assert_ptr_null(strstr(diag.text, "s&1"));
	unlink("gs_test.home/application_default_credentials.json");
	rmdir("gs_test.home");
}
END_TEST

START_TEST(machines)
{
	struct http_answer answer = {.status = 401};
	void *self;

	nobody();
	FAKE_HTTP({MACHINE, 200, OTHER, NULL, 0, "Metadata-Flavor: Google\n"});
	self = good(NULL);
	is_signed(self, "Bearer ya29.0ther");
	/* A token of this moment is no older than what it is refused for. */
	ck_assert_int_eq(ops->refused(self, NULL, &answer, "a", &diag), 1);
	ops->close(self);

	setenv("GCE_METADATA_HOST", "meta:1", 1);
	FAKE_HTTP({"http://meta:1/computeMetadata/v1/instance/service-accounts/default/token", 200,
		   "{\"access_token\": \"short\", \"expires_in\": 20}", NULL, 0, NULL});
	self = good(NULL);
	ck_assert_uint_le(ops->renew(self, NULL, &diag), 20);
	ops->close(self);
	unsetenv("GCE_METADATA_HOST");

	FAKE_HTTP({MACHINE, 0, NULL, NULL, -EIO, NULL});
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "GOOGLE_APPLICATION_CREDENTIALS is not set"));
	FAKE_HTTP({MACHINE, 404, "no", NULL, 0, NULL});
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "say anonymous=1"));
}
END_TEST

static const struct {
	const char *text, *says;
} bad_files[] = {
    {"{\"type\": \"external_account\"}", "of type \"external_account\": OneAccess reads"},
    {"{\"type\": \"service_account\"}", "have no \"client_email\""},
    {"{\"type\": \"authorized_user\", \"client_id\": \"a\"}", "have no \"client_secret\""},
    {"{\"type\": \"authorized_user\", \"client_id\": \"a\", \"client_secret\": \"t0k\", "
     "\"refresh_token\": \"t0k\", \"token_uri\": \"http://e\"}",
     "no https:// URL"},
    {"t0k", "is no JSON"},
};

START_TEST(refused_files)
{
	void *self;

	nobody();
	put(FILE_NAME, bad_files[_i].text);
	setenv("GOOGLE_APPLICATION_CREDENTIALS", FILE_NAME, 1);
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EINVAL);
	ck_assert_msg(strstr(diag.text, bad_files[_i].says) != NULL, "%s", diag.text);
	ck_assert_ptr_null(strstr(diag.text, "t0k"));
	unlink(FILE_NAME);
	/* It was named, so nothing stands in for it. */
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
}
END_TEST

START_TEST(refusals)
{
	const struct bucket_option clear = {"endpoint", "http://far"};
	char body[] = "<Error><Code>AccessDenied</Code><Message>Access denied.</Message></Error>";
	struct http_answer answer = {.status = 403, .body = body, .body_bytes = strlen(body)};
	void *self;

	nobody();
	self = good(&anonymous);
	ck_assert_int_eq(ops->refused(self, NULL, &answer, "data/", &diag), 0);
	ck_assert_str_eq(diag.text,
			 "gs://my-bucket/data/: " HOST " answers 403 (Access denied.) to "
			 "nobody: the bucket is not public: do without anonymous=1, and "
			 "log in by `gcloud auth application-default login`");
	ops->close(self);
	ck_assert_int_eq(opened("No", &anonymous, 1, &self), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "no bucket has this name"));
	ck_assert_int_eq(opened("my-bucket", &clear, 1, &self), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "in the clear"));
	put_service(KEYS_EC, NULL);
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "is no RSA key"));
	put_service(KEYS_RSA, "https://t/x");
	FAKE_HTTP({"https://t/x", 200, "{}", NULL, 0, NULL});
	ck_assert_int_eq(opened("my-bucket", NULL, 0, &self), -EACCES);
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "https://t/x gives no token for the service account"));
	unlink(FILE_NAME);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, objects);
	tcase_add_test(tcase, lists);
	tcase_add_loop_test(tcase, nonsense, 0, BASE_ARRAY_LEN(bad_pages));
	tcase_add_test(tcase, base64);
	tcase_add_test(tcase, signatures);
	tcase_add_test(tcase, service_accounts);
	tcase_add_test(tcase, users);
	tcase_add_test(tcase, machines);
	tcase_add_loop_test(tcase, refused_files, 0, BASE_ARRAY_LEN(bad_files));
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_run("gs", add);
}
