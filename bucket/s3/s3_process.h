/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* credential_process: a program of the user's that prints credentials. */

#include "bucket/s3/s3_keys.h"

#define S3_PROCESS_MS 60000

/* Runs the command, in a shell, for at most so long. 0, -EACCES with diag (what it said as an error is in it), -ENOMEM. */
int s3_process_keys(const char *command, int timeout_ms, struct s3_keys *ret, struct diag *diag);
