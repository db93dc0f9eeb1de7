/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who reads a bucket of Google Cloud Storage: credentials are found as its other clients find them, and tokens asked for. */

#include "bucket/http.h"

struct gs_login;
/* file: before all others; NULL. Reads files, asks nobody. 0; -EACCES, -EINVAL with diag; -ENOMEM. */
int gs_login_open(const char *file, struct gs_login **ret, struct diag *diag);
void gs_login_free(struct gs_login *login);
/* Asks for a token, which the caller wipes. It ends in so many seconds. 0; -EACCES with diag, which says what was looked for;
 * -EIO, -ECANCELED with diag; -ENOMEM. */
int gs_login_ask(const void *login, struct http *http, char **ret_token, unsigned *ret_seconds,
		 struct diag *diag);
const char *gs_login_who(const struct gs_login *login); /* for messages */
