/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Credentials: an access key, its secret, and the token of a session. Foreign text, which goes into headers: it has printable
 * characters alone. Whoever owns a struct wipes it.
 */

#include "base/base.h"

#define S3_KEYS_ID 129
#define S3_KEYS_SECRET 257
#define S3_KEYS_TOKEN 8193

struct s3_keys {
	char id[S3_KEYS_ID], secret[S3_KEYS_SECRET];
	char token[S3_KEYS_TOKEN]; /* "": they are no session's */
	char from[128];            /* where they were found, for people */
	int64_t expires;           /* seconds since 1970; 0: never, or nobody says */
};

/* All NULL-able; token NULL or "": none. false: an id or a secret that is missing, too long, or has other characters. */
bool s3_keys_set(struct s3_keys *ret, const char *id, const char *secret, const char *token);
void s3_keys_wipe(struct s3_keys *keys);
/* As `aws configure export-credentials`, containers and machines say them: {"AccessKeyId", "SecretAccessKey",
 * "SessionToken" or "Token", "Expiration"}. 0, -EBADMSG with diag, which has none of the text. */
int s3_keys_of_json(const char *text, size_t size, struct s3_keys *ret, struct diag *diag);
/* The last four characters of the id, with dots before them: what may be shown. */
const char *s3_keys_shown(const struct s3_keys *keys, char ret[16]);
