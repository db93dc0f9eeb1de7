/* SPDX-License-Identifier: Apache-2.0 */

/* Options of a source, in the text that they come in. */

#include "storage/source/scan/scan_option.h"

#include <string.h>

bool scan_option_next(const char **options, struct scan_option *ret)
{
	const char *at = *options;
	const size_t key = strcspn(at, "=,"), all = strcspn(at, ",");

	if (!*at)
		return false;
	*ret = (struct scan_option){.key = at, .key_bytes = key};
	if (key < all) {
		ret->value = at + key + 1;
		ret->value_bytes = all - key - 1;
	}
	*options = at + all + (at[all] == ',');
	return true;
}

bool scan_option(const char *options, const char *key, char *ret, size_t size)
{
	struct scan_option option;

	ret[0] = '\0';
	while (scan_option_next(&options, &option)) {
		if (!option.value || option.key_bytes != strlen(key) ||
		    memcmp(option.key, key, option.key_bytes) != 0)
			continue;
		if (option.value_bytes >= size)
			return false;
		memcpy(ret, option.value, option.value_bytes);
		ret[option.value_bytes] = '\0';
		return true;
	}
	return true;
}

bool scan_option_members(const char *options, bool *ret)
{
	char members[8];

	if (!scan_option(options, "members", members, sizeof(members)) ||
	    (*members && strcmp(members, "all") != 0))
		return false;
	*ret = *members != '\0';
	return true;
}
