/* SPDX-License-Identifier: Apache-2.0 */

/* What libcurl takes from the environment, for messages: who is in the way of a request. */

#include "bucket/http_proxy.h"

#include <stdio.h>
#include <strings.h>

char *http_host(const char *url, char *ret, size_t size)
{
	const char *host = strstr(url, "://"), *at;
	size_t bytes;

	host = host ? host + 3 : url;
	bytes = strcspn(host, "/?#");
	at = memrchr(host, '@', bytes);
	if (at) {
		bytes -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	snprintf(ret, size, "%.*s", (int)BASE_MIN(bytes, size), host);
	return ret;
}

/* As libcurl has it: names, or ends of names behind a dot; "*" is all. */
static bool is_excepted(const char *host, size_t bytes)
{
	const char *at = base_variable("no_proxy", "NO_PROXY");

	for (at = at ? at : ""; *at; at += strcspn(at, ", "), at += strspn(at, ", ")) {
		const char *name = at + (*at == '.');
		const size_t length = strcspn(name, ", ");

		if (length == 1 && *name == '*')
			return true;
		if (length > 0 && length <= bytes &&
		    strncasecmp(host + bytes - length, name, length) == 0 &&
		    (length == bytes || host[bytes - length - 1] == '.'))
			return true;
	}
	return false;
}

const char *http_proxy(const char *url, char *ret, size_t size)
{
	const bool is_safe = strncasecmp(url, "https:", strlen("https:")) == 0;
	const char *proxy =
	    is_safe ? base_variable("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
		    : base_variable("http_proxy", "all_proxy", "ALL_PROXY");
	char host[256], name[256];

	http_host(url, host, sizeof(host));
	*ret = '\0';
	if (proxy && !is_excepted(host, *host == '[' ? strlen(host) : strcspn(host, ":")))
		snprintf(ret, size, "the proxy %.80s (%s)", http_host(proxy, name, sizeof(name)),
			 is_safe ? "https_proxy" : "http_proxy");
	return ret;
}
