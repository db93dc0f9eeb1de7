/* SPDX-License-Identifier: Apache-2.0 */

/* Options of a source, in the text that they come in. */

#include "storage/source/scan_option.h"

#include <string.h>

bool scan_option(const char *options, const char *key, char *ret, size_t size)
{
	const size_t length = strlen(key);

	ret[0] = '\0';
	while (*options) {
		const size_t all = strcspn(options, ",");

		if (all > length && options[length] == '=' && strncmp(options, key, length) == 0) {
			if (all - length > size)
				return false;
			memcpy(ret, options + length + 1, all - length - 1);
			ret[all - length - 1] = '\0';
			return true;
		}
		options += all + (options[all] == ',');
	}
	return true;
}
