/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which foreign decoders make the pixels of this process: the very libraries that are loaded, and not the
 * headers that it was built with. What is kept of pixels is named by this, too, so that another library's
 * are never found.
 */

#include "base/hash.h"

/* A hash of the names and build ids of the loaded libraries whose names begin with one of these
 * prefixes, in the order of the prefixes. A library without a build id counts by its name; one that is linked
 * into the program is the program's own, whose pixels have a version of their own (ENGINE_PIXELS). */
void decode_libraries_named(const char *const *prefixes, unsigned n, struct hash_id *ret);
/* Of libjpeg-turbo, libwebp, libtiff, libspng and giflib. */
void decode_libraries(struct hash_id *ret);
