/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_SCAN_OPTION_H
#define STORAGE_SOURCE_SCAN_OPTION_H

/* The options of a source, "key=value,key=value", as scans find them in struct scan_shard. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value to ret, of size bytes, "" where there is none. false: it does not fit. */
bool scan_option(const char *options, const char *key, char *ret, size_t size);

#endif
