/* SPDX-License-Identifier: Apache-2.0 */

/* What S3 answers, or somebody in its place: as a list, and as an error. Keys that come out can be asked for again. */

#include <stdlib.h>
#include <string.h>

#include "bucket/s3/s3_list.h"
#include "bucket/s3/s3_time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_object(void *arg, const struct provider_object *object)
{
	size_t *n = arg;

	if (!*object->name || strlen(object->name) > S3_LIST_MOST_NAME ||
	    object->size > INT64_MAX || strlen(object->etag) >= 160)
		abort();
	return ++*n == 1000 ? -EXFULL : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = 0;
	const struct provider_sink sink = {on_object, &n};
	struct s3_error error;
	char *next = NULL;
	struct diag diag = {""};
	const int r = s3_list_read((const char *)data, size, &sink, &next, &diag);

	if (r == -EBADMSG && !*diag.text)
		abort();
	if (r && next)
		abort();
	free(next);
	s3_error_read((const char *)data, size, &error);
	if (s3_time_parse(error.server_time) < INT64_C(-62200000000) &&
	    s3_time_parse(error.server_time) != INT64_MIN)
		abort();
	return 0;
}
