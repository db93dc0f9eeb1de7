/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What decides with which credentials, and by which way, an access-bucket that is started here would read: variables, and what is in
 * the files that they or the user's home name. All stores' are taken together: a variable of another store is rarely another for
 * two jobs, and then costs a start. The names of files are no part of it, as a container has other ones.
 */

#include "base/url.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL_KEYS_FILE 65536 /* so much of a file */

static const char *const url_keys_said[] = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL_STS", "GCE_METADATA_HOST",
    "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST", "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    /* the way */
    "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"};

static const struct {
	const char *variable, *below; /* the file; or below what folder */
} url_keys_files[] = {
    {"AWS_SHARED_CREDENTIALS_FILE", ""},
    {"AWS_CONFIG_FILE", ""},
    {"HOME", "/.aws/credentials"},
    {"HOME", "/.aws/config"},
    {"AWS_WEB_IDENTITY_TOKEN_FILE", ""},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", ""},
    {"GOOGLE_APPLICATION_CREDENTIALS", ""},
    {"CLOUDSDK_CONFIG", "/application_default_credentials.json"},
    {"HOME", "/.config/gcloud/application_default_credentials.json"},
    {"AZURE_FEDERATED_TOKEN_FILE", ""},
    {"HF_TOKEN_PATH", ""},
    {"HF_HOME", "/token"},
    {"XDG_CACHE_HOME", "/huggingface/token"},
    {"HOME", "/.cache/huggingface/token"},
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

int url_keys(const char *file, struct hash_id *ret)
{
	_cleanup_(hash_freep) struct hash *hash = NULL;
	int r = hash_new(&hash);

	if (r)
		return r;
	for (size_t i = 0; i < BASE_ARRAY_LEN(url_keys_said); i++) {
		const char *value = getenv(url_keys_said[i]);

		if (!value || !*value)
			continue;
		hash_add_u64(hash, i);
		url_keys_add(hash, value, strlen(value));
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(url_keys_files); i++) {
		const char *value = getenv(url_keys_files[i].variable);
		_cleanup_free_ char *path = NULL;

		if (!value || !*value)
			continue;
		if (asprintf(&path, "%s%s", value, url_keys_files[i].below) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		url_keys_add_file(hash, BASE_ARRAY_LEN(url_keys_said) + i, path);
	}
	if (file)
		url_keys_add_file(hash, UINT64_MAX, file);
	hash_finish(hash, ret);
	return 0;
}
