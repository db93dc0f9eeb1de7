/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples that are a file of a zip archive, from its header on (base/zip.h): what is in it becomes the sample. Bytes that begin as no header
 * does are a sample as they are.
 */

#include "pipeline/forms/unpacked.h"
#include "pipeline/types.h"

struct zipped; /* of a run; not shared */

bool zipped_is_file(const void *data, size_t size);
/* *zipped is made when it is needed. What is in the file, hostile too, is in `to` then. 0, or PIPELINE_E_BAD with
 * *ret_error. */
int zipped_unpack(struct zipped **zipped, struct unpacked *to, const void **data, size_t *size,
		  struct pipeline_error *ret_error);
/* Of a deflated stream, in gzip's header or bare, the first `most` bytes (at most UNPACKED_MOST) and perhaps some more, or all: *ret of
 * them. The memory is `to`'s, and grows with what comes. what: of errors. As zipped_unpack. */
int zipped_inflate(struct zipped **zipped, bool is_gzip, const char *what, const uint8_t *data,
		   size_t size, size_t most, struct unpacked *to, size_t *ret,
		   struct pipeline_error *ret_error);
void zipped_free(struct zipped *zipped);
