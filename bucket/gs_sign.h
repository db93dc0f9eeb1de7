/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a JSON Web Token of a service account needs: RS256 (RFC 7518). */

#include "base/base.h"

/* The signature of the text in base64url; pem: a private RSA key, "-----BEGIN PRIVATE KEY-----". The caller frees. 0; -EINVAL:
 * it is no such key; -ENOENT: there is no libcrypto; -ENOMEM. */
int gs_sign_rs256(const char *pem, const char *text, char **ret);
