/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages collected. The texts are one memory, and items have places in it, since it moves as it grows. accessd
 * may meet samples while it is asked, so they come in any order, and are ordered at the end.
 */
#include "shmring/bad_list.h"

void bad_list_fini(struct bad_list *list)
{
	free(list->item);
	free(list->text);
	*list = (struct bad_list){0};
}

/* Room for one more, and its texts. false: out of memory. */
static bool make_room(struct bad_list *list, uint64_t bytes)
{
	return base_grow(&list->item, &list->room, list->count + 1, sizeof(*list->item)) &&
	       base_grow(&list->text, &list->text_room, list->used + bytes, 1);
}

static void put_text(struct bad_list *list, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(list->text + list->used, text, size);
	list->used += size;
}

static int add(struct bad_list *list, const struct bad_page_entry *entry)
{
	uint64_t bytes = strlen(entry->name) + strlen(entry->stage) + strlen(entry->why) + 3;

	if (!make_room(list, bytes))
		return -ENOMEM;
	list->item[list->count++] = (struct bad_list_item){entry->id, list->used};
	put_text(list, entry->name);
	put_text(list, entry->stage);
	put_text(list, entry->why);
	return 0;
}

int bad_list_add(struct bad_list *list, const uint8_t *bytes, size_t size, uint64_t n)
{
	struct bad_page_entry entry;
	size_t at = 0;
	int r;

	while ((r = bad_page_next(bytes, size, &at, &entry)) == 0) {
		if (entry.id >= n)
			return BAD_PAGE_E_BAD;
		r = add(list, &entry);
		if (r)
			return r;
	}
	return r == BAD_PAGE_E_END ? 0 : r;
}

/* Texts were added in order, so their places tell what came first. */
static int compare(const void *a, const void *b)
{
	const struct bad_list_item *one = a, *other = b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	return one->at < other->at ? -1 : 1;
}

void bad_list_sort(struct bad_list *list)
{
	uint64_t kept = 0;

	if (list->count > 0)
		qsort(list->item, list->count, sizeof(*list->item), compare);
	for (uint64_t i = 0; i < list->count; i++)
		if (kept == 0 || list->item[kept - 1].id != list->item[i].id)
			list->item[kept++] = list->item[i];
	list->count = kept;
}

void bad_list_get(const struct bad_list *list, uint64_t at, struct bad_page_entry *ret)
{
	const struct bad_list_item *item = &list->item[at];
	const char *name = list->text + item->at, *stage = name + strlen(name) + 1;

	*ret = (struct bad_page_entry){item->id, name, stage, stage + strlen(stage) + 1};
}
