/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Credentials that a machine or a container gives to those that run in it. */

#include "bucket/http.h"
#include "bucket/s3/s3_keys.h"

/* AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI (ECS, EKS Pod Identity). 0; S3_FIND_E_NONE: there are none of these
 * variables; -EACCES, -EINVAL, -EIO, -ENOMEM with diag. */
int s3_machine_container(struct http *http, struct s3_keys *ret, struct diag *diag);
/* The metadata of an EC2 instance, version 2: S3_FIND_E_NONE, where there are none or nobody answers. */
int s3_machine_metadata(struct http *http, struct s3_keys *ret, struct diag *diag);
