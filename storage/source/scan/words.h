/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Words that samples bring as labels: each once, with a number. One thread's. */

#include <stddef.h>
#include <stdint.h>

#define WORDS_MOST 65536 /* of them; more are no classes, but texts */
#define WORDS_TOO_MANY \
	"has more than 65536 different words as labels; name the column of classes by ?label=NAME"

struct words { /* zeros: none */
	size_t n, room;
	uint32_t *start; /* owned: of each, in text */
	char *text;      /* owned; a NUL after each */
	size_t text_bytes, text_room;
	uint32_t *place; /* owned: a table of numbers + 1, by hash */
	size_t places;   /* a power of two */
};

/* Of the word, which is put there if it is new. 0, -E2BIG (it would be one too many), -ENOMEM. */
int words_add(struct words *words, const char *word, uint32_t *ret);
const char *words_of(const struct words *words, uint32_t number);
/* Sorted as bytes: of each number, the place in that order. NULL: there is not enough memory. Caller owns. */
uint32_t *words_order(const struct words *words);
uint64_t words_bytes(const struct words *words); /* of memory */
void words_fini(struct words *words);
