/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pictures in FFCV's files (.beton): JPEGs, or pixels as they are. The option image names the field of pictures, where there are
 * several; label that of the labels; label=none: there is none. */

#include <stdbool.h>
#include <stddef.h>

#include "storage/source/scan/scan_shard.h"

extern const struct source_scan scan_beton;

/* Do a file's first bytes begin one? */
bool beton_is_file(const uint8_t *head, size_t size);
/* Pixels get the head of a PPM, in the SCAN_PIXELS_HEAD bytes before them; what has no width is left as it is. */
void beton_join(uint8_t *bytes, size_t size, uint64_t place);
