/* SPDX-License-Identifier: Apache-2.0 */

/* A list of Google Cloud Storage, a token of its servers, and a file of credentials: each reader gets each text. */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "bucket/gs_login.h"
#include "tests/bucket/fake_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_object(void *arg, const struct provider_object *object)
{
	(void)arg;
	if (!*object->name || !*object->etag)
		abort();
	return 0;
}

static void *opened(void)
{
	char place[] = "bucket", path[] = "";
	const struct bucket_url url = {.ops = &provider_gs, .place = place, .path = path};
	const struct bucket_option anonymous = {"anonymous", "1"};
	const struct bucket_options options = {&anonymous, 1};
	void *self = NULL;
	struct diag diag;

	if (provider_gs.open(&url, &options, NULL, &self, &diag) < 0)
		abort();
	return self;
}

static void try_list(const struct http_answer *answer)
{
	const struct provider_sink sink = {.object = on_object};
	char *cursor = NULL;
	void *self = opened();
	struct diag diag;

	if (provider_gs.listed(self, answer, &sink, &cursor, &diag) == 0 && cursor && !*cursor)
		abort();
	free(cursor);
	provider_gs.close(self);
}

/* Its file is the input, and then so is the token's answer. */
static void try_login(const uint8_t *data, size_t size, const char *text)
{
	const int fd = base_memfd_of("gs_fuzz", data, size);
	struct gs_login *login = NULL;
	char path[64], *token = NULL;
	unsigned seconds;
	struct diag diag;

	if (fd < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	gs_login_open(path, &login, &diag);
	gs_login_free(login);
	close(fd);
	setenv("HOME", "/nonexistent", 1);
	login = NULL;
	if (gs_login_open(NULL, &login, &diag) < 0)
		abort();
	FAKE_HTTP(
	    {"http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token",
	     200, text, NULL, 0, NULL});
	if (strlen(text) < 65536 && gs_login_ask(login, NULL, &token, &seconds, &diag) == 0 &&
	    !*token)
		abort();
	free(token);
	gs_login_free(login);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_answer answer = {.status = 200};

	answer.body = strndup((const char *)data, size);
	answer.body_bytes = strlen(answer.body);
	try_list(&answer);
	try_login(data, size, answer.body);
	http_answer_free(&answer);
	return 0;
}
