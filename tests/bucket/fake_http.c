/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/bucket/fake_http.h"

#include <inttypes.h>
#include <stdio.h>

static void fake_must(bool is_so, const char *what, const char *is, const char *wanted)
{
	if (is_so)
		return;
	fprintf(stderr, "fake_http: %s: \"%s\", not \"%s\"\n", what, is, wanted);
	abort();
}

static struct fake_answer fake_answers[16];
static size_t fake_n, fake_at;
char fake_sent[16384];

void fake_http(const struct fake_answer *answer, size_t n)
{
	fake_must(n <= BASE_ARRAY_LEN(fake_answers), "answers", "too many", "fewer");
	memcpy(fake_answers, answer, n * sizeof(*answer));
	fake_n = n;
	fake_at = 0;
}

unsigned fake_left(void)
{
	return (unsigned)(fake_n - fake_at);
}

static struct http_answer fake_answer_of(long status, const char *body, const char *next)
{
	struct http_answer answer = {.status = status,
				     .last_modified = INT64_MIN,
				     .total = UINT64_MAX,
				     .from = UINT64_MAX,
				     .body = strdup(body ? body : ""),
				     .body_bytes = body ? strlen(body) : 0};

	snprintf(answer.next, sizeof(answer.next), "%s", next ? next : "");
	return answer;
}

static void fake_note(const struct http_request *request)
{
	char *to = fake_sent, *end = fake_sent + sizeof(fake_sent);

	*to = '\0';
	for (size_t i = 0; i < request->n_headers; i++)
		to += snprintf(to, (size_t)(end - to), "%s\n", request->header[i]);
	fake_must(request->body_bytes < (size_t)(end - to), "a body", "long", "short");
	memcpy(to, request->body ? request->body : "", request->body_bytes);
	to[request->body_bytes] = '\0';
}

int http_ask(struct http *http, const struct http_request *request, size_t most,
	     struct http_answer *ret, struct diag *diag)
{
	const struct fake_answer *answer = &fake_answers[fake_at];

	(void)http;
	fake_must(fake_at < fake_n, "asked", request->url, "nothing");
	fake_must(strcmp(request->url, answer->url) == 0, "asked", request->url, answer->url);
	fake_note(request);
	fake_must(!answer->sent || strstr(fake_sent, answer->sent), request->url, fake_sent,
		  answer->sent ? answer->sent : "");
	fake_at++;
	if (answer->error)
		return diag_fail(diag, answer->error, "the fake says no");
	fake_must(!answer->body || strlen(answer->body) <= most, "an answer", "long", "short");
	*ret = fake_answer_of(answer->status, answer->body, answer->next);
	return 0;
}

static int fake_object(void *arg, const struct provider_object *object)
{
	fprintf(arg, "%s %" PRIu64 " %" PRId64 " %s\n", object->name, object->size,
		object->last_modified == INT64_MIN ? 0 : object->last_modified, object->etag);
	return 0;
}

char *fake_listed(const struct provider_ops *ops, void *self, const char *body, const char *next,
		  char **ret_cursor, int *ret_r, struct diag *diag)
{
	struct http_answer answer = fake_answer_of(200, body, next);
	struct provider_sink sink = {.object = fake_object};
	char *lines = NULL;
	size_t size;
	FILE *stream = open_memstream(&lines, &size);

	fake_must(stream != NULL, "memory", "none", "some");
	sink.arg = stream;
	*ret_r = ops->listed(self, &answer, &sink, ret_cursor, diag);
	fclose(stream);
	http_answer_free(&answer);
	return lines;
}

/* bucket/provider.c has it, too, for those who link that. */
__attribute__((weak)) const char *bucket_option(const struct bucket_options *options,
						const char *key)
{
	for (size_t i = 0; i < options->n; i++)
		if (strcmp(options->option[i].key, key) == 0)
			return options->option[i].value;
	return NULL;
}
