/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bucket/s3_fake.h"

#include <check.h>
#include <stdio.h>

#include "bucket/provider.h"

static const struct fake_step *script;
static size_t left;

void fake_begin(const struct fake_step *steps, size_t n)
{
	script = steps;
	left = n;
}

void fake_end(void)
{
	if (left)
		ck_abort_msg("nobody asked %s %s", script->method, script->url);
}

static bool request_has(const struct http_request *request, const char *has)
{
	if (request->body && strstr(request->body, has))
		return true;
	for (size_t i = 0; i < request->n_headers; i++)
		if (strstr(request->header[i], has))
			return true;
	return false;
}

int http_ask(struct http *http, const struct http_request *request, size_t most,
	     struct http_answer *ret, struct diag *diag)
{
	const struct fake_step *step = script;

	(void)http;
	if (!left)
		ck_abort_msg("%s %s: nobody expected this", request->method, request->url);
	script++;
	left--;
	ck_assert_str_eq(request->method, step->method);
	ck_assert_str_eq(request->url, step->url);
	if (step->has && !request_has(request, step->has))
		ck_abort_msg("%s %s: has no %s", request->method, request->url, step->has);
	if (!step->status)
		return diag_fail(diag, -EIO, "host: nobody answers");
	*ret = (struct http_answer){.status = step->status, .last_modified = INT64_MIN};
	snprintf(ret->region, sizeof(ret->region), "%s", step->region ? step->region : "");
	ret->body = strdup(step->body ? step->body : "");
	ret->body_bytes = strlen(ret->body);
	ck_assert_uint_le(ret->body_bytes, most);
	return 0;
}

const char *bucket_option(const struct bucket_options *options, const char *key)
{
	for (size_t i = 0; i < options->n; i++)
		if (strcmp(options->option[i].key, key) == 0)
			return options->option[i].value;
	return NULL;
}
