/* SPDX-License-Identifier: Apache-2.0 */

/* What a Hub answers, or somebody in its place: the link to the next page in the first line, and a list of files or a revision. */

#include <stdio.h>

#include "tests/bucket/fake_http.h"

#define SHA "1f2e3d4c5b6a79880123456789abcdef01234567"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_object(void *arg, const struct provider_object *object)
{
	(void)arg;
	if (strncmp(object->name, "O/N", 3) != 0 || !*object->etag || object->size == UINT64_MAX)
		abort();
	return 0;
}

static void *opened(char *path, const char *body)
{
	char place[] = "datasets";
	const struct bucket_url url = {.ops = &provider_hf, .place = place, .path = path};
	const struct bucket_option anonymous = {"anonymous", "1"};
	const struct bucket_options options = {&anonymous, 1};
	void *self = NULL;
	struct diag diag;

	FAKE_HTTP({"https://huggingface.co/api/datasets/O/N/revision/main?expand=sha", 200, body,
		   NULL, 0, NULL});
	if (provider_hf.open(&url, &options, NULL, &self, &diag) == 0 && !self)
		abort();
	return self;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct provider_sink sink = {.object = on_object};
	char commit[] = "O/N@" SHA "/d", any[] = "O/N/d", *cursor = NULL;
	struct http_answer answer = {.status = 200};
	const uint8_t *line = memchr(data, '\n', size);
	size_t link = line ? (size_t)(line - data) : 0;
	struct http_request request = {.method = NULL};
	struct diag diag;
	void *self;

	unsetenv("HF_ENDPOINT");
	if (line)
		snprintf(answer.next, sizeof(answer.next), "%.*s", (int)link, (const char *)data);
	answer.body_bytes = size - link;
	answer.body = strndup((const char *)data + link, answer.body_bytes);
	answer.body_bytes = strlen(answer.body);
	provider_hf.close(opened(any, answer.body));
	self = opened(commit, NULL);
	if (provider_hf.list(self, "O/N@" SHA "/", NULL, &request) != 0)
		abort();
	http_request_free(&request);
	if (provider_hf.listed(self, &answer, &sink, &cursor, &diag) == 0 && cursor &&
	    (provider_hf.list(self, "O/N@" SHA "/", cursor, &request) != 0 ||
	     strncmp(request.url, "https://huggingface.co/api/datasets/", 36) != 0))
		abort();
	provider_hf.close(self);
	http_request_free(&request);
	free(cursor);
	http_answer_free(&answer);
	return 0;
}
