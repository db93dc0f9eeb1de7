/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a picture wants to be turned: the tag Orientation of its file's EXIF, or of its XMP. */

#include "base/base.h"

#define EXIF_UPRIGHT 1 /* as it is */

/* 1 to 8, of a JPEG, PNG or WebP file (hostile bytes); EXIF_UPRIGHT where it says none. */
unsigned exif_orientation(const uint8_t *data, size_t size);
/* The same of a packet of XMP (hostile bytes). data: NULL if size is 0. */
unsigned exif_of_xmp(const uint8_t *data, size_t size);
