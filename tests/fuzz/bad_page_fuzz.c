/* SPDX-License-Identifier: Apache-2.0 */

/* A page of bad samples of arbitrary bytes: what is let in can be read to its last byte, says what it said when it
 * is written again, and a list of it is in order. */

#include <stdlib.h>
#include <string.h>

#include "shmring/bad_list.h"

#define SAMPLES 1000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool truth)
{
	if (!truth)
		abort();
}

static void check_texts(const struct bad_page_entry *entry)
{
	demand(strlen(entry->name) < BAD_PAGE_NAME);
	demand(strlen(entry->stage) < BAD_PAGE_STAGE);
	demand(strlen(entry->why) < BAD_PAGE_WHY);
	for (const char *at = entry->why; *at; at++)
		demand((unsigned char)*at >= ' ');
}

/* The bytes of what was let in are those that we write. */
static void check_page(const uint8_t *data, size_t size, size_t *ret_good)
{
	static struct bad_page page;
	struct bad_page_entry entry;
	size_t at = 0;

	page.used = 0;
	while (bad_page_next(data, size, &at, &entry) == 0) {
		check_texts(&entry);
		if (!bad_page_put(&page, &entry))
			page.used = 0; /* it is full */
		else
			demand(page.used <= at &&
			       memcmp(page.bytes, data + at - page.used, page.used) == 0);
	}
	*ret_good = at;
}

static void check_list(const uint8_t *data, size_t size)
{
	struct bad_list list = {0};
	struct bad_page_entry entry;
	uint64_t before = 0;
	int r = bad_list_add(&list, data, size, SAMPLES);

	demand(r == 0 || r == BAD_PAGE_E_BAD);
	bad_list_sort(&list);
	for (uint64_t i = 0; i < list.count; i++) {
		bad_list_get(&list, i, &entry);
		check_texts(&entry);
		demand(entry.id < SAMPLES && (i == 0 || entry.id > before));
		before = entry.id;
	}
	bad_list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	size_t good;

	demand(copy != NULL);
	memcpy(copy, data, size); /* of its exact size: what reads on is found */
	copy = realloc(copy, size ? size : 1);
	demand(copy != NULL);
	check_page(copy, size, &good);
	demand(good <= size);
	check_list(copy, size);
	free(copy);
	return 0;
}
