/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bad samples as who asks for them collects them: what the pages had, each sample once, by id. */

#include "shmring/bad_page.h"

struct bad_list_item {
	uint64_t id, at; /* at: of its texts: name, stage, why, each with its NUL */
};

struct bad_list { /* owned; all zero: empty */
	struct bad_list_item *item;
	char *text;
	uint64_t count, used;
	size_t room, text_room;
};
void bad_list_fini(struct bad_list *list);
/* Adds a page of samples below n. 0; BAD_PAGE_E_BAD: these bytes are none; -ENOMEM. */
int bad_list_add(struct bad_list *list, const uint8_t *bytes, size_t size, uint64_t n);
/* Orders it by id; of a sample that it has several times the first stays. */
void bad_list_sort(struct bad_list *list);
/* at is below count; the texts are the list's, until it is added to. */
void bad_list_get(const struct bad_list *list, uint64_t at, struct bad_page_entry *ret);
