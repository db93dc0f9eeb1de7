/* SPDX-License-Identifier: Apache-2.0 */

/* https:// and http://: what is asked for, with what, and what is said when the server says no. */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "bucket/bearer.h"
#include "tests/bucket/fake_http.h"
#include "tests/suite.h"

static struct diag diag;

static int opened(const char *scheme, char *place, char *path, const char *token_file, void **ret)
{
	const struct provider_ops *ops =
	    strcmp(scheme, "http") == 0 ? &provider_http : &provider_https;
	const struct bucket_url url = {.ops = ops, .text = path, .place = place, .path = path};
	const struct bucket_option option = {"token_file", token_file};
	const struct bucket_options options = {&option, token_file ? 1 : 0};

	*ret = NULL;
	return ops->open(&url, &options, NULL, ret, &diag);
}

static void *good(char *place, char *path, const char *token_file)
{
	void *self;

	ck_assert_msg(opened("https", place, path, token_file, &self) == 0, "%s", diag.text);
	return self;
}

static void is_asked(void *self, const char *method, const char *name, const char *way,
		     const char *url)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(provider_https.request(self, method, name, &request), 0);
	ck_assert_str_eq(request.method, way);
	ck_assert_str_eq(request.url, url);
	ck_assert(request.follows);
	if (strcmp(way, method) != 0)
		ck_assert_str_eq(http_request_value(&request, "Range"), "bytes=0-0");
	http_request_free(&request);
}

static void is_signed(void *self, const char *value)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(provider_https.request(self, "GET", "a", &request), 0);
	ck_assert_int_eq(provider_https.sign(self, &request), 0);
	ck_assert_int_eq(provider_https.sign(self, &request), 0);
	ck_assert_uint_eq(request.n_headers, value != NULL);
	if (value)
		ck_assert_str_eq(http_request_value(&request, "authorization"), value);
	http_request_free(&request);
}

static void put(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(base_write_all(fd, text, strlen(text)), 0);
}

static int refused(void *self, long status, const char *body, const char *name)
{
	char copy[256];
	struct http_answer answer = {.status = status, .body = copy, .body_bytes = strlen(body)};

	snprintf(copy, sizeof(copy), "%s", body);
	return provider_https.refused(self, NULL, &answer, name, &diag);
}

START_TEST(names)
{
	void *self = good("host:8443", "data/a.tar", NULL);
	struct http_request request = {.method = NULL};

	is_asked(self, "GET", "data/a b#1\"%20.tar", "GET",
		 "https://host:8443/data/a%20b%231%22%20.tar");
	is_asked(self, "HEAD", "data/\xc3\xa9?x=1&y", "HEAD",
		 "https://host:8443/data/%C3%A9?x=1&y");
	is_signed(self, NULL);
	ck_assert_int_eq(provider_https.list(self, "data/", NULL, &request), -ENOTSUP);
	ck_assert_uint_eq(provider_https.renew(self, NULL, &diag), 0);
	provider_https.close(self);
}
END_TEST

/* The signature stays with the name, and out of messages; who answers GET alone is asked by GET. */
START_TEST(presigned)
{
	void *self = good("host", "b/a.tar?X-Amz-Signature=secret", NULL);

	is_asked(self, "GET", "b/a.tar", "GET", "https://host/b/a.tar?X-Amz-Signature=secret");
	is_asked(self, "GET", "b/a.tar?X-Amz-Signature=secret", "GET",
		 "https://host/b/a.tar?X-Amz-Signature=secret");
	is_asked(self, "HEAD", "b/a.tar", "HEAD", "https://host/b/a.tar?X-Amz-Signature=secret");
	ck_assert_int_eq(refused(self, 403, "", "b/a.tar"), 1);
	is_asked(self, "HEAD", "b/a.tar", "GET", "https://host/b/a.tar?X-Amz-Signature=secret");
	ck_assert_int_eq(
	    refused(self, 403, "Request has expired", "b/a.tar?X-Amz-Signature=secret"), 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "https://host/b/a.tar: the server answers 403 "
						"(Request has expired): is what stands behind"));
	ck_assert_ptr_null(strstr(diag.text, "secret"));
	provider_https.close(self);
}
END_TEST

START_TEST(tokens)
{
	void *self;

	put("https_test.token", " first\n");
	self = good("host", "a", "https_test.token");
	is_signed(self, "Bearer first");
	ck_assert_int_eq(refused(self, 401, "no", "a"), 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "token_file="));
	ck_assert_ptr_null(strstr(diag.text, "first"));
	put("https_test.token", "second");
	ck_assert_int_eq(refused(self, 401, "no", "a"), 1);
	is_signed(self, "Bearer second");
	/* Another thread's request was refused with the first one, too. */
	ck_assert_int_eq(refused(self, 401, "no", "b"), 1);
	provider_https.close(self);
	unlink("https_test.token");
}
END_TEST

START_TEST(refusals)
{
	void *self;

	ck_assert_int_eq(opened("https", "me:word@host", "a", NULL, &self), -EINVAL);
	ck_assert_ptr_null(strstr(diag.text, "word@"));
	ck_assert_int_eq(opened("https", "host", "a", "/nonexistent/token", &self), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"/nonexistent/token\" cannot be read"));
	put("https_test.token", "a\nb");
	ck_assert_int_eq(opened("https", "host", "a", "https_test.token", &self), -EINVAL);
	put("https_test.token", "fine");
	ck_assert_int_eq(opened("http", "host", "a", "https_test.token", &self), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "in the clear"));
	ck_assert_int_eq(opened("http", "localhost.host", "a", "https_test.token", &self), -EINVAL);
	ck_assert_int_eq(opened("http", "127.0.0.1:80", "a", "https_test.token", &self), 0);
	provider_http.close(self);
	unlink("https_test.token");

	self = good("host", "a", NULL);
	ck_assert_int_eq(refused(self, 404, "{\"error\": \"none \\u0007\"}", "a"), 0);
	ck_assert_str_eq(diag.text, "https://host/a: the server answers 404 (none \\x07): there is "
				    "nothing of that name: is the path right?");
	provider_https.close(self);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, presigned);
	tcase_add_test(tcase, tokens);
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_run("https", add);
}
