/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bad samples as accessd tells of them: as many entries as fit into one item of a message, one behind
 * the other, little endian, unaligned:
 *
 *   u64 id | u16 bytes of name, stage and why, each with its NUL | name | stage | why
 *
 * name: the file's, relative to the dataset, any bytes, "" where the index is damaged. stage: where it went wrong, a word of a to z;
 * "": accessd does not know (any more). why: one line of text for people.
 */

#include "base/base.h"

#define BAD_PAGE_MAX 65536 /* bytes of a page */
#define BAD_PAGE_IDS 256   /* samples that can be asked for by name at once */
/* Bytes of a name, and of a line, with their NUL: what is longer is cut */
#define BAD_PAGE_NAME 4096
#define BAD_PAGE_STAGE 16
#define BAD_PAGE_WHY 256

enum { BAD_PAGE_E_END = 1, BAD_PAGE_E_BAD = 2 };

struct bad_page_entry {
	uint64_t id;
	const char *name, *stage, *why;
};

struct bad_page { /* one that is being written */
	size_t used;
	uint8_t bytes[BAD_PAGE_MAX];
};
/* Starts empty with used 0. false: it has no room left for this one; an empty page has. */
bool bad_page_put(struct bad_page *page, const struct bad_page_entry *entry);
/* The entry at *at, 0 at the beginning; its texts are the page's. Believes nothing. 0; BAD_PAGE_E_END:
 * there is no other; BAD_PAGE_E_BAD: these bytes are no page. */
int bad_page_next(const uint8_t *bytes, size_t size, size_t *at, struct bad_page_entry *ret);
