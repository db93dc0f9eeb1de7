/* SPDX-License-Identifier: Apache-2.0 */

/* URLs and options, which people write; and which provider a scheme means. */

#include "bucket/provider.h"

#include <stdio.h>
#include <strings.h>

#include "base/hash.h"

#define PROVIDER_MOST_URL 4096

const char *bucket_option(const struct bucket_options *options, const char *key)
{
	const char *value = NULL;

	for (size_t i = 0; i < options->n; i++)
		if (strcmp(options->option[i].key, key) == 0)
			value = options->option[i].value;
	return value;
}

static bool is_known(const char *known, const char *key)
{
	for (; known && *known; known += strlen(known) + 1)
		if (strcmp(known, key) == 0)
			return true;
	return false;
}

int bucket_options_check(const struct bucket_options *options, const struct provider_ops *ops,
			 struct diag *diag)
{
	char list[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < options->n; i++) {
		const char *key = options->option[i].key;

		if (is_known(ops->options, key))
			continue;
		for (const char *known = ops->options; known && *known; known += strlen(known) + 1)
			if (used < sizeof(list))
				used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
							 used ? ", " : "", known);
		return diag_fail(diag, -EINVAL, "%s:// has no option \"%s\" (it has: %s)",
				 ops->scheme, BASE_QUOTED(key, 64), *list ? list : "none");
	}
	return 0;
}

static const struct provider_ops *find(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bucket_n_providers; i++)
		if (strlen(bucket_providers[i]->scheme) == bytes &&
		    strncasecmp(bucket_providers[i]->scheme, text, bytes) == 0)
			return bucket_providers[i];
	return NULL;
}

static int refuse_scheme(const char *text, struct diag *diag)
{
	char list[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < bucket_n_providers; i++)
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s://",
						 used ? ", " : "", bucket_providers[i]->scheme);
	return diag_fail(
	    diag, -EINVAL,
	    "\"%s\" is no URL of an object store: it begins with one of %s and a place",
	    BASE_QUOTED(text, 200), *list ? list : "(this build knows none)");
}

int bucket_url_parse(const char *text, struct bucket_url *ret, struct diag *diag)
{
	const char *end = strstr(text, "://"), *place = end ? end + 3 : NULL;
	const size_t place_bytes = place ? strcspn(place, "/") : 0;
	struct bucket_url url = {.ops = end ? find(text, (size_t)(end - text)) : NULL};

	if (!url.ops)
		return refuse_scheme(text, diag);
	if (place_bytes == 0)
		return diag_fail(diag, -EINVAL, "\"%s\" names no place behind %s://",
				 BASE_QUOTED(text, 200), url.ops->scheme);
	if (strlen(text) > PROVIDER_MOST_URL)
		return diag_fail(diag, -EINVAL, "the URL has more than %d bytes: %s",
				 PROVIDER_MOST_URL, BASE_QUOTED(text, 100));
	url.text = strdup(text);
	url.place = strndup(place, place_bytes);
	url.path = strdup(place + place_bytes + (place[place_bytes] == '/'));
	if (!url.text || !url.place || !url.path) {
		bucket_url_free(&url);
		return diag_fail(diag, -ENOMEM, "there is no memory");
	}
	if (url.ops->has_query)
		url.path[strcspn(url.path, "?")] = '\0';
	*ret = url;
	return 0;
}

void bucket_url_free(struct bucket_url *url)
{
	free(url->text);
	free(url->place);
	free(url->path);
	*url = (struct bucket_url){.ops = NULL};
}

/* Seconds of an int64_t of nanoseconds; what is later is a server's invention. */
#define PROVIDER_MOST_SECONDS (INT64_MAX / 1000000000 - 1)

int64_t bucket_tag(int64_t last_modified, const char *etag)
{
	size_t bytes;

	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	bytes = strlen(etag);
	if (bytes >= 2 && etag[0] == '"' && etag[bytes - 1] == '"') {
		etag++;
		bytes -= 2;
	}
	if (last_modified < 0 || last_modified > PROVIDER_MOST_SECONDS)
		last_modified = 0;
	return last_modified * 1000000000 + (int64_t)(hash_checksum(etag, bytes) % 1000000000);
}

/* There are no seconds, so it is more of the hash: 60 bits. */
static int64_t tag_of_version(const char *version)
{
	return (int64_t)(hash_checksum(version, strlen(version)) >> 4);
}

int64_t bucket_tag_listed(const struct provider_ops *ops, const struct provider_object *object)
{
	const char *etag = object->etag ? object->etag : "";

	return ops->tag == PROVIDER_TAG_ETAG ? bucket_tag(object->last_modified, etag)
					     : tag_of_version(etag);
}

int64_t bucket_tag_headed(const struct provider_ops *ops, const struct http_answer *answer)
{
	return ops->tag == PROVIDER_TAG_ETAG ? bucket_tag(answer->last_modified, answer->etag)
					     : tag_of_version(answer->version);
}

bool bucket_tag_is(const struct provider_ops *ops, const struct http_answer *answer,
		   int64_t mtime_ns)
{
	return ops->tag == PROVIDER_TAG_NAME || bucket_tag_headed(ops, answer) == mtime_ns;
}
