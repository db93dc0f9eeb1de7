/* SPDX-License-Identifier: Apache-2.0 */

/* hf://: what the Hub is asked for, and what is made of its answers. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bucket/fake_http.h"
#include "tests/suite.h"

#define HUB "https://huggingface.co"
#define SHA "1f2e3d4c5b6a79880123456789abcdef01234567"
#define ASKS "/revision/main?expand=sha"

static struct diag diag;
static const struct provider_ops *const ops = &provider_hf;

static int opened(char *path, const struct bucket_option *option, size_t n, void **ret)
{
	char place[] = "datasets";
	const struct bucket_url url = {.ops = ops, .place = place, .path = path};
	const struct bucket_options options = {option, n};

	*ret = NULL;
	return ops->open(&url, &options, NULL, ret, &diag);
}

static void *good(char *path)
{
	void *self;

	ck_assert_msg(opened(path, NULL, 0, &self) == 0, "%s", diag.text);
	ck_assert_uint_eq(fake_left(), 0);
	return self;
}

static void is_asked(void *self, const char *name, const char *url)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(ops->request(self, "GET", name, &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_str_eq(request.url, url);
	ck_assert(request.follows);
	http_request_free(&request);
}

static void is_listed(void *self, const char *prefix, const char *cursor, const char *url)
{
	struct http_request request = {.method = NULL};

	ck_assert_int_eq(ops->list(self, prefix, cursor, &request), 0);
	ck_assert_str_eq(request.method, strstr(url, "paths-info") ? "POST" : "GET");
	ck_assert_str_eq(request.url, url);
	if (request.body)
		ck_assert_str_eq(request.body, "paths=data%2Fsub%2Fb.tar&expand=False");
	http_request_free(&request);
}

static void put(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(base_write_all(fd, text, strlen(text)), 0);
}

static void nobody(void)
{
	static const char *const variable[] = {
	    "HF_ENDPOINT",   "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
	    "HF_TOKEN_PATH", "HF_HOME",  "XDG_CACHE_HOME"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(variable); i++)
		unsetenv(variable[i]);
	setenv("HOME", "/nonexistent", 1);
}

static const struct {
	const char *path, *asked, *name, *url;
} places[] = {
    {"O/N", HUB "/api/datasets/O/N" ASKS, "O/N/a b.tar", "/O/N/resolve/" SHA "/a%20b.tar"},
    {"O/N/x/", HUB "/api/datasets/O/N" ASKS, "O/N/x/y", "/O/N/resolve/" SHA "/x/y"},
    {"O/N@v1.0/x", HUB "/api/datasets/O/N/revision/v1.0?expand=sha", "O/N@v1.0/x",
     "/O/N/resolve/" SHA "/x"},
    {"O/N@refs/convert/parquet/d/t",
     HUB "/api/datasets/O/N/revision/refs%2Fconvert%2Fparquet?expand=sha",
     "O/N@refs/convert/parquet/d/t/0.parquet", "/O/N/resolve/" SHA "/d/t/0.parquet"},
    {"O/N@refs%2Fpr%2F7/d", HUB "/api/datasets/O/N/revision/refs%2Fpr%2F7?expand=sha",
     "O/N@refs%2Fpr%2F7/d", "/O/N/resolve/" SHA "/d"},
    {"O/N@" SHA "/d", NULL, "O/N@" SHA "/d", "/O/N/resolve/" SHA "/d"},
};

START_TEST(revisions)
{
	char path[256], url[256];
	void *self;

	nobody();
	snprintf(path, sizeof(path), "%s", places[_i].path);
	snprintf(url, sizeof(url), HUB "/datasets%s", places[_i].url);
	if (places[_i].asked)
		FAKE_HTTP({places[_i].asked, 200, "{\"id\": \"O/N\", \"sha\": \"" SHA "\"}", NULL,
			   0, NULL});
	self = good(path);
	is_asked(self, places[_i].name, url);
	ops->close(self);
}
END_TEST

/* It is not looked up where it is known. */
START_TEST(commits_stay)
{
	const struct bucket_option option = {"commit", SHA};
	char path[] = "O/N@v1.0/x";
	void *self;

	nobody();
	ck_assert_msg(opened(path, &option, 1, &self) == 0, "%s", diag.text);
	is_asked(self, "O/N@v1.0/x", HUB "/datasets/O/N/resolve/" SHA "/x");
	ck_assert_str_eq(ops->commit(self), SHA);
	ops->close(self);
}
END_TEST

static const char page[] =
    "[{\"type\":\"directory\",\"oid\":\"aa\",\"size\":0,\"path\":\"data/sub\"},"
    "{\"type\":\"file\",\"oid\":\"b1\",\"size\":17,\"path\":\"data/a.txt\"},"
    "{\"type\":\"file\",\"oid\":\"b2\",\"size\":5000000000,\"lfs\":{\"oid\":\"c0ffee\",\"size\":"
    "5000000000,"
    "\"pointerSize\":134},\"xetHash\":\"dd\",\"path\":\"data/sub/b.tar\"},"
    "{\"type\":\"file\",\"oid\":\"b3\",\"size\":1,\"path\":\"database\"}]";

START_TEST(lists)
{
	static const char next[] = "https://other.host/api/datasets/O/N/tree/" SHA "?cursor=x%3D";
	char path[] = "O/N@" SHA, *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(path);
	is_listed(self, "O/N@" SHA, NULL,
		  HUB "/api/datasets/O/N/tree/" SHA "?recursive=true&expand=false");
	is_listed(self, "O/N@" SHA "/", NULL,
		  HUB "/api/datasets/O/N/tree/" SHA "?recursive=true&expand=false");
	is_listed(self, "O/N@" SHA "/data/", NULL,
		  HUB "/api/datasets/O/N/tree/" SHA "/data?recursive=true&expand=false");
	lines = fake_listed(ops, self, page, next, &cursor, &r, &diag);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(lines, "O/N@" SHA "/data/a.txt 17 0 b1\n"
				"O/N@" SHA "/data/sub/b.tar 5000000000 0 c0ffee\n");
	free(lines);
	/* The next page is asked for where the first was. */
	is_listed(self, "O/N@" SHA "/data/", cursor,
		  HUB "/api/datasets/O/N/tree/" SHA "?cursor=x%3D");
	free(cursor);
	lines = fake_listed(ops, self, page, "", &cursor, &r, &diag);
	ck_assert_ptr_null(cursor);
	free(lines);
	ops->close(self);
}
END_TEST

/* A file first, then what its folder has beside it: each once. */
START_TEST(one)
{
	char path[] = "O/N@" SHA, *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(path);
	is_listed(self, "O/N@" SHA "/data/sub/b.tar", NULL,
		  HUB "/api/datasets/O/N/paths-info/" SHA);
	lines = fake_listed(ops, self, page, "", &cursor, &r, &diag);
	ck_assert_str_eq(lines, "O/N@" SHA "/data/sub/b.tar 5000000000 0 c0ffee\n");
	ck_assert_str_eq(cursor, "");
	free(lines);
	is_listed(self, "O/N@" SHA "/data/sub/b.tar", cursor,
		  HUB "/api/datasets/O/N/tree/" SHA "/data/sub?recursive=true&expand=false");
	free(cursor);
	lines = fake_listed(ops, self, page, "", &cursor, &r, &diag);
	ck_assert_str_eq(lines, "");
	ck_assert_ptr_null(cursor);
	free(lines);
	ops->close(self);
}
END_TEST

static const struct {
	const char *body, *next;
} bad_pages[] = {
    {"{\"error\": \"no\"}", ""},
    {"[{", ""},
    {"[{\"type\":\"file\",\"oid\":\"b\",\"path\":\"a\"}]", ""},
    {"[{\"type\":\"file\",\"size\":1,\"path\":\"a\"}]", ""},
    {"[{\"type\":\"file\",\"size\":-1,\"oid\":\"b\",\"path\":\"a\"}]", ""},
    {"[{\"type\":\"file\",\"size\":1,\"oid\":\"b\"}]", ""},
    {"[]", "https://elsewhere/x"},
    {"[]", "/api/datasets/\x01"},
};

START_TEST(nonsense)
{
	char path[] = "O/N@" SHA, *cursor = NULL, *lines;
	void *self;
	int r;

	nobody();
	self = good(path);
	is_listed(self, "O/N@" SHA "/", NULL,
		  HUB "/api/datasets/O/N/tree/" SHA "?recursive=true&expand=false");
	lines = fake_listed(ops, self, bad_pages[_i].body, bad_pages[_i].next, &cursor, &r, &diag);
	ck_assert_int_eq(r, -EBADMSG);
	ck_assert_str_eq(lines, "");
	free(lines);
	ops->close(self);
}
END_TEST

static void is_sent(const char *sent, const struct bucket_option *option)
{
	char path[] = "O/N";
	void *self;

	FAKE_HTTP({HUB "/api/datasets/O/N" ASKS, 200, "{\"sha\": \"" SHA "\"}", NULL, 0, sent});
	ck_assert_msg(opened(path, option, option != NULL, &self) == 0, "%s", diag.text);
	if (!*sent)
		ck_assert_str_eq(fake_sent, "");
	ops->close(self);
}

/* In this order they come first. */
START_TEST(tokens)
{
	const struct bucket_option file = {"token_file", "hf_test.home/other"};
	const struct bucket_option anonymous = {"anonymous", "1"};

	nobody();
	is_sent("", NULL);
	mkdir("hf_test.home", 0700);
	mkdir("hf_test.home/huggingface", 0700);
	put("hf_test.home/huggingface/token", "of_cache\n");
	setenv("XDG_CACHE_HOME", "hf_test.home", 1);
	is_sent("Authorization: Bearer of_cache\n", NULL);
	put("hf_test.home/token", "of_home");
	setenv("HF_HOME", "hf_test.home", 1);
	is_sent("Authorization: Bearer of_home\n", NULL);
	setenv("HF_TOKEN", "of_variable", 1);
	is_sent("Authorization: Bearer of_variable\n", NULL);
	put("hf_test.home/other", "of_option");
	is_sent("Authorization: Bearer of_option\n", &file);
	is_sent("", &anonymous);
	unlink("hf_test.home/huggingface/token");
	unlink("hf_test.home/token");
	unlink("hf_test.home/other");
	rmdir("hf_test.home/huggingface");
	rmdir("hf_test.home");
}
END_TEST

static const struct {
	const char *token, *endpoint;
	long status;
	const char *body;
	int error;
	const char *says;
} answers[] = {
    {NULL, NULL, 401, "{\"error\":\"Invalid username or password.\"}", -EACCES,
     "hf://datasets/O/N@main: " HUB " answers 401 (Invalid username or password.): it is private, "
     "gated, or there is none of that name: set HF_TOKEN"},
    {"t0k", NULL, 403, "Access to dataset O/N is restricted", -EACCES, "(" HUB "/datasets/O/N)"},
    {"t0k", NULL, 401, "", -EACCES, "it does not take the token"},
    {NULL, NULL, 404, "Not Found", -EINVAL, "answers 404 (Not Found): there is no such data set"},
    {NULL, NULL, 200, "<html>", -EINVAL, "does not say which commit main of O/N is"},
    {NULL, NULL, 200, "{\"sha\":\"../../etc\"}", -EINVAL, "does not say which commit"},
    {"t0k", "http://mirror", 0, NULL, -EINVAL, "the token of HF_TOKEN would go in the clear"},
    {NULL, "http://mirror/hf/", 500, "", -EINVAL, "http://mirror/hf answers 500"},
    {"t\x01", NULL, 0, NULL, -EINVAL, "HF_TOKEN: it is empty"},
};

START_TEST(refusals)
{
	char path[] = "O/N/x", url[128];
	const char *endpoint = answers[_i].endpoint;
	void *self;

	nobody();
	if (answers[_i].token)
		setenv("HF_TOKEN", answers[_i].token, 1);
	if (endpoint)
		setenv("HF_ENDPOINT", endpoint, 1);
	snprintf(url, sizeof(url), "%s/api/datasets/O/N" ASKS, endpoint ? "http://mirror/hf" : HUB);
	if (answers[_i].body)
		FAKE_HTTP({url, answers[_i].status, answers[_i].body, NULL, 0, NULL});
	ck_assert_int_eq(opened(path, NULL, 0, &self), answers[_i].error);
	ck_assert_msg(strstr(diag.text, answers[_i].says) != NULL, "%s", diag.text);
	ck_assert_ptr_null(strstr(diag.text, "t0k"));
	ck_assert_uint_eq(fake_left(), 0);
}
END_TEST

static const char *const bad_paths[] = {"", "O", "O/", "/N", "O/@main", "O/N@/x"};

START_TEST(bad_places)
{
	char path[64];
	void *self;

	nobody();
	snprintf(path, sizeof(path), "%s", bad_paths[_i]);
	ck_assert_int_eq(opened(path, NULL, 0, &self), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "hf://datasets/ORG/NAME@REVISION/path"));
}
END_TEST

START_TEST(refused_objects)
{
	char path[] = "O/N@" SHA, body[] = "Entry not found";
	const struct http_answer answer = {.status = 404, .body = body, .body_bytes = 15};
	void *self;

	nobody();
	self = good(path);
	ck_assert_int_eq(ops->refused(self, NULL, &answer, "O/N@" SHA "/a", &diag), 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "@" SHA "/a: " HUB " answers 404"));
	ck_assert_uint_eq(ops->renew(self, NULL, &diag), 0);
	ops->close(self);
}
END_TEST

/* A file's own place at the CDN is asked without the Hub, and without the token. */
START_TEST(landings)
{
	char path[] = "O/N@" SHA, url[32], name[64];
	const struct http_answer answer = {.status = 403};
	struct http_request request = {.method = NULL};
	void *self;

	nobody();
	setenv("HF_TOKEN", "t0k", 1);
	self = good(path);
	ops->landed(self, "O/N@" SHA "/a", "https://cdn/x?sig=1");
	ops->landed(self, "O/N@" SHA "/a", "https://cdn/x?sig=2");
	ck_assert_int_eq(ops->request(self, "GET", "O/N@" SHA "/a", &request), 0);
	ck_assert_int_eq(ops->sign(self, &request), 0);
	ck_assert_str_eq(request.url, "https://cdn/x?sig=1");
	ck_assert_uint_eq(request.n_headers, 0);
	http_request_free(&request);
	is_asked(self, "O/N@" SHA "/b", HUB "/datasets/O/N/resolve/" SHA "/b");
	ck_assert_int_eq(ops->refused(self, NULL, &answer, "O/N@" SHA "/a", &diag), 1);
	is_asked(self, "O/N@" SHA "/a", HUB "/datasets/O/N/resolve/" SHA "/a");
	ck_assert_int_eq(ops->refused(self, NULL, &answer, "O/N@" SHA "/a", &diag), 0);
	/* Of more than it keeps, each has its own or none. */
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "O/N@" SHA "/%u", i);
		snprintf(url, sizeof(url), "https://cdn/%u", i);
		ops->landed(self, name, url);
	}
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "O/N@" SHA "/%u", i);
		ck_assert_int_eq(ops->request(self, "GET", name, &request), 0);
		ck_assert_str_eq(strrchr(request.url, '/'), strrchr(name, '/'));
		http_request_free(&request);
	}
	ops->close(self);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, revisions, 0, BASE_ARRAY_LEN(places));
	tcase_add_test(tcase, commits_stay);
	tcase_add_test(tcase, lists);
	tcase_add_test(tcase, one);
	tcase_add_loop_test(tcase, nonsense, 0, BASE_ARRAY_LEN(bad_pages));
	tcase_add_test(tcase, tokens);
	tcase_add_loop_test(tcase, refusals, 0, BASE_ARRAY_LEN(answers));
	tcase_add_loop_test(tcase, bad_places, 0, BASE_ARRAY_LEN(bad_paths));
	tcase_add_test(tcase, refused_objects);
	tcase_add_test(tcase, landings);
}

int main(void)
{
	return suite_run("hf", add);
}
