/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Secrets that are texts. */

#include "bucket/http.h"

#define S3_SECRET_MOST 65536

/* Without the white space around it, in place. false: it cannot stand in a header, or is empty. */
bool s3_secret_trim(char *text);
/* A file's text, so. The caller wipes it. 0, -ENOMEM, -EACCES with diag, which begins with `what`. */
int s3_secret_read(const char *path, const char *what, char **ret, struct diag *diag);
