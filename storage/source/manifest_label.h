/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SOURCE_MANIFEST_LABEL_H
#define STORAGE_SOURCE_MANIFEST_LABEL_H

/* What a text is as a label. Pure. */

#include <stdbool.h>
#include <stdint.h>

#define MANIFEST_NO_CLASS "is no class: classes are whole numbers from 0, -1 for none, or words"

bool manifest_is_text(const char *text); /* UTF-8? */
/* A number to *ret_label, or SCAN_NO_LABEL and, of a word, the text itself to *ret_word, else NULL: it is none. NULL, or why
 * it is neither; static. */
const char *manifest_label(const char *text, uint32_t *ret_label, const char **ret_word);

#endif
