/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options stand behind the last "?", as behind a path, if all of it is KEY=VALUE,KEY=VALUE. A "?" of a web address is the
 * server's own; there they stand behind a "#", which no server is sent. Some of them say how the store is reached: those
 * are access-bucket's (url_access), the others the kind's (oneaccess-sources(7)).
 */

#include "base/url.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/hash.h"

#define URL_READABLE 40

static const char *const url_access[] = {
    "anonymous", "credentials",    "endpoint",   "path_style",   "profile",
    "region",    "requester_pays", "token_file", "user_project",
};

static size_t url_scheme(const char *text)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*text))
		return 0;
	while (isalnum((unsigned char)text[n]) || (text[n] && strchr("+-.", text[n])))
		n++;
	return strncmp(text + n, "://", 3) == 0 ? n : 0;
}

static bool url_is_file(const char *text)
{
	return strncasecmp(text, "file://", 7) == 0;
}

bool url_is(const char *dataset)
{
	return url_scheme(dataset) > 0 && !url_is_file(dataset);
}

const char *url_path(const char *dataset)
{
	return url_is_file(dataset) ? dataset + 7 : dataset;
}

bool url_is_of_web(const char *text)
{
	return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* ---- options ---- */

static bool url_is_option(const char *text, size_t size)
{
	size_t n = 0;

	while (n < size && (islower((unsigned char)text[n]) || text[n] == '_' ||
			    (n > 0 && isdigit((unsigned char)text[n]))))
		n++;
	return n > 0 && n + 1 < size && text[n] == '=';
}

static bool url_are_options(const char *text)
{
	for (;; text++) {
		size_t size = strcspn(text, ",");

		if (!url_is_option(text, size))
			return false;
		text += size;
		if (!*text)
			return true;
	}
}

static bool url_is_access(const char *option, size_t size)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(url_access); i++) {
		size_t length = strlen(url_access[i]);

		if (length < size && option[length] == '=' &&
		    memcmp(option, url_access[i], length) == 0)
			return true;
	}
	return false;
}

static int url_take_option(struct url *url, const char *option, size_t size)
{
	size_t end = strlen(url->options);

	if (url_is_access(option, size)) {
		url->access[url->n_access] = strndup(option, size);
		return url->access[url->n_access++] ? 0 : -ENOMEM;
	}
	url->options[end] = end ? ',' : '?';
	memcpy(url->options + end + 1, option, size); /* zeros follow */
	return 0;
}

static int url_take_options(struct url *url, const char *text)
{
	size_t most = 1;

	for (const char *c = text; *c; c++)
		most += *c == ',';
	url->options = calloc(1, strlen(text) + 2);
	url->access = calloc(most + 1, sizeof(*url->access));
	if (!url->options || !url->access)
		return -ENOMEM;
	while (*text) {
		size_t size = strcspn(text, ",");
		int r = url_take_option(url, text, size);

		if (r)
			return r;
		text += size + (text[size] == ',');
	}
	qsort(url->access, url->n_access, sizeof(*url->access), base_compare_texts);
	return 0;
}

int url_parse(const char *dataset, struct url *ret)
{
	const char *mark = strrchr(dataset, url_is_of_web(dataset) ? '#' : '?');
	struct url url = {0};
	int r;

	if (mark && !url_are_options(mark + 1))
		mark = NULL;
	url.text = strndup(dataset, mark ? (size_t)(mark - dataset) : strlen(dataset));
	r = url.text ? url_take_options(&url, mark ? mark + 1 : "") : -ENOMEM;
	if (r)
		url_fini(&url);
	else
		*ret = url;
	return r;
}

void url_fini(struct url *url)
{
	for (size_t i = 0; i < url->n_access; i++)
		free(url->access[i]);
	free(url->access);
	free(url->text);
	free(url->options);
	*url = (struct url){0};
}

/* ---- names ---- */

/* Where its path ends: behind that there is nothing, or a server's own. */
static size_t url_length(const struct url *url)
{
	return strcspn(url->text, url_is_of_web(url->text) ? "?#" : "");
}

size_t url_tail(const struct url *url, const char **ret)
{
	const char *path = url->text + url_scheme(url->text) + 3;
	const char *end = url->text + url_length(url), *tail = end;

	for (const char *c = path; c < end && *c != '{'; c++)
		if (*c == '/')
			tail = c + 1;
	*ret = tail;
	return (size_t)(end - tail);
}

static bool url_ends_in(const char *name, const char *suffix)
{
	const size_t length = strlen(name), size = strlen(suffix);

	return length > size && strcasecmp(name + length - size, suffix) == 0;
}

enum url_brings url_brings(const char *name)
{
	static const char *const manifests[] = {".csv", ".tsv", ".jsonl", ".ndjson", ".json"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(manifests); i++)
		if (url_ends_in(name, manifests[i]))
			return URL_WITH_FOLDER;
	return url_ends_in(name, ".bin") ? URL_WITH_INDEX : URL_ALONE;
}

/* The end of it, which names the data set; nothing that a password or a signature may be in. */
static void url_readable(const struct url *url, char ret[URL_READABLE + 1])
{
	const char *from = url->text + url_scheme(url->text) + 3;
	const char *place = memchr(from, '@', strcspn(from, "/"));
	size_t length, n = 0;

	if (place && url_is_of_web(url->text))
		from = place + 1;
	length = (size_t)(url->text + url_length(url) - from);
	length = BASE_MIN(length, strcspn(from, "{"));
	while (length > 0 && from[length - 1] == '/')
		length--;
	if (length > URL_READABLE) {
		from += length - URL_READABLE;
		length = URL_READABLE;
	}
	for (size_t i = 0; i < length; i++)
		if (isalnum((unsigned char)from[i]) ||
		    (n > 0 && (from[i] == '.' || from[i] == '_')))
			ret[n++] = from[i];
		else if (n > 0 && ret[n - 1] != '-')
			ret[n++] = '-';
	while (n > 0 && !isalnum((unsigned char)ret[n - 1]))
		n--;
	ret[n] = '\0';
}

/* What the environment says of where the store is; 0: nothing. Who may read it is no part of that: those who share do not all have
 * the same keys. */
static uint64_t url_of_environment(void)
{
	static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
					    "AWS_PROFILE", "STORAGE_EMULATOR_HOST", "HF_ENDPOINT"};
	uint64_t said = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++) {
		const char *value = base_variable(names[i]);

		if (value)
			said = said * 31 + hash_checksum(value, strlen(value)) + i;
	}
	return said;
}

size_t url_folder(const struct url *url, char ret[URL_FOLDER_MAX])
{
	const size_t length = url_length(url);
	char readable[URL_READABLE + 1];
	const uint64_t said = url_is_of_web(url->text) ? 0 : url_of_environment();
	uint64_t told = said;
	int n;

	url_readable(url, readable);
	n = snprintf(ret, URL_FOLDER_MAX, "%s%s%016llx", readable, *readable ? "-" : "",
		     (unsigned long long)hash_checksum(url->text, length));
	if (url->text[length])
		told = said * 31 + hash_checksum(url->text + length, strlen(url->text + length));
	for (size_t i = 0; i < url->n_access; i++)
		told = told * 31 + hash_checksum(url->access[i], strlen(url->access[i]));
	if (url->text[length] || url->n_access || said)
		snprintf(ret + n, URL_FOLDER_MAX - (size_t)n, "-%08llx",
			 (unsigned long long)(told & UINT32_MAX));
	return (size_t)n;
}
