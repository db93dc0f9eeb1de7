/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared Key, by which a storage account's key signs requests to Azure Blob Storage. */

#include "bucket/http.h"

#define AZURE_SIGN_DATE 30
/* "Fri, 27 Nov 2026 09:00:00 GMT"; and back, or INT64_MIN. */
void azure_sign_date(int64_t seconds, char ret[AZURE_SIGN_DATE]);
int64_t azure_sign_seconds(const char *date);
/* Sets x-ms-date and Authorization. 0, -ENOMEM. */
int azure_sign(struct http_request *request, const char *account, const uint8_t *key,
	       size_t key_bytes, int64_t seconds);
