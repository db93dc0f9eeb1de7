/* SPDX-License-Identifier: Apache-2.0 */

/* az:// and abfss://: signatures, credentials of each kind, what is asked for, and what is made of answers. */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "bucket/azure_sign.h"
#include "base/base64.h"
#include "tests/bucket/fake_http.h"
#include "tests/suite.h"

#define HOST "https://acc.blob.core.windows.net"
#define KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define MACHINE                                            \
	"http://169.254.169.254/metadata/identity/oauth2/" \
	"token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F"
#define ENTRA "https://login.microsoftonline.com/ten/oauth2/v2.0/token"
#define TOKEN "{\"access_token\": \"t0k\", \"expires_in\": 3599, \"token_type\": \"Bearer\"}"
#define LIST "?restype=container&comp=list&maxresults=5000&prefix="
#define NOW INT64_C(1795770000) /* Fri, 27 Nov 2026 09:00:00 GMT */

static struct diag diag;
static const struct bucket_option anonymous = {"anonymous", "1"};

static int opened(const struct provider_ops *ops, const char *place_text, const char *path_text,
		  const struct bucket_option *option, void **ret)
{
	char place[128], path[128];
	const struct bucket_url url = {.ops = ops, .place = place, .path = path};
	const struct bucket_options options = {option, option != NULL};

	snprintf(place, sizeof(place), "%s", place_text);
	snprintf(path, sizeof(path), "%s", path_text);
	*ret = NULL;
	return ops->open(&url, &options, NULL, ret, &diag);
}

static void *good(const struct bucket_option *option)
{
	void *self;

	ck_assert_msg(opened(&provider_az, "acc", "c/data", option, &self) == 0, "%s", diag.text);
	ck_assert_uint_eq(fake_left(), 0);
	return self;
}

static const char *const variables[] = {"AZURE_STORAGE_CONNECTION_STRING",
					"AZURE_STORAGE_KEY",
					"AZURE_STORAGE_ACCOUNT_KEY",
					"AZURE_STORAGE_SAS_TOKEN",
					"AZURE_STORAGE_ACCOUNT",
					"AZURE_FEDERATED_TOKEN_FILE",
					"AZURE_CLIENT_SECRET",
					"AZURE_CLIENT_ID",
					"AZURE_TENANT_ID",
					"AZURE_AUTHORITY_HOST"};

static void nobody(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
}

/* ---- signatures: what Microsoft's own library for Python makes of the same, and the last by its manual ---- */

static const struct {
	const char *method, *url, *if_match, *range, *signature;
} vectors[] = {
    {"GET",
     "https://devstoreaccount1.blob.core.windows.net/"
     "c?restype=container&comp=list&prefix=a%2Fb%20c&maxresults=5000&marker=x%3D",
     NULL, NULL, "SaVrl28MYLEYUlq7orxZnoTzyKLsZDxpkIgaGHHtRVo="},
    {"HEAD", "http://127.0.0.1:10000/devstoreaccount1/c/x", NULL, NULL,
     "zPryFD0wJTvUexXc5Pu9uD1A5RFd7cr3s09UcVzcdI4="},
    {"GET", "https://devstoreaccount1.blob.core.windows.net/c/a%20b/x.tar", "\"0x8D\"", "bytes=0-9",
     "aIkg2A98V6mn1Yr/eu5y/ajKEuIxvrzXT12hKGiz518="},
};

START_TEST(signatures)
{
	struct http_request request = {.method = vectors[_i].method};
	char wanted[128];
	uint8_t *key;
	size_t n;

	snprintf(wanted, sizeof(wanted), "SharedKey devstoreaccount1:%s", vectors[_i].signature);
	ck_assert_int_eq(base64_read(KEY, strlen(KEY), &key, &n), 0);
	ck_assert_int_eq(http_request_url(&request, "%s", vectors[_i].url), 0);
	if (vectors[_i].if_match)
		http_request_header(&request, "If-Match: %s", vectors[_i].if_match);
	if (vectors[_i].range)
		http_request_header(&request, "Range: %s", vectors[_i].range);
	http_request_header(&request, "X-Ms-Version: 2020-10-02");
	for (unsigned again = 0; again < 2; again++)
		ck_assert_int_eq(azure_sign(&request, "devstoreaccount1", key, n, NOW), 0);
	ck_assert_str_eq(http_request_value(&request, "Authorization"), wanted);
	ck_assert_str_eq(http_request_value(&request, "x-ms-date"),
			 "Fri, 27 Nov 2026 09:00:00 GMT");
	http_request_free(&request);
	free(key);
}
END_TEST

START_TEST(dates)
{
	static const char *const bad[] = {"",
					  "Fri, 27 Nov 2026 09:00:00",
					  "Fri, 27 Nox 2026 09:00:00 GMT",
					  "Fri, 27 ovD 2026 09:00:00 GMT",
					  "2026-11-27T09:00:00Z",
					  "Fri, 27 Nov 2026 09:00:00 GMTx"};
	char date[AZURE_SIGN_DATE];

	for (int64_t at = 0; at < INT64_C(4000000000); at += 86399 * 17) {
		azure_sign_date(at, date);
		ck_assert_int_eq(azure_sign_seconds(date), at);
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++)
		ck_assert_int_eq(azure_sign_seconds(bad[i]), INT64_MIN);
}
END_TEST

/* ---- requests ---- */

static void is_asked(const struct provider_ops *ops, void *self, const char *name, const char *url,
		     const char *authorization)
{
	struct http_request request = {.method = NULL};
	const char *has;

	ck_assert_int_eq(ops->request(self, "GET", name, &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_str_eq(request.url, url);
	ck_assert_str_eq(http_request_value(&request, "x-ms-version"), "2020-10-02");
	has = http_request_value(&request, "Authorization");
	if (strcmp(authorization, "SharedKey acc:") == 0)
		ck_assert_int_eq(strncmp(has, authorization, strlen(authorization)), 0);
	else
		ck_assert_str_eq(has ? has : "", authorization);
	http_request_free(&request);
}

static void is_listed(const struct provider_ops *ops, void *self, const char *prefix,
		      const char *cursor, const char *url)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(ops->list(self, prefix, cursor, &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_str_eq(request.method, "GET");
	ck_assert_str_eq(request.url, url);
	http_request_free(&request);
}

START_TEST(places)
{
	const struct bucket_option endpoint = {"endpoint", "http://127.0.0.1:10000/acc/"};
	void *self;

	nobody();
	self = good(&anonymous);
	is_asked(&provider_az, self, "c/a b/\xc3\xa9#.tar", HOST "/c/a%20b/%C3%A9%23.tar", "");
	is_listed(&provider_az, self, "c", NULL, HOST "/c" LIST);
	is_listed(&provider_az, self, "c/a/b", "x=", HOST "/c" LIST "a%2Fb&marker=x%3D");
	ck_assert_uint_eq(provider_az.renew(self, NULL, &diag), 0);
	provider_az.close(self);

	ck_assert_int_eq(
	    opened(&provider_abfss, "c@acc.dfs.core.windows.net", "d", &anonymous, &self), 0);
	is_asked(&provider_abfss, self, "d/x", HOST "/c/d/x", "");
	is_listed(&provider_abfss, self, "d/", NULL, HOST "/c" LIST "d%2F");
	provider_abfss.close(self);
	ck_assert_int_eq(
	    opened(&provider_abfs, "c@acc.dfs.core.chinacloudapi.cn", "d", &anonymous, &self), 0);
	is_asked(&provider_abfs, self, "d", "https://acc.blob.core.chinacloudapi.cn/c/d", "");
	provider_abfs.close(self);

	setenv("AZURE_STORAGE_KEY", KEY, 1);
	self = good(&endpoint);
	is_asked(&provider_az, self, "c/x", "http://127.0.0.1:10000/acc/c/x", "SharedKey acc:");
	provider_az.close(self);
}
END_TEST

static const struct {
	const char *place, *path;
	bool is_hadoop;
} bad_places[] = {{"acc", "", false},  {"acc", "/x", false}, {"Acc", "c/x", false},
		  {"a.b", "c", false}, {"acc", "C", false},  {"acc", "x", true},
		  {"@acc", "x", true}, {"c@", "x", true},    {"c@a@b", "x", true}};

START_TEST(refused_places)
{
	void *self;

	nobody();
	ck_assert_int_eq(opened(bad_places[_i].is_hadoop ? &provider_abfss : &provider_az,
				bad_places[_i].place, bad_places[_i].path, &anonymous, &self),
			 -EINVAL);
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "containers of Azure are az://ACCOUNT/CONTAINER/path"));
}
END_TEST

/* ---- lists ---- */

#define BLOB(name, size, more)                                                                   \
	"<Blob><Name>" name "</Name><Properties><Creation-Time>x</Creation-Time><Last-Modified>" \
	"Fri, 27 Nov 2026 09:00:00 GMT</Last-Modified><Etag>0x8D</Etag>" more                    \
	"<Content-Length>" size                                                                  \
	"</Content-Length><Content-Type>a/b</Content-Type></Properties><OrMetadata /></Blob>"
#define PAGE(blobs, marker)                                                          \
	"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults " \
	"ServiceEndpoint=\"x\" ContainerName=\"c\"><Prefix>d</Prefix><Blobs>" blobs  \
	"</Blobs><NextMarker>" marker "</NextMarker></EnumerationResults>"

START_TEST(lists)
{
	char *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(&anonymous);
	lines = fake_listed(&provider_az, self,
			    PAGE(BLOB("d/a &amp; b", "5000000000", "")
				     BLOB("d/folder", "0", "<ResourceType>directory</ResourceType>")
					 BLOB("d/c", "0", "<ResourceType>file</ResourceType>"),
				 "2!more="),
			    "", &cursor, &r, &diag);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(lines, "c/d/a & b 5000000000 1795770000 0x8D\nc/d/c 0 1795770000 0x8D\n");
	ck_assert_str_eq(cursor, "2!more=");
	free(cursor);
	free(lines);
	lines = fake_listed(&provider_az, self, PAGE("", ""), "", &cursor, &r, &diag);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(lines, "");
	ck_assert_ptr_null(cursor);
	free(lines);
	provider_az.close(self);
}
END_TEST

static const char *const bad_pages[] = {
    "",
    "{}",
    "<html></html>",
    "<!DOCTYPE x [<!ENTITY a \"b\">]><EnumerationResults></EnumerationResults>",
    "<EnumerationResults><Blobs>",
    PAGE("<Blob></Blob>", "more"),
    PAGE("<Blob><Name>a</Name></Blob>", "more"),
    PAGE(BLOB("", "1", ""), ""),
    PAGE(BLOB("a", "-1", ""), ""),
    PAGE(BLOB("a", "1x", ""), ""),
    PAGE(BLOB("a", "1", "<Last-Modified>yesterday</Last-Modified>"), ""),
    PAGE("<Blob><Name>a</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>",
	 ""),
};

START_TEST(nonsense)
{
	char *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(&anonymous);
	lines = fake_listed(&provider_az, self, bad_pages[_i], "", &cursor, &r, &diag);
	ck_assert_int_eq(r, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(diag.text, HOST));
	ck_assert_ptr_null(cursor);
	free(lines);
	provider_az.close(self);
}
END_TEST

/* ---- credentials ---- */

START_TEST(keys)
{
	void *self;

	nobody();
	setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=2020&sp=rl&sig=a%2Fb%3D", 1);
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", HOST "/c/x?sv=2020&sp=rl&sig=a%2Fb%3D", "");
	is_listed(&provider_az, self, "c/", NULL, HOST "/c" LIST "&sv=2020&sp=rl&sig=a%2Fb%3D");
	provider_az.close(self);
	setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY, 1);
	setenv("AZURE_STORAGE_ACCOUNT", "acc", 1);
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", HOST "/c/x", "SharedKey acc:");
	provider_az.close(self);
	setenv("AZURE_STORAGE_CONNECTION_STRING",
	       "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=" KEY
	       ";EndpointSuffix=core.chinacloudapi.cn",
	       1);
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", "https://acc.blob.core.chinacloudapi.cn/c/x",
		 "SharedKey acc:");
	provider_az.close(self);
	setenv("AZURE_STORAGE_CONNECTION_STRING",
	       "BlobEndpoint=http://localhost:1/acc/;SharedAccessSignature=sv=1&sig=x", 1);
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", "http://localhost:1/acc/c/x?sv=1&sig=x", "");
	provider_az.close(self);
	setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true", 1);
	ck_assert_int_eq(opened(&provider_az, "devstoreaccount1", "c/x", NULL, &self), 0);
	is_listed(&provider_az, self, "c/x", NULL,
		  "http://127.0.0.1:10000/devstoreaccount1/c" LIST "x");
	provider_az.close(self);
}
END_TEST

START_TEST(machines)
{
	struct http_answer answer = {.status = 401};
	void *self;

	nobody();
	FAKE_HTTP({MACHINE, 200, "{\"access_token\": \"mach1ne\", \"expires_in\": \"3599\"}", NULL,
		   0, "Metadata: true\n"});
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", HOST "/c/x", "Bearer mach1ne");
	ck_assert_uint_le(provider_az.renew(self, NULL, &diag), 3299);
	ck_assert_uint_ge(provider_az.renew(self, NULL, &diag), 3200);
	ck_assert_int_eq(provider_az.refused(self, NULL, &answer, "c/x", &diag), 1);
	provider_az.close(self);
	setenv("AZURE_CLIENT_ID", "i d", 1);
	FAKE_HTTP({MACHINE "&client_id=i%20d", 400, "{\"error\": \"x\"}", NULL, 0, NULL});
	ck_assert_int_eq(opened(&provider_az, "acc", "c", NULL, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "no credentials for Azure Blob Storage: none of "));
	FAKE_HTTP({MACHINE "&client_id=i%20d", 0, NULL, NULL, -EIO, NULL});
	ck_assert_int_eq(opened(&provider_az, "acc", "c", NULL, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "say anonymous=1"));
}
END_TEST

START_TEST(entra)
{
	_cleanup_close_ int fd = -1;
	void *self;

	nobody();
	setenv("AZURE_CLIENT_ID", "cli", 1);
	setenv("AZURE_TENANT_ID", "ten", 1);
	setenv("AZURE_CLIENT_SECRET", "s&t", 1);
	FAKE_HTTP(
	    {ENTRA, 200, TOKEN, NULL, 0,
	     "grant_type=client_credentials&client_id=cli&scope=https%3A%2F%2Fstorage.azure.com%2F"
	     ".default&client_secret=s%26t"});
	self = good(NULL);
	is_asked(&provider_az, self, "c/x", HOST "/c/x", "Bearer t0k");
	provider_az.close(self);
	FAKE_HTTP({ENTRA, 401, "{\"error\": \"invalid_client\", \"error_description\": \"Bad\"}",
		   NULL, 0, NULL});
	ck_assert_int_eq(opened(&provider_az, "acc", "c", NULL, &self), -EACCES);
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "no token for AZURE_CLIENT_SECRET: it answers 401 (Bad)"));
	ck_assert_ptr_null(strstr(diag.text, "s&t"));

	fd = open("azure_test.token", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(base_write_all(fd, "eyJ.a-b\n", 8), 0);
	setenv("AZURE_FEDERATED_TOKEN_FILE", "azure_test.token", 1);
	setenv("AZURE_AUTHORITY_HOST", "https://other/", 1);
	FAKE_HTTP({"https://other/ten/oauth2/v2.0/token", 200, TOKEN, NULL, 0,
		   "assertion-type%3Ajwt-bearer&client_assertion=eyJ.a-b"});
	self = good(NULL);
	provider_az.close(self);
	unlink("azure_test.token");
	ck_assert_int_eq(opened(&provider_az, "acc", "c", NULL, &self), -EACCES);
	ck_assert_ptr_nonnull(strstr(diag.text, "AZURE_FEDERATED_TOKEN_FILE"));
}
END_TEST

static const struct {
	const char *variable, *value, *also, *with, *says;
} bad_variables[] = {
    {"AZURE_STORAGE_KEY", "s3cret!", NULL, NULL, "AZURE_STORAGE_KEY is no key"},
    {"AZURE_STORAGE_KEY", KEY, "AZURE_STORAGE_ACCOUNT", "other",
     "AZURE_STORAGE_KEY is of the storage account \"other\", and the URL names \"acc\""},
    {"AZURE_STORAGE_SAS_TOKEN", "s3cret", NULL, NULL, "is no SAS token"},
    {"AZURE_STORAGE_CONNECTION_STRING", "AccountName=other;AccountKey=s3cret", NULL, NULL,
     "is of the storage account \"other\""},
    {"AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc;s3cret", NULL, NULL,
     "has neither an AccountKey nor"},
    {"AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true", NULL, NULL,
     "is of the storage account \"devstoreaccount1\""},
    {"AZURE_CLIENT_SECRET", "s3cret", "AZURE_CLIENT_ID", "cli", "but not AZURE_TENANT_ID"},
    {"AZURE_FEDERATED_TOKEN_FILE", "s3cret", NULL, NULL, "but not AZURE_CLIENT_ID"},
    {"AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=http://far/;SharedAccessSignature=sig=s3cret",
     NULL, NULL, "in the clear"},
};

START_TEST(refused_variables)
{
	void *self;

	nobody();
	setenv(bad_variables[_i].variable, bad_variables[_i].value, 1);
	if (bad_variables[_i].also)
		setenv(bad_variables[_i].also, bad_variables[_i].with, 1);
	ck_assert_int_eq(opened(&provider_az, "acc", "c/x", NULL, &self), -EINVAL);
	ck_assert_msg(strstr(diag.text, bad_variables[_i].says) != NULL, "%s", diag.text);
	ck_assert_ptr_null(strstr(diag.text, "s3cret"));
}
END_TEST

START_TEST(refusals)
{
	char body[] = "\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code>"
		      "<Message>Server failed.\nRequestId:1</Message></Error>";
	struct http_answer answer = {.status = 403, .body = body, .body_bytes = strlen(body)};
	void *self;

	nobody();
	setenv("AZURE_STORAGE_KEY", KEY, 1);
	self = good(NULL);
	ck_assert_int_eq(provider_az.refused(self, NULL, &answer, "c/x", &diag), 0);
	ck_assert_str_eq(
	    diag.text, "az://acc/c/x: " HOST " answers 403 (Server failed.\\x0aRequestId:1) to "
		       "AZURE_STORAGE_KEY: is it the key of this account, and this machine's clock "
		       "right?");
	provider_az.close(self);
	self = good(&anonymous);
	answer = (struct http_answer){.status = 409};
	ck_assert_int_eq(provider_az.refused(self, NULL, &answer, "c/", &diag), 0);
	ck_assert_ptr_nonnull(
	    strstr(diag.text, "answers 409 to nobody: there is no such container, or"));
	provider_az.close(self);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, signatures, 0, BASE_ARRAY_LEN(vectors));
	tcase_add_test(tcase, dates);
	tcase_add_test(tcase, places);
	tcase_add_loop_test(tcase, refused_places, 0, BASE_ARRAY_LEN(bad_places));
	tcase_add_test(tcase, lists);
	tcase_add_loop_test(tcase, nonsense, 0, BASE_ARRAY_LEN(bad_pages));
	tcase_add_test(tcase, keys);
	tcase_add_test(tcase, machines);
	tcase_add_test(tcase, entra);
	tcase_add_loop_test(tcase, refused_variables, 0, BASE_ARRAY_LEN(bad_variables));
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_run("azure", add);
}
