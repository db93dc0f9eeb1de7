/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/azure_sign.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include "base/hash.h"
#include "base/base64.h"
#include "bucket/bearer.h"

/* Names of days and months are those of the locale "C", which access-bucket does not leave. */
void azure_sign_date(int64_t seconds, char ret[AZURE_SIGN_DATE])
{
	const time_t now = (time_t)seconds;
	struct tm tm = {.tm_isdst = 0};

	gmtime_r(&now, &tm);
	if (strftime(ret, AZURE_SIGN_DATE, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		ret[0] = '\0';
}

int64_t azure_sign_seconds(const char *date)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm = {.tm_isdst = 0};
	const char *at;
	char month[4];
	int end = 0;

	if (sscanf(date, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &tm.tm_mday, month,
		   &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 6 ||
	    end == 0 || date[end])
		return INT64_MIN;
	at = strlen(month) == 3 ? strstr(months, month) : NULL;
	if (!at || (at - months) % 3 != 0 || tm.tm_year < 1900)
		return INT64_MIN;
	tm.tm_year -= 1900;
	tm.tm_mon = (int)(at - months) / 3;
	return (int64_t)timegm(&tm);
}

/* ---- what is signed ---- */

/* "Name" and value become "name:value"; names are unlike, so this is their order. */
static char *azure_sign_pair(const char *name, size_t size, const char *value, size_t value_size)
{
	char *ret = base_format("%.*s:%.*s", (int)size, name, (int)value_size, value);

	for (char *at = ret; at && *at && *at != ':'; at++)
		*at = (char)tolower((unsigned char)*at);
	return ret;
}

static void azure_sign_unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		const char code[3] = {text[0] == '%' ? text[1] : '\0', code[0] ? text[2] : '\0',
				      '\0'};

		if (isxdigit((unsigned char)code[0]) && isxdigit((unsigned char)code[1])) {
			*to++ = (char)strtoul(code, NULL, 16);
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

struct azure_sign_lines {
	char *line[32];
	size_t n;
};

static void azure_sign_freep(struct azure_sign_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->line[i]);
}

/* false: there is no memory, or no room. */
static bool azure_sign_add(struct azure_sign_lines *lines, char *line)
{
	if (!line || lines->n == BASE_ARRAY_LEN(lines->line)) {
		free(line);
		return false;
	}
	lines->line[lines->n++] = line;
	return true;
}

static bool azure_sign_headers(const struct http_request *request, struct azure_sign_lines *ret)
{
	for (size_t i = 0; i < request->n_headers; i++) {
		const char *header = request->header[i], *colon = strchr(header, ':');
		const char *value = colon ? colon + 1 : "";

		if (!colon || strncasecmp(header, "x-ms-", 5) != 0)
			continue;
		value += strspn(value, " ");
		if (!azure_sign_add(ret, azure_sign_pair(header, (size_t)(colon - header), value,
							 strlen(value))))
			return false;
	}
	qsort(ret->line, ret->n, sizeof(ret->line[0]), base_compare_texts);
	return true;
}

static bool azure_sign_query(const char *query, struct azure_sign_lines *ret)
{
	while (*query) {
		const size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
		char *pair = azure_sign_pair(query, name, query + name + (name < size),
					     size - name - (name < size));

		if (pair)
			azure_sign_unescape(pair);
		if (!azure_sign_add(ret, pair))
			return false;
		query += size + (query[size] == '&');
	}
	qsort(ret->line, ret->n, sizeof(ret->line[0]), base_compare_texts);
	return true;
}

static void azure_sign_write(FILE *to, const struct http_request *request, const char *account,
			     const struct azure_sign_lines *headers,
			     const struct azure_sign_lines *query)
{
	static const char *const name[] = {"Content-Encoding",
					   "Content-Language",
					   "Content-Length",
					   "Content-MD5",
					   "Content-Type",
					   "Date",
					   "If-Modified-Since",
					   "If-Match",
					   "If-None-Match",
					   "If-Unmodified-Since",
					   "Range"};
	const char *host = strstr(request->url, "://");
	const char *path = host ? host + 3 + strcspn(host + 3, "/?") : "";

	fprintf(to, "%s\n", request->method);
	for (size_t i = 0; i < BASE_ARRAY_LEN(name); i++) {
		const char *value = http_request_value(request, name[i]);

		fprintf(to, "%s\n", value ? value : "");
	}
	for (size_t i = 0; i < headers->n; i++)
		fprintf(to, "%s\n", headers->line[i]);
	fprintf(to, "/%s%.*s", account, (int)strcspn(path, "?"), path);
	for (size_t i = 0; i < query->n; i++)
		fprintf(to, "\n%s", query->line[i]);
}

/* What is signed, of a request that has all of its headers but Authorization. The caller frees; NULL: no memory. */
static char *sign_text(const struct http_request *request, const char *account)
{
	_cleanup_(azure_sign_freep) struct azure_sign_lines headers = {.n = 0}, query = {.n = 0};
	const char *mark = strchr(request->url, '?');
	char *text = NULL;
	size_t size;
	FILE *to;

	if (!azure_sign_headers(request, &headers) ||
	    !azure_sign_query(mark ? mark + 1 : "", &query))
		return NULL;
	to = open_memstream(&text, &size);
	if (!to)
		return NULL;
	azure_sign_write(to, request, account, &headers, &query);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

int azure_sign(struct http_request *request, const char *account, const uint8_t *key,
	       size_t key_bytes, int64_t seconds)
{
	_cleanup_free_ char *text = NULL, *signature = NULL, *value = NULL;
	char date[AZURE_SIGN_DATE];
	struct hash_id id;
	int r;

	azure_sign_date(seconds, date);
	r = bearer_header(request, "x-ms-date", date);
	if (r < 0)
		return r;
	text = sign_text(request, account);
	if (!text)
		return -ENOMEM;
	hash_hmac(key, key_bytes, text, strlen(text), &id);
	signature = base64_of(id.bytes, sizeof(id.bytes));
	value = signature ? base_format("SharedKey %s:%s", account, signature) : NULL;
	return value ? bearer_header(request, "Authorization", value) : -ENOMEM;
}
