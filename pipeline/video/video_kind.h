/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What container a file is, by what it begins with; in the module, and in whoever asks whether it is needed. */

#include "base/base.h"

/* FFmpeg's name of its demuxer: "mov" (MP4 and M4A, too), "matroska" (WebM), "avi", "mpegts" or "ogg"; NULL: none of these. */
const char *video_kind(const uint8_t *data, size_t size);
