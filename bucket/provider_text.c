/* SPDX-License-Identifier: Apache-2.0 */

/* What providers make of the texts that they are given. */

#include "bucket/provider.h"

bool bucket_is_anonymous(const struct bucket_options *options)
{
	const char *value = bucket_option(options, "anonymous");

	return value && strcmp(value, "1") == 0;
}

char *bucket_bare(const char *url)
{
	size_t size = strlen(url);

	while (size > 0 && url[size - 1] == '/')
		size--;
	return strndup(url, size);
}

const char *bucket_behind(const char *name, const char *head)
{
	const size_t size = strlen(head);

	return strncmp(name, head, size) == 0 ? name + size : "";
}
