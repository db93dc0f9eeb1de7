/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Do these bytes begin as a picture's file does? Which one it is, and whether it is good, is decided by the workers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool magic_is_picture(const uint8_t *data, size_t size);
/* The suffix of such files, without the dot; NULL: it is none. */
const char *magic_suffix(const uint8_t *data, size_t size);
