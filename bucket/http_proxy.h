/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose proxy a request goes by, for a person. */

#include "base/base.h"

/* Of a URL as much as names no secret: its host and port. */
char *http_host(const char *url, char *ret, size_t size);
/* "the proxy HOST (https_proxy)", or (http_proxy), as far as the URL's is asked by one; else "". */
const char *http_proxy(const char *url, char *ret, size_t size);
