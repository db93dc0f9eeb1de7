/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Manifests: tables whose rows name files, told by their suffix. A record is a row, and its key is the file's path. */

#include "storage/source/scan/scan_shard.h"

#include <stdbool.h>

extern const struct source_scan scan_manifest;

/* ---- manifest_label.c: what a text is as a label; pure ---- */

#define MANIFEST_NO_CLASS "is no class: classes are whole numbers from 0, -1 for none, or words"

bool manifest_is_text(const char *text); /* UTF-8? */
/* A number to *ret_label, or SCAN_NO_LABEL and, of a word, the text itself to *ret_word, else NULL: it is none. NULL, or why
 * it is neither; static. */
const char *manifest_label(const char *text, uint32_t *ret_label, const char **ret_word);
