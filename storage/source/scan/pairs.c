/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/source/scan/pairs.h"

#include <string.h>

#include "base/base.h"

struct look { /* at bytes, of which so many are over */
	const uint8_t *bytes;
	size_t size, at;
};

static void skip_blanks(struct look *look)
{
	while (look->at < look->size && memchr(" \t\r\n", look->bytes[look->at], 4))
		look->at++;
}

/* Blanks and that word. */
static int take(struct look *look, const char *word)
{
	size_t there;

	skip_blanks(look);
	there = BASE_MIN(strlen(word), look->size - look->at);
	if (memcmp(look->bytes + look->at, word, there) != 0)
		return PAIRS_E_BAD;
	look->at += there;
	return there < strlen(word) ? PAIRS_E_MORE : 0;
}

static int take_begin(struct look *look)
{
	static const char *const words[] = {"{", "\"labels\"", ":", "["};
	int r = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(words) && !r; i++)
		r = take(look, words[i]);
	return r;
}

/* To the bracket that closes the one that is next. */
static int take_array(struct look *look)
{
	unsigned depth = 0;
	bool is_text = false;

	for (; look->at < look->size; look->at++) {
		const uint8_t c = look->bytes[look->at];

		if (is_text) {
			look->at += c == '\\';
			is_text = c != '"';
			continue;
		}
		is_text = c == '"';
		depth += c == '[';
		if (c == ']' && --depth == 0) {
			look->at++;
			return 0;
		}
	}
	return PAIRS_E_MORE;
}

static int take_pair(struct look *look, bool is_first, enum pairs_place *place,
		     struct pairs_step *ret)
{
	int r;

	skip_blanks(look);
	if (look->at == look->size)
		return PAIRS_E_MORE;
	if (look->bytes[look->at] == ']') {
		look->at++;
		*place = PAIRS_END;
		return 0;
	}
	r = is_first ? 0 : take(look, ",");
	if (!r)
		r = take(look, "[");
	if (r)
		return r;
	ret->at = --look->at;
	r = take_array(look);
	ret->pair = look->at - ret->at;
	*place = PAIRS_NEXT;
	return r;
}

static int take_end(struct look *look, enum pairs_place *place)
{
	const int r = take(look, "}");

	*place = PAIRS_OVER;
	skip_blanks(look);
	return r;
}

int pairs_step(enum pairs_place *place, const uint8_t *bytes, size_t size, bool is_last,
	       struct pairs_step *ret)
{
	struct look look = {bytes, size, 0};
	struct pairs_step step = {.bytes = 0};
	enum pairs_place next = PAIRS_FIRST;
	int r = 0;

	switch (*place) {
	case PAIRS_BEGIN:
		r = take_begin(&look);
		break;
	case PAIRS_FIRST:
	case PAIRS_NEXT:
		r = take_pair(&look, *place == PAIRS_FIRST, &next, &step);
		break;
	case PAIRS_END:
		r = take_end(&look, &next);
		break;
	case PAIRS_OVER:
		next = PAIRS_OVER;
		skip_blanks(&look);
		r = look.at < size ? PAIRS_E_BAD : 0;
		break;
	}
	if (r == PAIRS_E_MORE || (!r && look.at == size && next != PAIRS_OVER))
		r = is_last ? PAIRS_E_BAD : r;
	if (r)
		return r;
	step.bytes = look.at;
	*place = next;
	*ret = step;
	return 0;
}
