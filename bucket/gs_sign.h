/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a JSON Web Token of a service account needs: RS256 (RFC 7518) and base64url (RFC 4648). */

#include "base/base.h"

/* Without "=" in the end. The caller frees; NULL: no memory. */
char *gs_sign_base64url(const void *bytes, size_t size);
/* The signature of the text in base64url; pem: a private RSA key, "-----BEGIN PRIVATE KEY-----". The caller frees. 0; -EINVAL:
 * it is no such key; -ENOMEM. */
int gs_sign_rs256(const char *pem, const char *text, char **ret);
