/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which foreign decoders make the pixels of this process: the very libraries that are loaded, and not the
 * headers that it was built with. What is kept of pixels is named by this, too, so that another library's
 * are never found.
 */

#include "base/hash.h"

/* Of libjpeg-turbo, libwebp, libtiff, libspng, giflib and those that decode_load() loads. */
void decode_libraries(struct hash_id *ret);
