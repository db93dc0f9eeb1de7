/* SPDX-License-Identifier: Apache-2.0 */

/* A table by hash with open places, at most half of them taken. */

#include "storage/source/scan/words.h"

#include "base/base.h"
#include "base/hash.h"

#define WORDS_LEAST_PLACES 64

const char *words_of(const struct words *words, uint32_t number)
{
	return words->text + words->start[number];
}

uint64_t words_bytes(const struct words *words)
{
	return words->room * sizeof(*words->start) + words->text_room +
	       words->places * sizeof(*words->place);
}

void words_fini(struct words *words)
{
	free(words->start);
	free(words->text);
	free(words->place);
	*words = (struct words){.n = 0};
}

/* Its place, or the open one where it belongs. */
static uint32_t *find(const struct words *words, const char *word)
{
	size_t at = hash_checksum(word, strlen(word)) & (words->places - 1);

	while (words->place[at] && strcmp(words_of(words, words->place[at] - 1), word) != 0)
		at = (at + 1) & (words->places - 1);
	return &words->place[at];
}

static bool grow_places(struct words *words)
{
	const size_t places = BASE_MAX(2 * words->places, (size_t)WORDS_LEAST_PLACES);
	uint32_t *place = calloc(places, sizeof(*place));

	if (!place)
		return false;
	free(words->place);
	words->place = place;
	words->places = places;
	for (size_t i = 0; i < words->n; i++)
		*find(words, words_of(words, (uint32_t)i)) = (uint32_t)i + 1;
	return true;
}

int words_add(struct words *words, const char *word, uint32_t *ret)
{
	const size_t size = strlen(word) + 1;
	uint32_t *place;

	if (2 * words->n >= words->places && !grow_places(words))
		return -ENOMEM;
	place = find(words, word);
	if (!*place) {
		if (words->n == WORDS_MOST)
			return -E2BIG;
		if (!base_grow(&words->start, &words->room, words->n + 1, sizeof(*words->start)) ||
		    !base_grow(&words->text, &words->text_room, words->text_bytes + size, 1))
			return -ENOMEM;
		memcpy(words->text + words->text_bytes, word, size);
		words->start[words->n++] = (uint32_t)words->text_bytes;
		words->text_bytes += size;
		*place = (uint32_t)words->n;
	}
	*ret = *place - 1;
	return 0;
}

static int compare(const void *a, const void *b, void *arg)
{
	return strcmp(words_of(arg, *(const uint32_t *)a), words_of(arg, *(const uint32_t *)b));
}

uint32_t *words_order(const struct words *words)
{
	_cleanup_free_ uint32_t *sorted = calloc(words->n + 1, sizeof(*sorted));
	uint32_t *order = calloc(words->n + 1, sizeof(*order));

	if (!sorted || !order) {
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < words->n; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, words->n, sizeof(*sorted), compare, (void *)(uintptr_t)words);
	for (size_t i = 0; i < words->n; i++)
		order[sorted[i]] = (uint32_t)i;
	return order;
}
