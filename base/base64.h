/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Base64 (RFC 4648). The caller frees what comes, or wipes it. */

#include "base/base.h"

/* NULL: no memory. */
char *base64_of(const void *bytes, size_t size);
/* With "-" and "_", and without "=" in the end. */
char *base64_for_url(const void *bytes, size_t size);
/* White space does not count. 0, -EINVAL, -ENOMEM. */
int base64_read(const char *text, size_t size, uint8_t **ret, size_t *ret_size);
