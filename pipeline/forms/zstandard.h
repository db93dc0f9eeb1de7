/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples that are a frame of Zstandard, such as the records of compressed Bagz and of ArrayRecord files: what is in it becomes the sample. Bytes that
 * begin as no frame does are a sample as they are.
 */

#include "pipeline/forms/unpacked.h"
#include "pipeline/types.h"

struct zstandard; /* of a run; not shared */

bool zstandard_is_frame(const void *data, size_t size);
/* *zstandard is made when it is needed. What is in the frame, hostile too, is in `room` then. 0, or PIPELINE_E_BAD with
 * *ret_error. */
int zstandard_unpack(struct zstandard **zstandard, struct unpacked *room, const void **data,
		     size_t *size, struct pipeline_error *ret_error);
void zstandard_free(struct zstandard *zstandard);
