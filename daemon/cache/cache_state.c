/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cache/cache_state.h"

#include <stdio.h>

const char *cache_name(unsigned form, char ret[24])
{
	static const char *const names[] = {"file", "indexed", "packed", "decoded"};

	if (form < BASE_ARRAY_LEN(names))
		snprintf(ret, 24, "%s", names[form]);
	else if (form == LAYOUT_FORM_AUGMENTED)
		snprintf(ret, 24, "augmented");
	else
		snprintf(ret, 24, "decoded+%u", form - LAYOUT_FORM_PIXELS - 1);
	return ret;
}

bool cache_is_choice(const char *text)
{
	static const char *const choices[] = {"auto",    "none",    "indexed",  "packed",
					      "decoded", "deepest", "augmented"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(choices); i++)
		if (strcmp(text, choices[i]) == 0)
			return true;
	return false;
}

void cache_init(struct cache *cache)
{
	*cache = (struct cache){.forced = -1, .peers = {-1, -1, -1, true}};
	peering_init(&cache->peering);
}

const struct cache_point *cache_augmented(const struct cache *cache)
{
	const struct cache_point *last = &cache->point[BASE_MAX(cache->listed, 1u) - 1];

	return last->form == LAYOUT_FORM_AUGMENTED ? last : NULL;
}

void cache_open(struct cache *cache)
{
	const struct cache_point *augmented = cache_augmented(cache);

	cache->n = cache->listed;
	if (augmented && (cache->allows < 2 || augmented->state == CACHE_REFUSED))
		cache->n--;
}

void cache_take_book(struct cache *from, struct cache *to)
{
	const struct cache_point *augmented = cache_augmented(to);

	if (!augmented ||
	    memcmp(&augmented->group, &from->book_group, sizeof(from->book_group)) != 0)
		return;
	to->book = from->book;
	to->book_group = from->book_group;
	from->book = (struct instance_book){.n = 0};
}

void cache_count_trials(struct cache *cache)
{
	for (unsigned p = 0; p < cache->n; p++)
		cache->point[p].most_trials = point_trials(&cache->input, p);
}

bool cache_wants_trials(const struct cache *cache, unsigned p)
{
	const struct cache_point *point = &cache->point[p];

	return point->trials < point->most_trials && !point_form_is_sure(&point->figures);
}

bool cache_is_trying(const struct cache *cache)
{
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->point[p].state == CACHE_READY && cache_wants_trials(cache, p))
			return true;
	return false;
}

bool cache_has_trials_out(const struct cache *cache)
{
	for (unsigned p = 1; p < cache->n; p++)
		if (cache->point[p].tried < cache->point[p].trials)
			return true;
	return false;
}
