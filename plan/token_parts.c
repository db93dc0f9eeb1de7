/* SPDX-License-Identifier: Apache-2.0 */

/*
 * See token_parts.h. A part that is written as a bitmap must be one of which some is needed and some
 * is not, and bits past the last block are 0; all else is refused, so that bytes and needs are one
 * to one, and a token that was read is written as the same bytes again.
 */

#include "base/base.h"
#include "base/bits.h"
#include "base/little.h"
#include "plan/token_parts.h"

enum { PART_NONE = 0, PART_ALL = 1, PART_SOME = 2 };

#define PART_WORDS (TOKEN_PART / 64)

static uint64_t parts_of(uint64_t blocks)
{
	return (blocks + TOKEN_PART - 1) / TOKEN_PART;
}

static uint64_t blocks_in(uint64_t blocks, uint64_t part)
{
	return BASE_MIN(blocks - part * TOKEN_PART, (uint64_t)TOKEN_PART);
}

/* Where the bitmaps begin. */
static size_t kinds_size(uint64_t blocks)
{
	return (size_t)base_align_up(parts_of(blocks), 8);
}

static int kind_of(const uint64_t *words, uint64_t blocks)
{
	uint64_t count = bits_count(words, blocks);

	return !count ? PART_NONE : count == blocks ? PART_ALL : PART_SOME;
}

size_t token_parts_size(const uint64_t *need, uint64_t blocks)
{
	size_t size = kinds_size(blocks);

	for (uint64_t i = 0; i < parts_of(blocks); i++)
		if (kind_of(need + i * PART_WORDS, blocks_in(blocks, i)) == PART_SOME)
			size += 8 * bits_words(blocks_in(blocks, i));
	return size;
}

static uint8_t *put_words(uint8_t *at, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		little_put_64(at + 8 * i, words[i]);
	return at + 8 * n;
}

void token_parts_write(const uint64_t *need, uint64_t blocks, uint8_t *ret)
{
	uint8_t *at = ret + kinds_size(blocks);

	for (uint8_t *zero = ret + parts_of(blocks); zero < at; zero++)
		*zero = 0;
	for (uint64_t i = 0; i < parts_of(blocks); i++) {
		const uint64_t *words = need + i * PART_WORDS;

		ret[i] = (uint8_t)kind_of(words, blocks_in(blocks, i));
		if (ret[i] == PART_SOME)
			at = put_words(at, words, bits_words(blocks_in(blocks, i)));
	}
}

size_t token_parts_measure(const uint8_t *data, size_t room, uint64_t blocks)
{
	size_t size = kinds_size(blocks);

	if (size > room)
		return 0;
	for (uint64_t i = 0; i < kinds_size(blocks); i++) {
		if (data[i] > (i < parts_of(blocks) ? PART_SOME : 0))
			return 0;
		if (data[i] == PART_SOME)
			size += 8 * bits_words(blocks_in(blocks, i));
	}
	return size <= room ? size : 0;
}

static const uint8_t *get_words(const uint8_t *at, uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] = little_64(at + 8 * i);
	return at + 8 * n;
}

static bool is_some(const uint64_t *words, uint64_t blocks)
{
	if (blocks % 64 && words[blocks / 64] >> (blocks % 64))
		return false; /* past the end */
	return kind_of(words, blocks) == PART_SOME;
}

bool token_parts_read(const uint8_t *data, uint64_t blocks, uint64_t *need)
{
	const uint8_t *at = data + kinds_size(blocks);

	for (uint64_t i = 0; i < parts_of(blocks); i++) {
		uint64_t *words = need + i * PART_WORDS;
		uint64_t size = blocks_in(blocks, i);

		if (data[i] == PART_SOME) {
			at = get_words(at, words, bits_words(size));
			if (!is_some(words, size))
				return false;
			continue;
		}
		for (size_t k = 0; k < bits_words(size); k++)
			words[k] = 0;
		if (data[i] == PART_ALL)
			bits_fill(words, size);
	}
	return true;
}
