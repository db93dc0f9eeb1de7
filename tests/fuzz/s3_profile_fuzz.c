/* SPDX-License-Identifier: Apache-2.0 */

/* A user's file of profiles, and what a credential_process prints: every item can be found again, and no key has what a header may
 * not have. */

#include <stdlib.h>
#include <string.h>

#include "bucket/s3/s3_keys.h"
#include "bucket/s3/s3_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_items(const struct s3_profile_file *file)
{
	for (size_t i = 0; i < file->n; i++) {
		const struct s3_profile_item *item = &file->items[i];

		if (!*item->key || strchr(item->value, '\n') || strchr(item->section, ']') ||
		    !s3_profile_item(file, item->section, item->parent, item->key))
			abort();
	}
}

static void check_text(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct s3_profile_file file;
	struct s3_keys keys;
	struct diag diag;

	if (s3_profile_parse((const char *)data, size, &file) == 0) {
		check_items(&file);
		s3_profile_free(&file);
	}
	if (s3_keys_of_json((const char *)data, size, &keys, &diag) == 0) {
		check_text(keys.id);
		check_text(keys.secret);
		check_text(keys.token);
		if (!*keys.id || !*keys.secret)
			abort();
	}
	return 0;
}
