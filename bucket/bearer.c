/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/bearer.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

bool bearer_is_good(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			return false;
	return *text != '\0';
}

static bool is_white(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int bearer_copy(const char *text, const char *what, char **ret, struct diag *diag)
{
	_cleanup_wipe_ char *copy = NULL;
	size_t size;

	while (is_white(*text))
		text++;
	size = strlen(text);
	while (size > 0 && is_white(text[size - 1]))
		size--;
	copy = strndup(text, size);
	if (!copy)
		return -ENOMEM;
	if (size > BEARER_MOST || !bearer_is_good(copy))
		return diag_fail(diag, -EINVAL,
				 "%s: it is empty, longer than 64 KiB, or has characters that no "
				 "header may have: it has no token in it",
				 what);
	*ret = base_take_ptr(copy);
	return 0;
}

int bearer_load(const char *path, const char *what, char **ret, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_wipe_ char *text = NULL;
	char quoted[256];
	struct stat st;
	ssize_t n;
	int r;

	base_quote(path, quoted, sizeof(quoted));
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		r = fd < 0 ? -errno : -EINVAL;
		return diag_fail(diag, r, "%s: \"%s\" cannot be read: %s", what, quoted,
				 fd < 0 ? strerror(-r) : "it is no file");
	}
	text = calloc(1, BEARER_MOST + 2);
	if (!text)
		return -ENOMEM;
	n = read(fd, text, BEARER_MOST + 1);
	if (n < 0)
		return diag_fail(diag, -errno, "%s: \"%s\" cannot be read: %s", what, quoted,
				 strerror(errno));
	if (n > BEARER_MOST || strlen(text) != (size_t)n)
		return diag_fail(diag, -EINVAL, "%s: \"%s\" is no text, or longer than 64 KiB",
				 what, quoted);
	*ret = base_take_ptr(text);
	return 0;
}

int bearer_read(const char *path, const char *what, char **ret, struct diag *diag)
{
	_cleanup_wipe_ char *text = NULL;
	const int r = bearer_load(path, what, &text, diag);
	char named[512], quoted[256];

	base_quote(path, quoted, sizeof(quoted));
	snprintf(named, sizeof(named), "%s: \"%s\"", what, quoted);
	return r == 0 ? bearer_copy(text, named, ret, diag) : r;
}

bool bearer_may_go(const char *url)
{
	static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *host = url + strlen("http://");

	if (strncasecmp(url, "https://", strlen("https://")) == 0)
		return true;
	if (strncasecmp(url, "http://", strlen("http://")) != 0)
		return false;
	for (size_t i = 0; i < BASE_ARRAY_LEN(here); i++) {
		const size_t size = strlen(here[i]);

		if (strncasecmp(host, here[i], size) == 0 && strchr(":/?", host[size]))
			return true; /* strchr(): or the end */
	}
	return false;
}

int bearer_header(struct http_request *request, const char *name, const char *value)
{
	const size_t size = strlen(name);
	size_t kept = 0;

	for (size_t i = 0; i < request->n_headers; i++)
		if (strncasecmp(request->header[i], name, size) == 0 &&
		    request->header[i][size] == ':')
			base_wipe(&request->header[i]);
		else
			request->header[kept++] = request->header[i];
	request->n_headers = kept;
	return http_request_header(request, "%s: %s", name, value);
}

int bearer_authorize(struct http_request *request, const char *token)
{
	_cleanup_wipe_ char *value = token ? base_format("Bearer %s", token) : NULL;

	if (!token)
		return 0;
	return value ? bearer_header(request, "Authorization", value) : -ENOMEM;
}

/* The text of the first <Message>, or what there is. */
static void bearer_words(const struct http_answer *answer, char *ret, size_t size)
{
	const char *from = answer->body, *begin, *end;
	size_t bytes = answer->body_bytes;

	begin = memmem(from, bytes, "<Message>", strlen("<Message>"));
	if (begin) {
		bytes -= (size_t)(begin - from) + strlen("<Message>");
		from = begin + strlen("<Message>");
	}
	end = memmem(from, bytes, "</Message>", strlen("</Message>"));
	snprintf(ret, size, "%.*s",
		 (int)BASE_MIN(begin && end ? (size_t)(end - from) : bytes, size - 1), from);
}

const char *bearer_said(const struct http_answer *answer, char *ret, size_t size)
{
	_cleanup_json_ struct json_in *root = NULL;
	struct diag ignored;
	char text[161] = "";

	if (!answer->body)
		return base_quote(text, ret, size);
	if (json_in_parse(answer->body, answer->body_bytes, 65536, &root, &ignored) == 0) {
		const struct json_in *error = json_in_member(root, "error");
		const char *said =
		    json_in_string(error, json_in_string(json_in_member(error, "message"), ""));

		/* OAuth 2: the error is a word, and a text stands beside it. */
		said = json_in_string(json_in_member(root, "error_description"), said);
		snprintf(text, sizeof(text), "%s", said);
	} else {
		bearer_words(answer, text, sizeof(text));
	}
	return base_quote(text, ret, size);
}

const char *bearer_answered(const struct http_answer *answer, char ret[BEARER_ANSWERED])
{
	char said[256];

	bearer_said(answer, said, sizeof(said));
	snprintf(ret, BEARER_ANSWERED, "%ld%s%s%s", answer->status, *said ? " (" : "", said,
		 *said ? ")" : "");
	return ret;
}
