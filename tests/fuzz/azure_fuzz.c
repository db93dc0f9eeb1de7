/* SPDX-License-Identifier: Apache-2.0 */

/* A list of Azure, a date, a connection string, and a URL that is signed: each reader gets each text. */

#include <stdio.h>

#include "bucket/azure_list.h"
#include "bucket/azure_login.h"
#include "bucket/azure_sign.h"
#include "tests/bucket/fake_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_object(void *arg, const struct provider_object *object)
{
	(void)arg;
	if (strncmp(object->name, "c/", 2) != 0 || !*object->etag ||
	    object->last_modified == INT64_MIN)
		abort();
	return 0;
}

static void try_login(const char *text)
{
	struct azure_login *login = NULL;
	struct diag diag;

	setenv("AZURE_STORAGE_CONNECTION_STRING", text, 1);
	if (azure_login_open("acc", &login, &diag) == 0 && !login->key && !login->sas &&
	    login->kind != AZURE_LOGIN_MACHINE)
		abort();
	azure_login_free(login);
}

static void try_sign(const char *text)
{
	struct http_request request = {.method = "GET"};

	http_request_url(&request, "https://host/%s", text);
	azure_sign(&request, "acc", (const uint8_t *)"key", 3, 1795770000);
	http_request_free(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct provider_sink sink = {.object = on_object};
	char *marker = NULL, *text = strndup((const char *)data, size);
	struct diag diag;

	if (azure_list_read((const char *)data, size, "c/", &sink, &marker, &diag) == 0 && marker &&
	    !*marker)
		abort();
	free(marker);
	azure_sign_seconds(text);
	try_login(text);
	try_sign(text);
	free(text);
	return 0;
}
