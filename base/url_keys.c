/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What decides with which credentials, and by which way, an access-bucket that is started here would read: variables, and what is in
 * the files that they or the user's home name. All stores' are taken together: a variable of another store is rarely another for
 * two jobs, and then costs a start. A web server is asked with none of them, and a store with few where it is asked as anybody.
 * The names of files are no part of it, as a container has other ones. Nor is a token that proves who AWS_ROLE_ARN or
 * AZURE_CLIENT_ID names: each pod has another one of those, and it is another each hour.
 */

#include "base/url.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL_KEYS_FILE 65536 /* so much of a file */

/* Who uses it: those who log in; they and who asks a store as anybody, as a profile may name an endpoint; all. */
enum url_keys_use { URL_KEYS_LOGIN, URL_KEYS_STORE, URL_KEYS_ALL };

static const struct {
	const char *variable;
	enum url_keys_use use;
} url_keys_said[] = {
    {"AWS_ACCESS_KEY_ID", URL_KEYS_LOGIN},
    {"AWS_SECRET_ACCESS_KEY", URL_KEYS_LOGIN},
    {"AWS_SESSION_TOKEN", URL_KEYS_LOGIN},
    {"AWS_ROLE_ARN", URL_KEYS_LOGIN},
    {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", URL_KEYS_LOGIN},
    {"AWS_CONTAINER_CREDENTIALS_FULL_URI", URL_KEYS_LOGIN},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN", URL_KEYS_LOGIN},
    {"AWS_EC2_METADATA_DISABLED", URL_KEYS_LOGIN},
    {"AWS_EC2_METADATA_SERVICE_ENDPOINT", URL_KEYS_LOGIN},
    {"AWS_ENDPOINT_URL_STS", URL_KEYS_LOGIN},
    {"GCE_METADATA_HOST", URL_KEYS_LOGIN},
    {"AZURE_STORAGE_CONNECTION_STRING", URL_KEYS_LOGIN},
    {"AZURE_STORAGE_ACCOUNT", URL_KEYS_LOGIN},
    {"AZURE_STORAGE_KEY", URL_KEYS_LOGIN},
    {"AZURE_STORAGE_ACCOUNT_KEY", URL_KEYS_LOGIN},
    {"AZURE_STORAGE_SAS_TOKEN", URL_KEYS_LOGIN},
    {"AZURE_CLIENT_ID", URL_KEYS_LOGIN},
    {"AZURE_CLIENT_SECRET", URL_KEYS_LOGIN},
    {"AZURE_TENANT_ID", URL_KEYS_LOGIN},
    {"AZURE_AUTHORITY_HOST", URL_KEYS_LOGIN},
    {"HF_TOKEN", URL_KEYS_LOGIN},
    {"HUGGING_FACE_HUB_TOKEN", URL_KEYS_LOGIN},
    {"AWS_DEFAULT_PROFILE", URL_KEYS_STORE},
    {"https_proxy", URL_KEYS_ALL},
    {"HTTPS_PROXY", URL_KEYS_ALL},
    {"http_proxy", URL_KEYS_ALL},
    {"all_proxy", URL_KEYS_ALL},
    {"ALL_PROXY", URL_KEYS_ALL},
    {"no_proxy", URL_KEYS_ALL},
    {"NO_PROXY", URL_KEYS_ALL},
    {"AWS_CA_BUNDLE", URL_KEYS_ALL},
    {"CURL_CA_BUNDLE", URL_KEYS_ALL},
    {"SSL_CERT_FILE", URL_KEYS_ALL},
    {"SSL_CERT_DIR", URL_KEYS_ALL},
};

static const struct {
	const char *variable,
	    *below; /* the file; or below what folder; NULL: only that it can be read */
	enum url_keys_use use;
} url_keys_files[] = {
    {"AWS_SHARED_CREDENTIALS_FILE", "", URL_KEYS_STORE},
    {"AWS_CONFIG_FILE", "", URL_KEYS_STORE},
    {"HOME", "/.aws/credentials", URL_KEYS_STORE},
    {"HOME", "/.aws/config", URL_KEYS_STORE},
    {"AWS_WEB_IDENTITY_TOKEN_FILE", NULL, URL_KEYS_LOGIN},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "", URL_KEYS_LOGIN},
    {"GOOGLE_APPLICATION_CREDENTIALS", "", URL_KEYS_LOGIN},
    {"CLOUDSDK_CONFIG", "/application_default_credentials.json", URL_KEYS_LOGIN},
    {"HOME", "/.config/gcloud/application_default_credentials.json", URL_KEYS_LOGIN},
    {"AZURE_FEDERATED_TOKEN_FILE", NULL, URL_KEYS_LOGIN},
    {"HF_TOKEN_PATH", "", URL_KEYS_LOGIN},
    {"HF_HOME", "/token", URL_KEYS_LOGIN},
    {"XDG_CACHE_HOME", "/huggingface/token", URL_KEYS_LOGIN},
    {"HOME", "/.cache/huggingface/token", URL_KEYS_LOGIN},
};

/* A piece, and where it ends. */
static void url_keys_add(struct hash *hash, const void *data, size_t size)
{
	hash_add_u64(hash, size);
	hash_add(hash, data, size);
}

/* What cannot be read is as if it were not there. */
static void url_keys_add_file(struct hash *hash, uint64_t which, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[4096];
	struct stat status;
	size_t left = URL_KEYS_FILE;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	hash_add_u64(hash, which);
	while (left > 0 && (n = read(fd, text, BASE_MIN(left, sizeof(text)))) > 0) {
		hash_add(hash, text, (size_t)n);
		left -= (size_t)n;
	}
	hash_add_u64(hash, URL_KEYS_FILE - left);
	explicit_bzero(text, sizeof(text));
}

int url_keys(const char *text, const char *file, bool is_anonymous, struct hash_id *ret)
{
	const enum url_keys_use use = url_is_of_web(text) ? URL_KEYS_ALL
				      : is_anonymous      ? URL_KEYS_STORE
							  : URL_KEYS_LOGIN;
	_cleanup_(hash_freep) struct hash *hash = NULL;
	int r = hash_new(&hash);

	if (r)
		return r;
	for (size_t i = 0; i < BASE_ARRAY_LEN(url_keys_said); i++) {
		const char *value = base_variable(url_keys_said[i].variable);

		if (!value || url_keys_said[i].use < use)
			continue;
		hash_add_u64(hash, i);
		url_keys_add(hash, value, strlen(value));
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(url_keys_files); i++) {
		const char *value = base_variable(url_keys_files[i].variable);
		_cleanup_free_ char *path = NULL;

		if (!value || url_keys_files[i].use < use)
			continue;
		if (!url_keys_files[i].below) {
			if (access(value, R_OK) == 0)
				hash_add_u64(hash, BASE_ARRAY_LEN(url_keys_said) + i);
			continue;
		}
		path = base_format("%s%s", value, url_keys_files[i].below);
		if (!path)
			return -ENOMEM;
		url_keys_add_file(hash, BASE_ARRAY_LEN(url_keys_said) + i, path);
	}
	if (file)
		url_keys_add_file(hash, UINT64_MAX, file);
	hash_finish(hash, ret);
	return 0;
}
