/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as S3 and its relatives write them. */

#include "base/base.h"

/* "2009-10-12T17:50:30.000Z", "...+01:00": seconds since 1970; INT64_MIN: it is none. */
int64_t s3_time_parse(const char *text);
/* "20091012T175030Z" */
#define S3_TIME_STAMP 17
void s3_time_stamp(int64_t seconds, char ret[S3_TIME_STAMP]);
