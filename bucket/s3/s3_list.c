/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys are asked for as URLs have them (encoding-type=url), as XML cannot hold each byte that a key may have. Those servers
 * that do so say so, and write a blank as "+"; what others say is taken as it is.
 */

#include "bucket/s3/s3_list.h"

#include <stdio.h>

#include "bucket/s3/s3_time.h"
#include "bucket/xml.h"

struct page {
	const struct provider_sink *sink;
	struct diag *diag;
	bool is_url, is_truncated, is_list;
	size_t n;
	struct { /* being read */
		char *key;
		char etag[160];
		uint64_t size;
		int64_t last_modified;
		bool has_size;
	} object;
	char *next, *current; /* tokens */
};

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* In place. false: a NUL, or a "%" without two digits. */
static bool unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from != '%') {
			*to++ = (char)(*from == '+' ? ' ' : *from);
			continue;
		}
		if (hex(from[1]) < 0 || hex(from[2]) < 0)
			return false;
		*to++ = (char)(hex(from[1]) << 4 | hex(from[2]));
		if (to[-1] == '\0')
			return false;
		from += 2;
	}
	*to = '\0';
	return true;
}

static int keep(char **ret, const char *text)
{
	free(*ret);
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int nonsense(const struct page *page, const char *what)
{
	return diag_fail(page->diag, -EBADMSG, "entry %zu of the list %s", page->n + 1, what);
}

static int on_object(struct page *page)
{
	char *key = page->object.key;
	struct provider_object object = {key, page->object.size, page->object.last_modified,
					 page->object.etag};
	int r = 0;

	if (!key || !*key || !page->object.has_size)
		r = nonsense(page, "has no Key or no Size");
	else if ((page->is_url && !unescape(key)) || strlen(key) > S3_LIST_MOST_NAME)
		r = nonsense(page, "has a Key that is none");
	else if (page->n++ == S3_LIST_MOST_KEYS)
		r = nonsense(page, "is one more than was asked for");
	else
		r = page->sink->object(page->sink->arg, &object);
	free(page->object.key);
	memset(&page->object, 0, sizeof(page->object));
	return r;
}

static int on_size(struct page *page, const char *text)
{
	const char *at = text;

	page->object.has_size = base_parse_number(&at, INT64_MAX, &page->object.size) && !*at;
	return 0;
}

static int on_field(struct page *page, const char *field, const char *text)
{
	if (strcmp(field, "Key") == 0)
		return keep(&page->object.key, text);
	if (strcmp(field, "Size") == 0)
		return on_size(page, text);
	if (strcmp(field, "LastModified") == 0)
		page->object.last_modified = s3_time_parse(text);
	if (strcmp(field, "ETag") == 0 && strlen(text) < sizeof(page->object.etag))
		strcpy(page->object.etag, text);
	return 0;
}

static int on_element(void *arg, const char *path, const char *text)
{
	static const char root[] = "ListBucketResult", entry[] = "ListBucketResult/Contents";
	struct page *page = arg;

	if (strcmp(path, root) == 0)
		page->is_list = true;
	if (strcmp(path, entry) == 0)
		return on_object(page);
	if (strncmp(path, entry, strlen(entry)) == 0 && path[strlen(entry)] == '/')
		return on_field(page, path + strlen(entry) + 1, text);
	if (strcmp(path, "ListBucketResult/IsTruncated") == 0)
		page->is_truncated = strcmp(text, "true") == 0;
	if (strcmp(path, "ListBucketResult/NextContinuationToken") == 0)
		return keep(&page->next, text);
	if (strcmp(path, "ListBucketResult/ContinuationToken") == 0)
		return keep(&page->current, text);
	return 0;
}

static int end_of(const struct page *page)
{
	if (!page->is_list)
		return diag_fail(page->diag, -EBADMSG, "it is no ListBucketResult");
	if (!page->is_truncated)
		return 0;
	if (!page->next || !*page->next)
		return diag_fail(page->diag, -EBADMSG,
				 "the list goes on, but has no NextContinuationToken: this server "
				 "knows no ListObjectsV2");
	if (page->current && strcmp(page->next, page->current) == 0)
		return diag_fail(page->diag, -EBADMSG, "the next page of the list is this one");
	return 0;
}

int s3_list_read(const char *text, size_t size, const struct provider_sink *sink, char **ret_next,
		 struct diag *diag)
{
	/* Some servers say it behind the entries that it is about. */
	static const char is_url[] = "<EncodingType>url</EncodingType>";
	struct page page = {.sink = sink,
			    .diag = diag,
			    .is_url = memmem(text, size, is_url, strlen(is_url)) != NULL};
	int r = xml_read(text, size, on_element, &page, diag);

	r = r ? r : end_of(&page);
	if (!r)
		*ret_next = page.is_truncated ? base_take_ptr(page.next) : NULL;
	free(page.object.key);
	free(page.next);
	free(page.current);
	return r;
}

/* ---- errors ---- */

static void field(const char *path, const char *name, const char *text, char *ret, size_t room)
{
	if (xml_is(path, name))
		snprintf(ret, room, "%s", text);
}

static int on_error(void *arg, const char *path, const char *text)
{
	struct s3_error *error = arg;

	field(path, "Error/Code", text, error->code, sizeof(error->code));
	field(path, "Error/Message", text, error->message, sizeof(error->message));
	field(path, "Error/Region", text, error->region, sizeof(error->region));
	field(path, "Error/ServerTime", text, error->server_time, sizeof(error->server_time));
	return 0;
}

void s3_error_read(const char *text, size_t size, struct s3_error *ret)
{
	struct diag diag;

	*ret = (struct s3_error){.code = ""};
	if (text && size > 0 && xml_read(text, size, on_error, ret, &diag))
		*ret = (struct s3_error){.code = ""};
}
