/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of a source, "key=value,key=value", as scans find them in struct scan_shard. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan_option { /* one of them; places in the text */
	const char *key, *value;
	size_t key_bytes, value_bytes; /* value NULL: it has none */
};
/* The next one, from *options on, which goes behind it. false: there is none. */
bool scan_option_next(const char **options, struct scan_option *ret);
/* The value to ret, of size bytes, "" where there is none. false: it does not fit. */
bool scan_option(const char *options, const char *key, char *ret, size_t size);
/* Is a sample all of what it has (members=all)? false: the option is another. */
bool scan_option_members(const char *options, bool *ret);
#define SCAN_OPTION_MEMBERS "the option members is all, or left out"
