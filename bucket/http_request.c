/* SPDX-License-Identifier: Apache-2.0 */

/* Requests and answers as texts: nothing is sent here. */

#include "bucket/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

int http_request_url(struct http_request *request, const char *fmt, ...)
{
	va_list args;
	char *url;
	int n;

	va_start(args, fmt);
	n = vasprintf(&url, fmt, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	free(request->url);
	request->url = url;
	return 0;
}

int http_request_header(struct http_request *request, const char *fmt, ...)
{
	char **header = realloc(request->header, (request->n_headers + 1) * sizeof(*header));
	va_list args;
	int n;

	if (!header)
		return -ENOMEM;
	request->header = header;
	va_start(args, fmt);
	n = vasprintf(&header[request->n_headers], fmt, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	request->n_headers++;
	return 0;
}

int http_request_form(struct http_request *request, char *body)
{
	if (!body)
		return -ENOMEM;
	request->method = "POST";
	request->body = body;
	request->body_bytes = strlen(body);
	return http_request_header(request, "Content-Type: application/x-www-form-urlencoded");
}

const char *http_request_value(const struct http_request *request, const char *name)
{
	const size_t bytes = strlen(name);

	for (size_t i = 0; i < request->n_headers; i++) {
		const char *header = request->header[i];

		if (strncasecmp(header, name, bytes) == 0 && header[bytes] == ':')
			return header + bytes + 1 + strspn(header + bytes + 1, " \t");
	}
	return NULL;
}

void http_request_free(struct http_request *request)
{
	for (size_t i = 0; i < request->n_headers; i++) {
		explicit_bzero(request->header[i], strlen(request->header[i]));
		free(request->header[i]);
	}
	if (request->body)
		explicit_bzero(request->body, request->body_bytes);
	free(request->header);
	free(request->url);
	free(request->body);
	*request = (struct http_request){.method = NULL};
}

char *http_escape(const char *text, const char *keep)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	char *escaped = malloc(3 * strlen(text) + 1), *to = escaped;

	if (!escaped)
		return NULL;
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (strchr(plain, *at) || strchr(keep, *at)) {
			*to++ = (char)*at;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*at >> 4];
		*to++ = hex[*at & 15];
	}
	*to = '\0';
	return escaped;
}

void http_answer_free(struct http_answer *answer)
{
	if (answer->body)
		explicit_bzero(answer->body, answer->body_bytes);
	free(answer->body);
	answer->body = NULL;
	answer->body_bytes = 0;
}
