/* SPDX-License-Identifier: Apache-2.0 */

#include "bucket/azure_list.h"

#include <stdio.h>

#include "bucket/azure_sign.h"
#include "bucket/xml.h"

#define AZURE_LIST_BLOB "EnumerationResults/Blobs/Blob"

struct azure_list {
	const char *head;
	const struct provider_sink *sink;
	struct diag *diag;
	char *marker;
	bool is_list;
	/* of the blob that is read: */
	char *name;
	char etag[128];
	uint64_t size;
	int64_t last_modified;
	bool has_size, is_folder;
};

static void azure_list_begin(struct azure_list *list)
{
	free(list->name);
	list->name = NULL;
	list->etag[0] = '\0';
	list->last_modified = INT64_MIN;
	list->has_size = list->is_folder = false;
}

/* A folder of a hierarchical namespace is in the list, too, and has no bytes. */
static int azure_list_end(struct azure_list *list)
{
	const struct provider_object object = {
	    .name = list->name,
	    .size = list->size,
	    .last_modified = list->last_modified,
	    .etag = list->etag,
	};

	if (!list->name || !list->has_size || !*list->etag || list->last_modified == INT64_MIN)
		return diag_fail(list->diag, -EBADMSG,
				 "a list of Azure has a blob without a name, a size, an ETag or a "
				 "Last-Modified: is the endpoint one of Blob Storage?");
	return list->is_folder ? 0 : list->sink->object(list->sink->arg, &object);
}

static int azure_list_name(struct azure_list *list, const char *text)
{
	free(list->name);
	list->name = *text ? base_format("%s%s", list->head, text) : NULL;
	return *text && !list->name ? -ENOMEM : 0;
}

static void azure_list_property(struct azure_list *list, const char *key, const char *text)
{
	if (strcmp(key, "Content-Length") == 0)
		list->has_size = base_parse_number(&text, INT64_MAX, &list->size) && !*text;
	else if (strcmp(key, "Last-Modified") == 0)
		list->last_modified = azure_sign_seconds(text);
	else if (strcmp(key, "ResourceType") == 0)
		list->is_folder = strcmp(text, "directory") == 0;
	else if (strcmp(key, "Etag") == 0 && strlen(text) < sizeof(list->etag))
		snprintf(list->etag, sizeof(list->etag), "%s", text);
}

static int azure_list_element(void *arg, const char *path, const char *text)
{
	static const char properties[] = "/Properties/";
	struct azure_list *list = arg;
	int r;

	if (strcmp(path, "EnumerationResults") == 0)
		list->is_list = true;
	if (strcmp(path, "EnumerationResults/NextMarker") == 0 && *text) {
		free(list->marker);
		list->marker = strdup(text);
		return list->marker ? 0 : -ENOMEM;
	}
	if (strncmp(path, AZURE_LIST_BLOB, strlen(AZURE_LIST_BLOB)) != 0)
		return 0;
	path += strlen(AZURE_LIST_BLOB);
	if (strcmp(path, "/Name") == 0)
		return azure_list_name(list, text);
	if (strncmp(path, properties, strlen(properties)) == 0)
		azure_list_property(list, path + strlen(properties), text);
	if (*path)
		return 0;
	r = azure_list_end(list);
	azure_list_begin(list);
	return r;
}

int azure_list_read(const char *text, size_t size, const char *head,
		    const struct provider_sink *sink, char **ret_marker, struct diag *diag)
{
	struct azure_list list = {.head = head, .sink = sink, .diag = diag};
	int r;

	azure_list_begin(&list);
	r = xml_read(text, size, azure_list_element, &list, diag);
	if (r == 0 && !list.is_list)
		r = diag_fail(diag, -EBADMSG,
			      "it is no list of Azure: is the endpoint one of Blob Storage?");
	if (r == 0)
		*ret_marker = base_take_ptr(list.marker);
	free(list.marker);
	free(list.name);
	return r;
}
